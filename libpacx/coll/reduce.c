/* reduce.c: reduce, allreduce, reduce_scatter(_block).
 *
 * Design. Where sites hold consecutive ranks ("blocked") or the operator commutes, each site
 * reduces natively to its leader and the partial results are combined in site order, by everybody who needs
 * the result in the same order: so all ranks get the same bits. Otherwise the operands
 * are brought together (px_coll_bring) and applied in rank order (MPI standard 5.9.1: an operator is associative; only a
 * commutative one may change the order). Of a reduce-scatter each site gets from each other one only what its members keep.
 */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "native.h"
#include "raise.h"
#include "request.h"
#include "vendor.h"

int px_copy(const void *from, void *to, MPI_Count count, MPI_Datatype t)
{
	const struct px_type *p = px_type_get(t);
	void *packed;
	int rc;

	if (from == to || count == 0)
		return MPI_SUCCESS;
	if (p->contig) {
		memmove(to, from, (size_t)(count * p->size));
		return MPI_SUCCESS;
	}
	packed = malloc((size_t)(count * p->size));
	if (!packed)
		return MPI_ERR_NO_MEM;
	rc = px_type_pack(from, count, t, packed);
	if (rc == MPI_SUCCESS)
		rc = px_type_unpack(packed, (uint64_t)(count * p->size), to, count, t);
	free(packed);
	return rc;
}

/* in pieces that an int can count */
int px_coll_apply(const void *in, void *inout, MPI_Count count, MPI_Datatype t, MPI_Op op)
{
	const MPI_Count step = 1 << 30;
	MPI_Aint extent = (MPI_Aint)px_type_get(t)->extent;
	int rc = MPI_SUCCESS;

	for (MPI_Count i = 0; i < count && rc == MPI_SUCCESS; i += step) {
		MPI_Count n = count - i < step ? count - i : step;

		rc = px_n.Reduce_local(
			(const char *)in + i * extent, (char *)inout + i * extent, (int)n, t, op);
	}
	return rc;
}

/* Operands in order: out = part[0] op part[1] op ... part[n-1]; parts are overwritten. */
struct fold {
	void **part;
	int n;
	void *out;
	MPI_Count count;
	MPI_Datatype t;
	MPI_Op op;
};

int px_coll_fold(void **part, int n, MPI_Count count, MPI_Datatype t, MPI_Op op)
{
	int rc = MPI_SUCCESS;

	for (int i = n - 2; i >= 0 && rc == MPI_SUCCESS; i--)
		rc = px_coll_apply(part[i], part[n - 1], count, t, op);
	return rc;
}

static int fold(struct px_sched *s, void *arg)
{
	struct fold *f = arg;
	int rc = px_coll_fold(f->part, f->n, f->count, f->t, f->op);

	(void)s;
	return rc == MPI_SUCCESS ? px_copy(f->part[f->n - 1], f->out, f->count, f->t) : rc;
}

static struct fold *fold_new(struct px_sched *s, int n, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op)
{
	struct fold *f = px_sched_temp(s, sizeof *f);

	if (!f)
		return NULL;
	*f = (struct fold){ px_sched_temp(s, (size_t)n * sizeof *f->part), n, out, count, t, op };
	for (int i = 0; f->part && i < n; i++)
		f->part[i] = px_sched_temp_typed(s, count, t);
	return px_sched_ok(s) ? f : NULL;
}

bool px_coll_by_site(const struct px_comm *c, MPI_Op op)
{
	int commutes = 0;

	return c->blocked || (px_n.Op_commutative(op, &commutes) == MPI_SUCCESS && commutes);
}

/* Reduce the members of this site to its head. */
static void reduce_here(
	struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int head)
{
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_REDUCE,
				   .s = in,
				   .r = out,
				   .count = count,
				   .type = t,
				   .op = op,
				   .root = head });
	px_sched_round(s);
}

/* All operands to root, applied in rank order there. */
static void reduce_in_order(
	struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root)
{
	struct px_comm *c = px_sched_comm(s);
	struct fold *f;

	px_sched_send(s, in, count, t, root);
	if (c->rank == root && (f = fold_new(s, c->size, out, count, t, op))) {
		for (int r = 0; r < c->size; r++)
			px_sched_recv(s, f->part[r], count, t, r);
		px_sched_round(s);
		px_sched_call(s, fold, f);
	}
	px_sched_round(s);
}

