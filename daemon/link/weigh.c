/* weigh.c: see weigh.h.
 *
 * Design. Least squares over a sample of the numbers, repeated with weights of 1 / (error of the last round), which leads to the least
 * sum of the errors' magnitudes: what counts is bits, and a few numbers that nothing foretells must not spoil all others. The unknowns
 * are the weights of finite differences in time (velocity, acceleration ...), as the segments themselves are so much
 * alike that their normal equations say nothing in double precision; at the end they become weights of segments.
 */
#include "weigh.h"

#include <math.h>
#include <string.h>

#define SAMPLES 1200
#define ROUNDS  4
#define SMALL   0.05 /* of the mean error: smaller ones count alike */
#define RIDGE   1e-15
#define MOST    (PXD_PREDICT_REFS - 1)

struct sample {
	double x[MOST], y;
};

/* The number at `at` of each reference and of the segment, as differences; false: they are not all finite. */
static bool take(const struct pxd_predictor *p, unsigned word, const uint8_t *in, const uint8_t *const *ref,
	size_t at, struct sample *s)
{
	bool big = p->how & PXD_PREDICT_BIG;
	double v[PXD_PREDICT_REFS] = { 0 };

	s->y = pxd_predict_value(in + at, word, big);
	if (!isfinite(s->y))
		return false;
	for (int k = 0; k < p->nrefs; k++) {
		v[k] = pxd_predict_value(ref[k] + at, word, big);
		if (!isfinite(v[k]))
			return false;
	}
	s->y -= v[0];
	for (int order = 1; order < p->nrefs; order++) {
		for (int k = 0; k < p->nrefs - order; k++)
			v[k] -= v[k + 1];
		s->x[order - 1] = v[0];
	}
	return isfinite(s->y);
}

/* a w = b for a symmetric a of n rows, whose lower half is given, by Cholesky; directions that are not there get 0. */
static void solve(double a[MOST][MOST], const double *b, int n, double *w)
{
	double l[MOST][MOST], z[MOST];

	for (int i = 0; i < n; i++)
		for (int j = 0; j <= i; j++) {
			double s = i == j ? a[i][i] * (1 + RIDGE) : a[i][j];

			for (int k = 0; k < j; k++)
				s -= l[i][k] * l[j][k];
			l[i][j] = i != j ? s / l[j][j] : s > 0 ? sqrt(s) : HUGE_VAL;
		}
	for (int i = 0; i < n; i++) {
		z[i] = b[i];
		for (int k = 0; k < i; k++)
			z[i] -= l[i][k] * z[k];
		z[i] /= l[i][i];
	}
	for (int i = n - 1; i >= 0; i--) {
		w[i] = z[i];
		for (int k = i + 1; k < n; k++)
			w[i] -= l[k][i] * w[k];
		w[i] /= l[i][i];
	}
}

static double error_of(const struct sample *s, const double *w, int n)
{
	double e = s->y;

	for (int k = 0; k < n; k++)
		e -= w[k] * s->x[k];
	return fabs(e);
}

static void one_round(const struct sample *s, size_t count, int n, bool first, double *w)
{
	double a[MOST][MOST] = { { 0 } }, b[MOST] = { 0 }, mean = 0;

	for (size_t i = 0; i < count; i++)
		mean += error_of(&s[i], w, n) / (double)count;
	if (!(mean > 0) || !isfinite(mean))
		return;
	for (size_t i = 0; i < count; i++) {
		double g = first ? 1 : mean / (error_of(&s[i], w, n) + SMALL * mean);

		for (int k = 0; k < n; k++) {
			for (int j = 0; j <= k; j++)
				a[k][j] += g * s[i].x[k] * s[i].x[j];
			b[k] += g * s[i].x[k] * s[i].y;
		}
	}
	solve(a, b, n, w);
}

void pxd_weigh(struct pxd_predictor *p, unsigned word, const uint8_t *in, const uint8_t *const *ref, size_t n)
{
	struct sample s[SAMPLES];
	size_t numbers = n / word, step = numbers / SAMPLES + 1, count = 0;
	double w[MOST] = { 0 };
	int unknown = p->nrefs - 1;

	for (size_t i = 0; i < numbers; i += step)
		count += take(p, word, in, ref, i * word, &s[count]);
	for (int round = 0; round < ROUNDS && count > 0; round++)
		one_round(s, count, unknown, round == 0, w);
	/* A difference of order m is a sum of the numbers with the binomials of m, of changing signs; the first number's part is
	 * what the others leave, as its own weight is 1 less their sum. */
	for (int k = 1; k < p->nrefs; k++) {
		double sum = 0, binomial;

		for (int m = k; m <= unknown; m++) {
			binomial = 1;
			for (int j = 1; j <= k; j++)
				binomial = binomial * (m - j + 1) / j;
			sum += w[m - 1] * binomial * (k % 2 ? -1 : 1);
		}
		p->weight[k - 1] = isfinite((float)sum) ? (float)sum : 0;
	}
}
