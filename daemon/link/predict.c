/* predict.c: see predict.h.
 *
 * Design. One pass takes the expected value away (time), up to eight more take the neighbour away (space: the differences of the
 * differences are what a straight line, then a parabola, leaves over), the last one folds the sign into the lowest bit, so
 * that small numbers of either sign have zero bytes at the top, which shuffling then puts together. Each pass has its inverse. The
 * loops are inlined with the size of a number as a constant.
 *
 * Weights are floating-point arithmetic whose every step both ends must round alike: see ieee.h.
 */
#include "ieee.h"

#include "predict.h"

#include <math.h>
#include <string.h>

#include "endian.h"
#include "err.h"
#include "number.h"

/* Have references a number of their own, and not that of time? */
static bool counted(const struct pxd_predictor *p)
{
	return p->how & PXD_PREDICT_WEIGHTED;
}

size_t pxd_predict_head_size(const struct pxd_predictor *p)
{
	int more = p->nrefs > PXD_PREDICT_SPACED ? p->nrefs - PXD_PREDICT_SPACED : 0;

	if (pxd_predict_learnt(p))
		return PXD_PREDICT_HEAD + 4 * (size_t)(more + 1);
	return PXD_PREDICT_HEAD + 4 * (size_t)(counted(p) ? more + p->nrefs - 1 : 0);
}

size_t pxd_predict_head_put(const struct pxd_predictor *p, uint8_t *out)
{
	uint8_t *at = out + 8;

	out[0] = p->how;
	out[1] = p->stride;
	out[2] = counted(p) ? (uint8_t)p->nrefs : 0;
	out[3] = pxd_predict_learnt(p) ? p->keep : p->more;
	px_put32(out + 4, p->sum);
	for (int i = 0; i < (p->nrefs > PXD_PREDICT_SPACED ? p->nrefs : PXD_PREDICT_SPACED); i++, at += 4)
		px_put32(at, p->ref[i]);
	for (int i = 0; pxd_predict_weighted(p) && i < p->nrefs - 1; i++, at += 4) {
		uint32_t bits;

		memcpy(&bits, &p->weight[i], 4);
		px_put32(at, bits);
	}
	if (pxd_predict_learnt(p)) {
		px_put32(at, p->row);
		at += 4;
	}
	return (size_t)(at - out);
}

/* What follows the first PXD_PREDICT_HEAD bytes of a head with weights, or of one whose weights are learnt. */
static int rest_get(const uint8_t *in, size_t n, struct pxd_predictor *q)
{
	const uint8_t *at = in + PXD_PREDICT_HEAD;
	int most = pxd_predict_learnt(q) ? PXD_PREDICT_LESSON : PXD_PREDICT_REFS;

	if (q->nrefs < 2 || q->nrefs > most || n < pxd_predict_head_size(q))
		return PX_EPROTO;
	for (int i = PXD_PREDICT_SPACED; i < q->nrefs; i++, at += 4)
		q->ref[i] = px_get32(at);
	if (pxd_predict_learnt(q)) {
		q->row = px_get32(at);
		return q->row == 0 || q->row > 4u * q->stride ? PX_OK : PX_EPROTO;
	}
	for (int i = 0; i < q->nrefs - 1; i++, at += 4) {
		uint32_t bits = px_get32(at);

		memcpy(&q->weight[i], &bits, 4);
		if (!isfinite(q->weight[i]))
			return PX_EPROTO;
	}
	return PX_OK;
}

/* Do the bits of `how`, the stride and byte 3, which is `more` or `keep`, go together? */
static bool sensible(const struct pxd_predictor *q)
{
	bool space = q->how & PXD_PREDICT_SPACE;
	int rest = q->how & ~PXD_PREDICT_BIG;

	if (pxd_predict_learnt(q))
		return rest == (PXD_PREDICT_LEARNT | PXD_PREDICT_FLOAT | 1) && q->stride != 0 && q->keep != 0;
	if (q->how & PXD_PREDICT_XOR && rest != (PXD_PREDICT_XOR | 1))
		return false;
	if (counted(q) && (rest & ~PXD_PREDICT_SPACE) != (PXD_PREDICT_WEIGHTED | PXD_PREDICT_FLOAT | 1))
		return false;
	if (q->more > ((q->how & PXD_PREDICT_SPACE) == PXD_PREDICT_SPACE ? PXD_PREDICT_MORE : 0))
		return false;
	return (space || pxd_predict_time(q) != 0) && space == (q->stride != 0);
}

int pxd_predict_head_get(const uint8_t *in, size_t n, struct pxd_predictor *p)
{
	struct pxd_predictor q = { 0 };

	if (n < PXD_PREDICT_HEAD)
		return PX_EPROTO;
	q.how = in[0];
	q.stride = in[1];
	*(pxd_predict_learnt(&q) ? &q.keep : &q.more) = in[3];
	q.sum = px_get32(in + 4);
	q.nrefs = counted(&q) ? in[2] : pxd_predict_time(&q);
	for (int i = 0; i < PXD_PREDICT_SPACED; i++)
		q.ref[i] = px_get32(in + 8 + 4 * i);
	if (!sensible(&q) || (in[2] != 0 && !counted(&q)))
		return PX_EPROTO;
	if (counted(&q) && rest_get(in, n, &q) < 0)
		return PX_EPROTO;
	for (int i = q.nrefs; i < PXD_PREDICT_SPACED; i++)
		if (q.ref[i] != 0)
			return PX_EPROTO;
	*p = q;
	return (int)pxd_predict_head_size(&q);
}

