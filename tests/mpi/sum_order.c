/*
 * sum_order - floating-point sums and products whose last bits depend on how the operands are grouped, of several lengths: all ranks get the
 * same bits from MPI_Allreduce, MPI_Reduce to any root gives these, too, and a digest of them all is printed.
 * Argument: "tree" = expect the bits of the binary tree over the ranks.
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

int main(int argc, char **argv)
{
	static const int lengths[] = { 1, 17, 1000, 20000, 300000 };
	uint64_t all = 0;
	int r, n, as_tree;

	chk_begin(&argc, &argv, "sum_order", 1);
	as_tree = argc > 1 && strcmp(argv[1], "tree") == 0;
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (int k = 0; k < (int)(sizeof lengths / sizeof lengths[0]); k++) {
		int len = lengths[k], root = k % n, bad = 0;
		double *x = malloc((size_t)len * sizeof *x), *y = malloc((size_t)len * sizeof *y),
		       *z = malloc((size_t)len * sizeof *z);
		uint64_t mine, least, most;

		for (int i = 0; i < len; i++)
			x[i] = operand(r, i);
		MPI_Allreduce(x, y, len, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		MPI_Reduce(x, z, len, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
		mine = digest(y, len);
		MPI_Allreduce(&mine, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
		MPI_Allreduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
		CHECK(least == most);
		for (int i = 0; as_tree && i < len; i++)
			bad += y[i] != tree(0, n, i) || (r == root && z[i] != y[i]);
		CHECK_EQ(bad, 0);
		all = chk_mix(all, mine);
		free(x);
		free(y);
		free(z);
	}
	if (r == 0) {
		printf("digest %016llx\n", (unsigned long long)all);
		fflush(stdout);
	}
	return chk_end();
}
