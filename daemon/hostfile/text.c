/* text.c: see text.h. */
#include "text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define HOST_MAX        253 /* RFC 1035 */
#define DURATION_MAX_MS (7L * 24 * 3600 * 1000)

int pxd_text_fail(const struct pxd_text *t, struct pxd_mark at, const char *expected, const char *fmt, ...)
{
	char found[PXD_WHY];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(found, sizeof found, fmt, ap);
	va_end(ap);
	if (at.line > 0 && !t->flat)
		snprintf(t->why, t->cap, "%s:%d:%d: found %s, expected %s", t->file, at.line, at.column,
			found, expected);
	else
		snprintf(t->why, t->cap, "%s: found %s, expected %s", t->file, found, expected);
	return PX_ECONF;
}

int pxd_text_nomem(const struct pxd_text *t)
{
	snprintf(t->why, t->cap, "%s: out of memory", t->file);
	return PX_ENOMEM;
}

struct pxd_mark pxd_text_mark(const struct pxd_text *t, size_t offset)
{
	struct pxd_mark at = { 1, 1 };

	for (size_t i = 0; i < offset && i < t->len; i++) {
		if (t->text[i] == '\n') {
			at.line++;
			at.column = 1;
		} else if (((unsigned char)t->text[i] & 0xC0) != 0x80) {
			at.column++;
		}
	}
	return at;
}

/* utf8_length: bytes of the well-formed character at s (RFC 3629), 0 = not one. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
	static const struct {
		unsigned char mask, lead;
		size_t len;
		uint32_t min;
	} form[] = { { 0x80, 0x00, 1, 0 }, { 0xE0, 0xC0, 2, 0x80 }, { 0xF0, 0xE0, 3, 0x800 },
		{ 0xF8, 0xF0, 4, 0x10000 } };

	for (size_t f = 0; f < 4; f++) {
		uint32_t c;

		if ((s[0] & form[f].mask) != form[f].lead)
			continue;
		if (form[f].len > left)
			return 0;
		c = s[0] & (unsigned char)~form[f].mask;
		for (size_t i = 1; i < form[f].len; i++) {
			if ((s[i] & 0xC0) != 0x80)
				return 0;
			c = c << 6 | (s[i] & 0x3Fu);
		}
		if (c < form[f].min || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
			return 0;
		return form[f].len;
	}
	return 0;
}

int pxd_text_check(const struct pxd_text *t)
{
	const unsigned char *s = (const unsigned char *)t->text;

	if (t->len > PXD_HOSTFILE_MAX)
		return pxd_text_fail(t, (struct pxd_mark){ 0, 0 },
			"at most 1048576 bytes (is this a hostfile?)", "%zu bytes", t->len);
	for (size_t i = 0; i < t->len;) {
		size_t n = utf8_length(s + i, t->len - i);

		if (n == 0)
			return pxd_text_fail(t, pxd_text_mark(t, i), "UTF-8 text", "the byte 0x%02x", s[i]);
		if ((s[i] < 0x20 && s[i] != '\n' && s[i] != '\r' && s[i] != '\t') || s[i] == 0x7F)
			return pxd_text_fail(
				t, pxd_text_mark(t, i), "text", "the control character 0x%02x", s[i]);
		i += n;
	}
	return 0;
}

const char *pxd_text_show(const char *v, char buf[PXD_SHOW])
{
	size_t n = 0;

	buf[n++] = '\'';
	for (; *v && n < PXD_SHOW - 8; v++)
		buf[n++] = (unsigned char)*v < 0x20 ? ' ' : *v;
	if (*v) {
		while (n > 1 && ((unsigned char)buf[n - 1] & 0x80)) /* cut between characters */
			n--;
		memcpy(buf + n, "...", 3);
		n += 3;
	}
	buf[n++] = '\'';
	buf[n] = '\0';
	return buf;
}

