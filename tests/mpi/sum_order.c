/*
 * sum_order - floating-point sums and products whose last bits depend on how the operands are grouped, of several lengths: all ranks get the
 * same bits from MPI_Allreduce, and a digest of them all is printed.
 * Argument: "tree" = expect the bits of the binary tree over the ranks, from MPI_Allreduce, MPI_Reduce to any root, and MPI_Reduce_scatter;
 * and from scans those of its largest subtrees before a rank, combined from left to right; also on a communicator whose even ranks come first.
 */
#include "check.h"

static double operand(int rank, int i)
{
	/* Between 0.5 and 1.5, scaled by powers of two that differ from rank to rank. */
	double x = 0.5 + (double)(chk_mix((uint64_t)rank, (uint64_t)i) >> 12) / (double)(1ull << 52);

	for (int k = (rank * 7 + i) % 40; k > 0; k--)
		x *= 2;
	return i % 3 ? x : -x;
}

/* The value of ranks [lo, lo + n): the first half op the second. */
static double tree(int lo, int n, int i)
{
	int half = (n + 1) / 2;

	return n == 1 ? operand(lo, i) : tree(lo, half, i) + tree(lo + half, n - half, i);
}

static uint64_t digest(const double *x, int len)
{
	uint64_t h = 0, bits;

	for (int i = 0; i < len; i++) {
		memcpy(&bits, &x[i], sizeof bits);
		h = chk_mix(h, bits);
	}
	return h;
}

/* What is before rank r: the largest subtrees, from left to right. */
static double before(int n, int r, int i)
{
	double sum = 0;
	int lo = 0, any = 0;

	while (n > 1) {
		int half = (n + 1) / 2;

		if (r >= lo + half) {
			double x = tree(lo, half, i);

			sum = any ? sum + x : x;
			any = 1;
			lo += half;
			n -= half;
		} else {
			n = half;
		}
	}
	return sum;
}

static int wrong(const double *x, int len, int first, int n)
{
	int bad = 0;

	for (int i = 0; i < len; i++)
		bad += x[i] != tree(0, n, first + i);
	return bad;
}

/* All but allreduce, on any communicator. */
static void follow_the_tree(MPI_Comm comm, int len, int root)
{
	double *x = malloc((size_t)len * sizeof *x), *y = malloc((size_t)len * sizeof *y);
	int r, n, bad = 0, first = 0, few = len < 20000 ? len : 20000, *count;

	MPI_Comm_rank(comm, &r);
	MPI_Comm_size(comm, &n);
	count = malloc((size_t)n * sizeof *count);
	for (int i = 0; i < len; i++)
		x[i] = operand(r, i);
	MPI_Reduce(x, y, len, MPI_DOUBLE, MPI_SUM, root, comm);
	CHECK_EQ(r == root ? wrong(y, len, 0, n) : 0, 0);
	for (int i = 0, left = len; i < n; left -= count[i++]) { /* unequal, and none for the second */
		count[i] = i == n - 1 ? left : i == 1 ? 0 : left / 2;
		first += i < r ? count[i] : 0;
	}
	MPI_Reduce_scatter(x, y, count, MPI_DOUBLE, MPI_SUM, comm);
	CHECK_EQ(wrong(y, count[r], first, n), 0);
	MPI_Exscan(x, y, few, MPI_DOUBLE, MPI_SUM, comm);
	for (int i = 0; i < few && r > 0; i++)
		bad += y[i] != before(n, r, i);
	CHECK_EQ(bad, 0);
	memcpy(y, x, (size_t)few * sizeof *y);
	MPI_Scan(MPI_IN_PLACE, y, few, MPI_DOUBLE, MPI_SUM, comm);
	for (int i = 0; i < few; i++)
		bad += y[i] != (r > 0 ? before(n, r, i) + x[i] : x[i]);
	CHECK_EQ(bad, 0);
	free(x);
	free(y);
	free(count);
}

int main(int argc, char **argv)
{
	static const int lengths[] = { 1, 17, 1000, 20000, 300000 };
	uint64_t all = 0;
	int r, n, as_tree;
	MPI_Comm mixed;

	chk_begin(&argc, &argv, "sum_order", 1);
	as_tree = argc > 1 && strcmp(argv[1], "tree") == 0;
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	MPI_Comm_split(MPI_COMM_WORLD, 0, r % 2 * n + r, &mixed);
	for (int k = 0; k < (int)(sizeof lengths / sizeof lengths[0]); k++) {
		int len = lengths[k];
		double *x = malloc((size_t)len * sizeof *x), *y = malloc((size_t)len * sizeof *y);
		uint64_t mine, least, most;

		for (int i = 0; i < len; i++)
			x[i] = operand(r, i);
		MPI_Allreduce(x, y, len, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		mine = digest(y, len);
		MPI_Allreduce(&mine, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
		MPI_Allreduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
		CHECK(least == most);
		if (as_tree) {
			CHECK_EQ(wrong(y, len, 0, n), 0);
			follow_the_tree(MPI_COMM_WORLD, len, k % n);
			if (len <= 1000)
				follow_the_tree(mixed, len, (k + 1) % n);
		}
		all = chk_mix(all, mine);
		free(x);
		free(y);
	}
	if (r == 0) {
		printf("digest %016llx\n", (unsigned long long)all);
		fflush(stdout);
	}
	MPI_Comm_free(&mixed);
	return chk_end();
}
