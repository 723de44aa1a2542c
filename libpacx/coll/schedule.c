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
#include "talk.h"
#include "typemap.h"
#include "unlike.h"
#include "wait.h"

struct px_coll_stat px_coll_stat[PX_COLL_COUNT];

enum step_kind { STEP_SEND, STEP_RECV, STEP_NATIVE, STEP_CALL };

/* How the native steps are made: see schedule.h. */
enum native_way { WAY_MESSAGES, WAY_NONBLOCKING, WAY_BLOCKING };

struct step {
	enum step_kind kind;
	int until;    /* it waits for all steps before this one, */
	int after[2]; /* and for these, -1 = none */
	int sub;
	int nth;         /* NATIVE: how many there are before it */
	uint32_t behind; /* NATIVE: duplications called before it on the communicator */
	bool started, done;
	bool exact;             /* RECV: fewer bytes are an error, too */
	uint16_t depth;         /* wide-area messages in sequence up to here */
	struct px_req req;      /* SEND, RECV */
	struct px_call call;    /* NATIVE */
	MPI_Request native;     /* NONBLOCKING */
	struct px_sched *local; /* MESSAGES: its steps */
	int (*fn)(struct px_sched *, void *);
	void *arg;
};

struct temp {
	struct temp *next;
	_Alignas(16) char data[];
};

struct px_sched {
	struct px_comm *c;
	enum px_coll op;
	enum native_way way;
	struct px_req own; /* for blocking calls */
	struct px_req *req;
	struct step *step;
	int nsteps, cap;
	int until;    /* building: the steps added from now on wait for all before this one, */
	int after[2]; /* or, the next one only, for these */
	int sub;
	const struct px_sig *sig; /* px_sched_packed */
	int first;                /* running: the first step that is not done */
	int natives;              /* native steps; running: so many have started */
	bool within;              /* a blocking native call is under way */
	uint32_t seq;
	uint32_t dups; /* native duplications among its steps */
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
		s->after[0] = s->after[1] = -1;
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
	for (int i = 0; i < s->nsteps; i++)
		if (s->step[i].local)
			sched_free(s->step[i].local);
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
	s->until = s->nsteps;
}

void px_sched_after(struct px_sched *s, int a, int b)
{
	s->after[0] = a;
	s->after[1] = b;
}

void px_sched_packed(struct px_sched *s, MPI_Datatype t)
{
	bool matters = px_unlike_any && t != MPI_DATATYPE_NULL;

	s->sig = matters ? px_signature_get(t) : NULL;
	if (matters && !s->sig)
		px_sched_fail(s, MPI_ERR_TYPE,
			"the datatype has basic types that only the MPI of this site knows, and another site "
			"stores data in "
			"another way");
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
	st->native = MPI_REQUEST_NULL;
	st->sub = s->sub;
	st->until = s->after[0] == -1 && s->after[1] == -1 ? s->until : 0;
	memcpy(st->after, s->after, sizeof st->after);
	s->after[0] = s->after[1] = -1;
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
	st->req.sig = s->sig;
	st->req.kind = kind == STEP_SEND ? PX_SEND : PX_RECV;
	return st;
}

/* The number of a step, which px_sched_after takes. */
static int number(const struct px_sched *s, const struct step *st)
{
	return st ? (int)(st - s->step) : -1;
}

int px_sched_send(struct px_sched *s, const void *buf, MPI_Count count, MPI_Datatype t, int dst)
{
	return number(s, message(s, STEP_SEND, buf, count, t, dst));
}

int px_sched_recv(struct px_sched *s, void *buf, MPI_Count count, MPI_Datatype t, int src)
{
	return number(s, message(s, STEP_RECV, buf, count, t, src));
}

int px_sched_recv_all(struct px_sched *s, void *buf, MPI_Count bytes, int src)
{
	struct step *st = message(s, STEP_RECV, buf, bytes, MPI_BYTE, src);

	if (st)
		st->exact = true;
	return number(s, st);
}

int px_sched_native(struct px_sched *s, const struct px_call *call)
{
	struct step *st = add(s, STEP_NATIVE);

	if (st) {
		st->call = *call;
		st->nth = s->natives++;
		st->behind = s->dups;
		s->dups += call->kind == PX_CALL_DUP;
	}
	return number(s, st);
}

int px_sched_call(struct px_sched *s, int (*fn)(struct px_sched *, void *), void *arg)
{
	struct step *st = add(s, STEP_CALL);

	if (st) {
		st->fn = fn;
		st->arg = arg;
	}
	return number(s, st);
}

