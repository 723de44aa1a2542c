/* predict.c: what compression makes of what iterative programs send: ratio of zstd alone, ratio and speed both ways of `compress: auto` with
 * prediction over 10 Mbit/s, and which predictor won. Every segment is decoded and compared (replay.h); acknowledgements come before
 * the next message.
 *
 * usage: predict [FILE]...   recordings (pacxrun --record); without any: the series of series.h
 */
#include <stdio.h>

#include "err.h"
#include "recording.h"
#include "replay.h"
#include "series.h"

#define RATE 1.25e6 /* bytes/s */

enum { ZSTD, AUTO, WAYS };

static struct pxd_replay *replay[WAYS];

static void begin(bool big)
{
	struct pxd_replay_setup s = { .rate = RATE, .big = big };

	s.opts.compress = PXD_COMPRESS_ZSTD;
	s.opts.compress_level = 1;
	s.opts.predict = PXD_PREDICTION_NONE;
	replay[ZSTD] = pxd_replay_new(&s);
	s.opts.compress = PXD_COMPRESS_AUTO;
	s.opts.predict = PXD_PREDICTION_AUTO;
	replay[AUTO] = pxd_replay_new(&s);
	if (!replay[ZSTD] || !replay[AUTO])
		exit(2);
}

static void take(const char *name, const struct px_frame *f, const uint8_t *payload)
{
	for (int i = 0; i < WAYS; i++) {
		int rc = pxd_replay_take(replay[i], f, payload);

		if (rc == 0)
			continue;
		fprintf(stderr, "predict: %s, message %u: %s\n", name, f->msg,
			rc == PX_EPROTO ? "it does not come back" : px_strerror(rc));
		exit(1);
	}
}

static void print(const char *name)
{
	const struct pxd_replay_result *z = pxd_replay_result(replay[ZSTD]),
				       *r = pxd_replay_result(replay[AUTO]);
	uint64_t others = r->segments;

	printf("%-28s %6.2f MB  zstd %6.2f  auto %6.2f (%4.2f times)  pack %5.0f MB/s  unpack %5.0f MB/s ",
		name, (double)r->plain / 1e6, (double)z->plain / (double)z->coded,
		(double)r->plain / (double)r->coded, (double)z->coded / (double)r->coded,
		(double)r->plain / r->pack / 1e6, r->unpack > 0 ? (double)r->plain / r->unpack / 1e6 : 0);
	for (int k = 0; k < PXD_PREDICT_KINDS; k++) {
		if (r->count.predicted[k].segments)
			printf(" %s %llu", pxd_predict_kind_name((enum pxd_predict_kind)k),
				(unsigned long long)r->count.predicted[k].segments);
		others -= r->count.predicted[k].segments;
	}
	if (others)
		printf(" none %llu", (unsigned long long)others);
	printf("\n");
	for (int i = 0; i < WAYS; i++)
		pxd_replay_free(replay[i]);
}

static void measure_series(const struct series *s)
{
	static uint8_t message[SERIES_MOST];
	struct px_frame f = {
		.type = PX_F_SEG, .elem = (uint8_t)s->elem, .total = s->len, .body = s->len, .seg = PX_SEG_MIN
	};

	begin(false);
	s->begin();
	for (; f.msg < (uint32_t)s->steps; f.msg++) {
		s->step(message);
		take(s->name, &f, message);
	}
	print(s->name);
}

/* The name of the folder of the file, which says what is in it. */
static const char *folder(char *path)
{
	char *slash = strrchr(path, '/'), *before;

	if (!slash)
		return path;
	*slash = '\0';
	before = strrchr(path, '/');
	return before ? before + 1 : path;
}

static void measure_file(char *path)
{
	static uint8_t payload[PX_SEG_MAX];
	struct pxd_recording_head h;
	char why[300];
	FILE *file = pxd_recording_open(path, &h, why, sizeof why);
	struct px_frame f;
	uint64_t at;
	int rc;

	if (!file) {
		fprintf(stderr, "predict: %s\n", why);
		exit(1);
	}
	begin(h.big);
	while ((rc = pxd_recording_next(file, &f, &at, payload)) > 0)
		take(path, &f, payload);
	fclose(file);
	if (rc < 0)
		fprintf(stderr, "predict: %s: a record is damaged\n", path);
	if (rc < 0 || pxd_replay_result(replay[AUTO])->segments == 0)
		exit(1);
	print(folder(path));
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		measure_file(argv[i]);
	for (size_t k = 0; argc == 1 && k < SERIES; k++)
		measure_series(&series[k]);
	return 0;
}
