/* predict.c: see predict.h.
 *
 * Design. One pass takes the expected value away (time), up to eight more take the neighbour away (space: the differences of the
 * differences are what a straight line, then a parabola, leaves over), the last one folds the sign into the lowest bit, so
 * that small numbers of either sign have zero bytes at the top, which shuffling then puts together. Each pass has its inverse. The
 * loops are inlined with the size of a number as a constant.
 *
 * Weights are floating-point arithmetic whose every step both ends must round alike: doubles as IEEE 754 has them, one operation at a
 * time. So no multiplication and addition may become one, and no intermediate result may have more bits (the x87 of old PCs).
 */
#if defined(__i386__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("sse2", "fpmath=sse")
#endif
#include "predict.h"

#include <math.h>
#include <string.h>

#include "endian.h"
#include "err.h"

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HOST_BIG true
#else
#define HOST_BIG false
#endif

#define INLINE static inline __attribute__((always_inline))

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* gcc does not know it, and needs it not with -std=c11 */
#endif

size_t pxd_predict_head_size(const struct pxd_predictor *p)
{
	int more = p->nrefs > PXD_PREDICT_SPACED ? p->nrefs - PXD_PREDICT_SPACED : 0;

	return PXD_PREDICT_HEAD + 4 * (size_t)(p->how & PXD_PREDICT_WEIGHTED ? more + p->nrefs - 1 : 0);
}

size_t pxd_predict_head_put(const struct pxd_predictor *p, uint8_t *out)
{
	bool weighted = p->how & PXD_PREDICT_WEIGHTED;
	uint8_t *at = out + 8;

	out[0] = p->how;
	out[1] = p->stride;
	out[2] = weighted ? (uint8_t)p->nrefs : 0;
	out[3] = p->more;
	px_put32(out + 4, p->sum);
	for (int i = 0; i < (p->nrefs > PXD_PREDICT_SPACED ? p->nrefs : PXD_PREDICT_SPACED); i++, at += 4)
		px_put32(at, p->ref[i]);
	for (int i = 0; weighted && i < p->nrefs - 1; i++, at += 4) {
		uint32_t bits;

		memcpy(&bits, &p->weight[i], 4);
		px_put32(at, bits);
	}
	return (size_t)(at - out);
}

/* What follows the first PXD_PREDICT_HEAD bytes of a head with weights. */
static int weights_get(const uint8_t *in, size_t n, struct pxd_predictor *q)
{
	const uint8_t *at = in + PXD_PREDICT_HEAD;

	if ((q->how & ~(PXD_PREDICT_BIG | PXD_PREDICT_SPACE)) !=
		(PXD_PREDICT_WEIGHTED | PXD_PREDICT_FLOAT | 1))
		return PX_EPROTO;
	q->nrefs = in[2];
	if (q->nrefs < 2 || q->nrefs > PXD_PREDICT_REFS || n < pxd_predict_head_size(q))
		return PX_EPROTO;
	for (int i = PXD_PREDICT_SPACED; i < q->nrefs; i++, at += 4)
		q->ref[i] = px_get32(at);
	for (int i = 0; i < q->nrefs - 1; i++, at += 4) {
		uint32_t bits = px_get32(at);

		memcpy(&q->weight[i], &bits, 4);
		if (!isfinite(q->weight[i]))
			return PX_EPROTO;
	}
	return PX_OK;
}

int pxd_predict_head_get(const uint8_t *in, size_t n, struct pxd_predictor *p)
{
	struct pxd_predictor q = { 0 };

	if (n < PXD_PREDICT_HEAD)
		return PX_EPROTO;
	q.how = in[0];
	q.stride = in[1];
	q.more = in[3];
	q.sum = px_get32(in + 4);
	q.nrefs = pxd_predict_time(&q);
	for (int i = 0; i < PXD_PREDICT_SPACED; i++)
		q.ref[i] = px_get32(in + 8 + 4 * i);
	if (in[2] != 0 && !(q.how & PXD_PREDICT_WEIGHTED))
		return PX_EPROTO;
	if (q.more > ((q.how & PXD_PREDICT_SPACE) == PXD_PREDICT_SPACE ? PXD_PREDICT_MORE : 0))
		return PX_EPROTO;
	if (q.how & PXD_PREDICT_WEIGHTED && weights_get(in, n, &q) < 0)
		return PX_EPROTO;
	if (pxd_predict_time(&q) == 0 && pxd_predict_space(&q) == 0)
		return PX_EPROTO;
	if ((pxd_predict_space(&q) != 0) != (q.stride != 0))
		return PX_EPROTO;
	if (q.how & PXD_PREDICT_XOR && (q.how & ~PXD_PREDICT_BIG) != (PXD_PREDICT_XOR | 1))
		return PX_EPROTO;
	for (int i = q.nrefs; i < PXD_PREDICT_SPACED; i++)
		if (q.ref[i] != 0)
			return PX_EPROTO;
	*p = q;
	return (int)pxd_predict_head_size(&q);
}

