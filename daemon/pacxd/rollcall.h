/* rollcall.h: how a daemon waits for the ranks of its own site, and what it says when they do not come.
 *
 * From the start of the process until px_attach_roles can be called by all. The native MPI_Init returns only when every native
 * rank has called it, so a rank that ended before, or that comes past libpacx, would be waited for in silence. Called by
 * pacxd.c only; may end the process, since nothing can be told to anybody before the native Init has returned.
 */
#ifndef PXD_ROLLCALL_H
#define PXD_ROLLCALL_H

#include "pacxd.h"

/* pxd_roll_start: before the native Init: the start deadline, and a watch over this node's ranks. */
void pxd_roll_start(const struct pxd *d);
/* pxd_roll_init_over: the native Init has returned. */
void pxd_roll_init_over(void);
/* pxd_roll_here: after the native Init, by the first out-daemon: wait until all others have said that they are here. 0, or
 * PX_ETIMEOUT after pxd_fail. */
int pxd_roll_here(struct pxd *d);
/* pxd_roll_over: all are there. */
void pxd_roll_over(void);

#endif
