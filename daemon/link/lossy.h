/* lossy.h: floating-point numbers of a segment, compressed so that each comes back within a bound: zfp. Only for what a program has asked
 * it for (pacx_set_accuracy); nothing else ever loses anything.
 *
 * Pure: memory in, memory out; usable from any thread. PROTOCOL.md, section 3, codec 4.
 */
#ifndef PXD_LOSSY_H
#define PXD_LOSSY_H

#include <stddef.h>
#include <stdint.h>

#include "hint.h"

#define PXD_CODEC_LOSSY 4

/* pxd_lossy_pack: n bytes of floats (elem = 4) or doubles (8) into out[cap], as rows and planes if h tells of them. h->bound > 0: no number
 * moves by more than that; < 0: by more than -bound times the largest magnitude in the segment. Encoded length < n; 0: it did not
 * shrink, or it holds what zfp cannot keep within the bound (NaN, infinity). Every number has been compared. */
size_t pxd_lossy_pack(
	const struct px_hint *h, unsigned elem, const uint8_t *in, size_t n, uint8_t *out, size_t cap);
/* pxd_lossy_unpack: in[0..n) must give exactly want bytes. 0, PX_EPROTO or PX_ENOMEM; never reads or writes beyond. */
int pxd_lossy_unpack(unsigned elem, const uint8_t *in, size_t n, uint8_t *out, size_t want);

#endif
