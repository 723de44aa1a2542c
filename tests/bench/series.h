/* series.h: what small programs send again and again: successive messages of one source, destination, tag and length, made by solving
 * the problem that the name says, the same on every machine. One series at a time: begin, then step by step.
 */
#ifndef PX_BENCH_SERIES_H
#define PX_BENCH_SERIES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kinds.h"

/* Poisson's equation on a cube by successive over-relaxation; the message: a face. */
enum { CUBE = 72 };
static double cube[CUBE][CUBE][CUBE];

static inline void poisson_sweep(void)
{
	const double omega = 2 / (1 + sin(3.14159265358979 / CUBE)), h2 = 1.0 / (CUBE * CUBE);

	for (int i = 1; i < CUBE - 1; i++)
		for (int j = 1; j < CUBE - 1; j++)
			for (int k = 1; k < CUBE - 1; k++) {
				double sum = cube[i - 1][j][k] + cube[i + 1][j][k] + cube[i][j - 1][k] +
					     cube[i][j + 1][k] + cube[i][j][k - 1] + cube[i][j][k + 1];
				double f =
					40 * sin(0.1 * i + 0.2 * j) + (k > 30 && k < 50 && i > 20 ? 25 : 0);

				cube[i][j][k] += omega * ((sum + h2 * f) / 6 - cube[i][j][k]);
			}
}

static inline void poisson_begin(int sweeps)
{
	memset(cube, 0, sizeof cube);
	for (int i = 0; i < CUBE; i++)
		for (int j = 0; j < CUBE; j++) {
			cube[i][j][0] = 300 + 0.3 * i;
			cube[0][i][j] = 290 + 5 * cos(0.1 * j);
		}
	for (int s = 0; s < sweeps; s++)
		poisson_sweep();
}

static inline void poisson_first(void)
{
	poisson_begin(0);
}

static inline void poisson_late(void)
{
	poisson_begin(240);
}

static inline void poisson_step(uint8_t *to)
{
	poisson_sweep();
	memcpy(to, cube[CUBE / 2], sizeof cube[0]);
}

/* Heat in a cube, explicit steps; the message: a face. (cube holds the one, other the next.) */
static double other[CUBE][CUBE][CUBE];

static inline void heat_begin(void)
{
	for (int i = 0; i < CUBE; i++)
		for (int j = 0; j < CUBE; j++)
			for (int k = 0; k < CUBE; k++)
				cube[i][j][k] =
					300 + 40 * exp(-0.01 * ((i - 30) * (i - 30) + (j - 40) * (j - 40) +
								       (k - 36) * (k - 36)));
	memcpy(other, cube, sizeof cube);
}

static inline void heat_step(uint8_t *to)
{
	for (int i = 1; i < CUBE - 1; i++)
		for (int j = 1; j < CUBE - 1; j++)
			for (int k = 1; k < CUBE - 1; k++)
				other[i][j][k] =
					cube[i][j][k] +
					0.15 * (cube[i - 1][j][k] + cube[i + 1][j][k] + cube[i][j - 1][k] +
						       cube[i][j + 1][k] + cube[i][j][k - 1] +
						       cube[i][j][k + 1] - 6 * cube[i][j][k]);
	memcpy(cube, other, sizeof cube);
	memcpy(to, cube[CUBE / 2], sizeof cube[0]);
}

/* Lid-driven cavity, vorticity and stream function; the message: two rows of each, as a halo of width two. */
enum { CAVITY = 256 };
static double psi[CAVITY][CAVITY], omg[CAVITY][CAVITY], omg2[CAVITY][CAVITY];

static inline void cavity_once(void)
{
	const double h = 1.0 / CAVITY, dt = 2e-4, nu = 0.01;

	for (int s = 0; s < 3; s++)
		for (int i = 1; i < CAVITY - 1; i++)
			for (int j = 1; j < CAVITY - 1; j++)
				psi[i][j] += 1.7 * ((psi[i - 1][j] + psi[i + 1][j] + psi[i][j - 1] +
							    psi[i][j + 1] + h * h * omg[i][j]) /
								   4 -
							   psi[i][j]);
	for (int i = 1; i < CAVITY - 1; i++) {
		omg[0][i] = -2 * psi[1][i] / (h * h);
		omg[CAVITY - 1][i] = -2 * psi[CAVITY - 2][i] / (h * h) - 2 / h;
		omg[i][0] = -2 * psi[i][1] / (h * h);
		omg[i][CAVITY - 1] = -2 * psi[i][CAVITY - 2] / (h * h);
	}
	for (int i = 1; i < CAVITY - 1; i++)
		for (int j = 1; j < CAVITY - 1; j++) {
			double u = (psi[i + 1][j] - psi[i - 1][j]) / (2 * h),
			       v = -(psi[i][j + 1] - psi[i][j - 1]) / (2 * h);
			double lap = (omg[i - 1][j] + omg[i + 1][j] + omg[i][j - 1] + omg[i][j + 1] -
					     4 * omg[i][j]) /
				     (h * h);

			omg2[i][j] =
				omg[i][j] + dt * (nu * lap - u * (omg[i][j + 1] - omg[i][j - 1]) / (2 * h) -
							 v * (omg[i + 1][j] - omg[i - 1][j]) / (2 * h));
		}
	for (int i = 1; i < CAVITY - 1; i++)
		memcpy(&omg[i][1], &omg2[i][1], (CAVITY - 2) * sizeof omg[0][0]);
}

