/* links.c: links between sites: their keys, what is inherited from the default: link, and who dials.
 *
 * Which keys the file has at a link is noted in its `written`; after everything is read, the others are taken
 * from the default: link, and what is not there either is built in. tcp and emulate are inherited key by key.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "keys.h"

/* Bits of struct pxd_link.written. */
enum {
	BETWEEN = 1 << 0,
	DEFAULT = 1 << 1,
	STREAMS = 1 << 2,
	COMPRESS = 1 << 3,
	SECURITY = 1 << 4,
	CONGESTION = 1 << 5,
	SOURCE_PORT = 1 << 6,
	DIAL = 1 << 7,
	PROXY = 1 << 8,
	RELAY = 1 << 9,
	RECONNECT = 1 << 10,
	LATENCY = 1 << 11,
	RATE = 1 << 12,
	PREDICT = 1 << 13,
};

static const struct pxd_link_opts built_in = {
	.compress = PXD_COMPRESS_AUTO,
	.dialer = -1,
	.reconnect_ms = PXD_RECONNECT_MS,
};

void pxd_link_opts_fini(struct pxd_link_opts *o)
{
	free(o->congestion);
	free(o->dial);
	free(o->proxy);
	free(o->relay);
	*o = built_in;
}

static int link_between(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const char expected[] = "the names of two sites, such as [left, right]";
	struct pxd_link *l = object;
	char show[PXD_SHOW];
	int index[2] = { -1, -1 }, rc, k = 0;

	l->written |= BETWEEN;
	rc = pxd_tree_expect(r->t, v, PXD_SEQUENCE, expected);
	if (rc < 0)
		return rc;
	if (v->nchildren != 2)
		return pxd_text_fail(r->t, v->at, expected, "a list of %d", v->nchildren);
	for (const struct pxd_tree *n = v->child; n; n = n->next, k++) {
		rc = pxd_tree_expect(r->t, n, PXD_SCALAR, "the name of a site");
		if (rc < 0)
			return rc;
		index[k] = pxd_hosts_find(r->h, n->text);
		if (index[k] < 0)
			return pxd_text_fail(
				r->t, n->at, "the name of a site", "%s", pxd_text_show(n->text, show));
		if (k == 1 && index[0] == index[1])
			return pxd_text_fail(r->t, n->at, "two different sites", "'%s' twice", n->text);
	}
	l->a = index[0];
	l->b = index[1];
	return 0;
}

static int link_default(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	char show[PXD_SHOW];

	((struct pxd_link *)object)->written |= DEFAULT;
	if (pxd_tree_is_null(v))
		return 0;
	return pxd_text_fail(r->t, v->at, "nothing after 'default:' (options are keys beside it)", "%s",
		pxd_tree_show(v, show));
}

/* number_in: a whole number from..to, or -1. */
static int number_in(const char *v, int from, int to)
{
	size_t n = strspn(v, "0123456789");

	if (n == 0 || n > 5 || v[n] || atoi(v) < from || atoi(v) > to)
		return -1;
	return atoi(v);
}

static int link_streams(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const char expected[] = "auto, or a number of streams from 1 to 64";
	struct pxd_link *l = object;
	char show[PXD_SHOW];
	int n, rc = pxd_tree_expect(r->t, v, PXD_SCALAR, expected);

	if (rc < 0)
		return rc;
	n = strcmp(v->text, "auto") == 0 ? 0 : number_in(v->text, 1, PXD_STREAMS_MAX);
	if (n < 0)
		return pxd_text_fail(r->t, v->at, expected, "%s", pxd_text_show(v->text, show));
	l->o.streams = n;
	l->written |= STREAMS;
	return 0;
}

static int link_compress(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_link *l = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "none, auto, zlib, lz4 or zstd");

	l->written |= COMPRESS;
	return rc < 0 ? rc : pxd_value_compress(r->t, v->at, v->text, &l->o.compress, &l->o.compress_level);
}

static int link_predict(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const char *const names[] = { "auto", "none", "always" };
	static const char expected[] = "auto, none or always";
	struct pxd_link *l = object;
	char show[PXD_SHOW];
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, expected);

	if (rc < 0)
		return rc;
	l->written |= PREDICT;
	for (int i = 0; i < 3; i++) {
		if (strcmp(v->text, names[i]) == 0) {
			l->o.predict = (enum pxd_prediction)i;
			return 0;
		}
	}
	return pxd_text_fail(r->t, v->at, expected, "%s", pxd_text_show(v->text, show));
}

static int link_security(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const char expected[] = "tls or none";
	struct pxd_link *l = object;
	char show[PXD_SHOW];
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, expected);

	if (rc < 0)
		return rc;
	l->written |= SECURITY;
	l->o.plain = strcmp(v->text, "none") == 0;
	if (!l->o.plain && strcmp(v->text, "tls") != 0)
		return pxd_text_fail(r->t, v->at, expected, "%s", pxd_text_show(v->text, show));
	return 0;
}

