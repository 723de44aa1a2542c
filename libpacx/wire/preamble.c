/* preamble.c: see preamble.h.
 *
 * Byte offsets: 0 "PACXLINK"  8 version (u16)  10 kind  11 flags (1 TLS, 2 reversed)  12 from  14 to  16 from_gateway
 *   18 to_gateway  20 stream  22 zero (2)  24 jobhash (16)  40 number (u64)  48 proof (16)
 */
#include "preamble.h"

#include <string.h>

#include "endian.h"
#include "err.h"

static const uint8_t magic[8] = { 'P', 'A', 'C', 'X', 'L', 'I', 'N', 'K' };

void px_preamble_put(const struct px_preamble *p, uint8_t *out)
{
	memset(out, 0, PX_PREAMBLE_SIZE);
	memcpy(out, magic, sizeof magic);
	px_put16(out + 8, 1);
	out[10] = p->kind;
	out[11] = (uint8_t)((p->tls ? 1 : 0) | (p->reversed ? 2 : 0));
	px_put16(out + 12, p->from);
	px_put16(out + 14, p->to);
	px_put16(out + 16, p->from_gateway);
	px_put16(out + 18, p->to_gateway);
	px_put16(out + 20, p->stream);
	memcpy(out + 24, p->jobhash, PX_JOBHASH_SIZE);
	px_put64(out + 40, p->number);
	memcpy(out + PX_PREAMBLE_SAID, p->proof, PX_PROOF_SIZE);
}

int px_preamble_get(const uint8_t *in, size_t len, struct px_preamble *p)
{
	static const uint8_t zero[PX_PREAMBLE_SIZE - 40];

	if (memcmp(in, magic, len < sizeof magic ? len : sizeof magic) != 0)
		return PX_EPROTO;
	if (len >= 10 && px_get16(in + 8) != 1)
		return PX_EVERSION;
	if (len < PX_PREAMBLE_SIZE)
		return PX_ESHORT;
	if ((in[10] != PX_PRE_LINK && in[10] != PX_PRE_PROBE) || in[11] > 3 || px_get16(in + 22) != 0 ||
		(!(in[11] & 1) && memcmp(in + 40, zero, sizeof zero) != 0) ||
		px_get16(in + 12) == px_get16(in + 14))
		return PX_EPROTO;
	p->kind = in[10];
	p->tls = in[11] & 1;
	p->reversed = in[11] >> 1 & 1;
	p->from = px_get16(in + 12);
	p->to = px_get16(in + 14);
	p->from_gateway = px_get16(in + 16);
	p->to_gateway = px_get16(in + 18);
	p->stream = px_get16(in + 20);
	memcpy(p->jobhash, in + 24, PX_JOBHASH_SIZE);
	p->number = px_get64(in + 40);
	memcpy(p->proof, in + PX_PREAMBLE_SAID, PX_PROOF_SIZE);
	return PX_PREAMBLE_SIZE;
}

bool px_preamble_same(const struct px_preamble *a, const struct px_preamble *b)
{
	return a->kind == b->kind && a->from == b->from && a->to == b->to &&
	       a->from_gateway == b->from_gateway && a->to_gateway == b->to_gateway &&
	       a->stream == b->stream && memcmp(a->jobhash, b->jobhash, PX_JOBHASH_SIZE) == 0;
}
