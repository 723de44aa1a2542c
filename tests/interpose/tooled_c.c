/* tooled_c.c - five reductions for tool.c to see. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, x, sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	x = rank;
	for (int i = 0; i < 5; i++)
		MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d sum %d\n", rank, sum);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
