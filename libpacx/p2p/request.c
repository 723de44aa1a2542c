/* request.c: see request.h. */
#include "request.h"

#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "channel.h"
#include "comm.h"
#include "datatype.h"
#include "lock.h"
#include "map.h"
#include "raise.h"
#include "state.h"
#include "unlike.h"
#include "wait.h"

static struct px_req *pool;   /* free, each with its token; linked by next */
static struct px_map *tokens; /* native handle -> px_req; entries stay for pooled ones */
static int live;              /* tokens that the application may hold: without any, none need be looked for */
static struct px_req *needed; /* driven by px_progress; linked by anext */
static bool apart;            /* what serves is no call of the program */
static int loops;             /* waiting loops entered and not left */
static struct px_server *servers;
static int orphans; /* sends given up by the application that are not complete */

static uint64_t request_key(MPI_Request h)
{
	return (uint64_t)(uintptr_t)h;
}

void px_duty_add(int n)
{
	atomic_fetch_add_explicit(&px_duty, n, memory_order_relaxed);
}

bool px_serving;

void px_req_hold_types(struct px_req *r)
{
	if (!r->holds)
		px_types_held++;
	r->holds = true;
}

void px_req_drop_types(struct px_req *r)
{
	if (r->holds && --px_types_held == 0 && !px_serving)
		px_type_sweep();
	r->holds = false;
}

static void reset(struct px_req *r, struct px_comm *c)
{
	MPI_Request token = r->token;

	memset(r, 0, sizeof *r);
	r->token = token;
	r->native = MPI_REQUEST_NULL;
	r->c = c;
}

void px_req_init(struct px_req *r, struct px_comm *c)
{
	r->token = MPI_REQUEST_NULL;
	reset(r, c);
}

struct px_req *px_req_new(struct px_comm *c)
{
	struct px_req *r = pool;

	if (r) {
		pool = r->next;
	} else {
		r = malloc(sizeof *r);
		if (!r)
			return NULL;
		if ((!tokens && !(tokens = px_map_new())) ||
			px_n.Send_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &r->token) !=
				MPI_SUCCESS) {
			free(r);
			return NULL;
		}
		if (px_map_put(tokens, request_key(r->token), r) < 0) {
			px_n.Request_free(&r->token);
			free(r);
			return NULL;
		}
	}
	live++;
	reset(r, c);
	px_comm_hold(c);
	return r;
}

static void transfer_free(struct px_req *r)
{
	if (r->also)
		px_req_release(r->also);
	r->also = NULL;
	free(r->copy);
	r->copy = NULL;
	free(r->why);
	r->why = NULL;
	free(r->x.req);
	free(r->x.temp);
	px_right_free(r->x.right);
	memset(&r->x, 0, sizeof r->x);
}

void px_req_release(struct px_req *r)
{
	struct px_comm *c = r->c;

	px_req_drop_types(r);
	transfer_free(r);
	if (r->again)
		r->again->free(r->again);
	r->again = NULL;
	r->c = NULL;
	r->next = pool;
	pool = r;
	live--;
	px_comm_drop(c);
}

static void token_free(uint64_t key, void *value, void *arg)
{
	struct px_req *r = value;

	(void)key;
	(void)arg;
	px_n.Request_free(&r->token);
}

void px_req_close(void)
{
	if (tokens)
		px_map_each(tokens, token_free, NULL);
	px_map_free(tokens);
	tokens = NULL;
	live = 0;
	while (pool) {
		struct px_req *r = pool;

		pool = r->next;
		free(r);
	}
}

struct px_req *px_req_find(MPI_Request h)
{
	return live > 0 && h != MPI_REQUEST_NULL ? px_map_get(tokens, request_key(h)) : NULL;
}

void px_req_set_status(struct px_req *r, int src, int tag, MPI_Count bytes)
{
	MPI_Status *st = &r->status;

	memset(st, 0, sizeof *st);
	st->MPI_SOURCE = src;
	st->MPI_TAG = tag;
	st->MPI_ERROR = MPI_SUCCESS;
	px_n.Status_set_elements_x(st, MPI_BYTE, bytes);
	px_n.Status_set_cancelled(st, 0);
}

void px_status_copy(MPI_Status *to, const MPI_Status *from)
{
	if (to != MPI_STATUS_IGNORE) {
		int error = to->MPI_ERROR;

		*to = *from;
		to->MPI_ERROR = error;
	}
}

