/* role_out.c: role out: native MPI in, TCP out.
 *
 * Design. Phases: DIALLING (a path to every other site; status lines; start deadline), WORLD
 * (broadcast of the world map inside the site), RUNNING, LEAVING (all local ranks have finished: BYE on
 * every path). Envelopes from ranks arrive in a ring of posted receives and are handled strictly in ring
 * order, which is the order in which the native MPI matches them; so frames of one rank stay in order.
 * Frames for one path that arrive in one turn leave in one write.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alive.h"
#include "bell.h"
#include "conn.h"
#include "conn_dial.h"
#include "err.h"
#include "handoff.h"
#include "link.h"
#include "listen.h"
#include "missing.h"
#include "out_flow.h"
#include "pacxd.h"
#include "stats.h"
#include "text.h"
#include "vendor.h"
#include "wait.h"

#define RING            32
#define STATUS_FIRST_MS 3000
#define STATUS_EVERY_MS 5000
#define ABORT_FLUSH_NS  2000000000u

struct out {
	struct pxd *d;
	struct pxd_path *path;   /* [nsites]; that of ourselves is unused */
	struct px_hello *hellos; /* [nsites] */
	int missing;             /* sites not linked yet */
	uv_timer_t status, deadline;
	bool leaving;
	MPI_Request
		left; /* of `left_frame`, which tells the in-daemon that nobody needs to reach us any more */
	bool left_said;
	uint8_t left_frame[PX_FRAME_SIZE];
	uint8_t ring_buf[RING][PX_BATCH_MAX];
	MPI_Request ring[RING];
	int head;
	int nfin; /* local ranks that have finished */
	struct pxd_out_flow flow;
	struct pxd_alive alive;   /* the ranks of this node */
	struct pxd_listen listen; /* of what the in-daemon hands over */
	struct pxd_handoff handoff;
	char *collectives; /* JSON text from a rank */
	uint64_t aborted;  /* when the ABORT was queued, 0 = not */
	char abort_why[256];
	int abort_code;
};

static void on_status(uv_timer_t *t)
{
	struct out *o = t->data;
	char text[700];

	pxd_missing(&o->d->node, o->path, true, text, sizeof text);
	px_log(PX_LOG_INFO, "waiting for %d of %d sites, for %.0f s now: %s", o->missing,
		o->d->node.hosts->nsites, (double)(px_now_ns() - o->d->started) / 1e9, text);
}

static void on_deadline(uv_timer_t *t)
{
	struct out *o = t->data;
	char text[700];

	pxd_missing(&o->d->node, o->path, false, text, sizeof text);
	pxd_fail(&o->d->node, PXD_EXIT_START, "start deadline of %g s passed: missing %s",
		(double)o->d->node.hosts->deadline_start_ms / 1000, text);
}

static void all_up(struct out *o)
{
	uv_timer_stop(&o->status);
	uv_timer_stop(&o->deadline);
	if (o->d->node.gateway == 0)
		pxd_world_start(o->d, o->hellos);
}

static void path_up(void *owner, struct pxd_path *l, const struct px_hello *h)
{
	struct out *o = owner;

	o->hellos[l->peer] = *h;
	if (--o->missing == 0)
		all_up(o);
}

static bool path_frame(void *owner, struct pxd_path *l, const struct px_frame *f)
{
	struct out *o = owner;

	return f->type == PX_F_CREDIT ? pxd_out_flow_credit(&o->flow, l, f)
				      : pxd_out_flow_pull(&o->flow, l, f);
}

static void message_take(struct out *o, const struct px_frame *f, const uint8_t *body, int from)
{
	int rc;

	if (!pxd_out_flow_reaches(&o->flow, f->dst) ||
		f->src - (uint32_t)o->flow.base >= (uint32_t)o->flow.nlocal) {
		pxd_fail(&o->d->node, PXD_EXIT_INTERNAL,
			"rank %u sends a frame to rank %u, which is at no other site", f->src, f->dst);
		return;
	}
	if (f->type == PX_F_PULL) {
		pxd_out_flow_pull(&o->flow, NULL, f);
		return;
	}
	if (f->type == PX_F_MSG && f->seg && f->local && f->total <= PX_MIDDLE_MAX &&
		!(f->flags & PX_FF_DATA)) {
		rc = pxd_out_flow_middle(&o->flow, f, from);
	} else {
		rc = f->flags & PX_FF_DATA ? PX_OK : pxd_out_flow_take(&o->flow, f, body);
		if (rc == 0 && f->type == PX_F_MSG && f->seg && f->local) /* its payload is ready */
			rc = pxd_out_flow_long(&o->flow, f, from);
	}
	if (rc < 0)
		pxd_fail(&o->d->node, PXD_EXIT_INTERNAL,
			"out of memory for a message of %llu bytes from rank %u",
			(unsigned long long)f->total, f->src);
}

