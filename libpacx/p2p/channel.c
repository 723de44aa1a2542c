/* channel.c: see channel.h.
 *
 * Design. An envelope is a frame header, and the payload when it is short; outbox.c sends it, and others with it. The receiver keeps RING posted receives and handles them strictly in
 * the order posted, which is the order in which the native MPI matches them; so frames of one sender stay
 * in order. Long payloads follow as native messages of their own and are received straight into
 * the user's buffer; only data that is not contiguous, or too long for the receive, takes a detour.
 *
 * Sends to other sites are held back here, in the user's buffer, when their destination does not take them (PX_HELD: a window
 * of envelopes per destination, opened again by CREDIT frames of the out-daemon), and only a few long ones per destination
 * give their payload to the daemon at a time (PX_LATER: the others, until one is through or the receiver pulls one). So a
 * receiver that does not receive stops its own senders, and costs the daemons little memory. A receive of a long message posts
 * its native receives first and then pulls the payload from the in-daemon, unless that has promised it with the announcement.
 */
#include "channel.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "datatype.h"
#include "err.h"
#include "map.h"
#include "outbox.h"
#include "raise.h"
#include "state.h"
#include "wait.h"

#define RING 32
#define POLL_MAX                                                                                             \
	8 /* envelopes handled per poll, so that a flood cannot keep a waiter from looking at its own request */
#define WINDOW 1024 /* segments of one receive posted at once: 1 GiB in the largest size */
#define WINDOW_SEND                                                                                          \
	16          /* segments of one send under way at once: the daemon's native MPI keeps a note of each */
#define LONGS    4  /* long messages per destination whose payload is on its way */
#define MIDDLES  16 /* the same when the next one is a middling one */
#define DRAIN_NS 10000000000u /* Finalize waits this long for the daemons */
#define ABORT_NS 5000000000u  /* Abort gives the daemons this long to tell the other sites */

struct px_traffic px_sent;

static uint8_t ring_buf[RING][PX_BATCH_MAX];
static MPI_Request ring[RING];
static int ring_head;
static struct px_map *contexts;                    /* ctx -> struct px_match */
static struct px_map *acks;                        /* message number -> struct px_req waiting for ACK */
static struct px_msg *early, **early_end = &early; /* for contexts that this rank has not made yet */
static struct px_map *longs; /* message number -> struct px_req: long sends to other sites, not complete */
static uint32_t next_msg;
static int fins; /* daemons that will send nothing more */

