/* in_send.c: see in_send.h.
 *
 * Design. Envelopes are small enough for both vendors' eager protocols: they complete nearly at once,
 * whatever the rank does, and are looked at in the order sent to each rank. Segments are sent with Issend, so that
 * completion says
 * "matched": only then may the tag of the message be used again.
 */
#include "in_send.h"

#include <stdlib.h>

#include "err.h"
#include "vendor.h"

#define SPARE_ENVELOPES 256
#define SPARE_SEGS      64
/* Envelopes under way to one rank. Open MPI keeps the sends that it cannot place on one list, and walks it in every call: one
 * rank that does not receive would slow down all others. */
#define WINDOW 128
#define TURN   32 /* long messages looked at per poll */

struct part {
	struct px_list l;
	MPI_Request req;
	struct pxd_seg *seg;
};

static struct pxd_in_long *long_of(struct px_list *l)
{
	return px_list_entry(l, struct pxd_in_long, l);
}

int pxd_sends_init(struct pxd_sends *s, struct pxd *d)
{
	s->d = d;
	px_list_init(&s->spare);
	px_list_init(&s->active);
	s->segs.keep = SPARE_SEGS;
	s->longs = px_map_new();
	s->rank = calloc((size_t)d->map.nranks + 1, sizeof *s->rank);
	for (int i = 0; s->rank && i <= d->map.nranks; i++) {
		px_list_init(&s->rank[i].sent);
		px_list_init(&s->rank[i].held);
	}
	return s->longs && s->rank ? PX_OK : PX_ENOMEM;
}

static void long_forget(uint64_t key, void *value, void *arg)
{
	struct pxd_in_long *m = value;

	(void)key;
	(void)arg;
	if (px_list_empty(&m->parts)) /* otherwise it is in `active` */
		free(m);
}

/* At the end of the process; what is still under way is left to it. */
void pxd_sends_fini(struct pxd_sends *s)
{
	struct px_list *l;

	if (s->longs)
		px_map_each(s->longs, long_forget, NULL);
	px_map_free(s->longs);
	while ((l = px_list_pop(&s->spare)))
		free(px_list_entry(l, struct pxd_envelope, l));
	pxd_segs_fini(&s->segs);
	free(s->rank);
	free(s->tags);
}

struct pxd_envelope *pxd_envelope_take(struct pxd_sends *s)
{
	struct px_list *l = px_list_pop(&s->spare);

	if (l) {
		s->nspare--;
		return px_list_entry(l, struct pxd_envelope, l);
	}
	return malloc(sizeof(struct pxd_envelope));
}

void pxd_envelope_put(struct pxd_sends *s, struct pxd_envelope *e)
{
	if (s->nspare >= SPARE_ENVELOPES) {
		free(e);
		return;
	}
	s->nspare++;
	px_list_push_front(&s->spare, &e->l);
}

static int envelope_start(struct pxd_sends *s, struct pxd_envelope *e, int rank)
{
	if (px_n.Isend(e->bytes, e->len, MPI_BYTE, s->d->map.native_of[rank], PX_TAG_DOWN, s->d->map.relay,
		    &e->req) != MPI_SUCCESS)
		return PX_EMPI;
	s->rank[rank].native++;
	px_list_push(&s->rank[rank].sent, &e->l);
	return PX_OK;
}

int pxd_envelope_send(struct pxd_sends *s, struct pxd_envelope *e, const struct px_frame *f, int rank)
{
	struct pxd_rank *r = &s->rank[rank];

	if (r->fin && f->type != PX_F_FIN) {
		s->dropped++;
		pxd_envelope_put(s, e);
		return PX_OK;
	}
	px_frame_put(f, e->bytes);
	e->len = PX_FRAME_SIZE + (int)f->body;
	if (r->native == WINDOW || !px_list_empty(&r->held)) {
		px_list_push(&r->held, &e->l);
	} else if (envelope_start(s, e, rank) < 0) {
		pxd_envelope_put(s, e);
		return PX_EMPI;
	}
	r->envelopes++;
	if (++s->nenvelopes > s->envelope_peak)
		s->envelope_peak = s->nenvelopes;
	return PX_OK;
}

static int tag_get(struct pxd_sends *s)
{
	if (s->ntags > 0)
		return s->tags[--s->ntags];
	if (s->tags_made == PX_TAG_COUNT)
		return -1;
	if (s->tags_made % 1024 == 0) {
		int *more = realloc(s->tags, (size_t)(s->tags_made + 1024) * sizeof *more);

		if (!more)
			return -1;
		s->tags = more;
	}
	return PX_TAG_DATA + s->tags_made++;
}

static uint64_t key_of(const struct px_frame *f)
{
	return (uint64_t)f->src << 32 | f->msg;
}

