/* outq.h: the frames of one stream, in order: those that wait for the wire and those that the peer has not acknowledged yet.
 *
 * Owned by a stream (link.c). One list of blocks: byte blocks, into which headers and small bodies are copied one behind the
 * other, and segments, which are written from where they lie. A cursor separates what has been written from what has not. Frames
 * are freed when acknowledged, never when written; a new connection begins at any frame that has not been acknowledged.
 */
#ifndef PXD_OUTQ_H
#define PXD_OUTQ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "link_seg.h"
#include "list.h"

struct pxd_outq {
	struct px_list blocks;
	struct px_list *cur; /* block with the next byte to write; &blocks = none */
	size_t off;          /* of that byte in it */
	size_t unsent;       /* bytes */
	size_t held;         /* memory of all blocks */
	size_t peak;         /* largest held */
};

void pxd_outq_init(struct pxd_outq *q);
void pxd_outq_fini(struct pxd_outq *q);
/* pxd_outq_put: a frame, copied; seq is its number. 0 or PX_ENOMEM. */
int pxd_outq_put(struct pxd_outq *q, uint64_t seq, const uint8_t *head, const uint8_t *body, size_t nbody);
/* pxd_outq_put_seg: a frame whose body is seg, which is taken over, also on error. 0 or PX_ENOMEM. */
int pxd_outq_put_seg(struct pxd_outq *q, uint64_t seq, const uint8_t *head, struct pxd_seg *seg);
/* pxd_outq_gather: up to max pieces that come next on the wire; their number. */
int pxd_outq_gather(const struct pxd_outq *q, struct iovec *v, int max);
void pxd_outq_wrote(struct pxd_outq *q, size_t n);
/* pxd_outq_sent: the number of the last frame that has been written whole; last: of the last frame put. */
uint64_t pxd_outq_sent(const struct pxd_outq *q, uint64_t last);
/* pxd_outq_acked: all frames up to seq have arrived. */
void pxd_outq_acked(struct pxd_outq *q, uint64_t seq);
/* pxd_outq_rewind: a new connection: frame `next` is the first that it carries. 0, or PX_EPROTO: it is not here. last is the
 * number of the last frame put. */
int pxd_outq_rewind(struct pxd_outq *q, uint64_t next, uint64_t last);

#endif
