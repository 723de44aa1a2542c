/* listen.h: who may in, and who is turned away: from a new connection to an accepted stream.
 *
 * Owned by a role: the in-daemon listens on its gateway's one port (on the bind address only); the out-daemon adopts what
 * the in-daemon hands over to it (handoff.h). Until its hello is accepted a peer costs at most one frame of memory and a
 * TLS handshake, PXD_HAND_MS of time, and one of PXD_HALF_OPEN places, of which the oldest is taken by a newcomer (of those whose
 * preamble does not name our job, if there are any); what is logged of strangers is limited, too. On a link with TLS who does not hold the key gets no answer beyond TLS's own; without TLS a refused
 * peer gets REFUSE with the reason. Either way nothing changes for the run.
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
	struct {
		uv_poll_t poll;
		int fd;
	} sock[PXD_LISTEN_ADDRS];
	int nsocks;
	struct px_list half; /* connections before their hello, the oldest first */
	int nhalf, most;     /* PXD_HALF_OPEN, and as many as our peers may dial at once */
	double allowance;    /* log lines that may be written now */
	uint64_t refilled;   /* when it was computed */
	uint64_t unsaid;     /* lines suppressed */
	uint64_t turned_away;
};

void pxd_listen_init(struct pxd_listen *l, struct pxd *d);
/* pxd_listen_open: listen at our gateway's bind address. 0 or PX_E..., after pxd_fail. */
int pxd_listen_open(struct pxd_listen *l);
/* pxd_listen_adopt: a connection whose preamble has been read already; takes fd. */
void pxd_listen_adopt(struct pxd_listen *l, int fd, const struct px_preamble *p);
void pxd_listen_close(struct pxd_listen *l); /* asynchronous, with all that is half open */

#endif
