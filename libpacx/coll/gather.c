/* gather.c: gather(v) and scatter(v): native inside the root's site, one message per remote rank (flat is
 * wide-area optimal in latency; fewer messages come with the wide-area collectives).
 */
#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "native.h"
#include "raise.h"

/* Blocks of the root's buffer: rank r has count_of(r) elements at displ_of(r) elements. */
struct layout {
	const MPI_Count *counts; /* NULL: regular, `each` elements per rank */
	const MPI_Aint *displs;
	MPI_Count each;
};

static MPI_Count count_of(const struct layout *l, int r)
{
	return l->counts ? l->counts[r] : l->each;
}

static MPI_Count displ_of(const struct layout *l, int r)
{
	return l->displs ? l->displs[r] : l->each * r;
}

bool px_coll_side_by_side(
	struct px_sched *s, const MPI_Count by_rank[], const MPI_Count **counts, const MPI_Aint **displs)
{
	struct px_comm *c = px_sched_comm(s);
	MPI_Count *n = px_sched_temp(s, (size_t)c->nlocal * sizeof *n);
	MPI_Aint *at = px_sched_temp(s, (size_t)c->nlocal * sizeof *at), end = 0;

	for (int i = 0; n && at && i < c->nlocal; i++) {
		n[i] = by_rank[px_rank_of_local(c, i)];
		at[i] = end;
		end += (MPI_Aint)n[i];
	}
	*counts = n;
	*displs = at;
	return px_sched_ok(s);
}

/* Counts and displacements of the local members, for the native call. */
static void local_layout(
	struct px_sched *s, const struct layout *l, const MPI_Count **counts, const MPI_Aint **displs)
{
	struct px_comm *c = px_sched_comm(s);
	MPI_Count *n = px_sched_temp(s, (size_t)c->nlocal * sizeof *n);
	MPI_Aint *at = px_sched_temp(s, (size_t)c->nlocal * sizeof *at);

	for (int i = 0; n && at && i < c->nlocal; i++) {
		n[i] = count_of(l, px_rank_of_local(c, i));
		at[i] = (MPI_Aint)displ_of(l, px_rank_of_local(c, i));
	}
	*counts = n;
	*displs = at;
}

/* Displacements of equal blocks may be beyond what the native call takes, though no count is. All members know the bytes of a block, and no
 * block has more elements than bytes, unless it has none. */
static bool large(const struct px_comm *c, MPI_Count count, MPI_Datatype t)
{
	return !px_fits(count * px_type_get(t)->size * c->size);
}

static void gather(struct px_sched *s, bool regular, const void *in, MPI_Count count, MPI_Datatype t,
	void *out, const struct layout *l, MPI_Datatype rt, int root)
{
	struct px_comm *c = px_sched_comm(s);
	struct px_call k = { .kind = PX_CALL_GATHERV,
		.s = in,
		.count = count,
		.type = t,
		.r = out,
		.rtype = rt,
		.root = px_lrank(c, root) };

	if (px_lrank(c, root) < 0) {
		px_sched_send(s, in, count, t, root);
		return;
	}
	if (regular)
		k.large = in == MPI_IN_PLACE ? large(c, l->each, rt) : large(c, count, t);
	if (c->rank == root) {
		local_layout(s, l, &k.rcounts, &k.rdispls);
		for (int r = 0; r < c->size; r++)
			if (px_lrank(c, r) < 0)
				px_sched_recv(s, (char *)out + displ_of(l, r) * px_type_get(rt)->extent,
					count_of(l, r), rt, r);
	}
	px_sched_native(s, &k);
}

static void scatter(struct px_sched *s, bool regular, const void *in, const struct layout *l, MPI_Datatype t,
	void *out, MPI_Count rcount, MPI_Datatype rt, int root)
{
	struct px_comm *c = px_sched_comm(s);
	struct px_call k = { .kind = PX_CALL_SCATTERV,
		.s = in,
		.type = t,
		.r = out,
		.rcount = rcount,
		.rtype = rt,
		.root = px_lrank(c, root) };

	if (px_lrank(c, root) < 0) {
		px_sched_recv(s, out, rcount, rt, root);
		return;
	}
	if (regular)
		k.large = out == MPI_IN_PLACE ? large(c, l->each, t) : large(c, rcount, rt);
	if (c->rank == root) {
		local_layout(s, l, &k.scounts, &k.sdispls);
		for (int r = 0; r < c->size; r++)
			if (px_lrank(c, r) < 0)
				px_sched_send(s, (const char *)in + displ_of(l, r) * px_type_get(t)->extent,
					count_of(l, r), t, r);
	}
	px_sched_native(s, &k);
}

