/*
 * vanish - counts, displacements and datatypes of nonblocking collectives are overwritten and freed as soon as the call has returned
 * (as mpi4py 3.1.4 does it; both vendors bear it), on MPI_COMM_WORLD, halves of it, and Cartesian ones; also the
 * large-count forms.
 */
#include "check.h"

/* The arrays of one call, and what makes them go. */
struct arrays {
	int n, *counts, *displs, *scounts, *sdispls;
	MPI_Aint *bytes, *sbytes;
	MPI_Datatype *types;
};

static struct arrays make(int n)
{
	struct arrays a = { .n = n };
	size_t k = (size_t)n;

	a.counts = chk_alloc(k * sizeof(int));
	a.displs = chk_alloc(k * sizeof(int));
	a.scounts = chk_alloc(k * sizeof(int));
	a.sdispls = chk_alloc(k * sizeof(int));
	a.bytes = chk_alloc(k * sizeof(MPI_Aint));
	a.sbytes = chk_alloc(k * sizeof(MPI_Aint));
	a.types = chk_alloc(k * sizeof(MPI_Datatype));
	for (int i = 0; i < n; i++) {
		a.counts[i] = a.scounts[i] = 1;
		a.displs[i] = a.sdispls[i] = i;
		a.bytes[i] = a.sbytes[i] = 4 * i;
		a.types[i] = MPI_INT;
	}
	return a;
}

static void vanish(struct arrays a)
{
	size_t k = (size_t)a.n;
	void *all[] = { a.counts, a.displs, a.scounts, a.sdispls, a.bytes, a.sbytes, a.types };
	size_t each[] = { 4, 4, 4, 4, sizeof(MPI_Aint), sizeof(MPI_Aint), sizeof(MPI_Datatype) };

	for (int i = 0; i < 7; i++) {
		memset(all[i], 0x7f, k * each[i]);
		free(all[i]);
	}
	for (int i = 0; i < 7; i++) /* somebody else's memory now */
		free(memset(chk_alloc(k * each[i]), 0x55, k * each[i]));
}

/* Every rank sends its rank + 1; whom it has it from is what must be there. */
static void whole(MPI_Comm comm)
{
	int r, n, in[64], out[64], sum;

	MPI_Comm_rank(comm, &r);
	MPI_Comm_size(comm, &n);
	sum = n * (n + 1) / 2;
	for (int op = 0; op < 6; op++) {
		struct arrays a = make(n);
		MPI_Request q;

		for (int i = 0; i < 64; i++) {
			in[i] = r + 1;
			out[i] = -1;
		}
		for (int i = 0; i < n && op == 3; i++)
			a.displs[i] = a.sdispls[i] = 4 * i;
		if (op == 0)
			MPI_Iallgatherv(in, 1, MPI_INT, out, a.counts, a.displs, MPI_INT, comm, &q);
		if (op == 1)
			MPI_Igatherv(in, 1, MPI_INT, out, a.counts, a.displs, MPI_INT, 0, comm, &q);
		if (op == 2)
			MPI_Ialltoallv(in, a.scounts, a.sdispls, MPI_INT, out, a.counts, a.displs, MPI_INT,
				comm, &q);
		if (op == 3)
			MPI_Ialltoallw(in, a.scounts, a.sdispls, a.types, out, a.counts, a.displs, a.types,
				comm, &q);
		if (op == 4)
			MPI_Iscatterv(in, a.counts, a.displs, MPI_INT, out, 1, MPI_INT, n - 1, comm, &q);
		if (op == 5)
			MPI_Ireduce_scatter(in, out, a.counts, MPI_INT, MPI_SUM, comm, &q);
		vanish(a);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		for (int i = 0; i < n && (op == 0 || op == 2 || op == 3 || (op == 1 && r == 0)); i++)
			CHECK_EQ(out[i], i + 1);
		if (op > 3)
			CHECK_EQ(out[0], op == 4 ? n : sum);
	}
}

#if MPI_VERSION >= 4
/* Where all ranks have these functions. */
static void large(MPI_Comm comm)
{
	int r, n, in[64], out[64];

	MPI_Comm_rank(comm, &r);
	MPI_Comm_size(comm, &n);
	for (int op = 0; op < 4; op++) {
		MPI_Count *c = chk_alloc((size_t)n * sizeof *c);
		MPI_Aint *d = chk_alloc((size_t)n * sizeof *d);
		struct arrays a = make(n);
		MPI_Request q;

		for (int i = 0; i < 64; i++) {
			in[i] = r + 1;
			out[i] = -1;
		}
		for (int i = 0; i < n; i++) {
			c[i] = 1;
			d[i] = op == 3 ? 4 * i : i;
		}
		if (op == 0)
			MPI_Iallgatherv_c(in, 1, MPI_INT, out, c, d, MPI_INT, comm, &q);
		if (op == 1)
			MPI_Igatherv_c(in, 1, MPI_INT, out, c, d, MPI_INT, 0, comm, &q);
		if (op == 2)
			MPI_Ialltoallv_c(in, c, d, MPI_INT, out, c, d, MPI_INT, comm, &q);
		if (op == 3)
			MPI_Ialltoallw_c(in, c, d, a.types, out, c, d, a.types, comm, &q);
		memset(c, 0x7f, (size_t)n * sizeof *c);
		memset(d, 0x7f, (size_t)n * sizeof *d);
		free(c);
		free(d);
		vanish(a);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		for (int i = 0; i < n && (op != 1 || r == 0); i++)
			CHECK_EQ(out[i], i + 1);
	}
}
#endif

/* In a ring the left neighbour comes first. */
static void neighbours(MPI_Comm comm)
{
	int n, r, one = 1;
	MPI_Comm ring;

	MPI_Comm_size(comm, &n);
	MPI_Cart_create(comm, 1, &n, &one, 0, &ring);
	MPI_Comm_rank(ring, &r);
	for (int op = 0; op < 3; op++) {
		int in[2] = { r, r }, out[2] = { -1, -1 };
		struct arrays a = make(2);
		MPI_Request q;

		if (op == 0)
			MPI_Ineighbor_allgatherv(in, 1, MPI_INT, out, a.counts, a.displs, MPI_INT, ring, &q);
		if (op == 1)
			MPI_Ineighbor_alltoallv(in, a.scounts, a.sdispls, MPI_INT, out, a.counts, a.displs,
				MPI_INT, ring, &q);
		if (op == 2)
			MPI_Ineighbor_alltoallw(
				in, a.scounts, a.sbytes, a.types, out, a.counts, a.bytes, a.types, ring, &q);
		vanish(a);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		CHECK_EQ(out[0], (r + n - 1) % n);
		CHECK_EQ(out[1], (r + 1) % n);
	}
	MPI_Comm_free(&ring);
}

int main(int argc, char **argv)
{
	int version = MPI_VERSION, least;
	MPI_Comm parts[3] = { MPI_COMM_WORLD };

	chk_begin(&argc, &argv, "vanish", 2);
	MPI_Allreduce(&version, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank % 2, 0, &parts[1]);
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank >= chk_size / 2, 0, &parts[2]);
	for (int i = 0; i < 3; i++) {
		whole(parts[i]);
#if MPI_VERSION >= 4
		if (least >= 4)
			large(parts[i]);
#endif
		neighbours(parts[i]);
		if (i > 0)
			MPI_Comm_free(&parts[i]);
	}
	return chk_end();
}
