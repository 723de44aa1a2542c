/* link.c: see link.h. */
#include "link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "conn.h"
#include "crc.h"
#include "err.h"
#include "frame_check.h"
#include "link_rate.h"
#include "pack.h"
#include "quiet.h"
#include "stream_life.h"
#include "wait.h"

#define IOVS           64
#define UNHEARD_MIN_NS 5000000000u
#define REFUSED_MS                                                                                           \
	2000 /* so long, at most, a reader that knows nearly everything and answers no more is dialled */

static void stream_down(struct pxd_stream *s, const char *why, bool broken);

static void name_of(const struct pxd_stream *s, char *text, size_t cap)
{
	pxd_life_name(s->link->d, s->link->d->self, s->link->peer, s->index, text, cap);
}

/* Connections. */

static void stream_room(struct pxd_conn *c, uint8_t **base, size_t *n)
{
	static uint8_t staging[4096]; /* parsed at once, so one for all */

	(void)c;
	*base = staging;
	*n = sizeof staging;
}

static void reverse_abort(struct pxd_stream *s)
{
	char text[sizeof s->reason];

	pxd_text_clean((uint8_t *)s->reason, s->nreason, text, sizeof text);
	pxd_fail(s->link->d, s->parser.frame.tag, "site %s ended the job: %s",
		pxd_site_name(s->link->d, s->link->peer), text[0] ? text : "no reason given");
}

/* The reader has all frames up to this one. */
static void acked(struct pxd_stream *s, uint64_t seq)
{
	s->acked = seq;
	pxd_outq_acked(&s->q, seq);
	pxd_life_moved(&s->life);
}

/* A frame on its way back is complete. false: it is malformed. */
static bool reverse_frame(struct pxd_stream *s)
{
	const struct px_frame *f = &s->parser.frame;
	struct px_frame pong = { .version = PX_PROTOCOL_VERSION, .type = PX_F_PONG, .total = f->total };

	if (s->link->opts->plain && (!(f->flags & PX_FF_CHECK) || s->crc != f->check))
		return false;
	if (s->acked == s->seq)
		pxd_life_moved(&s->life);
	switch (f->type) {
	case PX_F_LINKACK:
		if (f->total > pxd_outq_sent(&s->q, s->seq))
			return false;
		if (f->total > s->acked)
			acked(s, f->total);
		return true;
	case PX_F_PING:
		/* Between frames only; while frames leave they say the same. */
		if (s->q.unsent == 0 && pxd_conn_busy(s->conn) <= PXD_SAID_MAX)
			pxd_frame_say(s->conn, &pong, s->link->opts->plain);
		return true;
	case PX_F_PONG:
		pxd_life_pong(&s->life, f);
		return true;
	case PX_F_ABORT:
		reverse_abort(s);
		return true;
	default:
		return s->link->frame(s->link->owner, s->link, f);
	}
}

static void stream_got(struct pxd_conn *c, uint8_t *base, size_t n)
{
	struct pxd_stream *s = c->owner;
	size_t used;
	int ev;

	while (!s->link->d->failed && (ev = px_parser_feed(&s->parser, base, n, &used)) != PX_PARSE_MORE) {
		if (ev < 0 || (ev == PX_PARSE_HEADER && px_frame_check_link(&s->parser.frame, 1) < 0) ||
			(ev == PX_PARSE_END && !reverse_frame(s))) {
			stream_down(s, "malformed or damaged frame from the peer", true);
			return;
		}
		if (ev == PX_PARSE_HEADER) {
			s->nreason = 0;
			s->crc = pxd_frame_sum(s->parser.head);
		}
		if (ev == PX_PARSE_BODY)
			s->crc = px_crc32c(s->crc, base, used);
		if (ev == PX_PARSE_BODY && s->nreason < sizeof s->reason - 1) {
			size_t k = sizeof s->reason - 1 - s->nreason < used
					   ? sizeof s->reason - 1 - s->nreason
					   : used;

			memcpy(s->reason + s->nreason, base, k);
			s->nreason += k;
		}
		base += used;
		n -= used;
	}
}

