/* forecast.c: see forecast.h.
 *
 * Design. A look has two steps. All candidates predict a few blocks of numbers, and the one that leaves the fewest significant bits
 * is the best predictor: cheap, and a good measure for numbers of one kind. Whether it beats the codec alone is then measured
 * with the codec itself on a sample, as text, indices and fields at rest are what bits say nothing about. Changes need a
 * gain of a few per cent, so that noise does not make the choice swing.
 */
#include "forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn.h"
#include "residual.h"
#include "weigh.h"

#define SLOTS  512 /* flows remembered */
#define WAYS   4   /* of these, where one of them can be */
#define BLOCKS 4   /* looked at, of a segment */
#define BLOCK  286 /* numbers of each */
#define WARM                                                                                                 \
	48 /* of those at its beginning, which have no neighbours yet, are not counted; more with a longer stride */
#define STRIDES    8     /* a segment has at least so many times what its datatype repeats, if that counts */
#define SAMPLE     16384 /* bytes that are compressed; more than a block */
#define FEWER_BITS 0.97  /* another predictor needs to be that much better than the one in use */
#define SAME_BITS  0.997 /* the same of one with other rows */
#define BETTER     0.95  /* the same of any predictor against none */
#define WORSE      1.15  /* a prediction that is so much worse than before is looked at again */
#define PERIODS    4     /* the longest one looked for */
#define WAIT_MAX   32    /* segments between looks */
#define VAIN_MAX   128   /* the same where nothing is predicted */
#define ALIKE_MAX  16    /* new flows that go by what was found for one before them */
#define WEIGHT     0.3   /* of a new ratio */
#define LESSONS    1024  /* numbers that learning is tried on; the first part of them does not count */
#define ROWS       512   /* the longest row looked for */
#define MOVED      4096  /* numbers that are looked at for it */
#define TIE        1.01  /* so much more leaves about as much */
#define KEEP       60    /* of 256: a block of numbers counts about a quarter after the next one */

static const uint8_t strides[] = { 1, 2, 3, 4, 5, 6 };

/* A predictor without names and weights: there are some ten thousand of these on each path. */
struct kind {
	uint8_t how, more, stride, period, nrefs; /* how = 0: better without */
};

struct choice {
	bool known;
	struct kind kind;
	struct pxd_outlook outlook;
};

struct slot {
	uint64_t flow, used; /* used: when, 0 = never */
	unsigned wait, wait_next;
	bool looked;                                                      /* or gone by another one */
	uint32_t row;                                                     /* of what is learnt best */
	struct choice best[PXD_PREDICT_REFS + 1][PXD_PREDICT_SPACED + 1]; /* by what is at hand */
};

/* What the last look at a flow that was new found, and how many others may go by it. */
struct fresh {
	struct choice choice;
	uint32_t row;
	unsigned left, next;
};

struct pxd_forecast {
	struct slot slot[SLOTS];
	struct fresh fresh[PXD_ELEM_CLASSES][PXD_PREDICT_REFS + 1]
			  [PXD_PREDICT_SPACED + 1]; /* by what is at hand */
	uint64_t looks, now;
	uint8_t out[SAMPLE], packed[SAMPLE];
	double moved[MOVED];
};

struct pxd_forecast *pxd_forecast_new(void)
{
	return calloc(1, sizeof(struct pxd_forecast));
}

void pxd_forecast_free(struct pxd_forecast *f)
{
	free(f);
}

uint64_t pxd_forecast_looks(const struct pxd_forecast *f)
{
	return f->looks;
}

static struct slot *slot_of(struct pxd_forecast *f, uint64_t flow)
{
	struct slot *set = &f->slot[(flow ^ flow >> 32) % (SLOTS / WAYS) * WAYS], *t = set;

	for (int i = 0; i < WAYS; i++) {
		if (set[i].used > 0 && set[i].flow == flow) {
			t = &set[i];
			break;
		}
		if (set[i].used < t->used)
			t = &set[i];
	}
	if (t->used == 0 || t->flow != flow) {
		memset(t, 0, sizeof *t);
		t->flow = flow;
		t->wait_next = 1;
	}
	t->used = ++f->now;
	return t;
}

