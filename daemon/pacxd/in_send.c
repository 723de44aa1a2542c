/* in_send.c: see in_send.h.
 *
 * Design. Envelopes are small enough for both vendors' eager protocols: they complete nearly at once, whatever the rank does,
 * and are looked at in the order sent to each rank. A long message has a record from its first segment, or from
 * its PULL if that is earlier, until all of it has been received; its segments may come in any order (several streams)
 * and are sent in theirs.
 */
#include "in_send.h"

#include <stdlib.h>
#include <string.h>

#include "bell.h"
#include "err.h"
#include "vendor.h"

/* Native messages with envelopes under way to one rank. Open MPI keeps the sends that it cannot place on one list, and walks it in every call: one
 * rank that does not receive would slow down all others. */
#define WINDOW        128
#define AHEAD         4                /* segments of one message under way to its rank */
#define TURN          32               /* long messages looked at per poll */
#define RESERVE_AHEAD (2 * PX_SEG_MAX) /* granted to a rank on a path, beyond what has arrived */

/* One native message under way to a rank: envelopes, copied behind one another if they are several. */
struct parcel {
	struct px_list l; /* in rank->sent */
	MPI_Request req;
	struct px_list envelopes;
	uint8_t bytes[];
};

struct part {
	struct px_list l;
	MPI_Request req;
	struct pxd_seg *seg;
	uint64_t index;
	uint32_t charge;
	enum pxd_credit_kind kind;
};

struct pxd_in_long {
	struct px_list l;          /* in sends->active while `sent` is not empty */
	struct px_list pull_l;     /* in rank->pulling */
	struct px_list here, sent; /* parts: waiting, in order of their index; under way */
	struct pxd_in_path *path;
	uint64_t key, total, nsegs;
	uint64_t arrived, next, done; /* segments: come, to be sent next, received */
	uint32_t seg, src, msg;
	int rank, tag;
	unsigned nsent;
	bool pulled, asked, unwanted;
	bool promised; /* to a rank that has not matched it yet */
};

static struct pxd_in_long *long_of(struct px_list *l)
{
	return px_list_entry(l, struct pxd_in_long, l);
}

int pxd_sends_init(struct pxd_sends *s, struct pxd *d)
{
	s->d = d;
	s->segs.limit = d->node.hosts->sites[d->node.self].buffer;
	px_list_init(&s->active);
	s->longs = px_map_new();
	s->rank = calloc((size_t)d->map.nranks + 1, sizeof *s->rank);
	for (int i = 0; s->rank && i <= d->map.nranks; i++) {
		px_list_init(&s->rank[i].sent);
		px_list_init(&s->rank[i].held);
		px_list_init(&s->rank[i].pulling);
	}
	return s->longs && s->rank ? PX_OK : PX_ENOMEM;
}

/* Envelopes. */

static void envelope_end(struct pxd_sends *s, struct pxd_envelope *e, int rank)
{
	if (e->path)
		pxd_in_path_freed(e->path, rank, PXD_CREDIT_MSG, e->charge);
	s->nenvelopes--;
	s->envelope_bytes -= (uint64_t)e->len;
	free(e);
}

static struct pxd_envelope *envelope_of(struct px_list *l)
{
	return px_list_entry(l, struct pxd_envelope, l);
}

/* Send the first of the envelopes that a rank has waiting, and those behind it as far as they fit into one native message. */
static int parcel_send(struct pxd_sends *s, int rank)
{
	struct pxd_rank *r = &s->rank[rank];
	struct pxd_envelope *e = envelope_of(r->held.next);
	int len = e->len;
	bool more = r->nheld > 1 && len + envelope_of(e->l.next)->len <= PX_BATCH_MAX;
	struct parcel *p = malloc(sizeof *p + (more ? PX_BATCH_MAX : 0));
	int rc;

	if (!p)
		return PX_ENOMEM;
	px_list_init(&p->envelopes);
	len = 0;
	do {
		if (more)
			memcpy(p->bytes + len, e->bytes, (size_t)e->len);
		len += e->len;
		px_list_del(&e->l);
		px_list_push(&p->envelopes, &e->l);
		r->nheld--;
		e = envelope_of(r->held.next);
	} while (more && r->nheld > 0 && len + e->len <= PX_BATCH_MAX);
	r->native++;
	px_list_push(&r->sent, &p->l);
	rc = px_n.Isend(more ? p->bytes : envelope_of(p->envelopes.next)->bytes, len, MPI_BYTE,
		s->d->map.native_of[rank], PX_TAG_DOWN, s->d->map.relay, &p->req);
	px_bell_ring(s->d->map.native_of[rank]);
	return rc == MPI_SUCCESS ? PX_OK : PX_EMPI;
}

