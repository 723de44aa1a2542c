/* conn_dial.c: see conn_dial.h. */
#include "conn_dial.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "err.h"
#include "proof.h"
#include "tls.h"
#include "via_command.h"
#include "wait.h"

#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 1000
#define LIMIT_MIN_MS 500
#define FIRST_MIN_MS 2000
#define YOUNG_NS     100000000u
#define COMPLAINTS   3  /* connections in a row with the same complaint: then it is true */
#define SOURCE_PORTS 64 /* as pacx-hostfile(5) says */

static void attempt(struct pxd_dial *dial);
static void next_address(struct pxd_dial *dial);

static void on_pause_over(uv_timer_t *t)
{
	struct pxd_dial *dial = t->data;

	pxd_node_of(t->loop)->events++;
	attempt(dial);
}

static void addresses_free(struct pxd_dial *dial)
{
	if (dial->list)
		uv_freeaddrinfo(dial->list);
	dial->list = dial->at = NULL;
}

/* This round has failed, `why` says how: pause, then begin anew. */
static void again(struct pxd_dial *dial)
{
	addresses_free(dial);
	if (!dial->running || dial->closed)
		return;
	uv_timer_start(&dial->timer, on_pause_over, dial->pause_ms, 0);
	dial->pause_ms = dial->pause_ms * 2 < PAUSE_MAX_MS ? dial->pause_ms * 2 : PAUSE_MAX_MS;
}

static void drop(struct pxd_dial *dial, const char *why)
{
	if (dial->conn)
		pxd_conn_close(dial->conn);
	dial->conn = NULL;
	if (!dial->closed)
		uv_timer_stop(&dial->timer);
	snprintf(dial->why, sizeof dial->why, "%.199s", why);
}

static void on_limit(uv_timer_t *t)
{
	struct pxd_dial *dial = t->data;

	pxd_node_of(t->loop)->events++;
	drop(dial, dial->hand.n ? "its answer is incomplete" : "no answer");
	dial->refused = false;
	next_address(dial);
}

/* What is wrong will not be right the next time, unless the link has worked before, or it was damage on the way. complaint: the same
 * whatever the connection; text says it all. */
static void hopeless(struct pxd_dial *dial, const char *complaint, const char *text)
{
	if (strcmp(complaint, dial->complaint) != 0)
		dial->complaints = 0;
	snprintf(dial->complaint, sizeof dial->complaint, "%s", complaint);
	dial->complaints++;
	if (!dial->was_up && dial->complaints >= COMPLAINTS) {
		pxd_fail(dial->d, PXD_EXIT_START, "%s", text);
		return;
	}
	drop(dial, text);
	next_address(dial);
}

static void accepted(struct pxd_dial *dial, const struct px_hello *hello)
{
	struct pxd_node *d = dial->d;
	char why[PXD_REASON], text[PXD_REASON + 200];
	struct pxd_conn *c = dial->conn;

	if (pxd_hand_judge(d, c, &dial->pre, hello, why, sizeof why) < 0) {
		pxd_hand_put_refuse(c, why);
		snprintf(text, sizeof text, "the answer of site %s (%s) does not fit: %s",
			pxd_site_name(d, dial->peer), c->peer, why);
		hopeless(dial, why, text);
		return;
	}
	uv_timer_stop(&dial->timer);
	addresses_free(dial);
	dial->conn = NULL;
	dial->running = false;
	dial->was_up = true;
	dial->up_at = px_now_ns();
	pxd_hand_options(d, c, &dial->pre);
	d->peers->linked(d->owner, &dial->pre, c, hello);
}

static void hand_room(struct pxd_conn *c, uint8_t **base, size_t *n)
{
	struct pxd_dial *dial = c->owner;

	if (dial->phase == PXD_DIAL_PROXY) {
		*base = dial->via_in;
		*n = pxd_via_want(&dial->via);
		if (*n == 0 || *n > sizeof dial->via_in)
			*n = *n ? sizeof dial->via_in : 1;
		return;
	}
	*base = dial->hand.buf + dial->hand.n;
	*n = pxd_hand_want(&dial->hand);
}

