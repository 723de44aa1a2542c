/* convert.c: how fast data of an unlike machine is made right, for each basic type: GB/s of one core, next to memcpy in the same run; what
 * structures cost; and what messages between machines that are alike pay for it.
 *
 * In segments, as messages arrive: SEG bytes that are in the cache, because they have just been received.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "convert.h"
#include "floats.h"

#define SEG    (256u << 10)
#define ROUNDS 200

static uint8_t *in, *out;
static const struct px_repr *volatile no_site; /* as in p2p/unlike.c, where all sites are alike */
static volatile bool any;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Best of several, in GB/s: others run here, too. */
#define BEST(best, bytes, work)                                                                              \
	do {                                                                                                 \
		(best) = 0;                                                                                  \
		for (int round_ = 0; round_ < ROUNDS; round_++) {                                            \
			double t_ = now(), rate_;                                                            \
                                                                                                             \
			work;                                                                                \
			__asm__ volatile("" ::: "memory");                                                   \
			rate_ = (double)(bytes) / (now() - t_) * 1e-9;                                       \
			(best) = rate_ > (best) ? rate_ : (best);                                            \
		}                                                                                            \
	} while (0)

/* Numbers as programs have them, not zeros, in the format of a machine. */
static void fill(const struct px_repr *r)
{
	for (size_t i = 0; i < SEG / r->size_long_double; i++) {
		double d = 1.0 / (double)(i + 3);

		px_floats_convert((const uint8_t *)&d, PX_FLOAT_DOUBLE, sizeof d, false,
			in + i * r->size_long_double, (enum px_float_format)r->long_double_format,
			r->size_long_double, r->big_endian, 1);
	}
}

/* Structures of two numbers, so runs of one: what a type that is not one long run of one kind costs. */
static void mixed(const char *name, const struct px_repr *them, const struct px_repr *us, double copy)
{
	struct px_sig s = { 0 };
	struct px_cursor c;
	double rate;

	if (px_sig_add(&s, PX_ATOM_INT4, 1) != 0 || px_sig_add(&s, PX_ATOM_DOUBLE, 1) != 0)
		return;
	BEST(rate, SEG / 12 * 12, px_cursor_init(&c, &s, them, us, SEG / 12);
		px_cursor_run(&c, in, SEG / 12 * 12, out));
	printf("%-8s {int, double}    12 to 12 bytes  %6.2f GB/s  %5.2f of memcpy\n", name, rate,
		rate / copy);
	px_sig_free(&s);
}

static void from(const char *name, const struct px_repr *them, const struct px_repr *us, double copy)
{
	for (int a = 0; a < PX_ATOM_COUNT; a++) {
		size_t size = px_atom_size(a, them);
		double rate;

		if (px_convert_same(a, them, us))
			continue;
		memset(in, 0, SEG);
		if (a == PX_ATOM_LDOUBLE)
			fill(them);
		BEST(rate, SEG / size * size, px_convert(a, them, in, us, out, SEG / size));
		printf("%-8s %-15s %2zu to %2zu bytes  %6.2f GB/s  %5.2f of memcpy%s\n", name,
			px_atom_name(a), size, px_atom_size(a, us), rate, rate / copy,
			(size == 4 || size == 8) && px_atom_size(a, us) == size && rate < 4
				? "  (aim: 4 GB/s)"
				: "");
	}
}

int main(void)
{
	struct px_repr us, s390x = { 1, 0, 8, 8, 4, 16, 8, 8, 8, 2, 4, 4, 1 },
			   i386 = { 0, 1, 4, 4, 4, 12, 4, 4, 4, 1, 4, 4, 1 };
	struct px_repr arm = { 0, 0, 8, 8, 4, 16, 8, 8, 16, 2, 4, 4, 1 };
	double copy, rate;
	long hits = 0;

	px_repr_native(&us);
	in = calloc(1, SEG);
	out = calloc(2, SEG);
	if (!in || !out)
		return 1;
	BEST(copy, SEG, memcpy(out, in, SEG));
	printf("memcpy of %u KiB: %.2f GB/s\n", SEG >> 10, copy);
	from("s390x", &s390x, &us, copy);
	from("i386", &i386, &us, copy);
	from("arm64", &arm, &us, copy);
	mixed("s390x", &s390x, &us, copy);
	from("to arm64", &us, &arm, copy);
	from("to i386", &us, &i386, copy);
	BEST(rate, 1000000, for (int i = 0; i < 1000000; i++) hits += any && no_site);
	printf("alike: %.2f ns for each message, to see that there is nothing to convert; nothing for each "
	       "element\n",
		1 / rate + (double)hits);
	free(in);
	free(out);
	return 0;
}
