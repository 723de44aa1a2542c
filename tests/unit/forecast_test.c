/* forecast_test.c: which predictor is found for which numbers, and what it is expected to bring. */
#include "ieee.h" /* the arithmetic here is, too */

#include <math.h>
#include <string.h>

#include "forecast.h"
#include "predict.h"
#include "residual.h"
#include "test.h"
#include "wave.h"

#define N        4096
#define HOST_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) /* as the doubles here are */

/* What the forecast makes of 20 steps of a flow: kind of the last predictor, or -1; *ratio: what it expects. */
static int chosen_at(
	bool slow, unsigned stride, void (*fill)(double *to, size_t n, double t), bool refs, double *ratio)
{
	static double step[8][N];
	struct pxd_forecast *f = pxd_forecast_new();
	struct pxd_codec *c = pxd_codec_new();
	struct pxd_predictor p = { 0 };
	bool with = false;

	for (int t = 0; f && c && t < 20; t++) {
		struct pxd_scene s = { .flow = 5,
			.in = (uint8_t *)step[t % 8],
			.n = sizeof step[0],
			.elem = 8,
			.big = HOST_BIG,
			.stride = stride,
			.slow = slow,
			.nrefs = !refs                  ? 0
				 : t < PXD_PREDICT_REFS ? t
							: PXD_PREDICT_REFS,
			.back = 1 };
		struct pxd_outlook o;

		for (int i = 0; i < s.nrefs; i++)
			s.ref[i] = (uint8_t *)step[(t + 7 - i) % 8];
		fill(step[t % 8], N, t);
		with = pxd_forecast_choose(f, c, &s, &p, &o);
		*ratio = o.zstd < o.residual ? o.zstd : o.residual;
	}
	CHECK(f && pxd_forecast_looks(f) < 10);
	pxd_forecast_free(f);
	pxd_codec_free(c);
	return with ? (int)pxd_predict_kind(&p) : -1;
}

