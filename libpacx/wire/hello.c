/* hello.c: see hello.h and PROTOCOL.md, section 4.
 *
 * Byte offsets of the fixed part:
 *    0 protocol  2 site  4 nsites  6 gateway  8 gateways  10 stream  12 streams  14 flavor  16 nranks
 *   20 tag_ub  24 features  28 representation (16)  44 session (8)  52 next (8)  60 lengths of job, name, vendor
 *   63 zero  64 length of extensions  66 zero (2)  68 job, name, vendor, extensions
 */
#include "hello.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "endian.h"
#include "err.h"
#include "frame.h"

#define FIXED 68

_Static_assert(PX_HELLO_MAX == PX_HELLO_BODY_MAX, "the frame check and the hello agree on its largest size");
_Static_assert(FIXED + PX_JOB_MAX + PX_NAME_MAX + PX_VENDOR_MAX <= PX_HELLO_MAX, "a hello always fits");

/* Names are printed in logs and on terminals: no control characters, not even encoded C1 ones. */
static bool text_valid(const char *s, size_t min, size_t max)
{
	size_t n = strnlen(s, max + 1);

	if (n < min || n > max)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)s[i + 1] < 0xa0))
			return false;
	}
	return true;
}

/* Everything but `protocol`: tests of a refused version must be able to write one. */
static bool hello_valid(const struct px_hello *h)
{
	return h->nsites >= 1 && h->site < h->nsites && h->gateways >= 1 && h->gateway < h->gateways &&
	       h->streams >= 1 && h->stream < h->streams && h->nranks >= 1 && h->nranks <= INT32_MAX &&
	       h->tag_ub >= 32767 && px_repr_valid(&h->repr) && text_valid(h->job, 1, PX_JOB_MAX) &&
	       text_valid(h->name, 1, PX_NAME_MAX) && text_valid(h->vendor, 0, PX_VENDOR_MAX);
}

int px_hello_put(const struct px_hello *h, uint8_t *out, size_t cap)
{
	size_t job, name, vendor;
	uint8_t *p = out + FIXED;

	if (!hello_valid(h))
		return PX_EINVAL;
	job = strlen(h->job);
	name = strlen(h->name);
	vendor = strlen(h->vendor);
	if (cap < FIXED + job + name + vendor)
		return PX_EINVAL;
	memset(out, 0, FIXED);
	px_put16(out, h->protocol);
	px_put16(out + 2, h->site);
	px_put16(out + 4, h->nsites);
	px_put16(out + 6, h->gateway);
	px_put16(out + 8, h->gateways);
	px_put16(out + 10, h->stream);
	px_put16(out + 12, h->streams);
	px_put16(out + 14, h->flavor);
	px_put32(out + 16, h->nranks);
	px_put32(out + 20, (uint32_t)h->tag_ub);
	px_put32(out + 24, h->features);
	px_repr_put(&h->repr, out + 28);
	px_put64(out + 44, h->session);
	px_put64(out + 52, h->next);
	out[60] = (uint8_t)job;
	out[61] = (uint8_t)name;
	out[62] = (uint8_t)vendor;
	memcpy(p, h->job, job);
	memcpy(p + job, h->name, name);
	memcpy(p + job + name, h->vendor, vendor);
	return (int)(FIXED + job + name + vendor);
}

/* A NUL inside the text would make it shorter than it says: refused. */
static bool text_get(const uint8_t *p, size_t n, char *to)
{
	if (memchr(p, 0, n))
		return false;
	memcpy(to, p, n);
	return true;
}

int px_hello_get(const uint8_t *in, size_t len, struct px_hello *h)
{
	struct px_hello g;
	size_t job, name, vendor, ext;

	if (len < 2)
		return PX_ESHORT;
	if (px_get16(in) != PX_PROTOCOL_VERSION) {
		h->protocol = px_get16(in);
		return PX_EVERSION;
	}
	if (len < FIXED)
		return PX_ESHORT;
	memset(&g, 0, sizeof g);
	g.protocol = px_get16(in);
	g.site = px_get16(in + 2);
	g.nsites = px_get16(in + 4);
	g.gateway = px_get16(in + 6);
	g.gateways = px_get16(in + 8);
	g.stream = px_get16(in + 10);
	g.streams = px_get16(in + 12);
	g.flavor = px_get16(in + 14);
	g.nranks = px_get32(in + 16);
	g.tag_ub = (int32_t)px_get32(in + 20);
	g.features = px_get32(in + 24);
	g.session = px_get64(in + 44);
	g.next = px_get64(in + 52);
	job = in[60];
	name = in[61];
	vendor = in[62];
	ext = px_get16(in + 64);
	if (in[63] != 0 || px_get16(in + 66) != 0)
		return PX_EPROTO;
	if (job > PX_JOB_MAX || name > PX_NAME_MAX || vendor > PX_VENDOR_MAX ||
		FIXED + job + name + vendor + ext > PX_HELLO_MAX)
		return PX_EPROTO;
	if (len < FIXED + job + name + vendor + ext)
		return PX_ESHORT;
	if (len > FIXED + job + name + vendor + ext)
		return PX_EPROTO;
	if (px_repr_get(in + 28, &g.repr) < 0 || !text_get(in + FIXED, job, g.job) ||
		!text_get(in + FIXED + job, name, g.name) ||
		!text_get(in + FIXED + job + name, vendor, g.vendor) || !hello_valid(&g))
		return PX_EPROTO;
	*h = g;
	return 0;
}

static int refuse(int err, char *why, size_t cap, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static int refuse(int err, char *why, size_t cap, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, cap, fmt, ap);
	va_end(ap);
	return err;
}

int px_hello_check(const struct px_hello *ours, const struct px_hello *peer, char *why, size_t cap)
{
	if (peer->protocol != ours->protocol)
		return refuse(PX_EVERSION, why, cap,
			"protocol version %u met version %u of site %s; install the same PACX on all sites",
			peer->protocol, ours->protocol, ours->name);
	/* Our job id is not told: whoever guesses wrong shall not learn the right one. */
	if (strcmp(peer->job, ours->job) != 0)
		return refuse(PX_EJOB, why, cap,
			"site %s speaks for job \"%s\", which is not the job of site %s; "
			"start all sites with the same hostfile and PACX_JOB",
			peer->name, peer->job, ours->name);
	if (peer->nsites != ours->nsites)
		return refuse(PX_ESITE, why, cap,
			"site %s counts %u sites, site %s counts %u; use the same hostfile on all sites",
			peer->name, peer->nsites, ours->name, ours->nsites);
	if (peer->site >= ours->nsites)
		return refuse(PX_ESITE, why, cap,
			"site %s has index %u, but there are only %u sites; use the same hostfile on all "
			"sites",
			peer->name, peer->site, ours->nsites);
	if (peer->site == ours->site || strcmp(peer->name, ours->name) == 0)
		return refuse(PX_ESITE, why, cap,
			"site %s (index %u) is there twice: the other one is %s (index %u); "
			"was it started twice, or does its port belong to another site?",
			peer->name, peer->site, ours->name, ours->site);
	return 0;
}
