/* predict.h: the numbers of a segment replaced by how far they are from what was to be expected, and back, lossless to the last bit.
 *
 * Pure: memory in, memory out; usable from any thread. What is expected comes from up to six earlier segments (time), from the
 * neighbours in the segment itself (space), or both. What is taken away is a whole number, modulo 2^32 or 2^64, so NaN payloads, -0
 * and denormals need no care; with weights (weigh.h) it is found by floating-point arithmetic, the same at both ends. PROTOCOL.md
 * ("Prediction") is normative; a segment that was predicted begins with a head that says how.
 */
#ifndef PXD_PREDICT_H
#define PXD_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PXD_PREDICT_HEAD     20 /* the least */
#define PXD_PREDICT_HEAD_MAX 52
#define PXD_PREDICT_SPACED   3 /* the most references at equal distances */
#define PXD_PREDICT_LESSON   4 /* learnt from */
#define PXD_PREDICT_REFS     6 /* with weights */
#define PXD_PREDICT_MORE     5 /* the most of `more` */

enum {
	PXD_PREDICT_TIME =
		3, /* references: 1 the value before, 2 the line through the last two, 3 the parabola */
	PXD_PREDICT_SPACE = 3 << 2, /* how often the neighbour is taken away; and `more` */
	PXD_PREDICT_SPACE_1 = 1 << 2,
	PXD_PREDICT_FLOAT = 1 << 4, /* the order-preserving whole number of a floating-point number */
	PXD_PREDICT_XOR = 1 << 5,   /* with the value before, instead of the difference */
	PXD_PREDICT_BIG = 1 << 6,   /* elements are big endian */
	/* The first reference, and a weighted sum of how far the others are from that; FLOAT, too, and time is 1. */
	PXD_PREDICT_WEIGHTED = 1 << 7,
	/* The same with weights that the references tell (learn.h). With FLOAT, time is 1, without space. */
	PXD_PREDICT_LEARNT = PXD_PREDICT_WEIGHTED | PXD_PREDICT_XOR,
};

struct pxd_predictor {
	uint8_t how;    /* PXD_PREDICT_..., 0 = none */
	uint8_t more;   /* how often the neighbour is taken away beyond three times */
	uint8_t stride; /* elements from one neighbour to the next; 0 without space, unless LEARNT */
	uint8_t keep;   /* LEARNT: 256ths of what was learnt that still count with the next block; not 0 */
	uint8_t period; /* the writer's own: references are every so manieth message; 0 and 1 = each */
	uint32_t
		row; /* LEARNT: elements from one row of an array to the next, more than 4 times stride; 0 = no rows */
	uint32_t sum; /* CRC32C of the plain segment */
	int nrefs;
	uint32_t ref[PXD_PREDICT_REFS];     /* message numbers; 0 where there is no reference */
	float weight[PXD_PREDICT_REFS - 1]; /* of reference 2 ..., finite; 0 without WEIGHTED */
};

static inline int pxd_predict_time(const struct pxd_predictor *p)
{
	return p->how & PXD_PREDICT_TIME;
}
static inline int pxd_predict_space(const struct pxd_predictor *p)
{
	return ((p->how & PXD_PREDICT_SPACE) >> 2) + p->more;
}
static inline bool pxd_predict_learnt(const struct pxd_predictor *p)
{
	return (p->how & PXD_PREDICT_LEARNT) == PXD_PREDICT_LEARNT;
}
static inline bool pxd_predict_weighted(const struct pxd_predictor *p)
{
	return (p->how & PXD_PREDICT_LEARNT) == PXD_PREDICT_WEIGHTED;
}
/* pxd_predict_word: size of the numbers predicted in elements of elem bytes: 4 or 8; 0 = they are not predicted. */
static inline unsigned pxd_predict_word(unsigned elem)
{
	return elem == 4 ? 4 : elem == 8 || elem == 16 ? 8 : 0;
}

/* pxd_predict_value: the floating-point number of `word` bytes at `at`. */
double pxd_predict_value(const uint8_t *at, unsigned word, bool big);

/* pxd_predict_head_put: into out[PXD_PREDICT_HEAD_MAX]; its length, which is pxd_predict_head_size. */
size_t pxd_predict_head_put(const struct pxd_predictor *p, uint8_t *out);
size_t pxd_predict_head_size(const struct pxd_predictor *p);
/* pxd_predict_head_get: from in[0..n). Its length, or PX_EPROTO: too short, or not what a writer says. */
int pxd_predict_head_get(const uint8_t *in, size_t n, struct pxd_predictor *p);

/* pxd_predict_apply: (not LEARNT) n bytes of `in` as numbers of `word` bytes (4 or 8) into out[n], which must not overlap it; bytes behind the last
 * whole number are copied. ref: earlier segments of the same length, nrefs of them. */
void pxd_predict_apply(const struct pxd_predictor *p, unsigned word, const uint8_t *in,
	const uint8_t *const *ref, size_t n, uint8_t *out);
/* pxd_predict_undo: the inverse, in place. */
void pxd_predict_undo(
	const struct pxd_predictor *p, unsigned word, uint8_t *data, const uint8_t *const *ref, size_t n);
/* pxd_predict_bits: significant bits of the numbers at out[0..n), which apply has made, from number `from` on. */
uint64_t pxd_predict_bits(unsigned word, const uint8_t *out, size_t n, size_t from);
/* pxd_predict_name: "neighbour", "previous", "linear", "parabola", "xor", "weighted", "learnt" or "none". */
const char *pxd_predict_name(const struct pxd_predictor *p);

enum pxd_predict_kind {
	PXD_KIND_NEIGHBOUR,
	PXD_KIND_PREVIOUS,
	PXD_KIND_LINEAR,
	PXD_KIND_PARABOLA,
	PXD_KIND_XOR,
	PXD_KIND_WEIGHTED,
	PXD_KIND_LEARNT,
	PXD_PREDICT_KINDS
};
enum pxd_predict_kind pxd_predict_kind(const struct pxd_predictor *p); /* how is not 0 */
const char *pxd_predict_kind_name(enum pxd_predict_kind k);

#endif
