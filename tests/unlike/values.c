/*
 * values.c - values that another machine cannot hold are errors, never silently others; NaN, infinities, denormals and -0 arrive; bytes
 * and packed data are left alone.  On machines that are alike nothing is an error.
 */
#include "check.h"

#include <math.h>
#include <float.h>
#include <unistd.h>

#define TAG 5

/* What rank r's machine is: bytes of long, of wchar_t, byte order, bits of long double's significand, its largest exponent. */
enum { LONG, ORDER, LDBITS, LDMAX, FACTS };
static int *facts;

static void know(void)
{
	int one = 1, mine[FACTS] = { sizeof(long), *(char *)&one, LDBL_MANT_DIG, LDBL_MAX_EXP };

	facts = malloc(sizeof mine * (size_t)chk_size);
	for (int r = 0; r < chk_size; r++) {
		MPI_Request req;

		MPI_Isend(mine, FACTS, MPI_INT, r, TAG, MPI_COMM_WORLD, &req);
		MPI_Recv(
			facts + FACTS * ((r + 0)), FACTS, MPI_INT, r, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
}

#define PARTNERS                                                                                             \
	for (int k = 1, to, from;                                                                            \
		to = (chk_rank + k) % chk_size, from = (chk_rank - k + chk_size) % chk_size, k < chk_size;   \
		k++)

static void longs(int count)
{
	long long wide = 1ll << 40;
	long *out = calloc((size_t)count, sizeof *out), *in = malloc((size_t)count * sizeof *in);
	int bad = count - 1;

	if (sizeof *out == 8)
		out[bad] = (long)wide;
	if (count > 1)
		out[0] = -5;
	PARTNERS
	{
		MPI_Status st;
		int rc, n, misfit = sizeof *in == 4 && facts[FACTS * from + LONG] == 8;
		MPI_Request req;

		MPI_Isend(out, count, MPI_LONG, to, TAG, MPI_COMM_WORLD, &req);
		rc = MPI_Recv(in, count, MPI_LONG, from, TAG, MPI_COMM_WORLD, &st);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		if (misfit)
			CHECK_EQ(chk_class(rc), MPI_ERR_TRUNCATE);
		else
			CHECK_EQ(rc, MPI_SUCCESS);
		MPI_Get_count(&st, MPI_LONG, &n);
		CHECK_EQ(n, count);
		if (count > 1)
			CHECK_EQ(in[0], -5);
		if (!misfit)
			CHECK_EQ(in[bad], facts[FACTS * from + LONG] == 8 ? wide : 0);
	}
	free(out);
	free(in);
}

static void specials(void)
{
	double d[6] = { NAN, INFINITY, -INFINITY, -0.0, 4.9406564584124654e-324, DBL_MAX }, e[6];
	long double l[6] = { NAN, INFINITY, -INFINITY, -0.0L, ldexpl(1, -1074), DBL_MAX }, m[6];

	PARTNERS
	{
		MPI_Sendrecv(d, 6, MPI_DOUBLE, to, TAG, e, 6, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE);
		CHECK(isnan(e[0]) && isinf(e[1]) && e[1] > 0 && isinf(e[2]) && e[2] < 0);
		CHECK(e[3] == 0 && signbit(e[3]) && e[4] == d[4] && e[5] == DBL_MAX);
		MPI_Sendrecv(l, 6, MPI_LONG_DOUBLE, to, TAG, m, 6, MPI_LONG_DOUBLE, from, TAG, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE);
		CHECK(isnan(m[0]) && isinf(m[1]) && m[1] > 0 && isinf(m[2]) && m[2] < 0);
		CHECK(m[3] == 0 && signbit(m[3]) && m[4] == l[4] && m[5] == DBL_MAX);
	}
}

/* A third of a long double: as many bits of it as the machine with fewer has. */
static void precision(void)
{
	long double out = 1.0L / 3, in;

	PARTNERS
	{
		int bits = facts[FACTS * from + LDBITS] < LDBL_MANT_DIG ? facts[FACTS * from + LDBITS]
									: LDBL_MANT_DIG;

		MPI_Sendrecv(&out, 1, MPI_LONG_DOUBLE, to, TAG, &in, 1, MPI_LONG_DOUBLE, from, TAG,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(fabsl(in - 1.0L / 3) <= ldexpl(1, -bits - 1));
	}
}

static void bytes(void)
{
	int out = 0x01020304, in;
	char packed[64], unpacked[64];
	int pos = 0, value;

	MPI_Pack(&out, 1, MPI_INT, packed, sizeof packed, &pos, MPI_COMM_WORLD);
	PARTNERS
	{
		int same = facts[FACTS * from + ORDER] == facts[FACTS * chk_rank + ORDER], n, at = 0;
		MPI_Status st;

		MPI_Sendrecv(&out, 4, MPI_BYTE, to, TAG, &in, 4, MPI_BYTE, from, TAG, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE);
		CHECK_EQ(in, same ? 0x01020304 : 0x04030201);
		MPI_Sendrecv(packed, pos, MPI_PACKED, to, TAG, unpacked, sizeof unpacked, MPI_PACKED, from,
			TAG, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, MPI_PACKED, &n);
		MPI_Unpack(unpacked, n, &at, &value, 1, MPI_INT, MPI_COMM_WORLD);
		CHECK_EQ(value, same ? 0x01020304 : 0x04030201);
	}
}

static int alike(int r)
{
	return memcmp(facts + FACTS * r, facts + FACTS * chk_rank, FACTS * sizeof *facts) == 0;
}

/* Truncation is what the receiver finds too long, in its own bytes. Not between alike ranks: natively MPICH 4.0.2 dies of it on s390x
 * (looputil.c:815, now and then). */
static void truncated(void)
{
	long out[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, in[8];

	PARTNERS
	{
		MPI_Request req;
		int rc, class;

		memset(in, 0, sizeof in);
		MPI_Isend(out, 5, MPI_LONG, to, TAG, MPI_COMM_WORLD, &req);
		rc = MPI_Recv(in, 5, MPI_LONG, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		CHECK_EQ(rc, MPI_SUCCESS);
		CHECK(in[4] == 5 && in[5] == 0);
		memset(in, 0, sizeof in);
		req = MPI_REQUEST_NULL;
		if (!alike(to))
			MPI_Isend(out, 5, MPI_LONG, to, TAG, MPI_COMM_WORLD, &req);
		if (!alike(from)) {
			rc = MPI_Recv(in, 4, MPI_LONG, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Error_class(rc, &class);
			CHECK_EQ(class, MPI_ERR_TRUNCATE);
			CHECK_EQ(in[4], 0);
		}
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
}

static int narrower(int a, int b) /* rank a's long than that of b */
{
	return facts[FACTS * a + LONG] < facts[FACTS * b + LONG];
}

/* What a window's memory cannot hold changes nothing there, and somebody hears of it: who asks, or else who owns the memory. */
static void windows(void)
{
	int to = (chk_rank + 1) % chk_size, from = (chk_rank + chk_size - 1) % chk_size, rc, early;
	long wide = sizeof wide == 8 ? (long)(1ll << 40) : 5, got = 0, *mem;
	MPI_Win win;

	MPI_Win_allocate(2 * sizeof *mem, sizeof *mem, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	mem[0] = mem[1] = 7;
	early = MPI_Win_fence(0, win); /* somebody may be through it, and have put, while we are in it */
	CHECK_EQ(MPI_Put(&wide, 1, MPI_LONG, to, 1, 1, MPI_LONG, win), MPI_SUCCESS);
	rc = MPI_Win_fence(0, win);
	rc = rc == MPI_SUCCESS ? early : rc;
	CHECK_EQ(chk_class(rc), narrower(chk_rank, from) ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
	CHECK_EQ(mem[0], 7);
	if (narrower(chk_rank, from))
		CHECK_EQ(mem[1], 7);
	else
		CHECK_EQ(mem[1], facts[FACTS * from + LONG] == 8 ? 1ll << 40 : 5);
	mem[0] = wide;
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
	MPI_Accumulate(&wide, 1, MPI_LONG, to, 1, 1, MPI_LONG, MPI_REPLACE, win);
	rc = MPI_Win_flush(to, win);
	CHECK_EQ(chk_class(rc), narrower(to, chk_rank) ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
	MPI_Get(&got, 1, MPI_LONG, to, 0, 1, MPI_LONG, win);
	rc = MPI_Win_unlock(to, win);
	CHECK_EQ(chk_class(rc), narrower(chk_rank, to) ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
	if (!narrower(chk_rank, to))
		CHECK_EQ(got, facts[FACTS * to + LONG] == 8 ? 1ll << 40 : 5);
	MPI_Win_free(&win);
}

/* Memory of a dynamic window is named by its address: one that does not fit into the MPI_Aint of who asks for it is an error, and so is one
 * that does not fit into a pointer of its owner, even where its lower half would be right. */
static void dynamic(void)
{
	long mem[2] = { 7, 7 }, value = 5 + chk_rank;
	int wide = sizeof(MPI_Aint) == 8;
	MPI_Aint mine, theirs = 0;
	MPI_Win win;

	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_attach(win, mem, sizeof mem);
	MPI_Get_address(mem, &mine);
	PARTNERS
	{
		int rc = MPI_Sendrecv(&mine, 1, MPI_AINT, from, TAG, &theirs, 1, MPI_AINT, to, TAG,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);

		CHECK_EQ(chk_class(rc), narrower(chk_rank, to) ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
		if (rc == MPI_SUCCESS) {
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
			CHECK_EQ(MPI_Put(&value, 1, MPI_LONG, to, theirs, 1, MPI_LONG, win), MPI_SUCCESS);
			CHECK_EQ(MPI_Win_flush(to, win), MPI_SUCCESS);
			if (wide && narrower(to, chk_rank)) {
				theirs += (MPI_Aint)(1ll << 33);
				MPI_Put(&value, 1, MPI_LONG, to, theirs + (MPI_Aint)facts[FACTS * to + LONG],
					1, MPI_LONG, win);
				rc = MPI_Win_flush(to, win);
				CHECK_EQ(chk_class(rc), MPI_ERR_RMA_RANGE);
			}
			MPI_Win_unlock(to, win);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock(MPI_LOCK_SHARED, chk_rank, 0, win); /* for the native MPI's memory model */
		CHECK_EQ(mem[0], narrower(from, chk_rank) ? 7 : 5 + from);
		CHECK_EQ(mem[1], 7);
		mem[0] = 7;
		MPI_Win_unlock(chk_rank, win);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Win_detach(win, mem);
	MPI_Win_free(&win);
}

/* In a file, too; "internal" holds what any machine holds. */
static void files(void)
{
	int other = (chk_rank + 1) % chk_size, rc;
	long wide = sizeof wide == 8 ? (long)(1ll << 40) : 5, small = -6 - chk_rank, got = 0;
	char path[64];
	MPI_File f;

	snprintf(path, sizeof path, "/tmp/pacx-values-%ld", (long)getpid());
	MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
	CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, path,
			 MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f),
		MPI_SUCCESS);
	MPI_File_set_view(f, 0, MPI_LONG, MPI_LONG, "internal", MPI_INFO_NULL);
	MPI_File_write_at(f, 2 * chk_rank, &wide, 1, MPI_LONG, MPI_STATUS_IGNORE);
	MPI_File_write_at(f, 2 * chk_rank + 1, &small, 1, MPI_LONG, MPI_STATUS_IGNORE);
	MPI_File_sync(f);
	MPI_Barrier(MPI_COMM_WORLD);
	rc = MPI_File_read_at(f, 2 * other, &got, 1, MPI_LONG, MPI_STATUS_IGNORE);
	CHECK_EQ(chk_class(rc), narrower(chk_rank, other) ? MPI_ERR_CONVERSION : MPI_SUCCESS);
	if (!narrower(chk_rank, other))
		CHECK_EQ(got, facts[FACTS * other + LONG] == 8 ? 1ll << 40 : 5);
	CHECK_EQ(MPI_File_read_at(f, 2 * other + 1, &got, 1, MPI_LONG, MPI_STATUS_IGNORE), MPI_SUCCESS);
	CHECK_EQ(got, -6 - other);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_set_view(f, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL);
	rc = MPI_File_write_at(f, chk_rank, &wide, 1, MPI_LONG, MPI_STATUS_IGNORE);
	CHECK_EQ(chk_class(rc), sizeof wide == 8 ? MPI_ERR_CONVERSION : MPI_SUCCESS);
	CHECK_EQ(MPI_File_write_at(f, chk_rank, &small, 1, MPI_LONG, MPI_STATUS_IGNORE), MPI_SUCCESS);
	MPI_File_sync(f);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK_EQ(MPI_File_read_at(f, other, &got, 1, MPI_LONG, MPI_STATUS_IGNORE), MPI_SUCCESS);
	CHECK_EQ(got, -6 - other);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_close(&f);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "values", 2);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	know();
	longs(1);
	longs(1000);
	longs(200000);
	specials();
	precision();
	bytes();
	truncated();
	windows();
	dynamic();
	files();
	return chk_end();
}