static int chosen(void (*fill)(double *to, size_t n, double t), bool refs, double *ratio)
{
	return chosen_at(false, 0, fill, refs, ratio);
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

static void smooth(double *to, size_t n, double t)
{
	for (size_t i = 0; i < n; i++)
		to[i] = 300 + 40 * sin(0.01 * (double)i + 0.1 * t);
}

/* Sweeps of successive over-relaxation over a square with a hot edge: each number follows from those around it, now and before. */
static void sweeps(double *to, size_t n, double t)
{
	enum { SIDE = 64 };
	static double x[SIDE][SIDE];

	if (t == 0)
		for (int i = 0; i < SIDE * SIDE; i++)
			x[i / SIDE][i % SIDE] = i < SIDE ? 300 + i : 0;
	for (int i = 1; i < SIDE - 1; i++)
		for (int j = 1; j < SIDE - 1; j++)
			x[i][j] +=
				1.8 * ((x[i - 1][j] + x[i + 1][j] + x[i][j - 1] + x[i][j + 1]) / 4 - x[i][j]);
	memcpy(to, x, n * sizeof *to);
}

/* Each number goes its own way to where it comes to rest, all of them equally fast; but those of a boundary are 0. */
static void resting(double *to, size_t n, double t)
{
	for (size_t i = 0; i < n; i++)
		to[i] = i % 96 < 8
				? 0
				: 1 + (double)(i * i % 1009) / 1024 + (double)(1 + i * 7 % 13) * pow(0.8, t);
}

/* A 0 has no bits as a whole number: so little does not decide, as only floating-point numbers go with weights. */
TEST(zeros_at_a_boundary_do_not_keep_weights_away)
{
	double ratio = 1;

	CHECK_INT(chosen_at(false, 96, resting, true, &ratio), PXD_KIND_WEIGHTED);
	CHECK(ratio < 0.2);
}

/* One flow after the other, each new: thousands of tags. How many looks they cost, and (*with) in how many something was predicted. */
static uint64_t looks_at_new_flows(void (*fill)(double *to, size_t n, double t), int nrefs, int *with)
{
	static double step[8][N];
	struct pxd_forecast *f = pxd_forecast_new();
	struct pxd_codec *c = pxd_codec_new();
	uint64_t looks = 0;

	*with = 0;
	for (int t = 0; f && c && t < 1000; t++) {
		struct pxd_scene s = { .flow = 0x9e3779b97f4a7c15u * (uint64_t)(t + 1),
			.in = (uint8_t *)step[t % 8],
			.n = sizeof step[0],
			.elem = 8,
			.big = HOST_BIG,
			.nrefs = t < nrefs ? t : nrefs,
			.back = 1 };
		struct pxd_predictor p;
		struct pxd_outlook o;

		for (int i = 0; i < s.nrefs; i++)
			s.ref[i] = (uint8_t *)step[(t + 7 - i) % 8];
		fill(step[t % 8], N, t);
		*with += pxd_forecast_choose(f, c, &s, &p, &o);
		looks = pxd_forecast_looks(f);
	}
	pxd_forecast_free(f);
	pxd_codec_free(c);
	return looks;
}

TEST(thousands_of_flows_do_not_cost_a_look_each)
{
	int with;

	CHECK(looks_at_new_flows(noise, 0, &with) < 80);
	CHECK_INT(with, 0);
	CHECK(looks_at_new_flows(noise, PXD_PREDICT_REFS, &with) < 80);
	CHECK(looks_at_new_flows(wave, 0, &with) < 80);
	CHECK(with > 990);
}

TEST(a_predictor_takes_what_is_at_hand_only)
{
	static double step[12][N];
	struct pxd_forecast *f = pxd_forecast_new();
	struct pxd_codec *c = pxd_codec_new();

	REQUIRE(f && c);
	for (int t = 0; t < 600; t++) {
		struct pxd_predictor p;
		struct pxd_outlook o;
		struct pxd_scene s = { .flow = 5,
			.in = (uint8_t *)step[t % 12],
			.n = sizeof step[0],
			.elem = 8,
			.big = HOST_BIG };
		int which[PXD_PREDICT_REFS];

		s.back = 1 + (int)(test_random() % 9);
		s.nrefs = (int)(test_random() % (PXD_PREDICT_REFS + 1));
		for (int i = 0; i < s.nrefs; i++)
			s.ref[i] = (uint8_t *)step[(t + 24 - s.back - i) % 12];
		line(step[t % 12], N, t);
		if (!pxd_forecast_choose(f, c, &s, &p, &o))
			continue;
		pxd_scene_refs(&s, &p, which);
		for (int i = 0; i < p.nrefs; i++)
			CHECK(which[i] < s.nrefs);
		pxd_forecast_learn(f, &s, PXD_CODEC_RESIDUAL, s.n / (1 + test_random() % 4));
	}
	pxd_forecast_free(f);
	pxd_codec_free(c);
}

/* Cells of `each` unlike numbers. */
static void cells(double *x, int n, int each)
{
	for (int i = 0; i < n; i++)
		x[i] = (double)(1 + i % each * 37) + 1e-4 * sin(0.02 * i) + 1;
}

TEST(cells_of_up_to_six_numbers_need_not_be_told)
{
	static double x[N];

	for (int each = 2; each <= 6; each++) {
		struct pxd_forecast *f = pxd_forecast_new();
		struct pxd_codec *c = pxd_codec_new();
		struct pxd_scene s = {
			.flow = 5, .in = (uint8_t *)x, .n = sizeof x, .elem = 8, .big = HOST_BIG, .back = 1
		};
		struct pxd_predictor p = { 0 };
		struct pxd_outlook o;

		REQUIRE(f && c);
		cells(x, N, each);
		CHECK(pxd_forecast_choose(f, c, &s, &p, &o) && p.stride % each == 0);
		CHECK(o.zstd < 0.6 || o.residual < 0.6);
		pxd_forecast_free(f);
		pxd_codec_free(c);
	}
}

TEST(the_stride_that_the_datatype_tells_is_taken)
{
	static double x[N];

	for (unsigned told = 0; told <= 9; told += 9) {
		struct pxd_forecast *f = pxd_forecast_new();
		struct pxd_codec *c = pxd_codec_new();
		struct pxd_scene s = { .flow = 5,
			.in = (uint8_t *)x,
			.n = sizeof x,
			.elem = 8,
			.big = HOST_BIG,
			.back = 1,
			.stride = told };
		struct pxd_predictor p = { 0 };
		struct pxd_outlook o;
		bool with;

		REQUIRE(f && c);
		cells(x, N, 9);
		with = pxd_forecast_choose(f, c, &s, &p, &o);
		CHECK_INT(with && p.stride == 9, told == 9);
		if (told)
			CHECK(o.zstd < 0.6 || o.residual < 0.6);
		pxd_forecast_free(f);
		pxd_codec_free(c);
	}
}

TEST(messages_that_are_sent_in_turn_are_told_apart)
{
	static double step[12][N];
	struct pxd_forecast *f = pxd_forecast_new();
	struct pxd_codec *c = pxd_codec_new();
	struct pxd_predictor p = { 0 };
	struct pxd_outlook o;

	REQUIRE(f && c);
	for (int t = 0; t < 12; t++) { /* three kinds: x, x^3 and 1/x of a slowly moving x */
		line(step[t], N, t / 3);
		for (int i = 0; i < N && t % 3 > 0; i++)
			step[t][i] = t % 3 == 1 ? step[t][i] * step[t][i] * step[t][i] : 1 / (3 + step[t][i]);
	}
	for (int back = 1; back <= 3; back++) {
		struct pxd_scene s = { .flow = (uint64_t)back,
			.in = (uint8_t *)step[11],
			.n = sizeof step[0],
			.elem = 8,
			.big = HOST_BIG,
			.nrefs = 6,
			.back = back };
		int which[PXD_PREDICT_REFS];

		for (int i = 0; i < s.nrefs; i++)
			s.ref[i] = (uint8_t *)step[11 - back - i];
		REQUIRE(pxd_forecast_choose(f, c, &s, &p, &o));
		CHECK_INT(p.period, 3);
		pxd_scene_refs(&s, &p, which);
		CHECK_INT(which[0], 3 - back);
	}
	pxd_forecast_free(f);
	pxd_codec_free(c);
}

TEST(the_forecast_finds_what_the_data_is_like)
{
	double ratio, without;

	CHECK_INT(chosen(noise, true, &ratio), -1);
	CHECK_INT(chosen(still, false, &ratio), -1);
	CHECK(chosen(still, true, &ratio) >= PXD_KIND_PREVIOUS && ratio < 0.02);
	CHECK(chosen(converging, true, &ratio) >= PXD_KIND_PREVIOUS && ratio < 0.5);
	CHECK(chosen(line, true, &ratio) >= PXD_KIND_LINEAR && ratio < 0.2);
	CHECK_INT(chosen(wave, false, &ratio), PXD_KIND_NEIGHBOUR);
	CHECK(ratio < 0.6);
	CHECK_INT(chosen(smooth, false, &ratio), PXD_KIND_NEIGHBOUR);
	CHECK(ratio < 0.3); /* 0.5 with three neighbours */
	CHECK(chosen(sweeps, true, &without) != PXD_KIND_LEARNT);
	CHECK_INT(chosen_at(true, 0, sweeps, true, &ratio), PXD_KIND_LEARNT);
	CHECK(ratio < without);
}
