/* out_flow.c: see out_flow.h.
 *
 * Design. The native receives of a message are a small ring: `posted` counts those started, `done` those complete; they match
 * in order, as all have the same source and tag. A message is in `busy` while receives are under way, else in the `idle` list
 * of its destination; credit is taken when a receive is posted.
 *
 * A middling message (up to PX_MIDDLE_MAX) keeps its place among the envelopes of its destination until its payload has come from
 * the rank, which is at once as a rule; then payload and announcement leave in this order, so that the reader can promise the payload
 * to its rank with the announcement. A payload that came in the envelope becomes such a message if its path compresses. Without credit for the payload, or when the rank is slow, the announcement leaves alone.
 */
#include "out_flow.h"

#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "link_rate.h"
#include "pacxd.h"
#include "pack.h"
#include "vendor.h"
#include "wait.h"

#define TURN        32      /* messages looked at per poll: bounds the time in which the envelopes wait */
#define TOGETHER_NS 300000u /* so long envelopes wait for the payload of the one before */

struct held {
	struct px_list l;
	struct px_frame f;
	struct out_long *with; /* leaves behind the payload of this one */
	uint8_t body[];
};

struct out_long {
	struct px_list l;
	struct px_frame f;
	int from;
	struct pxd_dest *dest;
	bool pulled;
	struct held *head;     /* a middling message: its announcement, which waits for the payload */
	struct pxd_seg *ready; /* the payload, which waits for its turn */
	uint64_t since;        /* px_now_ns when it was begun */
	uint64_t nsegs, posted, done;
	struct {
		MPI_Request req;
		struct pxd_seg *seg;
		bool reserve;
	} slot[PXD_OUT_AHEAD];
};

static struct out_long *long_of(struct px_list *l)
{
	return px_list_entry(l, struct out_long, l);
}

/* A rank is told when envelopes of a pair that weigh so much have left: half of its window. */
static uint32_t tell_after(const struct pxd_out_flow *o)
{
	return (o->window + 1) / 2;
}

static void dest_begin(void *owner, void *record, uint32_t rank)
{
	struct pxd_out_flow *o = owner;
	struct pxd_dest *t = record;
	int site = pxd_hosts_site_of(o->d->node.hosts, rank);

	px_list_init(&t->l);
	px_list_init(&t->w);
	px_list_init(&t->waiting);
	px_list_init(&t->idle);
	t->path = site == o->d->node.self ? NULL : &o->path[site];
}

/* NULL: a rank that is not there or not at another site, or no memory for it, and pxd_fail has been called. */
static struct pxd_dest *dest_of(struct pxd_out_flow *o, uint32_t rank)
{
	struct pxd_dest *t = rank < (uint32_t)o->nworld ? pxd_pages_get(&o->dest, rank) : NULL;

	if (!t && rank < (uint32_t)o->nworld)
		pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "out of memory for what goes to rank %u", rank);
	return t && t->path ? t : NULL;
}

bool pxd_out_flow_reaches(struct pxd_out_flow *o, uint32_t dst)
{
	return dest_of(o, dst) != NULL;
}

static bool granted(
	const struct pxd_out_flow *o, const struct pxd_dest *t, enum pxd_credit_kind k, uint64_t charge)
{
	uint64_t every = o->site[t->path->peer].granted[k];

	return t->used[k] + charge <= (t->granted[k] > every ? t->granted[k] : every);
}

int pxd_out_flow_init(struct pxd_out_flow *o, struct pxd *d)
{
	o->d = d;
	o->segs.limit = d->node.hosts->sites[d->node.self].buffer;
	o->base = d->node.hosts->sites[d->node.self].base;
	o->nlocal = d->map.nranks;
	o->nworld = d->node.hosts->nranks;
	o->window = px_pair_window(o->nlocal, o->nworld - o->nlocal);
	px_list_init(&o->blocked);
	px_list_init(&o->wanting);
	px_list_init(&o->busy);
	o->longs = px_map_new();
	o->dest.begin = dest_begin;
	o->dest.owner = o;
	o->site = calloc((size_t)d->node.hosts->nsites, sizeof *o->site);
	if (tell_after(o) > 1)
		o->released = calloc((size_t)o->nworld * (size_t)o->nlocal, sizeof *o->released);
	if (pxd_notes_init(&o->notes, d) < 0 || !o->longs || !o->site ||
		pxd_pages_init(&o->dest, sizeof(struct pxd_dest), (uint32_t)o->nworld) < 0 ||
		(tell_after(o) > 1 && !o->released))
		return PX_ENOMEM;
	return PX_OK;
}

