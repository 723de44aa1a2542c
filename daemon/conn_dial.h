/* conn_dial.h: the dialling side of a link: from a peer site's name in the hostfile to an accepted
 * connection.
 *
 * Owned by role out, one per peer. Resolves, connects to each address in turn, greets, and tries again with
 * growing pauses until it is closed: the deadline is the owner's. Whatever went wrong last is in `why`. A
 * peer that refuses us, or has another version or job, ends the job through pxd_fail. Never blocks.
 */
#ifndef PXD_CONN_DIAL_H
#define PXD_CONN_DIAL_H

#include "conn_hello.h"
#include "pacxd.h"

struct pxd_dial {
	struct pxd *d;
	int peer; /* index of the site */
	/* up: the connection is the owner's from here on (with ops and owner still to be set). */
	void (*up)(struct pxd_dial *dial, struct pxd_conn *c, const struct px_hello *hello);
	void *owner;
	char why[160]; /* "connection refused"; empty: no attempt has ended yet */
	struct pxd_conn *conn;
	uv_getaddrinfo_t resolve;
	bool resolving;
	struct addrinfo *list, *at;
	uv_timer_t timer; /* pause, or the limit of an attempt */
	unsigned pause_ms;
	bool closed;
	struct pxd_hand hand;
};

int pxd_dial_open(
	struct pxd_dial *dial, struct pxd *d, int peer); /* up and owner are set before; 0 or PX_E... */
void pxd_dial_close(struct pxd_dial *dial); /* asynchronous; the memory must live until the loop is closed */

#endif