static int tcp_congestion(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const char expected[] = "the name of a congestion control such as cubic or bbr";
	struct pxd_link *l = object;
	char show[PXD_SHOW];
	int rc = pxd_key_line(r, v, expected, &l->o.congestion);

	if (rc < 0)
		return rc;
	l->written |= CONGESTION;
	if (strlen(v->text) > 15 || /* TCP_CA_NAME_MAX */
		strspn(v->text, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(v->text))
		return pxd_text_fail(r->t, v->at, expected, "%s", pxd_text_show(v->text, show));
	return 0;
}

static int tcp_source_port(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const char expected[] = "a port number from 1 to 65535, or 0 for any";
	struct pxd_link *l = object;
	char show[PXD_SHOW];
	int n, rc = pxd_tree_expect(r->t, v, PXD_SCALAR, expected);

	if (rc < 0)
		return rc;
	n = number_in(v->text, 0, 65535);
	if (n < 0)
		return pxd_text_fail(r->t, v->at, expected, "%s", pxd_text_show(v->text, show));
	l->o.source_port = n;
	l->written |= SOURCE_PORT;
	return 0;
}

static int link_tcp(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const struct pxd_key keys[] = {
		{ "congestion", false, tcp_congestion },
		{ "source_port", false, tcp_source_port },
	};

	return pxd_keys_read(r, v, keys, sizeof keys / sizeof keys[0], "tcp", object);
}

/* A site of this link, or a command. */
static int link_dial(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_link *l = object;
	char expected[PXD_WHY], show[PXD_SHOW];
	int rc, site;

	if (l->a >= 0)
		snprintf(expected, sizeof expected, "'%s' or '%s', or a command with %%h",
			r->h->sites[l->a].name, r->h->sites[l->b].name);
	else
		snprintf(expected, sizeof expected, "the name of a site, or a command with %%h");
	rc = pxd_tree_expect(r->t, v, PXD_SCALAR, expected);
	if (rc < 0)
		return rc;
	l->written |= DIAL;
	l->at_dial = v->at;
	l->o.dialer = -1;
	free(l->o.dial);
	l->o.dial = NULL;
	if (strstr(v->text, "%h"))
		return pxd_key_line(r, v, expected, &l->o.dial);
	site = pxd_hosts_find(r->h, v->text);
	if (site < 0 || (l->a >= 0 && site != l->a && site != l->b))
		return pxd_text_fail(r->t, v->at, expected, "%s", pxd_text_show(v->text, show));
	l->o.dialer = site;
	return 0;
}

static int link_proxy(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_link *l = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "socks5://host:port, http://host:port, or none");

	if (rc < 0)
		return rc;
	l->written |= PROXY;
	if (strcmp(v->text, "none") != 0)
		return pxd_value_proxy(r->t, v->at, v->text, &l->o.proxy);
	free(l->o.proxy);
	l->o.proxy = NULL;
	return 0;
}

static int link_relay(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const char expected[] = "host:port of a relay, or none";
	struct pxd_link *l = object;
	char show[PXD_SHOW], *host = NULL;
	int port = -1, rc = pxd_tree_expect(r->t, v, PXD_SCALAR, expected);

	if (rc < 0)
		return rc;
	l->written |= RELAY;
	if (strcmp(v->text, "none") == 0) {
		free(l->o.relay);
		l->o.relay = NULL;
		return 0;
	}
	rc = pxd_value_endpoint(r->t, v->at, v->text, &host, &port);
	if (rc < 0)
		return rc;
	free(host);
	if (port < 1)
		return pxd_text_fail(r->t, v->at, expected, "%s", pxd_text_show(v->text, show));
	return pxd_key_line(r, v, expected, &l->o.relay);
}

static int link_reconnect(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_link *l = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "a duration such as 60s");

	l->written |= RECONNECT;
	return rc < 0 ? rc : pxd_value_duration(r->t, v->at, v->text, &l->o.reconnect_ms);
}

static int emulate_latency(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_link *l = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "a time such as 10ms");

	l->written |= LATENCY;
	return rc < 0 ? rc : pxd_value_latency(r->t, v->at, v->text, &l->o.emulate_latency_us);
}

static int emulate_rate(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_link *l = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "a rate such as 1MB/s");

	l->written |= RATE;
	return rc < 0 ? rc : pxd_value_rate(r->t, v->at, v->text, &l->o.emulate_rate);
}

static int link_emulate(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const struct pxd_key keys[] = {
		{ "latency", false, emulate_latency },
		{ "rate", false, emulate_rate },
	};

	return pxd_keys_read(r, v, keys, sizeof keys / sizeof keys[0], "emulate", object);
}

