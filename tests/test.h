/* test.h: the frame of every C test program, main included.
 *
 * A test is TEST(sentence_like_name) { ... }. CHECK... note a failure with file, line and values and go on;
 * REQUIRE... also leave the test. Include it in exactly one .c file per program. Arguments: names of
 * tests to run (default all). Output, read by tests/run, one line each:
 *     1..N                    how many tests follow
 *     ok NAME
 *     not ok NAME
 *     skip NAME: reason
 * Every other line is diagnosis. Exit status 1 when a test failed.
 */
#ifndef PX_TEST_H
#define PX_TEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TEST_MAX   256
#define TEST_NOTES 10 /* failures printed per test */

struct test_case {
	const char *name;
	void (*run)(void);
};

static struct test_case test_list[TEST_MAX];
static int test_count;
static int test_failures;        /* of the running test */
static const char *test_skipped; /* reason, or NULL */

#define TEST(name)                                                                                           \
	static void name(void);                                                                              \
	__attribute__((constructor)) static void name##_register(void)                                       \
	{                                                                                                    \
		if (test_count < TEST_MAX)                                                                   \
			test_list[test_count++] = (struct test_case){ #name, name };                         \
	}                                                                                                    \
	static void name(void)

#define TEST_UNUSED __attribute__((unused))

/* Counts a failure; true when its details shall be printed. */
TEST_UNUSED static bool test_fail(const char *file, int line, const char *what)
{
	if (++test_failures > TEST_NOTES)
		return false;
	printf("  %s:%d: %s", file, line, what);
	return true;
}

TEST_UNUSED static bool test_true(bool v, const char *file, int line, const char *what)
{
	if (!v && test_fail(file, line, what))
		printf(" is false\n");
	return v;
}

TEST_UNUSED static bool test_int(intmax_t a, intmax_t b, const char *file, int line, const char *what)
{
	if (a != b && test_fail(file, line, what))
		printf(": got %" PRIdMAX ", expected %" PRIdMAX "\n", a, b);
	return a == b;
}

TEST_UNUSED static bool test_uint(uintmax_t a, uintmax_t b, const char *file, int line, const char *what)
{
	if (a != b && test_fail(file, line, what))
		printf(": got %" PRIuMAX " (0x%" PRIxMAX "), expected %" PRIuMAX " (0x%" PRIxMAX ")\n", a, a,
			b, b);
	return a == b;
}

TEST_UNUSED static bool test_str(const char *a, const char *b, const char *file, int line, const char *what)
{
	bool same = a && b && strcmp(a, b) == 0;

	if (!same && test_fail(file, line, what))
		printf(": got \"%s\", expected \"%s\"\n", a ? a : "(null)", b ? b : "(null)");
	return same;
}

TEST_UNUSED static bool test_mem(
	const void *a, const void *b, size_t n, const char *file, int line, const char *what)
{
	const unsigned char *x = a, *y = b;

	for (size_t i = 0; i < n; i++) {
		if (x[i] != y[i]) {
			if (test_fail(file, line, what))
				printf(": byte %zu of %zu is 0x%02x, expected 0x%02x\n", i, n, x[i], y[i]);
			return false;
		}
	}
	return true;
}

/* Got first, expected second. */
#define CHECK(cond)        test_true((cond), __FILE__, __LINE__, #cond)
#define CHECK_INT(a, b)    test_int((a), (b), __FILE__, __LINE__, #a)
#define CHECK_UINT(a, b)   test_uint((a), (b), __FILE__, __LINE__, #a)
#define CHECK_STR(a, b)    test_str((a), (b), __FILE__, __LINE__, #a)
#define CHECK_MEM(a, b, n) test_mem((a), (b), (n), __FILE__, __LINE__, #a)
#define REQUIRE(cond)                                                                                        \
	do {                                                                                                 \
		if (!CHECK(cond))                                                                            \
			return;                                                                              \
	} while (0)
#define REQUIRE_INT(a, b)                                                                                    \
	do {                                                                                                 \
		if (!CHECK_INT(a, b))                                                                        \
			return;                                                                              \
	} while (0)
#define SKIP(reason)                                                                                         \
	do {                                                                                                 \
		test_skipped = (reason);                                                                     \
		return;                                                                                      \
	} while (0)

/* test_random: the same sequence in every run (splitmix64). */
TEST_UNUSED static uint64_t test_random(void)
{
	static uint64_t state = 20260101;
	uint64_t z = state += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

static bool test_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	int wanted = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0); /* a crash shall not swallow the names before it */
	for (int i = 0; i < test_count; i++)
		wanted += test_wanted(test_list[i].name, argc, argv);
	printf("1..%d\n", wanted);
	for (int i = 0; i < test_count; i++) {
		if (!test_wanted(test_list[i].name, argc, argv))
			continue;
		test_failures = 0;
		test_skipped = NULL;
		test_list[i].run();
		if (test_failures > TEST_NOTES)
			printf("  and %d more failures\n", test_failures - TEST_NOTES);
		if (test_failures)
			printf("not ok %s\n", test_list[i].name);
		else if (test_skipped)
			printf("skip %s: %s\n", test_list[i].name, test_skipped);
		else
			printf("ok %s\n", test_list[i].name);
		failed += test_failures != 0;
	}
	return failed != 0;
}

#endif
