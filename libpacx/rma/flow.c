/* flow.c: the messages of windows, out and in. See rma.h. */
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "datatype.h"
#include "endian.h"
#include "err.h"
#include "p2p.h"
#include "rma.h"
#include "state.h"
#include "unlike.h"

void px_rma_put_head(uint8_t *p, const struct px_rma_head *h)
{
	p[0] = h->kind;
	p[1] = h->op;
	p[2] = h->flags;
	p[3] = h->error;
	px_put32(p + 4, h->nruns);
	px_put64(p + 8, (uint64_t)h->disp);
	px_put64(p + 16, h->count);
	px_put64(p + 24, (uint64_t)h->extent);
	px_put64(p + 32, h->bytes);
}

static struct px_rma_head head_get(const uint8_t *p)
{
	return (struct px_rma_head){ .kind = p[0],
		.op = p[1],
		.flags = p[2],
		.error = p[3],
		.nruns = px_get32(p + 4),
		.disp = (int64_t)px_get64(p + 8),
		.count = px_get64(p + 16),
		.extent = (int64_t)px_get64(p + 24),
		.bytes = px_get64(p + 32) };
}

/* Out. */

static bool left(struct px_win *w, struct px_rma_out *o)
{
	if (!px_req_test(&o->r))
		return false;
	px_req_drop_types(&o->r);
	w->peer[o->peer].outs--;
	w->nouts--;
	w->replies -= o->reply;
	if (o->user)
		o->user->done = true;
	free(o->owned);
	free(o);
	return true;
}

static bool serve_outs(struct px_win *w)
{
	bool did = false;

	for (struct px_rma_out **at = &w->outs, *o; (o = *at);) {
		struct px_rma_out *next = o->next;

		if (left(w, o)) {
			*at = next;
			did = true;
		} else {
			at = &o->next;
		}
	}
	return did;
}

int px_rma_send_data(struct px_win *w, int peer, enum px_rma_flow flow, const void *buf, MPI_Count count,
	MPI_Datatype t, void *owned, struct px_req *user)
{
	struct px_rma_out *o = calloc(1, sizeof *o);
	int rc;

	if (!o) {
		free(owned);
		return MPI_ERR_NO_MEM;
	}
	px_req_init(&o->r, w->c);
	px_req_args(&o->r, buf, count, t, peer, flow);
	o->r.kind = PX_SEND;
	o->owned = owned;
	o->user = user;
	o->peer = peer;
	o->reply = flow == PX_RMA_RESPONSES;
	rc = px_channel_send(&o->r, w->c->ctx, px_grank(w->c, peer), 0);
	if (rc != MPI_SUCCESS) {
		free(owned);
		free(o);
		return rc;
	}
	w->peer[peer].outs++;
	w->nouts++;
	w->replies += o->reply;
	if (!left(w, o)) {
		o->next = w->outs;
		w->outs = o;
	}
	return MPI_SUCCESS;
}

int px_rma_send(struct px_win *w, int peer, enum px_rma_flow flow, uint8_t *mem, uint64_t bytes)
{
	return px_rma_send_data(w, peer, flow, mem, (MPI_Count)bytes, MPI_BYTE, mem, NULL);
}

int px_rma_say(
	struct px_win *w, int peer, enum px_rma_flow flow, enum px_rma_kind kind, int64_t disp, int error)
{
	struct px_rma_head h = { .kind = (uint8_t)kind, .error = (uint8_t)error, .disp = disp };
	uint8_t *mem = malloc(PX_RMA_HEAD);

	if (!mem)
		return MPI_ERR_NO_MEM;
	px_rma_put_head(mem, &h);
	return px_rma_send(w, peer, flow, mem, PX_RMA_HEAD);
}

/* A request cannot be answered, or a response not taken, and its origin would wait for ever. */
static void fatal(const char *why)
{
	px_log(PX_LOG_ERROR, "rank %d: %s; ending the job", px.grank, why);
	px_channel_abort(1, why);
}

