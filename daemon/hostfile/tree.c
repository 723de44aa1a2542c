/* tree.c: see tree.h. */
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/err.h"

struct reader {
	const struct pxd_text *t;
	yaml_parser_t parser;
};

void pxd_tree_free(struct pxd_tree *n)
{
	while (n) {
		struct pxd_tree *next = n->next;

		pxd_tree_free(n->child); /* no deeper than PXD_TREE_DEPTH */
		free(n->text);
		free(n);
		n = next;
	}
}

static struct pxd_mark mark_of(yaml_mark_t m)
{
	return (struct pxd_mark){ (int)m.line + 1, (int)m.column + 1 };
}

/* yaml_failed: libyaml's own complaint as one of ours. */
static int yaml_failed(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	const char *problem = p->problem ? p->problem : "something that is no YAML";
	size_t line_at = 0;
	int line = 1;

	if (p->error == YAML_MEMORY_ERROR)
		return pxd_text_nomem(r->t);
	if (p->error == YAML_READER_ERROR)
		return pxd_text_fail(
			r->t, pxd_text_mark(r->t, p->problem_offset), "YAML text", "%s", problem);
	while (line <= (int)p->problem_mark.line && line_at < r->t->len)
		line += r->t->text[line_at++] == '\n';
	for (int column = 1; line_at < r->t->len && strchr(" \t", r->t->text[line_at]); line_at++, column++)
		if (r->t->text[line_at] == '\t')
			return pxd_text_fail(r->t, (struct pxd_mark){ line, column }, "spaces",
				"a tab in the indentation");
	if (strncmp(problem, "found ", 6) == 0)
		problem += 6;
	else if (strncmp(problem, "did not find expected ", 22) == 0)
		return pxd_text_fail(r->t, mark_of(p->problem_mark), problem + 22, "something else");
	return pxd_text_fail(r->t, mark_of(p->problem_mark), "YAML text", "%s%s%s", problem,
		p->context ? " " : "", p->context ? p->context : "");
}

static int event_next(struct reader *r, yaml_event_t *e)
{
	return yaml_parser_parse(&r->parser, e) ? 0 : yaml_failed(r);
}

static int node_new(struct reader *r, const yaml_event_t *e, struct pxd_tree **out)
{
	struct pxd_tree *n = calloc(1, sizeof *n);
	const yaml_char_t *anchor = NULL;

	if (!n)
		return pxd_text_nomem(r->t);
	n->at = mark_of(e->start_mark);
	if (e->type == YAML_SCALAR_EVENT) {
		n->kind = PXD_SCALAR;
		anchor = e->data.scalar.anchor;
		n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
		/* The escape "\0" may bring in what the text itself must not contain. */
		for (size_t i = 0; i < e->data.scalar.length && !anchor; i++) {
			unsigned char c = e->data.scalar.value[i];

			if (c == 0) {
				free(n);
				return pxd_text_fail(
					r->t, mark_of(e->start_mark), "text", "an escaped NUL character");
			}
		}
		n->text = strdup((const char *)e->data.scalar.value);
		if (!n->text) {
			free(n);
			return pxd_text_nomem(r->t);
		}
	} else {
		n->kind = e->type == YAML_SEQUENCE_START_EVENT ? PXD_SEQUENCE : PXD_MAPPING;
		anchor = n->kind == PXD_SEQUENCE ? e->data.sequence_start.anchor
						 : e->data.mapping_start.anchor;
	}
	if (anchor) {
		int rc = pxd_text_fail(r->t, n->at, "plain values (anchors and aliases are not supported)",
			"the anchor '&%.40s'", (const char *)anchor);

		pxd_tree_free(n);
		return rc;
	}
	*out = n;
	return 0;
}

static void child_add(struct pxd_tree *up, struct pxd_tree *n)
{
	if (up->last)
		up->last->next = n;
	else
		up->child = n;
	up->last = n;
	up->nchildren++;
}

/* tree_read: the whole document; *root NULL when the text has none. On failure *root holds what was read. */
static int tree_read(struct reader *r, struct pxd_tree **root)
{
	struct pxd_tree *open[PXD_TREE_DEPTH];
	int depth = 0, documents = 0, rc;
	bool more = true;

	while (more) {
		struct pxd_tree *n = NULL;
		yaml_event_t e;

		rc = event_next(r, &e);
		if (rc < 0)
			return rc;
		switch (e.type) {
		case YAML_STREAM_END_EVENT:
			more = false;
			break;
		case YAML_DOCUMENT_START_EVENT:
			if (documents++)
				rc = pxd_text_fail(
					r->t, mark_of(e.start_mark), "one document", "a second document");
			break;
		case YAML_ALIAS_EVENT:
			rc = pxd_text_fail(r->t, mark_of(e.start_mark),
				"plain values (anchors and aliases are not supported)", "the alias '*%.40s'",
				(const char *)e.data.alias.anchor);
			break;
		case YAML_SEQUENCE_END_EVENT:
		case YAML_MAPPING_END_EVENT:
			depth--;
			break;
		case YAML_SCALAR_EVENT:
		case YAML_SEQUENCE_START_EVENT:
		case YAML_MAPPING_START_EVENT:
			rc = node_new(r, &e, &n);
			break;
		default:
			break;
		}
		yaml_event_delete(&e);
		if (rc < 0)
			return rc;
		if (!n)
			continue;
		if (depth == 0)
			*root = n;
		else
			child_add(open[depth - 1], n);
		if (n->kind == PXD_SCALAR)
			continue;
		if (depth == PXD_TREE_DEPTH)
			return pxd_text_fail(r->t, n->at, "at most 12 levels", "deeper nesting");
		open[depth++] = n;
	}
	return 0;
}

int pxd_tree_read(const struct pxd_text *t, struct pxd_tree **root)
{
	struct reader r = { .t = t };
	struct pxd_tree *n = NULL;
	int rc;

	if (!yaml_parser_initialize(&r.parser))
		return pxd_text_nomem(t);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)t->text, t->len);
	rc = tree_read(&r, &n);
	yaml_parser_delete(&r.parser);
	if (rc < 0) {
		pxd_tree_free(n);
		return rc;
	}
	*root = n;
	return 0;
}

bool pxd_tree_is_null(const struct pxd_tree *n)
{
	return n->kind == PXD_SCALAR && n->plain &&
	       (!*n->text || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0);
}

/* pxd_tree_show: what was found, for messages. */
const char *pxd_tree_show(const struct pxd_tree *n, char buf[PXD_SHOW])
{
	if (n->kind == PXD_SEQUENCE)
		return "a list";
	if (n->kind == PXD_MAPPING)
		return "a mapping";
	return pxd_tree_is_null(n) ? "nothing" : pxd_text_show(n->text, buf);
}

int pxd_tree_expect(
	const struct pxd_text *t, const struct pxd_tree *n, enum pxd_kind kind, const char *expected)
{
	char show[PXD_SHOW];

	if (n->kind == kind && !(kind == PXD_SCALAR && pxd_tree_is_null(n)))
		return 0;
	return pxd_text_fail(t, n->at, expected, "%s", pxd_tree_show(n, show));
}
