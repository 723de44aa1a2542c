/* probing.c: see probing.h. */
#include "probing.h"

#include <string.h>

#include "endian.h"
#include "err.h"

static const uint8_t magic[4] = { 'P', 'X', 'P', 'B' };
static const char busy[] = "a job runs here, which a test of the rate would disturb";

void px_probing_put(const struct px_probing *p, uint8_t out[PX_PROBING_SIZE])
{
	memset(out, 0, PX_PROBING_SIZE);
	memcpy(out, magic, sizeof magic);
	out[4] = p->op;
	out[5] = p->answer;
	px_put64(out + 8, p->n);
}

/* payload_max: of a request or an answer; answer: what it must be at most. */
static uint64_t payload_max(const struct px_probing *p)
{
	switch (p->op) {
	case PX_PROBING_WHO:
		return p->answer ? PX_PROBING_ID : 0;
	case PX_PROBING_ECHO:
		return PX_PROBING_ECHO_MAX;
	case PX_PROBING_SINK:
		return p->answer ? 0 : PX_PROBING_SINK_MAX;
	default:
		return PX_PROBING_WHY_MAX;
	}
}

int px_probing_get(const uint8_t in[PX_PROBING_SIZE], struct px_probing *p)
{
	struct px_probing g = { in[4], in[5], px_get64(in + 8) };

	if (memcmp(in, magic, sizeof magic) != 0 || g.op < PX_PROBING_WHO || g.op > PX_PROBING_REFUSED ||
		g.answer > 1 || in[6] || in[7] || (g.op == PX_PROBING_REFUSED && !g.answer) ||
		g.n > payload_max(&g) || (g.op == PX_PROBING_WHO && g.n != payload_max(&g)))
		return PX_EPROTO;
	*p = g;
	return 0;
}

/* text_put: padded with zeros; out is zero already. */
static void text_put(uint8_t *out, const char *text, size_t max)
{
	memcpy(out, text, strnlen(text, max - 1));
}

void px_probing_put_id(const struct px_probing_id *id, uint8_t out[PX_PROBING_ID])
{
	memset(out, 0, PX_PROBING_ID);
	px_put16(out, id->protocol);
	px_put16(out + 2, id->site);
	px_put16(out + 4, id->nsites);
	px_put16(out + 6, id->gateway);
	px_put32(out + 8, id->flags);
	px_put64(out + 16, id->clock_ns);
	text_put(out + 24, id->version, sizeof id->version);
	text_put(out + 64, id->name, sizeof id->name);
	text_put(out + 160, id->job, sizeof id->job);
	px_repr_put(&id->repr, out + 256);
}

/* text_get: a text for people in a field of `field` bytes; 0 or PX_EPROTO. Control characters are replaced: it goes to terminals. */
static int text_get(const uint8_t *in, size_t field, char *text, size_t max)
{
	size_t n = strnlen((const char *)in, field);

	if (n >= max)
		return PX_EPROTO;
	for (size_t i = n; i < field; i++)
		if (in[i])
			return PX_EPROTO;
	for (size_t i = 0; i < n; i++)
		text[i] = (char)(in[i] < 0x20 || in[i] == 0x7f ? '?' : in[i]);
	text[n] = '\0';
	return 0;
}

int px_probing_get_id(const uint8_t in[PX_PROBING_ID], struct px_probing_id *id)
{
	struct px_probing_id g = { 0 };

	g.protocol = px_get16(in);
	g.site = px_get16(in + 2);
	g.nsites = px_get16(in + 4);
	g.gateway = px_get16(in + 6);
	g.flags = px_get32(in + 8);
	g.clock_ns = px_get64(in + 16);
	if (px_get32(in + 12) != 0 || text_get(in + 24, 40, g.version, sizeof g.version) < 0 ||
		text_get(in + 64, 96, g.name, sizeof g.name) < 0 ||
		text_get(in + 160, 96, g.job, sizeof g.job) < 0 || px_repr_get(in + 256, &g.repr) < 0)
		return PX_EPROTO;
	*id = g;
	return 0;
}

static void answer_put(uint8_t *out, size_t *nout, uint8_t op, uint64_t n)
{
	px_probing_put(&(struct px_probing){ op, 1, n }, out + *nout);
	*nout += PX_PROBING_SIZE;
}

/* request_end: all of a request has arrived. */
static void request_end(struct px_probing_side *s, uint8_t *out, size_t *nout)
{
	s->nhead = 0;
	if (s->now.op == PX_PROBING_WHO) {
		answer_put(out, nout, PX_PROBING_WHO, PX_PROBING_ID);
		px_probing_put_id(&s->id, out + *nout);
		*nout += PX_PROBING_ID;
	} else if (s->now.op == PX_PROBING_SINK && s->id.flags & PX_PROBING_JOB) {
		answer_put(out, nout, PX_PROBING_REFUSED, sizeof busy - 1);
		memcpy(out + *nout, busy, sizeof busy - 1);
		*nout += sizeof busy - 1;
	} else if (s->now.op == PX_PROBING_SINK) {
		answer_put(out, nout, PX_PROBING_SINK, 0);
	}
}

int px_probing_feed(
	struct px_probing_side *s, const uint8_t *in, size_t n, uint8_t out[PX_PROBING_OUT], size_t *nout)
{
	*nout = 0;
	if (n > PX_PROBING_STEP)
		return PX_EINVAL;
	for (size_t i = 0; i < n;) {
		size_t k;

		if (s->nhead < PX_PROBING_SIZE) {
			s->head[s->nhead++] = in[i++];
			if (s->nhead < PX_PROBING_SIZE)
				continue;
			if (px_probing_get(s->head, &s->now) < 0 || s->now.answer)
				return PX_EPROTO;
			s->left = s->now.n;
			if (s->now.op == PX_PROBING_ECHO)
				answer_put(out, nout, PX_PROBING_ECHO, s->now.n);
			if (s->left == 0)
				request_end(s, out, nout);
			continue;
		}
		k = n - i < s->left ? n - i : (size_t)s->left;
		if (s->now.op == PX_PROBING_ECHO) {
			memcpy(out + *nout, in + i, k);
			*nout += k;
		}
		i += k;
		s->left -= k;
		if (s->left == 0)
			request_end(s, out, nout);
	}
	return 0;
}
