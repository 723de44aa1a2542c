/* relay.c: see relay.h. Who meets whom; relay_end.c moves the bytes, relay_who.c tells of them.
 *
 * Whoever comes with the preamble of a connection that is here already has lost the old one: the old one goes, and with it
 * the pair, so that the other side notices and dials anew. But a pair that lives is not broken up by somebody at another address.
 * Without --door nothing is proved here: who knows a job's hash can disturb its meeting, but neither read nor change what the
 * sites say. Those who wait and those who have met have places of their own, and lose them by address and at random (crowd.h).
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

#include "door.h"
#include "err.h"
#include "hostfile.h"
#include "key.h"
#include "list.h"
#include "preamble.h"
#include "proof.h"
#include "relay_end.h"

#define WAITING_MAX 1024 /* connections at a time, if there are descriptors for as many */
#define PAIRED_MAX  1024
#define WAITING_S   60  /* for the twin, unless --wait says other; the site will dial again */
#define SWEEP_MS    500 /* how exactly that is kept */
#define ALIVE_MS                                                                                             \
	6000 /* a pair from which something came since then lives: heartbeats are 5 s apart at most */

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
		struct pxd_end *again = pxd_end_new(up->relay, CONNECTING, PXD_RELAY_EARLY, -1),
			       *e = up->other;

		if (again) {
			again->address = up->address + 1;
			again->deadline = up->deadline;
			again->from = up->from;
			again->other = e;
			e->other = again;
			snprintf(again->peer, sizeof again->peer, "%s", up->peer);
			pxd_end_drop(up, false);
			dial_next(again);
			return;
		}
	}
	pxd_quiet_log(&up->relay->quiet, PX_LOG_WARN, "cannot reach the next relay %s for %s: %s",
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

/* wait_for: e has a place among those who wait until its time is over; somebody else may lose his for it. */
static bool wait_for(struct pxd_end *e)
{
	struct pxd_relay *r = e->relay;

	if (!pxd_end_place(e, &r->waiting)) {
		pxd_quiet_log(&r->quiet, PX_LOG_ERROR, "out of memory with %d connections", r->nends);
		return false;
	}
	e->deadline = uv_now(&r->loop) + r->wait_ms;
	return true;
}

static void forward(struct pxd_end *e)
{
	struct pxd_end *up = pxd_end_new(e->relay, CONNECTING, PXD_RELAY_EARLY, -1);

	if (!up || !wait_for(e)) {
		if (up)
			pxd_end_close(up, false);
		pxd_end_close(e, false);
		return;
	}
	up->other = e;
	up->from = e->from; /* on whose account it is here */
	e->other = up;
	snprintf(up->peer, sizeof up->peer, "%.79s", e->relay->next_name);
	/* The other relay needs the preamble, too; what the site sends meanwhile comes behind it. */
	px_preamble_put(&e->pre, e->buf);
	e->len = PX_PREAMBLE_SIZE;
	if (!pxd_end_read(e))
		pxd_end_close(e, false);
	else
		dial_next(up);
}

/* ---- meeting ---- */

const char *pxd_stream_text(const struct px_preamble *p, char text[120])
{
	snprintf(text, 120, "%s of site %d -> site %d, gateways %d -> %d, stream %d",
		p->kind == PX_PRE_PROBE ? "probe" : "link", p->from, p->to, p->from_gateway, p->to_gateway,
		p->stream);
	return text;
}

/* May e, of the same stream and side, take the place of `old`? A site that dials anew has closed its old connection, or has heard nothing
 * for longer than a pair that lives is silent. */
static bool replaces(const struct pxd_end *e, const struct pxd_end *old)
{
	return e->relay->door_key || old->state != PAIRED || pxd_end_same_host(e, old) ||
	       uv_now(&e->relay->loop) - old->heard > ALIVE_MS;
}

/* An end that waits for e, or NULL; older ones of e's own side go, unless they live: then e waits for their end. */
static struct pxd_end *twin_find(struct pxd_end *e)
{
	struct pxd_end *twin = NULL, *old = NULL;
	char text[120];
	bool kept = false;

	do { /* closing one closes its partner, which may be the next in the list */
		old = twin = NULL;
		px_list_each(it, &e->relay->ends)
		{
			struct pxd_end *x = px_list_entry(it, struct pxd_end, l);

			if (x == e || !px_preamble_same(&x->pre, &e->pre))
				continue;
			if (x->pre.reversed != e->pre.reversed)
				twin = x->state == WAITING ? x : twin;
			else if (replaces(e, x))
				old = x;
			else
				kept = true;
		}
		if (old) {
			pxd_quiet_log(&e->relay->quiet, PX_LOG_INFO, "%s: %s comes anew, as %s",
				pxd_stream_text(&e->pre, text), old->peer, e->peer);
			pxd_end_close(old, true);
		}
	} while (old);
	if (kept)
		pxd_quiet_log(&e->relay->quiet, PX_LOG_WARN,
			"%s: %s has to wait: a pair of this stream lives, from another address",
			pxd_stream_text(&e->pre, text), e->peer);
	return kept ? NULL : twin;
}

/* e has said which stream it is for. */
static void meet(struct pxd_end *e)
{
	struct pxd_relay *r = e->relay;
	struct pxd_end *twin = twin_find(e);
	char text[120];

	pxd_stream_text(&e->pre, text);
	if (twin && twin->pre.tls != e->pre.tls) {
		pxd_quiet_log(&r->quiet, PX_LOG_WARN,
			"%s: %s and %s do not agree on TLS: write the same security: at both sites", text,
			twin->peer, e->peer);
		pxd_end_close(twin, false);
		pxd_end_close(e, false);
		return;
	}
	if (twin) {
		pxd_quiet_log(&r->quiet, PX_LOG_INFO, "%s: %s and %s have met", text, twin->peer, e->peer);
		pxd_end_pair(twin, e);
		return;
	}
	if (!wait_for(e) || !pxd_end_read(e)) {
		pxd_end_close(e, false);
		return;
	}
	px_log(PX_LOG_DEBUG, "%s: %s waits for the other site", text, e->peer);
}

/* Does this relay serve it? NULL, or why not. */
static const char *turned_away(struct pxd_relay *r, const struct px_preamble *p)
{
	int i = 0;

	while (i < r->njobs && memcmp(r->job[i], p->jobhash, PX_JOBHASH_SIZE) != 0)
		i++;
	if (r->njobs > 0 && i == r->njobs)
		return "it is of a job that is not served here (--job)";
	if (r->door_key && !pxd_proof_new(&r->newest, r->door_key, p))
		return "it does not prove the key of the jobs that are served here (--door)";
	return NULL;
}

static void came(void *owner, int fd, const struct sockaddr_storage *from, const struct px_preamble *p)
{
	struct pxd_relay *r = owner;
	const char *wrong = turned_away(r, p);
	char who[PXD_PEER_TEXT];
	struct pxd_end *e;

	uv_update_time(&r->loop);
	if (wrong) {
		pxd_quiet_log(&r->quiet, PX_LOG_WARN, "closed a connection from %s: %s",
			pxd_peer_text(from, who), wrong);
		pxd_door_reset(fd);
		return;
	}
	e = pxd_end_new(r, WAITING, PXD_RELAY_EARLY, fd);
	if (!e) {
		pxd_quiet_log(&r->quiet, PX_LOG_ERROR, "out of memory with %d connections", r->nends);
		return;
	}
	e->pre = *p;
	e->from = *from;
	pxd_peer_text(from, e->peer);
	pxd_end_options(e);
	if (r->nnext)
		forward(e);
	else
		meet(e);
}

/* Close all that is open; then uv_run returns. */
static void relay_end(struct pxd_relay *r)
{
	while (!px_list_empty(&r->ends))
		pxd_end_close(px_list_entry(r->ends.next, struct pxd_end, l), true);
	pxd_crowd_fini(&r->waiting);
	pxd_crowd_fini(&r->paired);
	pxd_proof_forget(&r->newest);
	pxd_door_close(&r->door);
	uv_close((uv_handle_t *)&r->sweep, NULL);
	uv_close((uv_handle_t *)&r->term, NULL);
	uv_close((uv_handle_t *)&r->intr, NULL);
	uv_close((uv_handle_t *)&r->usr1, NULL);
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
			if (e->state == CONNECTING)
				pxd_quiet_log(&r->quiet, PX_LOG_WARN, "the next relay %s does not answer",
					r->next_name);
			else
				pxd_quiet_log(&r->quiet, PX_LOG_INFO,
					"%s: the other site did not come within %d s; closed %s",
					pxd_stream_text(&e->pre, text), (int)(r->wait_ms / 1000), e->peer);
			pxd_end_close(e, false);
			again = true;
			break;
		}
	} while (again);
}

