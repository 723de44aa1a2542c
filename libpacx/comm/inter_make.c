/* inter_make.c: what is made from intercommunicators that there are.
 *
 * Design. All members of both groups know each other already. They agree in the communicator of both, `all` (inter.h), on who will be in
 * the new one and whether every site has made its part, and only then the objects are made (inter_plan.h).
 */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "coll.h"
#include "comm_make.h"
#include "endian.h"
#include "group.h"
#include "inter.h"
#include "inter_plan.h"
#include "lock.h"
#include "raise.h"
#include "state.h"
#include "vendor.h"

/* The plan of a duplicate. MPI error code. */
static int plan_copy(const struct px_comm *c, struct px_plan *p)
{
	const struct px_comm *all = c->inter->all;

	p->n = all->size;
	p->first = c->inter->first;
	p->grank = malloc((size_t)p->n * sizeof *p->grank);
	if (!p->grank)
		return MPI_ERR_NO_MEM;
	px_ranks_write(all->ranks, 0, p->n, p->grank);
	return MPI_SUCCESS;
}

static int dup(struct px_comm *c, bool with_info, MPI_Info info, MPI_Comm *out)
{
	struct px_comm *all = c->inter->all;
	struct px_plan p;
	int rc;

	*out = MPI_COMM_NULL;
	px_plan_init(&p);
	if (plan_copy(c, &p) != MPI_SUCCESS)
		return px_raise_memory(c);
	rc = px_comm_turn(all);
	if (rc == MPI_SUCCESS)
		px_blocking(rc, px_n.Comm_dup(all->native, &p.native));
	if (rc == MPI_SUCCESS) /* with the user's attributes */
		px_blocking(rc, with_info ? px_n.Comm_dup_with_info(c->native, info, &p.face)
					  : px_n.Comm_dup(c->native, &p.face));
	rc = px_comm_confirm(all, rc, 0, &p.ctx);
	return rc == MPI_SUCCESS ? px_plan_carry_out(&p, c, c->native, out) : px_plan_drop(&p, rc);
}

int px_inter_Comm_dup(struct px_comm *c, MPI_Comm *out)
{
	return dup(c, false, MPI_INFO_NULL, out);
}

int px_inter_Comm_dup_with_info(struct px_comm *c, MPI_Info info, MPI_Comm *out)
{
	return dup(c, true, info, out);
}

struct idup {
	struct px_comm *c;
	uint8_t ctx[8];
	MPI_Info info; /* a copy: the native call may start later */
	struct px_plan p;
	MPI_Comm *out;
};

static int idup_finish(struct px_sched *s, void *arg)
{
	struct idup *d = arg;
	int rc;

	(void)s;
	if (d->info != MPI_INFO_NULL)
		px_n.Info_free(&d->info);
	d->p.ctx = px_get64(d->ctx);
	rc = px_plan_carry_out(&d->p, d->c, d->c->native, d->out);
	px_comm_drop(d->c);
	return rc;
}

static int idup(struct px_comm *c, bool with_info, MPI_Info info, MPI_Comm *out, MPI_Request *req)
{
	struct px_comm *all = c->inter->all;
	struct px_sched *s = px_sched_new(all, PX_COLL_COMM);
	struct idup *d = s ? px_sched_temp(s, sizeof *d) : NULL;

	if (!d)
		return px_sched_start(s, all, req);
	*d = (struct idup){ .c = c, .info = MPI_INFO_NULL, .out = out };
	px_plan_init(&d->p);
	if (plan_copy(c, &d->p) != MPI_SUCCESS)
		px_sched_fail(s, MPI_ERR_NO_MEM, "out of memory");
	if (info != MPI_INFO_NULL && px_n.Info_dup(info, &d->info) != MPI_SUCCESS)
		px_sched_fail(s, MPI_ERR_INFO, "the info is not valid");
	if (all->rank == 0)
		px_put64(d->ctx, px_ctx_candidate());
	px_coll_bcast(s, d->ctx, sizeof d->ctx, MPI_BYTE, 0);
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_DUP, .newcomm = &d->p.native });
	px_sched_round(s);
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_DUP,
				   .of = c->native,
				   .info = with_info ? &d->info : NULL,
				   .newcomm = &d->p.face });
	px_sched_round(s);
	px_sched_call(s, idup_finish, d);
	if (px_sched_ok(s))
		px_comm_hold(c);
	return px_sched_start(s, all, req);
}

int px_inter_Comm_idup(struct px_comm *c, MPI_Comm *out, MPI_Request *req)
{
	return idup(c, false, MPI_INFO_NULL, out, req);
}

#ifdef PX_HAVE_Comm_idup_with_info
int px_inter_Comm_idup_with_info(struct px_comm *c, MPI_Info info, MPI_Comm *out, MPI_Request *req)
{
	return idup(c, true, info, out, req);
}
#endif

/* What each rank says when groups are divided. */
struct claim {
	bool in, second;
	int color, key, rank;
};

#define CLAIM_BYTES 12

static int by_place(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->second != y->second)
		return x->second - y->second;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank - y->rank;
}

