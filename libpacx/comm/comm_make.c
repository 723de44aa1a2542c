/* comm_make.c: constructors of communicators from those that span sites.
 *
 * Design. Native duplications under way come first, and where native calls may not block the members meet (px_comm_turn). Then it calls the
 * native constructor, without the lock: other threads, and the user's attribute functions, go on meanwhile. Then all members
 * learn whether that has succeeded everywhere (one vendor may have run out of communicators) and the new communicator's context id, which
 * its rank 0 offers: by a maximum (px_comm_max), or, where all have to know what all have said, by an allgather (px_comm_agree). The result is a native
 * communicator when its members are at one site.
 */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "comm_make.h"
#include "endian.h"
#include "err.h"
#include "group.h"
#include "lock.h"
#include "model.h"
#include "raise.h"
#include "request.h"
#include "state.h"
#include "topo.h"
#include "vendor.h"

/* native is the native communicator of this site's part of the new one; *out gets what the application holds. */
static int adopt(struct px_comm *parent, MPI_Comm native, uint64_t ctx, struct px_ranks *ranks, MPI_Comm *out)
{
	if (!ranks || (ranks->nparts > 1 && !px_comm_new(native, ctx, ranks))) {
		px_n.Comm_free(&native);
		return px_raise_memory(parent);
	}
	*out = native;
	return MPI_SUCCESS;
}

/* The same of a list of global ranks. */
static int adopt_list(
	struct px_comm *parent, MPI_Comm native, uint64_t ctx, int size, const int *grank, MPI_Comm *out)
{
	struct px_ranks *ranks = px_ranks_new(px.world, size, grank);
	int rc = adopt(parent, native, ctx, ranks, out);

	px_ranks_drop(ranks);
	return rc;
}

/* A communicator that was made of c has the same links if it has the same sites; all members of c have just agreed on them. */
static void inherit(const struct px_comm *c, MPI_Comm out)
{
	struct px_comm *made = px_comm_find(out);

	if (made && made->nparts == c->nparts)
		px_model_inherit(made, c);
}

int px_comm_confirm(struct px_comm *c, int made, int who, uint64_t *ctx)
{
	enum { CTX, FAILED, SLOWEST, N };
	/* A context id is positive as a signed number, too: it has a global rank in its upper half. */
	long long v[N] = { c->rank == who ? (long long)px_ctx_candidate() : 0, made != MPI_SUCCESS,
		px_model_offer(c) };
	int rc = px_comm_max(c, v, N);

	if (rc == MPI_SUCCESS)
		px_model_agreed(c, v[SLOWEST]);
	if (rc != MPI_SUCCESS || made != MPI_SUCCESS)
		return rc != MPI_SUCCESS ? rc : made;
	*ctx = (uint64_t)v[CTX];
	if (!v[FAILED])
		return MPI_SUCCESS;
	return px_raise(c, MPI_ERR_OTHER, "a member of another site could not make the communicator");
}

/* After a failed agreement: what was made here goes again. */
static int unmake(MPI_Comm native, int made, int rc)
{
	if (made == MPI_SUCCESS && native != MPI_COMM_NULL)
		px_n.Comm_free(&native);
	return rc;
}

static int dup_finish(struct px_comm *c, MPI_Comm native, uint64_t ctx, MPI_Comm *out)
{
	struct px_comm *d;
	int rc = adopt(c, native, ctx, c->ranks, out);

	if (rc != MPI_SUCCESS || !c->topo)
		return rc;
	d = px_comm_find(native);
	d->topo = px_topo_copy(c->topo);
	return d->topo ? MPI_SUCCESS : px_raise_memory(c);
}

static int dup(struct px_comm *c, bool with_info, MPI_Info info, MPI_Comm *out)
{
	MPI_Comm native = MPI_COMM_NULL;
	uint64_t ctx;
	int rc, made = px_comm_turn(c);

	if (made == MPI_SUCCESS)
		px_blocking(made, with_info ? px_n.Comm_dup_with_info(c->native, info, &native)
					    : px_n.Comm_dup(c->native, &native));
	rc = px_comm_confirm(c, made, 0, &ctx);
	if (rc != MPI_SUCCESS)
		return unmake(native, made, rc);
	rc = dup_finish(c, native, ctx, out);
	if (rc == MPI_SUCCESS)
		px_model_inherit(px_comm_find(native), c);
	return rc;
}

