/* relay.c: see relay.h. Who meets whom; relay_end.c moves the bytes.
 *
 * Whoever comes with the preamble of a connection that is here already has lost the old one: the old one goes, and with it
 * the pair, so that the other side notices and dials anew. Nothing is proved here: who knows a job's hash can disturb its meeting, but
 * neither read nor change what the sites say.
 */
#include "relay.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "err.h"
#include "list.h"
#include "preamble.h"
#include "relay_end.h"
#include "wait.h"

#define BACKLOG      128
#define ENDS_MAX     1024 /* connections at a time */
#define GREETING_MAX 64   /* of them without a preamble yet */
#define WAITING_S    60   /* for the twin, unless --wait says other; the site will dial again */
#define SWEEP_MS     500  /* how exactly those two are kept */

static void address_text(const struct sockaddr *a, char *text, size_t cap)
{
	char name[64] = "?";

	if (a->sa_family == AF_INET6) {
		const struct sockaddr_in6 *six = (const void *)a;

		uv_ip6_name(six, name, sizeof name);
		snprintf(text, cap, "[%s]:%d", name, ntohs(six->sin6_port));
	} else {
		const struct sockaddr_in *four = (const void *)a;

		uv_ip4_name(four, name, sizeof name);
		snprintf(text, cap, "%s:%d", name, ntohs(four->sin_port));
	}
}

/* ---- the next relay ---- */

static void dial_next(struct pxd_end *up);

static void on_connect(uv_connect_t *q, int status)
{
	struct pxd_end *up = q->data;

	if (!up->other)
		return;
	if (status == 0) {
		pxd_end_options(up);
		pxd_end_pair(up->other, up);
		return;
	}
	if (up->address + 1 < up->relay->nnext) { /* a socket serves for one attempt only */
		struct pxd_end *again = pxd_end_new(up->relay, CONNECTING, PXD_RELAY_EARLY), *e = up->other;

		if (again) {
			again->address = up->address + 1;
			again->deadline = up->deadline;
			again->other = e;
			e->other = again;
			snprintf(again->peer, sizeof again->peer, "%s", up->peer);
			pxd_end_drop(up, false);
			dial_next(again);
			return;
		}
	}
	pxd_relay_note(up->relay, PX_LOG_WARN, "cannot reach the next relay %s for %s: %s",
		up->relay->next_name, up->other->peer, uv_strerror(status));
	pxd_end_close(up, false);
}

static void dial_next(struct pxd_end *up)
{
	int rc;

	up->connect.data = up;
	rc = uv_tcp_connect(
		&up->connect, &up->tcp, (struct sockaddr *)&up->relay->next[up->address], on_connect);
	if (rc < 0)
		on_connect(&up->connect, rc);
}

static void forward(struct pxd_end *e)
{
	struct pxd_end *up =
		e->relay->nends < ENDS_MAX ? pxd_end_new(e->relay, CONNECTING, PXD_RELAY_EARLY) : NULL;

	if (!up || !pxd_end_grow(e, PXD_RELAY_EARLY)) {
		pxd_relay_note(e->relay, PX_LOG_WARN, "closed the connection from %s: too many connections",
			e->peer);
		if (up)
			pxd_end_close(up, false);
		pxd_end_close(e, false);
		return;
	}
	up->other = e;
	e->other = up;
	snprintf(up->peer, sizeof up->peer, "%.79s", e->relay->next_name);
	pxd_end_state(e,
		WAITING); /* its buffer begins with the preamble, and goes on with what it sends meanwhile */
	e->deadline = uv_now(&e->relay->loop) + e->relay->wait_ms;
	dial_next(up);
}

/* ---- meeting ---- */

static bool same_stream(const struct px_preamble *a, const struct px_preamble *b)
{
	return a->kind == b->kind && a->from == b->from && a->to == b->to &&
	       a->from_gateway == b->from_gateway && a->to_gateway == b->to_gateway &&
	       a->stream == b->stream && memcmp(a->jobhash, b->jobhash, PX_JOBHASH_SIZE) == 0;
}

static const char *stream_text(const struct px_preamble *p, char text[120])
{
	snprintf(text, 120, "%s of site %d -> site %d, gateways %d -> %d, stream %d",
		p->kind == PX_PRE_PROBE ? "probe" : "link", p->from, p->to, p->from_gateway, p->to_gateway,
		p->stream);
	return text;
}

