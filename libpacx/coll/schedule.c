/* schedule.c: see schedule.h. */
#include "schedule.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "channel.h"
#include "comm_find.h"
#include "datatype.h"
#include "lock.h"
#include "native.h"
#include "p2p.h"
#include "raise.h"
#include "request.h"
#include "state.h"
#include "wait.h"

struct px_coll_stat px_coll_stat[PX_COLL_COUNT];

enum step_kind { STEP_SEND, STEP_RECV, STEP_NATIVE, STEP_CALL };

struct step {
	enum step_kind kind;
	int round;
	int sub;
	bool done;
	bool exact;          /* RECV: fewer bytes are an error, too */
	struct px_req req;   /* SEND, RECV */
	struct px_call call; /* NATIVE */
	MPI_Request native;
	int (*fn)(struct px_sched *, void *);
	void *arg;
};

struct temp {
	struct temp *next;
	_Alignas(16) char data[];
};

struct px_sched {
	struct px_sched *next; /* on the same communicator */
	struct px_comm *c;
	enum px_coll op;
	struct px_req own; /* for blocking calls */
	struct px_req *req;
	struct step *step;
	int nsteps, cap;
	int rounds; /* number of the round being built */
	int sub;
	int round, first; /* running: round and its first step */
	uint32_t seq;
	uint16_t depth;
	bool started;
	bool blocks; /* its native steps block; only its caller drives it */
	int error;
	char why[200]; /* text of the error */
	struct temp *temps;
};

struct px_sched *px_sched_new(struct px_comm *c, enum px_coll op)
{
	struct px_sched *s = calloc(1, sizeof *s);

	if (s) {
		s->c = c;
		s->op = op;
	}
	return s;
}

static void sched_free(struct px_sched *s)
{
	while (s->temps) {
		struct temp *t = s->temps;

		s->temps = t->next;
		free(t);
	}
	free(s->step);
	free(s);
}

void px_sched_fail(struct px_sched *s, int code, const char *fmt, ...)
{
	va_list ap;

	if (s->error != MPI_SUCCESS)
		return;
	s->error = code;
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof s->why, fmt, ap);
	va_end(ap);
}

void px_sched_fail_arg(struct px_sched *s, int r, MPI_Count count)
{
	char where[40] = "";

	if (r >= 0)
		snprintf(where, sizeof where, " of the block of rank %d", r);
	if (count < 0)
		px_sched_fail(s, MPI_ERR_COUNT, "the count%s is %lld", where, (long long)count);
	else
		px_sched_fail(s, MPI_ERR_TYPE, "the datatype%s is null or not valid", where);
}

/* A step has failed with code; why: the text, or NULL for the vendor's. */
static void step_failed(struct px_sched *s, int code, const char *why)
{
	char vendors[MPI_MAX_ERROR_STRING] = "";
	int len;

	if (!why)
		px_n.Error_string(code, vendors, &len);
	px_sched_fail(s, code, "%s", why ? why : vendors);
}

bool px_sched_ok(const struct px_sched *s)
{
	return s->error == MPI_SUCCESS;
}

struct px_comm *px_sched_comm(const struct px_sched *s)
{
	return s->c;
}

void px_sched_round(struct px_sched *s)
{
	s->rounds++;
}

void px_sched_sub(struct px_sched *s, int sub)
{
	s->sub = sub;
}

void *px_sched_temp(struct px_sched *s, size_t bytes)
{
	struct temp *t = calloc(1, sizeof *t + bytes + 1);

	if (!t) {
		px_sched_fail(s, MPI_ERR_NO_MEM, "out of memory");
		return NULL;
	}
	t->next = s->temps;
	s->temps = t;
	return t->data;
}

void *px_sched_temp_typed(struct px_sched *s, MPI_Count count, MPI_Datatype t)
{
	const struct px_type *p = px_type_get(t);
	MPI_Count low, high;
	char *base;

	if (!p) {
		px_sched_fail(s, MPI_ERR_TYPE, "a datatype is null or not valid");
		return NULL;
	}
	/* The last element may lie below the first when the extent is negative. */
	low = p->true_lb + (count > 0 && p->extent < 0 ? (count - 1) * p->extent : 0);
	high = p->true_lb + p->true_extent + (count > 0 && p->extent > 0 ? (count - 1) * p->extent : 0);
	base = px_sched_temp(s, (size_t)(high - low));
	return base ? base - low : NULL;
}

static struct step *add(struct px_sched *s, enum step_kind kind)
{
	struct step *st;

	if (s->nsteps == s->cap) {
		int cap = s->cap ? 2 * s->cap : 8;
		struct step *more = realloc(s->step, (size_t)cap * sizeof *more);

		if (!more) {
			px_sched_fail(s, MPI_ERR_NO_MEM, "out of memory");
			return NULL;
		}
		s->step = more;
		s->cap = cap;
	}
	st = &s->step[s->nsteps++];
	memset(st, 0, sizeof *st);
	st->kind = kind;
	st->round = s->rounds;
	st->sub = s->sub;
	px_req_init(&st->req, s->c);
	return st;
}

