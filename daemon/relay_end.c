/* relay_end.c: see relay_end.h.
 *
 * Design. What was read of an end is in its own buffer until its partner's socket has taken it, and nothing more is read
 * before: that is all the memory and all the back-pressure there is.
 */
#include "relay_end.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "wait.h"

#define KEEPALIVE_S 30     /* of silence until the peer is asked whether it is there */
#define BUFFER      131072 /* bytes on their way, per direction of a pair */
#define LOG_PER_S   0.5

/* Log what others do, but not at their rate. */
void pxd_relay_note(struct pxd_relay *r, enum px_level level, const char *fmt, ...)
{
	uint64_t now = px_now_ns();
	char text[500];
	va_list ap;

	r->allowance += (double)(now - r->refilled) / 1e9 * LOG_PER_S;
	if (r->allowance > PXD_RELAY_LOG_BURST)
		r->allowance = PXD_RELAY_LOG_BURST;
	r->refilled = now;
	if (r->allowance < 1) {
		r->unsaid++;
		return;
	}
	r->allowance -= 1;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (r->unsaid)
		px_log(level, "%s (and %llu more such events, not shown)", text,
			(unsigned long long)r->unsaid);
	else
		px_log(level, "%s", text);
	r->unsaid = 0;
}

static void on_closed(uv_handle_t *h)
{
	struct pxd_end *e = h->data;

	free(e->buf);
	free(e);
}

struct pxd_end *pxd_end_new(struct pxd_relay *r, enum pxd_end_state state, size_t cap)
{
	struct pxd_end *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->buf = malloc(cap);
	if (!e->buf || uv_tcp_init(&r->loop, &e->tcp) < 0) {
		free(e->buf);
		free(e);
		return NULL;
	}
	e->cap = cap;
	e->tcp.data = e;
	e->relay = r;
	e->state = state;
	e->deadline = uv_now(&r->loop) + PXD_RELAY_GREETING_MS;
	px_list_push(&r->ends, &e->l);
	r->nends++;
	r->ngreeting += state == GREETING;
	return e;
}

void pxd_end_state(struct pxd_end *e, enum pxd_end_state state)
{
	e->relay->ngreeting += (state == GREETING) - (e->state == GREETING);
	e->state = state;
}

void pxd_end_drop(struct pxd_end *e, bool reset)
{
	px_list_del(&e->l);
	e->relay->nends--;
	e->relay->ngreeting -= e->state == GREETING;
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
		/* A connection without a byte is a port scan, or a test whether we live. */
		if (e->state == GREETING && e->len > 0)
			pxd_relay_note(e->relay, PX_LOG_WARN,
				"lost a connection from %s before its preamble was complete", e->peer);
		else if (e->state != GREETING)
			px_log(PX_LOG_DEBUG, "lost %s: %s", e->peer, uv_strerror((int)n));
		pxd_end_close(e, e->state == PAIRED);
		return;
	}
	e->len += (size_t)n;
	if (e->state == GREETING) {
		e->relay->greeted(e);
	} else if (e->state == PAIRED) {
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
	pxd_end_state(a, PAIRED);
	pxd_end_state(b, PAIRED);
	if (!pxd_end_grow(a, BUFFER) || !pxd_end_grow(b, BUFFER)) {
		pxd_relay_note(a->relay, PX_LOG_ERROR, "out of memory for another pair of connections");
		pxd_end_close(a, true);
		return;
	}
	push(a);
	if (a->other)
		push(b);
}
