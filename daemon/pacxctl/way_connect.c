/* way_connect.c: see way_connect.h. */
#include "way_connect.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "err.h"
#include "text.h"
#include "via.h"
#include "via_command.h"
#include "wait.h"

/* Where the first connection goes: the peer's gateway, its relay, or a proxy before either. */
struct target {
	char host[256];
	int port;
};

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

static void addresses_text(const struct addrinfo *list, char *text, size_t cap)
{
	int n = 0;

	text[0] = '\0';
	for (const struct addrinfo *a = list; a && n < 4; a = a->ai_next, n++) {
		char name[NI_MAXHOST] = "?";
		size_t at = strlen(text);

		getnameinfo(a->ai_addr, a->ai_addrlen, name, sizeof name, NULL, 0, NI_NUMERICHOST);
		snprintf(text + at, cap - at, "%s%s", n ? ", " : "", name);
	}
}

/* resolve: addresses of the target, for freeaddrinfo; NULL after a failed hop. */
static struct addrinfo *resolve(struct pxd_way *w, const struct target *t)
{
	struct lookup *l = calloc(1, sizeof *l);
	struct addrinfo *list = NULL;
	struct timespec end;
	pthread_t thread;
	char text[200], addr[NI_MAXHOST];
	int rc = 0;
	bool done = false;

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	snprintf(l->host, sizeof l->host, "%s", t->host);
	snprintf(l->port, sizeof l->port, "%d", t->port);
	if (pthread_create(&thread, NULL, lookup_run, l) != 0) {
		lookup_free(l);
		pxd_way_because(w, "cannot start a thread");
		pxd_way_bad(w, PX_EIO, "name", "try again when the machine has room");
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
		pxd_way_because(w, "the address of %s cannot be found: %s", t->host,
			done ? gai_strerror(rc) : "the name server does not answer");
		pxd_way_bad(w, PX_EIO, "name",
			"correct the name in the hostfile, or write the address; test with: getent hosts %s",
			t->host);
		return NULL;
	}
	if (strcmp(t->host, w->ctl->h->sites[w->peer].gateways[w->gateway].host) == 0 &&
		pxd_misled(w->ctl->h, w->peer, t->host, list, addr)) {
		pxd_way_because(
			w, "%s is %s here: that is this machine itself, by its /etc/hosts", t->host, addr);
		pxd_way_bad(w, PX_EIO, "name",
			"give %s the address of the other machine in /etc/hosts here, or write "
			"that address to host: in the hostfile",
			t->host);
		freeaddrinfo(list);
		return NULL;
	}
	addresses_text(list, text, sizeof text);
	pxd_way_good(w, "name", "%s is %s", t->host, text);
	return list;
}

