/* alltoall.c: alltoall, alltoallv, alltoallw: one native alltoallw among the local members, one message to and
 * from each remote rank (flat is wide-area optimal for the all-to-all exchange in latency and bytes); short alltoall: alltoall_site.c.
 */
#include <limits.h>

#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "datatype.h"
#include "model.h"
#include "unlike.h"

/* One side of the exchange: block r holds count[r] elements of type[r] at byte offset displ[r]. */
struct side {
	MPI_Count *count;
	MPI_Aint *displ;
	MPI_Datatype *type;
};

static bool side_new(struct px_sched *s, struct side *d)
{
	size_t n = (size_t)px_sched_comm(s)->size;

	d->count = px_sched_temp(s, n * sizeof *d->count);
	d->displ = px_sched_temp(s, n * sizeof *d->displ);
	d->type = px_sched_temp(s, n * sizeof *d->type);
	return px_sched_ok(s);
}

/* For the native call: those of the local members. */
struct local {
	MPI_Count *counts;
	MPI_Aint *displs;
	MPI_Datatype *types;
	char *base; /* lowest block, so that displacements are small */
};

static void local_new(struct px_sched *s, const struct side *d, char *buf, struct local *l)
{
	struct px_comm *c = px_sched_comm(s);
	MPI_Aint low = 0;

	l->counts = px_sched_temp(s, (size_t)c->nlocal * sizeof *l->counts);
	l->displs = px_sched_temp(s, (size_t)c->nlocal * sizeof *l->displs);
	l->types = px_sched_temp(s, (size_t)c->nlocal * sizeof *l->types);
	if (!px_sched_ok(s))
		return;
	for (int i = 0; i < c->nlocal; i++)
		if (i == 0 || d->displ[px_rank_of_local(c, i)] < low)
			low = d->displ[px_rank_of_local(c, i)];
	l->base = buf + low;
	for (int i = 0; i < c->nlocal; i++) {
		int r = px_rank_of_local(c, i);

		l->counts[i] = d->count[r];
		l->displs[i] = d->displ[r] - low;
		l->types[i] = d->type[r];
	}
}

/* MPI_IN_PLACE: what is sent is what lies in the receive buffer when the operation starts. */
struct aside {
	const struct side *in;
	char *buf;
	char *packed;
	const struct side *out;
};

static int pack_aside(struct px_sched *s, void *arg)
{
	struct aside *a = arg;
	int rc = MPI_SUCCESS;

	for (int r = 0; r < px_sched_comm(s)->size && rc == MPI_SUCCESS; r++)
		rc = px_type_pack(a->buf + a->in->displ[r], a->in->count[r], a->in->type[r],
			a->packed + a->out->displ[r]);
	return rc;
}

static char *put_aside(struct px_sched *s, const struct side *in, char *buf, struct side *out)
{
	struct aside *a = px_sched_temp(s, sizeof *a);
	struct side *keep = px_sched_temp(s, 2 * sizeof *keep);
	MPI_Aint at = 0;

	if (!a || !keep || !side_new(s, out))
		return NULL;
	for (int r = 0; r < px_sched_comm(s)->size; r++) {
		const struct px_type *p = px_type_get(in->type[r]);

		out->count[r] = in->count[r] * p->size;
		out->displ[r] = at;
		out->type[r] = MPI_BYTE;
		at += (MPI_Aint)out->count[r];
	}
	keep[0] = *in;
	keep[1] = *out;
	*a = (struct aside){ &keep[0], buf, px_sched_temp(s, (size_t)at), &keep[1] };
	px_sched_call(s, pack_aside, a);
	px_sched_round(s);
	return a->packed;
}

static void exchange(
	struct px_sched *s, const void *in, const struct side *send, void *out, const struct side *recv)
{
	struct px_comm *c = px_sched_comm(s);
	struct side packed;
	struct local l, k;
	char *from;

