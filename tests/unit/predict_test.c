/* predict_test.c: predicted segments come back to the last bit, whatever the numbers are; golden residuals. */
#include "ieee.h" /* the arithmetic here is, too */

#include <math.h>
#include <stdlib.h>

#include "crc.h"
#include "endian.h"
#include "err.h"
#include "learn.h"
#include "seg_code.h"
#include "test.h"
#include "wave.h"

#define N        4096
#define HOST_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) /* as the doubles here are */

static const uint64_t odd64[] = { 0, 0x8000000000000000u, 0x7ff0000000000000u, 0xfff0000000000000u, 1,
	0x8000000000000001u, 0x000fffffffffffffu, 0x7ff8000000000000u, 0x7ff0dead00beef01u,
	0xfff4000000000123u, 0xffffffffffffffffu, 0x3ff0000000000000u };

static void fill_odd(uint8_t *to, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t v = test_random() % 3 ? odd64[test_random() % 12] : test_random();

		memcpy(to + i, &v, n - i < 8 ? n - i : 8);
	}
}

/* Every predictor that a head can name, with some weights; but for those that learn. */
static bool next(struct pxd_predictor *p)
{
	static const float weights[] = { 0, 1, -3, 0.5f, -1e-3f, 1e30f, -7.25f };
	static unsigned k;
	uint8_t head[PXD_PREDICT_HEAD_MAX] = { 0 };

	for (; k < 256 * 8 * (1 + PXD_PREDICT_MORE); k++) {
		unsigned how = k / 8 % 256;

		head[0] = (uint8_t)how;
		head[1] = (uint8_t)(k % 8);
		head[2] = how < 128 ? 0 : (uint8_t)(2 + k % 5);
		head[3] = (uint8_t)(k / 8 / 256);
		if (pxd_predict_head_get(head, sizeof head, p) > 0 && !pxd_predict_learnt(p)) {
			for (int i = 0; head[2] && i < p->nrefs - 1; i++)
				p->weight[i] = weights[(k + (unsigned)i) % 7];
			k++;
			return true;
		}
	}
	k = 0;
	return false;
}

TEST(every_predictor_gives_back_every_number)
{
	static uint8_t in[N], ref[PXD_PREDICT_REFS][N], out[N];
	static const size_t sizes[] = { 1, 3, 4, 7, 8, 9, 31, 64, 1000, 1001, N };
	const uint8_t *refs[] = { ref[0], ref[1], ref[2], ref[3], ref[4], ref[5] };
	struct pxd_predictor p;
	int predictors = 0;

	while (next(&p)) {
		predictors++;
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			size_t n = sizes[s];

			for (unsigned word = 4; word <= 8; word += 4) {
				fill_odd(in, n);
				for (int k = 0; k < PXD_PREDICT_REFS; k++)
					fill_odd(ref[k], n);
				pxd_predict_apply(&p, word, in, refs, n, out);
				pxd_predict_undo(&p, word, out, refs, n);
				if (!CHECK_MEM(out, in, n))
					printf("  how %d stride %d word %u, %zu bytes\n", p.how, p.stride,
						word, n);
			}
		}
	}
	CHECK_INT(predictors, 350 + 2 * (1 + 3 * 7) + PXD_PREDICT_MORE * 7 * (16 + 2));
}

/* The image of the weighted sum of number i of the references, of their bits v[0 .. nrefs). */
static uint64_t weighted(const struct pxd_predictor *p, unsigned word, const uint64_t *bits)
{
	double v[PXD_PREDICT_REFS] = { 0 }, sum;
	uint64_t got;
	float f;

	for (int k = 0; k < p->nrefs; k++) {
		uint32_t small = (uint32_t)bits[k];

		memcpy(&f, &small, 4);
		memcpy(&v[k], &bits[k], 8);
		v[k] = word == 4 ? f : v[k];
	}
	sum = v[0];
	for (int k = 1; k < p->nrefs; k++) {
		volatile double product = (v[k] - v[0]) * p->weight[k - 1];

		sum += product;
	}
	f = (float)sum;
	if (!(word == 4 ? isfinite(f) : isfinite(sum)))
		return bits[0];
	if (word == 4) {
		uint32_t small;

		memcpy(&small, &f, 4);
		return small;
	}
	memcpy(&got, &sum, 8);
	return got;
}

static uint64_t ordered(uint64_t v, uint64_t sign)
{
	return v & sign ? ~v : v | sign;
}