INLINE uint64_t load(const uint8_t *at, unsigned word, bool swap)
{
	uint32_t small;
	uint64_t v;

	if (word == 4) {
		memcpy(&small, at, 4);
		return swap ? __builtin_bswap32(small) : small;
	}
	memcpy(&v, at, 8);
	return swap ? __builtin_bswap64(v) : v;
}

INLINE void store(uint8_t *at, uint64_t v, unsigned word, bool swap)
{
	uint32_t small = (uint32_t)v;

	if (word == 4) {
		small = swap ? __builtin_bswap32(small) : small;
		memcpy(at, &small, 4);
	} else {
		v = swap ? __builtin_bswap64(v) : v;
		memcpy(at, &v, 8);
	}
}

/* Whole numbers in the order of the floating-point numbers: -0 is next to +0, NaNs are at the ends. */
INLINE uint64_t to_order(uint64_t v, unsigned word)
{
	uint64_t sign = word == 4 ? 1ull << 31 : 1ull << 63;

	return v & sign ? ~v : v | sign;
}

INLINE uint64_t from_order(uint64_t v, unsigned word)
{
	uint64_t sign = word == 4 ? 1ull << 31 : 1ull << 63;

	return v & sign ? v ^ sign : ~v;
}

/* 0, -1, 1, -2, 2 ... -> 0, 1, 2, 3, 4 ... */
INLINE uint64_t fold(uint64_t v, unsigned word)
{
	return word == 4 ? (uint32_t)((uint32_t)v << 1 ^ (uint32_t)((int32_t)(uint32_t)v >> 31))
			 : v << 1 ^ (uint64_t)((int64_t)v >> 63);
}

INLINE uint64_t unfold(uint64_t v, unsigned word)
{
	return word == 4 ? (uint32_t)v >> 1 ^ (0u - ((uint32_t)v & 1)) : v >> 1 ^ (0ull - (v & 1));
}

INLINE uint64_t image(const uint8_t *at, unsigned word, bool swap, bool order)
{
	uint64_t v = load(at, word, swap);

	return order ? to_order(v, word) : v;
}

INLINE double value(const uint8_t *at, unsigned word, bool swap)
{
	uint64_t v = load(at, word, swap);
	uint32_t small = (uint32_t)v;
	double d;
	float f;

	if (word == 4) {
		memcpy(&f, &small, 4);
		return f;
	}
	memcpy(&d, &v, 8);
	return d;
}

double pxd_predict_value(const uint8_t *at, unsigned word, bool big)
{
	return value(at, word, big != HOST_BIG);
}

/* The image of the weighted sum; of the first reference if that is not finite. */
INLINE uint64_t weighted(
	const struct pxd_predictor *p, const uint8_t *const *ref, size_t at, unsigned word, bool swap)
{
	double first = value(ref[0] + at, word, swap), sum = first;
	uint64_t bits;
	uint32_t small;
	float f;

	for (int k = 1; k < p->nrefs; k++) {
		double far = value(ref[k] + at, word, swap) - first;

		far = far * (double)p->weight[k - 1];
		sum = sum + far;
	}
	if (word == 4) {
		f = (float)sum;
		memcpy(&small, &f, 4);
		bits = small;
		return isfinite(f) ? to_order(bits, 4) : image(ref[0] + at, 4, swap, true);
	}
	memcpy(&bits, &sum, 8);
	return isfinite(sum) ? to_order(bits, 8) : image(ref[0] + at, 8, swap, true);
}

INLINE uint64_t expected(const struct pxd_predictor *p, const uint8_t *const *ref, size_t at, unsigned word,
	bool swap, bool order)
{
	int time = pxd_predict_time(p);

	if (time == 0)
		return 0;
	if (p->how & PXD_PREDICT_WEIGHTED)
		return weighted(p, ref, at, word, swap);
	if (time == 1)
		return image(ref[0] + at, word, swap, order);
	if (time == 2)
		return 2 * image(ref[0] + at, word, swap, order) - image(ref[1] + at, word, swap, order);
	return 3 * image(ref[0] + at, word, swap, order) - 3 * image(ref[1] + at, word, swap, order) +
	       image(ref[2] + at, word, swap, order);
}

