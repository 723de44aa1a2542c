/* codec.c: see codec.h.
 *
 * Design. Every encoded segment is shorter than what it stands for, so a reader knows before it decodes that n < want. The libraries'
 * own decoders never write beyond the room they are given; what they would let pass and a link must not (several frames
 * or a skippable one in zstd, bytes behind the end) is checked here. Nothing of a malformed segment is trusted, not even its length.
 * zlib: raw deflate, without its header and sum. lz4: one block. zstd: one frame with its content size, no checksum:
 * whole segments are checked by TLS or by the frame's own sum.
 *
 * Shuffling is a transposition of (elements x bytes of an element). With both sizes powers of two it is a rotation of the bits of the byte's index:
 * interleaving the two halves of a block byte by byte rotates them left by one. 16 elements of 2^e bytes are 2^e vectors
 * of 16; four such steps bring element order into plane order, e steps bring it back. Done for 64 elements at a time, so
 * that each plane gets a whole cache line: the planes of a segment lie at the same place of the cache.
 */
#include "codec.h"

#include <lz4.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "err.h"
#include "frame.h"

#define LANE       16 /* bytes of a vector */
#define LANES      4  /* vectors of one plane that are made together: a cache line */
#define ELEM_MAX   16
#define ZSTD_LEVEL 3
#define ZSTD_MOST  19 /* beyond, the memory is out of proportion for segments of 1 MiB */

struct pxd_codec {
	z_stream deflate, inflate;
	int deflate_level; /* of the stream in deflate, 0 = there is none */
	bool inflate_made;
	void *lz4;
	ZSTD_CCtx *zc;
	ZSTD_DCtx *zd;
	uint8_t *scratch; /* a shuffled segment, PX_SEG_MAX */
};

typedef uint8_t lane __attribute__((vector_size(LANE)));

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif

/* Interleave bytes 8 * half .. 8 * half + 7 of a and b. */
static inline lane zip_low(lane a, lane b)
{
#if __has_builtin(__builtin_shufflevector)
	return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#else
	lane r = { 0 };

	for (int i = 0; i < LANE / 2; i++) {
		r[2 * i] = a[i];
		r[2 * i + 1] = b[i];
	}
	return r;
#endif
}

static inline lane zip_high(lane a, lane b)
{
#if __has_builtin(__builtin_shufflevector)
	return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#else
	lane r = { 0 };

	for (int i = 0; i < LANE / 2; i++) {
		r[2 * i] = a[LANE / 2 + i];
		r[2 * i + 1] = b[LANE / 2 + i];
	}
	return r;
#endif
}

/* v[0..n) as one row of bytes, its index rotated left by `steps` bits. Inlined with constants, the loops vanish. */
static inline __attribute__((always_inline)) void rotate(lane *v, int n, int steps)
{
	for (int s = 0; s < steps; s++) {
		lane t[ELEM_MAX];

		for (int i = 0; i < n / 2; i++) {
			t[2 * i] = zip_low(v[i], v[i + n / 2]);
			t[2 * i + 1] = zip_high(v[i], v[i + n / 2]);
		}
		memcpy(v, t, (size_t)n * sizeof *v);
	}
}

/* elem, and bits = log2 elem, are constants at each place where these are inlined. */
static inline __attribute__((always_inline)) void shuffle_by(
	const uint8_t *in, size_t n, uint8_t *out, int elem)
{
	size_t count = n / (size_t)elem, size = (size_t)elem, i = 0;

	for (; i + LANE * LANES <= count; i += LANE * LANES) {
		uint8_t lines[ELEM_MAX][LANE * LANES];

		for (int g = 0; g < LANES; g++) {
			lane v[ELEM_MAX];

			memcpy(v, in + (i + (size_t)g * LANE) * size, size * LANE);
			rotate(v, elem, 4);
			for (int j = 0; j < elem; j++)
				memcpy(lines[j] + g * LANE, &v[j], LANE);
		}
		for (size_t j = 0; j < size; j++)
			memcpy(out + j * count + i, lines[j], LANE * LANES);
	}
	for (; i < count; i++)
		for (size_t j = 0; j < size; j++)
			out[j * count + i] = in[i * size + j];
	memcpy(out + count * size, in + count * size, n - count * size);
}

