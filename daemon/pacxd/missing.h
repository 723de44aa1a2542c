/* missing.h: the sites that an out-daemon waits for, in words. Used by role_out.c. */
#ifndef PXD_MISSING_H
#define PXD_MISSING_H

#include <stdbool.h>
#include <stddef.h>

#include "link.h"

/* pxd_missing: the sites whose path has never been up, the first ones by name, and why; path: [nsites], that of ourselves is unused.
 * early: that one is not up yet is no fault. Cut off where text is full. */
void pxd_missing(const struct pxd_node *d, const struct pxd_path *path, bool early, char *text, size_t cap);

#endif
