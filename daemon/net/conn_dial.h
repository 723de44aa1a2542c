/* conn_dial.h: the dialling side of a stream: from an address in the hostfile to an accepted connection.
 *
 * Owned by a stream, of either role. Resolves, connects to each address in turn (or through a proxy, a command, a relay),
 * sends the preamble, secures, greets, and tries again with growing pauses until it is stopped: deadlines are the owner's.
 * Whatever went wrong last is in `why`. The accepted connection goes to role->linked, and the dial rests until
 * pxd_dial_start is called again. A peer that refuses us, or has another version or job, ends the job through pxd_fail, but
 * only before the first success of any stream of the link, and only when the same complaint comes on several connections: a bit that
 * was damaged on the way to either side costs a connection. Never blocks.
 */
#ifndef PXD_CONN_DIAL_H
#define PXD_CONN_DIAL_H

#include "conn_hello.h"
#include "node.h"
#include "via.h"

struct pxd_dial {
	struct pxd_node *d;
	struct px_preamble pre;
	const struct pxd_link_opts *opts;
	int peer; /* index of the site */
	const char *host;
	int port;
	char relay_host[256];
	char why[200]; /* "connection refused"; empty: no attempt has ended yet */
	struct pxd_conn *conn;
	uv_getaddrinfo_t resolve;
	bool resolving;
	struct addrinfo *list, *at;
	uv_timer_t timer; /* pause, or the limit of an attempt */
	unsigned pause_ms, attempts;
	bool refused;               /* the last attempt met somebody who refused or closed, not silence */
	char complaint[PXD_REASON]; /* the last one about our greeting, theirs or ours */
	unsigned complaints;        /* how often in a row */
	bool running, closed,
		was_up; /* was_up: a stream of this link; the owner tells of others than this one */
	uint64_t up_at; /* px_now_ns of the last success */
	enum { PXD_DIAL_CONNECT, PXD_DIAL_PROXY, PXD_DIAL_SECURE, PXD_DIAL_HELLO } phase;
	struct pxd_proxy proxy;
	struct pxd_via via;
	uint8_t via_in[256];
	struct pxd_hand hand;
};

/* pxd_dial_init: for the stream that pre names; does not start. 0 or PX_E..., with a reason in dial->why. */
int pxd_dial_init(struct pxd_dial *dial, struct pxd_node *d, const struct px_preamble *pre);
void pxd_dial_start(struct pxd_dial *dial);
void pxd_dial_stop(struct pxd_dial *dial);  /* give up the attempt under way */
void pxd_dial_close(struct pxd_dial *dial); /* asynchronous; the memory must live until the loop is closed */

#endif
