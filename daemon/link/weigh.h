/* weigh.h: how much each of several earlier segments says about this one: weights for predict.h, fitted by a writer.
 *
 * Pure: memory in, memory out; usable from any thread. Only a writer needs it, and only for how well it predicts: what is lossless is
 * predict.h, with whatever weights.
 */
#ifndef PXD_WEIGH_H
#define PXD_WEIGH_H

#include "predict.h"

/* pxd_weigh: p->weight for p->nrefs references (p is weighted), for n bytes of numbers of `word` bytes at in; ref: n bytes each. */
void pxd_weigh(
	struct pxd_predictor *p, unsigned word, const uint8_t *in, const uint8_t *const *ref, size_t n);

#endif
