/* pack.c: see pack.h.
 *
 * Design. A segment that may be predicted is left alone as long as a slow wire is busy with those before it: until then its
 * references arrive and are acknowledged, its lesson is made, and the worker threads do not take the processors from the segment that the wire
 * waits for. How long the wire is busy is reckoned from what it has been given and a rate that is a little more than it was last, so
 * that it never has to wait, and is seen when it becomes faster.
 */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "link_rate.h"
#include "lossy.h"
#include "residual.h"
#include "seg_code.h"
#include "wait.h"
#include "words.h"

#define AHEAD_NS 5e6  /* before the wire is done, and a quarter of what it takes for the plain segment */
#define HURRY    1.25 /* rates are reckoned so much higher */
/* A message that came with its envelope takes one frame more as a segment, which counts twice, as what it saves next time may be less, and so
 * much of everybody's time. */
#define MORE_BYTES (2.0 * PX_FRAME_SIZE)
#define MORE_NS    60e3

/* What a segment may refer to: of which stream, held. */
struct refs {
	int stream; /* -1 = of none */
	int n, back;
	struct pxd_kept *ref[PXD_PREDICT_REFS];
};

struct job {
	uv_work_t work;
	struct px_list turn; /* in l->late */
	struct pxd_path *l;
	struct px_frame f;
	bool lossy;    /* asked for, perhaps not possible */
	unsigned told; /* f.elem, if it was not guessed */
	struct pxd_seg *in, *out;
	struct pxd_choice ch;
	struct pxd_predictor pred; /* if ch.predicted */
	struct px_hint hint;       /* bound not 0: lossy within it (lossy.h), instead of ch */
	struct refs refs;
	struct pxd_student student;  /* if it learns */
	struct pxd_scene scene;      /* if it was looked at */
	int which[PXD_PREDICT_REFS]; /* of the references are those of pred */
	size_t n;                    /* encoded length, 0 = did not shrink */
	uint64_t began;              /* px_now_ns, 0 = not yet */
	uint64_t ns;                 /* of processor time */
	uint64_t passed; /* ns that passed meanwhile: more, where others want the processors, too */
};

/* What a thread works with. The worker threads live as long as the process. */
struct tools {
	struct pxd_codec *codec;
	uint8_t *scratch;
};

static struct tools *mine(void)
{
	static _Thread_local struct tools t;

	if (!t.codec)
		t.codec = pxd_codec_new();
	if (!t.scratch)
		t.scratch = malloc(PX_SEG_MAX);
	return t.codec && t.scratch ? &t : NULL;
}

struct pxd_codec *pxd_pack_codec(void)
{
	struct tools *m = mine();

	return m ? m->codec : NULL;
}

static void on_work(uv_work_t *w)
{
	struct job *j = w->data;
	const uint8_t *ref[PXD_PREDICT_REFS];
	uint64_t t = px_cpu_ns();
	struct tools *m = mine();

	if (j->began == 0)
		j->began = px_now_ns();
	for (int i = 0; j->ch.predicted && i < j->pred.nrefs; i++)
		ref[i] = j->scene.ref[j->which[i]];
	if (j->hint.bound != 0)
		j->n = pxd_lossy_pack(
			&j->hint, j->f.elem, j->in->data, j->in->len, j->out->data, j->in->len - 1);
	if (j->hint.bound != 0 && j->n == 0) { /* it cannot be kept within its bound: exact, then */
		j->hint.bound = 0;
		j->ch = (struct pxd_choice){ .codec = PXD_CODEC_ZSTD |
						      (pxd_codec_shuffles(j->f.elem) ? PXD_CODEC_SHUFFLE : 0),
			.level = 1 };
	}
	if (m && j->hint.bound == 0)
		j->n = pxd_seg_encode(m->codec, j->ch.codec, j->ch.level, j->f.elem,
			j->ch.predicted ? &j->pred : NULL, j->student.lesson, ref, j->in->data, j->in->len,
			m->scratch, j->out->data, j->in->len - 1);
	j->ns = px_cpu_ns() - t;
	j->passed = px_past(px_now_ns(), j->began);
}

static void refs_put(struct refs *r)
{
	for (int i = 0; i < PXD_PREDICT_REFS; i++) {
		pxd_kept_put(r->ref[i]);
		r->ref[i] = NULL;
	}
}

