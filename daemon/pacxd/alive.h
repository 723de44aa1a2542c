/* alive.h: does a local rank still live that has not finished?
 *
 * Used by role_out.c. Launchers end a site when one of its ranks dies, but can be told not to (hydra's -disable-auto-cleanup, Open
 * MPI's --enable-recovery), and some batch systems do not: then all others would wait for ever. Sees the ranks on the daemon's own
 * node, by descriptors of their processes. Gives the launcher time to do it itself, since only that knows the exit status.
 */
#ifndef PXD_ALIVE_H
#define PXD_ALIVE_H

#include "pacxd.h"

struct pxd_alive_rank;

struct pxd_alive {
	struct pxd *d;
	const bool *fin;             /* [nranks] has finished */
	struct pxd_alive_rank *rank; /* [nranks] */
	uv_timer_t timer;
	int gone; /* local rank that has died first, -1 = none */
};

/* pxd_alive_open: fin stays the caller's. 0 or PX_ENOMEM. pxd_alive_close: the loop has to run once more before pxd_alive_free. */
int pxd_alive_open(struct pxd_alive *a, struct pxd *d, const bool *fin);
void pxd_alive_close(struct pxd_alive *a);
void pxd_alive_free(struct pxd_alive *a);

#endif