int pxd_envelope_send(struct pxd_sends *s, struct pxd_envelope *e, const struct px_frame *f, int rank)
{
	struct pxd_rank *r = &s->rank[rank];

	px_frame_put(f, e->bytes);
	e->len = PX_FRAME_SIZE + (int)f->body;
	s->envelope_bytes += (uint64_t)e->len;
	if (s->envelope_bytes > s->envelope_peak)
		s->envelope_peak = s->envelope_bytes;
	s->nenvelopes++;
	if (r->fin && f->type != PX_F_FIN) {
		s->dropped++;
		envelope_end(s, e, rank);
		return PX_OK;
	}
	if (r->nheld == PXD_HELD_MAX) {
		envelope_end(s, e, rank);
		return PX_EPROTO;
	}
	/* It leaves with the next poll, together with what the same read brings for the rank. */
	px_list_push(&r->held, &e->l);
	r->nheld++;
	return PX_OK;
}

/* Long messages. */

static struct pxd_in_long *long_new(
	struct pxd_sends *s, const struct px_frame *f, struct pxd_in_path *p, int rank)
{
	struct pxd_in_long *m = calloc(1, sizeof *m);

	if (!m)
		return NULL;
	px_list_init(&m->l);
	px_list_init(&m->pull_l);
	px_list_init(&m->here);
	px_list_init(&m->sent);
	m->path = p;
	m->key = px_frame_key(f->src, f->msg);
	m->total = f->total;
	m->seg = f->seg;
	m->nsegs = (f->total + f->seg - 1) / f->seg;
	m->src = f->src;
	m->msg = f->msg;
	m->rank = rank;
	if (px_map_put(s->longs, m->key, m) < 0) {
		free(m);
		return NULL;
	}
	return m;
}

/* Where reserve is granted on demand: so much that the messages of a rank that the writer is told of come through path p. */
static void refill(struct pxd_rank *r, struct pxd_in_path *p, int rank)
{
	uint64_t left = 0;
	uint32_t least = 0;
	int n = 0;

	for (struct px_list *l = r->pulling.next; p->reserve && l != &r->pulling && n < PXD_PULLS;
		l = l->next, n++) {
		const struct pxd_in_long *m = px_list_entry(l, struct pxd_in_long, pull_l);
		uint32_t charge = px_seg_charge(m->total < m->seg ? (uint32_t)m->total : m->seg);

		if (m->path != p)
			continue;
		left += (m->nsegs - m->arrived) * charge;
		least = charge > least ? charge : least;
	}
	if (left > 0)
		pxd_in_path_reserve(p, rank, least, left < RESERVE_AHEAD ? left : RESERVE_AHEAD);
}

static void part_end(struct pxd_sends *s, struct pxd_in_long *m, struct part *p)
{
	pxd_in_path_freed(m->path, m->rank, p->kind, p->charge);
	pxd_seg_put(p->seg);
	free(p);
	refill(&s->rank[m->rank], m->path, m->rank);
}

/* Nobody will receive what has come. */
static void drop_here(struct pxd_sends *s, struct pxd_in_long *m)
{
	struct px_list *l;

	while ((l = px_list_pop(&m->here))) {
		m->done++;
		s->dropped++;
		part_end(s, m, px_list_entry(l, struct part, l));
	}
}

static void long_free(struct pxd_sends *s, struct pxd_in_long *m)
{
	px_map_del(s->longs, m->key);
	px_list_del(&m->pull_l);
	free(m);
}

