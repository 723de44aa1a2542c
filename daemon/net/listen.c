/* listen.c: see listen.h. */
#include "listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "conn.h"
#include "err.h"
#include "handoff.h"
#include "probing.h"
#include "tls.h"
#include "wait.h"

#define LINGER_MS  1000   /* a refused peer has this long to read why */
#define LINGER_MAX 65536  /* and may send this much meanwhile */
#define PROBE_MS   30000  /* pacxctl has this long for its questions */
#define PROBE_MAX  262144 /* and may leave this much of the answers unread */

/* A connection before its hello, or one that has been refused and shall read why. */
struct half {
	struct px_list l;
	struct pxd_listen *listen;
	struct pxd_crowd *crowd; /* whose place it has, NULL = one of its own */
	struct pxd_crowd_place place;
	struct pxd_conn *conn;
	uv_timer_t timer;
	bool refused;
	struct px_preamble pre;
	struct pxd_hand hand;
	size_t ignored;
	struct px_probing_side *probe; /* it is no stream of a link but pacxctl: doctor, probe */
};

static void on_timer_closed(uv_handle_t *h)
{
	free(h->data);
}

static void half_leave(struct half *h)
{
	if (h->crowd)
		pxd_crowd_leave(h->crowd, &h->place);
	h->crowd = NULL;
}

/* Forget the half-open connection; its pxd_conn has been closed or given away. */
static void half_drop(struct half *h)
{
	half_leave(h);
	px_list_del(&h->l);
	h->listen->nrefused -= h->refused;
	h->listen->nprobes -= h->probe != NULL;
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

	pxd_node_of(t->loop)->events++;
	if (!h->refused && !h->probe)
		pxd_quiet_log(&h->listen->quiet, PX_LOG_WARN,
			"closed a connection from %s: no complete %s within %d s", h->conn->peer,
			h->conn->shaking ? "TLS handshake" : "HELLO", PXD_HAND_MS / 1000);
	half_close(h);
}

static void refuse(struct half *h, const char *reason)
{
	struct pxd_listen *l = h->listen;

	pxd_quiet_log(&l->quiet, PX_LOG_WARN, "refused a connection from %s: %s", h->conn->peer, reason);
	l->turned_away++;
	if (pxd_hand_put_refuse(h->conn, reason) < 0 || l->nrefused >= PXD_REFUSED_PLACES) {
		half_close(h);
		return;
	}
	half_leave(h); /* its place is for somebody with a chance */
	h->refused = true;
	l->nrefused++;
	/* Closing with unread bytes would reset the connection, and the peer would never read the reason. */
	pxd_conn_shut(h->conn);
	uv_timer_start(&h->timer, on_limit, LINGER_MS, 0);
}

static void turn_away(struct half *h, const char *what)
{
	pxd_quiet_log(&h->listen->quiet, PX_LOG_WARN, "closed a connection from %s: %s", h->conn->peer, what);
	h->listen->turned_away++;
	half_close(h);
}