static void *need(uint64_t bytes)
{
	void *p = malloc(bytes > 0 ? bytes : 1);

	if (!p)
		fatal("out of memory for an operation on a window");
	return p;
}

/* Responses. */

/* The answer to an operation: `bytes` bytes of the layout; or of `data`, which is taken over, head and all. */
static void reply(struct px_win *w, int dst, enum px_rma_error error, const struct px_rma_layout *from,
	uint8_t *data, uint64_t bytes)
{
	bool big = PX_RMA_HEAD + bytes > PX_INLINE_MAX;
	struct px_rma_head h = {
		.kind = PX_RMA_REPLY, .flags = big ? PX_RMA_LONG : 0, .error = (uint8_t)error, .bytes = bytes
	};
	uint8_t *mem = big || !data ? need(PX_RMA_HEAD + (big ? 0 : bytes)) : data;
	int rc;

	px_rma_put_head(mem, &h);
	if (!big && !data)
		px_rma_gather(from, mem + PX_RMA_HEAD, bytes);
	rc = px_rma_send(w, dst, PX_RMA_RESPONSES, mem, PX_RMA_HEAD + (big ? 0 : bytes));
	if (rc == MPI_SUCCESS && big) {
		const void *at = data ? data + PX_RMA_HEAD : (uint8_t *)from->base;

		if (!data && !px_rma_contiguous(from)) {
			at = data = need(bytes);
			px_rma_gather(from, data, bytes);
		}
		rc = px_rma_send_data(w, dst, PX_RMA_RESPONSES, at, (MPI_Count)bytes, MPI_BYTE, data, NULL);
	}
	if (rc != MPI_SUCCESS)
		fatal("cannot answer an operation on a window");
}

void px_rma_get_done(struct px_win *w, int peer, struct px_rma_get *g, int error)
{
	if (error != MPI_SUCCESS && g->user)
		g->user->error = error;
	if (g->r.why)
		px_log(PX_LOG_ERROR, "rank %d: what an operation on a window brings: %s", px.grank, g->r.why);
	if (g->r.why && w->peer[peer].error == PX_RMA_OK)
		w->peer[peer].error = error == MPI_ERR_TRUNCATE ? PX_RMA_EVALUE : PX_RMA_ETYPE;
	free(g->r.why);
	g->r.why = NULL;
	if (g->user)
		g->user->done = true;
	px_req_drop_types(&g->r);
	w->gets--;
	w->peer[peer].answers--;
	free(g);
}

static void on_reply(struct px_win *w, struct px_rma_in *in, const struct px_rma_head *h, const uint8_t *data)
{
	struct px_rma_peer *p = &w->peer[in->src];
	struct px_rma_get *g = p->gets;
	int rc = MPI_SUCCESS;

	if (!g) {
		fatal("an answer that nobody has asked for");
		return;
	}
	p->gets = g->next;
	if (!p->gets)
		p->gets_end = &p->gets;
	if (h->flags & PX_RMA_LONG) {
		in->get = g;
		in->data = true;
		return;
	}
	if (h->error != PX_RMA_OK) {
		p->error = h->error;
		rc = px_rma_code(h->error);
	} else {
		rc = px_unlike_unpack(&g->r, in->src, px_grank(w->c, in->src), data, h->bytes);
	}
	px_rma_get_done(w, in->src, g, rc);
}

static void on_response(
	struct px_win *w, struct px_rma_in *in, const struct px_rma_head *h, const uint8_t *data)
{
	struct px_rma_peer *p = &w->peer[in->src];

	switch (h->kind) {
	case PX_RMA_REPLY:
		on_reply(w, in, h, data);
		break;
	case PX_RMA_ACK:
		p->acks--;
		if (h->error != PX_RMA_OK)
			p->error = h->error;
		break;
	case PX_RMA_POST:
		p->posts++;
		break;
	default:
		fatal("a malformed message of a window");
	}
}

/* Requests. */

