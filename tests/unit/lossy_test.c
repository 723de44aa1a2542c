/* lossy_test.c: every number comes back within its bound, or the segment is not taken; what is malformed is refused and harms nothing. */
#include <math.h>
#include <stdlib.h>

#include "err.h"
#include "lossy.h"
#include "test.h"

#define N 5000

static double in[N], out[N];
static float in4[N], out4[N];
static uint8_t packed[sizeof in];

static double uniform(void)
{
	return (double)(test_random() >> 11) * 0x1p-53;
}

enum kind { SMOOTH, NOISE, SCALES, STEPS, TINY, KINDS };

static void fill(enum kind kind, int seed)
{
	for (int i = 0; i < N; i++) {
		double x = i * 1e-3 + seed;

		in[i] = kind == SMOOTH   ? 300 + 40 * sin(x) + cos(9 * x)
			: kind == NOISE  ? uniform() - 0.5
			: kind == SCALES ? (uniform() - 0.5) * exp(60 * (uniform() - 0.5))
			: kind == STEPS  ? floor(x * 7)
					 : (uniform() - 0.5) * 1e-310;
		in4[i] = (float)in[i];
	}
}

TEST(every_number_comes_back_within_its_bound)
{
	static const double bounds[] = { 1e-300, 1e-12, 1e-6, 1e-3, 0.1, 3, 1e5, -1e-15, -1e-6, -1e-3, -0.5 };
	int taken = 0;

	for (enum kind kind = 0; kind < KINDS; kind++) {
		for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
			double most = 0, most4 = 0, bound;
			size_t n = 1 + test_random() % N, m;

			fill(kind, (int)b);
			for (size_t i = 0; i < n; i++) {
				most = fmax(most, fabs(in[i]));
				most4 = fmax(most4, fabs((double)in4[i]));
			}
			bound = bounds[b] > 0 ? bounds[b] : -bounds[b] * most;
			m = pxd_lossy_pack(bounds[b], 8, (uint8_t *)in, n * 8, packed, sizeof packed);
			taken += m > 0;
			if (m && CHECK_INT(pxd_lossy_unpack(8, packed, m, (uint8_t *)out, n * 8), 0))
				for (size_t i = 0; i < n; i++)
					CHECK(fabs(in[i] - out[i]) <= bound);
			bound = bounds[b] > 0 ? bounds[b] : -bounds[b] * most4;
			m = pxd_lossy_pack(bounds[b], 4, (uint8_t *)in4, n * 4, packed, sizeof packed);
			taken += m > 0;
			if (m && CHECK_INT(pxd_lossy_unpack(4, packed, m, (uint8_t *)out4, n * 4), 0))
				for (size_t i = 0; i < n; i++)
					CHECK(fabs((double)in4[i] - (double)out4[i]) <= bound);
		}
	}
	CHECK(taken > 40);
}

TEST(a_smooth_field_shrinks)
{
	fill(SMOOTH, 0);
	CHECK(pxd_lossy_pack(1e-3, 8, (uint8_t *)in, sizeof in, packed, sizeof packed) < sizeof in / 3);
}

TEST(what_is_no_number_is_not_taken)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY };

	for (int i = 0; i < 3; i++) {
		fill(SMOOTH, 0);
		in[N / 2] = odd[i];
		CHECK_INT(pxd_lossy_pack(1e-3, 8, (uint8_t *)in, sizeof in, packed, sizeof packed), 0);
	}
	fill(SMOOTH, 0);
	CHECK_INT(pxd_lossy_pack(0, 8, (uint8_t *)in, sizeof in, packed, sizeof packed), 0);
	CHECK_INT(pxd_lossy_pack(NAN, 8, (uint8_t *)in, sizeof in, packed, sizeof packed), 0);
	CHECK_INT(pxd_lossy_pack(1, 2, (uint8_t *)in, sizeof in, packed, sizeof packed), 0);
	CHECK_INT(pxd_lossy_pack(1, 8, (uint8_t *)in, 43, packed, sizeof packed), 0);
}

TEST(damaged_segments_harm_nothing)
{
	size_t m, len = 1000 * 8;

	fill(SCALES, 1);
	m = pxd_lossy_pack(-1e-6, 8, (uint8_t *)in, len, packed, sizeof packed);
	REQUIRE(m > 0);
	for (int i = 0; i < 4000; i++) {
		size_t k = 4 + test_random() % (m - 4);
		uint8_t *copy = malloc(k), *back = malloc(len);
		int rc;

		REQUIRE(copy && back); /* exactly as long as they may be read and written */
		memcpy(copy, packed, k);
		copy[test_random() % k] ^= (uint8_t)(1u << test_random() % 8);
		rc = pxd_lossy_unpack(8, copy, k, back, len);
		CHECK(rc == 0 || rc == PX_EPROTO);
		free(copy);
		free(back);
	}
	CHECK_INT(pxd_lossy_unpack(4, packed, m, (uint8_t *)out, len), PX_EPROTO);
	CHECK_INT(pxd_lossy_unpack(8, packed, m - 1, (uint8_t *)out, len), PX_EPROTO);
	CHECK_INT(pxd_lossy_unpack(8, packed, m, (uint8_t *)out, len - 8 * 100), PX_EPROTO);
}
