/* channel.c: see channel.h.
 *
 * Design. An envelope is a frame header, and the payload when it is short; outbox.c sends it, and others with it. The receiver keeps RING posted receives and handles them strictly in
 * the order posted, which is the order in which the native MPI matches them; so frames of one sender stay
 * in order. Long payloads follow as native messages of their own and are received straight into
 * the user's buffer; only data that is not contiguous, or too long for the receive, takes a detour.
 *
 * What leaves this rank, and when, is held.c's. A receive of a long message posts its native receives first (xfer.c) and then pulls
 * the payload from the in-daemon, unless that has promised it with the announcement.
 */
#include "channel.h"

#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "datatype.h"
#include "envelope.h"
#include "err.h"
#include "guest.h"
#include "held.h"
#include "map.h"
#include "outbox.h"
#include "raise.h"
#include "state.h"
#include "unlike.h"
#include "wait.h"

#define RING 32
#define POLL_MAX                                                                                             \
	8 /* envelopes handled per poll, so that a flood cannot keep a waiter from looking at its own request */
#define DRAIN_NS 10000000000u /* Finalize waits this long for the daemons */
#define ABORT_NS 5000000000u  /* Abort gives the daemons this long to tell the other sites */

static uint8_t ring_buf[RING][PX_BATCH_MAX];
static MPI_Request ring[RING];
static int ring_head;
static struct px_map *contexts;                    /* ctx -> struct px_match */
static struct px_msg *early, **early_end = &early; /* for contexts that this rank has not made yet */
static double *seen;                               /* [gateways * sites] bytes/s by one of ours */
static int fins;                                   /* daemons that will send nothing more */

int px_channel_open(void)
{
	contexts = px_map_new();
	seen = calloc((size_t)(px.nsites * px.map.gateways) + 1, sizeof *seen);
	if (!contexts || !seen || px_unlike_open() < 0 || px_held_open() < 0)
		return PX_ENOMEM;
	fins = 0;
	for (int i = 0; i < RING; i++) {
		if (px_n.Recv_init(ring_buf[i], PX_BATCH_MAX, MPI_BYTE, MPI_ANY_SOURCE, PX_TAG_DOWN,
			    px.map.relay, &ring[i]) != MPI_SUCCESS ||
			px_n.Start(&ring[i]) != MPI_SUCCESS)
			return PX_EMPI;
	}
	return PX_OK;
}

/* The receiver of a synchronous message has matched it. */
static void ack_send(const struct px_frame *got)
{
	uint8_t envelope[PX_FRAME_SIZE];
	struct px_frame f;
	int dst = (int)got->src;

	px_envelope_init(&f, PX_F_ACK, dst);
	f.ctx = got->ctx;
	f.msg = got->msg;
	if (px_guest_way(dst)) {
		uint8_t *parcel = malloc(PX_FRAME_SIZE);

		if (!parcel || px_guest_send(&f, parcel) != MPI_SUCCESS)
			px_channel_abort(1, "out of memory for an acknowledgement");
		return;
	}
	if (px_is_local(dst))
		px_envelope_send(&f, envelope, 0, px_native_of(dst), PX_TAG_DOWN);
	else
		px_envelope_send(&f, envelope, 0, px.map.out[px_flow_gateway(dst)], PX_TAG_UP);
}

/* Ask the in-daemon for the payload of message f, under native tag `tag`; or say that nobody wants it. */
static void pull_send(const struct px_frame *got, int tag, bool unwanted)
{
	uint8_t envelope[PX_FRAME_SIZE];
	struct px_frame f;

	px_envelope_init(&f, PX_F_PULL, px.grank);
	f.src = got->src;
	f.total = got->total;
	f.seg = got->seg;
	f.msg = got->msg;
	f.via = got->via;
	f.tag = unwanted;
	f.local = (uint32_t)tag;
	px_envelope_send(&f, envelope, 0, px.map.in[got->via % px.map.gateways], PX_TAG_DONE);
}

