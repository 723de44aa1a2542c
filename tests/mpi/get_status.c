/*
 * get_status.c - MPI_Request_get_status_any, _some and _all (MPI-4.1): requests of all kinds are looked at, none is completed by that.
 * A buffer that is attached to a communicator (MPI-4.1) is flushed and comes back.  If a rank's MPI is older it says "get_status: skipped".
 */
#include "check.h"

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)

/* The four requests of a rank: null, a persistent one that is not started, and receives from both neighbours in the ring. */
static void look(MPI_Request req[4], int left, int right)
{
	int flag, index, count, at[4];
	MPI_Status st, all[4];

	MPI_Request_get_status_any(2, req, &index, &flag, &st);
	CHECK(flag && index == MPI_UNDEFINED);
	CHECK_EMPTY(&st);
	MPI_Request_get_status_some(2, req, &count, at, all);
	CHECK_EQ(count, MPI_UNDEFINED);
	MPI_Request_get_status_all(2, req, &flag, all);
	CHECK_EQ(flag, 1);
	do
		MPI_Request_get_status_all(4, req, &flag, all);
	while (!flag);
	CHECK_EMPTY(&all[0]);
	CHECK_EMPTY(&all[1]);
	CHECK_STATUS(&all[2], left, 7, MPI_INT, 1);
	CHECK_STATUS(&all[3], right, 8, MPI_INT, 1);
	MPI_Request_get_status_any(4, req, &index, &flag, &st);
	CHECK(flag && index == 2);
	CHECK_STATUS(&st, left, 7, MPI_INT, 1);
	MPI_Request_get_status_some(4, req, &count, at, all);
	CHECK(count == 2 && at[0] == 2 && at[1] == 3);
	CHECK_STATUS(&all[1], right, 8, MPI_INT, 1);
	CHECK(req[2] != MPI_REQUEST_NULL && req[3] != MPI_REQUEST_NULL);
}

static void ring(void)
{
	int left = (chk_rank + chk_size - 1) % chk_size, right = (chk_rank + 1) % chk_size;
	int from[3] = { -1, -1, -1 }, flag, index;
	MPI_Request req[4] = { MPI_REQUEST_NULL };
	MPI_Status st;

	MPI_Recv_init(&from[2], 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &req[1]);
	MPI_Irecv(&from[0], 1, MPI_INT, left, 7, MPI_COMM_WORLD, &req[2]);
	MPI_Irecv(&from[1], 1, MPI_INT, right, 8, MPI_COMM_WORLD, &req[3]);
	MPI_Request_get_status_any(4, req, &index, &flag, &st);
	CHECK(!flag && index == MPI_UNDEFINED);
	chk_barrier(MPI_COMM_WORLD);
	MPI_Send(&chk_rank, 1, MPI_INT, right, 7, MPI_COMM_WORLD);
	MPI_Send(&chk_rank, 1, MPI_INT, left, 8, MPI_COMM_WORLD);
	look(req, left, right);
	MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
	CHECK(from[0] == left && from[1] == right && from[2] == -1);
	MPI_Request_free(&req[1]);
}

static void buffers(void)
{
	char room[sizeof(int) + MPI_BSEND_OVERHEAD], *back = NULL;
	int right = (chk_rank + 1) % chk_size, got = -1, size = 0;

	CHECK_EQ(MPI_Comm_attach_buffer(MPI_COMM_WORLD, room, (int)sizeof room), MPI_SUCCESS);
	for (int i = 0; i < 20; i++) {
		MPI_Bsend(&i, 1, MPI_INT, right, 10, MPI_COMM_WORLD);
		MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK_EQ(got, i);
		CHECK_EQ(MPI_Comm_flush_buffer(MPI_COMM_WORLD), MPI_SUCCESS);
	}
	CHECK_EQ(MPI_Comm_detach_buffer(MPI_COMM_WORLD, &back, &size), MPI_SUCCESS);
	CHECK(back == room && size == (int)sizeof room);
}

#define HAVE 1
#else
#define HAVE 0

static void ring(void)
{
}

static void buffers(void)
{
}
#endif

int main(int argc, char **argv)
{
	int have = HAVE, all = 0;

	chk_begin(&argc, &argv, "get_status", 2);
	MPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (!all) {
		if (chk_rank == 0)
			printf("get_status: skipped, the MPI of some rank is older than 4.1\n");
		return MPI_Finalize();
	}
	ring();
	buffers();
	return chk_end();
}
