/* endian.h: little-endian integers in byte arrays, without alignment.
 *
 * Owns nothing. Everything written to the wire or to a native message goes through
 * these; nobody may copy a struct to or from the wire instead. Include it in quotes and
 * with -iquote: <endian.h> is a different header, of libc.
 */
#ifndef PX_ENDIAN_H
#define PX_ENDIAN_H

#include <stdint.h>

static inline void px_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void px_put32(uint8_t *p, uint32_t v)
{
	px_put16(p, (uint16_t)v);
	px_put16(p + 2, (uint16_t)(v >> 16));
}

static inline void px_put64(uint8_t *p, uint64_t v)
{
	px_put32(p, (uint32_t)v);
	px_put32(p + 4, (uint32_t)(v >> 32));
}

static inline uint16_t px_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t px_get32(const uint8_t *p)
{
	return px_get16(p) | (uint32_t)px_get16(p + 2) << 16;
}

static inline uint64_t px_get64(const uint8_t *p)
{
	return px_get32(p) | (uint64_t)px_get32(p + 4) << 32;
}

#endif
