/* win_find.h: from a native window handle to the struct px_win behind it; for the wrappers.
 *
 * As long as no window spans sites, which is nearly always, the answer costs one load.
 */
#ifndef PX_WIN_FIND_H
#define PX_WIN_FIND_H

#include <mpi.h>
#include <stdatomic.h>
#include <stddef.h>

#include "comm_find.h"

struct px_win;

extern _Atomic unsigned px_win_live; /* windows on communicators that span sites */

struct px_win *px_win_find_slow(MPI_Win win);

/* px_win_find: NULL: a window of the vendor's own. */
static inline struct px_win *px_win_find(MPI_Win win)
{
	if (PX_LIKELY(atomic_load_explicit(&px_win_live, memory_order_acquire) == 0))
		return NULL;
	return px_win_find_slow(win);
}

#endif
