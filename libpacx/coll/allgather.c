/* allgather.c: allgather(v): gather inside each site, leaders exchange the blocks of their sites, native
 * broadcast inside. Each item crosses to another site once, after one latency. Of long blocks each site's is broadcast for itself: our own while the others
 * are on their way, theirs in segments as they come. Where sites are grouped, leaders exchange within the group, heads the blocks of
 * their groups, and heads give the others what has come.
 * Where one site has much more than others its links would carry that while the rest idle: then all blocks go in pieces, one to each other site, which passes
 * it on, after two latencies. (Blocks that are alike fill all links alike: there pieces save nothing.)
 * More than 2 GiB in all: a broadcast of each block.
 */
#include <string.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "groups.h"
#include "model.h"
#include "native.h"
#include "raise.h"
#include "unlike.h"

/* From so many bytes in all on what is copied inside a site takes longer than some broadcasts more. */
#define APART (256 << 10)

/* Blocks travel by site: in rank order where that is the same and there are no groups, else our own first, those of a group side by side. */
struct spread {
	const MPI_Count *bytes;  /* [size] by rank */
	char *by_site, *by_rank; /* the same where blocks lie in rank order */
	int *order;              /* [nparts] sites as they lie in by_site */
	MPI_Count *start;        /* [nparts] of a site's block in it */
	MPI_Count *own;          /* [nparts] bytes of a site */
	MPI_Count *group;        /* [nparts] bytes of the group whose head it is */
	MPI_Count total;
};

/* Is what lies by site, in the order of the parts, in rank order? */
static bool in_rank_order(const struct px_comm *c)
{
	int r = 0;

	for (int p = 0; p < c->nparts; p++)
		for (int i = 0; i < px_part_count(c, p); i++)
			if (px_member(c, p, i) != r++)
				return false;
	return true;
}

/* Where everything lies. */
static bool lay_out(struct px_sched *s, const struct px_groups *g, struct spread *x)
{
	struct px_comm *c = px_sched_comm(s);
	size_t n = (size_t)c->nparts;
	bool ordered = !g->any && in_rank_order(c);
	int first = ordered ? 0 : px_group_head(g, c->self);

	x->order = px_sched_temp(s, n * sizeof *x->order);
	x->start = px_sched_temp(s, n * sizeof *x->start);
	x->own = px_sched_temp(s, n * sizeof *x->own);
	x->group = px_sched_temp(s, n * sizeof *x->group);
	if (!px_sched_ok(s))
		return false;
	for (int i = 0, k = 0; i < c->nparts; i++) {
		int head = (first + i) % c->nparts;

		for (int p = head; p < c->nparts && (g->any || p == head); p++) {
			if (px_group_head(g, p) != head)
				continue;
			x->order[k++] = p;
			x->start[p] = x->total;
			for (int m = 0; m < px_part_count(c, p); m++)
				x->own[p] += x->bytes[px_member(c, p, m)];
			x->group[head] += x->own[p];
			x->total += x->own[p];
		}
	}
	x->by_site = ordered ? x->by_rank : px_sched_temp(s, (size_t)x->total);
	return px_sched_ok(s);
}

static void broadcast(struct px_sched *s, char *at, MPI_Count bytes)
{
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_BCAST,
				   .r = at,
				   .count = bytes,
				   .type = MPI_BYTE,
				   .large = !px_fits(bytes) });
}

/* Segment k of those in which the block of site p goes. */
static MPI_Count segment_of(const struct spread *x, int p, int k, char **at)
{
	int n = px_cost_segments(PX_ALG_SEGMENTS, (double)x->own[p]);
	MPI_Count first = k < n ? x->own[p] * k / n : 0;

	*at = x->by_site + x->start[p] + first;
	return k < n ? x->own[p] * (k + 1) / n - first : 0;
}

/* All of a site: the leaders' exchange and the broadcasts, side by side. */
static void exchange_and_broadcast(struct px_sched *s, const struct spread *x)
{
	struct px_comm *c = px_sched_comm(s);
	bool leader = c->lrank == 0;
	MPI_Count most = 0, bytes;
	int n;
	char *at;

	for (int p = 0; p < c->nparts; p++)
		most = x->own[p] > most ? x->own[p] : most;
	n = px_cost_segments(PX_ALG_SEGMENTS, (double)most);
	for (int k = 0; k < n && leader; k++) {
		px_sched_sub(s, k);
		bytes = segment_of(x, c->self, k, &at);
		for (int p = 0; p < c->nparts && bytes > 0; p++)
			if (p != c->self)
				px_sched_send(s, at, bytes, MPI_BYTE, px_leader(c, p));
	}
	broadcast(s, x->by_site + x->start[c->self], x->own[c->self]);
	for (int k = 0; k < n; k++) {
		px_sched_sub(s, k);
		for (int p = 0; p < c->nparts; p++) {
			bytes = segment_of(x, p, k, &at);
			if (p == c->self || bytes == 0)
				continue;
			px_sched_when(s, leader ? px_sched_recv_all(s, at, bytes, px_leader(c, p)) : -1);
			broadcast(s, at, bytes);
		}
	}
	px_sched_sub(s, 0);
	px_sched_round(s);
}

