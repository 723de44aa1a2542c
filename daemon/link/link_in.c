/* link_in.c: see link_in.h.
 *
 * Design. Headers and short bodies are read into a staging buffer; the body of a SEG frame is read straight into the
 * segment buffer that the native send then uses. A frame counts as taken over when it is complete and its checksum, if any,
 * right; only then it is handed on, so a connection that breaks within a frame leaves nothing behind.
 */
#include "link_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "crc.h"
#include "endian.h"
#include "err.h"
#include "frame_check.h"
#include "link_back.h"
#include "quiet.h"
#include "residual.h"
#include "seg_in.h"
#include "stream_life.h"
#include "wait.h"

#define STAGING 65536
#define STAGING_BULK                                                                                         \
	4096        /* while segments come: little beyond the next header, as it would have to be copied */
#define LATE_MS 500 /* the out-daemon of this site speaks first: it knows more, and tells the other sites */
#define REFUSED_MS                                                                                           \
	10000 /* so long, at most, a writer whose BYE we have, and that may have left, is dialled */

static uint8_t staging[STAGING]; /* parsed at once, so one for all */

static void stream_down(struct pxd_in_stream *s, const char *why, bool broken);

static void name_of(const struct pxd_in_stream *s, char *text, size_t cap)
{
	pxd_life_name(s->path->d, s->path->site, s->path->d->self, s->index, text, cap);
}

/* Frames in. */

struct pxd_envelope *pxd_envelope_take(size_t n)
{
	struct pxd_envelope *e = malloc(sizeof *e + PX_FRAME_SIZE + n);

	if (e) {
		e->path = NULL;
		e->charge = 0;
	}
	return e;
}

void pxd_envelope_put(struct pxd_envelope *e)
{
	free(e);
}

/* Local rank of a frame's destination, or -1. */
static int local_rank(const struct pxd_node *d, const struct px_frame *f)
{
	uint32_t r = f->dst - (uint32_t)d->hosts->sites[d->self].base;

	return r < (uint32_t)d->hosts->sites[d->self].ranks ? (int)r : -1;
}

static void no_memory(struct pxd_in_stream *s)
{
	pxd_fail(s->path->d, PXD_EXIT_INTERNAL, "out of memory for a message from site %s",
		pxd_site_name(s->path->d, s->path->site));
}

/* Memory is bounded because nobody sends more than he was granted. It counts from the header on: each stream may have begun a
 * frame. What stays incomplete gives it back (uncharge). */
static bool charge(struct pxd_in_stream *s, const struct px_frame *f)
{
	struct pxd_credit *c = pxd_in_path_credit(s->path, local_rank(s->path->d, f));
	enum pxd_credit_kind k = f->type == PX_F_MSG        ? PXD_CREDIT_MSG
				 : f->flags & PX_FF_RESERVE ? PXD_CREDIT_RESERVE
							    : PXD_CREDIT_DATA;

	if (f->type == PX_F_ACK)
		return true;
	s->charge = f->type == PX_F_MSG ? px_msg_charge(f->body) : px_seg_charge(pxd_seg_plain(f));
	if (c->arrived[k] + s->charge > c->granted[k])
		return false;
	c->arrived[k] += s->charge;
	s->charged = &c->arrived[k];
	return true;
}

static void uncharge(struct pxd_in_stream *s)
{
	if (s->charged)
		*s->charged -= s->charge;
	s->charged = NULL;
}

