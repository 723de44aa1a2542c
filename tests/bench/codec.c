/* codec.c: what the codecs do to kinds of data: ratio, speed both ways, and how much sooner segments arrive over 10 Mbit/s.
 *
 * usage: codec [FILE ELEM]...   FILE: raw data of your own, ELEM: element size. Reference in the same run: memcpy.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec.h"

#define SEG   (256u << 10)
#define SEGS  16
#define WIRE  1.25e6 /* bytes/s */
#define TOTAL ((size_t)SEG * SEGS)

static uint64_t state = 1;

static uint64_t rnd(void)
{
	uint64_t z = state += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

static double uniform(void)
{
	return (double)(rnd() >> 11) * 0x1p-53;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Atoms of a warm crystal as a binary dump: x y z vx vy vz, doubles. */
static void positions(uint8_t *to)
{
	double *d = (double *)(void *)to;

	for (size_t i = 0; i < TOTAL / 48; i++) {
		size_t at[3] = { i % 48, i / 48 % 48, i / 2304 };

		for (int k = 0; k < 3; k++) {
			d[6 * i + (size_t)k] = 1.6796 * (double)at[k] + 0.08 * (uniform() + uniform() - 1);
			d[6 * i + 3 + (size_t)k] = 2.4 * (uniform() + uniform() + uniform() - 1.5);
		}
	}
}

static double wave(size_t i)
{
	double x = (double)(i % 80) / 80, y = (double)(i / 80 % 80) / 80, z = (double)(i / 6400) / 80;

	return 300 + 40 * sin(3 * x) * cos(2 * y + 0.3) * sin(z + 1) +
	       5 * exp(-10 * ((x - 0.5) * (x - 0.5) + (y - 0.4) * (y - 0.4)));
}

/* All 52 bits of the mantissa mean something: little that a codec without loss can do. */
static void smooth_full(uint8_t *to)
{
	for (size_t i = 0; i < TOTAL / 8; i++) {
		double v = wave(i);

		memcpy(to + 8 * i, &v, 8);
	}
}

/* Computed or read in single precision, sent as doubles. */
static void smooth_single(uint8_t *to)
{
	for (size_t i = 0; i < TOTAL / 8; i++) {
		double v = (float)wave(i);

		memcpy(to + 8 * i, &v, 8);
	}
}

/* As measured, or kept to 1/256. */
static void smooth_steps(uint8_t *to)
{
	for (size_t i = 0; i < TOTAL / 8; i++) {
		double v = round(wave(i) * 256) / 256;

		memcpy(to + 8 * i, &v, 8);
	}
}

static void floats(uint8_t *to)
{
	for (size_t i = 0; i < TOTAL / 4; i++) {
		float v = (float)wave(i);

		memcpy(to + 4 * i, &v, 4);
	}
}

/* A front moving through a medium at rest: most of the field is constant. */
static void front(uint8_t *to)
{
	for (size_t i = 0; i < TOTAL / 8; i++) {
		double x = (double)(i % 80) / 80, y = (double)(i / 80 % 80) / 80, v = 1;

		if (fabs(x - 0.3 * y - 0.3) < 0.1)
			v = 1 + cos((x - 0.3 * y - 0.3) * 15.7) * 0.5;
		memcpy(to + 8 * i, &v, 8);
	}
}

static void indices(uint8_t *to)
{
	uint32_t v = 0;

	for (size_t i = 0; i < TOTAL / 4; i++) {
		v = i % 7 ? v + 1 + (uint32_t)(rnd() % 30) : (uint32_t)(i * 11);
		memcpy(to + 4 * i, &v, 4);
	}
}

static void text(uint8_t *to)
{
	static const char *const names[] = { "energy", "pressure", "step", "atoms", "warning", "rank" };
	size_t n = 0;
	char line[80];

	while (n < TOTAL) {
		int len = snprintf(line, sizeof line, "%-9s %8d %14.6f %12.4e\n", names[rnd() % 6],
			(int)(rnd() % 100000), uniform() * 1000, uniform());

		memcpy(to + n, line, n + (size_t)len <= TOTAL ? (size_t)len : TOTAL - n);
		n += (size_t)len;
	}
}

static void noise(uint8_t *to)
{
	for (size_t i = 0; i < TOTAL; i += 8) {
		uint64_t v = rnd();

		memcpy(to + i, &v, 8);
	}
}

static const struct {
	const char *name;
	unsigned elem;
	void (*fill)(uint8_t *to);
} kinds[] = {
	{ "atoms, doubles", 8, positions },
	{ "smooth 3-D, doubles", 8, smooth_full },
	{ "smooth 3-D, singles as doubles", 8, smooth_single },
	{ "smooth 3-D, steps of 1/256", 8, smooth_steps },
	{ "smooth 3-D, floats", 4, floats },
	{ "front in a field at rest", 8, front },
	{ "indices, ints", 4, indices },
	{ "text", 1, text },
	{ "random", 8, noise },
};

static const struct {
	int codec, level;
} codecs[] = {
	{ PXD_CODEC_LZ4, 1 },
	{ PXD_CODEC_LZ4 | PXD_CODEC_SHUFFLE, 1 },
	{ PXD_CODEC_ZSTD, 1 },
	{ PXD_CODEC_ZSTD | PXD_CODEC_SHUFFLE, 1 },
	{ PXD_CODEC_ZSTD | PXD_CODEC_SHUFFLE, 3 },
	{ PXD_CODEC_ZSTD | PXD_CODEC_SHUFFLE, 9 },
	{ PXD_CODEC_ZLIB | PXD_CODEC_SHUFFLE, 1 },
	{ PXD_CODEC_ZLIB | PXD_CODEC_SHUFFLE, 6 },
};

static uint8_t *data, *packed, *back;

static void measure(struct pxd_codec *c, const char *name, unsigned elem, double copy)
{
	printf("%s (element size %u)\n", name, elem);
	for (size_t k = 0; k < sizeof codecs / sizeof *codecs; k++) {
		size_t sizes[SEGS], sum = 0;
		double t0, pack = 1e9, unpack = 1e9, plain, with;

		if (codecs[k].codec & PXD_CODEC_SHUFFLE && !pxd_codec_shuffles(elem))
			continue;
		for (int round = 0; round < 2; round++) {
			sum = 0;
			t0 = now();
			for (size_t s = 0; s < SEGS; s++) {
				sizes[s] = pxd_codec_pack(c, codecs[k].codec, codecs[k].level, elem,
					data + s * SEG, SEG, packed + s * SEG, SEG);
				sum += sizes[s] ? sizes[s] : SEG;
			}
			pack = fmin(pack, now() - t0);
			t0 = now();
			for (size_t s = 0; s < SEGS; s++) {
				if (sizes[s] && (pxd_codec_unpack(c, codecs[k].codec, elem, packed + s * SEG,
							 sizes[s], back, SEG) < 0 ||
							memcmp(back, data + s * SEG, SEG) != 0)) {
					fprintf(stderr, "codec: %s does not give back what it got\n",
						pxd_codec_name(codecs[k].codec));
					exit(1);
				}
			}
			unpack = fmin(unpack, now() - t0);
		}
		plain = TOTAL / WIRE;
		with = fmax((double)sum / WIRE, pack) +
		       fmin((double)sum / WIRE, pack) / SEGS; /* overlapped but for one segment */
		printf("  %-13s level %d  ratio %6.2f  pack %6.0f MB/s (%4.2f of memcpy)",
			pxd_codec_name(codecs[k].codec), codecs[k].level, (double)TOTAL / (double)sum,
			TOTAL / pack / 1e6, TOTAL / pack / copy);
		if (sum == TOTAL)
			printf("  left plain\n");
		else
			printf("  unpack %6.0f MB/s  at 10 Mbit/s %5.2f times as fast\n",
				TOTAL / unpack / 1e6, plain / with);
	}
}

static int measure_file(struct pxd_codec *c, const char *path, unsigned elem, double copy)
{
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f) {
		perror(path);
		return 1;
	}
	memset(data, 0, TOTAL);
	n = fread(data, 1, TOTAL, f);
	fclose(f);
	if (n == 0) {
		fprintf(stderr, "%s: empty\n", path);
		return 1;
	}
	for (size_t have = n; have < TOTAL;
		have++) /* a short file is repeated; segments do not know of each other */
		data[have] = data[have - n];
	measure(c, path, elem, copy);
	return 0;
}

int main(int argc, char **argv)
{
	struct pxd_codec *c = pxd_codec_new();
	double t, copy;

	data = malloc(TOTAL);
	packed = malloc(TOTAL);
	back = malloc(TOTAL);
	if (!c || !data || !packed || !back || argc % 2 == 0)
		return 2;
	noise(data);
	memcpy(packed, data, TOTAL);
	t = now();
	for (int i = 0; i < 8; i++)
		memcpy(i % 2 ? data : packed, i % 2 ? packed : data, TOTAL);
	copy = 8 * TOTAL / (now() - t);
	printf("memcpy: %.0f MB/s; segments of %u KiB, unpack with comparison\n", copy / 1e6, SEG >> 10);
	for (int i = 1; i + 1 < argc; i += 2)
		if (measure_file(c, argv[i], (unsigned)atoi(argv[i + 1]), copy) != 0)
			return 1;
	for (size_t k = 0; argc == 1 && k < sizeof kinds / sizeof *kinds; k++) {
		memset(data, 0, TOTAL);
		kinds[k].fill(data);
		measure(c, kinds[k].name, kinds[k].elem, copy);
	}
	pxd_codec_free(c);
	free(data);
	free(packed);
	free(back);
	return 0;
}
