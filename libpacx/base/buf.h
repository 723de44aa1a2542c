/* buf.h: growable byte buffer with a read end and a write end.
 *
 * Owns its memory, from the first append to px_buf_fini. Bytes are appended at the end and
 * consumed at the front; pointers into it hold only until the next append or reserve.
 * It never shrinks by itself. Not thread safe.
 */
#ifndef PX_BUF_H
#define PX_BUF_H

#include <stddef.h>
#include <stdint.h>

struct px_buf {
	uint8_t *mem; /* NULL = nothing allocated */
	size_t cap;
	size_t start, end; /* contents are mem[start..end) */
};

void px_buf_init(struct px_buf *b); /* same as all zero */
void px_buf_fini(struct px_buf *b); /* frees; b is then as after init */

static inline uint8_t *px_buf_data(const struct px_buf *b)
{
	return b->mem ? b->mem + b->start : NULL;
}

static inline size_t px_buf_len(const struct px_buf *b)
{
	return b->end - b->start;
}

/* px_buf_reserve: make room for `more` bytes behind the contents; *room (room may be NULL) points there.
 * 0 or PX_ENOMEM. */
int px_buf_reserve(struct px_buf *b, size_t more, uint8_t **room);
/* px_buf_commit: the first n bytes of the reserved room have been written and are contents now. */
void px_buf_commit(struct px_buf *b, size_t n);
/* px_buf_append: copy n bytes to the end. 0 or PX_ENOMEM (then nothing changed). */
int px_buf_append(struct px_buf *b, const void *data, size_t n);
/* px_buf_consume: drop n <= px_buf_len bytes from the front. */
void px_buf_consume(struct px_buf *b, size_t n);

#endif