/* A header is complete: check it and choose where its body goes. NULL or what is wrong. */
static const char *on_header(struct pxd_in_stream *s)
{
	struct pxd_in_path *p = s->path;
	const struct px_frame *f = &s->parser.frame;

	s->bulk = false;
	s->nreason = 0;
	if (px_frame_check_link(f, 0) < 0)
		return "a frame that may not be sent on a link";
	if (p->opts->plain) {
		if (!(f->flags & PX_FF_CHECK))
			return "a frame without a checksum";
		s->crc = pxd_frame_sum(s->parser.head);
	}
	if (f->type == PX_F_PING || f->type == PX_F_PONG)
		return NULL;
	if (f->seq != s->seq + 1)
		return "sequence number out of order";
	if (p->byes == 2 || (p->byes == 1 && f->type != PX_F_BYE))
		return "a frame behind BYE";
	if (f->type != PX_F_SEG && s->index > 0)
		return "a frame that belongs on stream 0";
	if (f->type == PX_F_SEG ? f->via != p->gateway : f->via >= p->d->hosts->sites[p->site].ngateways)
		return "payload through a gateway that is not its site's, or not this one";
	if (f->type == PX_F_BYE || f->type == PX_F_ABORT)
		return NULL;
	if (local_rank(p->d, f) < 0 || pxd_hosts_site_of(p->d->hosts, f->src) != p->site)
		return "a frame whose source is not at its site, or whose destination is not at ours";
	if (!charge(s, f))
		return "more than it has credit for";
	if (f->type == PX_F_SEG) {
		s->bulk = true;
		s->seg = pxd_seg_take(p->segs, (uint32_t)f->body);
		if (!s->seg)
			no_memory(s);
		return NULL;
	}
	s->env = pxd_envelope_take((size_t)f->body);
	if (!s->env)
		no_memory(s);
	return NULL;
}

static void on_body(struct pxd_in_stream *s, const uint8_t *data, size_t n)
{
	size_t at = (size_t)s->parser.at;

	if (s->path->opts->plain && !s->seg)
		s->crc = px_crc32c(s->crc, data, n);
	if (s->seg) {
		memcpy(s->seg->data + at, data, n);
	} else if (s->env) {
		memcpy(s->env->bytes + PX_FRAME_SIZE + at, data, n);
	} else if (s->nreason < sizeof s->reason - 1) {
		size_t k = sizeof s->reason - 1 - s->nreason < n ? sizeof s->reason - 1 - s->nreason : n;

		memcpy(s->reason + s->nreason, data, k);
		s->nreason += k;
	}
}

static void on_abort(struct pxd_in_stream *s, const struct px_frame *f)
{
	char text[sizeof s->reason];

	pxd_text_clean((uint8_t *)s->reason, s->nreason, text, sizeof text);
	pxd_fail(s->path->d, f->tag, "site %s ended the job: %s", pxd_site_name(s->path->d, s->path->site),
		text[0] ? text : "no reason given");
}

static void msg_take(struct pxd_in_path *p, struct px_frame *f, struct pxd_envelope *e)
{
	int rank = local_rank(p->d, f), rc;

	if (f->type == PX_F_MSG) {
		p->count.messages++;
		p->count.payload_bytes += f->total;
		e->path = p;
		e->charge = px_msg_charge(f->body);
	}
	f->flags &= (uint16_t)~PX_FF_CHECK;
	f->check = 0;
	rc = p->ops->msg(p->owner, p, e, f, rank);
	if (rc == PX_EPROTO)
		pxd_fail(p->d, PXD_EXIT_PROTOCOL, "site %s broke the protocol: acknowledgements without end",
			pxd_site_name(p->d, p->site));
	else if (rc < 0)
		pxd_fail(p->d, PXD_EXIT_INTERNAL, "cannot hand a message of site %s to its rank: %s",
			pxd_site_name(p->d, p->site), px_strerror(rc));
}

/* Nobody needs this path any more: we have everything, and the writer knows, or is gone. */
static void over(struct pxd_in_path *p)
{
	struct pxd_in_stream *s = p->stream[0];

	if (p->over)
		return;
	p->over = true;
	if (s->dials)
		pxd_dial_stop(&s->dial);
	if (s->life.state == PXD_LINK_INTERRUPTED)
		s->life.state = PXD_LINK_CLOSED;
	p->ops->ended(p->owner);
}

