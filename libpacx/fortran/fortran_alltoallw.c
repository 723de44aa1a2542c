/* fortran_alltoallw.c: the Fortran entries of alltoallw and its kin over Open MPI.
 *
 * Open MPI's Fortran layer turns as many datatypes into C handles as its native communicator has ranks, which are those of this site only.
 * On communicators that span sites it is done here, for all ranks or neighbours. MPICH's Fortran handles are its C handles.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>

#ifdef OPEN_MPI
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bind.h"
#include "comm.h"
#include "comm_find.h"
#include "front.h"
#include "inter.h"
#include "loaded.h"
#include "lock.h"
#include "topo.h"
#include "vendor.h"

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "counts are passed on as they are");

/* Is p the Fortran constant of this name, however the compiler writes it? */
static bool is_constant(const void *p, const char *name)
{
	static const char *const forms[] = { "mpi_fortran_%s", "mpi_fortran_%s_", "mpi_fortran_%s__" };
	char full[64];

	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		snprintf(full, sizeof full, forms[i], name);
		if (p == px_vendor_find(RTLD_DEFAULT, full))
			return true;
	}
	return false;
}

static void *buffer(void *p)
{
	if (is_constant(p, "in_place"))
		return MPI_IN_PLACE;
	return is_constant(p, "bottom") ? MPI_BOTTOM : p;
}

/* The arguments of all four: displacements are integers, or addresses among neighbours; req NULL: blocking. */
struct call {
	bool neighbors;
	void *in, *out;
	MPI_Fint *counts, *types, *rcounts, *rtypes;
	void *displs, *rdispls;
	MPI_Comm comm;
	MPI_Fint *req;
};

/* How many blocks there are to send and to receive. */
static int blocks(const struct call *a, struct px_comm *c, int *nout, int *nin)
{
	int *in = NULL, *out = NULL, rc;

	*nout = *nin = c->size;
	if (!a->neighbors || c->inter)
		return MPI_SUCCESS; /* the call that follows refuses the latter */
	px_lock();
	rc = px_topo_neighbors(c, nin, &in, nout, &out);
	px_unlock();
	free(in);
	free(out);
	return rc;
}

/* One side of the call in C. */
struct side {
	MPI_Count *counts;
	MPI_Aint *displs;
	MPI_Datatype *types;
};

static bool side_new(struct side *d, int n, const MPI_Fint *counts, const void *displs, const MPI_Fint *types,
	bool neighbors)
{
	d->counts = malloc((size_t)(n + 1) * sizeof *d->counts);
	d->displs = malloc((size_t)(n + 1) * sizeof *d->displs);
	d->types = malloc((size_t)(n + 1) * sizeof *d->types);
	if (!d->counts || !d->displs || !d->types)
		return false;
	for (int i = 0; i < n; i++) {
		d->counts[i] = counts[i];
		d->displs[i] = neighbors ? ((const MPI_Aint *)displs)[i] : ((const MPI_Fint *)displs)[i];
		d->types[i] = px_n.Type_f2c(types[i]);
	}
	return true;
}

static void side_free(struct side *d)
{
	free(d->counts);
	free(d->displs);
	free(d->types);
}

/* With the lock. Only intercommunicators have inter. */
static int in_c(const struct call *a, struct px_comm *c, const void *in, void *out, const struct side *s,
	const struct side *r, MPI_Request *req)
{
	if (a->neighbors && c->inter)
		return px_not_inter(c);
	if (a->neighbors && a->req)
		return px_Ineighbor_alltoallw(
			in, s->counts, s->displs, s->types, out, r->counts, r->displs, r->types, c, req);
	if (a->neighbors)
		return px_Neighbor_alltoallw(
			in, s->counts, s->displs, s->types, out, r->counts, r->displs, r->types, c);
	if (a->req)
		return (c->inter ? px_inter_Ialltoallw : px_Ialltoallw)(
			in, s->counts, s->displs, s->types, out, r->counts, r->displs, r->types, c, req);
	return (c->inter ? px_inter_Alltoallw : px_Alltoallw)(
		in, s->counts, s->displs, s->types, out, r->counts, r->displs, r->types, c);
}

static int spanning(const struct call *a, struct px_comm *c)
{
	void *in = buffer(a->in);
	int nout, nin, rc = blocks(a, c, &nout, &nin);
	MPI_Request req = MPI_REQUEST_NULL;
	const char *outer;
	struct side s = { 0 }, r = { 0 };

	if (rc != MPI_SUCCESS)
		return rc;
	if (side_new(&s, in == MPI_IN_PLACE ? 0 : nout, a->counts, a->displs, a->types, a->neighbors) &&
		side_new(&r, nin, a->rcounts, a->rdispls, a->rtypes, a->neighbors)) {
		outer = px_begin(a->neighbors ? "MPI_Neighbor_alltoallw" : "MPI_Alltoallw");
		rc = in_c(a, c, in, buffer(a->out), &s, &r, &req);
		px_end(outer);
		if (a->req)
			*a->req = px_n.Request_c2f(req);
	} else {
		rc = MPI_ERR_NO_MEM;
	}
	side_free(&s);
	side_free(&r);
	return rc;
}