/* The reader will still have what j refers to when it gets j, as nothing comes between them that makes it forget. */
static bool refs_valid(const struct job *j)
{
	for (int i = 0; j->ch.predicted && i < j->pred.nrefs; i++)
		if (!j->refs.ref[j->which[i]]->flow)
			return false;
	return true;
}

/* Could f have left in one frame, with its envelope? */
static bool small(const struct px_frame *f, size_t n)
{
	return n == f->total && n <= PX_INLINE_MAX;
}

/* What small messages are known by, packed or not. */
static uint64_t small_name(const struct px_frame *f)
{
	struct px_frame g = *f;

	g.seg = 0;
	g.offset = 0;
	return pxd_history_name(&g);
}

/* Segment j leaves with `out` bytes: has that paid, if it could have left without? */
static void judge_small(struct pxd_path *l, const struct job *j, size_t out)
{
	double saved = (double)j->in->len - (double)out;

	if (small(&j->f, j->in->len))
		pxd_vain_learn(
			&l->vain, small_name(&j->f), j->told, saved > MORE_BYTES + MORE_NS / 1e9 * l->rate);
}

static void count(struct pxd_path *l, const struct job *j, size_t out)
{
	unsigned slot = out < j->in->len ? pxd_codec_slot(j->ch.codec) : 0;

	if (out < j->in->len && j->hint.bound != 0) {
		if (l->count.lossy.segments == 0)
			px_log(PX_LOG_WARN,
				"numbers that ranks send to site %s within a bound that was asked for are "
				"lossy from now on (--stats says how many)",
				pxd_site_name(l->d, l->peer));
		l->count.lossy.segments++;
		l->count.lossy.in += j->in->len;
		l->count.lossy.out += out;
		l->count.lossy.ns += j->ns;
		return;
	}
	l->count.codec[slot].segments++;
	l->count.codec[slot].in += j->in->len;
	l->count.codec[slot].out += out;
	l->count.codec[slot].ns += j->ns;
	if (slot > 0 && j->ch.predicted) {
		enum pxd_predict_kind k = pxd_predict_kind(&j->pred);

		l->count.predicted[k].segments++;
		l->count.predicted[k].in += j->in->len;
		l->count.predicted[k].out += out;
	}
}

/* A lesson is needed first (study.h). */
static bool learns(const struct job *j)
{
	return j->hint.bound == 0 && j->ch.predicted && pxd_predict_learnt(&j->pred);
}

/* Note what a worker has to do for j, or (-1) has done. */
static void account(const struct job *j, int sign)
{
	struct pxd_path *l = j->l;

	l->packing += (unsigned)sign;
	l->packing_bytes += (size_t)sign * j->in->cap;
	l->packing_len += (size_t)sign * (j->ch.len ? j->ch.len : j->in->len);
	l->packing_ns += sign * (int64_t)j->ch.ns;
}

static void on_packed(uv_work_t *w, int status);
static void on_late(uv_timer_t *t);

static void encode(struct job *j)
{
	if (uv_queue_work(&j->l->d->loop, &j->work, on_work, on_packed) < 0)
		on_packed(&j->work, UV_ECANCELED);
}

static void on_lesson(struct pxd_student *s)
{
	encode(px_list_entry(s, struct job, student));
}

/* What j's predictor refers to. */
static void refs_of(const struct job *j, struct pxd_kept **ref)
{
	for (int i = 0; i < j->pred.nrefs; i++)
		ref[i] = j->refs.ref[j->which[i]];
}

static void begin(struct job *j)
{
	struct pxd_kept *ref[PXD_PREDICT_REFS];

	if (!learns(j)) {
		encode(j);
		return;
	}
	refs_of(j, ref);
	j->began = px_now_ns(); /* if it has to wait for its lesson, that counts, too */
	j->student.go = on_lesson;
	if (pxd_study(&j->l->studies, &j->pred, pxd_predict_word(j->f.elem), ref, &j->student) < 0)
		encode(j); /* which makes the lesson, if there is no memory to wait for it */
}

/* How long the wire will be busy with what it was given, in ns. */
static uint64_t wire_busy(const struct pxd_path *l)
{
	uint64_t now = px_now_ns();

	return l->wire_until > now ? l->wire_until - now : 0;
}

