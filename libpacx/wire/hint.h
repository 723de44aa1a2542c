/* hint.h: what a rank tells its out-daemon about the numbers of a message, in `seq` of its envelope (PROTOCOL.md, section 7). */
#ifndef PX_HINT_H
#define PX_HINT_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Shorter payload is not worth the handing over to a worker: neither predicted nor compressed, and nothing is said of it. */
#define PX_HINT_MIN 1024

/* The tag of a message of a collective operation: the number of the operation, and in so many lower bits the step, which repeats. */
#define PX_COLL_STEP_BITS 11

struct px_hint {
	float bound; /* how far they may move (pacx_set_accuracy): 0 = not at all, below 0 = times the largest */
	uint16_t row, plane; /* numbers in a row, rows in a plane; 0 = not known */
};

/* px_hint_bound: the nearest float that allows no more than `bound` does; 0 if that is too small for one. */
static inline float px_hint_bound(double bound)
{
	float f = fabs(bound) > (double)FLT_MAX ? FLT_MAX : (float)fabs(bound);

	if ((double)f > fabs(bound))
		f = nextafterf(f, 0);
	return bound < 0 ? -f : f;
}

static inline uint64_t px_hint_put(const struct px_hint *h)
{
	uint32_t bits;

	memcpy(&bits, &h->bound, sizeof bits);
	return bits | (uint64_t)h->row << 32 | (uint64_t)h->plane << 48;
}

static inline void px_hint_get(uint64_t seq, struct px_hint *h)
{
	uint32_t bits = (uint32_t)seq;

	memcpy(&h->bound, &bits, sizeof bits);
	h->row = (uint16_t)(seq >> 32);
	h->plane = (uint16_t)(seq >> 48);
}

#endif