/* e has said which stream it is for. */
static void meet(struct pxd_end *e)
{
	struct pxd_relay *r = e->relay;
	struct pxd_end *old = NULL, *twin = NULL;
	char text[120];

	px_list_each(it, &r->ends)
	{
		struct pxd_end *x = px_list_entry(it, struct pxd_end, l);

		if (x == e || x->state == GREETING || !same_stream(&x->pre, &e->pre))
			continue;
		if (x->pre.reversed == e->pre.reversed)
			old = x;
		else
			twin = x;
	}
	stream_text(&e->pre, text);
	if (old) {
		if (old->other)
			twin = NULL; /* it goes, too, and comes again */
		pxd_relay_note(r, PX_LOG_INFO, "%s: %s comes anew, as %s", text, old->peer, e->peer);
		pxd_end_close(old, true);
	}
	if (twin && twin->pre.tls != e->pre.tls) {
		pxd_relay_note(r, PX_LOG_WARN,
			"%s: %s and %s do not agree on TLS: write the same security: at both sites", text,
			twin->peer, e->peer);
		pxd_end_close(twin, false);
		pxd_end_close(e, false);
		return;
	}
	if (twin) {
		pxd_relay_note(r, PX_LOG_INFO, "%s: %s and %s have met", text, twin->peer, e->peer);
		pxd_end_pair(twin, e);
		return;
	}
	if (!pxd_end_grow(e, PXD_RELAY_EARLY)) {
		pxd_end_close(e, false);
		return;
	}
	px_log(PX_LOG_DEBUG, "%s: %s waits for the other site", text, e->peer);
	pxd_end_state(e, WAITING);
	e->deadline = uv_now(&r->loop) + r->wait_ms;
}

/* More of the preamble has come. The buffer is PX_PREAMBLE_SIZE long, so nothing behind it was read. */
static void greeted(struct pxd_end *e)
{
	int rc = px_preamble_get(e->buf, e->len, &e->pre);

	if (rc == PX_ESHORT)
		return;
	if (rc < 0) {
		pxd_relay_note(e->relay, PX_LOG_WARN, "closed a connection from %s: %s", e->peer,
			rc == PX_EVERSION ? "its preamble is of another version of PACX"
					  : "what it sent is no preamble of PACX");
		pxd_end_close(e, false);
		return;
	}
	if (e->relay->nnext) {
		forward(e);
		return;
	}
	e->len = 0;
	meet(e);
}

/* Close all that is open; then uv_run returns. */
static void relay_end(struct pxd_relay *r)
{
	while (!px_list_empty(&r->ends))
		pxd_end_close(px_list_entry(r->ends.next, struct pxd_end, l), true);
	for (int i = 0; i < r->nsocks; i++)
		uv_close((uv_handle_t *)&r->sock[i], NULL);
	uv_close((uv_handle_t *)&r->sweep, NULL);
	uv_close((uv_handle_t *)&r->term, NULL);
	uv_close((uv_handle_t *)&r->intr, NULL);
}

/* ---- the door ---- */

/* Sites say at once who they are: who has been silent for longest makes room. */
static void oldest_close(struct pxd_relay *r)
{
	px_list_each(it, &r->ends)
	{
		struct pxd_end *e = px_list_entry(it, struct pxd_end, l);

		if (e->state != GREETING)
			continue;
		pxd_relay_note(r, PX_LOG_WARN,
			"closed a connection from %s: it sent %zu bytes but no complete preamble, and %d "
			"came after it",
			e->peer, e->len, GREETING_MAX);
		pxd_end_close(e, false);
		return;
	}
}

static void on_connection(uv_stream_t *server, int status)
{
	struct pxd_relay *r = server->data;
	struct sockaddr_storage a;
	int len = sizeof a;
	struct pxd_end *e;

	if (status < 0) {
		pxd_relay_note(r, PX_LOG_WARN, "cannot accept a connection: %s", uv_strerror(status));
		return;
	}
	uv_update_time(&r->loop);
	e = pxd_end_new(r, GREETING, PX_PREAMBLE_SIZE);
	if (!e) { /* a connection that is not accepted would block the door for ever */
		px_log(PX_LOG_ERROR, "out of memory with %d connections", r->nends);
		r->failed = true;
		relay_end(r);
		return;
	}
	if (uv_accept(server, (uv_stream_t *)&e->tcp) < 0) {
		pxd_end_close(e, false);
		return;
	}
	if (uv_tcp_getpeername(&e->tcp, (struct sockaddr *)&a, &len) == 0)
		address_text((struct sockaddr *)&a, e->peer, sizeof e->peer);
	if (r->nends > ENDS_MAX) {
		pxd_relay_note(r, PX_LOG_WARN, "closed a connection from %s at once: there are %d others",
			e->peer, r->nends - 1);
		pxd_end_close(e, false);
		return;
	}
	if (r->ngreeting > GREETING_MAX)
		oldest_close(r);
	pxd_end_options(e);
	if (!pxd_end_read(e))
		pxd_end_close(e, false);
}

