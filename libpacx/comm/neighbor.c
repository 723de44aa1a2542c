/* neighbor.c: neighborhood collectives: one message per edge.
 *
 * In a Cartesian topology the block sent in the negative direction is the one that the neighbour
 * receives from its positive direction, also when both neighbours are one process (periodic dimension of
 * size 1 or 2; MPI-4, 8.6): the slot of the receiver goes into the message.
 */
#include <stdlib.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "topo.h"

/* Where the block of neighbour i lies: count, byte offset, type. Exactly one of the forms is used. */
struct blocks {
	const MPI_Count *counts; /* NULL: regular */
	const MPI_Aint *displs;  /* in extents of type */
	const MPI_Aint *byte_displs;
	const MPI_Datatype *types;
	MPI_Count each;
	MPI_Datatype type;
	bool same; /* every neighbour gets the same block (allgather) */
};

static MPI_Datatype type_of(const struct blocks *b, int i)
{
	return b->types ? b->types[i] : b->type;
}

static MPI_Count count_of(const struct blocks *b, int i)
{
	return b->counts ? b->counts[i] : b->each;
}

static MPI_Aint offset_of(const struct blocks *b, int i)
{
	if (b->same)
		return 0;
	if (b->byte_displs)
		return b->byte_displs[i];
	return (MPI_Aint)((b->displs ? b->displs[i] : b->each * i) * px_type_get(b->type)->extent);
}

static bool valid(struct px_sched *s, const struct blocks *b, int n)
{
	for (int i = 0; i < n; i++)
		if (count_of(b, i) < 0 || !px_type_get(type_of(b, i)))
			px_sched_fail_arg(s, b->counts || b->types ? i : -1, count_of(b, i));
	return px_sched_ok(s);
}

static struct px_sched *build(
	struct px_comm *c, const void *sbuf, const struct blocks *sb, void *rbuf, const struct blocks *rb)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_NEIGHBOR);
	int nin, nout, *in = NULL, *out = NULL, rc;
	bool cart = c->topo && c->topo->kind == MPI_CART && c->topo->ndims < 64;

	if (!s)
		return NULL;
	rc = px_topo_neighbors(c, &nin, &in, &nout, &out);
	if (rc != MPI_SUCCESS) {
		px_sched_fail(s, rc, "the communicator has no topology");
		return s;
	}
	if (valid(s, sb, nout) && valid(s, rb, nin)) {
		for (int i = 0; i < nout; i++) {
			px_sched_sub(s, cart ? i ^ 1 : 0);
			if (out[i] != MPI_PROC_NULL)
				px_sched_send(s, (const char *)sbuf + offset_of(sb, i), count_of(sb, i),
					type_of(sb, i), out[i]);
		}
		for (int i = 0; i < nin; i++) {
			px_sched_sub(s, cart ? i : 0);
			if (in[i] != MPI_PROC_NULL)
				px_sched_recv(s, (char *)rbuf + offset_of(rb, i), count_of(rb, i),
					type_of(rb, i), in[i]);
		}
	}
	free(in);
	free(out);
	return s;
}

#define ONE(count, t)                                                                                        \
	{                                                                                                    \
		.each = (count), .type = (t), .same = true                                                   \
	}
#define EVERY(count, t)                                                                                      \
	{                                                                                                    \
		.each = (count), .type = (t)                                                                 \
	}
#define VECTOR(c, d, t)                                                                                      \
	{                                                                                                    \
		.counts = (c), .displs = (d), .type = (t)                                                    \
	}
#define GENERAL(c, d, t)                                                                                     \
	{                                                                                                    \
		.counts = (c), .byte_displs = (d), .types = (t), .type = MPI_BYTE                            \
	}

int px_Neighbor_allgather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c)
{
	struct blocks sb = ONE(count, t), rb = EVERY(rcount, rt);

	return px_sched_run(build(c, in, &sb, out, &rb), c);
}

int px_Ineighbor_allgather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c, MPI_Request *req)
{
	struct blocks sb = ONE(count, t), rb = EVERY(rcount, rt);

	return px_sched_start(build(c, in, &sb, out, &rb), c, req);
}

int px_Neighbor_allgatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out,
	const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype rt, struct px_comm *c)
{
	struct blocks sb = ONE(count, t), rb = VECTOR(counts, displs, rt);

	return px_sched_run(build(c, in, &sb, out, &rb), c);
}

int px_Ineighbor_allgatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out,
	const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype rt, struct px_comm *c,
	MPI_Request *req)
{
	struct blocks sb = ONE(count, t), rb = VECTOR(counts, displs, rt);

	return px_sched_start(build(c, in, &sb, out, &rb), c, req);
}

int px_Neighbor_alltoall(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c)
{
	struct blocks sb = EVERY(count, t), rb = EVERY(rcount, rt);

	return px_sched_run(build(c, in, &sb, out, &rb), c);
}

int px_Ineighbor_alltoall(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c, MPI_Request *req)
{
	struct blocks sb = EVERY(count, t), rb = EVERY(rcount, rt);

	return px_sched_start(build(c, in, &sb, out, &rb), c, req);
}

int px_Neighbor_alltoallv(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[], MPI_Datatype t,
	void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[], MPI_Datatype rt, struct px_comm *c)
{
	struct blocks sb = VECTOR(scounts, sdispls, t), rb = VECTOR(rcounts, rdispls, rt);

	return px_sched_run(build(c, in, &sb, out, &rb), c);
}

int px_Ineighbor_alltoallv(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[],
	MPI_Datatype t, void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[], MPI_Datatype rt,
	struct px_comm *c, MPI_Request *req)
{
	struct blocks sb = VECTOR(scounts, sdispls, t), rb = VECTOR(rcounts, rdispls, rt);

	return px_sched_start(build(c, in, &sb, out, &rb), c, req);
}

int px_Neighbor_alltoallw(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[],
	const MPI_Datatype st[], void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[],
	const MPI_Datatype rt[], struct px_comm *c)
{
	struct blocks sb = GENERAL(scounts, sdispls, st), rb = GENERAL(rcounts, rdispls, rt);

	return px_sched_run(build(c, in, &sb, out, &rb), c);
}

int px_Ineighbor_alltoallw(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[],
	const MPI_Datatype st[], void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[],
	const MPI_Datatype rt[], struct px_comm *c, MPI_Request *req)
{
	struct blocks sb = GENERAL(scounts, sdispls, st), rb = GENERAL(rcounts, rdispls, rt);

	return px_sched_start(build(c, in, &sb, out, &rb), c, req);
}
