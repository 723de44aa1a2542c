/* origin.c: the operations on windows, as their origin starts them. See rma.h.
 *
 * All of them are one kind of thing: perhaps data that goes to the target, perhaps data that comes back, and a layout there.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "basic.h"
#include "bind.h"
#include "datatype.h"
#include "endian.h"
#include "p2p.h"
#include "rma.h"
#include "state.h"
#include "typemap.h"
#include "unlike.h"
#include "wait.h"

/* A buffer of this rank. */
struct side {
	void *buf;
	MPI_Count count;
	MPI_Datatype t;
	uint64_t bytes;
};

struct op {
	struct px_win *w;
	enum px_rma_kind kind;
	MPI_Op op;
	int target;
	MPI_Aint disp;
	MPI_Count count; /* at the target */
	MPI_Datatype t;
	struct side out, in;  /* what goes there, what comes back; bytes = 0: nothing */
	const void *compare;  /* CAS: goes in front of `out` */
	struct px_req *user;  /* its request, or NULL */
	struct px_rma_head h; /* made by check() */
	struct px_typemap flat;
	struct px_run one;        /* for flat, if the layout is but one run */
	const struct px_repr *as; /* the target's machine, if it lays out types in another way */
};

/* MPI error code, not raised. */
static int side_check(struct side *s, bool unlike)
{
	const struct px_type *p;

	if (s->count < 0)
		return MPI_ERR_COUNT;
	p = px_type_get(s->t);
	if (!p || (unlike && !px_signature_get(s->t)))
		return MPI_ERR_TYPE;
	s->bytes = (uint64_t)(s->count * p->size);
	return MPI_SUCCESS;
}

static bool sends(const struct op *o)
{
	return o->kind == PX_RMA_PUT || o->kind == PX_RMA_ACC || o->kind == PX_RMA_CAS ||
	       (o->kind == PX_RMA_GACC && o->op != MPI_NO_OP);
}

static bool returns(const struct op *o)
{
	return o->kind == PX_RMA_GET || o->kind == PX_RMA_GACC || o->kind == PX_RMA_CAS;
}

/* The layout at the target, as it goes into the message. */
static int flatten(struct op *o)
{
	int g = o->target >= 0 ? px_grank(o->w->c, o->target) : px.grank;
	const struct px_typemap *m = px_typemap_get(o->t);
	const struct px_type *p = px_type_get(o->t);
	MPI_Count extent = 0, touched;
	unsigned align;

	if (!m || !p || (m->foreign && px_unlike(g)))
		return MPI_ERR_TYPE;
	o->as = px_unlike_layout(g);
	if (o->as && !(m = px_typemap_there(o->t, o->as)))
		return MPI_ERR_NO_MEM;
	o->flat = *m;
	o->h.count = (uint64_t)o->count;
	o->h.extent = px_typemap_extent(m, o->t);
	if (m->n == 1 && m->run[0].rep == 1)
		px_basic_shape(m->run[0].code, o->as, &extent, &touched, &align);
	if (extent > 0 && m->run[0].offset == 0 &&
		m->run[0].count * extent == o->h.extent) { /* all elements are one run */
		o->one = m->run[0];
		o->one.count *= o->count;
		o->flat.run = &o->one;
		o->h.count = 1;
	}
	o->h.nruns = (uint32_t)m->n;
	return MPI_SUCCESS;
}

static void runs_put(uint8_t *p, const struct px_typemap *m)
{
	for (int i = 0; i < m->n; i++, p += PX_RMA_RUN) {
		px_put32(p, m->run[i].code);
		px_put32(p + 4, 0);
		px_put64(p + 8, (uint64_t)m->run[i].offset);
		px_put64(p + 16, (uint64_t)m->run[i].stride);
		px_put64(p + 24, (uint64_t)m->run[i].count);
		px_put64(p + 32, (uint64_t)m->run[i].rep);
	}
}

