/*
 * long_coll - broadcast, reductions and allgatherv of lengths on both sides of every threshold at which an algorithm may change: contiguous and strided
 * data, operators that commute and that do not, in place, any root, several under way at once; on the world and on a communicator whose
 * even ranks come first.
 */
#include "check.h"

enum { PRIME = 1009 };

static const int lengths[] = { 0, 1, 3, 250, 4096, 16385, 530000 };
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])
#define LONGEST 530000

static int r, n;
static MPI_Comm comm;
static int *a, *b, *d;
static double *x, *y;

static int val(int rank, int i)
{
	return (int)(chk_mix((uint64_t)rank, (uint64_t)i) & 0xffff);
}

static int sum(int i)
{
	int s = 0;

	for (int k = 0; k < n; k++)
		s += val(k, i);
	return s;
}

static void bcast(int len, int root)
{
	int bad = 0;
	MPI_Datatype strided;

	for (int i = 0; i < len; i++)
		a[i] = r == root ? val(root, i) : -1;
	MPI_Bcast(a, len, MPI_INT, root, comm);
	for (int i = 0; i < len; i++)
		bad += a[i] != val(root, i);
	CHECK_EQ(bad, 0);

	/* Every second int. */
	MPI_Type_vector(len, 1, 2, MPI_INT, &strided);
	MPI_Type_commit(&strided);
	for (int i = 0; i < 2 * len; i++)
		b[i] = r == root ? val(root, i) : -1;
	MPI_Bcast(b, 1, strided, root, comm);
	bad = 0;
	for (int i = 0; i < len; i++)
		bad += b[2 * i] != val(root, 2 * i) ||
		       b[2 * i + 1] != (r == root ? val(root, 2 * i + 1) : -1);
	CHECK_EQ(bad, 0);
	MPI_Type_free(&strided);
}

static void reduce(int len, int root)
{
	int bad = 0;

	for (int i = 0; i < len; i++) {
		a[i] = val(r, i);
		b[i] = -1;
	}
	MPI_Reduce(a, b, len, MPI_INT, MPI_SUM, root, comm);
	for (int i = 0; i < len; i++)
		bad += r == root ? b[i] != sum(i) : b[i] != -1;
	CHECK_EQ(bad, 0);

	/* Doubles whose sums are exact, in place. (MPICH 4.0.2 crashes there if a root that is not rank 0 does it.) */
	for (int i = 0; i < len; i++)
		x[i] = y[i] = val(r, i);
	MPI_Reduce(r == root && root == 0 ? MPI_IN_PLACE : x, y, len, MPI_DOUBLE, MPI_SUM, root, comm);
	bad = 0;
	for (int i = 0; i < len; i++)
		bad += x[i] != val(r, i) || (r == root && y[i] != sum(i));
	CHECK_EQ(bad, 0);
}

static void allreduce(int len)
{
	int bad = 0;

	for (int i = 0; i < len; i++) {
		a[i] = val(r, i);
		x[i] = val(r, i);
		y[i] = -1;
	}
	MPI_Allreduce(MPI_IN_PLACE, a, len, MPI_INT, MPI_SUM, comm);
	MPI_Allreduce(x, y, len, MPI_DOUBLE, MPI_SUM, comm);
	for (int i = 0; i < len; i++)
		bad += a[i] != sum(i) || y[i] != sum(i) || x[i] != val(r, i);
	CHECK_EQ(bad, 0);
}

/* 2 x 2 matrices modulo PRIME: they do not commute. */
static void product(const int *p, const int *q, int *out)
{
	int t[4];

	for (int k = 0; k < 4; k++)
		t[k] = (p[k / 2 * 2] * q[k % 2] + p[k / 2 * 2 + 1] * q[k % 2 + 2]) % PRIME;
	memcpy(out, t, sizeof t);
}

static void multiply(void *in, void *inout, int *len, MPI_Datatype *t)
{
	(void)t;
	for (int i = 0; i < *len; i++)
		product((int *)in + 4 * i, (int *)inout + 4 * i, (int *)inout + 4 * i);
}

