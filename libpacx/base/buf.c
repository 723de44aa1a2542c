/* buf.c: see buf.h. Consumed room at the front is used again before the memory grows. */
#include "buf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"

void px_buf_init(struct px_buf *b)
{
	memset(b, 0, sizeof *b);
}

void px_buf_fini(struct px_buf *b)
{
	free(b->mem);
	px_buf_init(b);
}

int px_buf_reserve(struct px_buf *b, size_t more, uint8_t **room)
{
	size_t len = px_buf_len(b), cap;
	uint8_t *mem;

	if (more <= b->cap - b->end && b->mem)
		goto fits;
	if (more > SIZE_MAX / 4 || len > SIZE_MAX / 4)
		return PX_ENOMEM;
	/* Moving pays only when at least as much is free in front as has to be moved: appending
	 * stays linear in the bytes appended. */
	if (b->mem && b->start >= len && len + more <= b->cap) {
		memcpy(b->mem, b->mem + b->start, len);
	} else {
		for (cap = b->cap ? b->cap : 64; cap < len + more; cap *= 2)
			;
		mem = malloc(cap);
		if (!mem)
			return PX_ENOMEM;
		if (b->mem)
			memcpy(mem, b->mem + b->start, len);
		free(b->mem);
		b->mem = mem;
		b->cap = cap;
	}
	b->start = 0;
	b->end = len;
fits:
	if (room)
		*room = b->mem + b->end;
	return 0;
}

void px_buf_commit(struct px_buf *b, size_t n)
{
	assert(n <= b->cap - b->end);
	b->end += n;
}

int px_buf_append(struct px_buf *b, const void *data, size_t n)
{
	uint8_t *room;
	int rc;

	if (n == 0)
		return 0;
	rc = px_buf_reserve(b, n, &room);
	if (rc < 0)
		return rc;
	memcpy(room, data, n);
	px_buf_commit(b, n);
	return 0;
}

void px_buf_consume(struct px_buf *b, size_t n)
{
	assert(n <= px_buf_len(b));
	b->start += n;
	if (b->start == b->end)
		b->start = b->end = 0;
}
