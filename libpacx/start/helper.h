/* helper.h: a thread of ours that serves other sites while the program computes (PACX_PROGRESS=thread).
 *
 * Owns that thread. Used by init.c and progress.c. The native MPI has to give MPI_THREAD_MULTIPLE, for which init.c asks in the program's place.
 */
#ifndef PX_HELPER_H
#define PX_HELPER_H

#include <stdbool.h>

/* px_helper_wanted: PACX_PROGRESS=thread. */
bool px_helper_wanted(void);
/* px_helper_open: start it, if it is wanted and can be; threaded: MPI_THREAD_MULTIPLE was given, and px_threaded says so. */
void px_helper_open(bool threaded);
/* px_helper_close: end it. The caller may have the lock. */
void px_helper_close(void);

#endif
