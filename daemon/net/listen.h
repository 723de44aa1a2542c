/* listen.h: who may in, and who is turned away: from a preamble to an accepted stream.
 *
 * Owned by a role: the in-daemon listens on its gateway's one port (door.h), on the bind address only; the out-daemon adopts what the
 * in-daemon hands over to it (handoff.h). Until its hello is accepted a peer costs at most one frame of memory, a TLS handshake and
 * PXD_HAND_MS of time. Who is proved by its preamble (proof.h) has a place of its own, one for each stream: a newer one takes it from an
 * older one, and nobody else does. Who is not competes with its like (crowd.h): on a link with TLS for PXD_UNPROVED_PLACES, and
 * PXD_UNPROVED_PER_S handshakes, which serve to tell an honest peer what is wrong; on a link without for PXD_PLAIN_PLACES. What
 * is logged of strangers is limited, too. On a link with TLS who does not hold the key gets no answer beyond TLS's own; without TLS a
 * refused peer gets REFUSE with the reason. Either way nothing changes for the run.
 */
#ifndef PXD_LISTEN_H
#define PXD_LISTEN_H

#include "conn_hello.h"
#include "crowd.h"
#include "door.h"
#include "handoff.h"
#include "list.h"
#include "node.h"
#include "proof.h"
#include "quiet.h"

#define PXD_PLAIN_PLACES    1024
#define PXD_UNPROVED_PLACES 32
#define PXD_UNPROVED_PER_S  20
#define PXD_REFUSED_PLACES  64 /* who reads why */
#define PXD_PROBE_PLACES    64

struct pxd_listen {
	struct pxd_node *d;
	struct pxd_door door;
	struct pxd_giver give;
	struct pxd_quiet quiet;
	struct pxd_proof_memory newest;
	struct px_list half; /* connections before their hello */
	struct pxd_crowd plain, unproved;
	double handshakes; /* of the unproved that may begin now */
	uint64_t refilled; /* px_now_ns when that was computed */
	int nrefused, nprobes;
	uint64_t turned_away;
};

void pxd_listen_init(struct pxd_listen *l, struct pxd_node *d);
/* pxd_listen_open: listen at our gateway's bind address. 0 or PX_E..., after pxd_fail. */
int pxd_listen_open(struct pxd_listen *l);
/* pxd_listen_adopt: a connection whose preamble has been read already; takes fd. */
void pxd_listen_adopt(struct pxd_listen *l, int fd, const struct px_preamble *p);
void pxd_listen_close(struct pxd_listen *l); /* asynchronous, with all that is half open */

#endif
