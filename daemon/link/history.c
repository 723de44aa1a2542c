/* history.c: see history.h. */
#include "history.h"

#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "hint.h"

#define PART         4 /* of `buffer:` for what is remembered, of the site that has less */
#define AUTO_STREAMS 8 /* with `streams: auto`, those behind the first of which have a share */

struct pxd_flow {
	struct pxd_flow *next; /* with the same hash */
	uint64_t hash, ctx, total, offset;
	uint32_t src, dst, seg;
	int32_t tag;
	struct px_list kept; /* the newest first */
};

bool pxd_history_remembers(const struct pxd_link_opts *o)
{
	return o->predict == PXD_PREDICTION_ALWAYS
		       ? o->compress != PXD_COMPRESS_NONE
		       : o->predict == PXD_PREDICTION_AUTO && o->compress == PXD_COMPRESS_AUTO;
}

uint64_t pxd_history_share(const struct pxd_hosts *h, int from, int to, int stream)
{
	const struct pxd_link_opts *o = pxd_hosts_link(h, from, to);
	uint64_t a = h->sites[from].buffer, b = h->sites[to].buffer, path;
	int paths = 0;

	if (!pxd_history_remembers(o))
		return 0;
	for (int i = 0; i < h->nsites; i++)
		paths += i == to ? 0 : h->sites[i].ngateways;
	path = (a < b ? a : b) / PART / (uint64_t)paths;
	if (o->streams > 0)
		return stream < o->streams ? path / (uint64_t)o->streams : 0;
	return stream == 0 ? path / 2 : stream <= AUTO_STREAMS ? path / 2 / AUTO_STREAMS : 0;
}

uint64_t pxd_history_memory(const struct pxd_hosts *h, int site)
{
	for (int i = 0; i < h->nsites; i++)
		if (i != site && pxd_history_remembers(pxd_hosts_link(h, i, site)))
			return h->sites[site].buffer / PART;
	return 0;
}

int pxd_history_init(struct pxd_history *h, uint64_t share)
{
	px_list_init(&h->age);
	h->share = share;
	h->bytes = 0;
	h->flows = share ? px_map_new() : NULL;
	return share && !h->flows ? PX_ENOMEM : PX_OK;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9E3779B97F4A7C15u;
	return h ^ h >> 29;
}

/* What tells apart the flows of two ranks in a context. The operations of a collective program are numbered, and alike. */
static int32_t tag_of(const struct px_frame *f)
{
	return f->flags & PX_FF_COLL ? f->tag & ((1 << PX_COLL_STEP_BITS) - 1) : f->tag;
}

uint64_t pxd_history_name(const struct px_frame *f)
{
	uint64_t h = mix(1, (uint64_t)f->src << 32 | f->dst);

	h = mix(h, f->ctx);
	h = mix(h, (uint64_t)(uint32_t)tag_of(f) << 32 | f->seg);
	h = mix(h, f->total);
	return mix(h, f->offset);
}

static bool same(const struct pxd_flow *w, const struct px_frame *f)
{
	return w->src == f->src && w->dst == f->dst && w->ctx == f->ctx && w->tag == tag_of(f) &&
	       w->seg == f->seg && w->total == f->total && w->offset == f->offset;
}

static struct pxd_flow *flow_find(const struct pxd_history *h, const struct px_frame *f)
{
	struct pxd_flow *w = h->flows ? px_map_get(h->flows, pxd_history_name(f)) : NULL;

	while (w && !same(w, f))
		w = w->next;
	return w;
}

static struct pxd_flow *flow_make(struct pxd_history *h, const struct px_frame *f)
{
	struct pxd_flow *w = flow_find(h, f);

	if (w)
		return w;
	w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	w->hash = pxd_history_name(f);
	w->ctx = f->ctx;
	w->total = f->total;
	w->offset = f->offset;
	w->src = f->src;
	w->dst = f->dst;
	w->seg = f->seg;
	w->tag = tag_of(f);
	px_list_init(&w->kept);
	w->next = px_map_get(h->flows, w->hash);
	if (px_map_put(h->flows, w->hash, w) < 0) {
		free(w);
		return NULL;
	}
	return w;
}

