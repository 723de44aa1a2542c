/* auto_codec_test.c: `compress: auto` on a simulated link: real segments, really packed for their sizes, but with modelled
 * times of compressing, so that the results do not depend on the machine. */
#include <math.h>
#include <stdlib.h>

#include "auto_codec.h"
#include "residual.h"
#include "test.h"

#define SEG      (256u << 10)
#define VARIANTS 4          /* different segments per kind of data */
#define QUEUE    (2u << 20) /* bytes that may wait for the wire */

enum kind { SMOOTH, POSITIONS, TEXT, RANDOM, KINDS };

static const char *const kind_names[KINDS] = { "smooth", "positions", "text", "random" };
static const unsigned kind_elem[KINDS] = { 8, 8, 1, 8 };

/* Modelled speeds in bytes/ns of a middling machine: lz4, zstd:1, zstd:3; and of the sample. */
static const double kind_speed[KINDS][3] = {
	{ 0.8, 0.45, 0.25 },
	{ 0.6, 0.30, 0.15 },
	{ 0.45, 0.30, 0.18 },
	{ 2.5, 1.2, 0.7 },
};

static uint8_t *data[KINDS][VARIANTS], *room;
static size_t packed[KINDS][VARIANTS][3];
static const int codec_of[3] = { PXD_CODEC_LZ4, PXD_CODEC_ZSTD, PXD_CODEC_ZSTD }, level_of[3] = { 1, 1, 3 };

static double uniform(void)
{
	return (double)(test_random() >> 11) * 0x1p-53;
}

static void fill(enum kind kind, uint8_t *to, int variant)
{
	static const char *const words[] = { "the ", "relay ", "daemon ", "of ", "a ", "site ", "carries ",
		"message ", "to ", "link ", "and ", "rank ", "stream ", "waits ", "frame\n", "never " };
	size_t i = 0;

	switch (kind) {
	case SMOOTH: /* a temperature in steps of 1/64 K on a grid of 32 x 32 x 32 */
		for (; i < SEG / 8; i++) {
			double x = (double)(i % 32) / 32, y = (double)(i / 32 % 32) / 32,
			       z = (double)(i / 1024) / 32;
			double t = 300 + 40 * sin(3 * x + variant) * cos(2 * y) * sin(z + 1);

			t = round(t * 64) / 64;
			memcpy(to + 8 * i, &t, 8);
		}
		break;
	case POSITIONS: /* atoms of a crystal, warm */
		for (; i < SEG / 8; i++) {
			double x = 1.68 * (double)(i / 3 % 64) + 0.05 * (uniform() - 0.5);

			memcpy(to + 8 * i, &x, 8);
		}
		break;
	case TEXT:
		while (i < SEG) {
			const char *w = words[test_random() % 16];

			for (; *w && i < SEG; w++)
				to[i++] = (uint8_t)*w;
		}
		break;
	default:
		for (; i < SEG / 8; i++) {
			uint64_t x = test_random();

			memcpy(to + 8 * i, &x, 8);
		}
	}
}

static struct pxd_codec *codec;

static bool prepare(void)
{
	if (room)
		return true;
	codec = pxd_codec_new();
	room = malloc(SEG);
	if (!codec || !room)
		return false;
	for (int k = 0; k < KINDS; k++)
		for (int v = 0; v < VARIANTS; v++) {
			data[k][v] = malloc(SEG);
			if (!data[k][v])
				return false;
			fill((enum kind)k, data[k][v], v);
			for (int c = 0; c < 3; c++)
				packed[k][v][c] = pxd_codec_pack(codec,
					codec_of[c] |
						(pxd_codec_shuffles(kind_elem[k]) ? PXD_CODEC_SHUFFLE : 0),
					level_of[c], kind_elem[k], data[k][v], SEG, room, SEG);
		}
	return true;
}

struct sim {
	struct pxd_auto *a;
	double rate;    /* bytes/ns */
	double machine; /* times the modelled speeds */
	bool cores;     /* compressing goes on beside the wire */
	bool alone;     /* each segment waits for the arrival of the one before: ping-pong */
	double cpu, wire, reader, now;
	double plain; /* when the last one would have arrived without compression */
	int compressed, segments;
};

