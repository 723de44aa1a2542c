/* forecast.c: see forecast.h.
 *
 * Design. A look has two steps. All candidates predict a few blocks of numbers, and the one that leaves the fewest significant bits
 * is the best predictor: cheap, and a good measure for numbers of one kind. Whether it beats the codec alone is then measured
 * with the codec itself on a sample, as text, indices and fields at rest are what bits say nothing about. Changes need a
 * gain of a few per cent, so that noise does not make the choice swing.
 */
#include "forecast.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS      512   /* flows remembered: a power of two */
#define BLOCKS     4     /* looked at, of a segment */
#define BLOCK      256   /* numbers of each */
#define WARM       18    /* of those at its beginning, which have no neighbours yet, are not counted */
#define SAMPLE     16384 /* bytes that are compressed */
#define FEWER_BITS 0.97  /* another predictor needs to be that much better than the one in use */
#define BETTER     0.95  /* the same of any predictor against none */
#define WORSE      1.15  /* a prediction that is so much worse than before is looked at again */
#define WAIT_MAX   32    /* segments between looks */
#define WEIGHT     0.3   /* of a new ratio */

static const uint8_t strides[] = { 1, 2, 3, 4, 6 };

struct choice {
	bool known;
	uint8_t how, stride; /* how = 0: better without */
	double ratio;
};

struct slot {
	uint64_t flow;
	unsigned wait, wait_next;
	struct choice best[PXD_PREDICT_REFS + 1]; /* by number of references at hand */
};

struct pxd_forecast {
	struct slot slot[SLOTS];
	uint64_t looks;
	uint8_t out[SAMPLE], packed[SAMPLE];
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
	struct slot *t = &f->slot[(flow ^ flow >> 32) % SLOTS];

	if (t->flow != flow || t->wait_next == 0) {
		memset(t, 0, sizeof *t);
		t->flow = flow;
		t->wait_next = 1;
	}
	return t;
}

static void refs_at(const struct pxd_scene *s, size_t at, const uint8_t **ref)
{
	for (int i = 0; i < PXD_PREDICT_REFS; i++)
		ref[i] = i < s->nrefs ? s->ref[i] + at : NULL;
}

/* Significant bits that a predictor leaves in the blocks of s. */
static double bits_left(struct pxd_forecast *f, const struct pxd_scene *s, uint8_t how, uint8_t stride)
{
	unsigned word = pxd_predict_word(s->elem);
	size_t count = s->n / word, blocks = count > BLOCKS * BLOCK ? BLOCKS : 1, each = BLOCK;
	struct pxd_predictor p = { .how = how, .stride = stride };
	double bits = 0;

	if (blocks == 1 && count < BLOCK)
		each = count;
	for (size_t b = 0; b < blocks; b++) {
		size_t at = (count - each) / blocks * b * word;
		const uint8_t *ref[PXD_PREDICT_REFS];

		refs_at(s, at, ref);
		pxd_predict_apply(&p, word, s->in + at, ref, each * word, f->out);
		bits += (double)pxd_predict_bits(word, f->out, each * word, each > 2 * WARM ? WARM : 0);
	}
	return bits;
}

struct race {
	struct pxd_forecast *f;
	const struct pxd_scene *s;
	uint8_t base; /* bits of `how` that all candidates have */
	uint8_t how, stride;
	double bits;
};

static void try_one(struct race *r, uint8_t how, uint8_t stride)
{
	double bits = bits_left(r->f, r->s, how | r->base, stride);

	if (r->how == 0 || bits < r->bits) {
		r->bits = bits;
		r->how = how | r->base;
		r->stride = stride;
	}
}

/* Are whole numbers or floating-point numbers the better image? */
static uint8_t image_of(struct race *r)
{
	double whole = 0, floating = 0;

	for (uint8_t stride = 1; stride <= 3; stride++) {
		whole += bits_left(r->f, r->s, r->base | PXD_PREDICT_SPACE_1, stride);
		floating += bits_left(r->f, r->s, r->base | PXD_PREDICT_SPACE_1 | PXD_PREDICT_FLOAT, stride);
	}
	if (r->s->nrefs > 0) {
		whole += bits_left(r->f, r->s, r->base | 1, 0);
		floating += bits_left(r->f, r->s, r->base | 1 | PXD_PREDICT_FLOAT, 0);
	}
	return floating < whole ? PXD_PREDICT_FLOAT : 0;
}