static struct step *message(
	struct px_sched *s, enum step_kind kind, const void *buf, MPI_Count count, MPI_Datatype t, int peer)
{
	struct step *st = add(s, kind);

	if (!st)
		return NULL;
	px_req_args(&st->req, buf, count, t, peer, 0);
	st->req.kind = kind == STEP_SEND ? PX_SEND : PX_RECV;
	return st;
}

void px_sched_send(struct px_sched *s, const void *buf, MPI_Count count, MPI_Datatype t, int dst)
{
	message(s, STEP_SEND, buf, count, t, dst);
}

void px_sched_recv(struct px_sched *s, void *buf, MPI_Count count, MPI_Datatype t, int src)
{
	message(s, STEP_RECV, buf, count, t, src);
}

void px_sched_recv_all(struct px_sched *s, void *buf, MPI_Count bytes, int src)
{
	struct step *st = message(s, STEP_RECV, buf, bytes, MPI_BYTE, src);

	if (st)
		st->exact = true;
}

void px_sched_native(struct px_sched *s, const struct px_call *call)
{
	struct step *st = add(s, STEP_NATIVE);

	if (st)
		st->call = *call;
}

void px_sched_call(struct px_sched *s, int (*fn)(struct px_sched *, void *), void *arg)
{
	struct step *st = add(s, STEP_CALL);

	if (st) {
		st->fn = fn;
		st->arg = arg;
	}
}

static int native_start(const struct px_call *k, MPI_Comm n, MPI_Request *req)
{
	switch (k->kind) {
	case PX_CALL_BARRIER:
		return px_n.Ibarrier(n, req);
	case PX_CALL_BCAST:
		return PX_N(Ibcast, k->r, k->count, k->type, k->root, n, req);
	case PX_CALL_REDUCE:
#ifdef PX_HAVE_Ireduce_c
		return px_n.Ireduce_c(k->s, k->r, k->count, k->type, k->op, k->root, n, req);
#else
		return px_n.Ireduce(k->s, k->r, (int)k->count, k->type, k->op, k->root, n, req);
#endif
	case PX_CALL_SCAN:
#ifdef PX_HAVE_Iscan_c
		return px_n.Iscan_c(k->s, k->r, k->count, k->type, k->op, n, req);
#else
		return px_n.Iscan(k->s, k->r, (int)k->count, k->type, k->op, n, req);
#endif
	case PX_CALL_EXSCAN:
#ifdef PX_HAVE_Iexscan_c
		return px_n.Iexscan_c(k->s, k->r, k->count, k->type, k->op, n, req);
#else
		return px_n.Iexscan(k->s, k->r, (int)k->count, k->type, k->op, n, req);
#endif
	case PX_CALL_GATHERV:
		return px_n.Igatherv(k->s, (int)k->count, k->type, k->r, k->rcounts, k->rdispls, k->rtype,
			k->root, n, req);
	case PX_CALL_SCATTERV:
		return px_n.Iscatterv(k->s, k->scounts, k->sdispls, k->type, k->r, (int)k->rcount, k->rtype,
			k->root, n, req);
	case PX_CALL_ALLTOALLW:
		return px_n.Ialltoallw(k->s, k->scounts, k->sdispls, k->stypes, k->r, k->rcounts, k->rdispls,
			k->rtypes, n, req);
	case PX_CALL_DUP:
		return px_n.Comm_idup(k->of ? k->of : n, k->newcomm, req);
	}
	return MPI_ERR_INTERN;
}

/* The same, blocking. */
static int native_block(const struct px_call *k, MPI_Comm n)
{
	switch (k->kind) {
	case PX_CALL_BARRIER:
		return px_n.Barrier(n);
	case PX_CALL_BCAST:
		return PX_N(Bcast, k->r, k->count, k->type, k->root, n);
	case PX_CALL_REDUCE:
#ifdef PX_HAVE_Reduce_c
		return px_n.Reduce_c(k->s, k->r, k->count, k->type, k->op, k->root, n);
#else
		return px_n.Reduce(k->s, k->r, (int)k->count, k->type, k->op, k->root, n);
#endif
	case PX_CALL_SCAN:
#ifdef PX_HAVE_Scan_c
		return px_n.Scan_c(k->s, k->r, k->count, k->type, k->op, n);
#else
		return px_n.Scan(k->s, k->r, (int)k->count, k->type, k->op, n);
#endif
	case PX_CALL_EXSCAN:
#ifdef PX_HAVE_Exscan_c
		return px_n.Exscan_c(k->s, k->r, k->count, k->type, k->op, n);
#else
		return px_n.Exscan(k->s, k->r, (int)k->count, k->type, k->op, n);
#endif
	case PX_CALL_GATHERV:
		return px_n.Gatherv(
			k->s, (int)k->count, k->type, k->r, k->rcounts, k->rdispls, k->rtype, k->root, n);
	case PX_CALL_SCATTERV:
		return px_n.Scatterv(
			k->s, k->scounts, k->sdispls, k->type, k->r, (int)k->rcount, k->rtype, k->root, n);
	case PX_CALL_ALLTOALLW:
		return px_n.Alltoallw(
			k->s, k->scounts, k->sdispls, k->stypes, k->r, k->rcounts, k->rdispls, k->rtypes, n);
	case PX_CALL_DUP:
		return px_n.Comm_dup(k->of ? k->of : n, k->newcomm);
	}
	return MPI_ERR_INTERN;
}

