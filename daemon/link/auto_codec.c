/* auto_codec.c: see auto_codec.h.
 *
 * Design. All times are nanoseconds of one segment: w on the plain wire, c in the compressor, d in the receiver's
 * decompressor, r w on the wire when compressed, D from when a core is free to compress it until the wire has sent what is queued, which hides
 * c and d. But a compressor slower than the wire delays whatever comes behind. So
 *     cost = max(c, max(c + d - D, 0) + r w)     against     w
 * which is the slower of processor and wire with the pipe full, and the sum with the pipe empty.
 *
 * Ratios come from a sample first, then from what was compressed; when one codec's ratio moves, those of the others are
 * moved alike. Speeds start from pessimistic guesses, because nothing here can measure; a codec that would pay if it were
 * fast is tried once the time that this may lose has been saved up: SAVE of all wire time goes into that account, and every
 * loss is taken from it. So the sum of all losses stays below SAVE, if those of codecs that are known, which are tried again ever more rarely, are
 * left out. But of a bad time, in which everything took
 * longer than reckoned because others wanted the machine, no more than SAVE_MAX_NS is remembered; and a codec that was given up in it is
 * tried again after STALE segments, twice as many after each time in vain.
 */
#include "auto_codec.h"

#include <stdlib.h>

#include "residual.h"

#define SAMPLE       16384
#define FIXED_NS     10000 /* per compressed segment: handing over to the worker and back */
#define PAUSE_MAX    64    /* segments */
#define RESAMPLE     64 /* segments sent plain, because the wire is fast, until the data is looked at again */
#define RESAMPLE_MAX 1024 /* after a look in vain twice as many as before it, up to so many */
#define STALE        64   /* segments after which a measurement is worth a new look */
#define STALE_MAX    4096
#define POOR         0.97 /* a ratio from here on counts as incompressible */
#define GAIN         0.96 /* compress when the cost is below this part of w */
#define SAVE         0.01 /* part of the wire time that trials and samples may lose */
#define SAVE_MAX_NS  30e6 /* so that a long time of success does not pay for a long time of losses */
#define WEIGHT       0.3  /* of a new value in the moving averages */

struct candidate {
	int codec, level;
	double speed;  /* bytes/ns that every machine reaches */
	double hope;   /* times that on a fast machine */
	double ratio;  /* relative to that of the sample's codec */
	double unpack; /* decompressing takes this part of the time for compressing, or so */
};

enum { LZ4, ZSTD1, ZSTD3, RESIDUAL, CANDIDATES };
enum { SAMPLER = ZSTD1 };

static const struct candidate candidates[CANDIDATES] = {
	[LZ4] = { PXD_CODEC_LZ4, 1, 0.15, 8, 1.25, 1 / 3.0 },
	[ZSTD1] = { PXD_CODEC_ZSTD, 1, 0.08, 8, 1, 1 / 3.0 },
	[ZSTD3] = { PXD_CODEC_ZSTD, 3, 0.04, 8, 0.97, 1 / 3.0 },
	[RESIDUAL] = { PXD_CODEC_RESIDUAL, 0, 0.03, 8, 1, 1 }, /* of what has been predicted only */
};

struct cell {
	double ratio;  /* 0 = unknown */
	double speed;  /* bytes/ns, 0 = not measured */
	uint64_t seen; /* number of the segment that was measured last */
	unsigned wait; /* segments until it is worth a new look; 0 = STALE */
	bool exact;    /* the ratio is measured, not guessed from a sample */
	bool trying;   /* a trial has not been learnt from yet */
};

/* Element sizes that are shuffled alike. */
struct class
{
	int candidates; /* those that may be used */
	struct cell cell[CANDIDATES];
	bool known;     /* the ratios mean something */
	unsigned pause; /* segments to leave plain */
	unsigned pause_next;
	unsigned plain_run;  /* segments sent plain since the last look at the data */
	unsigned plain_next; /* from so many on it is looked at again */
	uint64_t seq;
};

struct pxd_auto {
	enum pxd_compress mode;
	int level;
	struct class class[PXD_ELEM_CLASSES], predicted[PXD_ELEM_CLASSES];
	double saved;  /* ns that may be lost */
	double rate;   /* bytes/ns, at the last choice */
	double hidden; /* ns that the queue hid then */
	uint64_t samples;
	uint8_t scratch[SAMPLE];
};

bool pxd_auto_foresees(const struct pxd_link_opts *o, unsigned elem, size_t n, double rate)
{
	return pxd_predict_word(elem) != 0 && n >= PXD_PACK_MIN &&
	       (o->predict == PXD_PREDICTION_ALWAYS || (rate > 0 && rate < PXD_THIN));
}