	if (in == MPI_IN_PLACE) {
		from = put_aside(s, recv, out, &packed);
		if (!from)
			return;
		send = &packed;
	} else {
		from = (char *)(uintptr_t)in;
	}
	for (int i = 1; i < c->size; i++) {
		/* Start behind this rank, so that not all begin with rank 0. */
		int r = (c->rank + i) % c->size, q = (c->rank - i + c->size) % c->size;

		if (px_lrank(c, r) < 0) {
			px_sched_packed(s, in == MPI_IN_PLACE ? recv->type[r] : MPI_DATATYPE_NULL);
			px_sched_send(s, from + send->displ[r], send->count[r], send->type[r], r);
			px_sched_packed(s, MPI_DATATYPE_NULL);
		}
		if (px_lrank(c, q) < 0)
			px_sched_recv(s, (char *)out + recv->displ[q], recv->count[q], recv->type[q], q);
	}
	local_new(s, send, from, &l);
	local_new(s, recv, out, &k);
	if (!px_sched_ok(s))
		return;
	px_sched_native(s, &(struct px_call){ .kind = PX_CALL_ALLTOALLW,
				   .s = l.base,
				   .scounts = l.counts,
				   .sdispls = l.displs,
				   .stypes = l.types,
				   .r = k.base,
				   .rcounts = k.counts,
				   .rdispls = k.displs,
				   .rtypes = k.types });
}

/* The three forms of a side; true when all arguments are valid. */
static bool regular(struct px_sched *s, struct side *d, MPI_Count count, MPI_Datatype t)
{
	const struct px_type *p = px_type_get(t);

	if (!p || count < 0)
		px_sched_fail_arg(s, -1, count);
	else if (side_new(s, d))
		for (int r = 0; r < px_sched_comm(s)->size; r++) {
			d->count[r] = count;
			d->displ[r] = (MPI_Aint)(count * r * p->extent);
			d->type[r] = t;
		}
	return px_sched_ok(s);
}

static bool vector(
	struct px_sched *s, struct side *d, const MPI_Count counts[], const MPI_Aint displs[], MPI_Datatype t)
{
	const struct px_type *p = px_type_get(t);

	if (!p)
		px_sched_fail(s, MPI_ERR_TYPE, "a datatype is null or not valid");
	else if (side_new(s, d))
		for (int r = 0; r < px_sched_comm(s)->size; r++) {
			if (counts[r] < 0)
				px_sched_fail_arg(s, r, counts[r]);
			d->count[r] = counts[r];
			d->displ[r] = (MPI_Aint)(displs[r] * p->extent);
			d->type[r] = t;
		}
	return px_sched_ok(s);
}

static bool general(struct px_sched *s, struct side *d, const MPI_Count counts[], const MPI_Aint displs[],
	const MPI_Datatype types[])
{
	if (side_new(s, d))
		for (int r = 0; r < px_sched_comm(s)->size; r++) {
			if (counts[r] < 0 || !px_type_get(types[r]))
				px_sched_fail_arg(s, r, counts[r]);
			d->count[r] = counts[r];
			d->displ[r] = displs[r];
			d->type[r] = types[r];
		}
	return px_sched_ok(s);
}

/* The vendor's condition is the same arrays of counts, and of types, whatever the displacements; here it is the same blocks. */
static bool apart(
	struct px_sched *s, const void *in, const struct side *send, const void *out, const struct side *recv)
{
	struct px_comm *c = px_sched_comm(s);
	bool some = false, alike = in == out;

	for (int r = 0; alike && r < c->size; r++) {
		alike = send->count[r] == recv->count[r] && send->displ[r] == recv->displ[r] &&
			send->type[r] == recv->type[r];
		some |= send->count[r] > 0;
	}
	if (alike && some && px_coll_aliased(in, out))
		px_sched_fail(s, MPI_ERR_BUFFER, "%s", px_coll_alias);
	return px_sched_ok(s);
}

