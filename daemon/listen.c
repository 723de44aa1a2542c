/* listen.c: see listen.h. */
#include "listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "err.h"
#include "wait.h"

#define BACKLOG    128
#define LINGER_MS  1000  /* a refused peer has this long to read why */
#define LINGER_MAX 65536 /* and may send this much meanwhile */
#define LOG_BURST  10.0
#define LOG_PER_S  0.5

/* A connection before its hello, or one that has been refused and shall read why. */
struct half {
	struct px_list l;
	struct pxd_listen *listen;
	struct pxd_conn *conn;
	uv_timer_t timer;
	struct pxd_hand hand;
	bool refused;
	size_t ignored;
};

static void stranger_log(struct pxd_listen *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Log what strangers do, but not at their rate. */
static void stranger_log(struct pxd_listen *l, const char *fmt, ...)
{
	uint64_t now = px_now_ns();
	char text[700];
	va_list ap;

	l->allowance += (double)(now - l->refilled) / 1e9 * LOG_PER_S;
	if (l->allowance > LOG_BURST)
		l->allowance = LOG_BURST;
	l->refilled = now;
	if (l->allowance < 1) {
		l->unsaid++;
		return;
	}
	l->allowance -= 1;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (l->unsaid)
		px_log(PX_LOG_WARN, "%s (and %llu more such events, not shown)", text,
			(unsigned long long)l->unsaid);
	else
		px_log(PX_LOG_WARN, "%s", text);
	l->unsaid = 0;
}

static void on_timer_closed(uv_handle_t *h)
{
	free(h->data);
}

/* Forget the half-open connection; its pxd_conn has been closed or given away. */
static void half_drop(struct half *h)
{
	px_list_del(&h->l);
	h->listen->nhalf--;
	uv_close((uv_handle_t *)&h->timer, on_timer_closed);
}

static void half_close(struct half *h)
{
	pxd_conn_close(h->conn);
	half_drop(h);
}

static void on_limit(uv_timer_t *t)
{
	struct half *h = t->data;

	pxd_of(t->loop)->events++;
	if (!h->refused)
		stranger_log(h->listen,
			"closed a connection from %s: it sent %zu bytes but no complete HELLO within %d s",
			h->conn->peer, h->hand.n, PXD_HAND_MS / 1000);
	half_close(h);
}

static void refuse(struct half *h, const char *reason)
{
	stranger_log(h->listen, "refused a connection from %s: %s", h->conn->peer, reason);
	h->refused = true;
	if (pxd_hand_put_refuse(h->conn, reason) < 0) {
		half_close(h);
		return;
	}
	/* Closing with unread bytes would reset the connection, and the peer would never read the reason. */
	pxd_conn_end(h->conn);
	uv_timer_start(&h->timer, on_limit, LINGER_MS, 0);
}

static void half_room(struct pxd_conn *c, uv_buf_t *buf)
{
	struct half *h = c->owner;
	static uint8_t waste[4096];

	if (h->refused)
		*buf = uv_buf_init((char *)waste, sizeof waste);
	else
		*buf = uv_buf_init(
			(char *)h->hand.buf + h->hand.n, (unsigned)(sizeof h->hand.buf - h->hand.n));
}

static void half_got(struct pxd_conn *c, uint8_t *base, size_t n)
{
	struct half *h = c->owner;
	struct pxd_listen *l = h->listen;
	struct px_hello hello;
	char reason[PXD_REASON];
	int type = 0, rc;

	(void)base;
	if (h->refused) {
		h->ignored += n;
		if (h->ignored > LINGER_MAX)
			half_close(h);
		return;
	}
	h->hand.n += n;
	rc = pxd_hand_get(&h->hand, &type, &hello, reason);
	if (rc == PX_ESHORT)
		return;
	if (rc == 0 && type == PX_F_REFUSE) {
		stranger_log(l, "%s refused us: %s", c->peer, reason);
		half_close(h);
		return;
	}
	if (rc == 0)
		rc = px_hello_check(&l->d->hello, &hello, reason, sizeof reason);
	if (rc == 0)
		rc = l->judge(l->owner, &hello, reason, sizeof reason);
	if (rc < 0) {
		refuse(h, reason);
		return;
	}
	if (pxd_hand_put_hello(c, &l->d->hello) < 0) {
		half_close(h); /* it will dial again */
		return;
	}
	half_drop(h);
	l->accepted(l->owner, c, &hello);
}

static void half_lost(struct pxd_conn *c, int err)
{
	struct half *h = c->owner;

	/* A connection without a byte is a port scan, or a test whether we live. */
	if (!h->refused && h->hand.n > 0)
		stranger_log(h->listen, "lost a connection from %s before its HELLO was complete: %s",
			c->peer, err == UV_EOF ? "it closed" : uv_strerror(err));
	half_close(h);
}

static const struct pxd_conn_ops half_ops = { half_room, half_got, half_lost };

static void on_connection(uv_stream_t *server, int status)
{
	struct pxd_listen *l = server->data;
	struct half *h = NULL;
	struct pxd_conn *c;

	l->d->events++;
	if (status < 0) {
		stranger_log(l, "cannot accept a connection: %s", uv_strerror(status));
		return;
	}
	c = pxd_conn_new(server->loop, &half_ops, NULL);
	if (!c)
		return;
	if (uv_accept(server, (uv_stream_t *)&c->tcp) < 0)
		goto close;
	if (l->nhalf >= PXD_HALF_OPEN) {
		stranger_log(
			l, "closed a connection at once: %d others are waiting for their HELLO", l->nhalf);
		goto close;
	}
	h = calloc(1, sizeof *h);
	if (!h || uv_timer_init(server->loop, &h->timer) < 0)
		goto close;
	h->listen = l;
	h->conn = c;
	h->timer.data = h;
	c->owner = h;
	px_list_push(&l->half, &h->l);
	l->nhalf++;
	uv_timer_start(&h->timer, on_limit, PXD_HAND_MS, 0);
	if (pxd_conn_begin(c) < 0)
		half_close(h);
	return;
close:
	free(h);
	pxd_conn_close(c);
}

/* A bound socket for address a, or -errno. pacxrun may hold the port for us, bound but not listening: then
 * SO_REUSEPORT is needed. It comes second, because with it a second daemon on the same port would go
 * unnoticed. */
static int bound_socket(const struct addrinfo *a)
{
	int one = 1, fd = -1, rc;

	for (int reuse = 0; reuse <= 1; reuse++) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			return -errno;
		if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
			(a->ai_family != AF_INET6 ||
				setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0) &&
			(!reuse || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) == 0) &&
			bind(fd, a->ai_addr, a->ai_addrlen) == 0)
			return fd;
		rc = -errno;
		close(fd);
		if (rc != -EADDRINUSE)
			break;
	}
	return rc;
}

