/*
 * rma_busy - the last rank computes without any call of MPI until it sees in its window what rank 0 has put there, after rank 0 has locked, put,
 * got, fetched and flushed: nothing may have to wait for a call of the target's.  For MPIs that serve such targets: PACX with
 * PACX_PROGRESS=thread (the matrix runs it with that only), Open MPI's windows in shared memory; not MPICH's.
 */
#include "check.h"

#include <time.h>

enum { WORDS = 1000, LIMIT_S = 40 };

static void origin(MPI_Win win, int target)
{
	long long *all = chk_alloc(WORDS * sizeof *all), one = 1, old = -1, got[2] = { 0, 0 };

	for (int i = 0; i < WORDS; i++)
		all[i] = i + 5;
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
	MPI_Put(all, WORDS, MPI_LONG_LONG, target, 1, WORDS, MPI_LONG_LONG, win);
	MPI_Win_unlock(target, win);
	MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
	MPI_Fetch_and_op(&one, &old, MPI_LONG_LONG, target, 1, MPI_SUM, win);
	MPI_Win_flush(target, win);
	CHECK_EQ(old, 5);
	MPI_Get(got, 2, MPI_LONG_LONG, target, 1, 2, MPI_LONG_LONG, win);
	MPI_Win_flush(target, win);
	CHECK_EQ(got[0], 6);
	CHECK_EQ(got[1], 6);
	MPI_Accumulate(&one, 1, MPI_LONG_LONG, target, 0, 1, MPI_LONG_LONG, MPI_REPLACE, win); /* enough */
	MPI_Win_unlock(target, win);
	free(all);
}

static void compute(volatile long long *mine)
{
	struct timespec begin, now;
	double x = 1;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		for (int i = 0; i < 1000; i++)
			x = x / 3 + i;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (*mine == 0 && now.tv_sec - begin.tv_sec < LIMIT_S);
	CHECK_EQ(*mine, 1);
	CHECK(x > 0);
}

int main(int argc, char **argv)
{
	long long *mine;
	MPI_Win win;

	chk_begin(&argc, &argv, "rma_busy", 2);
	MPI_Win_allocate(
		(WORDS + 1) * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, chk_rank, 0, win);
	memset(mine, 0, (WORDS + 1) * sizeof *mine);
	MPI_Win_unlock(chk_rank, win);
	for (int round = 0; round < 5; round++) {
		chk_barrier(MPI_COMM_WORLD);
		if (chk_rank == 0)
			origin(win, chk_size - 1);
		else if (chk_rank == chk_size - 1)
			compute(mine);
		chk_barrier(MPI_COMM_WORLD);
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, chk_rank, 0, win);
		mine[0] = 0;
		MPI_Win_unlock(chk_rank, win);
	}
	MPI_Win_free(&win);
	return chk_end();
}
