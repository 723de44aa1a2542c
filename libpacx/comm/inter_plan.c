/* inter_plan.c: see inter_plan.h. */
#include "inter_plan.h"

#include <stdlib.h>
#include <string.h>

#include "comm_find.h"
#include "inter.h"
#include "lock.h"
#include "raise.h"
#include "request.h"
#include "state.h"
#include "vendor.h"

void px_plan_init(struct px_plan *p)
{
	memset(p, 0, sizeof *p);
	p->native = p->face = MPI_COMM_NULL;
}

int px_plan_rank(const struct px_plan *p)
{
	for (int i = 0; i < p->n; i++)
		if (p->grank[i] == px.grank)
			return i;
	return -1;
}

static bool spans(const struct px_plan *p)
{
	for (int i = 0; i < p->n; i++)
		if (!px_is_local(p->grank[i]))
			return true;
	return false;
}

static void native_free(MPI_Comm *native)
{
	int rc;

	if (*native != MPI_COMM_NULL)
		px_blocking(rc, px_n.Comm_free(native));
	(void)rc;
}

/* The constructor has failed with rc somewhere. */
int px_plan_drop(struct px_plan *p, int rc)
{
	native_free(&p->face);
	native_free(&p->native);
	free(p->grank);
	return rc;
}

/* All members are here: the vendor's own intercommunicator. */
static int native_inter(struct px_plan *p)
{
	MPI_Comm local = MPI_COMM_NULL;
	int me = px_plan_rank(p), second = me >= p->first, rc;

	px_blocking(rc, px_n.Comm_split(p->native, second, me, &local));
	if (rc == MPI_SUCCESS)
		px_blocking(
			rc, px_n.Intercomm_create(local, 0, p->native, second ? 0 : p->first, 1, &p->face));
	native_free(&local);
	return rc;
}

/* p->native is made: the face from it. MPI error code. */
int px_plan_face(struct px_plan *p)
{
	int rc = px_must_meet() ? px_meet(p->native) : MPI_SUCCESS;

	if (rc != MPI_SUCCESS)
		return rc;
	if (!spans(p))
		return native_inter(p);
	px_blocking(rc, px_n.Comm_dup(p->native, &p->face));
	return rc;
}

/* Everybody has made the native communicators. The errors of the new one go where those of `like` go, a native handle. */
int px_plan_carry_out(struct px_plan *p, struct px_comm *raise_on, MPI_Comm like, MPI_Comm *out)
{
	MPI_Errhandler h;
	struct px_comm *all;

	if (px_n.Comm_get_errhandler(like, &h) == MPI_SUCCESS) {
		px_n.Comm_set_errhandler(p->face, h);
		px_n.Errhandler_free(&h);
	}
	if (!spans(p)) {
		native_free(&p->native);
	} else {
		struct px_ranks *ranks = px_ranks_new(px.world, p->n, p->grank);

		all = ranks ? px_comm_new(p->native, p->ctx, ranks) : NULL;
		px_ranks_drop(ranks);
		if (!all)
			return px_plan_drop(p, px_raise_memory(raise_on));
		p->native = MPI_COMM_NULL;
		if (!px_inter_new(p->face, all, p->first)) {
			px_comm_drop(all);
			return px_plan_drop(p, px_raise_memory(raise_on));
		}
	}
	*out = p->face;
	free(p->grank);
	return MPI_SUCCESS;
}

/* The members at this site, in the order of the plan: from a communicator of the whole site, by themselves. */
int px_plan_native(struct px_plan *p)
{
	int *local = malloc((size_t)p->n * sizeof *local), k = 0, rc;
	MPI_Group site, group;

	if (!local)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < p->n; i++)
		if (px_is_local(p->grank[i]))
			local[k++] = p->grank[i] - px.world->base[px.site];
	rc = px_n.Comm_group(px.local, &site);
	if (rc == MPI_SUCCESS) {
		rc = px_n.Group_incl(site, k, local, &group);
		px_n.Group_free(&site);
	}
	free(local);
	if (rc != MPI_SUCCESS)
		return rc;
	/* Others that are made at the same time in other threads have another tag. */
	px_blocking(rc, px_n.Comm_create_group(px.local, group, (int)(p->ctx / 4 % 30011), &p->native));
	px_n.Group_free(&group);
	return rc;
}
