/* topo.c: Cartesian, graph and distributed graph topologies on communicators that span sites
 * (MPI standard, chapter 7). Ranks are never reordered.
 */
#include "topo.h"

#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "endian.h"
#include "lock.h"
#include "raise.h"
#include "vendor.h"

/* A copy of n ints; NULL stays NULL. Clears *ok when out of memory. */
static int *ints(const int *from, int n, bool *ok)
{
	int *to = from ? malloc((size_t)(n + 1) * sizeof *to) : NULL;

	if (to)
		memcpy(to, from, (size_t)n * sizeof *to);
	else if (from)
		*ok = false;
	return to;
}

/* Move *list, of n ints, to *room, which rises; NULL stays NULL. */
static void settle(int **list, int n, int **room)
{
	if (!*list)
		return;
	*list = memcpy(*room, *list, (size_t)n * sizeof **list);
	*room += n;
}

struct px_topo *px_topo_copy(const struct px_topo *f)
{
	int n = 2 * f->ndims + f->nnodes + f->nedges + 2 * f->nin + 2 * f->nout, *room;
	struct px_topo *t = malloc(sizeof *t + (size_t)n * sizeof *room);

	if (!t)
		return NULL;
	*t = *f;
	room = (int *)(t + 1);
	settle(&t->dims, t->ndims, &room);
	settle(&t->periods, t->ndims, &room);
	settle(&t->index, t->nnodes, &room);
	settle(&t->edges, t->nedges, &room);
	settle(&t->in, t->nin, &room);
	settle(&t->out, t->nout, &room);
	settle(&t->in_weight, t->nin, &room);
	settle(&t->out_weight, t->nout, &room);
	return t;
}

/* Give communicator *comm (just made, spanning or native) the topology described by t. */
static int attach(struct px_comm *parent, MPI_Comm *comm, const struct px_topo *t)
{
	struct px_comm *d = px_comm_find(*comm);
	MPI_Comm plain = *comm;
	int rc = MPI_SUCCESS;

	if (plain == MPI_COMM_NULL)
		return MPI_SUCCESS;
	if (d) {
		d->topo = px_topo_copy(t);
		return d->topo ? MPI_SUCCESS : px_raise_memory(parent);
	}
	if (t->kind == MPI_CART)
		px_blocking(rc, px_n.Cart_create(plain, t->ndims, t->dims, t->periods, 0, comm));
	else
		px_blocking(rc, px_n.Graph_create(plain, t->nnodes, t->index, t->edges, 0, comm));
	px_n.Comm_free(&plain);
	return rc;
}

/* The first n ranks of c. */
static int first_ranks(struct px_comm *c, int n, MPI_Comm *out)
{
	return px_Comm_split(c, c->rank < n ? 0 : MPI_UNDEFINED, c->rank, out);
}

static int product(int n, const int dims[], long limit)
{
	long p = 1;

	for (int i = 0; i < n; i++) {
		if (dims[i] <= 0 || p * dims[i] > limit)
			return -1;
		p *= dims[i];
	}
	return (int)p;
}

/* What is wrong with the sizes of a grid: one of them, or their product. */
static int raise_dims(struct px_comm *c, int ndims, const int dims[])
{
	for (int i = 0; i < ndims; i++)
		if (dims[i] <= 0)
			return px_raise(c, MPI_ERR_DIMS, "dims[%d] is %d", i, dims[i]);
	if (ndims < 0)
		return px_raise(c, MPI_ERR_DIMS, "%d dimensions", ndims);
	return px_raise(
		c, MPI_ERR_DIMS, "the grid has more places than the communicator has ranks, %d", c->size);
}

int px_Cart_create(
	struct px_comm *c, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *out)
{
	struct px_topo t = { .kind = MPI_CART, .ndims = ndims };
	int n = ndims < 0 ? -1 : product(ndims, dims, c->size), rc;
	const int none = 0;

	(void)reorder;
	if (n < 0)
		return raise_dims(c, ndims, dims);
	rc = first_ranks(c, n, out);
	t.dims = (int *)(uintptr_t)(ndims ? dims : &none);
	t.periods = (int *)(uintptr_t)(ndims ? periods : &none);
	return rc == MPI_SUCCESS ? attach(c, out, &t) : rc;
}

static bool is(const struct px_comm *c, int kind)
{
	return c->topo && c->topo->kind == kind;
}

