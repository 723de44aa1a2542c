/* state.h: what this rank knows of itself, and the hooks between the floors of libpacx.
 *
 * One process-wide struct px_state, filled by init.c between the native Init and the
 * first call of the application, read by everybody, changed by nobody afterwards;
 * but the world map grows by guests (guest.h).
 */
#ifndef PX_STATE_H
#define PX_STATE_H

#include <stdbool.h>

#include "attach.h"
#include "vendor.h"
#include "world.h"

struct px_state {
	bool on;                /* this rank is part of a PACX world (between Init and Finalize) */
	struct px_site_map map; /* the native job */
	struct px_world *world;
	int site;           /* index of this site */
	int lrank;          /* rank in map.apps */
	int grank;          /* rank in the application's MPI_COMM_WORLD */
	MPI_Comm local;     /* MPI_COMM_LOCAL of pacx.h: a duplicate of map.apps */
	int tag_ub;         /* smallest TAG_UB of all sites */
	int nsites, nranks; /* of the hostfile: what is behind them in the map are guests */
};

extern struct px_state px;

/* px_is_local: does global rank g live at this site? */
static inline bool px_is_local(int g)
{
	return g >= px.world->base[px.site] && g < px.world->base[px.site + 1];
}

#endif
