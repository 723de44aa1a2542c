/*
 * topo - cartesian, graph and distributed graph communicators against brute force: coordinates, ranks, shifts with and
 * without wrap-around, sub-grids, maps, neighbour lists; leftover ranks get MPI_COMM_NULL; messages along every edge.
 */
#include "check.h"

static int periods_of(int dim, int variant)
{
	return (variant >> dim) & 1;
}

static void cart(int ndims, int variant)
{
	int dims[3] = { 0, 0, 0 }, per[3], used = 1, r, n, c[3], d2[3], p2[3], c2[3], kind, x;
	MPI_Comm cc, sub;

	MPI_Dims_create(
		chk_size - (variant & 1 && chk_size > 2), ndims, dims); /* sometimes one rank is left over */
	for (int i = 0; i < ndims; i++) {
		per[i] = periods_of(i, variant);
		used *= dims[i];
	}
	MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, per, 0, &cc);
	CHECK((cc != MPI_COMM_NULL) == (chk_rank < used));
	if (cc == MPI_COMM_NULL)
		return;
	MPI_Comm_rank(cc, &r);
	MPI_Comm_size(cc, &n);
	CHECK_EQ(n, used);
	CHECK_EQ(r, chk_rank); /* no reordering was allowed */
	MPI_Topo_test(cc, &kind);
	CHECK_EQ(kind, MPI_CART);
	MPI_Cartdim_get(cc, &x);
	CHECK_EQ(x, ndims);
	MPI_Cart_get(cc, ndims, d2, p2, c2);
	MPI_Cart_coords(cc, r, ndims, c);
	for (int i = 0; i < ndims; i++)
		CHECK(d2[i] == dims[i] && !p2[i] == !per[i] && c2[i] == c[i]);
	for (int k = 0; k < n; k++) { /* row-major */
		int rest = k, back;

		MPI_Cart_coords(cc, k, ndims, c2);
		for (int i = ndims - 1; i >= 0; i--) {
			CHECK_EQ(c2[i], rest % dims[i]);
			rest /= dims[i];
			if (per[i])
				c2[i] += i % 2 ? dims[i] : -dims[i];
		}
		MPI_Cart_rank(cc, c2, &back);
		CHECK_EQ(back, k);
	}
	for (int i = 0; i < ndims; i++)
		for (int disp = -2; disp <= 2; disp++) {
			int src, dst, want[2], got = -7;

			for (int e = 0; e < 2; e++) {
				int at = c[i] + (e ? disp : -disp);

				memcpy(c2, c, sizeof c);
				if (per[i])
					at = (at % dims[i] + dims[i]) % dims[i];
				c2[i] = at;
				want[e] = MPI_PROC_NULL;
				if (at >= 0 && at < dims[i]) {
					want[e] = 0;
					for (int j = 0; j < ndims; j++)
						want[e] = want[e] * dims[j] + c2[j];
				}
			}
			if (disp == 0)
				continue;
			MPI_Cart_shift(cc, i, disp, &src, &dst);
			CHECK_EQ(src, want[0]);
			CHECK_EQ(dst, want[1]);
			MPI_Sendrecv(&r, 1, MPI_INT, dst, 1, &got, 1, MPI_INT, src, 1, cc, MPI_STATUS_IGNORE);
			CHECK_EQ(got, src == MPI_PROC_NULL ? -7 : src);
		}
	/* sub-grids: keep the first dimension, then all but the first */
	for (int v = 0; v < 1 + (ndims > 1);
		v++) { /* MPICH 4.0.2 gives MPI_COMM_NULL when no dimension is kept */
		int keep[3], sn, sr, want_n = 1, want_r = 0, sum;

		for (int i = 0; i < ndims; i++) {
			keep[i] = (i == 0) == (v == 0);
			if (keep[i]) {
				want_n *= dims[i];
				want_r = want_r * dims[i] + c[i];
			}
		}
		MPI_Cart_sub(cc, keep, &sub);
		MPI_Comm_size(sub, &sn);
		MPI_Comm_rank(sub, &sr);
		CHECK_EQ(sn, want_n);
		CHECK_EQ(sr, want_r);
		MPI_Allreduce(&c[0], &sum, 1, MPI_INT, MPI_SUM, sub);
		CHECK_EQ(sum, v == 0 ? dims[0] * (dims[0] - 1) / 2 : c[0] * want_n);
		MPI_Comm_free(&sub);
	}
	MPI_Cart_map(MPI_COMM_WORLD, ndims, dims, per, &x);
	CHECK(x == MPI_UNDEFINED || (x >= 0 && x < chk_size));
	/* dup keeps the topology */
	MPI_Comm_dup(cc, &sub);
	MPI_Topo_test(sub, &kind);
	CHECK_EQ(kind, MPI_CART);
	MPI_Cart_coords(sub, r, ndims, c2);
	CHECK(!memcmp(c, c2, sizeof(int) * (size_t)ndims));
	MPI_Comm_free(&sub);
	MPI_Comm_free(&cc);
}