int px_Topo_test(struct px_comm *c, int *kind)
{
	*kind = c->topo ? c->topo->kind : MPI_UNDEFINED;
	return MPI_SUCCESS;
}

int px_Cartdim_get(struct px_comm *c, int *ndims)
{
	if (!is(c, MPI_CART))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no Cartesian topology");
	*ndims = c->topo->ndims;
	return MPI_SUCCESS;
}

static void coords_of(const struct px_topo *t, int rank, int coords[])
{
	for (int i = t->ndims - 1; i >= 0; i--) {
		coords[i] = rank % t->dims[i];
		rank /= t->dims[i];
	}
}

/* Rank at coords, which are wrapped in periodic dimensions; MPI_PROC_NULL when outside of the grid. */
static int rank_at(const struct px_topo *t, const int coords[])
{
	int rank = 0;

	for (int i = 0; i < t->ndims; i++) {
		int x = coords[i], n = t->dims[i];

		if (t->periods[i])
			x = ((x % n) + n) % n;
		else if (x < 0 || x >= n)
			return MPI_PROC_NULL;
		rank = rank * n + x;
	}
	return rank;
}

int px_Cart_get(struct px_comm *c, int maxdims, int dims[], int periods[], int coords[])
{
	struct px_topo *t = c->topo;
	int *mine;

	if (!is(c, MPI_CART))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no Cartesian topology");
	if (maxdims < t->ndims)
		return px_raise(
			c, MPI_ERR_DIMS, "room for %d dimensions, the grid has %d", maxdims, t->ndims);
	mine = malloc((size_t)(t->ndims + 1) * sizeof *mine);
	if (!mine)
		return px_raise_memory(c);
	coords_of(t, c->rank, mine);
	for (int i = 0; i < t->ndims; i++) {
		dims[i] = t->dims[i];
		periods[i] = t->periods[i] ? 1 : 0;
		coords[i] = mine[i];
	}
	free(mine);
	return MPI_SUCCESS;
}

int px_Cart_rank(struct px_comm *c, const int coords[], int *rank)
{
	int r;

	if (!is(c, MPI_CART))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no Cartesian topology");
	r = rank_at(c->topo, coords);
	if (r == MPI_PROC_NULL)
		return px_raise(c, MPI_ERR_ARG, "the coordinates are outside of the grid");
	*rank = r;
	return MPI_SUCCESS;
}

int px_Cart_coords(struct px_comm *c, int rank, int maxdims, int coords[])
{
	if (!is(c, MPI_CART))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no Cartesian topology");
	if (rank < 0 || rank >= c->size)
		return px_raise(c, MPI_ERR_RANK, "rank %d, the communicator has %d", rank, c->size);
	if (maxdims < c->topo->ndims)
		return px_raise(
			c, MPI_ERR_DIMS, "room for %d dimensions, the grid has %d", maxdims, c->topo->ndims);
	coords_of(c->topo, rank, coords);
	return MPI_SUCCESS;
}

/* Ranks `disp` steps before and behind this one in dimension dir. */
static int shift(struct px_comm *c, int dir, int disp, int *source, int *dest)
{
	struct px_topo *t = c->topo;
	int *x = malloc((size_t)(t->ndims + 1) * sizeof *x), mine;

	if (!x)
		return MPI_ERR_NO_MEM;
	coords_of(t, c->rank, x);
	mine = x[dir];
	x[dir] = mine - disp;
	*source = rank_at(t, x);
	x[dir] = mine + disp;
	*dest = rank_at(t, x);
	free(x);
	return MPI_SUCCESS;
}

int px_Cart_shift(struct px_comm *c, int dir, int disp, int *source, int *dest)
{
	int rc;

	if (!is(c, MPI_CART))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no Cartesian topology");
	if (dir < 0 || dir >= c->topo->ndims)
		return px_raise(
			c, MPI_ERR_DIMS, "direction %d, the grid has %d dimensions", dir, c->topo->ndims);
	rc = shift(c, dir, disp, source, dest);
	return rc == MPI_SUCCESS ? rc : px_raise_as(c, rc, NULL);
}

