/* via.c: see via.h. SOCKS5: RFC 1928, RFC 1929. CONNECT: RFC 9110, section 9.3.6. */
#include "via.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "address.h"
#include "err.h"

enum step { GREETING, LOGIN, REPLY, STATUS, UP, FAILED };

bool pxd_via_host_good(const char *h)
{
	if (!*h || *h == '-' || strlen(h) >= sizeof((struct pxd_via *)0)->host)
		return false;
	for (; *h; h++)
		if (!(isalnum((unsigned char)*h) && (unsigned char)*h < 128) && !strchr(".:-_[]", *h))
			return false;
	return true;
}

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* "%40" and its like; PX_EINVAL: too long, or no text. */
static int decode(const char *from, size_t n, char *to, size_t cap)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		int c = (unsigned char)from[i];

		if (c == '%') {
			if (i + 2 >= n || hex(from[i + 1]) < 0 || hex(from[i + 2]) < 0)
				return PX_EINVAL;
			c = hex(from[i + 1]) << 4 | hex(from[i + 2]);
			i += 2;
		}
		if (c == 0 || len + 1 >= cap)
			return PX_EINVAL;
		to[len++] = (char)c;
	}
	to[len] = 0;
	return 0;
}

/* The port at the end of a URL; -1: it is none. */
static int port_of(const char *text)
{
	int port = 0, digits = 0;

	for (; *text >= '0' && *text <= '9' && digits < 6; text++, digits++)
		port = 10 * port + (*text - '0');
	if (*text == '/')
		text++;
	return *text || digits == 0 || port < 1 || port > 65535 ? -1 : port;
}

int pxd_proxy_parse(const char *url, struct pxd_proxy *out)
{
	struct pxd_proxy p = { 0 };
	const char *at, *colon, *end;
	size_t n;

	if (strncmp(url, "socks5://", 9) == 0) {
		p.kind = PXD_PROXY_SOCKS5;
		url += 9;
	} else if (strncmp(url, "socks5h://", 10) == 0) {
		p.kind = PXD_PROXY_SOCKS5;
		url += 10;
	} else if (strncmp(url, "http://", 7) == 0) {
		p.kind = PXD_PROXY_HTTP;
		url += 7;
	} else {
		return PX_EINVAL;
	}
	at = strrchr(url, '@');
	if (at) {
		colon = memchr(url, ':', (size_t)(at - url));
		if (!colon || colon == url || decode(url, (size_t)(colon - url), p.user, sizeof p.user) < 0 ||
			decode(colon + 1, (size_t)(at - colon - 1), p.password, sizeof p.password) < 0)
			return PX_EINVAL;
		/* In Basic credentials the first colon ends the user's name. */
		if (p.kind == PXD_PROXY_HTTP && strchr(p.user, ':'))
			return PX_EINVAL;
		url = at + 1;
	}
	if (*url == '[') {
		end = strchr(++url, ']');
		colon = end && end[1] == ':' ? end + 1 : NULL;
	} else {
		end = colon = strchr(url, ':');
	}
	if (!colon)
		return PX_EINVAL;
	n = (size_t)(end - url);
	if (n >= sizeof p.host)
		return PX_EINVAL;
	memcpy(p.host, url, n);
	p.port = port_of(colon + 1);
	if (p.port < 0 || !pxd_via_host_good(p.host) || strpbrk(p.host, "[]"))
		return PX_EINVAL;
	*out = p;
	return 0;
}

static size_t put_base64(char *to, const uint8_t *in, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *at = to;

	for (size_t i = 0; i < n; i += 3) {
		unsigned v = (unsigned)in[i] << 16 | (i + 1 < n ? (unsigned)in[i + 1] << 8 : 0) |
			     (i + 2 < n ? in[i + 2] : 0);

		*at++ = digits[v >> 18];
		*at++ = digits[v >> 12 & 63];
		*at++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
		*at++ = i + 2 < n ? digits[v & 63] : '=';
	}
	return (size_t)(at - to);
}

static size_t connect_request(const struct pxd_via *v, char *out)
{
	const struct pxd_proxy *p = v->proxy;
	const char *open = strchr(v->host, ':') ? "[" : "", *close = *open ? "]" : "";
	char pair[sizeof p->user + sizeof p->password + 1];
	int n, len;

	n = snprintf(out, PXD_VIA_OUT, "CONNECT %s%s%s:%d HTTP/1.1\r\nHost: %s%s%s:%d\r\n", open, v->host,
		close, v->port, open, v->host, close, v->port);
	if (*p->user) {
		len = snprintf(pair, sizeof pair, "%s:%s", p->user, p->password);
		n += snprintf(out + n, PXD_VIA_OUT - (size_t)n, "Proxy-Authorization: Basic ");
		n += (int)put_base64(out + n, (const uint8_t *)pair, (size_t)len);
		n += snprintf(out + n, PXD_VIA_OUT - (size_t)n, "\r\n");
	}
	n += snprintf(out + n, PXD_VIA_OUT - (size_t)n, "\r\n");
	return (size_t)n;
}