/* What PROTOCOL.md says, in numbers of any size, one at a time. */
static uint64_t residual(
	const struct pxd_predictor *p, unsigned word, const uint8_t *in, const uint8_t *const *ref, size_t i)
{
	uint64_t mask = word == 4 ? UINT32_MAX : UINT64_MAX, sign = mask ^ mask >> 1, d = 0;
	int64_t binomial = 1; /* of changing signs */

	for (size_t k = 0; k <= (size_t)pxd_predict_space(p) && k * p->stride <= i; k++) {
		uint64_t v[1 + PXD_PREDICT_REFS] = { 0 }, bits[1 + PXD_PREDICT_REFS] = { 0 };

		for (int j = 0; j <= p->nrefs; j++) {
			const uint8_t *at = (j ? ref[j - 1] : in) + (i - k * p->stride) * word;

			for (unsigned b = 0; b < word; b++)
				v[j] |= (uint64_t)at[p->how & PXD_PREDICT_BIG ? word - 1 - b : b] << 8 * b;
			bits[j] = v[j];
			if (p->how & PXD_PREDICT_FLOAT)
				v[j] = ordered(v[j], sign);
		}
		if (p->how & PXD_PREDICT_XOR)
			return v[0] ^ v[1];
		if (p->how & PXD_PREDICT_WEIGHTED)
			v[0] -= ordered(weighted(p, word, bits + 1), sign);
		else if (pxd_predict_time(p) == 1)
			v[0] -= v[1];
		if (pxd_predict_time(p) == 2)
			v[0] -= 2 * v[1] - v[2];
		if (pxd_predict_time(p) == 3)
			v[0] -= 3 * v[1] - 3 * v[2] + v[3];
		d += (uint64_t)binomial * v[0];
		binomial = -binomial * (pxd_predict_space(p) - (int64_t)k) / ((int64_t)k + 1);
	}
	d &= mask;
	return (d << 1 ^ (d & sign ? mask : 0)) & mask;
}

TEST(residuals_are_those_of_the_document)
{
	static uint8_t in[512], ref[PXD_PREDICT_REFS][512], out[512];
	const uint8_t *refs[] = { ref[0], ref[1], ref[2], ref[3], ref[4], ref[5] };
	struct pxd_predictor p;

	fill_odd(in, sizeof in);
	for (int k = 0; k < PXD_PREDICT_REFS; k++)
		fill_odd(ref[k], sizeof in);
	while (next(&p)) {
		for (unsigned word = 4; word <= 8; word += 4) {
			pxd_predict_apply(&p, word, in, refs, sizeof in, out);
			for (size_t i = 0; i < sizeof in / word; i++) {
				uint64_t want = residual(&p, word, in, refs, i);
				uint64_t got = word == 4 ? px_get32(out + 4 * i) : px_get64(out + 8 * i);

				if (!CHECK(got == want)) {
					printf("  how %d stride %d word %u number %zu\n", p.how, p.stride,
						word, i);
					return;
				}
			}
		}
	}
}

TEST(heads_that_mean_nothing_are_refused)
{
	static const uint8_t bad[][PXD_PREDICT_HEAD_MAX] = {
		{ 0 },                                                    /* nothing is predicted */
		{ 4 },                                                    /* a neighbour without a stride */
		{ 1, 1 },                                                 /* a stride without a neighbour */
		{ 0x20 },                                                 /* xor without a reference */
		{ 0x22 },                                                 /* xor with a line */
		{ 0x25, 1 },                                              /* and with a neighbour */
		{ 0x31 },                                                 /* and of floating-point images */
		{ 0x81, 0, 2 },                                           /* weights without order */
		{ 0x92, 0, 2 },                                           /* of a line */
		{ 0xb1, 0, 2 },                                           /* and xor */
		{ 0x90, 0, 2 },                                           /* of nothing */
		{ 0x91, 0, 1 },                                           /* of one reference */
		{ 0x91, 0, 7 },                                           /* of too many */
		{ 0x91, 0, 2, 1 },                                        /* more neighbours, and none */
		{ 0x18, 1, 0, 1 },                                        /* than two */
		{ 0x1c, 1, 0, PXD_PREDICT_MORE + 1 },                     /* than there may be */
		{ 0x91, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3 }, /* a reference that is not used */
		{ 0x91, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80,
			0x7f },                                           /* infinite */
		{ 0xb1, 0, 2, 9 },                                        /* learnt without a stride */
		{ 0xb1, 1, 2, 0 },                                        /* and nothing of it is kept */
		{ 0xb1, 1, 1, 9 },                                        /* of one reference */
		{ 0xb1, 1, 5, 9 },                                        /* of too many */
		{ 0xb2, 1, 2, 9 },                                        /* of a line */
		{ 0xb5, 1, 2, 9 },                                        /* with a neighbour */
		{ 0xa1, 1, 2, 9 },                                        /* without order */
		{ 0xb1, 1, 2, 9, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3 }, /* a reference too many */
		{ 0xb1, 2, 2, 9, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 8 }, /* short rows */
		{ 1, 0, 2 },                               /* a number of references without weights */
		{ 1, 0, 1 },                               /* not zero */
		{ 4, 1, 0, 0, 0, 0, 0, 0, 1 },             /* a reference that is not used */
		{ 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1 }, /* another one */
	};
	struct pxd_predictor p;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (!CHECK_INT(pxd_predict_head_get(bad[i], sizeof bad[i], &p), PX_EPROTO))
			printf("  case %zu\n", i);
	CHECK_INT(pxd_predict_head_get(bad[0], PXD_PREDICT_HEAD - 1, &p), PX_EPROTO);
}

