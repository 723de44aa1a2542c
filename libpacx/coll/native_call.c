/* native_call.c: the native steps of schedules as calls of the vendor's, nonblocking and blocking, with 64-bit counts where it has them. Where it
 * has not, counts and displacements become those of int; what does not fit is one element of a datatype of our own in alltoallw, and elsewhere
 * has not come here (px_call.large).
 */
#include "datatype.h"
#include "native.h"
#include "schedule.h"
#include "vendor.h"

#ifdef PX_HAVE_Send_c
#define CALL(name)     px_n.name##_c
#define COUNT(count)   ((MPI_Count)(count))
#define ARRAY(k, name) ((k)->name)

int px_call_ready(struct px_sched *s, struct px_call *k)
{
	(void)s;
	(void)k;
	return MPI_SUCCESS;
}
#else
#define CALL(name)     px_n.name
#define COUNT(count)   ((int)(count))
#define ARRAY(k, name) ((k)->n##name)

/* See px_type_many; it lives as long as the schedule. */
static int as_one(struct px_sched *s, MPI_Count count, MPI_Aint displ, MPI_Datatype t, MPI_Datatype *one)
{
	int rc = px_type_many(count, displ, t, one);

	return rc == MPI_SUCCESS ? px_sched_temp_type(s, *one) : rc;
}

/* One side of a call in int. types: one for each block, or NULL: then everything has to fit. */
static int narrow(struct px_sched *s, const MPI_Count *counts, const MPI_Aint *displs,
	const MPI_Datatype **types, const int **ncounts, const int **ndispls)
{
	int n = counts ? px_sched_comm(s)->nlocal : 0, *c, *d, rc = MPI_SUCCESS;
	MPI_Datatype *own;

	if (n == 0)
		return MPI_SUCCESS;
	*ncounts = c = px_sched_temp(s, (size_t)n * sizeof *c);
	*ndispls = d = px_sched_temp(s, (size_t)n * sizeof *d);
	own = types ? px_sched_temp(s, (size_t)n * sizeof *own) : NULL;
	if (!c || !d || (types && !own))
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < n && rc == MPI_SUCCESS; i++) {
		bool fits = px_fits(counts[i]) && displs[i] >= INT_MIN && displs[i] <= INT_MAX;

		c[i] = fits ? (int)counts[i] : 1;
		d[i] = fits ? (int)displs[i] : 0;
		if (own)
			own[i] = (*types)[i];
		if (!fits)
			rc = own ? as_one(s, counts[i], displs[i], own[i], &own[i]) : MPI_ERR_COUNT;
	}
	if (own)
		*types = own;
	return rc;
}

int px_call_ready(struct px_sched *s, struct px_call *k)
{
	bool each = k->kind == PX_CALL_ALLTOALLW;
	int rc = narrow(s, k->scounts, k->sdispls, each ? &k->stypes : NULL, &k->nscounts, &k->nsdispls);

	return rc != MPI_SUCCESS ? rc
				 : narrow(s, k->rcounts, k->rdispls, each ? &k->rtypes : NULL, &k->nrcounts,
					   &k->nrdispls);
}
#endif

int px_call_start(const struct px_call *k, MPI_Comm n, MPI_Request *req)
{
	switch (k->kind) {
	case PX_CALL_BARRIER:
		return px_n.Ibarrier(n, req);
	case PX_CALL_BCAST:
		return CALL(Ibcast)(k->r, COUNT(k->count), k->type, k->root, n, req);
	case PX_CALL_REDUCE:
		return CALL(Ireduce)(k->s, k->r, COUNT(k->count), k->type, k->op, k->root, n, req);
	case PX_CALL_SCAN:
		return CALL(Iscan)(k->s, k->r, COUNT(k->count), k->type, k->op, n, req);
	case PX_CALL_EXSCAN:
		return CALL(Iexscan)(k->s, k->r, COUNT(k->count), k->type, k->op, n, req);
	case PX_CALL_GATHERV:
		return CALL(Igatherv)(k->s, COUNT(k->count), k->type, k->r, ARRAY(k, rcounts),
			ARRAY(k, rdispls), k->rtype, k->root, n, req);
	case PX_CALL_SCATTERV:
		return CALL(Iscatterv)(k->s, ARRAY(k, scounts), ARRAY(k, sdispls), k->type, k->r,
			COUNT(k->rcount), k->rtype, k->root, n, req);
	case PX_CALL_ALLTOALLW:
		return CALL(Ialltoallw)(k->s, ARRAY(k, scounts), ARRAY(k, sdispls), k->stypes, k->r,
			ARRAY(k, rcounts), ARRAY(k, rdispls), k->rtypes, n, req);
	case PX_CALL_DUP:
#ifdef PX_HAVE_Comm_idup_with_info
		if (k->info)
			return px_n.Comm_idup_with_info(k->of ? k->of : n, *k->info, k->newcomm, req);
#endif
		return px_n.Comm_idup(k->of ? k->of : n, k->newcomm, req);
	}
	return MPI_ERR_INTERN;
}

int px_call_block(const struct px_call *k, MPI_Comm n)
{
	switch (k->kind) {
	case PX_CALL_BARRIER:
		return px_n.Barrier(n);
	case PX_CALL_BCAST:
		return CALL(Bcast)(k->r, COUNT(k->count), k->type, k->root, n);
	case PX_CALL_REDUCE:
		return CALL(Reduce)(k->s, k->r, COUNT(k->count), k->type, k->op, k->root, n);
	case PX_CALL_SCAN:
		return CALL(Scan)(k->s, k->r, COUNT(k->count), k->type, k->op, n);
	case PX_CALL_EXSCAN:
		return CALL(Exscan)(k->s, k->r, COUNT(k->count), k->type, k->op, n);
	case PX_CALL_GATHERV:
		return CALL(Gatherv)(k->s, COUNT(k->count), k->type, k->r, ARRAY(k, rcounts),
			ARRAY(k, rdispls), k->rtype, k->root, n);
	case PX_CALL_SCATTERV:
		return CALL(Scatterv)(k->s, ARRAY(k, scounts), ARRAY(k, sdispls), k->type, k->r,
			COUNT(k->rcount), k->rtype, k->root, n);
	case PX_CALL_ALLTOALLW:
		return CALL(Alltoallw)(k->s, ARRAY(k, scounts), ARRAY(k, sdispls), k->stypes, k->r,
			ARRAY(k, rcounts), ARRAY(k, rdispls), k->rtypes, n);
	case PX_CALL_DUP:
		return px_n.Comm_dup(k->of ? k->of : n, k->newcomm);
	}
	return MPI_ERR_INTERN;
}
