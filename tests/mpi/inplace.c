/*
 * inplace.c - MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw in place, of blocks that differ, on all of MPI_COMM_WORLD and on its first half.
 */
#include "check.h"

static MPI_Comm comm;
static int r, n;

/* Rank a and rank b swap so many numbers, and the i-th from a to b. */
static int len(int a, int b)
{
	return (a + b) % 4 == 3 ? 0 : a + b + 1;
}

static int val(int a, int b, int i)
{
	return 10000 * a + 100 * b + i;
}

/* The buffer before (sent: from us) and after. */
static void fill(int *buf, const int *at)
{
	for (int k = 0; k < n; k++)
		for (int i = 0; i < len(r, k); i++)
			buf[at[k] + i] = val(r, k, i);
}

static void check(int line, const int *buf, const int *at)
{
	int bad = 0;

	for (int k = 0; k < n; k++)
		for (int i = 0; i < len(r, k); i++)
			bad += buf[at[k] + i] != val(k, r, i);
	chk_eq(__FILE__, line, "blocks in place", bad, 0);
}

static void regular(void)
{
	int *buf = chk_alloc(3 * (size_t)n * sizeof *buf), bad = 0;

	for (int i = 0; i < 3 * n; i++)
		buf[i] = val(r, i / 3, i % 3);
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buf, 3, MPI_INT, comm);
	for (int i = 0; i < 3 * n; i++)
		bad += buf[i] != val(i / 3, r, i % 3);
	CHECK_EQ(bad, 0);
	free(buf);
}

/* Of numbers, and of one element of a type of so many: a type of its own for each block. */
static void of_types(int *buf, int *count, const int *at)
{
	int *bytes = chk_alloc((size_t)n * sizeof *bytes);
	MPI_Datatype *t = chk_alloc((size_t)n * sizeof *t);

	for (int k = 0; k < n; k++) {
		bytes[k] = at[k] * (int)sizeof(int);
		t[k] = MPI_INT;
	}
	fill(buf, at);
	MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, buf, count, bytes, t, comm);
	check(__LINE__, buf, at);
	for (int k = 0; k < n; k++) {
		MPI_Type_contiguous(count[k], MPI_INT, &t[k]);
		MPI_Type_commit(&t[k]);
		count[k] = 1;
	}
	fill(buf, at);
	MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, buf, count, bytes, t, comm);
	check(__LINE__, buf, at);
	for (int k = 0; k < n; k++)
		MPI_Type_free(&t[k]);
	free(bytes);
	free(t);
}

static void irregular(void)
{
	int *count = chk_alloc((size_t)n * sizeof *count), *at = chk_alloc((size_t)n * sizeof *at), total = 0,
	    *buf;

	for (int k = 0; k < n; k++) {
		count[k] = len(r, k);
		at[k] = total;
		total += count[k];
	}
	buf = chk_alloc((size_t)(total + 1) * sizeof *buf);
	fill(buf, at);
	MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, buf, count, at, MPI_INT, comm);
	check(__LINE__, buf, at);
	of_types(buf, count, at);
	free(count);
	free(at);
	free(buf);
}

static void all_forms(MPI_Comm c)
{
	comm = c;
	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &n);
	regular();
	irregular();
}

int main(int argc, char **argv)
{
	MPI_Comm half;

	chk_begin(&argc, &argv, "inplace", 1);
	all_forms(MPI_COMM_WORLD);
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank < (chk_size + 1) / 2, 0, &half);
	all_forms(half);
	MPI_Comm_free(&half);
	return chk_end();
}
