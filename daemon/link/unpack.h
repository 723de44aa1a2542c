/* unpack.h: segments decoded by worker threads of libuv, beside the loop.
 *
 * pxd_unpack takes the segment and gives the result to `done` in the loop's thread. One that refers to another waits until that is decoded.
 */
#ifndef PXD_UNPACK_H
#define PXD_UNPACK_H

#include "link.h"

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
	struct pxd_student student; /* of unpack.c, if it learns */
	int rc;
	uint64_t ns;
	/* done: out is the owner's then; rc < 0: the encoded bytes are malformed. Frees u afterwards. */
	void (*done)(struct pxd_unpack *u);
	void *owner;
};
/* pxd_unpack: decode u->in into u->out (of the right length). Takes u (malloc). */
void pxd_unpack(struct pxd_unpack *u);

#endif