static double max2(double a, double b)
{
	return a > b ? a : b;
}

/* One segment through sampling, compressor, wire and decompressor, each doing one at a time. */
static void send_one(struct sim *s, enum kind kind, size_t n)
{
	int v = s->segments++ % VARIANTS, which = -1;
	uint64_t samples = pxd_auto_samples(s->a);
	double queued, ns = 0, ready, bytes = (double)n;
	struct pxd_choice ch;
	size_t m = 0;

	if (s->alone)
		s->now = max2(s->now, s->reader);
	else /* the daemon takes the next segment when there is room in the queue */
		s->now = max2(s->now, s->wire - QUEUE / s->rate);
	queued = max2(s->wire - s->now, 0) * s->rate;
	ch = pxd_auto_choose(
		s->a, codec, data[kind][v], n, kind_elem[kind], s->rate * 1e9, s->cores ? (size_t)queued : 0);
	if (pxd_auto_samples(s->a) != samples)
		s->now += (n < 16384 ? bytes : 16384) / (kind_speed[kind][1] * s->machine);
	ready = s->now;
	if (ch.codec != PXD_CODEC_NONE) {
		for (int c = 0; c < 3; c++)
			if ((ch.codec & 15) == codec_of[c] && ch.level == level_of[c])
				which = c;
		CHECK(which >= 0);
		CHECK_INT((ch.codec & PXD_CODEC_SHUFFLE) != 0, pxd_codec_shuffles(kind_elem[kind]));
		if (which < 0)
			return;
		ns = bytes / (kind_speed[kind][which] * s->machine) + 5000;
		m = (size_t)((double)packed[kind][v][which] * bytes / SEG);
		s->cpu = max2(s->cpu, s->now) + ns;
		if (!s->cores)
			s->now = s->cpu;
		ready = s->cpu;
		pxd_auto_learn(s->a, ch, kind_elem[kind], n, m, (uint64_t)ns);
		if (m) {
			bytes = (double)m;
			s->compressed++;
		}
	}
	s->wire = max2(s->wire, ready) + bytes / s->rate;
	s->reader = max2(s->reader, s->wire) + (m ? ns / 4 : 0);
	s->plain += (double)n / s->rate;
}

/* Time relative to plain. */
static double run(enum kind kind, double rate, double machine, bool cores, bool alone, size_t n, int segments,
	int *compressed)
{
	struct pxd_link_opts o = { .compress = PXD_COMPRESS_AUTO };
	struct sim s = {
		.a = pxd_auto_new(&o), .rate = rate, .machine = machine, .cores = cores, .alone = alone
	};

	if (!CHECK(s.a != NULL))
		return 9;
	for (int i = 0; i < segments; i++)
		send_one(&s, kind, n);
	pxd_auto_free(s.a);
	if (compressed)
		*compressed = s.compressed;
	return s.reader / s.plain;
}

static const double rates[] = { 0.001, 0.00125, 0.0125, 0.05, 0.117, 0.3, 0.6, 1.17, 2 };

TEST(never_later_than_plain)
{
	static const double machines[] = { 0.2, 1, 3 };
	static const size_t lengths[] = { SEG, 65536, 5000 };
	int runs = 0;

	REQUIRE(prepare());
	for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
		for (int k = 0; k < KINDS; k++)
			for (int m = 0; m < 3; m++)
				for (int l = 0; l < 3; l++)
					for (int mode = 0; mode < 4; mode++) {
						int compressed = 0;
						double t = run((enum kind)k, rates[r], machines[m], mode & 1,
							mode & 2, lengths[l], 400, &compressed);

						runs++;
						if (!CHECK(t <= 1.05))
							printf("  %s at %g GB/s, machine %g, %s, %s, %zu "
							       "bytes: %.3f of plain, %d compressed\n",
								kind_names[k], rates[r], machines[m],
								mode & 1 ? "cores" : "no cores",
								mode & 2 ? "alone" : "stream", lengths[l], t,
								compressed);
					}
	printf("  %d runs\n", runs);
}

