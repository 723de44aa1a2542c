/* role_out.c: role out: native MPI in, TCP out.
 *
 * Design. Phases: DIALLING (a connection to every other site; status lines; start deadline), WORLD
 * (broadcast of the world map inside the site), RUNNING, LEAVING (all local ranks have finished: BYE on
 * every link). Envelopes from ranks arrive in a ring of posted receives and are handled strictly in ring
 * order, which is the order in which the native MPI matches them; so frames of one rank stay in order.
 * Frames for one link that arrive in one turn leave in one write. A link that goes down is not reported at
 * once: the peer's ABORT may be on its way to our in-daemon, and knows more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn.h"
#include "conn_dial.h"
#include "err.h"
#include "link.h"
#include "out_long.h"
#include "pacxd.h"
#include "stats.h"
#include "vendor.h"
#include "wait.h"

#define RING            32
#define STATUS_FIRST_MS 3000
#define STATUS_EVERY_MS 5000
#define LOST_GRACE_MS   1500 /* for the in-daemon, which may learn the cause */
#define ABORT_FLUSH_NS  2000000000u

struct out {
	struct pxd *d;
	struct pxd_path *path;   /* [nsites]; that of ourselves is unused */
	struct pxd_dial *dial;   /* [nsites] */
	struct px_hello *hellos; /* [nsites] */
	int missing;             /* sites not linked yet */
	uv_timer_t status, deadline, lost;
	char lost_why[256];
	bool running, leaving;
	uint8_t ring_buf[RING][PX_ENVELOPE_MAX];
	MPI_Request ring[RING];
	int head;
	bool *fin; /* [nranks] */
	int nfin;
	struct pxd_out_longs longs;
	char *collectives; /* JSON text from a rank */
	uint64_t aborted;  /* when the ABORT was queued, 0 = not */
	char abort_why[256];
	int abort_code;
};

static void missing_list(struct out *o, char *text, size_t cap)
{
	struct pxd *d = o->d;
	size_t n = 0;

	text[0] = '\0';
	for (int i = 0; i < d->hosts->nsites && n + 1 < cap; i++) {
		const struct pxd_site *s = &d->hosts->sites[i];

		if (i == d->self || o->path[i].state != PXD_LINK_WAITING)
			continue;
		n += (size_t)snprintf(text + n, cap - n, "%s%s at %s:%d (%s)", n ? ", " : "", s->name,
			s->host, s->port, o->dial[i].why[0] ? o->dial[i].why : "no answer yet");
	}
}

static void on_status(uv_timer_t *t)
{
	struct out *o = t->data;
	char text[700];

	missing_list(o, text, sizeof text);
	px_log(PX_LOG_INFO, "waiting for %d of %d sites, for %.0f s now: %s", o->missing, o->d->hosts->nsites,
		(double)(px_now_ns() - o->d->started) / 1e9, text);
}

static void on_deadline(uv_timer_t *t)
{
	struct out *o = t->data;
	char text[700];

	missing_list(o, text, sizeof text);
	pxd_fail(o->d, PXD_EXIT_START, "start deadline of %g s passed: missing %s",
		(double)o->d->hosts->deadline_start_ms / 1000, text);
}

static void world_begin(struct out *o)
{
	uv_timer_stop(&o->status);
	uv_timer_stop(&o->deadline);
	pxd_world_start(o->d, o->hellos);
}

static void path_room(struct pxd_conn *c, uv_buf_t *buf)
{
	static uint8_t waste[256];

	(void)c;
	*buf = uv_buf_init((char *)waste, sizeof waste);
}

static void path_got(struct pxd_conn *c, uint8_t *base, size_t n)
{
	struct pxd_path *p = c->owner;
	struct pxd *d = pxd_of(c->tcp.loop);

	(void)base;
	pxd_fail(d, PXD_EXIT_PROTOCOL,
		"site %s (%s) broke the protocol: it sent %zu bytes on the link from us to it",
		pxd_site_name(d, p->peer), c->peer, n);
}

static void on_lost_over(uv_timer_t *t)
{
	struct out *o = t->data;

	pxd_fail(o->d, PXD_EXIT_LOST, "%s", o->lost_why);
}