/* Leaders: the blocks of this site to others and theirs to us. */
static void exchange(struct px_sched *s, const struct px_groups *g, const struct spread *x)
{
	struct px_comm *c = px_sched_comm(s);
	int head = px_group_head(g, c->self);
	MPI_Count near = x->group[head];

	for (int p = 0; p < c->nparts; p++)
		if (p != c->self && px_group_head(g, p) == head) {
			px_sched_send(s, x->by_site + x->start[c->self], x->own[c->self], MPI_BYTE,
				px_leader(c, p));
			px_sched_recv_all(s, x->by_site + x->start[p], x->own[p], px_leader(c, p));
		}
	px_sched_round(s);
	for (int p = 0; p < c->nparts && head == c->self; p++)
		if (p != head && px_group_head(g, p) == p) {
			px_sched_send(s, x->by_site + x->start[head], near, MPI_BYTE, px_leader(c, p));
			px_sched_recv_all(s, x->by_site + x->start[p], x->group[p], px_leader(c, p));
		}
	if (head != c->self)
		px_sched_recv_all(s, x->by_site + near, x->total - near, px_leader(c, head));
	px_sched_round(s);
	for (int p = 0; p < c->nparts && head == c->self; p++)
		if (p != head && px_group_head(g, p) == head)
			px_sched_send(s, x->by_site + near, x->total - near, MPI_BYTE, px_leader(c, p));
	px_sched_round(s);
}

/* Bytes of piece k of what site p has, and where. */
static MPI_Count piece_of(const struct spread *x, int sites, int p, int k, char **at)
{
	MPI_Count first = x->own[p] * k / (sites - 1);

	*at = x->by_site + x->start[p] + first;
	return x->own[p] * (k + 1) / (sites - 1) - first;
}

/* Leaders: in pieces, of which each other site gets one of each block from its site and passes it on to the others. A message's number says whose
 * block it is of. */
static void exchange_pieces(struct px_sched *s, const struct spread *x)
{
	struct px_comm *c = px_sched_comm(s);
	int n = c->nparts, self = c->self;

	for (int p = 0; p < n && px_sched_ok(s); p++) {
		int got = -1;
		MPI_Count bytes;
		char *at;

		px_sched_sub(s, p);
		for (int i = 0; i < n; i++) {
			int q = (self + i) % n; /* ourselves first: the piece that we pass on */

			if (q == p || (bytes = piece_of(x, n, p, q - (q > p), &at)) == 0)
				continue;
			if (p == self)
				px_sched_send(s, at, bytes, MPI_BYTE, px_leader(c, q));
			else if (q == self)
				got = px_sched_recv_all(s, at, bytes, px_leader(c, p));
			else
				px_sched_recv_all(s, at, bytes, px_leader(c, q));
		}
		if (got < 0)
			continue;
		bytes = piece_of(x, n, p, self - (self > p), &at);
		for (int q = 0; q < n; q++)
			if (q != p && q != self) {
				px_sched_when(s, got);
				px_sched_send(s, at, bytes, MPI_BYTE, px_leader(c, q));
			}
	}
	px_sched_sub(s, 0);
	px_sched_round(s);
}

static bool in_pieces(struct px_comm *c, const struct spread *x)
{
	MPI_Count most = 0, least = x->total;

	for (int p = 0; p < c->nparts; p++) {
		most = x->own[p] > most ? x->own[p] : most;
		least = x->own[p] < least ? x->own[p] : least;
	}
	return most > 0 && c->nparts > 2 && c->nparts <= PX_SUBS &&
	       px_model_pick_allgather(c, most, (double)(x->total - least) / (double)most) == PX_ALG_PIECES;
}

static int reorder(struct px_sched *s, void *arg)
{
	struct px_comm *c = px_sched_comm(s);
	struct spread *x = arg;
	const char *from = x->by_site;
	MPI_Count at = 0;
	MPI_Count *start = px_sched_temp(s, (size_t)c->size * sizeof *start);

	if (!start)
		return MPI_ERR_NO_MEM;
	for (int r = 0; r < c->size; r++) {
		start[r] = at;
		at += x->bytes[r];
	}
	for (int k = 0; k < c->nparts; k++) {
		for (int p = x->order[k], i = 0; i < px_part_count(c, p); i++) {
			int r = px_member(c, p, i);

			memcpy(x->by_rank + start[r], from, (size_t)x->bytes[r]);
			from += x->bytes[r];
		}
	}
	return MPI_SUCCESS;
}