int px_comm_twin(struct px_comm *c, struct px_comm **twin)
{
	MPI_Comm native = MPI_COMM_NULL, out = MPI_COMM_NULL;
	uint64_t ctx;
	int rc, made;

	if (c->inter) {
		rc = px_inter_Comm_split(c, 0, c->rank, &out);
	} else {
		made = px_comm_turn(c);
		if (made == MPI_SUCCESS)
			px_blocking(made, px_n.Comm_split(c->native, 0, 0, &native));
		rc = px_comm_confirm(c, made, 0, &ctx);
		rc = rc == MPI_SUCCESS ? dup_finish(c, native, ctx, &out) : unmake(native, made, rc);
	}
	if (rc != MPI_SUCCESS)
		return rc;
	*twin = px_comm_find(out);
	(*twin)->face = c->face;
	(*twin)->associative = c->associative;
	(*twin)->accuracy = c->accuracy;
	px_model_inherit(*twin, c);
	return MPI_SUCCESS;
}

int px_Comm_dup(struct px_comm *c, MPI_Comm *out)
{
	return dup(c, false, MPI_INFO_NULL, out);
}

int px_Comm_dup_with_info(struct px_comm *c, MPI_Info info, MPI_Comm *out)
{
	return dup(c, true, info, out);
}

struct idup {
	uint8_t ctx[8];
	MPI_Info info; /* a copy: the native call may start later */
	MPI_Comm native, *out;
};

static int idup_finish(struct px_sched *s, void *arg)
{
	struct idup *d = arg;

	if (d->info != MPI_INFO_NULL)
		px_n.Info_free(&d->info);
	return dup_finish(px_sched_comm(s), d->native, px_get64(d->ctx), d->out);
}

static int idup(struct px_comm *c, bool with_info, MPI_Info info, MPI_Comm *out, MPI_Request *req)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_COMM);
	struct idup *d = s ? px_sched_temp(s, sizeof *d) : NULL;

	if (d) {
		d->out = out;
		d->info = MPI_INFO_NULL;
		if (info != MPI_INFO_NULL && px_n.Info_dup(info, &d->info) != MPI_SUCCESS)
			px_sched_fail(s, MPI_ERR_INFO, "the info is not valid");
		if (c->rank == 0)
			px_put64(d->ctx, px_ctx_candidate());
		/* First: native calls start in the order called. */
		px_sched_native(s, &(struct px_call){ .kind = PX_CALL_DUP,
					   .info = with_info ? &d->info : NULL,
					   .newcomm = &d->native });
		px_coll_bcast(s, d->ctx, sizeof d->ctx, MPI_BYTE, 0);
		px_sched_call(s, idup_finish, d);
	}
	return px_sched_start(s, c, req);
}

int px_Comm_idup(struct px_comm *c, MPI_Comm *out, MPI_Request *req)
{
	return idup(c, false, MPI_INFO_NULL, out, req);
}

#ifdef PX_HAVE_Comm_idup_with_info
int px_Comm_idup_with_info(struct px_comm *c, MPI_Info info, MPI_Comm *out, MPI_Request *req)
{
	return idup(c, true, info, out, req);
}
#endif

/* What each rank says in MPI_Comm_split. */
struct claim {
	int key, rank;
	uint64_t ctx;
};

#define CLAIM_BYTES 32

static int by_key(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank - y->rank;
}

