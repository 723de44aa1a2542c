/* children.c - shows the environment of a rank's child and what a command of the rank's returns: children COMMAND. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, size, sum, status = 0;

	if (getenv("PACX_KEY"))
		printf("the key is here\n");
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	fflush(stdout);
	if (rank == size - 1) {
		pid_t child;

		if (system("env | sed 's/^/child: /'; exit 7") >> 8 != 7)
			printf("system is wrong\n");
		if ((child = fork()) == 0)
			exit(5);
		if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5)
			printf("fork is wrong\n");
		status = argc > 1 ? system(argv[1]) : 0;
	}
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == size - 1)
		printf("status %d sum %d of %d\n", WEXITSTATUS(status), sum, size);
	MPI_Finalize();
	return 0;
}
