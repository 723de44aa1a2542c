/*
 * pending - constructors called while a nonblocking operation is pending on the same communicator: a broadcast, a barrier or
 * duplications whose last member comes late.  Every new communicator is tried with a ring and a sum.
 */
#include "check.h"

enum { N = 1 << 16, KINDS = 7 };

/* The members of comm, as many as `n`, know each other. */
static void try_comm(MPI_Comm comm, int n)
{
	int r, size, got = -1, sum = -1;

	MPI_Comm_rank(comm, &r);
	MPI_Comm_size(comm, &size);
	if (!CHECK_EQ(size, n))
		return;
	MPI_Sendrecv(&r, 1, MPI_INT, (r + 1) % n, 1, &got, 1, MPI_INT, (r + n - 1) % n, 1, comm,
		MPI_STATUS_IGNORE);
	CHECK_EQ(got, (r + n - 1) % n);
	MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, comm);
	CHECK_EQ(sum, n * (n - 1) / 2);
}

static void construct(MPI_Comm c, int kind)
{
	MPI_Comm d = MPI_COMM_NULL;
	int n = chk_size, zero = 0;
	MPI_Group g;

	switch (kind) {
	case 0:
		MPI_Comm_dup(c, &d);
		break;
	case 1:
		n = chk_rank % 2 ? n / 2 : n - n / 2;
		MPI_Comm_split(c, chk_rank % 2, chk_rank, &d);
		break;
	case 2:
		MPI_Comm_group(c, &g);
		MPI_Comm_create(c, g, &d);
		MPI_Group_free(&g);
		break;
	case 3:
		MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &d);
		MPI_Comm_size(d, &n);
		break;
	case 4:
		MPI_Cart_create(c, 1, &n, &zero, 0, &d);
		break;
	case 5:
		MPI_Comm_group(c, &g);
		MPI_Comm_create_group(c, g, 5, &d);
		MPI_Group_free(&g);
		break;
	case 6:
		MPI_Dist_graph_create_adjacent(
			c, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &d);
		break;
	}
	try_comm(d, n);
	MPI_Comm_free(&d);
}

/* All but the last rank start a nonblocking operation and say so before they construct; `late` starts his when all have. */
static void one(MPI_Comm c, int kind, int late, int barrier)
{
	int *b = chk_alloc(N * sizeof *b), bad = 0;
	MPI_Request q, said = MPI_REQUEST_NULL;

	for (int i = 0; i < N; i++)
		b[i] = chk_rank == late ? i + kind : -1;
	for (int i = 1; chk_rank == late && i < chk_size; i++)
		MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (barrier)
		MPI_Ibarrier(c, &q);
	else
		MPI_Ibcast(b, N, MPI_INT, late, c, &q);
	if (chk_rank != late)
		MPI_Isend(NULL, 0, MPI_INT, late, 7, MPI_COMM_WORLD, &said);
	construct(c, kind);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	MPI_Wait(&said, MPI_STATUS_IGNORE);
	for (int i = 0; i < N && !barrier; i++)
		bad += b[i] != i + kind;
	CHECK_EQ(bad, 0);
	free(b);
}

/* As comm_idup_comm of MPICH's suite. */
static void duplicates(MPI_Comm c)
{
	MPI_Comm many[5], d;
	MPI_Request q[5];

	for (int i = 0; i < 5; i++)
		MPI_Comm_idup(c, &many[i], &q[i]);
	MPI_Comm_dup(c, &d);
	construct(c, 1);
	try_comm(d, chk_size);
	MPI_Waitall(5, q, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 5; i++) {
		try_comm(many[i], chk_size);
		MPI_Comm_free(&many[i]);
	}
	MPI_Comm_free(&d);
}

int main(int argc, char **argv)
{
	MPI_Comm dup, split;

	chk_begin(&argc, &argv, "pending", 2);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_split(MPI_COMM_WORLD, 0, chk_rank, &split);
	for (int kind = 0; kind < KINDS; kind++) {
		one(MPI_COMM_WORLD, kind, 0, 0);
		one(dup, kind, chk_size - 1, 0);
		one(split, kind, 1, 1);
	}
	duplicates(MPI_COMM_WORLD);
	duplicates(dup);
	MPI_Comm_free(&dup);
	MPI_Comm_free(&split);
	return chk_end();
}