TEST(short_messages_and_few_segments_are_not_late_either)
{
	REQUIRE(prepare());
	for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
		for (int k = 0; k < KINDS; k++)
			for (int few = 1; few <= 64; few *= 4) {
				double t = run((enum kind)k, rates[r], 1, true, true, SEG, few, NULL);

				if (!CHECK(t <= 1.05))
					printf("  %s at %g GB/s, %d segments: %.3f\n", kind_names[k],
						rates[r], few, t);
			}
}

TEST(slow_links_gain)
{
	static const double least[KINDS] = { 2.5, 1.1, 2.5, 0.95 };

	REQUIRE(prepare());
	for (int k = 0; k < KINDS; k++)
		for (int mode = 0; mode < 4; mode++) {
			double t = run((enum kind)k, 0.00125, mode < 2 ? 1 : 0.2, mode & 1, mode & 2, SEG,
				100, NULL);

			CHECK(1 / t >= least[k]);
			printf("  %s at 1.25 MB/s: %.2f times as fast\n", kind_names[k], 1 / t);
		}
}

/* A gigabit: lz4 or zstd pay where they are fast enough, and are found out in time. */
TEST(fast_links_gain_where_the_machine_is_faster)
{
	REQUIRE(prepare());
	for (size_t r = 3; r < sizeof rates / sizeof *rates; r++)
		for (int k = 0; k < KINDS; k++) {
			int compressed = 0;
			double t = run((enum kind)k, rates[r], 1, true, false, SEG, 1000, &compressed);

			printf("  %s at %g GB/s: %.2f times as fast, %d of 1000 compressed\n", kind_names[k],
				rates[r], 1 / t, compressed);
			if (rates[r] < 0.2 && (k == SMOOTH || k == TEXT))
				CHECK(1 / t > 1.8);
			if (k == RANDOM)
				CHECK_INT(compressed, 0);
		}
}

TEST(incompressible_data_costs_few_samples)
{
	struct pxd_link_opts o = { .compress = PXD_COMPRESS_AUTO };
	struct pxd_auto *a = pxd_auto_new(&o);

	REQUIRE(a && prepare());
	for (int i = 0; i < 640; i++) {
		struct pxd_choice ch =
			pxd_auto_choose(a, codec, data[RANDOM][i % VARIANTS], SEG, 8, 1.25e6, 0);

		CHECK_INT(ch.codec, PXD_CODEC_NONE);
		if (i == 0)
			CHECK_UINT(pxd_auto_samples(a), 1);
	}
	CHECK(pxd_auto_samples(a) <= 17); /* after 1, 2, 4 ... 64, 64 ... segments */
	pxd_auto_free(a);
}

TEST(changing_data_is_followed)
{
	struct pxd_link_opts o = { .compress = PXD_COMPRESS_AUTO };
	struct sim s = { .a = pxd_auto_new(&o), .rate = 0.00125, .machine = 1, .cores = true };

	REQUIRE(s.a && prepare());
	for (int round = 0; round < 5; round++) {
		int before = s.compressed;

		for (int i = 0; i < 200; i++)
			send_one(&s, RANDOM, SEG);
		CHECK_INT(s.compressed, before);
		for (int i = 0; i < 200; i++)
			send_one(&s, SMOOTH, SEG);
		CHECK(s.compressed - before >= 200 - 65);
	}
	CHECK(s.reader < 0.75 * s.plain);
	pxd_auto_free(s.a);
}

TEST(kinds_of_other_element_size_do_not_disturb_each_other)
{
	struct pxd_link_opts o = { .compress = PXD_COMPRESS_AUTO };
	struct sim s = { .a = pxd_auto_new(&o), .rate = 0.00125, .machine = 1, .cores = true };

	REQUIRE(s.a && prepare());
	for (int i = 0; i < 200; i++) {
		send_one(&s, RANDOM, SEG);
		send_one(&s, TEXT, SEG);
	}
	CHECK(s.compressed >= 195 && s.compressed <= 200);
	pxd_auto_free(s.a);
}

/* The link becomes fast, then slow again. */
TEST(changing_rates_are_followed)
{
	struct pxd_link_opts o = { .compress = PXD_COMPRESS_AUTO };
	struct sim s = { .a = pxd_auto_new(&o), .rate = 2, .machine = 1, .cores = true };
	int before;

	REQUIRE(s.a && prepare());
	for (int i = 0; i < 300; i++)
		send_one(&s, POSITIONS, SEG);
	CHECK(s.compressed < 10);
	s.rate = 0.00125;
	before = s.compressed;
	for (int i = 0; i < 100; i++)
		send_one(&s, POSITIONS, SEG);
	CHECK(s.compressed - before >= 99);
	pxd_auto_free(s.a);
}