int pxd_via_start(
	struct pxd_via *v, const struct pxd_proxy *p, const char *host, int port, uint8_t *out, size_t *n)
{
	size_t len = strlen(host);

	if (!pxd_via_host_good(host) || port < 1 || port > 65535 || p->kind == PXD_PROXY_NONE)
		return PX_EINVAL;
	memset(v, 0, sizeof *v);
	if (host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	}
	if (len == 0 || memchr(host, '[', len) || memchr(host, ']', len))
		return PX_EINVAL;
	memcpy(v->host, host, len);
	v->proxy = p;
	v->port = port;
	if (p->kind == PXD_PROXY_HTTP) {
		v->step = STATUS;
		*n = connect_request(v, (char *)out);
		return 0;
	}
	v->step = GREETING;
	out[0] = 5;
	out[1] = *p->user ? 2 : 1;
	out[2] = 0; /* no login */
	out[3] = 2; /* name and password */
	*n = 2 + (size_t)out[1];
	return 0;
}

/* Length of the SOCKS5 reply as far as it is known. */
static size_t reply_size(const struct pxd_via *v)
{
	if (v->nin < 4)
		return 4;
	if (v->in[3] == 1)
		return 4 + 4 + 2;
	if (v->in[3] == 4)
		return 4 + 16 + 2;
	return v->nin < 5 ? 5 : 5 + (size_t)v->in[4] + 2;
}

size_t pxd_via_want(const struct pxd_via *v)
{
	switch (v->step) {
	case GREETING:
	case LOGIN:
		return 2 - v->nin;
	case REPLY:
		return reply_size(v) - v->nin;
	case STATUS:
		/* An empty line ends it; what follows is the peer's. Lines may end with a bare newline. */
		if (v->nin >= 1 && v->in[v->nin - 1] == '\n')
			return 1;
		if (v->nin >= 2 && v->in[v->nin - 1] == '\r' && v->in[v->nin - 2] == '\n')
			return 1;
		return sizeof v->in - v->nin >= 2 ? 2 : 1;
	default:
		return 0;
	}
}

static int fail(struct pxd_via *v, int rc, char *why, size_t cap, const char *text)
{
	char proxy[PXD_HOSTPORT];

	v->step = FAILED;
	snprintf(why, cap, "the proxy %s %s", pxd_hostport(v->proxy->host, v->proxy->port, proxy), text);
	return rc;
}

static size_t socks_request(const struct pxd_via *v, uint8_t *out)
{
	struct in6_addr six;
	struct in_addr four;
	size_t n = 4, len;

	out[0] = 5;
	out[1] = 1; /* CONNECT */
	out[2] = 0;
	if (inet_pton(AF_INET, v->host, &four) == 1) {
		out[3] = 1;
		memcpy(out + n, &four, 4);
		n += 4;
	} else if (inet_pton(AF_INET6, v->host, &six) == 1) {
		out[3] = 4;
		memcpy(out + n, &six, 16);
		n += 16;
	} else {
		out[3] = 3;
		len = strlen(v->host);
		out[n++] = (uint8_t)len;
		memcpy(out + n, v->host, len);
		n += len;
	}
	out[n++] = (uint8_t)(v->port >> 8);
	out[n++] = (uint8_t)v->port;
	return n;
}

static size_t socks_login(const struct pxd_proxy *p, uint8_t *out)
{
	size_t user = strlen(p->user), password = strlen(p->password), n = 0;

	out[n++] = 1;
	out[n++] = (uint8_t)user;
	memcpy(out + n, p->user, user);
	n += user;
	out[n++] = (uint8_t)password;
	memcpy(out + n, p->password, password);
	return n + password;
}

static int feed_greeting(struct pxd_via *v, uint8_t *out, size_t *n, char *why, size_t cap)
{
	bool login = *v->proxy->user;

	if (v->in[0] != 5)
		return fail(v, PX_EPROTO, why, cap, "does not speak SOCKS5");
	if (v->nin < 2)
		return 0;
	v->nin = 0;
	if (v->in[1] == 0) {
		v->step = REPLY;
		*n = socks_request(v, out);
		return 0;
	}
	if (v->in[1] == 2 && login) {
		v->step = LOGIN;
		*n = socks_login(v->proxy, out);
		return 0;
	}
	if (v->in[1] == 2 || v->in[1] == 0xff)
		return fail(v, PX_ECLOSED, why, cap,
			login ? "accepts neither a login by name and password nor none"
			      : "wants a login: write proxy: socks5://USER:PASSWORD@HOST:PORT");
	return fail(v, PX_EPROTO, why, cap, "chose a kind of login that was not offered");
}