static void stream_flush(struct pxd_stream *s)
{
	while (s->conn && s->q.unsent > 0) {
		struct pxd_conn *c = s->conn;
		struct iovec v[IOVS];
		ssize_t n = pxd_conn_writev(c, v, pxd_outq_gather(&s->q, v, IOVS));

		if (s->conn != c)
			return; /* lost within the call */
		if (n < 0)
			stream_down(s, c->why, false);
		if (n <= 0)
			return;
		pxd_outq_wrote(&s->q, (size_t)n);
	}
}

static void stream_writable(struct pxd_conn *c)
{
	stream_flush(c->owner);
}

static void stream_lost(struct pxd_conn *c, const char *why)
{
	stream_down(c->owner, why, false);
}

static const struct pxd_conn_ops stream_ops = {
	.room = stream_room, .got = stream_got, .writable = stream_writable, .lost = stream_lost
};

static void conn_drop(struct pxd_stream *s)
{
	if (!s->conn)
		return;
	s->link->writes += s->conn->writes;
	pxd_conn_close(s->conn);
	s->conn = NULL;
	s->tcp_acked = s->tcp_busy = 0;
}

/* Everything has been acknowledged, BYE included: the peer may close as it likes. */
static bool finished(const struct pxd_stream *s)
{
	return s->link->byes >= (s->index == 0 ? 2 : 1) && s->acked == s->seq;
}

static void stream_down(struct pxd_stream *s, const char *why, bool broken)
{
	char name[200], text[200];

	if (s->life.state != PXD_LINK_UP)
		return;
	snprintf(text, sizeof text, "%s", why);
	conn_drop(s);
	if (finished(s) || s->link->closed || s->link->d->failed) {
		s->life.state = PXD_LINK_CLOSED;
		return;
	}
	/* Either BYE was lost, and the reader waits for it; or its acknowledgement was, and the reader may have left. */
	if (s->index == 0)
		s->link->bye_doubt = s->link->byes > 0 && s->q.unsent == 0;
	name_of(s, name, sizeof name);
	if (pxd_life_down(&s->life, s->link->d, name, text, s->acked, broken) && s->dials)
		pxd_dial_start(&s->dial);
}

/* Queueing. */

static void header_make(struct pxd_stream *s, const struct px_frame *f, const uint8_t *body, uint8_t *head)
{
	struct pxd_path *l = s->link;
	struct px_frame g = *f;

	if (s->acked == s->seq)
		pxd_life_moved(&s->life);
	g.seq = ++s->seq;
	g.local = 0; /* a native tag means nothing elsewhere */
	px_frame_put(&g, head);
	if (l->opts->plain)
		pxd_frame_check(head, body, (size_t)g.body);
	l->count.frames++;
	l->count.wire_bytes += PX_FRAME_SIZE + g.body;
	if (g.type == PX_F_MSG) {
		l->count.messages++;
		l->count.payload_bytes += g.total;
	}
}

int pxd_path_put(struct pxd_path *l, const struct px_frame *f, const uint8_t *body)
{
	struct pxd_stream *s = l->stream[0];
	uint8_t head[PX_FRAME_SIZE];

	pxd_recorder_put(l->recorder, f, body);
	header_make(s, f, body, head);
	return pxd_outq_put(&s->q, s->seq, head, body, (size_t)f->body);
}

static struct pxd_stream *shortest(const struct pxd_path *l)
{
	struct pxd_stream *best = l->stream[0];

	for (int i = 1; i < l->use; i++) {
		struct pxd_stream *s = l->stream[i];

		if (s->life.state == PXD_LINK_UP &&
			(best->life.state != PXD_LINK_UP || s->q.unsent < best->q.unsent))
			best = s;
	}
	return best;
}

int pxd_path_put_seg(struct pxd_path *l, const struct px_frame *f, struct pxd_seg *seg, bool ahead)
{
	struct pxd_stream *s = ahead ? l->stream[0] : shortest(l);
	uint8_t head[PX_FRAME_SIZE];

	header_make(s, f, seg->data, head);
	return pxd_outq_put_seg(&s->q, s->seq, head, seg);
}

int pxd_path_put_kept(struct pxd_path *l, const struct px_frame *f, struct pxd_seg *seg,
	struct pxd_seg *plain, int stream, struct pxd_kept **kept)
{
	struct pxd_stream *s = stream < 0 ? shortest(l) : l->stream[stream];
	struct px_frame g = *f;
	uint8_t head[PX_FRAME_SIZE];
	int rc;

