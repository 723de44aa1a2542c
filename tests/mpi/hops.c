/*
 * hops - every collective operation twice, blocking and nonblocking, with blocks of BLOCK bytes, so that what crosses between parts of
 * the machine can be predicted and counted.  Argument: "mixed" = on a communicator whose even ranks come first;
 * "held" = rank 1 does not come to a nonblocking operation before broadcasts that were started behind it have arrived at the last rank.
 */
#include "check.h"

enum { INTS = 30, BLOCK = INTS * sizeof(int) };

static int r, n, *a, *b, *counts, *displs, *bytes;
static MPI_Aint places[2] = { 0, BLOCK };
static MPI_Datatype *types;
static MPI_Comm comm;

static int val(int rank, int i)
{
	return (int)(chk_mix((uint64_t)rank, (uint64_t)i) & 0xffff);
}

static int sum(int last, int i)
{
	int x = 0;

	for (int k = 0; k <= last; k++)
		x += val(k, i);
	return x;
}

static void fresh(void)
{
	for (int i = 0; i < n * INTS; i++) {
		a[i] = val(r, i);
		b[i] = -1;
	}
}

/* b holds `blocks` blocks; block k is block `own` of the data of rank k. */
static void blocks_are(int line, int blocks, int own)
{
	int bad = 0;

	for (int k = 0; k < blocks; k++)
		for (int i = 0; i < INTS; i++)
			bad += b[k * INTS + i] != val(k, own * INTS + i);
	chk_eq(__FILE__, line, "wrong elements", bad, 0);
}

/* b holds a block of the rank before and one of the rank behind, block `before` and block `behind` of theirs. */
static void from_both(int line, int before, int behind)
{
	int bad = 0;

	for (int i = 0; i < INTS; i++) {
		bad += b[i] != val((r + n - 1) % n, before * INTS + i);
		bad += b[INTS + i] != val((r + 1) % n, behind * INTS + i);
	}
	chk_eq(__FILE__, line, "wrong elements from neighbours", bad, 0);
}

static void sums_are(int line, int last, int from)
{
	int bad = 0;

	for (int i = 0; i < INTS && last >= 0; i++)
		bad += b[i] != sum(last, from + i);
	chk_eq(__FILE__, line, "wrong sums", bad, 0);
}

/* "held": what is outstanding, and cannot be complete without rank 1, must not hold up what was started behind it. */
enum { BEHIND = 3 };
static int held;

static void come_late(void)
{
	if (held && r == 1)
		MPI_Recv(NULL, 0, MPI_INT, n - 1, 1, comm, MPI_STATUS_IGNORE);
}

static void overtake(void)
{
	MPI_Request q[BEHIND];
	int word[BEHIND];

	for (int i = 0; i < BEHIND && held; i++) {
		word[i] = r == 0 ? val(7, i) : -1;
		MPI_Ibcast(&word[i], 1, MPI_INT, 0, comm, &q[i]);
	}
	if (held && r == n - 1) {
		MPI_Wait(&q[BEHIND - 1], MPI_STATUS_IGNORE);
		CHECK_EQ(word[BEHIND - 1], val(7, BEHIND - 1));
		MPI_Send(NULL, 0, MPI_INT, 1, 1, comm);
	}
	if (held)
		MPI_Waitall(BEHIND, q, MPI_STATUSES_IGNORE);
	for (int i = 0; i < BEHIND && held; i++)
		CHECK_EQ(word[i], val(7, i));
}