/* Carry out an operation. data: packed, NULL = it is in its place already. */
static void operate(struct px_win *w, int src, const struct px_rma_head *h, const struct px_rma_layout *at,
	const uint8_t *data, enum px_rma_error error)
{
	struct px_rma_data came = { NULL, 0, NULL };
	uint8_t *old = NULL;
	uint64_t size;

	if (error != PX_RMA_OK)
		px_log(PX_LOG_ERROR,
			"rank %d: an operation of rank %d reaches outside of the window's memory", px.grank,
			px_grank(w->c, src));
	else
		error = px_rma_right(w, src, h, at, data, &came);
	if (error != PX_RMA_OK) {
		w->peer[src].failed = error;
		if (h->kind == PX_RMA_GET || h->kind == PX_RMA_GACC || h->kind == PX_RMA_CAS)
			reply(w, src, error, at, NULL, 0);
		w->done++;
		free(came.owned);
		return;
	}
	data = came.bytes;
	size = h->kind == PX_RMA_CAS ? came.size / 2 : came.size;
	if (h->kind == PX_RMA_GACC || h->kind == PX_RMA_CAS)
		old = need(PX_RMA_HEAD + size);
	switch (h->kind) {
	case PX_RMA_PUT:
		if (data)
			px_rma_scatter(at, data, size);
		break;
	case PX_RMA_GET:
		reply(w, src, error, at, NULL, size);
		break;
	case PX_RMA_ACC:
		px_rma_combine(at, data, size, h->op);
		break;
	case PX_RMA_GACC:
		px_rma_gather(at, old + PX_RMA_HEAD, size);
		px_rma_combine(at, data, size, h->op);
		break;
	case PX_RMA_CAS:
		px_rma_swap(at, data, size, old + PX_RMA_HEAD);
		break;
	}
	if (old)
		reply(w, src, error, at, old, size);
	free(came.owned);
	w->done++;
}

static void ack(struct px_win *w, int dst)
{
	struct px_rma_peer *p = &w->peer[dst];

	if (px_rma_say(w, dst, PX_RMA_RESPONSES, PX_RMA_ACK, 0, p->failed) != MPI_SUCCESS)
		fatal("cannot answer a flush of a window");
	p->failed = PX_RMA_OK;
}

static void on_request(
	struct px_win *w, struct px_rma_in *in, const struct px_rma_head *h, const uint8_t *runs)
{
	switch (h->kind) {
	case PX_RMA_PUT:
	case PX_RMA_GET:
	case PX_RMA_ACC:
	case PX_RMA_GACC:
	case PX_RMA_CAS:
		in->error = px_rma_place(w, h, runs, &in->into);
		if (h->flags & PX_RMA_LONG)
			in->data = true;
		else
			operate(w, in->src, h, &in->into, runs + h->nruns * PX_RMA_RUN, in->error);
		break;
	case PX_RMA_LOCK:
		px_rma_lock_asked(w, in->src, h->disp != 0);
		break;
	case PX_RMA_UNLOCK:
		px_rma_unlocked(w, in->src);
		ack(w, in->src);
		break;
	case PX_RMA_FLUSH:
		ack(w, in->src);
		break;
	case PX_RMA_COMPLETE:
		w->peer[in->src].completes++;
		break;
	default:
		fatal("a malformed message of a window");
	}
}

/* In. */

void px_rma_resume(struct px_win *w, struct px_rma_in *in)
{
	if (in->listed)
		return;
	in->listed = true;
	in->next = w->busy;
	w->busy = in;
}

static void forget(struct px_rma_in *in)
{
	free(in->temp);
	free(in->keep);
	in->temp = in->keep = NULL;
	in->head = NULL;
	in->get = NULL;
	in->data = false;
}

/* A message without its long data is there: in->head. */
static void whole(struct px_win *w, struct px_rma_in *in, uint64_t len)
{
	struct px_rma_head h = head_get(in->head);

	if (len < PX_RMA_HEAD + (uint64_t)h.nruns * PX_RMA_RUN)
		fatal("a message of a window is too short");
	else if (in->flow == PX_RMA_REQUESTS)
		on_request(w, in, &h, in->head + PX_RMA_HEAD);
	else
		on_response(w, in, &h, in->head + PX_RMA_HEAD);
	if (!in->data)
		forget(in);
}

