/* role_in.c: role in: TCP in, native MPI out.
 *
 * Design. Each accepted connection is a link from one site with an incremental parser. Headers and short
 * bodies are read into one shared staging buffer; the body of a SEG frame is read straight into the segment
 * buffer that the native Issend then sends. What a link brings is handed to in_send.c at once. A link whose
 * site is lost is not reported at once: an ABORT may be on its way through another link, and knows more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn.h"
#include "err.h"
#include "in_send.h"
#include "link.h"
#include "listen.h"
#include "pacxd.h"
#include "parser.h"
#include "stats.h"
#include "vendor.h"
#include "wait.h"

#define STAGING 65536
#define STAGING_BULK                                                                                         \
	4096 /* while segments come: little beyond the next header, as it would have to be copied */
#define DONE_RING         4
#define LOST_GRACE_MS     400
#define DEADLINE_EXTRA_MS 2000 /* the out-daemons of both sites speak first */

struct in_link {
	struct in *in;
	int site;
	struct pxd_conn *conn;
	enum pxd_link_state state;
	struct px_parser parser;
	uint64_t seq;
	bool skip;                /* the body is not ours to look at */
	bool bulk;                /* the last frame was a segment */
	struct pxd_envelope *env; /* being filled */
	struct pxd_seg *seg;      /* being filled */
	struct pxd_in_long *msg;  /* of seg */
	char reason[256];         /* of an ABORT */
	size_t nreason;
	struct pxd_counters count;
};

struct in {
	struct pxd *d;
	struct pxd_listen listen;
	struct in_link *link; /* [nsites] */
	int missing, open;    /* sites not linked yet; links before their BYE */
	struct pxd_sends sends;
	uv_timer_t deadline, lost;
	char lost_why[256];
	uint8_t done_buf[DONE_RING][PX_FRAME_SIZE];
	MPI_Request done[DONE_RING];
	int head, nfin;
	uint8_t staging[STAGING];
};

static void broken(struct in_link *l, const char *what)
{
	struct pxd *d = l->in->d;

	pxd_fail(d, PXD_EXIT_PROTOCOL, "site %s (%s) broke the protocol: %s", pxd_site_name(d, l->site),
		l->conn->peer, what);
}

static void check_rc(struct in_link *l, int rc)
{
	if (rc == PX_EPROTO)
		broken(l, "it announced a message twice");
	else if (rc < 0)
		pxd_fail(l->in->d, PXD_EXIT_INTERNAL, "cannot hand a message of site %s to its rank: %s",
			pxd_site_name(l->in->d, l->site), px_strerror(rc));
}

/* Local rank of a frame's destination, or -1. */
static int local_rank(const struct in *in, const struct px_frame *f)
{
	uint32_t r = f->dst - (uint32_t)in->d->hosts->sites[in->d->self].base;

	return r < (uint32_t)in->d->map.nranks ? (int)r : -1;
}

/* A header is complete: check it and choose where its body goes. */
static void on_header(struct in_link *l)
{
	struct in *in = l->in;
	const struct px_frame *f = &l->parser.frame;

	l->skip = l->bulk = false;
	l->count.frames++;
	l->count.wire_bytes += PX_FRAME_SIZE + f->body;
	if (px_frame_check_link(f) < 0 || f->type < PX_F_MSG) {
		broken(l, "a frame that may not be sent on a link");
		return;
	}
	if (f->seq != ++l->seq) {
		broken(l, "sequence number out of order");
		return;
	}
	if (l->state != PXD_LINK_UP) {
		broken(l, "a frame behind BYE");
		return;
	}
	if (f->type == PX_F_BYE || f->type == PX_F_ABORT) {
		l->nreason = 0;
		return;
	}
	if (local_rank(in, f) < 0 || pxd_site_of(in->d, f->src) != l->site) {
		broken(l, "a frame whose source is not at its site, or whose destination is not at ours");
		return;
	}
	if (f->type == PX_F_SEG) {
		l->bulk = true;
		l->msg = pxd_in_long_find(&in->sends, f);
		if (!l->msg) {
			broken(l, "a segment that was not announced, or is out of order");
			return;
		}
		l->seg = pxd_seg_take(&in->sends.segs, (uint32_t)f->body);
		if (!l->seg)
			check_rc(l, PX_ENOMEM);
		return;
	}
	l->env = pxd_envelope_take(&in->sends);
	if (!l->env)
		check_rc(l, PX_ENOMEM);
}