int px_Cart_sub(struct px_comm *c, const int remain[], MPI_Comm *out)
{
	struct px_topo *t = c->topo, sub = { .kind = MPI_CART };
	int *x, color = 0, key = 0, rc;

	if (!is(c, MPI_CART))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no Cartesian topology");
	x = malloc(3 * (size_t)(t->ndims + 1) * sizeof *x);
	if (!x)
		return px_raise_memory(c);
	sub.dims = x + t->ndims + 1;
	sub.periods = sub.dims + t->ndims + 1;
	coords_of(t, c->rank, x);
	for (int i = 0; i < t->ndims; i++) {
		if (remain[i]) {
			key = key * t->dims[i] + x[i];
			sub.dims[sub.ndims] = t->dims[i];
			sub.periods[sub.ndims++] = t->periods[i];
		} else {
			color = color * t->dims[i] + x[i];
		}
	}
	rc = px_Comm_split(c, color, key, out);
	if (rc == MPI_SUCCESS)
		rc = attach(c, out, &sub);
	free(x);
	return rc;
}

int px_Cart_map(struct px_comm *c, int ndims, const int dims[], const int periods[], int *rank)
{
	int n = ndims < 0 ? -1 : product(ndims, dims, c->size);

	(void)periods;
	if (n < 0)
		return raise_dims(c, ndims, dims);
	*rank = c->rank < n ? c->rank : MPI_UNDEFINED;
	return MPI_SUCCESS;
}

int px_Graph_create(
	struct px_comm *c, int nnodes, const int index[], const int edges[], int reorder, MPI_Comm *out)
{
	struct px_topo t = { .kind = MPI_GRAPH, .nnodes = nnodes };
	int rc;

	(void)reorder;
	if (nnodes < 0 || nnodes > c->size)
		return px_raise(c, MPI_ERR_ARG, "%d nodes, the communicator has %d ranks", nnodes, c->size);
	for (int i = 0; i < nnodes; i++)
		if (index[i] < (i ? index[i - 1] : 0))
			return px_raise(c, MPI_ERR_ARG, "index[%d] is %d", i, index[i]);
	t.nedges = nnodes ? index[nnodes - 1] : 0;
	for (int i = 0; i < t.nedges; i++)
		if (edges[i] < 0 || edges[i] >= nnodes)
			return px_raise(c, MPI_ERR_ARG, "edges[%d] is %d, the graph has %d nodes", i,
				edges[i], nnodes);
	t.index = (int *)(uintptr_t)index;
	t.edges = (int *)(uintptr_t)edges;
	rc = first_ranks(c, nnodes, out);
	return rc == MPI_SUCCESS ? attach(c, out, &t) : rc;
}

int px_Graphdims_get(struct px_comm *c, int *nnodes, int *nedges)
{
	if (!is(c, MPI_GRAPH))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no graph topology");
	*nnodes = c->topo->nnodes;
	*nedges = c->topo->nedges;
	return MPI_SUCCESS;
}

int px_Graph_get(struct px_comm *c, int maxindex, int maxedges, int index[], int edges[])
{
	if (!is(c, MPI_GRAPH))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no graph topology");
	for (int i = 0; i < maxindex && i < c->topo->nnodes; i++)
		index[i] = c->topo->index[i];
	for (int i = 0; i < maxedges && i < c->topo->nedges; i++)
		edges[i] = c->topo->edges[i];
	return MPI_SUCCESS;
}

static int graph_start(const struct px_topo *t, int rank)
{
	return rank ? t->index[rank - 1] : 0;
}

int px_Graph_neighbors_count(struct px_comm *c, int rank, int *n)
{
	if (!is(c, MPI_GRAPH))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no graph topology");
	if (rank < 0 || rank >= c->size)
		return px_raise(c, MPI_ERR_RANK, "rank %d, the communicator has %d", rank, c->size);
	*n = c->topo->index[rank] - graph_start(c->topo, rank);
	return MPI_SUCCESS;
}

int px_Graph_neighbors(struct px_comm *c, int rank, int max, int neighbors[])
{
	int n, rc = px_Graph_neighbors_count(c, rank, &n);

	for (int i = 0; rc == MPI_SUCCESS && i < n && i < max; i++)
		neighbors[i] = c->topo->edges[graph_start(c->topo, rank) + i];
	return rc;
}

int px_Graph_map(struct px_comm *c, int nnodes, const int index[], const int edges[], int *rank)
{
	(void)index;
	(void)edges;
	*rank = c->rank < nnodes ? c->rank : MPI_UNDEFINED;
	return MPI_SUCCESS;
}

