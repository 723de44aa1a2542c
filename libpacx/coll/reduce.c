/* reduce.c: reduce, allreduce.
 *
 * Design. Each site makes its terms (terms.h), a head of it sends them to whoever wants the result, and those fold them in one order, the same
 * everywhere: so all ranks get the same bits, whatever way the terms took. Long vectors are cut into slices, each of which goes through
 * the steps by itself; the ranks of a site may be their heads in turn. Where sites are in groups, the terms of a group are gathered at one head of it, and an
 * allreduce's result is given out from there. Where bandwidth rules, each of n sites folds one n-th of a slice and gives the result to the others:
 * two latencies, but 2/n of the bytes on a link.
 */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "groups.h"
#include "model.h"
#include "native.h"
#include "raise.h"
#include "request.h"
#include "terms.h"
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

int px_coll_fold(void **part, int n, MPI_Count count, MPI_Datatype t, MPI_Op op)
{
	int rc = MPI_SUCCESS;

	for (int i = n - 2; i >= 0 && rc == MPI_SUCCESS; i--)
		rc = px_coll_apply(part[i], part[n - 1], count, t, op);
	return rc;
}

bool px_coll_by_site(const struct px_comm *c, MPI_Op op)
{
	int commutes = 0;

	return c->blocked || (px_n.Op_commutative(op, &commutes) == MPI_SUCCESS && commutes);
}

/* A part of the vector, which goes its way by itself. */
struct slice {
	int nth;
	const void *in;
	void *out;
	MPI_Count count;
	void **part; /* the terms, at heads */
	int ready;   /* the step that the next one waits for */
};

/* What all slices have in common. */
struct reduction {
	const struct px_terms *x;
	MPI_Datatype t;
	MPI_Aint extent;
	MPI_Op op;
	int root;   /* -1: all ranks want the result */
	bool lanes; /* the ranks of a site are heads of slices in turn */
	int n;      /* slices */
	struct slice *slice;
};

/* The rank of a site that has its terms of a slice, and sends and takes messages for it. */
static int head_of(const struct px_comm *c, const struct reduction *d, const struct slice *l, int part)
{
	if (d->lanes && !(d->root >= 0 && px_part_of(c, d->root) == part))
		return px_coll_lane(c, part, l->nth);
	return px_coll_head(c, part, d->root < 0 ? 0 : d->root);
}

/* Cut the vector; the first step of each slice: this site's terms to the head. False: s has failed. */
static bool begin(struct px_sched *s, struct reduction *d, const void *in, void *out, MPI_Count count)
{
	struct px_comm *c = px_sched_comm(s);

	d->slice = px_sched_temp(s, (size_t)d->n * sizeof *d->slice);
	for (int k = 0; k < d->n && px_sched_ok(s); k++) {
		MPI_Count first = count * k / d->n, end = count * (k + 1) / d->n;
		struct slice *l = &d->slice[k];

		l->nth = k;
		l->in = (const char *)in + first * d->extent;
		l->out = c->rank == d->root || d->root < 0 ? (char *)out + first * d->extent : NULL;
		l->count = end - first;
		l->part = px_sched_temp(s, (size_t)d->x->n * sizeof *l->part);
		px_sched_sub(s, k);
		if (l->part)
			l->ready = px_terms_here(s, d->x, l->in, l->count, d->t, d->op,
				head_of(c, d, l, c->self), d->lanes, l->part);
	}
	return px_sched_ok(s);
}

/* Our share of the terms, elements from `first` on, for other sites, after step `ready`. */
static struct px_bundle bundle(struct px_sched *s, const struct reduction *d, const struct slice *l,
	const struct px_shares *shares, int share, MPI_Count first, MPI_Count count, int ready)
{
	struct px_range *r = px_sched_temp(s, sizeof *r);

	if (!r)
		return (struct px_bundle){ .ready = -1 };
	*r = (struct px_range){ first, count };
	return px_terms_bundle(s, shares, share, l->part, r, 1, d->t, ready);
}

/* Returns the step when it has left. */
static int give(struct px_sched *s, const struct reduction *d, struct px_bundle b, int to)
{
	px_sched_when(s, b.ready);
	return px_sched_send(s, b.buf, b.count, d->t, to);
}

/* The part that has the terms of a group: that of the root in its own, else the head. */
static int collector(const struct px_comm *c, const struct px_groups *g, int group, int root)
{
	int home = root < 0 ? group : px_part_of(c, root);

	return px_group_head(g, home) == group ? home : group;
}

