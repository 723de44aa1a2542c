/* rma.h: windows on communicators that span sites.
 *
 * Design. Everything is a message to the target's library, which carries it out on the target's memory when the target is in
 * any MPI call (px_progress). So also between ranks of one site: an accumulate of a local origin and one of a remote origin
 * must exclude each other, which two mechanisms, ours and the vendor's, could not promise. What a rank does to its own
 * memory is done at once by the same functions. All of it happens under px_lock, one operation after the other: so
 * each is atomic as a whole, which is more than the element by element that the standard asks for.
 *
 * The handle. The application holds a native window of no bytes over MPI_COMM_SELF (made by MPI_Win_allocate: Open MPI 4.1 has no
 * component for MPI_Win_create on one process). It carries the name, the info, the error handler and the user's attributes;
 * the predefined attributes and the group are ours. The window has a communicator of its own, split off without the
 * user's attributes: its point-to-point context carries the messages below, its collective one the fences.
 *
 * Messages. Between two ranks there are two flows in each direction, told apart by the tag, and each is handled strictly in order:
 * requests (operations, LOCK, UNLOCK, FLUSH, COMPLETE) and responses (REPLY, ACK, POST). Order makes the rest simple: accumulates
 * of one origin keep theirs, replies need no number, an ACK says that all that was asked before is done. A LOCK that is not
 * granted stops the flow of requests behind it until it is, so MPI_Win_lock does not wait (but for the own
 * memory); responses never stop. A message is a head (struct px_rma_head), the layout at the target as runs of basic elements
 * (typemap.h), then the data; if all of it does not fit into one envelope, the data is a message of its own behind it, which
 * goes straight from the origin's buffer, and into the target's memory if the layout is contiguous and the operation is a put.
 * Layout in bytes, little endian: kind u8, op u8, flags u8, error u8, runs u32, disp i64, count u64, extent i64, bytes u64;
 * each run: code u32, 0 u32, offset i64, stride i64, count u64, repetitions u64.
 *
 * Unlike machines. The layout is the target's: as if the origin's calls that made the datatype had been made there (typemap.h). Data is in
 * the representation of who sends it, `bytes` too; who gets it converts (right.c; replies: p2p/unlike.h). What does not fit into the
 * target's memory changes nothing there, and is an error of the origin's next flush or unlock, or of the target's fence or MPI_Win_wait.
 *
 * Completion. A flush is a FLUSH that is answered with an ACK, an unlock likewise. A fence adds up how many operations each
 * rank was sent, by a reduce-scatter, waits until so many are done here and all replies are there, and ends with a barrier.
 *
 * Memory. At most PX_RMA_MARKS times PX_RMA_MARK operations of one origin wait for one target: after each PX_RMA_MARK of them goes a
 * FLUSH, and the origin waits when PX_RMA_MARKS of these have not been answered. Long data waits in the origin's buffer (see
 * channel.c); the target has at most one copy per origin, for long accumulates and layouts with gaps.
 *
 * Files: win.c (the object), flow.c (messages), target.c (what is done to memory), right.c (unlike origins), origin.c (operations),
 * sync.c (synchronisation).
 */
#ifndef PX_RMA_H
#define PX_RMA_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "comm.h"
#include "request.h"

struct px_repr;

#define PX_RMA_HEAD  40
#define PX_RMA_RUN   40
#define PX_RMA_MARK  256
#define PX_RMA_MARKS 4

/* Tags of the two flows. */
enum px_rma_flow { PX_RMA_REQUESTS, PX_RMA_RESPONSES, PX_RMA_FLOWS };

enum px_rma_kind {
	/* requests: the first five are operations, which a fence counts */
	PX_RMA_PUT = 1,
	PX_RMA_GET,
	PX_RMA_ACC,  /* accumulate */
	PX_RMA_GACC, /* get_accumulate, fetch_and_op */
	PX_RMA_CAS,  /* data: the value to compare with, the new value */
	PX_RMA_LOCK, /* disp: 1 = exclusive */
	PX_RMA_UNLOCK,
	PX_RMA_FLUSH,
	PX_RMA_COMPLETE,
	/* responses */
	PX_RMA_REPLY,
	PX_RMA_ACK,
	PX_RMA_POST,
};

enum px_rma_flags { PX_RMA_LONG = 1 }; /* the data follows as a message of its own */

