/* scan_tree.c: see scan_tree.h.
 *
 * The leader of a site has all operands of its site, sends the site's terms to the leaders of those sites that have ranks behind them, in one message,
 * walks down the tree with what is before each subtree, and gives every rank its result.
 */
#include "scan_tree.h"

#include <stdlib.h>

#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "terms.h"

#define DEPTH 32 /* of the tree: its halves have at most 2^31 ranks */

/* What a leader works on. */
struct walk {
	const struct px_terms *x;
	void **part;      /* [x->n] the terms of other sites */
	const void **own; /* [nlocal] operands */
	void **result;    /* [nlocal] */
	char *terms;      /* ours, side by side */
	void *left[DEPTH],
		*half[DEPTH]; /* at each depth: what is before the second half, the value of a first half */
	MPI_Count count;
	MPI_Datatype t;
	MPI_Op op;
	bool inclusive;
};

/* Does this site have any of ranks [lo, lo + n)? */
static bool any_here(const struct px_comm *c, int lo, int n)
{
	for (int r = lo; r < lo + n; r++)
		if (px_part_of(c, r) == c->self)
			return true;
	return false;
}

static int by_lo(const void *key, const void *term)
{
	return *(const int *)key - ((const struct px_term *)term)->lo;
}

/* Room at a depth, made when it is first needed. */
static void *room(struct px_sched *s, const struct walk *w, void **at)
{
	if (!*at)
		*at = px_sched_temp_typed(s, w->count, w->t);
	return *at;
}

/* The value of ranks [lo, lo + n), of which those of other sites are whole terms. */
static int value(struct px_sched *s, struct walk *w, int lo, int n, int depth, void *to)
{
	const struct px_comm *c = px_sched_comm(s);
	const struct px_term *m = bsearch(&lo, w->x->term, (size_t)w->x->n, sizeof *m, by_lo);
	int half = px_terms_left(n), rc;
	void *left;

	if (m && m->n == n && w->part[m - w->x->term])
		return px_copy(w->part[m - w->x->term], to, w->count, w->t);
	if (n == 1)
		return px_copy(w->own[px_lrank(c, lo)], to, w->count, w->t);
	left = room(s, w, &w->half[depth]);
	if (!left)
		return MPI_ERR_NO_MEM;
	rc = value(s, w, lo, half, depth + 1, left);
	if (rc == MPI_SUCCESS)
		rc = value(s, w, lo + half, n - half, depth + 1, to);
	return rc == MPI_SUCCESS ? px_coll_apply(left, to, w->count, w->t, w->op) : rc;
}

/* The results of this site's ranks among [lo, lo + n), before which is `before` (NULL: nothing). */
static int down(struct px_sched *s, struct walk *w, int lo, int n, int depth, const void *before)
{
	const struct px_comm *c = px_sched_comm(s);
	int half = px_terms_left(n), rc = MPI_SUCCESS;
	void *left;

	if (!any_here(c, lo, n))
		return MPI_SUCCESS;
	if (n == 1) {
		void *to = w->result[px_lrank(c, lo)];

		if (!w->inclusive)
			return before ? px_copy(before, to, w->count, w->t) : MPI_SUCCESS;
		rc = px_copy(w->own[px_lrank(c, lo)], to, w->count, w->t);
		return before && rc == MPI_SUCCESS ? px_coll_apply(before, to, w->count, w->t, w->op) : rc;
	}
	rc = down(s, w, lo, half, depth + 1, before);
	if (rc != MPI_SUCCESS || !any_here(c, lo + half, n - half))
		return rc;
	left = room(s, w, &w->left[depth]);
	if (!left)
		return MPI_ERR_NO_MEM;
	rc = value(s, w, lo, half, depth + 1, left);
	if (before && rc == MPI_SUCCESS)
		rc = px_coll_apply(before, left, w->count, w->t, w->op);
	return rc == MPI_SUCCESS ? down(s, w, lo + half, n - half, depth + 1, left) : rc;
}

static int walk_down(struct px_sched *s, void *arg)
{
	return down(s, arg, 0, px_sched_comm(s)->size, 0, NULL);
}

static char *term_at(const struct walk *w, int k)
{
	return w->terms + k * w->count * (MPI_Aint)px_type_get(w->t)->extent;
}

static int make_terms(struct px_sched *s, void *arg)
{
	const struct px_comm *c = px_sched_comm(s);
	struct walk *w = arg;
	const int *of = w->x->site.of + w->x->site.first[c->self];
	int rc = MPI_SUCCESS;

	for (int k = 0; k < w->x->site.first[c->self + 1] - w->x->site.first[c->self] && rc == MPI_SUCCESS;
		k++)
		rc = value(s, w, w->x->term[of[k]].lo, w->x->term[of[k]].n, 0, term_at(w, k));
	return rc;
}

