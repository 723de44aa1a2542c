/*
 * files.c - MPI-IO on the world: every form of data access writes and reads back what other ranks have written, through the plain view
 * and through views; pointers, sizes, modes, errors, deletion. Plain MPI, one site and several must agree, wherever the file is.
 * usage: files [DIRECTORY]
 */
#include "check.h"

#include <unistd.h>

#include "file_ways.h"

static char path[300], other[320];

static MPI_File open_file(const char *name, int amode)
{
	MPI_File f = MPI_FILE_NULL;

	CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &f), MPI_SUCCESS);
	if (f == MPI_FILE_NULL)
		MPI_Abort(MPI_COMM_WORLD, 97);
	return f;
}

/* What is written by one rank is there for the others. */
static void settle(MPI_File f)
{
	CHECK_EQ(MPI_File_sync(f), MPI_SUCCESS);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(MPI_File_sync(f), MPI_SUCCESS);
}

/* Everybody's block of a phase is at its place; read at explicit offsets. */
static void check_blocks(MPI_File f, int phase)
{
	unsigned char b[BLOCK];
	MPI_Status st;

	settle(f);
	for (int i = 0; i < chk_size; i++) {
		int r = (chk_rank + i) % chk_size;

		CHECK_EQ(MPI_File_read_at(f, (MPI_Offset)r * BLOCK, b, BLOCK, MPI_BYTE, &st), MPI_SUCCESS);
		CHECK_BYTES(b, BLOCK, chk_seed(r, phase, 0, 0));
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void ways(MPI_File f)
{
	unsigned char b[BLOCK];
	MPI_Offset at;

	for (int way = 0; way < WAYS; way++) {
		int from = (chk_rank + 1) % chk_size;

		chk_fill(b, BLOCK, chk_seed(chk_rank, way, 0, 0));
		write_way(f, way, b);
		settle(f);
		read_way(f, way, from, b);
		CHECK_BYTES(b, BLOCK, chk_seed(from, way, 0, 0));
		if (way == OWN || way == ALL || way == IOWN) {
			MPI_File_get_position(f, &at);
			CHECK_EQ(at, (MPI_Offset)(from + 1) * BLOCK);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* Several nonblocking accesses at a time, completed together with messages. */
static void together(MPI_File f)
{
	unsigned char b[4][BLOCK / 4], got = 0;
	int right = (chk_rank + 1) % chk_size, left = (chk_rank + chk_size - 1) % chk_size;
	unsigned char say = (unsigned char)chk_rank;
	MPI_Request q[6];

	for (int i = 0; i < 4; i++) {
		chk_fill(b[i], BLOCK / 4, chk_seed(chk_rank, 50, i, 0));
		MPI_File_iwrite_at(f, mine() + i * (BLOCK / 4), b[i], BLOCK / 4, MPI_BYTE, &q[i]);
	}
	MPI_Irecv(&got, 1, MPI_BYTE, left, 5, MPI_COMM_WORLD, &q[4]);
	MPI_Isend(&say, 1, MPI_BYTE, right, 5, MPI_COMM_WORLD, &q[5]);
	CHECK_EQ(MPI_Waitall(6, q, MPI_STATUSES_IGNORE), MPI_SUCCESS);
	CHECK_EQ(got, left);
	settle(f);
	for (int i = 0; i < 4; i++)
		MPI_File_iread_at(
			f, (MPI_Offset)right * BLOCK + i * (BLOCK / 4), b[i], BLOCK / 4, MPI_BYTE, &q[i]);
	CHECK_EQ(MPI_Waitall(4, q, MPI_STATUSES_IGNORE), MPI_SUCCESS);
	for (int i = 0; i < 4; i++)
		CHECK_BYTES(b[i], BLOCK / 4, chk_seed(right, 50, i, 0));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* What a collective write has written is there when it has returned, also what a rank wrote that came late: who writes over it then stays. */
static void over_a_fill(MPI_File f)
{
	unsigned char fill[BLOCK], b[BLOCK];
	int last = chk_size - 1;
	MPI_Status st;

	chk_fill(fill, BLOCK, chk_seed(chk_rank, 60, 0, 0));
	chk_fill(b, BLOCK, chk_seed(last, 61, 0, 0));
	if (chk_rank == last && last > 0)
		usleep(300000);
	CHECK_EQ(MPI_File_write_at_all(f, mine(), fill, BLOCK, MPI_BYTE, &st), MPI_SUCCESS);
	if (chk_rank == 0) {
		usleep(30000); /* some MPIs let a rank go a little before the last has written */
		CHECK_EQ(
			MPI_File_write_at(f, (MPI_Offset)last * BLOCK, b, BLOCK, MPI_BYTE, &st), MPI_SUCCESS);
	}
	settle(f);
	CHECK_EQ(MPI_File_read_at(f, (MPI_Offset)last * BLOCK, fill, BLOCK, MPI_BYTE, &st), MPI_SUCCESS);
	CHECK_BYTES(fill, BLOCK, chk_seed(last, 61, 0, 0));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Elements of all ranks interleaved: what an aggregator that writes whole blocks would spoil. */
static void interleaved(MPI_File f, int collective)
{
	enum { N = 300 };
	int v[N], all[N * 4];
	MPI_Datatype t;
	MPI_Status st;
	MPI_Offset disp;

	MPI_Type_vector(N, 1, chk_size, MPI_INT, &t);
	MPI_Type_commit(&t);
	CHECK_EQ(MPI_File_set_view(
			 f, 64 + (MPI_Offset)sizeof(int) * chk_rank, MPI_INT, t, "native", MPI_INFO_NULL),
		MPI_SUCCESS);
	MPI_Type_free(&t);
	CHECK_EQ(MPI_File_get_byte_offset(f, 2, &disp), MPI_SUCCESS);
	CHECK_EQ(disp, 64 + (MPI_Offset)sizeof(int) * (chk_rank + 2 * chk_size));
	for (int i = 0; i < N; i++)
		v[i] = i * chk_size + chk_rank + collective;
	if (collective)
		CHECK_EQ(MPI_File_write_all(f, v, N, MPI_INT, &st), MPI_SUCCESS);
	else
		CHECK_EQ(MPI_File_write(f, v, N, MPI_INT, &st), MPI_SUCCESS);
	count_is(&st, MPI_INT, N);
	settle(f);
	memset(v, 0, sizeof v);
	CHECK_EQ(MPI_File_read_at_all(f, 0, v, N, MPI_INT, &st), MPI_SUCCESS);
	for (int i = 0, bad = 0; i < N && !bad; i++)
		bad = !CHECK_EQ(v[i], i * chk_size + chk_rank + collective);
	MPI_File_set_view(f, 64, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
	for (int from = 0; from < N * chk_size; from += N * 4) {
		int n = N * chk_size - from < N * 4 ? N * chk_size - from : N * 4, bad = 0;

		CHECK_EQ(MPI_File_read_at(f, from, all, n, MPI_INT, &st), MPI_SUCCESS);
		count_is(&st, MPI_INT, n);
		for (int i = 0; i < n && !bad; i++)
			bad = !CHECK_EQ(all[i], from + i + collective);
	}
	MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A matrix by column blocks, from memory with a border: subarrays on both sides. Then as a distributed array. */
static void matrix(MPI_File f)
{
	enum { ROWS = 12, COLS = 5 };
	int g[2] = { ROWS, COLS * chk_size }, sub[2] = { ROWS, COLS }, start[2] = { 0, COLS * chk_rank };
	int in[2] = { ROWS + 2, COLS + 2 }, one[2] = { 1, 1 },
	    how[2] = { MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC };
	int arg[2] = { MPI_DISTRIBUTE_DFLT_DARG, 2 }, procs[2] = { 1, chk_size };
	double a[ROWS + 2][COLS + 2];
	MPI_Datatype file_type, mem, spread;
	int size = 0, bad = 0;
	double *d;

	MPI_Type_create_subarray(2, g, sub, start, MPI_ORDER_C, MPI_DOUBLE, &file_type);
	MPI_Type_create_subarray(2, in, sub, one, MPI_ORDER_C, MPI_DOUBLE, &mem);
	MPI_Type_create_darray(chk_size, chk_rank, 2, g, how, arg, procs, MPI_ORDER_C, MPI_DOUBLE, &spread);
	MPI_Type_commit(&file_type);
	MPI_Type_commit(&mem);
	MPI_Type_commit(&spread);
	for (int i = 0; i < ROWS + 2; i++)
		for (int j = 0; j < COLS + 2; j++)
			a[i][j] = i >= 1 && i <= ROWS && j >= 1 && j <= COLS
					  ? (i - 1) * g[1] + start[1] + j - 1
					  : -1;
	MPI_File_set_view(f, 8, MPI_DOUBLE, file_type, "native", MPI_INFO_NULL);
	CHECK_EQ(MPI_File_write_all(f, a, 1, mem, MPI_STATUS_IGNORE), MPI_SUCCESS);
	settle(f);
	memset(a, 0, sizeof a);
	CHECK_EQ(MPI_File_read_at(f, 0, a, 1, mem, MPI_STATUS_IGNORE), MPI_SUCCESS);
	for (int i = 1; i <= ROWS && !bad; i++)
		for (int j = 1; j <= COLS && !bad; j++)
			bad = !CHECK_EQ(a[i][j], (i - 1) * g[1] + start[1] + j - 1);
	CHECK_EQ(a[0][0], 0);
	MPI_File_set_view(f, 8, MPI_DOUBLE, spread, "native", MPI_INFO_NULL);
	MPI_Type_size(spread, &size);
	size /= (int)sizeof *d;
	d = chk_alloc((size_t)size * sizeof *d);
	CHECK_EQ(MPI_File_read_all(f, d, size, MPI_DOUBLE, MPI_STATUS_IGNORE), MPI_SUCCESS);
	for (int i = 0, k = 0; i < ROWS; i++)
		for (int j = 2 * chk_rank; j < g[1]; j += j % 2 ? 2 * chk_size - 1 : 1)
			if (k < size)
				CHECK_EQ(d[k++], i * g[1] + j);
	free(d);
	MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
	MPI_Type_free(&file_type);
	MPI_Type_free(&mem);
	MPI_Type_free(&spread);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Two runs of bytes per element on both sides, more than a megabyte: many requests where the file is far away. */
static void large(MPI_File f)
{
	enum { N = 1600 * 1024 };
	unsigned char *b = chk_alloc(N);
	int from = (chk_rank + 1) % chk_size;
	MPI_Request q;
	MPI_Status st;

	chk_fill(b, N, chk_seed(chk_rank, 60, 0, 0));
	CHECK_EQ(MPI_File_write_at_all(f, (MPI_Offset)chk_rank * N, b, N, MPI_BYTE, &st), MPI_SUCCESS);
	count_is(&st, MPI_BYTE, N);
	settle(f);
	memset(b, 0, N);
	CHECK_EQ(MPI_File_iread_at(f, (MPI_Offset)from * N, b, N, MPI_BYTE, &q), MPI_SUCCESS);
	CHECK_EQ(MPI_Wait(&q, &st), MPI_SUCCESS);
	count_is(&st, MPI_BYTE, N);
	CHECK_BYTES(b, N, chk_seed(from, 60, 0, 0));
	free(b);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Records of all ranks through the shared pointer: each is there once and whole. */
static void shared(MPI_File f)
{
	enum { EACH = 10 };
	int rec[2], *seen = chk_alloc((size_t)chk_size * EACH * sizeof *seen);
	MPI_Datatype pair;
	MPI_Offset at;
	MPI_Request q;

	memset(seen, 0, (size_t)chk_size * EACH * sizeof *seen);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	CHECK_EQ(MPI_File_set_view(f, 16, pair, pair, "native", MPI_INFO_NULL), MPI_SUCCESS);
	for (int i = 0; i < EACH; i++) {
		rec[0] = chk_rank;
		rec[1] = i;
		if (i % 2) {
			CHECK_EQ(MPI_File_iwrite_shared(f, rec, 1, pair, &q), MPI_SUCCESS);
			CHECK_EQ(MPI_Wait(&q, MPI_STATUS_IGNORE), MPI_SUCCESS);
		} else {
			CHECK_EQ(MPI_File_write_shared(f, rec, 1, pair, MPI_STATUS_IGNORE), MPI_SUCCESS);
		}
	}
	settle(f);
	CHECK_EQ(MPI_File_get_position_shared(f, &at), MPI_SUCCESS);
	CHECK_EQ(at, chk_size * EACH);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(MPI_File_seek_shared(f, 0, MPI_SEEK_SET), MPI_SUCCESS);
	for (int i = 0; i < chk_size * EACH; i++) {
		CHECK_EQ(MPI_File_read_at(f, i, rec, 1, pair, MPI_STATUS_IGNORE), MPI_SUCCESS);
		if (CHECK(rec[0] >= 0 && rec[0] < chk_size && rec[1] >= 0 && rec[1] < EACH))
			seen[rec[0] * EACH + rec[1]]++;
	}
	for (int i = 0; i < chk_size * EACH; i++)
		CHECK_EQ(seen[i], 1);
	/* each record is read by one rank only */
	memset(seen, 0, (size_t)chk_size * EACH * sizeof *seen);
	for (int i = 0; i < EACH; i++) {
		CHECK_EQ(MPI_File_read_shared(f, rec, 1, pair, MPI_STATUS_IGNORE), MPI_SUCCESS);
		seen[rec[0] * EACH + rec[1]]++;
	}
	MPI_Allreduce(MPI_IN_PLACE, seen, chk_size * EACH, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < chk_size * EACH; i++)
		CHECK_EQ(seen[i], 1);
	free(seen);
	MPI_Type_free(&pair);
	MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
}

/* In rank order, of unequal lengths. */
static void ordered(MPI_File f)
{
	int v[64], n = chk_rank % 3 + 1, total = 0, bad = 0;
	MPI_Offset at;
	MPI_Status st;

	for (int r = 0; r < chk_size; r++)
		total += r % 3 + 1;
	CHECK_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_SUCCESS);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < n; i++)
			v[i] = round * 1000 + chk_rank;
		if (round) {
			MPI_File_write_ordered_begin(f, v, n, MPI_INT);
			CHECK_EQ(MPI_File_write_ordered_end(f, v, &st), MPI_SUCCESS);
		} else {
			CHECK_EQ(MPI_File_write_ordered(f, v, n, MPI_INT, &st), MPI_SUCCESS);
		}
		count_is(&st, MPI_INT, n);
	}
	settle(f);
	MPI_File_get_position_shared(f, &at);
	CHECK_EQ(at, 2 * total);
	for (int i = 0, k = 0; i < 2 * chk_size && !bad; i++)
		for (int j = 0; j < i % chk_size % 3 + 1 && !bad; j++) {
			MPI_File_read_at(f, k++, v, 1, MPI_INT, MPI_STATUS_IGNORE);
			bad = !CHECK_EQ(v[0], i / chk_size * 1000 + i % chk_size);
		}
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(MPI_File_seek_shared(f, -total, MPI_SEEK_CUR), MPI_SUCCESS);
	CHECK_EQ(MPI_File_read_ordered(f, v, n, MPI_INT, &st), MPI_SUCCESS);
	CHECK_EQ(v[0], 1000 + chk_rank);
	CHECK_EQ(v[n - 1], 1000 + chk_rank);
	MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* In atomic mode two writes of the same place do not mix, and who is told of a write reads it without more. Where files are carried
 * this may be unsupported. */
static void atomic_mode(MPI_File f)
{
	enum { N = 5000 };
	unsigned char *b = chk_alloc(N);
	int rc = MPI_File_set_atomicity(f, 1), flag = -1, bad = 0;
	MPI_Request q;

	CHECK_EQ(MPI_File_get_atomicity(f, &flag), MPI_SUCCESS);
	CHECK_EQ(flag, rc == MPI_SUCCESS);
	CHECK(rc == MPI_SUCCESS || chk_class(rc) == MPI_ERR_UNSUPPORTED_OPERATION);
	for (int round = 0; round < 5 && flag == 1; round++) {
		memset(b, chk_rank, N);
		if (round % 2) {
			CHECK_EQ(MPI_File_iwrite_at(f, 0, b, N, MPI_BYTE, &q), MPI_SUCCESS);
			CHECK_EQ(MPI_Wait(&q, MPI_STATUS_IGNORE), MPI_SUCCESS);
		} else {
			CHECK_EQ(MPI_File_write_at_all(f, 0, b, N, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		CHECK_EQ(MPI_File_read_at(f, 0, b, N, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
		for (int i = 1; i < N; i++)
			bad += b[i] != b[0];
		CHECK_EQ(bad, 0);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	CHECK_EQ(MPI_File_set_atomicity(f, 0), MPI_SUCCESS);
	free(b);
}

static void sizes(MPI_File f)
{
	unsigned char b[100];
	MPI_Offset size, at;
	MPI_Status st;

	CHECK_EQ(MPI_File_set_size(f, 500), MPI_SUCCESS);
	CHECK_EQ(MPI_File_get_size(f, &size), MPI_SUCCESS);
	CHECK_EQ(size, 500);
	MPI_File_seek(f, -30, MPI_SEEK_END);
	MPI_File_get_position(f, &at);
	CHECK_EQ(at, 470);
	CHECK_EQ(MPI_File_read(f, b, 100, MPI_BYTE, &st), MPI_SUCCESS); /* what there is */
	count_is(&st, MPI_BYTE, 30);
	CHECK_EQ(MPI_File_read_at(f, 600, b, 100, MPI_BYTE, &st), MPI_SUCCESS);
	count_is(&st, MPI_BYTE, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(MPI_File_preallocate(f, 2000), MPI_SUCCESS);
	CHECK_EQ(MPI_File_get_size(f, &size), MPI_SUCCESS);
	CHECK_EQ(size, 2000);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(MPI_File_set_size(f, 0), MPI_SUCCESS);
	CHECK_EQ(MPI_File_get_size(f, &size), MPI_SUCCESS);
	CHECK_EQ(size, 0);
}

static void queries(MPI_File f)
{
	MPI_Group g, w;
	MPI_Datatype e, t;
	MPI_Aint extent;
	MPI_Offset disp;
	MPI_Info info;
	char rep[MPI_MAX_DATAREP_STRING];
	int amode = 0, same = -1, flag = -1;

	CHECK_EQ(MPI_File_get_amode(f, &amode), MPI_SUCCESS);
	CHECK_EQ(amode, MPI_MODE_CREATE | MPI_MODE_RDWR);
	MPI_File_get_group(f, &g);
	MPI_Comm_group(MPI_COMM_WORLD, &w);
	MPI_Group_compare(g, w, &same);
	CHECK_EQ(same, MPI_IDENT);
	MPI_Group_free(&g);
	MPI_Group_free(&w);
	CHECK_EQ(MPI_File_get_view(f, &disp, &e, &t, rep), MPI_SUCCESS);
	CHECK_EQ(disp, 0);
	CHECK(strcmp(rep, "native") == 0);
	CHECK_EQ(MPI_File_get_type_extent(f, MPI_DOUBLE, &extent), MPI_SUCCESS);
	CHECK_EQ(extent, sizeof(double));
	CHECK_EQ(MPI_File_get_atomicity(f, &flag), MPI_SUCCESS);
	CHECK_EQ(flag, 0);
	CHECK_EQ(MPI_File_get_info(f, &info), MPI_SUCCESS);
	CHECK_EQ(MPI_File_set_info(f, info), MPI_SUCCESS);
	MPI_Info_free(&info);
#if defined(OPEN_MPI) || defined(MPICH_VERSION)
	CHECK(MPI_File_f2c(MPI_File_c2f(f)) == f);
#else /* the standard ABI has no Fortran handles */
	CHECK(MPI_File_fromint(MPI_File_toint(f)) == f);
#endif
}

static int handled;
static MPI_File handled_file;

static void handler(MPI_File *f, int *code, ...)
{
	handled = chk_class(*code);
	handled_file = *f;
}

static void errors(void)
{
	MPI_File f = MPI_FILE_NULL;
	MPI_Errhandler h;
	unsigned char b = 1;

	CHECK_EQ(chk_class(MPI_File_open(
			 MPI_COMM_WORLD, "/nowhere/pacx/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &f)),
		MPI_ERR_NO_SUCH_FILE);
	CHECK(f == MPI_FILE_NULL);
	/* path is there: one site must not create what another finds */
	CHECK_EQ(chk_class(MPI_File_open(MPI_COMM_WORLD, path,
			 MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &f)),
		MPI_ERR_FILE_EXISTS);
	CHECK(f == MPI_FILE_NULL);
	f = open_file(path, MPI_MODE_RDONLY);
	MPI_File_create_errhandler(handler, &h);
	CHECK_EQ(MPI_File_set_errhandler(f, h), MPI_SUCCESS);
	MPI_Errhandler_free(&h);
	CHECK(MPI_File_write_at(f, 0, &b, 1, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS);
	CHECK(handled != 0);
	CHECK(handled_file == f);
	CHECK_EQ(MPI_File_close(&f), MPI_SUCCESS);
	CHECK(f == MPI_FILE_NULL);
}

/* Exclusive creation, deletion at the end, appending, sequential access. */
static void modes(void)
{
	int v[2] = { chk_rank, -chk_rank }, got[2] = { 0, 0 };
	MPI_Offset at, size;
	MPI_File f;

	snprintf(other, sizeof other, "%s.x", path);
	f = open_file(other, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
	CHECK_EQ(MPI_File_write_ordered(f, v, 2, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
	CHECK_EQ(MPI_File_close(&f), MPI_SUCCESS);
	f = open_file(other, MPI_MODE_APPEND | MPI_MODE_WRONLY);
	MPI_File_get_position(f, &at);
	CHECK_EQ(at, 8 * chk_size);
	MPI_File_get_position_shared(f, &at);
	CHECK_EQ(at, 8 * chk_size);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(MPI_File_write_ordered(f, v, 2, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
	CHECK_EQ(MPI_File_close(&f), MPI_SUCCESS);
	f = open_file(other, MPI_MODE_SEQUENTIAL | MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
	CHECK_EQ(MPI_File_read_ordered(f, got, 2, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
	CHECK_EQ(got[0], chk_rank);
	CHECK_EQ(got[1], -chk_rank);
	CHECK_EQ(MPI_File_get_size(f, &size), MPI_SUCCESS);
	CHECK_EQ(size, 16 * chk_size);
	CHECK_EQ(MPI_File_close(&f), MPI_SUCCESS);
	CHECK_EQ(chk_class(MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_RDONLY, MPI_INFO_NULL, &f)),
		MPI_ERR_NO_SUCH_FILE);
}

int main(int argc, char **argv)
{
	unsigned char b[BLOCK];
	MPI_File f;

	chk_begin(&argc, &argv, "files", 2);
	snprintf(path, sizeof path, "%s/files-%ld", argc > 1 ? argv[1] : "/tmp",
		(long)(chk_rank == 0 ? getpid() : 0));
	MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
	f = open_file(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
	queries(f);
	ways(f);
	chk_fill(b, BLOCK, chk_seed(chk_rank, 99, 0, 0));
	MPI_File_write_at(f, mine(), b, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
	check_blocks(f, 99);
	together(f);
	over_a_fill(f);
	interleaved(f, 0);
	interleaved(f, 1);
	matrix(f);
	large(f);
	shared(f);
	ordered(f);
	atomic_mode(f);
	sizes(f);
	CHECK_EQ(MPI_File_close(&f), MPI_SUCCESS);
	errors();
	modes();
	MPI_Barrier(MPI_COMM_WORLD);
	if (chk_rank == 0)
		CHECK_EQ(MPI_File_delete(path, MPI_INFO_NULL), MPI_SUCCESS);
	return chk_end();
}
