/* answer.c: pacxctl answer: stands in for the daemons of a site while no job runs, so that doctor and probe of other sites
 * find somebody.
 *
 * The main thread accepts; one thread for each connection (at most CONNECTIONS), and one for each place at a relay where somebody
 * may want to meet us. Strangers get HAND_S seconds for their preamble and handshake, and nothing from us before it.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "frame.h"
#include "pacxctl.h"
#include "pacxctl_talk.h"
#include "way.h"
#include "probing.h"
#include "wait.h"

#define CONNECTIONS   128
#define LISTENERS     64
#define RELAY_STREAMS 8 /* as many as probe opens */
#define HAND_S        10
#define IDLE_S        60
#define REST_MS       200 /* when no connection can be accepted */
#define SECOND        UINT64_C(1000000000)

struct answer {
	struct pxd_ctl ctl;
	struct pxd_tls_ctx *tls[PXD_GATEWAYS_MAX]; /* of the selected sites, by the place in site[] */
	int site[PXD_GATEWAYS_MAX], nsites;
	struct {
		int fd, site, gateway;
	} listener[LISTENERS];
	int nlisteners;
	pthread_mutex_t lock;
	int connections;
	bool short_of; /* descriptors; it has been told */
};

/* One connection, or one place at a relay. */
struct guest {
	struct answer *a;
	int fd, at, gateway; /* at: index in site[] */
	char from[NI_MAXHOST + 16];
	struct pxd_way way; /* for a relay */
};

static atomic_int stop; /* threads read it, too */

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
	char text[512], now[16];
	time_t t = time(NULL);
	struct tm tm;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	strftime(now, sizeof now, "%H:%M:%S", localtime_r(&t, &tm));
	printf("%s %s\n", now, text);
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* serve: requests until the other side goes. */
static int serve(struct guest *g, struct pxd_talk *t, int gateway)
{
	const struct pxd_hosts *h = g->a->ctl.h;
	int self = g->a->site[g->at];
	struct px_probing_side side = { .id = { .protocol = PX_PROTOCOL_VERSION,
						.site = (uint16_t)self,
						.nsites = (uint16_t)h->nsites,
						.gateway = (uint16_t)gateway } };
	uint8_t in[65536], out[PX_PROBING_OUT];

	snprintf(side.id.version, sizeof side.id.version, "%s", PX_VERSION_TEXT);
	snprintf(side.id.name, sizeof side.id.name, "%s", h->sites[self].name);
	snprintf(side.id.job, sizeof side.id.job, "%s", h->job_id);
	px_repr_native(&side.id.repr);
	for (;;) {
		ssize_t k = pxd_talk_some(t, in, sizeof in, px_now_ns() + IDLE_S * SECOND);

		if (k <= 0)
			return k == 0 ? PX_ETIMEOUT : (int)k;
		for (size_t at = 0; at < (size_t)k;) {
			size_t n = (size_t)k - at < PX_PROBING_STEP ? (size_t)k - at : PX_PROBING_STEP, nout;
			int rc;

			side.id.clock_ns = clock_ns();
			rc = px_probing_feed(&side, in + at, n, out, &nout);
			if (rc < 0) {
				snprintf(t->why, sizeof t->why, "what it asks is not of PACX");
				return rc;
			}
			at += n;
			rc = pxd_talk_send(t, out, nout, px_now_ns() + HAND_S * SECOND);
			if (rc < 0)
				return rc;
		}
	}
}

/* preamble_judge: NULL, or what is wrong with it. */
static const char *preamble_judge(const struct answer *a, const struct px_preamble *p, int self, int gateway)
{
	const struct pxd_hosts *h = a->ctl.h;

	if (memcmp(p->jobhash, a->ctl.jobhash, sizeof p->jobhash) != 0)
		return "it is of another job; use the same hostfile (and PACX_JOB) at all sites";
	if (p->kind == PX_PRE_LINK)
		return "it is the daemon of a job, whose own daemons are not here yet; end this pacxctl and "
		       "start the job here too";
	if (p->from >= h->nsites || p->to != self || p->to_gateway != gateway || p->reversed)
		return "it wants another site or gateway; use the same hostfile at all sites";
	if (!p->tls != pxd_hosts_link(h, p->from, p->to)->plain)
		return p->tls ? "it wants TLS, but here the link has security: none"
			      : "it wants no TLS, but here the link has it";
	return NULL;
}

