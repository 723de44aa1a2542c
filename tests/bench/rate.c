/* rate.c: windows of messages from the lower half of the ranks to the upper half, over a sweep of sizes (as OSU's osu_mbw_mr does).
 * usage: rate [window [milliseconds per size [SIZE ...]]]
 * Prints lines "BYTES messages/s", all pairs together; the median of 5 runs of each size.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define RUNS 5

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void rounds(int sending, int peer, int n, int window, int bytes, char *buf, MPI_Request *req)
{
	char c = 0;

	for (int k = 0; k < n; k++) {
		for (int i = 0; i < window; i++) {
			char *at = buf + (size_t)i * (size_t)bytes;

			if (sending)
				MPI_Isend(at, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &req[i]);
			else
				MPI_Irecv(at, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &req[i]);
		}
		MPI_Waitall(window, req, MPI_STATUSES_IGNORE);
		if (sending)
			MPI_Recv(&c, 1, MPI_CHAR, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(&c, 1, MPI_CHAR, peer, 2, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	static const int sweep[] = { 8, 64, 256, 512, 1024, 1900, 2048, 4096, 8192, 16384, 32768, 65536,
		131072, 262144, 524288, 1048576 };
	int rank, size, window = argc > 1 ? atoi(argv[1]) : 64, ms = argc > 2 ? atoi(argv[2]) : 100;
	int nsizes = argc > 3 ? argc - 3 : (int)(sizeof sweep / sizeof sweep[0]);
	MPI_Request *req = malloc((size_t)window * sizeof *req);

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int s = 0; s < nsizes; s++) {
		int bytes = argc > 3 ? atoi(argv[3 + s]) : sweep[s], half = size / 2, n = 1;
		int peer = rank < half ? rank + half : rank - half;
		char *buf = calloc((size_t)window, (size_t)bytes);
		double rate[RUNS], t;

		for (int run = -2; run < RUNS;
			run++) { /* two to warm up, and to find how many rounds fit the time */
			MPI_Barrier(MPI_COMM_WORLD);
			t = MPI_Wtime();
			if (rank < 2 * half)
				rounds(rank < half, peer, n, window, bytes, buf, req);
			MPI_Barrier(MPI_COMM_WORLD);
			t = MPI_Wtime() - t;
			if (run < 0)
				n = t > 0 && ms / 1e3 / t * n >= 1 ? (int)(ms / 1e3 / t * n) : 1;
			else
				rate[run] = (double)n * window * half / t;
			MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
		}
		qsort(rate, RUNS, sizeof *rate, by_value);
		if (rank == 0)
			printf("%d %.0f\n", bytes, rate[RUNS / 2]);
		fflush(stdout);
		free(buf);
	}
	free(req);
	MPI_Finalize();
	return 0;
}