static void long_drop(struct out_long *m)
{
	for (; m->done < m->posted; m->done++)
		pxd_seg_put(m->slot[m->done % PXD_OUT_AHEAD].seg);
	free(m);
}

/* fini: at the end of the process, when nothing native is under way. */
void pxd_out_flow_fini(struct pxd_out_flow *o)
{
	struct px_list *l;
	struct pxd_dest *t;

	for (uint32_t i = 0; (t = pxd_pages_next(&o->dest, &i));) {
		while ((l = px_list_pop(&t->waiting))) {
			struct held *h = px_list_entry(l, struct held, l);

			if (h->with && h->with->ready) /* in no other list */
				long_drop(h->with);
			free(h);
		}
		while ((l = px_list_pop(&t->idle)))
			long_drop(long_of(l));
	}
	while (o->dest.page && (l = px_list_pop(&o->busy)))
		long_drop(long_of(l));
	px_map_free(o->longs);
	pxd_notes_fini(&o->notes);
	pxd_pages_fini(&o->dest);
	free(o->site);
	free(o->released);
	pxd_segs_fini(&o->segs);
}

static void long_free(struct pxd_out_flow *o, struct out_long *m)
{
	px_map_del(o->longs, px_frame_key(m->f.src, m->f.msg));
	pxd_notes_gone(&o->notes, m->f.src, m->f.msg);
	o->nlongs--;
	free(m);
}

/* A segment of m goes to its path; the last one ends m. ahead: its announcement follows at once. */
static void seg_put(struct pxd_out_flow *o, struct out_long *m, struct pxd_seg *s, bool ahead)
{
	struct px_frame f = m->f;
	unsigned k = m->done % PXD_OUT_AHEAD;

	f.type = PX_F_SEG;
	f.flags = (uint16_t)((f.flags & ~PX_FF_DATA) | (m->slot[k].reserve ? PX_FF_RESERVE : 0));
	f.offset = m->done * f.seg;
	f.body = s->len;
	m->slot[k].seg = NULL;
	m->done++;
	if (pxd_pack(m->dest->path, &f, s, ahead) < 0)
		pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "out of memory for a segment of %llu bytes",
			(unsigned long long)f.body);
	/* Send it now, do not collect more of it: the wire shall not wait. */
	if (!ahead)
		pxd_path_flush(m->dest->path);
	else
		long_free(o, m); /* it has one segment, and is in no list */
}

/* Envelopes. */

/* An envelope of a pair has left: tell its rank when half of the window is free again. */
static void release(struct pxd_out_flow *o, const struct px_frame *f)
{
	int rank = (int)f->src - o->base;
	uint32_t *n = o->released ? &o->released[(size_t)rank * (size_t)o->nworld + f->dst] : NULL;
	struct px_frame g = { .version = PX_PROTOCOL_VERSION, .type = PX_F_CREDIT, .dst = f->dst };

	g.total = px_envelope_weight(f->total);
	if (n) {
		*n += (uint32_t)g.total;
		if (*n < tell_after(o))
			return;
		g.total = *n;
		*n = 0;
	}
	pxd_notes_put(&o->notes, &g, rank);
}

static bool may_leave(const struct pxd_out_flow *o, const struct pxd_dest *t, const struct px_frame *f)
{
	if (f->type == PX_F_ACK)
		return true; /* there are no more of them than messages that have been taken */
	return pxd_path_room_msg(t->path) && granted(o, t, PXD_CREDIT_MSG, px_msg_charge(f->body));
}

static int envelope_put(
	struct pxd_out_flow *o, struct pxd_dest *t, const struct px_frame *f, const uint8_t *body)
{
	if (f->type == PX_F_MSG) {
		t->used[PXD_CREDIT_MSG] += px_msg_charge(f->body);
		release(o, f);
	}
	return pxd_path_put(t->path, f, body);
}

/* An envelope takes its place among those that wait for dest t. */
static struct held *hold(
	struct pxd_out_flow *o, struct pxd_dest *t, const struct px_frame *f, const uint8_t *body)
{
	struct held *h = malloc(sizeof *h + f->body);

