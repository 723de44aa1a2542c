/* listen.c: see listen.h. */
#include "listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"
#include "err.h"
#include "handoff.h"
#include "probing.h"
#include "tls.h"
#include "wait.h"

#define BACKLOG    128
#define LINGER_MS  1000   /* a refused peer has this long to read why */
#define LINGER_MAX 65536  /* and may send this much meanwhile */
#define PROBE_MS   30000  /* pacxctl has this long for its questions */
#define PROBE_MAX  262144 /* and may leave this much of the answers unread */
#define LOG_BURST  10.0
#define LOG_PER_S  0.5

/* A connection before its hello, or one that has been refused and shall read why. */
struct half {
	struct px_list l;
	struct pxd_listen *listen;
	struct pxd_conn *conn;
	uv_timer_t timer;
	bool have_pre, refused;
	struct px_preamble pre;
	struct pxd_hand hand; /* preamble, then hello */
	size_t ignored;
	struct px_probing_side *probe; /* it is no stream of a link but pacxctl: doctor, probe */
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
	free(h->probe);
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
	if (!h->refused && !h->probe)
		stranger_log(h->listen, "closed a connection from %s: no complete %s within %d s",
			h->conn->peer,
			h->conn->shaking ? "TLS handshake"
			: h->have_pre    ? "HELLO"
					 : "preamble",
			PXD_HAND_MS / 1000);
	half_close(h);
}

static void refuse(struct half *h, const char *reason)
{
	stranger_log(h->listen, "refused a connection from %s: %s", h->conn->peer, reason);
	h->listen->turned_away++;
	h->refused = true;
	if (pxd_hand_put_refuse(h->conn, reason) < 0) {
		half_close(h);
		return;
	}
	/* Closing with unread bytes would reset the connection, and the peer would never read the reason. */
	pxd_conn_shut(h->conn);
	uv_timer_start(&h->timer, on_limit, LINGER_MS, 0);
}

static void turn_away(struct half *h, const char *what)
{
	char text[24];

	pxd_text_clean(
		h->hand.buf, h->hand.n < sizeof text - 1 ? h->hand.n : sizeof text - 1, text, sizeof text);
	stranger_log(h->listen, "closed a connection from %s: %s (it begins with \"%s\")", h->conn->peer,
		what, text);
	h->listen->turned_away++;
	half_close(h);
}

/* probe_start: it is pacxctl that comes: say who we are, until it goes or its time is over. */
static bool probe_start(struct half *h)
{
	const struct pxd *d = h->listen->d;
	struct px_probing_side *side = calloc(1, sizeof *side);

	if (!side)
		return false;
	side->id = (struct px_probing_id){ .protocol = PX_PROTOCOL_VERSION,
		.site = (uint16_t)d->self,
		.nsites = (uint16_t)d->hosts->nsites,
		.gateway = (uint16_t)d->gateway,
		.flags = PX_PROBING_JOB };
	snprintf(side->id.version, sizeof side->id.version, "%s", PX_VERSION_TEXT);
	snprintf(side->id.name, sizeof side->id.name, "%s", pxd_site_name(d, d->self));
	snprintf(side->id.job, sizeof side->id.job, "%s", d->hosts->job_id);
	h->probe = side;
	uv_timer_start(&h->timer, on_limit, PROBE_MS, 0);
	return true;
}

static void probe_got(struct half *h, const uint8_t *in, size_t n)
{
	static uint8_t out[PX_PROBING_OUT];
	struct timespec now;
	size_t nout = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	h->probe->id.clock_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (px_probing_feed(h->probe, in, n, out, &nout) < 0 || pxd_conn_busy(h->conn) > PROBE_MAX ||
		(nout > 0 && pxd_conn_say(h->conn, out, nout, NULL, 0) < 0))
		half_close(h);
}

static void half_room(struct pxd_conn *c, uint8_t **base, size_t *n)
{
	struct half *h = c->owner;
	static uint8_t waste[4096], asked[PX_PROBING_STEP];

	if (h->probe && !h->refused) {
		*base = asked;
		*n = sizeof asked;
		return;
	}
	*base = h->refused ? waste : h->hand.buf + h->hand.n;
	/* Exactly the preamble: what follows it belongs to TLS, or to another daemon. */
	*n = h->refused ? sizeof waste : h->have_pre ? pxd_hand_want(&h->hand) : PX_PREAMBLE_SIZE - h->hand.n;
}

