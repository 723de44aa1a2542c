/*
 * neighbor - the neighbourhood collectives, blocking and nonblocking, on a grid (wrapped and open) and on an uneven
 * distributed graph, all forms: allgather, allgatherv, alltoall, alltoallv, alltoallw.
 */
#include "check.h"

enum { MOST = 16, K = 6 };

/* What the neighbours of this rank are, in the order of the standard. */
struct hood {
	MPI_Comm c;
	int r, nin, nout, in[MOST], out[MOST];
	int w; /* the w form too; off for the uneven graph: MPICH 4.0.2 fails there, cause not found */
	int slot[MOST]; /* in[i] sends us what is in ITS slot number slot[i] */
};

static int val(int src, int slot, int i)
{
	return (int)(chk_mix((uint64_t)(src * 61 + slot), (uint64_t)i) & 0xffff);
}

static int length(int src, int slot)
{
	return (src + slot) % 3 == 0 ? 0 : K * 100 + src + slot;
}

static void run(const struct hood *h, int nonblocking)
{
	enum { ROW = K * 100 + 64 + MOST, FORMS = 5 };
	static int s[FORMS][MOST * ROW], g[FORMS][MOST * ROW];
	int sc[MOST], sd[MOST], rc[MOST], rd[MOST], mine[MOST], dis[MOST], n1 = length(h->r, 0), m = K;
	MPI_Aint sb[MOST], rb[MOST];
	MPI_Datatype t[MOST];
	MPI_Request q[FORMS];
	MPI_Comm c = h->c;

	memset(g, 0xCC, sizeof g);
	for (int i = 0; i < MOST; i++)
		t[i] = MPI_INT;
	for (int i = 0; i < h->nout; i++) {
		sc[i] = length(h->r, i);
		sd[i] = (h->nout - 1 - i) * ROW;
		sb[i] = sd[i] * (MPI_Aint)sizeof(int);
		for (int k = 0; k < ROW; k++)
			s[3][sd[i] + k] = s[4][sd[i] + k] = val(h->r, i, k);
		for (int k = 0; k < m; k++)
			s[2][i * m + k] = val(h->r, i, k);
	}
	for (int k = 0; k < ROW; k++)
		s[0][k] = s[1][k] = val(h->r, 30, k);
	for (int i = 0; i < h->nin; i++) {
		mine[i] = h->in[i] == MPI_PROC_NULL ? 0 : length(h->in[i], 0);
		rc[i] = h->in[i] == MPI_PROC_NULL ? 0 : length(h->in[i], h->slot[i]);
		dis[i] = rd[i] = i * ROW;
		rb[i] = rd[i] * (MPI_Aint)sizeof(int);
	}
	if (nonblocking) {
		MPI_Ineighbor_allgather(s[0], m, MPI_INT, g[0], m, MPI_INT, c, &q[0]);
		MPI_Ineighbor_allgatherv(s[1], n1, MPI_INT, g[1], mine, dis, MPI_INT, c, &q[1]);
		MPI_Ineighbor_alltoall(s[2], m, MPI_INT, g[2], m, MPI_INT, c, &q[2]);
		MPI_Ineighbor_alltoallv(s[3], sc, sd, MPI_INT, g[3], rc, rd, MPI_INT, c, &q[3]);
		q[4] = MPI_REQUEST_NULL;
		if (h->w)
			MPI_Ineighbor_alltoallw(s[4], sc, sb, t, g[4], rc, rb, t, c, &q[4]);
		for (int k = FORMS - 1; k > 0; k--)
			MPI_Wait(&q[(k + h->r) % FORMS], MPI_STATUS_IGNORE);
		MPI_Waitall(FORMS, q, MPI_STATUSES_IGNORE);
	} else {
		MPI_Neighbor_allgather(s[0], m, MPI_INT, g[0], m, MPI_INT, c);
		MPI_Neighbor_allgatherv(s[1], n1, MPI_INT, g[1], mine, dis, MPI_INT, c);
		MPI_Neighbor_alltoall(s[2], m, MPI_INT, g[2], m, MPI_INT, c);
		MPI_Neighbor_alltoallv(s[3], sc, sd, MPI_INT, g[3], rc, rd, MPI_INT, c);
		if (h->w)
			MPI_Neighbor_alltoallw(s[4], sc, sb, t, g[4], rc, rb, t, c);
	}
	for (int i = 0; i < h->nin; i++) {
		int bad[FORMS] = { 0 }, p = h->in[i], none = (int)0xCCCCCCCC;

		for (int k = 0; k < m; k++) {
			bad[0] += g[0][i * m + k] != (p == MPI_PROC_NULL ? none : val(p, 30, k));
			bad[2] += g[2][i * m + k] != (p == MPI_PROC_NULL ? none : val(p, h->slot[i], k));
		}
		for (int k = 0; k < ROW; k++) {
			bad[1] += g[1][dis[i] + k] != (k < mine[i] ? val(p, 30, k) : none);
			bad[3] += g[3][rd[i] + k] != (k < rc[i] ? val(p, h->slot[i], k) : none);
			if (h->w)
				bad[4] += g[4][rd[i] + k] != (k < rc[i] ? val(p, h->slot[i], k) : none);
		}
		for (int f = 0; f < FORMS; f++)
			if (!CHECK_EQ(bad[f], 0))
				fprintf(stderr, "  form %d, neighbour %d of %d (rank %d), nonblocking %d\n",
					f, i, h->nin, p, nonblocking);
	}
}