/* between: first, because dial: asks for it. */
static const struct pxd_key link_keys[] = {
	{ "between", false, link_between },
	{ "default", false, link_default },
	{ "streams", false, link_streams },
	{ "compress", false, link_compress },
	{ "predict", false, link_predict },
	{ "security", false, link_security },
	{ "tcp", false, link_tcp },
	{ "dial", false, link_dial },
	{ "proxy", false, link_proxy },
	{ "relay", false, link_relay },
	{ "reconnect", false, link_reconnect },
	{ "emulate", false, link_emulate },
};
#define LINK_KEYS   ((int)(sizeof link_keys / sizeof link_keys[0]))
#define LINK_OPTION 2 /* the first key that is an option */

static bool same_pair(const struct pxd_link *l, int a, int b)
{
	return (l->a == a && l->b == b) || (l->a == b && l->b == a);
}

int pxd_hosts_links(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	int rc = pxd_tree_expect(r->t, v, PXD_SEQUENCE, "a list of links");

	(void)object;
	if (rc < 0)
		return rc;
	if (v->nchildren > PXD_SITES_MAX)
		return pxd_text_fail(r->t, v->at, "at most 4096", "%d links", v->nchildren);
	r->h->links = calloc((size_t)v->nchildren + 1, sizeof *r->h->links);
	if (!r->h->links)
		return pxd_text_nomem(r->t);
	for (const struct pxd_tree *n = v->child; n; n = n->next) {
		struct pxd_link *l = &r->h->links[r->h->nlinks++];

		l->a = l->b = -1;
		l->at = n->at;
		l->o = built_in;
		rc = pxd_keys_read(r, n, link_keys, LINK_KEYS, "a link", l);
		if (rc < 0)
			return rc;
		if (!(l->written & BETWEEN) == !(l->written & DEFAULT))
			return pxd_text_fail(r->t, n->at, "either 'between' or 'default'", "a link with %s",
				l->written & BETWEEN ? "both" : "neither");
		for (const struct pxd_link *o = r->h->links; o < l; o++)
			if (same_pair(o, l->a, l->b))
				return pxd_text_fail(r->t, n->at, "every link once",
					"the same link a second time (the first is in line %d)", o->at.line);
	}
	return 0;
}

int pxd_hosts_link_text(const struct pxd_text *t, struct pxd_hosts *h)
{
	struct pxd_text braced = { t->file, NULL, 0, t->why, t->cap, true };
	struct pxd_reader r = { &braced, h };
	struct pxd_tree *root = NULL;
	struct pxd_link *l = NULL;
	char *text = malloc(t->len + 3);
	int rc = PX_ENOMEM;

	if (!text)
		return pxd_text_nomem(t);
	text[0] = '{';
	memcpy(text + 1, t->text, t->len);
	strcpy(text + 1 + t->len, "}");
	braced.text = text;
	braced.len = t->len + 2;
	for (int i = 0; i < h->nlinks; i++)
		if (h->links[i].a < 0)
			l = &h->links[i];
	if (!l) {
		l = realloc(h->links, ((size_t)h->nlinks + 1) * sizeof *l);
		if (!l) {
			pxd_text_nomem(t);
			goto done;
		}
		h->links = l;
		l += h->nlinks++;
		*l = (struct pxd_link){ .a = -1, .b = -1, .written = DEFAULT, .o = built_in };
	}
	rc = pxd_text_check(&braced);
	if (rc >= 0)
		rc = pxd_tree_read(&braced, &root);
	if (rc >= 0)
		rc = pxd_keys_read(&r, root, link_keys + LINK_OPTION, LINK_KEYS - LINK_OPTION, "a link", l);
done:
	pxd_tree_free(root);
	free(text);
	return rc;
}

static bool text_copy(char **out, const char *text)
{
	*out = text ? strdup(text) : NULL;
	return *out || !text;
}

/* opts_inherit: what is not written at the link comes from `from`. */
static bool opts_inherit(struct pxd_link_opts *o, unsigned written, const struct pxd_link_opts *from)
{
	bool ok = true;

	if (!(written & STREAMS))
		o->streams = from->streams;
	if (!(written & COMPRESS)) {
		o->compress = from->compress;
		o->compress_level = from->compress_level;
	}
	if (!(written & PREDICT))
		o->predict = from->predict;
	if (!(written & SECURITY))
		o->plain = from->plain;
	if (!(written & CONGESTION))
		ok = text_copy(&o->congestion, from->congestion) && ok;
	if (!(written & SOURCE_PORT))
		o->source_port = from->source_port;
	if (!(written & DIAL)) {
		o->dialer = from->dialer;
		ok = text_copy(&o->dial, from->dial) && ok;
	}
	if (!(written & PROXY))
		ok = text_copy(&o->proxy, from->proxy) && ok;
	if (!(written & RELAY))
		ok = text_copy(&o->relay, from->relay) && ok;
	if (!(written & RECONNECT))
		o->reconnect_ms = from->reconnect_ms;
	if (!(written & LATENCY))
		o->emulate_latency_us = from->emulate_latency_us;
	if (!(written & RATE))
		o->emulate_rate = from->emulate_rate;
	return ok;
}