/* True: it has been done here. */
static bool done(struct call *a, const MPI_Fint *comm, MPI_Fint *ierr)
{
	struct px_comm *c;
	int rc;

	a->comm = px_n.Comm_f2c(*comm);
	c = px_comm_find(PX_MAP(a->comm));
	if (!c)
		return false;
	rc = spanning(a, c);
	if (ierr)
		*ierr = rc;
	return true;
}

static px_any_fn *vendors(const char *name)
{
	void *lib = dlopen("libmpi_mpifh.so.40", RTLD_NOLOAD | RTLD_LAZY);
	void *f = lib ? px_vendor_find(lib, name) : NULL;

	return (px_any_fn *)(uintptr_t)(f ? f : px_loaded_behind(name));
}

typedef void block_fn(void *in, MPI_Fint *counts, void *displs, MPI_Fint *types, void *out, MPI_Fint *rcounts,
	void *rdispls, MPI_Fint *rtypes, MPI_Fint *comm, MPI_Fint *ierr);
typedef void start_fn(void *in, MPI_Fint *counts, void *displs, MPI_Fint *types, void *out, MPI_Fint *rcounts,
	void *rdispls, MPI_Fint *rtypes, MPI_Fint *comm, MPI_Fint *req, MPI_Fint *ierr);

#define ARGS(r)                                                                                              \
	{                                                                                                    \
		ne, in, out, counts, types, rcounts, rtypes, displs, rdispls, MPI_COMM_NULL, r               \
	}

static void block(bool ne, const char *name, void *in, MPI_Fint *counts, void *displs, MPI_Fint *types,
	void *out, MPI_Fint *rcounts, void *rdispls, MPI_Fint *rtypes, MPI_Fint *comm, MPI_Fint *ierr)
{
	struct call a = ARGS(NULL);

	if (!done(&a, comm, ierr))
		((block_fn *)vendors(name))(
			in, counts, displs, types, out, rcounts, rdispls, rtypes, comm, ierr);
}

static void start(bool ne, const char *name, void *in, MPI_Fint *counts, void *displs, MPI_Fint *types,
	void *out, MPI_Fint *rcounts, void *rdispls, MPI_Fint *rtypes, MPI_Fint *comm, MPI_Fint *req,
	MPI_Fint *ierr)
{
	struct call a = ARGS(req);

	if (!done(&a, comm, ierr))
		((start_fn *)vendors(name))(
			in, counts, displs, types, out, rcounts, rdispls, rtypes, comm, req, ierr);
}

#define BLOCK(name, ne)                                                                                      \
	block_fn name;                                                                                       \
	void name(void *in, MPI_Fint *counts, void *displs, MPI_Fint *types, void *out, MPI_Fint *rcounts,   \
		void *rdispls, MPI_Fint *rtypes, MPI_Fint *comm, MPI_Fint *ierr)                             \
	{                                                                                                    \
		block(ne, #name, in, counts, displs, types, out, rcounts, rdispls, rtypes, comm, ierr);      \
	}
#define START(name, ne)                                                                                      \
	start_fn name;                                                                                       \
	void name(void *in, MPI_Fint *counts, void *displs, MPI_Fint *types, void *out, MPI_Fint *rcounts,   \
		void *rdispls, MPI_Fint *rtypes, MPI_Fint *comm, MPI_Fint *req, MPI_Fint *ierr)              \
	{                                                                                                    \
		start(ne, #name, in, counts, displs, types, out, rcounts, rdispls, rtypes, comm, req, ierr); \
	}
/* All names that a compiler may call, and the one that the mpi_f08 module calls. */
#define ALL(X, lower, upper, ne)                                                                             \
	X(mpi_##lower, ne)                                                                                   \
	X(mpi_##lower##_, ne)                                                                                \
	X(mpi_##lower##__, ne)                                                                               \
	X(MPI_##upper, ne)                                                                                   \
	X(pmpi_##lower, ne)                                                                                  \
	X(pmpi_##lower##_, ne) X(pmpi_##lower##__, ne) X(PMPI_##upper, ne) X(ompi_##lower##_f, ne)
ALL(BLOCK, alltoallw, ALLTOALLW, false)
ALL(START, ialltoallw, IALLTOALLW, false)
ALL(BLOCK, neighbor_alltoallw, NEIGHBOR_ALLTOALLW, true)
ALL(START, ineighbor_alltoallw, INEIGHBOR_ALLTOALLW, true)

#else
typedef int px_no_fortran_alltoallw; /* a file must not be empty */
#endif
