/* join.h: see join.c. For init.c. */
#ifndef PX_JOIN_H
#define PX_JOIN_H

#include <stdbool.h>

/* px_join: collective over this process and those that were started with it, between the native MPI_Init and the first call of the program. Ends
 * the job when it fails. */
void px_join(bool threaded);

#endif
