/* stats.c: see stats.h. */
#include "stats.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "link.h"
#include "wait.h"

#define RECORD 256

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

/* How much of json[0..n) goes into a record with `room` bytes: the reader trims blanks, so neither
 * this fragment's end nor the next one's beginning may be one. */
static size_t fragment_len(const char *json, size_t n, size_t room)
{
	size_t k = n < room ? n : room;

	while (k > 1 && k < n && (json[k - 1] == ' ' || json[k] == ' '))
		k--;
	return k;
}

static int record_write(int fd, const char *record)
{
	ssize_t n;

	/* A pipe takes 256 bytes whole (PIPE_BUF), so lines of others do not mix in. */
	do
		n = write(fd, record, RECORD);
	while (n < 0 && errno == EINTR);
	return n == RECORD ? 0 : PX_EIO;
}

int pxd_stats_send(int fd, const char *site, const char *role, const char *kind, const char *json, size_t n)
{
	char record[RECORD + 1];
	/* The longest head: five digits for each number. */
	int head = snprintf(record, sizeof record, "\001pacx %s:%s %s 65536/65536 ", site, role, kind);
	size_t room, total = 0, at, k;

	if (head < 0 || head > RECORD - 64)
		return PX_EINVAL;
	room = RECORD - 1 - (size_t)head;
	for (at = 0; at < n; at += fragment_len(json + at, n - at, room))
		total++;
	at = 0;
	for (size_t seq = 1; seq <= total; seq++, at += k) {
		k = fragment_len(json + at, n - at, room);
		memset(record, ' ', RECORD);
		head = snprintf(
			record, sizeof record, "\001pacx %s:%s %s %zu/%zu ", site, role, kind, seq, total);
		record[head] = ' ';
		memcpy(record + head, json + at, k);
		record[RECORD - 1] = '\n';
		if (record_write(fd, record) < 0)
			return PX_EIO;
	}
	return 0;
}

void pxd_stats_codecs(struct px_buf *b, const struct pxd_counters *c)
{
	bool first = true;

	pxd_stats_add(b, ",\"codec\":{");
	for (int i = 0; i < 2 * PXD_CODEC_KINDS; i++) {
		if (c->codec[i].segments == 0)
			continue;
		pxd_stats_add(b, "%s\"%s\":{\"segments\":%llu,\"in\":%llu,\"out\":%llu,\"ns\":%llu}",
			first ? "" : ",", pxd_codec_name(i / 2 | (i & 1 ? PXD_CODEC_SHUFFLE : 0)),
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

void pxd_stats_link(struct px_buf *b, const struct pxd_node *d, int from, int to,
	const struct pxd_path_view *v, const struct pxd_counters *c, double rate)
{
	uint64_t now = px_now_ns();

	pxd_stats_add(b, "{\"from\":");
	pxd_stats_quote(b, pxd_site_name(d, from));
	pxd_stats_add(b, ",\"to\":");
	pxd_stats_quote(b, pxd_site_name(d, to));
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
	if (pxd_stats_send(STDOUT_FILENO, pxd_site_name(d, d->self), name, "stats", (char *)px_buf_data(b),
		    px_buf_len(b)) < 0)
		px_log(PX_LOG_WARN, "the statistics could not be written to standard output");
	px_buf_fini(b);
}
