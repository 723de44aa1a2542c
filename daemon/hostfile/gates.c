/* gates.c: gateways: a site's list of them, their default hosts and ports, and that no port is given twice.
 *
 * A site without `gateways:` has one, made of its host, port and bind. In the list, a missing host, port or
 * bind is the site's; gateways that share a host count the port upwards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "address.h"
#include "keys.h"

static int gate_host(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_gateway *g = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "a host name or an IP address");

	return rc < 0 ? rc : pxd_value_host(r->t, v->at, v->text, &g->host);
}

static int gate_port(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_gateway *g = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "a port number from 1 to 65535, or 0 for any free one");

	g->has_port = true;
	g->at = v->at;
	return rc < 0 ? rc : pxd_value_port(r->t, v->at, v->text, &g->port);
}

static int gate_bind(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_gateway *g = object;
	int port = -1,
	    rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "host:port, [IPv6 address]:port, or a host alone");

	if (rc < 0)
		return rc;
	g->at_bind = v->at;
	rc = pxd_value_endpoint(r->t, v->at, v->text, &g->bind_host, &port);
	if (rc < 0)
		return rc;
	if (port >= 0) {
		g->has_bind_port = true;
		g->bind_port = port;
	}
	return 0;
}

static const struct pxd_key gate_keys[] = {
	{ "host", false, gate_host, NULL },
	{ "port", false, gate_port, NULL },
	{ "bind", false, gate_bind, NULL },
};

int pxd_hosts_gateways(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_site *s = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SEQUENCE, "a list of gateways");

	if (rc < 0)
		return rc;
	if (!v->nchildren)
		return pxd_text_fail(r->t, v->at, "at least one gateway", "an empty list");
	if (v->nchildren > PXD_GATEWAYS_MAX)
		return pxd_text_fail(r->t, v->at, "at most 64", "%d gateways", v->nchildren);
	s->gateways = calloc((size_t)v->nchildren, sizeof *s->gateways);
	if (!s->gateways)
		return pxd_text_nomem(r->t);
	for (const struct pxd_tree *n = v->child; n; n = n->next) {
		struct pxd_gateway *g = &s->gateways[s->ngateways++];

		g->at = n->at;
		rc = pxd_keys_read(r, n, gate_keys, sizeof gate_keys / sizeof gate_keys[0], "a gateway", g);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* text_set: *p is a copy of text, unless it is set already. */
static bool text_set(char **p, const char *text)
{
	if (!*p)
		*p = strdup(text);
	return *p != NULL;
}

/* One gateway of the job, for sorting. */
struct gate {
	int order;
	struct pxd_site *site;
	struct pxd_gateway *g;
};

static int by_host(const void *x, const void *y)
{
	const struct gate *a = x, *b = y;
	int d = strcmp(a->g->host, b->g->host);

	return d ? d : a->order - b->order;
}

static int by_port(const void *x, const void *y)
{
	const struct gate *a = x, *b = y;
	int d = strcmp(a->g->host, b->g->host);

	d = d ? d : a->g->port - b->g->port;
	return d ? d : a->order - b->order;
}

/* gates_before: how many of the site's gateways that come before g have the same host. */
static int gates_before(const struct pxd_site *s, const struct pxd_gateway *g)
{
	int n = 0;

	for (const struct pxd_gateway *o = s->gateways; o < g; o++)
		n += strcmp(o->host, g->host) == 0;
	return n;
}

/* hosts_default: every gateway has a host; sites without a list of gateways get one. */
static int hosts_default(const struct pxd_text *t, struct pxd_hosts *h)
{
	bool some_host = false;

	for (int i = 0; i < h->nsites; i++) {
		struct pxd_site *s = &h->sites[i];

		some_host |= s->has_host;
		for (int g = 0; g < s->ngateways; g++)
			some_host |= s->gateways[g].host != NULL;
	}
	for (int i = 0; i < h->nsites; i++) {
		struct pxd_site *s = &h->sites[i];

		if (!s->ngateways) {
			s->gateways = calloc(1, sizeof *s->gateways);
			if (!s->gateways)
				return pxd_text_nomem(t);
			s->ngateways = 1;
			s->gateways[0].at = s->has_port ? s->at_port : s->at;
		}
		for (int g = 0; g < s->ngateways; g++) {
			struct pxd_gateway *gate = &s->gateways[g];

			/* Without any host it is a local run. With some, a missing one is an omission, not
			 * 127.0.0.1; but nobody dials a site that does not listen. */
			if (!gate->host && !s->host && some_host && s->listen)
				return pxd_text_fail(t, s->ngateways > 1 ? gate->at : s->at,
					"host: (name or address which the other sites dial)",
					"no host in %ssite '%s'", s->ngateways > 1 ? "a gateway of " : "",
					s->name);
			if (!text_set(&gate->host, s->host ? s->host : "127.0.0.1"))
				return pxd_text_nomem(t);
			if (!gate->bind_host && s->bind_host) {
				gate->at_bind = s->at_bind;
				gate->has_bind_port = s->has_bind_port;
				gate->bind_port = s->bind_port ? s->bind_port + gates_before(s, gate) : 0;
			}
			if (!text_set(&gate->bind_host, s->bind_host ? s->bind_host : gate->host))
				return pxd_text_nomem(t);
		}
	}
	return 0;
}

