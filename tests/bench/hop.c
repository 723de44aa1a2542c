/* hop.c: a message to and fro between the first and the last rank, so often that what one costs can be counted (where.py).
 * usage: hop BYTES HOPS
 * Prints "us VALUE": the mean of a hop, and "between A B": when it began and ended, CLOCK_MONOTONIC in seconds.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	int rank, size, bytes = argc > 2 ? atoi(argv[1]) : 1, hops = argc > 2 ? atoi(argv[2]) : 10000;
	char *buf = calloc(1, (size_t)bytes + 1);
	double start;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Barrier(MPI_COMM_WORLD);
	start = now();
	for (int i = 0; i < hops; i++) {
		int to = i % 2 ? 0 : size - 1;

		if (rank == size - 1 - to)
			MPI_Send(buf, bytes, MPI_CHAR, to, 1, MPI_COMM_WORLD);
		else if (rank == to)
			MPI_Recv(buf, bytes, MPI_CHAR, size - 1 - to, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (rank == 0)
		printf("us %.3f\nbetween %.6f %.6f\n", (now() - start) / hops * 1e6, start, now());
	MPI_Finalize();
	free(buf);
	return 0;
}
