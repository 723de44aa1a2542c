/* history.h: the segments of one stream that both of its ends remember, as references for later ones (predict.h).
 *
 * Owned by a stream, at its writer and at its reader. Both put in the same segments (those with KEEP) in the same order, that of the
 * stream's numbers, and forget by the same rule: as soon as all together are charged more than the share, those go that came
 * longest ago. Being referred to does not keep a segment, as the one that refers takes its place. So an end knows what the
 * other has without being told. No sockets, no MPI. PROTOCOL.md ("History") is normative.
 */
#ifndef PXD_HISTORY_H
#define PXD_HISTORY_H

#include "frame.h"
#include "hostfile.h"
#include "link_seg.h"
#include "list.h"
#include "map.h"
#include "predict.h"

struct pxd_flow; /* segments of one source, destination, context, tag, length and place */

/* One remembered segment. Whoever works with it holds it, so that it may be forgotten meanwhile. */
struct pxd_kept {
	struct px_list l;     /* in history->age, the oldest first */
	struct px_list older; /* in its flow, the newest first */
	struct pxd_flow *flow;
	int holders;
	uint32_t msg, charge;
	uint64_t seq;           /* of the frame that brought it */
	struct pxd_seg *seg;    /* the plain bytes; NULL: they are still being decoded */
	bool bad;               /* they never will be */
	struct px_list waiting; /* of who needs them (unpack.c) */
	struct pxd_study
		*study; /* of study.c, which holds this as long: the lesson of who refers to this first */
};

struct pxd_history {
	struct px_list age;
	struct px_map *flows; /* hash of their names -> first of the pxd_flow with that hash */
	uint64_t bytes, share;
};

/* pxd_history_remembers: does a link predict? With `predict: auto` only where the codec is chosen by measuring, too. */
bool pxd_history_remembers(const struct pxd_link_opts *o);
/* pxd_history_share: bytes that both ends of a stream from one site to another remember. 0 = nothing is kept. */
uint64_t pxd_history_share(const struct pxd_hosts *h, int from, int to, int stream);
/* pxd_history_memory: the most that a daemon of this site may keep in all. */
uint64_t pxd_history_memory(const struct pxd_hosts *h, int site);

/* pxd_history_name: the flow of f's segment, hashed. */
uint64_t pxd_history_name(const struct px_frame *f);

int pxd_history_init(struct pxd_history *h, uint64_t share); /* 0 or PX_ENOMEM */
void pxd_history_fini(struct pxd_history *h);
/* pxd_history_keep: segment of frame f, whose plain bytes are seg (held for it), or will be put into its `seg` later. *out: the
 * segment, borrowed; NULL: it is too long to be kept. What is too much goes. 0 or PX_ENOMEM. */
int pxd_history_keep(
	struct pxd_history *h, const struct px_frame *f, struct pxd_seg *seg, struct pxd_kept **out);
/* pxd_history_find: the segment of message msg in the place of f's segment, and like it in all else, with a number <= acked; NULL:
 * there is none. */
struct pxd_kept *pxd_history_find(
	const struct pxd_history *h, const struct px_frame *f, uint32_t msg, uint64_t acked);
/* pxd_history_refs: what a segment of f may refer to: the newest one with a number <= acked, and those before it. How many; *back: how
 * many messages before f the first one came. */
int pxd_history_refs(const struct pxd_history *h, const struct px_frame *f, uint64_t acked,
	struct pxd_kept *ref[PXD_PREDICT_REFS], int *back);
/* pxd_history_knows: has anything like f's segment been kept? */
bool pxd_history_knows(const struct pxd_history *h, const struct px_frame *f);

/* pxd_kept_before: the segment of its flow that came `n` before k; NULL: it has been forgotten, or k has. */
struct pxd_kept *pxd_kept_before(const struct pxd_kept *k, int n);
struct pxd_kept *pxd_kept_hold(struct pxd_kept *k);
void pxd_kept_put(struct pxd_kept *k); /* NULL is fine */
/* pxd_kept_bytes: the plain bytes of ref[0..PXD_PREDICT_REFS), each NULL where there is none. */
void pxd_kept_bytes(struct pxd_kept *const *ref, const uint8_t **bytes);

#endif