static void maybe_free(struct pxd_sends *s, struct pxd_in_long *m)
{
	if (m->done < m->nsegs)
		return;
	if (m->promised)
		s->rank[m->rank].promised &= ~(1u << (m->tag - PX_TAG_PROMISED));
	long_free(s, m);
}

/* Send what comes next and is here. */
static int advance(struct pxd_sends *s, struct pxd_in_long *m)
{
	bool was = !px_list_empty(&m->sent);

	while (m->pulled && m->nsent < AHEAD && !px_list_empty(&m->here)) {
		struct part *p = px_list_entry(m->here.next, struct part, l);

		if (p->index != m->next)
			break;
		/* A promised one is received when it is matched: its tag is free again then, and not when it has been copied. */
		if ((m->promised ? px_n.Issend : px_n.Isend)(p->seg->data, (int)p->seg->len, MPI_BYTE,
			    s->d->map.native_of[m->rank], m->tag, s->d->map.relay, &p->req) != MPI_SUCCESS)
			return PX_EMPI;
		px_bell_ring(s->d->map.native_of[m->rank]);
		px_list_del(&p->l);
		px_list_push(&m->sent, &p->l);
		m->next++;
		m->nsent++;
	}
	if (!was && !px_list_empty(&m->sent)) {
		px_list_push(&s->active, &m->l);
		s->nactive++;
	}
	return PX_OK;
}

/* Is the writer's credit for the rank taken up, by what the rank does not receive? */
static bool pressure(struct pxd_in_path *p, int rank)
{
	const struct pxd_credit *c = pxd_in_path_credit(p, rank);

	if (p->reserve) /* the other credit may be less than a segment */
		return true;
	return c->arrived[PXD_CREDIT_DATA] - c->freed[PXD_CREDIT_DATA] > p->window[PXD_CREDIT_DATA] / 2;
}

/* Tell the writer which of the rank's pulled messages are wanted first: their segments may use the reserve, so that no message
 * that is not received yet can hold them up. Most messages come anyway, so it is told only under pressure, or when one has not come
 * for a tick. */
static void ask(struct pxd_rank *r)
{
	int n = 0;

	for (struct px_list *l = r->pulling.next; l != &r->pulling && n < PXD_PULLS; l = l->next, n++) {
		struct pxd_in_long *m = px_list_entry(l, struct pxd_in_long, pull_l);
		struct px_frame f = { .src = m->src, .msg = m->msg };

		if (m->asked)
			continue;
		m->asked = true;
		f.dst = (uint32_t)(m->path->d->hosts->sites[m->path->d->self].base + m->rank);
		pxd_in_path_pull(m->path, &f);
		refill(r, m->path, m->rank);
	}
}

static enum pxd_credit_kind credit_of(const struct px_frame *f)
{
	return f->flags & PX_FF_RESERVE ? PXD_CREDIT_RESERVE : PXD_CREDIT_DATA;
}

int pxd_sends_seg(struct pxd_sends *s, struct pxd_in_path *path, const struct px_frame *f,
	struct pxd_seg *seg, int rank)
{
	struct pxd_in_long *m = px_map_get(s->longs, px_frame_key(f->src, f->msg));
	struct part *p;
	struct px_list *at;

	if (!m && s->rank[rank].fin) {
		s->dropped++;
		pxd_in_path_freed(path, rank, credit_of(f), px_seg_charge(seg->len));
		pxd_seg_put(seg);
		return PX_OK;
	}
	p = malloc(sizeof *p);
	if (!m && p)
		m = long_new(s, f, path, rank);
	if (!m || !p) {
		free(p);
		pxd_seg_put(seg);
		return PX_ENOMEM;
	}
	p->seg = seg;
	p->index = f->offset / f->seg;
	p->charge = px_seg_charge(seg->len);
	p->kind = credit_of(f);
	for (at = m->here.prev; at != &m->here; at = at->prev)
		if (px_list_entry(at, struct part, l)->index <= p->index)
			break;
	if (m->total != f->total || m->seg != f->seg || m->rank != rank || m->path != path ||
		p->index < m->next ||
		(at != &m->here && px_list_entry(at, struct part, l)->index == p->index)) {
		pxd_seg_put(seg);
		free(p);
		return PX_EPROTO;
	}
	px_list_push_front(at, &p->l); /* behind at */
	m->arrived++;
	if (m->arrived == m->nsegs && !px_list_empty(&m->pull_l)) {
		px_list_del(&m->pull_l);
		if (pressure(path, rank))
			ask(&s->rank[rank]);
	}
	if (m->unwanted) {
		drop_here(s, m);
		maybe_free(s, m);
		return PX_OK;
	}
	if (!m->pulled && !px_list_empty(&s->rank[rank].pulling) && pressure(path, rank))
		ask(&s->rank[rank]);
	refill(&s->rank[rank], path, rank);
	return advance(s, m);
}

