/*
 * reorder - topologies made with `reorder` on communicators whose ranks alternate between sites, and on the world: no more weight crosses
 * sites than in the order of the old communicator, and a ring crosses as seldom as can be; neighbours, weights and messages are those of
 * the rank that a process has in the new communicator.  Without PACX there is one site and nothing crosses.
 */
#include "../../include/pacx.h"

#include "check.h"

static int sites, in_pairs; /* of the world; are there two ranks at each one? */

/* The site of a rank of comm. */
static int site_of(MPI_Comm comm, int rank)
{
	MPI_Group all, mine;
	int world;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Comm_group(comm, &mine);
	MPI_Group_translate_ranks(mine, 1, &rank, all, &world);
	MPI_Group_free(&all);
	MPI_Group_free(&mine);
	return pacx_site_of(world);
}

/* Over all ranks of comm: the weight that runs from here to these ranks of comm at other sites. */
static long long crossing(MPI_Comm comm, int n, const int to[], const int weight[])
{
	long long mine = 0, sum;
	int rank;

	MPI_Comm_rank(comm, &rank);
	for (int i = 0; i < n; i++)
		if (to[i] != MPI_PROC_NULL && site_of(comm, to[i]) != site_of(comm, rank))
			mine += weight ? weight[i] : 1;
	MPI_Allreduce(&mine, &sum, 1, MPI_LONG_LONG, MPI_SUM, comm);
	return sum;
}

static void exchange(MPI_Comm comm, int nin, const int in[], int nout, const int out[])
{
	int *from = chk_alloc((size_t)(nin + 1) * sizeof *from),
	    *to = chk_alloc((size_t)(nout + 1) * sizeof *to), rank;

	MPI_Comm_rank(comm, &rank);
	for (int i = 0; i < nout; i++)
		to[i] = 1000 * rank + out[i];
	MPI_Neighbor_alltoall(to, 1, MPI_INT, from, 1, MPI_INT, comm);
	for (int i = 0; i < nin; i++)
		if (in[i] != MPI_PROC_NULL)
			CHECK_EQ(from[i], 1000 * in[i] + rank);
	free(from);
	free(to);
}

static void ring_of_cart(MPI_Comm comm, int periodic)
{
	int n, rank, mapped, near[2], size;
	long long before, after;
	MPI_Comm cart;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &rank);
	near[0] = rank > 0 ? rank - 1 : periodic ? n - 1 : MPI_PROC_NULL;
	near[1] = rank < n - 1 ? rank + 1 : periodic ? 0 : MPI_PROC_NULL;
	before = crossing(comm, 2, near, NULL);
	MPI_Cart_map(comm, 1, &n, &periodic, &mapped);
	MPI_Cart_create(comm, 1, &n, &periodic, 1, &cart);
	MPI_Comm_rank(cart, &rank);
	MPI_Comm_size(cart, &size);
	CHECK_EQ(size, n);
	CHECK_EQ(rank, mapped);
	MPI_Cart_shift(cart, 0, 1, &near[0], &near[1]);
	CHECK_EQ(near[0], rank > 0 ? rank - 1 : periodic ? n - 1 : MPI_PROC_NULL);
	after = crossing(cart, 2, near, NULL);
	CHECK(after <= before);
	CHECK_EQ(after, sites == 1 ? 0 : periodic ? 2 * sites : 2 * (sites - 1));
	exchange(cart, 2, near, 2, near);
	MPI_Comm_free(&cart);
}

/* A grid of two rows, from all ranks but the last one if their number is odd. */
static void grid(MPI_Comm comm)
{
	int n, rank, dims[2], periods[2] = { 0, 0 }, near[4], out[4], k = 0, used, member;
	long long before = 0, after = 0, mine[2] = { 0, 0 };
	MPI_Comm cart, plain;

	MPI_Comm_size(comm, &n);
	dims[0] = 2;
	dims[1] = n / 2;
	MPI_Cart_create(comm, 2, dims, periods, 0, &plain);
	MPI_Cart_create(comm, 2, dims, periods, 1, &cart);
	member = cart != MPI_COMM_NULL;
	MPI_Allreduce(&member, &used, 1, MPI_INT, MPI_SUM, comm);
	CHECK_EQ(used, n / 2 * 2);
	for (int c = 0; c < 2; c++) {
		MPI_Comm which = c ? cart : plain;

		if (which == MPI_COMM_NULL)
			continue;
		MPI_Comm_rank(which, &rank);
		for (int d = 0; d < 2; d++)
			MPI_Cart_shift(which, d, 1, &near[2 * d], &near[2 * d + 1]);
		CHECK_EQ(near[1], rank < n / 2 ? rank + n / 2 : MPI_PROC_NULL);
		exchange(which, 4, near, 4, near);
		for (int i = k = 0; i < 4; i++)
			if (near[i] != MPI_PROC_NULL)
				out[k++] = near[i];
		mine[c] = crossing(which, k, out, NULL);
		MPI_Comm_free(&which);
	}
	MPI_Allreduce(&mine[0], &before, 1, MPI_LONG_LONG, MPI_MAX, comm);
	MPI_Allreduce(&mine[1], &after, 1, MPI_LONG_LONG, MPI_MAX, comm);
	CHECK(after <= before);
}

