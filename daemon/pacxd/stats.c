/* stats.c: see stats.h. */
#include "stats.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "link.h"
#include "record.h"
#include "wait.h"

int pxd_stats_add(struct px_buf *b, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof text)
		return PX_EINVAL;
	return px_buf_append(b, text, (size_t)n);
}

int pxd_stats_quote(struct px_buf *b, const char *s)
{
	int rc = px_buf_append(b, "\"", 1);

	for (; *s && rc == 0; s++) {
		if (*s == '"' || *s == '\\')
			rc = px_buf_append(b, "\\", 1);
		if (rc == 0)
			rc = (unsigned char)*s < 0x20
				     ? pxd_stats_add(b, "\\u%04x", (unsigned)(unsigned char)*s)
				     : px_buf_append(b, s, 1);
	}
	return rc == 0 ? px_buf_append(b, "\"", 1) : rc;
}

void pxd_stats_codecs(struct px_buf *b, const struct pxd_counters *c)
{
	bool first = true;

	pxd_stats_add(b, ",\"codec\":{");
	for (int i = 0; i < PXD_CODEC_SLOTS; i++) {
		if (c->codec[i].segments == 0)
			continue;
		pxd_stats_add(b, "%s\"%s\":{\"segments\":%llu,\"in\":%llu,\"out\":%llu,\"ns\":%llu}",
			first ? "" : ",", pxd_slot_name((unsigned)i),
			(unsigned long long)c->codec[i].segments, (unsigned long long)c->codec[i].in,
			(unsigned long long)c->codec[i].out, (unsigned long long)c->codec[i].ns);
		first = false;
	}
	pxd_stats_add(b, "},\"lossy\":{\"segments\":%llu,\"in\":%llu,\"out\":%llu,\"ns\":%llu}",
		(unsigned long long)c->lossy.segments, (unsigned long long)c->lossy.in,
		(unsigned long long)c->lossy.out, (unsigned long long)c->lossy.ns);
	pxd_stats_add(b, ",\"predicted\":{");
	first = true;
	for (int i = 0; i < PXD_PREDICT_KINDS; i++) {
		if (c->predicted[i].segments == 0)
			continue;
		pxd_stats_add(b, "%s\"%s\":{\"segments\":%llu,\"in\":%llu,\"out\":%llu}", first ? "" : ",",
			pxd_predict_kind_name((enum pxd_predict_kind)i),
			(unsigned long long)c->predicted[i].segments, (unsigned long long)c->predicted[i].in,
			(unsigned long long)c->predicted[i].out);
		first = false;
	}
	pxd_stats_add(b, "}");
}

void pxd_stats_ends(struct px_buf *b, const struct pxd_node *d, int from, int to)
{
	pxd_stats_add(b, "{\"from\":");
	pxd_stats_quote(b, pxd_site_name(d, from));
	pxd_stats_add(b, ",\"to\":");
	pxd_stats_quote(b, pxd_site_name(d, to));
}

void pxd_stats_link(struct px_buf *b, const struct pxd_node *d, int from, int to,
	const struct pxd_path_view *v, const struct pxd_counters *c, double rate)
{
	uint64_t now = px_now_ns();

	pxd_stats_ends(b, d, from, to);
	pxd_stats_add(b,
		",\"state\":\"%s\",\"since_s\":%.1f,\"last_byte_s\":%.1f,\"streams\":%d,\"rtt_us\":%u,"
		"\"messages\":%llu,"
		"\"payload_bytes\":%llu,\"wire_bytes\":%llu",
		v->state == PXD_LINK_UP && v->slow ? "slow" : pxd_link_state_name(v->state),
		v->since ? (double)(now - v->since) / 1e9 : 0.0,
		v->last_byte ? (double)(now - v->last_byte) / 1e9 : 0.0, v->streams, v->rtt_us,
		(unsigned long long)c->messages, (unsigned long long)c->payload_bytes,
		(unsigned long long)c->wire_bytes);
	pxd_stats_add(b, ",\"queued_bytes\":%zu,\"retained_bytes\":%zu,\"reconnects\":%u,\"rate_Bps\":%.0f",
		v->queued, v->retained, v->reconnects, rate);
	pxd_stats_codecs(b, c);
	pxd_stats_add(b, "}");
}

void pxd_stats_report(const struct pxd_node *d, const char *role, struct px_buf *b)
{
	char name[16]; /* of gateways but the first: with its number */

	snprintf(name, sizeof name, "%s", role);
	if (d->gateway > 0)
		snprintf(name, sizeof name, "%s%d", role, d->gateway);
	if (pxd_record_send(STDOUT_FILENO, pxd_site_name(d, d->self), name, "stats", (char *)px_buf_data(b),
		    px_buf_len(b)) < 0)
		px_log(PX_LOG_WARN, "the statistics could not be written to standard output");
	px_buf_fini(b);
}
