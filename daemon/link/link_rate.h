/* link_rate.h: how fast a path is when it is full, and from that how many streams it shall have.
 *
 * Used by link.c at each tick. Owns rate, window and settled of struct pxd_path, and corrects what pack.c reckons with (wire_until); the streams are link.c's, which adds them.
 */
#ifndef PXD_LINK_RATE_H
#define PXD_LINK_RATE_H

#include "link.h"

/* pxd_rate_tick: what has gone since the last tick; more streams (add: one, 0 or PX_E...) as long as they make a full link faster. */
void pxd_rate_tick(struct pxd_path *l, uint64_t now, int (*add)(struct pxd_path *l));

/* pxd_rate_told: so many bytes/s were seen before anything has filled the path. */
void pxd_rate_told(struct pxd_path *l, double rate);

/* pxd_rate_thin: its wire is known to be so slow (PXD_THIN) that what comes first is waited for. */
static inline bool pxd_rate_thin(const struct pxd_path *l)
{
	return l->rate > 0 && l->rate < PXD_THIN;
}

#endif