/* Post a receive in the collective context. */
static void internal_post(struct px_comm *c, struct px_req *r)
{
	struct px_msg *u = px_match_find(&c->coll, r->peer, r->tag, true);

	if (u) {
		px_channel_take(r, u);
	} else {
		px_match_post(&c->coll, r);
		px_duty_add(1);
	}
}

static void internal_req(
	struct px_req *r, struct px_comm *c, enum px_kind kind, const void *buf, int bytes, int peer, int tag)
{
	px_req_init(r, c);
	px_req_args(r, buf, bytes, MPI_BYTE, peer, tag);
	r->kind = kind;
}

int px_internal_send(struct px_comm *c, const void *buf, int bytes, int dst, int tag)
{
	struct px_req r;
	int rc;

	internal_req(&r, c, PX_SEND, buf, bytes, dst, tag);
	rc = px_channel_send(&r, c->ctx | 1, c->grank[dst], PX_FF_COLL);
	if (rc == MPI_SUCCESS)
		rc = px_req_wait(&r);
	free(r.why);
	return rc;
}

int px_internal_recv(struct px_comm *c, void *buf, int bytes, int src, int tag)
{
	struct px_req r;
	int rc;

	internal_req(&r, c, PX_RECV, buf, bytes, src, tag);
	internal_post(c, &r);
	rc = px_req_wait(&r);
	free(r.why);
	return rc;
}

static int step_start(struct px_sched *s, struct step *st)
{
	struct px_comm *c = s->c;
	struct px_req *r = &st->req;
	struct px_traffic before = px_sent;
	int rc;

	switch (st->kind) {
	case STEP_NATIVE:
		if (s->blocks)
			return MPI_SUCCESS; /* round_block */
		st->native = MPI_REQUEST_NULL;
		return native_start(&st->call, c->native, &st->native);
	case STEP_CALL:
		st->done = true;
		return st->fn(s, st->arg);
	case STEP_SEND:
		r->tag = (int)((s->seq & 0xffffff) << 7 | (uint32_t)st->sub);
		r->depth = (uint16_t)(s->depth + (px_is_local(c->grank[r->peer]) ? 0 : 1));
		if (r->depth > px_coll_stat[s->op].depth)
			px_coll_stat[s->op].depth = r->depth;
		rc = px_channel_send(r, c->ctx | 1, c->grank[r->peer], PX_FF_COLL);
		px_coll_stat[s->op].messages += px_sent.messages - before.messages;
		px_coll_stat[s->op].bytes += px_sent.bytes - before.bytes;
		return rc;
	case STEP_RECV:
		r->tag = (int)((s->seq & 0xffffff) << 7 | (uint32_t)st->sub);
		internal_post(c, r);
		return MPI_SUCCESS;
	}
	return MPI_ERR_INTERN;
}

static void round_start(struct px_sched *s)
{
	for (int i = s->first; i < s->nsteps && s->step[i].round == s->round; i++) {
		int rc = step_start(s, &s->step[i]);

		if (rc != MPI_SUCCESS) {
			step_failed(s, rc, NULL);
			s->step[i].done = true;
		}
	}
}

/* The native steps of the round, one after the other, while the messages of the round travel. */
static void round_block(struct px_sched *s)
{
	for (int i = s->first; i < s->nsteps && s->step[i].round == s->round; i++) {
		struct step *st = &s->step[i];
		int rc;

		if (st->kind != STEP_NATIVE || st->done)
			continue;
		px_native_begins();
		px_blocking(rc, native_block(&st->call, s->c->native));
		st->done = true;
		if (rc != MPI_SUCCESS)
			step_failed(s, rc, NULL);
	}
}