struct pxd_auto *pxd_auto_new(const struct pxd_link_opts *o)
{
	struct pxd_auto *a = calloc(1, sizeof *a);

	if (!a)
		return NULL;
	a->mode = o->compress;
	a->level = o->compress_level;
	for (int k = 0; k < PXD_ELEM_CLASSES; k++) {
		a->class[k].pause_next = a->predicted[k].pause_next = 1;
		a->class[k].plain_next = a->predicted[k].plain_next = RESAMPLE;
		a->class[k].candidates = RESIDUAL;
		a->predicted[k].candidates = CANDIDATES;
	}
	return a;
}

void pxd_auto_free(struct pxd_auto *a)
{
	free(a);
}

uint64_t pxd_auto_samples(const struct pxd_auto *a)
{
	return a->samples;
}

static struct class *class_of(struct pxd_auto *a, unsigned elem, bool predicted)
{
	return &(predicted ? a->predicted : a->class)[pxd_elem_class(elem)];
}

static int with_shuffle(int codec, unsigned elem)
{
	return codec != PXD_CODEC_RESIDUAL && pxd_codec_shuffles(elem) ? codec | PXD_CODEC_SHUFFLE : codec;
}

static void pause_begin(struct class *k)
{
	k->known = false;
	if (k->pause > 0) /* of a segment that was chosen before the pause began */
		return;
	k->pause = k->pause_next;
	k->pause_next = k->pause_next < PAUSE_MAX ? 2 * k->pause_next : PAUSE_MAX;
}

/* So many segments are to pass before a measurement is doubted. */
static unsigned wait_of(const struct cell *l)
{
	return l->wait ? l->wait : STALE;
}

/* The speed that is sure, or that others than codec i suggest on this machine. */
static double speed_guess(const struct class *k, int i)
{
	double best = 1;

	for (int j = 0; j < CANDIDATES; j++)
		if (j != i && k->cell[j].speed * 0.7 > best * candidates[j].speed)
			best = k->cell[j].speed * 0.7 / candidates[j].speed;
	return best * candidates[i].speed;
}

/* The speed to count with. */
static double speed_of(const struct class *k, int i)
{
	return k->cell[i].speed > 0 ? k->cell[i].speed : speed_guess(k, i);
}

static double cost(int i, double n, double w, double ratio, double speed, double hidden)
{
	double c = FIXED_NS + n / speed, d = c * candidates[i].unpack, late = c + d - hidden;

	late = (late > 0 ? late : 0) + ratio * w;
	return late > c ? late : c;
}

/* ns, that were lost. */
static void lose(struct pxd_auto *a, double ns)
{
	a->saved -= ns > 0 ? ns : 0;
	if (a->saved < -SAVE_MAX_NS)
		a->saved = -SAVE_MAX_NS;
}

/* Look at the data; false: it does not shrink. */
static bool sample(
	struct pxd_auto *a, struct class *k, struct pxd_codec *c, const uint8_t *in, size_t n, unsigned elem)
{
	size_t len = n < SAMPLE ? n : SAMPLE, from = (n - len) / 2 & ~(size_t)15, m;
	double ratio;

	m = pxd_codec_pack(c, with_shuffle(candidates[SAMPLER].codec, elem), candidates[SAMPLER].level, elem,
		in + from, len, a->scratch, sizeof a->scratch);
	ratio = m ? (double)m / (double)len : 1;
	a->samples++;
	lose(a, (double)len / speed_of(k, SAMPLER));
	if (k->known)
		k->plain_next = k->plain_next < RESAMPLE_MAX ? 2 * k->plain_next : RESAMPLE_MAX;
	k->plain_run = 0;
	if (ratio > POOR)
		return false;
	for (int i = 0; i < CANDIDATES; i++) {
		k->cell[i].ratio = ratio * candidates[i].ratio;
		if (k->cell[i].ratio > 1)
			k->cell[i].ratio = 1;
		k->cell[i].exact = false;
	}
	k->known = true;
	return true;
}

/* A codec that nobody has measured lately and that would be the best one if things stand well; -1: none. */
static int trial(
	const struct pxd_auto *a, const struct class *k, double n, double w, double hidden, double best)
{
	double hope = best * GAIN;
	int found = -1;

	for (int i = 0; i < k->candidates; i++) {
		const struct cell *l = &k->cell[i];
		bool known = l->speed > 0, fresh = known && k->seq - l->seen < wait_of(l);
		double guess = speed_guess(k, i);
		double speed = !known                 ? candidates[i].hope * candidates[i].speed
			       : guess > 2 * l->speed ? guess
						      : 2 * l->speed;
		double c = (FIXED_NS + n / speed_of(k, i)) * (1 + candidates[i].unpack);
		double lost = (c > hidden ? c - hidden : 0) + l->ratio * w - best;
		double v = cost(i, n, w, l->ratio * 0.85, speed, hidden);

		if (fresh || l->trying || v >= hope || (!known && lost > a->saved))
			continue;
		hope = v;
		found = i;
	}
	return found;
}