/* A star: rank 0 is the neighbour of all. */
static void graph(void)
{
	int n = chk_size, *index = chk_alloc(sizeof(int) * (size_t)n),
	    *edges = chk_alloc(sizeof(int) * 2 * (size_t)n), e = 0;
	int k, a, b, *nb = chk_alloc(sizeof(int) * (size_t)n), kind, r;
	MPI_Comm g;

	for (int i = 1; i < n; i++)
		edges[e++] = i;
	index[0] = e;
	for (int i = 1; i < n; i++) {
		edges[e++] = 0;
		index[i] = e;
	}
	MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, 0, &g);
	MPI_Comm_rank(g, &r);
	MPI_Topo_test(g, &kind);
	CHECK_EQ(kind, MPI_GRAPH);
	MPI_Graphdims_get(g, &a, &b);
	CHECK(a == n && b == e);
	MPI_Graph_neighbors_count(g, r, &k);
	CHECK_EQ(k, r ? 1 : n - 1);
	MPI_Graph_neighbors(g, r, k, nb);
	for (int i = 0; i < k; i++)
		CHECK_EQ(nb[i], r ? 0 : i + 1);
	/* along every edge */
	for (int i = 0; i < k; i++) {
		int got = -1;
		MPI_Sendrecv(&r, 1, MPI_INT, nb[i], 2, &got, 1, MPI_INT, nb[i], 2, g, MPI_STATUS_IGNORE);
		CHECK_EQ(got, nb[i]);
	}
	MPI_Comm_free(&g);
	free(index);
	free(edges);
	free(nb);
}

/* In: from r-1 and r-2; out: to r+1 and r+2; weights made of both ends.  The general form gives rank 0 all edges. */
static void dist_graph(int general)
{
	int n = chk_size, r = chk_rank, in[2], out[2], iw[2], ow[2], ind, outd, weighted;
	int gin[2], gout[2], giw[2], gow[2];
	MPI_Comm g;

	for (int i = 0; i < 2; i++) {
		in[i] = (r + 2 * n - 1 - i) % n;
		out[i] = (r + 1 + i) % n;
		iw[i] = 1 + in[i] * 100 + r * 2 + i;
		ow[i] = 1 + r * 100 + out[i] * 2 + i;
	}
	if (general) {
		int *src = chk_alloc(sizeof(int) * (size_t)n), *deg = chk_alloc(sizeof(int) * (size_t)n);
		int *dst = chk_alloc(sizeof(int) * 2 * (size_t)n),
		    *w = chk_alloc(sizeof(int) * 2 * (size_t)n);

		for (int s = 0; s < n; s++) {
			src[s] = s;
			deg[s] = 2;
			for (int i = 0; i < 2; i++) {
				dst[2 * s + i] = (s + 1 + i) % n;
				w[2 * s + i] = 1 + s * 100 + dst[2 * s + i] * 2 + i;
			}
		}
		MPI_Dist_graph_create(MPI_COMM_WORLD, r ? 0 : n, src, deg, dst, w, MPI_INFO_NULL, 0, &g);
		free(src);
		free(deg);
		free(dst);
		free(w);
	} else {
		MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, in, iw, 2, out, ow, MPI_INFO_NULL, 0, &g);
	}
	MPI_Dist_graph_neighbors_count(g, &ind, &outd, &weighted);
	CHECK(ind == 2 && outd == 2 && weighted);
	MPI_Dist_graph_neighbors(g, 2, gin, giw, 2, gout, gow);
	for (int i = 0; i < 2; i++) {
		/* the general form may list the neighbours in any order */
		int j = general && (gin[i] != in[i] || giw[i] != iw[i]) ? 1 - i : i;
		int k = general && (gout[i] != out[i] || gow[i] != ow[i]) ? 1 - i : i;

		CHECK(gin[i] == in[j] && giw[i] == iw[j]);
		CHECK(gout[i] == out[k] && gow[i] == ow[k]);
	}
	MPI_Comm_free(&g);
}

int main(int argc, char **argv)
{
	int dims[2] = { 0, 0 }, kind;

	chk_begin(&argc, &argv, "topo", 1);
	MPI_Topo_test(MPI_COMM_WORLD, &kind);
	CHECK_EQ(kind, MPI_UNDEFINED);
	MPI_Dims_create(12, 2, dims);
	CHECK(dims[0] == 4 && dims[1] == 3);
	for (int ndims = 1; ndims <= 3; ndims++)
		for (int variant = 0; variant < (1 << ndims); variant += ndims == 3 ? 3 : 1)
			cart(ndims, variant);
	graph();
	dist_graph(0);
	dist_graph(1);
	return chk_end();
}
