/* residual.h: what prediction leaves of a segment, coded number by number: how long each is by an adaptive model, the rest as it is.
 *
 * Pure: memory in, memory out; usable from any thread. For folded numbers as predict.h makes them: most of what they have in common is
 * their length in bits, which a codec for bytes sees only where a byte ends. What is near in the array, or was long in the message before, tells
 * it best. PROTOCOL.md, section 3, codec 5.
 */
#ifndef PXD_RESIDUAL_H
#define PXD_RESIDUAL_H

#include <stddef.h>
#include <stdint.h>

#define PXD_CODEC_RESIDUAL 5 /* in the frame's `codec`, with PXD_CODEC_PREDICT only */

/* Where the numbers' neighbours are, and how long they have been; the same for both ends. */
struct pxd_guide {
	uint32_t stride;       /* numbers to the next one of its kind, at least 1 */
	uint32_t row;          /* and from one row of an array to the next; 0 = no rows */
	const uint8_t *length; /* in bits, one for each number; NULL = not known */
};

/* pxd_residual_pack: n bytes of numbers of `word` bytes (4 or 8) into out[cap]. Encoded length < n; 0: they do not shrink. */
size_t pxd_residual_pack(
	unsigned word, const struct pxd_guide *g, const uint8_t *in, size_t n, uint8_t *out, size_t cap);
/* pxd_residual_unpack: in[0..n) must give exactly want bytes. 0 or PX_EPROTO; never reads or writes beyond. */
int pxd_residual_unpack(
	unsigned word, const struct pxd_guide *g, const uint8_t *in, size_t n, uint8_t *out, size_t want);

#endif