void px_req_unpost(struct px_req *r)
{
	px_match_unpost(r->queue, r);
	px_duty_add(-1);
}

void px_req_native_done(struct px_req *r, const MPI_Status *st, int rc)
{
	r->error = rc;
	r->raised = rc != MPI_SUCCESS && px_hushed == 0; /* by the native call */
	r->native = MPI_REQUEST_NULL;
	r->status = *st;
	if (r->kind == PX_RECV && st->MPI_SOURCE >= 0 && st->MPI_SOURCE < r->c->nlocal)
		r->status.MPI_SOURCE = px_rank_of_local(r->c, st->MPI_SOURCE);
	if (r->posted)
		px_req_unpost(r);
	r->done = true;
}

void px_req_need(struct px_req *r)
{
	if (r->windowed)
		return;
	r->anext = needed;
	r->aprev = &needed;
	if (needed)
		needed->aprev = &r->anext;
	needed = r;
	r->windowed = true;
	px_duty_add(1);
}

void px_req_rest(struct px_req *r)
{
	*r->aprev = r->anext;
	if (r->anext)
		r->anext->aprev = r->aprev;
	r->windowed = false;
	px_duty_add(-1);
}

/* The payload has arrived or left completely. */
static void transfer_done(struct px_req *r)
{
	if (r->kind == PX_SEND)
		px_channel_sent(r);
	if (r->windowed && !r->orphan) /* an orphan stays until px_progress releases it */
		px_req_rest(r);
	if (r->kind == PX_RECV) {
		if (r->x.right) {
			px_unlike_end(r, r->x.data);
		} else if (r->x.temp) {
			const struct px_type *t = px_type_get(r->type);
			uint64_t room = t ? (uint64_t)(r->count * t->size) : 0;
			int rc = px_type_unpack(
				r->x.temp, r->x.total < room ? r->x.total : room, r->buf, r->count, r->type);

			if (rc != MPI_SUCCESS)
				r->error = rc;
		}
		r->done = true;
	}
	free(r->x.temp);
	r->x.temp = NULL;
	r->x.data = NULL;
}

static bool test_one(struct px_req *r)
{
	int flag, rc = MPI_SUCCESS;
	MPI_Status st;

	if (r->done)
		return true;
	if (r->kind == PX_TASK)
		return r->task(r);
	if (r->stage != PX_UNDER_WAY)
		return false; /* a CREDIT or PULL frame moves it on */
	if (r->native != MPI_REQUEST_NULL) {
		rc = px_n.Test(&r->native, &flag, &st);
		if (rc != MPI_SUCCESS || flag) {
			px_req_native_done(r, &st, rc);
		}
		return r->done;
	}
	if (r->x.n > 0) {
		if (px_xfer_test(&r->x, r->kind == PX_SEND, &rc))
			transfer_done(r);
		if (rc != MPI_SUCCESS) {
			r->error = rc;
			r->done = true;
		}
	}
	if (r->kind == PX_SEND && r->x.n == 0 && (r->mode != PX_SYNCHRONOUS || r->acked))
		r->done = true;
	return r->done;
}

bool px_req_test(struct px_req *r)
{
	bool done = test_one(r);

	return done && (!r->also || px_req_test(r->also));
}

/* Does r hold data that has to leave before MPI_Finalize and MPI_Buffer_detach? */
static int sends(const struct px_req *r)
{
	return r->kind == PX_SEND || r->also ? 1 : 0;
}

/* What was put off while serving. */
static void put_off(void)
{
	px_comm_sweep();
	if (px_types_held == 0)
		px_type_sweep();
}

void px_server_add(struct px_server *s)
{
	s->busy = false;
	s->next = servers;
	servers = s;
}

void px_server_del(struct px_server *s)
{
	struct px_server **p = &servers;

	while (*p && *p != s)
		p = &(*p)->next;
	if (*p)
		*p = s->next;
}

static bool serve_all(void)
{
	bool did = false;

	for (struct px_server *s = servers; s; s = s->next) {
		if (s->busy)
			continue;
		s->busy = true;
		did |= s->serve(s);
		s->busy = false;
	}
	return did;
}

bool px_progress(void)
{
	bool did = px.on && px_channel_poll();
	struct px_req *next;

	if (!px_serving)
		put_off();
	did |= px.on && serve_all();
	for (struct px_req *r = needed; r; r = next) {
		next = r->anext;
		if (r->kind == PX_COLL && apart) {
			continue;
		} else if (r->kind == PX_COLL) {
			/* it may start or end others, which changes the list */
			if (r->task(r))
				return true;
		} else if (px_req_test(r) && r->orphan) {
			orphans -= sends(r);
			if (r->windowed)
				px_req_rest(r);
			px_req_release(r); /* may wait, and other threads change the list meanwhile */
			return true;
		}
	}
	return did;
}

