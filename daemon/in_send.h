/* in_send.h: native sends to the local ranks: envelopes in order, segments of long messages, tags,
 * completion.
 *
 * Owned by role in, which hands over what the links bring. Every native call here is nonblocking. What a
 * rank does not receive stays here: bounded by nothing yet (credits come later), but counted.
 */
#ifndef PXD_IN_SEND_H
#define PXD_IN_SEND_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "link_seg.h"
#include "list.h"
#include "map.h"
#include "pacxd.h"

/* One native message of header and body on its way to a rank. */
struct pxd_envelope {
	struct px_list l;
	MPI_Request req;
	int len;
	uint8_t bytes[PX_ENVELOPE_MAX];
};

/* A long message whose segments are on their way. */
struct pxd_in_long {
	struct px_list l;     /* in sends->active when parts are pending */
	struct px_list parts; /* Issends in order */
	uint64_t key;
	uint64_t next; /* offset of the segment that must come next */
	uint64_t total;
	uint32_t seg;
	uint32_t src;
	int rank; /* local rank */
	int tag;
	bool drop; /* the rank has finished before: nothing is sent */
};

struct pxd_rank {
	uint64_t envelopes;        /* sent to it */
	struct px_list sent, held; /* under way, in the order sent; waiting for room */
	unsigned native;           /* length of sent */
	bool fin;
};

struct pxd_sends {
	struct pxd *d;
	struct pxd_rank *rank; /* [nranks] */
	struct px_list spare;  /* envelopes for reuse */
	unsigned nspare;
	struct px_map *longs;  /* src, msg -> pxd_in_long, until its last segment has come */
	struct px_list active; /* pxd_in_long with parts */
	unsigned nlongs, nactive, nenvelopes;
	int *tags; /* stack of free ones */
	int ntags, tags_made;
	struct pxd_segs segs;
	uint64_t envelope_peak, dropped;
};

int pxd_sends_init(struct pxd_sends *s, struct pxd *d); /* 0 or PX_ENOMEM */
void pxd_sends_fini(struct pxd_sends *s);

/* pxd_envelope_take: a buffer for an envelope to be filled; NULL: out of memory. Put it back, or send it. */
struct pxd_envelope *pxd_envelope_take(struct pxd_sends *s);
void pxd_envelope_put(struct pxd_sends *s, struct pxd_envelope *e);
/* pxd_envelope_send: header f, body already at e->bytes + PX_FRAME_SIZE, to local rank. Takes e, also on
 * error. Nothing is sent to a rank that has finished. 0 or PX_EMPI. */
int pxd_envelope_send(struct pxd_sends *s, struct pxd_envelope *e, const struct px_frame *f, int rank);

/* pxd_in_long_add: message f is announced: choose its tag, send the announcement in e (taken). 0, PX_ENOMEM,
 * PX_EMPI, PX_EPROTO: announced already. */
int pxd_in_long_add(struct pxd_sends *s, struct pxd_envelope *e, struct px_frame *f, int rank);
/* pxd_in_long_find: the message to which SEG frame f belongs, if f is what must come next; else NULL. */
struct pxd_in_long *pxd_in_long_find(struct pxd_sends *s, const struct px_frame *f);
/* pxd_in_long_part: the next segment of m, complete; takes seg. 0, PX_ENOMEM, PX_EMPI. */
int pxd_in_long_part(struct pxd_sends *s, struct pxd_in_long *m, struct pxd_seg *seg);

/* pxd_sends_poll: look for completions; true when something happened. */
bool pxd_sends_poll(struct pxd_sends *s);
/* pxd_sends_pending: is anything on its way? */
static inline bool pxd_sends_pending(const struct pxd_sends *s)
{
	return s->nenvelopes > 0 || s->nactive > 0;
}

#endif
