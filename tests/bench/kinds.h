/* kinds.h: kinds of data for the benchmarks of compression, made from formulas, the same on every machine. Each fill function makes
 * len bytes, a multiple of 240, at an address fit for a double.
 */
#ifndef PX_BENCH_KINDS_H
#define PX_BENCH_KINDS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t state = 1;

static inline uint64_t rnd(void)
{
	uint64_t z = state += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

static inline double uniform(void)
{
	return (double)(rnd() >> 11) * 0x1p-53;
}

/* Atoms of a warm crystal as a binary dump: x y z vx vy vz, doubles. */
static void positions(uint8_t *to, size_t len)
{
	double *d = (double *)(void *)to;

	for (size_t i = 0; i < len / 48; i++) {
		size_t at[3] = { i % 48, i / 48 % 48, i / 2304 };

		for (int k = 0; k < 3; k++) {
			d[6 * i + (size_t)k] = 1.6796 * (double)at[k] + 0.08 * (uniform() + uniform() - 1);
			d[6 * i + 3 + (size_t)k] = 2.4 * (uniform() + uniform() + uniform() - 1.5);
		}
	}
}

/* A binary dump of LAMMPS in its default style: id type xs ys zs, doubles, atoms in the order of the cells. */
static void dump(uint8_t *to, size_t len)
{
	double *d = (double *)(void *)to;

	for (size_t i = 0; i < len / 40; i++) {
		size_t at[3] = { i % 48, i / 48 % 48, i / 2304 };

		d[5 * i] = (double)(1 + i * 7 % 30011);
		d[5 * i + 1] = 1;
		for (int k = 0; k < 3; k++)
			d[5 * i + 2 + (size_t)k] = ((double)at[k] + 0.05 * (uniform() + uniform() - 1)) / 48;
	}
}

static inline double wave(size_t i)
{
	double x = (double)(i % 80) / 80, y = (double)(i / 80 % 80) / 80, z = (double)(i / 6400) / 80;

	return 300 + 40 * sin(3 * x) * cos(2 * y + 0.3) * sin(z + 1) +
	       5 * exp(-10 * ((x - 0.5) * (x - 0.5) + (y - 0.4) * (y - 0.4)));
}

/* All 52 bits of the mantissa mean something: little that a codec without loss can do. */
static void smooth_full(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len / 8; i++) {
		double v = wave(i);

		memcpy(to + 8 * i, &v, 8);
	}
}

/* Computed or read in single precision, sent as doubles. */
static void smooth_single(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len / 8; i++) {
		double v = (float)wave(i);

		memcpy(to + 8 * i, &v, 8);
	}
}

/* As measured, or kept to 1/256. */
static void smooth_steps(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len / 8; i++) {
		double v = round(wave(i) * 256) / 256;

		memcpy(to + 8 * i, &v, 8);
	}
}

static void floats(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len / 4; i++) {
		float v = (float)wave(i);

		memcpy(to + 4 * i, &v, 4);
	}
}

/* A front moving through a medium at rest: most of the field is constant. */
static void front(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len / 8; i++) {
		double x = (double)(i % 80) / 80, y = (double)(i / 80 % 80) / 80, v = 1;

		if (fabs(x - 0.3 * y - 0.3) < 0.1)
			v = 1 + cos((x - 0.3 * y - 0.3) * 15.7) * 0.5;
		memcpy(to + 8 * i, &v, 8);
	}
}

static void indices(uint8_t *to, size_t len)
{
	uint32_t v = 0;

	for (size_t i = 0; i < len / 4; i++) {
		v = i % 7 ? v + 1 + (uint32_t)(rnd() % 30) : (uint32_t)(i * 11);
		memcpy(to + 4 * i, &v, 4);
	}
}

static void text(uint8_t *to, size_t len)
{
	static const char *const names[] = { "energy", "pressure", "step", "atoms", "warning", "rank" };
	size_t n = 0;
	char line[80];

	while (n < len) {
		int k = snprintf(line, sizeof line, "%-9s %8d %14.6f %12.4e\n", names[rnd() % 6],
			(int)(rnd() % 100000), uniform() * 1000, uniform());

		memcpy(to + n, line, n + (size_t)k <= len ? (size_t)k : len - n);
		n += (size_t)k;
	}
}

static void noise(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = rnd();

		memcpy(to + i, &v, 8);
	}
}

static const struct kind {
	const char *key, *name; /* for a command line, for a reader */
	unsigned elem;
	void (*fill)(uint8_t *to, size_t len);
} kinds[] = {
	{ "atoms", "atoms, doubles", 8, positions },
	{ "dump", "dump, doubles", 8, dump },
	{ "smooth", "smooth 3-D, doubles", 8, smooth_full },
	{ "singles", "smooth 3-D, singles as doubles", 8, smooth_single },
	{ "steps", "smooth 3-D, steps of 1/256", 8, smooth_steps },
	{ "floats", "smooth 3-D, floats", 4, floats },
	{ "front", "front in a field at rest", 8, front },
	{ "indices", "indices, ints", 4, indices },
	{ "text", "text", 1, text },
	{ "random", "random", 8, noise },
};

#endif
