/* pack.h: segments encoded and decoded by worker threads of libuv, beside the loop.
 *
 * pxd_pack and pxd_unpack take the segment and give the result to `done` in the loop's thread, at once when no work is needed.
 * A segment that does not shrink is passed on as it is. One that refers to another waits until that is decoded.
 */
#ifndef PXD_PACK_H
#define PXD_PACK_H

#include "link.h"

/* pxd_pack: segment seg of frame f (header of the plain segment) for link l: choose predictor and codec, encode, queue it. 0 or
 * PX_ENOMEM. ahead: the announcement of its message follows; it is queued at once before that if it is not encoded. */
int pxd_pack(struct pxd_path *l, const struct px_frame *f, struct pxd_seg *seg, bool ahead);

/* pxd_pack_pays: may link l compress a segment of n bytes, a few KiB? */
bool pxd_pack_pays(const struct pxd_path *l, uint64_t n);

struct pxd_unpack {
	uv_work_t work;
	struct pxd_node *d;
	struct px_frame f; /* as it came: codec, elem, body */
	struct pxd_seg *in, *out;
	struct pxd_kept *ref[PXD_PREDICT_REFS]; /* held; NULL: none */
	struct pxd_kept *kept;                  /* held: gets what is decoded; NULL: nobody remembers it */
	struct px_list l;                       /* in ref[i]->waiting */
	unsigned predicted;                     /* 1 + enum pxd_predict_kind, 0: it is not */
	int rc;
	uint64_t ns;
	/* done: out is the owner's then; rc < 0: the encoded bytes are malformed. Frees u afterwards. */
	void (*done)(struct pxd_unpack *u);
	void *owner;
};
/* pxd_unpack: decode u->in into u->out (of the right length). Takes u (malloc). 0 or PX_ENOMEM (u is the caller's then). */
int pxd_unpack(struct pxd_unpack *u);

#endif