static void on_body(struct in_link *l, const uint8_t *data, size_t n)
{
	size_t at = (size_t)l->parser.at;

	if (l->seg) {
		memcpy(l->seg->data + at, data, n);
	} else if (l->env) {
		memcpy(l->env->bytes + PX_FRAME_SIZE + at, data, n);
	} else if (l->nreason < sizeof l->reason - 1) {
		size_t k = sizeof l->reason - 1 - l->nreason < n ? sizeof l->reason - 1 - l->nreason : n;

		memcpy(l->reason + l->nreason, data, k);
		l->nreason += k;
	}
}

static void on_abort(struct in_link *l, const struct px_frame *f)
{
	char text[sizeof l->reason];

	pxd_text_clean((uint8_t *)l->reason, l->nreason, text, sizeof text);
	pxd_fail(l->in->d, f->tag, "site %s ended the job: %s", pxd_site_name(l->in->d, l->site),
		text[0] ? text : "no reason given");
}

static void on_end(struct in_link *l)
{
	struct in *in = l->in;
	struct px_frame *f = &l->parser.frame;
	struct pxd_envelope *e = l->env;
	struct pxd_seg *s = l->seg;

	l->env = NULL;
	l->seg = NULL;
	switch (f->type) {
	case PX_F_MSG:
		l->count.messages++;
		l->count.payload_bytes += f->total;
		check_rc(l, f->seg ? pxd_in_long_add(&in->sends, e, f, local_rank(in, f))
				   : pxd_envelope_send(&in->sends, e, f, local_rank(in, f)));
		break;
	case PX_F_ACK:
		check_rc(l, pxd_envelope_send(&in->sends, e, f, local_rank(in, f)));
		break;
	case PX_F_SEG:
		check_rc(l, pxd_in_long_part(&in->sends, l->msg, s));
		break;
	case PX_F_BYE:
		l->state = PXD_LINK_BYE;
		in->open--;
		break;
	case PX_F_ABORT:
		on_abort(l, f);
		break;
	}
}

static void link_room(struct pxd_conn *c, uv_buf_t *buf)
{
	struct in_link *l = c->owner;
	uint64_t left = px_parser_left(&l->parser);

	if (l->seg && left > 0)
		*buf = uv_buf_init((char *)l->seg->data + (l->seg->len - left), (unsigned)left);
	else
		*buf = uv_buf_init((char *)l->in->staging, l->bulk ? STAGING_BULK : STAGING);
}

static void link_got(struct pxd_conn *c, uint8_t *base, size_t n)
{
	struct in_link *l = c->owner;
	struct pxd *d = l->in->d;
	const uint8_t *at = base;
	size_t used;
	int ev;

	if (base != l->in->staging) {
		px_parser_took(&l->parser, n);
		at = l->in->staging;
		n = 0;
	}
	while (!d->failed && (ev = px_parser_feed(&l->parser, at, n, &used)) != PX_PARSE_MORE) {
		if (ev == PX_PARSE_HEADER)
			on_header(l);
		else if (ev == PX_PARSE_BODY)
			on_body(l, at, used);
		else if (ev == PX_PARSE_END)
			on_end(l);
		else
			broken(l, ev == PX_EVERSION ? "a frame of another protocol version"
						    : "malformed frame");
		at += used;
		n -= used;
	}
}

static void on_lost_over(uv_timer_t *t)
{
	struct in *in = t->data;

	pxd_fail(in->d, PXD_EXIT_LOST, "%s", in->lost_why);
}

static void link_lost(struct pxd_conn *c, int err)
{
	struct in_link *l = c->owner;
	struct in *in = l->in;

	if (l->state == PXD_LINK_UP && !in->lost_why[0]) {
		snprintf(in->lost_why, sizeof in->lost_why, "link from site %s (%s) to site %s lost %s: %s",
			pxd_site_name(in->d, l->site), c->peer, pxd_site_name(in->d, in->d->self),
			px_parser_idle(&l->parser) ? "before its end" : "in the middle of a frame",
			err == UV_EOF ? "the peer closed the connection" : uv_strerror(err));
		uv_timer_start(&in->lost, on_lost_over, LOST_GRACE_MS, 0);
	}
	pxd_conn_close(c);
	l->conn = NULL;
	l->state = PXD_LINK_GONE;
}

static const struct pxd_conn_ops link_ops = { link_room, link_got, link_lost };