	header_make(s, f, seg->data, head);
	g.seq = s->seq;
	rc = pxd_history_keep(&s->history, &g, plain, kept);
	if (rc == 0)
		return pxd_outq_put_seg(&s->q, s->seq, head, seg);
	pxd_seg_put(seg);
	return rc;
}

void pxd_path_flush(struct pxd_path *l)
{
	for (int i = 0; i < l->nstreams; i++)
		stream_flush(l->stream[i]);
}

static size_t held(const struct pxd_path *l)
{
	size_t n = l->packing_bytes;

	for (int i = 0; i < l->nstreams; i++)
		n += l->stream[i]->q.held;
	return n;
}

bool pxd_path_room(const struct pxd_path *l)
{
	if (held(l) >= l->retain || l->packing_bytes >= PXD_STREAM_HIGH)
		return false;
	for (int i = 0; i < l->use; i++)
		if (l->stream[i]->life.state == PXD_LINK_UP && l->stream[i]->q.unsent < PXD_STREAM_HIGH)
			return true;
	return false;
}

bool pxd_path_room_msg(const struct pxd_path *l)
{
	/* Envelopes may use a little more, so that long messages do not keep them out. */
	return l->nstreams > 0 && held(l) < l->retain + (1u << 20) &&
	       l->stream[0]->q.unsent < 2 * PXD_STREAM_HIGH;
}

/* The end. */

static bool all_acked(const struct pxd_path *l)
{
	for (int i = 0; i < l->nstreams; i++)
		if (l->stream[i]->acked != l->stream[i]->seq)
			return false;
	return true;
}

void pxd_path_bye(struct pxd_path *l)
{
	l->bye_wanted = true;
}

bool pxd_path_done(struct pxd_path *l)
{
	struct px_frame f = { .version = PX_PROTOCOL_VERSION, .type = PX_F_BYE };

	if (l->closed || !l->ever_up)
		return true;
	if (!l->bye_wanted || l->packing > 0)
		return false;
	/* BYE comes last, so it waits for what other streams carry; the second one for the first. */
	while (l->byes < 2 && all_acked(l)) {
		l->byes++;
		if (pxd_path_put(l, &f, NULL) < 0)
			pxd_fail(l->d, PXD_EXIT_INTERNAL, "out of memory");
		pxd_path_flush(l);
	}
	return all_acked(l) || l->stream[0]->life.state == PXD_LINK_CLOSED;
}

bool pxd_path_quiet(const struct pxd_path *l)
{
	for (int i = 0; i < l->nstreams; i++) {
		const struct pxd_stream *s = l->stream[i];

		if (s->conn && (s->q.unsent > 0 || pxd_conn_busy(s->conn) > 0))
			return false;
	}
	return true;
}

void pxd_path_say_abort(struct pxd_path *l, uint32_t src, int code, const char *why)
{
	size_t n = strnlen(why, PXD_REASON - 1);
	struct px_frame f = { .version = PX_PROTOCOL_VERSION,
		.type = PX_F_ABORT,
		.src = src,
		.tag = code,
		.body = n,
		.total = n };

	if (l->nstreams > 0 && l->stream[0]->life.state == PXD_LINK_UP &&
		pxd_path_put(l, &f, (const uint8_t *)why) == 0)
		stream_flush(l->stream[0]);
}

void pxd_path_close(struct pxd_path *l)
{
	if (l->closed)
		return;
	l->closed = true;
	for (int i = 0; i < l->nstreams; i++) {
		conn_drop(l->stream[i]);
		l->stream[i]->life.state = PXD_LINK_CLOSED;
		pxd_dial_close(&l->stream[i]->dial);
	}
	if (l->tick.data) {
		uv_close((uv_handle_t *)&l->tick, NULL);
		pxd_pack_close(l);
	}
}

void pxd_path_free(struct pxd_path *l)
{
	pxd_pack_free(l);
	for (int i = 0; i < l->nstreams; i++) {
		pxd_outq_fini(&l->stream[i]->q);
		pxd_history_fini(&l->stream[i]->history);
		free(l->stream[i]);
	}
	pxd_auto_free(l->choose);
	pxd_forecast_free(l->forecast);
	pxd_recorder_free(l->recorder);
}

/* Handshakes. */

