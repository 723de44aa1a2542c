/* spawn.h: from a native process that a rank has started to a guest of the world (guest.h). For start/join.c, in this order, between the native
 * MPI_Init and the first call of the program. MPI error codes, not raised.
 */
#ifndef PX_SPAWN_H
#define PX_SPAWN_H

#include <stdbool.h>

/* px_guest_variable: in the environment of a process that is to be a guest. */
#define PX_GUEST_VARIABLE "PACX_GUEST"

/* px_welcome: the world map, and who we are in it; waits for the host. */
int px_welcome(bool *associative);
/* px_welcome_parent: what MPI_Comm_get_parent gives; after the channel has been opened. */
int px_welcome_parent(void);

#endif