/* n bytes more for the wire. */
static void wire_note(struct pxd_path *l, size_t n)
{
	if (l->rate > 0)
		l->wire_until = px_now_ns() + wire_busy(l) + (uint64_t)((double)n / (l->rate * HURRY) * 1e9);
}

/* seg, whose plain bytes are j->in, to its stream. The next one like it will refer to it. */
static int put(struct pxd_path *l, struct job *j, struct pxd_seg *seg)
{
	struct pxd_kept *kept = NULL, *ref[PXD_PREDICT_REFS];
	int rc;

	wire_note(l, seg->len);
	if (!(j->f.flags & PX_FF_KEEP))
		return pxd_path_put_seg(l, &j->f, seg, false);
	rc = pxd_path_put_kept(l, &j->f, seg, j->in, j->refs.stream, &kept);
	if (rc == 0 && kept && learns(j)) {
		refs_of(j, ref);
		pxd_study_ahead(&l->studies, &j->pred, pxd_predict_word(j->f.elem), kept, ref);
	}
	return rc;
}

static void on_packed(uv_work_t *w, int status)
{
	struct job *j = w->data;
	struct pxd_path *l = j->l;
	struct pxd_seg *seg = pxd_seg_hold(j->in);
	int rc = PX_OK;

	l->d->events++;
	account(j, -1);
	if (status == 0 && !j->lossy) {
		pxd_auto_learn(l->choose, j->ch, j->f.elem, j->in->len, j->n, j->passed);
		if (j->ch.predicted)
			pxd_forecast_learn(l->forecast, &j->scene, j->ch.codec, j->n);
	}
	if (status == 0 && j->n > 0 && refs_valid(j)) {
		count(l, j, j->n);
		j->f.codec = j->hint.bound != 0
				     ? PXD_CODEC_LOSSY
				     : (uint8_t)(j->ch.codec | (j->ch.predicted ? PXD_CODEC_PREDICT : 0));
		j->f.body = j->n;
		j->out->len = (uint32_t)j->n;
		pxd_seg_put(seg);
		seg = pxd_seg_hold(j->out);
	} else {
		count(l, j, j->in->len);
	}
	judge_small(l, j, seg->len);
	if (l->closed)
		pxd_seg_put(seg);
	else
		rc = put(l, j, seg);
	if (rc < 0)
		pxd_fail(l->d, PXD_EXIT_INTERNAL, "out of memory for a segment");
	else
		pxd_path_flush(l);
	pxd_study_left(&j->student);
	refs_put(&j->refs);
	pxd_seg_put(j->in);
	pxd_seg_put(j->out);
	free(j);
	pxd_pack_go(l);
}

/* What the wire will still have to send when a worker gets to the next segment: all that is queued, as far as it goes, less what leaves until then.
 * Beside a fast wire a job of more processes than cores has no core to give away. */
static size_t wire_ahead(const struct pxd_path *l)
{
	double n = (double)l->packing_len, ns, unsent = 0;
	double busy = (double)wire_busy(l) / 1e9 * l->rate;

	if (l->rate >= PXD_THIN && px_wait_crowded())
		return 0;
	ns = l->packing_ns > 0 ? (double)l->packing_ns / px_wait_cores() : 0; /* which asks the kernel */
	for (int i = 0; i < l->nstreams; i++)
		unsent += (double)l->stream[i]->q.unsent;
	/* What has been written may be before the wire, too. */
	n += (unsent > busy ? unsent : busy) - ns / 1e9 * l->rate;
	return n > 0 ? (size_t)n : 0;
}

/* What the program's rank has said of the numbers; no bound where nothing is to be lost: where the wire is fast. */
static struct px_hint hint_of(const struct pxd_path *l, const struct px_frame *f)
{
	struct px_hint h;

	px_hint_get(f->seq, &h);
	if (!l->choose || !l->little || (l->opts->compress == PXD_COMPRESS_AUTO && !pxd_rate_thin(l)))
		h.bound = 0;
	return h;
}

/* Shall segments like this one be remembered, and predicted from what is? */
static bool foreseen(const struct pxd_path *l, const struct px_frame *f, size_t n)
{
	return l->forecast && pxd_auto_foresees(l->opts, f->elem, n, l->rate);
}

/* May codecs be faster than the wire? */
static bool codecs_keep_up(const struct pxd_path *l)
{
	return l->opts->compress != PXD_COMPRESS_AUTO || (l->rate > 0 && l->rate < PXD_BRISK);
}

