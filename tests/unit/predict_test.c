/* predict_test.c: predicted segments come back to the last bit, whatever the numbers are; golden residuals; what the forecast chooses. */
#include <math.h>
#include <stdlib.h>

#include "crc.h"
#include "endian.h"
#include "err.h"
#include "forecast.h"
#include "seg_code.h"
#include "test.h"

#define N 4096

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

/* Every predictor that a head can name. */
static bool next(struct pxd_predictor *p)
{
	static unsigned k;
	uint8_t head[PXD_PREDICT_HEAD] = { 0 };

	for (; k < 128 * 8; k++) {
		head[0] = (uint8_t)(k / 8);
		head[1] = (uint8_t)(k % 8);
		if (pxd_predict_head_get(head, sizeof head, p) == 0) {
			k++;
			return true;
		}
	}
	k = 0;
	return false;
}

TEST(every_predictor_gives_back_every_number)
{
	static uint8_t in[N], ref[3][N], out[N];
	static const size_t sizes[] = { 1, 3, 4, 7, 8, 9, 31, 64, 1000, 1001, N };
	const uint8_t *refs[] = { ref[0], ref[1], ref[2] };
	struct pxd_predictor p;
	int predictors = 0;

	while (next(&p)) {
		predictors++;
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
			size_t n = sizes[s];

			for (unsigned word = 4; word <= 8; word += 4) {
				fill_odd(in, n);
				fill_odd(ref[0], n);
				fill_odd(ref[1], n);
				fill_odd(ref[2], n);
				pxd_predict_apply(&p, word, in, refs, n, out);
				pxd_predict_undo(&p, word, out, refs, n);
				if (!CHECK_MEM(out, in, n))
					printf("  how %d stride %d word %u, %zu bytes\n", p.how, p.stride,
						word, n);
			}
		}
	}
	CHECK_INT(predictors, 350);
}

/* What PROTOCOL.md says, in numbers of any size, one at a time. */
static uint64_t residual(
	const struct pxd_predictor *p, unsigned word, const uint8_t *in, const uint8_t *const *ref, size_t i)
{
	uint64_t mask = word == 4 ? UINT32_MAX : UINT64_MAX, sign = mask ^ mask >> 1, d = 0;
	static const int row[4][4] = { { 1 }, { 1, -1 }, { 1, -2, 1 }, { 1, -3, 3, -1 } };

	for (size_t k = 0; k <= (size_t)pxd_predict_space(p) && k * p->stride <= i; k++) {
		uint64_t v[4];

		for (int j = 0; j <= pxd_predict_time(p); j++) {
			const uint8_t *at = (j ? ref[j - 1] : in) + (i - k * p->stride) * word;

			v[j] = 0;
			for (unsigned b = 0; b < word; b++)
				v[j] |= (uint64_t)at[p->how & PXD_PREDICT_BIG ? word - 1 - b : b] << 8 * b;
			if (p->how & PXD_PREDICT_FLOAT)
				v[j] = v[j] & sign ? ~v[j] : v[j] | sign;
		}
		if (p->how & PXD_PREDICT_XOR)
			return v[0] ^ v[1];
		if (pxd_predict_time(p) == 1)
			v[0] -= v[1];
		if (pxd_predict_time(p) == 2)
			v[0] -= 2 * v[1] - v[2];
		if (pxd_predict_time(p) == 3)
			v[0] -= 3 * v[1] - 3 * v[2] + v[3];
		d += (uint64_t)row[pxd_predict_space(p)][k] * v[0];
	}
	d &= mask;
	return (d << 1 ^ (d & sign ? mask : 0)) & mask;
}

TEST(residuals_are_those_of_the_document)
{
	static uint8_t in[512], ref[3][512], out[512];
	const uint8_t *refs[] = { ref[0], ref[1], ref[2] };
	struct pxd_predictor p;

	fill_odd(in, sizeof in);
	fill_odd(ref[0], sizeof in);
	fill_odd(ref[1], sizeof in);
	fill_odd(ref[2], sizeof in);
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
	static const uint8_t bad[][PXD_PREDICT_HEAD] = {
		{ 0 },                                     /* nothing is predicted */
		{ 4 },                                     /* a neighbour without a stride */
		{ 1, 1 },                                  /* a stride without a neighbour */
		{ 0x20 },                                  /* xor without a reference */
		{ 0x22 },                                  /* xor with a line */
		{ 0x25, 1 },                               /* and with a neighbour */
		{ 0x31 },                                  /* and of floating-point images */
		{ 0x81 },                                  /* a bit that is not there */
		{ 1, 0, 1 },                               /* not zero */
		{ 4, 1, 0, 0, 0, 0, 0, 0, 1 },             /* a reference that is not used */
		{ 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1 }, /* another one */
	};
	struct pxd_predictor p;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (!CHECK_INT(pxd_predict_head_get(bad[i], PXD_PREDICT_HEAD, &p), PX_EPROTO))
			printf("  case %zu\n", i);
	CHECK_INT(pxd_predict_head_get(bad[0], PXD_PREDICT_HEAD - 1, &p), PX_EPROTO);
}

