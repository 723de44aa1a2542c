/* out_flow.h: from the ranks of a site to its paths: what may go now, what has to wait, and for whom.
 *
 * Owned by role out. For each remote rank it knows the credit that its site has granted. Envelopes without credit wait in the
 * queue of their destination, so that they hold up nobody else; how many a rank may leave there is bounded by a window per pair
 * of ranks, which the rank keeps (px_pair_window) and which is opened again by CREDIT frames to it. Payload is fetched from
 * its rank only when there is credit and room on the path: a segment leaves as soon as it has arrived, while the next ones are
 * being received. Messages that their receiver has pulled may use the reserve, so none can be locked out by others.
 */
#ifndef PXD_OUT_FLOW_H
#define PXD_OUT_FLOW_H

#include "link.h"
#include "link_in.h"
#include "list.h"
#include "map.h"
#include "out_notes.h"
#include "pages.h"

#define PXD_OUT_AHEAD 4 /* native receives under way per message: one arriving, the others posted */

struct pxd_dest {
	struct px_list l;      /* in flow->wanting: has messages in `idle` that could go on */
	struct px_list w;      /* in flow->blocked: has envelopes waiting */
	struct pxd_path *path; /* NULL: a local rank */
	uint64_t granted[PXD_CREDITS], used[PXD_CREDITS];
	struct px_list waiting; /* envelopes */
	struct px_list
		idle; /* struct out_long with segments to fetch and none under way, the pulled ones first */
};

struct pxd_out_flow {
	struct pxd *d;
	int base, nlocal, nworld; /* ranks */
	/* struct pxd_dest of each rank of the world that was spoken to or of, and what each rank of a site has been granted at least */
	struct pxd_pages dest;
	struct pxd_granted {
		uint64_t granted[PXD_CREDITS];
	} * site;              /* [sites] */
	struct pxd_path *path; /* [sites], the owner's, set before init; that of its own is not used */
	/* [nlocal * nworld] envelopes of a pair that have left, since the rank was told; NULL: it is told of each one, as there are so many
	 * pairs that their window is small (px_pair_window). */
	uint32_t *released;
	uint32_t window; /* px_pair_window */
	struct px_list blocked, wanting;
	struct px_list busy;  /* struct out_long with native receives under way */
	struct px_map *longs; /* src, msg -> struct out_long */
	unsigned nlongs, nwaiting;
	size_t waiting_bytes;
	struct pxd_notes notes;
	struct pxd_segs segs;
};

int pxd_out_flow_init(struct pxd_out_flow *o, struct pxd *d); /* 0 or PX_ENOMEM */
void pxd_out_flow_fini(struct pxd_out_flow *o);
/* pxd_out_flow_reaches: rank dst is one of another site. */
bool pxd_out_flow_reaches(struct pxd_out_flow *o, uint32_t dst);
/* pxd_out_flow_take: a MSG or ACK of a local rank for dest f->dst. 0 or PX_ENOMEM. */
int pxd_out_flow_take(struct pxd_out_flow *o, const struct px_frame *f, const uint8_t *body);
/* pxd_out_flow_long: native rank `from` has the payload of message f ready. 0 or PX_ENOMEM. */
int pxd_out_flow_long(struct pxd_out_flow *o, const struct px_frame *f, int from);
/* pxd_out_flow_middle: both at once, for a middling message. 0 or PX_ENOMEM. */
int pxd_out_flow_middle(struct pxd_out_flow *o, const struct px_frame *f, int from);
/* pxd_out_flow_credit, _pull: frames that have come back. pull also takes the rank's own answer (l = NULL). false: malformed, or more than
 * anybody who keeps to the protocol asks for. */
bool pxd_out_flow_credit(struct pxd_out_flow *o, const struct pxd_path *l, const struct px_frame *f);
bool pxd_out_flow_pull(struct pxd_out_flow *o, const struct pxd_path *l, const struct px_frame *f);
/* pxd_out_flow_poll: true when something happened. After a failure pxd_fail has been called. */
bool pxd_out_flow_poll(struct pxd_out_flow *o);
static inline bool pxd_out_flow_empty(const struct pxd_out_flow *o)
{
	return o->nlongs == 0 && o->nwaiting == 0 && pxd_notes_empty(&o->notes);
}

#endif