/* The preamble is known, and this stream is ours. */
static void secure(struct half *h)
{
	struct pxd *d = h->listen->d;
	const struct pxd_link_opts *o = pxd_hosts_link(d->hosts, h->pre.from, h->pre.to);

	h->have_pre = true;
	h->hand.n = 0;
	if (o->plain == (h->pre.tls != 0)) {
		turn_away(h, o->plain ? "it wants TLS, but this link is written as security: none"
				      : "it wants no TLS, but this link needs it");
		return;
	}
	if (!o->plain)
		pxd_conn_secure(h->conn, pxd_tls_server(d->tls, h->conn->fd));
}

static void preamble_take(struct half *h)
{
	struct pxd *d = h->listen->d;
	struct px_preamble *p = &h->pre;
	int rc = px_preamble_get(h->hand.buf, h->hand.n, p), self;

	if (rc == PX_ESHORT)
		return;
	if (rc < 0) {
		turn_away(h,
			rc == PX_EVERSION ? "another protocol version" : "what it sent is no PACX preamble");
		return;
	}
	if (memcmp(p->jobhash, d->jobhash, sizeof p->jobhash) != 0) {
		static const char other[] =
			"it is of another job; start all sites with the same hostfile and PACX_JOB";

		if (p->tls)
			turn_away(h, other);
		else
			refuse(h, other);
		return;
	}
	self = p->reversed ? p->from : p->to;
	if (self != d->self || p->from >= d->hosts->nsites || p->to >= d->hosts->nsites ||
		(p->reversed ? p->from_gateway : p->to_gateway) != d->gateway ||
		p->stream >= PXD_STREAMS_MAX) {
		turn_away(h, "it wants another site or gateway; use the same hostfile on all sites, with one "
			     "port for each");
		return;
	}
	if (p->kind == PX_PRE_PROBE && (p->reversed || !probe_start(h))) {
		turn_away(h, "it wants to test what is not here");
		return;
	}
	if (p->reversed && d->role == &pxd_role_in) {
		rc = pxd_handoff_give(d, h->conn->fd, p);
		if (rc < 0)
			stranger_log(h->listen,
				"cannot hand the connection from %s to the out-daemon of this gateway: %s; "
				"both have to run on "
				"the same node when the peer dials for both directions",
				h->conn->peer, strerror(-rc));
		half_close(h);
		return;
	}
	secure(h);
}

static void half_got(struct pxd_conn *c, uint8_t *base, size_t n)
{
	struct half *h = c->owner;
	struct pxd_listen *l = h->listen;
	struct px_hello hello;
	char reason[PXD_REASON];
	int type = 0, rc;

	if (h->refused) {
		h->ignored += n;
		if (h->ignored > LINGER_MAX)
			half_close(h);
		return;
	}
	if (h->probe) {
		probe_got(h, base, n);
		return;
	}
	h->hand.n += n;
	if (!h->have_pre) {
		preamble_take(h);
		return;
	}
	rc = pxd_hand_get(&h->hand, &type, &hello, reason);
	if (rc == PX_ESHORT)
		return;
	if (rc == 0 && type == PX_F_REFUSE) {
		stranger_log(l, "%s refused us: %s", c->peer, reason);
		half_close(h);
		return;
	}
	if (rc == PX_EIO) {
		turn_away(h, reason); /* it may well dial again, so this is no refusal */
		return;
	}
	if (rc == 0)
		rc = pxd_hand_judge(l->d, c, &h->pre, &hello, reason, sizeof reason);
	if (rc < 0) {
		refuse(h, reason);
		return;
	}
	if (pxd_hand_put_hello(l->d, c, &h->pre) < 0) {
		half_close(h); /* it will dial again */
		return;
	}
	half_drop(h);
	pxd_hand_options(l->d, c, &h->pre);
	l->d->role->linked(l->d, &h->pre, c, &hello);
}

static void half_lost(struct pxd_conn *c, const char *why)
{
	struct half *h = c->owner;

	/* A connection without a byte is a port scan, or a test whether we live. */
	if (!h->refused && (!h->probe || c->shaking) && (h->hand.n > 0 || h->have_pre))
		stranger_log(h->listen, "lost a connection from %s before its %s was complete: %s", c->peer,
			c->shaking    ? "TLS handshake"
			: h->have_pre ? "HELLO"
				      : "preamble",
			why);
	if (c->shaking)
		h->listen->turned_away++;
	half_close(h);
}

static const struct pxd_conn_ops half_ops = { .room = half_room, .got = half_got, .lost = half_lost };

/* Whose place a newcomer takes: who has been waiting longest, of those that do not know our job, if there are any. */
static struct half *oldest(struct pxd_listen *l)
{
	px_list_each(it, &l->half)
	{
		struct half *h = px_list_entry(it, struct half, l);

		if (!h->have_pre || h->refused)
			return h;
	}
	return px_list_entry(l->half.next, struct half, l);
}

