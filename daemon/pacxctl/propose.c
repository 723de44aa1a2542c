/* propose.c: pacxctl probe --recording: what each way of compressing would have made of the payload in a recording, over a link of
 * the given rate and latency, and the line for the hostfile that is best.
 */
#include "pacxctl.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "recording.h"
#include "replay.h"

#define RATE 1.25e6 /* bytes/s */
#define RTT  0.035  /* s */
/* What is so little faster than the default, `compress: auto`, is not worth a line of its own. */
#define ENOUGH 0.97

static const struct way {
	const char *text; /* for the hostfile */
	enum pxd_compress compress;
	int level;
	enum pxd_prediction predict;
} ways[] = {
	{ "compress: none", PXD_COMPRESS_NONE, 0, PXD_PREDICTION_NONE },
	{ "compress: lz4", PXD_COMPRESS_LZ4, 0, PXD_PREDICTION_NONE },
	{ "compress: zstd:1", PXD_COMPRESS_ZSTD, 1, PXD_PREDICTION_NONE },
	{ "compress: auto, predict: none", PXD_COMPRESS_AUTO, 0, PXD_PREDICTION_NONE },
	{ "compress: auto, predict: always", PXD_COMPRESS_AUTO, 0, PXD_PREDICTION_ALWAYS },
	{ "compress: auto", PXD_COMPRESS_AUTO, 0, PXD_PREDICTION_AUTO },
};
enum { NONE = 0, WAYS = sizeof ways / sizeof *ways, AUTO = WAYS - 1 };

/* Run the recording at path through all ways; 0, or PX_E... after a message. */
static int replay_all(const char *path, const struct pxd_ctl_options *o, struct pxd_recording_head *h,
	struct pxd_replay **r)
{
	static uint8_t payload[PX_SEG_MAX];
	char why[PXD_WHY];
	FILE *file = pxd_recording_open(path, h, why, sizeof why);
	struct px_frame f;
	uint64_t at;
	int rc = file ? 0 : PX_EIO;

	for (int i = 0; rc == 0 && i < WAYS; i++) {
		struct pxd_replay_setup s = {
			.rate = o->rate, .rtt = (double)o->rtt_us * 1e-6, .big = h->big
		};

		s.opts.compress = ways[i].compress;
		s.opts.compress_level = ways[i].level;
		s.opts.predict = ways[i].predict;
		r[i] = pxd_replay_new(&s);
		rc = r[i] ? 0 : PX_ENOMEM;
	}
	while (rc == 0 && (rc = pxd_recording_next(file, &f, &at, payload)) > 0)
		for (int i = rc = 0; rc == 0 && i < WAYS; i++)
			rc = pxd_replay_take(r[i], &f, payload);
	if (!file)
		fprintf(stderr, "pacxctl: %s\n", why);
	else if (rc < 0)
		fprintf(stderr, "pacxctl: %s: %s\n", path,
			rc == PX_EPROTO ? "a record is damaged" : px_strerror(rc));
	if (file)
		fclose(file);
	return rc;
}

static void print_predictors(const struct pxd_replay_result *r)
{
	for (int i = 1; i < PXD_CODEC_SLOTS; i++)
		if (r->count.codec[i].segments > 0)
			printf("      %-14s %8llu segments, %.2f MB to %.2f MB\n", pxd_slot_name((unsigned)i),
				(unsigned long long)r->count.codec[i].segments,
				(double)r->count.codec[i].in / 1e6, (double)r->count.codec[i].out / 1e6);
	for (int i = 0; i < PXD_PREDICT_KINDS; i++)
		if (r->count.predicted[i].segments > 0)
			printf("      of these predicted by %-9s %8llu segments, %.2f MB to %.2f MB\n",
				pxd_predict_kind_name((enum pxd_predict_kind)i),
				(unsigned long long)r->count.predicted[i].segments,
				(double)r->count.predicted[i].in / 1e6,
				(double)r->count.predicted[i].out / 1e6);
}

static void print_all(
	const struct pxd_ctl_options *o, const struct pxd_recording_head *h, struct pxd_replay **all)
{
	const struct pxd_replay_result *none = pxd_replay_result(all[NONE]);
	int best = AUTO;

	printf("%s -> %s: %llu pieces, %.2f MB\n", h->from_name, h->to_name,
		(unsigned long long)none->segments, (double)none->plain / 1e6);
	printf("  over %.4g MB/s and %.4g ms there and back, without the program's own time:\n",
		o->rate / 1e6, (double)o->rtt_us * 1e-3);
	for (int i = 0; i < WAYS; i++) {
		const struct pxd_replay_result *r = pxd_replay_result(all[i]);

		printf("  %-32s ratio %5.2f  %9.3f s  %5.2f times as fast as none\n", ways[i].text,
			(double)r->plain / (double)r->coded, r->seconds, none->seconds / r->seconds);
		if (r->seconds < ENOUGH * pxd_replay_result(all[best])->seconds)
			best = i;
	}
	printf("    what auto takes:\n");
	print_predictors(pxd_replay_result(all[AUTO]));
	printf("  proposed: {between: [%s, %s], %s}\n", h->from_name, h->to_name, ways[best].text);
}

int pxd_ctl_propose(struct pxd_ctl_options *o)
{
	struct pxd_replay *all[WAYS] = { NULL };
	struct pxd_recording_head h;
	int rc;

	if (!(o->rate > 0))
		o->rate = RATE;
	if (o->rtt_us < 0)
		o->rtt_us = (long)(RTT * 1e6);
	rc = replay_all(o->recording, o, &h, all);
	if (rc == 0 && pxd_replay_result(all[NONE])->segments == 0)
		printf("%s -> %s: nothing has been recorded\n", h.from_name, h.to_name);
	else if (rc == 0)
		print_all(o, &h, all);
	for (int i = 0; i < WAYS; i++)
		pxd_replay_free(all[i]);
	return rc == PX_EIO ? PXD_CTL_USAGE : rc < 0 ? PXD_CTL_WRONG : 0;
}
