/* quote.c: see quote.h. */
#include "quote.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "text.h"

int pxd_quote_word(struct px_buf *b, const char *word)
{
	size_t n = strlen(word);
	int rc;

	/* Words of harmless characters stay readable. NAME=VALUE needs no quotes: env reads it, not
	 * the shell. */
	if (n > 0 &&
		strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=,@%+-") ==
			n &&
		word[0] != '=')
		return px_buf_append(b, word, n);
	rc = px_buf_append(b, "'", 1);
	for (; *word && rc >= 0; word++)
		rc = *word == '\'' ? px_buf_append(b, "'\\''", 4) : px_buf_append(b, word, 1);
	return rc < 0 ? rc : px_buf_append(b, "'", 1);
}

int pxd_quote_words(struct px_buf *b, char *const *words, int levels)
{
	struct px_buf inner = { 0 };
	int rc = 0;

	if (levels <= 1) {
		for (int i = 0; words[i] && rc >= 0; i++) {
			if (i)
				rc = px_buf_append(b, " ", 1);
			if (rc >= 0)
				rc = levels == 1 ? pxd_quote_word(b, words[i])
						 : px_buf_append(b, words[i], strlen(words[i]));
		}
		return rc;
	}
	rc = pxd_quote_words(&inner, words, levels - 1);
	if (rc >= 0)
		rc = px_buf_append(&inner, "", 1);
	if (rc >= 0)
		rc = pxd_quote_word(b, (const char *)px_buf_data(&inner));
	px_buf_fini(&inner);
	return rc;
}

/* Where the local shell is while it reads the start command. */
struct scan {
	char quote;         /* 0, '\'' or '"' */
	int remote;         /* remote shell words so far in this simple command */
	int seen;           /* remote shell words so far in all */
	const char *word;   /* begin of the current word, NULL between words */
	const char *simple; /* begin of the current simple command */
};

static bool word_is_remote(const char *word, size_t n)
{
	static const char *const shells[] = { "ssh", "rsh", "remsh", "slogin", "oarsh" };

	for (size_t i = n; i > 0; i--) {
		if (word[i - 1] == '/') {
			word += i;
			n -= i;
			break;
		}
	}
	for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
		if (n == strlen(shells[i]) && memcmp(word, shells[i], n) == 0)
			return true;
	return false;
}

static void scan_word_end(struct scan *s, const char *p)
{
	if (s->word && word_is_remote(s->word, (size_t)(p - s->word))) {
		s->remote++;
		s->seen++;
	}
	s->word = NULL;
}

/* scan_char: the shell reads p[0] (and p[1] if it is escaped); returns how many characters that were. */
static size_t scan_char(struct scan *s, const char *p)
{
	if (s->quote) {
		if (s->quote == '"' && p[0] == '\\' && p[1])
			return 2;
		if (p[0] == s->quote)
			s->quote = 0;
		return 1;
	}
	if (strchr(" \t\n", p[0])) {
		scan_word_end(s, p);
		if (p[0] == '\n') {
			s->remote = 0;
			s->simple = p + 1;
		}
		return 1;
	}
	if (strchr(";&|()", p[0])) {
		scan_word_end(s, p);
		if (p[0] != '(' && p[0] != ')') { /* "ssh $(cat host) mpirun" goes on behind it */
			s->remote = 0;
			s->simple = p + 1;
		}
		return 1;
	}
	if (!s->word)
		s->word = p;
	if (p[0] == '\\' && p[1])
		return 2;
	if (p[0] == '\'' || p[0] == '"')
		s->quote = p[0];
	return 1;
}

/* hole_at: length of "{name}" at p with a name of lower-case letters, 0 = none. */
static size_t hole_at(const char *text, const char *p, char *name)
{
	size_t n;

	if (*p != '{' || (p > text && p[-1] == '$'))
		return 0;
	n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz");
	if (n == 0 || n >= PXD_HOLE_MAX || p[1 + n] != '}')
		return 0;
	memcpy(name, p + 1, n);
	name[n] = '\0';
	return n + 2;
}

static const struct pxd_hole *hole_find(const struct pxd_hole *holes, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(holes[i].name, name) == 0)
			return &holes[i];
	return NULL;
}

/* hole_nearest: a known name one slip away from this one, NULL = it means something else. */
static const char *hole_nearest(const struct pxd_hole *holes, int n, const char *name)
{
	const char *names[32];
	int distance = 9;
	const char *near;

	for (int i = 0; i < n && i < 32; i++)
		names[i] = holes[i].name;
	near = pxd_key_nearest(name, names, n < 32 ? n : 32, &distance);
	return distance <= 1 ? near : NULL;
}