static int check_ranks(struct px_comm *c, int n, const int ranks[], const char *name)
{
	for (int i = 0; i < n; i++)
		if (ranks[i] < 0 || ranks[i] >= c->size)
			return px_raise(c, MPI_ERR_ARG, "%s[%d] is %d, the communicator has %d", name, i,
				ranks[i], c->size);
	return n >= 0 ? MPI_SUCCESS : px_raise(c, MPI_ERR_ARG, "%d %s", n, name);
}

static bool weighted(const int w[])
{
	return w != px_unweighted();
}

int px_Dist_graph_create_adjacent(struct px_comm *c, int nin, const int in[], const int inw[], int nout,
	const int out[], const int outw[], MPI_Info info, int reorder, MPI_Comm *comm)
{
	struct px_topo t = { .kind = MPI_DIST_GRAPH, .nin = nin, .nout = nout };
	const int none = 0;
	int rc;

	(void)info;
	(void)reorder;
	if ((rc = check_ranks(c, nin, in, "sources")) != MPI_SUCCESS ||
		(rc = check_ranks(c, nout, out, "destinations")) != MPI_SUCCESS)
		return rc;
	t.in = (int *)(uintptr_t)(nin ? in : &none);
	t.out = (int *)(uintptr_t)(nout ? out : &none);
	t.in_weight = weighted(inw) ? (int *)(uintptr_t)(nin ? inw : &none) : NULL;
	t.out_weight = weighted(outw) ? (int *)(uintptr_t)(nout ? outw : &none) : NULL;
	rc = px_Comm_split(c, 0, c->rank, comm); /* not dup: attributes are not copied */
	return rc == MPI_SUCCESS ? attach(c, comm, &t) : rc;
}

#define EDGE_BYTES 12 /* source, destination, weight */

/* Everybody's edges to everybody: *all = edges in rank order, *n their number. */
static int edges_agree(struct px_comm *c, const uint8_t *mine, int nmine, uint8_t **all, int *n)
{
	struct px_sched *s;
	MPI_Count *bytes = malloc((size_t)c->size * sizeof *bytes);
	uint8_t count[4], *counts = malloc((size_t)c->size * 4);
	int rc = MPI_ERR_NO_MEM;

	*all = NULL;
	*n = 0;
	if (!bytes || !counts) {
		px_raise_memory(c);
		goto out;
	}
	px_put32(count, (uint32_t)nmine);
	rc = px_comm_agree(c, count, 4, counts);
	if (rc != MPI_SUCCESS)
		goto out;
	for (int r = 0; r < c->size; r++) {
		bytes[r] = (MPI_Count)px_get32(counts + 4 * r) * EDGE_BYTES;
		*n += (int)px_get32(counts + 4 * r);
	}
	*all = malloc((size_t)*n * EDGE_BYTES + 1);
	s = *all ? px_sched_new(c, PX_COLL_COMM) : NULL;
	if (s)
		px_coll_allgather(s, mine, bytes, *all);
	rc = px_sched_run(s, c);
out:
	free(bytes);
	free(counts);
	return rc;
}