/* Beyond px_hello_check: does the peer fit our hostfile, and is it new? */
static int peer_judge(void *owner, const struct px_hello *h, char *why, size_t cap)
{
	const struct in *in = owner;
	const struct pxd_site *s = &in->d->hosts->sites[h->site];

	if (strcmp(s->name, h->name) != 0) {
		snprintf(why, cap,
			"site %u is %s in the hostfile of site %s, but it says %s; use the same hostfile on "
			"all sites",
			h->site, s->name, in->d->hello.name, h->name);
		return PX_ESITE;
	}
	if (h->nranks != (uint32_t)s->ranks) {
		snprintf(why, cap, "site %s has %u ranks, but %d in the hostfile of site %s", h->name,
			h->nranks, s->ranks, in->d->hello.name);
		return PX_ERANKS;
	}
	if (h->gateways != 1 || h->streams != 1) {
		snprintf(why, cap, "site %s has %u gateways and %u streams; this version knows 1 of each",
			h->name, h->gateways, h->streams);
		return PX_EVERSION;
	}
	if (in->link[h->site].state != PXD_LINK_WAITING) {
		snprintf(why, cap, "site %s is linked to site %s already; was it started twice?", h->name,
			in->d->hello.name);
		return PX_ESITE;
	}
	return PX_OK;
}

static void peer_accepted(void *owner, struct pxd_conn *c, const struct px_hello *h)
{
	struct in *in = owner;
	struct in_link *l = &in->link[h->site];

	c->ops = &link_ops;
	c->owner = l;
	l->conn = c;
	l->state = PXD_LINK_UP;
	px_log(PX_LOG_DEBUG, "link from site %s (%s, %u ranks, %s) is up", h->name, c->peer, h->nranks,
		h->vendor);
	if (--in->missing == 0)
		uv_timer_stop(&in->deadline);
}

static void on_deadline(uv_timer_t *t)
{
	struct in *in = t->data;
	char text[512];
	size_t n = 0;

	text[0] = '\0';
	for (int i = 0; i < in->d->hosts->nsites && n < sizeof text; i++)
		if (i != in->d->self && in->link[i].state == PXD_LINK_WAITING)
			n += (size_t)snprintf(
				text + n, sizeof text - n, "%s%s", n ? ", " : "", pxd_site_name(in->d, i));
	pxd_fail(in->d, PXD_EXIT_START,
		"start deadline of %g s passed: no connection came from %s; does a firewall keep "
		"them from %s port %d?",
		(double)in->d->hosts->deadline_start_ms / 1000, text, in->d->hosts->sites[in->d->self].host,
		in->d->hosts->sites[in->d->self].port);
}

/* A rank will receive nothing more: tell it how many envelopes are its own, so that it can take them all. */
static void fin_take(struct in *in, const uint8_t *frame, int len)
{
	const struct pxd_site *self = &in->d->hosts->sites[in->d->self];
	struct px_frame f, answer = { .version = PX_PROTOCOL_VERSION, .type = PX_F_FIN };
	struct pxd_envelope *e;
	uint32_t rank;

	if (px_frame_get(frame, (size_t)len, &f) < 0 || f.type != PX_F_FIN ||
		(rank = f.src - (uint32_t)self->base) >= (uint32_t)in->d->map.nranks ||
		in->sends.rank[rank].fin) {
		pxd_fail(in->d, PXD_EXIT_INTERNAL,
			"malformed or second FIN from a local rank; please report this");
		return;
	}
	in->sends.rank[rank].fin = true;
	in->nfin++;
	answer.src = answer.dst = f.src;
	answer.total = in->sends.rank[rank].envelopes;
	e = pxd_envelope_take(&in->sends);
	if (!e || pxd_envelope_send(&in->sends, e, &answer, (int)rank) < 0)
		pxd_fail(in->d, PXD_EXIT_INTERNAL, "cannot answer the FIN of rank %u", f.src);
}

static bool fins_poll(struct in *in)
{
	int n = 0;

	for (; n < DONE_RING && in->nfin < in->d->map.nranks; n++) {
		int flag = 0, len = 0;
		MPI_Status st;

		if (px_n.Test(&in->done[in->head], &flag, &st) != MPI_SUCCESS) {
			pxd_fail(in->d, PXD_EXIT_INTERNAL, "a native receive failed");
			return true;
		}
		if (!flag)
			break;
		px_n.Get_count(&st, MPI_BYTE, &len);
		fin_take(in, in->done_buf[in->head], len);
		px_n.Start(&in->done[in->head]);
		in->head = (in->head + 1) % DONE_RING;
	}
	return n > 0;
}

static bool in_poll(struct pxd *d)
{
	struct in *in = d->state;
	bool some = pxd_world_poll(d);

	some |= fins_poll(in);
	some |= pxd_sends_poll(&in->sends);
	return some;
}

static bool in_done(struct pxd *d)
{
	struct in *in = d->state;

	return in->missing == 0 && in->open == 0 && in->nfin == d->map.nranks &&
	       !pxd_sends_pending(&in->sends) && d->world.state == PXD_WORLD_DONE;
}

