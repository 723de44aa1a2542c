/*
 * threads - with MPI_THREAD_MULTIPLE on every rank: three threads per rank, each with its own communicator, exchange
 * with all ranks at once.  Otherwise it says "threads: skipped" before its line of no checks.  Argument: rounds (10).
 */
#include "check.h"
#include <pthread.h>

enum { THREADS = 3 };

struct job {
	MPI_Comm c;
	int t, rounds;
	pthread_t id;
};

static void *work(void *arg)
{
	struct job *j = arg;
	int n = chk_size, r = chk_rank, most = 70000, count;
	char *out = chk_alloc((size_t)most), **in = chk_alloc(sizeof *in * (size_t)n);
	MPI_Request *q = chk_alloc(sizeof *q * 2 * (size_t)n);
	MPI_Status *st = chk_alloc(sizeof *st * 2 * (size_t)n);

	for (int i = 0; i < n; i++)
		in[i] = chk_alloc((size_t)most);
	for (int k = 0; k < j->rounds; k++) {
		int size = (int)(chk_seed(j->t, k, 0, 0) % (uint64_t)(k % 4 == 3 ? most : 500)), sum = 0;

		for (int i = 0; i < n; i++)
			MPI_Irecv(in[i], most, MPI_BYTE, k % 2 ? MPI_ANY_SOURCE : i, k, j->c, &q[i]);
		chk_fill(out, (size_t)size, chk_seed(r, j->t, k, 0));
		for (int i = 0; i < n; i++)
			MPI_Isend(out, size, MPI_BYTE, i, k, j->c, &q[n + i]);
		MPI_Waitall(2 * n, q, st);
		for (int i = 0; i < n; i++) {
			CHECK_EQ(st[i].MPI_TAG, k);
			MPI_Get_count(&st[i], MPI_BYTE, &count);
			CHECK_EQ(count, size);
			CHECK_BYTES(in[i], (size_t)size, chk_seed(st[i].MPI_SOURCE, j->t, k, 0));
			sum += st[i].MPI_SOURCE;
		}
		CHECK_EQ(sum, n * (n - 1) / 2);
		if (k % 5 == 0) {
			MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, j->c);
			CHECK_EQ(sum, n * (n - 1) / 2);
		}
	}
	for (int i = 0; i < n; i++)
		free(in[i]);
	free(in);
	free(out);
	free(q);
	free(st);
	return NULL;
}

int main(int argc, char **argv)
{
	struct job j[THREADS];
	int provided, least;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	chk_start("threads", 1);
	MPI_Allreduce(&provided, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (least < MPI_THREAD_MULTIPLE) {
		if (chk_rank == 0)
			printf("threads: skipped, MPI_THREAD_MULTIPLE is not provided on every rank\n");
		return chk_end();
	}
	for (int t = 0; t < THREADS; t++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &j[t].c);
		j[t].t = t;
		j[t].rounds = (int)chk_arg(argc, argv, 1, 10);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_create(&j[t].id, NULL, work, &j[t]);
	for (int t = 0; t < THREADS; t++)
		pthread_join(j[t].id, NULL);
	for (int t = 0; t < THREADS; t++)
		MPI_Comm_free(&j[t].c);
	return chk_end();
}
