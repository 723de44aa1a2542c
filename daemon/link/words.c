/* words.c: see words.h.
 *
 * Numbers next to each other are alike at their top, where exponent or leading zeros are, and not at their low end. Equal ones say nothing, nor do
 * zeros and signs.
 */
#include "words.h"

#include <string.h>

#define LOOKED 2048 /* bytes of the middle */
#define LEAST  32   /* numbers that differ from the one before */

static bool looks_like(const uint8_t *in, size_t n, unsigned w, bool big)
{
	static const uint8_t zero[8];
	size_t count = (n < LOOKED ? n : LOOKED) / w, differ = 0;
	size_t top = big ? 0 : w - 1, low = big ? w - 1 : 0, half = big ? w / 2 : w / 2 - 1;
	size_t same_top = 0, same_low = 0, same_half = 0; /* the top, if numbers were half as long */
	const uint8_t *p = in + ((n - count * w) / 2 & ~(size_t)15), *last = NULL;

	for (size_t i = 0; i < count; i++, p += w) {
		if (memcmp(p, zero, w) == 0 || (last && memcmp(p, last, w) == 0))
			continue;
		if (last) {
			differ++;
			same_top += ((p[top] ^ last[top]) & 0x7f) == 0;
			same_half += ((p[half] ^ last[half]) & 0x7f) == 0;
			same_low += p[low] == last[low];
		}
		last = p;
	}
	return differ >= LEAST && 5 * same_top >= 2 * differ && 2 * same_low <= same_top &&
	       (w == 4 || 4 * same_half <= 3 * same_top);
}

unsigned pxd_words_guess(const uint8_t *in, size_t n, bool big)
{
	return looks_like(in, n, 8, big) ? 8 : looks_like(in, n, 4, big) ? 4 : 0;
}