/* The best predictor of s. */
static void race_run(struct race *r)
{
	uint8_t image, space_stride = 1, big = r->base;

	image = image_of(r);
	r->base = big | image;
	for (size_t i = 0; i < sizeof strides; i++)
		for (uint8_t k = 1; k <= 3; k++)
			try_one(r, (uint8_t)(k * PXD_PREDICT_SPACE_1), strides[i]);
	space_stride = r->stride;
	for (uint8_t time = 1; time <= r->s->nrefs; time++)
		for (uint8_t k = 0; k <= 3; k++)
			try_one(r, (uint8_t)(time | k * PXD_PREDICT_SPACE_1), k ? space_stride : 0);
	if (r->s->nrefs > 0) {
		r->base = big;
		try_one(r, PXD_PREDICT_XOR | 1, 0);
	}
}

/* What the codec makes of a sample of s, predicted or (how = 0) plain. */
static double ratio_of(
	struct pxd_forecast *f, struct pxd_codec *c, const struct pxd_scene *s, uint8_t how, uint8_t stride)
{
	size_t len = s->n < SAMPLE ? s->n / 16 * 16 : SAMPLE, at = (s->n - len) / 2 & ~(size_t)15, m;
	struct pxd_predictor p = { .how = how, .stride = stride };
	const uint8_t *ref[PXD_PREDICT_REFS];

	refs_at(s, at, ref);
	if (how)
		pxd_predict_apply(&p, pxd_predict_word(s->elem), s->in + at, ref, len, f->out);
	m = pxd_codec_pack(c, PXD_CODEC_ZSTD | PXD_CODEC_SHUFFLE, 1, s->elem, how ? f->out : s->in + at, len,
		f->packed, sizeof f->packed);
	return m ? (double)m / (double)len : 1;
}

static void look(struct pxd_forecast *f, struct pxd_codec *c, const struct pxd_scene *s, struct slot *t)
{
	struct choice *now = &t->best[s->nrefs], old = *now;
	struct race r = { .f = f, .s = s, .base = s->big ? PXD_PREDICT_BIG : 0 };
	double plain = ratio_of(f, c, s, 0, 0), with;

	f->looks++;
	race_run(&r);
	if (old.known && old.how && bits_left(f, s, old.how, old.stride) * FEWER_BITS <= r.bits) {
		r.how = old.how;
		r.stride = old.stride;
	}
	with = ratio_of(f, c, s, r.how, r.stride);
	now->known = true;
	now->how = with < plain * (old.known && old.how ? 1 : BETTER) ? r.how : 0;
	now->stride = now->how ? r.stride : 0;
	now->ratio = now->how ? with : plain;
	if (old.known && (old.how != now->how || old.stride != now->stride))
		t->wait_next = 1;
	t->wait = t->wait_next;
	t->wait_next = t->wait_next < WAIT_MAX ? 2 * t->wait_next : WAIT_MAX;
}

bool pxd_forecast_choose(struct pxd_forecast *f, struct pxd_codec *c, const struct pxd_scene *s,
	struct pxd_predictor *p, double *ratio)
{
	struct slot *t = slot_of(f, s->flow);
	struct choice *best = &t->best[s->nrefs];

	if (t->wait == 0 || !best->known)
		look(f, c, s, t);
	else
		t->wait--;
	p->how = best->how;
	p->stride = best->stride;
	*ratio = best->ratio;
	return best->how != 0;
}

void pxd_forecast_learn(struct pxd_forecast *f, uint64_t flow, int nrefs, size_t n, size_t m)
{
	struct slot *t = slot_of(f, flow);
	struct choice *best = &t->best[nrefs];
	double ratio = m ? (double)m / (double)n : 1;

	if (!best->known)
		return;
	if (ratio > WORSE * best->ratio)
		t->wait = 0;
	best->ratio += WEIGHT * (ratio - best->ratio);
}