int pxd_value_name(const struct pxd_text *t, struct pxd_mark at, const char *v, char **out)
{
	char show[PXD_SHOW];
	size_t n = strlen(v);

	if (n == 0 || n > PX_NAME_MAX || v[0] == '-' || v[0] == '.' ||
		strspn(v, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != n)
		return pxd_text_fail(t, at, "a name of 1 to 64 letters, digits, '.', '_' and '-'", "%s",
			pxd_text_show(v, show));
	*out = strdup(v);
	return *out ? 0 : pxd_text_nomem(t);
}

int pxd_value_host(const struct pxd_text *t, struct pxd_mark at, const char *v, char **out)
{
	char show[PXD_SHOW];
	size_t n = strlen(v);
	const char *h = v;

	if (n > 2 && v[0] == '[' && v[n - 1] == ']' && memchr(v, ':', n)) { /* an IPv6 address as in URLs */
		h++;
		n -= 2;
	}
	if (n == 0 || n > HOST_MAX || h[0] == '-' || h[0] == '.' ||
		strspn(h, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:%-") < n)
		return pxd_text_fail(t, at, "a host name or an IP address", "%s", pxd_text_show(v, show));
	*out = strndup(h, n);
	return *out ? 0 : pxd_text_nomem(t);
}

/* number_get: a decimal number of at most 18 digits; -1 otherwise. */
static long long number_get(const char *v)
{
	size_t n = strspn(v, "0123456789");

	if (n == 0 || n > 18 || v[n])
		return -1;
	return atoll(v);
}

int pxd_value_port(const struct pxd_text *t, struct pxd_mark at, const char *v, int *out)
{
	char show[PXD_SHOW];
	long long n = number_get(v);

	if (n < 0 || n > 65535)
		return pxd_text_fail(t, at, "a port number from 1 to 65535, or 0 for any free one", "%s",
			pxd_text_show(v, show));
	*out = (int)n;
	return 0;
}

int pxd_value_ranks(const struct pxd_text *t, struct pxd_mark at, const char *v, int *out)
{
	char show[PXD_SHOW];
	long long n = number_get(v);

	if (n < 1 || n > PXD_RANKS_MAX)
		return pxd_text_fail(
			t, at, "a number of ranks from 1 to 16777216", "%s", pxd_text_show(v, show));
	*out = (int)n;
	return 0;
}

int pxd_value_endpoint(const struct pxd_text *t, struct pxd_mark at, const char *v, char **host, int *port)
{
	static const char expected[] = "host:port, [IPv6 address]:port, or a host alone";
	const char *h = v, *end, *p = NULL;
	char show[PXD_SHOW];
	int number = -1, rc;
	char *copy;

	if (*v == '[') {
		h = v + 1;
		end = strchr(h, ']');
		if (!end || (end[1] && end[1] != ':'))
			return pxd_text_fail(t, at, expected, "%s", pxd_text_show(v, show));
		if (end[1])
			p = end + 2;
	} else {
		end = strchr(v, ':');
		if (end && strchr(end + 1, ':')) /* two colons: an IPv6 address without port */
			end = NULL;
		if (end)
			p = end + 1;
		else
			end = v + strlen(v);
	}
	if (p) {
		rc = pxd_value_port(t, at, p, &number);
		if (rc < 0)
			return rc;
	}
	copy = strndup(h, (size_t)(end - h));
	if (!copy)
		return pxd_text_nomem(t);
	rc = pxd_value_host(t, at, copy, host);
	free(copy);
	if (rc < 0)
		return rc;
	*port = number;
	return 0;
}

int pxd_value_duration(const struct pxd_text *t, struct pxd_mark at, const char *v, long *ms)
{
	static const struct {
		const char *name;
		double ms;
	} unit[] = { { "ms", 1 }, { "s", 1e3 }, { "m", 6e4 }, { "min", 6e4 }, { "h", 3.6e6 } };
	size_t n = strspn(v, "0123456789.");
	char show[PXD_SHOW], *end = NULL;
	double x = -1;

	if (n > 0 && n < 16 && isdigit((unsigned char)v[0]))
		x = strtod(v, &end);
	if (end == v + n) {
		for (size_t i = 0; i < sizeof unit / sizeof unit[0]; i++) {
			if (strcmp(end, unit[i].name) == 0 && x * unit[i].ms >= 1 &&
				x * unit[i].ms <= (double)DURATION_MAX_MS) {
				*ms = (long)(x * unit[i].ms);
				return 0;
			}
		}
	}
	return pxd_text_fail(t, at, "a duration from 1ms to 168h such as 500ms, 120s, 2m or 1h", "%s",
		pxd_text_show(v, show));
}

/* number_split: a number with fraction at the beginning of v, not negative; *unit = what follows it, or -1. */
static double number_split(const char *v, const char **unit)
{
	size_t n = strspn(v, "0123456789.");
	char *end = NULL;
	double x;

	if (n == 0 || n >= 20 || !isdigit((unsigned char)v[0]))
		return -1;
	x = strtod(v, &end);
	*unit = end;
	return end == v + n ? x : -1;
}

struct unit {
	const char *name;
	double factor;
};

/* unit_find: factor of a unit, or -1. */
static double unit_find(const struct unit *u, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(u[i].name, name) == 0)
			return u[i].factor;
	return -1;
}

int pxd_value_buffer(const struct pxd_text *t, struct pxd_mark at, const char *v, uint64_t *bytes)
{
	static const struct unit units[] = { { "B", 1 }, { "kB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 },
		{ "KiB", 1024 }, { "MiB", 1048576 }, { "GiB", 1073741824 } };
	const char *unit = "";
	double x = number_split(v, &unit), factor = unit_find(units, sizeof units / sizeof units[0], unit);
	char show[PXD_SHOW];

	x *= factor;
	if (x < 0 || factor < 0 || x < PXD_BUFFER_MIN || x > 1099511627776.0)
		return pxd_text_fail(t, at, "a size from 16MiB to 1024GiB (kB, MB, GB, KiB, MiB, GiB)", "%s",
			pxd_text_show(v, show));
	*bytes = (uint64_t)x;
	return 0;
}

int pxd_value_latency(const struct pxd_text *t, struct pxd_mark at, const char *v, long *us)
{
	static const struct unit units[] = { { "us", 1 }, { "ms", 1e3 }, { "s", 1e6 } };
	const char *unit = "";
	double x = number_split(v, &unit), factor = unit_find(units, sizeof units / sizeof units[0], unit);
	char show[PXD_SHOW];

	if (x < 0 || factor < 0 || x * factor > 60e6)
		return pxd_text_fail(t, at, "a time of at most 60s such as 500us, 10ms or 0.1s", "%s",
			pxd_text_show(v, show));
	*us = (long)(x * factor + 0.5);
	return 0;
}

int pxd_value_rate(const struct pxd_text *t, struct pxd_mark at, const char *v, double *rate)
{
	static const struct unit units[] = { { "B/s", 1 }, { "kB/s", 1e3 }, { "MB/s", 1e6 }, { "GB/s", 1e9 },
		{ "KiB/s", 1024 }, { "MiB/s", 1048576 }, { "GiB/s", 1073741824 }, { "bit/s", 1 / 8.0 },
		{ "kbit/s", 125 }, { "Mbit/s", 125e3 }, { "Gbit/s", 125e6 } };
	const char *unit = "";
	double x = number_split(v, &unit), factor = unit_find(units, sizeof units / sizeof units[0], unit);
	char show[PXD_SHOW];

	if (strcmp(v, "unlimited") == 0) {
		*rate = 0;
		return 0;
	}
	x *= factor;
	if (x < 0 || factor < 0 || x < 1 || x > 1e13)
		return pxd_text_fail(t, at,
			"a rate from 1B/s such as 1MB/s, 64KiB/s or 10Mbit/s, or unlimited", "%s",
			pxd_text_show(v, show));
	*rate = (double)(uint64_t)(x + 0.5);
	return 0;
}

int pxd_value_proxy(const struct pxd_text *t, struct pxd_mark at, const char *v, char **out)
{
	static const char expected[] =
		"socks5://host:port or http://host:port, with user:password@ before the host if need be";
	const char *h = v, *user, *colon;
	char *host = NULL, whole[PXD_WHY];
	struct pxd_text quiet = *t; /* complaints about parts would show them */
	int port = -1, rc;

	quiet.why = whole;
	quiet.cap = sizeof whole;
	if (strncmp(v, "socks5://", 9) == 0)
		h += 9;
	else if (strncmp(v, "http://", 7) == 0)
		h += 7;
	else
		return pxd_text_fail(t, at, expected, "something else");
	user = h;
	if (strrchr(h, '@')) {
		h = strrchr(h, '@');
		colon = strchr(user, ':');
		/* As much as struct pxd_proxy (via.h) has room for. */
		if (!colon || colon > h || colon == user || colon - user > 127 || h - colon - 1 > 127)
			return pxd_text_fail(
				t, at, expected, "no user:password of at most 127 characters each");
		h++;
	}
	rc = pxd_value_endpoint(&quiet, at, h, &host, &port);
	free(host);
	if (rc == PX_ENOMEM)
		return pxd_text_nomem(t);
	if (rc < 0 || port < 1)
		return pxd_text_fail(t, at, expected, "no host:port in it");
	for (const char *p = v; *p; p++)
		if ((unsigned char)*p <= 0x20 || *p == 0x7f)
			return pxd_text_fail(t, at, expected, "a blank or control character in it");
	host = strdup(v);
	if (!host)
		return pxd_text_nomem(t);
	free(*out);
	*out = host;
	return 0;
}

int pxd_value_compress(
	const struct pxd_text *t, struct pxd_mark at, const char *v, enum pxd_compress *kind, int *level)
{
	static const struct {
		const char *name;
		enum pxd_compress kind;
		int levels;
	} codec[] = { { "none", PXD_COMPRESS_NONE, 0 }, { "auto", PXD_COMPRESS_AUTO, 0 },
		{ "zlib", PXD_COMPRESS_ZLIB, 9 }, { "lz4", PXD_COMPRESS_LZ4, 0 },
		{ "zstd", PXD_COMPRESS_ZSTD, 19 } };
	size_t n = strcspn(v, ":");
	char show[PXD_SHOW];

	for (size_t i = 0; i < sizeof codec / sizeof codec[0]; i++) {
		long long l = 0;

		if (strlen(codec[i].name) != n || memcmp(v, codec[i].name, n) != 0)
			continue;
		if (v[n]) {
			l = number_get(v + n + 1);
			if (l < 1 || l > codec[i].levels)
				break;
		}
		*kind = codec[i].kind;
		*level = (int)l;
		return 0;
	}
	return pxd_text_fail(t, at, "none, auto, zlib, zlib:1 to zlib:9, lz4, zstd, or zstd:1 to zstd:19",
		"%s", pxd_text_show(v, show));
}

/* key_distance: edit distance with transposition of neighbours as one step (optimal string alignment). */
static int key_distance(const char *a, const char *b)
{
	enum { MAX = 32 };
	int d[MAX + 1][MAX + 1];
	int n = (int)strlen(a), m = (int)strlen(b);

	if (n > MAX || m > MAX)
		return n > m ? n : m;
	for (int i = 0; i <= n; i++)
		d[i][0] = i;
	for (int j = 0; j <= m; j++)
		d[0][j] = j;
	for (int i = 1; i <= n; i++) {
		for (int j = 1; j <= m; j++) {
			int best = d[i - 1][j - 1] +
				   (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));

			if (d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[n][m];
}

const char *pxd_key_nearest(const char *key, const char *const *known, int n, int *distance)
{
	const char *best = known[0];
	int least = key_distance(key, known[0]);

	for (int i = 1; i < n; i++) {
		int d = key_distance(key, known[i]);

		if (d < least) {
			least = d;
			best = known[i];
		}
	}
	if (distance)
		*distance = least;
	return best;
}
