/* schedule.h: collectives as schedules: rounds of native collectives, messages and local steps.
 *
 * A schedule is a graph. A builder adds steps; a step waits for all steps before the last px_sched_round, or, after px_sched_after,
 * for those named there alone; so the segments of a long operation pass through local step, wide area and local step side by side.
 * Messages go in the collective context (ctx | 1) and therefore never meet those of the application; the number of the operation is
 * in their tags, so that any number of operations are under way on a communicator.
 *
 * Native steps are made in one of three ways, the same one at all members:
 *   - in a blocking call, where native calls may block (px_hooked): the vendor's blocking call, by the caller himself, while the
 *     messages of the schedule go on from within it;
 *   - in a blocking call elsewhere: the vendor's nonblocking call;
 *   - in a nonblocking call: messages of our own (local_call.c), because operations of the vendor's would all have to start in the same
 *     order at all members, and so wait for one another's wide-area messages.
 * The first two start in the order added, which must be the same at all members of a site. A step of another member must
 * therefore never wait for what this one does only after a native step that the other has not come to.
 * Errors while building stick to the schedule and come out of px_sched_run or px_sched_start.
 */
#ifndef PX_SCHEDULE_H
#define PX_SCHEDULE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "comm.h"
#include "outbox.h"

/* The operations that are counted, in the order of the statistics. */
/* clang-format off */
#define PX_COLLS(X) \
	X(BARRIER, barrier) \
	X(BCAST, bcast) \
	X(GATHER, gather) \
	X(GATHERV, gatherv) \
	X(SCATTER, scatter) \
	X(SCATTERV, scatterv) \
	X(ALLGATHER, allgather) \
	X(ALLGATHERV, allgatherv) \
	X(ALLTOALL, alltoall) \
	X(ALLTOALLV, alltoallv) \
	X(ALLTOALLW, alltoallw) \
	X(REDUCE, reduce) \
	X(ALLREDUCE, allreduce) \
	X(REDUCE_SCATTER, reduce_scatter) \
	X(REDUCE_SCATTER_BLOCK, reduce_scatter_block) \
	X(SCAN, scan) \
	X(EXSCAN, exscan) \
	X(NEIGHBOR, neighbor) \
	X(COMM, communicator)
/* clang-format on */

enum px_coll {
#define X(up, low) PX_COLL_##up,
	PX_COLLS(X)
#undef X
		PX_COLL_COUNT
};

/* A native collective on the local members; unused members are 0. */
enum px_call_kind {
	PX_CALL_BARRIER,
	PX_CALL_BCAST,
	PX_CALL_REDUCE,
	PX_CALL_SCAN,
	PX_CALL_EXSCAN,
	PX_CALL_GATHERV,
	PX_CALL_SCATTERV,
	PX_CALL_ALLTOALLW,
	PX_CALL_DUP,
};

struct px_call {
	enum px_call_kind kind;
	const void *s;
	void *r;
	MPI_Count count; /* send count, or the count */
	MPI_Datatype type;
	MPI_Count rcount; /* SCATTERV */
	MPI_Datatype rtype;
	const MPI_Count *scounts, *rcounts;
	const MPI_Aint *sdispls, *rdispls;
	const MPI_Datatype *stypes, *rtypes;
	MPI_Op op;
	int root; /* native rank */
	bool large; /* more than the vendor's call takes (px_fits); the same at all members of the site: messages instead */
	MPI_Comm of; /* DUP: another native communicator of the same members; 0: the communicator's own */
	const MPI_Info *info; /* DUP: its hints, which must live as long as the schedule; or NULL */
	MPI_Comm *newcomm;
	const int *nscounts, *nsdispls, *nrcounts,
		*nrdispls; /* made by px_call_ready, where the vendor counts in int */
};

struct px_sched;

struct px_sched *px_sched_new(struct px_comm *c, enum px_coll op);
void px_sched_round(struct px_sched *s);
/* px_sched_after: the next step waits for steps a and b (numbers as px_sched_send and the like return them, -1 = none) and for no others.
 * PX_AT_ONCE, -1: for none at all: a receive whose
 * buffer is free from the start, and before which no other receive from the same rank is added. */
