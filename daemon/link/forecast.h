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
	bool big; /* its numbers are big endian */
	int nrefs;
	const uint8_t *ref[PXD_PREDICT_REFS]; /* n bytes each */
};

struct pxd_forecast *pxd_forecast_new(void);
void pxd_forecast_free(struct pxd_forecast *f);
/* pxd_forecast_choose: true: how and stride of *p are what to predict s with, and the segment will shrink to *ratio of its length or
 * so (zstd:1 with shuffling). false: better without. The codec is used for samples. */
bool pxd_forecast_choose(struct pxd_forecast *f, struct pxd_codec *c, const struct pxd_scene *s,
	struct pxd_predictor *p, double *ratio);
/* pxd_forecast_learn: a segment of the flow, predicted with nrefs references at hand, shrank from n to m bytes. */
void pxd_forecast_learn(struct pxd_forecast *f, uint64_t flow, int nrefs, size_t n, size_t m);
/* pxd_forecast_looks: how often data has been looked at. */
uint64_t pxd_forecast_looks(const struct pxd_forecast *f);

#endif