/* Sizes of both ends. *nothing: there is nothing to do. MPI error code, not raised. */
static int check(struct op *o, bool *nothing)
{
	const struct px_type *p;
	bool unlike;
	uint64_t there;
	int rc = MPI_SUCCESS;

	if (o->target != MPI_PROC_NULL && (o->target < 0 || o->target >= o->w->c->size))
		return MPI_ERR_RANK;
	if (o->count < 0)
		return MPI_ERR_COUNT;
	p = px_type_get(o->t);
	if (!p)
		return MPI_ERR_TYPE;
	if (o->kind == PX_RMA_CAS && px_basic_floating(o->t))
		return MPI_ERR_TYPE;
	unlike = o->target >= 0 && px_unlike(px_grank(o->w->c, o->target));
	if (sends(o))
		rc = side_check(&o->out, unlike);
	if (rc == MPI_SUCCESS && returns(o))
		rc = side_check(&o->in, unlike);
	if (rc != MPI_SUCCESS)
		return rc;
	o->h.kind = (uint8_t)o->kind;
	o->h.disp = o->disp;
	if (o->kind == PX_RMA_ACC || o->kind == PX_RMA_GACC) {
		o->h.op = (uint8_t)px_op_code(o->op);
		if (o->h.op == 0 || (o->op == MPI_NO_OP && o->kind == PX_RMA_ACC))
			return MPI_ERR_OP;
	}
	there = (uint64_t)(o->count * p->size);
	*nothing = o->target == MPI_PROC_NULL || there == 0 || (sends(o) && o->out.bytes == 0);
	if (sends(o) && o->out.bytes > there)
		return MPI_ERR_TRUNCATE;
	o->h.bytes = sends(o) ? o->out.bytes : there;
	if (returns(o) && !*nothing && o->h.bytes > o->in.bytes)
		return MPI_ERR_TRUNCATE;
	if (o->kind == PX_RMA_CAS)
		o->h.bytes *= 2;
	return flatten(o);
}

/* Is what the layout covers part of the target's window? Of dynamic memory only the target knows. */
static enum px_rma_error in_range(const struct op *o, const uint8_t *runs)
{
	const struct px_rma_peer *p = &o->w->peer[o->target];
	struct px_rma_layout at = { NULL, o->h.count, o->h.extent, o->h.nruns, runs };
	int64_t low, high, from;
	enum px_rma_error e = px_rma_span(&at, o->as, &low, &high);

