/* link_seg.c: see link_seg.h. */
#include "link_seg.h"

#include <assert.h>
#include <stdlib.h>

#include "frame.h"

static unsigned class_of(uint32_t len)
{
	unsigned c = 0;

	while ((4096u << c) < len)
		c++;
	return c;
}

struct pxd_seg *pxd_seg_take(struct pxd_segs *pool, uint32_t len)
{
	unsigned c = class_of(len);
	struct pxd_seg *s = pool->free[c];

	assert(len <= PX_SEG_MAX);
	if (s) {
		pool->free[c] = s->next;
		pool->free_bytes -= s->cap;
	} else {
		s = malloc(sizeof *s);
		if (!s)
			return NULL;
		s->cap = 4096u << c;
		s->pool = pool;
		s->data = aligned_alloc(4096, s->cap);
		if (!s->data) {
			free(s);
			return NULL;
		}
	}
	s->next = NULL;
	s->holders = 1;
	s->len = len;
	pool->used_bytes += s->cap;
	if (pool->used_bytes > pool->peak_bytes)
		pool->peak_bytes = pool->used_bytes;
	return s;
}

struct pxd_seg *pxd_seg_hold(struct pxd_seg *s)
{
	s->holders++;
	return s;
}

void pxd_seg_put(struct pxd_seg *s)
{
	struct pxd_segs *pool = s ? s->pool : NULL;
	unsigned c;

	if (!s || --s->holders > 0)
		return;
	c = class_of(s->cap);
	pool->used_bytes -= s->cap;
	if (pool->used_bytes + pool->free_bytes + s->cap > pool->limit) {
		free(s->data);
		free(s);
		return;
	}
	s->next = pool->free[c];
	pool->free[c] = s;
	pool->free_bytes += s->cap;
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
	pool->free_bytes = 0;
}