/* At a collector: the terms of its group's sites, and what can be done with them alone. Returns the last step. */
static int gathered(struct px_sched *s, const struct reduction *d, struct slice *l, const struct px_groups *g)
{
	struct px_comm *c = px_sched_comm(s);
	int group = px_group_head(g, c->self), ready = l->ready, sites = 1;

	for (int q = 0; q < c->nparts && px_sched_ok(s); q++)
		if (q != c->self && px_group_head(g, q) == group) {
			ready = px_sched_join(s, ready,
				px_terms_take(
					s, &d->x->site, q, l->part, l->count, d->t, head_of(c, d, l, q)));
			sites++;
		}
	return sites > 1 && px_sched_ok(s)
		       ? px_terms_fold_inside(s, d->x, group, l->part, l->count, d->t, d->op, ready)
		       : ready;
}

/* Not at a collector: our terms to it, and the result from it if it is wanted here. Returns the last step. */
static int through(struct px_sched *s, const struct reduction *d, struct slice *l, int to)
{
	int self = px_sched_comm(s)->self;
	int done = give(s, d, bundle(s, d, l, &d->x->site, self, 0, l->count, l->ready), to);

	if (!l->out)
		return done;
	px_sched_when(s, l->ready);
	return px_sched_join(s, done, px_sched_recv(s, l->out, l->count, d->t, to));
}

/* At a collector, after step `done`: the result to the other sites of the group. Returns the last step. */
static int given_out(
	struct px_sched *s, const struct reduction *d, struct slice *l, const struct px_groups *g, int done)
{
	struct px_comm *c = px_sched_comm(s);
	int last = done;

	for (int q = 0; q < c->nparts && px_sched_ok(s); q++)
		if (q != c->self && px_group_head(g, q) == px_group_head(g, c->self)) {
			px_sched_when(s, done);
			last = px_sched_join(
				s, last, px_sched_send(s, l->out, l->count, d->t, head_of(c, d, l, q)));
		}
	return last;
}

/* All terms to whoever wants the result, who folds them. Returns the last step. */
static int whole(struct px_sched *s, const struct reduction *d, struct slice *l)
{
	struct px_comm *c = px_sched_comm(s);
	const struct px_groups *g = px_groups_of(s);
	struct px_bundle b = { .ready = -1 };
	int group = px_group_head(g, c->self), at = collector(c, g, group, d->root), done;

	if (at != c->self)
		return through(s, d, l, head_of(c, d, l, at));
	done = gathered(s, d, l, g);
	if (c->rank != d->root)
		b = bundle(s, d, l, &d->x->group, group, 0, l->count, done);
	for (int q = 0; q < c->nparts && px_sched_ok(s); q++) {
		int peer = head_of(c, d, l, collector(c, g, q, d->root));

		if (q == group || px_group_head(g, q) != q)
			continue;
		if (d->root < 0 || peer == d->root)
			done = px_sched_join(s, done, give(s, d, b, peer));
		if (l->out)
			done = px_sched_join(
				s, done, px_terms_take(s, &d->x->group, q, l->part, l->count, d->t, peer));
	}
	if (!l->out || !px_sched_ok(s))
		return done;
	done = px_terms_fold(s, d->x, true, l->part, l->out, l->count, d->t, d->op, done);
	return d->root < 0 ? given_out(s, d, l, g, done) : done;
}

static MPI_Count piece_start(const struct px_comm *c, const struct slice *l, int piece)
{
	return l->count * piece / c->nparts;
}