/* Arguments that this rank must have valid: its own side, and the root's side at the root, whose buffer is all. */
static int check(struct px_comm *c, int root, const void *mine, MPI_Count count, MPI_Datatype t,
	const void *all, const struct layout *l, MPI_Datatype at_root)
{
	int rc = px_coll_root(c, root);

	if (rc != MPI_SUCCESS)
		return rc;
	if (mine != MPI_IN_PLACE && count < 0)
		return px_raise_count(c, count);
	if (mine != MPI_IN_PLACE && !px_type_get(t))
		return px_raise_type(c);
	if (c->rank != root)
		return MPI_SUCCESS;
	if (!px_type_get(at_root))
		return px_raise_type(c);
	for (int r = 0; r < c->size; r++)
		if (count_of(l, r) < 0)
			return l->counts ? px_raise(c, MPI_ERR_COUNT, "counts[%d] is %lld", r,
						   (long long)l->counts[r])
					 : px_raise_count(c, l->each);
	return px_coll_apart_own(
		c, mine, count, t, all, displ_of(l, root), count_of(l, root), !l->counts, at_root);
}

/* All four forms of each; req NULL: blocking. */
static int begin_gather(enum px_coll which, const void *in, MPI_Count count, MPI_Datatype t, void *out,
	struct layout l, MPI_Datatype rt, int root, struct px_comm *c, MPI_Request *req)
{
	int rc = check(c, root, in, count, t, out, &l, rt);
	struct px_sched *s = rc == MPI_SUCCESS ? px_sched_new(c, which) : NULL;

	if (rc != MPI_SUCCESS)
		return rc;
	if (s)
		gather(s, which == PX_COLL_GATHER, in, count, t, out, &l, rt, root);
	return px_sched_go(s, c, req);
}

static int begin_scatter(enum px_coll which, const void *in, struct layout l, MPI_Datatype t, void *out,
	MPI_Count count, MPI_Datatype rt, int root, struct px_comm *c, MPI_Request *req)
{
	int rc = check(c, root, out, count, rt, in, &l, t);
	struct px_sched *s = rc == MPI_SUCCESS ? px_sched_new(c, which) : NULL;

	if (rc != MPI_SUCCESS)
		return rc;
	if (s)
		scatter(s, which == PX_COLL_SCATTER, in, &l, t, out, count, rt, root);
	return px_sched_go(s, c, req);
}

static struct layout regular(MPI_Count each)
{
	return (struct layout){ NULL, NULL, each };
}

static struct layout vector(const MPI_Count counts[], const MPI_Aint displs[])
{
	return (struct layout){ counts, displs, 0 };
}

int px_Gather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount, MPI_Datatype rt,
	int root, struct px_comm *c)
{
	return begin_gather(PX_COLL_GATHER, in, count, t, out, regular(rcount), rt, root, c, NULL);
}

int px_Igather(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount, MPI_Datatype rt,
	int root, struct px_comm *c, MPI_Request *req)
{
	return begin_gather(PX_COLL_GATHER, in, count, t, out, regular(rcount), rt, root, c, req);
}

int px_Gatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out, const MPI_Count counts[],
	const MPI_Aint displs[], MPI_Datatype rt, int root, struct px_comm *c)
{
	return begin_gather(PX_COLL_GATHERV, in, count, t, out, vector(counts, displs), rt, root, c, NULL);
}

int px_Igatherv(const void *in, MPI_Count count, MPI_Datatype t, void *out, const MPI_Count counts[],
	const MPI_Aint displs[], MPI_Datatype rt, int root, struct px_comm *c, MPI_Request *req)
{
	return begin_gather(PX_COLL_GATHERV, in, count, t, out, vector(counts, displs), rt, root, c, req);
}

int px_Scatter(const void *in, MPI_Count scount, MPI_Datatype t, void *out, MPI_Count count, MPI_Datatype rt,
	int root, struct px_comm *c)
{
	return begin_scatter(PX_COLL_SCATTER, in, regular(scount), t, out, count, rt, root, c, NULL);
}

int px_Iscatter(const void *in, MPI_Count scount, MPI_Datatype t, void *out, MPI_Count count, MPI_Datatype rt,
	int root, struct px_comm *c, MPI_Request *req)
{
	return begin_scatter(PX_COLL_SCATTER, in, regular(scount), t, out, count, rt, root, c, req);
}

int px_Scatterv(const void *in, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype t, void *out,
	MPI_Count count, MPI_Datatype rt, int root, struct px_comm *c)
{
	return begin_scatter(PX_COLL_SCATTERV, in, vector(counts, displs), t, out, count, rt, root, c, NULL);
}

int px_Iscatterv(const void *in, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype t, void *out,
	MPI_Count count, MPI_Datatype rt, int root, struct px_comm *c, MPI_Request *req)
{
	return begin_scatter(PX_COLL_SCATTERV, in, vector(counts, displs), t, out, count, rt, root, c, req);
}
