/* tree.h: a YAML text as a small tree of scalars, lists and mappings with their places in the
 * file.
 *
 * Private to yaml.c and tree.c, which alone knows libyaml. The caller owns the tree
 * (pxd_tree_free). Aliases and anchors are refused (a hostfile needs none, and with them a short text
 * can stand for a huge one), and so are a second document and nesting deeper than PXD_TREE_DEPTH.
 */
#ifndef PXD_HOSTFILE_TREE_H
#define PXD_HOSTFILE_TREE_H

#include "text.h"

#define PXD_TREE_DEPTH 12

enum pxd_kind { PXD_SCALAR, PXD_SEQUENCE, PXD_MAPPING };

/* One value. Children of a mapping alternate: key, value. They form a list through next. */
struct pxd_tree {
	enum pxd_kind kind;
	bool plain; /* scalar without quotes */
	struct pxd_mark at;
	char *text; /* of a scalar */
	struct pxd_tree *child, *last, *next;
	int nchildren;
};

/* pxd_tree_read: *root is NULL when the text has no document. On failure the error line is written. */
int pxd_tree_read(const struct pxd_text *t, struct pxd_tree **root);
void pxd_tree_free(struct pxd_tree *n);

bool pxd_tree_is_null(const struct pxd_tree *n); /* nothing, ~ or null */
/* pxd_tree_show: what was found, for messages. */
const char *pxd_tree_show(const struct pxd_tree *n, char buf[PXD_SHOW]);
/* pxd_tree_expect: 0 when n is of this kind (and no null), else the error line with `expected`. */
int pxd_tree_expect(
	const struct pxd_text *t, const struct pxd_tree *n, enum pxd_kind kind, const char *expected);

#endif