/* A frame is complete. NULL or what is wrong. */
static const char *on_end(struct pxd_in_stream *s)
{
	struct pxd_in_path *p = s->path;
	struct px_frame *f = &s->parser.frame;
	struct px_frame pong = { .version = PX_PROTOCOL_VERSION, .type = PX_F_PONG, .total = f->total };
	struct pxd_envelope *e = s->env;
	struct pxd_seg *seg = s->seg;

	if (p->opts->plain) {
		if (seg)
			s->crc = px_crc32c(s->crc, seg->data, seg->len);
		if (s->crc != f->check)
			return "a damaged frame: its checksum is wrong";
	}
	pxd_life_moved(&s->life);
	if (f->type == PX_F_PONG)
		pxd_life_pong(&s->life, f);
	if (f->type == PX_F_PING && s->conn && pxd_conn_busy(s->conn) <= PXD_SAID_MAX)
		pxd_back_say(s, &pong);
	if (f->type == PX_F_PING || f->type == PX_F_PONG)
		return NULL;
	s->env = NULL;
	s->seg = NULL;
	s->charged = NULL; /* from now on it is the rank's to free */
	s->seq++;
	p->count.frames++;
	p->count.wire_bytes += PX_FRAME_SIZE + f->body;
	switch (f->type) {
	case PX_F_MSG:
	case PX_F_ACK:
		msg_take(p, f, e);
		break;
	case PX_F_SEG:
		pxd_seg_in(s, f, seg);
		break;
	case PX_F_BYE:
		p->byes++;
		pxd_back_ack(s);
		if (p->byes == 2)
			over(p);
		break;
	case PX_F_ABORT:
		on_abort(s, f);
		break;
	}
	pxd_back_ack_later(s, PX_FRAME_SIZE + f->body, f->flags & PX_FF_KEEP);
	return NULL;
}

/* Connections. */

static void stream_room(struct pxd_conn *c, uint8_t **base, size_t *n)
{
	struct pxd_in_stream *s = c->owner;
	uint64_t left = px_parser_left(&s->parser);

	if (s->seg && left > 0) {
		*base = s->seg->data + (s->seg->len - left);
		*n = (size_t)left;
		return;
	}
	*base = staging;
	*n = s->bulk ? STAGING_BULK : STAGING;
}

static void stream_got(struct pxd_conn *c, uint8_t *base, size_t n)
{
	struct pxd_in_stream *s = c->owner;
	struct pxd_node *d = s->path->d;
	const uint8_t *at = base;
	size_t used;
	int ev;

	if (base != staging) {
		px_parser_took(&s->parser, n);
		at = staging;
		n = 0;
	}
	while (!d->failed && (ev = px_parser_feed(&s->parser, at, n, &used)) != PX_PARSE_MORE) {
		const char *wrong = NULL;

		if (ev == PX_PARSE_HEADER)
			wrong = on_header(s);
		else if (ev == PX_PARSE_BODY)
			on_body(s, at, used);
		else if (ev == PX_PARSE_END)
			wrong = on_end(s);
		else
			wrong = ev == PX_EVERSION ? "a frame of another protocol version" : "malformed frame";
		if (wrong) {
			stream_down(s, wrong, true);
			return;
		}
		at += used;
		n -= used;
	}
}

static void stream_lost(struct pxd_conn *c, const char *why)
{
	stream_down(c->owner, why, false);
}

static const struct pxd_conn_ops stream_ops = { .room = stream_room, .got = stream_got, .lost = stream_lost };

static void conn_drop(struct pxd_in_stream *s)
{
	if (s->conn)
		pxd_conn_close(s->conn);
	s->conn = NULL;
	pxd_envelope_put(s->env);
	pxd_seg_put(s->seg);
	s->env = NULL;
	s->seg = NULL;
	uncharge(s);
	px_parser_init(&s->parser);
}

static void stream_down(struct pxd_in_stream *s, const char *why, bool broken)
{
	struct pxd_in_path *p = s->path;
	char name[200], text[200];

	if (s->life.state != PXD_LINK_UP)
		return;
	snprintf(text, sizeof text, "%s", why);
	conn_drop(s);
	if (p->over || p->closed || p->d->failed || (p->byes > 0 && s->index > 0)) {
		s->life.state = PXD_LINK_CLOSED;
		return;
	}
	name_of(s, name, sizeof name);
	if (pxd_life_down(&s->life, p->d, name, text, s->seq, broken) && s->dials)
		pxd_dial_start(&s->dial);
}