/* The announcement f of a middling message is about to be handed to its rank: if its payload is here, it is sent, too. */
static int promise(struct pxd_sends *s, struct px_frame *f, int rank)
{
	struct pxd_in_long *m = px_map_get(s->longs, px_frame_key(f->src, f->msg));
	struct pxd_rank *r = &s->rank[rank];
	int slot = 0;

	if (!m || m->arrived < m->nsegs || m->pulled || m->total != f->total || m->rank != rank || r->fin)
		return PX_OK;
	while (slot < PX_PROMISES && r->promised >> slot & 1)
		slot++;
	if (slot == PX_PROMISES)
		return PX_OK; /* the rank pulls it when it wants it */
	r->promised |= 1u << slot;
	m->promised = m->pulled = true;
	m->tag = PX_TAG_PROMISED + slot;
	f->local = (uint32_t)m->tag;
	return advance(s, m);
}

int pxd_sends_msg(struct pxd_sends *s, struct pxd_envelope *e, struct px_frame *f, int rank)
{
	int rc = PX_OK;

	if (f->type == PX_F_MSG && f->seg && f->total <= PX_MIDDLE_MAX)
		rc = promise(s, f, rank);
	if (rc < 0) {
		pxd_envelope_put(e);
		return rc;
	}
	return pxd_envelope_send(s, e, f, rank);
}

int pxd_sends_pull(struct pxd_sends *s, const struct px_frame *f, int rank)
{
	struct pxd_in_long *m = px_map_get(s->longs, px_frame_key(f->src, f->msg));
	struct pxd_in_path *path;

	if (!m) {
		path = s->path_of(s->owner, pxd_hosts_site_of(s->d->node.hosts, f->src), f->via);
		if (!path)
			return PX_EPROTO;
		m = long_new(s, f, path, rank);
		if (!m)
			return PX_ENOMEM;
	}
	if (m->total != f->total || m->seg != f->seg || m->rank != rank || m->pulled)
		return PX_EPROTO;
	m->pulled = true;
	m->tag = (int)f->local;
	m->unwanted = f->tag != 0; /* the rank says that it will not receive it */
	if (m->arrived < m->nsegs) {
		px_list_push(&s->rank[rank].pulling, &m->pull_l);
		if (pressure(m->path, rank))
			ask(&s->rank[rank]);
	}
	if (m->unwanted) {
		drop_here(s, m);
		maybe_free(s, m);
		return PX_OK;
	}
	return advance(s, m);
}

void pxd_sends_pull_again(struct pxd_sends *s, struct pxd_in_path *path)
{
	for (int i = 0; i < s->d->map.nranks; i++) {
		struct pxd_rank *r = &s->rank[i];

		for (struct px_list *l = r->pulling.next; l != &r->pulling; l = l->next) {
			struct pxd_in_long *m = px_list_entry(l, struct pxd_in_long, pull_l);

			if (m->path == path)
				m->asked = false;
		}
		ask(r);
	}
}

void pxd_sends_tick(struct pxd_sends *s)
{
	for (int i = 0; i < s->d->map.nranks; i++)
		ask(&s->rank[i]);
}

struct fin {
	struct pxd_sends *s;
	int rank;
};

static void long_fin(uint64_t key, void *value, void *arg)
{
	struct pxd_in_long *m = value;
	struct fin *f = arg;

	(void)key;
	if (m->rank != f->rank || m->pulled)
		return;
	drop_here(f->s, m); /* the segments that follow find nothing, and are dropped, too */
	long_free(f->s, m);
}

