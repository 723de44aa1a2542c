/* alltoall_site.c: a short MPI_Alltoall: what goes from one site to another is one message, however many ranks these have.
 *
 * Design. For each other site a rank is the head, the members of a site in turn, so that the work is shared. All blocks are packed. A native
 * exchange brings each head the blocks for its sites, and each rank those of its own site; the heads of two sites exchange
 * what they have; a second native exchange takes it to its receivers. Long blocks go straight to their receivers (alltoall.c): they save
 * these two steps.
 */
#include <string.h>

#include "coll.h"
#include "comm.h"
#include "datatype.h"

/* One exchange among the local members: bytes and places, per member. */
struct hop {
	char *buf;
	MPI_Count *counts;
	MPI_Aint *displs;
};

struct by_site {
	MPI_Count block; /* bytes that each rank has for each other */
	const char *in;
	char *out;
	MPI_Count in_count, out_count;
	MPI_Datatype in_type, out_type;
	int *head;                /* [nparts] local rank that has to do with a site */
	MPI_Datatype *bytes;      /* [nlocal] */
	struct hop up, at_head;   /* first exchange: sent, received */
	struct hop down, arrived; /* second */
	char **away, **back;      /* [nparts] messages of the sites whose head is this rank */
};

/* Index, among the members of part p, of the head for part q. */
static int head_for(const struct px_comm *c, int p, int q)
{
	return (q - (q > p)) % px_part_count(c, p);
}

/* Blocks that go by local rank i: of the ranks of the sites whose head it is. */
static MPI_Count through(const struct px_comm *c, const struct by_site *x, int i)
{
	MPI_Count n = 0;

	for (int q = 0; q < c->nparts; q++)
		if (q != c->self && x->head[q] == i)
			n += px_part_count(c, q);
	return n;
}

/* Room for blocks[i] blocks for each member, or, blocks NULL, `each` for each. */
static void hop_new(
	struct px_sched *s, const struct by_site *x, const MPI_Count *blocks, MPI_Count each, struct hop *h)
{
	int n = px_sched_comm(s)->nlocal;
	MPI_Aint at = 0;

	h->counts = px_sched_temp(s, (size_t)n * sizeof *h->counts);
	h->displs = px_sched_temp(s, (size_t)n * sizeof *h->displs);
	if (!px_sched_ok(s))
		return;
	for (int i = 0; i < n; i++) {
		h->counts[i] = x->block * (blocks ? blocks[i] : each);
		h->displs[i] = at;
		at += (MPI_Aint)h->counts[i];
	}
	h->buf = px_sched_temp(s, (size_t)at);
}

static int pack(const struct by_site *x, int r, char *to)
{
	const struct px_type *p = px_type_get(x->in_type);

	return px_type_pack(x->in + x->in_count * r * p->extent, x->in_count, x->in_type, to);
}

static int unpack(const struct by_site *x, int r, const char *from)
{
	const struct px_type *p = px_type_get(x->out_type);

	return px_type_unpack(
		from, (uint64_t)x->block, x->out + x->out_count * r * p->extent, x->out_count, x->out_type);
}

/* For each local member: its own block, then those for the sites whose head it is. */
static int pack_up(struct px_sched *s, void *arg)
{
	struct by_site *x = arg;
	struct px_comm *c = px_sched_comm(s);
	int rc = MPI_SUCCESS;

	for (int i = 0; i < c->nlocal && rc == MPI_SUCCESS; i++) {
		char *to = x->up.buf + x->up.displs[i];

		rc = pack(x, px_rank_of_local(c, i), to);
		for (int q = 0; q < c->nparts; q++)
			for (int k = 0; q != c->self && x->head[q] == i && k < px_part_count(c, q) &&
					rc == MPI_SUCCESS;
				k++)
				rc = pack(x, px_member(c, q, k), to += x->block);
	}
	return rc;
}

/* At a head: what all members have for a site, together. */
static int load(struct px_sched *s, void *arg)
{
	struct by_site *x = arg;
	struct px_comm *c = px_sched_comm(s);
	size_t at = (size_t)x->block;

	for (int q = 0; q < c->nparts; q++) {
		size_t n = (size_t)(x->block * px_part_count(c, q));

		if (q == c->self || x->head[q] != c->lrank)
			continue;
		for (int j = 0; j < c->nlocal; j++)
			memcpy(x->away[q] + (size_t)j * n, x->at_head.buf + x->at_head.displs[j] + at, n);
		at += n;
	}
	return MPI_SUCCESS;
}

/* At a head: what has come from a site, by receiver. */
static int unload(struct px_sched *s, void *arg)
{
	struct by_site *x = arg;
	struct px_comm *c = px_sched_comm(s);
	size_t at = 0, block = (size_t)x->block;

	for (int q = 0; q < c->nparts; q++) {
		if (q == c->self || x->head[q] != c->lrank)
			continue;
		for (int k = 0; k < px_part_count(c, q); k++, at += block)
			for (int i = 0; i < c->nlocal; i++)
				memcpy(x->down.buf + x->down.displs[i] + at,
					x->back[q] + (size_t)(k * c->nlocal + i) * block, block);
	}
	return MPI_SUCCESS;
}

