/* keys.c: see keys.h. */
#include "keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define KEYS_MAX 32 /* rows of a table */

int pxd_keys_read(struct pxd_reader *r, const struct pxd_tree *n, const struct pxd_key *keys, int nkeys,
	const char *what, void *object)
{
	const struct pxd_tree *seen[KEYS_MAX] = { NULL }, *first[KEYS_MAX] = { NULL };
	const char *names[KEYS_MAX];
	char expected[PXD_WHY], show[PXD_SHOW];
	int rc;

	snprintf(expected, sizeof expected, "a mapping (key: value) for %s", what);
	rc = pxd_tree_expect(r->t, n, PXD_MAPPING, expected);
	if (rc < 0)
		return rc;
	for (int i = 0; i < nkeys; i++)
		names[i] = keys[i].name;
	for (const struct pxd_tree *k = n->child; k; k = k->next->next) {
		int i;

		snprintf(expected, sizeof expected, "a key of %s", what);
		rc = pxd_tree_expect(r->t, k, PXD_SCALAR, expected);
		if (rc < 0)
			return rc;
		for (i = 0; i < nkeys && strcmp(k->text, keys[i].name) != 0;)
			i++;
		if (i == nkeys) {
			snprintf(expected, sizeof expected, "a key of %s (the nearest is '%s')", what,
				pxd_key_nearest(k->text, names, nkeys, NULL));
			return pxd_text_fail(
				r->t, k->at, expected, "the unknown key %s", pxd_text_show(k->text, show));
		}
		if (seen[i])
			return pxd_text_fail(r->t, k->at, "every key once",
				"the key '%s' a second time (the first is in line %d)", k->text,
				first[i]->at.line);
		first[i] = k;
		seen[i] = k->next;
	}
	for (int i = 0; i < nkeys; i++) {
		if (!seen[i] && keys[i].required) {
			snprintf(expected, sizeof expected, "the key '%s'", keys[i].name);
			return pxd_text_fail(r->t, n->at, expected, "%s without '%s'", what, keys[i].name);
		}
	}
	for (int i = 0; i < nkeys; i++) {
		r->how = keys[i].how;
		rc = seen[i] ? keys[i].read(r, seen[i], object) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

int pxd_keyed_text(const struct pxd_reader *r, const struct pxd_tree *v, const char *expected, char **out)
{
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, expected);
	char *copy;

	if (rc < 0)
		return rc;
	if (!*v->text)
		return pxd_text_fail(r->t, v->at, expected, "an empty text");
	copy = strdup(v->text);
	if (!copy)
		return pxd_text_nomem(r->t);
	free(*out);
	*out = copy;
	return 0;
}

int pxd_key_line(const struct pxd_reader *r, const struct pxd_tree *v, const char *expected, char **out)
{
	int rc = pxd_keyed_text(r, v, expected, out);

	if (rc < 0)
		return rc;
	for (const char *p = *out; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return pxd_text_fail(r->t, v->at, expected, "a control character");
	return 0;
}
