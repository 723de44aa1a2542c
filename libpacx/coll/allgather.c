/* allgather.c: allgather(v): gather inside each site, leaders exchange the blocks of their sites, native
 * broadcast inside. Each item crosses to another site once, after one latency.
 */
#include <string.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "raise.h"

#define INT_LIMIT 0x7fffffff /* the native calls inside a site count bytes in int */

/* Blocks travel in site order; the result is wanted in rank order. */
struct spread {
	const MPI_Count *bytes; /* [size] by rank */
	char *by_site, *by_rank;
};

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
	for (int p = 0; p < c->nparts; p++) {
		for (int i = 0; i < px_part_count(c, p); i++) {
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
	MPI_Count *site =
		px_sched_temp(s, (size_t)(c->nparts + 1) * sizeof *site); /* where each site's block starts */
	int *v = px_sched_temp(s, 2 * (size_t)c->nlocal * sizeof *v);
	struct spread *x = px_sched_temp(s, sizeof *x);

	if (!site || !v || !x)
		return;
	for (int p = 0; p < c->nparts; p++) {
		site[p + 1] = site[p];
		for (int i = 0; i < px_part_count(c, p); i++)
			site[p + 1] += bytes[px_member(c, p, i)];
	}
	if (site[c->nparts] > INT_LIMIT) {
		px_sched_fail(s, MPI_ERR_COUNT, "%lld bytes in all, which is beyond INT_MAX",
			(long long)site[c->nparts]);
		return;
	}
	*x = (struct spread){ bytes, px_sched_temp(s, (size_t)site[c->nparts]), all };
	for (int i = 0, at = 0; i < c->nlocal; i++) {
		v[i] = (int)bytes[px_rank_of_local(c, i)];
		v[c->nlocal + i] = at;
		at += v[i];
	}
	if (!x->by_site)
		return;
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_GATHERV,
				   .s = mine,
				   .count = bytes[c->rank],
				   .type = MPI_BYTE,
				   .r = x->by_site + site[c->self],
				   .rcounts = v,
				   .rdispls = v + c->nlocal,
				   .rtype = MPI_BYTE });
	px_sched_round(s);
	if (c->lrank == 0) {
		for (int p = 0; p < c->nparts; p++) {
			if (p == c->self)
				continue;
			px_sched_send(s, x->by_site + site[c->self], site[c->self + 1] - site[c->self],
				MPI_BYTE, px_leader(c, p));
			px_sched_recv_all(s, x->by_site + site[p], site[p + 1] - site[p], px_leader(c, p));
		}
		px_sched_round(s);
	}
	px_sched_native(s,
		&(struct px_call){
			.kind = PX_CALL_BCAST, .r = x->by_site, .count = site[c->nparts], .type = MPI_BYTE });
	px_sched_round(s);
	px_sched_call(s, reorder, x);
	px_sched_round(s);
}

/* The user's view: blocks of `t` in the receive buffer. */
struct place {
	char *packed;
	MPI_Count *bytes;
	char *out;
	const int *counts, *displs; /* NULL: regular */
	MPI_Count each;
	MPI_Datatype t;
	const void *in; /* what this rank contributes, copied into `mine` when the operation starts */
	MPI_Count in_count;
	MPI_Datatype in_type;
	char *mine;
};

static int pack_mine(struct px_sched *s, void *arg)
{
	struct place *x = arg;

	(void)s;
	return px_type_pack(x->in, x->in_count, x->in_type, x->mine);
}

static int unpack_all(struct px_sched *s, void *arg)
{
	struct px_comm *c = px_sched_comm(s);
	struct place *x = arg;
	const char *from = x->packed;
	MPI_Count extent = px_type_get(x->t)->extent;
	int rc = MPI_SUCCESS;

	for (int r = 0; r < c->size && rc == MPI_SUCCESS; r++) {
		MPI_Count count = x->counts ? x->counts[r] : x->each;
		MPI_Count displ = x->displs ? x->displs[r] : x->each * r;

		rc = px_type_unpack(from, (uint64_t)x->bytes[r], x->out + displ * extent, count, x->t);
		from += x->bytes[r];
	}
	return rc;
}

