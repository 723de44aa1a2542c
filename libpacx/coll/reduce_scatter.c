/* reduce_scatter.c: reduce_scatter(_block).
 *
 * Each site reduces all to its leader; the leaders send each other what the other's members keep, apply it in site order, and scatter it
 * natively: one latency, and a link carries only the blocks of the site at its end. Operators that must keep an order that
 * the sites do not have: all reduce everything, each keeps its block.
 */
#include <stdlib.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "native.h"
#include "raise.h"

/* Who keeps what: block r has count[r] elements. */
struct blocks {
	MPI_Count *count, *start; /* [size], by rank; start[]: elements before it */
	MPI_Count *site; /* [nparts + 1]: elements of the sites before, where blocks lie in site order */
	MPI_Count total;
};

static bool blocks_init(struct px_sched *s, struct blocks *b, const int counts[], MPI_Count each)
{
	struct px_comm *c = px_sched_comm(s);
	size_t n = (size_t)c->size;

	b->total = 0;
	b->count = px_sched_temp(s, n * sizeof *b->count);
	b->start = px_sched_temp(s, n * sizeof *b->start);
	b->site = px_sched_temp(s, (size_t)(c->nparts + 1) * sizeof *b->site);
	if (!px_sched_ok(s))
		return false;
	for (int r = 0; r < c->size; r++) {
		b->count[r] = counts ? counts[r] : each;
		b->start[r] = b->total;
		b->total += b->count[r];
		b->site[px_part_of(c, r) + 1] += b->count[r];
	}
	for (int p = 0; p < c->nparts; p++)
		b->site[p + 1] += b->site[p];
	if (!px_fits(b->total))
		px_sched_fail(s, MPI_ERR_COUNT, "%lld elements in all, which is beyond INT_MAX",
			(long long)b->total);
	return px_sched_ok(s);
}

/* Elements in rank order -> in site order. */
struct order {
	struct blocks b;
	const char *by_rank;
	char *by_site;
	MPI_Datatype t;
};

static int arrange(struct px_sched *s, void *arg)
{
	struct px_comm *c = px_sched_comm(s);
	struct order *o = arg;
	MPI_Count extent = px_type_get(o->t)->extent;
	char *to = o->by_site;
	int rc = MPI_SUCCESS;

	for (int p = 0; p < c->nparts; p++)
		for (int i = 0; i < px_part_count(c, p) && rc == MPI_SUCCESS; i++) {
			int r = px_member(c, p, i);

			rc = px_copy(o->by_rank + o->b.start[r] * extent, to, o->b.count[r], o->t);
			to += o->b.count[r] * extent;
		}
	return rc;
}

/* What the leader combines: part[p] = what site p has for the members here. */
struct parts {
	void **part;
	int n;
	MPI_Count count;
	MPI_Datatype t;
	MPI_Op op;
};

static int combine(struct px_sched *s, void *arg)
{
	struct parts *x = arg;

	(void)s;
	return px_coll_fold(x->part, x->n, x->count, x->t, x->op);
}

/* At the leader: exchange and combine. The result: its address in *mine. */
static void leader(
	struct px_sched *s, const struct blocks *b, char *all, MPI_Datatype t, MPI_Op op, void **mine)
{
	struct px_comm *c = px_sched_comm(s);
	MPI_Count extent = px_type_get(t)->extent;
	struct order *o = px_sched_temp(s, sizeof *o);
	struct parts *x = px_sched_temp(s, sizeof *x);

	if (!o || !x)
		return;
	*o = (struct order){ *b, all, c->blocked ? all : px_sched_temp_typed(s, b->total, t), t };
	*x = (struct parts){ px_sched_temp(s, (size_t)c->nparts * sizeof *x->part), c->nparts,
		b->site[c->self + 1] - b->site[c->self], t, op };
	if (!px_sched_ok(s))
		return;
	if (!c->blocked) {
		px_sched_call(s, arrange, o);
		px_sched_round(s);
	}
	for (int p = 0; p < c->nparts; p++) {
		if (p == c->self) {
			x->part[p] = o->by_site + b->site[p] * extent;
			continue;
		}
		x->part[p] = px_sched_temp_typed(s, x->count, t);
		px_sched_send(
			s, o->by_site + b->site[p] * extent, b->site[p + 1] - b->site[p], t, px_leader(c, p));
		px_sched_after(s, PX_AT_ONCE, -1);
		px_sched_recv(s, x->part[p], x->count, t, px_leader(c, p));
	}
	px_sched_round(s);
	px_sched_call(s, combine, x);
	px_sched_round(s);
	*mine = px_sched_ok(s) ? x->part[c->nparts - 1] : NULL;
}

