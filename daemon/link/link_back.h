/* link_back.h: what the reader of a path says to its writer: acknowledgements, credit, pulls, ABORT.
 *
 * Used by link_in.c, for the streams and paths of link_in.h. Owns when they are said; nothing here waits, and what cannot be said for
 * want of a connection is said again, or contained in what is said later.
 */
#ifndef PXD_LINK_BACK_H
#define PXD_LINK_BACK_H

#include "link_in.h"

/* pxd_back_say: a frame without a body, if there is a connection. */
void pxd_back_say(struct pxd_in_stream *s, const struct px_frame *f);
/* pxd_back_ack: acknowledge what has come, now. pxd_back_ack_later: `bytes` more have come: soon; kept: sooner, as the writer may refer
 * to them once it knows. */
void pxd_back_ack(struct pxd_in_stream *s);
void pxd_back_ack_later(struct pxd_in_stream *s, uint64_t bytes, bool kept);
/* pxd_back_credits: what may be sent to each local rank, on a new connection of stream 0. */
void pxd_back_credits(struct pxd_in_path *p);
/* pxd_credit_begin: the credit of a rank as it is before anything has come (struct pxd_pages; owner = the path). */
void pxd_credit_begin(void *owner, void *record, uint32_t rank);

#endif
