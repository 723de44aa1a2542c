/* pack.h: segments encoded and decoded by worker threads of libuv, beside the loop.
 *
 * pxd_pack and pxd_unpack take the segment and give the result to `done` in the loop's thread, at once when no work is needed.
 * A segment that does not shrink is passed on as it is. One that refers to another waits until that is decoded.
 */
#ifndef PXD_PACK_H
#define PXD_PACK_H

#include "link.h"

/* pxd_pack_open, pxd_pack_close: what link l needs of its loop. Nothing may be packed behind close. pxd_pack_free: the rest, when the loop has
 * ended; also of a link that was never opened. */
int pxd_pack_open(struct pxd_path *l);
void pxd_pack_close(struct pxd_path *l);
void pxd_pack_free(struct pxd_path *l);

/* pxd_pack: segment seg of frame f (header of the plain segment) for link l: choose predictor and codec, encode, queue it. 0 or
 * PX_ENOMEM. ahead: the announcement of its message follows; it is queued at once before that if it is not encoded. */
int pxd_pack(struct pxd_path *l, const struct px_frame *f, struct pxd_seg *seg, bool ahead);

/* pxd_pack_go: encode what had to wait for the wire, as far as that is done with what came before; also called by itself. */
void pxd_pack_go(struct pxd_path *l);

/* pxd_pack_pays: may link l compress f's payload of n bytes, a few KiB, as a segment? If not, it does not choose again for it. */
bool pxd_pack_pays(struct pxd_path *l, const struct px_frame *f, size_t n);

struct pxd_unpack {
	uv_work_t work;
	struct pxd_node *d;
	struct px_frame f; /* as it came: codec, elem, body */
	struct pxd_seg *in, *out;
	struct pxd_kept *ref[PXD_PREDICT_REFS]; /* held; NULL: none */
	struct pxd_kept *kept;                  /* held: gets what is decoded; NULL: nobody remembers it */
	struct px_list l;                       /* in ref[i]->waiting */
	struct pxd_predictor pred;              /* of its head, if f.codec has PREDICT */
	struct pxd_studies *studies;
	struct pxd_student student; /* of pack.c, if it learns */
	int rc;
	uint64_t ns;
	/* done: out is the owner's then; rc < 0: the encoded bytes are malformed. Frees u afterwards. */
	void (*done)(struct pxd_unpack *u);
	void *owner;
};
/* pxd_unpack: decode u->in into u->out (of the right length). Takes u (malloc). */
void pxd_unpack(struct pxd_unpack *u);

#endif
