/* lossy_test.c: every number comes back within its bound, or the segment is not taken; what is malformed is refused and harms nothing. */
#include <math.h>
#include <stdlib.h>

#include "err.h"
#include "lossy.h"
#include "test.h"

/* Without rows. */
static size_t pack(double bound, unsigned elem, const void *from, size_t n, uint8_t *to, size_t cap)
{
	const struct px_hint h = { .bound = px_hint_bound(bound) };

	return pxd_lossy_pack(&h, elem, from, n, to, cap);
}

#define N 5000
/* Where zfp's stream would be of big-endian words nothing is taken, and links between such machines use none. */
#define HOST_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

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
			m = pack(bounds[b], 8, in, n * 8, packed, sizeof packed);
			taken += m > 0;
			if (m && CHECK_INT(pxd_lossy_unpack(8, packed, m, (uint8_t *)out, n * 8), 0))
				for (size_t i = 0; i < n; i++)
					CHECK(fabs(in[i] - out[i]) <= bound);
			bound = bounds[b] > 0 ? bounds[b] : -bounds[b] * most4;
			m = pack(bounds[b], 4, in4, n * 4, packed, sizeof packed);
			taken += m > 0;
			if (m && CHECK_INT(pxd_lossy_unpack(4, packed, m, (uint8_t *)out4, n * 4), 0))
				for (size_t i = 0; i < n; i++)
					CHECK(fabs((double)in4[i] - (double)out4[i]) <= bound);
		}
	}
	CHECK(HOST_BIG ? taken == 0 : taken > 40);
}

TEST(a_smooth_field_shrinks)
{
	fill(SMOOTH, 0);
	CHECK(pack(1e-3, 8, in, sizeof in, packed, sizeof packed) < sizeof in / 3);
}

TEST(what_is_no_number_is_not_taken)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY };

	for (int i = 0; i < 3; i++) {
		fill(SMOOTH, 0);
		in[N / 2] = odd[i];
		CHECK_INT(pack(1e-3, 8, in, sizeof in, packed, sizeof packed), 0);
	}
	fill(SMOOTH, 0);
	CHECK_INT(pack(0, 8, in, sizeof in, packed, sizeof packed), 0);
	CHECK_INT(pack(NAN, 8, in, sizeof in, packed, sizeof packed), 0);
	CHECK_INT(pack(1, 2, in, sizeof in, packed, sizeof packed), 0);
	CHECK_INT(pack(1, 8, in, 43, packed, sizeof packed), 0);
}

TEST(damaged_segments_harm_nothing)
{
	size_t m, len = 1000 * 8;

	fill(SCALES, 1);
	m = pack(-1e-6, 8, in, len, packed, sizeof packed);
	REQUIRE(HOST_BIG == !m);
	if (HOST_BIG)
		return;
	for (int i = 0; i < 4000; i++) {
		size_t k = 8 + test_random() % (m - 8);
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

TEST(rows_and_planes_come_back_within_the_bound_and_shrink_more)
{
	static const struct {
		uint16_t row, plane;
		size_t n;
	} shapes[] = { { 50, 0, 5000 }, { 50, 10, 5000 }, { 50, 0, 4987 }, { 7, 3, 4999 }, { 4999, 1, 5000 },
		{ 60000, 60000, 300 }, { 2, 0, 3 }, { 16, 16, 4096 } };
	size_t flat = 0, rows = 0;

	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		struct px_hint h = { .bound = 1e-4f, .row = shapes[k].row, .plane = shapes[k].plane };
		size_t n = shapes[k].n, m;

		for (size_t i = 0; i < n; i++)
			in[i] = 300 + 40 * sin(0.7 * (double)(i % 50)) + 9 * cos(0.1 * (double)(i / 50));
		m = pxd_lossy_pack(&h, 8, (uint8_t *)in, n * 8, packed, sizeof packed);
		if (k == 0) {
			rows = m;
			flat = pack(1e-4, 8, in, n * 8, (uint8_t *)in4, sizeof in4);
		}
		if (m && CHECK_INT(pxd_lossy_unpack(8, packed, m, (uint8_t *)out, n * 8), 0))
			for (size_t i = 0; i < n; i++)
				CHECK(fabs(in[i] - out[i]) <= 1e-4);
	}
	CHECK(HOST_BIG ? rows == 0 : rows > 0 && rows < flat - flat / 5);
}

TEST(shapes_that_cannot_be_are_refused)
{
	struct px_hint h = { .bound = 1e-3f, .row = 50, .plane = 10 };
	size_t m;

	fill(SMOOTH, 0);
	m = pxd_lossy_pack(&h, 8, (uint8_t *)in, sizeof in, packed, sizeof packed);
	REQUIRE(HOST_BIG == !m);
	if (HOST_BIG)
		return;
	for (size_t i = 4; i < 8; i++) {
		uint8_t was = packed[i];

		packed[i] = 0xff;
		if (i % 2)
			CHECK_INT(pxd_lossy_unpack(8, packed, m, (uint8_t *)out, sizeof in), PX_EPROTO);
		packed[i] = was;
	}
	packed[4] = packed[5] = 0; /* planes without rows */
	CHECK_INT(pxd_lossy_unpack(8, packed, m, (uint8_t *)out, sizeof in), PX_EPROTO);
}

TEST(a_bound_becomes_no_larger)
{
	CHECK((double)px_hint_bound(0.1) <= 0.1 && (double)px_hint_bound(-0.1) >= -0.1);
	CHECK(px_hint_bound(0.1) > 0.0999f && px_hint_bound(1e300) == FLT_MAX && px_hint_bound(1e-300) == 0);
	for (int i = 0; i < 1000; i++) {
		struct px_hint h = { px_hint_bound(uniform() - 0.5), (uint16_t)test_random(),
			(uint16_t)test_random() },
			       g;

		px_hint_get(px_hint_put(&h), &g);
		CHECK(g.bound == h.bound && g.row == h.row && g.plane == h.plane);
	}
}
