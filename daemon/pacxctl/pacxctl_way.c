/* pacxctl_way.c: see pacxctl_way.h. */
#include "pacxctl_way.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "err.h"
#include "frame.h" /* PX_PROTOCOL_VERSION */
#include "hostfile_text.h"
#include "proof.h"
#include "via.h"
#include "wait.h"

/* Where the first connection goes: the peer's gateway, its relay, or a proxy before either. */
struct target {
	char host[256];
	int port;
};

static uint64_t until(const struct pxd_way *w)
{
	return px_now_ns() + (uint64_t)w->ctl->o.timeout_ms * 1000000;
}

static const struct pxd_link_opts *opts(const struct pxd_way *w)
{
	return pxd_hosts_link(w->ctl->h, w->self, w->peer);
}

static const char *peer_name(const struct pxd_way *w)
{
	return w->ctl->h->sites[w->peer].name;
}

static void good(struct pxd_way *w, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void good(struct pxd_way *w, const char *name, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (w->hop)
		w->hop(w->arg, name, true, text, NULL);
}

/* bad: the hop has failed with w->why; fmt says what to do. Returns rc. */
static int bad(struct pxd_way *w, int rc, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static int bad(struct pxd_way *w, int rc, const char *name, const char *fmt, ...)
{
	char todo[768];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(todo, sizeof todo, fmt, ap);
	va_end(ap);
	if (w->hop)
		w->hop(w->arg, name, false, w->why, todo);
	return rc;
}

static void because(struct pxd_way *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void because(struct pxd_way *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->why, sizeof w->why, fmt, ap);
	va_end(ap);
}

/* A resolver has no deadline of its own; it runs in a thread, which is left behind when it is too late. */
struct lookup {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char host[256], port[12];
	struct addrinfo *list;
	int rc;
	bool done, left;
};

static void lookup_free(struct lookup *l)
{
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->changed);
	if (l->list)
		freeaddrinfo(l->list);
	free(l);
}

static void *lookup_run(void *arg)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *list = NULL;
	struct lookup *l = arg;
	int rc = getaddrinfo(l->host, l->port, &hints, &list);
	bool left;

	pthread_mutex_lock(&l->lock);
	l->rc = rc;
	l->list = rc == 0 ? list : NULL;
	l->done = true;
	left = l->left;
	pthread_cond_signal(&l->changed);
	pthread_mutex_unlock(&l->lock);
	if (left)
		lookup_free(l);
	return NULL;
}

/* resolve: addresses of the target, for freeaddrinfo; NULL after a failed hop. */
static struct addrinfo *resolve(struct pxd_way *w, const struct target *t)
{
	struct lookup *l = calloc(1, sizeof *l);
	struct addrinfo *list = NULL;
	struct timespec end;
	pthread_t thread;
	char text[200] = "", addr[NI_MAXHOST];
	int rc = 0, n = 0;
	bool done = false;

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	snprintf(l->host, sizeof l->host, "%s", t->host);
	snprintf(l->port, sizeof l->port, "%d", t->port);
	if (pthread_create(&thread, NULL, lookup_run, l) != 0) {
		lookup_free(l);
		because(w, "cannot start a thread");
		bad(w, PX_EIO, "name", "try again when the machine has room");
		return NULL;
	}
	pthread_detach(thread);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += w->ctl->o.timeout_ms / 1000 + 1;
	pthread_mutex_lock(&l->lock);
	while (!l->done && rc == 0)
		rc = pthread_cond_timedwait(&l->changed, &l->lock, &end);
	done = l->done;
	l->left = !done;
	rc = l->rc;
	list = l->list;
	l->list = NULL;
	pthread_mutex_unlock(&l->lock);
	if (done)
		lookup_free(l);
	if (!list) {
		because(w, "the address of %s cannot be found: %s", t->host,
			done ? gai_strerror(rc) : "the name server does not answer");
		bad(w, PX_EIO, "name",
			"correct the name in the hostfile, or write the address; test with: getent hosts %s",
			t->host);
		return NULL;
	}
	for (const struct addrinfo *a = list; a && n < 4; a = a->ai_next, n++) {
		char name[NI_MAXHOST] = "?";
		size_t at = strlen(text);

		getnameinfo(a->ai_addr, a->ai_addrlen, name, sizeof name, NULL, 0, NI_NUMERICHOST);
		snprintf(text + at, sizeof text - at, "%s%s", n ? ", " : "", name);
	}
	if (strcmp(t->host, w->ctl->h->sites[w->peer].gateways[w->gateway].host) == 0 &&
		pxd_misled(w->ctl->h, w->peer, t->host, list, addr)) {
		because(w, "%s is %s here: that is this machine itself, by its /etc/hosts", t->host, addr);
		bad(w, PX_EIO, "name",
			"give %s the address of the other machine in /etc/hosts here, or write "
			"that address to host: in the hostfile",
			t->host);
		freeaddrinfo(list);
		return NULL;
	}
	good(w, "name", "%s is %s", t->host, text);
	return list;
}