static void fin_take(struct out *o, const struct px_frame *f)
{
	uint32_t rank = f->src - (uint32_t)o->d->node.hosts->sites[o->d->node.self].base;
	struct px_frame answer = {
		.version = PX_PROTOCOL_VERSION, .type = PX_F_FIN, .src = f->src, .dst = f->src
	};

	if (rank >= (uint32_t)o->d->map.nranks || o->flow.notes.fin[rank]) {
		pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "unexpected FIN of rank %u", f->src);
		return;
	}
	o->nfin++;
	/* Nothing more will come from us: the rank may close its side. */
	pxd_notes_put(&o->flow.notes, &answer, (int)rank);
	o->flow.notes.fin[rank] = true;
}

static void abort_take(struct out *o, const struct px_frame *f, const uint8_t *body)
{
	if (o->aborted)
		return;
	pxd_text_clean(body, (size_t)f->body, o->abort_why, sizeof o->abort_why);
	o->abort_code = f->tag;
	o->aborted = px_now_ns();
	for (int i = 0; i < o->d->node.hosts->nsites; i++)
		pxd_path_say_abort(&o->path[i], f->src, f->tag, o->abort_why);
}

static void stats_take(struct out *o, const struct px_frame *f, const uint8_t *body)
{
	char *text = malloc((size_t)f->body + 1);

	if (!text)
		return; /* statistics only */
	pxd_text_clean(body, (size_t)f->body, text, (size_t)f->body + 1);
	free(o->collectives);
	o->collectives = text;
}

static void frame_take(struct out *o, const struct px_frame *f, const uint8_t *body, int from)
{
	switch (f->type) {
	case PX_F_MSG:
	case PX_F_ACK:
	case PX_F_PULL:
	case PX_F_RATE:
		message_take(o, f, body, from);
		break;
	case PX_F_FIN:
		fin_take(o, f);
		break;
	case PX_F_ABORT:
		abort_take(o, f, body);
		break;
	case PX_F_STATS:
		stats_take(o, f, body);
		break;
	default:
		pxd_fail(&o->d->node, PXD_EXIT_INTERNAL,
			"unexpected frame of type %u from native rank %d; please report this", f->type, from);
	}
}

/* The frames of a native message. */
static void envelope_take(struct out *o, const uint8_t *env, size_t len, int from)
{
	const uint8_t *body;
	struct px_frame f;
	size_t at = 0;
	int rc;

	while ((rc = px_frame_next(env, len, &at, &f, &body)) > 0 && !o->d->node.failed)
		frame_take(o, &f, body, from);
	if (rc < 0)
		pxd_fail(&o->d->node, PXD_EXIT_INTERNAL,
			"malformed frame in %zu bytes from native rank %d; please report this", len, from);
}

static bool ring_poll(struct out *o)
{
	int n = 0;

	for (; n < RING && !o->d->node.failed; n++) {
		int flag = 0, len = 0;
		MPI_Status st;

		if (px_n.Test(&o->ring[o->head], &flag, &st) != MPI_SUCCESS) {
			pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "a native receive of an envelope failed");
			return true;
		}
		if (!flag)
			break;
		px_n.Get_count(&st, MPI_BYTE, &len);
		envelope_take(o, o->ring_buf[o->head], (size_t)len, st.MPI_SOURCE);
		if (px_n.Start(&o->ring[o->head]) != MPI_SUCCESS)
			pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "a native receive cannot be posted");
		o->head = (o->head + 1) % RING;
	}
	return n > 0;
}

static void paths_flush(struct out *o)
{
	for (int i = 0; i < o->d->node.hosts->nsites; i++)
		pxd_path_flush(&o->path[i]);
}

/* Has everything been written? */
static bool paths_quiet(const struct out *o)
{
	for (int i = 0; i < o->d->node.hosts->nsites; i++)
		if (!pxd_path_quiet(&o->path[i]))
			return false;
	return true;
}

static void abort_poll(struct out *o)
{
	if (o->aborted && (paths_quiet(o) || px_now_ns() - o->aborted > ABORT_FLUSH_NS))
		pxd_fail(&o->d->node, o->abort_code, "%s: all sites end",
			o->abort_why[0] ? o->abort_why : "a rank aborted");
}

