/* link_in.h: a path as its reader, an in-daemon, sees it: streams, frames in, acknowledgements and credit out.
 *
 * Owned by role in, one per remote gateway that sends here. Each stream has a connection that may be replaced, and knows the number
 * of the last frame it has taken over; the next connection continues behind it. What arrives is handed to the owner (struct pxd_in_ops). For each
 * local rank it counts what the writer may still send (credit): envelopes, payload, and payload of pulled messages. (The
 * writer's side is link.h.)
 */
#ifndef PXD_LINK_IN_H
#define PXD_LINK_IN_H

#include "link.h"
#include "list.h"
#include "pages.h"

struct pxd_in_path;

#define PXD_PULLS 8 /* messages of a rank for which the writer has been told at a time */

enum pxd_credit_kind { PXD_CREDIT_MSG, PXD_CREDIT_DATA, PXD_CREDIT_RESERVE, PXD_CREDITS };

/* Of one local rank: bytes (px_msg_charge, px_seg_charge) since the beginning. */
struct pxd_credit {
	uint64_t arrived[PXD_CREDITS], freed[PXD_CREDITS], granted[PXD_CREDITS];
};

/* The reserve of all paths together, where there are so many ranks that each cannot have its own: granted when a message is pulled. */
struct pxd_reserve {
	uint64_t limit, used; /* bytes; used: granted and not free again */
};

/* Header and body on their way to a rank. */
struct pxd_envelope {
	struct px_list l;         /* the owner's, from struct pxd_in_ops.msg on */
	struct pxd_in_path *path; /* whose credit it uses; NULL: none */
	uint32_t charge;
	int len;
	uint8_t bytes[]; /* header and body */
};
/* pxd_envelope_take: a buffer for an envelope with a body of n bytes, to be filled; NULL: out of memory. */
struct pxd_envelope *pxd_envelope_take(size_t n);
void pxd_envelope_put(struct pxd_envelope *e); /* NULL is fine */

/* What the owner does with what a path brings for a local rank. Both take the memory, also on error, and give its credit back
 * (pxd_in_path_freed). 0 or PX_E..., PX_EPROTO: the writer should not have sent it. */
struct pxd_in_ops {
	int (*msg)(void *owner, struct pxd_in_path *p, struct pxd_envelope *e, struct px_frame *f, int rank);
	int (*seg)(
		void *owner, struct pxd_in_path *p, const struct px_frame *f, struct pxd_seg *seg, int rank);
	void (*up)(
		void *owner, struct pxd_in_path *p); /* a connection stands: what was said back may be lost */
	void (*tick)(void *owner);                   /* now and then */
	void (*ended)(void *owner);                  /* nobody needs the path any more */
};

struct pxd_in_stream {
	struct pxd_in_path *path;
	int index;
	struct pxd_life life;
	struct pxd_conn *conn;
	struct pxd_dial dial;
	bool dials;
	struct px_parser parser;
	struct pxd_history history;
	uint64_t seq, acked; /* last frame taken over, last one acknowledged */
	uint64_t unacked;    /* bytes */
	bool bulk;           /* the last frame was a segment */
	uint32_t crc;
	struct pxd_envelope *env; /* being filled */
	struct pxd_seg *seg;      /* being filled */
	uint64_t *charged;        /* of that frame: the counter in path->credit, NULL = none; and how much */
	uint32_t charge;
	char reason[256]; /* of an ABORT */
	size_t nreason;
};

struct pxd_in_path {
	struct pxd_node *d;
	int site, gateway; /* remote ones */
	const struct pxd_link_opts *opts;
	uint64_t session;
	int nstreams;
	struct pxd_in_stream *stream[PXD_STREAMS_MAX];
	struct pxd_pages credit; /* struct pxd_credit of each local rank for which something has come */
	struct pxd_credit none;  /* stands for one that found no memory */
	uint64_t window[PXD_CREDITS];
	struct pxd_reserve *
		reserve; /* NULL: each rank has window[PXD_CREDIT_RESERVE]. Set by the owner before pxd_in_path_open */
	bool ever_up, over, closed;
	int byes; /* that have come: 1 = we have everything, 2 = and the writer knows */
	unsigned unpacking;
	struct pxd_studies studies;
	uv_timer_t tick, ack;
	bool ack_running;
	struct pxd_counters count;
	/* Set by the owner before pxd_in_path_open. */
	const struct pxd_in_ops *ops;
	void *owner;
	struct pxd_segs *segs; /* the pool for segments */
};

int pxd_in_path_open(
	struct pxd_in_path *p, struct pxd_node *d, int site, int gateway, const uint64_t window[PXD_CREDITS]);
void pxd_in_path_close(struct pxd_in_path *p);
void pxd_in_path_free(struct pxd_in_path *p);

/* pxd_in_path_credit: that of a local rank. Without memory for it pxd_fail has been called, and nothing is granted. */
struct pxd_credit *pxd_in_path_credit(struct pxd_in_path *p, int rank);
/* pxd_in_path_freed: memory of something that came through p for a local rank is free again. */
void pxd_in_path_freed(struct pxd_in_path *p, int rank, enum pxd_credit_kind kind, uint32_t charge);
/* pxd_in_path_reserve: pulled messages of a local rank need reserve (with path->reserve): up to `most` bytes beyond what has arrived, and
 * at least `least`, a segment, whatever the others have, if the rank has received all that came with it so far. */
void pxd_in_path_reserve(struct pxd_in_path *p, int rank, uint64_t least, uint64_t most);
/* pxd_in_path_pull: the local rank wants message (src, msg). */
void pxd_in_path_pull(struct pxd_in_path *p, const struct px_frame *f);
void pxd_in_path_say_abort(struct pxd_in_path *p, int code, const char *why);

void pxd_in_path_greet(struct pxd_in_path *p, int stream, struct px_hello *h);
int pxd_in_path_judge(struct pxd_in_path *p, int stream, const struct px_hello *h, char *why, size_t cap);
void pxd_in_path_linked(struct pxd_in_path *p, int stream, struct pxd_conn *c, const struct px_hello *h);
void pxd_in_path_view(const struct pxd_in_path *p, struct pxd_path_view *v);

#endif