/* source_bind: firewalls with rules for the source port; the same choice as the daemons'. 0 or -errno. */
static int source_bind(const struct pxd_way *w, int fd, int family)
{
	int one = 1, first = opts(w)->source_port + w->stream, rc = 0;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	for (int i = 0; i < 16; i++) {
		uint16_t port = htons((uint16_t)(first + i));
		struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = port };
		struct sockaddr_in6 a6 = {
			.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = in6addr_any
		};

		rc = family == AF_INET6 ? bind(fd, (struct sockaddr *)&a6, sizeof a6)
					: bind(fd, (struct sockaddr *)&a4, sizeof a4);
		if (rc == 0 || errno != EADDRINUSE)
			break;
	}
	return rc < 0 ? -errno : 0;
}

/* connect_one: a connected, nonblocking socket, or -errno. */
static int connect_one(const struct pxd_way *w, const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0, one = 1;
	const char *cc = opts(w)->congestion;
	struct pxd_talk t;
	socklen_t len = sizeof rc;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (cc)
		(void)!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc));
	if (opts(w)->source_port)
		rc = source_bind(w, fd, a->ai_family);
	if (rc == 0 && connect(fd, a->ai_addr, a->ai_addrlen) < 0)
		rc = -errno;
	if (rc == -EINPROGRESS) {
		pxd_talk_init(&t, fd);
		if (!pxd_talk_wait(&t, false, true, until(w)))
			rc = -ETIMEDOUT;
		else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &rc, &len) == 0)
			rc = -rc;
	}
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* connect_failed: what it means, in the words of who has to act. */
static int connect_failed(struct pxd_way *w, const struct target *t, int e, const char *who)
{
	const struct pxd_site *s = &w->ctl->h->sites[w->peer];
	char ask[PXD_HOSTPORT + 20], place[PXD_HOSTPORT];

	switch (e) {
	case ECONNREFUSED:
		because(w, "%s port %d refuses the connection: nothing listens there", t->host, t->port);
		if (strcmp(who, "gateway") == 0)
			snprintf(ask, sizeof ask, "pacxctl answer -f %s --site %s", w->ctl->h->file, s->name);
		else if (strcmp(who, "relay") == 0)
			snprintf(ask, sizeof ask, "pacxd --relay %s", pxd_hostport(t->host, t->port, place));
		else
			return bad(
				w, PX_EIO, "connect", "correct proxy: in the hostfile, or start the proxy");
		return bad(w, PX_EIO, "connect",
			"start there: %s (or the job); if it runs, correct host and port in the hostfile, or "
			"a firewall refuses",
			ask);
	case ETIMEDOUT:
		because(w, "no answer from %s port %d within %g s", t->host, t->port,
			(double)w->ctl->o.timeout_ms / 1000);
		return bad(w, PX_ETIMEOUT, "connect",
			"a firewall drops it, or the host is down: have TCP port %d of %s opened for this "
			"machine",
			t->port, t->host);
	case EHOSTUNREACH:
	case ENETUNREACH:
		because(w, "no route to %s: %s", t->host, strerror(e));
		return bad(w, PX_EIO, "connect",
			"this machine cannot reach that network; go through proxy:, dial: COMMAND or relay:, "
			"or choose another host:");
	case EADDRNOTAVAIL:
	case EADDRINUSE:
	case EACCES:
		if (opts(w)->source_port) {
			because(w, "source port %d: %s", opts(w)->source_port + w->stream, strerror(e));
			return bad(w, PX_EIO, "connect",
				"choose another tcp: {source_port}, with %d free ones behind it",
				PXD_STREAMS_MAX);
		}
		/* fall through */
	default:
		because(w, "%s port %d: %s", t->host, t->port, strerror(e));
		return bad(w, PX_EIO, "connect", "see whether %s can be reached at all", t->host);
	}
}

