/* inter_make.c: constructors of intercommunicators, and what is made from them.
 *
 * Design. Whatever the constructor, it first learns who is in both groups, in the order in which `all` (inter.h) has them; then each site
 * makes its native communicators; then all members learn whether that has succeeded everywhere, and only then the objects are
 * made. When both groups are at one site the result is a native intercommunicator. In MPI_Intercomm_create nobody knows beforehand whether
 * that is so: only the leaders see each other. They tell each other their groups, and tell their groups of the other one.
 */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "coll.h"
#include "comm_find.h"
#include "comm_make.h"
#include "endian.h"
#include "group.h"
#include "inter.h"
#include "lock.h"
#include "raise.h"
#include "request.h"
#include "state.h"
#include "vendor.h"

/* An intercommunicator to be. */
struct plan {
	int n, first; /* members of both groups; of the first one */
	int *grank;   /* [n], on the heap */
	uint64_t ctx;
	MPI_Comm native; /* the members at this site in this order, or MPI_COMM_NULL */
	MPI_Comm face;   /* what the application will hold */
};

static void plan_init(struct plan *p)
{
	memset(p, 0, sizeof *p);
	p->native = p->face = MPI_COMM_NULL;
}

static int plan_rank(const struct plan *p)
{
	for (int i = 0; i < p->n; i++)
		if (p->grank[i] == px.grank)
			return i;
	return -1;
}

static void native_free(MPI_Comm *native)
{
	int rc;

	if (*native != MPI_COMM_NULL)
		px_blocking(rc, px_n.Comm_free(native));
	(void)rc;
}

/* The constructor has failed with rc somewhere. */
static int plan_drop(struct plan *p, int rc)
{
	native_free(&p->face);
	native_free(&p->native);
	free(p->grank);
	return rc;
}

/* All members are here: the vendor's own intercommunicator. */
static int native_inter(struct plan *p)
{
	MPI_Comm local = MPI_COMM_NULL;
	int me = plan_rank(p), second = me >= p->first, rc;

	px_blocking(rc, px_n.Comm_split(p->native, second, me, &local));
	if (rc == MPI_SUCCESS)
		px_blocking(
			rc, px_n.Intercomm_create(local, 0, p->native, second ? 0 : p->first, 1, &p->face));
	native_free(&local);
	return rc;
}

/* p->native is made: the face from it. MPI error code. */
static int plan_face(struct plan *p)
{
	int rc = px_must_meet() ? px_meet(p->native) : MPI_SUCCESS;

	if (rc != MPI_SUCCESS)
		return rc;
	if (!px_comm_spans(p->n, p->grank))
		return native_inter(p);
	px_blocking(rc, px_n.Comm_dup(p->native, &p->face));
	return rc;
}

/* Everybody has made the native communicators. The errors of the new one go where those of `like` go, a native handle. */
static int plan_carry_out(struct plan *p, struct px_comm *raise_on, MPI_Comm like, MPI_Comm *out)
{
	MPI_Errhandler h;
	struct px_comm *all;

	if (px_n.Comm_get_errhandler(like, &h) == MPI_SUCCESS) {
		px_n.Comm_set_errhandler(p->face, h);
		px_n.Errhandler_free(&h);
	}
	if (!px_comm_spans(p->n, p->grank)) {
		native_free(&p->native);
	} else {
		all = px_comm_new(p->native, p->ctx, p->n, p->grank);
		if (!all)
			return plan_drop(p, px_raise_memory(raise_on));
		p->native = MPI_COMM_NULL;
		if (!px_inter_new(p->face, all, p->first)) {
			px_comm_drop(all);
			return plan_drop(p, px_raise_memory(raise_on));
		}
	}
	*out = p->face;
	free(p->grank);
	return MPI_SUCCESS;
}

/* MPI_Intercomm_create. One of the two groups: its communicator, spanning (c) or native. */
struct side {
	struct px_comm *c;
	MPI_Comm native;
	int size, leader; /* comm ranks */
	bool leads;
	int *grank;
};

