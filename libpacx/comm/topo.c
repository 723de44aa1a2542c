/* topo.c: Cartesian, graph and distributed graph topologies on communicators that span sites
 * (MPI standard, chapter 7): what they are asked, and how the first two are made. dist_graph.c makes the third.
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

int px_topo_node(struct px_comm *c, int n, const struct px_edge *edge, size_t nedges, int ndims,
	const int *dims, int *node)
{
	struct px_places p = { .size = c->size, .nparts = c->nparts, .n = n, .edge = edge, .nedges = nedges };
	int *part = malloc((size_t)c->size * sizeof *part),
	    *rank_of = malloc(((size_t)n + 1) * sizeof *rank_of);
	bool ok = part && rank_of;

	p.part = part;
	p.ndims = ndims;
	p.dims = dims;
	for (int r = 0; ok && r < c->size; r++)
		part[r] = px_part_of(c, r);
	ok = ok && px_place(&p, rank_of);
	*node = -1;
	for (int i = 0; ok && i < n; i++)
		if (rank_of[i] == c->rank)
			*node = i;
	free(part);
	free(rank_of);
	return ok ? MPI_SUCCESS : px_raise_memory(c);
}

int px_topo_make(struct px_comm *c, int node, const struct px_topo *t, MPI_Comm *out)
{
	int rc = px_Comm_split(c, node >= 0 ? 0 : MPI_UNDEFINED, node, out);

	return rc == MPI_SUCCESS ? attach(c, out, t) : rc;
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

/* The node that this rank takes without reordering: its own number. */
static int own_node(const struct px_comm *c, int n)
{
	return c->rank < n ? c->rank : -1;
}

/* The node of the grid, of n places, that this rank should take. */
static int grid_node(struct px_comm *c, int ndims, const int dims[], const int periods[], int n, int *node)
{
	struct px_edge *edge = malloc(((size_t)n * (size_t)ndims + 1) * sizeof *edge);
	size_t nedges = 0;
	int inner = n, rc;

	if (!edge)
		return px_raise_memory(c);
	for (int d = 0; d < ndims; d++) {
		inner /= dims[d];
		for (int v = 0; v < n && dims[d] > 1; v++) {
			bool last = v / inner % dims[d] == dims[d] - 1;

			if (!last || periods[d])
				edge[nedges++] = (struct px_edge){ v,
					last ? v - (dims[d] - 1) * inner : v + inner, 1 };
		}
	}
	rc = px_topo_node(c, n, edge, nedges, ndims, dims, node);
	free(edge);
	return rc;
}

int px_Cart_create(
	struct px_comm *c, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *out)
{
	struct px_topo t = { .kind = MPI_CART, .ndims = ndims };
	int n = ndims < 0 ? -1 : product(ndims, dims, c->size), node = own_node(c, n), rc = MPI_SUCCESS;
	const int none = 0;

	if (n < 0)
		return raise_dims(c, ndims, dims);
	t.dims = (int *)(uintptr_t)(ndims ? dims : &none);
	t.periods = (int *)(uintptr_t)(ndims ? periods : &none);
	if (reorder)
		rc = grid_node(c, ndims, dims, periods, n, &node);
	return rc == MPI_SUCCESS ? px_topo_make(c, node, &t, out) : rc;
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
	int n = ndims < 0 ? -1 : product(ndims, dims, c->size), node = 0, rc;

	if (n < 0)
		return raise_dims(c, ndims, dims);
	rc = grid_node(c, ndims, dims, periods, n, &node);
	if (rc == MPI_SUCCESS)
		*rank = node >= 0 ? node : MPI_UNDEFINED;
	return rc;
}

/* The node of the graph that this rank should take. */
static int graph_node(struct px_comm *c, int nnodes, const int index[], const int edges[], int *node)
{
	size_t nedges = nnodes ? (size_t)index[nnodes - 1] : 0;
	struct px_edge *edge = malloc((nedges + 1) * sizeof *edge);
	int rc, v = 0;

	if (!edge)
		return px_raise_memory(c);
	for (int i = 0; i < (int)nedges; i++) {
		while (i >= index[v])
			v++;
		edge[i] = (struct px_edge){ v, edges[i], 1 };
	}
	rc = px_topo_node(c, nnodes, edge, nedges, 0, NULL, node);
	free(edge);
	return rc;
}

static int graph_check(struct px_comm *c, int nnodes, const int index[], const int edges[])
{
	if (nnodes < 0 || nnodes > c->size)
		return px_raise(c, MPI_ERR_ARG, "%d nodes, the communicator has %d ranks", nnodes, c->size);
	for (int i = 0; i < nnodes; i++)
		if (index[i] < (i ? index[i - 1] : 0))
			return px_raise(c, MPI_ERR_ARG, "index[%d] is %d", i, index[i]);
	for (int i = 0; nnodes && i < index[nnodes - 1]; i++)
		if (edges[i] < 0 || edges[i] >= nnodes)
			return px_raise(c, MPI_ERR_ARG, "edges[%d] is %d, the graph has %d nodes", i,
				edges[i], nnodes);
	return MPI_SUCCESS;
}

int px_Graph_create(
	struct px_comm *c, int nnodes, const int index[], const int edges[], int reorder, MPI_Comm *out)
{
	struct px_topo t = { .kind = MPI_GRAPH, .nnodes = nnodes };
	int node = own_node(c, nnodes), rc = graph_check(c, nnodes, index, edges);

	if (rc != MPI_SUCCESS)
		return rc;
	t.nedges = nnodes ? index[nnodes - 1] : 0;
	t.index = (int *)(uintptr_t)index;
	t.edges = (int *)(uintptr_t)edges;
	if (reorder)
		rc = graph_node(c, nnodes, index, edges, &node);
	return rc == MPI_SUCCESS ? px_topo_make(c, node, &t, out) : rc;
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
	int node = 0, rc = graph_check(c, nnodes, index, edges);

	if (rc == MPI_SUCCESS)
		rc = graph_node(c, nnodes, index, edges, &node);
	if (rc == MPI_SUCCESS)
		*rank = node >= 0 ? node : MPI_UNDEFINED;
	return rc;
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