int px_internal_send(struct px_comm *c, const void *buf, int bytes, int dst, int tag)
{
	return px_talk_send(&c->coll, c->ctx | 1, buf, bytes, dst, tag, PX_FF_COLL);
}

int px_internal_recv(struct px_comm *c, void *buf, int bytes, int src, int tag)
{
	return px_talk_recv(&c->coll, buf, bytes, src, tag);
}

/* Tags: the number of the operation, and below it that of the message or native step. */
#define SUB_BITS 11

static int tag_of(const struct px_sched *s, const struct step *st)
{
	return (int)((s->seq & 0xfffff) << SUB_BITS | (uint32_t)st->sub);
}

static int send_start(struct px_sched *s, struct step *st)
{
	struct px_comm *c = s->c;
	struct px_coll_stat *stat = &px_coll_stat[s->op];
	struct px_traffic before = px_sent;
	struct px_req *r = &st->req;
	int rc;

	r->tag = tag_of(s, st);
	r->depth = (uint16_t)(st->depth + (px_is_local(px_grank(c, r->peer)) ? 0 : 1));
	if (r->depth > stat->depth)
		stat->depth = r->depth;
	rc = px_channel_send(r, c->ctx | 1, px_grank(c, r->peer), PX_FF_COLL);
	stat->messages += px_sent.messages - before.messages;
	stat->bytes += px_sent.bytes - before.bytes;
	return rc;
}

/* A native step as messages of its own, with a number that no px_sched_sub gives. */
static int local_start(struct px_sched *s, struct step *st)
{
	struct px_sched *k = px_sched_new(s->c, s->op);

	if (!k)
		return MPI_ERR_NO_MEM;
	st->local = k;
	k->seq = s->seq;
	px_sched_sub(k, PX_SUBS + st->nth % PX_SUBS);
	px_call_messages(k, &st->call);
	for (int i = 0; i < k->nsteps; i++)
		k->step[i].depth = st->depth;
	return MPI_SUCCESS;
}

static int native_start(struct px_sched *s, struct step *st)
{
	int rc;

	if (s->way == WAY_MESSAGES && st->call.kind != PX_CALL_DUP)
		return local_start(s, st);
	if (s->way != WAY_BLOCKING)
		return px_call_start(&st->call, s->c->native, &st->native);
	s->within = true;
	px_native_begins();
	px_blocking(rc, px_call_block(&st->call, s->c->native));
	s->within = false;
	st->done = true;
	return rc;
}

static void step_start(struct px_sched *s, struct step *st)
{
	int rc = MPI_ERR_INTERN;

	st->started = true;
	switch (st->kind) {
	case STEP_NATIVE:
		rc = native_start(s, st);
		s->natives++;
		break;
	case STEP_CALL:
		rc = st->fn(s, st->arg);
		st->done = true;
		break;
	case STEP_SEND:
		rc = send_start(s, st);
		break;
	case STEP_RECV:
		st->req.tag = tag_of(s, st);
		px_talk_post(&s->c->coll, &st->req);
		rc = MPI_SUCCESS;
		break;
	}
	if (rc != MPI_SUCCESS) {
		step_failed(s, rc, NULL);
		st->done = true;
	}
}

static void deepen(struct step *st, const struct step *before)
{
	if (before->depth > st->depth)
		st->depth = before->depth;
}

/* May st start? Then it also knows its depth. */
static bool ready(const struct px_sched *s, struct step *st)
{
	if (s->first < st->until)
		return false;
	for (int i = 0; i < 2; i++)
		if (st->after[i] >= 0 && !s->step[st->after[i]].done)
			return false;
	for (int i = 0; i < st->until; i++)
		deepen(st, &s->step[i]);
	for (int i = 0; i < 2; i++)
		if (st->after[i] >= 0)
			deepen(st, &s->step[st->after[i]]);
	return true;
}

static bool advance(struct px_sched *s, bool natives);

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

static int local_test(struct step *st)
{
	struct px_sched *k = st->local;

	advance(k, true);
	if (k->first < k->nsteps)
		return MPI_SUCCESS;
	st->done = true;
	for (int i = 0; i < k->nsteps; i++)
		deepen(st, &k->step[i]);
	return k->error;
}

static int message_test(struct step *st)
{
	st->done = px_req_test(&st->req);
	if (!st->done)
		return MPI_SUCCESS;
	if (st->kind == STEP_RECV && st->req.depth > st->depth)
		st->depth = st->req.depth;
	return st->exact && st->req.error == MPI_SUCCESS ? short_of(&st->req) : st->req.error;
}