/* probe_start: it is pacxctl that comes: say who we are, until it goes or its time is over. */
static bool probe_start(struct half *h)
{
	const struct pxd_node *d = h->listen->d;
	struct px_probing_side *side = h->listen->nprobes < PXD_PROBE_PLACES ? calloc(1, sizeof *side) : NULL;

	if (!side)
		return false;
	h->listen->nprobes++;
	side->id = (struct px_probing_id){ .protocol = PX_PROTOCOL_VERSION,
		.site = (uint16_t)d->self,
		.nsites = (uint16_t)d->hosts->nsites,
		.gateway = (uint16_t)d->gateway,
		.flags = PX_PROBING_JOB,
		.repr = d->hello.repr };
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
	*n = h->refused ? sizeof waste : pxd_hand_want(&h->hand);
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
	rc = pxd_hand_get(&h->hand, &type, &hello, reason);
	if (rc == PX_ESHORT)
		return;
	if (l->d->reads == h->pre.reversed) {
		turn_away(h, "its preamble proves nothing, so it was not handed over; it has the key all the "
			     "same");
		return;
	}
	if (rc == 0 && type == PX_F_REFUSE) {
		pxd_quiet_log(&l->quiet, PX_LOG_WARN, "%s refused us: %s", c->peer, reason);
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
	l->d->peers->linked(l->d->owner, &h->pre, c, &hello);
}

static void half_lost(struct pxd_conn *c, const char *why)
{
	struct half *h = c->owner;

	if (!h->refused && (!h->probe || c->shaking))
		pxd_quiet_log(&h->listen->quiet, PX_LOG_WARN,
			"lost a connection from %s before its %s was complete: %s", c->peer,
			c->shaking ? "TLS handshake" : "HELLO", why);
	if (c->shaking)
		h->listen->turned_away++;
	half_close(h);
}

static const struct pxd_conn_ops half_ops = { .room = half_room, .got = half_got, .lost = half_lost };

static struct half *half_new(struct pxd_listen *l, int fd, const struct px_preamble *p)
{
	struct half *h = calloc(1, sizeof *h);

	if (!h || uv_timer_init(&l->d->loop, &h->timer) < 0) {
		free(h);
		close(fd);
		return NULL;
	}
	h->listen = l;
	h->pre = *p;
	h->timer.data = h;
	h->conn = pxd_conn_new(&l->d->loop, fd, false, &half_ops, h);
	if (!h->conn) {
		uv_close((uv_handle_t *)&h->timer, on_timer_closed);
		return NULL;
	}
	px_list_push(&l->half, &h->l);
	uv_timer_start(&h->timer, on_limit, PXD_HAND_MS, 0);
	return h;
}

/* A place in a crowd; when it is full somebody else loses his. */
static bool crowd_enter(struct half *h, struct pxd_crowd *crowd, const struct sockaddr_storage *from)
{
	if (crowd->n >= crowd->most) {
		struct half *out = px_list_entry(pxd_crowd_victim(crowd), struct half, place);

		pxd_quiet_log(&h->listen->quiet, PX_LOG_WARN,
			"closed a connection from %s: %d connections wait for their HELLO, and this one was "
			"drawn",
			out->conn->peer, crowd->n);
		h->listen->turned_away++;
		half_close(out);
	}
	if (pxd_crowd_join(crowd, &h->place, (const struct sockaddr *)from) < 0)
		return false;
	h->crowd = crowd;
	return true;
}

/* One place for each stream: who has dialled anew will not go on with an older connection. A test that has proved itself by TLS stays. */
static void older_close(struct pxd_listen *l, const struct px_preamble *p)
{
	px_list_each(it, &l->half)
	{
		struct half *h = px_list_entry(it, struct half, l);

		if (!h->crowd && !h->refused && (!h->probe || h->conn->shaking) &&
			h->pre.reversed == p->reversed && px_preamble_same(&h->pre, p)) {
			half_close(h);
			return;
		}
	}
}

/* Handshakes of those who have proved nothing take no more of our time than this. */
static bool handshake_allowed(struct pxd_listen *l)
{
	uint64_t now = px_now_ns();

	l->handshakes += (double)(now - l->refilled) / 1e9 * PXD_UNPROVED_PER_S;
	if (l->handshakes > PXD_UNPROVED_PLACES)
		l->handshakes = PXD_UNPROVED_PLACES;
	l->refilled = now;
	if (l->handshakes < 1)
		return false;
	l->handshakes -= 1;
	return true;
}

static void stranger_reset(
	struct pxd_listen *l, int fd, const struct sockaddr_storage *from, const char *what)
{
	char who[PXD_PEER_TEXT];

	pxd_peer_text(from, who);
	pxd_quiet_log(&l->quiet, PX_LOG_WARN, "closed a connection from %s: %s", who, what);
	l->turned_away++;
	pxd_door_reset(fd);
}

/* This stream is ours: a place for it, and on with the handshake. */
static void half_begin(
	struct pxd_listen *l, int fd, const struct sockaddr_storage *from, const struct px_preamble *p)
{
	struct pxd_node *d = l->d;
	bool proved = p->tls && pxd_proof_new(&l->newest, pxd_tls_door(d->tls), p);
	struct half *h;

	if (p->tls && !proved && !handshake_allowed(l)) {
		stranger_reset(
			l, fd, from, "its preamble does not prove the job's key, and there are many like it");
		return;
	}
	if (proved)
		older_close(l, p);
	h = half_new(l, fd, p);
	if (!h)
		return;
	if (from->ss_family != AF_UNSPEC)
		snprintf(h->conn->peer, sizeof h->conn->peer, "%.79s",
			pxd_peer_text(from, (char[PXD_PEER_TEXT]){ "" }));
	if ((!proved && !crowd_enter(h, p->tls ? &l->unproved : &l->plain, from)) ||
		(p->kind == PX_PRE_PROBE && !probe_start(h)))
		half_close(h);
	else if (p->tls)
		pxd_conn_secure(h->conn, pxd_tls_server(d->tls, h->conn->fd));
}

/* What is wrong with a preamble of our job; NULL = nothing. */
static const char *preamble_judge(const struct pxd_node *d, const struct px_preamble *p)
{
	int self = p->reversed ? p->from : p->to, peer = p->reversed ? p->to : p->from;
	bool plain;

	if (self != d->self || peer >= d->hosts->nsites ||
		(p->reversed ? p->from_gateway : p->to_gateway) != d->gateway ||
		(p->reversed ? p->to_gateway : p->from_gateway) >= d->hosts->sites[peer].ngateways ||
		p->stream >= PXD_STREAMS_MAX)
		return "it wants another site or gateway; use the same hostfile on all sites, with one port "
		       "for each";
	if (p->kind == PX_PRE_PROBE && p->reversed)
		return "it wants to test what is not here";
	plain = pxd_hosts_link(d->hosts, p->from, p->to)->plain;
	if (plain == (p->tls != 0))
		return plain ? "it wants TLS, but this link is written as security: none"
			     : "it wants no TLS, but this link needs it";
	return NULL;
}

static void came(void *owner, int fd, const struct sockaddr_storage *from, const struct px_preamble *p)
{
	static const char other[] =
		"it is of another job; start all sites with the same hostfile and PACX_JOB";
	struct pxd_listen *l = owner;
	struct pxd_node *d = l->d;
	const char *wrong;
	struct half *h;

	if (memcmp(p->jobhash, d->jobhash, sizeof p->jobhash) != 0) {
		h = p->tls ? NULL : half_new(l, fd, p);
		if (h)
			refuse(h, other);
		else if (p->tls)
			stranger_reset(l, fd, from, other);
		return;
	}
	wrong = preamble_judge(d, p);
	if (wrong)
		stranger_reset(l, fd, from, wrong);
	else if (p->reversed && d->reads && (!p->tls || pxd_proof_good(pxd_tls_door(d->tls), p)))
		pxd_handoff_give(&l->give, fd, p);
	else
		half_begin(l, fd, from, p);
}

void pxd_listen_adopt(struct pxd_listen *l, int fd, const struct px_preamble *p)
{
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof from;

	if (getpeername(fd, (struct sockaddr *)&from, &len) < 0)
		from.ss_family = AF_UNSPEC;
	came(l, fd, &from, p);
}

void pxd_listen_init(struct pxd_listen *l, struct pxd_node *d)
{
	l->d = d;
	pxd_quiet_init(&l->quiet);
	l->refilled = px_now_ns();
	l->handshakes = PXD_UNPROVED_PLACES;
	px_list_init(&l->half);
	pxd_crowd_init(&l->plain, pxd_crowd_share(8, PXD_PLAIN_PLACES));
	pxd_crowd_init(&l->unproved, PXD_UNPROVED_PLACES);
}

int pxd_listen_open(struct pxd_listen *l)
{
	struct pxd_node *d = l->d;
	const struct pxd_gateway *g = &d->hosts->sites[d->self].gateways[d->gateway];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV },
			*list = NULL;
	char port[12], addr[NI_MAXHOST];
	int rc, good = 0, bad = 0;
	bool misled;

	snprintf(port, sizeof port, "%d", g->bind_port);
	rc = getaddrinfo(g->bind_host, port, &hints, &list);
	if (rc != 0) {
		pxd_fail(d, PXD_EXIT_CONFIG,
			"cannot find the address %s, where this site shall listen: %s; "
			"name an address of this machine with bind: in the hostfile",
			g->bind_host, gai_strerror(rc));
		return PX_ECONF;
	}
	l->door = (struct pxd_door){
		.loop = &d->loop, .quiet = &l->quiet, .events = &d->events, .came = came, .owner = l
	};
	rc = pxd_door_init(&l->door);
	if (rc == 0)
		rc = pxd_giver_open(&l->give, d, &l->quiet);
	for (struct addrinfo *a = list; a && rc == 0 && l->door.nsocks < PXD_DOOR_ADDRESSES; a = a->ai_next) {
		rc = pxd_door_listen(&l->door, a->ai_addr, a->ai_addrlen, true);
		if (rc == 0)
			good++;
		else
			bad = rc;
	}
	misled = good && pxd_misled(d->hosts, d->self, g->bind_host, list, addr);
	freeaddrinfo(list);
	if (misled)
		px_log(PX_LOG_WARN,
			"%s is %s here, by /etc/hosts: the daemon listens where nobody on another machine "
			"can reach it; say "
			"bind: 0.0.0.0 for site %s, or give %s its own address in /etc/hosts",
			g->bind_host, addr, pxd_site_name(d, d->self), g->bind_host);
	if (good)
		return PX_OK;
	pxd_fail(d, PXD_EXIT_CONFIG, "cannot listen on %s port %d: %s; %s", g->bind_host, g->bind_port,
		uv_strerror(bad),
		bad == UV_EADDRINUSE ? "another process has this port: choose another one in the hostfile"
				     : "name an address of this machine with bind: in the hostfile");
	return PX_ECONF;
}

void pxd_listen_close(struct pxd_listen *l)
{
	pxd_door_close(&l->door);
	pxd_giver_close(&l->give);
	while (!px_list_empty(&l->half))
		half_close(px_list_entry(l->half.next, struct half, l));
	pxd_crowd_fini(&l->plain);
	pxd_crowd_fini(&l->unproved);
	pxd_proof_forget(&l->newest);
}
