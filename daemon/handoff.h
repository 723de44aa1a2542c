/* handoff.h: connections for the out-daemon that arrive at the gateway's one port, which the in-daemon listens on.
 *
 * The out-daemon opens a local socket (abstract name, same user only, same node only); the in-daemon passes it the descriptor and
 * the preamble that it has read. Used when the peer dials for both directions. Nothing blocks.
 */
#ifndef PXD_HANDOFF_H
#define PXD_HANDOFF_H

#include "pacxd.h"

struct pxd_handoff {
	uv_poll_t poll;
	int fd;
	bool open;
	void (*took)(void *owner, int fd, const struct px_preamble *p); /* fd is the owner's */
	void *owner;
};

/* pxd_handoff_open: in the out-daemon; took and owner are set before. 0 or -errno. */
int pxd_handoff_open(struct pxd_handoff *h, struct pxd *d);
void pxd_handoff_close(struct pxd_handoff *h);
/* pxd_handoff_give: in the in-daemon; fd stays the caller's. 0 or -errno. */
int pxd_handoff_give(struct pxd *d, int fd, const struct px_preamble *p);

#endif