/* The way to the peer is open: say which link this is, then secure it, then greet. */
static void way_open(struct pxd_dial *dial)
{
	uint8_t pre[PX_PREAMBLE_SIZE];
	struct pxd_conn *c = dial->conn;

	pxd_proof_put(pxd_tls_door(dial->d->tls), &dial->pre, pre);
	dial->phase = PXD_DIAL_SECURE;
	if (pxd_conn_say(c, pre, sizeof pre, NULL, 0) < 0)
		return; /* it is lost, and says so at the next turn */
	if (dial->opts->plain) {
		dial->phase = PXD_DIAL_HELLO;
		pxd_hand_put_hello(dial->d, c, &dial->pre);
		return;
	}
	/* Through a relay both sides dial: the writer of frames is the client then. */
	if (dial->opts->relay && dial->pre.reversed)
		pxd_conn_secure(c, pxd_tls_server(dial->d->tls, c->fd));
	else
		pxd_conn_secure(c, pxd_tls_client(dial->d->tls, c->fd, dial->peer));
}

/* A connection has to come about in time for another attempt, when this one meets silence: also the first one, as the peer may have
 * accepted us, and waits. But then it may also still be busy with its start. */
static unsigned limit_ms(const struct pxd_dial *dial)
{
	long ms = dial->opts->reconnect_ms / (dial->was_up ? 4 : 2),
	     least = dial->was_up ? LIMIT_MIN_MS : FIRST_MIN_MS;

	return (unsigned)(ms > PXD_HAND_MS ? PXD_HAND_MS : ms < least ? least : ms);
}

static void hand_ready(struct pxd_conn *c)
{
	struct pxd_dial *dial = c->owner;
	uint8_t out[PXD_VIA_OUT];
	size_t n = sizeof out;

	/* Connecting, TLS and the greeting take a round trip each, and each shows that somebody is there. */
	uv_timer_start(&dial->timer, on_limit, limit_ms(dial), 0);
	if (dial->phase == PXD_DIAL_SECURE) {
		dial->phase = PXD_DIAL_HELLO;
		pxd_hand_put_hello(dial->d, c, &dial->pre);
	} else if (dial->proxy.kind != PXD_PROXY_NONE) {
		dial->phase = PXD_DIAL_PROXY;
		if (pxd_via_start(&dial->via, &dial->proxy, dial->host, dial->port, out, &n) < 0) {
			drop(dial, "this host name cannot be given to a proxy");
			next_address(dial);
			return;
		}
		pxd_conn_say(c, out, n, NULL, 0);
	} else {
		way_open(dial);
	}
}

static void proxy_got(struct pxd_dial *dial, const uint8_t *in, size_t len)
{
	uint8_t out[PXD_VIA_OUT];
	size_t n = sizeof out;
	char why[160], text[200];
	int rc = pxd_via_feed(&dial->via, in, len, out, &n, why, sizeof why);

	if (rc < 0) {
		snprintf(text, sizeof text, "proxy: %s", why);
		drop(dial, text);
		next_address(dial);
	} else if (rc > 0) {
		way_open(dial);
	} else if (n > 0) {
		pxd_conn_say(dial->conn, out, n, NULL, 0);
	}
}

static void hand_got(struct pxd_conn *c, uint8_t *base, size_t n)
{
	struct pxd_dial *dial = c->owner;
	struct px_hello hello;
	char reason[PXD_REASON], text[PXD_REASON + 200];
	int type = 0, rc;

	if (dial->phase == PXD_DIAL_PROXY) {
		proxy_got(dial, base, n);
		return;
	}
	dial->hand.n += n;
	rc = pxd_hand_get(&dial->hand, &type, &hello, reason);
	if (rc == PX_ESHORT)
		return;
	if (rc == PX_EVERSION) {
		snprintf(text, sizeof text, "site %s at %s: %s", pxd_site_name(dial->d, dial->peer), c->peer,
			reason);
		hopeless(dial, reason, text);
	} else if (rc < 0) {
		/* Not PACX: perhaps something else has the port for the moment. The status line shows it. */
		snprintf(text, sizeof text, "%.60s: %.90s", c->peer, reason);
		drop(dial, text);
		next_address(dial);
	} else if (type == PX_F_REFUSE) {
		snprintf(text, sizeof text, "site %s (%s) refused us: %s", pxd_site_name(dial->d, dial->peer),
			c->peer, reason);
		hopeless(dial, reason, text);
	} else {
		accepted(dial, &hello);
	}
}

static void hand_lost(struct pxd_conn *c, const char *why)
{
	struct pxd_dial *dial = c->owner;
	char text[200];

	dial->refused = !c->connecting || strcmp(why, strerror(ECONNREFUSED)) == 0;
	snprintf(text, sizeof text, "%.60s: %.130s", c->peer, why);
	drop(dial, c->connecting ? why : text);
	next_address(dial);
}

