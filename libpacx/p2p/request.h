/* request.h: an operation of ours and the native request that stands for it.
 *
 * A px_req on the heap owns a token: an inactive persistent native request which the
 * application holds as its MPI_Request. Tokens are pooled with their px_req, so the table
 * handle -> px_req only grows. Blocking calls use a px_req on the stack, without token.
 * Completion is noticed by px_req_test; nothing here calls an error handler except the
 * MPI_Wait and MPI_Test families (complete.c).
 */
#ifndef PX_REQUEST_H
#define PX_REQUEST_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "match.h"
#include "xfer.h"
#include "yield_hook.h"

enum px_kind { PX_SEND, PX_RECV, PX_COLL, PX_TASK };
enum px_mode { PX_STANDARD, PX_BUFFERED, PX_SYNCHRONOUS, PX_READY };

struct px_sig;

/* Where a send to another site is: see held.c. */
enum px_stage { PX_UNDER_WAY, PX_HELD, PX_LATER };

/* What a persistent request does at MPI_Start, unless it is a message's. */
struct px_again {
	int (*start)(struct px_req *r); /* MPI error code, raised */
	void (*free)(struct px_again *a);
};

struct px_req {
	struct px_req *next, *prev;    /* in a posted list, or in the free pool */
	struct px_req *anext, **aprev; /* in the list of operations that need progress */
	MPI_Request token;             /* MPI_REQUEST_NULL: on the stack */
	struct px_comm *c;
	struct px_match *queue; /* receives: where posted */
	enum px_kind kind;
	enum px_mode mode;
	bool persistent, active, orphan;
	bool posted;   /* receive: open for messages from other sites */
	bool windowed; /* in the list of operations that need progress */
	bool done;
	bool holds;  /* needs its datatype (and operator): see px_req_hold_types */
	bool acked;  /* synchronous send: the receiver has matched */
	bool raised; /* `error` has already been given to the error handler */
	int error;   /* MPI error code, 0 = none */
	char *why; /* its text (raise.h), on the heap; NULL: the vendor's for the class. Stack: the caller frees it */
	void *buf;
	MPI_Count count;
	MPI_Datatype type;
	const struct px_sig *
		sig; /* buf holds packed data with this signature, which MPI_BYTE does not tell; NULL: that of type */
	int peer, tag;      /* comm rank; wildcards allowed in receives */
	uint32_t msg;       /* sends to another site: number of the message */
	MPI_Request native; /* local half, or MPI_REQUEST_NULL */
	struct px_xfer x;
	/* Sends to another site (held.c). */
	enum px_stage stage;
	struct px_req *hnext; /* in the list of its destination */
	uint64_t ctx;
	int dst;                        /* global rank */
	unsigned flags;                 /* of its frame */
	uint16_t via;                   /* gateway of the payload */
	bool counted;                   /* it is one of its destination's active long messages */
	uint16_t depth;                 /* collectives: wide-area messages in sequence, see frame.h */
	struct px_sched *sched;         /* PX_COLL */
	bool (*task)(struct px_req *r); /* PX_TASK and PX_COLL: looks once, see px_progress */
	void *job;                      /* its argument */
	struct px_again *again; /* a persistent request that is not a message's: how it starts; owned */
	struct px_req *also;    /* MPI_Isendrecv: the send, owned; complete only together */
	void *copy;             /* MPI_Isendrecv_replace: what is sent, owned */
	MPI_Status status;      /* valid when done */
};

/* px_duty (comm_find.h): posted receives for other sites, running collectives and windowed transfers: while it
 * is not 0 no native call may block, since peers wait for our progress; unless they are served from within it (px_hooked). Changed only through px_duty_add. */
void px_duty_add(int n);

struct px_req *px_req_new(struct px_comm *c);          /* with token; NULL: out of memory */
void px_req_init(struct px_req *r, struct px_comm *c); /* on the stack */
void px_req_release(struct px_req *r);                 /* back to the pool */
/* px_req_close: give all tokens back, those that the application has not freed included: MPICH complains of each at the end. */
void px_req_close(void);
/* px_req_asleep: a persistent request that is not started. px_status_empty: what tests of such a one, and of null, give. */
static inline bool px_req_asleep(const struct px_req *r)
{
	return r->persistent && !r->active;
}
void px_status_empty(MPI_Status *status);
struct px_req *px_req_find(MPI_Request h); /* NULL: a native request */