	if (!h)
		return NULL;
	h->f = *f;
	h->with = NULL;
	if (f->body > 0)
		memcpy(h->body, body, f->body);
	px_list_push(&t->waiting, &h->l);
	if (px_list_empty(&t->w))
		px_list_push(&o->blocked, &t->w);
	o->nwaiting++;
	o->waiting_bytes += sizeof *h + f->body;
	return h;
}

/* The announcement of m need not wait for its payload any longer. */
static void part(struct out_long *m)
{
	if (m->head)
		m->head->with = NULL;
	m->head = NULL;
}

/* May h, the next envelope of its destination, leave now? Payload that is ready goes ahead of it. */
static bool turn_of(struct pxd_out_flow *o, struct pxd_dest *t, struct held *h)
{
	struct out_long *m = h->with;

	if (!may_leave(o, t, &h->f))
		return false;
	if (!m)
		return true;
	if (!m->ready && m->posted > 0 && px_now_ns() - m->since < TOGETHER_NS)
		return false;
	if (!m->ready) { /* its rank is slow, or there is no credit: those behind shall not wait for it one by one */
		for (struct px_list *l = t->waiting.next; l != &t->waiting; l = l->next) {
			struct held *x = px_list_entry(l, struct held, l);

			if (x->with && !x->with->ready)
				part(x->with);
		}
		return true;
	}
	part(m);
	seg_put(o, m, m->ready, true);
	return true;
}

static bool waiting_poll(struct pxd_out_flow *o)
{
	bool some = false;

	for (struct px_list *w = o->blocked.next, *next; w != &o->blocked; w = next) {
		struct pxd_dest *t = px_list_entry(w, struct pxd_dest, w);

		next = w->next;
		while (!px_list_empty(&t->waiting)) {
			struct held *h = px_list_entry(t->waiting.next, struct held, l);

			if (!turn_of(o, t, h))
				break;
			px_list_del(&h->l);
			o->nwaiting--;
			o->waiting_bytes -= sizeof *h + h->f.body;
			if (envelope_put(o, t, &h->f, h->body) < 0)
				pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "out of memory for a message");
			free(h);
			some = true;
		}
		if (px_list_empty(&t->waiting))
			px_list_del(&t->w);
	}
	return some;
}

static void want(struct pxd_out_flow *o, struct pxd_dest *t)
{
	if (!px_list_empty(&t->idle) && px_list_empty(&t->l))
		px_list_push(&o->wanting, &t->l);
}

bool pxd_out_flow_credit(struct pxd_out_flow *o, const struct pxd_path *l, const struct px_frame *f)
{
	const uint64_t now[PXD_CREDITS] = { f->total, f->offset, f->ctx };
	struct pxd_dest *t = f->tag ? NULL : dest_of(o, f->dst);
	uint64_t *had = f->tag ? o->site[l->peer].granted : t ? t->granted : NULL;

	if (!f->tag && (!t || t->path != l))
		return false;
	for (int k = 0; k < PXD_CREDITS; k++)
		if (now[k] > had[k])
			had[k] = now[k];
	if (t)
		want(o, t);
	else
		for (uint32_t i = 0; (t = pxd_pages_next(&o->dest, &i));)
			if (t->path == l)
				want(o, t);
	return true;
}

/* Payload. */

static void idle_add(struct pxd_out_flow *o, struct out_long *m)
{
	struct px_list *at = &m->dest->idle;

	/* First what is pulled, in the order pulled, then what has begun, then the others. */
	while (at->next != &m->dest->idle && (long_of(at->next)->pulled || (!m->pulled && m->posted == 0)))
		at = at->next;
	px_list_insert(at, &m->l);
	if (px_list_empty(&m->dest->l))
		px_list_push(&o->wanting, &m->dest->l);
}

static struct out_long *long_new(struct pxd_out_flow *o, const struct px_frame *f, int from)
{
	struct out_long *m = calloc(1, sizeof *m);

	if (!m || px_map_put(o->longs, px_frame_key(f->src, f->msg), m) < 0) {
		free(m);
		return NULL;
	}
	m->f = *f;
	m->from = from;
	m->dest = dest_of(o, f->dst); /* of a message that the caller has checked */
	m->nsegs = (f->total + f->seg - 1) / f->seg;
	px_list_init(&m->l);
	o->nlongs++;
	return m;
}