void pxd_path_greet(struct pxd_path *l, int stream, struct px_hello *h)
{
	(void)stream;
	h->session = l->session;
	h->next = 0;
}

int pxd_path_judge(struct pxd_path *l, int stream, const struct px_hello *h, char *why, size_t cap)
{
	const struct pxd_stream *s = stream < l->nstreams ? l->stream[stream] : NULL;
	uint64_t next = h->next;

	if (!s || next == 0 || next <= s->acked || next > s->seq + 1) {
		snprintf(why, cap, "site %s wants frame %llu of stream %d, which is not to be had", h->name,
			(unsigned long long)next, stream);
		return PX_EPROTO;
	}
	if (h->session != l->session && (h->session != 0 || s->acked > 0)) {
		snprintf(why, cap, "site %s does not know this link any more; was it started anew?", h->name);
		return PX_ESITE;
	}
	return PX_OK;
}

void pxd_path_linked(struct pxd_path *l, int stream, struct pxd_conn *c, const struct px_hello *h)
{
	struct pxd_stream *s = l->stream[stream];
	char name[200];

	name_of(s, name, sizeof name);
	pxd_dial_stop(&s->dial);
	if (s->conn) { /* the peer has given it up already */
		conn_drop(s);
		if (!pxd_life_down(&s->life, l->d, name, "the peer has dialled again", s->acked, false)) {
			pxd_conn_close(c);
			return;
		}
	}
	if (h->next - 1 > s->acked)
		acked(s, h->next - 1);
	if (pxd_outq_rewind(&s->q, h->next, s->seq) < 0) {
		pxd_conn_close(c);
		pxd_fail(l->d, PXD_EXIT_INTERNAL, "frame %llu of a link is not there; please report this",
			(unsigned long long)h->next);
		return;
	}
	px_parser_init(&s->parser);
	c->ops = &stream_ops;
	c->owner = s;
	s->conn = c;
	pxd_life_up(&s->life, name, c->peer);
	for (int i = 0; i < l->nstreams; i++)
		l->stream[i]->dial.was_up = true;
	if (!l->ever_up) {
		l->ever_up = true;
		l->little = !h->repr.big_endian && !l->d->hello.repr.big_endian;
		l->up(l->owner, l, h);
	}
	stream_flush(s);
}

/* Time. */

static int stream_add(struct pxd_path *l)
{
	struct px_preamble pre = { .from = (uint16_t)l->d->self,
		.to = (uint16_t)l->peer,
		.from_gateway = (uint16_t)l->d->gateway,
		.to_gateway = (uint16_t)l->gateway,
		.stream = (uint16_t)l->nstreams };
	struct pxd_stream *s = calloc(1, sizeof *s);

	if (!s)
		return PX_ENOMEM;
	s->link = l;
	s->index = l->nstreams;
	pxd_life_init(&s->life, l->opts->reconnect_ms, 0);
	pxd_outq_init(&s->q);
	if (pxd_history_init(&s->history, pxd_history_share(l->d->hosts, l->d->self, l->peer, s->index)) <
		0) {
		free(s);
		return PX_ENOMEM;
	}
	if (pxd_dial_init(&s->dial, l->d, &pre) < 0) {
		pxd_history_fini(&s->history);
		free(s);
		return PX_EINVAL;
	}
	l->stream[l->nstreams++] = s;
	s->dial.was_up = l->ever_up;
	s->dials = pxd_hosts_dials(l->d->hosts, l->d->self, l->d->self, l->peer);
	if (s->dials)
		pxd_dial_start(&s->dial);
	return PX_OK;
}

/* Everything has been sent, and the reader acknowledges none of it: it may sit in a frame whose length was damaged on the way, where
 * it takes all that comes for the rest of that frame. */
static bool unheard(struct pxd_stream *s, uint64_t now)
{
	uint64_t limit = (uint64_t)s->link->opts->reconnect_ms * 1000000u / 2;

	if (s->acked_at == 0 || !s->conn || s->q.unsent > 0 || s->acked == s->seq ||
		s->acked != s->acked_then) {
		s->acked_at = now;
		s->acked_then = s->acked;
	}
	return px_past(now, s->acked_at) > (limit > UNHEARD_MIN_NS ? limit : UNHEARD_MIN_NS);
}

