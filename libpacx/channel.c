/* channel.c: see channel.h.
 *
 * Design. An envelope (frame header, and the payload when it is short) is one native message of at
 * most PX_ENVELOPE_MAX bytes, small enough for both vendors' eager protocols: the blocking native send
 * that carries it copies and returns. The receiver keeps RING posted receives and handles them strictly in
 * the order posted, which is the order in which the native MPI matches them; so frames of one sender stay
 * in order. Long payloads follow as native messages of their own and are received straight into
 * the user's buffer; only data that is not contiguous, or too long for the receive, takes a detour.
 */
#include "channel.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "datatype.h"
#include "err.h"
#include "map.h"
#include "state.h"
#include "wait.h"

#define RING 32
#define POLL_MAX                                                                                             \
	8 /* envelopes handled per poll, so that a flood cannot keep a waiter from looking at its own request */
#define WINDOW   1024         /* segments of one message under way at once: 1 GiB in the largest size */
#define DRAIN_NS 10000000000u /* Finalize waits this long for the in-daemon */
#define ABORT_NS 5000000000u  /* Abort gives the daemons this long to tell the other sites */

struct px_traffic px_sent;

static uint8_t ring_buf[RING][PX_ENVELOPE_MAX];
static MPI_Request ring[RING];
static int ring_head;
static struct px_map *contexts;                    /* ctx -> struct px_match */
static struct px_map *acks;                        /* message number -> struct px_req waiting for ACK */
static struct px_msg *early, **early_end = &early; /* for contexts that this rank has not made yet */
static uint32_t next_msg;
static uint64_t fin_total; /* from the in-daemon's FIN; UINT64_MAX = not yet */

/* Tags of payload segments: a stack of free numbers. */
static int *tag_free, tag_nfree, tag_made;

static int tag_get(void)
{
	if (tag_nfree > 0)
		return tag_free[--tag_nfree];
	if (tag_made == PX_TAG_COUNT)
		return -1;
	if (tag_made % 1024 == 0) {
		int *more = realloc(tag_free, (size_t)(tag_made + 1024) * sizeof *more);

		if (!more)
			return -1;
		tag_free = more;
	}
	return PX_TAG_DATA + tag_made++;
}

static void tag_put(int tag)
{
	tag_free[tag_nfree++] = tag;
}

int px_channel_open(void)
{
	contexts = px_map_new();
	acks = px_map_new();
	if (!contexts || !acks)
		return PX_ENOMEM;
	fin_total = UINT64_MAX;
	for (int i = 0; i < RING; i++) {
		if (px_n.Recv_init(ring_buf[i], PX_ENVELOPE_MAX, MPI_BYTE, MPI_ANY_SOURCE, PX_TAG_DOWN,
			    px.map.relay, &ring[i]) != MPI_SUCCESS ||
			px_n.Start(&ring[i]) != MPI_SUCCESS)
			return PX_EMPI;
	}
	return PX_OK;
}

/* Segments of x that may be under way are posted. */
static int xfer_post(struct px_xfer *x, bool sending)
{
	int rc = MPI_SUCCESS;

	while (rc == MPI_SUCCESS && x->posted < x->n && x->posted - x->done < WINDOW) {
		uint64_t at = (uint64_t)x->posted * x->seg;
		uint64_t len = x->total - at < x->seg ? x->total - at : x->seg;
		MPI_Request *req = &x->req[x->posted];

		if (sending)
			rc = px_n.Issend(
				x->data + at, (int)len, MPI_BYTE, x->peer, x->tag, px.map.relay, req);
		else
			rc = px_n.Irecv(x->data + at, (int)len, MPI_BYTE, x->peer, x->tag, px.map.relay, req);
		x->posted++;
	}
	return rc;
}

static int xfer_start(struct px_xfer *x, uint64_t total, uint32_t seg, bool sending)
{
	x->total = total;
	x->seg = seg;
	x->n = (int)((total + seg - 1) / seg);
	x->posted = x->done = 0;
	x->req = malloc((size_t)x->n * sizeof *x->req);
	if (!x->req) {
		x->n = 0;
		return MPI_ERR_NO_MEM;
	}
	return xfer_post(x, sending);
}

bool px_xfer_test(struct px_xfer *x, bool sending, int *rc)
{
	int flag;

	while (x->done < x->posted) {
		*rc = px_n.Test(&x->req[x->done], &flag, MPI_STATUS_IGNORE);
		if (*rc != MPI_SUCCESS || !flag)
			return false;
		x->done++;
	}
	if (x->done < x->n) {
		*rc = xfer_post(x, sending);
		return false;
	}
	free(x->req);
	x->req = NULL;
	x->n = 0;
	if (sending)
		tag_put(x->tag);
	return true;
}