static int feed_login(struct pxd_via *v, uint8_t *out, size_t *n, char *why, size_t cap)
{
	if (v->in[0] != 1)
		return fail(v, PX_EPROTO, why, cap, "gave no valid answer to the login");
	if (v->nin < 2)
		return 0;
	if (v->in[1] != 0)
		return fail(v, PX_ECLOSED, why, cap, "refused the user name or the password");
	v->nin = 0;
	v->step = REPLY;
	*n = socks_request(v, out);
	return 0;
}

static int feed_reply(struct pxd_via *v, char *why, size_t cap)
{
	static const char *const reasons[] = { "", "general failure", "not allowed by its rules",
		"network unreachable", "host unreachable", "connection refused", "time to live expired",
		"command not supported", "kind of address not supported" };
	char text[400];

	if (v->in[0] != 5)
		return fail(v, PX_EPROTO, why, cap, "gave no valid answer to the request");
	if (v->nin >= 2 && v->in[1] != 0) { /* some close behind this byte */
		snprintf(text, sizeof text, "could not connect to %s port %d: %s (%d)", v->host, v->port,
			v->in[1] < sizeof reasons / sizeof *reasons ? reasons[v->in[1]] : "unknown reason",
			v->in[1]);
		return fail(v, PX_ECLOSED, why, cap, text);
	}
	if (v->nin >= 4 && v->in[3] != 1 && v->in[3] != 3 && v->in[3] != 4)
		return fail(v, PX_EPROTO, why, cap, "answered with an unknown kind of address");
	if (v->nin < reply_size(v))
		return 0;
	v->step = UP;
	return 1;
}

/* The first line, such that it can be shown. */
static void status_line(const struct pxd_via *v, char *text, size_t cap)
{
	size_t n = 0;

	while (n < v->nin && n + 1 < cap && v->in[n] != '\r' && v->in[n] != '\n') {
		text[n] = v->in[n] >= ' ' && v->in[n] < 0x7f ? (char)v->in[n] : '?';
		n++;
	}
	text[n] = 0;
	/* A proxy may say what it was told. */
	if (*v->proxy->password && strstr(text, v->proxy->password))
		snprintf(text, cap, "HTTP/1.%c %.3s", v->in[7], (const char *)v->in + 9);
}

static int feed_status(struct pxd_via *v, char *why, size_t cap)
{
	static const char start[] = "HTTP/1.";
	char line[120], text[480];
	size_t n = v->nin;
	int code;

	if (memcmp(v->in, start, n < sizeof start - 1 ? n : sizeof start - 1) != 0)
		return fail(v, PX_EPROTO, why, cap, "does not speak HTTP");
	if (v->in[n - 1] != '\n' || n < 2 ||
		!(v->in[n - 2] == '\n' || (n >= 3 && v->in[n - 2] == '\r' && v->in[n - 3] == '\n'))) {
		if (n == sizeof v->in)
			return fail(v, PX_EPROTO, why, cap, "gave an answer that is too long");
		return 0;
	}
	/* "HTTP/1.x 200", then blank or end of line */
	if (n < 13 || !isdigit(v->in[7]) || v->in[8] != ' ' || !isdigit(v->in[9]) || !isdigit(v->in[10]) ||
		!isdigit(v->in[11]) || !isspace(v->in[12]))
		return fail(v, PX_EPROTO, why, cap, "gave no valid answer to CONNECT");
	code = (v->in[9] - '0') * 100 + (v->in[10] - '0') * 10 + v->in[11] - '0';
	if (code >= 200 && code < 300) {
		v->step = UP;
		return 1;
	}
	if (code < 200) { /* an interim answer; the real one follows */
		v->nin = 0;
		return code == 101 ? fail(v, PX_EPROTO, why, cap, "wants to speak another protocol") : 0;
	}
	status_line(v, line, sizeof line);
	if (code == 407)
		snprintf(text, sizeof text, "%s (%s)",
			*v->proxy->user ? "refused the user name or the password"
					: "wants a login: write proxy: http://USER:PASSWORD@HOST:PORT",
			line);
	else
		snprintf(text, sizeof text, "did not connect to %s port %d: %s", v->host, v->port, line);
	return fail(v, PX_ECLOSED, why, cap, text);
}

int pxd_via_feed(
	struct pxd_via *v, const uint8_t *in, size_t len, uint8_t *out, size_t *n, char *why, size_t cap)
{
	*n = 0;
	if (len == 0)
		return 0;
	if (len > pxd_via_want(v))
		return fail(v, PX_EPROTO, why, cap, "gave more than was read");
	memcpy(v->in + v->nin, in, len);
	v->nin += len;
	switch (v->step) {
	case GREETING:
		return feed_greeting(v, out, n, why, cap);
	case LOGIN:
		return feed_login(v, out, n, why, cap);
	case REPLY:
		return feed_reply(v, why, cap);
	default:
		return feed_status(v, why, cap);
	}
}