/* From the leader to its group. */
static int tell(const struct side *s, void *buf, int bytes)
{
	MPI_Request req;
	int rc;

	if (s->c)
		return px_Bcast(buf, bytes, MPI_BYTE, s->leader, s->c);
	rc = px_n.Ibcast(buf, bytes, MPI_BYTE, s->leader, s->native, &req);
	return rc == MPI_SUCCESS ? px_wait_native(&req, MPI_STATUS_IGNORE) : rc;
}

/* The smallest of a group's numbers, at all its members. */
static int least(const struct side *s, int *n)
{
	int mine = *n, rc;
	MPI_Request req;

	if (s->c)
		return px_Allreduce(&mine, n, 1, MPI_INT, MPI_MIN, s->c);
	rc = px_n.Iallreduce(&mine, n, 1, MPI_INT, MPI_MIN, s->native, &req);
	return rc == MPI_SUCCESS ? px_wait_native(&req, MPI_STATUS_IGNORE) : rc;
}

/* The way between the leaders. */
struct peer {
	struct px_comm *c;
	MPI_Comm native;
	int rank, tag;
	bool speaks_first; /* long messages wait for their receiver, so the two may not both send first */
};

static int say(const struct peer *p, const void *buf, int bytes)
{
	MPI_Request req;
	int rc;

	if (p->c) /* a negative tag in the context of collectives, as in MPI_Comm_create_group */
		return px_internal_send(p->c, buf, bytes, p->rank, -1 - p->tag);
	rc = px_n.Isend(buf, bytes, MPI_BYTE, p->rank, p->tag, p->native, &req);
	return rc == MPI_SUCCESS ? px_wait_native(&req, MPI_STATUS_IGNORE) : rc;
}

static int hear(const struct peer *p, void *buf, int bytes)
{
	MPI_Request req;
	int rc;

	if (p->c)
		return px_internal_recv(p->c, buf, bytes, p->rank, -1 - p->tag);
	rc = px_n.Irecv(buf, bytes, MPI_BYTE, p->rank, p->tag, p->native, &req);
	return rc == MPI_SUCCESS ? px_wait_native(&req, MPI_STATUS_IGNORE) : rc;
}

static int swap(const struct peer *p, const void *out, int outbytes, void *in, int inbytes)
{
	int rc = p->speaks_first ? say(p, out, outbytes) : hear(p, in, inbytes);

	if (rc != MPI_SUCCESS)
		return rc;
	return p->speaks_first ? hear(p, in, inbytes) : say(p, out, outbytes);
}

/* What one group says of itself to the other: members, first member, 1 = the leader can go on, context id. */
#define NOTE_BYTES 20

static void note_make(uint8_t note[NOTE_BYTES], const struct side *s)
{
	px_put32(note, (uint32_t)s->size);
	px_put32(note + 4, (uint32_t)s->grank[0]);
	px_put32(note + 8, 1);
	px_put64(note + 12, px_ctx_candidate());
}

/* Leaders only: the note and the members (4 bytes each, on the heap) of the other group; mine: our note. MPI error code. */
static int meet_leader(
	const struct side *s, struct peer *p, const uint8_t *mine, uint8_t other[NOTE_BYTES], uint8_t **list)
{
	int rc, n;
	uint8_t *out = malloc(4 * (size_t)s->size);

	*list = NULL;
	if (!out)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < s->size; i++)
		px_put32(out + 4 * i, (uint32_t)s->grank[i]);
	rc = say(p, mine, NOTE_BYTES); /* short: leaves without its receiver */
	if (rc == MPI_SUCCESS)
		rc = hear(p, other, NOTE_BYTES);
	n = (int)px_get32(other);
	p->speaks_first = s->grank[0] < (int)px_get32(other + 4);
	if (rc == MPI_SUCCESS)
		*list = malloc(4 * (size_t)n);
	if (*list)
		rc = swap(p, out, 4 * s->size, *list, 4 * n);
	else if (rc == MPI_SUCCESS)
		rc = MPI_ERR_NO_MEM;
	free(out);
	return rc;
}