int px_Dist_graph_create(struct px_comm *c, int n, const int sources[], const int degrees[],
	const int dests[], const int weights[], MPI_Info info, int reorder, MPI_Comm *comm)
{
	struct px_topo t = { .kind = MPI_DIST_GRAPH };
	int nmine = 0, nall, rc;
	uint8_t *mine, *all = NULL, *p;
	bool ok;

	(void)info;
	(void)reorder;
	if ((rc = check_ranks(c, n, sources, "sources")) != MPI_SUCCESS)
		return rc;
	for (int i = 0; i < n; i++)
		nmine += degrees[i];
	if ((rc = check_ranks(c, nmine, dests, "destinations")) != MPI_SUCCESS)
		return rc;
	mine = p = malloc((size_t)nmine * EDGE_BYTES + 1);
	if (!mine)
		return px_raise_memory(c);
	for (int i = 0, k = 0; i < n; i++) {
		for (int j = 0; j < degrees[i]; j++, k++, p += EDGE_BYTES) {
			px_put32(p, (uint32_t)sources[i]);
			px_put32(p + 4, (uint32_t)dests[k]);
			px_put32(p + 8, weighted(weights) ? (uint32_t)weights[k] : 0);
		}
	}
	rc = edges_agree(c, mine, nmine, &all, &nall);
	free(mine);
	if (rc != MPI_SUCCESS) {
		free(all);
		return rc;
	}
	t.in = malloc((size_t)(nall + 1) * sizeof(int));
	t.out = malloc((size_t)(nall + 1) * sizeof(int));
	t.in_weight = malloc((size_t)(nall + 1) * sizeof(int));
	t.out_weight = malloc((size_t)(nall + 1) * sizeof(int));
	ok = t.in && t.out && t.in_weight && t.out_weight;
	for (int i = 0; ok && i < nall; i++) {
		int from = (int)px_get32(all + i * EDGE_BYTES), to = (int)px_get32(all + i * EDGE_BYTES + 4);
		int w = (int)px_get32(all + i * EDGE_BYTES + 8);

		if (to == c->rank) {
			t.in[t.nin] = from;
			t.in_weight[t.nin++] = w;
		}
		if (from == c->rank) {
			t.out[t.nout] = to;
			t.out_weight[t.nout++] = w;
		}
	}
	free(all);
	if (!weighted(weights)) {
		free(t.in_weight);
		free(t.out_weight);
		t.in_weight = t.out_weight = NULL;
	}
	rc = ok ? px_Comm_split(c, 0, c->rank, comm) : px_raise_memory(c);
	if (rc == MPI_SUCCESS)
		rc = attach(c, comm, &t);
	free(t.in);
	free(t.out);
	free(t.in_weight);
	free(t.out_weight);
	return rc;
}

int px_Dist_graph_neighbors_count(struct px_comm *c, int *nin, int *nout, int *is_weighted)
{
	if (!is(c, MPI_DIST_GRAPH))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no distributed graph topology");
	*nin = c->topo->nin;
	*nout = c->topo->nout;
	*is_weighted = c->topo->in_weight != NULL || c->topo->out_weight != NULL;
	return MPI_SUCCESS;
}

static void copy_some(int *to, const int *from, int n, int max)
{
	for (int i = 0; from && i < n && i < max; i++)
		to[i] = from[i];
}

int px_Dist_graph_neighbors(
	struct px_comm *c, int maxin, int in[], int inw[], int maxout, int out[], int outw[])
{
	struct px_topo *t = c->topo;

	if (!is(c, MPI_DIST_GRAPH))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no distributed graph topology");
	copy_some(in, t->in, t->nin, maxin);
	copy_some(out, t->out, t->nout, maxout);
	if (weighted(inw))
		copy_some(inw, t->in_weight, t->nin, maxin);
	if (weighted(outw))
		copy_some(outw, t->out_weight, t->nout, maxout);
	return MPI_SUCCESS;
}

int px_topo_neighbors(struct px_comm *c, int *nin, int **in, int *nout, int **out)
{
	struct px_topo *t = c->topo;
	bool ok = true;
	int rc = MPI_SUCCESS;

	if (!t)
		return MPI_ERR_TOPOLOGY;
	if (t->kind == MPI_DIST_GRAPH) {
		*nin = t->nin;
		*nout = t->nout;
		*in = ints(t->in, t->nin, &ok);
		*out = ints(t->out, t->nout, &ok);
	} else if (t->kind == MPI_GRAPH) {
		*nin = *nout = t->index[c->rank] - graph_start(t, c->rank);
		*in = ints(t->edges + graph_start(t, c->rank), *nin, &ok);
		*out = ints(t->edges + graph_start(t, c->rank), *nin, &ok);
	} else {
		*nin = *nout = 2 * t->ndims;
		*in = malloc((size_t)(*nin + 1) * sizeof(int));
		*out = malloc((size_t)(*nin + 1) * sizeof(int));
		ok = *in && *out;
		for (int d = 0; ok && rc == MPI_SUCCESS && d < t->ndims; d++) {
			rc = shift(c, d, 1, &(*in)[2 * d], &(*in)[2 * d + 1]);
			(*out)[2 * d] = (*in)[2 * d];
			(*out)[2 * d + 1] = (*in)[2 * d + 1];
		}
	}
	if (!ok)
		rc = MPI_ERR_NO_MEM;
	if (rc != MPI_SUCCESS) {
		free(*in);
		free(*out);
	}
	return rc;
}
