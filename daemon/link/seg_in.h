/* seg_in.h: a segment that has arrived, on its way to who wants it: decoded, with what it refers to, and remembered.
 *
 * Part of a path's reader (link_in.h), called from its loop's thread when a SEG frame is complete and taken over.
 */
#ifndef PXD_SEG_IN_H
#define PXD_SEG_IN_H

#include "link_in.h"

/* pxd_seg_in: the body of frame f is seg, which is taken over. After a failure pxd_fail has been called. */
void pxd_seg_in(struct pxd_in_stream *s, const struct px_frame *f, struct pxd_seg *seg);
/* pxd_seg_plain: length of the segment of f when it is not encoded. */
uint32_t pxd_seg_plain(const struct px_frame *f);

#endif
