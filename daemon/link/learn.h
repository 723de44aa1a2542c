/* learn.h: what each number of a segment is to be expected to be, with weights that change along the segment and are learnt from the
 * references alone: what the newest one was to the ones before it.
 *
 * Pure: memory in, memory out; usable from any thread. The reader learns the same, so no weights are sent; and as nothing but references is
 * needed, both may learn before the segment is there (study.h). For messages whose parts behave unlike each other, as the faces of a
 * field through which fronts run: there no few weights (weigh.h) are good for all. Learning is hundreds of times as slow as those, so it is
 * for slow wires only (PXD_SLOW). PROTOCOL.md ("Learning") is normative.
 */
#ifndef PXD_LEARN_H
#define PXD_LEARN_H

#include "predict.h"
#include "residual.h"

/* Plain bytes/s that a wire takes with what is learnt, up to which learning is faster: one core makes the lessons of 24e6 a second, an end may
 * have no more than one for both ways, and others want that, too. */
#define PXD_SLOW 3e6

/* The weights for a segment, and how long in bits what they leave of each number was one message earlier. */
struct pxd_lesson;

/* pxd_lesson_make: p->how has LEARNT; ref: p->nrefs segments of n bytes, of numbers of `word` bytes. 0, PX_ENOMEM, or PX_EPROTO: p->row is not
 * less than the numbers that there are. */
int pxd_lesson_make(const struct pxd_predictor *p, unsigned word, const uint8_t *const *ref, size_t n,
	struct pxd_lesson **out);
void pxd_lesson_free(struct pxd_lesson *t); /* NULL is fine */
/* pxd_lesson_have: *t is a lesson for p, if it learns, and NULL otherwise: the one that it is, or, if that is NULL, *own, which is made (and NULL
 * if it is not) and the caller's. Errors as of pxd_lesson_make. */
int pxd_lesson_have(const struct pxd_predictor *p, unsigned word, const struct pxd_lesson **t,
	struct pxd_lesson **own, const uint8_t *const *ref, size_t n);
size_t pxd_lesson_size(unsigned word, size_t n); /* of memory, in bytes */
/* pxd_guide_of: for what p leaves; t: its lesson, if it learns, and as long as that lives. */
struct pxd_guide pxd_guide_of(const struct pxd_predictor *p, const struct pxd_lesson *t);

/* pxd_learn_residual: into out[n]: what of in[n] was not expected, folded; bytes behind the last whole number are copied. out must not overlap
 * in. t: the lesson of p, word, ref and n; NULL: it is made. Errors as of pxd_lesson_make. */
int pxd_learn_residual(const struct pxd_predictor *p, unsigned word, const struct pxd_lesson *t,
	const uint8_t *in, const uint8_t *const *ref, size_t n, uint8_t *out);
/* pxd_learn_restore: the inverse, in place. */
int pxd_learn_restore(const struct pxd_predictor *p, unsigned word, const struct pxd_lesson *t, uint8_t *data,
	const uint8_t *const *ref, size_t n);

/* pxd_foresee, pxd_foreseen: the two of any predictor: of learn.h where p learns, else of predict.h (and t is not looked at). 0 or PX_E..., as
 * above. */
int pxd_foresee(const struct pxd_predictor *p, unsigned word, const struct pxd_lesson *t, const uint8_t *in,
	const uint8_t *const *ref, size_t n, uint8_t *out);
int pxd_foreseen(const struct pxd_predictor *p, unsigned word, const struct pxd_lesson *t, uint8_t *data,
	const uint8_t *const *ref, size_t n);

#endif
