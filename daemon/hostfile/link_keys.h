/* link_keys.h: the keys of a link, read into a struct pxd_link, and what it inherits. Private to the hostfile's reader. */
#ifndef PXD_HOSTFILE_LINK_KEYS_H
#define PXD_HOSTFILE_LINK_KEYS_H

#include "keys.h"

/* Bits of struct pxd_link.written that others ask for. */
#define PXD_LINK_BETWEEN 1u
#define PXD_LINK_DEFAULT 2u
#define PXD_LINK_DIAL    4u

extern const struct pxd_link_opts pxd_link_built_in;

/* pxd_link_keys_read: all keys of a link of the list. pxd_link_options_read: options only (--link). */
int pxd_link_keys_read(struct pxd_reader *r, const struct pxd_tree *n, struct pxd_link *l);
int pxd_link_options_read(struct pxd_reader *r, const struct pxd_tree *n, struct pxd_link *l);
/* pxd_link_opts_inherit: what is not written at the link comes from `from`, texts as copies. false: out of memory. */
bool pxd_link_opts_inherit(struct pxd_link_opts *o, unsigned written, const struct pxd_link_opts *from);

#endif
