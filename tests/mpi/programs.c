/*
 * programs - prints what MPI_COMM_WORLD's attributes say of the job, as each rank sees it, in C and through a duplicate: for
 * tests that start several programs.
 */
#include "check.h"

static int value(MPI_Comm comm, int key)
{
	int *v, found = 0;

	MPI_Comm_get_attr(comm, key, (void *)&v, &found);
	return found ? *v : -999;
}

int main(int argc, char **argv)
{
	static const int keys[] = { MPI_APPNUM, MPI_UNIVERSE_SIZE, MPI_TAG_UB, MPI_WTIME_IS_GLOBAL, MPI_HOST,
		MPI_IO };
	int mine[6], token = 0, got;
	MPI_Comm d, app;

	chk_begin(&argc, &argv, "programs", 1);
	MPI_Comm_dup(MPI_COMM_WORLD, &d);
	for (int i = 0; i < 6; i++) {
		mine[i] = value(MPI_COMM_WORLD, keys[i]);
		CHECK_EQ(value(d, keys[i]), mine[i]);
	}
	MPI_Comm_split(MPI_COMM_WORLD, mine[0], chk_rank, &app);
	MPI_Comm_size(app, &got);
	if (chk_rank > 0) /* one after the other */
		MPI_Recv(&token, 1, MPI_INT, chk_rank - 1, 1, d, MPI_STATUS_IGNORE);
	printf("rank %d appnum %d of %d universe %d global %d host %s io %s\n", chk_rank, mine[0], got,
		mine[1], mine[3], mine[4] == MPI_PROC_NULL ? "none" : "?",
		mine[5] == MPI_ANY_SOURCE ? "any" : "?");
	fflush(stdout);
	if (chk_rank + 1 < chk_size)
		MPI_Send(&token, 1, MPI_INT, chk_rank + 1, 1, d);
	MPI_Comm_free(&app);
	MPI_Comm_free(&d);
	return chk_end();
}