/* Members of my colour in their new order. *n = 0 when I am in none. MPI error code, raised. */
static int claims(struct px_comm *c, int made, int color, int key, struct claim **members, int *n)
{
	bool failed = false;
	uint8_t mine[CLAIM_BYTES] = { 0 }, *all = malloc((size_t)c->size * CLAIM_BYTES);
	struct claim *v = malloc((size_t)c->size * sizeof *v);
	long long slowest = 0;
	int rc = MPI_ERR_NO_MEM;

	if (!all || !v) {
		px_raise_memory(c);
		goto fail;
	}
	px_put32(mine, color != MPI_UNDEFINED); /* the constant itself is the vendor's own */
	px_put32(mine + 4, (uint32_t)color);
	px_put32(mine + 8, (uint32_t)key);
	px_put32(mine + 12, made == MPI_SUCCESS);
	px_put64(mine + 16, px_ctx_candidate());
	px_put64(mine + 24, (uint64_t)px_model_offer(c));
	rc = px_comm_agree(c, mine, CLAIM_BYTES, all);
	if (rc != MPI_SUCCESS)
		goto fail;
	*n = 0;
	for (int r = 0; r < c->size; r++) {
		const uint8_t *p = all + (size_t)r * CLAIM_BYTES;

		failed |= px_get32(p + 12) == 0;
		if ((long long)px_get64(p + 24) > slowest)
			slowest = (long long)px_get64(p + 24);
		if (color != MPI_UNDEFINED && px_get32(p) && (int)px_get32(p + 4) == color)
			v[(*n)++] = (struct claim){ (int)px_get32(p + 8), r, px_get64(p + 16) };
	}
	px_model_agreed(c, slowest);
	if (failed) {
		rc = made != MPI_SUCCESS
			     ? made
			     : px_raise(c, MPI_ERR_OTHER, "another member could not make the communicator");
		goto fail;
	}
	qsort(v, (size_t)*n, sizeof *v, by_key);
	free(all);
	*members = v;
	return MPI_SUCCESS;
fail:
	free(all);
	free(v);
	return rc;
}

int px_Comm_split(struct px_comm *c, int color, int key, MPI_Comm *out)
{
	MPI_Comm native = MPI_COMM_NULL;
	struct claim *v = NULL;
	int n = 0, rc, made, *grank;

	if (color < 0 && color != MPI_UNDEFINED)
		return px_raise(c, MPI_ERR_ARG, "colour %d", color);
	made = px_comm_turn(c);
	if (made ==
		MPI_SUCCESS) /* orders by key, then by native rank: as the whole is ordered by key, then by rank */
		px_blocking(made, px_n.Comm_split(c->native, color, key, &native));
	rc = claims(c, made, color, key, &v, &n);
	if (rc != MPI_SUCCESS)
		return unmake(native, made, rc);
	grank = malloc((size_t)(n + 1) * sizeof *grank);
	for (int i = 0; i < n && grank; i++)
		grank[i] = px_grank(c, v[i].rank);
	if (!grank)
		rc = unmake(native, made, px_raise_memory(c));
	else if (n == 0)
		*out = MPI_COMM_NULL;
	else
		rc = adopt_list(c, native, v[0].ctx, n, grank, out);
	if (rc == MPI_SUCCESS)
		inherit(c, *out);
	free(grank);
	free(v);
	return rc;
}

/* Global ranks of group as a subset of c; comm rank of its first member. MPI error code, raised. */
static int subset(struct px_comm *c, MPI_Group group, int *n, int **grank, int *first)
{
	int rc = group == MPI_GROUP_NULL ? MPI_ERR_GROUP : px_group_list(group, n, grank);

	if (rc != MPI_SUCCESS)
		return px_raise_as(c, rc, NULL);
	for (int i = 0; i < *n; i++) {
		if ((*grank)[i] < 0 || px_rank_of(c, (*grank)[i]) < 0) {
			free(*grank);
			return px_raise(
				c, MPI_ERR_GROUP, "rank %d of the group is not in the communicator", i);
		}
	}
	*first = *n > 0 ? px_rank_of(c, (*grank)[0]) : 0;
	return MPI_SUCCESS;
}

static bool member(int n, const int *grank)
{
	for (int i = 0; i < n; i++)
		if (grank[i] == px.grank)
			return true;
	return false;
}