static void on_sweep(uv_timer_t *t)
{
	struct pxd_relay *r = t->data;
	uint64_t now = uv_now(&r->loop);
	char text[120];
	bool again;

	do { /* closing one may close its partner, which may be the next in the list */
		again = false;
		px_list_each(it, &r->ends)
		{
			struct pxd_end *e = px_list_entry(it, struct pxd_end, l);

			if (e->state == PAIRED || now < e->deadline)
				continue;
			if (e->state == GREETING)
				pxd_relay_note(r, PX_LOG_WARN,
					"closed a connection from %s: it sent %zu bytes but no complete "
					"preamble within %d s",
					e->peer, e->len, PXD_RELAY_GREETING_MS / 1000);
			else if (e->state == CONNECTING)
				pxd_relay_note(
					r, PX_LOG_WARN, "the next relay %s does not answer", r->next_name);
			else
				pxd_relay_note(r, PX_LOG_INFO,
					"%s: the other site did not come within %d s; closed %s",
					stream_text(&e->pre, text), (int)(r->wait_ms / 1000), e->peer);
			pxd_end_close(e, false);
			again = true;
			break;
		}
	} while (again);
}

static void on_signal(uv_signal_t *s, int number)
{
	struct pxd_relay *r = s->data;

	px_log(PX_LOG_INFO, "ended by signal %d with %d connections", number, r->nends);
	relay_end(r);
}

/* ---- start ---- */

/* "host:port", "[v6]:port", or "port"; *host is new, NULL without a host. */
static bool endpoint(const char *text, char **host, int *port)
{
	const char *colon = strrchr(text, ':'), *number = colon ? colon + 1 : text;
	size_t n = colon ? (size_t)(colon - text) : 0;
	char *end;
	long v;

	if (*number < '0' || *number > '9' || (colon && n == 0))
		return false;
	v = strtol(number, &end, 10);
	if (*end || v > 65535)
		return false;
	*port = (int)v;
	*host = NULL;
	if (!colon)
		return true;
	if (text[0] == '[' && text[n - 1] == ']' && n > 2) {
		text++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		return false; /* IPv6 without brackets */
	}
	*host = strndup(text, n);
	return *host != NULL;
}

static int listen_at(struct pxd_relay *r, const struct sockaddr *a, socklen_t len)
{
	uv_tcp_t *t = &r->sock[r->nsocks];
	int one = 1, fd, rc;

	fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
		(a->sa_family == AF_INET6 &&
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) < 0) ||
		bind(fd, a, len) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	rc = uv_tcp_init(&r->loop, t);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	r->nsocks++; /* from here on it has to be closed */
	t->data = r;
	rc = uv_tcp_open(t, fd);
	if (rc < 0)
		close(fd);
	else
		rc = uv_listen((uv_stream_t *)t, BACKLOG, on_connection);
	if (rc < 0) {
		uv_close((uv_handle_t *)t, NULL);
		uv_run(&r->loop, UV_RUN_NOWAIT);
		r->nsocks--;
	}
	return rc;
}

static void port_set(struct sockaddr *a, int port)
{
	if (a->sa_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)a)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)(void *)a)->sin_port = htons((uint16_t)port);
}

