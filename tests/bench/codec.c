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
#include "kinds.h"

#define SEG   (256u << 10)
#define SEGS  16
#define WIRE  1.25e6 /* bytes/s */
#define TOTAL ((size_t)SEG * SEGS)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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
	noise(data, TOTAL);
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
		kinds[k].fill(data, TOTAL);
		measure(c, kinds[k].name, kinds[k].elem, copy);
	}
	pxd_codec_free(c);
	free(data);
	free(packed);
	free(back);
	return 0;
}