static int dial_target(struct pxd_way *w, const struct target *t, const char *who)
{
	struct addrinfo *list = resolve(w, t);
	char from[NI_MAXHOST] = "?", to[NI_MAXHOST] = "?";
	struct sockaddr_storage here;
	socklen_t len = sizeof here;
	uint64_t start = 0;
	int fd = -EIO;

	if (!list)
		return PX_EIO;
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		start = px_now_ns();
		fd = connect_one(w, a);
		if (fd >= 0)
			getnameinfo(a->ai_addr, a->ai_addrlen, to, sizeof to, NULL, 0, NI_NUMERICHOST);
	}
	freeaddrinfo(list);
	if (fd < 0)
		return connect_failed(w, t, -fd, who);
	pxd_talk_init(&w->talk, fd);
	if (getsockname(fd, (struct sockaddr *)&here, &len) == 0)
		getnameinfo((struct sockaddr *)&here, len, from, sizeof from, NULL, 0, NI_NUMERICHOST);
	good(w, "connect", "%s port %d%s%s, from %s, in %.1f ms", to, t->port,
		strcmp(who, "gateway") == 0 ? "" : " of the ", strcmp(who, "gateway") == 0 ? "" : who, from,
		(double)(px_now_ns() - start) / 1e6);
	return 0;
}

/* through_proxy: the connection to the proxy becomes one to the target. */
static int through_proxy(struct pxd_way *w, const struct pxd_proxy *p, const struct target *t)
{
	uint8_t out[PXD_VIA_OUT], in[256];
	struct pxd_via v;
	size_t n = 0;
	char why[200];
	uint64_t end = until(w);
	int rc, say;

	if (pxd_via_start(&v, p, t->host, t->port, out, &n) < 0) {
		because(w, "%s port %d is nothing that a proxy can be asked for", t->host, t->port);
		return bad(w, PX_EINVAL, "proxy", "correct host: and port: in the hostfile");
	}
	for (;;) {
		rc = pxd_talk_send(&w->talk, out, n, end);
		n = pxd_via_want(&v);
		if (rc >= 0)
			rc = pxd_talk_recv(&w->talk, in, n < sizeof in ? (n ? n : 1) : sizeof in, end);
		if (rc < 0) {
			because(w, "the proxy %s: %s", p->host, w->talk.why);
			return bad(w, rc, "proxy", "see whether it is a proxy of this kind (socks5 or http)");
		}
		say = pxd_via_feed(&v, in, n < sizeof in ? (n ? n : 1) : sizeof in, out, &n, why, sizeof why);
		if (say < 0) {
			because(w, "the proxy %s: %s", p->host, why);
			return bad(w, say, "proxy",
				"have the proxy allow %s port %d, or correct proxy: in the hostfile", t->host,
				t->port);
		}
		if (say > 0)
			break;
	}
	good(w, "proxy", "it has connected to %s port %d", t->host, t->port);
	return 0;
}

