// cxx_plain.cc - C++ with the C binding, linked with the C++ wrapper.
#include <iostream>
#include <sstream>
#include <mpi.h>

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	/* One write: MPICH makes stdout unbuffered, and pieces would mingle with those of other ranks, as natively. */
	std::ostringstream line;
	line << "plain rank " << rank << " of " << size << "\n";
	std::cout << line.str() << std::flush;
	MPI_Finalize();
	return 0;
}