static void wave(double *to, size_t n, double t)
{
	for (size_t i = 0; i < n; i++)
		to[i] = 300 + 40 * sin(0.01 * (double)i + 0.1 * t) + exp(-t / 20) * cos(0.3 * (double)i);
}

TEST(damage_behind_the_codec_is_noticed)
{
	static double in[N], before[N];
	static uint8_t packed[sizeof in], scratch[sizeof in], out[sizeof in];
	const uint8_t *refs[PXD_PREDICT_REFS] = { (uint8_t *)before, NULL };
	struct pxd_predictor p = { .how = 1 | PXD_PREDICT_FLOAT, .ref = { 7 } };
	struct pxd_codec *c = pxd_codec_new();
	int codec = PXD_CODEC_ZSTD | PXD_CODEC_SHUFFLE;
	size_t m;

	REQUIRE(c);
	wave(in, N, 10);
	wave(before, N, 9);
	m = pxd_seg_encode(
		c, codec, 1, 8, &p, refs, (uint8_t *)in, sizeof in, scratch, packed, sizeof packed);
	REQUIRE(m > 0);
	CHECK_INT(pxd_seg_decode(c, codec | PXD_CODEC_PREDICT, 8, refs, packed, m, out, sizeof out), 0);
	CHECK_MEM(out, in, sizeof in);
	before[N / 2] += 1; /* not the segment that was meant */
	CHECK_INT(
		pxd_seg_decode(c, codec | PXD_CODEC_PREDICT, 8, refs, packed, m, out, sizeof out), PX_EPROTO);
	before[N / 2] -= 1;
	packed[4] ^= 1;
	CHECK_INT(
		pxd_seg_decode(c, codec | PXD_CODEC_PREDICT, 8, refs, packed, m, out, sizeof out), PX_EPROTO);
	CHECK_INT(
		pxd_seg_decode(c, codec | PXD_CODEC_PREDICT, 1, refs, packed, m, out, sizeof out), PX_EPROTO);
	CHECK_INT(pxd_seg_decode(c, PXD_CODEC_PREDICT, 8, refs, packed, m, out, sizeof out), PX_EPROTO);
	pxd_codec_free(c);
}

/* What the forecast makes of 20 steps of a flow: kind of the last predictor, or -1; *ratio: what it expects. */
static int chosen(void (*fill)(double *to, size_t n, double t), bool refs, double *ratio)
{
	static double step[4][N];
	struct pxd_forecast *f = pxd_forecast_new();
	struct pxd_codec *c = pxd_codec_new();
	struct pxd_predictor p = { 0 };
	bool with = false;

	for (int t = 0; f && c && t < 20; t++) {
		int back = refs ? (t < 3 ? t : 3) : 0;
		struct pxd_scene s = { .flow = 5,
			.in = (uint8_t *)step[t % 4],
			.n = sizeof step[0],
			.elem = 8,
			.nrefs = back,
			.ref = { (uint8_t *)step[(t + 3) % 4], (uint8_t *)step[(t + 2) % 4],
				(uint8_t *)step[(t + 1) % 4] } };

		fill(step[t % 4], N, t);
		with = pxd_forecast_choose(f, c, &s, &p, ratio);
	}
	CHECK(f && pxd_forecast_looks(f) < 10);
	pxd_forecast_free(f);
	pxd_codec_free(c);
	return with ? (int)pxd_predict_kind(&p) : -1;
}

static void noise(double *to, size_t n, double t)
{
	(void)t;
	for (size_t i = 0; i < n; i++) {
		uint64_t v = test_random();

		memcpy(to + i, &v, 8);
	}
}

static void still(double *to, size_t n, double t)
{
	(void)t;
	for (size_t i = 0; i < n; i++)
		to[i] = sin((double)(i * i % 1009));
}

static void converging(double *to, size_t n, double t)
{
	for (size_t i = 0; i < n; i++)
		to[i] = sin((double)(i * i % 1009)) * (1 + 1e-6 * exp(-t));
}

static void line(double *to, size_t n, double t)
{
	for (size_t i = 0; i < n; i++)
		to[i] = 1 + (double)(i * i % 1009) / 1024 + t * (double)(1 + i * 7 % 13) / 16384;
}

TEST(the_forecast_finds_what_the_data_is_like)
{
	double ratio;

	CHECK_INT(chosen(noise, true, &ratio), -1);
	CHECK_INT(chosen(still, false, &ratio), -1);
	CHECK(chosen(still, true, &ratio) >= PXD_KIND_PREVIOUS && ratio < 0.02);
	CHECK(chosen(converging, true, &ratio) >= PXD_KIND_PREVIOUS && ratio < 0.5);
	CHECK(chosen(line, true, &ratio) >= PXD_KIND_LINEAR && ratio < 0.2);
	CHECK_INT(chosen(wave, false, &ratio), PXD_KIND_NEIGHBOUR);
	CHECK(ratio < 0.6);
}
