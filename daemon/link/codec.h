/* codec.h: payload segments made smaller and back: zlib, lz4, zstd, each with or without byte shuffling.
 *
 * Pure: memory in, memory out; no sockets, no MPI, no libuv, usable from any thread (one pxd_codec per thread). The number
 * in the frame header's `codec`: PXD_CODEC_... in the low 4 bits, PXD_CODEC_SHUFFLE; `elem` is the element size to shuffle by.
 */
#ifndef PXD_CODEC_H
#define PXD_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PXD_CODEC_NONE = 0,
	PXD_CODEC_ZLIB = 1,
	PXD_CODEC_LZ4 = 2,
	PXD_CODEC_ZSTD = 3,
	PXD_CODEC_KINDS = 4,
	PXD_CODEC_SHUFFLE = 0x80
};

struct pxd_codec; /* contexts and scratch memory, reused */

struct pxd_codec *pxd_codec_new(void);
void pxd_codec_free(struct pxd_codec *c);
/* pxd_codec_pack: n <= PX_SEG_MAX bytes of in into out[cap]. Encoded length < n, or 0: not smaller than that (send it plain).
 * level 0 = the codec's default; elem as in the header (shuffles by 2, 4, 8, 16 only when `codec` says so). */
size_t pxd_codec_pack(struct pxd_codec *c, int codec, int level, unsigned elem, const uint8_t *in, size_t n,
	uint8_t *out, size_t cap);
/* pxd_codec_unpack: in[0..n) must give exactly want <= PX_SEG_MAX bytes, and be shorter than that unless codec is none.
 * 0, PX_EPROTO or PX_ENOMEM; never writes beyond out[want]. Malformed also: SHUFFLE with an elem that is not shuffled by. */
int pxd_codec_unpack(struct pxd_codec *c, int codec, unsigned elem, const uint8_t *in, size_t n, uint8_t *out,
	size_t want);
bool pxd_codec_shuffles(unsigned elem); /* 2, 4, 8, 16 */
/* pxd_elem_class: element sizes that are treated alike: those, and all others. */
enum { PXD_ELEM_CLASSES = 5 };
static inline unsigned pxd_elem_class(unsigned elem)
{
	return elem == 2 ? 1 : elem == 4 ? 2 : elem == 8 ? 3 : elem == 16 ? 4 : 0;
}
const char *pxd_codec_name(int codec); /* "zstd+shuffle" */

#endif