static int envelope_send(const struct px_frame *f, uint8_t *envelope, int body, int to, int tag)
{
	px_frame_put(f, envelope);
	return px_n.Send(envelope, PX_FRAME_SIZE + body, MPI_BYTE, to, tag, px.map.relay);
}

static void frame_init(struct px_frame *f, enum px_frame_type type, int dst)
{
	memset(f, 0, sizeof *f);
	f->version = PX_PROTOCOL_VERSION;
	f->type = (uint8_t)type;
	f->src = (uint32_t)px.grank;
	f->dst = (uint32_t)dst;
}

static int send_start(struct px_req *r, uint64_t ctx, int dst, unsigned flags)
{
	uint8_t envelope[PX_ENVELOPE_MAX];
	const struct px_type *t = px_type_get(r->type);
	bool local = px_is_local(dst);
	int to = local ? px.map.native_of[dst - px.world->base[px.site]] : px.map.out[0];
	struct px_frame f;
	int rc;

	if (!t)
		return MPI_ERR_TYPE;
	frame_init(&f, PX_F_MSG, dst);
	f.flags = (uint16_t)flags;
	f.total = (uint64_t)(r->count * t->size);
	f.ctx = ctx;
	f.tag = r->tag;
	f.msg = ++next_msg;
	f.depth = r->depth;
	if (r->mode == PX_SYNCHRONOUS) {
		f.flags |= PX_FF_SYNC;
		r->msg = f.msg;
		if (px_map_put(acks, f.msg, r) < 0)
			return MPI_ERR_NO_MEM;
	}
	if (!local) {
		px_sent.messages++;
		px_sent.bytes += f.total;
	}
	if (f.total <= PX_INLINE_MAX) {
		f.body = f.total;
		rc = px_type_pack(r->buf, r->count, r->type, envelope + PX_FRAME_SIZE);
		if (rc == MPI_SUCCESS)
			rc = envelope_send(&f, envelope, (int)f.total, to, local ? PX_TAG_DOWN : PX_TAG_UP);
		r->done = rc == MPI_SUCCESS && r->mode != PX_SYNCHRONOUS;
		return rc;
	}
	f.seg = f.total <= 4 * (uint64_t)PX_SEG_MAX ? PX_SEG_MIN : PX_SEG_MAX;
	if (f.total / f.seg >= INT_MAX)
		return MPI_ERR_COUNT;
	r->x.data = r->buf;
	if (!t->contig || r->mode == PX_BUFFERED) {
		r->x.data = r->x.temp = malloc(f.total);
		if (!r->x.temp)
			return MPI_ERR_NO_MEM;
		rc = px_type_pack(r->buf, r->count, r->type, r->x.temp);
		if (rc != MPI_SUCCESS)
			return rc;
	}
	r->x.peer = to;
	r->x.tag = tag_get();
	if (r->x.tag < 0)
		return MPI_ERR_NO_MEM;
	f.local = (uint32_t)r->x.tag;
	rc = envelope_send(&f, envelope, 0, to, local ? PX_TAG_DOWN : PX_TAG_UP);
	if (rc == MPI_SUCCESS)
		rc = xfer_start(&r->x, f.total, f.seg, true);
	if (r->x.posted < r->x.n)
		px_req_need(r);
	return rc;
}

int px_channel_send(struct px_req *r, uint64_t ctx, int dst, unsigned flags)
{
	int rc = send_start(r, ctx, dst, flags);

	if (rc != MPI_SUCCESS && r->mode == PX_SYNCHRONOUS)
		px_map_del(acks, r->msg); /* r may be on the stack */
	return rc;
}

/* The receiver of a synchronous message has matched it. */
static void ack_send(const struct px_frame *got)
{
	uint8_t envelope[PX_FRAME_SIZE];
	struct px_frame f;

	frame_init(&f, PX_F_ACK, (int)got->src);
	f.ctx = got->ctx;
	f.msg = got->msg;
	if (px_is_local((int)got->src))
		envelope_send(&f, envelope, 0, px.map.native_of[(int)got->src - px.world->base[px.site]],
			PX_TAG_DOWN);
	else
		envelope_send(&f, envelope, 0, px.map.out[0], PX_TAG_UP);
}