/* How many terms of site p are before ranks of site q: the first ones. */
static int before_site(const struct px_comm *c, const struct px_terms *x, int p, int q)
{
	int last = px_member(c, q, px_part_count(c, q) - 1), n = 0;

	while (x->site.first[p] + n < x->site.first[p + 1] &&
		x->term[x->site.of[x->site.first[p] + n]].lo < last)
		n++;
	return n;
}

/* The terms of all sites to those who need them. Returns the step when ours have come. */
static int exchange(struct px_sched *s, struct walk *w, int ready)
{
	const struct px_comm *c = px_sched_comm(s);
	const struct px_terms *x = w->x;
	int there = ready;

	for (int q = 0; q < c->nparts && px_sched_ok(s); q++) {
		int out = q == c->self ? 0 : before_site(c, x, c->self, q);
		int in = q == c->self ? 0 : before_site(c, x, q, c->self);
		char *all = in ? px_sched_temp_typed(s, in * w->count, w->t) : NULL;

		if (out) {
			px_sched_when(s, ready);
			px_sched_send(s, w->terms, out * w->count, w->t, px_leader(c, q));
		}
		for (int k = 0; all && k < in; k++)
			w->part[x->site.of[x->site.first[q] + k]] =
				all + k * w->count * (MPI_Aint)px_type_get(w->t)->extent;
		if (all) {
			px_sched_after(s, PX_AT_ONCE, -1);
			there = px_sched_join(
				s, there, px_sched_recv(s, all, in * w->count, w->t, px_leader(c, q)));
		}
	}
	return there;
}

struct keeping {
	const void *from;
	void *to;
	MPI_Count count;
	MPI_Datatype t;
};

static int keep(struct px_sched *s, void *arg)
{
	struct keeping *k = arg;

	(void)s;
	return px_copy(k->from, k->to, k->count, k->t);
}

static struct walk *walk_new(struct px_sched *s, MPI_Count count, MPI_Datatype t, MPI_Op op, bool inclusive)
{
	const struct px_comm *c = px_sched_comm(s);
	const struct px_terms *x = px_terms_tree(s);
	struct walk *w = x ? px_sched_temp(s, sizeof *w) : NULL;

	if (!w)
		return NULL;
	*w = (struct walk){ .x = x, .count = count, .t = t, .op = op, .inclusive = inclusive };
	w->part = px_sched_temp(s, (size_t)x->n * sizeof *w->part);
	w->own = px_sched_temp(s, (size_t)c->nlocal * sizeof *w->own);
	w->result = px_sched_temp(s, (size_t)c->nlocal * sizeof *w->result);
	w->terms = px_sched_temp_typed(s, (x->site.first[c->self + 1] - x->site.first[c->self]) * count, t);
	return px_sched_ok(s) ? w : NULL;
}

static void leader(struct px_sched *s, struct walk *w, const void *in, void *out)
{
	const struct px_comm *c = px_sched_comm(s);
	struct keeping *k = px_sched_temp(s, sizeof *k);
	int here = -1, done;

	for (int i = 0; i < c->nlocal && px_sched_ok(s); i++) {
		void *from = i ? px_sched_temp_typed(s, w->count, w->t) : NULL;

		w->own[i] = i ? from : in;
		w->result[i] = px_sched_temp_typed(s, w->count, w->t);
		if (from)
			here = px_sched_join(
				s, here, px_sched_recv(s, from, w->count, w->t, px_member(c, c->self, i)));
	}
	if (!px_sched_ok(s))
		return;
	px_sched_when(s, here);
	done = exchange(s, w, px_sched_call(s, make_terms, w));
	px_sched_when(s, done);
	done = px_sched_call(s, walk_down, w);
	*k = (struct keeping){ w->result[0], out, w->count, w->t };
	if (w->inclusive || c->rank > 0) {
		px_sched_when(s, done);
		px_sched_call(s, keep, k);
	}
	for (int i = 1; i < c->nlocal; i++) {
		px_sched_when(s, done);
		px_sched_send(s, w->result[i], w->count, w->t, px_member(c, c->self, i));
	}
}

void px_coll_scan_tree(struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t,
	MPI_Op op, bool inclusive)
{
	const struct px_comm *c = px_sched_comm(s);
	struct walk *w;

	if (c->lrank == 0) {
		w = walk_new(s, count, t, op, inclusive);
		if (w)
			leader(s, w, in, out);
		return;
	}
	px_sched_when(s, px_sched_send(s, in, count, t, px_leader(c, c->self)));
	px_sched_recv(s, out, count, t, px_leader(c, c->self));
}
