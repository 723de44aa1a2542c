// boost.cc - Boost.MPI: serialized objects and reductions.
#include <boost/mpi.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace mpi = boost::mpi;

int main(int argc, char **argv)
{
	mpi::environment env(argc, argv);
	mpi::communicator world;
	int rank = world.rank(), size = world.size(), sum = mpi::all_reduce(world, rank, std::plus<int>());
	std::vector<std::string> words;
	std::string got;

	mpi::all_gather(world, std::string(rank + 1, 'x'), words);
	mpi::request r = world.isend((rank + 1) % size, 7, words);
	words.clear();
	world.recv((rank + size - 1) % size, 7, words);
	r.wait();
	mpi::communicator half = world.split(rank % 2);
	std::cout << "boost rank " << rank << " of " << size << " sum " << sum << " last " << words.at(size - 1).size() << " half " << half.size()
		  << "\n" << std::flush;
	return 0;
}