static void on_signal(uv_signal_t *s, int number)
{
	struct pxd_relay *r = s->data;

	if (number == SIGUSR1) {
		pxd_relay_who(r);
		return;
	}
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
	char number[12], text[PXD_PEER_TEXT];
	int rc, bad = 0;
	socklen_t len;

	snprintf(number, sizeof number, "%d", port);
	rc = getaddrinfo(host, number, &hints, &list);
	if (rc != 0) {
		px_log(PX_LOG_ERROR,
			"cannot find the address %s to listen on: %s; name an address of this machine",
			host ? host : "*", gai_strerror(rc));
		return 2;
	}
	for (struct addrinfo *i = list; i && r->door.nsocks < PXD_DOOR_ADDRESSES; i = i->ai_next) {
		if (port == 0 && r->door.nsocks > 0) /* any free port, but the same for all */
			port_set(i->ai_addr, ntohs(((struct sockaddr_in *)&a)->sin_port));
		rc = pxd_door_listen(&r->door, i->ai_addr, i->ai_addrlen, false);
		if (rc < 0) {
			bad = rc;
			continue;
		}
		len = sizeof a;
		getsockname(r->door.sock[r->door.nsocks - 1].fd, (struct sockaddr *)&a, &len);
		px_log(PX_LOG_INFO, "listening on %s", pxd_peer_text(&a, text));
	}
	freeaddrinfo(list);
	if (r->door.nsocks > 0)
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
	fprintf(stderr,
		"usage: pacxd --relay [HOST:]PORT [--next HOST:PORT] [--wait SECONDS] [--job JOB]... [--door "
		"FILE]\n"
		"Two sites that cannot reach each other meet here: relay: HOST:PORT in the hostfile; see "
		"pacxd(8).\n");
	return 2;
}