int pxd_out_flow_long(struct pxd_out_flow *o, const struct px_frame *f, int from)
{
	struct out_long *m = long_new(o, f, from);

	if (m)
		idle_add(o, m);
	return m ? PX_OK : PX_ENOMEM;
}

bool pxd_out_flow_pull(struct pxd_out_flow *o, const struct pxd_path *l, const struct px_frame *f)
{
	uint64_t key = px_frame_key(f->src, f->msg);
	struct out_long *m = px_map_get(o->longs, key);
	int rank = (int)f->src - o->base;

	const struct pxd_dest *t = dest_of(o, f->dst);

	if (rank < 0 || rank >= o->nlocal || !t || (l && t->path != l))
		return false;
	/* Not begun by its rank yet, or all of it has left. The rank knows; it answers with the same frame behind the beginning. */
	if (!m)
		return !l || pxd_notes_ask(&o->notes, f, rank);
	if (m->pulled)
		return true;
	m->pulled = true;
	if (m->posted == m->done) { /* in `idle`: to its front */
		px_list_del(&m->l);
		idle_add(o, m);
	}
	return true;
}

static uint32_t seg_len(const struct px_frame *f, uint64_t k)
{
	uint64_t left = f->total - k * f->seg;

	return left < f->seg ? (uint32_t)left : f->seg;
}

/* Take credit for the next segment of m: which one, or PXD_CREDITS: there is none. */
static enum pxd_credit_kind credit_take(const struct pxd_out_flow *o, struct out_long *m, uint32_t charge)
{
	struct pxd_dest *t = m->dest;

	for (enum pxd_credit_kind k = PXD_CREDIT_DATA;
		k <= (m->pulled ? PXD_CREDIT_RESERVE : PXD_CREDIT_DATA); k++) {
		if (granted(o, t, k, charge)) {
			t->used[k] += charge;
			return k;
		}
	}
	return PXD_CREDITS;
}

static bool receives_post(struct pxd_out_flow *o, struct out_long *m)
{
	bool some = false;

	while (m->posted < m->nsegs && m->posted - m->done < PXD_OUT_AHEAD && pxd_path_room(m->dest->path)) {
		uint32_t len = seg_len(&m->f, m->posted);
		unsigned k = m->posted % PXD_OUT_AHEAD;
		enum pxd_credit_kind kind = credit_take(o, m, px_seg_charge(len));
		struct pxd_seg *s;

		if (kind == PXD_CREDITS)
			break;
		s = pxd_seg_take(&o->segs, len);
		if (!s || px_n.Irecv(s->data, (int)s->len, MPI_BYTE, m->from, (int)m->f.local,
				  o->d->map.relay, &m->slot[k].req) != MPI_SUCCESS) {
			pxd_seg_put(s);
			pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "a native receive from rank %u failed",
				m->f.src);
			return true;
		}
		m->slot[k].seg = s;
		m->slot[k].reserve = kind == PXD_CREDIT_RESERVE;
		m->posted++;
		some = true;
	}
	return some;
}

int pxd_out_flow_middle(struct pxd_out_flow *o, const struct px_frame *f, int from)
{
	struct out_long *m = long_new(o, f, from);

	if (!m || !(m->head = hold(o, m->dest, f, NULL)))
		return PX_ENOMEM;
	m->head->with = m;
	m->since = px_now_ns();
	if (!pxd_rate_thin(m->dest->path) && px_list_empty(&m->dest->idle) && receives_post(o, m))
		px_list_push(&o->busy, &m->l);
	else
		idle_add(o, m);
	return PX_OK;
}

/* f came with its payload, and its path may compress: announce it, with the payload as a segment ahead of it. false: not now. */
static bool inline_pack(struct pxd_out_flow *o, const struct px_frame *f, const uint8_t *body)
{
	struct px_frame g = *f;
	struct out_long *m;
	struct pxd_seg *s;

	g.body = 0;
	g.seg = PX_SEG_MIN;
	g.via = (uint16_t)o->d->node.gateway;
	m = long_new(o, &g, -1);
	s = m ? pxd_seg_take(&o->segs, (uint32_t)f->body) : NULL;
	if (!s || !pxd_path_room(m->dest->path) || credit_take(o, m, px_seg_charge(s->len)) == PXD_CREDITS ||
		!(m->head = hold(o, m->dest, &g, NULL))) {
		pxd_seg_put(s);
		if (m)
			long_free(o, m);
		return false;
	}
	memcpy(s->data, body, s->len);
	m->head->with = m;
	m->ready = m->slot[0].seg = s;
	m->posted = 1;
	return true;
}