/* Of the leaders' notes and the two groups: the plan. Groups that have a member in common are none. MPI error code, raised. */
static int plan_make(
	struct plan *p, const struct side *s, const uint8_t *mine, const uint8_t *other, const uint8_t *list)
{
	int m = (int)px_get32(other);
	bool first = s->grank[0] < (int)px_get32(list);

	p->n = s->size + m;
	p->first = first ? s->size : m;
	p->ctx = px_get64((first ? mine : other) + 12);
	p->grank = malloc((size_t)p->n * sizeof *p->grank);
	if (!p->grank)
		return px_raise_memory(s->c);
	memcpy(p->grank + (first ? 0 : m), s->grank, (size_t)s->size * sizeof *p->grank);
	for (int i = 0; i < m; i++) {
		int g = (int)px_get32(list + 4 * i);

		p->grank[(first ? s->size : 0) + i] = g;
		for (int k = 0; k < s->size; k++)
			if (s->grank[k] == g)
				return px_raise(
					s->c, MPI_ERR_COMM, "rank %d of MPI_COMM_WORLD is in both groups", g);
	}
	return MPI_SUCCESS;
}

/* The members at this site, in the order of the plan: from a communicator of the whole site, by themselves. */
static int plan_native(struct plan *p)
{
	int *local = malloc((size_t)p->n * sizeof *local), k = 0, rc;
	MPI_Group site, group;

	if (!local)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < p->n; i++)
		if (px_is_local(p->grank[i]))
			local[k++] = p->grank[i] - px.world->base[px.site];
	rc = px_n.Comm_group(px.local, &site);
	if (rc == MPI_SUCCESS) {
		rc = px_n.Group_incl(site, k, local, &group);
		px_n.Group_free(&site);
	}
	free(local);
	if (rc != MPI_SUCCESS)
		return rc;
	/* Others that are made at the same time in other threads have another tag. */
	px_blocking(rc, px_n.Comm_create_group(px.local, group, (int)(p->ctx / 4 % 30011), &p->native));
	px_n.Group_free(&group);
	return rc;
}

/* Both groups learn of each other. MPI error code, raised. */
static int introduce(struct plan *p, const struct side *s, struct peer *peer)
{
	uint8_t notes[2][NOTE_BYTES] = { { 0 } }, *list = NULL;
	int rc = MPI_SUCCESS, told;

	if (s->leads) {
		note_make(notes[0], s);
		rc = meet_leader(s, peer, notes[0], notes[1], &list);
		if (rc != MPI_SUCCESS)
			px_put32(notes[1] + 8, 0);
	}
	told = tell(s, notes, sizeof notes);
	if (rc == MPI_SUCCESS && told == MPI_SUCCESS && px_get32(notes[1] + 8) == 0)
		rc = MPI_ERR_OTHER; /* the leader has an error */
	if (rc == MPI_SUCCESS && told == MPI_SUCCESS && !s->leads) {
		list = malloc(4 * (size_t)px_get32(notes[1]));
		if (!list)
			return px_raise_memory(s->c);
	}
	if (rc != MPI_SUCCESS || told != MPI_SUCCESS) {
		free(list);
		return rc != MPI_SUCCESS ? px_raise_as(s->c, rc, NULL) : told;
	}
	rc = tell(s, list, 4 * (int)px_get32(notes[1]));
	if (rc == MPI_SUCCESS)
		rc = plan_make(p, s, notes[0], notes[1], list);
	free(list);
	return rc;
}

/* made: result of the native constructors here. All members of both groups learn whether all have succeeded. MPI error code, raised. */
static int confirm(const struct side *s, const struct peer *peer, int made)
{
	int good = made == MPI_SUCCESS, rc = least(s, &good);
	uint8_t mine[4], other[4] = { 0 };

	px_put32(mine, (uint32_t)good);
	if (rc == MPI_SUCCESS && s->leads)
		rc = swap(peer, mine, sizeof mine, other, sizeof other);
	if (rc == MPI_SUCCESS)
		rc = tell(s, other, sizeof other);
	if (rc != MPI_SUCCESS || made != MPI_SUCCESS)
		return rc != MPI_SUCCESS ? rc : made;
	if (good && px_get32(other))
		return MPI_SUCCESS;
	return px_raise(s->c, MPI_ERR_OTHER, "another member could not make the communicator");
}

