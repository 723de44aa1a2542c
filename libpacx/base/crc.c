/* crc.c: see crc.h. The processor's own instruction where there is one, else a table of eight bytes per step. */
#include "crc.h"

#include <stdbool.h>
#include <string.h>

#define POLY 0x82f63b78u

static uint32_t table[8][256];

static void table_make(void)
{
	for (unsigned i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ POLY : c >> 1;
		table[0][i] = c;
	}
	for (unsigned i = 0; i < 256; i++)
		for (int t = 1; t < 8; t++)
			table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 0xff];
}

static uint32_t crc_table(uint32_t crc, const uint8_t *p, size_t n)
{
	for (; n >= 8; p += 8, n -= 8) {
		uint32_t lo = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
					    (uint32_t)p[3] << 24);

		crc = table[7][lo & 0xff] ^ table[6][lo >> 8 & 0xff] ^ table[5][lo >> 16 & 0xff] ^
		      table[4][lo >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
	}
	while (n-- > 0)
		crc = table[0][(crc ^ *p++) & 0xff] ^ crc >> 8;
	return crc;
}

#if defined(__x86_64__)
/* The instruction takes three cycles and can begin every cycle: three stretches of LANE bytes are summed side by side, and
 * joined by tables that say what LANE zero bytes do to a sum (after Mark Adler's crc32c.c). */
#define LANE 2048
static uint32_t skip[4][256];

static uint32_t skip_lane(uint32_t crc)
{
	return skip[0][crc & 0xff] ^ skip[1][crc >> 8 & 0xff] ^ skip[2][crc >> 16 & 0xff] ^
	       skip[3][crc >> 24];
}

static void skip_make(void)
{
	static const uint8_t zeros[LANE];

	/* Linear in the sum: each bit by itself. */
	for (int k = 0; k < 4; k++) {
		for (unsigned i = 0; i < 256; i++) {
			skip[k][i] = 0;
			for (int bit = 0; bit < 8; bit++)
				if (i == 1u << bit)
					skip[k][i] = crc_table((uint32_t)i << 8 * k, zeros, LANE);
		}
		for (unsigned i = 0; i < 256; i++)
			for (int bit = 0; bit < 8 && (i & (i - 1)); bit++)
				if (i >> bit & 1)
					skip[k][i] ^= skip[k][1u << bit];
	}
}

static inline uint64_t word_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t c = crc;

	while (n >= 3 * LANE) {
		uint64_t c1 = 0, c2 = 0;

		for (size_t i = 0; i < LANE; i += 8) {
			c = __builtin_ia32_crc32di(c, word_at(p + i));
			c1 = __builtin_ia32_crc32di(c1, word_at(p + LANE + i));
			c2 = __builtin_ia32_crc32di(c2, word_at(p + 2 * LANE + i));
		}
		c = skip_lane(skip_lane((uint32_t)c) ^ (uint32_t)c1) ^ c2;
		p += 3 * LANE;
		n -= 3 * LANE;
	}
	for (; n >= 8; p += 8, n -= 8)
		c = __builtin_ia32_crc32di(c, word_at(p));
	crc = (uint32_t)c;
	while (n-- > 0)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}
#endif

uint32_t px_crc32c(uint32_t crc, const void *data, size_t n)
{
	static int way; /* 0 = not looked yet, 1 = table, 2 = instruction */

	if (way == 0) {
		table_make();
		way = 1;
#if defined(__x86_64__)
		if (__builtin_cpu_supports("sse4.2")) {
			skip_make();
			way = 2;
		}
#endif
	}
#if defined(__x86_64__)
	if (way == 2)
		return ~crc_sse42(~crc, data, n);
#endif
	return ~crc_table(~crc, data, n);
}