/* source_bind: firewalls with rules for the source port; the same choice as the daemons'. 0 or -errno. */
static int source_bind(const struct pxd_way *w, int fd, int family)
{
	int one = 1, first = pxd_way_opts(w)->source_port + w->stream, rc = 0;

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
	const char *cc = pxd_way_opts(w)->congestion;
	struct pxd_talk t;
	socklen_t len = sizeof rc;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (cc)
		(void)!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc));
	if (pxd_way_opts(w)->source_port)
		rc = source_bind(w, fd, a->ai_family);
	if (rc == 0 && connect(fd, a->ai_addr, a->ai_addrlen) < 0)
		rc = -errno;
	if (rc == -EINPROGRESS) {
		pxd_talk_init(&t, fd);
		if (!pxd_talk_wait(&t, false, true, pxd_way_until(w)))
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
		pxd_way_because(
			w, "%s port %d refuses the connection: nothing listens there", t->host, t->port);
		if (strcmp(who, "gateway") == 0)
			snprintf(ask, sizeof ask, "pacxctl answer -f %s --site %s", w->ctl->h->file, s->name);
		else if (strcmp(who, "relay") == 0)
			snprintf(ask, sizeof ask, "pacxd --relay %s", pxd_hostport(t->host, t->port, place));
		else
			return pxd_way_bad(
				w, PX_EIO, "connect", "correct proxy: in the hostfile, or start the proxy");
		return pxd_way_bad(w, PX_EIO, "connect",
			"start there: %s (or the job); if it runs, correct host and port in the hostfile, or "
			"a firewall refuses",
			ask);
	case ETIMEDOUT:
		pxd_way_because(w, "no answer from %s port %d within %g s", t->host, t->port,
			(double)w->ctl->o.timeout_ms / 1000);
		return pxd_way_bad(w, PX_ETIMEOUT, "connect",
			"a firewall drops it, or the host is down: have TCP port %d of %s opened for this "
			"machine",
			t->port, t->host);
	case EHOSTUNREACH:
	case ENETUNREACH:
		pxd_way_because(w, "no route to %s: %s", t->host, strerror(e));
		return pxd_way_bad(w, PX_EIO, "connect",
			"this machine cannot reach that network; go through proxy:, dial: COMMAND or relay:, "
			"or choose another host:");
	case EADDRNOTAVAIL:
	case EADDRINUSE:
	case EACCES:
		if (pxd_way_opts(w)->source_port) {
			pxd_way_because(w, "source port %d: %s", pxd_way_opts(w)->source_port + w->stream,
				strerror(e));
			return pxd_way_bad(w, PX_EIO, "connect",
				"choose another tcp: {source_port}, with %d free ones behind it",
				PXD_STREAMS_MAX);
		}
		/* fall through */
	default:
		pxd_way_because(w, "%s port %d: %s", t->host, t->port, strerror(e));
		return pxd_way_bad(w, PX_EIO, "connect", "see whether %s can be reached at all", t->host);
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
	pxd_way_good(w, "connect", "%s port %d%s%s, from %s, in %.1f ms", to, t->port,
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
	uint64_t end = pxd_way_until(w);
	int rc, say;

	if (pxd_via_start(&v, p, t->host, t->port, out, &n) < 0) {
		pxd_way_because(w, "%s port %d is nothing that a proxy can be asked for", t->host, t->port);
		return pxd_way_bad(w, PX_EINVAL, "proxy", "correct host: and port: in the hostfile");
	}
	for (;;) {
		rc = pxd_talk_send(&w->talk, out, n, end);
		n = pxd_via_want(&v);
		if (rc >= 0)
			rc = pxd_talk_recv(&w->talk, in, n < sizeof in ? (n ? n : 1) : sizeof in, end);
		if (rc < 0) {
			pxd_way_because(w, "the proxy %s: %s", p->host, w->talk.why);
			return pxd_way_bad(
				w, rc, "proxy", "see whether it is a proxy of this kind (socks5 or http)");
		}
		say = pxd_via_feed(&v, in, n < sizeof in ? (n ? n : 1) : sizeof in, out, &n, why, sizeof why);
		if (say < 0) {
			pxd_way_because(w, "the proxy %s: %s", p->host, why);
			return pxd_way_bad(w, say, "proxy",
				"have the proxy allow %s port %d, or correct proxy: in the hostfile", t->host,
				t->port);
		}
		if (say > 0)
			break;
	}
	pxd_way_good(w, "proxy", "it has connected to %s port %d", t->host, t->port);
	return 0;
}

int pxd_way_connect(struct pxd_way *w)
{
	const struct pxd_link_opts *o = pxd_way_opts(w);
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
			return pxd_way_bad(w, rc, "name", "correct relay: in the hostfile");
		snprintf(t.host, sizeof t.host, "%s", host);
		free(host);
	}
	if (o->dial) {
		rc = pxd_via_command(o->dial, t.host, t.port, &fd, &w->pid);
		if (rc < 0) {
			pxd_way_because(w, "the command of dial: cannot be started: %s", px_strerror(rc));
			return pxd_way_bad(w, rc, "command", "correct dial: in the hostfile");
		}
		pxd_talk_init(&w->talk, fd);
		pxd_way_good(w, "command", "started: %s", o->dial);
		return 0;
	}
	first = t;
	if (o->proxy) {
		if (pxd_proxy_parse(o->proxy, &p) < 0) {
			pxd_way_because(w, "proxy: is no address of a proxy");
			return pxd_way_bad(w, PX_ECONF, "proxy", "correct proxy: in the hostfile");
		}
		snprintf(first.host, sizeof first.host, "%s", p.host);
		first.port = p.port;
		who = "proxy";
	}
	if (first.port == 0) {
		pxd_way_because(w, "site %s has no fixed port in the hostfile", pxd_way_peer(w));
		return pxd_way_bad(w, PX_ECONF, "connect",
			"write port: for it; without one pacxrun chooses when the job starts");
	}
	rc = dial_target(w, &first, who);
	if (rc >= 0 && o->proxy)
		rc = through_proxy(w, &p, &t);
	return rc;
}