/* The first reference that came a multiple of `period` messages before. */
static int first_of(const struct pxd_scene *s, int period)
{
	return (period - s->back % period) % period;
}

/* How many references there are at equal distances, multiples of `period`. */
static int spaced(const struct pxd_scene *s, int period)
{
	int each = s->back + first_of(s, period), n = 0;

	while (n < PXD_PREDICT_SPACED && (n + 1) * each - s->back < s->nrefs)
		n++;
	return n;
}

/* How many references are at equal distances, if the first one is not that of the message before. */
static int apart(const struct pxd_scene *s)
{
	return s->back > 1 ? spaced(s, 1) : 0;
}

static struct choice *choice_of(struct slot *t, const struct pxd_scene *s)
{
	return &t->best[s->nrefs][apart(s)];
}

static struct fresh *fresh_of(struct pxd_forecast *f, const struct pxd_scene *s)
{
	return &f->fresh[pxd_elem_class(s->elem)][s->nrefs][apart(s)];
}

void pxd_scene_refs(const struct pxd_scene *s, const struct pxd_predictor *p, int *out)
{
	int period = p->period > 1 ? p->period : 1, first = first_of(s, period);

	for (int i = 0; i < p->nrefs; i++)
		out[i] = p->how & PXD_PREDICT_WEIGHTED ? first + i * period
						       : (i + 1) * (s->back + first) - s->back;
}

/* Are all references of p at hand? Others came before, at other distances, when it was chosen. */
static bool at_hand(const struct pxd_scene *s, const struct pxd_predictor *p)
{
	int which[PXD_PREDICT_REFS];

	pxd_scene_refs(s, p, which);
	return p->nrefs == 0 || which[p->nrefs - 1] < s->nrefs;
}

static void refs_at(const struct pxd_scene *s, const struct pxd_predictor *p, size_t at, const uint8_t **ref)
{
	int which[PXD_PREDICT_REFS];

	pxd_scene_refs(s, p, which);
	for (int i = 0; i < PXD_PREDICT_REFS; i++)
		ref[i] = i < p->nrefs ? s->ref[which[i]] + at : NULL;
}

/* The stride that the datatype tells, if there is something to be gained by it that the usual ones do not; else 0. */
static uint8_t stride_told(const struct pxd_scene *s)
{
	if (s->stride > UINT8_MAX || s->stride * STRIDES > s->n / pxd_predict_word(s->elem))
		return 0;
	for (size_t i = 0; i < sizeof strides; i++)
		if (s->stride <= strides[i])
			return 0;
	return (uint8_t)s->stride;
}

/* Significant bits that a predictor leaves in the blocks of s. */
static double bits_left(struct pxd_forecast *f, const struct pxd_scene *s, const struct pxd_predictor *p)
{
	unsigned word = pxd_predict_word(s->elem);
	size_t warm = stride_told(s) * 3u > WARM ? stride_told(s) * 3u : WARM, each = BLOCK + warm - WARM;
	size_t count = s->n / word, blocks = count / each < BLOCKS ? count / each : BLOCKS;
	double bits = 0;

	if (blocks == 0) {
		blocks = 1;
		each = count;
	}
	for (size_t b = 0; b < blocks; b++) {
		size_t at = (count - each) / blocks * b * word;
		const uint8_t *ref[PXD_PREDICT_REFS];

		refs_at(s, p, at, ref);
		pxd_predict_apply(p, word, s->in + at, ref, each * word, f->out);
		bits += (double)pxd_predict_bits(word, f->out, each * word, each > 2 * warm ? warm : 0);
	}
	return bits;
}

static void weigh(const struct pxd_scene *s, struct pxd_predictor *p)
{
	const uint8_t *ref[PXD_PREDICT_REFS];

	refs_at(s, p, 0, ref);
	pxd_weigh(p, pxd_predict_word(s->elem), s->in, ref, s->n);
}