/* The local members of the list as a group of c's own native communicator: MPICH 4.0 crashes in Comm_create_group when the group
 * comes from another one. */
static int native_group(struct px_comm *c, int n, const int *grank, MPI_Group *group)
{
	int *local = malloc((size_t)(n + 1) * sizeof *local), k = 0, rc;
	MPI_Group all;

	if (!local)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < n; i++)
		if (px_is_local(grank[i]))
			local[k++] = px_lrank(c, px_rank_of(c, grank[i]));
	rc = px_n.Comm_group(c->native, &all);
	if (rc == MPI_SUCCESS) {
		rc = px_n.Group_incl(all, k, local, group);
		px_n.Group_free(&all);
	}
	free(local);
	return rc;
}

int px_Comm_create(struct px_comm *c, MPI_Group group, MPI_Comm *out)
{
	MPI_Group local = MPI_GROUP_EMPTY;
	MPI_Comm native = MPI_COMM_NULL;
	uint64_t ctx;
	int n, first, *grank, made, rc = subset(c, group, &n, &grank, &first);

	if (rc != MPI_SUCCESS)
		return rc;
	made = px_comm_turn(c);
	if (made == MPI_SUCCESS)
		made = native_group(c, n, grank, &local);
	if (made == MPI_SUCCESS)
		px_blocking(made, px_n.Comm_create(c->native, local, &native));
	if (local != MPI_GROUP_EMPTY)
		px_n.Group_free(&local);
	rc = px_comm_confirm(c, made, first, &ctx);
	if (rc != MPI_SUCCESS)
		rc = unmake(native, made, rc);
	else if (member(n, grank))
		rc = adopt_list(c, native, ctx, n, grank, out);
	else
		*out = MPI_COMM_NULL;
	if (rc == MPI_SUCCESS)
		inherit(c, *out);
	free(grank);
	return rc;
}

/* The members meet at the first of them, who sends everybody the context id. Only members take part. Messages go in
 * the collective context with negative tags, which no schedule uses. */
static int group_ctx(struct px_comm *c, int n, const int *grank, int tag, uint64_t *ctx)
{
	bool first = grank[0] == px.grank;
	uint8_t mine[8] = { 0 };
	int rc = MPI_SUCCESS;

	if (first) {
		px_put64(mine, px_ctx_candidate());
		for (int i = 1; i < n && rc == MPI_SUCCESS; i++)
			rc = px_internal_recv(c, NULL, 0, px_rank_of(c, grank[i]), -1 - tag);
		for (int i = 1; i < n && rc == MPI_SUCCESS; i++)
			rc = px_internal_send(c, mine, sizeof mine, px_rank_of(c, grank[i]), -1 - tag);
	} else {
		rc = px_internal_send(c, NULL, 0, px_rank_of(c, grank[0]), -1 - tag);
		if (rc == MPI_SUCCESS)
			rc = px_internal_recv(c, mine, sizeof mine, px_rank_of(c, grank[0]), -1 - tag);
	}
	*ctx = px_get64(mine);
	return rc == MPI_SUCCESS ? rc : px_raise_as(c, rc, NULL);
}

int px_Comm_create_group(struct px_comm *c, MPI_Group group, int tag, MPI_Comm *out)
{
	MPI_Group local;
	MPI_Comm native;
	uint64_t ctx = 0;
	int n, first, *grank, rc = subset(c, group, &n, &grank, &first);

	if (rc != MPI_SUCCESS)
		return rc;
	if (!member(n, grank)) {
		*out = MPI_COMM_NULL;
		free(grank);
		return MPI_SUCCESS;
	}
	rc = group_ctx(c, n, grank, tag, &ctx);
	if (rc == MPI_SUCCESS)
		rc = native_group(c, n, grank, &local);
	if (rc == MPI_SUCCESS) {
		px_blocking(rc, px_n.Comm_create_group(c->native, local, tag, &native));
		px_n.Group_free(&local);
	}
	if (rc == MPI_SUCCESS)
		rc = adopt_list(c, native, ctx, n, grank, out);
	free(grank);
	return rc;
}
