/* latency.c: one-way time and streaming rate between the first and the last rank; all others wait in a barrier
 * that is never reached before the end. usage: latency [rounds [MiB streamed]]
 * Prints lines "NAME VALUE": lat_us (median of rounds/2), mbs_1m, mbs_16m (MB/s).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double latency(int rank, int peer, int rounds)
{
	double *t = malloc((size_t)rounds * sizeof *t), m;
	char c = 0;

	for (int i = 0; i < rounds; i++) {
		double start = MPI_Wtime();

		if (rank == 0) {
			MPI_Send(&c, 1, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
			MPI_Recv(&c, 1, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(&c, 1, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(&c, 1, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
		}
		t[i] = (MPI_Wtime() - start) / 2 * 1e6;
	}
	qsort(t, (size_t)rounds, sizeof *t, by_value);
	m = t[rounds / 2];
	free(t);
	return m;
}

/* n messages of `bytes`, then one byte back. */
static double stream(int rank, int peer, int bytes, int n)
{
	char *buf = calloc(1, (size_t)bytes), c = 0;
	double start = MPI_Wtime(), s;

	for (int i = 0; i < n; i++) {
		if (rank == 0)
			MPI_Send(buf, bytes, MPI_CHAR, peer, 2, MPI_COMM_WORLD);
		else
			MPI_Recv(buf, bytes, MPI_CHAR, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (rank == 0)
		MPI_Recv(&c, 1, MPI_CHAR, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&c, 1, MPI_CHAR, peer, 3, MPI_COMM_WORLD);
	s = MPI_Wtime() - start;
	free(buf);
	return (double)bytes * n / s / 1e6;
}

int main(int argc, char **argv)
{
	int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 4000, mib = argc > 2 ? atoi(argv[2]) : 256;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0 || rank == size - 1) {
		int peer = rank == 0 ? size - 1 : 0;
		double lat, m1, m16;

		latency(rank, peer, rounds / 4 + 1);
		lat = latency(rank, peer, rounds);
		stream(rank, peer, 1 << 20, 16);
		m1 = stream(rank, peer, 1 << 20, mib);
		m16 = stream(rank, peer, 16 << 20, mib / 16 + 1);
		if (rank == 0)
			printf("lat_us %.3f\nmbs_1m %.3f\nmbs_16m %.3f\n", lat, m1, m16);
	}
	MPI_Finalize();
	return 0;
}