static bool leave_poll(struct out *o)
{
	if (o->leaving || o->d->world.state != PXD_WORLD_DONE || o->nfin < o->d->map.nranks ||
		!pxd_out_flow_empty(&o->flow) || o->aborted)
		return false;
	o->leaving = true;
	for (int i = 0; i < o->d->node.hosts->nsites; i++)
		pxd_path_bye(&o->path[i]);
	return true;
}

static bool out_poll(struct pxd *d)
{
	struct out *o = d->state;
	bool some = pxd_world_poll(d);

	some |= ring_poll(o);
	if (some)
		paths_flush(o); /* short messages do not wait for long ones */
	some |= pxd_out_flow_poll(&o->flow);
	some |= leave_poll(o);
	if (some)
		paths_flush(o);
	abort_poll(o);
	return some;
}

/* The in-daemon keeps our port, where a peer may have to come to once more, until it hears this. true: it is said. */
static bool left_say(struct out *o)
{
	const struct px_frame f = { .version = PX_PROTOCOL_VERSION, .type = PX_F_BYE };
	int flag = 0;

	if (!o->left_said) {
		o->left_said = true;
		px_frame_put(&f, o->left_frame);
		if (px_n.Isend(o->left_frame, PX_FRAME_SIZE, MPI_BYTE, o->d->map.in[o->d->node.gateway],
			    PX_TAG_DONE, o->d->map.relay, &o->left) != MPI_SUCCESS)
			pxd_fail(&o->d->node, PXD_EXIT_INTERNAL, "cannot send a frame to the in-daemon");
		px_bell_ring(o->d->map.in[o->d->node.gateway]);
	}
	if (o->d->node.failed)
		return true;
	return px_n.Test(&o->left, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag;
}

static bool out_done(struct pxd *d)
{
	struct out *o = d->state;
	bool done = o->leaving;

	/* Asked all, as each says BYE when it is time. */
	for (int i = 0; i < d->node.hosts->nsites && o->leaving; i++)
		done &= i == d->node.self || pxd_path_done(&o->path[i]);
	return done && left_say(o);
}

static int ring_open(struct out *o)
{
	for (int i = 0; i < RING; i++)
		if (px_n.Recv_init(o->ring_buf[i], PX_BATCH_MAX, MPI_BYTE, MPI_ANY_SOURCE, PX_TAG_UP,
			    o->d->map.relay, &o->ring[i]) != MPI_SUCCESS ||
			px_n.Start(&o->ring[i]) != MPI_SUCCESS)
			return PX_EMPI;
	return PX_OK;
}

static int timers_open(struct out *o)
{
	uv_timer_t *const t[] = { &o->status, &o->deadline };

	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		if (uv_timer_init(&o->d->node.loop, t[i]) < 0)
			return PX_ENOMEM;
		t[i]->data = o;
	}
	uv_timer_start(&o->status, on_status, STATUS_FIRST_MS, STATUS_EVERY_MS);
	uv_timer_start(&o->deadline, on_deadline, (uint64_t)o->d->node.hosts->deadline_start_ms, 0);
	return PX_OK;
}

static void handed_over(void *owner, int fd, const struct px_preamble *p)
{
	struct out *o = owner;

	pxd_listen_adopt(&o->listen, fd, p);
}

/* Peers that dial for both directions come through the in-daemon's port. */
static int handoff_open(struct out *o)
{
	struct pxd *d = o->d;
	bool wanted = false;
	char why[PXD_WHY];
	int rc;

	pxd_listen_init(&o->listen, &d->node);
	for (int i = 0; i < d->node.hosts->nsites; i++)
		wanted |= i != d->node.self && !pxd_hosts_dials(d->node.hosts, d->node.self, d->node.self, i);
	if (!wanted)
		return PX_OK;
	o->handoff.took = handed_over;
	o->handoff.owner = o;
	rc = pxd_handoff_open(&o->handoff, &d->node, why, sizeof why);
	if (rc < 0)
		pxd_fail(&d->node, PXD_EXIT_INTERNAL,
			"cannot open the local socket between the two daemons: %s", why);
	return rc;
}