static void ordered(int len, int root)
{
	MPI_Datatype matrix;
	MPI_Op times;
	int bad = 0;

	MPI_Type_contiguous(4, MPI_INT, &matrix);
	MPI_Type_commit(&matrix);
	MPI_Op_create(multiply, 0, &times);
	for (int i = 0; i < 4 * len; i++)
		a[i] = val(r, i) % PRIME;
	memset(b, 0, (size_t)len * 16);
	memset(d, 0, (size_t)len * 16);
	MPI_Allreduce(a, b, len, matrix, times, comm);
	MPI_Reduce(a, d, len, matrix, times, root, comm);
	for (int i = 0; i < len; i++) {
		int m[4], next[4];

		for (int k = 0; k < n; k++) {
			for (int j = 0; j < 4; j++)
				next[j] = val(k, 4 * i + j) % PRIME;
			if (k == 0)
				memcpy(m, next, sizeof m);
			else
				product(m, next, m);
		}
		bad += memcmp(m, b + 4 * i, sizeof m) != 0;
		bad += r == root && memcmp(m, d + 4 * i, sizeof m) != 0;
	}
	CHECK_EQ(bad, 0);
	MPI_Op_free(&times);
	MPI_Type_free(&matrix);
}

static void together(int len, int root)
{
	MPI_Request q[4];
	int bad = 0;

	for (int i = 0; i < len; i++) {
		a[i] = r == root ? val(root, i) : -1;
		b[i] = val(r, i);
		d[i] = -1;
		x[i] = val(r, i);
		y[i] = -1;
	}
	MPI_Ibcast(a, len, MPI_INT, root, comm, &q[0]);
	MPI_Iallreduce(x, y, len, MPI_DOUBLE, MPI_SUM, comm, &q[1]);
	MPI_Ireduce(b, d, len, MPI_INT, MPI_SUM, (root + 1) % n, comm, &q[2]);
	MPI_Ibarrier(comm, &q[3]);
	MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
	for (int i = 0; i < len; i++)
		bad += a[i] != val(root, i) || y[i] != sum(i) || (r == (root + 1) % n && d[i] != sum(i));
	CHECK_EQ(bad, 0);
}

/* Rank `root` has len elements, each other one a few. */
static void unequal(int len, int root)
{
	int bad = 0, at = 0, *counts = a + LONGEST + 1000, *displs = counts + n;
	MPI_Request q;

	for (int k = 0; k < n; k++) {
		counts[k] = k == root ? len : k % 3;
		displs[k] = at;
		at += counts[k];
	}
	for (int i = 0; i < counts[r]; i++)
		b[i] = val(r, i);
	for (int i = 0; i < at; i++)
		a[i] = d[i] = -1;
	MPI_Iallgatherv(b, counts[r], MPI_INT, a, counts, displs, MPI_INT, comm, &q);
	MPI_Allgatherv(b, counts[r], MPI_INT, d, counts, displs, MPI_INT, comm);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	for (int k = 0; k < n; k++)
		for (int i = 0; i < counts[k]; i++)
			bad += a[displs[k] + i] != val(k, i) || d[displs[k] + i] != val(k, i);
	CHECK_EQ(bad, 0);
}

static void all(void)
{
	MPI_Comm_rank(comm, &r);
	MPI_Comm_size(comm, &n);
	for (int k = 0; k < LENGTHS; k++) {
		bcast(lengths[k], k % n);
		reduce(lengths[k], (k + 1) % n);
		allreduce(lengths[k]);
		unequal(lengths[k], (k + 3) % n);
		if (lengths[k] < 20000)
			ordered(lengths[k], k % n);
		together(lengths[k], (k + 2) % n);
	}
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "long_coll", 2);
	a = malloc(2 * LONGEST * sizeof *a);
	b = malloc(2 * LONGEST * sizeof *b);
	d = malloc(2 * LONGEST * sizeof *d);
	x = malloc(LONGEST * sizeof *x);
	y = malloc(LONGEST * sizeof *y);
	comm = MPI_COMM_WORLD;
	all();
	MPI_Comm_split(MPI_COMM_WORLD, 0, chk_rank % 2 * chk_size + chk_rank, &comm);
	all();
	MPI_Comm_free(&comm);
	return chk_end();
}