void pxd_sends_fin(struct pxd_sends *s, int rank)
{
	struct fin f = { s, rank };

	s->rank[rank].fin = true;
	px_map_each(s->longs, long_fin, &f);
}

static bool native_done(struct pxd_sends *s, MPI_Request *req)
{
	int flag = 0;

	if (px_n.Test(req, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS)
		return flag;
	pxd_fail(&s->d->node, PXD_EXIT_INTERNAL, "a native send to a local rank failed");
	return false;
}

static bool envelopes_poll(struct pxd_sends *s)
{
	bool some = false;

	for (int i = 0; i < s->d->map.nranks && s->nenvelopes > 0; i++) {
		struct pxd_rank *r = &s->rank[i];

		while (!px_list_empty(&r->sent)) {
			struct parcel *p = px_list_entry(r->sent.next, struct parcel, l);
			struct px_list *l;

			if (!native_done(s, &p->req))
				break;
			px_list_del(&p->l);
			r->native--;
			while ((l = px_list_pop(&p->envelopes)))
				envelope_end(s, envelope_of(l), i);
			free(p);
			some = true;
		}
		while (r->native < WINDOW && r->nheld > 0 && !s->d->node.failed) {
			if (parcel_send(s, i) < 0)
				pxd_fail(&s->d->node, PXD_EXIT_INTERNAL,
					"a native send to a local rank failed");
			some = true;
		}
	}
	return some;
}

static bool parts_poll(struct pxd_sends *s, struct pxd_in_long *m)
{
	bool some = false;

	while (!px_list_empty(&m->sent)) {
		struct part *p = px_list_entry(m->sent.next, struct part, l);

		if (!native_done(s, &p->req))
			break;
		px_list_del(&p->l);
		m->nsent--;
		m->done++;
		part_end(s, m, p);
		some = true;
	}
	return some;
}

bool pxd_sends_poll(struct pxd_sends *s)
{
	bool some = envelopes_poll(s);
	unsigned n = s->nactive < TURN ? s->nactive : TURN;

	while (n-- > 0 && !s->d->node.failed) {
		struct pxd_in_long *m = long_of(px_list_pop(&s->active));

		s->nactive--;
		some |= parts_poll(s, m);
		if (!px_list_empty(&m->sent)) {
			px_list_push(&s->active, &m->l);
			s->nactive++;
		}
		/* With nothing under way it is not in the list, and advance puts it there again. */
		if (advance(s, m) < 0)
			pxd_fail(&s->d->node, PXD_EXIT_INTERNAL, "a native send to a local rank failed");
		maybe_free(s, m);
	}
	return some;
}

static void envelopes_drop(struct pxd_sends *s, struct px_list *list)
{
	struct px_list *l;

	while ((l = px_list_pop(list))) {
		struct pxd_envelope *e = envelope_of(l);

		s->nenvelopes--;
		s->envelope_bytes -= (uint64_t)e->len;
		free(e);
	}
}

static void parcels_drop(struct pxd_sends *s, struct px_list *list)
{
	struct px_list *l;

	while ((l = px_list_pop(list))) {
		struct parcel *p = px_list_entry(l, struct parcel, l);

		envelopes_drop(s, &p->envelopes);
		free(p);
	}
}

static void parts_drop(struct px_list *list)
{
	struct px_list *l;

	while ((l = px_list_pop(list))) {
		struct part *p = px_list_entry(l, struct part, l);

		pxd_seg_put(p->seg);
		free(p);
	}
}

static void long_drop(uint64_t key, void *value, void *arg)
{
	struct pxd_in_long *m = value;

	(void)key;
	parts_drop(&m->here);
	parts_drop(&m->sent);
	long_free(arg, m);
}

/* fini: at the end of the process, when no native send is under way. */
void pxd_sends_fini(struct pxd_sends *s)
{
	for (int i = 0; s->rank && i <= s->d->map.nranks; i++) {
		parcels_drop(s, &s->rank[i].sent);
		envelopes_drop(s, &s->rank[i].held);
	}
	if (s->longs)
		px_map_each(s->longs, long_drop, s);
	px_map_free(s->longs);
	pxd_segs_fini(&s->segs);
	free(s->rank);
}