static int side_init(struct side *s, MPI_Comm comm, int leader)
{
	MPI_Group group;
	int rank = -1, rc, inter = 0;

	*s = (struct side){ .c = px_comm_find(comm), .native = comm, .leader = leader };
	if (s->c && s->c->inter)
		return px_not_inter(s->c);
	if (!s->c) { /* the vendor checks the handle */
		rc = px_n.Comm_test_inter(comm, &inter);
		if (rc == MPI_SUCCESS)
			rc = px_n.Comm_rank(comm, &rank);
		if (rc == MPI_SUCCESS)
			rc = px_n.Comm_group(comm, &group);
		if (rc == MPI_SUCCESS && inter)
			rc = px_raise(NULL, MPI_ERR_COMM, "the communicator is an intercommunicator");
	} else {
		rank = s->c->rank;
		rc = px_Comm_group(s->c, &group);
	}
	if (rc != MPI_SUCCESS)
		return rc;
	rc = px_group_list(group, &s->size, &s->grank);
	px_Group_free(&group);
	s->leads = rank == leader;
	if (rc == MPI_SUCCESS && (leader < 0 || leader >= s->size)) {
		free(s->grank);
		return px_raise(
			s->c, MPI_ERR_RANK, "local leader %d, the communicator has %d", leader, s->size);
	}
	return rc == MPI_SUCCESS ? rc : px_raise_as(s->c, rc, NULL);
}

int px_Intercomm_create(
	MPI_Comm local, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag, MPI_Comm *out)
{
	struct peer peer = { .native = peer_comm, .rank = remote_leader, .tag = tag };
	struct side s;
	struct plan p;
	int rc;

	if (!px_spanning())
		return px_n.Intercomm_create(local, local_leader, peer_comm, remote_leader, tag, out);
	*out = MPI_COMM_NULL;
	rc = side_init(&s, local, local_leader);
	if (rc != MPI_SUCCESS)
		return rc;
	if (s.leads)
		peer.c = px_comm_find(peer_comm);
	if (tag < 0 || tag > px.tag_ub) {
		rc = px_raise(s.c, MPI_ERR_TAG, "tag %d, the largest is %d (MPI_TAG_UB)", tag, px.tag_ub);
	} else if (peer.c && peer.c->inter) {
		rc = px_not_inter(peer.c);
	} else if (peer.c && (remote_leader < 0 || remote_leader >= peer.c->size)) {
		rc = px_raise(s.c, MPI_ERR_RANK, "remote leader %d, the communicator has %d", remote_leader,
			peer.c->size);
	}
	plan_init(&p);
	if (rc == MPI_SUCCESS)
		rc = introduce(&p, &s, &peer);
	if (rc == MPI_SUCCESS) {
		rc = plan_native(&p);
		if (rc == MPI_SUCCESS)
			rc = plan_face(&p);
		rc = confirm(&s, &peer, rc);
	}
	rc = rc == MPI_SUCCESS ? plan_carry_out(&p, s.c, local, out) : plan_drop(&p, rc);
	free(s.grank);
	return rc;
}

/* The plan of a duplicate. MPI error code. */
static int plan_copy(const struct px_comm *c, struct plan *p)
{
	const struct px_comm *all = c->inter->all;

	p->n = all->size;
	p->first = c->inter->first;
	p->grank = malloc((size_t)p->n * sizeof *p->grank);
	if (!p->grank)
		return MPI_ERR_NO_MEM;
	memcpy(p->grank, all->grank, (size_t)p->n * sizeof *p->grank);
	return MPI_SUCCESS;
}