static inline __attribute__((always_inline)) void unshuffle_by(
	const uint8_t *in, size_t n, uint8_t *out, int elem, int bits)
{
	size_t count = n / (size_t)elem, size = (size_t)elem, i = 0;

	for (; i + LANE * LANES <= count; i += LANE * LANES) {
		uint8_t lines[ELEM_MAX][LANE * LANES];

		for (size_t j = 0; j < size; j++)
			memcpy(lines[j], in + j * count + i, LANE * LANES);
		for (int g = 0; g < LANES; g++) {
			lane v[ELEM_MAX];

			for (int j = 0; j < elem; j++)
				memcpy(&v[j], lines[j] + g * LANE, LANE);
			rotate(v, elem, bits);
			memcpy(out + (i + (size_t)g * LANE) * size, v, size * LANE);
		}
	}
	for (; i < count; i++)
		for (size_t j = 0; j < size; j++)
			out[i * size + j] = in[j * count + i];
	memcpy(out + count * size, in + count * size, n - count * size);
}

static void shuffle(const uint8_t *in, size_t n, uint8_t *out, unsigned elem)
{
	switch (elem) {
	case 2:
		shuffle_by(in, n, out, 2);
		break;
	case 4:
		shuffle_by(in, n, out, 4);
		break;
	case 8:
		shuffle_by(in, n, out, 8);
		break;
	default:
		shuffle_by(in, n, out, 16);
	}
}

static void unshuffle(const uint8_t *in, size_t n, uint8_t *out, unsigned elem)
{
	switch (elem) {
	case 2:
		unshuffle_by(in, n, out, 2, 1);
		break;
	case 4:
		unshuffle_by(in, n, out, 4, 2);
		break;
	case 8:
		unshuffle_by(in, n, out, 8, 3);
		break;
	default:
		unshuffle_by(in, n, out, 16, 4);
	}
}

struct pxd_codec *pxd_codec_new(void)
{
	return calloc(1, sizeof(struct pxd_codec)); /* contexts are made when they are needed first */
}

void pxd_codec_free(struct pxd_codec *c)
{
	if (!c)
		return;
	if (c->deflate_level)
		deflateEnd(&c->deflate);
	if (c->inflate_made)
		inflateEnd(&c->inflate);
	free(c->lz4);
	ZSTD_freeCCtx(c->zc);
	ZSTD_freeDCtx(c->zd);
	free(c->scratch);
	free(c);
}

bool pxd_codec_shuffles(unsigned elem)
{
	return elem == 2 || elem == 4 || elem == 8 || elem == 16;
}

/* The codec without its shuffle bit, -1 when the number and elem mean nothing. */
static int kind_of(int codec, unsigned elem)
{
	int kind = codec & ~PXD_CODEC_SHUFFLE;

	if (codec < 0 || kind >= PXD_CODEC_KINDS)
		return -1;
	if (codec & PXD_CODEC_SHUFFLE && (kind == PXD_CODEC_NONE || !pxd_codec_shuffles(elem)))
		return -1;
	return kind;
}

static bool scratch_ready(struct pxd_codec *c)
{
	if (!c->scratch)
		c->scratch = malloc(PX_SEG_MAX);
	return c->scratch != NULL;
}

