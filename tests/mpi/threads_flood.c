/*
 * threads_flood - with MPI_THREAD_MULTIPLE: hundreds of short collectives are pending, and so go on from within native calls that
 * block; what they send there is more than the native MPI takes at once, so its send must not wait.  MPI_Send in Open MPI's progress
 * callback waits for ever: the thread it waits for to make progress is itself.
 * Argument: rounds (6).
 */
#include "check.h"

enum { MANY = 400, K = 20 };

static int in[MANY][K], out[MANY][K];

static void flood(MPI_Comm pair)
{
	static MPI_Request q[MANY];
	int token = 0, next, rank, size;

	MPI_Comm_rank(pair, &rank);
	MPI_Comm_size(pair, &size);
	next = rank ^ 1;
	for (int i = 0; i < MANY; i++) {
		for (int k = 0; k < K; k++)
			in[i][k] = i + k + chk_rank;
		MPI_Iallreduce(in[i], out[i], K, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q[i]);
	}
	/* Mostly within one site, hence a native call; until those of the neighbour are complete. */
	if (rank % 2 == 0 && next < size)
		MPI_Recv(&token, 1, MPI_INT, next, 5, pair, MPI_STATUS_IGNORE);
	MPI_Waitall(MANY, q, MPI_STATUSES_IGNORE);
	if (rank % 2 == 1)
		MPI_Send(&token, 1, MPI_INT, next, 5, pair);
}

int main(int argc, char **argv)
{
	MPI_Comm pair;
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	chk_start("threads_flood", 1);
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank / 2, 0, &pair);
	for (int round = 0; round < (int)chk_arg(argc, argv, 1, 6); round++) {
		int bad = 0;

		MPI_Barrier(MPI_COMM_WORLD);
		flood(pair);
		for (int i = 0; i < MANY; i++)
			for (int k = 0; k < K; k++)
				bad += out[i][k] != chk_size * (i + k) + chk_size * (chk_size - 1) / 2;
		CHECK_EQ(bad, 0);
		memset(out, 0xEE, sizeof out);
	}
	MPI_Comm_free(&pair);
	return chk_end();
}