INLINE void apply(const struct pxd_predictor *p, unsigned word, const uint8_t *in, const uint8_t *const *ref,
	size_t n, uint8_t *out, bool swap, bool order)
{
	size_t end = n / word * word, step = (size_t)p->stride * word;

	for (size_t i = 0; i < end; i += word)
		store(out + i, image(in + i, word, swap, order) - expected(p, ref, i, word, swap, order),
			word, HOST_BIG);
	for (int k = pxd_predict_space(p); k > 0; k--)
		for (size_t i = end; i > step && i > 0; i -= word)
			store(out + i - word,
				load(out + i - word, word, HOST_BIG) -
					load(out + i - word - step, word, HOST_BIG),
				word, HOST_BIG);
	for (size_t i = 0; i < end; i += word)
		store(out + i, fold(load(out + i, word, HOST_BIG), word), word, HOST_BIG);
}

INLINE void undo(const struct pxd_predictor *p, unsigned word, uint8_t *data, const uint8_t *const *ref,
	size_t n, bool swap, bool order)
{
	size_t end = n / word * word, step = (size_t)p->stride * word;

	for (size_t i = 0; i < end; i += word)
		store(data + i, unfold(load(data + i, word, HOST_BIG), word), word, HOST_BIG);
	for (int k = pxd_predict_space(p); k > 0; k--)
		for (size_t i = step; i < end; i += word)
			store(data + i,
				load(data + i, word, HOST_BIG) + load(data + i - step, word, HOST_BIG), word,
				HOST_BIG);
	for (size_t i = 0; i < end; i += word) {
		uint64_t v = load(data + i, word, HOST_BIG) + expected(p, ref, i, word, swap, order);

		store(data + i, order ? from_order(word == 4 ? (uint32_t)v : v, word) : v, word, swap);
	}
}

/* With the value before; its own inverse, but for the byte order of what goes in and comes out. */
static void exclusive(unsigned word, const uint8_t *in, bool in_swap, const uint8_t *ref, bool ref_swap,
	size_t n, uint8_t *out, bool out_swap)
{
	for (size_t i = 0; i < n / word * word; i += word)
		store(out + i, load(in + i, word, in_swap) ^ load(ref + i, word, ref_swap), word, out_swap);
}

void pxd_predict_apply(const struct pxd_predictor *p, unsigned word, const uint8_t *in,
	const uint8_t *const *ref, size_t n, uint8_t *out)
{
	bool swap = ((p->how & PXD_PREDICT_BIG) != 0) != HOST_BIG, order = p->how & PXD_PREDICT_FLOAT;

	memcpy(out + n / word * word, in + n / word * word, n % word);
	if (p->how & PXD_PREDICT_XOR)
		exclusive(word, in, swap, ref[0], swap, n, out, HOST_BIG);
	else if (word == 8 && !swap && order)
		apply(p, 8, in, ref, n, out, false, true);
	else if (word == 8)
		apply(p, 8, in, ref, n, out, swap, order);
	else
		apply(p, 4, in, ref, n, out, swap, order);
}

void pxd_predict_undo(
	const struct pxd_predictor *p, unsigned word, uint8_t *data, const uint8_t *const *ref, size_t n)
{
	bool swap = ((p->how & PXD_PREDICT_BIG) != 0) != HOST_BIG, order = p->how & PXD_PREDICT_FLOAT;

	if (p->how & PXD_PREDICT_XOR)
		exclusive(word, data, HOST_BIG, ref[0], swap, n, data, swap);
	else if (word == 8 && !swap && order)
		undo(p, 8, data, ref, n, false, true);
	else if (word == 8)
		undo(p, 8, data, ref, n, swap, order);
	else
		undo(p, 4, data, ref, n, swap, order);
}

uint64_t pxd_predict_bits(unsigned word, const uint8_t *out, size_t n, size_t from)
{
	uint64_t bits = 0;

	for (size_t i = from; i < n / word; i++)
		bits += 64u - (unsigned)__builtin_clzll(load(out + i * word, word, HOST_BIG) | 1);
	return bits;
}

enum pxd_predict_kind pxd_predict_kind(const struct pxd_predictor *p)
{
	static const enum pxd_predict_kind kinds[] = { PXD_KIND_NEIGHBOUR, PXD_KIND_PREVIOUS, PXD_KIND_LINEAR,
		PXD_KIND_PARABOLA };

	return p->how & PXD_PREDICT_WEIGHTED ? PXD_KIND_WEIGHTED
	       : p->how & PXD_PREDICT_XOR    ? PXD_KIND_XOR
					     : kinds[pxd_predict_time(p)];
}

const char *pxd_predict_kind_name(enum pxd_predict_kind k)
{
	static const char *const names[PXD_PREDICT_KINDS] = { "neighbour", "previous", "linear", "parabola",
		"xor", "weighted" };

	return names[k];
}

const char *pxd_predict_name(const struct pxd_predictor *p)
{
	return p->how ? pxd_predict_kind_name(pxd_predict_kind(p)) : "none";
}
