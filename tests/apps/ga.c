/* ga.c - a program of Global Arrays: every rank puts rows, adds to all rows and reads everything; a counter is drawn from. */
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <stdio.h>

#define N    40
#define DRAW 10

int main(int argc, char **argv)
{
	int dims[2] = { N, N }, first[2] = { 0, 0 }, last[2] = { N - 1, N - 1 }, ld[1] = { N },
	    one_dim[1] = { 1 };
	int me, n, bad = 0, a, counter;
	double row[N], all[N * N], one = 1;
	long drawn = 0;

	MPI_Init(&argc, &argv);
	GA_Initialize();
	MA_init(C_DBL, 100000, 100000);
	me = GA_Nodeid();
	n = GA_Nnodes();
	a = NGA_Create(C_DBL, 2, dims, "a", NULL);
	GA_Zero(a);
	for (int i = me; i < N; i += n) {
		int lo[2] = { i, 0 }, hi[2] = { i, N - 1 };

		for (int j = 0; j < N; j++)
			row[j] = i * 100 + j;
		NGA_Put(a, lo, hi, row, ld);
	}
	GA_Sync();
	for (int j = 0; j < N; j++)
		row[j] = 1;
	for (int i = 0; i < N; i++) {
		int lo[2] = { i, 0 }, hi[2] = { i, N - 1 };

		NGA_Acc(a, lo, hi, row, ld, &one);
	}
	GA_Sync();
	NGA_Get(a, first, last, all, ld);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			bad += all[i * N + j] != i * 100 + j + n;
	counter = NGA_Create(C_LONG, 1, one_dim, "counter", NULL);
	GA_Zero(counter);
	GA_Sync();
	for (int i = 0; i < DRAW; i++)
		drawn += NGA_Read_inc(counter, first, 1);
	MPI_Allreduce(MPI_IN_PLACE, &drawn, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (me == 0)
		printf("%d ranks, %d values wrong, counter %s\n", n, bad,
			drawn == (long)DRAW * n * (DRAW * n - 1) / 2 ? "right" : "wrong");
	GA_Terminate();
	MPI_Finalize();
	return bad != 0;
}