static int listen_at(struct pxd_listen *l, const struct addrinfo *a)
{
	uv_tcp_t *t = &l->sock[l->nsocks];
	int fd = bound_socket(a), rc;

	if (fd < 0)
		return fd;
	rc = uv_tcp_init(&l->d->loop, t);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	l->nsocks++; /* from here on it has to be closed */
	t->data = l;
	rc = uv_tcp_open(t, fd);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return uv_listen((uv_stream_t *)t, BACKLOG, on_connection);
}

int pxd_listen_open(struct pxd_listen *l, struct pxd *d)
{
	const struct pxd_site *s = &d->hosts->sites[d->self];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV },
			*list = NULL;
	char port[12];
	int rc, good = 0, bad = 0;

	l->d = d;
	l->allowance = LOG_BURST;
	l->refilled = px_now_ns();
	px_list_init(&l->half);
	snprintf(port, sizeof port, "%d", s->bind_port);
	rc = getaddrinfo(s->bind_host, port, &hints, &list);
	if (rc != 0) {
		pxd_fail(d, PXD_EXIT_CONFIG,
			"cannot find the address %s, where this site shall listen: %s; "
			"name an address of this machine with bind: in the hostfile",
			s->bind_host, gai_strerror(rc));
		return PX_ECONF;
	}
	for (struct addrinfo *a = list; a && l->nsocks < PXD_LISTEN_ADDRS; a = a->ai_next) {
		rc = listen_at(l, a);
		if (rc == 0)
			good++;
		else
			bad = rc;
	}
	freeaddrinfo(list);
	if (good)
		return PX_OK;
	pxd_fail(d, PXD_EXIT_CONFIG, "cannot listen on %s port %d: %s; %s", s->bind_host, s->bind_port,
		uv_strerror(bad),
		bad == UV_EADDRINUSE ? "another process has this port: choose another one in the hostfile"
				     : "name an address of this machine with bind: in the hostfile");
	return PX_ECONF;
}

void pxd_listen_close(struct pxd_listen *l)
{
	for (int i = 0; i < l->nsocks; i++)
		if (!uv_is_closing((uv_handle_t *)&l->sock[i]))
			uv_close((uv_handle_t *)&l->sock[i], NULL);
	px_list_each(it, &l->half) half_close(px_list_entry(it, struct half, l));
}