static inline void cavity_begin(void)
{
	memset(psi, 0, sizeof psi);
	memset(omg, 0, sizeof omg);
	for (int s = 0; s < 200; s++)
		cavity_once();
}

static inline void cavity_step(uint8_t *to)
{
	cavity_once();
	memcpy(to, psi[CAVITY / 2], 2 * sizeof psi[0]);
	memcpy(to + 2 * sizeof psi[0], omg[CAVITY / 2], 2 * sizeof omg[0]);
}

/* Conjugate gradients for the Laplacian of a cube; the message: a face of the search direction and of the solution. */
static double cg_p[CUBE][CUBE][CUBE], cg_q[CUBE][CUBE][CUBE], cg_rr;
#define cg_x cube
#define cg_r other

static inline void cg_begin(void)
{
	memset(cg_x, 0, sizeof cg_x);
	memset(cg_p, 0, sizeof cg_p);
	memset(cg_r, 0, sizeof cg_r);
	cg_rr = 0;
	for (int i = 1; i < CUBE - 1; i++)
		for (int j = 1; j < CUBE - 1; j++)
			for (int k = 1; k < CUBE - 1; k++) {
				cg_r[i][j][k] = cg_p[i][j][k] = sin(0.1 * i) * cos(0.07 * j) + 0.01 * k;
				cg_rr += cg_r[i][j][k] * cg_r[i][j][k];
			}
}

static inline void cg_step(uint8_t *to)
{
	double pq = 0, alpha, beta, rr = 0;

	for (int i = 1; i < CUBE - 1; i++)
		for (int j = 1; j < CUBE - 1; j++)
			for (int k = 1; k < CUBE - 1; k++) {
				cg_q[i][j][k] = 6 * cg_p[i][j][k] - cg_p[i - 1][j][k] - cg_p[i + 1][j][k] -
						cg_p[i][j - 1][k] - cg_p[i][j + 1][k] - cg_p[i][j][k - 1] -
						cg_p[i][j][k + 1];
				pq += cg_p[i][j][k] * cg_q[i][j][k];
			}
	alpha = pq > 0 ? cg_rr / pq : 0;
	for (size_t i = 0; i < CUBE * CUBE * CUBE; i++) {
		(&cg_x[0][0][0])[i] += alpha * (&cg_p[0][0][0])[i];
		(&cg_r[0][0][0])[i] -= alpha * (&cg_q[0][0][0])[i];
		rr += (&cg_r[0][0][0])[i] * (&cg_r[0][0][0])[i];
	}
	beta = cg_rr > 0 ? rr / cg_rr : 0;
	cg_rr = rr;
	for (size_t i = 0; i < CUBE * CUBE * CUBE; i++)
		(&cg_p[0][0][0])[i] = (&cg_r[0][0][0])[i] + beta * (&cg_p[0][0][0])[i];
	memcpy(to, cg_p[CUBE / 2], sizeof cg_p[0]);
}

/* Lennard-Jones atoms as in LAMMPS' melt, velocity Verlet; the message: x y z of the atoms that are in one half at the last building
 * of the lists, which is every 20 steps. */
enum { EDGE = 10, ATOMS = 4 * EDGE * EDGE * EDGE, CELLS = 6, NEAR = 200 };
static double md_x[ATOMS][3], md_v[ATOMS][3], md_f[ATOMS][3], md_box;
static int md_near[ATOMS][NEAR], md_n[ATOMS], md_sent[ATOMS], md_nsent, md_at;

static inline double md_apart(int i, int j, double *d)
{
	for (int k = 0; k < 3; k++) {
		d[k] = md_x[i][k] - md_x[j][k];
		d[k] -= md_box * rint(d[k] / md_box);
	}
	return d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
}

static inline void md_lists(void)
{
	double d[3];

	md_nsent = 0;
	for (int i = 0; i < ATOMS; i++) {
		md_n[i] = 0;
		for (int k = 0; k < 3; k++)
			md_x[i][k] -= md_box * floor(md_x[i][k] / md_box);
		if (md_x[i][0] < md_box / 2 && md_nsent < ATOMS / 3)
			md_sent[md_nsent++] = i;
	}
	for (int i = 0; i < ATOMS; i++)
		for (int j = i + 1; j < ATOMS; j++)
			if (md_apart(i, j, d) < 2.8 * 2.8 && md_n[i] < NEAR)
				md_near[i][md_n[i]++] = j;
}

