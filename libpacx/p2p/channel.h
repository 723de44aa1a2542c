/* channel.h: sending and receiving frames between this rank and its daemons (attach.h).
 *
 * Owns the ring of posted envelope receives and the table context -> match queue. What leaves this rank, and what is held back
 * for whom, is held.c's, whose face is here, too.
 */
#ifndef PX_CHANNEL_H
#define PX_CHANNEL_H

#include "request.h"

int px_channel_open(void);   /* after px.map is set; 0 or PX_E... */
void px_channel_close(void); /* tells the daemons and drains; before the native Finalize */

int px_channel_ctx_add(uint64_t ctx, struct px_match *m); /* also delivers what came too early */
void px_channel_ctx_del(uint64_t ctx);

/* px_channel_drain: receive and drop what has arrived and nobody wants, so that its senders complete. */
void px_channel_drain(struct px_match *m);

/* px_channel_poll: handle at most a few arrived envelopes. True when there was one. */
bool px_channel_poll(void);

/* px_channel_send: start a message to global rank dst in context ctx: `bytes` bytes of r->count elements of r->type at r->buf.
 * Uses r->tag, r->mode, r->depth, r->x. Returns an MPI error code; afterwards px_req_test tells when r is complete. */
int px_channel_send(struct px_req *r, uint64_t ctx, int dst, unsigned flags);

/* px_channel_sent: the payload of send r has left completely. */
void px_channel_sent(struct px_req *r);

/* px_channel_take: give message u to receive r, starting the transfer of a long payload. Frees u. */
void px_channel_take(struct px_req *r, struct px_msg *u);

/* px_channel_deliver: a frame that has come in another way than from a daemon, with all of its message's bytes behind it (guest.h). */
void px_channel_deliver(const struct px_frame *f, const uint8_t *data);

/* px_channel_abort: tell all sites, then wait for the out-daemon to end the native job. */
void px_channel_abort(int code, const char *why);

/* px_channel_stats: hand JSON text to the out-daemon (at most PX_INLINE_MAX bytes). */
void px_channel_stats(const char *json);

/* px_channel_seen: bytes/s that this site's out-daemons have last seen a link to a site carry, that of the gateway with least; 0: they have not said. */
double px_channel_seen(int site);

/* px_channel_rate: tell the out-daemons how many bytes/s the link to the site of world rank dst was seen to carry. */
void px_channel_rate(int dst, double rate);

/* Wide-area traffic of this rank, for statistics. */
struct px_traffic {
	uint64_t messages, bytes;
};
extern struct px_traffic px_sent;

#endif
