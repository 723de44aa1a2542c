/*
 * refused.c - what a communicator over several machines may not offer (windows, files, intercommunicators, processes started
 * later) either works or raises an error through the right handler; then everything else still works. Never a hang.
 */
#include "check.h"

#include <unistd.h>

/* Success, or "unsupported": plain MPI and a single site give the former, several sites the latter. */
static int allowed(int rc, int *refused)
{
	*refused = rc != MPI_SUCCESS;
	return rc == MPI_SUCCESS || chk_class(rc) == MPI_ERR_UNSUPPORTED_OPERATION;
}

int main(int argc, char **argv)
{
	char name[200];
	double mem[4];
	MPI_Win win;
	MPI_File file;
	int refused, sum = 0, one = 1;

	chk_begin(&argc, &argv, "refused", 2);
	/* files: the default handler of MPI_FILE_NULL returns */
	snprintf(name, sizeof name, "/tmp/pacx-refused-%ld", (long)(chk_rank == 0 ? getpid() : 0));
	MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
	CHECK(allowed(
		MPI_File_open(MPI_COMM_WORLD, name,
			MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file),
		&refused));
	if (refused)
		CHECK(file == MPI_FILE_NULL);
	else
		MPI_File_close(&file);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK(allowed(MPI_Win_create(mem, sizeof mem, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), &refused));
	if (!refused)
		MPI_Win_free(&win);
	CHECK(allowed(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win), &refused));
	if (!refused)
		MPI_Win_free(&win);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK_EQ(sum, chk_size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	return chk_end();
}
