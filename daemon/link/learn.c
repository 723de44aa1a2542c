/* learn.c: see learn.h.
 *
 * Design. Least squares, again after each BLOCK of numbers. What a number differs by from that of the newest reference is a weighted sum
 * of such differences, in time, of the numbers around it: of those before it in the segment, and of all in the references. Older
 * blocks count less and less, and each number by how well those before it were foretold, so that places where nothing moves count as much
 * as others. The sums x x' and x y are one upper triangle (y is the last column of x), so that its Cholesky factor has the
 * solution but for one substitution.
 *
 * Both ends must round alike (ieee.h), with sums in the order that the document says. LANES columns are
 * worked on at a time, which changes no order, so that a compiler makes vector operations of them (the Makefile has it do so).
 */
#include "ieee.h"

#include "learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "number.h"

#define REACH 2 /* numbers and rows around a number that are looked at */
#define LANES 8
#define TILE  4
#define TAPS                                                                                                 \
	64 /* 12 before it in the segment, 25 in each of two differences of references; one is free, the last is y */
#define Y     (TAPS - 1)
#define BLOCK 32
#define RIDGE 0x1p-49

struct learner {
	double r[TAPS][TAPS], u[TAPS][TAPS]; /* sums, their factor */
	double x[BLOCK][TAPS], w[TAPS];
	double inverse[TAPS];    /* of the diagonal of u */
	const double *tap[TAPS]; /* the difference that is looked at for number 0 */
	double *self;            /* the segment's own difference, as far as it is known */
	int taps;
	double keep, error; /* how much an older block counts; the usual error */
};

/* TILE sums go on beside one another: one alone would have to wait for itself. */
INLINE void sums_add(struct learner *l)
{
	for (int i = 0; i < l->taps; i += TILE) /* a few rows too many do no harm */
		for (int j = i / LANES * LANES; j < TAPS; j += LANES) {
			double sum[TILE][LANES];

			for (int t = 0; t < TILE; t++)
				for (int q = 0; q < LANES; q++)
					sum[t][q] = l->r[i + t][j + q] * l->keep;
			for (int s = 0; s < BLOCK; s++)
				for (int t = 0; t < TILE; t++)
					for (int q = 0; q < LANES; q++)
						sum[t][q] = sum[t][q] + l->x[s][j + q] * l->x[s][i + t];
			for (int t = 0; t < TILE; t++)
				for (int q = 0; q < LANES; q++)
					l->r[i + t][j + q] = sum[t][q];
		}
}

/* Row i of the factor before its division, `width` columns from j on. */
INLINE void eliminate(struct learner *l, int i, int j, int width)
{
	double left[TILE * LANES];

	for (int q = 0; q < width; q++)
		left[q] = l->r[i][j + q];
	for (int k = 0; k < i; k++)
		for (int q = 0; q < width; q++)
			left[q] = left[q] - l->u[k][j + q] * l->u[k][i];
	for (int q = 0; q < width; q++)
		l->u[i][j + q] = left[q];
}

INLINE void factor(struct learner *l)
{
	for (int i = 0; i < l->taps; i++) {
		double pivot;
		int j = i / LANES * LANES;

		for (; j + TILE * LANES <= TAPS; j += TILE * LANES)
			eliminate(l, i, j, TILE * LANES);
		for (; j < TAPS; j += LANES)
			eliminate(l, i, j, LANES);
		pivot = l->u[i][i] + l->r[i][i] * RIDGE;
		l->inverse[i] = pivot > 0 ? 1 / sqrt(pivot) : 0;
		for (j = i / LANES * LANES; j < TAPS; j++)
			l->u[i][j] = l->u[i][j] * l->inverse[i];
	}
}

/* From the factor the weights; none, and nothing has been learnt, if they are not finite. */
INLINE void substitute(struct learner *l)
{
	double z[TAPS];
	bool sound = true;

	for (int i = 0; i < l->taps; i++)
		z[i] = l->u[i][Y];
	for (int i = l->taps - 1; i >= 0; i--) {
		double w = z[i] * l->inverse[i];

		for (int k = 0; k < i; k++)
			z[k] = z[k] - l->u[k][i] * w;
		l->w[i] = w;
		sound = sound && isfinite(w);
	}
	if (!sound) {
		memset(l->w, 0, sizeof l->w);
		memset(l->r, 0, sizeof l->r);
	}
}