static size_t zlib_pack(struct pxd_codec *c, int level, const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	z_stream *z = &c->deflate;

	if (level < 1)
		level = 6;
	if (level > 9)
		level = 9;
	if (c->deflate_level != level) {
		if (c->deflate_level)
			deflateEnd(z);
		c->deflate_level = 0;
		memset(z, 0, sizeof *z);
		if (deflateInit2(z, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
			return 0;
		c->deflate_level = level;
	} else if (deflateReset(z) != Z_OK) {
		return 0;
	}
	z->next_in = (z_const Bytef *)in;
	z->avail_in = (uInt)n;
	z->next_out = out;
	z->avail_out = (uInt)cap;
	return deflate(z, Z_FINISH) == Z_STREAM_END ? cap - z->avail_out : 0;
}

static int zlib_unpack(struct pxd_codec *c, const uint8_t *in, size_t n, uint8_t *out, size_t want)
{
	z_stream *z = &c->inflate;

	if (!c->inflate_made) {
		memset(z, 0, sizeof *z);
		if (inflateInit2(z, -15) != Z_OK)
			return PX_ENOMEM;
		c->inflate_made = true;
	} else if (inflateReset(z) != Z_OK) {
		return PX_ENOMEM;
	}
	z->next_in = (z_const Bytef *)in;
	z->avail_in = (uInt)n;
	z->next_out = out;
	z->avail_out = (uInt)want;
	if (inflate(z, Z_FINISH) != Z_STREAM_END || z->avail_in || z->avail_out)
		return PX_EPROTO;
	return 0;
}

static size_t lz4_pack(struct pxd_codec *c, int level, const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	int m;

	if (!c->lz4)
		c->lz4 = malloc((size_t)LZ4_sizeofState());
	if (!c->lz4)
		return 0;
	m = LZ4_compress_fast_extState(
		c->lz4, (const char *)in, (char *)out, (int)n, (int)cap, level > 1 ? level : 1);
	return m > 0 ? (size_t)m : 0;
}

static size_t zstd_pack(struct pxd_codec *c, int level, const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	size_t m;

	if (!c->zc)
		c->zc = ZSTD_createCCtx();
	if (!c->zc)
		return 0;
	if (level == 0)
		level = ZSTD_LEVEL;
	if (level > ZSTD_MOST)
		level = ZSTD_MOST;
	m = ZSTD_compressCCtx(c->zc, out, cap, in, n, level);
	return ZSTD_isError(m) ? 0 : m;
}

static int zstd_unpack(struct pxd_codec *c, const uint8_t *in, size_t n, uint8_t *out, size_t want)
{
	static const uint8_t magic[4] = { 0x28, 0xb5, 0x2f, 0xfd };

	/* The library would also take frames of older formats, skippable ones, and several in a row. */
	if (n < sizeof magic || memcmp(in, magic, sizeof magic) != 0 ||
		ZSTD_getFrameContentSize(in, n) != want || ZSTD_findFrameCompressedSize(in, n) != n)
		return PX_EPROTO;
	if (!c->zd)
		c->zd = ZSTD_createDCtx();
	if (!c->zd)
		return PX_ENOMEM;
	return ZSTD_decompressDCtx(c->zd, out, want, in, n) == want ? 0 : PX_EPROTO;
}

size_t pxd_codec_pack(struct pxd_codec *c, int codec, int level, unsigned elem, const uint8_t *in, size_t n,
	uint8_t *out, size_t cap)
{
	int kind = kind_of(codec, elem);

	if (kind <= PXD_CODEC_NONE || n < 2 || n > PX_SEG_MAX)
		return 0;
	if (cap > n - 1)
		cap = n - 1;
	if (cap == 0)
		return 0;
	if (codec & PXD_CODEC_SHUFFLE) {
		if (!scratch_ready(c))
			return 0;
		shuffle(in, n, c->scratch, elem);
		in = c->scratch;
	}
	switch (kind) {
	case PXD_CODEC_ZLIB:
		return zlib_pack(c, level, in, n, out, cap);
	case PXD_CODEC_LZ4:
		return lz4_pack(c, level, in, n, out, cap);
	default:
		return zstd_pack(c, level, in, n, out, cap);
	}
}

int pxd_codec_unpack(
	struct pxd_codec *c, int codec, unsigned elem, const uint8_t *in, size_t n, uint8_t *out, size_t want)
{
	int kind = kind_of(codec, elem), rc;
	uint8_t *to = out;

	if (kind < 0 || want > PX_SEG_MAX)
		return PX_EPROTO;
	if (kind == PXD_CODEC_NONE) {
		if (n != want)
			return PX_EPROTO;
		if (n)
			memcpy(out, in, n);
		return 0;
	}
	if (n == 0 || n >= want)
		return PX_EPROTO;
	if (codec & PXD_CODEC_SHUFFLE) {
		if (!scratch_ready(c))
			return PX_ENOMEM;
		to = c->scratch;
	}
	switch (kind) {
	case PXD_CODEC_ZLIB:
		rc = zlib_unpack(c, in, n, to, want);
		break;
	case PXD_CODEC_LZ4:
		rc = LZ4_decompress_safe((const char *)in, (char *)to, (int)n, (int)want) == (int)want
			     ? 0
			     : PX_EPROTO;
		break;
	default:
		rc = zstd_unpack(c, in, n, to, want);
	}
	if (rc == 0 && to != out)
		unshuffle(to, want, out, elem);
	return rc;
}

const char *pxd_codec_name(int codec)
{
	static const char *const names[2][PXD_CODEC_KINDS] = {
		{ "none", "zlib", "lz4", "zstd" },
		{ "none", "zlib+shuffle", "lz4+shuffle", "zstd+shuffle" },
	};
	int kind = codec & ~PXD_CODEC_SHUFFLE;

	if (codec < 0 || kind >= PXD_CODEC_KINDS)
		return "unknown";
	return names[codec & PXD_CODEC_SHUFFLE ? 1 : 0][kind];
}