static bool in_pending(struct pxd *d)
{
	struct in *in = d->state;

	/* Once some rank has finished others follow soon, and wait for our answer. */
	return pxd_sends_pending(&in->sends) || in->nfin > 0 || d->world.state != PXD_WORLD_DONE;
}

static int in_open(struct pxd *d)
{
	struct in *in = calloc(1, sizeof *in);
	int n = d->hosts->nsites, rc = PX_ENOMEM;

	if (!in)
		goto fail;
	d->state = in;
	in->d = d;
	in->link = calloc((size_t)n, sizeof *in->link);
	if (!in->link || pxd_sends_init(&in->sends, d) < 0 || uv_timer_init(&d->loop, &in->deadline) < 0 ||
		uv_timer_init(&d->loop, &in->lost) < 0)
		goto fail;
	in->deadline.data = in->lost.data = in;
	for (int i = 0; i < n; i++) {
		in->link[i].in = in;
		in->link[i].site = i;
	}
	in->missing = in->open = n - 1;
	for (int i = 0; i < DONE_RING; i++) {
		rc = PX_EMPI;
		if (px_n.Recv_init(in->done_buf[i], PX_FRAME_SIZE, MPI_BYTE, MPI_ANY_SOURCE, PX_TAG_DONE,
			    d->map.relay, &in->done[i]) != MPI_SUCCESS ||
			px_n.Start(&in->done[i]) != MPI_SUCCESS)
			goto fail;
	}
	if (n > 1) {
		in->listen.judge = peer_judge;
		in->listen.accepted = peer_accepted;
		in->listen.owner = in;
		rc = pxd_listen_open(&in->listen, d);
		if (rc < 0)
			return rc;
		uv_timer_start(&in->deadline, on_deadline,
			(uint64_t)d->hosts->deadline_start_ms + DEADLINE_EXTRA_MS, 0);
	}
	return pxd_world_start(d, NULL);
fail:
	pxd_fail(d, PXD_EXIT_INTERNAL, "the in-daemon cannot start: %s", px_strerror(rc));
	return rc;
}

static void in_close(struct pxd *d)
{
	struct in *in = d->state;

	for (int i = 0; i < DONE_RING; i++) {
		px_n.Cancel(&in->done[i]);
		px_n.Wait(&in->done[i], MPI_STATUS_IGNORE);
		px_n.Request_free(&in->done[i]);
	}
	if (d->hosts->nsites > 1)
		pxd_listen_close(&in->listen);
	for (int i = 0; i < d->hosts->nsites; i++)
		if (in->link[i].conn)
			pxd_conn_close(in->link[i].conn);
	uv_close((uv_handle_t *)&in->deadline, NULL);
	uv_close((uv_handle_t *)&in->lost, NULL);
	uv_run(&d->loop, UV_RUN_DEFAULT);
	pxd_sends_fini(&in->sends);
	free(in->link);
	free(in);
	d->state = NULL;
}

static void in_report(struct pxd *d)
{
	struct in *in = d->state;
	const char *self = pxd_site_name(d, d->self);
	struct px_buf b = { 0 };
	bool first = true;

	pxd_stats_add(&b, "{\"links_in\":[");
	for (int i = 0; i < d->hosts->nsites; i++) {
		const struct pxd_counters *c = &in->link[i].count;

		if (i == d->self)
			continue;
		pxd_stats_add(&b, "%s{\"from\":", first ? "" : ",");
		pxd_stats_quote(&b, pxd_site_name(d, i));
		pxd_stats_add(&b, ",\"to\":");
		pxd_stats_quote(&b, self);
		pxd_stats_add(&b,
			",\"messages\":%llu,\"payload_bytes\":%llu,\"wire_bytes\":%llu,\"frames\":%llu,"
			"\"segment_peak_bytes\":%llu,\"envelope_peak\":%llu,\"dropped\":%llu}",
			(unsigned long long)c->messages, (unsigned long long)c->payload_bytes,
			(unsigned long long)c->wire_bytes, (unsigned long long)c->frames,
			(unsigned long long)in->sends.segs.peak_bytes,
			(unsigned long long)in->sends.envelope_peak, (unsigned long long)in->sends.dropped);
		first = false;
	}
	pxd_stats_add(&b, "]}");
	if (pxd_stats_send(STDOUT_FILENO, self, "in", "stats", (char *)px_buf_data(&b), px_buf_len(&b)) < 0)
		px_log(PX_LOG_WARN, "the statistics could not be written to standard output");
	px_buf_fini(&b);
}

const struct pxd_role pxd_role_in = { in_open, in_poll, in_done, in_pending, in_close, in_report };
