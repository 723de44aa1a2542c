/*
 * threads_make - with MPI_THREAD_MULTIPLE on every rank: two threads per rank make communicators from a parent of their own, and
 * block in a collective of their own, at once; and each makes communicators from groups of one common parent, with a tag of its own,
 * the least, the largest, and some between.
 * Otherwise it says "threads_make: skipped".  Argument: rounds (40).
 */
#include "check.h"
#include <pthread.h>

enum { THREADS = 2 };

static MPI_Comm parent[THREADS];
static int rounds;

static void *make(void *arg)
{
	int t = *(int *)arg, sum, there, *largest;
	MPI_Comm d, half, g;
	MPI_Group all;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &there);
	for (int i = 0; i < rounds; i++) {
		int tags[] = { 1, 30, *largest };

		MPI_Comm_create_group(MPI_COMM_WORLD, all, t == 0 ? 0 : tags[i % 3], &g);
		sum = chk_rank == i % chk_size ? 10 * i + t : -1;
		MPI_Bcast(&sum, 1, MPI_INT, i % chk_size, g);
		CHECK_EQ(sum, 10 * i + t);
		MPI_Comm_free(&g);
		MPI_Comm_dup(parent[t], &d);
		MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, d);
		CHECK_EQ(sum, i * chk_size);
		if (i % 8 == t) {
			int r, n;

			MPI_Comm_split(d, chk_rank < chk_size / 2, chk_rank, &half);
			MPI_Comm_rank(half, &r);
			MPI_Comm_size(half, &n);
			MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, half);
			CHECK_EQ(sum, n * (n - 1) / 2);
			MPI_Barrier(half);
			MPI_Comm_free(&half);
		}
		MPI_Comm_free(&d);
	}
	MPI_Group_free(&all);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t id[THREADS];
	int provided, least, number[THREADS];

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	chk_start("threads_make", 1);
	rounds = (int)chk_arg(argc, argv, 1, 40);
	MPI_Allreduce(&provided, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (least < MPI_THREAD_MULTIPLE) {
		if (chk_rank == 0)
			printf("threads_make: skipped, MPI_THREAD_MULTIPLE is not provided on every rank\n");
		return chk_end();
	}
	for (int t = 0; t < THREADS; t++) {
		number[t] = t;
		MPI_Comm_dup(MPI_COMM_WORLD, &parent[t]);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_create(&id[t], NULL, make, &number[t]);
	for (int t = 0; t < THREADS; t++)
		pthread_join(id[t], NULL);
	for (int t = 0; t < THREADS; t++)
		MPI_Comm_free(&parent[t]);
	return chk_end();
}