/* Each site folds one piece of the terms of all, and gives it to whoever wants the result. Returns the last step. */
static int by_pieces(struct px_sched *s, const struct reduction *d, struct slice *l)
{
	struct px_comm *c = px_sched_comm(s);
	MPI_Count first = piece_start(c, l, c->self), count = piece_start(c, l, c->self + 1) - first;
	void **part = px_sched_temp(s, (size_t)d->x->n * sizeof *part), *mine;
	int ready = l->ready, folded, done = -1;

	mine = l->out ? (char *)l->out + first * d->extent : px_sched_temp_typed(s, count, d->t);
	for (int i = 0; px_sched_ok(s) && i < d->x->n; i++)
		if (l->part[i])
			part[i] = (char *)l->part[i] + first * d->extent;
	for (int q = 0; q < c->nparts && px_sched_ok(s); q++) {
		int peer = head_of(c, d, l, q);
		MPI_Count at = piece_start(c, l, q);

		if (q == c->self)
			continue;
		done = px_sched_join(s, done,
			give(s, d,
				bundle(s, d, l, &d->x->site, c->self, at, piece_start(c, l, q + 1) - at,
					l->ready),
				peer));
		ready = px_sched_join(s, ready, px_terms_take(s, &d->x->site, q, part, count, d->t, peer));
	}
	if (!px_sched_ok(s))
		return -1;
	folded = px_terms_fold(s, d->x, false, part, mine, count, d->t, d->op, ready);
	done = px_sched_join(s, done, folded);
	for (int q = 0; q < c->nparts; q++) {
		int peer = head_of(c, d, l, q);
		MPI_Count at = piece_start(c, l, q);

		if (q == c->self)
			continue;
		if (d->root < 0 || peer == d->root) {
			px_sched_when(s, folded);
			done = px_sched_join(s, done, px_sched_send(s, mine, count, d->t, peer));
		}
		if (l->out) {
			px_sched_when(s, l->ready);
			done = px_sched_join(s, done,
				px_sched_recv(s, (char *)l->out + at * d->extent,
					piece_start(c, l, q + 1) - at, d->t, peer));
		}
	}
	return done;
}

/* root: -1: allreduce. */
static void build(struct px_sched *s, enum px_coll as, const void *in, void *out, MPI_Count count,
	MPI_Datatype t, MPI_Op op, int root)
{
	struct px_comm *c = px_sched_comm(s);
	const struct px_type *p = px_type_get(t);
	struct reduction d = { .t = t, .extent = (MPI_Aint)p->extent, .op = op, .root = root };
	enum px_algorithm how;

	d.x = px_terms_of(s, t, op);
	if (!d.x)
		return;
	how = px_model_pick(c, as, count * p->size, d.x->most);
	d.n = px_cost_segments(how, (double)(count * p->size));
	d.lanes = how == PX_ALG_LANES;
	if (!begin(s, &d, in, out, count))
		return;
	for (int k = 0; k < d.n && px_sched_ok(s); k++) {
		struct slice *l = &d.slice[k];
		int head = head_of(c, &d, l, c->self);

		px_sched_sub(s, k);
		if (c->rank == head)
			l->ready = how == PX_ALG_PIECES ? by_pieces(s, &d, l) : whole(s, &d, l);
		if (root >= 0)
			continue;
		px_sched_when(s, l->ready);
		px_sched_native(s, &(struct px_call){ .kind = PX_CALL_BCAST,
					   .r = l->out,
					   .count = l->count,
					   .type = t,
					   .root = px_lrank(c, head) });
	}
	px_sched_sub(s, 0);
	px_sched_round(s);
}

void px_coll_reduce(
	struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root)
{
	build(s, PX_COLL_REDUCE, in, out, count, t, op, root);
}

void px_coll_allreduce(
	struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op)
{
	build(s, PX_COLL_ALLREDUCE, in, out, count, t, op, -1);
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
	return px_coll_op(c, t, op);
}

/* root -1: all get the result. */
static int check(const void *in, const void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root,
	struct px_comm *c)
{
	int rc = px_coll_check(c, count, t, op);

	if (rc != MPI_SUCCESS || count == 0 || (root >= 0 && root != c->rank))
		return rc;
	return px_coll_apart_reduced(c, in, out, root < 0);
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
	int rc = px_coll_root(c, root);

	if (rc == MPI_SUCCESS)
		rc = check(in, out, count, t, op, root, c);
	return rc != MPI_SUCCESS ? rc : px_sched_run(build_reduce(in, out, count, t, op, root, c), c);
}

int px_Ireduce(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, int root,
	struct px_comm *c, MPI_Request *req)
{
	int rc = px_coll_root(c, root);

	if (rc == MPI_SUCCESS)
		rc = check(in, out, count, t, op, root, c);
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
	int rc = check(in, out, count, t, op, -1, c);

	return rc != MPI_SUCCESS ? rc : px_sched_run(build_allreduce(in, out, count, t, op, c), c);
}

int px_Iallreduce(const void *in, void *out, MPI_Count count, MPI_Datatype t, MPI_Op op, struct px_comm *c,
	MPI_Request *req)
{
	int rc = check(in, out, count, t, op, -1, c);

	return rc != MPI_SUCCESS ? rc : px_sched_start(build_allreduce(in, out, count, t, op, c), c, req);
}