void px_coll_allgather(struct px_sched *s, const void *mine, const MPI_Count *bytes, void *all)
{
	struct px_comm *c = px_sched_comm(s);
	const struct px_groups *g = px_groups_of(s);
	const MPI_Count *counts;
	const MPI_Aint *displs;
	struct spread *x = px_sched_temp(s, sizeof *x);
	bool pieces;

	if (!g || !x || !px_coll_side_by_side(s, bytes, &counts, &displs))
		return;
	*x = (struct spread){ .bytes = bytes, .by_rank = all };
	if (!lay_out(s, g, x))
		return;
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_GATHERV,
				   .s = mine,
				   .count = bytes[c->rank],
				   .type = MPI_BYTE,
				   .r = x->by_site + x->start[c->self],
				   .rcounts = counts,
				   .rdispls = displs,
				   .rtype = MPI_BYTE,
				   .large = !px_fits(x->total) });
	px_sched_round(s);
	pieces = in_pieces(c, x);
	if (!pieces && !g->any && !px_unlike_any && x->total >= APART) {
		exchange_and_broadcast(s, x);
	} else {
		if (c->lrank == 0 && pieces)
			exchange_pieces(s, x);
		else if (c->lrank == 0)
			exchange(s, g, x);
		broadcast(s, x->by_site, x->total);
		px_sched_round(s);
	}
	if (x->by_site != x->by_rank)
		px_sched_call(s, reorder, x);
	px_sched_round(s);
}

/* The user's view: blocks of `t` in the receive buffer. */
struct place {
	char *packed; /* all blocks; the receive buffer itself where they lie so in it */
	MPI_Count *bytes;
	char *out;
	const MPI_Count *counts; /* NULL: regular */
	const MPI_Aint *displs;
	MPI_Count each;
	MPI_Datatype t;
	const void *in; /* what this rank contributes, copied into `mine` when the operation starts */
	MPI_Count in_count;
	MPI_Datatype in_type;
	const char *mine; /* packed; the send buffer itself where that is as good */
};

static MPI_Count count_of(const struct place *x, int r)
{
	return x->counts ? x->counts[r] : x->each;
}

static char *block_of(const struct place *x, int r)
{
	return x->out + (x->displs ? x->displs[r] : x->each * r) * px_type_get(x->t)->extent;
}

static int pack_mine(struct px_sched *s, void *arg)
{
	struct place *x = arg;

	(void)s;
	return px_type_pack(x->in, x->in_count, x->in_type, (char *)x->mine);
}

static int unpack_all(struct px_sched *s, void *arg)
{
	struct px_comm *c = px_sched_comm(s);
	struct place *x = arg;
	const char *from = x->packed;
	int rc = MPI_SUCCESS;

	for (int r = 0; r < c->size && rc == MPI_SUCCESS; r++) {
		rc = px_type_unpack(from, (uint64_t)x->bytes[r], block_of(x, r), count_of(x, r), x->t);
		from += x->bytes[r];
	}
	return rc;
}

/* Where all blocks lie in the receive buffer, if that is as they are packed; or NULL. */
static char *as_packed(const struct place *x, int size)
{
	char *first = NULL;
	MPI_Count at = 0;

	if (!px_type_get(x->t)->contig)
		return NULL;
	for (int r = 0; r < size; at += x->bytes[r++]) {
		if (x->bytes[r] == 0)
			continue;
		if (!first)
			first = block_of(x, r);
		else if (block_of(x, r) != first + at)
			return NULL;
	}
	return first;
}

/* The caller's array may be gone before the operation is complete. */
static const void *kept(struct px_sched *s, const void *from, int n, size_t each)
{
	void *to = from ? px_sched_temp(s, (size_t)n * each) : NULL;

	return to ? memcpy(to, from, (size_t)n * each) : NULL;
}

/* Of blocks that are very long latency is nothing, and copies of all of them would be too much: each is broadcast, from place to place. */
static void by_broadcasts(struct px_sched *s, const struct place *x)
{
	int me = px_sched_comm(s)->rank;

	if (x->in != MPI_IN_PLACE) {
		px_sched_recv(s, block_of(x, me), count_of(x, me), x->t, me);
		px_sched_send(s, x->in, x->in_count, x->in_type, me);
		px_sched_round(s);
	}
	for (int r = 0; r < px_sched_comm(s)->size; r++)
		px_coll_bcast(s, block_of(x, r), count_of(x, r), x->t, r);
}

