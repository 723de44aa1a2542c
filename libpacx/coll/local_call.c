/* local_call.c: the collective operations among the members of one site as messages, for nonblocking operations.
 *
 * Native ranks here are positions among the local members. Trees are binomial; reductions keep the order of the ranks.
 */
#include <limits.h>

#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "vendor.h"

static int rank_at(const struct px_sched *s, int local)
{
	const struct px_comm *c = px_sched_comm(s);

	return px_rank_of_local(c, local % c->nlocal);
}

/* From root, down a tree: the rank whose distance from the root is d gets it from the one whose distance lacks d's lowest bit. */
static void spread(struct px_sched *s, void *buf, MPI_Count count, MPI_Datatype t, int root)
{
	int n = px_sched_comm(s)->nlocal, d = (px_sched_comm(s)->lrank - root + n) % n, low = 1;

	while (low < n && !(d & low))
		low *= 2;
	if (d > 0) {
		px_coll_strict(s, px_sched_recv(s, buf, count, t, rank_at(s, root + d - low)));
		px_sched_round(s);
	}
	for (low /= 2; low > 0; low /= 2)
		if (d + low < n)
			px_coll_strict(s, px_sched_send(s, buf, count, t, rank_at(s, root + d + low)));
	px_sched_round(s);
}

/* The operand of one apply. */
struct pair {
	const void *in;
	void *inout;
	MPI_Count count;
	MPI_Datatype t;
	MPI_Op op;
	bool copy; /* inout = in */
};

static int apply(struct px_sched *s, void *arg)
{
	struct pair *p = arg;

	(void)s;
	return p->copy ? px_copy(p->in, p->inout, p->count, p->t)
		       : px_coll_apply(p->in, p->inout, p->count, p->t, p->op);
}

/* In a round of its own: inout = in op inout, or a copy. */
static void add_pair(struct px_sched *s, const struct px_call *k, const void *in, void *inout, bool copy)
{
	struct pair *p = px_sched_temp(s, sizeof *p);

	if (!p)
		return;
	*p = (struct pair){ in, inout, k->count, k->type, k->op, copy };
	px_sched_round(s);
	px_sched_call(s, apply, p);
	px_sched_round(s);
}

/* To local rank 0 up a binomial tree, which keeps the order, and from there to the root. */
static void reduce(struct px_sched *s, const struct px_call *k)
{
	int n = px_sched_comm(s)->nlocal, me = px_sched_comm(s)->lrank;
	const void *mine = k->s;

	for (int d = 1; d < n; d *= 2) {
		void *theirs;

		if (me & d) {
			px_sched_send(s, mine, k->count, k->type, rank_at(s, me - d));
			px_sched_round(s);
			mine = NULL;
			break;
		}
		if (me + d >= n)
			continue;
		theirs = px_sched_temp_typed(s, k->count, k->type);
		if (!theirs)
			return;
		px_sched_recv(s, theirs, k->count, k->type, rank_at(s, me + d));
		add_pair(s, k, mine, theirs, false);
		mine = theirs;
	}
	if (me == 0 && k->root != 0)
		px_sched_send(s, mine, k->count, k->type, rank_at(s, k->root));
	else if (me == 0)
		add_pair(s, k, mine, k->r, true);
	else if (me == k->root)
		px_sched_recv(s, k->r, k->count, k->type, rank_at(s, 0));
	px_sched_round(s);
}

