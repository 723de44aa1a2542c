/* pacxctl_talk.h: bytes over a connection, with or without TLS, in blocking calls that all have a deadline.
 *
 * Owns the socket and the TLS of one connection, from pxd_talk_init to pxd_talk_close. One thread at a time. Messages go to
 * the caller's buffer.
 */
#ifndef PXD_PACXCTL_TALK_H
#define PXD_PACXCTL_TALK_H

#include "tls.h"

struct pxd_talk {
	int fd; /* nonblocking */
	struct pxd_tls *tls;
	char why[256]; /* after an error */
};

/* Results below 0: PX_ETIMEOUT, PX_ECLOSED (by the other side, in order), PX_EIO, PX_EPROTO (TLS). `until` is a time of px_now_ns. */
void pxd_talk_init(struct pxd_talk *t, int fd);
void pxd_talk_close(struct pxd_talk *t);
/* pxd_talk_secure: the handshake, as who dials or as who listens. peer only counts for who dials. */
int pxd_talk_secure(struct pxd_talk *t, struct pxd_tls_ctx *ctx, bool dials, int peer, uint64_t until);
int pxd_talk_send(struct pxd_talk *t, const void *p, size_t n, uint64_t until);
/* pxd_talk_push: send what goes at once; bytes taken, 0 = nothing just now (wait with pxd_talk_wait). */
ssize_t pxd_talk_push(struct pxd_talk *t, const void *p, size_t n);
int pxd_talk_recv(struct pxd_talk *t, void *p, size_t n, uint64_t until); /* exactly n */
/* pxd_talk_some: 1 to n bytes; 0 = none until then. */
ssize_t pxd_talk_some(struct pxd_talk *t, void *p, size_t n, uint64_t until);
/* pxd_talk_wait: until it can be read or (out) written; false when the time is over. */
bool pxd_talk_wait(struct pxd_talk *t, bool in, bool out, uint64_t until);

#endif