void px_coll_reduce(
	struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root)
{
	struct px_comm *c = px_sched_comm(s);
	int head = px_coll_head(c, c->self, root);
	struct fold *f = NULL;
	void *mine = NULL;

	if (!px_coll_by_site(c, op)) {
		reduce_in_order(s, in, out, count, t, op, root);
		return;
	}
	if (c->rank == root) {
		f = fold_new(s, c->nparts, out, count, t, op);
		mine = f ? f->part[c->self] : NULL;
	} else if (c->rank == head) {
		mine = px_sched_temp_typed(s, count, t);
	}
	if (!px_sched_ok(s))
		return;
	if (c->rank == root)
		for (int p = 0; p < c->nparts; p++)
			if (p != c->self)
				px_sched_recv(s, f->part[p], count, t, px_leader(c, p));
	reduce_here(s, in, mine, count, t, op, px_lrank(c, head));
	if (c->rank == root)
		px_sched_call(s, fold, f);
	else if (c->rank == head)
		px_sched_send(s, mine, count, t, root);
	px_sched_round(s);
}

/* The operands of all ranks at all ranks, then everybody applies them in rank order: one latency, each operand once to each site. */
static bool allreduce_in_order(
	struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op)
{
	struct fold *f;
	void **part = px_coll_bring(s, in, count, t);

	if (!part || !(f = px_sched_temp(s, sizeof *f)))
		return !px_sched_ok(s);
	*f = (struct fold){ part, px_sched_comm(s)->size, out, count, t, op };
	px_sched_call(s, fold, f);
	px_sched_round(s);
	return true;
}

void px_coll_allreduce(
	struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op)
{
	struct px_comm *c = px_sched_comm(s);
	struct fold *f = NULL;

	if (!px_coll_by_site(c, op)) {
		if (allreduce_in_order(s, in, out, count, t, op))
			return;
		px_coll_reduce(s, in, out, count, t, op, 0);
		px_coll_bcast(s, out, count, t, 0);
		return;
	}
	if (c->lrank == 0) {
		f = fold_new(s, c->nparts, out, count, t, op);
		if (!f)
			return;
	}
	reduce_here(s, in, f ? f->part[c->self] : NULL, count, t, op, 0);
	if (f) {
		for (int p = 0; p < c->nparts; p++) {
			if (p == c->self)
				continue;
			px_sched_send(s, f->part[c->self], count, t, px_leader(c, p));
			px_sched_after(s, PX_AT_ONCE, -1);
			px_sched_recv(s, f->part[p], count, t, px_leader(c, p));
		}
		px_sched_round(s);
		px_sched_call(s, fold, f);
		px_sched_round(s);
	}
	px_sched_native(s,
		&(struct px_call){ .kind = PX_CALL_BCAST, .r = out, .count = count, .type = t, .root = 0 });
	px_sched_round(s);
}

int px_comm_max(struct px_comm *c, long long *v, int n)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_COMM);
	long long *mine = s ? px_sched_temp(s, (size_t)n * sizeof *mine) : NULL;

	if (mine) {
		memcpy(mine, v, (size_t)n * sizeof *mine);
		px_coll_allreduce(s, mine, v, n, MPI_LONG_LONG, MPI_MAX);
	}
	return px_sched_run(s, c);
}

int px_coll_check(struct px_comm *c, MPI_Count count, MPI_Datatype t, MPI_Op op)
{
	if (count < 0)
		return px_raise_count(c, count);
	if (!px_type_get(t))
		return px_raise_type(c);
	return op == MPI_OP_NULL ? px_raise(c, MPI_ERR_OP, "the operator is MPI_OP_NULL") : MPI_SUCCESS;
}

static struct px_sched *build_reduce(
	const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root, struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_REDUCE);

	if (s)
		px_coll_reduce(s, in == MPI_IN_PLACE ? out : in, out, count, t, op, root);
	return s;
}

int px_Reduce(
	const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root, struct px_comm *c)
{
	int rc = px_coll_check(c, count, t, op);

	if (rc == MPI_SUCCESS)
		rc = px_coll_root(c, root);
	return rc != MPI_SUCCESS ? rc : px_sched_run(build_reduce(in, out, count, t, op, root, c), c);
}

int px_Ireduce(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root,
	struct px_comm *c, MPI_Request *req)
{
	int rc = px_coll_check(c, count, t, op);

	if (rc == MPI_SUCCESS)
		rc = px_coll_root(c, root);
	return rc != MPI_SUCCESS ? rc : px_sched_start(build_reduce(in, out, count, t, op, root, c), c, req);
}

static struct px_sched *build_allreduce(
	const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_ALLREDUCE);

	if (s)
		px_coll_allreduce(s, in == MPI_IN_PLACE ? out : in, out, count, t, op);
	return s;
}

int px_Allreduce(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	int rc = px_coll_check(c, count, t, op);

	return rc != MPI_SUCCESS ? rc : px_sched_run(build_allreduce(in, out, count, t, op, c), c);
}

int px_Iallreduce(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c,
	MPI_Request *req)
{
	int rc = px_coll_check(c, count, t, op);

	return rc != MPI_SUCCESS ? rc : px_sched_start(build_allreduce(in, out, count, t, op, c), c, req);
}