/* Members of my colour in both groups, in their new order. MPI error code, raised. */
static int claims(struct px_comm *c, const struct claim *my, struct px_plan *p)
{
	struct px_comm *all = c->inter->all;
	uint8_t mine[CLAIM_BYTES], *said = malloc((size_t)all->size * CLAIM_BYTES);
	struct claim *v = malloc((size_t)all->size * sizeof *v);
	int rc;

	p->grank = malloc((size_t)all->size * sizeof *p->grank);
	if (!said || !v || !p->grank) {
		free(said);
		free(v);
		return px_raise_memory(c);
	}
	px_put32(mine, my->in);
	px_put32(mine + 4, (uint32_t)my->color);
	px_put32(mine + 8, (uint32_t)my->key);
	rc = px_comm_agree(all, mine, CLAIM_BYTES, said);
	for (int r = 0; r < all->size && rc == MPI_SUCCESS; r++) {
		const uint8_t *s = said + (size_t)r * CLAIM_BYTES;

		if (my->in && px_get32(s) && (int)px_get32(s + 4) == my->color)
			v[p->n++] = (struct claim){ true, r >= c->inter->first, my->color,
				(int)px_get32(s + 8), r };
	}
	qsort(v, (size_t)p->n, sizeof *v, by_place);
	for (int i = 0; i < p->n; i++) {
		p->grank[i] = px_grank(all, v[i].rank);
		p->first += !v[i].second;
	}
	free(said);
	free(v);
	return rc;
}

/* The processes of one colour in both groups. Where there are none in one of the groups there is no communicator. */
static int regroup(struct px_comm *c, const struct claim *my, MPI_Comm *out)
{
	struct px_comm *all = c->inter->all;
	struct px_plan p;
	bool some;
	int rc;

	*out = MPI_COMM_NULL;
	px_plan_init(&p);
	rc = claims(c, my, &p);
	if (rc != MPI_SUCCESS)
		return px_plan_drop(&p, rc);
	some = p.first > 0 && p.first < p.n;
	rc = px_comm_turn(all);
	if (rc == MPI_SUCCESS)
		px_blocking(rc, px_n.Comm_split(all->native, some ? my->color : MPI_UNDEFINED,
					some ? px_plan_rank(&p) : 0, &p.native));
	if (rc == MPI_SUCCESS && some)
		rc = px_plan_face(&p);
	rc = px_comm_confirm(all, rc, some ? px_rank_of(all, p.grank[0]) : 0, &p.ctx);
	if (rc != MPI_SUCCESS || !some)
		return px_plan_drop(&p, rc);
	return px_plan_carry_out(&p, c, c->native, out);
}

int px_inter_Comm_split(struct px_comm *c, int color, int key, MPI_Comm *out)
{
	struct claim my = { .in = color != MPI_UNDEFINED, .color = color, .key = key };

	if (color < 0 && color != MPI_UNDEFINED)
		return px_raise(c, MPI_ERR_ARG, "colour %d", color);
	return regroup(c, &my, out);
}

int px_inter_Comm_create(struct px_comm *c, MPI_Group group, MPI_Comm *out)
{
	const struct px_inter *i = c->inter;
	struct px_side near = px_inter_local(c);
	struct claim my = { .in = false };
	int n, *grank, rc;

	*out = MPI_COMM_NULL;
	rc = group == MPI_GROUP_NULL ? MPI_ERR_GROUP : px_group_list(group, &n, &grank);
	if (rc != MPI_SUCCESS)
		return px_raise_as(c, rc, NULL);
	for (int k = 0; k < n && rc == MPI_SUCCESS; k++) {
		int r = grank[k] < 0 ? -1 : px_rank_of(i->all, grank[k]);

		if (r < near.lo || r >= near.hi)
			rc = px_raise(c, MPI_ERR_GROUP, "rank %d of the group is not in the local group", k);
		if (grank[k] == px.grank) {
			my.in = true;
			my.key = k;
		}
	}
	free(grank);
	return rc == MPI_SUCCESS ? regroup(c, &my, out) : rc;
}

int px_Intercomm_merge(struct px_comm *c, int high, MPI_Comm *out)
{
	const struct px_inter *i = c->inter;
	MPI_Errhandler h;
	long long high_of[2] = { 0, 0 }; /* as the first member of each group says */
	bool swapped;
	int rc;

	*out = MPI_COMM_NULL;
	if (!i)
		return px_raise(c, MPI_ERR_COMM, "the communicator is not an intercommunicator");
	if (i->all->rank == (i->second ? i->first : 0))
		high_of[i->second] = high != 0;
	rc = px_comm_max(i->all, high_of, 2);
	swapped = rc == MPI_SUCCESS && high_of[0] && !high_of[1];
	if (rc == MPI_SUCCESS) /* the order within a group stays */
		rc = px_Comm_split(i->all, 0, i->second != swapped, out);
	if (rc == MPI_SUCCESS && px_n.Comm_get_errhandler(c->native, &h) == MPI_SUCCESS) {
		px_n.Comm_set_errhandler(*out, h);
		px_n.Errhandler_free(&h);
	}
	return rc;
}
