/* asp: all-pairs shortest paths by Floyd's algorithm, rows in blocks over the ranks, one broadcast of a row for each vertex; each rank compares its
 * rows with those of the whole problem, computed alone. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { N = 96, FAR = 1 << 20 };

static int whole[N][N], mine[N][N], row[N];

/* A third of the edges are there. */
static int edge(int i, int j)
{
	unsigned x = (unsigned)(i * N + j) * 2654435761u;

	x ^= x >> 15;
	return i == j ? 0 : x % 3 ? FAR : 1 + (int)(x / 3 % 97);
}

static void relax(int *to, const int *by, int k)
{
	for (int j = 0; j < N; j++)
		if (to[k] + by[j] < to[j])
			to[j] = to[k] + by[j];
}

int main(int argc, char **argv)
{
	int r, n, wrong = 0, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			whole[i][j] = mine[i][j] = edge(i, j);
	for (int k = 0, owner = 0; k < N; k++) {
		while (k >= N * (owner + 1) / n)
			owner++;
		if (r == owner)
			memcpy(row, mine[k], sizeof row);
		MPI_Bcast(row, N, MPI_INT, owner, MPI_COMM_WORLD);
		for (int i = N * r / n; i < N * (r + 1) / n; i++)
			relax(mine[i], row, k);
	}
	for (int k = 0; k < N; k++)
		for (int i = 0; i < N; i++)
			relax(whole[i], whole[k], k);
	for (int i = N * r / n; i < N * (r + 1) / n; i++)
		for (int j = 0; j < N; j++)
			wrong += mine[i][j] != whole[i][j];
	MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (r == 0)
		printf("asp: %d ranks, %d distances wrong\n", n, all);
	MPI_Finalize();
	return 0;
}
