/* yield_hook.h: what happens after each poll inside a blocking native call.
 *
 * MPICH polls by ucp_worker_progress, which yield_hook.c puts itself in front of; for Open MPI progress.c registers a callback. Part
 * of libpacx and of pacxd (which serves nobody). May be called on any thread, at any native call.
 */
#ifndef PX_YIELD_HOOK_H
#define PX_YIELD_HOOK_H

#include <stdatomic.h>
#include <stdbool.h>

enum px_served {
	PX_SERVED_NOTHING,
	PX_SERVED_SOME,
	PX_SERVED_LOOP, /* a waiting loop of libpacx is polling: it serves and waits by itself */
	PX_SERVED_LOOK, /* a call that only looks is polling, such as MPI_Test */
};

/* Native polls in a row that found nothing, of any thread; set back by whoever starts a native call that may block. */
extern _Atomic unsigned px_idle_polls;

/* MPICH: called after polls that are due; NULL: nothing to serve. */
extern enum px_served (*px_poll_serve)(void);
/* MPICH: its polls come through here at all. */
extern bool px_poll_seen;

/* px_poll_due: is this poll one that should look for other sites, too? Each of a long wait, and every few of a short one. */
bool px_poll_due(void);
/* px_poll_done: a poll has found something or not: when processes outnumber cores, one that has found nothing for a while yields, and naps
 * when it `waits`, in a call that blocks, as long as a loop of ours would (wait.h). */
void px_poll_done(bool found, bool waits);

#endif
