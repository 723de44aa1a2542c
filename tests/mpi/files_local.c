/*
 * files_local.c - files of which each site has its own: every rank writes its numbers through an interleaved view, reads them back, and
 * leaves the file there. tests/apps/files_test.sh looks at what each site has got. usage: files_local PATH [absent]; PATH may differ
 * between the sites (not between the ranks of one). absent: the directory is missing at one of them, so that nobody may open it.
 */
#include "check.h"

#define N 100

int main(int argc, char **argv)
{
	int v[N];
	MPI_Datatype t;
	MPI_Offset at;
	MPI_File f;

	chk_begin(&argc, &argv, "files_local", 2);
	if (argc < 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	if (argc > 2) {
		CHECK_EQ(chk_class(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR,
				 MPI_INFO_NULL, &f)),
			MPI_ERR_NO_SUCH_FILE);
		CHECK(f == MPI_FILE_NULL);
		return chk_end();
	}
	CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR,
			 MPI_INFO_NULL, &f),
		MPI_SUCCESS);
	MPI_Type_vector(N, 1, chk_size, MPI_INT, &t);
	MPI_Type_commit(&t);
	MPI_File_set_view(f, (MPI_Offset)sizeof(int) * chk_rank, MPI_INT, t, "native", MPI_INFO_NULL);
	for (int i = 0; i < N; i++)
		v[i] = i * chk_size + chk_rank + 1;
	CHECK_EQ(MPI_File_write_all(f, v, N, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
	MPI_File_sync(f);
	memset(v, 0, sizeof v);
	CHECK_EQ(MPI_File_read_at_all(f, 0, v, N, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
	CHECK_EQ(v[0], chk_rank + 1);
	CHECK_EQ(v[N - 1], (N - 1) * chk_size + chk_rank + 1);
	/* the shared pointer is one for all */
	MPI_File_set_view(
		f, (MPI_Offset)sizeof(int) * N * chk_size, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
	v[0] = N * chk_size + chk_rank + 1;
	CHECK_EQ(MPI_File_write_ordered(f, v, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
	MPI_File_get_position_shared(f, &at);
	CHECK_EQ(at, chk_size);
	CHECK_EQ(MPI_File_close(&f), MPI_SUCCESS);
	MPI_Type_free(&t);
	return chk_end();
}
