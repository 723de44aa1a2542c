/* conn.c: see conn.h.
 *
 * Design. uv_poll tells when the socket is ready; reads and writes are made here, so the same code serves plain TCP, TLS
 * (whose library reads and writes the socket itself) and a socket pair to a command. One turn reads at most TURN_BYTES, so
 * that a fast link does not keep the others waiting. The emulated wide area is a queue between writev and the socket.
 */
#include "conn.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "err.h"
#include "list.h"
#include "node.h"
#include "tls.h"
#include "via_command.h"
#include "wait.h"

#define TURN_BYTES    (4u << 20)
#define IOV_MAX_DELAY 64

/* Bytes on their emulated way. */
struct chunk {
	struct px_list l;
	uint64_t due;
	size_t n, done;
	uint8_t bytes[];
};

struct pxd_delay {
	uv_timer_t timer;
	struct px_list chunks;
	uint64_t latency_ns, line_free; /* when the emulated line has sent all it has been given */
	double rate;
	size_t bytes, most;
};

static void on_poll(uv_poll_t *p, int status, int events);
static int delay_send(struct pxd_conn *c, uint64_t now);
static void delay_flush(struct pxd_conn *c, bool tell);

static void events_set(struct pxd_conn *c)
{
	int ev = 0;

	if (c->dead || c->closing)
		return;
	if (!c->connecting)
		ev |= UV_READABLE;
	if (c->connecting || c->want_write || c->tls_wants_write || px_buf_len(&c->said) > 0)
		ev |= UV_WRITABLE;
	if (ev == c->events)
		return; /* libuv would take the descriptor out of epoll and put it in again: two system calls */
	c->events = ev;
	uv_poll_start(&c->poll, ev, on_poll);
}

static void lost(struct pxd_conn *c, const char *why)
{
	if (c->dead || c->closing)
		return;
	c->dead = true;
	if (why != c->why)
		snprintf(c->why, sizeof c->why, "%s", why);
	uv_poll_stop(&c->poll);
	c->ops->lost(c, c->why);
}