/* A job that is served: its hash, or its id. */
static bool job_add(struct pxd_relay *r, const char *text)
{
	uint8_t *hash = r->job[r->njobs];
	int n = 0, used = 0;

	if (r->njobs == PXD_RELAY_JOBS || !*text)
		return false;
	while (n < PX_JOBHASH_SIZE && sscanf(text + 2 * n, "%2hhx%n", &hash[n], &used) == 1 && used == 2)
		n++;
	if (n != PX_JOBHASH_SIZE || text[2 * PX_JOBHASH_SIZE])
		pxd_jobhash(text, hash);
	r->njobs++;
	return true;
}

static int door_key_load(struct pxd_relay *r, const char *path)
{
	char why[PXD_WHY];

	if (!path)
		return 0;
	if (pxd_key_load(path, r->door_bytes, why, sizeof why) < 0) {
		px_log(PX_LOG_ERROR, "--door: %s", why);
		return 2;
	}
	r->door_key = r->door_bytes;
	return 0;
}

/* The loop and all that lives on it. 0, or an exit status after a message. */
static int relay_open(struct pxd_relay *r)
{
	px_list_init(&r->ends);
	pxd_quiet_init(&r->quiet);
	pxd_crowd_init(&r->waiting, pxd_crowd_share(8, WAITING_MAX));
	pxd_crowd_init(&r->paired, pxd_crowd_share(2, PAIRED_MAX));
	if (uv_loop_init(&r->loop) < 0 || uv_timer_init(&r->loop, &r->sweep) < 0 ||
		uv_signal_init(&r->loop, &r->term) < 0 || uv_signal_init(&r->loop, &r->intr) < 0 ||
		uv_signal_init(&r->loop, &r->usr1) < 0) {
		px_log(PX_LOG_ERROR, "cannot make an event loop");
		return 2;
	}
	r->sweep.data = r->term.data = r->intr.data = r->usr1.data = r;
	uv_signal_start(&r->term, on_signal, SIGTERM);
	uv_signal_start(&r->intr, on_signal, SIGINT);
	uv_signal_start(&r->usr1, on_signal, SIGUSR1);
	r->door = (struct pxd_door){ .loop = &r->loop, .quiet = &r->quiet, .came = came, .owner = r };
	return pxd_door_init(&r->door) < 0 ? 2 : 0;
}

int pxd_relay_main(int argc, char **argv)
{
	static struct pxd_relay r;
	char *host = NULL, *next_host = NULL, *door = NULL;
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
		} else if (strcmp(argv[i], "--job") == 0) {
			good = job_add(&r, argv[i + 1]);
		} else if (strcmp(argv[i], "--door") == 0 && !door) {
			door = argv[i + 1];
		} else {
			good = false;
		}
	}
	if (!good) {
		usage();
		goto out;
	}
	r.wait_ms = (uint64_t)seconds * 1000;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	signal(SIGPIPE, SIG_IGN);
	if (door_key_load(&r, door) != 0 || (next_host && next_find(&r, next_host, next_port) != 0) ||
		relay_open(&r) != 0)
		goto out;
	rc = door_open(&r, host, port);
	if (rc != 0)
		goto out;
	uv_timer_start(&r.sweep, on_sweep, SWEEP_MS, SWEEP_MS);
	uv_run(&r.loop, UV_RUN_DEFAULT);
	rc = uv_loop_close(&r.loop) == 0 ? 0 : 1; /* 1: something was forgotten; tests look at that */
out:
	free(host);
	free(next_host);
	return rc;
}