/* Streams come into being when the writer opens them. */
static struct pxd_in_stream *stream_get(struct pxd_in_path *p, int stream)
{
	while (p->nstreams <= stream) {
		struct pxd_in_stream *s = calloc(1, sizeof *s);
		struct px_preamble pre = { .from = (uint16_t)p->site,
			.to = (uint16_t)p->d->self,
			.from_gateway = (uint16_t)p->gateway,
			.to_gateway = (uint16_t)p->d->gateway,
			.stream = (uint16_t)p->nstreams };

		if (!s)
			return NULL;
		if (pxd_history_init(&s->history,
			    pxd_history_share(p->d->hosts, p->site, p->d->self, p->nstreams)) < 0) {
			free(s);
			return NULL;
		}
		s->path = p;
		s->index = p->nstreams;
		pxd_life_init(&s->life, p->opts->reconnect_ms, LATE_MS);
		s->dials = pxd_hosts_dials(p->d->hosts, p->d->self, p->site, p->d->self);
		if (s->dials && pxd_dial_init(&s->dial, p->d, &pre) < 0) {
			pxd_history_fini(&s->history);
			free(s);
			return NULL;
		}
		p->stream[p->nstreams++] = s;
	}
	return p->stream[stream];
}

/* Handshakes. */

void pxd_in_path_greet(struct pxd_in_path *p, int stream, struct px_hello *h)
{
	h->session = p->session;
	h->next = (stream < p->nstreams ? p->stream[stream]->seq : 0) + 1;
}

int pxd_in_path_judge(struct pxd_in_path *p, int stream, const struct px_hello *h, char *why, size_t cap)
{
	(void)stream;
	if (h->next != 0 || h->session == 0) {
		snprintf(why, cap, "site %s does not say that it will write on this link", h->name);
		return PX_EPROTO;
	}
	if (p->session != 0 && h->session != p->session) {
		snprintf(why, cap, "site %s is linked to site %s already; was it started twice?", h->name,
			p->d->hello.name);
		return PX_ESITE;
	}
	return PX_OK;
}

void pxd_in_path_linked(struct pxd_in_path *p, int stream, struct pxd_conn *c, const struct px_hello *h)
{
	struct pxd_in_stream *s = stream_get(p, stream);
	char name[200];

	if (!s) {
		pxd_conn_close(c);
		return;
	}
	name_of(s, name, sizeof name);
	if (s->dials)
		pxd_dial_stop(&s->dial);
	if (s->conn) { /* the writer has given it up already */
		conn_drop(s);
		if (!pxd_life_down(&s->life, p->d, name, "the peer has dialled again", s->seq, false)) {
			pxd_conn_close(c);
			return;
		}
	}
	p->session = h->session;
	c->ops = &stream_ops;
	c->owner = s;
	s->conn = c;
	s->acked = s->seq; /* our hello has said it */
	s->unacked = 0;
	pxd_life_up(&s->life, name, c->peer);
	p->ever_up = true;
	for (int i = 0; i < p->nstreams; i++)
		p->stream[i]->dial.was_up = true;
	if (stream == 0)
		pxd_back_credits(p);
	p->ops->up(p->owner, p);
}

/* Time. */

/* A writer that knows nothing better offers its BYE as long as we wait; one that knew that we have it may have left. */
static bool bye_over(const struct pxd_in_stream *s)
{
	return s->path->byes > 0 && s->index == 0 &&
	       (pxd_life_lost_for(&s->life, s->life.reconnect_ms) ||
		       (s->dials && s->dial.refused && pxd_life_lost_for(&s->life, REFUSED_MS)));
}

