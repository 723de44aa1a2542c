/* pacxd_world.c: the world map on its way to the ranks: messages along a tree (spread.h).
 *
 * All native ranks of the site take part. Polled, never waited for: the in-daemon serves TCP meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "pacxd.h"

int pxd_world_start(struct pxd *d, const struct px_hello *hellos)
{
	struct px_world *w = NULL;
	long len;

	if (hellos) {
		w = px_world_new(d->hosts->nsites, d->self, hellos);
		if (w)
			w->files = d->hosts->files;
		len = w ? px_world_put(w, NULL, 0) : PX_ENOMEM;
		d->world.map.bytes = len > 0 ? malloc((size_t)len) : NULL;
		if (!d->world.map.bytes || px_world_put(w, d->world.map.bytes, (size_t)len) != len) {
			px_world_free(w);
			pxd_fail(d, PXD_EXIT_INTERNAL, "cannot build the world map of %d sites",
				d->hosts->nsites);
			return PX_ENOMEM;
		}
		d->world.map.len = (int)len;
		px_world_free(w);
	}
	d->world.state = PXD_WORLD_UNDER_WAY;
	return PX_OK;
}

bool pxd_world_poll(struct pxd *d)
{
	int rc;

	if (d->world.state != PXD_WORLD_UNDER_WAY)
		return false;
	rc = px_spread_poll(&d->world.map, &d->map, d->map.out[0]);
	if (rc == 0)
		return false;
	if (rc < 0)
		pxd_fail(d, PXD_EXIT_INTERNAL, "the world map cannot be spread inside the site: %s",
			px_strerror(rc));
	d->world.state = PXD_WORLD_DONE;
	pxd_world_drop(d);
	return true;
}

void pxd_world_drop(struct pxd *d)
{
	px_spread_fini(&d->world.map);
}

int pxd_site_of(const struct pxd *d, uint32_t grank)
{
	int lo = 0, hi = d->hosts->nsites;

	if (grank >= (uint32_t)d->hosts->nranks)
		return -1;
	while (hi - lo > 1) {
		int mid = lo + (hi - lo) / 2;

		if ((uint32_t)d->hosts->sites[mid].base <= grank)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}