/* Sends to one rank of another site. */
static struct dest {
	uint32_t out;    /* envelopes that have not left the out-daemon, as far as it has told */
	unsigned active; /* long messages whose payload is on its way */
	struct px_req *held, **held_end;   /* in order: nothing of them has been sent */
	struct px_req *later, **later_end; /* announced; the payload has not begun */
} * dests;                                 /* [nranks of the world] */
static uint32_t window;                    /* px_pair_window */

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
	longs = px_map_new();
	dests = calloc((size_t)px.world->nranks, sizeof *dests);
	if (!contexts || !acks || !longs || !dests)
		return PX_ENOMEM;
	for (int i = 0; i < px.world->nranks; i++) {
		dests[i].held_end = &dests[i].held;
		dests[i].later_end = &dests[i].later;
	}
	window = px_pair_window(px.map.nranks, px.world->nranks - px.map.nranks);
	fins = 0;
	for (int i = 0; i < RING; i++) {
		if (px_n.Recv_init(ring_buf[i], PX_BATCH_MAX, MPI_BYTE, MPI_ANY_SOURCE, PX_TAG_DOWN,
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

	while (rc == MPI_SUCCESS && x->posted < x->n &&
		x->posted - x->done < (sending ? WINDOW_SEND : WINDOW)) {
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
	if (x->own_tag)
		tag_put(x->tag);
	x->own_tag = false;
	return true;
}

static int envelope_send(const struct px_frame *f, uint8_t *envelope, int body, int to, int tag)
{
	px_frame_put(f, envelope);
	return px_outbox_send(envelope, PX_FRAME_SIZE + body, to, tag);
}

static void frame_init(struct px_frame *f, enum px_frame_type type, int dst)
{
	memset(f, 0, sizeof *f);
	f->version = PX_PROTOCOL_VERSION;
	f->type = (uint8_t)type;
	f->src = (uint32_t)px.grank;
	f->dst = (uint32_t)dst;
}

/* All frames between two ranks go through one gateway, so they stay in order. */
static int flow_gateway(int dst)
{
	return (px.grank + dst) % px.map.gateways;
}

static int native_of(int dst)
{
	return px.map.native_of[dst - px.world->base[px.site]];
}

static int control_send(enum px_frame_type type, const struct px_req *r, int to)
{
	uint8_t envelope[PX_FRAME_SIZE];
	struct px_frame f;

	frame_init(&f, type, r->dst);
	f.msg = r->msg;
	return envelope_send(&f, envelope, 0, to, PX_TAG_UP);
}

/* The frame that begins message r. */
static int frame_make(struct px_frame *f, const struct px_req *r)
{
	const struct px_type *t = px_type_get(r->type);

	if (!t)
		return MPI_ERR_TYPE;
	frame_init(f, PX_F_MSG, r->dst);
	f->flags = (uint16_t)r->flags;
	f->total = (uint64_t)(r->count * t->size);
	f->elem = t->elem;
	f->ctx = r->ctx;
	f->tag = r->tag;
	f->msg = r->msg;
	f->depth = r->depth;
	if (f->total > PX_INLINE_MAX) {
		f->seg = f->total <= 4 * (uint64_t)PX_SEG_MAX ? PX_SEG_MIN : PX_SEG_MAX;
		f->via = r->via;
		if (f->total / f->seg >= INT_MAX)
			return MPI_ERR_COUNT;
	}
	return MPI_SUCCESS;
}

/* The bytes of a long message, or of one whose buffer the application may use again, lie where they are sent from. */
static int data_ready(struct px_req *r, uint64_t total)
{
	const struct px_type *t = px_type_get(r->type);

	if (r->x.data)
		return MPI_SUCCESS;
	r->x.data = r->buf;
	if (t->contig && r->mode != PX_BUFFERED)
		return MPI_SUCCESS;
	r->x.data = r->x.temp = malloc(total > 0 ? total : 1);
	return r->x.temp ? px_type_pack(r->buf, r->count, r->type, r->x.temp) : MPI_ERR_NO_MEM;
}

/* May a message of this length begin its payload now? */
static bool may_begin(const struct dest *d, uint64_t total)
{
	return d->active < (total <= PX_MIDDLE_MAX ? MIDDLES : LONGS) && !d->later;
}

/* Begin the payload of r: its segments go to native rank `to`. */
static int payload_start(struct px_req *r, const struct px_frame *f, int to)
{
	int rc;

	r->x.peer = to;
	rc = xfer_start(&r->x, f->total, f->seg, true);
	if (r->x.posted < r->x.n)
		px_req_need(r);
	return rc;
}

static int tag_take(struct px_req *r, struct px_frame *f)
{
	r->x.tag = tag_get();
	if (r->x.tag < 0)
		return MPI_ERR_NO_MEM;
	r->x.own_tag = true;
	f->local = (uint32_t)r->x.tag;
	return MPI_SUCCESS;
}

/* Give the payload of r, which has been announced, to the daemon of its gateway. */
static int payload_begin(struct px_req *r)
{
	uint8_t envelope[PX_FRAME_SIZE];
	struct px_frame f;
	int rc = frame_make(&f, r), to = px.map.out[r->via];

	r->stage = PX_UNDER_WAY;
	f.flags |= PX_FF_DATA;
	if (rc == MPI_SUCCESS)
		rc = tag_take(r, &f);
	if (rc == MPI_SUCCESS)
		rc = envelope_send(&f, envelope, 0, to, PX_TAG_UP);
	if (rc != MPI_SUCCESS)
		return rc;
	r->counted = true;
	dests[r->dst].active++;
	return payload_start(r, &f, to);
}

static void list_put(struct px_req ***end, struct px_req *r, enum px_stage stage)
{
	px_req_hold_types(r); /* its frame is made, and short data packed, when its turn comes */
	r->stage = stage;
	r->hnext = NULL;
	**end = r;
	*end = &r->hnext;
	px_req_need(r);
}

static struct px_req *list_take(struct px_req **first, struct px_req ***end, struct px_req *r)
{
	struct px_req **at = first;

	while (*at && r && *at != r)
		at = &(*at)->hnext;
	r = *at;
	if (r && !(*at = r->hnext))
		*end = at;
	return r;
}

/* Send what begins message r, whose turn it is. */
static int announce(struct px_req *r)
{
	uint8_t envelope[PX_ENVELOPE_MAX];
	bool local = px_is_local(r->dst);
	int to = local ? native_of(r->dst) : px.map.out[flow_gateway(r->dst)];
	int native_tag = local ? PX_TAG_DOWN : PX_TAG_UP;
	struct dest *d = &dests[r->dst];
	struct px_frame f;
	bool now;
	int rc = frame_make(&f, r);

	r->stage = PX_UNDER_WAY;
	if (rc != MPI_SUCCESS)
		return rc;
	if (f.seg == 0) {
		f.body = f.total;
		if (r->x.data)
			memcpy(envelope + PX_FRAME_SIZE, r->x.data, f.total);
		else
			rc = px_type_pack(r->buf, r->count, r->type, envelope + PX_FRAME_SIZE);
		if (rc == MPI_SUCCESS)
			rc = envelope_send(&f, envelope, (int)f.total, to, native_tag);
		/* Only what has left takes up the window: the daemon gives it back. */
		d->out += rc == MPI_SUCCESS && !local;
		r->done = rc == MPI_SUCCESS && r->mode != PX_SYNCHRONOUS;
		return rc;
	}
	rc = data_ready(r, f.total);
	if (rc == MPI_SUCCESS && !local)
		rc = px_map_put(longs, r->msg, r) < 0 ? MPI_ERR_NO_MEM : MPI_SUCCESS;
	/* One envelope says both, if one daemon serves both and the payload may begin. */
	now = local || (to == px.map.out[r->via] && may_begin(d, f.total));
	if (rc == MPI_SUCCESS && now)
		rc = tag_take(r, &f);
	if (rc == MPI_SUCCESS)
		rc = envelope_send(&f, envelope, 0, to, native_tag);
	if (rc != MPI_SUCCESS)
		return rc;
	d->out += local ? 0 : 1;
	if (now) {
		r->counted = !local;
		d->active += local ? 0 : 1;
		return payload_start(r, &f, to);
	}
	if (may_begin(d, f.total))
		return payload_begin(r);
	list_put(&d->later_end, r, PX_LATER);
	return MPI_SUCCESS;
}

static void move_on(struct px_req *r, int rc)
{
	if (rc != MPI_SUCCESS) {
		r->error = rc;
		r->done = true;
	}
	/* Sent inline it needs nobody's progress any more. */
	if (r->windowed && !r->orphan && r->stage == PX_UNDER_WAY && r->x.n == 0)
		px_req_rest(r);
}

/* The out-daemon has let n envelopes to dst leave. */
static void credit(int dst, uint64_t n)
{
	struct dest *d = &dests[dst];

	d->out = n < d->out ? d->out - (uint32_t)n : 0;
	while (d->held && d->out < window) {
		struct px_req *r = list_take(&d->held, &d->held_end, NULL);

		move_on(r, announce(r));
	}
}

/* The receiver of message `msg` wants its payload. */
static void pulled(uint32_t msg)
{
	struct px_req *r = px_map_get(longs, msg);

	if (!r)
		return; /* it has left already */
	if (r->stage == PX_LATER) {
		list_take(&dests[r->dst].later, &dests[r->dst].later_end, r);
		move_on(r, payload_begin(r));
	}
	/* Behind the beginning: now the daemon knows what it is about. */
	control_send(PX_F_PULL, r, px.map.out[r->via]);
}

void px_channel_sent(struct px_req *r)
{
	struct dest *d;

	if (!r->counted)
		return;
	r->counted = false;
	px_map_del(longs, r->msg);
	d = &dests[r->dst];
	d->active--;
	if (d->later && d->active < LONGS) {
		r = list_take(&d->later, &d->later_end, NULL);
		move_on(r, payload_begin(r));
	}
}

static int send_start(struct px_req *r, uint64_t ctx, int dst, unsigned flags)
{
	const struct px_type *t = px_type_get(r->type);
	bool local = px_is_local(dst);
	struct dest *d = &dests[dst];
	uint64_t total;

	if (!t)
		return MPI_ERR_TYPE;
	total = (uint64_t)(r->count * t->size);
	r->ctx = ctx;
	r->dst = dst;
	r->flags = flags | (r->mode == PX_SYNCHRONOUS ? PX_FF_SYNC : 0);
	r->msg = ++next_msg;
	/* A middling message goes one way: its receiver's daemon can then promise the payload with the announcement. */
	r->via = (uint16_t)(total <= PX_MIDDLE_MAX ? flow_gateway(dst)
						   : (int)(r->msg % (uint32_t)px.map.gateways));
	if (r->mode == PX_SYNCHRONOUS && px_map_put(acks, r->msg, r) < 0)
		return MPI_ERR_NO_MEM;
	if (!local) {
		px_sent.messages++;
		px_sent.bytes += total;
	}
	if (local || (!d->held && d->out < window))
		return announce(r);
	if (r->mode == PX_BUFFERED || total > PX_INLINE_MAX) {
		int rc = data_ready(r, total);

		if (rc != MPI_SUCCESS)
			return rc;
	}
	list_put(&d->held_end, r, PX_HELD);
	return MPI_SUCCESS;
}

int px_channel_send(struct px_req *r, uint64_t ctx, int dst, unsigned flags)
{
	int rc = send_start(r, ctx, dst, flags);

	if (rc != MPI_SUCCESS) { /* r may be on the stack */
		if (r->mode == PX_SYNCHRONOUS)
			px_map_del(acks, r->msg);
		px_map_del(longs, r->msg);
	}
	return rc;
}

/* The receiver of a synchronous message has matched it. */
static void ack_send(const struct px_frame *got)
{
	uint8_t envelope[PX_FRAME_SIZE];
	struct px_frame f;
	int dst = (int)got->src;

	frame_init(&f, PX_F_ACK, dst);
	f.ctx = got->ctx;
	f.msg = got->msg;
	if (px_is_local(dst))
		envelope_send(&f, envelope, 0, native_of(dst), PX_TAG_DOWN);
	else
		envelope_send(&f, envelope, 0, px.map.out[flow_gateway(dst)], PX_TAG_UP);
}

/* Ask the in-daemon for the payload of message f, under native tag `tag`; or say that nobody wants it. */
static void pull_send(const struct px_frame *got, int tag, bool unwanted)
{
	uint8_t envelope[PX_FRAME_SIZE];
	struct px_frame f;

	frame_init(&f, PX_F_PULL, px.grank);
	f.src = got->src;
	f.total = got->total;
	f.seg = got->seg;
	f.msg = got->msg;
	f.via = got->via;
	f.tag = unwanted;
	f.local = (uint32_t)tag;
	envelope_send(&f, envelope, 0, px.map.in[got->via % px.map.gateways], PX_TAG_DONE);
}

/* Post the native receives for the payload of f and have it sent. */
static int payload_receive(struct px_req *r, const struct px_frame *f, int from)
{
	bool promised =
		f->local != 0; /* by a rank of this site, or by the in-daemon: it comes under that tag */
	int rc;

	r->x.peer = promised ? from : px.map.in[f->via % px.map.gateways];
	r->x.tag = promised ? (int)f->local : tag_get();
	if (r->x.tag < 0)
		return MPI_ERR_NO_MEM;
	r->x.own_tag = !promised;
	rc = xfer_start(&r->x, f->total, f->seg, false);
	if (!promised)
		pull_send(f, r->x.tag, false);
	return rc;
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
	if (f->total > room) {
		r->error = MPI_ERR_TRUNCATE;
		r->why = px_text_truncated(r->c, src, f->tag, f->total, room, (f->flags & PX_FF_COLL) != 0);
	}
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

/* One frame with its body. */
static void take(const struct px_frame *f, const uint8_t *body, int from)
{
	struct px_req *r;

	switch (f->type) {
	case PX_F_MSG:
		arrive(f, from, body);
		break;
	case PX_F_ACK:
		r = px_map_del(acks, f->msg);
		if (r)
			r->acked = true;
		break;
	case PX_F_CREDIT:
		if (f->dst < (uint32_t)px.world->nranks)
			credit((int)f->dst, f->total);
		break;
	case PX_F_PULL:
		pulled(f->msg);
		break;
	case PX_F_FIN:
		fins++;
		break;
	default:
		px_log(PX_LOG_ERROR, "rank %d: unexpected frame type %d from native rank %d", px.grank,
			f->type, from);
	}
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
	for (int g = 0; g < px.map.gateways; g++) {
		frame_init(&f, PX_F_FIN, px.grank);
		envelope_send(&f, envelope, 0, px.map.in[g], PX_TAG_DONE);
		envelope_send(&f, envelope, 0, px.map.out[g], PX_TAG_UP);
	}
	while (fins < 2 * px.map.gateways && px_now_ns() - start < DRAIN_NS)
		px_relax(&w, px_channel_poll());
	if (fins < 2 * px.map.gateways)
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
	if (px.on && px.map.gateways > 0) {
		frame_init(&f, PX_F_ABORT, px.grank);
		f.tag = code;
		f.body = f.total = len < PX_INLINE_MAX ? len : PX_INLINE_MAX;
		memcpy(envelope + PX_FRAME_SIZE, why, f.body);
		envelope_send(&f, envelope, (int)f.body, px.map.out[0], PX_TAG_UP);
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

	if (len > PX_INLINE_MAX || px.map.gateways == 0)
		return;
	frame_init(&f, PX_F_STATS, px.grank);
	f.body = f.total = len;
	memcpy(envelope + PX_FRAME_SIZE, json, len);
	envelope_send(&f, envelope, (int)len, px.map.out[0], PX_TAG_UP);
}
