// ring.h - see ring.cc.
#include <mpi.h>

extern bool ring_left;
bool ring_clean();
int ring_sum(MPI::Intracomm comm, int value);