/* The neighbour is taken away k times. */
static void space_set(struct pxd_predictor *p, int k, uint8_t stride)
{
	int most = PXD_PREDICT_SPACE / PXD_PREDICT_SPACE_1;

	p->how = (uint8_t)((p->how & ~PXD_PREDICT_SPACE) | (k < most ? k : most) * PXD_PREDICT_SPACE_1);
	p->more = (uint8_t)(k < most ? 0 : k - most);
	p->stride = k ? stride : 0;
}

struct race {
	struct pxd_forecast *f;
	const struct pxd_scene *s;
	uint8_t base;              /* bits of `how` that all candidates have */
	struct pxd_predictor best; /* how = 0: none yet */
	double bits;
};

static double bits_of(struct race *r, uint8_t how, uint8_t stride, int nrefs)
{
	struct pxd_predictor p = { .how = how, .stride = stride, .nrefs = nrefs };

	return bits_left(r->f, r->s, &p);
}

static double try_one(struct race *r, const struct pxd_predictor *p)
{
	double bits = bits_left(r->f, r->s, p);

	if (r->best.how == 0 || bits < r->bits) {
		r->bits = bits;
		r->best = *p;
	}
	return bits;
}

/* p with the neighbour at `stride` taken away `from` times, and more often, up to three times or beyond as long as that leaves fewer bits. */
static void try_spaces(struct race *r, struct pxd_predictor p, int from, uint8_t stride)
{
	int usual = PXD_PREDICT_SPACE / PXD_PREDICT_SPACE_1, most = usual;
	double before = 0;

	if (stride * (most + PXD_PREDICT_MORE) <= WARM)
		most += PXD_PREDICT_MORE;
	for (int k = from; k <= most; k++) {
		double bits;

		space_set(&p, k, stride);
		bits = try_one(r, &p);
		if (k >= usual && bits > before)
			break;
		before = bits;
	}
}

/* Are whole numbers or floating-point numbers the better image? (Of numbers that are all positive they are the same, and where they leave about as
 * much, more predictors take the latter.) */
static uint8_t image_of(struct race *r)
{
	double whole = 0, floating = 0;

	for (uint8_t stride = 1; stride <= 3; stride++) {
		whole += bits_of(r, r->base | PXD_PREDICT_SPACE_1, stride, 0);
		floating += bits_of(r, r->base | PXD_PREDICT_SPACE_1 | PXD_PREDICT_FLOAT, stride, 0);
	}
	if (r->s->nrefs > 0) {
		whole += bits_of(r, r->base | 1, 0, 1);
		floating += bits_of(r, r->base | 1 | PXD_PREDICT_FLOAT, 0, 1);
	}
	return floating <= whole * TIE ? PXD_PREDICT_FLOAT : 0;
}

/* With weights: of two references, of four, of all. */
static void race_weighted(struct race *r, uint8_t stride)
{
	for (int n = 2; n <= r->s->nrefs; n = n + 2 <= r->s->nrefs || n == r->s->nrefs ? n + 2 : n + 1) {
		struct pxd_predictor p = { .how = r->base | PXD_PREDICT_WEIGHTED | 1, .nrefs = n };

		weigh(r->s, &p);
		for (uint8_t k = 0; k <= 1; k++) {
			space_set(&p, k, stride);
			try_one(r, &p);
		}
	}
}

/* From every second message, or third, or fourth: programs send the parts of a step alike, such as a transposition there and one back. */
static void race_period(struct race *r, uint8_t period, uint8_t stride)
{
	int all = (r->s->nrefs - first_of(r->s, period) + period - 1) / period;
	struct pxd_predictor p = {
		.how = r->base | PXD_PREDICT_WEIGHTED | 1, .period = period, .nrefs = all
	};

	for (uint8_t time = 1; time <= spaced(r->s, period); time++)
		for (uint8_t k = 0; k <= 1; k++)
			try_one(r, &(struct pxd_predictor){
					   .how = (uint8_t)(time | k * PXD_PREDICT_SPACE_1) | r->base,
					   .stride = k ? stride : 0,
					   .period = period,
					   .nrefs = time });
	if (all < 2 || !(r->base & PXD_PREDICT_FLOAT))
		return;
	weigh(r->s, &p);
	try_one(r, &p);
}

