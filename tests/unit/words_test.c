/* words_test.c: numbers that were packed into bytes are seen, and nothing else is taken for numbers. */
#include <math.h>
#include <string.h>

#include "test.h"
#include "words.h"

#define N 8192 /* bytes */

static const bool host_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
static uint8_t data[N];

/* What is guessed of count numbers of w bytes, as they are and as another machine has them: the same. */
static unsigned guessed(const void *numbers, size_t n, unsigned w)
{
	unsigned a, b;

	memcpy(data, numbers, n);
	a = pxd_words_guess(data, n, host_big);
	for (size_t i = 0; i < n; i++)
		data[i] = ((const uint8_t *)numbers)[i / w * w + w - 1 - i % w];
	b = pxd_words_guess(data, n, !host_big);
	CHECK_UINT(a, b);
	return a;
}

TEST(numbers_are_seen)
{
	static double d[N / 8], wild[N / 8], sparse[N / 8];
	static float f[N / 4];
	static int32_t i32[N / 4];

	for (size_t i = 0; i < N / 8; i++) {
		d[i] = 300 + 40 * sin(0.01 * (double)i);
		wild[i] = (i % 3 ? 1 : -1) * exp(sin((double)(i * i % 1009)));
		sparse[i] = i % 4 ? 0 : d[i];
	}
	for (size_t i = 0; i < N / 4; i++) {
		f[i] = sinf((float)(i * i % 1009));
		i32[i] = (int32_t)(i * i % 1009);
	}
	CHECK_UINT(guessed(d, N, 8), 8);
	CHECK_UINT(guessed(d, 1024, 8), 8);
	CHECK_UINT(guessed(wild, N, 8), 8);
	CHECK_UINT(guessed(sparse, N, 8), 8);
	CHECK_UINT(guessed(f, N, 4), 4);
	CHECK_UINT(guessed(i32, N, 4), 4);
}

TEST(what_is_no_numbers_is_not_taken_for_them)
{
	static const char words[] =
		"the quick brown fox jumps over the lazy dog and runs away into the forest, ";
	static uint8_t x[N];

	for (size_t i = 0; i < N; i++)
		x[i] = (uint8_t)test_random();
	CHECK_UINT(guessed(x, N, 1), 0);
	for (size_t i = 0; i < N; i++)
		x[i] = (uint8_t)words[i % (sizeof words - 1)];
	CHECK_UINT(guessed(x, N, 1), 0);
	for (size_t i = 0; i < N; i++)
		x[i] = (uint8_t)(i / 3 + test_random() % 3);
	CHECK_UINT(guessed(x, N, 1), 0);
	memset(x, 0, N);
	CHECK_UINT(guessed(x, N, 1), 0);
	for (size_t n = 0; n < 300; n++)
		CHECK_UINT(pxd_words_guess(x, n, false), 0);
}