TEST(unknown_rate_and_tiny_segments_stay_plain)
{
	struct pxd_link_opts o = { .compress = PXD_COMPRESS_AUTO };
	struct pxd_auto *a = pxd_auto_new(&o);

	REQUIRE(a && prepare());
	CHECK_INT(pxd_auto_choose(a, codec, data[SMOOTH][0], SEG, 8, 0, 0).codec, PXD_CODEC_NONE);
	CHECK_INT(pxd_auto_choose(a, codec, data[SMOOTH][0], 1000, 8, 1e6, 0).codec, PXD_CODEC_NONE);
	CHECK_UINT(pxd_auto_samples(a), 0);
	CHECK(pxd_auto_choose(a, codec, data[SMOOTH][0], SEG, 8, 1e6, 0).codec != PXD_CODEC_NONE);
	pxd_auto_free(a);
	pxd_auto_free(NULL);
}

/* The owner may choose for many segments before the worker has told it of the first. */
TEST(late_answers_do_no_harm)
{
	struct pxd_link_opts o = { .compress = PXD_COMPRESS_AUTO };
	struct pxd_auto *a = pxd_auto_new(&o);
	struct pxd_choice ch[20];

	REQUIRE(a && prepare());
	for (int i = 0; i < 20; i++)
		ch[i] = pxd_auto_choose(a, codec, data[SMOOTH][0], SEG, 8, 1e6, 0);
	for (int i = 0; i < 20; i++) {
		CHECK(ch[i].codec != PXD_CODEC_NONE);
		pxd_auto_learn(a, ch[i], 8, SEG, 0, 1000000); /* they did not shrink after all */
	}
	CHECK_INT(pxd_auto_choose(a, codec, data[SMOOTH][0], SEG, 8, 1e6, 0).codec, PXD_CODEC_NONE);
	CHECK(pxd_auto_choose(a, codec, data[SMOOTH][0], SEG, 8, 1e6, 0).codec != PXD_CODEC_NONE);
	pxd_auto_free(a);
}

/* Who asks first whether a segment stays plain whatever is in it gets the choices of who does not ask. */
TEST(what_is_left_without_a_look_is_what_a_look_leaves)
{
	static const double bytes_s[] = { 1e6, 30e6, 125e6, 400e6, 1e9 };
	struct pxd_link_opts o = { .compress = PXD_COMPRESS_AUTO };
	int asked = 0, left = 0;

	REQUIRE(prepare());
	for (enum kind kind = 0; kind < KINDS; kind++) {
		for (size_t r = 0; r < sizeof bytes_s / sizeof *bytes_s; r++) {
			struct pxd_auto *a = pxd_auto_new(&o), *b = pxd_auto_new(&o);

			REQUIRE(a && b);
			for (int i = 0; i < 400; i++) {
				size_t n = i % 3 ? 41472 : 4096, queued = i % 5 ? 0 : 100000, m = 0;
				int v = i % VARIANTS;
				const uint8_t *in = data[kind][v];
				struct pxd_choice x, y = { .codec = PXD_CODEC_NONE };

				x = pxd_auto_choose(a, codec, in, n, kind_elem[kind], bytes_s[r], queued);
				if (!pxd_auto_leaves(b, n, kind_elem[kind], bytes_s[r], queued))
					y = pxd_auto_choose(
						b, codec, in, n, kind_elem[kind], bytes_s[r], queued);
				else
					left++;
				asked++;
				CHECK_INT(y.codec, x.codec);
				CHECK_INT(y.level, x.level);
				for (int c = 0; c < 3; c++)
					if ((x.codec & 15) == codec_of[c] && x.level == level_of[c])
						m = (size_t)((double)packed[kind][v][c] * (double)n / SEG);
				pxd_auto_learn(a, x, kind_elem[kind], n, m, n);
				pxd_auto_learn(b, y, kind_elem[kind], n, m, n);
			}
			CHECK_UINT(pxd_auto_samples(b), pxd_auto_samples(a));
			pxd_auto_free(a);
			pxd_auto_free(b);
		}
	}
	CHECK(left > asked / 10 && left < asked);
	printf("  %d of %d left without a look\n", left, asked);
}

