/* forecast.h: which predictor is used for a segment, from samples of it, with hysteresis.
 *
 * Owned by a path (role out). Pure arithmetic on what it is told, like auto_codec.h, which decides next to it: no clocks, no sockets.
 * It keeps one record for each of the flows of segments that came last (same source, destination, context, tag, length and
 * place): the best predictor for each number of references that may be at hand, and what it made of the data. The
 * data is looked at again after more and more segments, or at once when a prediction gets worse.
 */
#ifndef PXD_FORECAST_H
#define PXD_FORECAST_H

#include "codec.h"
#include "predict.h"

struct pxd_forecast; /* opaque */

struct pxd_scene {
	uint64_t flow; /* its name, hashed */
	const uint8_t *in;
	size_t n;
	unsigned elem;
	bool big;        /* its numbers are big endian */
	double slow;     /* bytes/s of a wire so slow that learning may pay; 0 = it does not */
	unsigned stride; /* that the datatype tells, at most 255; 0 = none */
	int nrefs, back; /* the first one came so many messages before */
	const uint8_t *ref[PXD_PREDICT_REFS]; /* n bytes each, the newest first */
};
/* pxd_scene_refs: which of s->ref a predictor takes, at out[0 .. p->nrefs), of those that came a multiple of its period before: with
 * weights all, else those at equal distances. */
void pxd_scene_refs(const struct pxd_scene *s, const struct pxd_predictor *p, int *out);

/* To how much of its length a predicted segment will shrink or so. */
struct pxd_outlook {
	double zstd; /* zstd:1 with shuffling */
	double residual;
};

struct pxd_forecast *pxd_forecast_new(void);
void pxd_forecast_free(struct pxd_forecast *f);
/* pxd_forecast_choose: true: *p, but for names and weights, is what to predict s with, and *o is what to expect. false: better without. The
 * codec is used for samples. */
bool pxd_forecast_choose(struct pxd_forecast *f, struct pxd_codec *c, const struct pxd_scene *s,
	struct pxd_predictor *p, struct pxd_outlook *o);
/* pxd_forecast_learn: a segment of s->flow, predicted with what was at hand in s (its bytes are not looked at), shrank to m bytes by
 * `codec`. */
void pxd_forecast_learn(struct pxd_forecast *f, const struct pxd_scene *s, int codec, size_t m);
/* pxd_forecast_looks: how often data has been looked at. */
uint64_t pxd_forecast_looks(const struct pxd_forecast *f);

#endif
