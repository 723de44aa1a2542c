/*
 * traffic.c - a known amount of traffic, for the test of the statistics: rank 0 sends 10 x 1000 and 3 x 1,000,000 bytes to the
 * last rank; then 7 broadcasts of 64 bytes from rank 0, 4 allreduces of 8 bytes and 2 barriers.
 */
#include "check.h"

int main(int argc, char **argv)
{
	static char buf[1000000];
	double x, sum;

	chk_begin(&argc, &argv, "traffic", 2);
	for (int i = 0; i < 13; i++) {
		int n = i < 10 ? 1000 : 1000000;

		if (chk_rank == 0) {
			chk_fill(buf, (size_t)n, (uint64_t)i);
			MPI_Send(buf, n, MPI_BYTE, chk_size - 1, i, MPI_COMM_WORLD);
		} else if (chk_rank == chk_size - 1) {
			MPI_Recv(buf, n, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK_BYTES(buf, (size_t)n, (uint64_t)i);
		}
	}
	for (int i = 0; i < 7; i++)
		MPI_Bcast(buf, 64, MPI_BYTE, 0, MPI_COMM_WORLD);
	for (int i = 0; i < 4; i++) {
		x = chk_rank + i;
		MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		CHECK(sum == chk_size * (chk_size - 1) / 2 + chk_size * i);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	return chk_end();
}