/* Doubling: after step d each rank has the operands of the 2d ranks up to itself (exclusive: up to the one before). */
static void scan(struct px_sched *s, const struct px_call *k, bool inclusive)
{
	int n = px_sched_comm(s)->nlocal, me = px_sched_comm(s)->lrank;
	const void *mine = k->s;
	bool any = inclusive || me == 0;

	if (!inclusive && me + 1 < n)
		px_sched_send(s, mine, k->count, k->type, rank_at(s, me + 1));
	if (!inclusive && me > 0) {
		void *before = px_sched_temp_typed(s, k->count, k->type);

		px_sched_recv(s, before, k->count, k->type, rank_at(s, me - 1));
		px_sched_round(s);
		mine = before;
		any = true;
	}
	/* Exclusive: rank 0 takes no part, the others scan among themselves what they have got. */
	for (int d = 1, base = inclusive ? 0 : 1; d < n && me >= base && px_sched_ok(s); d *= 2) {
		void *theirs = NULL;

		if (me + d < n)
			px_sched_send(s, mine, k->count, k->type, rank_at(s, me + d));
		if (me - d >= base) {
			void *both = px_sched_temp_typed(s, k->count, k->type);

			theirs = px_sched_temp_typed(s, k->count, k->type);
			if (!theirs || !both)
				return;
			px_sched_recv(s, theirs, k->count, k->type, rank_at(s, me - d));
			add_pair(s, k, mine, both, true);
			add_pair(s, k, theirs, both, false);
			mine = both;
		}
		px_sched_round(s);
	}
	if (any && (inclusive || me > 0))
		add_pair(s, k, mine, k->r, true);
}

static char *at(const void *base, MPI_Count displ, MPI_Datatype t)
{
	return (char *)(uintptr_t)base + displ * px_type_get(t)->extent;
}

static void gather(struct px_sched *s, const struct px_call *k)
{
	const struct px_comm *c = px_sched_comm(s);

	if (k->s != MPI_IN_PLACE)
		px_sched_send(s, k->s, k->count, k->type, rank_at(s, k->root));
	for (int i = 0; i < c->nlocal && c->lrank == k->root; i++)
		if (i != c->lrank || k->s != MPI_IN_PLACE)
			px_sched_recv(
				s, at(k->r, k->rdispls[i], k->rtype), k->rcounts[i], k->rtype, rank_at(s, i));
}

static void scatter(struct px_sched *s, const struct px_call *k)
{
	const struct px_comm *c = px_sched_comm(s);

	for (int i = 0; i < c->nlocal && c->lrank == k->root; i++)
		if (i != c->lrank || k->r != MPI_IN_PLACE)
			px_sched_send(
				s, at(k->s, k->sdispls[i], k->type), k->scounts[i], k->type, rank_at(s, i));
	if (k->r != MPI_IN_PLACE)
		px_sched_recv(s, k->r, k->rcount, k->rtype, rank_at(s, k->root));
}

static void exchange(struct px_sched *s, const struct px_call *k)
{
	const struct px_comm *c = px_sched_comm(s);

	for (int i = 0; i < c->nlocal; i++) {
		int to = (c->lrank + i) % c->nlocal, from = (c->lrank - i + c->nlocal) % c->nlocal;

		px_sched_send(s, (const char *)k->s + k->sdispls[to], k->scounts[to], k->stypes[to],
			rank_at(s, to));
		px_sched_recv(s, (char *)k->r + k->rdispls[from], k->rcounts[from], k->rtypes[from],
			rank_at(s, from));
	}
}

void px_call_messages(struct px_sched *k, const struct px_call *call)
{
	switch (call->kind) {
	case PX_CALL_BARRIER: {
		int n = px_sched_comm(k)->nlocal, me = px_sched_comm(k)->lrank;

		for (int d = 1; d < n; d *= 2) {
			px_sched_send(k, NULL, 0, MPI_BYTE, rank_at(k, me + d));
			px_sched_recv(k, NULL, 0, MPI_BYTE, rank_at(k, me - d + n));
			px_sched_round(k);
		}
		break;
	}
	case PX_CALL_BCAST:
		spread(k, call->r, call->count, call->type, call->root);
		break;
	case PX_CALL_REDUCE:
		reduce(k, call);
		break;
	case PX_CALL_SCAN:
	case PX_CALL_EXSCAN:
		scan(k, call, call->kind == PX_CALL_SCAN);
		break;
	case PX_CALL_GATHERV:
		gather(k, call);
		break;
	case PX_CALL_SCATTERV:
		scatter(k, call);
		break;
	case PX_CALL_ALLTOALLW:
		exchange(k, call);
		break;
	case PX_CALL_DUP:
		px_sched_fail(k, MPI_ERR_INTERN, "a communicator is not made of messages");
		break;
	}
}
