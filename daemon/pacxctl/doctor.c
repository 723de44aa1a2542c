/* doctor.c: pacxctl doctor: goes the way of every connection that a site dials, and says which hop fails and what to do.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "base/err.h"
#include "pacxctl.h"
#include "way.h"

struct doctor {
	char way[2 * PX_NAME_MAX + 32]; /* "left -> right" */
	int hops, failed;
};

/* say: todo is NULL when it is ok. */
static void say(struct doctor *d, const char *name, bool ok, const char *text, const char *todo)
{
	printf("%s  %-8s  %-4s  %s\n", d->way, name, ok ? "ok" : "FAIL", text);
	if (todo)
		printf("    -> %s\n", todo);
	d->hops++;
	d->failed += !ok;
}

static void on_hop(void *arg, const char *name, bool ok, const char *text, const char *todo)
{
	say(arg, name, ok, text, todo);
}

/* listen_one: can the gateway's daemon listen at this address? 0 or an errno. */
static int listen_one(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, e = 0;

	if (fd < 0)
		return errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 1) < 0)
		e = errno;
	close(fd);
	return e;
}

/* listen_check: the hop before all others: the site's own port. */
static void listen_check(struct doctor *d, const struct pxd_hosts *h, int self, int gateway)
{
	const struct pxd_site *s = &h->sites[self];
	const struct pxd_gateway *g = &s->gateways[gateway];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV },
			*list = NULL;
	char port[12], text[NI_MAXHOST + 512], todo[700], addr[NI_MAXHOST];
	bool misled;
	int rc, e;

	if (g->bind_port == 0) {
		say(d, "listen", true, "at any free port, which pacxrun chooses", NULL);
		return;
	}
	snprintf(port, sizeof port, "%d", g->bind_port);
	rc = getaddrinfo(g->bind_host, port, &hints, &list);
	if (rc != 0) {
		snprintf(text, sizeof text, "the address %s, where it shall listen, cannot be found: %s",
			g->bind_host, gai_strerror(rc));
		say(d, "listen", false, text, "name an address of this machine with bind: in the hostfile");
		return;
	}
	e = listen_one(list);
	misled = pxd_misled(h, self, g->bind_host, list, addr);
	freeaddrinfo(list);
	if (misled) {
		snprintf(text, sizeof text, "%s is %s here, by /etc/hosts: no other machine can reach that",
			g->bind_host, addr);
		snprintf(todo, sizeof todo,
			"say bind: 0.0.0.0 for site %s, or give %s its own address in /etc/hosts", s->name,
			g->bind_host);
		say(d, "listen", false, text, todo);
		return;
	}
	snprintf(text, sizeof text, "%s port %d%s", g->bind_host, g->bind_port,
		e == 0            ? " is free for the daemon"
		: e == EADDRINUSE ? " is in use: by the job, pacxctl answer or another program"
				  : "");
	if (e == 0 || e == EADDRINUSE) {
		say(d, "listen", true, text, NULL);
		return;
	}
	snprintf(text + strlen(text), sizeof text - strlen(text), ": %s", strerror(e));
	if (e == EACCES)
		snprintf(todo, sizeof todo, "choose a port from 1024");
	else
		snprintf(todo, sizeof todo,
			"name an address of this machine with bind: in the hostfile, or run this on that "
			"machine");
	say(d, "listen", false, text, todo);
}

static void way_check(struct doctor *d, const struct pxd_ctl *c, int self, int peer, int gateway,
	struct pxd_tls_ctx *tls, bool keyed)
{
	struct pxd_way w = { .ctl = c,
		.self = self,
		.peer = peer,
		.gateway = gateway,
		.tls = tls,
		.keyed = keyed,
		.hop = on_hop,
		.arg = d };

	if (pxd_way_open(&w) >= 0)
		pxd_way_mtu(&w);
	pxd_way_close(&w);
}

static void site_check(struct doctor *d, struct pxd_ctl *c, int self)
{
	const struct pxd_site *s = &c->h->sites[self];
	struct pxd_tls_ctx *tls = NULL;
	char why[PXD_WHY];
	bool keyed;

	for (int g = 0; g < s->ngateways && s->listen; g++) {
		snprintf(d->way, sizeof d->way, s->ngateways > 1 ? "%s/%d" : "%s", s->name, g);
		listen_check(d, c->h, self, g);
	}
	snprintf(d->way, sizeof d->way, "%s", s->name);
	if (pxd_ctl_tls(c, self, &tls, &keyed, why, sizeof why) < 0) {
		say(d, "key", false, why, "correct that; the job needs it too");
		return;
	}
	for (int peer = 0; peer < c->h->nsites; peer++) {
		const struct pxd_site *p = &c->h->sites[peer];

		if (peer == self)
			continue;
		if (!pxd_hosts_dials(c->h, self, self, peer) && !pxd_hosts_dials(c->h, self, peer, self)) {
			printf("%s -> %s  %s dials for both directions; run pacxctl doctor there\n", s->name,
				p->name, p->name);
			continue;
		}
		for (int g = 0; g < p->ngateways; g++) {
			snprintf(d->way, sizeof d->way, p->ngateways > 1 ? "%s -> %s/%d" : "%s -> %s",
				s->name, p->name, g);
			way_check(d, c, self, peer, g, tls, keyed);
		}
	}
	pxd_tls_ctx_free(tls);
}

int pxd_ctl_doctor(int argc, char **argv)
{
	struct doctor d = { .hops = 0 };
	struct pxd_ctl c;
	int rc = pxd_ctl_open(&c, argc, argv);

	if (rc != 0)
		return rc;
	for (int i = 0; i < c.h->nsites; i++)
		if (pxd_ctl_selected(&c, i))
			site_check(&d, &c, i);
	if (d.failed)
		printf("%d of %d tests failed\n", d.failed, d.hops);
	else
		printf("all %d tests are ok\n", d.hops);
	pxd_ctl_close(&c);
	return d.failed ? PXD_CTL_WRONG : 0;
}
