/* fields.c: small programs of the kinds that compression is for, split over all ranks: what `make bench-codec` records.
 *
 * usage: fields heat|cavity|cg|transpose|lattice [STEPS]
 *
 * heat: explicit steps in a cube. cavity: vorticity and stream function in a lid-driven cavity, halos of two rows. cg: conjugate
 * gradients for the Laplacian of a cube. transpose: a spectral code for waves in a square, whose two-dimensional transform
 * transposes through MPI_Alltoall. lattice: lattice Boltzmann, D2Q9, cells of nine numbers. Each prints a number that does not
 * depend on how many ranks there are (but for the last digits).
 */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

static int rank, size, lower, upper; /* neighbours */
static int steps = 60;

static void split(int n, int *from, int *count)
{
	*from = (int)((long)n * rank / size);
	*count = (int)((long)n * (rank + 1) / size) - *from;
}

/* Planes 0 .. wide-1 and the last `wide` are the neighbours'. */
static void halo(void *field, int planes, int wide, MPI_Datatype plane, size_t bytes)
{
	char *at = field;

	MPI_Sendrecv(at + (size_t)wide * bytes, wide, plane, lower, 1, at + (size_t)(planes + wide) * bytes,
		wide, plane, upper, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(at + (size_t)planes * bytes, wide, plane, upper, 2, at, wide, plane, lower, 2,
		MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double total(double mine)
{
	double all;

	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

/* A cube of N^3, in slabs; row of a plane: N numbers. */
enum { N = 72 };
typedef double plane_t[N][N];

static MPI_Datatype plane_type(int numbers, int rows)
{
	MPI_Datatype row, plane;

	MPI_Type_contiguous(numbers, MPI_DOUBLE, &row);
	MPI_Type_contiguous(rows, row, &plane);
	MPI_Type_commit(&plane);
	MPI_Type_free(&row);
	return plane;
}

static double laplace(plane_t *u, int i, int j, int k)
{
	return u[i - 1][j][k] + u[i + 1][j][k] + u[i][j - 1][k] + u[i][j + 1][k] + u[i][j][k - 1] +
	       u[i][j][k + 1] - 6 * u[i][j][k];
}

#define INSIDE(i, j, k)                                                                                      \
	for (int i = 1; i <= n; i++)                                                                         \
		if (from + i - 1 > 0 && from + i - 1 < N - 1)                                                \
			for (int j = 1; j < N - 1; j++)                                                      \
				for (int k = 1; k < N - 1; k++)

static double heat(void)
{
	int from, n;
	plane_t *u, *v, *t;
	MPI_Datatype plane = plane_type(N, N);
	double sum = 0;

	split(N, &from, &n);
	u = calloc((size_t)n + 2, sizeof *u);
	v = calloc((size_t)n + 2, sizeof *v);
	for (int i = 1; i <= n; i++)
		for (int j = 0; j < N; j++)
			for (int k = 0; k < N; k++) {
				int x = from + i - 1 - 30, y = j - 40, z = k - 36;

				u[i][j][k] = v[i][j][k] = 300 + 40 * exp(-0.01 * (x * x + y * y + z * z));
			}
	for (int s = 0; s < steps; s++) {
		halo(u, n, 1, plane, sizeof *u);
		INSIDE(i, j, k)
		v[i][j][k] = u[i][j][k] + 0.15 * laplace(u, i, j, k);
		t = u;
		u = v;
		v = t;
	}
	for (int i = 1; i <= n; i++)
		for (int j = 0; j < N * N; j++)
			sum += u[i][j / N][j % N];
	return total(sum) / N / N / N;
}

static double dot(plane_t *a, plane_t *b, int n)
{
	double sum = 0;

	for (int i = 1; i <= n; i++)
		for (int j = 0; j < N * N; j++)
			sum += a[i][j / N][j % N] * b[i][j / N][j % N];
	return total(sum);
}

static double cg(void)
{
	int from, n;
	plane_t *p, *q, *r, *x;
	MPI_Datatype plane = plane_type(N, N);
	double rr;

	split(N, &from, &n);
	p = calloc((size_t)n + 2, sizeof *p);
	q = calloc((size_t)n + 2, sizeof *q);
	r = calloc((size_t)n + 2, sizeof *r);
	x = calloc((size_t)n + 2, sizeof *x);
	INSIDE(i, j, k)
	p[i][j][k] = r[i][j][k] = sin(0.1 * (from + i)) * cos(0.07 * j) + 0.01 * k;
	rr = dot(r, r, n);
	for (int s = 0; s < steps; s++) {
		double alpha, now;

		halo(p, n, 1, plane, sizeof *p);
		INSIDE(i, j, k)
		q[i][j][k] = -laplace(p, i, j, k);
		alpha = rr / dot(p, q, n);
		INSIDE(i, j, k)
		{
			x[i][j][k] += alpha * p[i][j][k];
			r[i][j][k] -= alpha * q[i][j][k];
		}
		now = dot(r, r, n);
		INSIDE(i, j, k)
		p[i][j][k] = r[i][j][k] + now / rr * p[i][j][k];
		rr = now;
	}
	return sqrt(dot(x, x, n));
}

enum { M = 1024 }; /* of the cavity: a halo is two rows of each field */
typedef double row_t[M];

static double cavity(void)
{
	const double h = 1.0 / M, nu = 0.01, dt = 0.2 * h * h / nu;
	int from, n;
	row_t *psi, *omega, *next;
	MPI_Datatype row = plane_type(M, 1);
	double sum = 0;

	split(M / 8, &from, &n);
	psi = calloc((size_t)n + 4, sizeof *psi);
	omega = calloc((size_t)n + 4, sizeof *omega);
	next = calloc((size_t)n + 4, sizeof *next);
	for (int s = 0; s < steps + 40; s++) {
		halo(psi, n, 2, row, sizeof *psi);
		halo(omega, n, 2, row, sizeof *omega);
		for (int i = 2; i < n + 2; i++) {
			int g = from + i - 2;

			for (int j = 1; g > 0 && g < M / 8 - 1 && j < M - 1; j++) {
				double u = (psi[i + 1][j] - psi[i - 1][j]) / (2 * h);
				double v = -(psi[i][j + 1] - psi[i][j - 1]) / (2 * h);
				double lap = (omega[i - 1][j] + omega[i + 1][j] + omega[i][j - 1] +
						     omega[i][j + 1] - 4 * omega[i][j]) /
					     (h * h);

				next[i][j] =
					omega[i][j] +
					dt * (nu * lap - u * (omega[i][j + 1] - omega[i][j - 1]) / (2 * h) -
						     v * (omega[i + 1][j] - omega[i - 1][j]) / (2 * h));
				psi[i][j] += 0.9 * ((psi[i - 1][j] + psi[i + 1][j] + psi[i][j - 1] +
							    psi[i][j + 1] + h * h * omega[i][j]) /
								   4 -
							   psi[i][j]);
			}
			for (int j = 0; j < M; j++)
				if (g == 0)
					next[i][j] = -2 * psi[i + 1][j] / (h * h);
				else if (g == M / 8 - 1)
					next[i][j] = -2 * psi[i - 1][j] / (h * h) - 2 / h;
		}
		for (int i = 2; i < n + 2; i++)
			memcpy(omega[i], next[i], sizeof *omega);
	}
	for (int i = 2; i < n + 2; i++)
		for (int j = 0; j < M; j++)
			sum += psi[i][j] * psi[i][j];
	return sqrt(total(sum));
}

static void fft(double complex *a, int n, int sign)
{
	for (int i = 1, j = 0; i < n; i++) {
		int bit = n >> 1;

		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			double complex t = a[i];

			a[i] = a[j];
			a[j] = t;
		}
	}
	for (int len = 2; len <= n; len *= 2)
		for (int i = 0; i < n; i += len)
			for (int k = 0; k < len / 2; k++) {
				double complex w = cexp(sign * 2 * PI * I * k / len), x = a[i + k],
					       y = a[i + k + len / 2] * w;

				a[i + k] = x + y;
				a[i + k + len / 2] = x - y;
			}
}

enum { F = 128 };

/* mine: n rows of F; afterwards they are columns. size divides F. */
static void transpose(double complex *mine, double complex *out, double complex *in, int n)
{
	for (int r = 0; r < size; r++)
		for (int i = 0; i < n; i++)
			for (int j = 0; j < n; j++)
				out[((size_t)r * n + i) * n + j] = mine[(size_t)i * F + r * n + j];
	MPI_Alltoall(out, n * n, MPI_C_DOUBLE_COMPLEX, in, n * n, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		for (int i = 0; i < n; i++)
			for (int j = 0; j < n; j++)
				mine[(size_t)j * F + r * n + i] = in[((size_t)r * n + i) * n + j];
}

/* u_tt = laplace u - u^3, leapfrog; the Laplacian in Fourier space. */
static double spectral(void)
{
	int from, n;
	double complex *u, *w, *out, *in;
	double *before, sum = 0;
	const double dt = 0.01;

	split(F, &from, &n);
	u = calloc((size_t)n * F, sizeof *u);
	w = calloc((size_t)n * F, sizeof *w);
	out = calloc((size_t)n * F, sizeof *out);
	in = calloc((size_t)n * F, sizeof *in);
	before = calloc((size_t)n * F, sizeof *before);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < F; j++) {
			double x = 2 * PI * (from + i) / F, y = 2 * PI * j / F;

			u[i * F + j] = before[i * F + j] = exp(sin(x) + 0.5 * cos(2 * y + x)) - 1;
		}
	for (int s = 0; s < steps; s++) {
		memcpy(w, u, sizeof *w * (size_t)n * F);
		for (int i = 0; i < n; i++)
			fft(w + i * F, F, -1);
		transpose(w, out, in, n);
		for (int i = 0; i < n; i++) {
			int kx = from + i < F / 2 ? from + i : from + i - F;

			fft(w + i * F, F, -1);
			for (int j = 0; j < F; j++) {
				int ky = j < F / 2 ? j : j - F;

				w[i * F + j] *= -(double)(kx * kx + ky * ky) / F / F;
			}
			fft(w + i * F, F, 1);
		}
		transpose(w, out, in, n);
		for (int i = 0; i < n; i++)
			fft(w + i * F, F, 1);
		for (int i = 0; i < n * F; i++) {
			double now = creal(u[i]);

			u[i] = 2 * now - before[i] + dt * dt * (creal(w[i]) - now * now * now);
			before[i] = now;
		}
	}
	for (int i = 0; i < n * F; i++)
		sum += creal(u[i]) * creal(u[i]);
	return sqrt(total(sum));
}

enum { Q = 9, L = 512 };
typedef double cells_t[L][Q];

static double lattice(void)
{
	static const int ex[Q] = { 0, 1, 0, -1, 0, 1, -1, -1, 1 }, ey[Q] = { 0, 0, 1, 0, -1, 1, 1, -1, -1 };
	static const double weight[Q] = { 4. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 36, 1. / 36, 1. / 36,
		1. / 36 };
	int from, n;
	cells_t *f, *g;
	MPI_Datatype row = plane_type(Q, L);
	double sum = 0;

	lower = (rank + size - 1) % size; /* a ring */
	upper = (rank + 1) % size;
	split(L / 8, &from, &n);
	f = calloc((size_t)n + 2, sizeof *f);
	g = calloc((size_t)n + 2, sizeof *g);
	for (int i = 1; i <= n; i++)
		for (int j = 0; j < L; j++)
			for (int q = 0; q < Q; q++)
				f[i][j][q] = weight[q] *
					     (1 + 0.05 * sin(2 * PI * j / L) * cos(16 * PI * (from + i) / L) +
						     0.1 * ex[q] * cos(4 * PI * j / L));
	for (int s = 0; s < steps; s++) {
		for (int i = 1; i <= n; i++)
			for (int j = 0; j < L; j++) {
				double rho = 0, u = 0, v = 0;

				for (int q = 0; q < Q; q++) {
					rho += f[i][j][q];
					u += ex[q] * f[i][j][q];
					v += ey[q] * f[i][j][q];
				}
				u /= rho;
				v /= rho;
				for (int q = 0; q < Q; q++) {
					double e = 3 * (ex[q] * u + ey[q] * v);

					f[i][j][q] -= (f[i][j][q] - weight[q] * rho *
									    (1 + e + e * e / 2 -
										    1.5 * (u * u + v * v))) /
						      0.8;
				}
			}
		halo(f, n, 1, row, sizeof *f);
		for (int i = 1; i <= n; i++)
			for (int j = 0; j < L; j++)
				for (int q = 0; q < Q; q++)
					g[i][j][q] = f[i - ey[q]][(j - ex[q] + L) % L][q];
		memcpy(f[1], g[1], (size_t)n * sizeof *f);
	}
	for (int i = 1; i <= n; i++)
		for (int j = 0; j < L; j++)
			sum += f[i][j][1] * f[i][j][2];
	return total(sum);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		double (*run)(void);
	} programs[] = { { "heat", heat }, { "cavity", cavity }, { "cg", cg }, { "transpose", spectral },
		{ "lattice", lattice } };

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	lower = rank > 0 ? rank - 1 : MPI_PROC_NULL;
	upper = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
	if (argc > 2)
		steps = atoi(argv[2]);
	for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
		if (strcmp(argv[1], programs[i].name) == 0) {
			double result = programs[i].run();

			if (rank == 0)
				printf("%s: %.10g after %d steps\n", argv[1], result, steps);
		}
	MPI_Finalize();
	return 0;
}