/* port_default: a gateway without port: any free one for a local run; one that everybody can derive otherwise.
 * `same` gateways of the job that come before it have the same host. */
static int port_default(const struct pxd_site *s, const struct pxd_gateway *g, int same, bool fixed)
{
	if (s->has_port)
		return s->port ? s->port + gates_before(s, g) : 0;
	if (!s->listen || (!fixed && pxd_is_loopback(g->host)))
		return 0;
	return PXD_PORT_DEFAULT + same;
}

static int ports_default(const struct pxd_text *t, struct pxd_hosts *h, struct gate *all, int n)
{
	bool fixed = false;
	int same = 0;

	for (int i = 0; i < h->nsites; i++)
		fixed |= h->sites[i].manual;
	qsort(all, (size_t)n, sizeof *all, by_host);
	for (int i = 0; i < n; i++) {
		const struct pxd_site *s = all[i].site;
		struct pxd_gateway *g = all[i].g;

		same = i > 0 && strcmp(all[i - 1].g->host, g->host) == 0 ? same + 1 : 0;
		if (!g->has_port)
			g->port = port_default(s, g, same, fixed);
		if (!g->has_bind_port)
			g->bind_port = g->port;
	}
	for (int i = 0; i < h->nsites; i++) {
		const struct pxd_site *s = &h->sites[i];

		for (int k = 0; k < s->ngateways && s->listen; k++) {
			const struct pxd_gateway *g = &s->gateways[k];

			if (g->port > 65535 || g->bind_port > 65535)
				return pxd_text_fail(t, g->at, "a port up to 65535 for every gateway",
					"port %d for gateway %d of site '%s'",
					g->port > g->bind_port ? g->port : g->bind_port, k, s->name);
			if (g->port == 0 && fixed)
				return pxd_text_fail(t, g->at,
					"a fixed port, because a site of this job is started by hand",
					"port 0");
			if (g->bind_port == 0 && g->port != 0)
				return pxd_text_fail(t, g->at_bind, "a port to listen on", "port 0");
		}
	}
	return 0;
}

/* ports_differ: no two gateways that listen have the same host and port. */
static int ports_differ(const struct pxd_text *t, struct gate *all, int n)
{
	const struct gate *first = NULL, *second = NULL;

	qsort(all, (size_t)n, sizeof *all, by_port);
	for (int i = 1; i < n; i++) {
		const struct gate *a = &all[i - 1], *b = &all[i];

		if (b->g->port && a->site->listen && b->site->listen && a->g->port == b->g->port &&
			strcmp(a->g->host, b->g->host) == 0 && (!second || b->order < second->order)) {
			first = a;
			second = b;
		}
	}
	if (!second)
		return 0;
	return pxd_text_fail(t, second->g->at, "a port of its own for every site of a host",
		"port %d of %s a second time (site '%s' has it)", second->g->port, second->g->host,
		first->site->name);
}

void pxd_hosts_port_set(struct pxd_site *s, int gateway, int port, int bind_port)
{
	s->gateways[gateway].port = port;
	s->gateways[gateway].bind_port = bind_port;
	if (gateway == 0) {
		s->port = port;
		s->bind_port = bind_port;
	}
}

int pxd_hosts_gates_default(const struct pxd_text *t, struct pxd_hosts *h)
{
	struct gate *all;
	int n = 0, rc = hosts_default(t, h);

	if (rc < 0)
		return rc;
	for (int i = 0; i < h->nsites; i++)
		n += h->sites[i].ngateways;
	all = calloc((size_t)n + 1, sizeof *all);
	if (!all)
		return pxd_text_nomem(t);
	n = 0;
	for (int i = 0; i < h->nsites; i++)
		for (int g = 0; g < h->sites[i].ngateways; g++, n++)
			all[n] = (struct gate){ n, &h->sites[i], &h->sites[i].gateways[g] };
	rc = ports_default(t, h, all, n);
	if (rc >= 0)
		rc = ports_differ(t, all, n);
	free(all);
	for (int i = 0; i < h->nsites && rc >= 0; i++) {
		struct pxd_site *s = &h->sites[i];
		const struct pxd_gateway *g = &s->gateways[0];

		free(s->host);
		free(s->bind_host);
		s->host = strdup(g->host);
		s->bind_host = strdup(g->bind_host);
		if (!s->host || !s->bind_host)
			return pxd_text_nomem(t);
		pxd_hosts_port_set(s, 0, g->port, g->bind_port);
	}
	return rc;
}