static void flow_free(struct pxd_history *h, struct pxd_flow *w)
{
	struct pxd_flow *first = px_map_get(h->flows, w->hash);

	if (first == w && !w->next) {
		px_map_del(h->flows, w->hash);
	} else if (first == w) {
		px_map_put(h->flows, w->hash, w->next); /* the key is there, so this cannot fail */
	} else {
		while (first->next != w)
			first = first->next;
		first->next = w->next;
	}
	free(w);
}

struct pxd_kept *pxd_kept_hold(struct pxd_kept *k)
{
	k->holders++;
	return k;
}

void pxd_kept_bytes(struct pxd_kept *const *ref, const uint8_t **bytes)
{
	for (int i = 0; i < PXD_PREDICT_REFS; i++)
		bytes[i] = ref[i] ? ref[i]->seg->data : NULL;
}

void pxd_kept_put(struct pxd_kept *k)
{
	if (!k || --k->holders > 0)
		return;
	pxd_seg_put(k->seg);
	free(k);
}

static struct pxd_kept *kept_of(struct px_list *l)
{
	return px_list_entry(l, struct pxd_kept, older);
}

struct pxd_kept *pxd_kept_before(const struct pxd_kept *k, int n)
{
	const struct px_list *l = &k->older;

	for (; k->flow && n > 0 && l != &k->flow->kept; n--)
		l = l->next;
	return k->flow && l != &k->flow->kept ? px_list_entry(l, struct pxd_kept, older) : NULL;
}

static void forget(struct pxd_history *h, struct pxd_kept *k)
{
	h->bytes -= k->charge;
	px_list_del(&k->l);
	px_list_del(&k->older);
	if (px_list_empty(&k->flow->kept))
		flow_free(h, k->flow);
	k->flow = NULL;
	pxd_kept_put(k);
}

static void forget_oldest(struct pxd_history *h)
{
	forget(h, px_list_entry(h->age.next, struct pxd_kept, l));
}

void pxd_history_fini(struct pxd_history *h)
{
	if (!h->age.next)
		return; /* never made */
	while (!px_list_empty(&h->age))
		forget_oldest(h);
	px_map_free(h->flows);
	h->flows = NULL;
}

int pxd_history_keep(
	struct pxd_history *h, const struct px_frame *f, struct pxd_seg *seg, struct pxd_kept **out)
{
	uint64_t left = f->total - f->offset;
	uint32_t charge = px_seg_charge(left < f->seg ? (uint32_t)left : f->seg);
	struct pxd_kept *k;

	*out = NULL;
	if (charge > h->share)
		return PX_OK;
	k = calloc(1, sizeof *k);
	if (!k || !(k->flow = flow_make(h, f))) {
		free(k);
		return PX_ENOMEM;
	}
	k->holders = 1;
	k->msg = f->msg;
	k->seq = f->seq;
	k->charge = charge;
	k->seg = seg ? pxd_seg_hold(seg) : NULL;
	px_list_init(&k->waiting);
	px_list_push(&h->age, &k->l);
	px_list_push_front(&k->flow->kept, &k->older);
	h->bytes += charge;
	while (h->bytes > h->share)
		forget_oldest(h);
	*out = k;
	return PX_OK;
}

struct pxd_kept *pxd_history_find(
	const struct pxd_history *h, const struct px_frame *f, uint32_t msg, uint64_t acked)
{
	struct pxd_flow *w = flow_find(h, f);

	if (!w)
		return NULL;
	for (struct px_list *l = w->kept.next; l != &w->kept; l = l->next)
		if (kept_of(l)->msg == msg)
			return kept_of(l)->seq <= acked ? kept_of(l) : NULL;
	return NULL;
}

int pxd_history_refs(const struct pxd_history *h, const struct px_frame *f, uint64_t acked,
	struct pxd_kept *ref[PXD_PREDICT_REFS], int *back)
{
	struct pxd_flow *w = flow_find(h, f);
	int n = 0;

	*back = 1;
	if (!w)
		return 0;
	for (struct px_list *l = w->kept.next; l != &w->kept && n < PXD_PREDICT_REFS; l = l->next) {
		if (kept_of(l)->seq <= acked)
			ref[n++] = kept_of(l);
		else
			++*back;
	}
	return n;
}

bool pxd_history_knows(const struct pxd_history *h, const struct px_frame *f)
{
	return flow_find(h, f) != NULL;
}