static void long_free(struct pxd_sends *s, struct pxd_in_long *m)
{
	if (m->tag >= 0)
		s->tags[s->ntags++] = m->tag;
	s->nlongs--;
	free(m);
}

int pxd_in_long_add(struct pxd_sends *s, struct pxd_envelope *e, struct px_frame *f, int rank)
{
	struct pxd_in_long *m;

	if (px_map_get(s->longs, key_of(f))) {
		pxd_envelope_put(s, e);
		return PX_EPROTO;
	}
	m = calloc(1, sizeof *m);
	if (!m) {
		pxd_envelope_put(s, e);
		return PX_ENOMEM;
	}
	px_list_init(&m->l);
	px_list_init(&m->parts);
	m->key = key_of(f);
	m->total = f->total;
	m->seg = f->seg;
	m->src = f->src;
	m->rank = rank;
	m->drop = s->rank[rank].fin;
	m->tag = m->drop ? -1 : tag_get(s);
	s->nlongs++;
	if ((m->tag < 0 && !m->drop) || px_map_put(s->longs, m->key, m) < 0) {
		long_free(s, m);
		pxd_envelope_put(s, e);
		return PX_ENOMEM;
	}
	f->local = m->drop ? 0 : (uint32_t)m->tag;
	return pxd_envelope_send(s, e, f, rank);
}

struct pxd_in_long *pxd_in_long_find(struct pxd_sends *s, const struct px_frame *f)
{
	struct pxd_in_long *m = px_map_get(s->longs, key_of(f));

	if (!m || m->total != f->total || m->seg != f->seg || m->next != f->offset)
		return NULL;
	return m;
}

int pxd_in_long_part(struct pxd_sends *s, struct pxd_in_long *m, struct pxd_seg *seg)
{
	struct part *p = m->drop ? NULL : malloc(sizeof *p);

	m->next += seg->len;
	if (m->next >= m->total)
		px_map_del(s->longs, m->key);
	if (m->drop) {
		pxd_seg_put(seg);
		if (m->next >= m->total)
			long_free(s, m);
		return PX_OK;
	}
	if (!p || px_n.Issend(seg->data, (int)seg->len, MPI_BYTE, s->d->map.native_of[m->rank], m->tag,
			  s->d->map.relay, &p->req) != MPI_SUCCESS) {
		pxd_seg_put(seg);
		free(p);
		return p ? PX_EMPI : PX_ENOMEM;
	}
	p->seg = seg;
	if (px_list_empty(&m->parts)) {
		px_list_push(&s->active, &m->l);
		s->nactive++;
	}
	px_list_push(&m->parts, &p->l);
	return PX_OK;
}

static bool native_done(struct pxd_sends *s, MPI_Request *req)
{
	int flag = 0;

	if (px_n.Test(req, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS)
		return flag;
	pxd_fail(s->d, PXD_EXIT_INTERNAL, "a native send to a local rank failed");
	return false;
}

static bool envelopes_poll(struct pxd_sends *s)
{
	bool some = false;

	for (int i = 0; i < s->d->map.nranks && s->nenvelopes > 0; i++) {
		struct pxd_rank *r = &s->rank[i];

		while (!px_list_empty(&r->sent)) {
			struct pxd_envelope *e = px_list_entry(r->sent.next, struct pxd_envelope, l);

			if (!native_done(s, &e->req))
				break;
			px_list_del(&e->l);
			r->native--;
			s->nenvelopes--;
			pxd_envelope_put(s, e);
			some = true;
		}
		while (r->native < WINDOW && !px_list_empty(&r->held) && !s->d->failed) {
			struct pxd_envelope *e = px_list_entry(px_list_pop(&r->held), struct pxd_envelope, l);

			if (envelope_start(s, e, i) < 0)
				pxd_fail(s->d, PXD_EXIT_INTERNAL, "a native send to a local rank failed");
			some = true;
		}
	}
	return some;
}

static bool parts_poll(struct pxd_sends *s, struct pxd_in_long *m)
{
	bool some = false;

	while (!px_list_empty(&m->parts)) {
		struct part *p = px_list_entry(m->parts.next, struct part, l);

		if (!native_done(s, &p->req))
			break;
		px_list_del(&p->l);
		pxd_seg_put(p->seg);
		free(p);
		some = true;
	}
	return some;
}

bool pxd_sends_poll(struct pxd_sends *s)
{
	bool some = envelopes_poll(s);
	unsigned n = s->nactive < TURN ? s->nactive : TURN;

	while (n-- > 0 && !s->d->failed) {
		struct pxd_in_long *m = long_of(px_list_pop(&s->active));

		some |= parts_poll(s, m);
		if (!px_list_empty(&m->parts)) {
			px_list_push(&s->active, &m->l);
			continue;
		}
		s->nactive--;
		if (m->next >= m->total)
			long_free(s, m);
	}
	return some;
}
