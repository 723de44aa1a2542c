/* stream_life.h: the life of a stream whose connections come and go: heartbeats, slow, interrupted, dead; the same at both ends. */
#ifndef PXD_STREAM_LIFE_H
#define PXD_STREAM_LIFE_H

#include "link.h"

#define PXD_STRIKES                                                                                          \
	5 /* connections in a row that broke the protocol without any progress, at least, and for a beat */

/* pxd_life_name: "link from site a to site b", of stream s (named when it is not 0). */
void pxd_life_name(const struct pxd_node *d, int from, int to, int stream, char *text, size_t cap);
/* pxd_life_init: a stream without a connection. reconnect_ms: how long it may be without one. */
void pxd_life_init(struct pxd_life *v, long reconnect_ms, long late_ms);
/* pxd_life_up: a connection stands. pxd_life_down: it is gone; progress is any number that grows with frames that went through;
 * broken: the peer broke the protocol. false: pxd_fail has been called: it broke the protocol too often, or has come back again and
 * again for `reconnect:` and nothing went through. Both log, not at the rate of a flapping link. */
void pxd_life_up(struct pxd_life *v, const char *name, const char *peer);
bool pxd_life_down(struct pxd_life *v, struct pxd_node *d, const char *name, const char *why,
	uint64_t progress, bool broken);
/* pxd_life_moved: something went through, or there is nothing that would have to. */
void pxd_life_moved(struct pxd_life *v);
/* pxd_life_tick: regularly. What to do: */
enum pxd_life_do { PXD_LIFE_NOTHING, PXD_LIFE_PING, PXD_LIFE_CUT, PXD_LIFE_DEAD };
enum pxd_life_do pxd_life_tick(struct pxd_life *v, const struct pxd_conn *c, const char *name);
/* pxd_life_ping: say PING; check: with a checksum. pxd_life_pong: its answer has come. */
void pxd_life_ping(struct pxd_conn *c, bool check);
void pxd_life_pong(struct pxd_life *v, const struct px_frame *f);
/* pxd_life_lost_for: is the stream without a connection for ms? */
bool pxd_life_lost_for(const struct pxd_life *v, long ms);
/* pxd_life_dead: the orderly end: pxd_fail with everything that is known. attempt: what the last attempt to connect met. */
void pxd_life_dead(const struct pxd_life *v, struct pxd_node *d, const char *name, const char *attempt);

#endif