/* The caller's array may be gone before the operation is complete. */
static const int *ints(struct px_sched *s, const int from[], int n)
{
	int *to = from ? px_sched_temp(s, (size_t)n * sizeof *to) : NULL;

	if (to)
		memcpy(to, from, (size_t)n * sizeof *to);
	return to;
}

static struct px_sched *build(enum px_coll which, const void *in, MPI_Count count, MPI_Datatype t, void *out,
	MPI_Count each, const int counts[], const int displs[], MPI_Datatype rt, struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, which);
	struct place *x = s ? px_sched_temp(s, sizeof *x) : NULL;
	const struct px_type *p = px_type_get(rt);
	MPI_Count total = 0;

	if (!x)
		return s;
	*x = (struct place){ .out = out,
		.counts = ints(s, counts, c->size),
		.displs = ints(s, displs, c->size),
		.each = each,
		.t = rt,
		.in = in,
		.in_count = count,
		.in_type = t };
	x->bytes = px_sched_temp(s, (size_t)c->size * sizeof *x->bytes);
	if (!x->bytes)
		return s;
	for (int r = 0; r < c->size; r++)
		total += x->bytes[r] = (counts ? counts[r] : each) * p->size;
	if (in == MPI_IN_PLACE) {
		x->in_count = counts ? counts[c->rank] : each;
		x->in_type = rt;
		x->in = x->out + (displs ? displs[c->rank] : each * c->rank) * p->extent;
	}
	x->mine = px_sched_temp(s, (size_t)x->bytes[c->rank]);
	x->packed = px_sched_temp(s, (size_t)total);
	if (!px_sched_ok(s))
		return s;
	if (x->in_count * px_type_get(x->in_type)->size > x->bytes[c->rank]) {
		px_sched_fail(s, MPI_ERR_TRUNCATE,
			"this rank sends %lld bytes, but its block in the receive buffer has %lld",
			(long long)(x->in_count * px_type_get(x->in_type)->size),
			(long long)x->bytes[c->rank]);
		return s;
	}
	px_sched_call(s, pack_mine, x);
	px_sched_round(s);
	px_sched_packed(s, rt);
	px_coll_allgather(s, x->mine, x->bytes, x->packed);
	px_sched_packed(s, MPI_DATATYPE_NULL);
	px_sched_call(s, unpack_all, x);
	return s;
}

static int check(struct px_comm *c, const void *in, MPI_Count count, MPI_Datatype t, MPI_Count each,
	const int counts[], MPI_Datatype rt)
{
	if ((in != MPI_IN_PLACE && count < 0) || each < 0)
		return px_raise_count(c, each < 0 ? each : count);
	for (int r = 0; counts && r < c->size; r++)
		if (counts[r] < 0)
			return px_raise(c, MPI_ERR_COUNT, "counts[%d] is %d", r, counts[r]);
	if ((in != MPI_IN_PLACE && !px_type_get(t)) || !px_type_get(rt))
		return px_raise_type(c);
	return MPI_SUCCESS;
}

int px_Allgather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c)
{
	int rc = check(c, in, count, t, rcount, NULL, rt);

	return rc != MPI_SUCCESS
		       ? rc
		       : px_sched_run(
				 build(PX_COLL_ALLGATHER, in, count, t, out, rcount, NULL, NULL, rt, c), c);
}

int px_Iallgather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c, MPI_Request *req)
{
	int rc = check(c, in, count, t, rcount, NULL, rt);

	return rc != MPI_SUCCESS ? rc
				 : px_sched_start(build(PX_COLL_ALLGATHER, in, count, t, out, rcount, NULL,
							  NULL, rt, c),
					   c, req);
}

int px_Allgatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out, const int counts[],
	const int displs[], MPI_Datatype rt, struct px_comm *c)
{
	int rc = check(c, in, count, t, 0, counts, rt);

	return rc != MPI_SUCCESS
		       ? rc
		       : px_sched_run(
				 build(PX_COLL_ALLGATHERV, in, count, t, out, 0, counts, displs, rt, c), c);
}

int px_Iallgatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out, const int counts[],
	const int displs[], MPI_Datatype rt, struct px_comm *c, MPI_Request *req)
{
	int rc = check(c, in, count, t, 0, counts, rt);

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