int pxd_out_flow_take(struct pxd_out_flow *o, const struct px_frame *f, const uint8_t *body)
{
	struct pxd_dest *t = dest_of(o, f->dst);

	if (f->type == PX_F_RATE) {
		pxd_rate_told(t->path, (double)f->total);
		return PX_OK;
	}
	if (f->type == PX_F_MSG && pxd_pack_pays(t->path, f, f->body) && inline_pack(o, f, body))
		return PX_OK;
	if (px_list_empty(&t->waiting) && may_leave(o, t, f))
		return envelope_put(o, t, f, body);
	return hold(o, t, f, body) ? PX_OK : PX_ENOMEM;
}

static bool segments_forward(struct pxd_out_flow *o, struct out_long *m)
{
	bool some = false;

	while (m->done < m->posted) {
		unsigned k = m->done % PXD_OUT_AHEAD;
		struct pxd_seg *s = m->slot[k].seg;
		MPI_Status st;
		int flag = 0, len = -1;

		if (px_n.Test(&m->slot[k].req, &flag, &st) != MPI_SUCCESS) {
			pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "a native receive from rank %u failed",
				m->f.src);
			return true;
		}
		if (!flag)
			break;
		some = true;
		px_n.Get_count(&st, MPI_BYTE, &len);
		if (len != (int)s->len) {
			pxd_fail(&o->d->node, PXD_EXIT_INTERNAL,
				"rank %u announced a segment of %u bytes and sent %d", m->f.src, s->len, len);
			return true;
		}
		if (m->head) { /* with its announcement, in turn */
			m->ready = s;
			break;
		}
		seg_put(o, m, s, false);
	}
	return some;
}

static bool busy_poll(struct pxd_out_flow *o)
{
	struct px_list again;
	bool some = false;

	px_list_init(&again);
	for (int n = 0; n < TURN && !px_list_empty(&o->busy) && !o->d->node.failed; n++) {
		struct out_long *m = long_of(px_list_pop(&o->busy));

		some |= segments_forward(o, m);
		if (m->ready)
			continue; /* in no list until its turn */
		if (m->done == m->nsegs) {
			long_free(o, m);
			continue;
		}
		some |= receives_post(o, m);
		if (m->posted > m->done)
			px_list_push(&again, &m->l);
		else
			idle_add(o, m);
	}
	for (struct px_list *l; (l = px_list_pop(&again));)
		px_list_push(&o->busy, l);
	return some;
}

static bool idle_poll(struct pxd_out_flow *o)
{
	struct px_list later;
	bool some = false;

	px_list_init(&later);
	for (int n = 0; n < TURN && !px_list_empty(&o->wanting) && !o->d->node.failed; n++) {
		struct pxd_dest *t = px_list_entry(px_list_pop(&o->wanting), struct pxd_dest, l);
		bool one = false;

		/* The native MPI copies in one go what has been posted, and a thin wire would wait for the first of many. */
		while (!one && !px_list_empty(&t->idle)) {
			struct out_long *m = long_of(t->idle.next);

			if (!receives_post(o, m))
				break;
			some = true;
			one = pxd_rate_thin(t->path);
			px_list_del(&m->l);
			px_list_push(&o->busy, &m->l);
		}
		/* Without credit it comes back with the next CREDIT; without room on its path it is asked again. */
		if (!px_list_empty(&t->idle) && (one || !pxd_path_room(t->path)))
			px_list_push(&later, &t->l);
	}
	for (struct px_list *l; (l = px_list_pop(&later));)
		px_list_push(&o->wanting, l);
	return some;
}

bool pxd_out_flow_poll(struct pxd_out_flow *o)
{
	bool some = pxd_notes_poll(&o->notes);

	pxd_notes_rates(&o->notes, o->path);
	some |= busy_poll(o);
	some |= waiting_poll(o);
	some |= idle_poll(o);
	return some;
}