static struct half *half_new(struct pxd_listen *l, int fd)
{
	struct half *h = calloc(1, sizeof *h);

	if (!h || uv_timer_init(&l->d->loop, &h->timer) < 0) {
		free(h);
		close(fd);
		return NULL;
	}
	h->listen = l;
	h->timer.data = h;
	h->conn = pxd_conn_new(&l->d->loop, fd, false, &half_ops, h);
	if (!h->conn) {
		uv_close((uv_handle_t *)&h->timer, on_timer_closed);
		return NULL;
	}
	/* Many that say nothing keep nobody out. */
	if (l->nhalf >= l->most) {
		struct half *old = oldest(l);

		stranger_log(l,
			"closed a connection from %s: %d connections wait for their HELLO, this one longest",
			old->conn->peer, l->nhalf);
		l->turned_away++;
		half_close(old);
	}
	px_list_push(&l->half, &h->l);
	l->nhalf++;
	uv_timer_start(&h->timer, on_limit, PXD_HAND_MS, 0);
	return h;
}

void pxd_listen_adopt(struct pxd_listen *l, int fd, const struct px_preamble *p)
{
	struct half *h = half_new(l, fd);

	if (!h)
		return;
	h->pre = *p;
	secure(h);
}

static void on_connection(uv_poll_t *p, int status, int events)
{
	struct pxd_listen *l = p->data;

	(void)events;
	l->d->events++;
	for (int i = 0; i < l->nsocks && status == 0; i++) {
		struct sockaddr_storage a;
		socklen_t len = sizeof a;
		struct half *h;
		int fd;

		if (&l->sock[i].poll != p)
			continue;
		fd = accept4(l->sock[i].fd, (struct sockaddr *)&a, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		h = fd >= 0 ? half_new(l, fd) : NULL;
		if (h)
			pxd_conn_name(h->conn, (struct sockaddr *)&a, len);
		else if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
			stranger_log(l, "cannot accept a connection: %s", strerror(errno));
	}
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
	int fd = bound_socket(a), rc;

	if (fd < 0)
		return fd;
	if (listen(fd, BACKLOG) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	rc = uv_poll_init(&l->d->loop, &l->sock[l->nsocks].poll, fd);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	l->sock[l->nsocks].fd = fd;
	l->sock[l->nsocks].poll.data = l;
	return uv_poll_start(&l->sock[l->nsocks++].poll, UV_READABLE, on_connection);
}

void pxd_listen_init(struct pxd_listen *l, struct pxd *d)
{
	l->d = d;
	l->allowance = LOG_BURST;
	l->refilled = px_now_ns();
	px_list_init(&l->half);
	l->most = PXD_HALF_OPEN;
	for (int i = 0; i < d->hosts->nsites; i++) {
		const struct pxd_link_opts *o = pxd_hosts_link(d->hosts, d->self, i);

		if (i != d->self)
			l->most += d->hosts->sites[i].ngateways * (o->streams > 0 ? o->streams : 8);
	}
}

int pxd_listen_open(struct pxd_listen *l)
{
	struct pxd *d = l->d;
	const struct pxd_gateway *g = &d->hosts->sites[d->self].gateways[d->gateway];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV },
			*list = NULL;
	char port[12];
	int rc, good = 0, bad = 0;

	snprintf(port, sizeof port, "%d", g->bind_port);
	rc = getaddrinfo(g->bind_host, port, &hints, &list);
	if (rc != 0) {
		pxd_fail(d, PXD_EXIT_CONFIG,
			"cannot find the address %s, where this site shall listen: %s; "
			"name an address of this machine with bind: in the hostfile",
			g->bind_host, gai_strerror(rc));
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
	pxd_fail(d, PXD_EXIT_CONFIG, "cannot listen on %s port %d: %s; %s", g->bind_host, g->bind_port,
		uv_strerror(bad),
		bad == UV_EADDRINUSE ? "another process has this port: choose another one in the hostfile"
				     : "name an address of this machine with bind: in the hostfile");
	return PX_ECONF;
}

static void on_sock_closed(uv_handle_t *h)
{
	struct pxd_listen *l = h->data;

	for (int i = 0; i < l->nsocks; i++)
		if ((uv_handle_t *)&l->sock[i].poll == h)
			close(l->sock[i].fd);
}

void pxd_listen_close(struct pxd_listen *l)
{
	for (int i = 0; i < l->nsocks; i++)
		if (!uv_is_closing((uv_handle_t *)&l->sock[i].poll))
			uv_close((uv_handle_t *)&l->sock[i].poll, on_sock_closed);
	while (!px_list_empty(&l->half))
		half_close(px_list_entry(l->half.next, struct half, l));
}