double pxd_predict_value(const uint8_t *at, unsigned word, bool big)
{
	return pxd_value(at, word, big != HOST_BIG);
}

/* The image of the weighted sum; of the first reference if that is not finite. */
INLINE uint64_t weighted(
	const struct pxd_predictor *p, const uint8_t *const *ref, size_t at, unsigned word, bool swap)
{
	double first = pxd_value(ref[0] + at, word, swap), sum = first;

	for (int k = 1; k < p->nrefs; k++) {
		double far = pxd_value(ref[k] + at, word, swap) - first;

		far = far * (double)p->weight[k - 1];
		sum = sum + far;
	}
	return pxd_image_of(sum, ref[0] + at, word, swap);
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
		return pxd_image(ref[0] + at, word, swap, order);
	if (time == 2)
		return 2 * pxd_image(ref[0] + at, word, swap, order) -
		       pxd_image(ref[1] + at, word, swap, order);
	return 3 * pxd_image(ref[0] + at, word, swap, order) - 3 * pxd_image(ref[1] + at, word, swap, order) +
	       pxd_image(ref[2] + at, word, swap, order);
}

INLINE void apply(const struct pxd_predictor *p, unsigned word, const uint8_t *in, const uint8_t *const *ref,
	size_t n, uint8_t *out, bool swap, bool order)
{
	size_t end = n / word * word, step = (size_t)p->stride * word;

	for (size_t i = 0; i < end; i += word)
		pxd_store(out + i,
			pxd_image(in + i, word, swap, order) - expected(p, ref, i, word, swap, order), word,
			HOST_BIG);
	for (int k = pxd_predict_space(p); k > 0; k--)
		for (size_t i = end; i > step && i > 0; i -= word)
			pxd_store(out + i - word,
				pxd_load(out + i - word, word, HOST_BIG) -
					pxd_load(out + i - word - step, word, HOST_BIG),
				word, HOST_BIG);
	for (size_t i = 0; i < end; i += word)
		pxd_store(out + i, pxd_fold(pxd_load(out + i, word, HOST_BIG), word), word, HOST_BIG);
}

INLINE void undo(const struct pxd_predictor *p, unsigned word, uint8_t *data, const uint8_t *const *ref,
	size_t n, bool swap, bool order)
{
	size_t end = n / word * word, step = (size_t)p->stride * word;

	for (size_t i = 0; i < end; i += word)
		pxd_store(data + i, pxd_unfold(pxd_load(data + i, word, HOST_BIG), word), word, HOST_BIG);
	for (int k = pxd_predict_space(p); k > 0; k--)
		for (size_t i = step; i < end; i += word)
			pxd_store(data + i,
				pxd_load(data + i, word, HOST_BIG) +
					pxd_load(data + i - step, word, HOST_BIG),
				word, HOST_BIG);
	for (size_t i = 0; i < end; i += word) {
		uint64_t v = pxd_load(data + i, word, HOST_BIG) + expected(p, ref, i, word, swap, order);

		pxd_store(
			data + i, order ? pxd_from_order(word == 4 ? (uint32_t)v : v, word) : v, word, swap);
	}
}

/* With the value before; its own inverse, but for the byte order of what goes in and comes out. */
static void exclusive(unsigned word, const uint8_t *in, bool in_swap, const uint8_t *ref, bool ref_swap,
	size_t n, uint8_t *out, bool out_swap)
{
	for (size_t i = 0; i < n / word * word; i += word)
		pxd_store(out + i, pxd_load(in + i, word, in_swap) ^ pxd_load(ref + i, word, ref_swap), word,
			out_swap);
}

void pxd_predict_apply(const struct pxd_predictor *p, unsigned word, const uint8_t *in,
	const uint8_t *const *ref, size_t n, uint8_t *out)
{
	bool swap = ((p->how & PXD_PREDICT_BIG) != 0) != HOST_BIG, order = p->how & PXD_PREDICT_FLOAT;

	if (pxd_predict_weighted(p))
		pxd_ieee();
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

	if (pxd_predict_weighted(p))
		pxd_ieee();
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
		bits += 64u - (unsigned)__builtin_clzll(pxd_load(out + i * word, word, HOST_BIG) | 1);
	return bits;
}

enum pxd_predict_kind pxd_predict_kind(const struct pxd_predictor *p)
{
	static const enum pxd_predict_kind kinds[] = { PXD_KIND_NEIGHBOUR, PXD_KIND_PREVIOUS, PXD_KIND_LINEAR,
		PXD_KIND_PARABOLA };

	return pxd_predict_learnt(p)           ? PXD_KIND_LEARNT
	       : p->how & PXD_PREDICT_WEIGHTED ? PXD_KIND_WEIGHTED
	       : p->how & PXD_PREDICT_XOR      ? PXD_KIND_XOR
					       : kinds[pxd_predict_time(p)];
}

const char *pxd_predict_kind_name(enum pxd_predict_kind k)
{
	static const char *const names[PXD_PREDICT_KINDS] = { "neighbour", "previous", "linear", "parabola",
		"xor", "weighted", "learnt" };

	return names[k];
}

const char *pxd_predict_name(const struct pxd_predictor *p)
{
	return p->how ? pxd_predict_kind_name(pxd_predict_kind(p)) : "none";
}
