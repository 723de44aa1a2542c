/* link_seg.h: buffers of payload segments, reused.
 *
 * One pool per daemon. A buffer is taken, filled (by a native receive or straight from a socket), handed
 * on, and put back by each of its holders; then it is free again. Sizes are the powers of two from 4 KiB to 1 MiB, so that a short segment takes
 * little (px_seg_charge in frame.h). Buffers are warm pages, and new ones cost a page fault each 4 KiB: free ones are kept, the last
 * used first.
 */
#ifndef PXD_LINK_SEG_H
#define PXD_LINK_SEG_H

#include <stddef.h>
#include <stdint.h>

struct pxd_seg {
	struct pxd_seg *next; /* in the pool's list of free ones */
	struct pxd_segs *pool;
	uint32_t len; /* bytes in use */
	uint32_t cap;
	uint32_t holders;
	uint8_t *data;
};

#define PXD_SEG_CLASSES 9 /* 4 KiB .. 1 MiB */

struct pxd_segs {
	struct pxd_seg *free[PXD_SEG_CLASSES];
	uint64_t free_bytes, used_bytes; /* of all classes */
	uint64_t limit;                  /* free ones go back to the system when both together exceed it */
	uint64_t peak_bytes;             /* most used */
};

/* pxd_seg_take: a buffer for len <= PX_SEG_MAX bytes with seg->len = len; NULL: out of memory. */
struct pxd_seg *pxd_seg_take(struct pxd_segs *pool, uint32_t len);
/* pxd_seg_hold: one more who will put it back; nobody may change its bytes from then on. */
struct pxd_seg *pxd_seg_hold(struct pxd_seg *seg);
void pxd_seg_put(struct pxd_seg *seg);     /* NULL is fine */
void pxd_segs_fini(struct pxd_segs *pool); /* frees what is free */

#endif