INLINE void lesson(struct learner *l)
{
	sums_add(l);
	factor(l);
	substitute(l);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void lesson_wide(struct learner *l)
{
	lesson(l);
}
static bool wide(void)
{
	return __builtin_cpu_supports("avx2");
}
#else
#define lesson_wide lesson_plain
static bool wide(void)
{
	return false;
}
#endif
static void lesson_plain(struct learner *l)
{
	lesson(l);
}

/* The weighted sum of a sample. */
INLINE double sum_of(const struct learner *l, const double *x)
{
	double sum[LANES];

	for (int q = 0; q < LANES; q++)
		sum[q] = x[q] * l->w[q];
	for (int j = LANES; j < TAPS; j += LANES)
		for (int q = 0; q < LANES; q++)
			sum[q] = sum[q] + x[j + q] * l->w[j + q];
	for (int h = LANES / 2; h > 0; h /= 2)
		for (int q = 0; q < h; q++)
			sum[q] = sum[q] + sum[q + h];
	return sum[0];
}

/* A number was y more than in the newest reference, and `error` more than expected: what its sample is worth. */
INLINE void weigh_sample(struct learner *l, double *x, double y, double error)
{
	double by = 0;

	if (isfinite(error) && isfinite(y)) {
		l->error = l->error > 0 ? 0.875 * l->error + 0.125 * fabs(error) : fabs(error);
		by = l->error > 0 ? 1 / l->error : 0;
		x[Y] = y;
	}
	if (by > 0 && isfinite(by))
		for (int j = 0; j < TAPS; j++)
			x[j] = x[j] * by;
	else
		memset(x, 0, TAPS * sizeof *x);
}

INLINE void run(struct learner *l, unsigned word, const uint8_t *self, const uint8_t *newest, size_t count,
	uint8_t *out, bool swap, bool is_wide)
{
	for (size_t i = 0; i < count; i++) {
		double *x = l->x[i % BLOCK];
		size_t at = i * word;
		double before = pxd_value(newest + at, word, swap), expected, is;
		uint64_t image;

		memset(x, 0, sizeof l->x[0]);
		for (int k = 0; k < l->taps; k++)
			x[k] = l->tap[k][i];
		expected = before + sum_of(l, x);
		image = pxd_image_of(expected, newest + at, word, swap);
		if (self != out) {
			uint64_t d = pxd_image(self + at, word, swap, true) - image;

			pxd_store(out + at, pxd_fold(d, word), word, HOST_BIG);
		} else {
			uint64_t v = pxd_unfold(pxd_load(out + at, word, HOST_BIG), word) + image;

			pxd_store(out + at, pxd_from_order(word == 4 ? (uint32_t)v : v, word), word, swap);
		}
		is = pxd_value(self + at, word, swap);
		l->self[i] = isfinite(is - before) ? is - before : 0;
		weigh_sample(l, x, is - before, is - expected);
		if (i % BLOCK == BLOCK - 1)
			(is_wide ? lesson_wide : lesson_plain)(l);
	}
}

/* The taps of a difference in time: all around the place, or as far as they come before it. */
static void taps_add(struct learner *l, const struct pxd_predictor *p, const double *difference, bool all)
{
	int64_t rows = p->row > 0 ? REACH : 0;

	for (int64_t a = -rows; a <= (all ? rows : 0); a++)
		for (int64_t b = -REACH; b <= REACH && (all || a < 0 || b < 0); b++)
			l->tap[l->taps++] = difference + a * (int64_t)p->row + b * p->stride;
}

static void differences(
	double *to, const uint8_t *a, const uint8_t *b, size_t count, unsigned word, bool swap)
{
	for (size_t i = 0; i < count; i++) {
		double d = pxd_value(a + i * word, word, swap) - pxd_value(b + i * word, word, swap);

		to[i] = isfinite(d) ? d : 0;
	}
}

static int run_any(const struct pxd_predictor *p, unsigned word, const uint8_t *self,
	const uint8_t *const *ref, size_t n, uint8_t *out)
{
	bool swap = ((p->how & PXD_PREDICT_BIG) != 0) != HOST_BIG;
	size_t count = n / word, margin = REACH * ((size_t)p->row + p->stride), each = count + 2 * margin;
	struct learner *l;
	double *room;

	if (p->row > 0 && p->row >= count)
		return PX_EPROTO;
	l = calloc(1, sizeof *l);
	room = calloc((size_t)p->nrefs * each, sizeof *room);
	if (!l || !room) {
		free(l);
		free(room);
		return PX_ENOMEM;
	}
	l->keep = p->keep / 256.0;
	l->self = room + margin;
	taps_add(l, p, l->self, false);
	for (int k = 1; k < p->nrefs; k++) {
		differences(room + (size_t)k * each + margin, ref[k - 1], ref[k], count, word, swap);
		taps_add(l, p, room + (size_t)k * each + margin, true);
	}
	if (word == 8 && !swap)
		run(l, 8, self, ref[0], count, out, false, wide());
	else
		run(l, word, self, ref[0], count, out, swap, wide());
	free(room);
	free(l);
	return PX_OK;
}

int pxd_learn_residual(const struct pxd_predictor *p, unsigned word, const uint8_t *in,
	const uint8_t *const *ref, size_t n, uint8_t *out)
{
	memcpy(out + n / word * word, in + n / word * word, n % word);
	return run_any(p, word, in, ref, n, out);
}

int pxd_learn_restore(
	const struct pxd_predictor *p, unsigned word, uint8_t *data, const uint8_t *const *ref, size_t n)
{
	return run_any(p, word, data, ref, n, data);
}

int pxd_foresee(const struct pxd_predictor *p, unsigned word, const uint8_t *in, const uint8_t *const *ref,
	size_t n, uint8_t *out)
{
	if (pxd_predict_learnt(p))
		return pxd_learn_residual(p, word, in, ref, n, out);
	pxd_predict_apply(p, word, in, ref, n, out);
	return PX_OK;
}

int pxd_foreseen(
	const struct pxd_predictor *p, unsigned word, uint8_t *data, const uint8_t *const *ref, size_t n)
{
	if (pxd_predict_learnt(p))
		return pxd_learn_restore(p, word, data, ref, n);
	pxd_predict_undo(p, word, data, ref, n);
	return PX_OK;
}
