/* replay.c: see replay.h. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "hint.h"
#include "history.h"
#include "seg_code.h"
#include "wait.h"

#define SHARE (32u << 20) /* of a stream, with the default buffer: */

struct pxd_replay {
	struct pxd_replay_setup setup;
	struct pxd_replay_result result;
	struct pxd_auto *choose;
	struct pxd_forecast *forecast;
	struct pxd_codec *codec;
	struct pxd_history history;
	struct pxd_segs segs;
	struct px_map
		*arrived; /* name of a flow -> when its last segment has arrived: index into `when`, plus 1 */
	double *when, *acked; /* s; [nflows], and of each segment, [result.segments] */
	size_t nflows;
	double now, wire, core;    /* when the program is so far, and when the two are free */
	uint64_t nacked;           /* segments whose acknowledgement is back at `now` */
	uint8_t *scratch, *packed; /* PX_SEG_MAX each */
};

struct pxd_replay *pxd_replay_new(const struct pxd_replay_setup *s)
{
	struct pxd_replay *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->setup = *s;
	r->segs.limit = 2 * SHARE;
	r->choose = pxd_auto_new(&s->opts);
	r->forecast = pxd_forecast_new();
	r->codec = pxd_codec_new();
	r->arrived = px_map_new();
	r->scratch = malloc(PX_SEG_MAX);
	r->packed = malloc(PX_SEG_MAX);
	if (r->choose && r->forecast && r->codec && r->arrived && r->scratch && r->packed &&
		pxd_history_init(&r->history, SHARE) == 0)
		return r;
	pxd_replay_free(r);
	return NULL;
}

void pxd_replay_free(struct pxd_replay *r)
{
	if (!r)
		return;
	pxd_history_fini(&r->history);
	pxd_segs_fini(&r->segs);
	pxd_auto_free(r->choose);
	pxd_forecast_free(r->forecast);
	pxd_codec_free(r->codec);
	px_map_free(r->arrived);
	free(r->when);
	free(r->acked);
	free(r->scratch);
	free(r->packed);
	free(r);
}

const struct pxd_replay_result *pxd_replay_result(const struct pxd_replay *r)
{
	return &r->result;
}

static double seconds(void)
{
	return (double)px_cpu_ns() * 1e-9;
}

/* One more double in a growing array. */
static bool grow(double **a, uint64_t n)
{
	double *more;

	if (n & (n - 1))
		return true; /* room up to the next power of two */
	more = realloc(*a, (n ? 2 * (size_t)n : 1) * sizeof **a);
	if (more)
		*a = more;
	return more != NULL;
}

/* When the last segment of f's flow has arrived, to be set; 0 for a new one. NULL: out of memory. */
static double *arrival(struct pxd_replay *r, const struct px_frame *f)
{
	uint64_t name = pxd_history_name(f);
	uintptr_t at = (uintptr_t)px_map_get(r->arrived, name);

	if (at == 0) {
		if (!grow(&r->when, r->nflows) || px_map_put(r->arrived, name, (void *)(r->nflows + 1)) < 0)
			return NULL;
		r->when[r->nflows++] = 0;
		at = r->nflows;
	}
	return &r->when[at - 1];
}

/* A segment on its way, as in pack.c. */
struct item {
	const struct px_frame *f;
	struct px_hint hint;
	struct pxd_seg *seg;
	struct pxd_choice ch;
	struct pxd_predictor pred;
	struct pxd_scene scene;
	int which[PXD_PREDICT_REFS];
};

static bool foreseen(const struct pxd_replay *r, const struct item *x)
{
	const struct pxd_link_opts *o = &r->setup.opts;

	return pxd_history_remembers(o) && pxd_auto_foresees(o, x->f->elem, x->seg->len, r->setup.rate);
}

static void choose(struct pxd_replay *r, struct item *x, size_t queued)
{
	struct pxd_kept *ref[PXD_PREDICT_REFS] = { NULL };
	struct pxd_outlook o;

	if (foreseen(r, x)) {
		x->scene = (struct pxd_scene){ .flow = pxd_history_name(x->f),
			.in = x->seg->data,
			.n = x->seg->len,
			.elem = x->f->elem,
			.stride = x->hint.row,
			.big = r->setup.big,
			.slow = r->setup.rate < PXD_SLOW ? r->setup.rate : 0 };
		x->scene.nrefs = pxd_history_refs(&r->history, x->f, r->nacked, ref, &x->scene.back);
		for (int i = 0; i < x->scene.nrefs; i++)
			x->scene.ref[i] = ref[i]->seg->data;
		if (pxd_forecast_choose(r->forecast, r->codec, &x->scene, &x->pred, &o)) {
			pxd_scene_refs(&x->scene, &x->pred, x->which);
			for (int i = 0; i < x->pred.nrefs; i++)
				x->pred.ref[i] = ref[x->which[i]]->msg;
			x->ch = pxd_auto_choose_known(
				r->choose, &o, x->seg->len, x->f->elem, r->setup.rate, queued);
		}
	}
	if (x->ch.codec == PXD_CODEC_NONE)
		x->ch = pxd_auto_choose(
			r->choose, r->codec, x->seg->data, x->seg->len, x->f->elem, r->setup.rate, queued);
}

