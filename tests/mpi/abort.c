/*
 * abort - rank argv[1] (default 0) calls MPI_Abort with code argv[2] (default 3) while the others wait for a message
 * that never comes.  Right if the job ends, with a status that is not 0; the line "abort: still here" must not be seen.
 * Argument 3: "exit" ends that rank by exit() instead, "kill" by SIGKILL, "error" by a fatal MPI error.
 */
#include "check.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int b = 0;

	chk_begin(&argc, &argv, "abort", 2);
	chk_barrier(MPI_COMM_WORLD);
	if (chk_rank == chk_arg(argc, argv, 1, 0) % chk_size) {
		int code = (int)chk_arg(argc, argv, 2, 3);

		if (argc > 3 && !strcmp(argv[3], "exit"))
			exit(code);
		if (argc > 3 && !strcmp(argv[3], "kill"))
			kill(getpid(), SIGKILL);
		if (argc > 3 && !strcmp(argv[3], "error"))
			MPI_Send(&b, 1, MPI_INT, chk_size + 1, 0, MPI_COMM_WORLD);
		MPI_Abort(MPI_COMM_WORLD, code);
	}
	MPI_Recv(&b, 1, MPI_INT, MPI_ANY_SOURCE, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	printf("abort: still here\n");
	return chk_end();
}
