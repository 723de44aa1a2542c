/* link_seg.h: buffers of payload segments, reused.
 *
 * One pool per daemon. A buffer is taken, filled (by a native receive or straight from a socket), handed
 * on, and put back by whoever sent it last. Buffers are warm pages: the free ones are kept, the last used
 * first.
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
	uint8_t *data;
};

#define PXD_SEG_CLASSES 3 /* 256 KiB, 512 KiB, 1 MiB */

struct pxd_segs {
	struct pxd_seg *free[PXD_SEG_CLASSES];
	unsigned nfree; /* of all classes */
	unsigned keep;  /* free ones beyond this go back to the system */
	unsigned max;   /* most at a time, 0 = no limit */
	unsigned used;  /* taken now */
	uint64_t used_bytes, peak_bytes;
};

/* pxd_seg_take: a buffer for len <= PX_SEG_MAX bytes with seg->len = len; NULL: the pool is exhausted (or
 * memory). */
struct pxd_seg *pxd_seg_take(struct pxd_segs *pool, uint32_t len);
void pxd_seg_put(struct pxd_seg *seg);
void pxd_segs_fini(struct pxd_segs *pool); /* frees what is free */

#endif