/* A receive that wants all its bytes has got fewer: MPI_ERR_TRUNCATE, with the text in its request. */
static int short_of(struct px_req *r)
{
	MPI_Count got = 0;

	px_n.Get_elements_x(&r->status, MPI_BYTE, &got);
	if (got == r->count)
		return MPI_SUCCESS;
	r->why = px_text_truncated(
		r->c, r->peer, 0, (unsigned long long)got, (unsigned long long)r->count, true);
	return MPI_ERR_TRUNCATE;
}

static bool step_test(struct px_sched *s, struct step *st)
{
	int flag = 1, rc = MPI_SUCCESS;

	if (st->done)
		return true;
	if (st->kind == STEP_NATIVE) {
		rc = px_n.Test(&st->native, &flag, MPI_STATUS_IGNORE);
		st->done = flag || rc != MPI_SUCCESS;
	} else {
		st->done = px_req_test(&st->req);
		rc = st->done ? st->req.error : MPI_SUCCESS;
		if (st->done && st->exact && rc == MPI_SUCCESS)
			rc = short_of(&st->req);
		if (st->done && st->kind == STEP_RECV && st->req.depth > s->depth)
			s->depth = st->req.depth;
	}
	if (rc != MPI_SUCCESS)
		step_failed(s, rc, st->req.why);
	if (st->done) {
		free(st->req.why);
		st->req.why = NULL;
	}
	return st->done;
}

static void finish(struct px_sched *s)
{
	struct px_comm *c = s->c;
	struct px_req *r = s->req;
	struct px_coll_stat *stat = &px_coll_stat[s->op];

	stat->calls++;
	if (s->depth > stat->depth)
		stat->depth = s->depth;
	c->first = s->next;
	if (!c->first)
		c->last = NULL;
	r->error = s->error;
	if (s->error != MPI_SUCCESS)
		r->why = px_text("%s", s->why);
	r->done = true;
	px_req_rest(r);
	if (r != &s->own) {
		r->sched = NULL;
		sched_free(s);
	}
}

static bool advance(struct px_sched *s)
{
	bool did = false;
	int i;

	if (s->c->first != s)
		return false;
	if (!s->started) {
		s->started = did = true;
		s->seq = s->c->seq++;
		s->round = 0;
		round_start(s);
	}
	for (;;) {
		bool all = true;

		if (s->blocks)
			round_block(s);
		for (i = s->first; i < s->nsteps && s->step[i].round == s->round; i++)
			all &= step_test(s, &s->step[i]);
		if (!all)
			return did;
		did = true;
		s->first = i;
		if (i == s->nsteps) {
			finish(s);
			return true;
		}
		s->round = s->step[i].round;
		round_start(s);
	}
}

/* Look once at the schedule of r; true when something happened. Those with blocking steps are driven by their callers. */
static bool look(struct px_req *r)
{
	return !r->sched->blocks && advance(r->sched);
}

static void enqueue(struct px_sched *s, struct px_req *r)
{
	struct px_comm *c = s->c;

	s->req = r;
	r->kind = PX_COLL;
	r->sched = s;
	r->task = look;
	px_req_set_status(r, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	if (c->last)
		c->last->next = s;
	else
		c->first = s;
	c->last = s;
	px_req_need(r);
	px_req_hold_types(r);
	look(r);
}

/* Until s is complete; the collectives before it on its communicator go on by themselves. */
static void drive(struct px_sched *s)
{
	struct px_wait w;

	px_loop_enter(&w);
	while (!s->own.done) {
		bool did = advance(s);

		if (!s->own.done)
			px_relax(&w, px_progress() || did);
	}
	px_loop_leave();
}

int px_sched_run(struct px_sched *s, struct px_comm *c)
{
	int rc;

	if (!s)
		return px_raise_memory(c);
	if (!px_sched_ok(s)) {
		rc = px_raise_as(c, s->error, s->why);
		sched_free(s);
		return rc;
	}
	px_req_init(&s->own, c);
	s->blocks = px_hooked;
	enqueue(s, &s->own);
	if (s->blocks)
		drive(s);
	rc = px_req_wait(&s->own);
	free(s->own.why);
	if (rc != MPI_SUCCESS)
		px_raise_as(c, rc, s->why);
	sched_free(s);
	return rc;
}

int px_comm_turn(struct px_comm *c)
{
	struct px_wait w;

	px_loop_enter(&w);
	while (c->first)
		px_relax(&w, px_progress());
	px_loop_leave();
	return px_must_meet() ? px_meet(c->native) : MPI_SUCCESS;
}

int px_sched_start(struct px_sched *s, struct px_comm *c, MPI_Request *req)
{
	struct px_req *r = s && px_sched_ok(s) ? px_req_new(c) : NULL;
	int rc;

	if (!r) {
		rc = s && !px_sched_ok(s) ? px_raise_as(c, s->error, s->why) : px_raise_memory(c);
		if (s)
			sched_free(s);
		return rc;
	}
	*req = r->token;
	enqueue(s, r);
	return MPI_SUCCESS;
}