static void greet(struct guest *g)
{
	struct answer *a = g->a;
	uint64_t until = px_now_ns() + HAND_S * SECOND;
	uint8_t pre[PX_PREAMBLE_SIZE];
	struct px_preamble p = { 0 };
	struct pxd_talk t;
	const char *wrong;
	int rc, self = a->site[g->at];

	pxd_talk_init(&t, g->fd);
	rc = pxd_talk_recv(&t, pre, sizeof pre, until);
	if (rc < 0) {
		note("%s: %s before the end of its preamble", g->from, t.why);
		goto done;
	}
	if (px_preamble_get(pre, sizeof pre, &p) < 0) {
		note("%s: what it sent is no PACX preamble", g->from);
		goto done;
	}
	wrong = preamble_judge(a, &p, self, g->gateway);
	if (wrong) {
		note("%s: %s", g->from, wrong);
		goto done;
	}
	if (p.tls) {
		rc = pxd_talk_secure(&t, a->tls[g->at], false, 0, until);
		if (rc >= 0 && pxd_tls_peer(t.tls) != p.from)
			rc = PX_ESITE;
		if (rc < 0) {
			note("%s: %s", g->from,
				rc == PX_ESITE ? "its preamble names another site than its key" : t.why);
			goto done;
		}
	}
	note("%s: site %s tests gateway %d of %s", g->from, a->ctl.h->sites[p.from].name, g->gateway,
		a->ctl.h->sites[self].name);
	rc = serve(g, &t, g->gateway);
	if (rc != PX_ECLOSED && rc != PX_EIO && rc != PX_EPROTO)
		note("%s: %s", g->from, rc == PX_ETIMEOUT ? "nothing comes any more" : t.why);
done:
	pxd_talk_close(&t);
}

static void *guest_run(void *arg)
{
	struct guest *g = arg;
	struct answer *a = g->a;

	greet(g);
	pthread_mutex_lock(&a->lock);
	a->connections--;
	pthread_mutex_unlock(&a->lock);
	free(g);
	return NULL;
}

static bool thread_start(void *(*run)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, arg) != 0)
		return false;
	pthread_detach(t);
	return true;
}

