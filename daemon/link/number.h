/* number.h: the numbers of a segment, for predict.c and learn.c: loaded and stored in either byte order; images in the order of floating-point
 * numbers; signs folded into the lowest bit. Inlined, with the size of a number as a constant.
 */
#ifndef PXD_NUMBER_H
#define PXD_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HOST_BIG true
#else
#define HOST_BIG false
#endif

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t pxd_load(const uint8_t *at, unsigned word, bool swap)
{
	uint32_t small;
	uint64_t v;

	if (word == 4) {
		memcpy(&small, at, 4);
		return swap ? __builtin_bswap32(small) : small;
	}
	memcpy(&v, at, 8);
	return swap ? __builtin_bswap64(v) : v;
}

INLINE void pxd_store(uint8_t *at, uint64_t v, unsigned word, bool swap)
{
	uint32_t small = (uint32_t)v;

	if (word == 4) {
		small = swap ? __builtin_bswap32(small) : small;
		memcpy(at, &small, 4);
	} else {
		v = swap ? __builtin_bswap64(v) : v;
		memcpy(at, &v, 8);
	}
}

/* Whole numbers in the order of the floating-point numbers: -0 is next to +0, NaNs are at the ends. */
INLINE uint64_t pxd_to_order(uint64_t v, unsigned word)
{
	uint64_t sign = word == 4 ? 1ull << 31 : 1ull << 63;

	return v & sign ? ~v : v | sign;
}

INLINE uint64_t pxd_from_order(uint64_t v, unsigned word)
{
	uint64_t sign = word == 4 ? 1ull << 31 : 1ull << 63;

	return v & sign ? v ^ sign : ~v;
}

/* 0, -1, 1, -2, 2 ... -> 0, 1, 2, 3, 4 ... */
INLINE uint64_t pxd_fold(uint64_t v, unsigned word)
{
	return word == 4 ? (uint32_t)((uint32_t)v << 1 ^ (uint32_t)((int32_t)(uint32_t)v >> 31))
			 : v << 1 ^ (uint64_t)((int64_t)v >> 63);
}

INLINE uint64_t pxd_unfold(uint64_t v, unsigned word)
{
	return word == 4 ? (uint32_t)v >> 1 ^ (0u - ((uint32_t)v & 1)) : v >> 1 ^ (0ull - (v & 1));
}

/* Significant bits of a folded number, but for its sign. */
INLINE unsigned pxd_length(uint64_t folded)
{
	uint64_t magnitude = (folded >> 1) + (folded & 1);

	return magnitude ? 64 - (unsigned)__builtin_clzll(magnitude) : 0;
}

INLINE uint64_t pxd_image(const uint8_t *at, unsigned word, bool swap, bool order)
{
	uint64_t v = pxd_load(at, word, swap);

	return order ? pxd_to_order(v, word) : v;
}

INLINE double pxd_value(const uint8_t *at, unsigned word, bool swap)
{
	uint64_t v = pxd_load(at, word, swap);
	uint32_t small = (uint32_t)v;
	double d;
	float f;

	if (word == 4) {
		memcpy(&f, &small, 4);
		return f;
	}
	memcpy(&d, &v, 8);
	return d;
}

/* The image of `sum`, rounded to `word` bytes; that of the number at `other` if it is not finite then. */
INLINE uint64_t pxd_image_of(double sum, const uint8_t *other, unsigned word, bool swap)
{
	uint64_t bits;
	uint32_t small;
	float f;

	if (word == 4) {
		f = (float)sum;
		memcpy(&small, &f, 4);
		return isfinite(f) ? pxd_to_order(small, 4) : pxd_image(other, 4, swap, true);
	}
	memcpy(&bits, &sum, 8);
	return isfinite(sum) ? pxd_to_order(bits, 8) : pxd_image(other, 8, swap, true);
}

#endif