/* Nobody wants to know of BYE any more. The first is offered as long as any frame: the reader may need it. Of the second the reader
 * only learns that it need not wait for us; if it knows that, it has left. */
static bool bye_over(const struct pxd_stream *s)
{
	const struct pxd_path *l = s->link;

	if (s->index > 0)
		return finished(s);
	if (!l->bye_doubt)
		return false;
	return pxd_life_lost_for(&s->life, s->life.reconnect_ms) ||
	       (l->byes == 2 && (!s->dials || s->dial.refused) && pxd_life_lost_for(&s->life, REFUSED_MS));
}

static void stream_tick(struct pxd_stream *s)
{
	struct pxd_path *l = s->link;
	char name[200];

	if (unheard(s, px_now_ns())) {
		stream_down(s, "the peer does not acknowledge what it has been sent", false);
		return;
	}
	if (s->life.state == PXD_LINK_INTERRUPTED && bye_over(s)) {
		pxd_dial_stop(&s->dial);
		s->life.state = PXD_LINK_CLOSED;
		return;
	}
	name_of(s, name, sizeof name);
	switch (pxd_life_tick(&s->life, s->conn, name)) {
	case PXD_LIFE_PING:
		if (s->q.unsent == 0)
			pxd_life_ping(s->conn, l->opts->plain);
		break;
	case PXD_LIFE_CUT:
		stream_down(s, "the peer is silent", false);
		break;
	case PXD_LIFE_DEAD:
		pxd_life_dead(&s->life, l->d, name, s->dials ? s->dial.why : NULL);
		break;
	default:
		break;
	}
}

static void on_tick(uv_timer_t *t)
{
	struct pxd_path *l = t->data;

	pxd_rate_tick(l, px_now_ns(), stream_add);
	if (!l->closed)
		pxd_pack_go(l);
	for (int i = 0; i < l->nstreams && !l->d->failed; i++)
		stream_tick(l->stream[i]);
}

int pxd_path_open(struct pxd_path *l, struct pxd_node *d, int peer, int gateway, size_t retain)
{
	int rc = PX_OK;

	l->d = d;
	l->peer = peer;
	l->gateway = gateway;
	l->opts = pxd_hosts_link(d->hosts, d->self, peer);
	l->retain = retain;
	l->best_use = 1;
	if (getrandom(&l->session, sizeof l->session, 0) != sizeof l->session)
		l->session = px_now_ns();
	l->session |= 1; /* 0 means none */
	if (l->opts->compress != PXD_COMPRESS_NONE)
		l->choose = pxd_auto_new(l->opts);
	if (pxd_history_share(d->hosts, d->self, peer, 0) > 0)
		l->forecast = pxd_forecast_new();
	l->use = l->opts->streams > 0 ? l->opts->streams : 1;
	while (rc == 0 && l->nstreams < l->use)
		rc = stream_add(l);
	if (rc == 0 && (uv_timer_init(&d->loop, &l->tick) < 0 || pxd_pack_open(l) < 0))
		rc = PX_ENOMEM;
	if (rc < 0) {
		pxd_fail(d, rc == PX_EINVAL ? PXD_EXIT_CONFIG : PXD_EXIT_INTERNAL,
			"the link to site %s cannot be set up: %s", pxd_site_name(d, peer), px_strerror(rc));
		return rc;
	}
	l->tick.data = l;
	l->tick_at = px_now_ns();
	return uv_timer_start(&l->tick, on_tick, PXD_TICK_MS, PXD_TICK_MS);
}

void pxd_path_view(const struct pxd_path *l, struct pxd_path_view *v)
{
	memset(v, 0, sizeof *v);
	v->state = l->stream[0]->life.state;
	v->since = l->stream[0]->life.since;
	for (int i = 0; i < l->nstreams; i++) {
		const struct pxd_stream *s = l->stream[i];
		uint64_t heard = s->conn ? s->conn->heard : s->life.last_byte;

		if (s->life.state == PXD_LINK_UP)
			v->streams++;
		v->slow |= s->life.slow;
		v->reconnects += s->life.reconnects;
		v->last_byte = heard > v->last_byte ? heard : v->last_byte;
		v->queued += s->q.unsent;
		v->retained += s->q.held;
		v->retained_peak += s->q.peak;
		if (v->rtt_us == 0)
			v->rtt_us = s->life.rtt_us;
	}
}
