/* links.c: links between sites: which pairs have one, what they inherit, and who dials.
 *
 * Which keys the file has at a link is noted in its `written`; after everything is read, the others are taken
 * from the default: link, and what is not there either is built in. tcp and emulate are inherited key by key.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "link_keys.h"

static bool same_pair(const struct pxd_link *l, int a, int b)
{
	return (l->a == a && l->b == b) || (l->a == b && l->b == a);
}

int pxd_hosts_links(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	int rc = pxd_tree_expect(r->t, v, PXD_SEQUENCE, "a list of links");

	(void)object;
	if (rc < 0)
		return rc;
	if (v->nchildren > PXD_SITES_MAX)
		return pxd_text_fail(r->t, v->at, "at most 4096", "%d links", v->nchildren);
	r->h->links = calloc((size_t)v->nchildren + 1, sizeof *r->h->links);
	if (!r->h->links)
		return pxd_text_nomem(r->t);
	for (const struct pxd_tree *n = v->child; n; n = n->next) {
		struct pxd_link *l = &r->h->links[r->h->nlinks++];

		l->a = l->b = -1;
		l->at = n->at;
		l->o = pxd_link_built_in;
		rc = pxd_link_keys_read(r, n, l);
		if (rc < 0)
			return rc;
		if (!(l->written & PXD_LINK_BETWEEN) == !(l->written & PXD_LINK_DEFAULT))
			return pxd_text_fail(r->t, n->at, "either 'between' or 'default'", "a link with %s",
				l->written & PXD_LINK_BETWEEN ? "both" : "neither");
		for (const struct pxd_link *o = r->h->links; o < l; o++)
			if (same_pair(o, l->a, l->b))
				return pxd_text_fail(r->t, n->at, "every link once",
					"the same link a second time (the first is in line %d)", o->at.line);
	}
	return 0;
}

int pxd_hosts_link_text(const struct pxd_text *t, struct pxd_hosts *h)
{
	struct pxd_text braced = { t->file, NULL, 0, t->why, t->cap, true };
	struct pxd_reader r = { &braced, h, NULL };
	struct pxd_tree *root = NULL;
	struct pxd_link *l = NULL;
	char *text = malloc(t->len + 3);
	int rc = PX_ENOMEM;

	if (!text)
		return pxd_text_nomem(t);
	text[0] = '{';
	memcpy(text + 1, t->text, t->len);
	strcpy(text + 1 + t->len, "}");
	braced.text = text;
	braced.len = t->len + 2;
	for (int i = 0; i < h->nlinks; i++)
		if (h->links[i].a < 0)
			l = &h->links[i];
	if (!l) {
		l = realloc(h->links, ((size_t)h->nlinks + 1) * sizeof *l);
		if (!l) {
			pxd_text_nomem(t);
			goto done;
		}
		h->links = l;
		l += h->nlinks++;
		*l = (struct pxd_link){
			.a = -1, .b = -1, .written = PXD_LINK_DEFAULT, .o = pxd_link_built_in
		};
	}
	rc = pxd_text_check(&braced);
	if (rc >= 0)
		rc = pxd_tree_read(&braced, &root);
	if (rc >= 0)
		rc = pxd_link_options_read(&r, root, l);
done:
	pxd_tree_free(root);
	free(text);
	return rc;
}

static const struct pxd_link *link_find(const struct pxd_hosts *h, int a, int b)
{
	for (int i = 0; i < h->nlinks; i++)
		if (same_pair(&h->links[i], a, b))
			return &h->links[i];
	return NULL;
}

const struct pxd_link_opts *pxd_hosts_link(const struct pxd_hosts *h, int a, int b)
{
	const struct pxd_link *l = link_find(h, a, b);

	return l ? &l->o : &h->link_default;
}

bool pxd_hosts_dials(const struct pxd_hosts *h, int self, int from, int to)
{
	const struct pxd_link_opts *o = pxd_hosts_link(h, from, to);
	int other = self == from ? to : from;

	if (self != from && self != to)
		return false;
	if (o->relay || !h->sites[self].listen)
		return true;
	if (!h->sites[other].listen)
		return false;
	if (o->dialer == from || o->dialer == to)
		return self == o->dialer;
	return self == from;
}

/* dial_check: dial: D must not make D dial the site p, which does not listen. */
static int dial_check(
	const struct pxd_text *t, const struct pxd_hosts *h, struct pxd_mark at, int dialer, int p)
{
	char expected[PXD_WHY];

	if (h->sites[p].listen || pxd_hosts_link(h, dialer, p)->relay ||
		pxd_hosts_link(h, dialer, p)->dialer != dialer)
		return 0;
	snprintf(expected, sizeof expected, "dial: %s, or a relay:", h->sites[p].name);
	return pxd_text_fail(t, at, expected, "dial: %s, but '%s' has listen: no", h->sites[dialer].name,
		h->sites[p].name);
}