/* The best predictor of s, but for those that learn; the stride of the best one in space alone. */
static uint8_t race_run(struct race *r)
{
	uint8_t image, space_stride, big = r->base;

	image = image_of(r);
	r->base = big | image;
	for (size_t i = 0; i < sizeof strides; i++)
		try_spaces(r, (struct pxd_predictor){ .how = r->base }, 1, strides[i]);
	if (stride_told(r->s) > 0)
		try_spaces(r, (struct pxd_predictor){ .how = r->base }, 1, stride_told(r->s));
	space_stride = r->best.stride;
	for (uint8_t time = 1; time <= spaced(r->s, 1); time++)
		try_spaces(
			r, (struct pxd_predictor){ .how = time | r->base, .nrefs = time }, 0, space_stride);
	if (r->s->nrefs > 0)
		try_one(r, &(struct pxd_predictor){ .how = PXD_PREDICT_XOR | 1 | big, .nrefs = 1 });
	if (image)
		race_weighted(r, space_stride);
	for (uint8_t period = 2; period <= PERIODS; period++)
		race_period(r, period, space_stride);
	return space_stride;
}

/* What the codecs make of a sample of s, predicted or (how = 0) plain. */
static struct pxd_outlook outlook_of(
	struct pxd_forecast *f, struct pxd_codec *c, const struct pxd_scene *s, const struct pxd_predictor *p)
{
	bool learnt = pxd_predict_learnt(p);
	size_t most = learnt ? SAMPLE / 2 : SAMPLE, len = s->n < most ? s->n / 16 * 16 : most;
	size_t at = (s->n - len) / 2 & ~(size_t)15, m;
	struct pxd_outlook o = { 1, 1 };
	const uint8_t *ref[PXD_PREDICT_REFS];
	unsigned word = pxd_predict_word(s->elem);
	const struct pxd_lesson *t = NULL;
	struct pxd_lesson *own;
	struct pxd_guide g;

	refs_at(s, p, at, ref);
	if (pxd_lesson_have(p, word, &t, &own, ref, len) < 0 ||
		(p->how && pxd_foresee(p, word, t, s->in + at, ref, len, f->out) < 0)) {
		pxd_lesson_free(own);
		return o;
	}
	m = learnt ? 0
		   : pxd_codec_pack(c, PXD_CODEC_ZSTD | PXD_CODEC_SHUFFLE, 1, s->elem,
			     p->how ? f->out : s->in + at, len, f->packed, sizeof f->packed);
	/* What is learnt takes its time whatever comes behind it, and by length is best: zstd is no choice. */
	if (learnt)
		o.zstd = 1e3;
	else if (m)
		o.zstd = (double)m / (double)len;
	g = pxd_guide_of(p, t);
	m = p->how ? pxd_residual_pack(word, &g, f->out, len, f->packed, sizeof f->packed) : 0;
	pxd_lesson_free(own);
	if (m)
		o.residual = (double)m / (double)len;
	return o;
}

static double better_of(const struct pxd_outlook *o)
{
	return o->zstd < o->residual ? o->zstd : o->residual;
}

static struct pxd_predictor predictor_of(const struct slot *t, const struct kind *k)
{
	struct pxd_predictor p = {
		.how = k->how, .more = k->more, .stride = k->stride, .period = k->period, .nrefs = k->nrefs
	};

	if (pxd_predict_learnt(&p)) {
		p.keep = KEEP;
		p.row = t->row;
	}
	return p;
}

static struct kind kind_of(const struct pxd_predictor *p)
{
	return (struct kind){ p->how, p->more, p->stride, p->period, (uint8_t)p->nrefs };
}

/* Is what has been in use so far as good as the winner of the race, or nearly? Then it stays. */
static void keep_old(struct race *r, const struct slot *t, const struct choice *old)
{
	struct pxd_predictor p = predictor_of(t, &old->kind);

	if (!old->known || p.how == 0 || pxd_predict_learnt(&p) || !at_hand(r->s, &p))
		return;
	if (pxd_predict_weighted(&p))
		weigh(r->s, &p);
	if (bits_left(r->f, r->s, &p) * FEWER_BITS <= r->bits)
		r->best = p;
}