static void by_site(
	struct px_sched *s, const struct blocks *b, const void *in, void *out, MPI_Datatype t, MPI_Op op)
{
	struct px_comm *c = px_sched_comm(s);
	void *all = c->lrank == 0 ? px_sched_temp_typed(s, b->total, t) : NULL, *mine = NULL;
	int *v = px_sched_temp(s, 2 * (size_t)c->nlocal * sizeof *v);

	if (!px_sched_ok(s))
		return;
	for (int i = 0, at = 0; i < c->nlocal; i++) {
		v[i] = (int)b->count[px_rank_of_local(c, i)];
		v[c->nlocal + i] = at;
		at += v[i];
	}
	px_sched_native(s,
		&(struct px_call){
			.kind = PX_CALL_REDUCE, .s = in, .r = all, .count = b->total, .type = t, .op = op });
	px_sched_round(s);
	if (c->lrank == 0)
		leader(s, b, all, t, op, &mine);
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_SCATTERV,
				   .s = mine,
				   .scounts = v,
				   .sdispls = v + c->nlocal,
				   .type = t,
				   .r = out,
				   .rcount = b->count[c->rank],
				   .rtype = t });
}

/* All reduce everything, each keeps its block. */
struct block {
	const void *from;
	void *to;
	MPI_Count count;
	MPI_Datatype t;
};

static int keep_block(struct px_sched *s, void *arg)
{
	struct block *b = arg;

	(void)s;
	return px_copy(b->from, b->to, b->count, b->t);
}

static void in_order(
	struct px_sched *s, const struct blocks *b, const void *in, void *out, MPI_Datatype t, MPI_Op op)
{
	int me = px_sched_comm(s)->rank;
	struct block *k = px_sched_temp(s, sizeof *k);
	char *all = px_sched_temp_typed(s, b->total, t);

	if (!px_sched_ok(s))
		return;
	px_coll_allreduce(s, in, all, b->total, t, op);
	*k = (struct block){ all + b->start[me] * px_type_get(t)->extent, out, b->count[me], t };
	px_sched_call(s, keep_block, k);
}

static struct px_sched *build_reduce_scatter(enum px_coll which, const void *in, void *out,
	const int counts[], MPI_Count each, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, which);
	struct blocks b;

	if (!s || !blocks_init(s, &b, counts, each))
		return s;
	if (in == MPI_IN_PLACE)
		in = out;
	if (px_coll_by_site(c, op))
		by_site(s, &b, in, out, t, op);
	else
		in_order(s, &b, in, out, t, op);
	return s;
}

static int check(struct px_comm *c, const int counts[], MPI_Count each, MPI_Datatype t, MPI_Op op)
{
	if (each < 0)
		return px_raise_count(c, each);
	for (int r = 0; counts && r < c->size; r++)
		if (counts[r] < 0)
			return px_raise(c, MPI_ERR_COUNT, "counts[%d] is %d", r, counts[r]);
	if (!px_type_get(t))
		return px_raise_type(c);
	return op == MPI_OP_NULL ? px_raise(c, MPI_ERR_OP, "the operator is MPI_OP_NULL") : MPI_SUCCESS;
}

int px_Reduce_scatter(
	const void *in, void *out, const int counts[], MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	int rc = check(c, counts, 0, t, op);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_run(build_reduce_scatter(
							PX_COLL_REDUCE_SCATTER, in, out, counts, 0, t, op, c),
					   c);
}

int px_Ireduce_scatter(const void *in, void *out, const int counts[], MPI_Datatype t, MPI_Op op,
	struct px_comm *c, MPI_Request *req)
{
	int rc = check(c, counts, 0, t, op);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_start(build_reduce_scatter(PX_COLL_REDUCE_SCATTER, in, out,
							  counts, 0, t, op, c),
					   c, req);
}

int px_Reduce_scatter_block(
	const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	int rc = check(c, NULL, count, t, op);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_run(build_reduce_scatter(PX_COLL_REDUCE_SCATTER_BLOCK, in, out,
							NULL, count, t, op, c),
					   c);
}

int px_Ireduce_scatter_block(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op,
	struct px_comm *c, MPI_Request *req)
{
	int rc = check(c, NULL, count, t, op);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_start(build_reduce_scatter(PX_COLL_REDUCE_SCATTER_BLOCK, in, out,
							  NULL, count, t, op, c),
					   c, req);
}