/* All ranks have blocks of the same bytes, and so choose alike. In alltoallv and alltoallw nobody knows those of others. */
static bool by_site(struct px_comm *c, MPI_Count block)
{
	int largest = 0, next = 0;

	for (int p = 0; p < c->nparts; p++) {
		int n = px_part_count(c, p);

		next = n > largest ? largest : n > next ? n : next;
		largest = n > largest ? n : largest;
	}
	if (px_unlike_any || block * c->size > INT_MAX) /* it takes several copies */
		return false;
	return px_model_pick(c, PX_COLL_ALLTOALL, block * largest * next, largest * next) == PX_ALG_LEADER;
}

static struct px_sched *build(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_ALLTOALL);
	struct side send = { 0 }, recv;

	if (!s || !(in == MPI_IN_PLACE || regular(s, &send, count, t)) || !regular(s, &recv, rcount, rt) ||
		!apart(s, in, &send, out, &recv))
		return s;
	if (by_site(c, rcount * px_type_get(rt)->size))
		px_coll_alltoall_by_site(s, in, count, t, out, rcount, rt);
	else
		exchange(s, in, &send, out, &recv);
	return s;
}

static struct px_sched *build_v(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[],
	MPI_Datatype t, void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[], MPI_Datatype rt,
	struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_ALLTOALLV);
	struct side send = { 0 }, recv;

	if (s && (in == MPI_IN_PLACE || vector(s, &send, scounts, sdispls, t)) &&
		vector(s, &recv, rcounts, rdispls, rt) && apart(s, in, &send, out, &recv))
		exchange(s, in, &send, out, &recv);
	return s;
}

static struct px_sched *build_w(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[],
	const MPI_Datatype st[], void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[],
	const MPI_Datatype rt[], struct px_comm *c)
{
	struct px_sched *s = px_sched_new(c, PX_COLL_ALLTOALLW);
	struct side send = { 0 }, recv;

	if (s && (in == MPI_IN_PLACE || general(s, &send, scounts, sdispls, st)) &&
		general(s, &recv, rcounts, rdispls, rt) && apart(s, in, &send, out, &recv))
		exchange(s, in, &send, out, &recv);
	return s;
}

int px_Alltoall(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount, MPI_Datatype rt,
	struct px_comm *c)
{
	return px_sched_run(build(in, count, t, out, rcount, rt, c), c);
}

int px_Ialltoall(const void *in, MPI_Count count, MPI_Datatype t, void *out, MPI_Count rcount,
	MPI_Datatype rt, struct px_comm *c, MPI_Request *req)
{
	return px_sched_start(build(in, count, t, out, rcount, rt, c), c, req);
}

int px_Alltoallv(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[], MPI_Datatype t,
	void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[], MPI_Datatype rt, struct px_comm *c)
{
	return px_sched_run(build_v(in, scounts, sdispls, t, out, rcounts, rdispls, rt, c), c);
}

int px_Ialltoallv(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[], MPI_Datatype t,
	void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[], MPI_Datatype rt, struct px_comm *c,
	MPI_Request *req)
{
	return px_sched_start(build_v(in, scounts, sdispls, t, out, rcounts, rdispls, rt, c), c, req);
}

int px_Alltoallw(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[], const MPI_Datatype st[],
	void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[], const MPI_Datatype rt[],
	struct px_comm *c)
{
	return px_sched_run(build_w(in, scounts, sdispls, st, out, rcounts, rdispls, rt, c), c);
}

int px_Ialltoallw(const void *in, const MPI_Count scounts[], const MPI_Aint sdispls[],
	const MPI_Datatype st[], void *out, const MPI_Count rcounts[], const MPI_Aint rdispls[],
	const MPI_Datatype rt[], struct px_comm *c, MPI_Request *req)
{
	return px_sched_start(build_w(in, scounts, sdispls, st, out, rcounts, rdispls, rt, c), c, req);
}
