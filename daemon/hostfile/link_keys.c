/* link_keys.c: the keys of a link: what each may be, and what is taken from the default: link where the file has none. */
#include "link_keys.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"

/* Bits of struct pxd_link.written. */
enum {
	BETWEEN = PXD_LINK_BETWEEN,
	DEFAULT = PXD_LINK_DEFAULT,
	DIAL = PXD_LINK_DIAL,
	STREAMS = 1 << 3,
	COMPRESS = 1 << 4,
	SECURITY = 1 << 5,
	CONGESTION = 1 << 6,
	SOURCE_PORT = 1 << 7,
	PROXY = 1 << 8,
	RELAY = 1 << 9,
	RECONNECT = 1 << 10,
	LATENCY = 1 << 11,
	RATE = 1 << 12,
	PREDICT = 1 << 13,
};

#define WRONG 1 /* of a value: it is not what is expected; the error line is not written yet */

/* An option that is one word or number. value: 0, WRONG, or below 0 with the error line written. */
struct option {
	unsigned bit;
	const char *expected;
	int (*value)(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o);
};

const struct pxd_link_opts pxd_link_built_in = {
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
	*o = pxd_link_built_in;
}

static int between_read(struct pxd_reader *r, const struct pxd_tree *v, void *object)
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

static int default_read(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	char show[PXD_SHOW];

	((struct pxd_link *)object)->written |= DEFAULT;
	if (pxd_tree_is_null(v))
		return 0;
	return pxd_text_fail(r->t, v->at, "nothing after 'default:' (options are keys beside it)", "%s",
		pxd_tree_show(v, show));
}

/* A site of this link, or a command. */
static int dial_read(struct pxd_reader *r, const struct pxd_tree *v, void *object)
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

/* number_in: a whole number from..to, or -1. */
static int number_in(const char *v, int from, int to)
{
	size_t n = strspn(v, "0123456789");

	if (n == 0 || n > 5 || v[n] || atoi(v) < from || atoi(v) > to)
		return -1;
	return atoi(v);
}

static int option_read(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	const struct option *p = r->how;
	struct pxd_link *l = object;
	char show[PXD_SHOW];
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, p->expected);

	if (rc < 0)
		return rc;
	l->written |= p->bit;
	rc = p->value(r, v, &l->o);
	return rc == WRONG ? pxd_text_fail(r->t, v->at, p->expected, "%s", pxd_text_show(v->text, show)) : rc;
}

static int streams(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o)
{
	(void)r;
	o->streams = strcmp(v->text, "auto") == 0 ? 0 : number_in(v->text, 1, PXD_STREAMS_MAX);
	return o->streams < 0 ? WRONG : 0;
}

static int compress(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o)
{
	return pxd_value_compress(r->t, v->at, v->text, &o->compress, &o->compress_level);
}

static int predict(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o)
{
	static const char *const names[] = { "auto", "none", "always" };

	(void)r;
	for (int i = 0; i < 3; i++) {
		if (strcmp(v->text, names[i]) == 0) {
			o->predict = (enum pxd_prediction)i;
			return 0;
		}
	}
	return WRONG;
}

static int security(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o)
{
	(void)r;
	o->plain = strcmp(v->text, "none") == 0;
	return o->plain || strcmp(v->text, "tls") == 0 ? 0 : WRONG;
}

#define CONGESTION_IS "the name of a congestion control such as cubic or bbr"

