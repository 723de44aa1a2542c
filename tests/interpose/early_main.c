/* early_main.c - linked with early.c as a library. */
#include <mpi.h>
#include <stdio.h>

extern int early_ok, early_init;

int main(int argc, char **argv)
{
	int rank, size, sum;

	if (!early_init)
		MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("early %s: rank %d of %d sum %d\n", early_ok ? "right" : "wrong", rank, size, sum);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