/* Encode x and decode it again: its length on the wire, *pack and *unpack; or PX_E.... */
static int64_t there_and_back(struct pxd_replay *r, struct item *x, double *pack, double *unpack)
{
	const uint8_t *ref[PXD_PREDICT_REFS] = { NULL };
	const size_t n = x->seg->len;
	double at = seconds();
	size_t m = 0;
	int rc;

	for (int i = 0; x->ch.predicted && i < x->pred.nrefs; i++)
		ref[i] = x->scene.ref[x->which[i]];
	if (x->ch.codec != PXD_CODEC_NONE) {
		m = pxd_seg_encode(r->codec, x->ch.codec, x->ch.level, x->f->elem,
			x->ch.predicted ? &x->pred : NULL, NULL, ref, x->seg->data, n, r->scratch, r->packed,
			n - 1);
		*pack = seconds() - at;
		pxd_auto_learn(r->choose, x->ch, x->f->elem, n, m, (uint64_t)(*pack * 1e9));
		if (x->ch.predicted)
			pxd_forecast_learn(r->forecast, &x->scene, x->ch.codec, m);
	}
	if (m == 0)
		return (int64_t)n;
	at = seconds();
	rc = pxd_seg_decode(r->codec, x->ch.codec | (x->ch.predicted ? PXD_CODEC_PREDICT : 0), x->f->elem,
		NULL, ref, r->packed, m, r->scratch, n);
	*unpack = seconds() - at;
	if (rc < 0 || memcmp(r->scratch, x->seg->data, n) != 0)
		return rc == PX_ENOMEM ? rc : PX_EPROTO;
	return (int64_t)m;
}

static void count(struct pxd_replay *r, const struct item *x, size_t m, double pack)
{
	const size_t n = x->seg->len;
	unsigned slot = m < n ? pxd_codec_slot(x->ch.codec) : 0;

	r->result.plain += n;
	r->result.coded += m;
	r->result.count.codec[slot].segments++;
	r->result.count.codec[slot].in += n;
	r->result.count.codec[slot].out += m;
	r->result.count.codec[slot].ns += (uint64_t)(pack * 1e9);
	if (slot > 0 && x->ch.predicted) {
		enum pxd_predict_kind k = pxd_predict_kind(&x->pred);

		r->result.count.predicted[k].segments++;
		r->result.count.predicted[k].in += n;
		r->result.count.predicted[k].out += m;
	}
}

/* The clock goes on: x, of m bytes on the wire, was taken in hand at `now` and cost so much processor time. */
static void travel(struct pxd_replay *r, double *arrived, size_t m, double chosen, double pack, double unpack)
{
	const double encoded = (r->core > r->now ? r->core : r->now) + chosen + pack;

	r->core = encoded;
	r->wire = (r->wire > encoded ? r->wire : encoded) + (double)(m + PX_FRAME_SIZE) / r->setup.rate;
	r->acked[r->result.segments++] = r->wire + r->setup.rtt;
	*arrived = r->wire + r->setup.rtt / 2 + unpack;
	if (*arrived > r->result.seconds)
		r->result.seconds = *arrived;
	r->result.pack += chosen + pack;
	r->result.unpack += unpack;
}

int pxd_replay_take(struct pxd_replay *r, const struct px_frame *f, const uint8_t *payload)
{
	struct px_frame g = *f;
	struct item x = { .f = &g };
	double *arrived, chosen, pack = 0, unpack = 0;
	struct pxd_kept *kept = NULL;
	int64_t m;

	if (g.seg == 0)
		g.seg = PX_SEG_MIN; /* as if it were a segment, which it will be if it is compressed */
	px_hint_get(f->seq, &x.hint);
	g.seq = r->result.segments + 1;
	arrived = arrival(r, &g);
	x.seg = pxd_seg_take(&r->segs, (uint32_t)g.body);
	if (!arrived || !x.seg || !grow(&r->acked, r->result.segments)) {
		pxd_seg_put(x.seg);
		return PX_ENOMEM;
	}
	memcpy(x.seg->data, payload, g.body);
	if (*arrived > r->now)
		r->now = *arrived;
	while (r->nacked < r->result.segments && r->acked[r->nacked] <= r->now)
		r->nacked++;
	chosen = seconds();
	choose(r, &x, r->wire > r->now ? (size_t)((r->wire - r->now) * r->setup.rate) : 0);
	chosen = seconds() - chosen;
	m = there_and_back(r, &x, &pack, &unpack);
	if (m > 0) {
		count(r, &x, (size_t)m, pack);
		travel(r, arrived, (size_t)m, chosen, pack, unpack);
		if (foreseen(r, &x) && pxd_history_keep(&r->history, &g, x.seg, &kept) < 0)
			m = PX_ENOMEM;
	}
	pxd_seg_put(x.seg);
	return m < 0 ? (int)m : PX_OK;
}