static const struct pxd_conn_ops hand_ops = {
	.ready = hand_ready, .room = hand_room, .got = hand_got, .lost = hand_lost
};

/* A connection is under way over fd: watch it. */
static bool watch(struct pxd_dial *dial, int fd, pid_t pid)
{
	dial->hand.n = 0;
	dial->phase = PXD_DIAL_CONNECT;
	dial->conn = pxd_conn_new(&dial->d->loop, fd, pid == 0, &hand_ops, dial);
	if (!dial->conn) {
		drop(dial, "out of memory");
		return false;
	}
	dial->conn->pid = pid;
	uv_timer_start(&dial->timer, on_limit, limit_ms(dial), 0);
	if (pid) {
		snprintf(dial->conn->peer, sizeof dial->conn->peer, "command to %.50s:%d", dial->host,
			dial->port);
		way_open(dial);
	}
	return true;
}

static int source_bind(int fd, int family, int port)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 a6 = {
		.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any
	};
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	return family == AF_INET6 ? bind(fd, (struct sockaddr *)&a6, sizeof a6)
				  : bind(fd, (struct sockaddr *)&a4, sizeof a4);
}

/* connect_from: a socket that is connecting from this port, 0 = any. Or -errno. */
static int connect_from(const struct pxd_dial *dial, const struct addrinfo *a, int port)
{
	const char *cc = dial->opts->congestion;
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	if (cc) /* again in pxd_hand_options, which says if it fails; here for the first packets */
		(void)!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc));
	rc = port ? source_bind(fd, a->ai_family, port) : 0;
	while (rc == 0 && (rc = connect(fd, a->ai_addr, a->ai_addrlen)) < 0 && errno == EINTR)
		rc = 0;
	if (rc < 0 && errno != EINPROGRESS) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

static int source_ports(const struct pxd_dial *dial)
{
	int n = 2 * dial->opts->streams > SOURCE_PORTS ? 2 * dial->opts->streams : SOURCE_PORTS;
	int most = 65536 - dial->opts->source_port;

	return n < most ? n : most;
}

/* Firewalls with rules for the source port: the ports from `source_port` on, and no other. It starts with another one at every other
 * attempt, as the last connection may still hold its own, and goes on to the next where another stream, gateway or link to the same
 * address, or a stranger, has it. */
static int connect_to(const struct pxd_dial *dial, const struct addrinfo *a)
{
	int streams = dial->opts->streams > 0 ? dial->opts->streams : 8, n, rc = -EADDRINUSE;
	int first = dial->pre.stream + (int)(dial->attempts % 2) * streams;

	if (!dial->opts->source_port)
		return connect_from(dial, a, 0);
	n = source_ports(dial);
	for (int i = 0; i < n && (rc == -EADDRINUSE || rc == -EADDRNOTAVAIL); i++)
		rc = connect_from(dial, a, dial->opts->source_port + (first + i) % n);
	return rc;
}

static void connect_failed(struct pxd_dial *dial, int e)
{
	char text[160];

	dial->refused = e == ECONNREFUSED;
	if (dial->opts->source_port && (e == EADDRINUSE || e == EADDRNOTAVAIL || e == EACCES)) {
		snprintf(text, sizeof text, "source_port: no local port from %d to %d can be used: %s",
			dial->opts->source_port, dial->opts->source_port + source_ports(dial) - 1,
			strerror(e));
		drop(dial, text);
	} else {
		drop(dial, strerror(e));
	}
}

/* Try the address dial->at, or if there is none left, pause. */
static void next_address(struct pxd_dial *dial)
{
	while (dial->at && dial->running && !dial->closed) {
		struct addrinfo *a = dial->at;
		int fd;

		dial->at = a->ai_next;
		dial->attempts++;
		fd = connect_to(dial, a);
		if (fd < 0)
			connect_failed(dial, -fd);
		else if (watch(dial, fd, 0))
			return;
	}
	again(dial);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
	struct pxd_dial *dial = req->data;
	char text[160];

	pxd_node_of(req->loop)->events++;
	dial->resolving = false;
	if (status < 0 && dial->running && !dial->closed) {
		snprintf(text, sizeof text, "cannot find the address of %.90s: %s",
			dial->proxy.kind != PXD_PROXY_NONE ? dial->proxy.host : dial->host,
			uv_strerror(status));
		drop(dial, text);
	}
	dial->list = dial->at = status < 0 ? NULL : list;
	if (!dial->running || dial->closed)
		addresses_free(dial);
	else
		next_address(dial);
}