/* What is wrong with an operation, as the target says it: the vendors' error classes have different numbers. */
enum px_rma_error { PX_RMA_OK, PX_RMA_ERANGE, PX_RMA_ETYPE, PX_RMA_EVALUE };

struct px_rma_head {
	uint8_t kind, op, flags, error;
	uint32_t nruns;
	int64_t disp;
	uint64_t count; /* elements of the target's datatype, `extent` bytes apart */
	int64_t extent;
	uint64_t bytes; /* of data, in type map order; GET: asked for */
};

/* A layout in the memory of this process. */
struct px_rma_layout {
	char *base;
	uint64_t count;
	int64_t extent;
	uint32_t nruns;
	const uint8_t *runs; /* as they come in messages */
};

/* A message of ours that has not left. */
struct px_rma_out {
	struct px_rma_out *next;
	struct px_req r;
	void *owned;         /* freed when it has left */
	struct px_req *user; /* its request is complete then, or NULL */
	int peer;
	bool reply;
};

/* An answer that we wait for. */
struct px_rma_get {
	struct px_rma_get *next;
	struct px_req r; /* where its data goes */
	struct px_req *user;
};

/* Messages from one rank, in one flow. */
struct px_rma_in {
	struct px_rma_in *next; /* in the list of those with something to do */
	bool listed, stopped;   /* stopped: its LOCK is not granted */
	int src;
	enum px_rma_flow flow;
	struct px_msg *first, **end;
	/* A transfer under way. */
	struct px_req *r, *slot; /* slot: for those that are not a px_rma_get's */
	bool data;               /* what comes next is the data of `head` */
	void *temp, *keep;       /* data that cannot go to its place at once; the memory that head is in */
	const uint8_t *head;
	struct px_rma_get *get;    /* data of a reply */
	struct px_rma_layout into; /* data of an operation */
	int error;                 /* enum px_rma_error of the operation */
};

struct px_rma_peer {
	struct px_rma_in in[PX_RMA_FLOWS];
	uint64_t sent; /* operations since the last fence */
	unsigned unmarked;
	unsigned acks;                       /* asked for, not there */
	unsigned outs;                       /* messages to it that have not left */
	unsigned answers;                    /* that we wait for, those that are arriving included */
	bool dirty;                          /* operations since the last FLUSH */
	struct px_rma_get *gets, **gets_end; /* whose answers have not begun */
	enum px_rma_error error;             /* of an operation of ours, for the next call that completes */
	enum px_rma_error failed;            /* of an operation of its, for the next ACK */
	uint64_t size;                       /* of its part of the window */
	int64_t disp_unit;
	/* Passive target: we at it. */
	bool locked;    /* by MPI_Win_lock */
	bool lock_sent; /* a LOCK is out and wants an UNLOCK */
	/* Passive target: it at us. */
	bool holds, waits, wants_exclusive;
	struct px_rma_peer *wait_next;
	/* Active target. */
	int posts, completes; /* of it, not used yet */
	bool target;          /* in the group of MPI_Win_start */
};

struct px_win {
	struct px_server server; /* first */
	MPI_Win token;
	MPI_Comm comm;
	struct px_comm *c; /* of comm */
	char *base;
	MPI_Aint size;
	int disp_unit, flavor, model;
	bool allocated; /* base is ours */
	struct px_rma_region *regions;
	struct px_rma_peer *peer; /* [c->size] */
	struct px_rma_in *busy;   /* flows with something to do */
	struct px_rma_out *outs;
	unsigned nouts, replies;   /* replies, of all outs: they may still read the memory */
	unsigned gets;             /* answers that we wait for, of all peers */
	uint64_t expected, done;   /* operations by others: told by fences, carried out */
	int holders;               /* locks granted here; -1: exclusive */
	struct px_rma_peer *waits; /* for a lock here, in order */
	bool fenced, lock_all;
	bool nocheck;                             /* lock_all locks nothing: MPI_MODE_NOCHECK */
	uint64_t ops;                             /* since the last fence: then MPI_Win_lock is too early */
	int *started, nstarted, *posted, nposted; /* comm ranks; n = -1: no epoch */
};

/* A piece of memory attached to a dynamic window. */
struct px_rma_region {
	struct px_rma_region *next;
	char *base;
	MPI_Aint size;
};

/* px_win_raise: call the window's error handler with a code; returns it. */
int px_win_raise(struct px_win *w, int code);
/* px_rma_failed: raise the error that `peer` has told of, if it has. px_rma_spoiled: raise what is wrong with operations of others here that
 * nobody has been told: at the end of an epoch in which they need not ask. */
