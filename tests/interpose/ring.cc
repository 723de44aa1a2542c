// ring.cc - a C++ library over the MPI:: bindings, with a global object that asks MPI when it is made and when it goes.
#include <mpi.h>
#include <vector>

#include "ring.h"

struct watch {
	bool clean;
	watch() : clean(!MPI::Is_initialized()) {}
	~watch() { ring_left = MPI::Is_initialized() && MPI::Is_finalized(); }
};

bool ring_left;
static watch watcher;

bool ring_clean() { return watcher.clean; }

int ring_sum(MPI::Intracomm comm, int value)
{
	int rank = comm.Get_rank(), size = comm.Get_size(), sum = 0;
	std::vector<int> all(size);

	comm.Allgather(&value, 1, MPI::INT, &all[0], 1, MPI::INT);
	for (int i = 0; i < size; i++)
		sum += all[i];
	MPI::Request r = comm.Isend(&sum, 1, MPI::INT, (rank + 1) % size, 3);
	int other = -1;
	MPI::Status st;
	comm.Recv(&other, 1, MPI::INT, MPI::ANY_SOURCE, 3, st);
	r.Wait();
	return other == sum && st.Get_source() == (rank + size - 1) % size ? sum : -1;
}