static int dup(struct px_comm *c, bool with_info, MPI_Info info, MPI_Comm *out)
{
	struct px_comm *all = c->inter->all;
	struct plan p;
	int rc;

	*out = MPI_COMM_NULL;
	plan_init(&p);
	if (plan_copy(c, &p) != MPI_SUCCESS)
		return px_raise_memory(c);
	rc = px_comm_turn(all);
	if (rc == MPI_SUCCESS)
		px_blocking(rc, px_n.Comm_dup(all->native, &p.native));
	if (rc == MPI_SUCCESS) /* with the user's attributes */
		px_blocking(rc, with_info ? px_n.Comm_dup_with_info(c->native, info, &p.face)
					  : px_n.Comm_dup(c->native, &p.face));
	rc = px_comm_confirm(all, rc, 0, &p.ctx);
	return rc == MPI_SUCCESS ? plan_carry_out(&p, c, c->native, out) : plan_drop(&p, rc);
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
	struct plan p;
	MPI_Comm *out;
};

static int idup_finish(struct px_sched *s, void *arg)
{
	struct idup *d = arg;
	int rc;

	(void)s;
	d->p.ctx = px_get64(d->ctx);
	rc = plan_carry_out(&d->p, d->c, d->c->native, d->out);
	px_comm_drop(d->c);
	return rc;
}

int px_inter_Comm_idup(struct px_comm *c, MPI_Comm *out, MPI_Request *req)
{
	struct px_comm *all = c->inter->all;
	struct px_sched *s = px_sched_new(all, PX_COLL_COMM);
	struct idup *d = s ? px_sched_temp(s, sizeof *d) : NULL;

	if (!d)
		return px_sched_start(s, all, req);
	*d = (struct idup){ .c = c, .out = out };
	plan_init(&d->p);
	if (plan_copy(c, &d->p) != MPI_SUCCESS)
		px_sched_fail(s, MPI_ERR_NO_MEM, "out of memory");
	if (all->rank == 0)
		px_put64(d->ctx, px_ctx_candidate());
	px_coll_bcast(s, d->ctx, sizeof d->ctx, MPI_BYTE, 0);
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_DUP, .newcomm = &d->p.native });
	px_sched_round(s);
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_DUP, .of = c->native, .newcomm = &d->p.face });
	px_sched_round(s);
	px_sched_call(s, idup_finish, d);
	if (px_sched_ok(s))
		px_comm_hold(c);
	return px_sched_start(s, all, req);
}

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
static int claims(struct px_comm *c, const struct claim *my, struct plan *p)
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
		p->grank[i] = all->grank[v[i].rank];
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
	struct plan p;
	bool some;
	int rc;

	*out = MPI_COMM_NULL;
	plan_init(&p);
	rc = claims(c, my, &p);
	if (rc != MPI_SUCCESS)
		return plan_drop(&p, rc);
	some = p.first > 0 && p.first < p.n;
	rc = px_comm_turn(all);
	if (rc == MPI_SUCCESS)
		px_blocking(rc, px_n.Comm_split(all->native, some ? my->color : MPI_UNDEFINED,
					some ? plan_rank(&p) : 0, &p.native));
	if (rc == MPI_SUCCESS && some)
		rc = plan_face(&p);
	rc = px_comm_confirm(all, rc, some ? all->rank_of[p.grank[0]] : 0, &p.ctx);
	if (rc != MPI_SUCCESS || !some)
		return plan_drop(&p, rc);
	return plan_carry_out(&p, c, c->native, out);
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
		int r = grank[k] < 0 ? -1 : i->all->rank_of[grank[k]];

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
	uint8_t mine, *said;
	bool swapped;
	int rc;

	*out = MPI_COMM_NULL;
	if (!i)
		return px_raise(c, MPI_ERR_COMM, "the communicator is not an intercommunicator");
	said = malloc((size_t)i->all->size);
	if (!said)
		return px_raise_memory(c);
	mine = high != 0;
	rc = px_comm_agree(i->all, &mine, 1, said);
	swapped = rc == MPI_SUCCESS && said[0] && !said[i->first];
	free(said);
	if (rc == MPI_SUCCESS) /* the order within a group stays */
		rc = px_Comm_split(i->all, 0, i->second != swapped, out);
	if (rc == MPI_SUCCESS && px_n.Comm_get_errhandler(c->native, &h) == MPI_SUCCESS) {
		px_n.Comm_set_errhandler(*out, h);
		px_n.Errhandler_free(&h);
	}
	return rc;
}