/* listen_check: of two sites that do not listen, neither can dial the other. Stops at the first missing relay, so it
 * looks at no more pairs than there are links. */
static int listen_check(const struct pxd_text *t, const struct pxd_hosts *h)
{
	char expected[PXD_WHY];

	if (h->link_default.relay) {
		for (int i = 0; i < h->nlinks; i++) {
			const struct pxd_link *l = &h->links[i];

			if (l->a >= 0 && !l->o.relay && !h->sites[l->a].listen && !h->sites[l->b].listen)
				return pxd_text_fail(t, l->at, "a relay:",
					"a link without relay of '%s' and '%s', which both have listen: no",
					h->sites[l->a].name, h->sites[l->b].name);
		}
		return 0;
	}
	for (int b = 0; b < h->nsites; b++) {
		for (int a = 0; a < b && !h->sites[b].listen; a++) {
			if (h->sites[a].listen || pxd_hosts_link(h, a, b)->relay)
				continue;
			snprintf(expected, sizeof expected, "relay: host:port in the link of '%s' and '%s'",
				h->sites[a].name, h->sites[b].name);
			return pxd_text_fail(t, h->sites[b].at_listen, expected,
				"listen: no a second time ('%s' has it in line %d)", h->sites[a].name,
				h->sites[a].at_listen.line);
		}
	}
	return 0;
}

int pxd_hosts_links_default(const struct pxd_text *t, struct pxd_hosts *h)
{
	const struct pxd_link *def = NULL;
	int rc = 0;

	for (int i = 0; i < h->nlinks; i++)
		if (h->links[i].a < 0)
			def = &h->links[i];
	pxd_link_opts_fini(&h->link_default);
	if (!pxd_link_opts_inherit(&h->link_default, 0, def ? &def->o : &pxd_link_built_in))
		return pxd_text_nomem(t);
	for (int i = 0; i < h->nlinks; i++) {
		struct pxd_link *l = &h->links[i];

		if (l != def && !pxd_link_opts_inherit(&l->o, l->written, &h->link_default))
			return pxd_text_nomem(t);
		if (l->o.dial && l->o.proxy)
			return pxd_text_fail(t, l->at, "one of them",
				"a link with both a command in 'dial' and a 'proxy'");
	}
	for (int i = 0; i < h->nlinks && rc >= 0; i++) {
		const struct pxd_link *l = &h->links[i];

		if (l->a >= 0 && l->o.dialer >= 0 && l->written & PXD_LINK_DIAL)
			rc = dial_check(t, h, l->at_dial, l->o.dialer, l->o.dialer == l->a ? l->b : l->a);
	}
	for (int p = 0; def && p < h->nsites && rc >= 0; p++)
		if (def->o.dialer >= 0 && p != def->o.dialer)
			rc = dial_check(t, h, def->at_dial, def->o.dialer, p);
	return rc < 0 ? rc : listen_check(t, h);
}