/* Is it worth knowing what is in bytes? */
static bool guesses(const struct pxd_path *l)
{
	return l->choose && (codecs_keep_up(l) || l->opts->predict == PXD_PREDICTION_ALWAYS);
}

bool pxd_pack_pays(struct pxd_path *l, const struct px_frame *f, size_t n)
{
	if (!l->choose || n < PXD_PACK_MIN)
		return false;
	if (l->opts->compress != PXD_COMPRESS_AUTO || l->opts->predict == PXD_PREDICTION_ALWAYS)
		return true;
	if (!codecs_keep_up(l) || pxd_vain_rests(&l->vain, small_name(f), f->elem))
		return false;
	return l->rate < PXD_THIN || !pxd_auto_leaves(l->choose, n, f->elem, l->rate, wire_ahead(l));
}

/* The stream that has the newest references for f that its reader has acknowledged; if there are none, one that knows such
 * segments, so that there will be some. */
static void refs_find(const struct pxd_path *l, const struct px_frame *f, struct refs *r)
{
	r->stream = -1;
	r->n = 0;
	r->back = 1;
	memset(r->ref, 0, sizeof r->ref);
	for (int i = 0; i < l->use; i++) {
		struct pxd_stream *s = l->stream[i];
		struct pxd_kept *ref[PXD_PREDICT_REFS] = { NULL };
		int n, back;

		if (s->life.state != PXD_LINK_UP || s->q.unsent >= PXD_STREAM_HIGH ||
			!pxd_history_knows(&s->history, f))
			continue;
		n = pxd_history_refs(&s->history, f, s->acked, ref, &back);
		if (r->stream >= 0 && (n == 0 || (r->n > 0 && (int32_t)(ref[0]->msg - r->ref[0]->msg) < 0)))
			continue;
		r->stream = i;
		r->n = n;
		r->back = back;
		memcpy(r->ref, ref, sizeof ref);
	}
	for (int i = 0; i < r->n; i++)
		pxd_kept_hold(r->ref[i]);
}

/* Choose predictor and codec for j. */
static void choose_predicted(struct job *j)
{
	struct pxd_path *l = j->l;
	struct pxd_outlook o;

	refs_find(l, &j->f, &j->refs);
	j->scene = (struct pxd_scene){ .flow = pxd_history_name(&j->f),
		.in = j->in->data,
		.n = j->in->len,
		.elem = j->f.elem,
		.stride = j->hint.row,
		.big = l->d->hello.repr.big_endian,
		.slow = l->rate < PXD_SLOW ? l->rate : 0,
		.nrefs = j->refs.n,
		.back = j->refs.back };
	pxd_kept_bytes(j->refs.ref, j->scene.ref);
	if (!pxd_forecast_choose(l->forecast, mine()->codec, &j->scene, &j->pred, &o))
		return;
	pxd_scene_refs(&j->scene, &j->pred, j->which);
	for (int i = 0; i < j->pred.nrefs; i++)
		j->pred.ref[i] = j->refs.ref[j->which[i]]->msg;
	j->ch = pxd_auto_choose_known(l->choose, &o, j->in->len, j->f.elem, l->rate, wire_ahead(l));
	if (j->ch.codec == PXD_CODEC_NONE && l->opts->predict == PXD_PREDICTION_ALWAYS)
		j->ch = (struct pxd_choice){ .codec = o.residual < o.zstd
							      ? PXD_CODEC_RESIDUAL
							      : PXD_CODEC_ZSTD | PXD_CODEC_SHUFFLE,
			.level = 1,
			.predicted = true };
}

/* j's segment leaves as it is. */
static int put_plain(struct job *j, bool ahead)
{
	struct pxd_kept *kept;
	int rc;

	count(j->l, j, j->in->len);
	judge_small(j->l, j, j->in->len);
	wire_note(j->l, j->in->len);
	if (j->f.flags & PX_FF_KEEP) {
		rc = pxd_path_put_kept(
			j->l, &j->f, pxd_seg_hold(j->in), j->in, ahead ? 0 : j->refs.stream, &kept);
		pxd_seg_put(j->in);
	} else {
		rc = pxd_path_put_seg(j->l, &j->f, j->in, ahead);
	}
	refs_put(&j->refs);
	return rc;
}

