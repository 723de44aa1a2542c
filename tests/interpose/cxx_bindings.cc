// cxx_bindings.cc - the MPI:: bindings, directly and through a library: communicators, reductions, a message in a ring.
#include <iostream>

#include "ring.h"

int main(int argc, char **argv)
{
	MPI::Init(argc, argv);
	int rank = MPI::COMM_WORLD.Get_rank(), size = MPI::COMM_WORLD.Get_size();
	MPI::Intracomm half = MPI::COMM_WORLD.Split(rank % 2, rank);
	int sum = 0, all = ring_sum(MPI::COMM_WORLD, rank);
	half.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
	std::cout << "cxx rank " << rank << " of " << size << " clean " << ring_clean() << " all " << all << " half " << sum << "\n" << std::flush;
	half.Free();
	MPI::Finalize();
	return 0;
}
