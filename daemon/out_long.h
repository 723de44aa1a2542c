/* out_long.h: long messages on their way from a rank to a link: native segments in, SEG frames out.
 *
 * Owned by role out. A segment leaves as soon as it has arrived, while the next ones are being received;
 * nothing waits for a whole message. All long messages get their turn; a link that is full stops only its
 * own.
 */
#ifndef PXD_OUT_LONG_H
#define PXD_OUT_LONG_H

#include "link.h"
#include "list.h"

#define PXD_OUT_AHEAD 4   /* native receives under way per message: one arriving, the others posted */
#define PXD_OUT_SEGS  256 /* buffers of a daemon, at most 1 MiB each */

struct pxd_out_longs {
	struct pxd *d;
	struct px_list active; /* of struct out_long; the head is served next */
	unsigned count, peak;
	struct pxd_segs segs;
};

void pxd_out_longs_init(struct pxd_out_longs *o, struct pxd *d);
/* pxd_out_long_add: message f, announced by native rank `from`, goes to path. 0 or PX_ENOMEM. */
int pxd_out_long_add(struct pxd_out_longs *o, const struct px_frame *f, int from, struct pxd_path *path);
/* pxd_out_longs_poll: true when something happened. After a failure pxd_fail has been called. */
bool pxd_out_longs_poll(struct pxd_out_longs *o);
void pxd_out_longs_fini(struct pxd_out_longs *o);

#endif
