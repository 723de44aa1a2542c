/* json.c: see json.h. */
#include "json.h"

#include <ctype.h>
#include <string.h>

#define DEPTH_MAX 32

struct cursor {
	const char *p, *end;
};

static void blank_skip(struct cursor *c)
{
	while (c->p < c->end && strchr(" \t\n\r", *c->p) && *c->p)
		c->p++;
}

static bool char_take(struct cursor *c, char want)
{
	blank_skip(c);
	if (c->p == c->end || *c->p != want)
		return false;
	c->p++;
	return true;
}

static bool string_take(struct cursor *c)
{
	if (!char_take(c, '"'))
		return false;
	while (c->p < c->end && *c->p != '"') {
		if ((unsigned char)*c->p < 0x20)
			return false;
		if (*c->p++ != '\\')
			continue;
		if (c->p == c->end || !*c->p || !strchr("\"\\/bfnrtu", *c->p))
			return false;
		if (*c->p++ == 'u') {
			for (int i = 0; i < 4; i++, c->p++)
				if (c->p == c->end || !isxdigit((unsigned char)*c->p))
					return false;
		}
	}
	return char_take(c, '"');
}

static bool digits_take(struct cursor *c)
{
	const char *from = c->p;

	while (c->p < c->end && isdigit((unsigned char)*c->p))
		c->p++;
	return c->p > from;
}

static bool number_take(struct cursor *c)
{
	if (c->p < c->end && *c->p == '-')
		c->p++;
	if (!digits_take(c))
		return false;
	if (c->p < c->end && *c->p == '.') {
		c->p++;
		if (!digits_take(c))
			return false;
	}
	if (c->p < c->end && (*c->p == 'e' || *c->p == 'E')) {
		c->p++;
		if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
			c->p++;
		return digits_take(c);
	}
	return true;
}

static bool value_take(struct cursor *c, int depth)
{
	static const char *const words[] = { "true", "false", "null" };
	bool object;
	char close;

	blank_skip(c);
	if (c->p == c->end || depth > DEPTH_MAX)
		return false;
	if (*c->p == '"')
		return string_take(c);
	for (int i = 0; i < 3; i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(c->end - c->p) >= n && memcmp(c->p, words[i], n) == 0) {
			c->p += n;
			return true;
		}
	}
	object = *c->p == '{';
	if (!object && *c->p != '[')
		return number_take(c);
	close = object ? '}' : ']';
	c->p++;
	if (char_take(c, close))
		return true;
	do {
		if (object && !(string_take(c) && char_take(c, ':')))
			return false;
		if (!value_take(c, depth + 1))
			return false;
	} while (char_take(c, ','));
	return char_take(c, close);
}

bool pxd_json_valid(const char *text, size_t n)
{
	struct cursor c = { text, text + n };

	blank_skip(&c);
	if (c.p == c.end || *c.p != '{' || !value_take(&c, 0))
		return false;
	blank_skip(&c);
	return c.p == c.end;
}

int pxd_json_members(const char *text, size_t n,
	int (*f)(void *arg, const char *key, size_t nkey, const char *value, size_t nvalue), void *arg)
{
	struct cursor c = { text, text + n };
	int rc = 0;

	if (!char_take(&c, '{') || char_take(&c, '}'))
		return 0;
	do {
		const char *key, *value;
		size_t nkey;

		blank_skip(&c);
		key = c.p + 1;
		string_take(&c);
		nkey = (size_t)(c.p - key) - 1;
		char_take(&c, ':');
		blank_skip(&c);
		value = c.p;
		value_take(&c, 1);
		rc = f(arg, key, nkey, value, (size_t)(c.p - value));
	} while (rc >= 0 && char_take(&c, ','));
	return rc;
}

int pxd_json_items(
	const char *text, size_t n, int (*f)(void *arg, const char *value, size_t nvalue), void *arg)
{
	struct cursor c = { text, text + n };
	int rc = 0;

	if (!char_take(&c, '[') || char_take(&c, ']'))
		return 0;
	do {
		const char *value;

		blank_skip(&c);
		value = c.p;
		value_take(&c, 1);
		rc = f(arg, value, (size_t)(c.p - value));
	} while (rc >= 0 && char_take(&c, ','));
	return rc;
}

void pxd_json_text(const char *value, size_t n, char *out, size_t cap)
{
	size_t k = 0;

	for (size_t i = 1; n > 1 && i < n - 1 && k + 1 < cap; i++) {
		char c = value[i];

		if (c == '\\') {
			c = value[++i];
			if (c == 'u')
				i += 4;
			if (c != '"' && c != '\\' && c != '/')
				c = '?';
		}
		out[k++] = c == 0x7f ? '?' : c;
	}
	if (cap)
		out[k] = '\0';
}

void pxd_json_print(FILE *f, const char *s)
{
	putc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(f, "\\u%04x", (unsigned char)*s);
		else
			putc(*s, f);
	}
	putc('"', f);
}
