/* relay_end.c: see relay_end.h.
 *
 * Design. What was read of an end is in its own buffer until its partner's socket has taken it, and nothing more is read
 * before: that is all the memory and all the back-pressure there is.
 */
#include "relay_end.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEEPALIVE_S 30     /* of silence until the peer is asked whether it is there */
#define BUFFER      131072 /* bytes on their way, per direction of a pair */

static void on_closed(uv_handle_t *h)
{
	struct pxd_end *e = h->data;

	free(e->buf);
	free(e);
}

struct pxd_end *pxd_end_new(struct pxd_relay *r, enum pxd_end_state state, size_t cap, int fd)
{
	struct pxd_end *e = calloc(1, sizeof *e);

	if (e)
		e->buf = malloc(cap);
	if (!e || !e->buf || uv_tcp_init(&r->loop, &e->tcp) < 0) {
		if (e)
			free(e->buf);
		free(e);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	e->cap = cap;
	e->tcp.data = e;
	e->relay = r;
	e->state = state;
	e->since = e->heard = uv_now(&r->loop);
	e->deadline = e->since + PXD_RELAY_REACH_MS;
	px_list_push(&r->ends, &e->l);
	r->nends++;
	if (fd >= 0 && uv_tcp_open(&e->tcp, fd) < 0) {
		close(fd);
		pxd_end_drop(e, false);
		return NULL;
	}
	return e;
}

static void place_leave(struct pxd_end *e)
{
	if (e->crowd)
		pxd_crowd_leave(e->crowd, &e->place);
	e->crowd = NULL;
}

/* Places for n more. */
static void make_room(struct pxd_crowd *crowd, int n)
{
	while (crowd->n > 0 && crowd->n + n > crowd->most) {
		struct pxd_end *out = px_list_entry(pxd_crowd_victim(crowd), struct pxd_end, place);

		pxd_quiet_log(&out->relay->quiet, PX_LOG_WARN,
			"closed a connection from %s: %d %s, and this one was drawn", out->peer, crowd->n,
			out->state == PAIRED ? "have met" : "wait for the other site");
		pxd_end_close(out, out->state == PAIRED);
	}
}

bool pxd_end_place(struct pxd_end *e, struct pxd_crowd *crowd)
{
	place_leave(e);
	make_room(crowd, 1);
	if (pxd_crowd_join(crowd, &e->place, (const struct sockaddr *)&e->from) < 0)
		return false;
	e->crowd = crowd;
	return true;
}

bool pxd_end_same_host(const struct pxd_end *a, const struct pxd_end *b)
{
	const struct sockaddr_in *a4 = (const void *)&a->from, *b4 = (const void *)&b->from;
	const struct sockaddr_in6 *a6 = (const void *)&a->from, *b6 = (const void *)&b->from;

	if (a->from.ss_family != b->from.ss_family)
		return false;
	if (a->from.ss_family == AF_INET6)
		return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0;
	return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

void pxd_end_drop(struct pxd_end *e, bool reset)
{
	px_list_del(&e->l);
	e->relay->nends--;
	place_leave(e);
	e->other = NULL;
	/* A reset tells the site at once that the stream was cut, not ended. */
	if (!reset || uv_tcp_close_reset(&e->tcp, on_closed) < 0)
		uv_close((uv_handle_t *)&e->tcp, on_closed);
}

void pxd_end_close(struct pxd_end *e, bool reset)
{
	struct pxd_end *other = e->other;

	if (uv_is_closing((uv_handle_t *)&e->tcp))
		return;
	pxd_end_drop(e, reset);
	if (other)
		pxd_end_drop(other, reset);
}

/* No delay; and a peer that has vanished without a word is noticed. No TCP_USER_TIMEOUT: it would also end a connection
 * whose reader takes nothing for a while. */
void pxd_end_options(struct pxd_end *e)
{
	uv_tcp_nodelay(&e->tcp, 1);
	uv_tcp_keepalive(&e->tcp, 1, KEEPALIVE_S);
}

bool pxd_end_grow(struct pxd_end *e, size_t cap)
{
	uint8_t *more = realloc(e->buf, cap);

	if (!more)
		return false;
	e->buf = more;
	e->cap = cap;
	return true;
}

static void push(struct pxd_end *e);

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
	struct pxd_end *e = h->data;
	size_t end = e->start + e->len;

	(void)suggested;
	*buf = uv_buf_init((char *)e->buf + end, (unsigned)(e->cap - end));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	struct pxd_end *e = s->data;

	(void)buf;
	if (n == 0)
		return;
	if (n < 0) {
		e->reading = false;
		uv_read_stop(s);
		if (e->state == PAIRED && n == UV_EOF) {
			e->eof = true;
			push(e);
			return;
		}
		px_log(PX_LOG_DEBUG, "lost %s: %s", e->peer, uv_strerror((int)n));
		pxd_end_close(e, e->state == PAIRED);
		return;
	}
	e->len += (size_t)n;
	e->bytes += (uint64_t)n;
	e->heard = uv_now(&e->relay->loop);
	if (e->state == PAIRED) {
		push(e);
	} else if (e->len == e->cap) { /* early bytes; the rest can wait */
		e->reading = false;
		uv_read_stop(s);
	}
}

bool pxd_end_read(struct pxd_end *e)
{
	if (e->reading || e->eof)
		return true;
	e->reading = uv_read_start((uv_stream_t *)&e->tcp, on_alloc, on_read) == 0;
	return e->reading;
}

static void on_write(uv_write_t *w, int status)
{
	struct pxd_end *e = w->data, *from = e->other;

	e->writing = false;
	if (!from)
		return;
	if (status < 0) {
		pxd_end_close(e, true);
		return;
	}
	from->len = 0;
	push(from);
}

static void on_shutdown(uv_shutdown_t *q, int status)
{
	struct pxd_end *e = q->data;

	if (!e->other)
		return;
	if (status < 0) {
		pxd_end_close(e, true);
		return;
	}
	e->shut = true;
	if (e->other->shut) /* both streams have ended in order */
		pxd_end_close(e, false);
}

/* push: what e has sent goes to its partner; then e may send more. */
static void push(struct pxd_end *e)
{
	struct pxd_end *to = e->other;
	uv_buf_t b;
	int n;

	if (to->writing)
		return;
	while (e->len > 0) {
		b = uv_buf_init((char *)e->buf + e->start, (unsigned)e->len);
		n = uv_try_write((uv_stream_t *)&to->tcp, &b, 1);
		if (n == UV_EAGAIN) {
			uv_read_stop((uv_stream_t *)&e->tcp);
			e->reading = false;
			to->write.data = to;
			n = uv_write(&to->write, (uv_stream_t *)&to->tcp, &b, 1, on_write);
			if (n == 0) {
				to->writing = true;
				return;
			}
		}
		if (n < 0) {
			pxd_end_close(e, true);
			return;
		}
		e->start += (size_t)n;
		e->len -= (size_t)n;
	}
	e->start = 0;
	if (e->eof && !to->shutting) {
		to->shutdown.data = to;
		to->shutting = true;
		if (uv_shutdown(&to->shutdown, (uv_stream_t *)&to->tcp, on_shutdown) < 0)
			pxd_end_close(e, true);
	} else if (!pxd_end_read(e)) {
		pxd_end_close(e, true);
	}
}

/* Both know each other already. Pushing one may end both. */
void pxd_end_pair(struct pxd_end *a, struct pxd_end *b)
{
	a->other = b;
	b->other = a;
	a->state = b->state = PAIRED;
	make_room(&a->relay->paired, 2); /* before one of them is there and may be drawn */
	if (!pxd_end_grow(a, BUFFER) || !pxd_end_grow(b, BUFFER) || !pxd_end_place(a, &a->relay->paired) ||
		!pxd_end_place(b, &b->relay->paired)) {
		pxd_quiet_log(&a->relay->quiet, PX_LOG_ERROR, "no room for another pair of connections");
		pxd_end_close(a, true);
		return;
	}
	push(a);
	if (a->other)
		push(b);
}
