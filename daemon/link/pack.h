/* pack.h: segments encoded by worker threads of libuv, beside the loop; the other way: unpack.h.
 *
 * A segment that does not shrink is passed on as it is.
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

/* pxd_pack_codec: of the calling thread; NULL: no memory. */
struct pxd_codec *pxd_pack_codec(void);

#endif