enum px_served px_serve(void)
{
	bool did;

	if (!px_trylock())
		return !px_lock_mine() ? PX_SERVED_NOTHING : loops > 0 ? PX_SERVED_LOOP : PX_SERVED_LOOK;
	px_serving = true;
	did = px_progress();
	px_serving = false;
	px_unlock();
	return did ? PX_SERVED_SOME : PX_SERVED_NOTHING;
}

enum px_served px_serve_apart(void)
{
	bool did;

	if (!px_trylock())
		return PX_SERVED_NOTHING;
	px_serving = apart = true;
	did = px_progress();
	px_serving = apart = false;
	px_unlock();
	return did ? PX_SERVED_SOME : PX_SERVED_NOTHING;
}

void px_loop_enter(struct px_wait *w)
{
	loops++;
	px_vendor_poll(true);
	px_wait_init(w);
}

void px_loop_leave(void)
{
	px_vendor_poll(false);
	loops--;
}

void px_relax(struct px_wait *w, bool something)
{
	if (something) {
		px_wait_reset(w);
	} else {
		unsigned depth = px_unlock_all();

		px_wait_idle(w);
		px_relock(depth);
	}
}

bool px_may_block(void)
{
	return !px_must_poll() && (px_hooked || !px_threaded);
}

bool px_req_only_native(const struct px_req *r)
{
	return px_hooked && r->native != MPI_REQUEST_NULL && !r->done && !r->posted && !r->also &&
	       !r->windowed;
}

static void wait_natively(struct px_req *r)
{
	MPI_Status st;
	int rc;

	px_native_begins();
	px_blocking(rc, px_n.Wait(&r->native, &st));
	px_req_native_done(r, &st, rc);
}

int px_req_wait(struct px_req *r)
{
	struct px_wait w;

	if (px_req_only_native(r)) {
		wait_natively(r);
	} else {
		px_loop_enter(&w);
		while (!px_req_test(r))
			px_relax(&w, px_progress());
		px_loop_leave();
	}
	if (!r->persistent)
		px_req_drop_types(r);
	return r->error;
}

int px_req_finish(struct px_req *r, MPI_Request *handle, MPI_Status *status)
{
	struct px_comm *c = r->c;
	int error = r->raised ? MPI_SUCCESS : r->error;
	int rc = r->error;
	char *why = r->why;

	px_status_copy(status, &r->status);
	r->why = NULL;
	if (r->persistent) {
		r->active = false;
		transfer_free(r);
		if (error != MPI_SUCCESS)
			px_raise_as(c, error, why);
		free(why);
		return rc;
	}
	*handle = MPI_REQUEST_NULL;
	px_comm_hold(c); /* its error handler may be needed after the last operation is gone */
	px_req_release(r);
	if (error != MPI_SUCCESS)
		px_raise_as(c, error, why);
	free(why);
	px_comm_drop(c);
	return rc;
}

void px_req_detach(struct px_req *r)
{
	r->persistent = false;
	if (px_req_test(r)) {
		if (r->windowed)
			px_req_rest(r);
		px_req_release(r);
		return;
	}
	r->orphan = true;
	orphans += sends(r);
	px_req_need(r);
}

void px_buffered_wait(void)
{
	struct px_wait w;

	px_loop_enter(&w);
	while (orphans > 0)
		px_relax(&w, px_progress());
	px_loop_leave();
}

int px_wait_native(MPI_Request *req, MPI_Status *status)
{
	struct px_wait w;
	int flag, rc;

	if (px_hooked) {
		px_native_begins();
		px_blocking(rc, px_n.Wait(req, status));
		return rc;
	}
	px_loop_enter(&w);
	for (;;) {
		rc = px_n.Test(req, &flag, status);
		if (rc != MPI_SUCCESS || flag)
			break;
		px_relax(&w, px_progress());
	}
	px_loop_leave();
	return rc;
}

int px_meet(MPI_Comm native)
{
	MPI_Request req;
	int rc = px_n.Ibarrier(native, &req);

	return rc == MPI_SUCCESS ? px_wait_native(&req, MPI_STATUS_IGNORE) : rc;
}