/* Choose for j, and encode a copy of it; or it leaves as it is. */
static int pack(struct job *j, bool ahead)
{
	struct pxd_path *l = j->l;
	struct job *k;

	if (l->choose && mine() && j->hint.bound == 0) {
		if (foreseen(l, &j->f, j->in->len)) {
			j->f.flags |= PX_FF_KEEP;
			choose_predicted(j);
		}
		if (j->ch.codec == PXD_CODEC_NONE)
			j->ch = pxd_auto_choose(l->choose, mine()->codec, j->in->data, j->in->len, j->f.elem,
				l->rate, wire_ahead(l));
	}
	if (j->ch.codec == PXD_CODEC_NONE && j->hint.bound == 0)
		return put_plain(j, ahead);
	k = calloc(1, sizeof *k);
	if (k)
		j->out = pxd_seg_take(j->in->pool, j->in->len);
	if (!k || !j->out) {
		free(k);
		return put_plain(j, ahead);
	}
	*k = *j;
	k->work.data = k;
	account(k, 1);
	begin(k);
	return PX_OK;
}

/* Is it too early for a segment of n bytes? How long, in ns. */
static int64_t early(const struct pxd_path *l, size_t n)
{
	double busy;

	if (!(l->rate > 0) || l->rate_told || l->closed)
		return 0;
	busy = (double)wire_busy(l) + (double)l->packing_len / (l->rate * HURRY) * 1e9;
	return (int64_t)(busy - AHEAD_NS - 0.25 * (double)n / l->rate * 1e9);
}

void pxd_pack_go(struct pxd_path *l)
{
	while (!px_list_empty(&l->late)) {
		struct job *j = px_list_entry(l->late.next, struct job, turn);
		int64_t wait = early(l, j->in->len);

		if (wait > 0) {
			l->spared = true;
			uv_timer_start(&l->late_timer, on_late, (uint64_t)wait / 1000000 + 1, 0);
			return;
		}
		px_list_del(&j->turn);
		l->packing--;
		l->packing_bytes -= j->in->cap;
		if (pack(j, false) < 0)
			pxd_fail(l->d, PXD_EXIT_INTERNAL, "out of memory for a segment");
		free(j);
		pxd_path_flush(l);
	}
}

static void on_late(uv_timer_t *t)
{
	pxd_pack_go(t->data);
}

int pxd_pack(struct pxd_path *l, const struct px_frame *f, struct pxd_seg *seg, bool ahead)
{
	struct job j = { .l = l, .f = *f, .told = f->elem, .in = seg, .refs = { .stream = -1 } }, *k;

	if (f->elem <= 1 && (l->recorder || guesses(l)))
		j.f.elem = (uint8_t)pxd_words_guess(seg->data, seg->len, l->d->hello.repr.big_endian);
	pxd_recorder_put(l->recorder, &j.f, seg->data);
	j.hint = hint_of(l, f);
	j.lossy = j.hint.bound != 0;
	j.f.seq = 0;
	if (!l->choose || j.hint.bound != 0 || !foreseen(l, &j.f, seg->len) ||
		(px_list_empty(&l->late) && early(l, seg->len) <= 0) || !(k = malloc(sizeof *k)))
		return pack(&j, ahead);
	*k = j;
	px_list_push(&l->late, &k->turn);
	l->packing++;
	l->packing_bytes += seg->cap;
	pxd_pack_go(l);
	return PX_OK;
}

int pxd_pack_open(struct pxd_path *l)
{
	pxd_studies_init(&l->studies, &l->d->loop, &l->d->events,
		&l->count.codec[pxd_codec_slot(PXD_CODEC_RESIDUAL)].ns);
	px_list_init(&l->late);
	l->late_timer.data = l;
	return uv_timer_init(&l->d->loop, &l->late_timer) < 0 ? PX_ENOMEM : PX_OK;
}

void pxd_pack_close(struct pxd_path *l)
{
	struct px_list *t;

	uv_close((uv_handle_t *)&l->late_timer, NULL);
	while ((t = px_list_pop(&l->late))) {
		struct job *j = px_list_entry(t, struct job, turn);

		pxd_seg_put(j->in);
		free(j);
	}
	pxd_studies_close(&l->studies);
}

void pxd_pack_free(struct pxd_path *l)
{
	pxd_studies_fini(&l->studies);
}