/* The codec that is fastest, or worth a trial (*tried); -1: none. */
static int pick(
	const struct pxd_auto *a, const struct class *k, double n, double w, double hidden, bool *tried)
{
	double best = w;
	int found = -1, other;

	for (int i = 0; i < k->candidates; i++) {
		double v = cost(i, n, w, k->cell[i].ratio, speed_of(k, i), hidden);

		if (v < best * (found < 0 ? GAIN : 1) && (a->saved >= 0 || v < 0.8 * w)) {
			best = v;
			found = i;
		}
	}
	other = trial(a, k, n, w, hidden, best);
	*tried = other >= 0;
	return *tried ? other : found;
}

static struct pxd_choice pick_codec(
	struct pxd_auto *a, struct class *k, double n, double w, double hidden, unsigned elem)
{
	bool tried;
	int i = pick(a, k, n, w, hidden, &tried);

	if (i < 0)
		return (struct pxd_choice){ .codec = PXD_CODEC_NONE };
	if (tried)
		k->cell[i].trying = true;
	a->hidden = hidden;
	return (struct pxd_choice){ .codec = with_shuffle(candidates[i].codec, elem),
		.level = candidates[i].level,
		.ns = FIXED_NS + n / speed_of(k, i),
		.len = (size_t)(n * k->cell[i].ratio) };
}

/* One segment more, whatever becomes of it. */
static void begin(struct pxd_auto *a, struct class *k, double w)
{
	a->saved += SAVE * w;
	if (a->saved > SAVE_MAX_NS)
		a->saved = SAVE_MAX_NS;
	k->seq++;
}

/* Is the data to be looked at, once that may cost something? */
static bool unseen(const struct class *k)
{
	return !k->known || k->plain_run >= k->plain_next;
}

/* Does a segment stay plain whatever is in it? */
static bool stays_plain(struct pxd_auto *a, struct class *k, double n, double w, double hidden)
{
	bool tried;

	begin(a, k, w);
	if (k->pause > 0) {
		k->pause--;
		return true;
	}
	/* A wire that the fastest codec cannot beat needs no look at the data. */
	if (cost(LZ4, n, w, 0, candidates[LZ4].hope * candidates[LZ4].speed, hidden) >= w)
		return true;
	if (unseen(k))
		return (n < SAMPLE ? n : SAMPLE) / speed_of(k, SAMPLER) > a->saved + hidden;
	if (pick(a, k, n, w, hidden, &tried) >= 0)
		return false;
	k->plain_run++;
	return true;
}

static struct pxd_choice choose_auto(
	struct pxd_auto *a, struct pxd_codec *c, const uint8_t *in, size_t n, unsigned elem, double queued)
{
	static const struct pxd_choice plain = { .codec = PXD_CODEC_NONE };
	struct class *k = class_of(a, elem, false);
	double w = (double)n / a->rate, hidden = queued / a->rate;
	struct pxd_choice ch;

	if (stays_plain(a, k, (double)n, w, hidden))
		return plain;
	if (unseen(k) && !sample(a, k, c, in, n, elem)) {
		pause_begin(k);
		return plain;
	}
	ch = pick_codec(a, k, (double)n, w, hidden, elem);
	k->plain_run = ch.codec ? 0 : k->plain_run + 1;
	if (ch.codec)
		k->plain_next = RESAMPLE;
	return ch;
}

bool pxd_auto_leaves(struct pxd_auto *a, size_t n, unsigned elem, double rate, size_t queued)
{
	struct class *k = class_of(a, elem, false);
	double saved = a->saved;

	a->rate = rate / 1e9;
	if (stays_plain(a, k, (double)n, (double)n / a->rate, (double)queued / a->rate))
		return true;
	a->saved = saved; /* pxd_auto_choose begins with it */
	k->seq--;
	return false;
}

/* `compress:` names a codec: it is used unless the data does not shrink. */
static struct pxd_choice choose_fixed(struct pxd_auto *a, unsigned elem)
{
	struct class *k = class_of(a, elem, false);
	struct pxd_choice ch = { .codec = PXD_CODEC_NONE };

