/* keys.h: tables of keys: what may stand in each mapping of a YAML hostfile and which function reads it.
 *
 * Private to hostfile*.c. Owns nothing; a function that fails has written the error line.
 */
#ifndef PXD_HOSTFILE_KEYS_H
#define PXD_HOSTFILE_KEYS_H

#include "tree.h"

struct pxd_reader {
	const struct pxd_text *t;
	struct pxd_hosts *h;
	const void *how; /* of the key that is being read */
};

/* A key of a mapping. read gets the value and the object (site, link, or nothing) it belongs to. */
struct pxd_key {
	const char *name;
	bool required;
	int (*read)(struct pxd_reader *r, const struct pxd_tree *value, void *object);
	const void *how; /* for a read that serves several keys: in the reader during the call */
};

/* pxd_keys_read: check the keys of n against the table and read the values in the table's order. */
int pxd_keys_read(struct pxd_reader *r, const struct pxd_tree *n, const struct pxd_key *keys, int nkeys,
	const char *what, void *object);
/* pxd_keyed_text: a text that is not empty, into *out (new; what was there is freed). */
int pxd_keyed_text(const struct pxd_reader *r, const struct pxd_tree *v, const char *expected, char **out);
/* pxd_key_line: the same without control characters, an end of line among them. */
int pxd_key_line(const struct pxd_reader *r, const struct pxd_tree *v, const char *expected, char **out);

/* Values with a table of their own. */
int pxd_hosts_links(struct pxd_reader *r, const struct pxd_tree *v, void *object);    /* links.c */
int pxd_hosts_gateways(struct pxd_reader *r, const struct pxd_tree *v, void *object); /* of a site; gates.c */

#endif
