/* persist_coll.c: persistent collectives on communicators that span sites: MPI_Start makes the nonblocking collective with the arguments
 * that MPI_X_init has kept, arrays included, on a communicator of its own: members may start several of them in different orders
 * (MPI-4.0, 6.13), and each matches that which was initialized with it.
 */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "comm.h"
#include "comm_make.h"
#include "inter.h"
#include "raise.h"
#include "request.h"
#include "topo.h"

/* The arguments, each as far as the operation has it. */
struct kept {
	struct px_again again;
	int (*go)(struct kept *k, MPI_Request *req);
	struct px_comm *c; /* a twin of the user's */
	struct px_req *under_way;
	const void *in;
	void *out;
	MPI_Count count, rcount;
	MPI_Datatype t, rt;
	MPI_Op op;
	int root;
	const MPI_Count *counts, *rcounts;
	const MPI_Aint *displs, *rdispls;
	const MPI_Datatype *types, *rtypes;
	void *copy[6]; /* of arrays */
	int copies;
	bool failed; /* out of memory */
};

static void kept_free(struct px_again *a)
{
	struct kept *k = (struct kept *)a;

	for (int i = 0; i < k->copies; i++)
		free(k->copy[i]);
	px_comm_drop(k->c);
	free(k);
}

/* Of n entries of an array; NULL stays NULL. */
static const void *copy(struct kept *k, const void *from, int n, size_t size)
{
	void *to;

	if (!from || n <= 0)
		return NULL;
	to = malloc((size_t)n * size);
	if (!to) {
		k->failed = true;
		return NULL;
	}
	k->copy[k->copies++] = to;
	return memcpy(to, from, (size_t)n * size);
}

/* Is the collective that was started last complete? */
static bool look(struct px_req *r)
{
	struct kept *k = r->job;
	struct px_req *under_way = k->under_way;

	if (!px_req_test(under_way))
		return false;
	r->error = under_way->error;
	r->why = under_way->why;
	under_way->why = NULL;
	k->under_way = NULL;
	px_req_release(under_way);
	r->done = true;
	return true;
}

static int start(struct px_req *r)
{
	struct kept *k = r->job;
	MPI_Request req;
	int rc = k->go(k, &req);

	if (rc != MPI_SUCCESS) {
		r->done = true;
		return rc;
	}
	k->under_way = px_req_find(req);
	return MPI_SUCCESS;
}