static struct px_sched *build(enum px_coll which, const void *in, MPI_Count count, MPI_Datatype t, void *out,
	MPI_Count each, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype rt, struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, which);
	struct place *x = s ? px_sched_temp(s, sizeof *x) : NULL;
	const struct px_type *p = px_type_get(rt);
	MPI_Count total = 0, given;
	char *there;

	if (!x)
		return s;
	*x = (struct place){ .out = out,
		.counts = kept(s, counts, c->size, sizeof *counts),
		.displs = kept(s, displs, c->size, sizeof *displs),
		.each = each,
		.t = rt,
		.in = in,
		.in_count = count,
		.in_type = t };
	x->bytes = px_sched_temp(s, (size_t)c->size * sizeof *x->bytes);
	if (!px_sched_ok(s))
		return s;
	for (int r = 0; r < c->size; r++)
		total += x->bytes[r] = count_of(x, r) * p->size;
	if (total > INT_MAX &&
		!px_unlike_any) { /* unlike sites count other bytes, and would choose otherwise */
		by_broadcasts(s, x);
		return s;
	}
	if (in == MPI_IN_PLACE) {
		x->in_count = count_of(x, c->rank);
		x->in_type = rt;
		x->in = block_of(x, c->rank);
	}
	given = x->in_count * px_type_get(x->in_type)->size;
	if (given > x->bytes[c->rank]) {
		px_sched_fail(s, MPI_ERR_TRUNCATE,
			"this rank sends %lld bytes, but its block in the receive buffer has %lld",
			(long long)given, (long long)x->bytes[c->rank]);
		return s;
	}
	if (in != MPI_IN_PLACE && given == x->bytes[c->rank] && px_type_get(x->in_type)->contig)
		x->mine = in;
	else
		x->mine = px_sched_temp(s, (size_t)x->bytes[c->rank]);
	there = as_packed(x, c->size);
	x->packed = there ? there : px_sched_temp(s, (size_t)total);
	if (!px_sched_ok(s))
		return s;
	if (x->mine != in)
		px_sched_call(s, pack_mine, x);
	px_sched_round(s);
	px_sched_packed(s, rt);
	px_coll_allgather(s, x->mine, x->bytes, x->packed);
	px_sched_packed(s, MPI_DATATYPE_NULL);
	if (!there)
		px_sched_call(s, unpack_all, x);
	return s;
}

/* counts NULL: each at every rank, one behind the other. */
static int check(struct px_comm *c, const void *in, MPI_Count count, MPI_Datatype t, const void *out,
	MPI_Count each, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype rt)
{
	MPI_Count own = counts ? counts[c->rank] : each;

	if ((in != MPI_IN_PLACE && count < 0) || each < 0)
		return px_raise_count(c, each < 0 ? each : count);
	for (int r = 0; counts && r < c->size; r++)
		if (counts[r] < 0)
			return px_raise(c, MPI_ERR_COUNT, "counts[%d] is %lld", r, (long long)counts[r]);
	if ((in != MPI_IN_PLACE && !px_type_get(t)) || !px_type_get(rt))
		return px_raise_type(c);
	return px_coll_apart_own(
		c, in, count, t, out, counts ? displs[c->rank] : c->rank * each, own, !counts, rt);
}

int px_Allgather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c)
{
	int rc = check(c, in, count, t, out, rcount, NULL, NULL, rt);

	return rc != MPI_SUCCESS
		       ? rc
		       : px_sched_run(
				 build(PX_COLL_ALLGATHER, in, count, t, out, rcount, NULL, NULL, rt, c), c);
}

int px_Iallgather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c, MPI_Request *req)
{
	int rc = check(c, in, count, t, out, rcount, NULL, NULL, rt);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_start(build(PX_COLL_ALLGATHER, in, count, t, out, rcount, NULL,
							  NULL, rt, c),
					   c, req);
}

int px_Allgatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out, const MPI_Count counts[],
	const MPI_Aint displs[], MPI_Datatype rt, struct px_comm *c)
{
	int rc = check(c, in, count, t, out, 0, counts, displs, rt);

	return rc != MPI_SUCCESS
		       ? rc
		       : px_sched_run(
				 build(PX_COLL_ALLGATHERV, in, count, t, out, 0, counts, displs, rt, c), c);
}

int px_Iallgatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out, const MPI_Count counts[],
	const MPI_Aint displs[], MPI_Datatype rt, struct px_comm *c, MPI_Request *req)
{
	int rc = check(c, in, count, t, out, 0, counts, displs, rt);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_start(build(PX_COLL_ALLGATHERV, in, count, t, out, 0, counts,
							  displs, rt, c),
					   c, req);
}

int px_comm_agree(struct px_comm *c, const void *mine, int bytes, void *all)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_COMM);
	MPI_Count *each = s ? px_sched_temp(s, (size_t)c->size * sizeof *each) : NULL;

	for (int r = 0; each && r < c->size; r++)
		each[r] = bytes;
	if (each)
		px_coll_allgather(s, mine, each, all);
	return px_sched_run(s, c);
}