static void fill_as(int kind, uint8_t *to, size_t n, int t)
{
	static double x[N];

	wave(x, N, t);
	if (kind == 1)
		for (int i = 0; i < N; i++)
			x[i] = i % 7 ? x[i] * 1e300 * (i % 2 ? -1 : 1) : t * 5e-324;
	if (kind == 2)
		fill_odd(to, n);
	else
		memcpy(to, x, n);
	if (kind == 3)
		memset(to, 0, n);
}

TEST(what_is_learnt_gives_back_every_number)
{
	static uint8_t in[N], ref[PXD_PREDICT_LESSON][N], out[N], other[N];
	struct pxd_lesson *lesson;
	static const uint8_t keeps[] = { 1, 100, 255 }, bigs[] = { 0, PXD_PREDICT_BIG };
	static const size_t sizes[] = { 1, 8, 200, 1203, N };
	const uint8_t *refs[] = { ref[0], ref[1], ref[2], ref[3] };

	for (unsigned k = 0; k < 4 * 5 * 2 * 2 * 2 * 3; k++) {
		int kind = (int)(k % 4);
		size_t n = sizes[k / 4 % 5];
		unsigned word = k / 20 % 2 ? 4 : 8;
		struct pxd_predictor p = { .how = PXD_PREDICT_LEARNT | PXD_PREDICT_FLOAT | 1 |
						  bigs[k / 40 % 2],
			.stride = (uint8_t)(1 + k % 3),
			.keep = keeps[k / 160],
			.row = n > 200 && k / 80 % 2 ? 16 : 0,
			.nrefs = 2 + (int)(k / 4 % 3) };

		fill_as(kind, in, n, 9);
		for (int i = 0; i < PXD_PREDICT_LESSON; i++)
			fill_as(kind, ref[i], n, 8 - i);
		CHECK_INT(pxd_learn_residual(&p, word, NULL, in, refs, n, out), 0);
		CHECK_INT(pxd_lesson_make(&p, word, refs, n, &lesson), 0);
		CHECK_INT(pxd_learn_residual(&p, word, lesson, in, refs, n, other), 0);
		CHECK_MEM(other, out, n);
		CHECK_INT(pxd_learn_restore(&p, word, lesson, out, refs, n), 0);
		pxd_lesson_free(lesson);
		if (!CHECK_MEM(out, in, n))
			printf("  case %u: %zu bytes\n", k, n);
		p.row = (uint32_t)(n / word) + 1;
		CHECK_INT(pxd_learn_residual(&p, word, NULL, in, refs, n, out), PX_EPROTO);
	}
}

/* As a library does that was built with -ffast-math; with rounding, which every machine has, as well. */
static void spoil(void)
{
	fesetround(FE_UPWARD);
#ifdef __SSE__
	__builtin_ia32_ldmxcsr(
		__builtin_ia32_stmxcsr() | 0x8040); /* denormal numbers are 0, as operands and as results */
#endif
}

TEST(what_a_library_makes_of_arithmetic_does_no_harm)
{
	static double in[512], step[PXD_PREDICT_LESSON][512];
	static uint8_t out[sizeof in];
	const uint8_t *refs[] = { (uint8_t *)step[0], (uint8_t *)step[1], (uint8_t *)step[2],
		(uint8_t *)step[3] };
	struct pxd_predictor p[] = { { .how = PXD_PREDICT_WEIGHTED | PXD_PREDICT_FLOAT | 1,
					     .nrefs = 4,
					     .weight = { 1.3f, -0.7f, 0.2f } },
		{ .how = PXD_PREDICT_LEARNT | PXD_PREDICT_FLOAT | 1, .stride = 1, .keep = 100, .nrefs = 4 } };

	for (int i = 0; i < 512; i++) {
		in[i] = exp(-700 - i * 0.1) * sin(i); /* down to what is denormal, and to 0 */
		for (int k = 0; k < PXD_PREDICT_LESSON; k++)
			step[k][i] = in[i] * (1 + 0.01 * (k + 1) * cos(3.0 * i));
	}
	for (int k = 0; k < 2; k++) {
		if (HOST_BIG)
			p[k].how |= PXD_PREDICT_BIG;
		CHECK_INT(pxd_foresee(&p[k], 8, NULL, (uint8_t *)in, refs, sizeof in, out), 0);
		spoil();
		CHECK_INT(pxd_foreseen(&p[k], 8, NULL, out, refs, sizeof in), 0);
		fesetenv(FE_DFL_ENV);
		CHECK_MEM(out, in, sizeof in);
	}
}

