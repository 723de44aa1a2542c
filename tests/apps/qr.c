/* qr: Householder factorisation with column pivoting, columns dealt to the ranks in turn (they stay where they are; the permutation is a list). For each
 * column one allreduce finds the largest that is left, and one broadcast spreads its reflector. Checked: A'A = R'R, and the diagonal of R does not grow. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

enum { N = 40 };

static double a[N][N], kept[N][N], R[N][N], part[N][N]; /* [column][row] */
static int done[N], order[N];

struct found {
	double norm;
	int column;
};

static double dot(const double *x, const double *y, int from)
{
	double s = 0;

	for (int i = from; i < N; i++)
		s += x[i] * y[i];
	return s;
}

/* The reflector that makes rows k + 1 and on of a column 0; v[k..], of length sqrt(2) or, if there is nothing to do, 0. */
static void reflector(const double *column, int k, double *v)
{
	double norm = sqrt(dot(column, column, k)), length;

	for (int i = k; i < N; i++)
		v[i] = column[i];
	v[k] += column[k] < 0 ? -norm : norm;
	length = sqrt(dot(v, v, k) / 2);
	for (int i = k; i < N && length > 0; i++)
		v[i] /= length;
}

static void reflect(double *column, const double *v, int k)
{
	double s = dot(column, v, k);

	for (int i = k; i < N; i++)
		column[i] -= s * v[i];
}

static void factor(int r, int n)
{
	double v[N];

	for (int k = 0; k < N; k++) {
		struct found best = { -1, -1 }, all;

		for (int c = r; c < N; c += n) {
			double norm = dot(a[c], a[c], k);

			if (!done[c] && norm > best.norm)
				best = (struct found){ norm, c };
		}
		MPI_Allreduce(&best, &all, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
		if (all.column % n == r)
			reflector(a[all.column], k, v);
		MPI_Bcast(v + k, N - k, MPI_DOUBLE, all.column % n, MPI_COMM_WORLD);
		for (int c = r; c < N; c += n)
			if (!done[c])
				reflect(a[c], v, k);
		done[all.column] = 1;
		order[k] = all.column;
	}
}

/* R by columns of the permuted matrix, at all ranks: every rank adds those that it has. */
static int wrong(int r, int n)
{
	int bad = 0;

	for (int k = 0; k < N; k++)
		for (int i = 0; i <= k && order[k] % n == r; i++)
			part[k][i] = a[order[k]][i];
	MPI_Reduce(part, R, N * N, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	for (int k = 0; r == 0 && k < N; k++) {
		bad += k > 0 && fabs(R[k][k]) > fabs(R[k - 1][k - 1]) * (1 + 1e-9);
		for (int j = 0; j < N; j++)
			bad += !(
				fabs(dot(R[k], R[j], 0) - dot(kept[order[k]], kept[order[j]], 0)) < 1e-9 * N);
	}
	return bad;
}

int main(int argc, char **argv)
{
	int r, n, bad;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (int c = 0; c < N; c++)
		for (int i = 0; i < N; i++)
			kept[c][i] = a[c][i] = sin(1.0 + 7 * c + 13 * i + c * i);
	factor(r, n);
	bad = wrong(r, n);
	if (r == 0)
		printf("qr: %d ranks, %d values wrong\n", n, bad);
	MPI_Finalize();
	return 0;
}
