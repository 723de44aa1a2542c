/* feeder.h: standard input for rank 0 where it cannot simply be inherited.
 *
 * Used by launch.c only. From a terminal (a site is in another session, where its launcher would not read
 * it), or into the FIFO that stands in for a launcher without a way to choose the rank. It runs in a thread
 * of its own, because reading a terminal blocks, and lives until the end of the input or of the process.
 * A launcher that gives up when rank 0 does not read (MPICH's hydra, beyond the 64 KiB of a pipe) gets no more than
 * PXD_FEED_WINDOW bytes that rank 0 has not said it has: pacxrank.c takes them and says so in a record of kind "stdin"
 * on standard error (records.h).
 */
#ifndef PXD_FEEDER_H
#define PXD_FEEDER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "plan.h"

#define PXD_FEED_WINDOW 49152
#define PXD_FEED_SHUT   UINT64_MAX /* said instead of the bytes taken: rank 0 reads no more */

/* What rank 0 has taken: told by the loop's thread, awaited by the feeder's. Lives as long as the process. */
struct pxd_feed_window {
	uv_mutex_t lock;
	uv_cond_t moved;
	uint64_t taken;
};

struct pxd_feeder {
	struct pxd_feed_window *window; /* NULL: the reader takes what it gets */
	int from, to;      /* descriptors; to is closed at the end; from = -1: only the first line */
	const char *fifo;  /* opened here, which blocks until the rank opens it */
	const char *first; /* a line to be written before everything else, NULL = none */
};

/* pxd_feeder_run: thread body; arg is a struct pxd_feeder from malloc, freed here. SIGPIPE and SIGTTIN must be ignored. */
void pxd_feeder_run(void *arg);

/* pxd_feed_window_new: NULL: out of memory. pxd_feed_window_put: record is PXD_RECORD bytes; false: it is of another kind. */
struct pxd_feed_window *pxd_feed_window_new(void);
bool pxd_feed_window_put(struct pxd_feed_window *w, const char *site, const char *record);
/* pxd_feeder_choose: the descriptor that becomes the standard input of site st, -1 = none; *feed is filled in, and has to run once the
 * site is started if it has a FIFO or a descriptor to write to. key: text of the job's key, or NULL; fifo, w: as in the plan. */
int pxd_feeder_choose(const struct pxd_start *st, const char *key, const char *fifo,
	struct pxd_feed_window *w, struct pxd_feeder *feed);

#endif