TEST(damage_behind_the_codec_is_noticed)
{
	static double in[N], before[N];
	static uint8_t packed[sizeof in], scratch[sizeof in], out[sizeof in];
	const uint8_t *refs[PXD_PREDICT_REFS] = { (uint8_t *)before, NULL };
	struct pxd_predictor p = { .how = 1 | PXD_PREDICT_FLOAT, .nrefs = 1, .ref = { 7 } };
	struct pxd_codec *c = pxd_codec_new();
	int codec = PXD_CODEC_ZSTD | PXD_CODEC_SHUFFLE;
	size_t m;

	REQUIRE(c);
	wave(in, N, 10);
	wave(before, N, 9);
	m = pxd_seg_encode(
		c, codec, 1, 8, &p, NULL, refs, (uint8_t *)in, sizeof in, scratch, packed, sizeof packed);
	REQUIRE(m > 0);
	CHECK_INT(pxd_seg_decode(c, codec | PXD_CODEC_PREDICT, 8, NULL, refs, packed, m, out, sizeof out), 0);
	CHECK_MEM(out, in, sizeof in);
	before[N / 2] += 1; /* not the segment that was meant */
	CHECK_INT(pxd_seg_decode(c, codec | PXD_CODEC_PREDICT, 8, NULL, refs, packed, m, out, sizeof out),
		PX_EPROTO);
	before[N / 2] -= 1;
	packed[4] ^= 1;
	CHECK_INT(pxd_seg_decode(c, codec | PXD_CODEC_PREDICT, 8, NULL, refs, packed, m, out, sizeof out),
		PX_EPROTO);
	CHECK_INT(pxd_seg_decode(c, codec | PXD_CODEC_PREDICT, 1, NULL, refs, packed, m, out, sizeof out),
		PX_EPROTO);
	CHECK_INT(pxd_seg_decode(c, PXD_CODEC_PREDICT, 8, NULL, refs, packed, m, out, sizeof out), PX_EPROTO);
	pxd_codec_free(c);
}

TEST(residuals_coded_by_length_come_back)
{
	static uint8_t in[N], packed[N], out[N], length[N];

	for (int round = 0; round < 4000; round++) {
		unsigned word = round % 2 ? 4 : 8, most = 1 + (unsigned)round / 8 % (8 * word);
		size_t n = (size_t)(test_random() % N), m;
		struct pxd_guide g = { .stride = 1 + (uint32_t)round % 3,
			.row = round % 11 < 5 ? 0 : 13 + (uint32_t)(test_random() % N),
			.length = round % 13 < 5 ? NULL : length };

		for (size_t i = 0; i < n; i++) {
			in[i] = (uint8_t)test_random();
			length[i] = (uint8_t)(test_random() % (8 * word + 1));
		}
		for (size_t i = 0; i + word <= n; i += word) {
			unsigned bits = (unsigned)(test_random() % (round % 5 ? most + 1 : 8 * word + 1));
			uint64_t v = bits ? test_random() >> (64 - bits) : 0;

			v = round % 7 ? v : test_random() % 2 ? UINT64_MAX : v & 1; /* -2^63 among them */
			memcpy(in + i, &v, word);
		}
		m = pxd_residual_pack(word, &g, in, n, packed, n);
		if (m == 0)
			continue;
		CHECK(m < n);
		if (!CHECK_INT(pxd_residual_unpack(word, &g, packed, m, out, n), 0) || !CHECK_MEM(out, in, n))
			printf("  round %d: %zu bytes\n", round, n);
		CHECK_INT(pxd_residual_pack(word, &g, in, n, out, m), m);
		CHECK_INT(pxd_residual_pack(word, &g, in, n, out, m - 1), 0);
		CHECK_INT(pxd_residual_unpack(word, &g, packed, m - 1, out, n), PX_EPROTO);
	}
}
