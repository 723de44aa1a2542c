/* outq.c: see outq.h. Frames in byte blocks are found again by their own headers. */
#include "outq.h"

#include <stdlib.h>
#include <string.h>

#include "endian.h"
#include "err.h"
#include "frame.h"

#define BLOCK_BYTES 65536

struct block {
	struct px_list l;
	const uint8_t *base;
	size_t len, cap;
	uint64_t last;       /* number of the last frame of which a part is here */
	struct pxd_seg *seg; /* NULL: bytes are in mem */
	uint8_t mem[];
};

static struct block *block_of(struct px_list *l)
{
	return px_list_entry(l, struct block, l);
}

static size_t block_memory(const struct block *b)
{
	return sizeof *b + (b->seg ? b->seg->cap : b->cap);
}

void pxd_outq_init(struct pxd_outq *q)
{
	memset(q, 0, sizeof *q);
	px_list_init(&q->blocks);
	q->cur = &q->blocks;
}

static void block_drop(struct pxd_outq *q, struct block *b)
{
	q->held -= block_memory(b);
	px_list_del(&b->l);
	if (b->seg)
		pxd_seg_put(b->seg);
	free(b);
}

void pxd_outq_fini(struct pxd_outq *q)
{
	while (!px_list_empty(&q->blocks))
		block_drop(q, block_of(q->blocks.next));
	pxd_outq_init(q);
}

static struct block *block_add(struct pxd_outq *q, size_t cap, struct pxd_seg *seg)
{
	struct block *b = malloc(sizeof *b + cap);

	if (!b)
		return NULL;
	b->cap = cap;
	b->seg = seg;
	b->base = seg ? seg->data : b->mem;
	b->len = seg ? seg->len : 0;
	px_list_push(&q->blocks, &b->l);
	if (q->cur == &q->blocks) {
		q->cur = &b->l;
		q->off = 0;
	}
	q->held += block_memory(b);
	if (q->held > q->peak)
		q->peak = q->held;
	return b;
}

int pxd_outq_put(struct pxd_outq *q, uint64_t seq, const uint8_t *head, const uint8_t *body, size_t nbody)
{
	size_t n = PX_FRAME_SIZE + nbody;
	struct block *b = px_list_empty(&q->blocks) ? NULL : block_of(q->blocks.prev);

	if (!b || b->seg || b->len + n > b->cap) {
		b = block_add(q, n > BLOCK_BYTES ? n : BLOCK_BYTES, NULL);
		if (!b)
			return PX_ENOMEM;
	} else if (q->cur == &q->blocks) {
		q->cur = &b->l;
		q->off = b->len;
	}
	memcpy(b->mem + b->len, head, PX_FRAME_SIZE);
	if (nbody)
		memcpy(b->mem + b->len + PX_FRAME_SIZE, body, nbody);
	b->len += n;
	b->last = seq;
	q->unsent += n;
	return PX_OK;
}

int pxd_outq_put_seg(struct pxd_outq *q, uint64_t seq, const uint8_t *head, struct pxd_seg *seg)
{
	struct block *b;

	if (pxd_outq_put(q, seq, head, NULL, 0) < 0 || !(b = block_add(q, 0, seg))) {
		pxd_seg_put(seg);
		return PX_ENOMEM;
	}
	b->last = seq;
	q->unsent += b->len;
	return PX_OK;
}

int pxd_outq_gather(const struct pxd_outq *q, struct iovec *v, int max)
{
	size_t off = q->off;
	int n = 0;

	for (struct px_list *l = q->cur; l != &q->blocks && n < max; l = l->next, off = 0) {
		struct block *b = block_of(l);

		if (b->len > off)
			v[n++] = (struct iovec){ (void *)(uintptr_t)(b->base + off), b->len - off };
	}
	return n;
}

void pxd_outq_wrote(struct pxd_outq *q, size_t n)
{
	q->unsent -= n;
	q->off += n;
	while (q->cur != &q->blocks && q->off >= block_of(q->cur)->len) {
		q->off -= block_of(q->cur)->len;
		q->cur = q->cur->next;
	}
}

void pxd_outq_acked(struct pxd_outq *q, uint64_t seq)
{
	while (!px_list_empty(&q->blocks)) {
		struct block *b = block_of(q->blocks.next);

		if (&b->l == q->cur || b->last > seq)
			return;
		if (b->l.next == &q->blocks && !b->seg) {
			b->len = 0; /* the last one is used again */
			return;
		}
		block_drop(q, b);
	}
}

/* Where in byte block b, from *at on, the first frame >= next starts; b->len if it is not here. */
static size_t frame_find(const struct block *b, uint64_t next)
{
	size_t at = 0;

	while (at < b->len && px_get64(b->base + at + 8) < next) {
		bool body_here = b->base[at + 3] != PX_F_SEG;

		at += PX_FRAME_SIZE + (body_here ? (size_t)px_get64(b->base + at + 16) : 0);
	}
	return at;
}

uint64_t pxd_outq_sent(const struct pxd_outq *q, uint64_t last)
{
	const struct block *b = q->cur == &q->blocks ? NULL : block_of(q->cur);
	size_t at = 0;

	if (!b)
		return last;
	if (b->seg)
		return b->last - 1;
	/* The first frame here that is not written whole; the body of a segment's lies in the next block. */
	while (at < b->len) {
		const uint8_t *head = b->base + at;
		bool seg = head[3] == PX_F_SEG;

		at += PX_FRAME_SIZE + (seg ? 0 : (size_t)px_get64(head + 16));
		if (at > q->off || seg)
			return px_get64(head + 8) - 1;
	}
	return b->last;
}

int pxd_outq_rewind(struct pxd_outq *q, uint64_t next, uint64_t last)
{
	struct px_list *l = q->blocks.next;
	size_t off = 0;

	/* The first block from which something is wanted. A segment belongs to the header before it. */
	while (l != &q->blocks && (block_of(l)->last < next || block_of(l)->len == 0))
		l = l->next;
	if (l != &q->blocks) {
		struct block *b = block_of(l);

		off = b->seg ? b->len : frame_find(b, next);
		if (b->seg || off >= b->len || px_get64(b->base + off + 8) != next)
			return PX_EPROTO;
	} else if (next != last + 1) {
		return PX_EPROTO;
	}
	q->cur = l;
	q->off = off;
	q->unsent = 0;
	for (; l != &q->blocks; l = l->next, off = 0)
		q->unsent += block_of(l)->len - off;
	return PX_OK;
}