/* connect_way: a connection on which the preamble can be sent. */
static int connect_way(struct pxd_way *w)
{
	const struct pxd_link_opts *o = opts(w);
	const struct pxd_gateway *g = &w->ctl->h->sites[w->peer].gateways[w->gateway];
	struct target t = { .port = g->port }, first;
	const char *who = o->relay ? "relay" : "gateway";
	struct pxd_proxy p = { .kind = PXD_PROXY_NONE };
	char *host = NULL;
	int rc, fd;

	snprintf(t.host, sizeof t.host, "%s", g->host);
	if (o->relay) {
		struct pxd_text text = { .file = "relay", .why = w->why, .cap = sizeof w->why };

		rc = pxd_value_endpoint(&text, (struct pxd_mark){ 0, 0 }, o->relay, &host, &t.port);
		if (rc < 0)
			return bad(w, rc, "name", "correct relay: in the hostfile");
		snprintf(t.host, sizeof t.host, "%s", host);
		free(host);
	}
	if (o->dial) {
		rc = pxd_via_command(o->dial, t.host, t.port, &fd, &w->pid);
		if (rc < 0) {
			because(w, "the command of dial: cannot be started: %s", px_strerror(rc));
			return bad(w, rc, "command", "correct dial: in the hostfile");
		}
		pxd_talk_init(&w->talk, fd);
		good(w, "command", "started: %s", o->dial);
		return 0;
	}
	first = t;
	if (o->proxy) {
		if (pxd_proxy_parse(o->proxy, &p) < 0) {
			because(w, "proxy: is no address of a proxy");
			return bad(w, PX_ECONF, "proxy", "correct proxy: in the hostfile");
		}
		snprintf(first.host, sizeof first.host, "%s", p.host);
		first.port = p.port;
		who = "proxy";
	}
	if (first.port == 0) {
		because(w, "site %s has no fixed port in the hostfile", peer_name(w));
		return bad(w, PX_ECONF, "connect",
			"write port: for it; without one pacxrun chooses when the job starts");
	}
	rc = dial_target(w, &first, who);
	if (rc >= 0 && o->proxy)
		rc = through_proxy(w, &p, &t);
	return rc;
}

/* no_pacx: the other side has not said a word of PACX; the words for what that can mean. */
static int no_pacx(struct pxd_way *w, int rc, const char *name)
{
	const struct pxd_link_opts *o = opts(w);
	const char *file = w->ctl->h->file, *site = peer_name(w);

	because(w, "%s", w->talk.why);
	if (o->relay && (rc == PX_ETIMEOUT || rc == PX_ECLOSED || rc == PX_EIO || strstr(w->why, "closed")))
		return bad(w, rc, name,
			"nobody has come to the other side of the relay; start at %s: pacxctl answer -f %s "
			"--site %s",
			site, file, site);
	if (o->dial && rc != PX_ETIMEOUT)
		return bad(w, rc, name,
			"the command of dial: has ended, or leads elsewhere; see what it has printed, and "
			"start at %s: pacxctl answer -f "
			"%s --site %s",
			site, file, site);
	if (rc == PX_ETIMEOUT)
		return bad(w, rc, name,
			"what listens there says nothing: it is not PACX, or a firewall lets a connection "
			"through but no bytes");
	if (strstr(w->why, "another key"))
		return bad(w, rc, name,
			"%s; a job that runs has a key of its own: set PACX_KEY_FILE, or end it and start "
			"pacxctl answer",
			w->keyed ? "copy the same key file (pacxctl keygen) to both sites with mode 600"
				 : "there is no key here: write key: for both sites, or set PACX_KEY_FILE");
	if (strstr(w->why, "wrong version") || strstr(w->why, "record"))
		return bad(w, rc, name,
			"another program has this port, or security: is not the same at both sites; correct "
			"port: in the hostfile");
	return bad(w, rc, name,
		"see what is printed there: another program may have the port, or the hostfile or PACX_JOB "
		"is not the same at both "
		"sites");
}

static int preamble_send(struct pxd_way *w, bool reversed, uint64_t end)
{
	struct px_preamble p = {
		.kind = PX_PRE_PROBE,
		.tls = !opts(w)->plain,
		.reversed = reversed,
		.from = (uint16_t)(reversed ? w->peer : w->self),
		.to = (uint16_t)(reversed ? w->self : w->peer),
		.to_gateway = (uint16_t)w->gateway,
		.stream = (uint16_t)w->stream,
	};
	uint8_t pre[PX_PREAMBLE_SIZE];

	memcpy(p.jobhash, w->ctl->jobhash, sizeof p.jobhash);
	pxd_proof_put(pxd_tls_door(w->tls), &p, pre);
	return pxd_talk_send(&w->talk, pre, sizeof pre, end);
}

