/* held.c: see held.h.
 *
 * Design. Sends to other sites are held back here, in the user's buffer, when their destination does not take them (PX_HELD: a window
 * of envelopes per destination, opened again by CREDIT frames of the out-daemon), and only a few long ones per destination
 * give their payload to the daemon at a time (PX_LATER: the others, until one is through or the receiver pulls one). So a
 * receiver that does not receive stops its own senders, and costs the daemons little memory.
 */
#include "held.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "comm.h"
#include "datatype.h"
#include "envelope.h"
#include "err.h"
#include "guest.h"
#include "hint.h"
#include "map.h"
#include "state.h"
#include "unlike.h"

#define LONGS   4  /* long messages per destination whose payload is on its way */
#define MIDDLES 64 /* the same when the next one is a middling one */

struct px_traffic px_sent;

static struct px_map *acks;  /* message number -> struct px_req waiting for ACK */
static struct px_map *longs; /* message number -> struct px_req: long sends to other sites, not complete */
static uint32_t next_msg;

/* Sends to one rank of another site. */
struct dest {
	uint32_t out; /* weight of the envelopes that have not left the out-daemon, as far as it has told */
	unsigned active;                   /* long messages whose payload is on its way */
	struct px_req *held, **held_end;   /* in order: nothing of them has been sent */
	struct px_req *later, **later_end; /* announced; the payload has not begun */
};
static struct px_map *dests; /* global rank -> struct dest: those to whom something is on its way */
static uint32_t window;      /* px_pair_window */

int px_held_open(void)
{
	acks = px_map_new();
	longs = px_map_new();
	dests = px_map_new();
	if (!acks || !longs || !dests)
		return PX_ENOMEM;
	window = px_pair_window(px.map.nranks, px.world->nranks - px.map.nranks);
	return PX_OK;
}

static struct dest *dest_of(int dst)
{
	return px_map_get(dests, (uint64_t)dst);
}

/* The record of a rank of another site, made if there is none. NULL: out of memory. */
static struct dest *dest_need(int dst)
{
	struct dest *d = dest_of(dst);

	if (d)
		return d;
	d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	d->held_end = &d->held;
	d->later_end = &d->later;
	if (px_map_put(dests, (uint64_t)dst, d) == 0)
		return d;
	free(d);
	return NULL;
}

/* A record that says nothing goes. */
static void dest_rest(struct dest *d, int dst)
{
	if (!d || d->out > 0 || d->active > 0 || d->held || d->later)
		return;
	px_map_del(dests, (uint64_t)dst);
	free(d);
}

static int control_send(enum px_frame_type type, const struct px_req *r, int to)
{
	uint8_t envelope[PX_FRAME_SIZE];
	struct px_frame f;

	px_envelope_init(&f, type, r->dst);
	f.msg = r->msg;
	return px_envelope_send(&f, envelope, 0, to, PX_TAG_UP);
}

/* What its out-daemon may know of a message of numbers. */
static uint64_t hint_of(const struct px_type *t, const struct px_req *r)
{
	struct px_hint h = { 0 };

	px_shape_rows(&t->shape, (uint64_t)r->count, &h.row, &h.plane);
	if (t->floating && r->c && r->ctx == r->c->ctx)
		h.bound = px_hint_bound(r->c->accuracy);
	return px_hint_put(&h);
}

/* The frame that begins message r. */
static int frame_make(struct px_frame *f, struct px_req *r)
{
	const struct px_type *t = px_type_get(r->type);

	if (!t)
		return MPI_ERR_TYPE;
	px_envelope_init(f, PX_F_MSG, r->dst);
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
	if (f->total >= PX_HINT_MIN && (t->elem == 4 || t->elem == 8))
		f->seq = hint_of(t, r);
	return px_unlike_any ? px_unlike_tell(r, f) : MPI_SUCCESS;
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
	rc = px_xfer_start(&r->x, f->total, f->seg, true);
	if (r->x.posted < r->x.n)
		px_req_need(r);
	return rc;
}

static int tag_take(struct px_req *r, struct px_frame *f)
{
	r->x.tag = px_xfer_tag();
	if (r->x.tag < 0)
		return MPI_ERR_NO_MEM;
	r->x.own_tag = true;
	f->local = (uint32_t)r->x.tag;
	return MPI_SUCCESS;
}

