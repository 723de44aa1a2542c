/* plug.c - a plug-in that uses MPI; its constructor does, too, when MPI runs. plug_rank: as main should see it. */
#include <mpi.h>

int plug_early = -1;

__attribute__((constructor)) static void up(void)
{
	int on;

	MPI_Initialized(&on);
	if (on)
		MPI_Comm_rank(MPI_COMM_WORLD, &plug_early);
}

void plug_rank(int *early, int *rank, int *size)
{
	int (*volatile pointer)(MPI_Comm, int *) = MPI_Comm_size;

	*early = plug_early;
	MPI_Comm_rank(MPI_COMM_WORLD, rank);
	pointer(MPI_COMM_WORLD, size);
}