/* PACX_RECORD: what crosses l goes into a file, too. */
static int record_open(struct out *o, struct pxd_path *l)
{
	const struct pxd_node *d = &o->d->node;
	const char *dir = getenv("PACX_RECORD"), *size = getenv("PACX_RECORD_SIZE");
	uint64_t most = PXD_RECORDING_BYTES;
	char why[PXD_WHY];
	struct pxd_text t = { .file = "PACX_RECORD_SIZE", .why = why, .cap = sizeof why, .flat = true };
	struct pxd_recording_head h = { .from = (uint16_t)d->self,
		.to = (uint16_t)l->peer,
		.from_gateway = (uint16_t)d->gateway,
		.to_gateway = (uint16_t)l->gateway,
		.big = d->hello.repr.big_endian };

	if (!dir || !*dir)
		return PX_OK;
	snprintf(h.from_name, sizeof h.from_name, "%s", pxd_site_name(d, d->self));
	snprintf(h.to_name, sizeof h.to_name, "%s", pxd_site_name(d, l->peer));
	if (!size || !*size || pxd_value_buffer(&t, (struct pxd_mark){ 0, 0 }, size, &most) == 0)
		l->recorder = pxd_recorder_new(dir, &h, most, why, sizeof why);
	if (!l->recorder)
		pxd_fail(&o->d->node, PXD_EXIT_CONFIG, "nothing can be recorded: %s", why);
	return l->recorder ? PX_OK : PX_ECONF;
}

static int paths_open(struct out *o)
{
	struct pxd *d = o->d;
	size_t retain = d->node.hosts->sites[d->node.self].buffer / 2 /
			(size_t)(d->node.hosts->nsites > 1 ? d->node.hosts->nsites - 1 : 1);

	for (int i = 0; i < d->node.hosts->nsites; i++) {
		const struct pxd_site *s = &d->node.hosts->sites[i];
		struct pxd_path *l = &o->path[i];
		int rc;

		if (i == d->node.self)
			continue;
		l->up = path_up;
		l->frame = path_frame;
		l->owner = o;
		rc = pxd_path_open(l, &d->node, i, d->node.gateway % s->ngateways,
			retain < PX_SEG_MAX ? PX_SEG_MAX : retain);
		if (rc == 0)
			rc = record_open(o, l);
		if (rc < 0)
			return rc;
	}
	return PX_OK;
}

/* The path that a handshake is about, or NULL. */
static struct pxd_path *path_of(struct out *o, const struct px_preamble *p)
{
	const struct pxd_node *d = &o->d->node;
	struct pxd_path *l = p->from == d->self && p->to < d->hosts->nsites ? &o->path[p->to] : NULL;

	return l && l->d && l->gateway == p->to_gateway && p->from_gateway == d->gateway ? l : NULL;
}

static void out_greet(void *owner, const struct px_preamble *p, struct px_hello *h)
{
	pxd_path_greet(path_of(owner, p), p->stream, h);
}

static int out_judge(
	void *owner, const struct px_preamble *p, const struct px_hello *h, char *why, size_t cap)
{
	struct out *o = owner;
	struct pxd_path *l = path_of(o, p);

	if (l)
		return pxd_path_judge(l, p->stream, h, why, cap);
	snprintf(why, cap, "gateway %d of site %s does not write to gateway %d of site %s", p->from_gateway,
		o->d->node.hello.name, p->to_gateway, h->name);
	return PX_ESITE;
}

static void out_linked(void *owner, const struct px_preamble *p, struct pxd_conn *c, const struct px_hello *h)
{
	pxd_path_linked(path_of(owner, p), p->stream, c, h);
}

static const struct pxd_peers peers = { out_greet, out_judge, out_linked };

static int out_open(struct pxd *d)
{
	size_t n = (size_t)d->node.hosts->nsites;
	struct out *o = calloc(1, sizeof *o);
	int rc = PX_ENOMEM;

	if (!o)
		goto fail;
	d->state = o;
	o->d = d;
	d->node.peers = &peers;
	d->node.owner = o;
	o->path = calloc(n, sizeof *o->path);
	o->hellos = calloc(n, sizeof *o->hellos);
	if (!o->path || !o->hellos)
		goto fail;
	o->flow.path = o->path;
	rc = pxd_out_flow_init(&o->flow, d);
	if (rc == 0)
		rc = pxd_alive_open(&o->alive, d, o->flow.notes.fin);
	if (rc == 0)
		rc = ring_open(o);
	if (rc == 0)
		rc = timers_open(o);
	if (rc == 0)
		rc = handoff_open(o);
	o->hellos[d->node.self] = d->node.hello;
	o->missing = d->node.hosts->nsites - 1;
	if (rc == 0)
		rc = paths_open(o);
	if (rc < 0)
		goto fail;
	if (d->node.gateway > 0)
		rc = pxd_world_start(d, NULL);
	if (o->missing == 0)
		all_up(o);
	return rc;
fail:
	pxd_fail(&d->node, PXD_EXIT_INTERNAL, "the out-daemon cannot start: %s", px_strerror(rc));
	return rc;
}