static void ring_of_graph(MPI_Comm comm)
{
	int n, rank, mapped, near[2], count;
	int *index, *edges;
	long long after;
	MPI_Comm graph;

	MPI_Comm_size(comm, &n);
	index = chk_alloc((size_t)n * sizeof *index);
	edges = chk_alloc(2 * (size_t)n * sizeof *edges);
	for (int i = 0; i < n; i++) {
		index[i] = 2 * (i + 1);
		edges[2 * i] = (i + n - 1) % n;
		edges[2 * i + 1] = (i + 1) % n;
	}
	MPI_Graph_map(comm, n, index, edges, &mapped);
	MPI_Graph_create(comm, n, index, edges, 1, &graph);
	MPI_Comm_rank(graph, &rank);
	CHECK_EQ(rank, mapped);
	MPI_Graph_neighbors_count(graph, rank, &count);
	CHECK_EQ(count, 2);
	MPI_Graph_neighbors(graph, rank, 2, near);
	CHECK(near[0] == (rank + n - 1) % n && near[1] == (rank + 1) % n);
	after = crossing(graph, 2, near, NULL);
	CHECK_EQ(after, sites == 1 ? 0 : 2 * sites);
	exchange(graph, 2, near, 2, near);
	MPI_Comm_free(&graph);
	free(index);
	free(edges);
}

/* Node i sends 100 + i to its partner, in pairs of (i, i + half), and 1 to its next one. */
static int edges_of(int i, int n, int to[2], int weight[2])
{
	int half = n / 2, k = 0;

	if (i < 2 * half) {
		to[k] = i < half ? i + half : i - half;
		weight[k++] = 100 + i;
	}
	to[k] = (i + 1) % n;
	weight[k++] = 1;
	return k;
}

static void dist_graph(MPI_Comm comm, int adjacent)
{
	int n, rank, to[2], weight[2], in[3], inw[3], k, nin = 0, is_weighted, got[3], gotw[3], out[2],
							 outw[2];
	long long before, after;
	MPI_Comm graph;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &rank);
	k = edges_of(rank, n, to, weight);
	before = crossing(comm, k, to, weight);
	for (int v = 0; v < n && adjacent; v++) {
		int t[2], w[2], m = edges_of(v, n, t, w);

		for (int i = 0; i < m; i++) {
			if (t[i] == rank) {
				in[nin] = v;
				inw[nin++] = w[i];
			}
		}
	}
	if (adjacent)
		MPI_Dist_graph_create_adjacent(comm, nin, in, inw, k, to, weight, MPI_INFO_NULL, 1, &graph);
	else
		MPI_Dist_graph_create(comm, 1, &rank, &k, to, weight, MPI_INFO_NULL, 1, &graph);
	MPI_Comm_rank(graph, &rank);
	k = edges_of(rank, n, to, weight);
	MPI_Dist_graph_neighbors_count(graph, &nin, &(int){ 0 }, &is_weighted);
	CHECK(is_weighted && nin <= 3);
	MPI_Dist_graph_neighbors(graph, nin, got, gotw, k, out, outw);
	for (int i = 0; i < k; i++)
		CHECK(out[i] == to[i] && outw[i] == weight[i]);
	for (int i = 0; i < nin; i++)
		CHECK(gotw[i] == 1 ? got[i] == (rank + n - 1) % n : gotw[i] == 100 + got[i]);
	after = crossing(graph, k, out, outw);
	CHECK(after <= before);
	if (in_pairs && before > 2 * sites)
		CHECK(after <= 2 * sites);
	exchange(graph, nin, got, k, out);
	MPI_Comm_free(&graph);
}

int main(int argc, char **argv)
{
	MPI_Comm mixed;
	int site, nth = 0;

	chk_begin(&argc, &argv, "reorder", 4);
	sites = pacx_sites();
	site = pacx_site_of(chk_rank);
	while (nth < chk_rank && pacx_site_of(chk_rank - nth - 1) == site)
		nth++;
	MPI_Comm_split(MPI_COMM_WORLD, 0, nth * sites + site, &mixed);
	in_pairs = sites > 1 && chk_size == 2 * sites;
	for (int i = 0; i < chk_size; i++)
		in_pairs = in_pairs && pacx_site_of(i) == i / 2;
	for (int i = 0; i < 2; i++) {
		MPI_Comm comm = i ? mixed : MPI_COMM_WORLD;

		ring_of_cart(comm, 0);
		ring_of_cart(comm, 1);
		grid(comm);
		ring_of_graph(comm);
		dist_graph(comm, 0);
		dist_graph(comm, 1);
	}
	MPI_Comm_free(&mixed);
	return chk_end();
}
