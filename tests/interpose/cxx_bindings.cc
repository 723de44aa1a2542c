// cxx_bindings.cc - the MPI:: bindings, directly and through a library: communicators, reductions, a message in a ring.
#include <cstdio>

#include "ring.h"

int main(int argc, char **argv)
{
	MPI::Init(argc, argv);
	int rank = MPI::COMM_WORLD.Get_rank(), size = MPI::COMM_WORLD.Get_size();
	MPI::Intracomm half = MPI::COMM_WORLD.Split(rank % 2, rank);
	int sum = 0, all = ring_sum(MPI::COMM_WORLD, rank);
	half.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
	/* One write: MPICH makes stdout unbuffered, and the pieces of std::cout would mingle with those of other ranks, as natively. */
	std::printf("cxx rank %d of %d clean %d all %d half %d\n", rank, size, ring_clean(), all, sum);
	half.Free();
	MPI::Finalize();
	return 0;
}