/* Look whether a step that has started is done. */
static void step_test(struct px_sched *s, struct step *st)
{
	int flag = 1, rc = MPI_SUCCESS;

	if (st->kind != STEP_NATIVE) {
		rc = message_test(st);
	} else if (st->local) {
		rc = local_test(st);
	} else if (st->native != MPI_REQUEST_NULL) {
		rc = px_n.Test(&st->native, &flag, MPI_STATUS_IGNORE);
		st->done = flag || rc != MPI_SUCCESS;
	} else {
		st->done = s->way != WAY_BLOCKING; /* else its call has not returned yet */
	}
	if (rc != MPI_SUCCESS)
		step_failed(s, rc, st->local ? st->local->why : st->req.why);
	if (st->done) {
		free(st->req.why);
		st->req.why = NULL;
	}
}

static void finish(struct px_sched *s)
{
	struct px_req *r = s->req;
	struct px_coll_stat *stat = &px_coll_stat[s->op];

	stat->calls++;
	for (int i = 0; i < s->nsteps; i++)
		if (s->step[i].depth > stat->depth)
			stat->depth = s->step[i].depth;
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

static bool is_dup(const struct step *st)
{
	return st->kind == STEP_NATIVE && st->call.kind == PX_CALL_DUP;
}

/* The vendor's calls start in the order added, which is the same at all members, and behind duplications, which Open MPI goes on
 * with from within other calls; messages of our own need no order. */
static bool has_turn(const struct px_sched *s, const struct step *st, bool natives)
{
	if (st->kind != STEP_NATIVE || (s->way == WAY_MESSAGES && !is_dup(st)))
		return true;
	return natives && !s->within && (is_dup(st) || st->nth == s->natives) &&
	       s->c->dups_done == st->behind;
}

/* One look at all steps, or until a native call has blocked; natives: those of the vendor's may start. */
static bool pass(struct px_sched *s, bool natives)
{
	bool did = false;

	for (int i = s->first; i < s->nsteps; i++) {
		struct step *st = &s->step[i];

		if (st->done)
			continue;
		if (!st->started && has_turn(s, st, natives) && ready(s, st)) {
			step_start(s, st);
			did = true;
		}
		if (st->started && !st->done)
			step_test(s, st);
		did |= st->done;
		s->c->dups_done += st->done && is_dup(st);
		while (s->first < s->nsteps && s->step[s->first].done)
			s->first++;
		if (st->done && st->kind == STEP_NATIVE && s->way == WAY_BLOCKING)
			break;
	}
	return did;
}

/* Go on as far as is possible now; true when something happened. */
static bool advance(struct px_sched *s, bool natives)
{
	bool did = false, more = true;

	while (more) {
		/* Messages leave before a native call blocks. */
		more = pass(s, natives && s->way != WAY_BLOCKING) ||
		       (natives && s->way == WAY_BLOCKING && pass(s, true));
		did |= more;
	}
	return did;
}

/* Go on with s, and end it if it is complete: then it may be gone. */
static bool step_on(struct px_sched *s, bool natives)
{
	bool did = advance(s, natives);

	if (s->first < s->nsteps || s->req->done)
		return did;
	finish(s);
	return true;
}

/* Called whenever this rank makes progress. Native calls that block are left to the caller of the operation. */
static bool look(struct px_req *r)
{
	return step_on(r->sched, r->sched->way != WAY_BLOCKING);
}

static void enqueue(struct px_sched *s, struct px_req *r, enum native_way way)
{
	s->req = r;
	s->way = way;
	s->seq = s->c->seq++;
	s->natives = 0;
	for (int i = 0; i < s->nsteps; i++)
		s->step[i].behind += s->c->dups;
	s->c->dups += s->dups;
	r->kind = PX_COLL;
	r->sched = s;
	r->task = look;
	px_req_set_status(r, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	px_req_need(r);
	px_req_hold_types(r);
	look(r);
}

/* Until s, with its blocking calls, is complete. */
static void drive(struct px_sched *s)
{
	struct px_wait w;

	px_loop_enter(&w);
	while (!s->own.done) {
		bool did = step_on(s, true);

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
	enqueue(s, &s->own, px_hooked ? WAY_BLOCKING : WAY_NONBLOCKING);
	if (px_hooked)
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
	while (c->dups_done != c->dups)
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
	enqueue(s, r, WAY_MESSAGES);
	return MPI_SUCCESS;
}
