/* pacxd_world.c: the world map on its way to the ranks: native Ibcast of its length, then of its bytes.
 *
 * All native ranks of the site take part. Polled, never waited for: the in-daemon serves TCP meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "pacxd.h"
#include "vendor.h"

/* One site speaks for all: who stores data unlike it, and what that costs. */
static void unlike_tell(const struct pxd *d, const struct px_hello *hellos)
{
	char what[600];

	for (int i = 1; d->node.self == 0 && i < d->node.hosts->nsites; i++)
		if (!px_repr_alike(&hellos[0].repr, &hellos[i].repr))
			px_log(PX_LOG_WARN, "site %s stores data unlike site %s: there %s", hellos[i].name,
				hellos[0].name,
				px_repr_tell(&hellos[0].repr, &hellos[i].repr, what, sizeof what));
}

/* What the hostfile says and hellos do not. */
static void world_fill(struct px_world *w, const struct pxd_hosts *h)
{
	w->files = h->files;
	for (int i = 0; i < h->nsites; i++) {
		w->group[i] = pxd_hosts_group(h, i);
		w->uplink[i] = (uint64_t)h->sites[i].uplink;
	}
}

int pxd_world_start(struct pxd *d, const struct px_hello *hellos)
{
	struct px_world *w = NULL;
	long len;

	if (hellos) {
		unlike_tell(d, hellos);
		w = px_world_new(d->node.hosts->nsites, d->node.self, hellos);
		if (w)
			world_fill(w, d->node.hosts);
		len = w ? px_world_put(w, NULL, 0) : PX_ENOMEM;
		d->world.bytes = len > 0 ? malloc((size_t)len) : NULL;
		if (!d->world.bytes || px_world_put(w, d->world.bytes, (size_t)len) != len) {
			px_world_free(w);
			pxd_fail(&d->node, PXD_EXIT_INTERNAL, "cannot build the world map of %d sites",
				d->node.hosts->nsites);
			return PX_ENOMEM;
		}
		d->world.len = (int)len;
		px_world_free(w);
	}
	d->world.state = PXD_WORLD_LENGTH;
	if (px_n.Ibcast(&d->world.len, 1, MPI_INT, d->map.out[0], d->map.relay, &d->world.req) !=
		MPI_SUCCESS) {
		pxd_fail(&d->node, PXD_EXIT_INTERNAL, "cannot broadcast the world map inside the site");
		return PX_EMPI;
	}
	return PX_OK;
}

bool pxd_world_poll(struct pxd *d)
{
	int flag = 0;

	if (d->world.state != PXD_WORLD_LENGTH && d->world.state != PXD_WORLD_BYTES)
		return false;
	if (px_n.Test(&d->world.req, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
		pxd_fail(
			&d->node, PXD_EXIT_INTERNAL, "the broadcast of the world map inside the site failed");
		return true;
	}
	if (!flag)
		return false;
	if (d->world.state == PXD_WORLD_BYTES) {
		d->world.state = PXD_WORLD_DONE;
		pxd_world_drop(d);
		return true;
	}
	if (!d->world.bytes && d->world.len > 0)
		d->world.bytes = malloc((size_t)d->world.len);
	if (!d->world.bytes || px_n.Ibcast(d->world.bytes, d->world.len, MPI_BYTE, d->map.out[0],
				       d->map.relay, &d->world.req) != MPI_SUCCESS)
		pxd_fail(
			&d->node, PXD_EXIT_INTERNAL, "the broadcast of the world map inside the site failed");
	d->world.state = PXD_WORLD_BYTES;
	return true;
}

void pxd_world_drop(struct pxd *d)
{
	free(d->world.bytes);
	d->world.bytes = NULL;
}