static int greet(struct pxd_way *w)
{
	uint64_t end = until(w);
	int rc = preamble_send(w, false, end);

	if (opts(w)->plain)
		return rc < 0 ? no_pacx(w, rc, "pacx") : 0;
	if (rc >= 0)
		rc = pxd_talk_secure(&w->talk, w->tls, true, w->peer, end);
	if (rc < 0)
		return no_pacx(w, rc, "tls");
	if (w->keyed)
		good(w, "tls", "encrypted, and site %s has proved that it has the job's key", peer_name(w));
	else
		good(w, "tls",
			"encrypted; there is no key here, so who is there was not proved (pacxrun makes one "
			"for the job)");
	return 0;
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ask: a request and the head of its answer; refusals become why. */
static int ask(struct pxd_way *w, uint8_t op, const uint8_t *payload, size_t n, struct px_probing *answer,
	uint64_t end)
{
	uint8_t head[PX_PROBING_SIZE], text[PX_PROBING_WHY_MAX];
	int rc;

	px_probing_put(&(struct px_probing){ op, 0, n }, head);
	rc = pxd_talk_send(&w->talk, head, sizeof head, end);
	if (rc >= 0 && n)
		rc = pxd_talk_send(&w->talk, payload, n, end);
	if (rc >= 0)
		rc = pxd_talk_recv(&w->talk, head, sizeof head, end);
	if (rc < 0)
		return rc;
	if (px_probing_get(head, answer) < 0 || !answer->answer ||
		(answer->op != op && answer->op != PX_PROBING_REFUSED)) {
		snprintf(w->talk.why, sizeof w->talk.why, "what it answers is not of PACX");
		return PX_EPROTO;
	}
	if (answer->op == op)
		return 0;
	rc = pxd_talk_recv(&w->talk, text, (size_t)answer->n, end);
	if (rc >= 0)
		snprintf(w->talk.why, sizeof w->talk.why, "it refuses: %.*s", (int)answer->n,
			(const char *)text);
	return rc < 0 ? rc : PX_EAGAIN;
}

static int identity(struct pxd_way *w)
{
	const struct pxd_hosts *h = w->ctl->h;
	uint8_t body[PX_PROBING_ID];
	struct px_probing a;
	uint64_t sent = 0, got = 0, sent_mono, end = until(w);
	int rc = 0;

	for (int i = 0; i < 3 && rc == 0; i++) { /* the quickest of three says most about the clock */
		uint64_t clock = clock_ns(), rtt;

		sent_mono = px_now_ns();
		rc = ask(w, PX_PROBING_WHO, NULL, 0, &a, end);
		if (rc == 0)
			rc = pxd_talk_recv(&w->talk, body, sizeof body, end);
		rtt = px_now_ns() - sent_mono;
		if (rc == 0 && px_probing_get_id(body, &w->id) < 0) {
			snprintf(w->talk.why, sizeof w->talk.why, "what it answers is not of PACX");
			rc = PX_EPROTO;
		}
		if (rc == 0 && (i == 0 || rtt < got)) {
			got = rtt;
			sent = clock;
			w->clock_s = ((double)w->id.clock_ns - (double)sent - (double)rtt / 2) / 1e9;
		}
	}
	if (rc < 0)
		return no_pacx(w, rc, "pacx");
	w->rtt_us = (double)got / 1e3;
	if (w->id.site != w->peer || strcmp(w->id.name, peer_name(w)) != 0 || w->id.nsites != h->nsites ||
		(w->id.gateway != w->gateway && !opts(w)->relay)) {
		because(w, "it is site %s (%d of %d), gateway %d; gateway %d of %s (%d of %d) was dialled",
			w->id.name, w->id.site + 1, w->id.nsites, w->id.gateway, w->gateway, peer_name(w),
			w->peer + 1, h->nsites);
		return bad(w, PX_ESITE, "identity",
			"use the same hostfile at all sites, and give each site and gateway a port of its "
			"own");
	}
	good(w, "identity", "site %s, gateway %d, job %s%s", w->id.name, w->id.gateway, w->id.job,
		w->id.flags & PX_PROBING_JOB ? ", which runs" : "");
	if (w->id.protocol != PX_PROTOCOL_VERSION) {
		because(w, "it speaks version %d of the protocol (PACX %s), we %d (PACX %s)", w->id.protocol,
			w->id.version, PX_PROTOCOL_VERSION, PX_VERSION_TEXT);
		return bad(w, PX_EVERSION, "version", "install the same version of PACX at both sites");
	}
	good(w, "version", "PACX %s%s", w->id.version,
		strcmp(w->id.version, PX_VERSION_TEXT) == 0 ? ", as here"
							    : "; here is " PX_VERSION_TEXT
							      ", which understands it");
	if (w->clock_s > 3600 || w->clock_s < -3600) {
		because(w, "its clock is %.0f s %s", w->clock_s < 0 ? -w->clock_s : w->clock_s,
			w->clock_s < 0 ? "behind" : "ahead");
		return bad(w, PX_EIO, "clock",
			"set the clocks (NTP), or the times in the logs of the sites do not fit together");
	}
	good(w, "clock", "%+.3f s (give or take %.3f s)%s", w->clock_s, w->rtt_us / 2e6,
		w->clock_s > 1 || w->clock_s < -1 ? "; times in the logs of the sites differ as much" : "");
	return 0;
}

int pxd_way_echo(struct pxd_way *w, size_t n, uint64_t end)
{
	static const uint8_t zero[PX_PROBING_ECHO_MAX];
	static __thread uint8_t back[PX_PROBING_ECHO_MAX];
	struct px_probing a;
	int rc = ask(w, PX_PROBING_ECHO, zero, n, &a, end);

	if (rc == 0 && a.n != n) {
		snprintf(w->talk.why, sizeof w->talk.why, "what it answers is not of PACX");
		rc = PX_EPROTO;
	}
	return rc < 0 ? rc : pxd_talk_recv(&w->talk, back, n, end);
}

int pxd_way_mtu(struct pxd_way *w)
{
	int mss = 0, mtu = 0, rc;
	socklen_t len = sizeof mss;
	char text[64] = "";

	/* More than any packet: what is too long for a link on the way and not said so to us gets lost for good. */
	rc = pxd_way_echo(w, 32768, until(w));
	if (rc < 0) {
		because(w, "short packets pass, 32 KiB do not: %s", w->talk.why);
		return bad(w, rc, "mtu",
			"long packets are lost on the way: have firewalls pass ICMP \"fragmentation "
			"needed\", or lower the MTU (ip link set "
			"dev DEVICE mtu 1400)");
	}
	if (getsockopt(w->talk.fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) < 0)
		mss = 0;
	len = sizeof mtu;
	if (getsockopt(w->talk.fd, IPPROTO_IP, IP_MTU, &mtu, &len) < 0 &&
		getsockopt(w->talk.fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len) < 0)
		mtu = 0;
	if (mtu > 0)
		snprintf(text, sizeof text, "MTU %d, ", mtu);
	if (mss > 0)
		good(w, "mtu", "%ssegments of %d bytes; 32 KiB came back", text, mss);
	else
		good(w, "mtu", "32 KiB came back");
	return 0;
}

int pxd_way_open(struct pxd_way *w)
{
	int rc;

	w->talk = (struct pxd_talk){ .fd = -1 };
	w->pid = 0;
	rc = connect_way(w);
	if (rc >= 0)
		rc = greet(w);
	return rc < 0 ? rc : identity(w);
}

int pxd_way_meet(struct pxd_way *w)
{
	uint64_t end = px_now_ns() + UINT64_C(3600) * 1000000000;
	int rc;

	w->talk = (struct pxd_talk){ .fd = -1 };
	w->pid = 0;
	rc = connect_way(w);
	if (rc < 0)
		return rc;
	rc = preamble_send(w, true, until(w));
	if (rc >= 0 && !opts(w)->plain)
		rc = pxd_talk_secure(&w->talk, w->tls, false, 0, end);
	if (rc < 0)
		because(w, "%s", w->talk.why);
	return rc;
}

void pxd_way_close(struct pxd_way *w)
{
	pxd_talk_close(&w->talk);
	if (w->pid > 0)
		pxd_via_kill(w->pid);
	w->pid = 0;
}