	if (k->pause > 0) {
		k->pause--;
		return ch;
	}
	ch.level = a->level;
	ch.codec = with_shuffle(a->mode == PXD_COMPRESS_ZLIB  ? PXD_CODEC_ZLIB
				: a->mode == PXD_COMPRESS_LZ4 ? PXD_CODEC_LZ4
							      : PXD_CODEC_ZSTD,
		elem);
	return ch;
}

struct pxd_choice pxd_auto_choose(struct pxd_auto *a, struct pxd_codec *c, const uint8_t *in, size_t n,
	unsigned elem, double rate, size_t queued)
{
	struct pxd_choice plain = { .codec = PXD_CODEC_NONE };

	if (a->mode == PXD_COMPRESS_NONE || n < PXD_PACK_MIN)
		return plain;
	if (a->mode != PXD_COMPRESS_AUTO)
		return choose_fixed(a, elem);
	if (!(rate > 0))
		return plain;
	a->rate = rate / 1e9;
	return choose_auto(a, c, in, n, elem, (double)queued);
}

struct pxd_choice pxd_auto_choose_known(
	struct pxd_auto *a, const struct pxd_outlook *o, size_t n, unsigned elem, double rate, size_t queued)
{
	struct pxd_choice ch = { .codec = PXD_CODEC_NONE };
	struct class *k = class_of(a, elem, true);
	double w;

	if (a->mode != PXD_COMPRESS_AUTO) {
		ch = choose_fixed(a, elem);
	} else if (rate > 0) {
		a->rate = rate / 1e9;
		w = (double)n / a->rate;
		begin(a, k, w);
		k->known = true; /* anew for each flow; what is learnt is the speed */
		for (int i = 0; i < CANDIDATES; i++) {
			k->cell[i].ratio = i == LZ4        ? 1
					   : i == RESIDUAL ? o->residual
							   : o->zstd * candidates[i].ratio;
			k->cell[i].exact = false;
		}
		ch = pick_codec(a, k, (double)n, w, (double)queued / a->rate, elem);
	}
	ch.predicted = ch.codec != PXD_CODEC_NONE;
	return ch;
}

static void learn_cell(struct pxd_auto *a, struct class *k, struct cell *l, double n, double m, double ns)
{
	double ratio = m / n, speed = n / (ns > 1 ? ns : 1), move, lost;
	bool first = !l->exact, known = l->speed > 0;

	l->seen = k->seq;
	l->speed = l->speed > 0 ? l->speed + WEIGHT * (speed - l->speed) : speed;
	if (k->known) {
		l->exact = true;
		move = first ? ratio / l->ratio : 1 + WEIGHT * (ratio / l->ratio - 1);
		for (int i = 0; i < CANDIDATES; i++) {
			/* A first measurement says how wrong the guess was, not how the data has changed. */
			if (first && &k->cell[i] != l)
				continue;
			k->cell[i].ratio *= move;
			if (k->cell[i].ratio > 1)
				k->cell[i].ratio = 1;
		}
	}
	if (a->rate > 0) {
		lost = ns * (1 + candidates[l - k->cell].unpack) - a->hidden;
		lost = (lost > 0 ? lost : 0) + (m - n) / a->rate;
		lose(a, lost);
		if (lost <= 0)
			l->wait = STALE;
		else if (l->trying && known)
			l->wait = wait_of(l) < STALE_MAX ? 2 * wait_of(l) : STALE_MAX;
	}
}

void pxd_auto_learn(struct pxd_auto *a, struct pxd_choice ch, unsigned elem, size_t n, size_t m, uint64_t ns)
{
	struct class *k = class_of(a, elem, ch.predicted);
	bool poor = m == 0 || (double)m > POOR * (double)n;

	if (n == 0 || ch.codec == PXD_CODEC_NONE)
		return;
	for (int i = 0; a->mode == PXD_COMPRESS_AUTO && i < CANDIDATES; i++) {
		struct cell *l = &k->cell[i];

		if (with_shuffle(candidates[i].codec, elem) != ch.codec || candidates[i].level != ch.level)
			continue;
		if (!poor)
			learn_cell(a, k, l, (double)n, (double)m, (double)ns);
		l->trying = false;
		if (poor)
			lose(a, (double)ns - a->hidden);
		/* This codec does not get far, but another one might, and has not been refuted yet. */
		if (poor && candidates[i].codec == PXD_CODEC_LZ4 && k->cell[SAMPLER].ratio < POOR) {
			l->ratio = 1;
			l->seen = k->seq;
			return;
		}
	}
	if (ch.predicted)
		return; /* how long to leave it alone is up to the forecast */
	if (poor) {
		pause_begin(k);
	} else {
		k->pause_next = 1;
	}
}
