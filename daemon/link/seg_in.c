/* seg_in.c: see seg_in.h.
 *
 * Design. What is remembered, and what a segment refers to, is settled when its frame is taken over, in the order of the stream's
 * numbers, which is the order in which the writer has settled it. Decoding comes later and beside the loop, in any order; so a
 * remembered segment may have no bytes yet, and whoever refers to it waits for them (unpack.c).
 */
#include "seg_in.h"

#include <stdlib.h>

#include "err.h"
#include "lossy.h"
#include "seg_code.h"
#include "unpack.h"

uint32_t pxd_seg_plain(const struct px_frame *f)
{
	return f->total - f->offset < f->seg ? (uint32_t)(f->total - f->offset) : f->seg;
}

static void broken(struct pxd_in_path *p, const char *what)
{
	if (!p->d->failed)
		pxd_fail(p->d, PXD_EXIT_PROTOCOL, "site %s broke the protocol: %s",
			pxd_site_name(p->d, p->site), what);
}

static void no_memory(struct pxd_in_path *p)
{
	pxd_fail(p->d, PXD_EXIT_INTERNAL, "out of memory for a segment from site %s",
		pxd_site_name(p->d, p->site));
}

/* The plain segment to who wants it. */
static void seg_done(struct pxd_in_path *p, const struct px_frame *f, struct pxd_seg *seg)
{
	uint32_t rank = f->dst - (uint32_t)p->d->hosts->sites[p->d->self].base;
	int rc = p->ops->seg(p->owner, p, f, seg, (int)rank);

	if (rc == PX_EPROTO)
		broken(p, "a segment that contradicts another one");
	else if (rc < 0)
		pxd_fail(p->d, PXD_EXIT_INTERNAL, "cannot hand a message of site %s to its rank: %s",
			pxd_site_name(p->d, p->site), px_strerror(rc));
}

static void count(struct pxd_in_path *p, const struct pxd_unpack *u)
{
	unsigned slot = pxd_codec_slot(u->f.codec);

	if (u->f.codec == PXD_CODEC_LOSSY) {
		p->count.lossy.segments++;
		p->count.lossy.in += u->f.body;
		p->count.lossy.out += u->out->len;
		p->count.lossy.ns += u->ns;
		return;
	}

	p->count.codec[slot].segments++;
	p->count.codec[slot].in += u->f.body;
	p->count.codec[slot].out += u->out->len;
	p->count.codec[slot].ns += u->ns;
	if (u->f.codec & PXD_CODEC_PREDICT) {
		enum pxd_predict_kind k = pxd_predict_kind(&u->pred);

		p->count.predicted[k].segments++;
		p->count.predicted[k].in += u->f.body;
		p->count.predicted[k].out += u->out->len;
	}
}

static void on_unpacked(struct pxd_unpack *u)
{
	struct pxd_in_path *p = u->owner;

	p->unpacking--;
	if (u->rc == PX_ENOMEM && !p->d->failed)
		no_memory(p);
	else if (u->rc < 0 && !p->d->failed)
		pxd_fail(p->d, PXD_EXIT_PROTOCOL,
			"site %s sent a compressed segment (%s%s) that does not decompress",
			pxd_site_name(p->d, p->site),
			u->f.codec == PXD_CODEC_LOSSY ? "zfp" : pxd_slot_name(pxd_codec_slot(u->f.codec)),
			u->f.codec & PXD_CODEC_PREDICT ? ", predicted" : "");
	if (u->rc < 0 || p->closed) {
		pxd_seg_put(u->out);
		return;
	}
	count(p, u);
	seg_done(p, &u->f, u->out);
}

/* What a predicted segment refers to, held for u. false: the writer has broken the protocol. */
static bool refs_find(struct pxd_in_stream *s, struct pxd_unpack *u)
{
	if (!(u->f.codec & PXD_CODEC_PREDICT))
		return true;
	if (pxd_predict_head_get(u->in->data, u->in->len, &u->pred) < 0)
		return false;
	for (int i = 0; i < u->pred.nrefs; i++) {
		struct pxd_kept *k = pxd_history_find(&s->history, &u->f, u->pred.ref[i], s->acked);

		if (!k)
			return false;
		u->ref[i] = pxd_kept_hold(k);
	}
	return true;
}

static void unpack_free(struct pxd_unpack *u)
{
	for (int i = 0; u && i < PXD_PREDICT_REFS; i++)
		pxd_kept_put(u->ref[i]);
	if (u) {
		pxd_kept_put(u->kept);
		pxd_seg_put(u->in);
		pxd_seg_put(u->out);
	}
	free(u);
}

static void decode(struct pxd_in_stream *s, struct pxd_unpack *u)
{
	struct pxd_in_path *p = s->path;
	struct pxd_kept *kept = NULL;

	if (!refs_find(s, u)) {
		broken(p, "a predicted segment that refers to one that is not there");
		unpack_free(u);
		return;
	}
	if (u->f.flags & PX_FF_KEEP && pxd_history_keep(&s->history, &u->f, NULL, &kept) < 0) {
		no_memory(p);
		unpack_free(u);
		return;
	}
	if (kept)
		u->kept = pxd_kept_hold(kept);
	p->unpacking++;
	pxd_unpack(u);
}

void pxd_seg_in(struct pxd_in_stream *s, const struct px_frame *f, struct pxd_seg *seg)
{
	struct pxd_in_path *p = s->path;
	struct pxd_unpack *u;
	struct pxd_kept *kept;

	if (f->codec == 0) {
		if (f->flags & PX_FF_KEEP && pxd_history_keep(&s->history, f, seg, &kept) < 0)
			no_memory(p);
		seg_done(p, f, seg);
		return;
	}
	u = calloc(1, sizeof *u);
	if (u)
		u->out = pxd_seg_take(p->segs, pxd_seg_plain(f));
	if (!u || !u->out) {
		free(u);
		pxd_seg_put(seg);
		no_memory(p);
		return;
	}
	u->d = p->d;
	u->studies = &p->studies;
	u->f = *f;
	u->in = seg;
	u->done = on_unpacked;
	u->owner = p;
	decode(s, u);
}