void pxd_conn_name(struct pxd_conn *c, const struct sockaddr *a, unsigned len)
{
	char host[64], port[8];

	if (a->sa_family != AF_UNIX && getnameinfo(a, (socklen_t)len, host, sizeof host, port, sizeof port,
					       NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(c->peer, sizeof c->peer, a->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static void peer_name(struct pxd_conn *c)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof a;
	int one = 1;

	setsockopt(
		c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* frames leave when they are flushed */
	if (getpeername(c->fd, (struct sockaddr *)&a, &len) == 0)
		pxd_conn_name(c, (struct sockaddr *)&a, len);
}

struct pxd_conn *pxd_conn_new(
	uv_loop_t *loop, int fd, bool connecting, const struct pxd_conn_ops *ops, void *owner)
{
	struct pxd_conn *c = calloc(1, sizeof *c);

	if (!c || uv_poll_init(loop, &c->poll, fd) < 0) {
		free(c);
		close(fd);
		return NULL;
	}
	c->poll.data = c;
	c->fd = fd;
	c->ops = ops;
	c->owner = owner;
	c->connecting = connecting;
	c->heard = px_now_ns();
	snprintf(c->peer, sizeof c->peer, "unknown address");
	if (!connecting)
		peer_name(c);
	events_set(c);
	return c;
}

static void on_delay_closed(uv_handle_t *h)
{
	struct pxd_delay *d = h->data;
	struct px_list *l;

	while ((l = px_list_pop(&d->chunks)))
		free(px_list_entry(l, struct chunk, l));
	free(d);
}

static void on_closed(uv_handle_t *h)
{
	struct pxd_conn *c = h->data;

	pxd_tls_free(c->tls);
	close(c->fd);
	if (c->pid)
		pxd_via_kill(c->pid);
	px_buf_fini(&c->said);
	free(c);
}

void pxd_conn_close(struct pxd_conn *c)
{
	if (c->closing)
		return;
	c->closing = true;
	if (c->delay) {
		if (!c->dead)
			delay_send(c, UINT64_MAX); /* what has been said last counts */
		c->delay->timer.data = c->delay;
		uv_close((uv_handle_t *)&c->delay->timer, on_delay_closed);
		c->delay = NULL;
	}
	if (c->tls && !c->dead)
		pxd_tls_shutdown(c->tls);
	uv_close((uv_handle_t *)&c->poll, on_closed);
}

/* Write to the socket or the TLS library. As pxd_conn_writev. */
static ssize_t raw_writev(struct pxd_conn *c, const struct iovec *v, int n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)v, .msg_iovlen = (size_t)n };
	ssize_t k;

	if (c->tls) {
		k = pxd_tls_writev(c->tls, v, n);
		c->writes++;
		if (k == PXD_TLS_WANT_WRITE || k == PXD_TLS_WANT_READ) {
			c->tls_wants_write = k == PXD_TLS_WANT_WRITE;
			return 0;
		}
		c->tls_wants_write = false;
		if (k < 0) {
			snprintf(c->why, sizeof c->why, "%s",
				k == PXD_TLS_EOF ? "the peer closed the connection" : pxd_tls_why(c->tls));
			return -1;
		}
	} else {
		do
			k = sendmsg(c->fd, &m, MSG_NOSIGNAL);
		while (k < 0 && errno == EINTR);
		c->writes++;
		if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (k < 0) {
			snprintf(c->why, sizeof c->why, "%s", strerror(errno));
			return -1;
		}
	}
	c->out += (uint64_t)k;
	return k;
}

static void on_delay(uv_timer_t *t)
{
	pxd_node_of(t->loop)->events++;
	delay_flush(t->data, true);
}

int pxd_conn_emulate(struct pxd_conn *c, long latency_us, double rate)
{
	struct pxd_delay *d = calloc(1, sizeof *d);

	if (!d || uv_timer_init(c->poll.loop, &d->timer) < 0) {
		free(d);
		return PX_ENOMEM;
	}
	px_list_init(&d->chunks);
	d->latency_ns = (uint64_t)latency_us * 1000;
	d->rate = rate;
	d->most = (256u << 10) + (size_t)((rate > 0 ? rate : 1e9) * (double)latency_us / 1e6);
	d->timer.data = c;
	c->delay = d;
	return PX_OK;
}

/* Wait for the time of the first chunk. */
static void delay_arm(struct pxd_delay *d)
{
	uint64_t now = px_now_ns(), due;

	if (px_list_empty(&d->chunks) || uv_is_active((uv_handle_t *)&d->timer))
		return;
	due = px_list_entry(d->chunks.next, struct chunk, l)->due;
	uv_timer_start(&d->timer, on_delay,
		due <= now             ? 0
		: due - now < 2000000u ? 1
				       : (due - now) / 1000000u,
		0);
}

/* Give the chunks whose time has come by `now` to the socket. 1, 0 when it is full, -1 when it is broken. */
static int delay_send(struct pxd_conn *c, uint64_t now)
{
	struct pxd_delay *d = c->delay;

	while (!px_list_empty(&d->chunks)) {
		struct chunk *k = px_list_entry(d->chunks.next, struct chunk, l);
		struct iovec v = { k->bytes + k->done, k->n - k->done };
		ssize_t n;

		if (k->due > now)
			break;
		n = raw_writev(c, &v, 1);
		if (n <= 0)
			return (int)n;
		k->done += (size_t)n;
		d->bytes -= (size_t)n;
		if (k->done < k->n)
			continue;
		px_list_del(&k->l);
		free(k);
	}
	return 1;
}

/* From the loop only: tell the owner when there is room again. */
static void delay_flush(struct pxd_conn *c, bool tell)
{
	struct pxd_delay *d = c->delay;
	bool full = d->bytes >= d->most;
	int rc = delay_send(c, px_now_ns());

	if (rc < 0) {
		lost(c, c->why);
		return;
	}
	if (rc == 0)
		c->want_write = true;
	else
		delay_arm(d);
	events_set(c);
	if (tell && full && d->bytes < d->most && c->ops->writable)
		c->ops->writable(c);
}

static ssize_t delay_writev(struct pxd_conn *c, const struct iovec *v, int n)
{
	struct pxd_delay *d = c->delay;
	uint64_t now = px_now_ns();
	size_t sum = 0;

	for (int i = 0; i < n && d->bytes < d->most; i++) {
		size_t len =
			v[i].iov_len < 16384 ? v[i].iov_len : 16384; /* in small pieces, for an even rate */
		struct chunk *k = malloc(sizeof *k + len);

		if (!k)
			break;
		memcpy(k->bytes, v[i].iov_base, len);
		k->n = len;
		k->done = 0;
		d->line_free = d->line_free > now ? d->line_free : now;
		if (d->rate > 0)
			d->line_free += (uint64_t)((double)len / d->rate * 1e9);
		k->due = d->line_free + d->latency_ns;
		px_list_push(&d->chunks, &k->l);
		d->bytes += len;
		sum += len;
		if (len < v[i].iov_len)
			break;
	}
	delay_arm(
		d); /* it is sent at the next turn, so that ops->lost never comes from within the owner's own call */
	return (ssize_t)sum;
}

static ssize_t any_writev(struct pxd_conn *c, const struct iovec *v, int n)
{
	return c->delay && !c->shaking ? delay_writev(c, v, n) : raw_writev(c, v, n);
}

static void maybe_shut(struct pxd_conn *c)
{
	if (!c->shut || c->shut_done || px_buf_len(&c->said) > 0)
		return;
	c->shut_done = true;
	if (c->tls)
		pxd_tls_shutdown(c->tls);
	shutdown(c->fd, SHUT_WR);
}

/* false: lost, ops->lost has been called. */
static bool said_flush(struct pxd_conn *c)
{
	while (px_buf_len(&c->said) > 0) {
		struct iovec v = { px_buf_data(&c->said), px_buf_len(&c->said) };
		ssize_t n = any_writev(c, &v, 1);

		if (n < 0) {
			lost(c, c->why);
			return false;
		}
		if (n == 0)
			return true;
		px_buf_consume(&c->said, (size_t)n);
	}
	maybe_shut(c);
	return true;
}

ssize_t pxd_conn_writev(struct pxd_conn *c, const struct iovec *v, int n)
{
	ssize_t k;

	if (c->dead || c->closing || c->connecting || c->shaking || px_buf_len(&c->said) > 0)
		return 0;
	k = any_writev(c, v, n);
	if (k == 0 && !c->want_write && (!c->delay || c->delay->bytes < c->delay->most)) {
		c->want_write = true;
		events_set(c);
	}
	return k;
}

int pxd_conn_say(struct pxd_conn *c, const uint8_t *head, size_t nhead, const uint8_t *body, size_t nbody)
{
	if (c->dead || c->closing)
		return PX_ECLOSED;
	/* Both or neither: half a frame would break the stream. */
	if (px_buf_reserve(&c->said, nhead + nbody, NULL) < 0)
		return PX_ENOMEM;
	px_buf_append(&c->said, head, nhead);
	if (nbody)
		px_buf_append(&c->said, body, nbody);
	if (c->connecting || c->shaking)
		return PX_OK;
	/* An error shows at the next turn, so that ops->lost never comes from within the owner's own call. */
	while (px_buf_len(&c->said) > 0) {
		struct iovec v = { px_buf_data(&c->said), px_buf_len(&c->said) };
		ssize_t n = any_writev(c, &v, 1);

		if (n <= 0)
			break;
		px_buf_consume(&c->said, (size_t)n);
	}
	maybe_shut(c);
	events_set(c);
	return PX_OK;
}

void pxd_conn_shut(struct pxd_conn *c)
{
	c->shut = true;
	maybe_shut(c);
}

bool pxd_conn_line_busy(const struct pxd_conn *c)
{
	return c->delay && c->delay->line_free > px_now_ns();
}

double pxd_conn_line_rate(const struct pxd_conn *c)
{
	return c->delay ? c->delay->rate : 0;
}

size_t pxd_conn_busy(const struct pxd_conn *c)
{
	return px_buf_len(&c->said) + (c->delay ? c->delay->bytes : 0);
}

/* One read: bytes > 0, 0 = nothing now, -1 = lost (reported). */
static ssize_t read_some(struct pxd_conn *c, uint8_t *base, size_t room)
{
	ssize_t n;

	if (c->tls) {
		n = pxd_tls_read(c->tls, base, room);
		if (n == PXD_TLS_WANT_READ || n == PXD_TLS_WANT_WRITE) {
			c->tls_wants_write |= n == PXD_TLS_WANT_WRITE;
			return 0;
		}
		if (n < 0) {
			lost(c, n == PXD_TLS_EOF ? "the peer closed the connection" : pxd_tls_why(c->tls));
			return -1;
		}
		return n;
	}
	do
		n = recv(c->fd, base, room, 0);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return n;
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	lost(c, n == 0 ? "the peer closed the connection" : strerror(errno));
	return -1;
}

static void read_turn(struct pxd_conn *c)
{
	size_t sum = 0;

	while (!c->dead && !c->closing && !c->shaking &&
		(sum < TURN_BYTES || (c->tls && pxd_tls_pending(c->tls)))) {
		uint8_t *base = NULL;
		size_t room = 0;
		ssize_t n;

		c->ops->room(c, &base, &room);
		if (c->tls) /* what it has taken from the socket has to be read: the socket will not tell of it again */
			pxd_tls_dry(c->tls, sum >= TURN_BYTES);
		n = read_some(c, base, room);
		if (n <= 0)
			return;
		c->heard = px_now_ns();
		c->in += (uint64_t)n;
		sum += (size_t)n;
		c->ops->got(c, base, (size_t)n);
		if ((size_t)n < room && !(c->tls && pxd_tls_pending(c->tls)))
			return; /* the socket is empty; asking again would cost a system call */
	}
}

static void shake(struct pxd_conn *c)
{
	int rc = c->tls ? pxd_tls_shake(c->tls) : PXD_TLS_ERROR;

	c->tls_wants_write = rc == PXD_TLS_WANT_WRITE;
	if (rc == 0) {
		c->shaking = false;
		if (c->ops->ready)
			c->ops->ready(c);
	} else if (rc != PXD_TLS_WANT_READ && rc != PXD_TLS_WANT_WRITE) {
		lost(c, rc == PXD_TLS_EOF ? "the peer closed the connection in the TLS handshake"
			: c->tls          ? pxd_tls_why(c->tls)
					  : "out of memory");
	}
}

void pxd_conn_secure(struct pxd_conn *c, struct pxd_tls *tls)
{
	c->tls = tls;
	c->shaking = true;
	/* The first step at the next turn, like every other: the owner is not ready for answers within this call. */
	c->tls_wants_write = true;
	events_set(c);
}

static void connected(struct pxd_conn *c)
{
	int err = 0;
	socklen_t len = sizeof err;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (err) {
		lost(c, strerror(err));
		return;
	}
	c->connecting = false;
	peer_name(c);
	if (c->ops->ready)
		c->ops->ready(c);
}

static void on_poll(uv_poll_t *p, int status, int events)
{
	struct pxd_conn *c = p->data;

	pxd_node_of(p->loop)->events++;
	if (c->connecting) {
		c->events = status < 0 ? 0 : c->events;
		connected(c);
		events_set(c);
		return;
	}
	if (status < 0) {
		events = UV_READABLE; /* the read says what is wrong */
		c->events = 0;        /* libuv has stopped watching */
	}
	if (c->shaking) {
		shake(c);
		if (!c->dead && !c->closing && !c->shaking)
			events |= UV_READABLE; /* the library may have read what comes behind its handshake */
	}
	if (!c->dead && !c->closing && !c->shaking && events & UV_READABLE)
		read_turn(c);
	if (!c->dead && !c->closing && !c->shaking && events & UV_WRITABLE) {
		c->want_write = c->tls_wants_write = false;
		if (c->delay)
			delay_flush(c, false); /* the owner is told below */
		if (!c->dead && !c->closing && said_flush(c) && px_buf_len(&c->said) == 0 && c->ops->writable)
			c->ops->writable(c);
	}
	events_set(c);
}
