/* learn.c: see learn.h.
 *
 * Design. Least squares, for each BLOCK of numbers anew. What a number differs by from that of the newest reference is a weighted sum of such
 * differences, in time, of the numbers around it: of those before it in the segment, and of all in the references. The same, one message
 * earlier, holds between the references alone, so the weights come from there: a block's from the same block of the newest reference, and
 * from the blocks before it, which count less and less; each number by how well those before it were foretold, so that places where little
 * moves count, too. The sums x x' and x y are one upper triangle (y is the last column of x), so that its Cholesky factor has
 * the solution but for one substitution.
 *
 * Both ends must round alike (ieee.h), with sums in the order that the document says. LANES columns are
 * worked on at a time, as vectors, which changes no order; the Makefile has the compiler keep whole tiles in registers.
 */
#include "ieee.h"

#include "learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "number.h"

#define REACH 2 /* numbers and rows around a number that are looked at */
#define LANE  4
#define LANES (2 * LANE)
#define TILE  4
#define TAPS                                                                                                 \
	64 /* 12 before it in the segment, 25 in each of two differences of references; one is free, the last is y */
#define Y     (TAPS - 1)
#define BLOCK 64
#define RIDGE 0x1p-44

/* LANE doubles anywhere in an array of them: what compilers make vector operations of, each as its numbers would be alone. */
typedef double lane __attribute__((vector_size(LANE * sizeof(double)), aligned(sizeof(double)), may_alias));

struct pxd_lesson {
	uint8_t *length;  /* of each number, behind the weights */
	double w[][TAPS]; /* of each block */
};

/* What a number is looked at with: of the difference of two messages, the places before it, and around it of the ones before that. */
struct view {
	double *room;
	double *newest; /* the first difference: that which the numbers have to the newest reference, or that one to the next */
	const double *tap[TAPS]; /* the difference that is looked at for number 0 */
	int taps;
	unsigned word;
	bool swap;
};

struct learner {
	double r[TAPS][TAPS], u[TAPS][TAPS]; /* sums, their factor */
	double x[BLOCK][TAPS], w[TAPS];
	double inverse[TAPS]; /* of the diagonal of u */
	int taps;
	double keep, error; /* how much an older block counts; the usual error */
};

/* Sums of TILE rows and LANES columns, as far as a compiler has them in registers: products of a column's LANES values with one of each row. */
struct tile {
	lane sum[TILE][2];
};

INLINE void tile_get(struct tile *t, double (*from)[TAPS], int i, int j)
{
	for (int k = 0; k < TILE; k++)
		for (int h = 0; h < 2; h++)
			t->sum[k][h] = *(const lane *)&from[i + k][j + h * LANE];
}

INLINE void tile_put(const struct tile *t, double (*to)[TAPS], int i, int j)
{
	for (int k = 0; k < TILE; k++)
		for (int h = 0; h < 2; h++)
			*(lane *)&to[i + k][j + h * LANE] = t->sum[k][h];
}

INLINE void sums_add(struct learner *l)
{
	for (int i = 0; i < l->taps; i += TILE) /* a few rows too many do no harm */
		for (int j = i / LANES * LANES; j < TAPS; j += LANES) {
			struct tile t;

			tile_get(&t, l->r, i, j);
			for (int k = 0; k < TILE; k++)
				for (int h = 0; h < 2; h++)
					t.sum[k][h] = t.sum[k][h] * l->keep;
			for (int s = 0; s < BLOCK; s++) {
				const lane *x = (const lane *)&l->x[s][j];

				for (int k = 0; k < TILE; k++)
					for (int h = 0; h < 2; h++)
						t.sum[k][h] = t.sum[k][h] + x[h] * l->x[s][i + k];
			}
			tile_put(&t, l->r, i, j);
		}
}

