/* dist_graph.c: distributed graph topologies of communicators that span sites (MPI standard, 7.5.4).
 *
 * Each rank of the new communicator has the neighbours that were given for this rank of the old one, whichever process it is; so with `reorder`
 * all have to know all edges, of the adjacent form, too, whose lists keep the order in which they were given.
 */
#include <stdlib.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "endian.h"
#include "raise.h"
#include "topo.h"
#include "vendor.h"

/* Edges, in the order of the ranks that gave them. */
struct edges {
	struct px_edge *edge;
	int n;
};

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

#define EDGE_BYTES 12 /* source, destination, weight */

static uint8_t *packed(const struct edges *e)
{
	uint8_t *bytes = malloc((size_t)e->n * EDGE_BYTES + 1);

	for (int i = 0; bytes && i < e->n; i++) {
		px_put32(bytes + (size_t)i * EDGE_BYTES, (uint32_t)e->edge[i].from);
		px_put32(bytes + (size_t)i * EDGE_BYTES + 4, (uint32_t)e->edge[i].to);
		px_put32(bytes + (size_t)i * EDGE_BYTES + 8, (uint32_t)e->edge[i].weight);
	}
	return bytes;
}

/* False: out of memory. */
static bool unpack(const uint8_t *bytes, struct edges *e)
{
	e->edge = malloc(((size_t)e->n + 1) * sizeof *e->edge);
	for (int i = 0; e->edge && i < e->n; i++, bytes += EDGE_BYTES)
		e->edge[i] = (struct px_edge){ (int)px_get32(bytes), (int)px_get32(bytes + 4),
			(int)px_get32(bytes + 8) };
	return e->edge != NULL;
}

/* Everybody's edges to everybody. all->edge is allocated, or NULL. MPI error code, raised. */
static int edges_agree(struct px_comm *c, const struct edges *mine, struct edges *all)
{
	struct px_sched *s;
	MPI_Count *bytes = malloc((size_t)c->size * sizeof *bytes);
	uint8_t count[4], *counts = malloc((size_t)c->size * 4), *ours = packed(mine), *theirs = NULL;
	int rc = MPI_ERR_NO_MEM;

	*all = (struct edges){ 0 };
	if (!bytes || !counts || !ours) {
		px_raise_memory(c);
		goto out;
	}
	px_put32(count, (uint32_t)mine->n);
	rc = px_comm_agree(c, count, 4, counts);
	if (rc != MPI_SUCCESS)
		goto out;
	for (int r = 0; r < c->size; r++) {
		bytes[r] = (MPI_Count)px_get32(counts + 4 * r) * EDGE_BYTES;
		all->n += (int)px_get32(counts + 4 * r);
	}
	theirs = malloc((size_t)all->n * EDGE_BYTES + 1);
	s = theirs ? px_sched_new(c, PX_COLL_COMM) : NULL;
	if (s)
		px_coll_allgather(s, ours, bytes, theirs);
	rc = px_sched_run(s, c);
	if (rc == MPI_SUCCESS && !unpack(theirs, all))
		rc = px_raise_memory(c);
out:
	free(bytes);
	free(counts);
	free(ours);
	free(theirs);
	return rc;
}

/* Make the communicator, in which this rank is `node`: its sources are those of the edges in `in` that end there, its destinations those of
 * the edges in `out` that begin there. */
static int make(struct px_comm *c, int node, const struct edges *in, const struct edges *out, bool weights,
	MPI_Comm *comm)
{
	struct px_topo t = { .kind = MPI_DIST_GRAPH };
	size_t nin = (size_t)in->n + 1, nout = (size_t)out->n + 1;
	int *room = malloc(2 * (nin + nout) * sizeof *room), *in_weight, *out_weight, rc;

	if (!room)
		return px_raise_memory(c);
	t.in = room;
	t.out = t.in + nin;
	in_weight = t.out + nout;
	out_weight = in_weight + nin;
	for (int i = 0; i < in->n; i++) {
		if (in->edge[i].to == node) {
			t.in[t.nin] = in->edge[i].from;
			in_weight[t.nin++] = in->edge[i].weight;
		}
	}
	for (int i = 0; i < out->n; i++) {
		if (out->edge[i].from == node) {
			t.out[t.nout] = out->edge[i].to;
			out_weight[t.nout++] = out->edge[i].weight;
		}
	}
	t.in_weight = weights ? in_weight : NULL;
	t.out_weight = weights ? out_weight : NULL;
	rc = px_topo_make(c, node, &t, comm); /* not dup: attributes are not copied */
	free(room);
	return rc;
}

