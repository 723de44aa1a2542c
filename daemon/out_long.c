/* out_long.c: see out_long.h.
 *
 * Design. The native receives of a message are a small ring: `posted` counts those started, `done` those
 * complete, at most PXD_OUT_AHEAD lie between. They match in order, as all have the same source and tag.
 */
#include "out_long.h"

#include <stdlib.h>

#include "err.h"
#include "vendor.h"

#define TURN 16 /* messages served per poll: bounds the time in which the envelopes wait */

struct out_long {
	struct px_list l;
	struct px_frame f;
	int from;
	struct pxd_path *path;
	uint64_t nsegs, posted, done;
	struct {
		MPI_Request req;
		struct pxd_seg *seg;
	} slot[PXD_OUT_AHEAD];
};

void pxd_out_longs_init(struct pxd_out_longs *o, struct pxd *d)
{
	o->d = d;
	px_list_init(&o->active);
	o->segs.max = o->segs.keep = PXD_OUT_SEGS;
}

int pxd_out_long_add(struct pxd_out_longs *o, const struct px_frame *f, int from, struct pxd_path *path)
{
	struct out_long *m = calloc(1, sizeof *m);

	if (!m)
		return PX_ENOMEM;
	m->f = *f;
	m->from = from;
	m->path = path;
	m->nsegs = (f->total + f->seg - 1) / f->seg;
	px_list_push(&o->active, &m->l);
	if (++o->count > o->peak)
		o->peak = o->count;
	return PX_OK;
}

static uint32_t seg_len(const struct px_frame *f, uint64_t k)
{
	uint64_t left = f->total - k * f->seg;

	return left < f->seg ? (uint32_t)left : f->seg;
}

static bool receives_post(struct pxd_out_longs *o, struct out_long *m)
{
	bool some = false;

	while (m->posted < m->nsegs && m->posted - m->done < PXD_OUT_AHEAD && pxd_path_open_to(m->path)) {
		unsigned k = m->posted % PXD_OUT_AHEAD;
		struct pxd_seg *s = pxd_seg_take(&o->segs, seg_len(&m->f, m->posted));

		if (!s)
			break; /* others give theirs back as their links take them */
		if (px_n.Irecv(s->data, (int)s->len, MPI_BYTE, m->from, (int)m->f.local, o->d->map.relay,
			    &m->slot[k].req) != MPI_SUCCESS) {
			pxd_seg_put(s);
			pxd_fail(o->d, PXD_EXIT_INTERNAL, "a native receive from rank %u failed", m->f.src);
			return true;
		}
		m->slot[k].seg = s;
		m->posted++;
		some = true;
	}
	return some;
}

static bool segments_forward(struct pxd_out_longs *o, struct out_long *m)
{
	bool some = false;

	while (m->done < m->posted) {
		unsigned k = m->done % PXD_OUT_AHEAD;
		struct pxd_seg *s = m->slot[k].seg;
		struct px_frame f = m->f;
		MPI_Status st;
		int flag = 0, len = -1;

		if (px_n.Test(&m->slot[k].req, &flag, &st) != MPI_SUCCESS) {
			pxd_fail(o->d, PXD_EXIT_INTERNAL, "a native receive from rank %u failed", m->f.src);
			return true;
		}
		if (!flag)
			break;
		some = true;
		px_n.Get_count(&st, MPI_BYTE, &len);
		if (len != (int)s->len) {
			pxd_fail(o->d, PXD_EXIT_INTERNAL,
				"rank %u announced a segment of %u bytes and sent %d", m->f.src, s->len, len);
			return true;
		}
		f.type = PX_F_SEG;
		f.offset = m->done * f.seg;
		f.body = s->len;
		m->slot[k].seg = NULL;
		m->done++;
		if (m->path->state != PXD_LINK_UP) {
			pxd_seg_put(s); /* the link is lost, the job about to end */
			continue;
		}
		if (pxd_path_put_seg(m->path, &f, s) < 0)
			pxd_fail(o->d, PXD_EXIT_INTERNAL, "out of memory for a segment of %llu bytes",
				(unsigned long long)f.body);
		/* Send it now, do not collect more of it: the wire shall not wait. */
		pxd_path_flush(m->path);
	}
	return some;
}

bool pxd_out_longs_poll(struct pxd_out_longs *o)
{
	unsigned n = o->count < TURN ? o->count : TURN;
	bool some = false;

	while (n-- > 0 && !o->d->failed) {
		struct px_list *l = px_list_pop(&o->active);
		struct out_long *m = px_list_entry(l, struct out_long, l);

		some |= receives_post(o, m);
		some |= segments_forward(o, m);
		if (m->done == m->nsegs) {
			free(m);
			o->count--;
			continue;
		}
		some |= receives_post(o, m);
		px_list_push(&o->active, l);
	}
	return some;
}

void pxd_out_longs_fini(struct pxd_out_longs *o)
{
	struct px_list *l;

	while ((l = px_list_pop(&o->active)))
		free(px_list_entry(l, struct out_long, l));
	pxd_segs_fini(&o->segs);
}
