/* way.h: the way from one site to a gateway of another, hop by hop, as its daemons would go it.
 *
 * Opened by doctor and probe. Each hop that was tried is told to `hop`; the first that fails ends it. Owns the connection, the command
 * of `dial:` and what it found out, until pxd_way_close.
 */
#ifndef PXD_PACXCTL_WAY_H
#define PXD_PACXCTL_WAY_H

#include "pacxctl.h"
#include "pacxctl_talk.h"
#include "probing.h"

struct pxd_way {
	const struct pxd_ctl *ctl;
	int self, peer, gateway, stream;
	struct pxd_tls_ctx *tls; /* of self */
	bool keyed;              /* as of pxd_ctl_tls */
	/* hop: may be NULL. text says what was found; todo, after a failure, what to do. */
	void (*hop)(void *arg, const char *name, bool ok, const char *text, const char *todo);
	void *arg;
	/* From pxd_way_open on. */
	struct pxd_talk talk;
	pid_t pid;
	struct px_probing_id id; /* what the other side says of itself */
	double rtt_us, clock_s;  /* its clock minus ours */
	char why[512];           /* of the hop that failed */
};

/* pxd_way_open: everything up to the other side's identity. 0, or PX_E... after the hop that failed. */
int pxd_way_open(struct pxd_way *w);
void pxd_way_close(struct pxd_way *w);
/* pxd_way_meet: the other end of such a way, at a relay: wait there (for an hour at most) for the peer to come. No identity is asked. */
int pxd_way_meet(struct pxd_way *w);
/* pxd_way_echo: n bytes there and back. 0 or PX_E... with talk.why. */
int pxd_way_echo(struct pxd_way *w, size_t n, uint64_t until);
/* pxd_way_mtu: the hop that comes last: do packets of all sizes pass? */
int pxd_way_mtu(struct pxd_way *w);

#endif