/* Deliver a matched message to r. `data` is the inline payload. */
static void deliver(struct px_req *r, const struct px_frame *f, int from, int src, const uint8_t *data)
{
	const struct px_type *t = px_type_get(r->type);
	uint64_t room = (uint64_t)(r->count * t->size);
	uint64_t take = f->total < room ? f->total : room;

	if (f->flags & PX_FF_SYNC)
		ack_send(f);
	if (r->depth < f->depth)
		r->depth = f->depth;
	px_req_set_status(r, src, f->tag, (MPI_Count)take);
	if (f->total > room)
		r->error = MPI_ERR_TRUNCATE;
	if (f->seg == 0) {
		int rc = px_type_unpack(data, take, r->buf, r->count, r->type);

		if (rc != MPI_SUCCESS)
			r->error = rc;
		r->done = true;
		return;
	}
	r->x.data = r->buf;
	if (!t->contig || f->total > room) {
		r->x.data = r->x.temp = malloc(f->total);
		if (!r->x.temp) {
			/* The payload must leave the daemon all the same, or it would wait for ever. */
			px_log(PX_LOG_ERROR, "rank %d: no memory for a message of %llu bytes", px.grank,
				(unsigned long long)f->total);
			px_channel_abort(1, "out of memory");
		}
	}
	r->x.peer = from;
	r->x.tag = (int)f->local;
	if (xfer_start(&r->x, f->total, f->seg, false) != MPI_SUCCESS) {
		r->error = MPI_ERR_OTHER;
		r->done = true;
	}
	if (r->x.posted < r->x.n)
		px_req_need(r);
}

void px_channel_take(struct px_req *r, struct px_msg *u)
{
	deliver(r, &u->f, u->from, u->src, u->data);
	free(u);
}

/* The local half of an any-source receive has to go because a remote message matches. False when
 * the native MPI has already matched it: then the receive is no longer ours to give. */
static bool native_half_cancelled(struct px_req *r)
{
	int flag = 0, gone = 0, rc;
	MPI_Status st;

	px_n.Cancel(&r->native);
	rc = px_n.Test(&r->native, &flag, &st);
	if (rc == MPI_SUCCESS && !flag)
		return false; /* matched, its data is on the way; a cancelled receive completes at once */
	if (rc == MPI_SUCCESS)
		px_n.Test_cancelled(&st, &gone);
	if (gone)
		return true;
	px_req_native_done(r, &st, rc);
	return false;
}

static void arrive_at(struct px_match *m, const struct px_frame *f, int from, const uint8_t *data)
{
	int src = m->c->rank_of[f->src];
	struct px_req *r = px_match_next(m->posted, src, f->tag);
	struct px_msg *u;

	while (r && r->native != MPI_REQUEST_NULL) {
		struct px_req *next = r->next; /* r may leave the list below */

		if (native_half_cancelled(r))
			break;
		if (r->posted)
			px_req_unpost(r);
		r = px_match_next(next, src, f->tag);
	}
	if (r) {
		px_req_unpost(r);
		deliver(r, f, from, src, data);
		return;
	}
	u = malloc(sizeof *u + (f->seg ? 0 : f->body));
	if (!u)
		px_channel_abort(1, "out of memory for an unexpected message");
	u->f = *f;
	u->from = from;
	u->src = src;
	memcpy(u->data, data, f->seg ? 0 : f->body);
	px_match_arrive(m, u);
}

static void arrive(const struct px_frame *f, int from, const uint8_t *data)
{
	struct px_match *m = px_map_get(contexts, f->ctx);
	struct px_msg *u;

	if (m && m->c->rank_of[f->src] >= 0) {
		arrive_at(m, f, from, data);
		return;
	}
	u = malloc(sizeof *u + f->body);
	if (!u)
		px_channel_abort(1, "out of memory for an early message");
	u->f = *f;
	u->from = from;
	memcpy(u->data, data, f->body);
	u->next = NULL;
	*early_end = u;
	early_end = &u->next;
}

int px_channel_ctx_add(uint64_t ctx, struct px_match *m)
{
	struct px_msg **at = &early;

	if (px_map_put(contexts, ctx, m) < 0)
		return PX_ENOMEM;
	while (*at) {
		struct px_msg *u = *at;

		if (u->f.ctx != ctx) {
			at = &u->next;
			continue;
		}
		*at = u->next;
		arrive_at(m, &u->f, u->from, u->data);
		free(u);
	}
	early_end = at;
	return PX_OK;
}

void px_channel_ctx_del(uint64_t ctx)
{
	px_map_del(contexts, ctx);
}

static void handle(const uint8_t *envelope, int len, int from)
{
	struct px_frame f;
	struct px_req *r;

	if (px_frame_get(envelope, (size_t)len, &f) < 0 || f.src >= (uint32_t)px.world->nranks) {
		px_log(PX_LOG_ERROR, "rank %d: a malformed frame from native rank %d; please report this",
			px.grank, from);
		px_channel_abort(1, "malformed frame inside a site");
		return;
	}
	switch (f.type) {
	case PX_F_MSG:
		arrive(&f, from, envelope + PX_FRAME_SIZE);
		break;
	case PX_F_ACK:
		r = px_map_del(acks, f.msg);
		if (r)
			r->acked = true;
		break;
	case PX_F_FIN:
		fin_total = f.total;
		break;
	default:
		px_log(PX_LOG_ERROR, "rank %d: unexpected frame type %d from native rank %d", px.grank,
			f.type, from);
	}
}

