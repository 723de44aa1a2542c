/* lock.h: the one lock of libpacx.
 *
 * Owns a recursive mutex (a user's callback may call MPI from inside a body). The trampolines take it around every
 * body; it is a no-op unless the program asked for MPI_THREAD_MULTIPLE. A body that waits must let go of it, with
 * px_unlock_all and px_relock, because it may be held more than once. px_threaded changes only where nobody holds it.
 */
#ifndef PX_LOCK_H
#define PX_LOCK_H

#include <stdbool.h>

extern bool px_threaded; /* MPI_THREAD_MULTIPLE was given; set once, by init.c */

void px_lock_slow(void);
void px_unlock_slow(void);

static inline void px_lock(void)
{
	if (px_threaded)
		px_lock_slow();
}

static inline void px_unlock(void)
{
	if (px_threaded)
		px_unlock_slow();
}

/* px_unlock_all: let go however often this thread holds it; returns how often, for px_relock. */
unsigned px_unlock_all(void);
void px_relock(unsigned depth);

#endif
