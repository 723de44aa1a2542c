/* auto_codec.h: what `compress: auto` decides for each segment of a link, from what it has measured.
 *
 * Owned by a link (role out). Pure arithmetic on what it is told: no clocks, no sockets; so tests can drive it. It keeps, per
 * codec and element size, moving averages of ratio and speed of compressing; the rate of the link comes from the owner.
 * Rule: a segment is compressed when that makes it arrive earlier: with the pipe full, the slower of processor
 * and wire must be faster than the plain wire; with the pipe empty, their sum. Incompressible data costs one sample of
 * SAMPLE bytes, then doubling pauses.
 */
#ifndef PXD_AUTO_CODEC_H
#define PXD_AUTO_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec.h"
#include "forecast.h"
#include "hint.h"
#include "hostfile.h"

#define PXD_PACK_MIN PX_HINT_MIN /* segments that are shorter are left alone */

/* Prediction is for wires so slow that nothing it does can hold them up: one core predicts and compresses several times as much. */
#define PXD_THIN 25e6 /* bytes/s */
/* A wire that carries a few KiB sooner than a worker thread gets to compress them. */
#define PXD_BRISK 200e6 /* bytes/s */

/* pxd_auto_foresees: are segments of n bytes with this element size predicted on a link that predicts at all? rate as below. */
bool pxd_auto_foresees(const struct pxd_link_opts *o, unsigned elem, size_t n, double rate);

struct pxd_auto; /* opaque */
struct pxd_choice {
	int codec; /* PXD_CODEC_..., 0 = plain */
	int level;
	bool predicted; /* what is compressed has been predicted: its ratio was known */
	double ns;      /* that compressing will take, or so; 0 = nobody knows */
	size_t len;     /* that will be left, or so */
};

struct pxd_auto *pxd_auto_new(const struct pxd_link_opts *o);
void pxd_auto_free(struct pxd_auto *a);
/* pxd_auto_choose: for a segment of n bytes with element size elem. rate: bytes/s that the wire of the link carries, 0 = not known;
 * queued: bytes that will still wait for the wire when a core is free to compress this segment. in may be sampled (codec c is used for it). */
struct pxd_choice pxd_auto_choose(struct pxd_auto *a, struct pxd_codec *c, const uint8_t *in, size_t n,
	unsigned elem, double rate, size_t queued);
/* pxd_auto_leaves: would pxd_auto_choose (mode PXD_COMPRESS_AUTO, rate known) leave such a segment plain whatever is in it? If so, that counts
 * as its choice. */
bool pxd_auto_leaves(struct pxd_auto *a, size_t n, unsigned elem, double rate, size_t queued);
/* pxd_auto_choose_known: the same for a segment that has been predicted, of which the codecs will make what *o says. */
struct pxd_choice pxd_auto_choose_known(
	struct pxd_auto *a, const struct pxd_outlook *o, size_t n, unsigned elem, double rate, size_t queued);
/* pxd_auto_learn: to be called once for every choice that was not plain. A segment was compressed: n bytes became m (m = 0: it did not shrink) in ns. */
void pxd_auto_learn(struct pxd_auto *a, struct pxd_choice ch, unsigned elem, size_t n, size_t m, uint64_t ns);
/* pxd_auto_samples: how often data has been sampled so far. */
uint64_t pxd_auto_samples(const struct pxd_auto *a);

#endif
