/* native_call.c: the native steps of schedules as calls of the vendor's, nonblocking and blocking. */
#include "native.h"
#include "schedule.h"
#include "vendor.h"

int px_call_start(const struct px_call *k, MPI_Comm n, MPI_Request *req)
{
	switch (k->kind) {
	case PX_CALL_BARRIER:
		return px_n.Ibarrier(n, req);
	case PX_CALL_BCAST:
		return PX_N(Ibcast, k->r, k->count, k->type, k->root, n, req);
	case PX_CALL_REDUCE:
#ifdef PX_HAVE_Ireduce_c
		return px_n.Ireduce_c(k->s, k->r, k->count, k->type, k->op, k->root, n, req);
#else
		return px_n.Ireduce(k->s, k->r, (int)k->count, k->type, k->op, k->root, n, req);
#endif
	case PX_CALL_SCAN:
#ifdef PX_HAVE_Iscan_c
		return px_n.Iscan_c(k->s, k->r, k->count, k->type, k->op, n, req);
#else
		return px_n.Iscan(k->s, k->r, (int)k->count, k->type, k->op, n, req);
#endif
	case PX_CALL_EXSCAN:
#ifdef PX_HAVE_Iexscan_c
		return px_n.Iexscan_c(k->s, k->r, k->count, k->type, k->op, n, req);
#else
		return px_n.Iexscan(k->s, k->r, (int)k->count, k->type, k->op, n, req);
#endif
	case PX_CALL_GATHERV:
		return px_n.Igatherv(k->s, (int)k->count, k->type, k->r, k->rcounts, k->rdispls, k->rtype,
			k->root, n, req);
	case PX_CALL_SCATTERV:
		return px_n.Iscatterv(k->s, k->scounts, k->sdispls, k->type, k->r, (int)k->rcount, k->rtype,
			k->root, n, req);
	case PX_CALL_ALLTOALLW:
		return px_n.Ialltoallw(k->s, k->scounts, k->sdispls, k->stypes, k->r, k->rcounts, k->rdispls,
			k->rtypes, n, req);
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
		return PX_N(Bcast, k->r, k->count, k->type, k->root, n);
	case PX_CALL_REDUCE:
#ifdef PX_HAVE_Reduce_c
		return px_n.Reduce_c(k->s, k->r, k->count, k->type, k->op, k->root, n);
#else
		return px_n.Reduce(k->s, k->r, (int)k->count, k->type, k->op, k->root, n);
#endif
	case PX_CALL_SCAN:
#ifdef PX_HAVE_Scan_c
		return px_n.Scan_c(k->s, k->r, k->count, k->type, k->op, n);
#else
		return px_n.Scan(k->s, k->r, (int)k->count, k->type, k->op, n);
#endif
	case PX_CALL_EXSCAN:
#ifdef PX_HAVE_Exscan_c
		return px_n.Exscan_c(k->s, k->r, k->count, k->type, k->op, n);
#else
		return px_n.Exscan(k->s, k->r, (int)k->count, k->type, k->op, n);
#endif
	case PX_CALL_GATHERV:
		return px_n.Gatherv(
			k->s, (int)k->count, k->type, k->r, k->rcounts, k->rdispls, k->rtype, k->root, n);
	case PX_CALL_SCATTERV:
		return px_n.Scatterv(
			k->s, k->scounts, k->sdispls, k->type, k->r, (int)k->rcount, k->rtype, k->root, n);
	case PX_CALL_ALLTOALLW:
		return px_n.Alltoallw(
			k->s, k->scounts, k->sdispls, k->stypes, k->r, k->rcounts, k->rdispls, k->rtypes, n);
	case PX_CALL_DUP:
		return px_n.Comm_dup(k->of ? k->of : n, k->newcomm);
	}
	return MPI_ERR_INTERN;
}