/* A request for k, whose arguments `from` are on the stack of the caller. */
static int keep(struct px_comm *c, const struct kept *from, MPI_Request *req)
{
	struct px_comm *own = NULL;
	int rc = px_comm_twin(c, &own);
	struct px_req *r = rc != MPI_SUCCESS || from->failed ? NULL : px_req_new(c);
	struct kept *k = r ? malloc(sizeof *k) : NULL;

	if (!k) {
		for (int i = 0; i < from->copies; i++)
			free(from->copy[i]);
		if (r)
			px_req_release(r);
		if (own)
			px_comm_drop(own);
		return rc != MPI_SUCCESS ? rc : px_raise_memory(c);
	}
	*k = *from;
	k->again = (struct px_again){ start, kept_free };
	k->c = own;
	r->kind = PX_TASK;
	r->task = look;
	r->job = k;
	r->again = &k->again;
	r->persistent = true;
	r->done = true;
	px_req_set_status(r, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	px_req_hold_types(r);
	*req = r->token;
	return MPI_SUCCESS;
}

/* Operations whose arguments are one block, or equal blocks, each way; root is 0 where there is none. */
static int keep_blocks(int (*go)(struct kept *k, MPI_Request *req), const void *in, MPI_Count count,
	MPI_Datatype t, void *out, MPI_Count rcount, MPI_Datatype rt, int root, struct px_comm *c,
	MPI_Request *req)
{
	struct kept k = { .go = go,
		.in = in,
		.count = count,
		.t = t,
		.out = out,
		.rcount = rcount,
		.rt = rt,
		.root = root };

	return keep(c, &k, req);
}

/* Reductions of one block. */
static int keep_reduction(int (*go)(struct kept *k, MPI_Request *req), const void *in, void *out,
	MPI_Count count, MPI_Datatype t, MPI_Op op, int root, struct px_comm *c, MPI_Request *req)
{
	struct kept k = { .go = go, .in = in, .out = out, .count = count, .t = t, .op = op, .root = root };

	return keep(c, &k, req);
}

/* Entries of an array with one for each rank that this process sends to or receives from; only at the root, if rooted. */
static int ranks(const struct px_comm *c)
{
	return c->size;
}

static int ranks_at_root(const struct px_comm *c, int root)
{
	return root == (c->inter ? MPI_ROOT : c->rank) ? c->size : 0;
}

static int ranks_here(const struct px_comm *c)
{
	return c->inter ? c->inter->size : c->size;
}

/* Of neighbours. */
static int neighbors(struct px_comm *c, int *nout)
{
	int nin = 0, *in = NULL, *out = NULL;

	*nout = 0;
	if (px_topo_neighbors(c, &nin, &in, nout, &out) != MPI_SUCCESS)
		return 0;
	free(in);
	free(out);
	return nin;
}

/* The nonblocking form on either kind of communicator. */
#define EITHER(name, ...) (k->c->inter ? px_inter_I##name(__VA_ARGS__) : px_I##name(__VA_ARGS__))

static int go_barrier(struct kept *k, MPI_Request *req)
{
	return EITHER(barrier, k->c, req);
}

int px_Barrier_init(struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	struct kept k = { .go = go_barrier };

	(void)info;
	return keep(c, &k, req);
}

static int go_bcast(struct kept *k, MPI_Request *req)
{
	return EITHER(bcast, k->out, k->count, k->t, k->root, k->c, req);
}

int px_Bcast_init(void *out, MPI_Count count, MPI_Datatype t, int root, struct px_comm *c, MPI_Info info,
	MPI_Request *req)
{
	struct kept k = { .go = go_bcast, .out = out, .count = count, .t = t, .root = root };

	(void)info;
	return keep(c, &k, req);
}

static int go_gather(struct kept *k, MPI_Request *req)
{
	return EITHER(gather, k->in, k->count, k->t, k->out, k->rcount, k->rt, k->root, k->c, req);
}

int px_Gather_init(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, int root, struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	(void)info;
	return keep_blocks(go_gather, in, count, t, out, rcount, rt, root, c, req);
}

static int go_scatter(struct kept *k, MPI_Request *req)
{
	return EITHER(scatter, k->in, k->count, k->t, k->out, k->rcount, k->rt, k->root, k->c, req);
}

int px_Scatter_init(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, int root, struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	(void)info;
	return keep_blocks(go_scatter, in, count, t, out, rcount, rt, root, c, req);
}

static int go_allgather(struct kept *k, MPI_Request *req)
{
	return EITHER(allgather, k->in, k->count, k->t, k->out, k->rcount, k->rt, k->c, req);
}

int px_Allgather_init(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	(void)info;
	return keep_blocks(go_allgather, in, count, t, out, rcount, rt, 0, c, req);
}

static int go_alltoall(struct kept *k, MPI_Request *req)
{
	return EITHER(alltoall, k->in, k->count, k->t, k->out, k->rcount, k->rt, k->c, req);
}

int px_Alltoall_init(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	(void)info;
	return keep_blocks(go_alltoall, in, count, t, out, rcount, rt, 0, c, req);
}

static int go_gatherv(struct kept *k, MPI_Request *req)
{
	return EITHER(
		gatherv, k->in, k->count, k->t, k->out, k->rcounts, k->rdispls, k->rt, k->root, k->c, req);
}

int px_Gatherv_init(const void *in, MPI_Count count, MPI_Datatype t, void *out, const MPI_Count counts[],
	const MPI_Aint displs[], MPI_Datatype rt, int root, struct px_comm *c, MPI_Info info,
	MPI_Request *req)
{
	struct kept k = {
		.go = go_gatherv, .in = in, .count = count, .t = t, .out = out, .rt = rt, .root = root
	};
	int n = ranks_at_root(c, root);

	k.rcounts = copy(&k, counts, n, sizeof *counts);
	k.rdispls = copy(&k, displs, n, sizeof *displs);

	(void)info;
	return keep(c, &k, req);
}

static int go_scatterv(struct kept *k, MPI_Request *req)
{
	return EITHER(
		scatterv, k->in, k->counts, k->displs, k->t, k->out, k->rcount, k->rt, k->root, k->c, req);
}

int px_Scatterv_init(const void *in, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype t,
	void *out, MPI_Count rcount, MPI_Datatype rt, int root, struct px_comm *c, MPI_Info info,
	MPI_Request *req)
{
	struct kept k = {
		.go = go_scatterv, .in = in, .t = t, .out = out, .rcount = rcount, .rt = rt, .root = root
	};
	int n = ranks_at_root(c, root);

	k.counts = copy(&k, counts, n, sizeof *counts);
	k.displs = copy(&k, displs, n, sizeof *displs);

	(void)info;
	return keep(c, &k, req);
}

static int go_allgatherv(struct kept *k, MPI_Request *req)
{
	return EITHER(allgatherv, k->in, k->count, k->t, k->out, k->rcounts, k->rdispls, k->rt, k->c, req);
}

int px_Allgatherv_init(const void *in, MPI_Count count, MPI_Datatype t, void *out, const MPI_Count counts[],
	const MPI_Aint displs[], MPI_Datatype rt, struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	struct kept k = { .go = go_allgatherv, .in = in, .count = count, .t = t, .out = out, .rt = rt };
	int n = ranks(c);

	k.rcounts = copy(&k, counts, n, sizeof *counts);
	k.rdispls = copy(&k, displs, n, sizeof *displs);

	(void)info;
	return keep(c, &k, req);
}

static int go_alltoallv(struct kept *k, MPI_Request *req)
{
	return EITHER(alltoallv, k->in, k->counts, k->displs, k->t, k->out, k->rcounts, k->rdispls, k->rt,
		k->c, req);
}

int px_Alltoallv_init(const void *in, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype t,
	void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[], MPI_Datatype rt, struct px_comm *c,
	MPI_Info info, MPI_Request *req)
{
	struct kept k = { .go = go_alltoallv, .in = in, .t = t, .out = out, .rt = rt };
	int n = ranks(c);

	if (in != MPI_IN_PLACE) {
		k.counts = copy(&k, counts, n, sizeof *counts);
		k.displs = copy(&k, displs, n, sizeof *displs);
	}
	k.rcounts = copy(&k, rcounts, n, sizeof *rcounts);
	k.rdispls = copy(&k, rdispls, n, sizeof *rdispls);

	(void)info;
	return keep(c, &k, req);
}

static int go_alltoallw(struct kept *k, MPI_Request *req)
{
	return EITHER(alltoallw, k->in, k->counts, k->displs, k->types, k->out, k->rcounts, k->rdispls,
		k->rtypes, k->c, req);
}

int px_Alltoallw_init(const void *in, const MPI_Count counts[], const MPI_Aint displs[],
	const MPI_Datatype types[], void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[],
	const MPI_Datatype rtypes[], struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	struct kept k = { .go = go_alltoallw, .in = in, .out = out };
	int n = ranks(c);

	if (in != MPI_IN_PLACE) {
		k.counts = copy(&k, counts, n, sizeof *counts);
		k.displs = copy(&k, displs, n, sizeof *displs);
		k.types = copy(&k, types, n, sizeof *types);
	}
	k.rcounts = copy(&k, rcounts, n, sizeof *rcounts);
	k.rdispls = copy(&k, rdispls, n, sizeof *rdispls);
	k.rtypes = copy(&k, rtypes, n, sizeof *rtypes);

	(void)info;
	return keep(c, &k, req);
}

static int go_reduce(struct kept *k, MPI_Request *req)
{
	return EITHER(reduce, k->in, k->out, k->count, k->t, k->op, k->root, k->c, req);
}

int px_Reduce_init(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root,
	struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	(void)info;
	return keep_reduction(go_reduce, in, out, count, t, op, root, c, req);
}

static int go_allreduce(struct kept *k, MPI_Request *req)
{
	return EITHER(allreduce, k->in, k->out, k->count, k->t, k->op, k->c, req);
}

int px_Allreduce_init(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op,
	struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	(void)info;
	return keep_reduction(go_allreduce, in, out, count, t, op, 0, c, req);
}

static int go_reduce_scatter_block(struct kept *k, MPI_Request *req)
{
	return EITHER(reduce_scatter_block, k->in, k->out, k->count, k->t, k->op, k->c, req);
}

int px_Reduce_scatter_block_init(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op,
	struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	(void)info;
	return keep_reduction(go_reduce_scatter_block, in, out, count, t, op, 0, c, req);
}

static int go_reduce_scatter(struct kept *k, MPI_Request *req)
{
	return EITHER(reduce_scatter, k->in, k->out, k->rcounts, k->t, k->op, k->c, req);
}

int px_Reduce_scatter_init(const void *in, void *out, const MPI_Count counts[], MPI_Datatype t, MPI_Op op,
	struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	struct kept k = { .go = go_reduce_scatter, .in = in, .out = out, .t = t, .op = op };
	k.rcounts = copy(&k, counts, ranks_here(c), sizeof *counts);

	(void)info;
	return keep(c, &k, req);
}

static int go_scan(struct kept *k, MPI_Request *req)
{
	return px_Iscan(k->in, k->out, k->count, k->t, k->op, k->c, req);
}

int px_Scan_init(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c,
	MPI_Info info, MPI_Request *req)
{
	(void)info;
	return keep_reduction(go_scan, in, out, count, t, op, 0, c, req);
}

static int go_exscan(struct kept *k, MPI_Request *req)
{
	return px_Iexscan(k->in, k->out, k->count, k->t, k->op, k->c, req);
}

int px_Exscan_init(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c,
	MPI_Info info, MPI_Request *req)
{
	(void)info;
	return keep_reduction(go_exscan, in, out, count, t, op, 0, c, req);
}

static int go_neighbor_allgather(struct kept *k, MPI_Request *req)
{
	return px_Ineighbor_allgather(k->in, k->count, k->t, k->out, k->rcount, k->rt, k->c, req);
}

int px_Neighbor_allgather_init(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	(void)info;
	return keep_blocks(go_neighbor_allgather, in, count, t, out, rcount, rt, 0, c, req);
}

static int go_neighbor_alltoall(struct kept *k, MPI_Request *req)
{
	return px_Ineighbor_alltoall(k->in, k->count, k->t, k->out, k->rcount, k->rt, k->c, req);
}

int px_Neighbor_alltoall_init(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	(void)info;
	return keep_blocks(go_neighbor_alltoall, in, count, t, out, rcount, rt, 0, c, req);
}

static int go_neighbor_allgatherv(struct kept *k, MPI_Request *req)
{
	return px_Ineighbor_allgatherv(
		k->in, k->count, k->t, k->out, k->rcounts, k->rdispls, k->rt, k->c, req);
}

int px_Neighbor_allgatherv_init(const void *in, MPI_Count count, MPI_Datatype t, void *out,
	const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype rt, struct px_comm *c, MPI_Info info,
	MPI_Request *req)
{
	struct kept k = {
		.go = go_neighbor_allgatherv, .in = in, .count = count, .t = t, .out = out, .rt = rt
	};
	int nout, nin = neighbors(c, &nout);

	k.rcounts = copy(&k, counts, nin, sizeof *counts);
	k.rdispls = copy(&k, displs, nin, sizeof *displs);

	(void)info;
	return keep(c, &k, req);
}

static int go_neighbor_alltoallv(struct kept *k, MPI_Request *req)
{
	return px_Ineighbor_alltoallv(
		k->in, k->counts, k->displs, k->t, k->out, k->rcounts, k->rdispls, k->rt, k->c, req);
}

int px_Neighbor_alltoallv_init(const void *in, const MPI_Count counts[], const MPI_Aint displs[],
	MPI_Datatype t, void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[], MPI_Datatype rt,
	struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	struct kept k = { .go = go_neighbor_alltoallv, .in = in, .t = t, .out = out, .rt = rt };
	int nout, nin = neighbors(c, &nout);

	k.counts = copy(&k, counts, nout, sizeof *counts);
	k.displs = copy(&k, displs, nout, sizeof *displs);
	k.rcounts = copy(&k, rcounts, nin, sizeof *rcounts);
	k.rdispls = copy(&k, rdispls, nin, sizeof *rdispls);

	(void)info;
	return keep(c, &k, req);
}

static int go_neighbor_alltoallw(struct kept *k, MPI_Request *req)
{
	return px_Ineighbor_alltoallw(
		k->in, k->counts, k->displs, k->types, k->out, k->rcounts, k->rdispls, k->rtypes, k->c, req);
}

int px_Neighbor_alltoallw_init(const void *in, const MPI_Count counts[], const MPI_Aint displs[],
	const MPI_Datatype types[], void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[],
	const MPI_Datatype rtypes[], struct px_comm *c, MPI_Info info, MPI_Request *req)
{
	struct kept k = { .go = go_neighbor_alltoallw, .in = in, .out = out };
	int nout, nin = neighbors(c, &nout);

	k.counts = copy(&k, counts, nout, sizeof *counts);
	k.displs = copy(&k, displs, nout, sizeof *displs);
	k.types = copy(&k, types, nout, sizeof *types);
	k.rcounts = copy(&k, rcounts, nin, sizeof *rcounts);
	k.rdispls = copy(&k, rdispls, nin, sizeof *rdispls);
	k.rtypes = copy(&k, rtypes, nin, sizeof *rtypes);

	(void)info;
	return keep(c, &k, req);
}