static void guest_accept(struct answer *a, int listener)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof from;
	int fd = accept4(
		    a->listener[listener].fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK),
	    one = 1;
	char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
	struct guest *g = NULL;
	bool room;

	if (fd < 0) {
		/* It stays in the queue, and poll would name it again at once. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			if (!a->short_of)
				note("cannot accept connections: %s; trying again", strerror(errno));
			a->short_of = true;
			poll(NULL, 0, REST_MS);
		}
		return;
	}
	a->short_of = false;
	getnameinfo((struct sockaddr *)&from, len, host, sizeof host, port, sizeof port,
		NI_NUMERICHOST | NI_NUMERICSERV);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	pthread_mutex_lock(&a->lock);
	room = a->connections < CONNECTIONS;
	a->connections += room;
	pthread_mutex_unlock(&a->lock);
	if (room)
		g = calloc(1, sizeof *g);
	if (g) {
		g->a = a;
		g->fd = fd;
		g->at = a->listener[listener].site;
		g->gateway = a->listener[listener].gateway;
		snprintf(g->from, sizeof g->from, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	}
	if (g && thread_start(guest_run, g))
		return;
	note("%s: turned away, %d connections are open", host, CONNECTIONS);
	close(fd);
	free(g);
	if (room) {
		pthread_mutex_lock(&a->lock);
		a->connections--;
		pthread_mutex_unlock(&a->lock);
	}
}

/* listener_open: 0, or an exit status after a message. */
static int listener_open(struct answer *a, int at, int gateway)
{
	const struct pxd_site *s = &a->ctl.h->sites[a->site[at]];
	const struct pxd_gateway *g = &s->gateways[gateway];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV },
			*list = NULL;
	char port[12];
	int rc, e = 0, one = 1, good = 0;

	if (g->bind_port == 0) {
		fprintf(stderr, "pacxctl: site '%s' has no fixed port in the hostfile; write port: for it\n",
			s->name);
		return PXD_CTL_USAGE;
	}
	snprintf(port, sizeof port, "%d", g->bind_port);
	rc = getaddrinfo(g->bind_host, port, &hints, &list);
	if (rc != 0) {
		fprintf(stderr, "pacxctl: site '%s': cannot find the address %s: %s\n", s->name, g->bind_host,
			gai_strerror(rc));
		return PXD_CTL_WRONG;
	}
	for (struct addrinfo *i = list; i && a->nlisteners < LISTENERS; i = i->ai_next) {
		int fd = socket(i->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
			(i->ai_family != AF_INET6 ||
				setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0) &&
			bind(fd, i->ai_addr, i->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) {
			a->listener[a->nlisteners].fd = fd;
			a->listener[a->nlisteners].site = at;
			a->listener[a->nlisteners++].gateway = gateway;
			good++;
			continue;
		}
		e = errno;
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(list);
	if (good) {
		note("site %s listens on %s port %d", s->name, g->bind_host, g->bind_port);
		return 0;
	}
	fprintf(stderr, "pacxctl: site '%s': cannot listen on %s port %d: %s%s\n", s->name, g->bind_host,
		g->bind_port, strerror(e),
		e == EADDRINUSE ? "; if the job runs, its daemons answer themselves" : "");
	return PXD_CTL_WRONG;
}

/* relay_run: be at the relay for one stream of one peer, again and again. */
static void *relay_run(void *arg)
{
	struct guest *g = arg;
	bool told = g->way.stream > 0 || g->gateway > 0; /* one speaks for all */

	while (!stop) {
		int rc = pxd_way_meet(&g->way);

		if (rc < 0 && !told)
			note("relay: %s; trying again", g->way.why);
		told = true;

		if (rc >= 0) {
			if (g->way.stream == 0)
				note("relay: site %s tests %s", g->a->ctl.h->sites[g->way.peer].name,
					g->a->ctl.h->sites[g->way.self].name);
			serve(g, &g->way.talk, g->gateway);
		}
		pxd_way_close(&g->way);
		if (rc < 0)
			nanosleep(&(struct timespec){ 1, 0 }, NULL);
	}
	free(g);
	return NULL;
}

/* relays_open: a place at the relay for each stream of each peer that we meet there. */
static int relays_open(struct answer *a, int at)
{
	const struct pxd_hosts *h = a->ctl.h;
	int self = a->site[at], n = 0;

	for (int peer = 0; peer < h->nsites; peer++) {
		if (peer == self || !pxd_hosts_link(h, self, peer)->relay ||
			pxd_hosts_link(h, self, peer)->dial)
			continue;
		for (int k = 0; k < h->sites[self].ngateways * RELAY_STREAMS && n < CONNECTIONS; k++) {
			struct guest *g = calloc(1, sizeof *g);

			if (!g)
				break;
			g->a = a;
			g->at = at;
			g->gateway = k / RELAY_STREAMS;
			g->way = (struct pxd_way){ .ctl = &a->ctl,
				.self = self,
				.peer = peer,
				.gateway = g->gateway,
				.stream = k % RELAY_STREAMS,
				.tls = a->tls[at],
				.talk = { .fd = -1 } };
			if (!thread_start(relay_run, g))
				free(g);
			else
				n++;
		}
		note("site %s waits for %s at the relay %s", h->sites[self].name, h->sites[peer].name,
			pxd_hosts_link(h, self, peer)->relay);
	}
	return n;
}

static int sites_open(struct answer *a)
{
	char why[PXD_WHY];
	bool keyed = true;
	int rc = 0, relays = 0;

	for (int i = 0; i < a->ctl.h->nsites && rc == 0 && a->nsites < PXD_GATEWAYS_MAX; i++) {
		const struct pxd_site *s = &a->ctl.h->sites[i];
		int at = a->nsites;

		if (!pxd_ctl_selected(&a->ctl, i))
			continue;
		a->site[a->nsites++] = i;
		if (pxd_ctl_tls(&a->ctl, i, &a->tls[at], &keyed, why, sizeof why) < 0) {
			fprintf(stderr, "pacxctl: %s\n", why);
			return PXD_CTL_WRONG;
		}
		if (!keyed)
			note("site %s has no key here: the way is tested, not who is there", s->name);
		for (int g = 0; g < s->ngateways && s->listen && rc == 0; g++)
			rc = listener_open(a, at, g);
		if (rc == 0)
			relays += relays_open(a, at);
	}
	if (rc == 0 && a->nlisteners + relays == 0) {
		fprintf(stderr, "pacxctl: with listen: no and without relay: nobody can test this site from "
				"outside; run doctor here\n");
		return PXD_CTL_WRONG;
	}
	return rc;
}

int pxd_ctl_answer(int argc, char **argv)
{
	static struct answer a; /* its threads may outlive this function */
	struct sigaction quit = { .sa_handler = on_signal };
	uint64_t end;
	int rc = pxd_ctl_open(&a.ctl, argc, argv);

	if (rc != 0)
		return rc;
	pthread_mutex_init(&a.lock, NULL);
	sigaction(SIGINT, &quit, NULL);
	sigaction(SIGTERM, &quit, NULL);
	sigaction(SIGHUP, &quit, NULL);
	signal(SIGPIPE, SIG_IGN);
	rc = sites_open(&a);
	end = a.ctl.o.for_ms ? px_now_ns() + (uint64_t)a.ctl.o.for_ms * 1000000 : UINT64_MAX;
	while (rc == 0 && !stop && px_now_ns() < end) {
		struct pollfd p[LISTENERS];
		int n;

		for (int i = 0; i < a.nlisteners; i++)
			p[i] = (struct pollfd){ a.listener[i].fd, POLLIN, 0 };
		n = poll(p, (nfds_t)a.nlisteners, 200);
		for (int i = 0; i < a.nlisteners && n > 0; i++)
			if (p[i].revents)
				guest_accept(&a, i);
	}
	stop = 1;
	fflush(NULL);
	_exit(rc); /* threads may sit in their waits; nothing of theirs has to be kept */
}