	if (e != PX_RMA_OK || o->w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return e;
	from = o->h.disp * p->disp_unit;
	return from + low < 0 || from + high > (int64_t)p->size ? PX_RMA_ERANGE : PX_RMA_OK;
}

/* `data` has room for what goes to the target. */
static int data_pack(const struct op *o, uint8_t *data)
{
	uint64_t half = 0;

	if (!sends(o))
		return MPI_SUCCESS;
	if (o->kind == PX_RMA_CAS) {
		half = o->out.bytes;
		px_type_pack(o->compare, 1, o->out.t, data);
	}
	return px_type_pack(o->out.buf, o->out.count, o->out.t, data + half);
}

/* The own memory: done at once. MPI error code, not raised. */
static int at_self(struct op *o, const uint8_t *runs)
{
	struct px_rma_layout at;
	enum px_rma_error e = px_rma_place(o->w, &o->h, runs, &at);
	uint64_t back = o->kind == PX_RMA_CAS ? o->h.bytes / 2 : returns(o) ? o->h.bytes : 0;
	uint8_t *data, *old;
	int rc;

	if (e != PX_RMA_OK)
		return px_rma_code(e);
	data = malloc(o->h.bytes + back + 32);
	if (!data)
		return MPI_ERR_NO_MEM;
	old = data + (o->h.bytes + 15) / 16 * 16;
	rc = data_pack(o, data);
	if (rc == MPI_SUCCESS && o->kind == PX_RMA_CAS)
		px_rma_swap(&at, data, back, old);
	else if (rc == MPI_SUCCESS && returns(o))
		px_rma_gather(&at, old, back);
	if (rc == MPI_SUCCESS && o->kind == PX_RMA_PUT)
		px_rma_scatter(&at, data, o->h.bytes);
	else if (rc == MPI_SUCCESS && (o->kind == PX_RMA_ACC || o->kind == PX_RMA_GACC))
		px_rma_combine(&at, data, o->h.bytes, o->h.op);
	if (rc == MPI_SUCCESS && back > 0)
		rc = px_type_unpack(old, back, o->in.buf, o->in.count, o->in.t);
	free(data);
	if (o->user)
		o->user->done = true;
	return rc;
}

/* An answer will come. */
static int expect(struct op *o)
{
	struct px_rma_get *g = calloc(1, sizeof *g);
	struct px_rma_peer *p = &o->w->peer[o->target];

	if (!g)
		return MPI_ERR_NO_MEM;
	px_req_init(&g->r, o->w->c);
	px_req_args(&g->r, o->in.buf, o->in.count, o->in.t, o->target, PX_RMA_RESPONSES);
	g->r.kind = PX_RECV;
	px_req_hold_types(&g->r);
	g->user = o->user;
	*p->gets_end = g;
	p->gets_end = &g->next;
	p->answers++;
	o->w->gets++;
	return MPI_SUCCESS;
}

/* The message, and what follows it. `mem` has head and runs already, and is taken over. MPI error code, not raised. */
static int at_peer(struct op *o, uint8_t *mem, uint64_t len)
{
	bool big = o->h.flags & PX_RMA_LONG;
	struct px_req *user = returns(o) ? NULL : o->user;
	int rc = MPI_SUCCESS;

	if (!big && sends(o)) {
		rc = data_pack(o, mem + len);
		len += o->h.bytes;
	}
	if (rc == MPI_SUCCESS && returns(o))
		rc = expect(o);
	if (rc != MPI_SUCCESS) {
		free(mem);
		return rc;
	}
	rc = px_rma_send(o->w, o->target, PX_RMA_REQUESTS, mem, len);
	if (rc == MPI_SUCCESS && big)
		rc = px_rma_send_data(
			o->w, o->target, PX_RMA_REQUESTS, o->out.buf, o->out.count, o->out.t, NULL, user);
	else if (user)
		user->done = true;
	return rc == MPI_SUCCESS ? px_rma_count(o->w, o->target) : rc;
}

/* Start the operation. MPI error code, raised. */
static int begin(struct op *o)
{
	bool nothing = false;
	int rc = check(o, &nothing);
	uint64_t len = PX_RMA_HEAD + (uint64_t)o->h.nruns * PX_RMA_RUN;
	enum px_rma_error e;
	uint8_t *mem;

	if (rc != MPI_SUCCESS)
		return px_win_raise(o->w, rc);
	if (nothing) {
		if (o->user)
			o->user->done = true;
		return MPI_SUCCESS;
	}
	rc = px_rma_may_reach(o->w, o->target);
	if (rc != MPI_SUCCESS)
		return rc;
	if (sends(o) && len + o->h.bytes > PX_INLINE_MAX)
		o->h.flags = PX_RMA_LONG;
	mem = malloc(len + (sends(o) && !o->h.flags ? o->h.bytes : 0));
	if (!mem)
		return px_win_raise(o->w, MPI_ERR_NO_MEM);
	px_rma_put_head(mem, &o->h);
	runs_put(mem + PX_RMA_HEAD, &o->flat);
	e = in_range(o, mem + PX_RMA_HEAD);
	if (e != PX_RMA_OK) {
		free(mem);
		return px_win_raise(o->w, px_rma_code(e));
	}
	if (o->target == o->w->c->rank) {
		px_progress(); /* who waits for a change of its own memory must let others make it */
		rc = at_self(o, mem + PX_RMA_HEAD);
		free(mem);
	} else {
		rc = at_peer(o, mem, len);
	}
	return rc == MPI_SUCCESS ? rc : px_win_raise(o->w, rc);
}

/* Whoever carries the operation out says when it is done. */
static bool task(struct px_req *r)
{
	return r->done;
}

/* The same with a request; only within a passive target epoch (MPI standard 12.3.5), which is not checked apart. */
static int begin_with(struct op *o, MPI_Request *req)
{
	struct px_req *r = px_req_new(o->w->c);
	int rc;

	if (!r)
		return px_win_raise(o->w, MPI_ERR_NO_MEM);
	r->kind = PX_TASK;
	r->task = task;
	r->raised = true; /* its errors belong to the window, not to our communicator */
	px_req_set_status(r, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	o->user = r;
	rc = begin(o);
	if (rc == MPI_SUCCESS)
		*req = r->token;
	else
		px_req_release(r);
	return rc;
}

static struct side side_of(const void *buf, MPI_Count count, MPI_Datatype t)
{
	struct side s = { .count = count, .t = t };

	memcpy(&s.buf, &buf, sizeof s.buf); /* what goes out is never written through it */
	return s;
}

#define OP(k, mpi_op, ...)                                                                                   \
	struct op o = { .w = w,                                                                              \
		.kind = k,                                                                                   \
		.op = mpi_op,                                                                                \
		.target = target,                                                                            \
		.disp = disp,                                                                                \
		.count = tcount,                                                                             \
		.t = tt,                                                                                     \
		__VA_ARGS__ }

int px_Put(const void *buf, MPI_Count count, MPI_Datatype t, int target, MPI_Aint disp, MPI_Count tcount,
	MPI_Datatype tt, struct px_win *w)
{
	OP(PX_RMA_PUT, MPI_OP_NULL, .out = side_of(buf, count, t));

	return begin(&o);
}

int px_Rput(const void *buf, MPI_Count count, MPI_Datatype t, int target, MPI_Aint disp, MPI_Count tcount,
	MPI_Datatype tt, struct px_win *w, MPI_Request *req)
{
	OP(PX_RMA_PUT, MPI_OP_NULL, .out = side_of(buf, count, t));

	return begin_with(&o, req);
}

int px_Get(void *buf, MPI_Count count, MPI_Datatype t, int target, MPI_Aint disp, MPI_Count tcount,
	MPI_Datatype tt, struct px_win *w)
{
	OP(PX_RMA_GET, MPI_OP_NULL, .in = side_of(buf, count, t));

	return begin(&o);
}

int px_Rget(void *buf, MPI_Count count, MPI_Datatype t, int target, MPI_Aint disp, MPI_Count tcount,
	MPI_Datatype tt, struct px_win *w, MPI_Request *req)
{
	OP(PX_RMA_GET, MPI_OP_NULL, .in = side_of(buf, count, t));

	return begin_with(&o, req);
}

int px_Accumulate(const void *buf, MPI_Count count, MPI_Datatype t, int target, MPI_Aint disp,
	MPI_Count tcount, MPI_Datatype tt, MPI_Op op, struct px_win *w)
{
	OP(PX_RMA_ACC, op, .out = side_of(buf, count, t));

	return begin(&o);
}

int px_Raccumulate(const void *buf, MPI_Count count, MPI_Datatype t, int target, MPI_Aint disp,
	MPI_Count tcount, MPI_Datatype tt, MPI_Op op, struct px_win *w, MPI_Request *req)
{
	OP(PX_RMA_ACC, op, .out = side_of(buf, count, t));

	return begin_with(&o, req);
}

int px_Get_accumulate(const void *buf, MPI_Count count, MPI_Datatype t, void *result, MPI_Count rcount,
	MPI_Datatype rt, int target, MPI_Aint disp, MPI_Count tcount, MPI_Datatype tt, MPI_Op op,
	struct px_win *w)
{
	OP(PX_RMA_GACC, op, .out = side_of(buf, count, t), .in = side_of(result, rcount, rt));

	return begin(&o);
}

int px_Rget_accumulate(const void *buf, MPI_Count count, MPI_Datatype t, void *result, MPI_Count rcount,
	MPI_Datatype rt, int target, MPI_Aint disp, MPI_Count tcount, MPI_Datatype tt, MPI_Op op,
	struct px_win *w, MPI_Request *req)
{
	OP(PX_RMA_GACC, op, .out = side_of(buf, count, t), .in = side_of(result, rcount, rt));

	return begin_with(&o, req);
}

int px_Fetch_and_op(const void *buf, void *result, MPI_Datatype tt, int target, MPI_Aint disp, MPI_Op op,
	struct px_win *w)
{
	const MPI_Count tcount = 1;
	OP(PX_RMA_GACC, op, .out = side_of(buf, 1, tt), .in = side_of(result, 1, tt));

	return begin(&o);
}

int px_Compare_and_swap(const void *buf, const void *compare, void *result, MPI_Datatype tt, int target,
	MPI_Aint disp, struct px_win *w)
{
	const MPI_Count tcount = 1;
	OP(PX_RMA_CAS, MPI_OP_NULL, .out = side_of(buf, 1, tt), .in = side_of(result, 1, tt),
		.compare = compare);

	return begin(&o);
}