/* So many of n predicted segments, eight of 41 KB at a time over 1.25 MB/s, are encoded as residuals when that takes ns, and each every-th one late. */
static int residuals(struct pxd_auto *a, int n, uint64_t ns, int every, uint64_t late)
{
	const struct pxd_outlook o = { .zstd = 0.74, .residual = 0.58 };
	int found = 0;

	for (int i = 0; i < n; i++) {
		struct pxd_choice ch = pxd_auto_choose_known(a, &o, 41472, 8, 1.25e6, i % 8 ? 24000 : 0);

		found += ch.codec == PXD_CODEC_RESIDUAL;
		pxd_auto_learn(a, ch, 8, 41472, ch.codec == PXD_CODEC_RESIDUAL ? 24000 : 31000,
			every && i % every == every - 1 ? late : ns);
	}
	return found;
}

/* One that has found out in a good time that residuals pay. */
static struct pxd_auto *experienced(void)
{
	struct pxd_link_opts o = { .compress = PXD_COMPRESS_AUTO };
	struct pxd_auto *a = pxd_auto_new(&o);

	if (a)
		residuals(a, 64, 1000000, 0, 0);
	return a;
}

TEST(a_worker_that_is_late_now_and_then_says_little)
{
	struct pxd_auto *a = experienced();
	int found;

	REQUIRE(a);
	found = residuals(a, 1000, 1000000, 16, 100000000);
	printf("  %d of 1000\n", found);
	CHECK(found > 990);
	pxd_auto_free(a);
}

TEST(a_bad_time_is_forgotten)
{
	for (uint64_t ms = 5; ms <= 500; ms *= 10) {
		struct pxd_auto *a = experienced();
		int found;

		REQUIRE(a);
		found = residuals(a, 400, ms * 1000000, 0, 0);
		printf("  %d of 400 of %d ms each", found, (int)ms);
		CHECK(ms < 50 || found < 100);
		residuals(a, 160, 1000000, 0, 0);
		found = residuals(a, 100, 1000000, 0, 0);
		printf(", afterwards %d of 100\n", found);
		CHECK(found > 90);
		pxd_auto_free(a);
	}
}

TEST(fixed_codec_is_kept_except_where_nothing_shrinks)
{
	struct pxd_link_opts o = { .compress = PXD_COMPRESS_ZLIB, .compress_level = 6 };
	struct pxd_auto *a = pxd_auto_new(&o);
	struct pxd_choice ch;
	int used = 0;

	REQUIRE(a && prepare());
	for (int i = 0; i < 100; i++) { /* at any rate, known or not */
		ch = pxd_auto_choose(a, codec, data[SMOOTH][0], SEG, 8, i % 2 ? 2e9 : 0, 0);
		CHECK_INT(ch.codec, PXD_CODEC_ZLIB | PXD_CODEC_SHUFFLE);
		CHECK_INT(ch.level, 6);
		pxd_auto_learn(a, ch, 8, SEG, SEG / 3, 1000000);
	}
	CHECK_INT(pxd_auto_choose(a, codec, data[TEXT][0], SEG, 1, 1e6, 0).codec, PXD_CODEC_ZLIB);
	for (int i = 0; i < 640; i++) {
		ch = pxd_auto_choose(a, codec, data[RANDOM][0], SEG, 8, 1e6, 0);
		if (ch.codec == PXD_CODEC_NONE)
			continue;
		used++;
		pxd_auto_learn(a, ch, 8, SEG, 0, 1000000);
	}
	CHECK(used <= 17);
	CHECK_UINT(pxd_auto_samples(a), 0);
	pxd_auto_free(a);
	o.compress = PXD_COMPRESS_NONE;
	a = pxd_auto_new(&o);
	REQUIRE(a);
	CHECK_INT(pxd_auto_choose(a, codec, data[SMOOTH][0], SEG, 8, 1e6, 0).codec, PXD_CODEC_NONE);
	pxd_auto_free(a);
}
