/* launch.h: run the sites of a plan to their end: processes, signals, standard streams, exit status.
 *
 * Used by pacxrun only; owns the event loop, every process below pacxrun and descriptors 0, 1 and 2 while it
 * runs. When it returns nothing that it started is alive any more.
 */
#ifndef PXD_LAUNCH_H
#define PXD_LAUNCH_H

#include "plan.h"

struct pxd_launch_options {
	const char *prefix; /* of this installation */
	int only;           /* index of the one site to start, -1 = all that are not by hand */
	bool verbose;
	const char *stats;      /* file for --stats, or NULL */
	const char *key;        /* text of the job's key, NULL = none is needed */
	const char *stdin_fifo; /* FIFO through which global rank 0 gets standard input, or NULL */
};

/* pxd_launch_run: exit status for pacxrun. */
int pxd_launch_run(const struct pxd_hosts *h, const struct pxd_plan *p, const struct pxd_launch_options *o);

#endif
