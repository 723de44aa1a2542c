/* pacx_api.c: the functions of pacx.h. They read what init.c has filled in, and change nothing but a communicator's hint. */
#define PACX_LIBRARY
#include "../include/pacx.h"

#include <math.h>

#include "comm.h"
#include "comm_find.h"
#include "lock.h"
#include "state.h"

const char *pacx_version(void)
{
	return PX_VERSION_TEXT;
}

int pacx_sites(void)
{
	return px.on ? px.nsites : 1;
}

int pacx_site_of(int rank)
{
	int up = 0, down = 0, size = 0;

	if (px.on)
		return rank < px.nranks ? px_world_site(px.world, rank) : -1;
	if (px_n.Initialized(&up) == MPI_SUCCESS && up && px_n.Finalized(&down) == MPI_SUCCESS && !down)
		px_n.Comm_size(MPI_COMM_WORLD, &size);
	return rank >= 0 && rank < size ? 0 : -1;
}

const char *pacx_site_name(int site)
{
	if (!px.on)
		return site == 0 ? "local" : NULL;
	return site >= 0 && site < px.nsites ? px.world->site[site].name : NULL;
}

MPI_Comm pacx_comm_local(void)
{
	return px.on ? px.local : MPI_COMM_WORLD;
}

int pacx_set_accuracy(MPI_Comm comm, double bound)
{
	struct px_comm *c;

	if (comm == MPI_COMM_NULL)
		return MPI_ERR_COMM;
	if (!isfinite(bound))
		return MPI_ERR_ARG;
	px_lock();
	c = px_comm_find(PX_MAP(comm));
	if (c)
		c->accuracy = bound;
	px_unlock();
	return MPI_SUCCESS;
}

int pacx_set_associative(MPI_Comm comm, int flag)
{
	struct px_comm *c;

	if (comm == MPI_COMM_NULL)
		return MPI_ERR_COMM;
	px_lock();
	c = px_comm_find(PX_MAP(comm));
	if (c)
		c->associative = flag != 0;
	px_unlock();
	return MPI_SUCCESS;
}
