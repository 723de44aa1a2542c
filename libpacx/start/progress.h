/* progress.h: other sites are served from within the vendor's own progress.
 *
 * Owns the choice between `hook` and `poll`, and what runs inside native calls. Used by init.c alone; what follows from the
 * choice is px_hooked (comm_find.h).
 */
#ifndef PX_PROGRESS_H
#define PX_PROGRESS_H

#include <stdbool.h>

/* px_progress_open: choose, and serve from now on. Collective over the application ranks of this site, when the world stands.
 * threaded: MPI_THREAD_MULTIPLE was given. */
void px_progress_open(bool threaded);
/* px_progress_close: serve no more; before the channel closes. */
void px_progress_close(void);

#endif