static void command_start(struct pxd_dial *dial)
{
	pid_t pid = 0;
	int fd = -1, rc = pxd_via_command(dial->opts->dial, dial->host, dial->port, &fd, &pid);

	dial->attempts++;
	if (rc < 0) {
		drop(dial, px_strerror(rc));
		again(dial);
	} else if (!watch(dial, fd, pid)) {
		again(dial);
	}
}

static void attempt(struct pxd_dial *dial)
{
	bool proxy = dial->proxy.kind != PXD_PROXY_NONE;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	char port[12];
	int rc;

	if (dial->resolving)
		return; /* of an attempt that was stopped; it goes on when that ends */
	if (dial->opts->dial) {
		command_start(dial);
		return;
	}
	snprintf(port, sizeof port, "%d", proxy ? dial->proxy.port : dial->port);
	dial->resolve.data = dial;
	rc = uv_getaddrinfo(&dial->d->loop, &dial->resolve, on_resolved,
		proxy ? dial->proxy.host : dial->host, port, &hints);
	if (rc < 0) {
		drop(dial, uv_strerror(rc));
		again(dial);
		return;
	}
	dial->resolving = true;
}

/* "host:port" or "[address]:port" */
static int endpoint_parse(const char *text, char *host, size_t cap, int *port)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (n > 2 && text[0] == '[' && text[n - 1] == ']')
		text++, n -= 2;
	if (n == 0 || n >= cap)
		return PX_EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	*port = atoi(colon + 1);
	return *port > 0 && *port < 65536 ? PX_OK : PX_EINVAL;
}

int pxd_dial_init(struct pxd_dial *dial, struct pxd_node *d, const struct px_preamble *pre)
{
	const struct pxd_gateway *g;

	dial->d = d;
	dial->pre = *pre;
	dial->pre.reversed = pre->to == d->self;
	dial->peer = dial->pre.reversed ? pre->from : pre->to;
	dial->opts = pxd_hosts_link(d->hosts, pre->from, pre->to);
	dial->pre.kind = PX_PRE_LINK;
	dial->pre.tls = !dial->opts->plain;
	memcpy(dial->pre.jobhash, d->jobhash, sizeof d->jobhash);
	g = &d->hosts->sites[dial->peer].gateways[dial->pre.reversed ? pre->from_gateway : pre->to_gateway];
	dial->host = g->host;
	dial->port = g->port;
	dial->pause_ms = PAUSE_MIN_MS;
	if (dial->opts->relay) {
		if (endpoint_parse(
			    dial->opts->relay, dial->relay_host, sizeof dial->relay_host, &dial->port) < 0)
			return PX_EINVAL;
		dial->host = dial->relay_host;
	}
	if (dial->opts->proxy && pxd_proxy_parse(dial->opts->proxy, &dial->proxy) < 0)
		return PX_EINVAL;
	if (uv_timer_init(&d->loop, &dial->timer) < 0)
		return PX_ENOMEM;
	dial->timer.data = dial;
	return PX_OK;
}

void pxd_dial_start(struct pxd_dial *dial)
{
	if (dial->closed || dial->running)
		return;
	dial->running = true;
	dial->refused = false;
	dial->pause_ms = PAUSE_MIN_MS;
	if (dial->was_up && px_now_ns() - dial->up_at < YOUNG_NS)
		again(dial); /* what breaks at once is not made again without end at full speed */
	else
		attempt(dial);
}

void pxd_dial_stop(struct pxd_dial *dial)
{
	dial->running = false;
	if (dial->conn)
		pxd_conn_close(dial->conn);
	dial->conn = NULL;
	if (dial->timer.data)
		uv_timer_stop(&dial->timer);
	if (!dial->resolving)
		addresses_free(dial);
}

void pxd_dial_close(struct pxd_dial *dial)
{
	if (dial->closed || !dial->timer.data)
		return;
	pxd_dial_stop(dial);
	dial->closed = true;
	if (dial->resolving)
		uv_cancel((uv_req_t *)&dial->resolve);
	uv_close((uv_handle_t *)&dial->timer, NULL);
}
