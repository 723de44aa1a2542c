/* link_seg.c: see link_seg.h. */
#include "link_seg.h"

#include <assert.h>
#include <stdlib.h>

#include "frame.h"

#define ALIGN 4096

static unsigned class_of(uint32_t len)
{
	return len <= PX_SEG_MIN ? 0 : len <= 2 * PX_SEG_MIN ? 1 : 2;
}

struct pxd_seg *pxd_seg_take(struct pxd_segs *pool, uint32_t len)
{
	unsigned c = class_of(len);
	struct pxd_seg *s = pool->free[c];

	assert(len <= PX_SEG_MAX);
	if (pool->max && pool->used >= pool->max)
		return NULL;
	if (s) {
		pool->free[c] = s->next;
		pool->nfree--;
	} else {
		s = malloc(sizeof *s);
		if (!s)
			return NULL;
		s->cap = (uint32_t)PX_SEG_MIN << c;
		s->pool = pool;
		s->data = aligned_alloc(ALIGN, s->cap);
		if (!s->data) {
			free(s);
			return NULL;
		}
	}
	s->next = NULL;
	s->len = len;
	pool->used++;
	pool->used_bytes += s->cap;
	if (pool->used_bytes > pool->peak_bytes)
		pool->peak_bytes = pool->used_bytes;
	return s;
}

void pxd_seg_put(struct pxd_seg *s)
{
	struct pxd_segs *pool = s->pool;
	unsigned c = class_of(s->cap);

	pool->used--;
	pool->used_bytes -= s->cap;
	if (pool->nfree >= pool->keep) {
		free(s->data);
		free(s);
		return;
	}
	s->next = pool->free[c];
	pool->free[c] = s;
	pool->nfree++;
}

void pxd_segs_fini(struct pxd_segs *pool)
{
	for (unsigned c = 0; c < PXD_SEG_CLASSES; c++) {
		while (pool->free[c]) {
			struct pxd_seg *s = pool->free[c];

			pool->free[c] = s->next;
			free(s->data);
			free(s);
		}
	}
	pool->nfree = 0;
}