/* Give the payload of r, which has been announced, to the daemon of its gateway. */
static int payload_begin(struct px_req *r, struct dest *d)
{
	uint8_t envelope[PX_FRAME_SIZE];
	struct px_frame f;
	int rc = frame_make(&f, r), to = px.map.out[r->via];

	r->stage = PX_UNDER_WAY;
	f.flags |= PX_FF_DATA;
	if (rc == MPI_SUCCESS)
		rc = tag_take(r, &f);
	if (rc == MPI_SUCCESS)
		rc = px_envelope_send(&f, envelope, 0, to, PX_TAG_UP);
	if (rc != MPI_SUCCESS)
		return rc;
	r->counted = true;
	d->active++;
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

/* Send what begins message r, whose turn it is; d: NULL for a rank of this site. */
static int announce(struct px_req *r, struct dest *d)
{
	uint8_t envelope[PX_ENVELOPE_MAX];
	bool local = !d;
	int to = local ? px_native_of(r->dst) : px.map.out[px_flow_gateway(r->dst)];
	int native_tag = local ? PX_TAG_DOWN : PX_TAG_UP;
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
			rc = px_envelope_send(&f, envelope, (int)f.total, to, native_tag);
		/* Only what has left takes up the window: the daemon gives it back. */
		if (rc == MPI_SUCCESS && d)
			d->out += px_envelope_weight(f.total);
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
		rc = px_envelope_send(&f, envelope, 0, to, native_tag);
	if (rc != MPI_SUCCESS)
		return rc;
	if (d)
		d->out += px_envelope_weight(f.total);
	if (now) {
		r->counted = !local;
		if (d)
			d->active++;
		return payload_start(r, &f, to);
	}
	if (may_begin(d, f.total))
		return payload_begin(r, d);
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

/* The out-daemon has let envelopes of weight n to dst leave. */
void px_held_credit(int dst, uint64_t n)
{
	struct dest *d = dest_of(dst);

	if (!d)
		return;
	d->out = n < d->out ? d->out - (uint32_t)n : 0;
	while (d->held && d->out < window) {
		struct px_req *r = list_take(&d->held, &d->held_end, NULL);

		move_on(r, announce(r, d));
	}
	dest_rest(d, dst);
}

/* The receiver of message `msg` wants its payload. */
void px_held_pulled(uint32_t msg)
{
	struct px_req *r = px_map_get(longs, msg);
	struct dest *d = r ? dest_of(r->dst) : NULL;

	if (!d)
		return; /* it has left already */
	if (r->stage == PX_LATER) {
		list_take(&d->later, &d->later_end, r);
		move_on(r, payload_begin(r, d));
	}
	/* Behind the beginning: now the daemon knows what it is about. */
	control_send(PX_F_PULL, r, px.map.out[r->via]);
}

void px_channel_sent(struct px_req *r)
{
	struct dest *d;
	int dst;

	if (!r->counted)
		return;
	r->counted = false;
	px_map_del(longs, r->msg);
	d = dest_of(r->dst);
	dst = r->dst;
	d->active--;
	if (d->later && d->active < LONGS) {
		r = list_take(&d->later, &d->later_end, NULL);
		move_on(r, payload_begin(r, d));
	}
	dest_rest(d, dst);
}

/* To or from a guest: a copy goes at once. */
static int send_apart(struct px_req *r)
{
	struct px_frame f;
	uint8_t *parcel;
	int rc = frame_make(&f, r);

	if (rc != MPI_SUCCESS)
		return rc;
	parcel = malloc(PX_FRAME_SIZE + f.total);
	if (!parcel)
		return MPI_ERR_NO_MEM;
	rc = px_type_pack(r->buf, r->count, r->type, parcel + PX_FRAME_SIZE);
	if (rc != MPI_SUCCESS) {
		free(parcel);
		return rc;
	}
	rc = px_guest_send(&f, parcel);
	r->stage = PX_UNDER_WAY;
	r->done = rc == MPI_SUCCESS && r->mode != PX_SYNCHRONOUS;
	return rc;
}

static int send_start(struct px_req *r, uint64_t ctx, int dst, unsigned flags)
{
	const struct px_type *t = px_type_get(r->type);
	bool local = px_is_local(dst), apart = px_guest_way(dst);
	struct dest *d = NULL;
	uint64_t total;

	if (!t)
		return MPI_ERR_TYPE;
	if (!local && !apart && !(d = dest_need(dst)))
		return MPI_ERR_NO_MEM;
	total = (uint64_t)(r->count * t->size);
	r->ctx = ctx;
	r->dst = dst;
	r->flags = flags | (r->mode == PX_SYNCHRONOUS ? PX_FF_SYNC : 0);
	r->msg = ++next_msg;
	/* A middling message goes one way: its receiver's daemon can then promise the payload with the announcement. */
	r->via = (uint16_t)(total <= PX_MIDDLE_MAX ? px_flow_gateway(dst)
						   : (int)(r->msg % (uint32_t)px.map.gateways));
	if (r->mode == PX_SYNCHRONOUS && px_map_put(acks, r->msg, r) < 0)
		return MPI_ERR_NO_MEM;
	if (apart)
		return send_apart(r);
	if (!local) {
		px_sent.messages++;
		px_sent.bytes += total;
	}
	if (local || (!d->held && d->out < window))
		return announce(r, d);
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
		dest_rest(dest_of(dst), dst);
	}
	return rc;
}

void px_held_acked(uint32_t msg)
{
	struct px_req *r = px_map_del(acks, msg);

	if (r)
		r->acked = true;
}
