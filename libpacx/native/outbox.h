/* outbox.h: native messages that carry envelopes from this rank to its daemons and, for collectives, to ranks of its site.
 *
 * Owns copies of what the native MPI has not taken yet, so that an envelope is sent when the call returns, and no call waits for its
 * receiver: a blocking native send may, of how few bytes soever (Open MPI's shared memory: until the receiver has polled; MPICH 4.2.1
 * over UCX: at times until it receives), and in Open MPI's progress callback it may wait for ever (progress.c, rule 2).
 * A body that goes to several sites is packed once: PX_FF_SAME.
 * Between px_outbox_cork and px_outbox_uncork frames to one daemon are packed into as few native messages as they fit in; nothing
 * waits for company outside of that. Called with the library's lock; never waits but in px_outbox_close.
 */
#ifndef PX_OUTBOX_H
#define PX_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

/* px_outbox_send: n bytes, whole frames, to native rank `to` of the relay communicator. Frames with one tag to one rank arrive in the
 * order sent. MPI error code. */
int px_outbox_send(const uint8_t *bytes, int n, int to, int tag);

/* px_outbox_has: is body[0..n) the body of the last frame packed for `to`, and room for one more header? */
bool px_outbox_has(const uint8_t *body, int n, int to, int tag);

/* Calls may be nested; the outermost uncork sends what has been packed. px_outbox_flush sends it at once. MPI error code. */
void px_outbox_cork(void);
int px_outbox_uncork(void);
int px_outbox_flush(void);

/* px_outbox_poll: let go of what has left. True when something happened. */
bool px_outbox_poll(void);
/* px_outbox_close: wait until all has left; before the native Finalize. */
void px_outbox_close(void);

/* What has been given to the out-daemons under PX_TAG_UP, for statistics: whose it is; NULL: nobody's. */
struct px_given {
	uint64_t messages, bytes; /* native messages, bytes in them */
};
extern struct px_given *px_given_by;

#endif
