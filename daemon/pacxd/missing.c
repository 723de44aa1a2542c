/* missing.c: see missing.h. */
#include "missing.h"

#include <stdio.h>
#include <string.h>

#include "address.h"
#include "conn_dial.h"
#include "node.h"

#define NAMED 6 /* sites in a line of those that are missing */

void pxd_missing(const struct pxd_node *d, const struct pxd_path *path, bool early, char *text, size_t cap)
{
	size_t n = 0;
	int named = 0;

	text[0] = '\0';
	for (int i = 0; i < d->hosts->nsites && n + 1 < cap; i++) {
		const struct pxd_site *s = &d->hosts->sites[i];
		const struct pxd_dial *dial;
		char place[PXD_HOSTPORT];

		if (i == d->self || path[i].ever_up || named++ >= NAMED)
			continue;
		dial = &path[i].stream[0]->dial;
		if (!path[i].stream[0]->dials)
			n += (size_t)snprintf(
				text + n, cap - n, "%s%s (it has to dial us)", n ? ", " : "", s->name);
		else
			n += (size_t)snprintf(text + n, cap - n, "%s%s at %s (%s)", n ? ", " : "", s->name,
				pxd_hostport(dial->host, dial->port, place),
				!dial->why[0] || (early && strstr(dial->why, "Connection refused"))
					? "not up yet"
					: dial->why);
	}
	if (named > NAMED && n + 1 < cap)
		snprintf(text + n, cap - n, ", and %d more", named - NAMED);
}
