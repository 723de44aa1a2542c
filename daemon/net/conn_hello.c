/* conn_hello.c: see conn_hello.h. */
#include "conn_hello.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "conn.h"
#include "err.h"
#include "frame_check.h"
#include "node.h"
#include "quiet.h"
#include "tls.h"

static int malformed(int rc, const struct pxd_hand *h, const char *what, char *reason)
{
	char text[24];

	if (rc == PX_EVERSION) {
		snprintf(reason, PXD_REASON,
			"protocol version %u met version %u; install the same PACX on all sites",
			h->n > 2 ? h->buf[2] : 0u, (unsigned)PX_PROTOCOL_VERSION);
		return PX_EVERSION;
	}
	pxd_text_clean(h->buf, h->n < sizeof text - 1 ? h->n : sizeof text - 1, text, sizeof text);
	snprintf(reason, PXD_REASON, "%s (it begins with \"%s\")", what, text);
	return PX_EPROTO;
}

int pxd_hand_get(const struct pxd_hand *h, int *type, struct px_hello *hello, char *reason)
{
	const uint8_t *body = h->buf + PX_FRAME_SIZE;
	struct px_frame f;
	size_t have;
	int rc = px_frame_get(h->buf, h->n, &f);

	if (rc == PX_ESHORT)
		return PX_ESHORT;
	if (rc < 0)
		return malformed(rc, h, "what it sent is no PACX frame", reason);
	have = h->n - PX_FRAME_SIZE;
	if (f.type == PX_F_REFUSE) {
		/* A long reason is cut: no more memory than this for a stranger. */
		if (have < f.body && h->n < PXD_HAND_MAX)
			return PX_ESHORT;
		if (have >= f.body && f.flags & PX_FF_CHECK &&
			!pxd_frame_good(h->buf, body, (size_t)f.body)) {
			snprintf(reason, PXD_REASON, "its REFUSE was damaged on the way");
			return PX_EIO;
		}
		pxd_text_clean(body, have < f.body ? have : (size_t)f.body, reason, PXD_REASON);
		*type = PX_F_REFUSE;
		return 0;
	}
	if (f.type != PX_F_HELLO) {
		snprintf(reason, PXD_REASON, "its first frame is of type %u, not HELLO", f.type);
		return PX_EPROTO;
	}
	if (have < f.body)
		return PX_ESHORT;
	/* It says which frames may be forgotten, so damage must not pass for a wish. */
	if (f.flags & PX_FF_CHECK && !pxd_frame_good(h->buf, body, (size_t)f.body)) {
		snprintf(reason, PXD_REASON, "its HELLO was damaged on the way");
		return PX_EIO;
	}
	memset(hello, 0, sizeof *hello);
	rc = px_hello_get(body, (size_t)f.body, hello);
	if (rc == PX_EVERSION) {
		snprintf(reason, PXD_REASON,
			"protocol version %u met version %u; install the same PACX on all sites",
			hello->protocol, (unsigned)PX_PROTOCOL_VERSION);
		return PX_EVERSION;
	}
	if (rc < 0) {
		snprintf(reason, PXD_REASON, "its HELLO is malformed");
		return PX_EPROTO;
	}
	*type = PX_F_HELLO;
	return 0;
}

size_t pxd_hand_want(const struct pxd_hand *h)
{
	struct px_frame f;
	size_t whole = PX_FRAME_SIZE;

	if (h->n >= PX_FRAME_SIZE && px_frame_get(h->buf, h->n, &f) > 0)
		whole += f.body < PX_HELLO_MAX ? (size_t)f.body : PX_HELLO_MAX;
	return whole > h->n ? whole - h->n : 1;
}

int pxd_hand_judge(struct pxd_node *d, struct pxd_conn *c, const struct px_preamble *p,
	const struct px_hello *hello, char *why, size_t cap)
{
	int peer = p->from == d->self ? p->to : p->from, rc = px_hello_check(&d->hello, hello, why, cap);
	int gateway = p->from == d->self ? p->to_gateway : p->from_gateway;
	const struct pxd_site *s = &d->hosts->sites[peer];

	if (rc < 0)
		return rc;
	if (hello->site != peer || strcmp(hello->name, s->name) != 0) {
		snprintf(why, cap,
			"expected site %s, found site %s; use the same hostfile on all sites, "
			"with one port for each",
			s->name, hello->name);
		return PX_ESITE;
	}
	if (c->tls && pxd_tls_peer(c->tls) != peer) {
		snprintf(why, cap, "it proved to be site %d in the TLS handshake, but says it is site %s",
			pxd_tls_peer(c->tls), hello->name);
		return PX_ESITE;
	}
	if (hello->nranks != (uint32_t)s->ranks) {
		snprintf(why, cap, "site %s has %u ranks, but %d in the hostfile of site %s", hello->name,
			hello->nranks, s->ranks, d->hello.name);
		return PX_ERANKS;
	}
	if (hello->gateways != s->ngateways || hello->gateway != gateway || hello->stream != p->stream) {
		snprintf(why, cap,
			"site %s speaks for gateway %u of %u and stream %u, but gateway %d of %d and stream "
			"%u were expected; use the same hostfile on all sites",
			hello->name, hello->gateway, hello->gateways, hello->stream, gateway, s->ngateways,
			p->stream);
		return PX_ESITE;
	}
	return d->peers->judge(d->owner, p, hello, why, cap);
}

static int control_put(struct pxd_conn *c, enum px_frame_type type, const uint8_t *body, size_t n)
{
	struct px_frame f = { .version = PX_PROTOCOL_VERSION, .type = (uint8_t)type, .body = n, .total = n };
	uint8_t head[PX_FRAME_SIZE];

	px_frame_put(&f, head);
	pxd_frame_check(head, body, n);
	return pxd_conn_say(c, head, sizeof head, body, n);
}

int pxd_hand_put_hello(struct pxd_node *d, struct pxd_conn *c, const struct px_preamble *p)
{
	struct px_hello h = d->hello;
	uint8_t body[PX_HELLO_MAX];
	int n;

	h.stream = p->stream;
	d->peers->greet(d->owner, p, &h);
	n = px_hello_put(&h, body, sizeof body);
	return n < 0 ? n : control_put(c, PX_F_HELLO, body, (size_t)n);
}

int pxd_hand_put_refuse(struct pxd_conn *c, const char *reason)
{
	return control_put(c, PX_F_REFUSE, (const uint8_t *)reason, strnlen(reason, PXD_REASON - 1));
}

void pxd_hand_options(struct pxd_node *d, struct pxd_conn *c, const struct px_preamble *p)
{
	const struct pxd_link_opts *o = pxd_hosts_link(d->hosts, p->from, p->to);
	static bool said;

	if (o->congestion &&
		setsockopt(c->fd, IPPROTO_TCP, TCP_CONGESTION, o->congestion,
			(socklen_t)strlen(o->congestion)) < 0 &&
		!said) {
		said = true;
		px_log(PX_LOG_WARN,
			"congestion control %s is not to be had here (%s): the system's own is used",
			o->congestion, strerror(errno));
	}
	if ((o->emulate_latency_us > 0 || o->emulate_rate > 0) &&
		pxd_conn_emulate(c, o->emulate_latency_us, o->emulate_rate) < 0)
		px_log(PX_LOG_WARN, "no memory to emulate a wide area");
}
