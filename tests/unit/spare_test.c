/* spare_test.c: long blocks come again, not too small; what is fresh is zeroed; what is kept has a bound and an end. */
#include "spare.h"

#include <stdint.h>
#include <string.h>

#include "test.h"

#define K 1024u

static int zero(const unsigned char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (at[i])
			return 0;
	return 1;
}

/* What is said to be zeroed is. */
static void *take(size_t n)
{
	bool used;
	void *block = px_spare_take(n, &used);

	CHECK(!block || used || zero(block, n));
	CHECK((uintptr_t)block % 16 == 0);
	return block;
}

TEST(a_long_block_comes_again)
{
	size_t n = 1024 * K;
	unsigned char *a = take(n), *b;
	bool used;

	CHECK(a);
	memset(a, 7, n);
	px_spare_give(a, n);
	CHECK(px_spare_kept() >= n);
	b = px_spare_take(n, &used);
	CHECK(b == a && used);
	CHECK_UINT(px_spare_kept(), 0);
	px_spare_give(b, n);
	px_spare_close();
	CHECK_UINT(px_spare_kept(), 0);
}

/* Each length on both sides of each step: all of it can be written, and what serves again is as long as it has to be (the sanitizers look). */
TEST(all_of_each_length_can_be_used)
{
	for (size_t n = 1; n < 40u << 20; n = n * 9 / 8 + 1)
		for (size_t m = n - 1; m <= n + 1; m++) {
			unsigned char *a = take(m);

			CHECK(a);
			memset(a, 1, m);
			px_spare_give(a, m);
			a = take(m + m / 50);
			CHECK(a);
			memset(a, 2, m + m / 50);
			px_spare_give(a, m + m / 50);
			CHECK(px_spare_kept() <= PX_SPARE_MOST);
		}
	px_spare_close();
}

TEST(short_and_very_long_blocks_are_not_kept)
{
	px_spare_give(take(0), 0);
	px_spare_give(take(PX_SPARE_LEAST - 1), PX_SPARE_LEAST - 1);
	px_spare_give(take(PX_SPARE_MOST + 1), PX_SPARE_MOST + 1);
	px_spare_give(NULL, 0);
	px_spare_give(NULL, PX_SPARE_LEAST);
	CHECK_UINT(px_spare_kept(), 0);
	px_spare_give(take(PX_SPARE_LEAST), PX_SPARE_LEAST);
	CHECK_UINT(px_spare_kept(), PX_SPARE_LEAST);
	px_spare_close();
}

TEST(what_is_kept_has_a_bound)
{
	void *block[100];

	for (int i = 0; i < 100; i++)
		block[i] = take((size_t)(i + 1) * 64 * K);
	for (int i = 0; i < 100; i++) {
		CHECK(block[i]);
		px_spare_give(block[i], (size_t)(i + 1) * 64 * K);
		CHECK(px_spare_kept() <= PX_SPARE_MOST);
	}
	CHECK(px_spare_kept() > PX_SPARE_MOST / 2);
	px_spare_close();
	CHECK_UINT(px_spare_kept(), 0);
}

TEST(what_nobody_wants_goes_back)
{
	px_spare_give(take(1024 * K), 1024 * K);
	for (int i = 0; i < PX_SPARE_TURNS; i++) {
		CHECK(px_spare_kept() > 0);
		px_spare_give(take(100), 100);
	}
	px_spare_give(take(100), 100);
	CHECK_UINT(px_spare_kept(), 0);
}

/* More than there are places for: the one given first goes. */
TEST(many_of_the_least_length)
{
	void *block[200];

	for (int i = 0; i < 200; i++)
		block[i] = take(PX_SPARE_LEAST);
	for (int i = 0; i < 200; i++)
		px_spare_give(block[i], PX_SPARE_LEAST);
	CHECK(px_spare_kept() > 0 && px_spare_kept() <= PX_SPARE_MOST);
	CHECK(take((size_t)-1) == NULL);
	px_spare_close();
}
