/*
 * partition.c - partitioned communication: every pair of ranks, partitions made ready in all three ways and any order, several
 * rounds, two sides that divide the data differently, elements with gaps, partitions that arrive before others are ready. In longs, which
 * not all machines store alike.
 */
#include <sched.h>

#include "check.h"

/* Has the MPI of every rank partitioned communication? */
static int everybody_has(void)
{
	int have = MPI_VERSION >= 4;

	MPI_Allreduce(MPI_IN_PLACE, &have, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	return have;
}

#if MPI_VERSION >= 4

#define N      240 /* longs from each rank to each other one */
#define ROUNDS 3

static long value(int src, int dst, int round, int i)
{
	return (src * 64 + dst) * 100000 + round * 1000 + i;
}

/* The order in which `parts` partitions become ready. */
static void ready(MPI_Request req, int parts, int way)
{
	int *list = chk_alloc((size_t)parts * sizeof *list), half = parts / 2;

	switch (way % 3) {
	case 0:
		for (int i = parts - 1; i >= 0; i--)
			MPI_Pready(i, req);
		break;
	case 1:
		if (half < parts)
			MPI_Pready_range(half, parts - 1, req);
		if (half > 0)
			MPI_Pready_range(0, half - 1, req);
		break;
	default:
		for (int i = 0; i < parts; i++)
			list[i] = i * 7 % parts;
		MPI_Pready_list(parts, list, req);
	}
	free(list);
}

/* All pairs at once; the sender divides into `sparts`, the receiver into `rparts`; gap: the receiver's lie apart. */
static void pairs(int sparts, int rparts, int gap)
{
	int n = chk_size, flag;
	long *out = chk_alloc((size_t)n * N * sizeof *out);
	long *in = chk_alloc((size_t)n * N * 2 * sizeof *in);
	MPI_Request *req = chk_alloc(2 * (size_t)n * sizeof *req);
	MPI_Status *st = chk_alloc(2 * (size_t)n * sizeof *st);
	MPI_Datatype apart;

	MPI_Type_create_resized(MPI_LONG, 0, 2 * sizeof(long), &apart);
	MPI_Type_commit(&apart);
	for (int r = 0; r < n; r++) {
		MPI_Precv_init(in + (size_t)r * N * 2, rparts, N / rparts, gap ? apart : MPI_LONG, r, 7,
			MPI_COMM_WORLD, MPI_INFO_NULL, &req[r]);
		MPI_Psend_init(out + (size_t)r * N, sparts, N / sparts, MPI_LONG, r, 7, MPI_COMM_WORLD,
			MPI_INFO_NULL, &req[n + r]);
	}
	MPI_Type_free(&apart);
	for (int round = 0; round < ROUNDS; round++) {
		for (int r = 0; r < n; r++)
			for (int i = 0; i < N; i++)
				out[r * N + i] = value(chk_rank, r, round, i);
		memset(in, -1, (size_t)n * N * 2 * sizeof *in);
		MPI_Startall(2 * n, req);
		for (int r = 0; r < n; r++)
			ready(req[n + r], sparts, round + r);
		if (round == 1)
			for (int r = 0; r < n; r++)
				while (MPI_Parrived(req[r], rparts - 1, &flag), !flag)
					sched_yield();
		MPI_Waitall(2 * n, req, st);
		for (int r = 0; r < n; r++) {
			int wrong = 0;

			for (int i = 0; i < N; i++)
				wrong += in[(size_t)r * N * 2 + (size_t)i * (gap ? 2 : 1)] !=
					 value(r, chk_rank, round, i);
			CHECK_EQ(wrong, 0);
			CHECK(req[r] != MPI_REQUEST_NULL && req[n + r] != MPI_REQUEST_NULL);
		}
	}
	for (int i = 0; i < 2 * n; i++)
		MPI_Request_free(&req[i]);
	free(out);
	free(in);
	free(req);
	free(st);
}

/* From the first to the last: two requests of one tag match in order; one partition arrives while the other is not ready. */
static void early(void)
{
	int last = chk_size - 1, a[4] = { 1, 2, 3, 4 }, b[4] = { 5, 6, 7, 8 }, flag = 0;
	MPI_Request q[2];

	if (chk_rank == 0) {
		MPI_Psend_init(a, 2, 2, MPI_INT, last, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
		MPI_Psend_init(b, 2, 2, MPI_INT, last, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
		MPI_Startall(2, q);
		MPI_Pready_range(0, 1, q[1]);
		MPI_Pready(1, q[0]);
		MPI_Recv(NULL, 0, MPI_INT, last, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Pready(0, q[0]);
	} else if (chk_rank == last) {
		int x[4] = { 0 }, y[4] = { 0 };

		MPI_Precv_init(x, 2, 2, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
		MPI_Precv_init(y, 2, 2, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
		MPI_Startall(2, q);
		while (MPI_Parrived(q[1], 0, &flag), !flag)
			sched_yield();
		CHECK(y[0] == 5 && y[1] == 6);
		MPI_Send(NULL, 0, MPI_INT, 0, 4, MPI_COMM_WORLD);
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
		CHECK(x[0] == 1 && x[1] == 2 && x[2] == 3 && x[3] == 4);
		CHECK(y[0] == 5 && y[1] == 6 && y[2] == 7 && y[3] == 8);
	} else {
		return;
	}
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	MPI_Request_free(&q[0]);
	MPI_Request_free(&q[1]);
}

/* Long partitions. (Not to MPI_PROC_NULL: there MPICH 4.0 crashes.) */
static void longs(void)
{
	int next = (chk_rank + 1) % chk_size, before = (chk_rank + chk_size - 1) % chk_size;
	size_t n = 300000;
	char *out = chk_alloc(4 * n), *in = chk_alloc(4 * n);
	MPI_Request q[2];

	chk_fill(out, 4 * n, (uint64_t)chk_rank);
	MPI_Psend_init(out, 4, (MPI_Count)n, MPI_BYTE, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
	MPI_Precv_init(in, 2, 2 * (MPI_Count)n, MPI_BYTE, before, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
	MPI_Startall(2, q);
	for (int i = 3; i >= 0; i--)
		MPI_Pready(i, q[0]);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	CHECK_BYTES(in, 4 * n, (uint64_t)before);
	MPI_Request_free(&q[0]);
	MPI_Request_free(&q[1]);
	free(out);
	free(in);
}

static void tests(void)
{
	pairs(1, 1, 0);
	pairs(8, 8, 0);
	pairs(12, 4, 0);
	pairs(5, 40, 1);
	early();
	longs();
}

#else

static void tests(void)
{
}

#endif

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "partition", 2);
	if (everybody_has()) {
		tests();
		return chk_end();
	}
	if (chk_rank == 0) {
		printf("skipped: not every rank's MPI has partitioned communication\n");
		fflush(stdout);
	}
	MPI_Finalize();
	return 0;
}