/* hole_fill: append the words as they must stand at this place of the command. */
static int hole_fill(struct px_buf *b, const struct pxd_hole *hole, const struct scan *s)
{
	struct px_buf inner = { 0 };
	int levels = s->quote ? (s->remote > 1 ? s->remote : 1) : s->remote + 1;
	int rc;

	if (!s->quote)
		return pxd_quote_words(b, hole->words, levels);
	rc = pxd_quote_words(&inner, hole->words, levels);
	for (size_t i = 0; i < px_buf_len(&inner) && rc >= 0; i++) {
		char c = (char)px_buf_data(&inner)[i];

		if (s->quote == '\'' && c == '\'') {
			rc = px_buf_append(b, "'\\''", 4);
			continue;
		}
		if (s->quote == '"' && strchr("\\\"$`", c))
			rc = px_buf_append(b, "\\", 1);
		if (rc >= 0)
			rc = px_buf_append(b, &c, 1);
	}
	px_buf_fini(&inner);
	return rc;
}

int pxd_template_fill(
	const char *text, const struct pxd_hole *holes, int nholes, char **out, char *bad, const char **near)
{
	struct px_buf b = { 0 };
	struct scan s = { 0 };
	char name[PXD_HOLE_MAX];
	int rc = 0;

	for (const char *p = text; *p && rc >= 0;) {
		size_t n = hole_at(text, p, name);
		const struct pxd_hole *hole = n ? hole_find(holes, nholes, name) : NULL;

		if (hole) {
			rc = hole_fill(&b, hole, &s);
			if (!s.word && !s.quote)
				s.word = p;
			p += n;
			continue;
		}
		if (n && (*near = hole_nearest(holes, nholes, name))) {
			memcpy(bad, name, sizeof name);
			rc = PX_EINVAL;
			break;
		}
		n = scan_char(&s, p);
		rc = px_buf_append(&b, p, n);
		p += n;
	}
	if (rc >= 0)
		rc = px_buf_append(&b, "", 1);
	if (rc >= 0) {
		*out = strdup((const char *)px_buf_data(&b));
		rc = *out ? 0 : PX_ENOMEM;
	}
	px_buf_fini(&b);
	return rc;
}

int pxd_template_has(const char *text, const char *name)
{
	char found[PXD_HOLE_MAX];

	for (const char *p = text; *p; p++)
		if (hole_at(text, p, found) && strcmp(found, name) == 0)
			return 1;
	return 0;
}

const char *pxd_template_remote_at(const char *text, int k)
{
	struct scan s = { 0 };
	const char *p = text;

	for (; *p; p += scan_char(&s, p))
		if (s.seen > k)
			return p - 1;
	scan_word_end(&s, p);
	return s.seen > k ? p : NULL;
}

int pxd_template_remote(const char *text)
{
	return pxd_template_remote_at(text, 0) != NULL;
}

char *pxd_template_way(const char *text, const char *name, const char *then)
{
	struct scan s = { .simple = text };
	char found[PXD_HOLE_MAX], *way;

	for (const char *p = text; *p; p += scan_char(&s, p)) {
		if (!hole_at(text, p, found) || strcmp(found, name) != 0)
			continue;
		if (!s.remote ||
			asprintf(&way, "%.*s%s%.1s", (int)(p - s.simple), s.simple, then, &s.quote) < 0)
			return NULL;
		return way;
	}
	return NULL;
}

char *pxd_text_replace(const char *text, const struct pxd_hole *holes, int nholes)
{
	struct px_buf b = { 0 };
	char name[PXD_HOLE_MAX], *copy = NULL;
	int rc = 0;

	for (const char *p = text; *p && rc >= 0;) {
		size_t n = hole_at(text, p, name);
		const struct pxd_hole *hole = n ? hole_find(holes, nholes, name) : NULL;

		rc = hole ? px_buf_append(&b, hole->words[0], strlen(hole->words[0]))
			  : px_buf_append(&b, p, 1);
		p += hole ? n : 1;
	}
	if (rc >= 0)
		rc = px_buf_append(&b, "", 1);
	if (rc >= 0)
		copy = strdup((const char *)px_buf_data(&b));
	px_buf_fini(&b);
	return copy;
}