/* The length of the rows of an array: the least distance at which numbers have moved more alike than at those nearby. 0: there is none. */
static uint32_t row_of(struct pxd_forecast *f, const struct pxd_scene *s, const uint8_t *newest)
{
	unsigned word = pxd_predict_word(s->elem);
	size_t all = s->n / word, count = all < MOVED ? all : MOVED;
	double unlike[3] = { 0 }, best = 0;
	uint32_t found = 0;

	for (size_t i = 0; i < count; i++) {
		f->moved[i] = pxd_predict_value(s->in + i * word, word, s->big) -
			      pxd_predict_value(newest + i * word, word, s->big);
		if (!isfinite(f->moved[i]))
			f->moved[i] = 0;
	}
	for (uint32_t row = 2; row <= ROWS && row <= count / 3; row++) {
		memmove(unlike, unlike + 1, 2 * sizeof *unlike);
		unlike[2] = 0;
		for (size_t i = count / 3; i < count; i += 5)
			unlike[2] += fabs(f->moved[i] - f->moved[i - row]);
		if (row < 10 || unlike[1] >= unlike[0] || unlike[1] > unlike[2])
			continue;
		if (found == 0 || unlike[1] < 0.8 * best) {
			found = row - 1;
			best = unlike[1];
		}
	}
	return found;
}

/* Part of the bits that p leaves of the first numbers of s, but for those that there is not much to learn from yet; HUGE_VAL: it cannot be. */
static double left_at_first(struct pxd_forecast *f, const struct pxd_scene *s, const struct pxd_predictor *p)
{
	unsigned word = pxd_predict_word(s->elem);
	size_t all = s->n / word, count = all < LESSONS ? all : LESSONS, from = all > count ? count / 4 : 0;
	const uint8_t *ref[PXD_PREDICT_REFS];

	refs_at(s, p, 0, ref);
	if (pxd_foresee(p, word, NULL, s->in, ref, count * word, f->out) < 0)
		return HUGE_VAL;
	return (double)pxd_predict_bits(word, f->out, count * word, from) /
	       (8.0 * (double)(word * (count - from)));
}

/* Does learning leave fewer bits than what has won so far? */
static void race_learnt(struct race *r, uint8_t stride, struct slot *t, bool before)
{
	const struct pxd_scene *s = r->s;
	struct pxd_predictor p = { .how = PXD_PREDICT_LEARNT | PXD_PREDICT_FLOAT | 1 | r->base,
		.stride = stride,
		.period = r->best.period,
		.keep = KEEP };
	int period = p.period > 1 ? p.period : 1;
	uint32_t rows[] = { t->row, 0, 0 };
	double least;

	p.nrefs = (s->nrefs - first_of(s, period) + period - 1) / period;
	p.nrefs = p.nrefs < PXD_PREDICT_LESSON ? p.nrefs : PXD_PREDICT_LESSON;
	if (s->slow <= 0 || !(r->base & PXD_PREDICT_FLOAT) || p.nrefs < 2 || stride == 0)
		return;
	rows[1] = row_of(r->f, s, s->ref[first_of(s, period)]);
	least = left_at_first(r->f, s, &r->best) * (before ? 1 : FEWER_BITS);
	/* Without rows only if no row is any good: what has rows says so. */
	for (int i = 0; i < 3 && !(i == 2 && pxd_predict_learnt(&r->best)); i++) {
		double left;

		p.row = rows[i] > 4u * stride ? rows[i] : 0;
		if (i < 2 && (p.row == 0 || (i == 1 && p.row == rows[0])))
			continue;
		left = left_at_first(r->f, s, &p);
		/* What is small arrives sooner if it is not learnt. */
		if (left >= least || s->slow > PXD_SLOW * left)
			continue;
		least = left * SAME_BITS;
		r->best = p;
		t->row = p.row;
	}
}

static void fresh_found(struct fresh *r, const struct choice *now, uint32_t row)
{
	bool alike = r->choice.known && memcmp(&r->choice.kind, &now->kind, sizeof now->kind) == 0;

	r->next = !alike ? 1 : r->next < ALIKE_MAX ? 2 * r->next : ALIKE_MAX;
	r->left = r->next;
	r->choice = *now;
	r->row = row;
}

