/* status.h: a daemon's local socket: whoever connects gets one JSON object about now, and is closed.
 *
 * Owned by the daemon, served from its loop; nothing here blocks. Only the user can reach the socket (rundir.h). Clients cannot
 * hold memory: their number is bounded, a newcomer takes the place of who has been reading longest, and what they send is
 * not read. Read by pacxctl status and top.
 */
#ifndef PXD_STATUS_H
#define PXD_STATUS_H

#include <stdbool.h>
#include <uv.h>

#include "buf.h"

#define PXD_STATUS_CLIENTS 8

struct pxd_status_client;

/* All zero before pxd_status_open. Must live until the loop has run the close callbacks. */
struct pxd_status {
	char path[108]; /* of the socket, for who has to go at once; "" = none yet */
	uv_pipe_t pipe;
	bool open;
	void (*make)(void *arg, struct px_buf *b);
	void *arg;
	struct pxd_status_client *client[PXD_STATUS_CLIENTS]; /* the oldest first, NULL behind the last */
};

/* pxd_status_open: name is JOBID-SITE-ROLEg. make appends the JSON text; it is called once for each client, from the loop. 0, or
 * PX_ECONF, PX_EIO after a line in the log: a job can go on without. */
int pxd_status_open(struct pxd_status *s, uv_loop_t *loop, const char *name,
	void (*make)(void *arg, struct px_buf *b), void *arg);
/* pxd_status_close: also removes the socket. Fine when it was never opened, and twice. */
void pxd_status_close(struct pxd_status *s);

#endif