static void path_lost(struct out *o, struct pxd_path *p, int err)
{
	struct pxd *d = o->d;
	/* Behind BYE the peer may close as soon as it likes, even before our half-close is through. */
	bool fine = p->state == PXD_LINK_BYE && p->conn->queued == 0;

	if (!fine && !o->lost_why[0] && !o->aborted) {
		snprintf(o->lost_why, sizeof o->lost_why, "link from site %s to site %s (%s) lost: %s",
			pxd_site_name(d, d->self), pxd_site_name(d, p->peer), p->conn->peer,
			err == UV_EOF ? "the peer closed the connection" : uv_strerror(err));
		uv_timer_start(&o->lost, on_lost_over, LOST_GRACE_MS, 0);
	}
	pxd_path_close(p);
}

static void path_conn_lost(struct pxd_conn *c, int err)
{
	struct out *o = pxd_of(c->tcp.loop)->state;

	path_lost(o, c->owner, err);
}

static const struct pxd_conn_ops path_ops = { path_room, path_got, path_conn_lost };

static void on_up(struct pxd_dial *dial, struct pxd_conn *c, const struct px_hello *hello)
{
	struct out *o = dial->owner;
	struct pxd_path *p = &o->path[dial->peer];

	c->ops = &path_ops;
	c->owner = p;
	p->conn = c;
	p->state = PXD_LINK_UP;
	o->hellos[dial->peer] = *hello;
	pxd_dial_close(dial);
	px_log(PX_LOG_DEBUG, "link to site %s (%s, %u ranks, %s) is up", hello->name, c->peer, hello->nranks,
		hello->vendor);
	if (--o->missing == 0)
		world_begin(o);
}

/* Peer of an envelope's destination, or NULL after pxd_fail. */
static struct pxd_path *path_to(struct out *o, const struct px_frame *f)
{
	int site = pxd_site_of(o->d, f->dst);

	if (site < 0 || site == o->d->self || o->path[site].state == PXD_LINK_WAITING) {
		pxd_fail(o->d, PXD_EXIT_INTERNAL,
			"rank %u sends a frame to rank %u, which is at no other site", f->src, f->dst);
		return NULL;
	}
	return &o->path[site];
}

static void message_take(struct out *o, const struct px_frame *f, const uint8_t *body, int from)
{
	struct pxd_path *p = path_to(o, f);

	if (!p || p->state == PXD_LINK_GONE)
		return; /* the job is about to end */
	if (pxd_path_put(p, f, body) < 0 ||
		(f->type == PX_F_MSG && f->seg && pxd_out_long_add(&o->longs, f, from, p) < 0))
		pxd_fail(o->d, PXD_EXIT_INTERNAL, "out of memory for a message of %llu bytes from rank %u",
			(unsigned long long)f->total, f->src);
}

static void fin_take(struct out *o, const struct px_frame *f)
{
	uint32_t rank = f->src - (uint32_t)o->d->hosts->sites[o->d->self].base;

	if (rank >= (uint32_t)o->d->map.nranks || o->fin[rank]) {
		pxd_fail(o->d, PXD_EXIT_INTERNAL, "unexpected FIN of rank %u", f->src);
		return;
	}
	o->fin[rank] = true;
	o->nfin++;
}

