/* listen.h: the in-daemon's one port: who may in, and who is turned away.
 *
 * Owned by role in. Until its hello is accepted a peer costs at most one frame of memory, PXD_HAND_MS of
 * time, and one of PXD_HALF_OPEN places; what is logged of strangers is limited, too. A refused peer gets
 * REFUSE with the reason and changes nothing for the run. Listens on the site's bind address only.
 */
#ifndef PXD_LISTEN_H
#define PXD_LISTEN_H

#include "conn_hello.h"
#include "list.h"
#include "pacxd.h"

#define PXD_HALF_OPEN    64
#define PXD_LISTEN_ADDRS 8 /* addresses that the bind name may have */

struct pxd_listen {
	struct pxd *d;
	/* judge: beyond px_hello_check: 0, or PX_E... with the reason for the peer and the log. */
	int (*judge)(void *owner, const struct px_hello *hello, char *why, size_t cap);
	/* accepted: our hello is on its way; the connection is the owner's, with ops and owner still to be
	 * set. */
	void (*accepted)(void *owner, struct pxd_conn *c, const struct px_hello *hello);
	void *owner;
	uv_tcp_t sock[PXD_LISTEN_ADDRS];
	int nsocks;
	struct px_list half; /* connections before their hello */
	int nhalf;
	double allowance;  /* log lines that may be written now */
	uint64_t refilled; /* when it was computed */
	uint64_t unsaid;   /* lines suppressed */
};

int pxd_listen_open(struct pxd_listen *l,
	struct pxd *d); /* judge, accepted, owner are set before. 0 or PX_E..., after pxd_fail */
void pxd_listen_close(struct pxd_listen *l); /* asynchronous, with all that is half open */

#endif
