/* reduce_scatter.c: reduce_scatter(_block).
 *
 * Each site brings its terms (terms.h) to its leader; the leaders send each other, of each term, what the other's members keep, fold it
 * in the order that all reductions have, and scatter it: one latency, and a link carries only the blocks of the site at its end.
 */
#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "native.h"
#include "raise.h"
#include "terms.h"

/* Who keeps what: the members of each site keep some ranges of the vector. */
struct blocks {
	MPI_Count *count; /* [size], by rank */
	MPI_Count total;
	struct px_range
		*range; /* those of site p: first[p] to first[p + 1] - 1, in the order of its members */
	int *first;
	MPI_Count *site; /* [nparts]: elements of each site */
};

static void add_range(struct blocks *b, int *n, int least, MPI_Count at, MPI_Count count)
{
	struct px_range *last = *n > least ? &b->range[*n - 1] : NULL;

	if (last && last->first + last->count == at)
		last->count += count;
	else
		b->range[(*n)++] = (struct px_range){ at, count };
}

static bool blocks_init(struct px_sched *s, struct blocks *b, const MPI_Count counts[], MPI_Count each)
{
	struct px_comm *c = px_sched_comm(s);
	size_t n = (size_t)c->size;
	MPI_Count *start = px_sched_temp(s, n * sizeof *start);
	int ranges = 0;

	b->total = 0;
	b->count = px_sched_temp(s, n * sizeof *b->count);
	b->range = px_sched_temp(s, n * sizeof *b->range);
	b->first = px_sched_temp(s, (size_t)(c->nparts + 1) * sizeof *b->first);
	b->site = px_sched_temp(s, (size_t)c->nparts * sizeof *b->site);
	if (!px_sched_ok(s))
		return false;
	for (int r = 0; r < c->size; r++) {
		b->count[r] = counts ? counts[r] : each;
		start[r] = b->total;
		b->total += b->count[r];
	}
	for (int p = 0; p < c->nparts; p++) {
		for (int i = 0; i < px_part_count(c, p); i++) {
			int r = px_member(c, p, i);

			add_range(b, &ranges, b->first[p], start[r], b->count[r]);
			b->site[p] += b->count[r];
		}
		b->first[p + 1] = ranges;
	}
	return true;
}

/* At the leader, whose site's terms are part[] after step `ready`: exchange and fold. *mine: what the members here keep. Returns
 * the step when it is there. */
static int leader(struct px_sched *s, const struct blocks *b, const struct px_terms *x, void **part,
	MPI_Datatype t, MPI_Op op, int ready, void **mine)
{
	struct px_comm *c = px_sched_comm(s);
	MPI_Count own = b->site[c->self];
	void **kept = px_sched_temp(s, (size_t)x->n * sizeof *kept);
	int there = -1;

	*mine = px_sched_temp_typed(s, own, t);
	for (int p = 0; p < c->nparts && px_sched_ok(s); p++) {
		struct px_bundle m = px_terms_bundle(s, &x->site, c->self, part, b->range + b->first[p],
			b->first[p + 1] - b->first[p], t, ready);

		if (p == c->self) {
			for (int k = x->site.first[p]; k < x->site.first[p + 1]; k++)
				kept[x->site.of[k]] =
					(char *)m.buf +
					(k - x->site.first[p]) * own * (MPI_Aint)px_type_get(t)->extent;
			there = px_sched_join(s, there, m.ready);
			continue;
		}
		px_sched_when(s, m.ready);
		px_sched_send(s, m.buf, m.count, t, px_leader(c, p));
		there = px_sched_join(s, there, px_terms_take(s, &x->site, p, kept, own, t, px_leader(c, p)));
	}
	return px_sched_ok(s) ? px_terms_fold(s, x, false, kept, *mine, own, t, op, there) : -1;
}

static void reduce_scatter(
	struct px_sched *s, const struct blocks *b, const void *in, void *out, MPI_Datatype t, MPI_Op op)
{
	struct px_comm *c = px_sched_comm(s);
	const struct px_terms *x = px_terms_of(s, t, op);
	void **part = x ? px_sched_temp(s, (size_t)x->n * sizeof *part) : NULL, *mine = NULL;
	const MPI_Count *counts;
	const MPI_Aint *displs;
	int ready;

	if (!px_coll_side_by_side(s, b->count, &counts, &displs))
		return;
	ready = px_terms_here(s, x, in, b->total, t, op, px_leader(c, c->self), false, part);
	if (c->lrank == 0 && px_sched_ok(s))
		ready = leader(s, b, x, part, t, op, ready, &mine);
	px_sched_when(s, ready);
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_SCATTERV,
				   .s = mine,
				   .scounts = counts,
				   .sdispls = displs,
				   .type = t,
				   .r = out,
				   .rcount = b->count[c->rank],
				   .rtype = t,
				   .large = !px_fits(b->total) });
}

static struct px_sched *build_reduce_scatter(enum px_coll which, const void *in, void *out,
	const MPI_Count counts[], MPI_Count each, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, which);
	struct blocks b;

	if (!s || !blocks_init(s, &b, counts, each))
		return s;
	if (in == MPI_IN_PLACE)
		in = out;
	reduce_scatter(s, &b, in, out, t, op);
	return s;
}

static int check(const void *in, const void *out, const MPI_Count counts[], MPI_Count each, MPI_Datatype t,
	MPI_Op op, struct px_comm *c)
{
	bool some = each > 0;
	int rc;

	if (each < 0)
		return px_raise_count(c, each);
	for (int r = 0; counts && r < c->size; r++) {
		if (counts[r] < 0)
			return px_raise(c, MPI_ERR_COUNT, "counts[%d] is %lld", r, (long long)counts[r]);
		some |= counts[r] > 0;
	}
	rc = px_coll_op(c, t, op);
	return rc == MPI_SUCCESS && some ? px_coll_apart(c, in, out) : rc;
}

int px_Reduce_scatter(
	const void *in, void *out, const MPI_Count counts[], MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	int rc = check(in, out, counts, 0, t, op, c);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_run(build_reduce_scatter(
							PX_COLL_REDUCE_SCATTER, in, out, counts, 0, t, op, c),
					   c);
}

int px_Ireduce_scatter(const void *in, void *out, const MPI_Count counts[], MPI_Datatype t, MPI_Op op,
	struct px_comm *c, MPI_Request *req)
{
	int rc = check(in, out, counts, 0, t, op, c);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_start(build_reduce_scatter(PX_COLL_REDUCE_SCATTER, in, out,
							  counts, 0, t, op, c),
					   c, req);
}

int px_Reduce_scatter_block(
	const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c)
{
	int rc = check(in, out, NULL, count, t, op, c);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_run(build_reduce_scatter(PX_COLL_REDUCE_SCATTER_BLOCK, in, out,
							NULL, count, t, op, c),
					   c);
}

int px_Ireduce_scatter_block(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op,
	struct px_comm *c, MPI_Request *req)
{
	int rc = check(in, out, NULL, count, t, op, c);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_start(build_reduce_scatter(PX_COLL_REDUCE_SCATTER_BLOCK, in, out,
							  NULL, count, t, op, c),
					   c, req);
}