int px_rma_failed(struct px_win *w, int peer);
int px_rma_spoiled(struct px_win *w);
int px_rma_code(enum px_rma_error e);

/* flow.c */
void px_rma_put_head(uint8_t *out, const struct px_rma_head *h);
/* px_rma_send: a message to `peer`. `mem` (heap, taken over): head, runs, data. MPI error codes, not raised. */
int px_rma_send(struct px_win *w, int peer, enum px_rma_flow flow, uint8_t *mem, uint64_t bytes);
/* px_rma_send_data: the data that belongs to the message before; owned and user as in px_rma_out, either may be NULL. */
int px_rma_send_data(struct px_win *w, int peer, enum px_rma_flow flow, const void *buf, MPI_Count count,
	MPI_Datatype t, void *owned, struct px_req *user);
/* px_rma_say: a message without layout and data. */
int px_rma_say(
	struct px_win *w, int peer, enum px_rma_flow flow, enum px_rma_kind kind, int64_t disp, int error);
/* px_rma_resume: look at this flow again. */
void px_rma_resume(struct px_win *w, struct px_rma_in *in);
/* px_rma_serve: one look at a window's messages; for px_progress. */
bool px_rma_serve(struct px_server *server);
void px_rma_flows_init(struct px_win *w);
void px_rma_flows_fini(struct px_win *w);
/* px_rma_get_done: the answer is there; g is freed. */
void px_rma_get_done(struct px_win *w, int peer, struct px_rma_get *g, int error);
/* px_rma_until: wait, with progress, until the condition holds. */
#define px_rma_until(condition)                                                                              \
	do {                                                                                                 \
		struct px_wait wait_;                                                                        \
                                                                                                             \
		px_loop_enter(&wait_);                                                                       \
		while (!(condition))                                                                         \
			px_relax(&wait_, px_progress());                                                     \
		px_loop_leave();                                                                             \
	} while (0)

/* target.c */
/* px_rma_span: the bytes that a layout covers around its base on a machine (NULL: this one): lowest, and behind the highest. */
enum px_rma_error px_rma_span(
	const struct px_rma_layout *at, const struct px_repr *as, int64_t *low, int64_t *high);
/* px_rma_place: where the layout of a message lies in this rank's memory. */
enum px_rma_error px_rma_place(
	struct px_win *w, const struct px_rma_head *h, const uint8_t *runs, struct px_rma_layout *at);
/* In all of these `bytes` may end before the layout does. */
bool px_rma_contiguous(const struct px_rma_layout *at);
void px_rma_gather(const struct px_rma_layout *from, void *out, uint64_t bytes);
void px_rma_scatter(const struct px_rma_layout *to, const void *in, uint64_t bytes);
/* px_rma_combine: memory = memory op data. */
void px_rma_combine(const struct px_rma_layout *to, const void *in, uint64_t bytes, uint8_t op);
/* px_rma_swap: the one element, of `size` bytes, becomes the second in data if it is the first; its old value goes to `old`. */
void px_rma_swap(const struct px_rma_layout *to, const void *data, uint64_t size, void *old);

/* right.c */
/* The data of an operation as this machine stores it. */
struct px_rma_data {
	const uint8_t *bytes; /* NULL: there is none, or it is in its place */
	uint64_t size;        /* of all that the operation covers */
	uint8_t *owned;       /* to be freed */
};
/* px_rma_right: what the origin `src` has sent, in its own representation, for the layout `at`. */
enum px_rma_error px_rma_right(struct px_win *w, int src, const struct px_rma_head *h,
	const struct px_rma_layout *at, const uint8_t *in, struct px_rma_data *out);

/* sync.c */
void px_rma_lock_asked(struct px_win *w, int src, bool exclusive);
void px_rma_unlocked(struct px_win *w, int src);
/* px_rma_any_lock: have we locked anybody, or all? */
bool px_rma_any_lock(const struct px_win *w);
/* px_rma_may_reach: is there an epoch that lets us at this target? Sends the LOCK that MPI_Win_lock_all has put off.
 * MPI error code, raised. */
int px_rma_may_reach(struct px_win *w, int target);
/* px_rma_flush_ask: send a FLUSH. px_rma_count: one more operation has gone to this target. MPI error codes, raised. */
int px_rma_flush_ask(struct px_win *w, int target);
int px_rma_count(struct px_win *w, int target);

#endif
