/* join.c: the start of a process that a rank of the world has started (comm/spawn.c): it joins the world as a guest (guest.h).
 *
 * Its MPI_COMM_WORLD stays the vendor's; it has no daemons, and no place in the hostfile. What it makes with ranks of the world, or
 * they with it, are communicators that span sites.
 */
#include "join.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "channel.h"
#include "comm_find.h"
#include "environ.h"
#include "err.h"
#include "guest.h"
#include "model.h"
#include "predefined.h"
#include "progress.h"
#include "spawn.h"
#include "state.h"
#include "wait.h"

/* The native job is the program's alone. */
static int map_make(void)
{
	static int nobody;
	int n;

	px_n.Comm_size(MPI_COMM_WORLD, &n);
	px.map.apps = MPI_COMM_WORLD;
	px.map.nranks = px.map.procs_here = n;
	px.map.native_of = malloc((size_t)n * sizeof *px.map.native_of);
	px.map.gateways = 1; /* that nobody calls */
	px.map.out = px.map.in = &nobody;
	if (!px.map.native_of || px_n.Comm_dup(MPI_COMM_WORLD, &px.map.relay) != MPI_SUCCESS)
		return PX_ENOMEM;
	for (int i = 0; i < n; i++)
		px.map.native_of[i] = i;
	return PX_OK;
}

static void lost(const char *why)
{
	px_log(PX_LOG_ERROR, "a process that a rank has started %s", why);
	px_channel_abort(1, why);
}

void px_join(bool threaded)
{
	bool associative = false;
	char who[96];

	snprintf(who, sizeof who, "pacx[%s, started by a rank]", px_environ.site);
	px_log_init(who, PX_LOG_INFO);
	px_vendor_seal();
	if (map_make() < 0 || px_welcome(&associative) != MPI_SUCCESS)
		lost("cannot join the world");
	px_wait_setup(px.map.procs_here, false);
	if (px_n.Comm_dup(MPI_COMM_WORLD, &px.local) != MPI_SUCCESS || px_channel_open() < 0)
		lost("cannot open its channel");
	px.on = true;
	px_model_join(associative);
	px_progress_open(threaded);
	if (px_predefined_join() != MPI_SUCCESS || px_welcome_parent() != MPI_SUCCESS)
		lost("cannot meet its parents");
	px_environ_clean();
}
