/* learn.h: what each number of a segment is to be expected to be, learnt from the numbers before it while the segment is gone through.
 *
 * Pure: memory in, memory out; usable from any thread. The reader learns the same from what it has decoded, so no weights are sent. For
 * messages whose parts behave unlike each other, as the faces of a field through which fronts run: there no few weights
 * (weigh.h) are good for all. Hundreds of times as slow as those, so for slow wires only (PXD_SLOW). PROTOCOL.md ("Learning") is
 * normative.
 */
#ifndef PXD_LEARN_H
#define PXD_LEARN_H

#include "predict.h"

/* Plain bytes/s that a wire takes with what is learnt, up to which learning is faster: one core does 9e6 one way, and where an end has no more
 * than one for both ways, what comes sooner without learning has arrived before. (Measured, 10 Mbit/s, 2 cores for both ends: a solver near
 * convergence, 4.5 times smaller with it and 4.0 without, takes 11.5 s with it and 9.6 s without.) */
#define PXD_SLOW 3e6

/* pxd_learn_residual: p->how has LEARNT. Into out[n]: what of in[n], as numbers of `word` bytes, was not expected, folded; bytes behind
 * the last whole number are copied. out must not overlap in. ref: p->nrefs segments of n bytes. 0, PX_ENOMEM, or PX_EPROTO: p->row is
 * not less than the numbers that there are. */
int pxd_learn_residual(const struct pxd_predictor *p, unsigned word, const uint8_t *in,
	const uint8_t *const *ref, size_t n, uint8_t *out);
/* pxd_learn_restore: the inverse, in place. */
int pxd_learn_restore(
	const struct pxd_predictor *p, unsigned word, uint8_t *data, const uint8_t *const *ref, size_t n);

/* pxd_foresee, pxd_foreseen: the two of any predictor: of learn.h where p learns, else of predict.h. 0 or PX_E..., as above. */
int pxd_foresee(const struct pxd_predictor *p, unsigned word, const uint8_t *in, const uint8_t *const *ref,
	size_t n, uint8_t *out);
int pxd_foreseen(
	const struct pxd_predictor *p, unsigned word, uint8_t *data, const uint8_t *const *ref, size_t n);

#endif
