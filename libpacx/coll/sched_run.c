/* sched_run.c: running a schedule: each step starts when those before it are done; messages in the collective context; the counters. */
#include <stdint.h>
#include <stdlib.h>

#include "bell.h"
#include "bind.h"
#include "channel.h"
#include "comm_find.h"
#include "datatype.h"
#include "envelope.h"
#include "hint.h"
#include "lock.h"
#include "native.h"
#include "p2p.h"
#include "raise.h"
#include "request.h"
#include "sched_steps.h"
#include "state.h"
#include "talk.h"
#include "wait.h"

struct px_coll_stat px_coll_stat[PX_COLL_COUNT];

/* A step has failed with code; why: the text, or NULL for the vendor's. */
static void step_failed(struct px_sched *s, int code, const char *why)
{
	char vendors[MPI_MAX_ERROR_STRING] = "";
	int len;

	if (!why)
		px_n.Error_string(code, vendors, &len);
	px_sched_fail(s, code, "%s", why ? why : vendors);
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
static int tag_of(const struct px_sched *s, const struct px_step *st)
{
	return (int)((s->seq & 0xfffff) << PX_COLL_STEP_BITS | (uint32_t)st->sub);
}

/* Is a broadcast of the vendor's with other lengths at some ranks an error at those? To Open MPI it is none, and MPICH 5.0.2 may wait for ever. */
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 50000000
#define CHECKED true
#else
#define CHECKED false
#endif

/* What is passed on of a broadcast that has not come as expected: one byte less, which tells the others, too, by their vendor's own check or by
 * ours. A long one goes as it is: with another length, ranks of the vendor's may choose other ways of moving it, and wait for one another. */
static void spoil(struct px_sched *s, void **buf, MPI_Count *count, MPI_Datatype *t)
{
	MPI_Count bytes = *count * px_type_get(*t)->size;
	void *temp = s->error != MPI_SUCCESS && bytes >= 2 && bytes <= 8192 ? px_sched_temp(s, (size_t)bytes)
									    : NULL;

	if (!temp)
		return;
	*buf = temp;
	*count = bytes - 1;
	*t = MPI_BYTE;
}

static int send_start(struct px_sched *s, struct px_step *st)
{
	struct px_comm *c = s->c;
	struct px_coll_stat *stat = &px_coll_stat[s->op];
	struct px_traffic before = px_sent;
	struct px_req *r = &st->req;
	int rc;

	if (st->exact)
		spoil(s, &r->buf, &r->count, &r->type);
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
static int local_start(struct px_sched *s, struct px_step *st)
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

/* What has been packed leaves: messages of a look at a schedule that go to the same daemon, in one. */
static void uncork(void)
{
	if (px_outbox_uncork() != MPI_SUCCESS)
		px_channel_abort(1, "a native send failed");
}

/* No native call, but messages: what the vendor's call cannot take. MPICH 4.0.2 fails in Ibcast of more bytes than an int counts, whatever the elements;
 * all members know how many they are. */
static bool beyond_vendor(const struct px_sched *s, const struct px_call *k)
{
	return k->large || (k->kind == PX_CALL_BCAST && s->way == PX_WAY_NONBLOCKING &&
				   k->count * px_type_get(k->type)->size > INT_MAX);
}

/* The members at this site nap, for other sites perhaps, and a native call will send to some of them. */
static void bells_owe(const struct px_comm *c)
{
	for (int i = 0; !c->inter && i < c->nlocal && i < PX_BELL_OWED; i++)
		px_bell_owe(px_native_of(px_grank(c, px_member(c, c->self, i))));
}

static int native_start(struct px_sched *s, struct px_step *st)
{
	struct px_given *ours = px_given_by;
	int rc;

	if (CHECKED && st->call.kind == PX_CALL_BCAST && st->call.root == px_lrank(s->c, s->c->rank))
		spoil(s, &st->call.r, &st->call.count, &st->call.type);
	if ((s->way == PX_WAY_MESSAGES && st->call.kind != PX_CALL_DUP) || beyond_vendor(s, &st->call))
		return local_start(s, st);
	rc = px_call_ready(s, &st->call);
	if (rc != MPI_SUCCESS)
		return rc;
	if (s->way != PX_WAY_BLOCKING) {
		rc = px_call_start(&st->call, s->c->native, &st->native);
		bells_owe(s->c);
		px_bell_pay();
		return rc;
	}
	s->within = true;
	bells_owe(s->c);
	uncork(); /* others go on from within it, and what they send must leave */
	px_given_by = NULL;
	px_native_begins();
	px_blocking(rc, px_call_block(&st->call, s->c->native));
	bells_owe(s->c);
	px_bell_pay();
	px_given_by = ours;
	px_outbox_cork();
	s->within = false;
	st->done = true;
	return rc;
}

static void step_start(struct px_sched *s, struct px_step *st)
{
	int rc = MPI_ERR_INTERN;

	st->started = true;
	switch (st->kind) {
	case PX_STEP_NATIVE:
		rc = native_start(s, st);
		s->natives++;
		break;
	case PX_STEP_CALL:
		rc = st->fn(s, st->arg);
		st->done = true;
		break;
	case PX_STEP_SEND:
		rc = send_start(s, st);
		break;
	case PX_STEP_RECV:
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

static void deepen(struct px_step *st, const struct px_step *before)
{
	if (before->depth > st->depth)
		st->depth = before->depth;
}

/* May st start? Then it also knows its depth. */
static bool ready(const struct px_sched *s, struct px_step *st)
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
	MPI_Count got = 0, all = r->count * px_type_get(r->type)->size;

	px_n.Get_elements_x(&r->status, MPI_BYTE, &got);
	if (got == all)
		return MPI_SUCCESS;
	r->why = px_text_truncated(r->c, r->peer, 0, (unsigned long long)got, (unsigned long long)all, true);
	return MPI_ERR_TRUNCATE;
}

static int local_test(struct px_step *st)
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

static int message_test(struct px_step *st)
{
	st->done = px_req_test(&st->req);
	if (!st->done)
		return MPI_SUCCESS;
	if (st->kind == PX_STEP_RECV && st->req.depth > st->depth)
		st->depth = st->req.depth;
	return st->kind == PX_STEP_RECV && st->exact && st->req.error == MPI_SUCCESS ? short_of(&st->req)
										     : st->req.error;
}

/* Look whether a step that has started is done. */
static void step_test(struct px_sched *s, struct px_step *st)
{
	int flag = 1, rc = MPI_SUCCESS;

	if (st->kind != PX_STEP_NATIVE) {
		rc = message_test(st);
	} else if (st->local) {
		rc = local_test(st);
	} else if (st->native != MPI_REQUEST_NULL) {
		rc = px_n.Test(&st->native, &flag, MPI_STATUS_IGNORE);
		st->done = flag || rc != MPI_SUCCESS;
	} else {
		st->done = s->way != PX_WAY_BLOCKING; /* else its call has not returned yet */
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
		px_sched_free(s);
	}
}

static bool is_dup(const struct px_step *st)
{
	return st->kind == PX_STEP_NATIVE && st->call.kind == PX_CALL_DUP;
}

/* The vendor's calls start in the order added, which is the same at all members, and behind duplications, which Open MPI goes on
 * with from within other calls; messages of our own need no order. */
static bool has_turn(const struct px_sched *s, const struct px_step *st, bool natives)
{
	if (st->kind != PX_STEP_NATIVE || (s->way == PX_WAY_MESSAGES && !is_dup(st)))
		return true;
	return natives && !s->within && (is_dup(st) || st->nth == s->natives) &&
	       s->c->dups_done == st->behind;
}

/* One look at all steps, or until a native call has blocked; natives: those of the vendor's may start. */
static bool pass(struct px_sched *s, bool natives)
{
	struct px_given *outer = px_given_by;
	bool did = false;

	px_given_by = &px_coll_stat[s->op].given;
	px_outbox_cork();
	for (int i = s->first; i < s->nsteps; i++) {
		struct px_step *st = &s->step[i];

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
		if (st->done && st->kind == PX_STEP_NATIVE && s->way == PX_WAY_BLOCKING)
			break;
	}
	uncork();
	px_given_by = outer;
	return did;
}

/* Go on as far as is possible now; true when something happened. */
static bool advance(struct px_sched *s, bool natives)
{
	bool did = false, more = true;

	while (more) {
		/* Messages leave before a native call blocks. */
		more = pass(s, natives && s->way != PX_WAY_BLOCKING) ||
		       (natives && s->way == PX_WAY_BLOCKING && pass(s, true));
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
	return step_on(r->sched, r->sched->way != PX_WAY_BLOCKING);
}

static void enqueue(struct px_sched *s, struct px_req *r, enum px_way way)
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
		px_sched_free(s);
		return rc;
	}
	px_req_init(&s->own, c);
	enqueue(s, &s->own, px_hooked ? PX_WAY_BLOCKING : PX_WAY_NONBLOCKING);
	if (px_hooked)
		drive(s);
	rc = px_req_wait(&s->own);
	free(s->own.why);
	if (rc != MPI_SUCCESS)
		px_raise_as(c, rc, s->why);
	px_sched_free(s);
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
			px_sched_free(s);
		return rc;
	}
	*req = r->token;
	enqueue(s, r, PX_WAY_MESSAGES);
	return MPI_SUCCESS;
}

int px_sched_go(struct px_sched *s, struct px_comm *c, MPI_Request *req)
{
	return req ? px_sched_start(s, c, req) : px_sched_run(s, c);
}