/* One operation: as it is, and nonblocking with its request. */
#define BOTH(name, ...)                                                                                      \
	for (int way = 0; way < 2; way++) {                                                                  \
		MPI_Request q = MPI_REQUEST_NULL;                                                            \
		fresh();                                                                                     \
		if (way) {                                                                                   \
			come_late();                                                                         \
			MPI_I##name(__VA_ARGS__, &q);                                                        \
			overtake();                                                                          \
		} else {                                                                                     \
			MPI_##name(__VA_ARGS__);                                                             \
		}                                                                                            \
		MPI_Wait(&q, MPI_STATUS_IGNORE);
#define END }

#define MPI_IBarrier              MPI_Ibarrier
#define MPI_IBcast                MPI_Ibcast
#define MPI_IGather               MPI_Igather
#define MPI_IGatherv              MPI_Igatherv
#define MPI_IScatter              MPI_Iscatter
#define MPI_IScatterv             MPI_Iscatterv
#define MPI_IAllgather            MPI_Iallgather
#define MPI_IAllgatherv           MPI_Iallgatherv
#define MPI_IAlltoall             MPI_Ialltoall
#define MPI_IAlltoallv            MPI_Ialltoallv
#define MPI_IAlltoallw            MPI_Ialltoallw
#define MPI_IReduce               MPI_Ireduce
#define MPI_IAllreduce            MPI_Iallreduce
#define MPI_IScan                 MPI_Iscan
#define MPI_IExscan               MPI_Iexscan
#define MPI_IReduce_scatter       MPI_Ireduce_scatter
#define MPI_INeighbor_allgather   MPI_Ineighbor_allgather
#define MPI_INeighbor_allgatherv  MPI_Ineighbor_allgatherv
#define MPI_INeighbor_alltoall    MPI_Ineighbor_alltoall
#define MPI_INeighbor_alltoallv   MPI_Ineighbor_alltoallv
#define MPI_INeighbor_alltoallw   MPI_Ineighbor_alltoallw
#define MPI_IReduce_scatter_block MPI_Ireduce_scatter_block

static void movers(void)
{
	BOTH(Barrier, comm)
	END BOTH(Bcast, a, INTS, MPI_INT, n - 1, comm) for (int i = 0; i < INTS; i++)
		CHECK_EQ(a[i], val(n - 1, i));
	END BOTH(Gather, a, INTS, MPI_INT, b, INTS, MPI_INT, 0, comm) if (r == 0) blocks_are(__LINE__, n, 0);
	END BOTH(Gatherv, a, INTS, MPI_INT, b, counts, displs, MPI_INT, 0, comm) if (r == 0)
		blocks_are(__LINE__, n, 0);
	END BOTH(Scatter, a, INTS, MPI_INT, b, INTS, MPI_INT, 0, comm) blocks_are(__LINE__, 1, r);
	END BOTH(Scatterv, a, counts, displs, MPI_INT, b, INTS, MPI_INT, 0, comm) blocks_are(__LINE__, 1, r);
	END BOTH(Allgather, a, INTS, MPI_INT, b, INTS, MPI_INT, comm) blocks_are(__LINE__, n, 0);
	END BOTH(Allgatherv, a, INTS, MPI_INT, b, counts, displs, MPI_INT, comm) blocks_are(__LINE__, n, 0);
	END BOTH(Alltoall, a, INTS, MPI_INT, b, INTS, MPI_INT, comm) blocks_are(__LINE__, n, r);
	END BOTH(Alltoallv, a, counts, displs, MPI_INT, b, counts, displs, MPI_INT, comm)
		blocks_are(__LINE__, n, r);
	END BOTH(Alltoallw, a, counts, bytes, types, b, counts, bytes, types, comm)
		blocks_are(__LINE__, n, r);
	END
}

static void reductions(void)
{
	BOTH(Reduce, a, b, INTS, MPI_INT, MPI_SUM, n - 1, comm)
	sums_are(__LINE__, r == n - 1 ? n - 1 : -1, 0);
	END BOTH(Allreduce, a, b, INTS, MPI_INT, MPI_SUM, comm) sums_are(__LINE__, n - 1, 0);
	END BOTH(Reduce_scatter, a, b, counts, MPI_INT, MPI_SUM, comm) sums_are(__LINE__, n - 1, r * INTS);
	END BOTH(Reduce_scatter_block, a, b, INTS, MPI_INT, MPI_SUM, comm)
		sums_are(__LINE__, n - 1, r * INTS);
	END BOTH(Scan, a, b, INTS, MPI_INT, MPI_SUM, comm) sums_are(__LINE__, r, 0);
	END BOTH(Exscan, a, b, INTS, MPI_INT, MPI_SUM, comm) sums_are(__LINE__, r - 1, 0);
	END
}

/* On a ring: each rank to the one before and the one behind it. */
static void neighbours(void)
{
	int periodic = 1;
	MPI_Comm ring;

	MPI_Cart_create(comm, 1, &n, &periodic, 0, &ring);
	BOTH(Neighbor_allgather, a, INTS, MPI_INT, b, INTS, MPI_INT, ring) from_both(__LINE__, 0, 0);
	END BOTH(Neighbor_allgatherv, a, INTS, MPI_INT, b, counts, displs, MPI_INT, ring)
		from_both(__LINE__, 0, 0);
	END BOTH(Neighbor_alltoall, a, INTS, MPI_INT, b, INTS, MPI_INT, ring) from_both(__LINE__, 1, 0);
	END BOTH(Neighbor_alltoallv, a, counts, displs, MPI_INT, b, counts, displs, MPI_INT, ring)
		from_both(__LINE__, 1, 0);
	END BOTH(Neighbor_alltoallw, a, counts, places, types, b, counts, places, types, ring)
		from_both(__LINE__, 1, 0);
	END MPI_Comm_free(&ring);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "hops", 1);
	comm = MPI_COMM_WORLD;
	if (argc > 1 && !strcmp(argv[1], "mixed"))
		MPI_Comm_split(MPI_COMM_WORLD, 0, chk_rank % 2 * chk_size + chk_rank, &comm);
	MPI_Comm_rank(comm, &r);
	MPI_Comm_size(comm, &n);
	held = argc > 1 && !strcmp(argv[1], "held") && n > 2;
	a = chk_alloc((size_t)n * BLOCK);
	b = chk_alloc((size_t)n * BLOCK);
	counts = chk_alloc(sizeof(int) * (size_t)n);
	displs = chk_alloc(sizeof(int) * (size_t)n);
	bytes = chk_alloc(sizeof(int) * (size_t)n);
	types = chk_alloc(sizeof *types * (size_t)n);
	for (int k = 0; k < n; k++) {
		counts[k] = INTS;
		displs[k] = k * INTS;
		bytes[k] = k * (int)BLOCK;
		types[k] = MPI_INT;
	}
	movers();
	reductions();
	if (n > 2) /* of two, Open MPI 4.1 swaps the blocks */
		neighbours();
	if (comm != MPI_COMM_WORLD)
		MPI_Comm_free(&comm);
	free(a);
	free(b);
	free(counts);
	free(displs);
	free(bytes);
	free(types);
	return chk_end();
}
