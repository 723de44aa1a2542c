/* predict.c: what prediction does to the messages of iterative programs: ratio with and without it, speed both ways, and which predictor
 * won. Each message is predicted from the three before it, as over a link whose acknowledgements come before the next message.
 *
 * usage: predict [FILE ELEM LENGTH]...   FILE: messages of LENGTH bytes of your own behind each other, ELEM: element size
 */
#include <stdio.h>
#include <time.h>

#include "forecast.h"
#include "seg_code.h"
#include "series.h"

enum { KEPT = PXD_PREDICT_REFS + 1 };
static uint8_t in[KEPT][SERIES_MOST], scratch[SERIES_MOST], packed[SERIES_MOST], out[SERIES_MOST];
static FILE *recording; /* of messages */
static bool ended;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void nothing(void)
{
}

struct result {
	size_t plain, codec, predicted, count[PXD_PREDICT_KINDS + 1];
	double pack, unpack;
};

static void one(
	struct pxd_codec *c, struct pxd_forecast *f, const struct series *s, int step, struct result *r)
{
	const int plain = PXD_CODEC_ZSTD | (pxd_codec_shuffles(s->elem) ? PXD_CODEC_SHUFFLE : 0);
	int codec = plain;
	struct pxd_scene scene = { .flow = 1,
		.in = in[step % KEPT],
		.n = s->len,
		.elem = s->elem,
		.nrefs = step < PXD_PREDICT_REFS ? step : PXD_PREDICT_REFS,
		.back = 1 };
	struct pxd_predictor p = { 0 };
	bool with = false;
	struct pxd_outlook o;
	double t = now();
	size_t m = 0;

	for (int i = 0; i < scene.nrefs; i++)
		scene.ref[i] = in[(step + KEPT - 1 - i) % KEPT];
	if (pxd_predict_word(s->elem))
		with = pxd_forecast_choose(f, c, &scene, &p, &o);
	if (with && o.residual < o.zstd)
		codec = PXD_CODEC_RESIDUAL;
	for (int i = 0; with && i < p.nrefs; i++)
		p.ref[i] = (uint32_t)(step - 1 - i);
	m = pxd_seg_encode(c, codec, 1, s->elem, with ? &p : NULL, scene.ref, scene.in, s->len, scratch,
		packed, sizeof packed);
	if (with)
		pxd_forecast_learn(f, &scene, codec, m);
	r->pack += now() - t;
	r->plain += s->len;
	r->predicted += m ? m : s->len;
	r->count[m && with ? pxd_predict_kind(&p) : PXD_PREDICT_KINDS]++;
	t = now();
	if (m && (pxd_seg_decode(c, codec | (with ? PXD_CODEC_PREDICT : 0), s->elem, scene.ref, packed, m,
			  out, s->len) < 0 ||
			 memcmp(out, scene.in, s->len) != 0)) {
		fprintf(stderr, "predict: %s, message %d: it does not come back\n", s->name, step);
		exit(1);
	}
	r->unpack += now() - t;
	m = pxd_codec_pack(c, plain, 1, s->elem, scene.in, s->len, packed, sizeof packed);
	r->codec += m ? m : s->len;
}

static void measure(struct pxd_codec *c, const struct series *s)
{
	struct pxd_forecast *f = pxd_forecast_new();
	struct result r = { 0 };

	if (!f)
		exit(2);
	s->begin();
	for (int step = 0; step < s->steps; step++) {
		s->step(in[step % KEPT]);
		if (ended)
			break;
		one(c, f, s, step, &r);
	}
	printf("%-30s %6zu bytes  zstd %6.2f  predicted %6.2f (%4.2f times)  pack %5.0f MB/s  unpack %5.0f "
	       "MB/s ",
		s->name, s->len, (double)r.plain / (double)r.codec, (double)r.plain / (double)r.predicted,
		(double)r.codec / (double)r.predicted, (double)r.plain / r.pack / 1e6,
		(double)r.plain / r.unpack / 1e6);
	for (int k = 0; k <= PXD_PREDICT_KINDS; k++)
		if (r.count[k])
			printf(" %s %zu",
				k < PXD_PREDICT_KINDS ? pxd_predict_kind_name((enum pxd_predict_kind)k)
						      : "none",
				r.count[k]);
	printf("\n");
	pxd_forecast_free(f);
}

static struct series own;

static void own_step(uint8_t *to)
{
	ended = fread(to, 1, own.len, recording) != own.len;
}

static void measure_file(struct pxd_codec *c, char **arg)
{
	own = (struct series){ arg[0], (unsigned)atoi(arg[1]), (size_t)atol(arg[2]), 1 << 20, nothing,
		own_step };
	recording = fopen(arg[0], "rb");
	if (!recording || own.len < 64 || own.len > SERIES_MOST) {
		fprintf(stderr, "predict: %s: no such file, or no length from 64 to %d\n", arg[0],
			SERIES_MOST);
		exit(1);
	}
	ended = false;
	measure(c, &own);
	fclose(recording);
}

int main(int argc, char **argv)
{
	struct pxd_codec *c = pxd_codec_new();

	if (!c || (argc - 1) % 3 != 0)
		return 2;
	for (int i = 1; i + 2 < argc; i += 3)
		measure_file(c, argv + i);
	for (size_t k = 0; argc == 1 && k < SERIES; k++)
		measure(c, &series[k]);
	pxd_codec_free(c);
	return 0;
}
