/* link_back.c: see link_back.h. */
#include "link_back.h"

#include <string.h>

#include "conn.h"
#include "frame_check.h"
#include "conn_hello.h"
#include "stream_life.h"

#define ACK_BYTES (512u << 10)
#define ACK_MS    10
/* The same for remembered segments: an acknowledgement each is too much where they are short. */
#define KEPT_BYTES (16u << 10)
#define KEPT_MS    2

void pxd_back_say(struct pxd_in_stream *s, const struct px_frame *f)
{
	if (s->conn)
		pxd_frame_say(s->conn, f, s->path->opts->plain);
}

void pxd_back_ack(struct pxd_in_stream *s)
{
	struct px_frame f = { .version = PX_PROTOCOL_VERSION, .type = PX_F_LINKACK, .total = s->seq };

	if (s->acked == s->seq || !s->conn || pxd_conn_busy(s->conn) > PXD_SAID_MAX)
		return;
	s->acked = s->seq;
	s->unacked = 0;
	pxd_back_say(s, &f);
}

static void on_ack(uv_timer_t *t)
{
	struct pxd_in_path *p = t->data;
	bool again = false;

	pxd_node_of(t->loop)->events++;
	for (int i = 0; i < p->nstreams; i++) {
		pxd_back_ack(p->stream[i]);
		again |= p->stream[i]->conn && p->stream[i]->acked != p->stream[i]->seq;
	}
	p->ack_running = again; /* nothing else might remind us of what could not be said now */
	if (again)
		uv_timer_start(&p->ack, on_ack, ACK_MS, 0);
}

void pxd_back_ack_later(struct pxd_in_stream *s, uint64_t bytes, bool kept)
{
	struct pxd_in_path *p = s->path;

	s->unacked += bytes;
	if (s->unacked >= (kept ? KEPT_BYTES : ACK_BYTES)) {
		pxd_back_ack(s);
	} else if (!p->ack_running || (kept && uv_timer_get_due_in(&p->ack) > KEPT_MS)) {
		p->ack_running = true;
		uv_timer_start(&p->ack, on_ack, kept ? KEPT_MS : ACK_MS, 0);
	}
}

void pxd_credit_begin(void *owner, void *record, uint32_t rank)
{
	const struct pxd_in_path *p = owner;
	struct pxd_credit *c = record;

	(void)rank;
	*c = (struct pxd_credit){ 0 };
	for (int k = 0; k < PXD_CREDITS; k++)
		if (k != PXD_CREDIT_RESERVE || !p->reserve)
			c->granted[k] = p->window[k];
}

/* What rank dst, or with tag = 1 each rank, has been granted. */
static void credit_say(struct pxd_in_path *p, const uint64_t granted[PXD_CREDITS], uint32_t dst, int tag)
{
	const struct px_frame f = { .version = PX_PROTOCOL_VERSION,
		.type = PX_F_CREDIT,
		.dst = dst,
		.tag = tag,
		.total = granted[PXD_CREDIT_MSG],
		.offset = granted[PXD_CREDIT_DATA],
		.ctx = granted[PXD_CREDIT_RESERVE] };

	pxd_back_say(p->stream[0], &f);
}

static void credit(struct pxd_in_path *p, struct pxd_credit *c, uint32_t rank)
{
	if (p->nstreams == 0 || !p->stream[0]->conn)
		return; /* all of it is said again when there is a connection */
	for (int k = 0; k < PXD_CREDITS; k++)
		if (k != PXD_CREDIT_RESERVE || !p->reserve)
			c->granted[k] = c->freed[k] + p->window[k];
	credit_say(p, c->granted, (uint32_t)p->d->hosts->sites[p->d->self].base + rank, 0);
}

void pxd_back_credits(struct pxd_in_path *p)
{
	struct pxd_credit first, *c;

	pxd_credit_begin(p, &first, 0);
	credit_say(p, first.granted, 0, 1);
	for (uint32_t i = 0; (c = pxd_pages_next(&p->credit, &i));)
		if (memcmp(c, &first, sizeof first) != 0)
			credit(p, c, i - 1);
}

struct pxd_credit *pxd_in_path_credit(struct pxd_in_path *p, int rank)
{
	struct pxd_credit *c = pxd_pages_get(&p->credit, (uint32_t)rank);

	if (!c) /* whoever asks may go on until the daemon has ended */
		pxd_fail(p->d, PXD_EXIT_INTERNAL, "out of memory for what comes from site %s",
			pxd_site_name(p->d, p->site));
	return c ? c : &p->none;
}

void pxd_in_path_freed(struct pxd_in_path *p, int rank, enum pxd_credit_kind kind, uint32_t charge)
{
	struct pxd_credit *c = pxd_in_path_credit(p, rank);

	c->freed[kind] += charge;
	if (kind == PXD_CREDIT_RESERVE && p->reserve) {
		p->reserve->used -= charge;
		return;
	}
	/* Often enough that the writer never waits for it, seldom enough to cost nothing. */
	if (c->freed[kind] + p->window[kind] - c->granted[kind] >= p->window[kind] / 4)
		credit(p, c, (uint32_t)rank);
}

void pxd_in_path_reserve(struct pxd_in_path *p, int rank, uint64_t least, uint64_t most)
{
	struct pxd_credit *c = pxd_in_path_credit(p, rank);
	const enum pxd_credit_kind k = PXD_CREDIT_RESERVE;
	uint64_t unspent = c->granted[k] - c->arrived[k], give = most > unspent ? most - unspent : 0,
		 room = p->reserve->limit > p->reserve->used ? p->reserve->limit - p->reserve->used : 0;

	if (give > room)
		give = room;
	if (unspent + give < least) /* it would not carry a segment */
		give = unspent < least && c->arrived[k] == c->freed[k] ? least - unspent : 0;
	if (give == 0)
		return;
	c->granted[k] += give;
	p->reserve->used += give;
	credit(p, c, (uint32_t)rank);
}

void pxd_in_path_pull(struct pxd_in_path *p, const struct px_frame *f)
{
	struct px_frame g = {
		.version = PX_PROTOCOL_VERSION, .type = PX_F_PULL, .src = f->src, .dst = f->dst, .msg = f->msg
	};

	if (p->nstreams > 0)
		pxd_back_say(p->stream[0], &g);
}

void pxd_in_path_say_abort(struct pxd_in_path *p, int code, const char *why)
{
	size_t n = strnlen(why, PXD_REASON - 1);
	struct px_frame f = {
		.version = PX_PROTOCOL_VERSION, .type = PX_F_ABORT, .tag = code, .body = n, .total = n
	};
	uint8_t head[PX_FRAME_SIZE];

	if (p->nstreams == 0 || !p->stream[0]->conn)
		return;
	px_frame_put(&f, head);
	if (p->opts->plain)
		pxd_frame_check(head, (const uint8_t *)why, n);
	pxd_conn_say(p->stream[0]->conn, head, sizeof head, (const uint8_t *)why, n);
}