static void out_close(struct pxd *d)
{
	struct out *o = d->state;

	for (int i = 0; i < RING; i++) {
		if (o->ring[i] == MPI_REQUEST_NULL)
			continue;
		px_n.Cancel(&o->ring[i]);
		px_n.Wait(&o->ring[i], MPI_STATUS_IGNORE);
		px_n.Request_free(&o->ring[i]);
	}
	for (int i = 0; i < d->node.hosts->nsites; i++)
		pxd_path_close(&o->path[i]);
	pxd_handoff_close(&o->handoff);
	pxd_listen_close(&o->listen);
	pxd_alive_close(&o->alive);
	uv_close((uv_handle_t *)&o->status, NULL);
	uv_close((uv_handle_t *)&o->deadline, NULL);
	uv_run(&d->node.loop, UV_RUN_DEFAULT);
	for (int i = 0; i < d->node.hosts->nsites; i++)
		pxd_path_free(&o->path[i]);
	pxd_alive_free(&o->alive);
	pxd_out_flow_fini(&o->flow);
	free(o->path);
	free(o->hellos);
	free(o->collectives);
	free(o);
	d->state = NULL;
}

static void out_farewell(struct pxd *d, const char *why)
{
	struct out *o = d->state;

	for (int i = 0; o && !o->aborted && i < d->node.hosts->nsites; i++)
		pxd_path_say_abort(&o->path[i], 0, d->node.code, why);
	pxd_handoff_close(&o->handoff); /* nothing of it stays in the run directory */
}

static void out_status(struct pxd *d, struct px_buf *b)
{
	struct out *o = d->state;
	size_t used = o->flow.waiting_bytes + o->flow.segs.used_bytes;
	bool first = true;

	pxd_stats_add(b, ",\"buffer_used\":%zu,\"links\":[", used);
	for (int i = 0; i < d->node.hosts->nsites; i++) {
		struct pxd_path_view v;

		if (i == d->node.self)
			continue;
		pxd_path_view(&o->path[i], &v);
		pxd_stats_add(b, "%s", first ? "" : ",");
		pxd_stats_link(b, &d->node, d->node.self, i, &v, &o->path[i].count, o->path[i].rate);
		first = false;
	}
	pxd_stats_add(b, "]");
}

static void out_report(struct pxd *d)
{
	struct out *o = d->state;
	struct px_buf b = { 0 };
	bool first = true;

	pxd_stats_add(&b, "{\"links\":[");
	for (int i = 0; i < d->node.hosts->nsites; i++) {
		const struct pxd_path *p = &o->path[i];
		struct pxd_path_view v;

		if (i == d->node.self)
			continue;
		pxd_path_view(p, &v);
		pxd_stats_add(&b, "%s", first ? "" : ",");
		pxd_stats_ends(&b, &d->node, d->node.self, i);
		pxd_stats_add(&b,
			",\"messages\":%llu,\"payload_bytes\":%llu,\"wire_bytes\":%llu,\"frames\":%llu,"
			"\"writes\":%llu,\"streams\":%d,\"reconnects\":%u,\"retained_peak_bytes\":%zu",
			(unsigned long long)p->count.messages, (unsigned long long)p->count.payload_bytes,
			(unsigned long long)p->count.wire_bytes, (unsigned long long)p->count.frames,
			(unsigned long long)(p->writes +
					     (p->stream[0]->conn ? p->stream[0]->conn->writes : 0)),
			p->nstreams, v.reconnects, v.retained_peak);
		if (d->node.hosts->sites[d->node.self].ngateways > 1)
			pxd_stats_add(&b, ",\"gateway\":%d", d->node.gateway);
		pxd_stats_codecs(&b, &p->count);
		pxd_stats_add(&b, "}");
		first = false;
	}
	pxd_stats_add(&b, "]");
	if (d->node.gateway == 0) { /* ranks tell no other of their site */
		pxd_stats_add(&b, ",\"collectives\":");
		px_buf_append(&b, o->collectives ? o->collectives : "{}",
			o->collectives ? strlen(o->collectives) : 2);
	}
	pxd_stats_add(&b, "}");
	pxd_stats_report(&d->node, "out", &b);
}

static bool out_quiet(struct pxd *d)
{
	const struct out *o = d->state;

	return !o->leaving && !o->aborted && px_list_empty(&o->flow.busy) && pxd_notes_empty(&o->flow.notes);
}

const struct pxd_role pxd_role_out = { out_open, out_poll, out_done, out_quiet, out_close, out_report,
	out_farewell, out_status };
