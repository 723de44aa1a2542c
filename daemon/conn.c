/* conn.c: see conn.h.
 *
 * Design. The queue is a list of blocks: byte blocks, into which small frames are copied one behind the
 * other, and segment blocks, which are written from where they lie. A flush gathers up to IOV_BLOCKS of
 * them for one writev by uv_try_write; when the socket is full the rest of what was gathered is given to
 * uv_write, and its completion continues. Blocks that libuv writes are never appended to.
 */
#include "conn.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "pacxd.h"

#define BLOCK_BYTES 65536 /* of a byte block: some 30 full envelopes, hundreds of bare headers */
#define IOV_BLOCKS  64

struct block {
	struct px_list l;
	const uint8_t *base;
	size_t len, done;
	struct pxd_seg *seg; /* NULL: bytes are in mem */
	bool busy;           /* libuv is writing it: do not append */
	uint8_t mem[];
};

static struct block *block_of(struct px_list *l)
{
	return px_list_entry(l, struct block, l);
}

static void block_free(struct block *b)
{
	if (b->seg)
		pxd_seg_put(b->seg);
	free(b);
}

struct pxd_conn *pxd_conn_new(uv_loop_t *loop, const struct pxd_conn_ops *ops, void *owner)
{
	struct pxd_conn *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	if (uv_tcp_init(loop, &c->tcp) < 0) {
		free(c);
		return NULL;
	}
	c->tcp.data = c;
	c->write.data = c;
	c->shutdown.data = c;
	c->ops = ops;
	c->owner = owner;
	px_list_init(&c->queue);
	snprintf(c->peer, sizeof c->peer, "unknown address");
	return c;
}

static void on_room(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
	struct pxd_conn *c = h->data;

	(void)suggested;
	c->ops->room(c, buf);
}

static void lost(struct pxd_conn *c, int err)
{
	if (c->dead || c->closing)
		return;
	c->dead = true;
	uv_read_stop((uv_stream_t *)&c->tcp);
	c->ops->lost(c, err);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct pxd_conn *c = s->data;

	if (n == 0)
		return;
	pxd_of(s->loop)->events++;
	if (n < 0)
		lost(c, (int)n);
	else
		c->ops->got(c, (uint8_t *)buf->base, (size_t)n);
}

int pxd_conn_begin(struct pxd_conn *c)
{
	struct sockaddr_storage a;
	int len = sizeof a;
	char host[64], port[8];

	uv_tcp_nodelay(&c->tcp, 1); /* frames leave when they are flushed */
	if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&a, &len) == 0 &&
		getnameinfo((struct sockaddr *)&a, (socklen_t)len, host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(c->peer, sizeof c->peer, a.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	return uv_read_start((uv_stream_t *)&c->tcp, on_room, on_read);
}

static void on_close(uv_handle_t *h)
{
	struct pxd_conn *c = h->data;
	struct px_list *l;

	while ((l = px_list_pop(&c->queue)))
		block_free(block_of(l));
	free(c);
}

void pxd_conn_close(struct pxd_conn *c)
{
	if (c->closing)
		return;
	c->closing = true;
	uv_close((uv_handle_t *)&c->tcp, on_close);
}

static struct block *block_new(size_t bytes)
{
	struct block *b = malloc(sizeof *b + bytes);

	if (!b)
		return NULL;
	px_list_init(&b->l);
	b->base = b->mem;
	b->len = b->done = 0;
	b->seg = NULL;
	b->busy = false;
	return b;
}

static void queued_add(struct pxd_conn *c, size_t n)
{
	c->queued += n;
	if (c->queued > c->peak)
		c->peak = c->queued;
}

int pxd_conn_put(struct pxd_conn *c, const uint8_t *head, size_t nhead, const uint8_t *body, size_t nbody)
{
	size_t n = nhead + nbody;
	struct block *b = px_list_empty(&c->queue) ? NULL : block_of(c->queue.prev);

	if (!b || b->seg || b->busy || b->len + n > BLOCK_BYTES) {
		b = block_new(n > BLOCK_BYTES ? n : BLOCK_BYTES);
		if (!b)
			return PX_ENOMEM;
		px_list_push(&c->queue, &b->l);
	}
	memcpy(b->mem + b->len, head, nhead);
	if (nbody)
		memcpy(b->mem + b->len + nhead, body, nbody);
	b->len += n;
	queued_add(c, n);
	return PX_OK;
}

int pxd_conn_put_seg(struct pxd_conn *c, struct pxd_seg *seg)
{
	struct block *b = block_new(0);

	if (!b) {
		pxd_seg_put(seg);
		return PX_ENOMEM;
	}
	b->seg = seg;
	b->base = seg->data;
	b->len = seg->len;
	px_list_push(&c->queue, &b->l);
	queued_add(c, b->len);
	return PX_OK;
}

/* n bytes from the front of the queue have been written. */
static void consume(struct pxd_conn *c, size_t n)
{
	c->queued -= n;
	while (n > 0) {
		struct block *b = block_of(c->queue.next);
		size_t part = b->len - b->done < n ? b->len - b->done : n;

		b->done += part;
		n -= part;
		if (b->done < b->len)
			return;
		px_list_del(&b->l);
		block_free(b);
	}
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
	struct pxd_conn *c = req->data;

	(void)status; /* the peer's end of stream, or its reset, says the rest */
	c->half = true;
	pxd_of(req->handle->loop)->events++;
}

static void maybe_shutdown(struct pxd_conn *c)
{
	if (!c->ended || c->shutting || c->closing || !px_list_empty(&c->queue))
		return;
	c->shutting = true;
	if (uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, on_shutdown) < 0)
		c->half = true; /* not connected any more: there is nothing to shut */
}

