/* talk.h: short messages of the library's own between two ranks, in a context that the application does not use. They wait for
 * nobody but the other one, and belong to no collective.
 */
#ifndef PX_TALK_H
#define PX_TALK_H

#include <stdint.h>

#include "match.h"
#include "request.h"

/* px_talk_post: r, a receive with its arguments set, takes what has arrived at m or will. */
void px_talk_post(struct px_match *m, struct px_req *r);

/* px_talk_send, px_talk_recv: one blocking message of bytes; dst and src are ranks of m's communicator, ctx is m's context. MPI error
 * code, not raised. */
int px_talk_send(
	struct px_match *m, uint64_t ctx, const void *buf, int bytes, int dst, int tag, unsigned flags);
int px_talk_recv(struct px_match *m, void *buf, int bytes, int src, int tag);

#endif
