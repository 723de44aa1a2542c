/* handoff.h: connections for the out-daemon that arrive at the gateway's one port, which the in-daemon listens on.
 *
 * The out-daemon opens a socket in a directory that only its user can reach into (rundir.h), on the same node; the in-daemon
 * passes it the descriptor and the preamble that it has read. What the other one cannot take at the moment waits, up to
 * PXD_GIVER_WAIT_MS and PXD_GIVER_MAX connections. Used when the peer dials for both directions. Nothing blocks.
 */
#ifndef PXD_HANDOFF_H
#define PXD_HANDOFF_H

#include <sys/un.h>

#include "list.h"
#include "node.h"
#include "quiet.h"

#define PXD_GIVER_MAX     64
#define PXD_GIVER_WAIT_MS 3000

/* The out-daemon's end. */
struct pxd_handoff {
	uv_poll_t poll;
	int fd;
	bool open, own_dir;
	struct sockaddr_un at;
	void (*took)(void *owner, int fd, const struct px_preamble *p); /* fd is the owner's */
	void *owner;
};

/* pxd_handoff_open: in the out-daemon; took and owner are set before. 0, or PX_E... with the reason in why. */
int pxd_handoff_open(struct pxd_handoff *h, struct pxd_node *d, char *why, size_t cap);
void pxd_handoff_close(struct pxd_handoff *h);

/* The in-daemon's end. */
struct pxd_giver {
	struct pxd_node *d;
	struct pxd_quiet *quiet;
	uv_timer_t timer; /* the next attempt */
	struct px_list gifts;
	int ngifts;
	struct sockaddr_un at;
	int fd; /* -1: not made yet */
	bool open;
};

int pxd_giver_open(
	struct pxd_giver *g, struct pxd_node *d, struct pxd_quiet *quiet); /* 0 or an error of libuv */
/* pxd_handoff_give: takes fd; what does not arrive is closed, with a line in the log. */
void pxd_handoff_give(struct pxd_giver *g, int fd, const struct px_preamble *p);
void pxd_giver_close(struct pxd_giver *g);

#endif
