/*
 * misfit.c WAY - element 3 of what rank 0, of 64 bits, sends is a long that the last rank, of 32 bits, cannot hold: the job ends with an
 * error that names it, whichever way the number goes.
 */
#include "check.h"

#define N 5

static long out[N], in[16 * N];
static int last;

static void received(const char *way)
{
	MPI_Request req[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };

	if (strcmp(way, "blocking") == 0) {
		MPI_Recv(in, N, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (strcmp(way, "any_source") == 0) {
		MPI_Recv(in, N, MPI_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (strcmp(way, "nonblocking") == 0) {
		MPI_Irecv(in, N, MPI_LONG, 0, 1, MPI_COMM_WORLD, &req[0]);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	} else if (strcmp(way, "waitall") == 0) {
		MPI_Irecv(in, N, MPI_LONG, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &req[1]);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	} else if (strcmp(way, "persistent") == 0) {
		MPI_Recv_init(in, N, MPI_LONG, 0, 1, MPI_COMM_WORLD, &req[0]);
		MPI_Start(&req[0]);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	} else if (strcmp(way, "matched") == 0) {
		MPI_Message m;

		MPI_Mprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE);
		MPI_Mrecv(in, N, MPI_LONG, &m, MPI_STATUS_IGNORE);
	}
}

static void collective(const char *way)
{
	MPI_Request req;

	if (strcmp(way, "bcast") == 0) {
		MPI_Bcast(out, N, MPI_LONG, 0, MPI_COMM_WORLD);
	} else if (strcmp(way, "ibcast") == 0) {
		MPI_Ibcast(out, N, MPI_LONG, 0, MPI_COMM_WORLD, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	} else if (strcmp(way, "gather") == 0) {
		MPI_Gather(out, N, MPI_LONG, in, N, MPI_LONG, last, MPI_COMM_WORLD);
	} else if (strcmp(way, "allgather") == 0) {
		MPI_Allgather(out, N, MPI_LONG, in, N, MPI_LONG, MPI_COMM_WORLD);
	} else if (strcmp(way, "alltoall") == 0) {
		MPI_Alltoall(out, 1, MPI_LONG, in, 1, MPI_LONG, MPI_COMM_WORLD);
	} else if (strcmp(way, "allreduce") == 0) {
		MPI_Allreduce(out, in, N, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
	}
}

static void one_sided(const char *way)
{
	MPI_Win win;

	MPI_Win_create(in, sizeof in, sizeof *in, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	if (strcmp(way, "put") == 0 && chk_rank == 0)
		MPI_Put(out, N, MPI_LONG, last, 0, N, MPI_LONG, win);
	if (strcmp(way, "accumulate") == 0 && chk_rank == 0)
		MPI_Accumulate(out, N, MPI_LONG, last, 0, N, MPI_LONG, MPI_REPLACE, win);
	if (strcmp(way, "get") == 0 && chk_rank == 0)
		memcpy(in, out, sizeof out);
	MPI_Win_fence(0, win);
	if (strcmp(way, "get") == 0 && chk_rank == last)
		MPI_Get(out, N, MPI_LONG, 0, 0, N, MPI_LONG, win);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";

	chk_begin(&argc, &argv, "misfit", 2);
	last = chk_size - 1;
	if (chk_rank == 0 && sizeof *out == 8)
		out[3] = (long)(1ll << 40);
	collective(way);
	if (strcmp(way, "put") == 0 || strcmp(way, "get") == 0 || strcmp(way, "accumulate") == 0)
		one_sided(way);
	else if (chk_rank == 0)
		MPI_Send(out, N, MPI_LONG, last, 1, MPI_COMM_WORLD);
	else if (chk_rank == last)
		received(way);
	return chk_end(); /* not reached where they are unlike */
}
