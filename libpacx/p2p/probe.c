/* probe.c: probes and matched receives on communicators that span sites.
 *
 * A matched message of another site is handed out as a unique native message handle: a
 * zero-byte message that this rank has sent to itself and matched. px_Mrecv finds our message by it.
 */
#include <stdlib.h>

#include "bind.h"
#include "channel.h"
#include "comm.h"
#include "lock.h"
#include "map.h"
#include "native.h"
#include "p2p.h"
#include "raise.h"
#include "state.h"
#include "wait.h"

static struct px_map *messages; /* native message handle -> struct held */
static MPI_Comm token_comm = MPI_COMM_NULL;

struct held {
	struct px_comm *c;
	struct px_msg *u;
	MPI_Request token; /* the send to self behind the handle: MPICH needs it alive until it is received */
};

static uint64_t message_key(MPI_Message m)
{
	return (uint64_t)(uintptr_t)m;
}

static void fill_status(MPI_Status *status, const struct px_msg *u)
{
	struct px_req r;

	px_req_set_status(&r, u->src, u->f.tag, (MPI_Count)(u->f.offset ? u->f.offset : u->f.total));
	px_status_copy(status, &r.status);
}

static void no_proc(MPI_Status *status)
{
	struct px_req r;

	px_req_set_status(&r, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	px_status_copy(status, &r.status);
}

/* Rank to probe natively, or -3 when no local rank is meant. */
static int native_source(const struct px_comm *c, int src)
{
	return src == MPI_ANY_SOURCE ? MPI_ANY_SOURCE : px_lrank(c, src) >= 0 ? px_lrank(c, src) : -3;
}

static bool remote_too(const struct px_comm *c, int src)
{
	return src == MPI_ANY_SOURCE || px_lrank(c, src) < 0;
}

static void translate(struct px_comm *c, MPI_Status *status)
{
	if (status != MPI_STATUS_IGNORE && status->MPI_SOURCE >= 0 && status->MPI_SOURCE < c->nlocal)
		status->MPI_SOURCE = px_rank_of_local(c, status->MPI_SOURCE);
}

/* A native message handle that nothing else uses. */
static int token_new(MPI_Message *message, MPI_Request *req)
{
	int flag = 0, rc;

	if (token_comm == MPI_COMM_NULL && (rc = px_n.Comm_dup(MPI_COMM_SELF, &token_comm)) != MPI_SUCCESS)
		return rc;
	rc = px_n.Isend(NULL, 0, MPI_BYTE, 0, 0, token_comm, req);
	while (rc == MPI_SUCCESS && !flag)
		rc = px_n.Improbe(0, 0, token_comm, &flag, message, MPI_STATUS_IGNORE);
	return rc;
}

/* *message, of another site (then it gets a handle) or of this one, can be received on c. MPI error code, raised. */
static int hold(struct px_comm *c, int src, int tag, bool remote, MPI_Message *message)
{
	struct held *h = malloc(sizeof *h);

	if (!h || (!messages && !(messages = px_map_new())) ||
		(remote && token_new(message, &h->token) != MPI_SUCCESS) ||
		px_map_put(messages, message_key(*message), h) < 0) {
		free(h);
		return px_raise_memory(c);
	}
	h->c = c;
	h->u = remote ? px_match_find(&c->p2p, src, tag, true) : NULL;
	px_comm_hold(c); /* the receive needs it to translate the source */
	return MPI_SUCCESS;
}

/* Look at what has come from other sites. */
static int look_remote(
	int src, int tag, struct px_comm *c, int *flag, MPI_Message *message, MPI_Status *status)
{
	struct px_msg *u = remote_too(c, src) ? px_match_find(&c->p2p, src, tag, false) : NULL;
	int rc = u && message ? hold(c, src, tag, true, message) : MPI_SUCCESS;

	*flag = u && rc == MPI_SUCCESS;
	if (*flag)
		fill_status(status, u);
	return rc;
}

/* Look at what has come from this site. */
static int look_local(
	int src, int tag, struct px_comm *c, int *flag, MPI_Message *message, MPI_Status *status)
{
	int rc;

	*flag = 0;
	if (native_source(c, src) == -3)
		return MPI_SUCCESS;
	rc = message ? px_n.Improbe(native_source(c, src), tag, c->native, flag, message, status)
		     : px_n.Iprobe(native_source(c, src), tag, c->native, flag, status);
	if (rc != MPI_SUCCESS || !*flag)
		return rc;
	translate(c, status);
	return message ? hold(c, src, tag, false, message) : MPI_SUCCESS;
}

/* A message was found, and with message taken. */
static void found(struct px_comm *c, int src, bool local, bool taken)
{
	if (src == MPI_ANY_SOURCE && taken) {
		px_comm_took(c, local);
	} else if (src == MPI_ANY_SOURCE) {
		c->local_first = local;
		c->probed = true;
	} else if (taken) {
		px_comm_asked(c);
	}
}

/* Look once; message NULL: leave it where it is. */
static int look(int src, int tag, struct px_comm *c, int *flag, MPI_Message *message, MPI_Status *status)
{
	int rc = px_check_args(c, 0, MPI_BYTE, src, tag, true);
	bool local = c->local_first;

	if (rc != MPI_SUCCESS)
		return rc;
	if (src == MPI_PROC_NULL) {
		*flag = 1;
		if (message)
			*message = MPI_MESSAGE_NO_PROC;
		no_proc(status);
		return MPI_SUCCESS;
	}
	px_progress();
	for (int i = 0; i < 2; i++, local = !local) {
		rc = local ? look_local(src, tag, c, flag, message, status)
			   : look_remote(src, tag, c, flag, message, status);
		if (rc != MPI_SUCCESS)
			return rc;
		if (*flag) {
			found(c, src, local, message != NULL);
			return MPI_SUCCESS;
		}
	}
	return MPI_SUCCESS;
}

int px_Iprobe(int src, int tag, struct px_comm *c, int *flag, MPI_Status *status)
{
	return look(src, tag, c, flag, NULL, status);
}

int px_Probe(int src, int tag, struct px_comm *c, MPI_Status *status)
{
	struct px_wait w;
	int flag, rc;

	if (src >= 0 && src < c->size && px_lrank(c, src) >= 0 && px_may_block()) {
		px_blocking(rc, px_n.Probe(px_lrank(c, src), tag, c->native, status));
		if (rc == MPI_SUCCESS)
			translate(c, status);
		return rc;
	}
	px_loop_enter(&w);
	for (;;) {
		rc = px_Iprobe(src, tag, c, &flag, status);
		if (rc != MPI_SUCCESS || flag)
			break;
		px_relax(&w, false);
	}
	px_loop_leave();
	return rc;
}

int px_Improbe(int src, int tag, struct px_comm *c, int *flag, MPI_Message *message, MPI_Status *status)
{
	return look(src, tag, c, flag, message, status);
}

int px_Mprobe(int src, int tag, struct px_comm *c, MPI_Message *message, MPI_Status *status)
{
	struct px_wait w;
	int flag, rc;

	px_loop_enter(&w);
	for (;;) {
		rc = px_Improbe(src, tag, c, &flag, message, status);
		if (rc != MPI_SUCCESS || flag)
			break;
		px_relax(&w, false);
	}
	px_loop_leave();
	return rc;
}

/* Start receiving matched message *message into r. */
static int matched_start(struct px_req *r, struct held *h, MPI_Message *message)
{
	r->kind = PX_RECV;
	if (!h->u)
		return PX_N(Imrecv, r->buf, r->count, r->type, message, &r->native);
	px_n.Mrecv(NULL, 0, MPI_BYTE, message, MPI_STATUS_IGNORE); /* the token; sets the handle to null */
	px_n.Wait(&h->token, MPI_STATUS_IGNORE);
	px_req_hold_types(r);
	px_channel_take(r, h->u);
	return MPI_SUCCESS;
}

static struct held *held_take(MPI_Message message)
{
	return messages && message != MPI_MESSAGE_NO_PROC ? px_map_del(messages, message_key(message)) : NULL;
}

/* Are the arguments fit to receive what is behind the handle? The message stays matched when they are not. */
static int matched_check(MPI_Message message, MPI_Count count, MPI_Datatype t)
{
	struct held *h = messages && message != MPI_MESSAGE_NO_PROC
				 ? px_map_get(messages, message_key(message))
				 : NULL;

	return h ? px_check_args(h->c, count, t, MPI_ANY_SOURCE, MPI_ANY_TAG, true) : MPI_SUCCESS;
}

/* A message of a communicator within this site. */
static int mrecv_native(void *buf, MPI_Count count, MPI_Datatype t, MPI_Message *message, MPI_Status *status)
{
	MPI_Request req;
	int rc;

	if (px_may_block()) {
		px_blocking(rc, PX_N(Mrecv, buf, count, t, message, status));
		return rc;
	}
	rc = PX_N(Imrecv, buf, count, t, message, &req);
	return rc == MPI_SUCCESS ? px_wait_native(&req, status) : rc;
}

int px_Mrecv(void *buf, MPI_Count count, MPI_Datatype t, MPI_Message *message, MPI_Status *status)
{
	int rc = matched_check(*message, count, t);
	struct held *h = rc == MPI_SUCCESS ? held_take(*message) : NULL;
	struct px_req r;

	if (rc != MPI_SUCCESS)
		return rc;
	if (!h)
		return mrecv_native(buf, count, t, message, status);
	px_req_init(&r, h->c);
	px_req_args(&r, buf, count, t, MPI_ANY_SOURCE, MPI_ANY_TAG);
	rc = matched_start(&r, h, message);
	if (rc == MPI_SUCCESS) {
		rc = px_req_wait(&r);
		px_status_copy(status, &r.status);
		if (rc != MPI_SUCCESS && !r.raised)
			px_raise_as(h->c, rc, r.why);
		free(r.why);
	}
	px_comm_drop(h->c);
	free(h);
	return rc;
}

int px_Imrecv(void *buf, MPI_Count count, MPI_Datatype t, MPI_Message *message, MPI_Request *req)
{
	int rc = matched_check(*message, count, t);
	struct held *h = rc == MPI_SUCCESS ? held_take(*message) : NULL;
	struct px_req *r;

	if (rc != MPI_SUCCESS)
		return rc;
	if (!h)
		return PX_N(Imrecv, buf, count, t, message, req);
	r = px_req_new(h->c);
	rc = MPI_ERR_NO_MEM;
	if (r) {
		px_req_args(r, buf, count, t, MPI_ANY_SOURCE, MPI_ANY_TAG);
		rc = matched_start(r, h, message);
		*req = r->token;
	}
	px_comm_drop(h->c);
	free(h);
	return rc;
}