static inline void md_forces(void)
{
	memset(md_f, 0, sizeof md_f);
	for (int i = 0; i < ATOMS; i++)
		for (int n = 0; n < md_n[i]; n++) {
			int j = md_near[i][n];
			double d[3], r2 = md_apart(i, j, d), r6, f;

			if (r2 > 2.5 * 2.5)
				continue;
			r6 = 1 / (r2 * r2 * r2);
			f = 48 * r6 * (r6 - 0.5) / r2;
			for (int k = 0; k < 3; k++) {
				md_f[i][k] += f * d[k];
				md_f[j][k] -= f * d[k];
			}
		}
}

static inline void md_begin(double heat)
{
	double a = cbrt(4 / 0.8442);
	int n = 0;

	state = 87287;
	md_box = a * EDGE;
	for (int i = 0; i < 2 * EDGE; i++)
		for (int j = 0; j < 2 * EDGE; j++)
			for (int k = 0; k < 2 * EDGE; k++)
				if ((i + j + k) % 2 == 0) {
					md_x[n][0] = 0.5 * a * k;
					md_x[n][1] = 0.5 * a * j;
					md_x[n++][2] = 0.5 * a * i;
				}
	for (int i = 0; i < ATOMS; i++)
		for (int k = 0; k < 3; k++)
			md_v[i][k] = sqrt(12 * heat) * (uniform() - 0.5);
	md_at = 0;
	md_lists();
	md_forces();
}

static inline void md_step(uint8_t *to)
{
	const double dt = 0.005;

	for (int i = 0; i < ATOMS; i++)
		for (int k = 0; k < 3; k++) {
			md_v[i][k] += 0.5 * dt * md_f[i][k];
			md_x[i][k] += dt * md_v[i][k];
		}
	if (++md_at % 20 == 0)
		md_lists();
	md_forces();
	for (int i = 0; i < ATOMS; i++)
		for (int k = 0; k < 3; k++)
			md_v[i][k] += 0.5 * dt * md_f[i][k];
	for (int i = 0; i < ATOMS / 3; i++)
		memcpy(to + 24 * i, md_x[md_sent[i]], 24);
}

static inline void melt_begin(void)
{
	md_begin(3);
}

static inline void solid_begin(void)
{
	md_begin(0.05);
}

/* A field of waves with a falling spectrum that travel and decay, in Fourier space; the message: a block of a transpose, complex. */
enum { MODES = 96 };
static double wave_t;

static inline void waves_begin(void)
{
	wave_t = 0;
}

static inline void waves_step(uint8_t *to)
{
	double *d = (double *)(void *)to;

	wave_t += 0.002;
	state = 11;
	for (int i = 1; i <= MODES; i++)
		for (int j = 1; j <= MODES; j++) {
			double k2 = i * i + j * j, a = uniform() / (1 + k2) * exp(-1e-3 * k2 * wave_t);
			double phase = 6.28318530718 * uniform() + wave_t * sqrt(k2);

			*d++ = a * cos(phase);
			*d++ = a * sin(phase);
		}
}

/* A smooth field in space, another one each time: time tells nothing. */
static inline void field_step(uint8_t *to)
{
	double *d = (double *)(void *)to, a = 3 * uniform(), b = 2 + uniform();

	for (int i = 0; i < 80 * 80; i++) {
		double x = i % 80 / 80.0, y = i / 80 / 80.0;

		*d++ = 300 + 40 * sin(3 * x + a) * cos(b * y + 0.3) +
		       5 * exp(-10 * ((x - 0.5) * (x - 0.5) + (y - 0.4) * (y - 0.4)));
	}
}

static inline void nothing_begin(void)
{
	state = 1;
}

static inline void random_step(uint8_t *to)
{
	noise(to, 49152);
}

static inline void text_step(uint8_t *to)
{
	text(to, 49152);
}

static const struct series {
	const char *name;
	unsigned elem;
	size_t len;
	int steps;
	void (*begin)(void);
	void (*step)(uint8_t *to);
} series[] = {
	{ "Poisson, first 100 sweeps", 8, sizeof cube[0], 100, poisson_first, poisson_step },
	{ "Poisson, near convergence", 8, sizeof cube[0], 100, poisson_late, poisson_step },
	{ "heat, first 100 steps", 8, sizeof cube[0], 100, heat_begin, heat_step },
	{ "cavity", 8, 4 * sizeof psi[0], 100, cavity_begin, cavity_step },
	{ "conjugate gradients", 8, sizeof cube[0], 100, cg_begin, cg_step },
	{ "melt, positions", 8, ATOMS / 3 * 24, 60, melt_begin, md_step },
	{ "solid, positions", 8, ATOMS / 3 * 24, 60, solid_begin, md_step },
	{ "spectral transpose", 16, MODES *MODES * 16, 60, waves_begin, waves_step },
	{ "smooth fields, never the same", 8, 80 * 80 * 8, 60, nothing_begin, field_step },
	{ "random", 8, 49152, 60, nothing_begin, random_step },
	{ "text", 1, 49152, 60, nothing_begin, text_step },
};
enum { SERIES = sizeof series / sizeof *series, SERIES_MOST = 1 << 18 };

#endif