static void on_write(uv_write_t *req, int status)
{
	struct pxd_conn *c = req->data;
	size_t n = 0;

	if (status == UV_ECANCELED || c->closing)
		return; /* on_close frees the queue */
	pxd_of(req->handle->loop)->events++;
	for (struct px_list *l = c->queue.next; c->writing > 0; l = l->next, c->writing--)
		n += block_of(l)->len - block_of(l)->done;
	if (status < 0) {
		lost(c, status);
		return;
	}
	consume(c, n);
	status = pxd_conn_flush(c);
	if (status < 0)
		lost(c, status);
}

static unsigned gather(struct pxd_conn *c, uv_buf_t *bufs, size_t *bytes)
{
	unsigned n = 0;

	*bytes = 0;
	for (struct px_list *l = c->queue.next; l != &c->queue && n < IOV_BLOCKS; l = l->next) {
		struct block *b = block_of(l);

		bufs[n++] = uv_buf_init((char *)(uintptr_t)(b->base + b->done), (unsigned)(b->len - b->done));
		*bytes += b->len - b->done;
	}
	return n;
}

/* The socket is full: libuv writes the front of the queue when it can. */
static int write_later(struct pxd_conn *c)
{
	uv_buf_t bufs[IOV_BLOCKS];
	size_t bytes;
	unsigned n = gather(c, bufs, &bytes);
	struct px_list *l = c->queue.next;
	int rc = uv_write(&c->write, (uv_stream_t *)&c->tcp, bufs, n, on_write);

	if (rc < 0)
		return rc;
	c->writing = n;
	for (; n > 0; l = l->next, n--)
		block_of(l)->busy = true;
	return 0;
}

int pxd_conn_flush(struct pxd_conn *c)
{
	uv_buf_t bufs[IOV_BLOCKS];
	size_t bytes;
	unsigned n;
	int rc = 0;

	if (c->dead || c->closing)
		return 0;
	while (rc == 0 && c->writing == 0 && !px_list_empty(&c->queue)) {
		n = gather(c, bufs, &bytes);
		rc = uv_try_write((uv_stream_t *)&c->tcp, bufs, n);
		c->writes++;
		if (rc < 0 && rc != UV_EAGAIN)
			return rc;
		if (rc > 0)
			consume(c, (size_t)rc);
		rc = rc > 0 && (size_t)rc == bytes ? 0 : write_later(c);
	}
	if (rc < 0)
		return rc;
	maybe_shutdown(c);
	return 0;
}

void pxd_conn_end(struct pxd_conn *c)
{
	c->ended = true;
	maybe_shutdown(c);
}