static void look(struct pxd_forecast *f, struct pxd_codec *c, const struct pxd_scene *s, struct slot *t)
{
	static const struct pxd_predictor none;
	struct choice *now = choice_of(t, s), old = *now;
	struct race r = { .f = f, .s = s, .base = s->big ? PXD_PREDICT_BIG : 0 };
	struct pxd_outlook plain = outlook_of(f, c, s, &none), with;
	bool learnt = old.known && (old.kind.how & PXD_PREDICT_LEARNT) == PXD_PREDICT_LEARNT;
	uint8_t stride;

	f->looks++;
	t->looked = true;
	stride = race_run(&r);
	keep_old(&r, t, &old);
	race_learnt(&r, stride, t, learnt);
	with = outlook_of(f, c, s, &r.best);
	now->known = true;
	now->kind = better_of(&with) < plain.zstd * (old.known && old.kind.how ? 1 : BETTER)
			    ? kind_of(&r.best)
			    : kind_of(&none);
	now->outlook = now->kind.how ? with : plain;
	if (old.known && memcmp(&old.kind, &now->kind, sizeof old.kind) != 0)
		t->wait_next = 1;
	t->wait = t->wait_next;
	t->wait_next *= t->wait_next < (now->kind.how ? WAIT_MAX : VAIN_MAX) ? 2 : 1;
	if (!old.known)
		fresh_found(fresh_of(f, s), now, t->row);
}

/* A flow that has one reference more than before, and learnt from those: it goes on with all, without a look. */
static void learn_on(const struct slot *t, const struct pxd_scene *s, struct choice *best)
{
	const struct choice *before = &t->best[s->nrefs > 0 ? s->nrefs - 1 : 0][0];

	if (!before->known || (before->kind.how & PXD_PREDICT_LEARNT) != PXD_PREDICT_LEARNT ||
		before->kind.period > 1)
		return;
	*best = *before;
	best->kind.nrefs = (uint8_t)(s->nrefs < PXD_PREDICT_LESSON ? s->nrefs : PXD_PREDICT_LESSON);
}

/* A flow that was never looked at with what is at hand goes by the one before it, so that thousands of flows, as of a program that has a tag for
 * each step, do not cost a look each; but not twice in a row. */
static void go_by_others(
	struct pxd_forecast *f, const struct pxd_scene *s, struct slot *t, struct choice *best)
{
	struct fresh *r = fresh_of(f, s);

	if (!r->choice.known || r->left == 0 || (t->looked && t->wait == 0))
		return;
	r->left--;
	*best = r->choice;
	if (t->row == 0)
		t->row = r->row;
	t->wait += t->wait == 0;
	t->looked = true;
}

bool pxd_forecast_choose(struct pxd_forecast *f, struct pxd_codec *c, const struct pxd_scene *s,
	struct pxd_predictor *p, struct pxd_outlook *o)
{
	struct slot *t = slot_of(f, s->flow);
	struct choice *best = choice_of(t, s);

	if (!best->known && s->back == 1)
		learn_on(t, s, best);
	if (!best->known)
		go_by_others(f, s, t, best);
	*p = predictor_of(t, &best->kind);
	if (t->wait > 0 && best->known && at_hand(s, p)) {
		t->wait--;
	} else {
		look(f, c, s, t);
		*p = predictor_of(t, &best->kind);
	}
	*o = best->outlook;
	return best->kind.how != 0;
}

void pxd_forecast_learn(struct pxd_forecast *f, const struct pxd_scene *s, int codec, size_t m)
{
	struct slot *t = slot_of(f, s->flow);
	struct choice *best = choice_of(t, s);
	double *expected = codec == PXD_CODEC_RESIDUAL ? &best->outlook.residual : &best->outlook.zstd;
	double ratio = m ? (double)m / (double)s->n : 1, move;

	if (!best->known)
		return;
	if (ratio > WORSE * *expected)
		t->wait = 0;
	/* What one of them tells of the data holds for the other one. */
	move = 1 + WEIGHT * (ratio / *expected - 1);
	best->outlook.zstd *= move;
	best->outlook.residual *= move;
}