/* Of rows i to i + TILE - 1 of the factor, what those above them take away. */
INLINE void eliminate(struct learner *l, int i)
{
	for (int j = i / LANES * LANES; j < TAPS; j += LANES) {
		struct tile t;

		tile_get(&t, l->r, i, j);
		for (int a = 0; a < i; a++) {
			const lane *u = (const lane *)&l->u[a][j];

			for (int k = 0; k < TILE; k++)
				for (int h = 0; h < 2; h++)
					t.sum[k][h] = t.sum[k][h] - u[h] * l->u[a][i + k];
		}
		tile_put(&t, l->u, i, j);
	}
}

INLINE void factor(struct learner *l)
{
	for (int first = 0; first < l->taps; first += TILE) {
		eliminate(l, first);
		for (int i = first; i < first + TILE && i < l->taps; i++) {
			double pivot;

			for (int a = first; a < i; a++)
				for (int j = i / LANES * LANES; j < TAPS; j++)
					l->u[i][j] = l->u[i][j] - l->u[a][j] * l->u[a][i];
			pivot = l->u[i][i] + l->r[i][i] * RIDGE;
			l->inverse[i] = pivot > 0 ? 1 / sqrt(pivot) : 0;
			for (int j = i / LANES * LANES; j < TAPS; j++)
				l->u[i][j] = l->u[i][j] * l->inverse[i];
		}
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

INLINE void learn(struct learner *l)
{
	sums_add(l);
	factor(l);
	substitute(l);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void learn_wide(struct learner *l)
{
	learn(l);
}
static bool wide(void)
{
	return __builtin_cpu_supports("avx2");
}
#else
#define learn_wide learn_plain
static bool wide(void)
{
	return false;
}
#endif
static void learn_plain(struct learner *l)
{
	learn(l);
}

/* The weighted sum of a sample. */
INLINE double sum_of(const double *w, const double *x)
{
	const lane *u = (const lane *)w, *v = (const lane *)x;
	lane low = v[0] * u[0], high = v[1] * u[1];
	double sum[LANES];

	for (int j = 2; j < TAPS / LANE; j += 2) {
		low = low + v[j] * u[j];
		high = high + v[j + 1] * u[j + 1];
	}
	*(lane *)sum = low;
	*(lane *)(sum + LANE) = high;
	for (int h = LANES / 2; h > 0; h /= 2)
		for (int q = 0; q < h; q++)
			sum[q] = sum[q] + sum[q + h];
	return sum[0];
}

/* A number was y more than in the message before, and `error` more than expected: what its sample is worth. */
INLINE void weigh_sample(struct learner *l, double *x, double y, double error)
{
	double by = 0;

	if (isfinite(error)) {
		l->error = l->error > 0 ? 0.875 * l->error + 0.125 * fabs(error) : fabs(error);
		by = l->error > 0 ? 1 / sqrt(l->error) : 0;
		x[Y] = y;
	}
	if (by > 0 && isfinite(by))
		for (int j = 0; j < TAPS; j++)
			x[j] = x[j] * by;
	else
		memset(x, 0, TAPS * sizeof *x);
}

INLINE void look(const struct view *v, size_t i, double *x)
{
	for (int k = 0; k < v->taps; k++)
		x[k] = v->tap[k][i];
}

/* How long what is left of numbers is that were expected to be `more` than they were before. */
INLINE void lengths(uint8_t *out, const uint8_t *is, const uint8_t *before, const double *more, size_t n,
	unsigned word, bool swap)
{
	for (size_t i = 0; i < n; i++) {
		const uint8_t *was = before + i * word;
		uint64_t image = pxd_image_of(pxd_value(was, word, swap) + more[i], was, word, swap);

		out[i] = (uint8_t)pxd_length(
			pxd_fold(pxd_image(is + i * word, word, swap, true) - image, word));
	}
}

static void lengths_left(const struct view *v, const uint8_t *const *ref, size_t from, size_t n,
	const double *more, uint8_t *length)
{
	const uint8_t *is = ref[0] + from * v->word, *before = ref[1] + from * v->word;

	if (v->word == 8 && !v->swap)
		lengths(length, is, before, more, n, 8, false);
	else
		lengths(length, is, before, more, n, v->word, v->swap);
}

/* The weights of a block from its `n` samples in the references, and from those before it. */
static void block_learn(struct learner *l, const struct view *v, const uint8_t *const *ref, size_t from,
	size_t n, uint8_t *length, bool is_wide)
{
	double more[BLOCK];

	memset(l->x, 0, sizeof l->x);
	for (size_t i = 0; i < n; i++) {
		double *x = l->x[i], y = v->newest[from + i];

		look(v, from + i, x);
		more[i] = sum_of(l->w, x);
		weigh_sample(l, x, y, y - more[i]);
	}
	lengths_left(v, ref, from, n, more, length);
	(is_wide ? learn_wide : learn_plain)(l);
}

/* The taps of a difference: all around the place, or as far as they come before it. */
static void taps_add(struct view *v, const struct pxd_predictor *p, const double *difference, bool all)
{
	int64_t rows = p->row > 0 ? REACH : 0;

	for (int64_t a = -rows; a <= (all ? rows : 0); a++)
		for (int64_t b = -REACH; b <= REACH && (all || a < 0 || b < 0); b++)
			v->tap[v->taps++] = difference + a * (int64_t)p->row + b * p->stride;
}

static void differences(
	double *to, const uint8_t *a, const uint8_t *b, size_t count, unsigned word, bool swap)
{
	for (size_t i = 0; i < count; i++) {
		double d = pxd_value(a + i * word, word, swap) - pxd_value(b + i * word, word, swap);

		to[i] = isfinite(d) ? d : 0;
	}
}

/* A view of p->nrefs - 1 differences. The first one is that of the newest two references, or (ahead) not known yet, and the others are later by one. */
static int view_make(struct view *v, const struct pxd_predictor *p, unsigned word, const uint8_t *const *ref,
	size_t count, bool ahead)
{
	size_t margin = REACH * ((size_t)p->row + p->stride), each = count + 2 * margin;

	if (p->row > 0 && p->row >= count)
		return PX_EPROTO;
	v->room = calloc((size_t)(p->nrefs - 1) * each, sizeof *v->room);
	if (!v->room)
		return PX_ENOMEM;
	v->newest = v->room + margin;
	v->taps = 0;
	v->word = word;
	v->swap = ((p->how & PXD_PREDICT_BIG) != 0) != HOST_BIG;
	for (int k = 0; k < p->nrefs - 1; k++) {
		double *e = v->newest + (size_t)k * each;

		if (!ahead || k > 0)
			differences(e, ref[k - ahead], ref[k + 1 - ahead], count, word, v->swap);
		taps_add(v, p, e, k > 0);
	}
	return PX_OK;
}

static size_t blocks(size_t count)
{
	return (count + BLOCK - 1) / BLOCK;
}

int pxd_lesson_make(const struct pxd_predictor *p, unsigned word, const uint8_t *const *ref, size_t n,
	struct pxd_lesson **out)
{
	size_t count = n / word;
	struct pxd_lesson *t;
	struct learner *l;
	struct view v;
	int rc;

	pxd_ieee();
	rc = view_make(&v, p, word, ref, count, false);
	if (rc < 0)
		return rc;
	t = malloc(pxd_lesson_size(word, n));
	l = calloc(1, sizeof *l);
	if (!t || !l) {
		free(t);
		free(l);
		free(v.room);
		return PX_ENOMEM;
	}
	l->taps = v.taps;
	l->keep = p->keep / 256.0;
	t->length = (uint8_t *)t->w[blocks(count)];
	for (size_t from = 0; from < count; from += BLOCK) {
		block_learn(l, &v, ref, from, count - from < BLOCK ? count - from : BLOCK, t->length + from,
			wide());
		memcpy(t->w[from / BLOCK], l->w, sizeof l->w);
	}
	free(l);
	free(v.room);
	*out = t;
	return PX_OK;
}

void pxd_lesson_free(struct pxd_lesson *t)
{
	free(t);
}

int pxd_lesson_have(const struct pxd_predictor *p, unsigned word, const struct pxd_lesson **t,
	struct pxd_lesson **own, const uint8_t *const *ref, size_t n)
{
	int rc = PX_OK;

	*own = NULL;
	if (!pxd_predict_learnt(p))
		*t = NULL;
	else if (!*t)
		rc = pxd_lesson_make(p, word, ref, n, own);
	if (*own)
		*t = *own;
	return rc;
}

size_t pxd_lesson_size(unsigned word, size_t n)
{
	return sizeof(struct pxd_lesson) + blocks(n / word) * TAPS * sizeof(double) + n / word;
}

struct pxd_guide pxd_guide_of(const struct pxd_predictor *p, const struct pxd_lesson *t)
{
	return (struct pxd_guide){
		.stride = p->stride ? p->stride : 1, .row = p->row, .length = t ? t->length : NULL
	};
}

INLINE void run(const struct pxd_lesson *t, struct view *v, unsigned word, const uint8_t *self,
	const uint8_t *newest, size_t count, uint8_t *out, bool swap)
{
	double x[TAPS] = { 0 };

	for (size_t i = 0; i < count; i++) {
		size_t at = i * word;
		double before = pxd_value(newest + at, word, swap), is;
		uint64_t image;

		look(v, i, x);
		image = pxd_image_of(before + sum_of(t->w[i / BLOCK], x), newest + at, word, swap);
		if (self != out) {
			uint64_t d = pxd_image(self + at, word, swap, true) - image;

			pxd_store(out + at, pxd_fold(d, word), word, HOST_BIG);
		} else {
			uint64_t d = pxd_unfold(pxd_load(out + at, word, HOST_BIG), word) + image;

			pxd_store(out + at, pxd_from_order(word == 4 ? (uint32_t)d : d, word), word, swap);
		}
		is = pxd_value(self + at, word, swap) - before;
		v->newest[i] = isfinite(is) ? is : 0;
	}
}

static int run_any(const struct pxd_predictor *p, unsigned word, const struct pxd_lesson *t,
	const uint8_t *self, const uint8_t *const *ref, size_t n, uint8_t *out)
{
	struct pxd_lesson *own;
	size_t count = n / word;
	struct view v;
	int rc;

	pxd_ieee();
	rc = view_make(&v, p, word, ref, count, true);
	if (rc < 0)
		return rc;
	rc = pxd_lesson_have(p, word, &t, &own, ref, n);
	if (rc == 0 && word == 8 && !v.swap)
		run(t, &v, 8, self, ref[0], count, out, false);
	else if (rc == 0)
		run(t, &v, word, self, ref[0], count, out, v.swap);
	pxd_lesson_free(own);
	free(v.room);
	return rc;
}

int pxd_learn_residual(const struct pxd_predictor *p, unsigned word, const struct pxd_lesson *t,
	const uint8_t *in, const uint8_t *const *ref, size_t n, uint8_t *out)
{
	memcpy(out + n / word * word, in + n / word * word, n % word);
	return run_any(p, word, t, in, ref, n, out);
}

int pxd_learn_restore(const struct pxd_predictor *p, unsigned word, const struct pxd_lesson *t, uint8_t *data,
	const uint8_t *const *ref, size_t n)
{
	return run_any(p, word, t, data, ref, n, data);
}

int pxd_foresee(const struct pxd_predictor *p, unsigned word, const struct pxd_lesson *t, const uint8_t *in,
	const uint8_t *const *ref, size_t n, uint8_t *out)
{
	if (pxd_predict_learnt(p))
		return pxd_learn_residual(p, word, t, in, ref, n, out);
	pxd_predict_apply(p, word, in, ref, n, out);
	return PX_OK;
}

int pxd_foreseen(const struct pxd_predictor *p, unsigned word, const struct pxd_lesson *t, uint8_t *data,
	const uint8_t *const *ref, size_t n)
{
	if (pxd_predict_learnt(p))
		return pxd_learn_restore(p, word, t, data, ref, n);
	pxd_predict_undo(p, word, data, ref, n);
	return PX_OK;
}
