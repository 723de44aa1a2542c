/*
 * refused.c - what a communicator over several machines may not offer (windows, processes started later, ports) either works
 * or raises an error through the right handler; then everything else still works. Never a hang.
 */
#include "check.h"

/* Success, or "unsupported": plain MPI and a single site give the former, several sites the latter. */
static int allowed(int rc, int *refused)
{
	*refused = rc != MPI_SUCCESS;
	return rc == MPI_SUCCESS || chk_class(rc) == MPI_ERR_UNSUPPORTED_OPERATION;
}

int main(int argc, char **argv)
{
	char port[MPI_MAX_PORT_NAME];
	double mem[4];
	MPI_Win win;
	int rc, refused, sum = 0, one = 1;

	chk_begin(&argc, &argv, "refused", 2);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK(allowed(MPI_Win_create(mem, sizeof mem, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), &refused));
	if (!refused)
		MPI_Win_free(&win);
	CHECK(allowed(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win), &refused));
	if (!refused)
		MPI_Win_free(&win);
	/* a port or a name that only some ranks can reach is none; Debian's MPICH 4.0 (ch4:ucx) has none at all */
	rc = MPI_Open_port(MPI_INFO_NULL, port);
	CHECK(allowed(rc, &refused) || chk_class(rc) == MPI_ERR_OTHER);
	if (!refused)
		MPI_Close_port(port);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK_EQ(sum, chk_size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	return chk_end();
}
