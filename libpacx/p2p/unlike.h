/* unlike.h: messages between sites that store data differently: the receiver makes right (wire/convert.h).
 *
 * Called by channel.c and request.c. Owns who is unlike us, and receives while they are converted. Where all sites are alike
 * px_unlike_any is false and nothing else here is called.
 */
#ifndef PX_UNLIKE_H
#define PX_UNLIKE_H

#include "convert.h"
#include "request.h"

extern bool px_unlike_any;

int px_unlike_open(void); /* after px.world is set, or has grown; 0 or PX_E... */

/* px_unlike: the representation of the site of global rank g; NULL: it is alike, or ours. */
const struct px_repr *px_unlike(int g);

const struct px_repr *px_unlike_here(void); /* ours */
/* px_unlike_layout: the same where datatypes take other places in memory than here, else NULL. */
const struct px_repr *px_unlike_layout(int g);

/* px_unlike_some: do not all members of c store data in the same way? The same answer for all of them. */
bool px_unlike_some(const struct px_comm *c);

/* px_unlike_tell: put into f, which begins message r, what an unlike receiver has to know. MPI error code; then r->why may be set. */
int px_unlike_tell(struct px_req *r, struct px_frame *f);

/* px_unlike_receive: message f from comm rank src is going to be received by r: r->x.right is what has to be done with it, NULL if
 * nothing. False: out of memory. */
bool px_unlike_receive(struct px_req *r, const struct px_frame *f, int src);
/* px_right_length: bytes that the message has here, also if r has no room for them. */
uint64_t px_right_length(const struct px_right *x);
/* px_right_in_place: may the message be received into the user's buffer and be converted there? */
bool px_right_in_place(const struct px_right *x);
/* px_right_some: the first `have` bytes of the message are at in. */
void px_right_some(struct px_right *x, const void *in, uint64_t have);
/* px_unlike_end: all are at in: convert the rest and unpack; r->x.right is gone. The error of r, which with its text is set. */
int px_unlike_end(struct px_req *r, const void *in);
/* px_unlike_unpack: `bytes` bytes at in, of an element type of comm rank src, global rank g, to the buffer of r. As px_unlike_end. */
int px_unlike_unpack(struct px_req *r, int src, int g, const void *in, uint64_t bytes);
void px_right_free(struct px_right *x);

#endif