bool px_channel_poll(void)
{
	int n = 0, flag, len;
	MPI_Status st;

	while (n < POLL_MAX) {
		if (px_n.Test(&ring[ring_head], &flag, &st) != MPI_SUCCESS || !flag)
			break;
		px_n.Get_count(&st, MPI_BYTE, &len);
		handle(ring_buf[ring_head], len, st.MPI_SOURCE);
		px_n.Start(&ring[ring_head]);
		ring_head = (ring_head + 1) % RING;
		n++;
	}
	return n > 0;
}

/* Receive and drop the payload of a message that nobody wanted, so that its sender completes. */
static void drain(struct px_msg *u)
{
	struct px_xfer x = { .peer = u->from, .tag = (int)u->f.local };
	struct px_wait w;
	int rc = MPI_SUCCESS;

	px_wait_init(&w);
	x.temp = u->f.seg ? malloc(u->f.total) : NULL;
	x.data = x.temp;
	if (x.temp && xfer_start(&x, u->f.total, u->f.seg, false) == MPI_SUCCESS)
		while (!px_xfer_test(&x, false, &rc) && rc == MPI_SUCCESS)
			px_relax(&w, false);
	free(x.temp);
	free(u);
}

void px_channel_drain(struct px_match *m)
{
	struct px_msg *u;

	while ((u = px_match_find(m, MPI_ANY_SOURCE, MPI_ANY_TAG, true)))
		drain(u);
}

static void drain_match(uint64_t ctx, void *match, void *arg)
{
	(void)ctx;
	(void)arg;
	px_channel_drain(match);
}

void px_channel_close(void)
{
	uint8_t envelope[PX_FRAME_SIZE];
	struct px_frame f;
	struct px_wait w;
	uint64_t start = px_now_ns();

	px_wait_init(&w);
	if (px.map.gateways > 0) {
		frame_init(&f, PX_F_FIN, px.grank);
		envelope_send(&f, envelope, 0, px.map.in[0], PX_TAG_DONE);
		while (fin_total == UINT64_MAX && px_now_ns() - start < DRAIN_NS)
			px_relax(&w, px_channel_poll());
		if (fin_total == UINT64_MAX)
			px_log(PX_LOG_WARN, "rank %d: the in-daemon does not answer at MPI_Finalize",
				px.grank);
		px_map_each(contexts, drain_match, NULL);
		while (early) {
			struct px_msg *u = early;

			early = u->next;
			drain(u);
		}
		early_end = &early;
		envelope_send(&f, envelope, 0, px.map.out[0], PX_TAG_UP);
	}
	for (int i = 0; i < RING; i++) {
		px_n.Cancel(&ring[i]);
		px_n.Wait(&ring[i], MPI_STATUS_IGNORE);
		px_n.Request_free(&ring[i]);
	}
}

void px_channel_abort(int code, const char *why)
{
	uint8_t envelope[PX_ENVELOPE_MAX];
	size_t len = strlen(why);
	struct px_frame f;
	struct px_wait w;
	uint64_t start = px_now_ns();

	px_wait_init(&w);
	if (px.on && px.map.gateways > 0) {
		frame_init(&f, PX_F_ABORT, px.grank);
		f.tag = code;
		f.body = f.total = len < PX_INLINE_MAX ? len : PX_INLINE_MAX;
		memcpy(envelope + PX_FRAME_SIZE, why, f.body);
		envelope_send(&f, envelope, (int)f.body, px.map.out[0], PX_TAG_UP);
		/* The out-daemon ends the native job, this rank with it. */
		while (px_now_ns() - start < ABORT_NS)
			px_wait_idle(&w);
	}
	px_n.Abort(MPI_COMM_WORLD, code);
	abort(); /* the native Abort does not return */
}

void px_channel_stats(const char *json)
{
	uint8_t envelope[PX_ENVELOPE_MAX];
	size_t len = strlen(json);
	struct px_frame f;

	if (len > PX_INLINE_MAX || px.map.gateways == 0)
		return;
	frame_init(&f, PX_F_STATS, px.grank);
	f.body = f.total = len;
	memcpy(envelope + PX_FRAME_SIZE, json, len);
	envelope_send(&f, envelope, (int)len, px.map.out[0], PX_TAG_UP);
}