/* The edges that end (to) or begin at this rank, as the adjacent form lists them. NULL in edge: out of memory */
static struct edges listed(const struct px_comm *c, int n, const int other[], const int weights[], bool to)
{
	struct edges e = { malloc(((size_t)n + 1) * sizeof *e.edge), n };

	for (int i = 0; e.edge && i < n; i++)
		e.edge[i] = (struct px_edge){ to ? other[i] : c->rank, to ? c->rank : other[i],
			weighted(weights) ? weights[i] : 1 };
	return e;
}

int px_Dist_graph_create_adjacent(struct px_comm *c, int nin, const int in[], const int inw[], int nout,
	const int out[], const int outw[], MPI_Info info, int reorder, MPI_Comm *comm)
{
	struct edges ours[2], all[2] = { { 0 } }, *known = ours;
	int rc, node = c->rank;

	(void)info;
	if ((rc = check_ranks(c, nin, in, "sources")) != MPI_SUCCESS ||
		(rc = check_ranks(c, nout, out, "destinations")) != MPI_SUCCESS)
		return rc;
	ours[0] = listed(c, nin, in, inw, true);
	ours[1] = listed(c, nout, out, outw, false);
	if (!ours[0].edge || !ours[1].edge)
		rc = px_raise_memory(c);
	if (reorder && rc == MPI_SUCCESS) {
		known = all;
		rc = edges_agree(c, &ours[0], &all[0]);
		if (rc == MPI_SUCCESS)
			rc = edges_agree(c, &ours[1], &all[1]);
		if (rc == MPI_SUCCESS)
			rc = px_topo_node(c, c->size, all[1].edge, (size_t)all[1].n, 0, NULL, &node);
	}
	if (rc == MPI_SUCCESS)
		rc = make(c, node, &known[0], &known[1], weighted(inw) || weighted(outw), comm);
	for (int i = 0; i < 2; i++) {
		free(ours[i].edge);
		free(all[i].edge);
	}
	return rc;
}

int px_Dist_graph_create(struct px_comm *c, int n, const int sources[], const int degrees[],
	const int dests[], const int weights[], MPI_Info info, int reorder, MPI_Comm *comm)
{
	struct edges mine = { 0 }, all;
	int rc, node = c->rank;

	(void)info;
	if ((rc = check_ranks(c, n, sources, "sources")) != MPI_SUCCESS)
		return rc;
	for (int i = 0; i < n; i++)
		mine.n += degrees[i];
	if ((rc = check_ranks(c, mine.n, dests, "destinations")) != MPI_SUCCESS)
		return rc;
	mine.edge = malloc(((size_t)mine.n + 1) * sizeof *mine.edge);
	if (!mine.edge)
		return px_raise_memory(c);
	for (int i = 0, k = 0; i < n; i++)
		for (int j = 0; j < degrees[i]; j++, k++)
			mine.edge[k] =
				(struct px_edge){ sources[i], dests[k], weighted(weights) ? weights[k] : 1 };
	rc = edges_agree(c, &mine, &all);
	if (reorder && rc == MPI_SUCCESS)
		rc = px_topo_node(c, c->size, all.edge, (size_t)all.n, 0, NULL, &node);
	if (rc == MPI_SUCCESS)
		rc = make(c, node, &all, &all, weighted(weights), comm);
	free(mine.edge);
	free(all.edge);
	return rc;
}

static bool is_dist_graph(const struct px_comm *c)
{
	return c->topo && c->topo->kind == MPI_DIST_GRAPH;
}

int px_Dist_graph_neighbors_count(struct px_comm *c, int *nin, int *nout, int *is_weighted)
{
	if (!is_dist_graph(c))
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

	if (!is_dist_graph(c))
		return px_raise(c, MPI_ERR_TOPOLOGY, "the communicator has no distributed graph topology");
	copy_some(in, t->in, t->nin, maxin);
	copy_some(out, t->out, t->nout, maxout);
	if (weighted(inw))
		copy_some(inw, t->in_weight, t->nin, maxin);
	if (weighted(outw))
		copy_some(outw, t->out_weight, t->nout, maxout);
	return MPI_SUCCESS;
}