#define PX_AT_ONCE (-2)
void px_sched_after(struct px_sched *s, int a, int b);
/* px_sched_when: the next step waits for step a alone; a = -1: as if this had not been said. */
void px_sched_when(struct px_sched *s, int a);
/* px_sched_join: the number of a step that is done when a and b are; -1 = none. */
int px_sched_join(struct px_sched *s, int a, int b);
int px_sched_send(struct px_sched *s, const void *buf, MPI_Count count, MPI_Datatype t, int dst);
int px_sched_recv(struct px_sched *s, void *buf, MPI_Count count, MPI_Datatype t, int src);
/* px_sched_exact: fewer bytes than the receive `step` expects are as wrong as more; or it is a send of a broadcast to such a receive, which
 * is to fail, too, when this schedule has. Returns the step. px_sched_recv_all: such a receive. */
int px_sched_exact(struct px_sched *s, int step);
int px_sched_recv_all(struct px_sched *s, void *buf, MPI_Count bytes, int src);
/* px_sched_packed: the messages added from now on hold packed elements of t, though they are sent and received as bytes: between unlike
 * machines they are converted. MPI_DATATYPE_NULL: they are what their datatype says. */
void px_sched_packed(struct px_sched *s, MPI_Datatype t);
/* px_sched_sub: the messages added from now on match only those of the same number. Needed where two messages between the
 * same ranks may start in another order than they were added. */
#define PX_SUBS 1024
void px_sched_sub(struct px_sched *s, int sub);
int px_sched_native(struct px_sched *s, const struct px_call *call);
/* px_sched_call: run fn(s, arg) in its round; it returns an MPI error code. */
int px_sched_call(struct px_sched *s, int (*fn)(struct px_sched *s, void *arg), void *arg);

/* The native call as messages, as steps of k (local_call.c); by the vendor (native_call.c), MPI error codes. */
void px_call_messages(struct px_sched *k, const struct px_call *call);
int px_call_ready(struct px_sched *s, struct px_call *k); /* before either: counts as the vendor takes them */
int px_call_start(const struct px_call *k, MPI_Comm n, MPI_Request *req);
int px_call_block(const struct px_call *k, MPI_Comm n);

/* px_sched_temp: zeroed memory that lives as long as the schedule. NULL: the schedule has failed. */
void *px_sched_temp(struct px_sched *s, size_t bytes);
/* px_sched_temp_type: t, which is freed with the schedule. MPI error code. */
int px_sched_temp_type(struct px_sched *s, MPI_Datatype t);
/* px_sched_temp_typed: room for count elements of t, as a buffer address for MPI calls. */
void *px_sched_temp_typed(struct px_sched *s, MPI_Count count, MPI_Datatype t);
/* px_sched_fail: the first failure of a schedule is the one that is raised, with its text (raise.h). px_sched_fail_arg: the count of the
 * block of rank r (-1: of all) is negative, or else its datatype is not valid. */
void px_sched_fail(struct px_sched *s, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void px_sched_fail_arg(struct px_sched *s, int r, MPI_Count count);
bool px_sched_ok(const struct px_sched *s);
struct px_comm *px_sched_comm(const struct px_sched *s);

/* px_sched_run: start, wait, raise errors. px_sched_start: start; *req completes with it. px_sched_go: the one without a req, the other
 * with it. s may be NULL (out of memory). */
int px_sched_run(struct px_sched *s, struct px_comm *c);
int px_sched_start(struct px_sched *s, struct px_comm *c, MPI_Request *req);
int px_sched_go(struct px_sched *s, struct px_comm *c, MPI_Request *req);
/* px_comm_turn: collective over c: when it returns, a blocking native call on c->native may follow (without the lock), which waits for nobody who waits for us. MPI error code. */
int px_comm_turn(struct px_comm *c);

/* px_internal_send, px_internal_recv: one blocking message of bytes in the collective context, outside of any schedule,
 * with a negative tag. MPI error code, not raised. */
int px_internal_send(struct px_comm *c, const void *buf, int bytes, int dst, int tag);
int px_internal_recv(struct px_comm *c, void *buf, int bytes, int src, int tag);

/* Per-operation counters of this rank. */
struct px_coll_stat {
	unsigned long long calls, messages, bytes; /* wide-area messages and payload bytes sent */
	unsigned long long depth;                  /* most wide-area latencies in sequence in one call */
	struct px_given given;                     /* envelopes and short payloads, to this site's daemons */
};
extern struct px_coll_stat px_coll_stat[PX_COLL_COUNT];

#endif