static void on_tick(uv_timer_t *t)
{
	struct pxd_in_path *p = t->data;

	p->ops->tick(p->owner);
	for (int i = 0; i < p->nstreams && !p->d->failed; i++) {
		struct pxd_in_stream *s = p->stream[i];
		char name[200];

		if (bye_over(s)) {
			over(p);
			continue;
		}
		name_of(s, name, sizeof name);
		switch (pxd_life_tick(&s->life, s->conn, name)) {
		case PXD_LIFE_PING:
			pxd_life_ping(s->conn, p->opts->plain);
			break;
		case PXD_LIFE_CUT:
			stream_down(s, "the peer is silent", false);
			break;
		case PXD_LIFE_DEAD:
			if (p->byes == 0)
				pxd_life_dead(&s->life, p->d, name, s->dials ? s->dial.why : NULL);
			break;
		default:
			break;
		}
	}
}

int pxd_in_path_open(
	struct pxd_in_path *p, struct pxd_node *d, int site, int gateway, const uint64_t window[PXD_CREDITS])
{
	p->d = d;
	p->site = site;
	p->gateway = gateway;
	p->opts = pxd_hosts_link(d->hosts, site, d->self);
	memcpy(p->window, window, sizeof p->window);
	p->credit.begin = pxd_credit_begin;
	p->credit.owner = p;
	pxd_studies_init(
		&p->studies, &d->loop, &d->events, &p->count.codec[pxd_codec_slot(PXD_CODEC_RESIDUAL)].ns);
	if (pxd_pages_init(&p->credit, sizeof(struct pxd_credit), (uint32_t)d->hosts->sites[d->self].ranks) <
			0 ||
		uv_timer_init(&d->loop, &p->tick) < 0 || uv_timer_init(&d->loop, &p->ack) < 0)
		return PX_ENOMEM;
	p->tick.data = p->ack.data = p;
	uv_timer_start(&p->tick, on_tick, PXD_TICK_MS, PXD_TICK_MS);
	if (!pxd_hosts_dials(d->hosts, d->self, site, d->self))
		return PX_OK;
	if (!stream_get(p, p->opts->streams > 0 ? p->opts->streams - 1 : 0))
		return PX_ENOMEM;
	for (int i = 0; i < p->nstreams; i++)
		pxd_dial_start(&p->stream[i]->dial);
	return PX_OK;
}

void pxd_in_path_close(struct pxd_in_path *p)
{
	if (p->closed)
		return;
	p->closed = true;
	for (int i = 0; i < p->nstreams; i++) {
		pxd_back_ack(p->stream[i]);
		conn_drop(p->stream[i]);
		p->stream[i]->life.state = PXD_LINK_CLOSED;
		if (p->stream[i]->dials)
			pxd_dial_close(&p->stream[i]->dial);
	}
	if (p->tick.data) {
		uv_close((uv_handle_t *)&p->tick, NULL);
		uv_close((uv_handle_t *)&p->ack, NULL);
	}
	pxd_studies_close(&p->studies);
}

void pxd_in_path_free(struct pxd_in_path *p)
{
	pxd_studies_fini(&p->studies);
	for (int i = 0; i < p->nstreams; i++) {
		pxd_history_fini(&p->stream[i]->history);
		free(p->stream[i]);
	}
	pxd_pages_fini(&p->credit);
}

void pxd_in_path_view(const struct pxd_in_path *p, struct pxd_path_view *v)
{
	memset(v, 0, sizeof *v);
	for (int i = 0; i < p->nstreams; i++) {
		const struct pxd_in_stream *s = p->stream[i];
		uint64_t heard = s->conn ? s->conn->heard : s->life.last_byte;

		if (i == 0) {
			v->state = s->life.state;
			v->since = s->life.since;
		}
		if (s->life.state == PXD_LINK_UP)
			v->streams++;
		v->slow |= s->life.slow;
		v->reconnects += s->life.reconnects;
		v->last_byte = heard > v->last_byte ? heard : v->last_byte;
		if (v->rtt_us == 0)
			v->rtt_us = s->life.rtt_us;
	}
}
