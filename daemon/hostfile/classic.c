/* classic.c: The classic form of PACX-MPI: one site a line,
 *
 *     host1 tcp 100 (rsh host2 mpirun -np 102 {exe})
 *
 * host or host:port, protocol (tcp), application ranks, start command in parentheses or # for a site
 * that is started by hand; without either, the default start command. Lines that begin with # are comments.
 * A site has the name of its host; the second one of the same host is called HOST.2, and so on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "text.h"

struct cursor {
	const struct pxd_text *t;
	size_t at, end; /* rest of the line */
	size_t begin;   /* of the line */
	int line;
};

/* mark_at: like pxd_text_mark, without counting lines from the beginning of the file. */
static struct pxd_mark mark_at(const struct cursor *c, size_t offset)
{
	struct pxd_text line = *c->t;
	struct pxd_mark at;

	line.text += c->begin;
	line.len = c->end - c->begin;
	at = pxd_text_mark(&line, offset - c->begin);
	at.line = c->line;
	return at;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void blank_skip(struct cursor *c)
{
	while (c->at < c->end && is_blank(c->t->text[c->at]))
		c->at++;
}

/* word_take: next word of the line into *word (new), and where it stands. */
static int word_take(struct cursor *c, const char *expected, char **word, struct pxd_mark *at)
{
	size_t from;

	blank_skip(c);
	from = c->at;
	*at = mark_at(c, from);
	while (c->at < c->end && !is_blank(c->t->text[c->at]) && c->t->text[c->at] != '(')
		c->at++;
	if (c->at == from)
		return pxd_text_fail(c->t, *at, expected, from < c->end ? "'('" : "the end of the line");
	*word = strndup(c->t->text + from, c->at - from);
	return *word ? 0 : pxd_text_nomem(c->t);
}

static int site_name(const struct pxd_text *t, struct pxd_hosts *h, struct pxd_site *s)
{
	char name[PX_NAME_MAX + 1], *host = strndup(s->host, PX_NAME_MAX - 8);
	int n = 1;

	if (!host)
		return pxd_text_nomem(t);
	for (char *p = host; *p; p++)
		if (*p == ':' || *p == '%') /* of an IPv6 address */
			*p = '-';
	if (*host == '-')
		*host = '0';
	for (int i = 0; i < h->nsites - 1; i++)
		n += strcmp(h->sites[i].host, s->host) == 0;
	if (n > 1)
		snprintf(name, sizeof name, "%s.%d", host, n);
	else
		snprintf(name, sizeof name, "%s", host);
	for (int i = 0; i < h->nsites - 1; i++) {
		if (strcmp(h->sites[i].name, name) != 0)
			continue;
		snprintf(name, sizeof name, "%s.%d", host, ++n);
		i = -1;
	}
	free(host);
	s->name = strdup(name);
	return s->name ? 0 : pxd_text_nomem(t);
}

/* start_take: the rest of the line: nothing, #, or (command). */
static int start_take(struct cursor *c, struct pxd_site *s)
{
	const struct pxd_text *t = c->t;
	size_t from, end = c->end;
	char show[PXD_SHOW], *rest;
	int rc;

	blank_skip(c);
	while (end > c->at && is_blank(t->text[end - 1]))
		end--;
	if (c->at == end)
		return 0;
	s->at_start = mark_at(c, c->at);
	if (t->text[c->at] == '#' || (end - c->at == 3 && memcmp(t->text + c->at, "(#)", 3) == 0)) {
		s->manual = true;
		return 0;
	}
	if (t->text[c->at] != '(') {
		rest = strndup(t->text + c->at, end - c->at);
		if (!rest)
			return pxd_text_nomem(t);
		rc = pxd_text_fail(t, s->at_start, "(start command), # for a start by hand, or nothing", "%s",
			pxd_text_show(rest, show));
		free(rest);
		return rc;
	}
	if (t->text[end - 1] != ')')
		return pxd_text_fail(
			t, mark_at(c, end), "')' after the start command", "the end of the line");
	for (from = c->at + 1; from < end - 1 && is_blank(t->text[from]);)
		from++;
	if (from == end - 1)
		return pxd_text_fail(t, s->at_start, "a start command", "'()'");
	s->start = strndup(t->text + from, end - 1 - from);
	return s->start ? 0 : pxd_text_nomem(t);
}

static int line_read(struct cursor *c, struct pxd_hosts *h)
{
	const struct pxd_text *t = c->t;
	char *word = NULL, show[PXD_SHOW];
	struct pxd_site *s;
	struct pxd_mark at;
	int rc, port = -1;

	if (h->nsites == PXD_SITES_MAX)
		return pxd_text_fail(t, mark_at(c, c->at), "at most 4096", "more sites");
	s = pxd_hosts_add(h);
	if (!s)
		return pxd_text_nomem(t);
	s->classic = true;
	rc = word_take(c, "a host name or an IP address", &word, &s->at);
	if (rc < 0)
		goto done;
	rc = pxd_value_endpoint(t, s->at, word, &s->host, &port);
	if (rc < 0)
		goto done;
	s->has_host = true;
	if (port >= 0) {
		s->has_port = true;
		s->port = port;
		s->at_port = s->at;
	}
	free(word);
	word = NULL;
	rc = word_take(c, "the protocol tcp", &word, &at);
	if (rc < 0)
		goto done;
	if (strcmp(word, "tcp") != 0) {
		rc = pxd_text_fail(t, at, "the protocol tcp", "%s", pxd_text_show(word, show));
		goto done;
	}
	free(word);
	word = NULL;
	rc = word_take(c, "a number of ranks from 1 to 16777216", &word, &at);
	if (rc < 0)
		goto done;
	rc = pxd_value_ranks(t, at, word, &s->ranks);
	if (rc < 0)
		goto done;
	rc = start_take(c, s);
	if (rc < 0)
		goto done;
	rc = site_name(t, h, s);
done:
	free(word);
	return rc;
}

static int read_classic(const struct pxd_text *t, struct pxd_hosts *h)
{
	struct cursor c = { .t = t };

	while (c.at < t->len) {
		const char *nl = memchr(t->text + c.at, '\n', t->len - c.at);

		c.end = nl ? (size_t)(nl - t->text) : t->len;
		c.begin = c.at;
		c.line++;
		blank_skip(&c);
		if (c.at < c.end && t->text[c.at] != '#') {
			int rc = line_read(&c, h);

			if (rc < 0)
				return rc;
		}
		c.at = c.end + 1;
	}
	return 0;
}

/* text_is_classic: the first line that says something tells the form. A YAML hostfile begins with
 * "key:", "- ", "{", a quote or a directive; a classic one with a host and further words. */
static bool text_is_classic(const char *text, size_t len)
{
	size_t i = 0, word;

	for (;;) {
		while (i < len && strchr(" \t\r\n", text[i]))
			i++;
		if (i >= len || text[i] != '#')
			break;
		while (i < len && text[i] != '\n')
			i++;
	}
	if (i >= len || strchr("-{[\"'%&*!|>?@`}],:", text[i]))
		return false;
	word = i;
	while (i < len && !strchr(" \t\r\n", text[i]))
		i++;
	if (text[i - 1] == ':' || memchr(text + word, '{', i - word))
		return false;
	while (i < len && strchr(" \t", text[i]))
		i++;
	return i < len && !strchr("\r\n:", text[i]);
}

const struct pxd_hostform pxd_hostform_classic = { text_is_classic, read_classic };