/* Listen on every address of the host; one line for each. 0, or an exit status. */
static int door_open(struct pxd_relay *r, const char *host, int port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV },
			*list = NULL;
	struct sockaddr_storage a = { 0 };
	char number[12], text[80];
	int rc, bad = 0, len;

	snprintf(number, sizeof number, "%d", port);
	rc = getaddrinfo(host, number, &hints, &list);
	if (rc != 0) {
		px_log(PX_LOG_ERROR,
			"cannot find the address %s to listen on: %s; name an address of this machine",
			host ? host : "*", gai_strerror(rc));
		return 2;
	}
	for (struct addrinfo *i = list; i && r->nsocks < PXD_RELAY_ADDRESSES; i = i->ai_next) {
		if (port == 0 && r->nsocks > 0) /* any free port, but the same for all */
			port_set(i->ai_addr, ntohs(((struct sockaddr_in *)&a)->sin_port));
		rc = listen_at(r, i->ai_addr, i->ai_addrlen);
		if (rc < 0) {
			bad = rc;
			continue;
		}
		len = sizeof a;
		uv_tcp_getsockname(&r->sock[r->nsocks - 1], (struct sockaddr *)&a, &len);
		address_text((struct sockaddr *)&a, text, sizeof text);
		px_log(PX_LOG_INFO, "listening on %s", text);
	}
	freeaddrinfo(list);
	if (r->nsocks > 0)
		return 0;
	px_log(PX_LOG_ERROR, "cannot listen on %s port %d: %s; %s", host ? host : "*", port, uv_strerror(bad),
		bad == UV_EADDRINUSE ? "another process has this port: choose another one"
				     : "name an address of this machine");
	return 2;
}

/* The name is looked up once, here: nothing may block later. */
static int next_find(struct pxd_relay *r, const char *host, int port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *list = NULL;
	char number[12];
	int rc;

	snprintf(number, sizeof number, "%d", port);
	rc = getaddrinfo(host, number, &hints, &list);
	if (rc != 0) {
		px_log(PX_LOG_ERROR, "cannot find the next relay %s: %s", host, gai_strerror(rc));
		return 2;
	}
	for (struct addrinfo *i = list; i && r->nnext < PXD_RELAY_ADDRESSES; i = i->ai_next)
		if (i->ai_addrlen <= sizeof r->next[0])
			memcpy(&r->next[r->nnext++], i->ai_addr, i->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: pacxd --relay [HOST:]PORT [--next HOST:PORT] [--wait SECONDS]\n"
			"Two sites that cannot reach each other meet here: relay: HOST:PORT in the hostfile; "
			"see pacxd(8).\n");
	return 2;
}

int pxd_relay_main(int argc, char **argv)
{
	static struct pxd_relay r;
	char *host = NULL, *next_host = NULL;
	int port, next_port = 0, rc = 2, seconds = WAITING_S;
	bool good = argc >= 3 && argc % 2 == 1 && endpoint(argv[2], &host, &port);
	struct rlimit files;

	px_log_init("pacxd relay", PX_LOG_INFO);
	for (int i = 3; i + 1 < argc && good; i += 2) {
		if (strcmp(argv[i], "--next") == 0 && !next_host) {
			good = endpoint(argv[i + 1], &next_host, &next_port) && next_host && next_port > 0;
			r.next_name = argv[i + 1];
		} else if (strcmp(argv[i], "--wait") == 0) {
			seconds = atoi(argv[i + 1]);
			good = seconds >= 1 && seconds <= 86400;
		} else {
			good = false;
		}
	}
	if (!good) {
		free(host);
		free(next_host);
		return usage();
	}
	r.wait_ms = (uint64_t)seconds * 1000;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	signal(SIGPIPE, SIG_IGN);
	px_list_init(&r.ends);
	r.greeted = greeted;
	r.allowance = PXD_RELAY_LOG_BURST;
	r.refilled = px_now_ns();
	if (next_host && next_find(&r, next_host, next_port) != 0)
		goto out;
	if (uv_loop_init(&r.loop) < 0 || uv_timer_init(&r.loop, &r.sweep) < 0 ||
		uv_signal_init(&r.loop, &r.term) < 0 || uv_signal_init(&r.loop, &r.intr) < 0) {
		px_log(PX_LOG_ERROR, "cannot make an event loop");
		goto out;
	}
	r.sweep.data = r.term.data = r.intr.data = &r;
	uv_signal_start(&r.term, on_signal, SIGTERM);
	uv_signal_start(&r.intr, on_signal, SIGINT);
	rc = door_open(&r, host, port);
	if (rc != 0)
		goto out;
	uv_timer_start(&r.sweep, on_sweep, SWEEP_MS, SWEEP_MS);
	uv_run(&r.loop, UV_RUN_DEFAULT);
	rc = uv_loop_close(&r.loop) == 0 && !r.failed
		     ? 0
		     : 1; /* 1: something was forgotten; tests look at that */
out:
	free(host);
	free(next_host);
	return rc;
}
