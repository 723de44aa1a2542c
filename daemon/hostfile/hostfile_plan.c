/* hostfile_plan.c: the resolved hostfile as one line of YAML, which reads back as the same job. Written is what differs
 * from the default; everything else is left out, for environments have limits.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "hostfile.h"
#include "wire/world.h"

/* The text so far; the first failure sticks. */
struct plan {
	struct px_buf b;
	int rc;
};

static void put(struct plan *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct plan *p, const char *fmt, ...)
{
	char part[640];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(part, sizeof part, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof part)
		p->rc = PX_EINVAL; /* no value that passed the checks is that long */
	if (p->rc >= 0)
		p->rc = px_buf_append(&p->b, part, (size_t)n);
}

/* put_quoted: "NAME: " and any text as a YAML double-quoted scalar, with escapes for all that is not ASCII: YAML counts
 * some other characters as ends of lines. */
static void put_quoted(struct plan *p, const char *name, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	put(p, "%s: \"", name);
	while (*s) {
		unsigned long c = *s++;
		int more = c < 0xC0 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;

		if (more)
			c &= 0x3Fu >> more;
		for (; more > 0 && *s; more--) /* the reader has checked that it is UTF-8 */
			c = c << 6 | (*s++ & 0x3Fu);
		if (c == '"' || c == '\\')
			put(p, "\\%c", (int)c);
		else if (c < 0x20 || c > 0x7E)
			put(p, "\\U%08lX", c);
		else
			put(p, "%c", (int)c);
	}
	put(p, "\"");
}

/* put_gate: "host: ..., port: ..., " and bind if it is another one. */
static void put_gate(struct plan *p, const struct pxd_gateway *g)
{
	bool v6 = strchr(g->bind_host, ':') != NULL;

	put(p, "host: \"%s\", port: %d", g->host, g->port);
	if (strcmp(g->host, g->bind_host) != 0 || g->port != g->bind_port)
		put(p, ", bind: \"%s%s%s:%d\"", v6 ? "[" : "", g->bind_host, v6 ? "]" : "", g->bind_port);
}

static void put_site(struct plan *p, const struct pxd_site *s)
{
	put(p, "{name: \"%s\", ", s->name);
	if (s->ngateways == 1)
		put_gate(p, &s->gateways[0]);
	else
		put(p, "gateways: [");
	for (int g = 0; g < s->ngateways && s->ngateways > 1; g++) {
		put(p, g ? ", {" : "{");
		put_gate(p, &s->gateways[g]);
		put(p, "}");
	}
	put(p, "%s, ranks: %d, mpi: %s", s->ngateways > 1 ? "]" : "", s->ranks, pxd_flavor_name(s->mpi));
	if (s->daemons_first)
		put(p, ", daemons: first");
	if (!s->listen)
		put(p, ", listen: no");
	if (s->buffer != PXD_BUFFER_DEFAULT)
		put(p, ", buffer: %" PRIu64 "B", s->buffer);
	if (s->key) {
		put(p, ", ");
		put_quoted(p, "key", s->key);
	}
	if (s->group)
		put(p, ", group: \"%s\"", s->group);
	if (s->uplink > 0)
		put(p, ", uplink: %.0fB/s", s->uplink);
	put(p, "}");
}

static bool differ(const char *a, const char *b)
{
	return (a || b) && (!a || !b || strcmp(a, b) != 0);
}

static void put_compress(struct plan *p, const struct pxd_link_opts *o)
{
	static const char *const names[] = { "none", "auto", "zlib", "lz4", "zstd" };

	put(p, ", compress: \"%s", names[o->compress]);
	if (o->compress_level)
		put(p, ":%d", o->compress_level);
	put(p, "\"");
}

/* put_opts: the options that are not those of `base`. */
static void put_opts(struct plan *p, const struct pxd_hosts *h, const struct pxd_link_opts *o,
	const struct pxd_link_opts *base)
{
	if (o->streams != base->streams && o->streams)
		put(p, ", streams: %d", o->streams);
	else if (o->streams != base->streams)
		put(p, ", streams: auto");
	if (o->compress != base->compress || o->compress_level != base->compress_level)
		put_compress(p, o);
	if (o->predict != base->predict)
		put(p, ", predict: %s",
			o->predict == PXD_PREDICTION_AUTO   ? "auto"
			: o->predict == PXD_PREDICTION_NONE ? "none"
							    : "always");
	if (o->plain != base->plain)
		put(p, ", security: %s", o->plain ? "none" : "tls");
	if (differ(o->congestion, base->congestion) || o->source_port != base->source_port) {
		put(p, ", tcp: {source_port: %d", o->source_port);
		if (o->congestion)
			put(p, ", congestion: \"%s\"", o->congestion);
		put(p, "}");
	}
	if (o->dial && differ(o->dial, base->dial)) {
		put(p, ", ");
		put_quoted(p, "dial", o->dial);
	} else if (o->dialer >= 0 && (o->dialer != base->dialer || base->dial)) {
		put(p, ", dial: \"%s\"", h->sites[o->dialer].name);
	}
	if (differ(o->proxy, base->proxy)) {
		put(p, ", ");
		put_quoted(p, "proxy", o->proxy ? o->proxy : "none");
	}
	if (differ(o->relay, base->relay))
		put(p, ", relay: \"%s\"", o->relay ? o->relay : "none");
	if (o->reconnect_ms != base->reconnect_ms)
		put(p, ", reconnect: %ldms", o->reconnect_ms);
	if (o->emulate_latency_us != base->emulate_latency_us || o->emulate_rate != base->emulate_rate) {
		put(p, ", emulate: {latency: %ldus, rate: ", o->emulate_latency_us);
		if (o->emulate_rate > 0)
			put(p, "%.0fB/s}", o->emulate_rate);
		else
			put(p, "unlimited}");
	}
}

char *pxd_hosts_plan(const struct pxd_hosts *h)
{
	static const struct pxd_link_opts built_in = {
		.compress = PXD_COMPRESS_AUTO, .dialer = -1, .reconnect_ms = PXD_RECONNECT_MS
	};
	struct plan p = { 0 };
	char *copy = NULL;

	put(&p, "{");
	if (*h->job) {
		put_quoted(&p, "job", h->job);
		put(&p, ", ");
	}
	put(&p, "sites: [");
	for (int i = 0; i < h->nsites; i++) {
		put(&p, i ? ", " : "");
		put_site(&p, &h->sites[i]);
	}
	put(&p, "]");
	if (h->files >= PX_WORLD_FILES_SITE)
		put(&p, ", files: \"%s\"", h->sites[h->files - PX_WORLD_FILES_SITE].name);
	else
		put(&p, ", files: %s", h->files == PX_WORLD_FILES_LOCAL ? "local" : "shared");
	if (h->nlinks) {
		put(&p, ", links: [{default: ");
		put_opts(&p, h, &h->link_default, &built_in);
		put(&p, "}");
	}
	for (int i = 0; i < h->nlinks; i++) {
		const struct pxd_link *l = &h->links[i];

		if (l->a < 0)
			continue;
		put(&p, ", {between: [\"%s\", \"%s\"]", h->sites[l->a].name, h->sites[l->b].name);
		put_opts(&p, h, &l->o, &h->link_default);
		put(&p, "}");
	}
	put(&p, "%s, deadlines: {start: %ldms}}", h->nlinks ? "]" : "", h->deadline_start_ms);
	if (p.rc >= 0)
		p.rc = px_buf_append(&p.b, "", 1);
	if (p.rc >= 0)
		copy = strdup((const char *)px_buf_data(&p.b));
	px_buf_fini(&p.b);
	return copy;
}