static void abort_take(struct out *o, const struct px_frame *f, const uint8_t *body)
{
	struct px_frame g = { .version = PX_PROTOCOL_VERSION,
		.type = PX_F_ABORT,
		.src = f->src,
		.dst = f->dst,
		.tag = f->tag,
		.body = f->body,
		.total = f->body };

	if (o->aborted)
		return;
	pxd_text_clean(body, (size_t)f->body, o->abort_why, sizeof o->abort_why);
	o->abort_code = f->tag;
	o->aborted = px_now_ns();
	for (int i = 0; i < o->d->hosts->nsites; i++)
		if (o->path[i].state == PXD_LINK_UP && pxd_path_put(&o->path[i], &g, body) == 0)
			pxd_conn_end(o->path[i].conn);
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

static void envelope_take(struct out *o, const uint8_t *env, int len, int from)
{
	struct px_frame f;
	const uint8_t *body = env + PX_FRAME_SIZE;

	if (px_frame_get(env, (size_t)len, &f) < 0 || f.body != (uint64_t)len - PX_FRAME_SIZE) {
		pxd_fail(o->d, PXD_EXIT_INTERNAL,
			"malformed frame of %d bytes from native rank %d; please report this", len, from);
		return;
	}
	switch (f.type) {
	case PX_F_MSG:
	case PX_F_ACK:
		message_take(o, &f, body, from);
		break;
	case PX_F_FIN:
		fin_take(o, &f);
		break;
	case PX_F_ABORT:
		abort_take(o, &f, body);
		break;
	case PX_F_STATS:
		stats_take(o, &f, body);
		break;
	default:
		pxd_fail(o->d, PXD_EXIT_INTERNAL,
			"unexpected frame of type %u from native rank %d; please report this", f.type, from);
	}
}

static bool ring_poll(struct out *o)
{
	int n = 0;

	for (; n < RING && !o->d->failed; n++) {
		int flag = 0, len = 0;
		MPI_Status st;

		if (px_n.Test(&o->ring[o->head], &flag, &st) != MPI_SUCCESS) {
			pxd_fail(o->d, PXD_EXIT_INTERNAL, "a native receive of an envelope failed");
			return true;
		}
		if (!flag)
			break;
		px_n.Get_count(&st, MPI_BYTE, &len);
		envelope_take(o, o->ring_buf[o->head], len, st.MPI_SOURCE);
		if (px_n.Start(&o->ring[o->head]) != MPI_SUCCESS)
			pxd_fail(o->d, PXD_EXIT_INTERNAL, "a native receive cannot be posted");
		o->head = (o->head + 1) % RING;
	}
	return n > 0;
}

static void paths_flush(struct out *o)
{
	for (int i = 0; i < o->d->hosts->nsites; i++) {
		int rc = pxd_path_flush(&o->path[i]);

		if (rc < 0)
			path_lost(o, &o->path[i], rc);
	}
}

/* Has everything been written, and every connection half-closed? */
static bool paths_quiet(const struct out *o)
{
	for (int i = 0; i < o->d->hosts->nsites; i++)
		if (o->path[i].conn && !o->path[i].conn->half)
			return false;
	return true;
}

static void abort_poll(struct out *o)
{
	if (o->aborted && (paths_quiet(o) || px_now_ns() - o->aborted > ABORT_FLUSH_NS))
		pxd_fail(o->d, o->abort_code, "%s: all sites end",
			o->abort_why[0] ? o->abort_why : "a rank aborted");
}

static bool leave_poll(struct out *o)
{
	if (o->leaving || !o->running || o->nfin < o->d->map.nranks || o->longs.count > 0 || o->aborted)
		return false;
	o->leaving = true;
	for (int i = 0; i < o->d->hosts->nsites; i++)
		if (o->path[i].state == PXD_LINK_UP && pxd_path_bye(&o->path[i]) < 0)
			pxd_fail(o->d, PXD_EXIT_INTERNAL, "out of memory");
	return true;
}

static bool out_poll(struct pxd *d)
{
	struct out *o = d->state;
	bool some = pxd_world_poll(d);

	if (d->world.state == PXD_WORLD_DONE)
		o->running = true;
	some |= ring_poll(o);
	if (some)
		paths_flush(o); /* short messages do not wait for long ones */
	some |= pxd_out_longs_poll(&o->longs);
	some |= leave_poll(o);
	if (some)
		paths_flush(o);
	abort_poll(o);
	return some;
}

static bool out_done(struct pxd *d)
{
	struct out *o = d->state;

	return o->leaving && !o->lost_why[0] && paths_quiet(o);
}

static bool out_pending(struct pxd *d)
{
	(void)d;
	return true; /* ranks can send at any time, and only polling notices */
}

static int ring_open(struct out *o)
{
	for (int i = 0; i < RING; i++)
		if (px_n.Recv_init(o->ring_buf[i], PX_ENVELOPE_MAX, MPI_BYTE, MPI_ANY_SOURCE, PX_TAG_UP,
			    o->d->map.relay, &o->ring[i]) != MPI_SUCCESS ||
			px_n.Start(&o->ring[i]) != MPI_SUCCESS)
			return PX_EMPI;
	return PX_OK;
}

static int timers_open(struct out *o)
{
	uv_timer_t *const t[] = { &o->status, &o->deadline, &o->lost };

	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		if (uv_timer_init(&o->d->loop, t[i]) < 0)
			return PX_ENOMEM;
		t[i]->data = o;
	}
	uv_timer_start(&o->status, on_status, STATUS_FIRST_MS, STATUS_EVERY_MS);
	uv_timer_start(&o->deadline, on_deadline, (uint64_t)o->d->hosts->deadline_start_ms, 0);
	return PX_OK;
}

