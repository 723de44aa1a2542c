/*
 * files_rep.c - files in the data representation external32: what any rank writes, any rank reads, and its bytes are the standard's; partial
 * reads, pointers, views with gaps, the extents of types, ordered access.
 *
 * usage: files_rep [DIRECTORY]
 */
#include "check.h"

#include <unistd.h>

#define N 500 /* numbers of a rank */

static char path[300];

static double value(int r, int i)
{
	return (r + 1) * 1000 + i / 4.0;
}

static MPI_File open_with(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *rep)
{
	MPI_File f = MPI_FILE_NULL;

	CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f),
		MPI_SUCCESS);
	if (f == MPI_FILE_NULL)
		MPI_Abort(MPI_COMM_WORLD, 97);
	CHECK_EQ(MPI_File_set_view(f, disp, etype, filetype, rep, MPI_INFO_NULL), MPI_SUCCESS);
	return f;
}

static void count_is(MPI_Status *st, MPI_Datatype t, int n)
{
	int got = -1;

	MPI_Get_count(st, t, &got);
	CHECK_EQ(got, n);
}

/* Everybody writes doubles one after the other, and reads all. */
static void doubles(void)
{
	MPI_File f = open_with(0, MPI_DOUBLE, MPI_DOUBLE, "external32");
	double out[N], in[N];
	char rep[MPI_MAX_DATAREP_STRING] = "";
	MPI_Datatype etype, filetype;
	MPI_Offset at;
	MPI_Status st;

	for (int i = 0; i < N; i++)
		out[i] = value(chk_rank, i);
	MPI_File_get_view(f, &at, &etype, &filetype, rep);
	CHECK(strcmp(rep, "external32") == 0);
	CHECK_EQ(MPI_File_write_at_all(f, chk_rank * N, out, N, MPI_DOUBLE, &st), MPI_SUCCESS);
	count_is(&st, MPI_DOUBLE, N);
	MPI_File_sync(f);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int r = 0; r < chk_size; r++) {
		int bad = 0;

		memset(in, 0, sizeof in);
		CHECK_EQ(MPI_File_read_at(f, r * N, in, N, MPI_DOUBLE, &st), MPI_SUCCESS);
		count_is(&st, MPI_DOUBLE, N);
		for (int i = 0; i < N; i++)
			bad += in[i] != value(r, i);
		CHECK_EQ(bad, 0);
	}
	/* Ten numbers are left. */
	CHECK_EQ(MPI_File_read_at(f, chk_size * N - 10, in, N, MPI_DOUBLE, &st), MPI_SUCCESS);
	count_is(&st, MPI_DOUBLE, 10);
	CHECK(in[9] == value(chk_size - 1, N - 1));
	MPI_File_seek(f, 5, MPI_SEEK_SET);
	MPI_File_read(f, in, 3, MPI_DOUBLE, &st);
	MPI_File_get_position(f, &at);
	CHECK_EQ(at, 8);
	CHECK(in[2] == value(0, 7));
	MPI_File_seek(f, -1, MPI_SEEK_END);
	MPI_File_read(f, in, 1, MPI_DOUBLE, &st);
	CHECK(in[0] == value(chk_size - 1, N - 1));
	MPI_File_close(&f);
}

/* The bytes of the first numbers. */
static void bytes(void)
{
	static const unsigned char first[16] = { 0x40, 0x8f, 0x40, 0, 0, 0, 0, 0, 0x40, 0x8f, 0x42, 0, 0, 0,
		0, 0 };
	MPI_File f = open_with(0, MPI_BYTE, MPI_BYTE, "native");
	unsigned char b[16];
	MPI_Offset size;

	MPI_File_read_at(f, 0, b, 16, MPI_BYTE, MPI_STATUS_IGNORE);
	CHECK(memcmp(b, first, 16) == 0); /* 1000, 1000.25 */
	MPI_File_get_size(f, &size);
	CHECK_EQ(size, 8ll * N * chk_size);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_close(&f);
}

/* Rank r has each chk_size-th pair of ints, from a buffer with gaps. */
static void gaps(void)
{
	MPI_Datatype filetype, pair, buffer;
	int out[3 * N], in[3 * N], bad = 0;
	MPI_Aint extent = 0;
	MPI_Request req;
	MPI_Status st;
	MPI_File f;

	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_create_resized(pair, 0, 8 * chk_size, &filetype);
	MPI_Type_vector(N, 2, 3, MPI_INT, &buffer);
	MPI_Type_commit(&filetype);
	MPI_Type_commit(&buffer);
	f = open_with(8 * chk_rank, MPI_INT, filetype, "external32");
	MPI_File_get_type_extent(f, MPI_INT, &extent);
	CHECK_EQ(extent, 4);
	for (int i = 0; i < 3 * N; i++)
		out[i] = chk_rank * 10000 - i;
	memset(in, 0, sizeof in);
	MPI_File_iwrite_at(f, 0, out, 1, buffer, &req);
	MPI_Wait(&req, &st);
	count_is(&st, MPI_INT, 2 * N);
	MPI_File_sync(f);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_read_at_all(f, 0, in, 1, buffer, &st);
	count_is(&st, buffer, 1);
	for (int i = 0; i < 3 * N; i++)
		bad += in[i] != (i % 3 == 2 ? 0 : out[i]);
	MPI_File_close(&f);
	f = open_with(0, MPI_INT, MPI_INT, "external32");
	MPI_File_read_at_all(f, 0, in, 2 * chk_size, MPI_INT, &st);
	for (int r = 0; r < chk_size; r++)
		bad += in[2 * r] != r * 10000 || in[2 * r + 1] != r * 10000 - 1;
	CHECK_EQ(bad, 0);
	MPI_File_close(&f);
	MPI_Type_free(&pair);
	MPI_Type_free(&filetype);
	MPI_Type_free(&buffer);
}

/* Ordered: rank r writes r + 1 shorts. */
static void ordered(void)
{
	MPI_File f = open_with(0, MPI_SHORT, MPI_SHORT, "external32");
	short out[64], in[64];
	int bad = 0, at = 0;

	for (int i = 0; i < 64; i++)
		out[i] = (short)(chk_rank * 100 + i);
	CHECK_EQ(MPI_File_write_ordered(f, out, chk_rank + 1, MPI_SHORT, MPI_STATUS_IGNORE), MPI_SUCCESS);
	MPI_File_sync(f);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_read_at(f, 0, in, chk_size * (chk_size + 1) / 2, MPI_SHORT, MPI_STATUS_IGNORE);
	for (int r = 0; r < chk_size; r++)
		for (int i = 0; i <= r; i++)
			bad += in[at++] != r * 100 + i;
	CHECK_EQ(bad, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_close(&f);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "files_rep", 2);
	if (chk_rank == 0)
		snprintf(path, sizeof path, "%s/files_rep-%ld", argc > 1 ? argv[1] : "/tmp", (long)getpid());
	MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
	doubles();
	bytes();
	gaps();
	ordered();
	MPI_Barrier(MPI_COMM_WORLD);
	if (chk_rank == 0)
		CHECK_EQ(MPI_File_delete(path, MPI_INFO_NULL), MPI_SUCCESS);
	return chk_end();
}