/* Post the native receives for the payload of f and have it sent. */
static int payload_receive(struct px_req *r, const struct px_frame *f, int from)
{
	bool promised =
		f->local != 0; /* by a rank of this site, or by the in-daemon: it comes under that tag */
	int rc;

	r->x.peer = promised ? from : px.map.in[f->via % px.map.gateways];
	r->x.tag = promised ? (int)f->local : px_xfer_tag();
	if (r->x.tag < 0)
		return MPI_ERR_NO_MEM;
	r->x.own_tag = !promised;
	rc = px_xfer_start(&r->x, f->total, f->seg, false);
	if (!promised)
		pull_send(f, r->x.tag, false);
	return rc;
}

static void no_memory(const struct px_frame *f)
{
	/* The payload must leave the daemon all the same, or it would wait for ever. */
	px_log(PX_LOG_ERROR, "rank %d: no memory for a message of %llu bytes", px.grank,
		(unsigned long long)f->total);
	px_channel_abort(1, "out of memory");
}

/* Deliver a matched message to r. `data` is the inline payload. */
static void deliver(struct px_req *r, const struct px_frame *f, int from, int src, const uint8_t *data)
{
	const struct px_type *t = px_type_get(r->type);
	uint64_t room = (uint64_t)(r->count * t->size), come, take;

	if (f->flags & PX_FF_SYNC)
		ack_send(f);
	if (r->depth < f->depth)
		r->depth = f->depth;
	if (px_unlike_any && !px_unlike_receive(r, f, src))
		no_memory(f);
	come = r->x.right ? px_right_length(r->x.right) : f->total;
	take = come < room ? come : room;
	px_req_set_status(r, src, f->tag, (MPI_Count)take);
	if (come > room) {
		r->error = MPI_ERR_TRUNCATE;
		r->why = px_text_truncated(r->c, src, f->tag, come, room, (f->flags & PX_FF_COLL) != 0);
	}
	if (f->seg == 0) {
		int rc = r->x.right ? px_unlike_end(r, data)
				    : px_type_unpack(data, take, r->buf, r->count, r->type);

		if (rc != MPI_SUCCESS)
			r->error = rc;
		r->done = true;
		return;
	}
	r->x.data = r->buf;
	if (r->x.right ? !px_right_in_place(r->x.right) : !t->contig || f->total > room) {
		r->x.data = r->x.temp = malloc(f->total);
		if (!r->x.temp)
			no_memory(f);
	}
	if (payload_receive(r, f, from) != MPI_SUCCESS) {
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
	int src = px_rank_of(m->c, f->src);
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

	if (m && px_rank_of(m->c, f->src) >= 0) {
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

/* What the out-daemon that is native rank `from` has seen a link carry. */
static void seen_note(int from, int site, double rate)
{
	for (int g = 0; site < px.nsites && g < px.map.gateways; g++)
		if (px.map.out[g] == from)
			seen[g * px.nsites + site] = rate;
}

/* One frame with its body. */
static void take(const struct px_frame *f, const uint8_t *body, int from)
{
	switch (f->type) {
	case PX_F_MSG:
		arrive(f, from, body);
		break;
	case PX_F_ACK:
		px_held_acked(f->msg);
		break;
	case PX_F_CREDIT:
		if (f->dst < (uint32_t)px.world->nranks)
			px_held_credit((int)f->dst, f->total);
		break;
	case PX_F_PULL:
		px_held_pulled(f->msg);
		break;
	case PX_F_FIN:
		fins++;
		break;
	case PX_F_RATE:
		if (f->dst < (uint32_t)px.world->nranks)
			seen_note(from, px_world_site(px.world, (int)f->dst), (double)f->total);
		break;
	default:
		px_log(PX_LOG_ERROR, "rank %d: unexpected frame type %d from native rank %d", px.grank,
			f->type, from);
	}
}

void px_channel_deliver(const struct px_frame *f, const uint8_t *data)
{
	take(f, data, px.map.native_of[px.lrank]);
}

/* The frames of a native message. */
static void handle(const uint8_t *bytes, size_t len, int from)
{
	const uint8_t *body;
	struct px_frame f;
	size_t at = 0;
	int rc;

	while ((rc = px_frame_next(bytes, len, &at, &f, &body)) > 0 && f.src < (uint32_t)px.world->nranks)
		take(&f, body, from);
	if (rc != 0) {
		px_log(PX_LOG_ERROR, "rank %d: a malformed frame from native rank %d; please report this",
			px.grank, from);
		px_channel_abort(1, "malformed frame inside a site");
	}
}

bool px_channel_poll(void)
{
	int n = 0, flag, len;
	bool some = px_outbox_poll();
	MPI_Status st;

	px_outbox_cork(); /* what several frames cause to be sent goes together */
	while (n < POLL_MAX) {
		if (px_n.Test(&ring[ring_head], &flag, &st) != MPI_SUCCESS || !flag)
			break;
		px_n.Get_count(&st, MPI_BYTE, &len);
		handle(ring_buf[ring_head], (size_t)len, st.MPI_SOURCE);
		px_n.Start(&ring[ring_head]);
		ring_head = (ring_head + 1) % RING;
		n++;
	}
	if (px_outbox_uncork() != MPI_SUCCESS)
		px_channel_abort(1, "a native send failed");
	return some || n > 0;
}

/* Receive and drop the payload of a message that nobody wanted, so that its sender completes. */
static void drain(struct px_msg *u)
{
	struct px_xfer x = { .peer = u->from, .tag = (int)u->f.local };
	struct px_wait w;
	int rc = MPI_SUCCESS;

	if (u->f.seg && u->f.local == 0) {
		if (fins == 0)
			pull_send(&u->f, 0, true);
		free(u);
		return;
	}
	px_wait_init(&w);
	x.temp = u->f.seg ? malloc(u->f.total) : NULL;
	x.data = x.temp;
	if (x.temp && px_xfer_start(&x, u->f.total, u->f.seg, false) == MPI_SUCCESS)
		while (!px_xfer_test(&x, false, &rc) && rc == MPI_SUCCESS)
			px_relax(&w, false);
	free(x.temp);
	free(u);
}

void px_channel_drain(struct px_match *m)
{
	struct px_msg *u;

	while ((u = px_match_pop(m)))
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
	int answers = px_guest_self ? 0 : 2 * px.map.gateways;

	px_wait_init(&w);
	for (int g = 0; g < px.map.gateways && !px_guest_self; g++) {
		px_envelope_init(&f, PX_F_FIN, px.grank);
		px_envelope_send(&f, envelope, 0, px.map.in[g], PX_TAG_DONE);
		px_envelope_send(&f, envelope, 0, px.map.out[g], PX_TAG_UP);
	}
	while (fins < answers && px_now_ns() - start < DRAIN_NS)
		px_relax(&w, px_channel_poll());
	if (fins < answers)
		px_log(PX_LOG_WARN, "rank %d: the daemons do not answer at MPI_Finalize", px.grank);
	px_map_each(contexts, drain_match, NULL);
	while (early) {
		struct px_msg *u = early;

		early = u->next;
		drain(u);
	}
	early_end = &early;
	px_outbox_close();
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
	if (px.on && px.map.gateways > 0 && !px_guest_self) {
		px_envelope_init(&f, PX_F_ABORT, px.grank);
		f.tag = code;
		f.body = f.total = len < PX_INLINE_MAX ? len : PX_INLINE_MAX;
		memcpy(envelope + PX_FRAME_SIZE, why, f.body);
		px_envelope_send(&f, envelope, (int)f.body, px.map.out[0], PX_TAG_UP);
		px_outbox_flush();
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

	if (len > PX_INLINE_MAX || px.map.gateways == 0 || px_guest_self)
		return;
	px_envelope_init(&f, PX_F_STATS, px.grank);
	f.body = f.total = len;
	memcpy(envelope + PX_FRAME_SIZE, json, len);
	px_envelope_send(&f, envelope, (int)len, px.map.out[0], PX_TAG_UP);
}

double px_channel_seen(int site)
{
	double least = 0;

	for (int g = 0; seen && site < px.nsites && g < px.map.gateways; g++) {
		double rate = seen[g * px.nsites + site];

		if (rate > 0 && (least <= 0 || rate < least))
			least = rate;
	}
	return least;
}

void px_channel_rate(int dst, double rate)
{
	uint8_t envelope[PX_ENVELOPE_MAX];
	struct px_frame f;

	px_envelope_init(&f, PX_F_RATE, px.grank);
	f.dst = (uint32_t)dst;
	f.total = rate < 1 ? 1 : rate < 1e15 ? (uint64_t)rate : (uint64_t)1e15;
	for (int g = 0; g < px.map.gateways; g++)
		px_envelope_send(&f, envelope, 0, px.map.out[g], PX_TAG_UP);
}