/* All of a long message is there. */
static void received(struct px_win *w, struct px_rma_in *in)
{
	struct px_req *r = in->r;

	in->r = NULL;
	if (!in->data) {
		in->keep = in->temp;
		in->temp = NULL;
		in->head = in->keep;
		whole(w, in, r->x.total);
		return;
	}
	if (in->get) {
		px_rma_get_done(w, in->src, in->get, r->error);
	} else {
		struct px_rma_head h = head_get(in->head);

		operate(w, in->src, &h, &in->into, in->temp, in->error);
	}
	forget(in);
}

static void take(struct px_win *w, struct px_rma_in *in, struct px_msg *u)
{
	struct px_rma_head h;
	void *to;

	if (in->get) {
		in->r = &in->get->r;
		px_channel_take(in->r, u);
		return;
	}
	if (in->data)
		h = head_get(in->head);
	if (in->data && h.kind == PX_RMA_PUT && in->error == PX_RMA_OK && px_rma_contiguous(&in->into) &&
		!px_unlike(px_grank(w->c, in->src)))
		to = in->into.base;
	else
		to = in->temp = need(u->f.total);
	if (!in->slot)
		in->slot = need(sizeof *in->slot);
	in->r = in->slot;
	px_req_init(in->r, w->c);
	px_req_args(in->r, to, (MPI_Count)u->f.total, MPI_BYTE, in->src, in->flow);
	in->r->kind = PX_RECV;
	px_channel_take(in->r, u);
}

/* True when something happened. */
static bool advance(struct px_win *w, struct px_rma_in *in)
{
	bool did = false;

	for (;;) {
		struct px_msg *u = in->first;

		if (in->r) {
			if (!px_req_test(in->r)) {
				px_rma_resume(w, in);
				return did;
			}
			received(w, in);
		} else if (u && !in->stopped) {
			in->first = u->next;
			if (!in->first)
				in->end = &in->first;
			if (!in->data && u->f.seg == 0) {
				in->keep = u;
				in->head = u->data;
				whole(w, in, u->f.body);
			} else {
				take(w, in, u);
			}
		} else {
			return did;
		}
		did = true;
	}
}

void px_rma_flows_init(struct px_win *w)
{
	for (int r = 0; r < w->c->size; r++) {
		struct px_rma_peer *p = &w->peer[r];

		p->gets_end = &p->gets;
		for (int f = 0; f < PX_RMA_FLOWS; f++) {
			p->in[f].src = r;
			p->in[f].flow = (enum px_rma_flow)f;
			p->in[f].end = &p->in[f].first;
		}
	}
}

void px_rma_flows_fini(struct px_win *w)
{
	for (int r = 0; r < w->c->size; r++)
		for (int f = 0; f < PX_RMA_FLOWS; f++)
			free(w->peer[r].in[f].slot);
}

/* What has arrived for the window goes to its flows. */
static void sort(struct px_win *w)
{
	struct px_msg *u;

	while ((u = px_match_pop(&w->c->p2p))) {
		struct px_rma_in *in =
			&w->peer[u->src].in[u->f.tag == PX_RMA_REQUESTS ? PX_RMA_REQUESTS : PX_RMA_RESPONSES];

		u->next = NULL;
		*in->end = u;
		in->end = &u->next;
		px_rma_resume(w, in);
	}
}

bool px_rma_serve(struct px_server *server)
{
	struct px_win *w = (struct px_win *)(void *)server;
	struct px_rma_in *in;
	bool did = false;

	sort(w);
	in = w->busy;
	w->busy = NULL;
	while (in) {
		struct px_rma_in *next = in->next;

		in->listed = false;
		did |= advance(w, in);
		in = next;
	}
	return serve_outs(w) || did;
}