static int out_open(struct pxd *d)
{
	size_t n = (size_t)d->hosts->nsites;
	struct out *o = calloc(1, sizeof *o);
	int rc = PX_ENOMEM;

	if (!o)
		goto fail;
	d->state = o;
	o->d = d;
	pxd_out_longs_init(&o->longs, d);
	o->path = calloc(n, sizeof *o->path);
	o->dial = calloc(n, sizeof *o->dial);
	o->hellos = calloc(n, sizeof *o->hellos);
	o->fin = calloc((size_t)d->map.nranks + 1, sizeof *o->fin);
	if (!o->path || !o->dial || !o->hellos || !o->fin)
		goto fail;
	rc = ring_open(o);
	if (rc == 0)
		rc = timers_open(o);
	if (rc < 0)
		goto fail;
	o->hellos[d->self] = d->hello;
	o->missing = d->hosts->nsites - 1;
	for (int i = 0; i < d->hosts->nsites; i++) {
		o->path[i].peer = i;
		if (i == d->self)
			continue;
		o->dial[i].up = on_up;
		o->dial[i].owner = o;
		rc = pxd_dial_open(&o->dial[i], d, i);
		if (rc < 0)
			goto fail;
	}
	if (o->missing == 0)
		world_begin(o);
	return PX_OK;
fail:
	pxd_fail(d, PXD_EXIT_INTERNAL, "the out-daemon cannot start: %s", px_strerror(rc));
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
	for (int i = 0; i < d->hosts->nsites; i++) {
		if (i != d->self)
			pxd_dial_close(&o->dial[i]);
		pxd_path_close(&o->path[i]);
	}
	uv_close((uv_handle_t *)&o->status, NULL);
	uv_close((uv_handle_t *)&o->deadline, NULL);
	uv_close((uv_handle_t *)&o->lost, NULL);
	uv_run(&d->loop, UV_RUN_DEFAULT);
	pxd_out_longs_fini(&o->longs);
	free(o->path);
	free(o->dial);
	free(o->hellos);
	free(o->fin);
	free(o->collectives);
	free(o);
	d->state = NULL;
}

static void out_report(struct pxd *d)
{
	struct out *o = d->state;
	const char *self = pxd_site_name(d, d->self);
	struct px_buf b = { 0 };
	bool first = true;

	pxd_stats_add(&b, "{\"links\":[");
	for (int i = 0; i < d->hosts->nsites; i++) {
		const struct pxd_path *p = &o->path[i];

		if (i == d->self)
			continue;
		pxd_stats_add(&b, "%s{\"from\":", first ? "" : ",");
		pxd_stats_quote(&b, self);
		pxd_stats_add(&b, ",\"to\":");
		pxd_stats_quote(&b, pxd_site_name(d, i));
		pxd_stats_add(&b,
			",\"messages\":%llu,\"payload_bytes\":%llu,\"wire_bytes\":%llu,\"frames\":%llu,"
			"\"writes\":%llu,\"queue_peak_bytes\":%llu}",
			(unsigned long long)p->count.messages, (unsigned long long)p->count.payload_bytes,
			(unsigned long long)p->count.wire_bytes, (unsigned long long)p->count.frames,
			(unsigned long long)(p->conn ? p->conn->writes : p->writes),
			(unsigned long long)(p->conn ? p->conn->peak : p->peak));
		first = false;
	}
	pxd_stats_add(&b, "],\"collectives\":");
	px_buf_append(
		&b, o->collectives ? o->collectives : "{}", o->collectives ? strlen(o->collectives) : 2);
	pxd_stats_add(&b, "}");
	if (pxd_stats_send(STDOUT_FILENO, self, "out", "stats", (char *)px_buf_data(&b), px_buf_len(&b)) < 0)
		px_log(PX_LOG_WARN, "the statistics could not be written to standard output");
	px_buf_fini(&b);
}

const struct pxd_role pxd_role_out = { out_open, out_poll, out_done, out_pending, out_close, out_report };