static const struct pxd_link *link_find(const struct pxd_hosts *h, int a, int b)
{
	for (int i = 0; i < h->nlinks; i++)
		if (same_pair(&h->links[i], a, b))
			return &h->links[i];
	return NULL;
}

const struct pxd_link_opts *pxd_hosts_link(const struct pxd_hosts *h, int a, int b)
{
	const struct pxd_link *l = link_find(h, a, b);

	return l ? &l->o : &h->link_default;
}

bool pxd_hosts_dials(const struct pxd_hosts *h, int self, int from, int to)
{
	const struct pxd_link_opts *o = pxd_hosts_link(h, from, to);
	int other = self == from ? to : from;

	if (self != from && self != to)
		return false;
	if (o->relay || !h->sites[self].listen)
		return true;
	if (!h->sites[other].listen)
		return false;
	if (o->dialer == from || o->dialer == to)
		return self == o->dialer;
	return self == from;
}

/* dial_check: dial: D must not make D dial the site p, which does not listen. */
static int dial_check(
	const struct pxd_text *t, const struct pxd_hosts *h, struct pxd_mark at, int dialer, int p)
{
	char expected[PXD_WHY];

	if (h->sites[p].listen || pxd_hosts_link(h, dialer, p)->relay ||
		pxd_hosts_link(h, dialer, p)->dialer != dialer)
		return 0;
	snprintf(expected, sizeof expected, "dial: %s, or a relay:", h->sites[p].name);
	return pxd_text_fail(t, at, expected, "dial: %s, but '%s' has listen: no", h->sites[dialer].name,
		h->sites[p].name);
}

/* listen_check: of two sites that do not listen, neither can dial the other. Stops at the first missing relay, so it
 * looks at no more pairs than there are links. */
static int listen_check(const struct pxd_text *t, const struct pxd_hosts *h)
{
	char expected[PXD_WHY];

	if (h->link_default.relay) {
		for (int i = 0; i < h->nlinks; i++) {
			const struct pxd_link *l = &h->links[i];

			if (l->a >= 0 && !l->o.relay && !h->sites[l->a].listen && !h->sites[l->b].listen)
				return pxd_text_fail(t, l->at, "a relay:",
					"a link without relay of '%s' and '%s', which both have listen: no",
					h->sites[l->a].name, h->sites[l->b].name);
		}
		return 0;
	}
	for (int b = 0; b < h->nsites; b++) {
		for (int a = 0; a < b && !h->sites[b].listen; a++) {
			if (h->sites[a].listen || pxd_hosts_link(h, a, b)->relay)
				continue;
			snprintf(expected, sizeof expected, "relay: host:port in the link of '%s' and '%s'",
				h->sites[a].name, h->sites[b].name);
			return pxd_text_fail(t, h->sites[b].at_listen, expected,
				"listen: no a second time ('%s' has it in line %d)", h->sites[a].name,
				h->sites[a].at_listen.line);
		}
	}
	return 0;
}

int pxd_hosts_links_default(const struct pxd_text *t, struct pxd_hosts *h)
{
	const struct pxd_link *def = NULL;
	int rc = 0;

	for (int i = 0; i < h->nlinks; i++)
		if (h->links[i].a < 0)
			def = &h->links[i];
	pxd_link_opts_fini(&h->link_default);
	if (!opts_inherit(&h->link_default, 0, def ? &def->o : &built_in))
		return pxd_text_nomem(t);
	for (int i = 0; i < h->nlinks; i++) {
		struct pxd_link *l = &h->links[i];

		if (l != def && !opts_inherit(&l->o, l->written, &h->link_default))
			return pxd_text_nomem(t);
		if (l->o.dial && l->o.proxy)
			return pxd_text_fail(t, l->at, "one of them",
				"a link with both a command in 'dial' and a 'proxy'");
	}
	for (int i = 0; i < h->nlinks && rc >= 0; i++) {
		const struct pxd_link *l = &h->links[i];

		if (l->a >= 0 && l->o.dialer >= 0 && l->written & DIAL)
			rc = dial_check(t, h, l->at_dial, l->o.dialer, l->o.dialer == l->a ? l->b : l->a);
	}
	for (int p = 0; def && p < h->nsites && rc >= 0; p++)
		if (def->o.dialer >= 0 && p != def->o.dialer)
			rc = dial_check(t, h, def->at_dial, def->o.dialer, p);
	return rc < 0 ? rc : listen_check(t, h);
}