/* px_req_test: look once; true when the operation is complete (r->status and r->error then hold). */
bool px_req_test(struct px_req *r);
/* px_req_wait: progress until complete. Returns r->error. */
int px_req_wait(struct px_req *r);
/* px_may_block: may a native call block now (px_blocking)? */
bool px_may_block(void);
/* px_req_only_native: all that is left of r is a native request, and native calls may block (px_hooked). */
bool px_req_only_native(const struct px_req *r);
/* px_req_set_status: fill r->status. bytes in this site's representation. */
void px_req_set_status(struct px_req *r, int src, int tag, MPI_Count bytes);
/* px_req_detach: the application gave the request up; it is released when complete. */
void px_req_detach(struct px_req *r);
/* px_req_hold_types, px_req_drop_types: between them the application's MPI_Type_free and MPI_Op_free are put off.
 * Dropped by px_req_wait, px_req_finish and px_req_release. */
void px_req_hold_types(struct px_req *r);
void px_req_drop_types(struct px_req *r);
/* px_req_cancel: of a receive: true when it is now complete, cancelled or not; false: it has matched and goes on. */
bool px_req_cancel(struct px_req *r);
/* px_req_unpost: take a receive out of its posted queue. */
void px_req_unpost(struct px_req *r);
/* px_req_native_done: the local half of r has completed with this native status and result. */
void px_req_native_done(struct px_req *r, const MPI_Status *st, int rc);
/* px_req_finish: after completion: give the status to the caller (or not, MPI_STATUS_IGNORE), deactivate or
 * release r, raise its error. Returns the error code. */
int px_req_finish(struct px_req *r, MPI_Request *handle, MPI_Status *status);
/* px_status_copy: all of *from but the MPI_ERROR field, unless to is MPI_STATUS_IGNORE. */
void px_status_copy(MPI_Status *to, const MPI_Status *from);
/* px_buffered_wait: until all sends that the application gave up (buffered, or freed) have left. */
void px_buffered_wait(void);
/* px_req_need / px_req_rest: enter and leave the list of operations that px_progress drives. */
void px_req_need(struct px_req *r);
void px_req_rest(struct px_req *r);

/* Somebody who answers other ranks whenever this one makes progress (io/service.c). serve looks once and never waits; true when
 * something happened. It is not called while it runs. */
struct px_server {
	struct px_server *next;
	bool (*serve)(struct px_server *s);
	bool busy;
};
void px_server_add(struct px_server *s);
void px_server_del(struct px_server *s); /* not from within serve */

/* px_progress: take arrived envelopes, drive collectives and transfers. True when something happened. The task of a PX_TASK returns true
 * when it has set done, error and status; that of a PX_COLL when something happened. */
bool px_progress(void);
/* px_serve: px_progress from within a native call, unless somebody holds the lock (progress.c). px_serving is true meanwhile:
 * nothing is raised, and what would run the user's code is put off. */
enum px_served px_serve(void);
/* px_serve_apart: the same by a thread that is not the program's (helper.c): nothing that may call functions of the program, so no steps of collectives. */
enum px_served px_serve_apart(void);
extern bool px_serving;

/* px_wait_native: wait for a native request with progress, without the lock where native calls may block. MPI error code. */
int px_wait_native(MPI_Request *req, MPI_Status *status);

/* px_meet: the members of a native communicator come together, with progress. A blocking native collective that follows
 * then waits for nobody who waits for us. MPI error code. */
int px_meet(MPI_Comm native);

/* The waiting loop: px_loop_enter(&w); while (!condition) px_relax(&w, px_progress()); px_loop_leave();
 * px_relax gives the lock up while it idles. */
struct px_wait;
void px_loop_enter(struct px_wait *w);
void px_loop_leave(void);
void px_relax(struct px_wait *w, bool something);

#endif
