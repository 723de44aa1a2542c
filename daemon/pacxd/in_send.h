/* in_send.h: native sends to the local ranks: envelopes in order, segments of long messages when they are pulled.
 *
 * Owned by role in, which hands over what the paths (link_in.h) bring. Envelopes leave with the next poll if the window of their rank
 * has room. A segment waits here until its rank has matched the message and pulls it (frame PULL, with the native tag
 * under which it has posted its receives): so nothing that is not wanted fills the native MPI's queues, and the order in which
 * a rank receives is its own affair. When memory is free again the path is told, and grants new credit. Every native
 * call here is nonblocking.
 */
#ifndef PXD_IN_SEND_H
#define PXD_IN_SEND_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "link_in.h"
#include "link_seg.h"
#include "list.h"
#include "map.h"
#include "pacxd.h"

/* Envelopes that may wait for one rank: far more than credit and the windows of its synchronous sends let come. */
#define PXD_HELD_MAX (1u << 18)

struct pxd_in_long; /* in_send.c */

struct pxd_rank {
	struct px_list sent,
		held; /* native messages under way, in the order sent; envelopes that wait for the next one */
	unsigned native, nheld; /* their lengths */
	struct px_list pulling; /* pxd_in_long that it has pulled and that are not complete here */
	bool fin;
	uint32_t promised; /* bits: tags from PX_TAG_PROMISED on that are in use */
};

struct pxd_sends {
	struct pxd *d;
	struct pxd_rank *rank; /* [nranks] */
	struct px_map *longs;  /* src, msg -> pxd_in_long */
	struct px_list active; /* pxd_in_long with segments under way to their rank */
	unsigned nactive, nenvelopes;
	struct pxd_segs segs;
	/* The path by which a site's message comes here. */
	struct pxd_in_path *(*path_of)(void *owner, int site, int via);
	void *owner;
	uint64_t envelope_bytes, envelope_peak, dropped;
};

int pxd_sends_init(struct pxd_sends *s, struct pxd *d); /* 0 or PX_ENOMEM */
void pxd_sends_fini(struct pxd_sends *s);

/* pxd_envelope_send: header f, body already at e->bytes + PX_FRAME_SIZE, to local rank. Takes e, also on
 * error. Nothing is sent to a rank that has finished. 0, or PX_EPROTO: more than PXD_HELD_MAX would wait. */
int pxd_envelope_send(struct pxd_sends *s, struct pxd_envelope *e, const struct px_frame *f, int rank);

/* pxd_sends_msg: the same for what has come through a path. If it announces a middling message whose payload is here, that is sent,
 * too, and f->local becomes its tag. 0, PX_EPROTO, PX_EMPI. */
int pxd_sends_msg(struct pxd_sends *s, struct pxd_envelope *e, struct px_frame *f, int rank);

/* pxd_sends_seg: a segment for local rank has come through path p; takes seg. 0, PX_ENOMEM, PX_EMPI, PX_EPROTO: it
 * contradicts what is known of its message. */
int pxd_sends_seg(
	struct pxd_sends *s, struct pxd_in_path *p, const struct px_frame *f, struct pxd_seg *seg, int rank);
/* pxd_sends_pull: local rank wants message (f->src, f->msg) of f->total bytes under native tag f->local; f->tag = 1: it will never
 * want it. via: gateway of the sender that carries the payload. 0, PX_ENOMEM, PX_EMPI, PX_EPROTO. */
int pxd_sends_pull(struct pxd_sends *s, const struct px_frame *f, int rank);
/* pxd_sends_pull_again: path p has a new connection: PULL frames may have been lost. */
void pxd_sends_pull_again(struct pxd_sends *s, struct pxd_in_path *p);
/* pxd_sends_tick: now and then: a pulled message that does not come may need the writer to be told. */
void pxd_sends_tick(struct pxd_sends *s);
/* pxd_sends_fin: the rank will receive nothing more: drop what is here for it. */
void pxd_sends_fin(struct pxd_sends *s, int rank);

/* pxd_sends_poll: look for completions; true when something happened. */
bool pxd_sends_poll(struct pxd_sends *s);
/* pxd_sends_pending: is anything on its way? */
static inline bool pxd_sends_pending(const struct pxd_sends *s)
{
	return s->nenvelopes > 0 || s->nactive > 0;
}

#endif