/* On a grid neighbour 2d is at -1, 2d+1 at +1 of dimension d; what comes from -1 was sent in its slot 2d+1. */
static void grid(int ndims, int wrap)
{
	struct hood h;
	int dims[2] = { 0, 0 }, per[2] = { wrap, wrap };

	MPI_Dims_create(chk_size, ndims, dims);
	/* A wrapped dimension of 1 or 2 has the same rank on both sides; which message is which is then left to the
	   library (the standard was unclear until version 4), so such grids are tried open only. */
	for (int i = 0; i < ndims; i++)
		if (dims[i] < 3)
			per[i] = 0;
	MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, per, 0, &h.c);
	MPI_Comm_rank(h.c, &h.r);
	h.w = 1;
	h.nin = h.nout = 2 * ndims;
	for (int d = 0; d < ndims; d++) {
		MPI_Cart_shift(h.c, d, 1, &h.in[2 * d], &h.in[2 * d + 1]);
		h.slot[2 * d] = 2 * d + 1;
		h.slot[2 * d + 1] = 2 * d;
	}
	memcpy(h.out, h.in, sizeof h.out);
	run(&h, 0);
	run(&h, 1);
	MPI_Comm_free(&h.c);
}

/* Rank a sends to b if (a + 2b) % 3 != 1 : uneven degrees, self edges, some edges in one direction only. */
static int edge(int a, int b)
{
	return (a + 2 * b) % 3 != 1 && b < MOST && a < MOST;
}

static void uneven(void)
{
	struct hood h = { .nin = 0, .nout = 0 };

	h.r = chk_rank;
	for (int i = chk_size - 1; i >= 0; i--) {
		if (edge(i, h.r)) {
			h.slot[h.nin] = 0;
			for (int j = chk_size - 1; j > h.r; j--)
				h.slot[h.nin] += edge(i, j);
			h.in[h.nin++] = i;
		}
		if (edge(h.r, i))
			h.out[h.nout++] = i;
	}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, h.nin, h.in, MPI_UNWEIGHTED, h.nout, h.out,
		MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &h.c);
	run(&h, 0);
	run(&h, 1);
	MPI_Comm_free(&h.c);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "neighbor", 1);
	for (int ndims = 1; ndims <= 2; ndims++)
		for (int wrap = 0; wrap < 2; wrap++)
			grid(ndims, wrap);
	uneven();
	return chk_end();
}