static int congestion(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o)
{
	int rc = pxd_key_line(r, v, CONGESTION_IS, &o->congestion);

	if (rc < 0)
		return rc;
	return strlen(v->text) > 15 || /* TCP_CA_NAME_MAX */
			       strspn(v->text, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(v->text)
		       ? WRONG
		       : 0;
}

static int source_port(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o)
{
	(void)r;
	o->source_port = number_in(v->text, 0, 65535);
	return o->source_port < 0 ? WRONG : 0;
}

static int proxy(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o)
{
	if (strcmp(v->text, "none") != 0)
		return pxd_value_proxy(r->t, v->at, v->text, &o->proxy);
	free(o->proxy);
	o->proxy = NULL;
	return 0;
}

#define RELAY_IS "host:port of a relay, or none"

static int relay(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o)
{
	char *host = NULL;
	int port = -1, rc;

	if (strcmp(v->text, "none") == 0) {
		free(o->relay);
		o->relay = NULL;
		return 0;
	}
	rc = pxd_value_endpoint(r->t, v->at, v->text, &host, &port);
	if (rc < 0)
		return rc;
	free(host);
	return port < 1 ? WRONG : pxd_key_line(r, v, RELAY_IS, &o->relay);
}

static int reconnect(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o)
{
	return pxd_value_duration(r->t, v->at, v->text, &o->reconnect_ms);
}

static int latency(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o)
{
	return pxd_value_latency(r->t, v->at, v->text, &o->emulate_latency_us);
}

static int rate(const struct pxd_reader *r, const struct pxd_tree *v, struct pxd_link_opts *o)
{
	return pxd_value_rate(r->t, v->at, v->text, &o->emulate_rate);
}

#define OPTION(name, bit, expected, value)                                                                   \
	{                                                                                                    \
		name, false, option_read, &(const struct option)                                             \
		{                                                                                            \
			bit, expected, value                                                                 \
		}                                                                                            \
	}

static const struct pxd_key tcp_keys[] = {
	OPTION("congestion", CONGESTION, CONGESTION_IS, congestion),
	OPTION("source_port", SOURCE_PORT, "a port number from 1 to 65535, or 0 for any", source_port),
};

static int tcp_read(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	return pxd_keys_read(r, v, tcp_keys, sizeof tcp_keys / sizeof tcp_keys[0], "tcp", object);
}

static const struct pxd_key emulate_keys[] = {
	OPTION("latency", LATENCY, "a time such as 10ms", latency),
	OPTION("rate", RATE, "a rate such as 1MB/s", rate),
};

static int emulate_read(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	return pxd_keys_read(
		r, v, emulate_keys, sizeof emulate_keys / sizeof emulate_keys[0], "emulate", object);
}

/* between: first, because dial: asks for it. */
static const struct pxd_key link_keys[] = {
	{ "between", false, between_read, NULL },
	{ "default", false, default_read, NULL },
	OPTION("streams", STREAMS, "auto, or a number of streams from 1 to 64", streams),
	OPTION("compress", COMPRESS, "none, auto, zlib, lz4 or zstd", compress),
	OPTION("predict", PREDICT, "auto, none or always", predict),
	OPTION("security", SECURITY, "tls or none", security),
	{ "tcp", false, tcp_read, NULL },
	{ "dial", false, dial_read, NULL },
	OPTION("proxy", PROXY, "socks5://host:port, http://host:port, or none", proxy),
	OPTION("relay", RELAY, RELAY_IS, relay),
	OPTION("reconnect", RECONNECT, "a duration such as 60s", reconnect),
	{ "emulate", false, emulate_read, NULL },
};
#define LINK_KEYS   ((int)(sizeof link_keys / sizeof link_keys[0]))
#define LINK_OPTION 2 /* the first key that is an option */

int pxd_link_keys_read(struct pxd_reader *r, const struct pxd_tree *n, struct pxd_link *l)
{
	return pxd_keys_read(r, n, link_keys, LINK_KEYS, "a link", l);
}

int pxd_link_options_read(struct pxd_reader *r, const struct pxd_tree *n, struct pxd_link *l)
{
	return pxd_keys_read(r, n, link_keys + LINK_OPTION, LINK_KEYS - LINK_OPTION, "a link", l);
}

/* Where the value of a key is; a text (size 0) is copied. */
#define FIELD(f) offsetof(struct pxd_link_opts, f), sizeof((struct pxd_link_opts *)NULL)->f
#define TEXT(f)  offsetof(struct pxd_link_opts, f), 0
static const struct {
	unsigned bit;
	size_t at, size;
} fields[] = {
	{ STREAMS, FIELD(streams) },
	{ COMPRESS, FIELD(compress) },
	{ COMPRESS, FIELD(compress_level) },
	{ PREDICT, FIELD(predict) },
	{ SECURITY, FIELD(plain) },
	{ CONGESTION, TEXT(congestion) },
	{ SOURCE_PORT, FIELD(source_port) },
	{ DIAL, FIELD(dialer) },
	{ DIAL, TEXT(dial) },
	{ PROXY, TEXT(proxy) },
	{ RELAY, TEXT(relay) },
	{ RECONNECT, FIELD(reconnect_ms) },
	{ LATENCY, FIELD(emulate_latency_us) },
	{ RATE, FIELD(emulate_rate) },
};

bool pxd_link_opts_inherit(struct pxd_link_opts *o, unsigned written, const struct pxd_link_opts *from)
{
	bool ok = true;

	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		char *to = (char *)o + fields[i].at;
		const char *as = (const char *)from + fields[i].at;

		if (written & fields[i].bit)
			continue;
		if (fields[i].size > 0) {
			memcpy(to, as, fields[i].size);
		} else {
			char *text = *(char *const *)as;

			*(char **)to = text ? strdup(text) : NULL;
			ok = ok && (*(char **)to || !text);
		}
	}
	return ok;
}