static int unpack_all(struct px_sched *s, void *arg)
{
	struct by_site *x = arg;
	struct px_comm *c = px_sched_comm(s);
	int rc = MPI_SUCCESS;

	for (int i = 0; i < c->nlocal && rc == MPI_SUCCESS; i++) {
		const char *from = x->arrived.buf + x->arrived.displs[i];

		rc = unpack(x, px_rank_of_local(c, i), x->at_head.buf + x->at_head.displs[i]);
		for (int q = 0; q < c->nparts; q++)
			for (int k = 0; q != c->self && x->head[q] == i && k < px_part_count(c, q) &&
					rc == MPI_SUCCESS;
				k++, from += x->block)
				rc = unpack(x, px_member(c, q, k), from);
	}
	return rc;
}

static bool make_room(struct px_sched *s, struct by_site *x)
{
	struct px_comm *c = px_sched_comm(s);
	size_t parts = (size_t)c->nparts;
	MPI_Count *up = px_sched_temp(s, (size_t)c->nlocal * sizeof *up),
		  *here = px_sched_temp(s, (size_t)c->nlocal * sizeof *here);

	x->head = px_sched_temp(s, parts * sizeof *x->head);
	x->away = px_sched_temp(s, parts * sizeof *x->away);
	x->back = px_sched_temp(s, parts * sizeof *x->back);
	x->bytes = px_sched_temp(s, (size_t)c->nlocal * sizeof *x->bytes);
	if (!px_sched_ok(s))
		return false;
	for (int q = 0; q < c->nparts; q++) {
		size_t n = (size_t)(x->block * px_part_count(c, q) * c->nlocal);

		if (q == c->self)
			continue;
		x->head[q] = head_for(c, c->self, q);
		if (x->head[q] == c->lrank) {
			x->away[q] = px_sched_temp(s, n);
			x->back[q] = px_sched_temp(s, n);
		}
	}
	for (int i = 0; i < c->nlocal; i++) {
		x->bytes[i] = MPI_BYTE;
		here[i] = through(c, x, i);
		up[i] = 1 + here[i];
	}
	hop_new(s, x, up, 0, &x->up);
	hop_new(s, x, NULL, up[c->lrank], &x->at_head);
	hop_new(s, x, NULL, here[c->lrank], &x->down);
	hop_new(s, x, here, 0, &x->arrived);
	return px_sched_ok(s);
}

/* Among the local members. */
static void swap(struct px_sched *s, const struct by_site *x, const struct hop *out, const struct hop *in)
{
	px_sched_round(s);
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_ALLTOALLW,
				   .s = out->buf,
				   .scounts = out->counts,
				   .sdispls = out->displs,
				   .stypes = x->bytes,
				   .r = in->buf,
				   .rcounts = in->counts,
				   .rdispls = in->displs,
				   .rtypes = x->bytes });
	px_sched_round(s);
}

void px_coll_alltoall_by_site(struct px_sched *s, const void *in, MPI_Count count, MPI_Datatype t, void *out,
	MPI_Count rcount, MPI_Datatype rt)
{
	struct px_comm *c = px_sched_comm(s);
	struct by_site *x = px_sched_temp(s, sizeof *x);
	bool inplace = in == MPI_IN_PLACE;

	if (!x)
		return;
	*x = (struct by_site){ .block = rcount * px_type_get(rt)->size,
		.in = inplace ? out : in,
		.in_count = inplace ? rcount : count,
		.in_type = inplace ? rt : t,
		.out = out,
		.out_count = rcount,
		.out_type = rt };
	if (x->in_count * px_type_get(x->in_type)->size != x->block) {
		px_sched_fail(s, MPI_ERR_TRUNCATE,
			"this rank sends blocks of %lld bytes, but receives blocks of %lld",
			(long long)(x->in_count * px_type_get(x->in_type)->size), (long long)x->block);
		return;
	}
	if (!make_room(s, x))
		return;
	px_sched_call(s, pack_up, x);
	swap(s, x, &x->up, &x->at_head);
	if (through(c, x, c->lrank) > 0) {
		px_sched_call(s, load, x);
		px_sched_round(s);
		for (int i = 1; i < c->nparts; i++) {
			/* Start behind this site, so that not all begin with the first. */
			int q = (c->self + i) % c->nparts, peer;
			MPI_Count n = x->block * px_part_count(c, q) * c->nlocal;

			if (x->head[q] != c->lrank)
				continue;
			peer = px_member(c, q, head_for(c, q, c->self));
			px_sched_send(s, x->away[q], n, MPI_BYTE, peer);
			px_sched_recv_all(s, x->back[q], n, peer);
		}
		px_sched_round(s);
		px_sched_call(s, unload, x);
	}
	swap(s, x, &x->down, &x->arrived);
	px_sched_call(s, unpack_all, x);
	px_sched_round(s);
}
