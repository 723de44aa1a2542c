/* seg_code.h: the plain bytes of a segment into the body of its frame, and back: prediction, then compression.
 *
 * Pure: memory in, memory out; usable from any thread with a codec of its own. What codec, elem and the predictor's head mean is in
 * PROTOCOL.md, section 3.
 */
#ifndef PXD_SEG_CODE_H
#define PXD_SEG_CODE_H

#include "codec.h"
#include "predict.h"
#include "learn.h"
#include "residual.h"

#define PXD_CODEC_PREDICT 0x40 /* in the frame's `codec`, beside what codec.h and lossy.h know */

/* pxd_seg_encode: n bytes of in. p NULL: without prediction; else the body begins with its head, whose sum and weights are found here;
 * ref: its nrefs plain segments of n bytes; t: of p, if it learns (NULL: it is made); scratch[n]. Length of the body, at most cap and below n; 0: it did not shrink. */
size_t pxd_seg_encode(struct pxd_codec *c, int codec, int level, unsigned elem, struct pxd_predictor *p,
	const struct pxd_lesson *t, const uint8_t *const *ref, const uint8_t *in, size_t n, uint8_t *scratch,
	uint8_t *out, size_t cap);
/* pxd_seg_decode: the body in[0..n) of a segment whose plain length is `want`, into out[want]. codec, elem: of its frame. ref: of that
 * length, as many as pxd_predict_head_get of the body says; t: of that head (NULL: it is made). 0, PX_EPROTO, PX_ENOMEM. */
int pxd_seg_decode(struct pxd_codec *c, int codec, unsigned elem, const struct pxd_lesson *t,
	const uint8_t *const *ref, const uint8_t *in, size_t n, uint8_t *out, size_t want);

#endif
