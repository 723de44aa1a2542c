/* role_in.c: role in: TCP in, native MPI out.
 *
 * Design. One struct pxd_in_path per gateway that sends here; what it brings goes to in_send.c at once. From the ranks
 * come two things, in a ring of posted receives: PULL (a long message has been matched) and FIN (the rank will receive
 * nothing more); and BYE from the out-daemon when no peer needs to reach it any more through the port that we keep for both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conn.h"
#include "err.h"
#include "in_send.h"
#include "link_in.h"
#include "listen.h"
#include "pacxd.h"
#include "stats.h"
#include "vendor.h"
#include "wait.h"

#define RING              32
#define DEADLINE_EXTRA_MS 2000 /* the out-daemons of both sites speak first */
#define MSG_WINDOW_MIN    (64u << 10)
#define MSG_WINDOW_LEAST  (4u << 10) /* where there are very many ranks: two of the longest envelopes */
#define MSG_WINDOW_MAX    (1u << 20)
#define DATA_WINDOW_MAX   (64u << 20)

struct in {
	struct pxd *d;
	struct pxd_listen listen;
	bool listening;
	struct pxd_in_path **path; /* [npaths], only those that end here */
	int npaths, open;          /* paths that somebody still needs */
	struct pxd_sends sends;
	uv_timer_t deadline;
	uint8_t ring_buf[RING][PX_BATCH_MAX];
	MPI_Request ring[RING];
	int head, nfin;
	bool out_left;
	uint64_t bound; /* memory that credit allows */
	struct pxd_reserve reserve;
};

static void on_deadline(uv_timer_t *t)
{
	struct in *in = t->data;
	const struct pxd_gateway *g =
		&in->d->node.hosts->sites[in->d->node.self].gateways[in->d->node.gateway];
	char text[512];
	size_t n = 0;

	text[0] = '\0';
	for (int i = 0; i < in->npaths && n < sizeof text; i++)
		if (!in->path[i]->ever_up)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "",
				pxd_site_name(&in->d->node, in->path[i]->site));
	if (n > 0)
		pxd_fail(&in->d->node, PXD_EXIT_START,
			"start deadline of %g s passed: no connection came from %s; does a firewall keep "
			"them from %s port %d?",
			(double)in->d->node.hosts->deadline_start_ms / 1000, text, g->host, g->port);
}

static void fin_take(struct in *in, const struct px_frame *f, int rank)
{
	struct px_frame answer = { .version = PX_PROTOCOL_VERSION, .type = PX_F_FIN };
	struct pxd_envelope *e;

	if (in->sends.rank[rank].fin) {
		pxd_fail(&in->d->node, PXD_EXIT_INTERNAL, "second FIN from rank %u; please report this",
			f->src);
		return;
	}
	in->nfin++;
	answer.src = answer.dst = f->src;
	e = pxd_envelope_take(0);
	if (!e || pxd_envelope_send(&in->sends, e, &answer, rank) < 0)
		pxd_fail(&in->d->node, PXD_EXIT_INTERNAL, "cannot answer the FIN of rank %u", f->src);
	pxd_sends_fin(&in->sends, rank);
}

/* FIN: the rank is src. PULL: the rank is dst, src sent the message. BYE: of the out-daemon. false: malformed. */
static bool frame_take(struct in *in, const struct px_frame *f, int from)
{
	const struct pxd_site *self = &in->d->node.hosts->sites[in->d->node.self];
	uint32_t rank = (f->type == PX_F_FIN ? f->src : f->dst) - (uint32_t)self->base;

	if (f->type == PX_F_BYE && from == in->d->map.out[in->d->node.gateway]) {
		in->out_left = true;
		return true;
	}
	if ((f->type != PX_F_FIN && f->type != PX_F_PULL) || rank >= (uint32_t)in->d->map.nranks)
		return false;
	if (f->type == PX_F_FIN)
		fin_take(in, f, (int)rank);
	else if (pxd_sends_pull(&in->sends, f, (int)rank) < 0)
		pxd_fail(&in->d->node, PXD_EXIT_INTERNAL,
			"rank %u pulls a message that it cannot have; please report this", f->dst);
	return true;
}

static void frames_take(struct in *in, const uint8_t *bytes, size_t len, int from)
{
	const uint8_t *body;
	struct px_frame f;
	size_t at = 0;
	int rc;

	while ((rc = px_frame_next(bytes, len, &at, &f, &body)) > 0 && !in->d->node.failed)
		if (!frame_take(in, &f, from))
			break;
	if (rc != 0 && !in->d->node.failed)
		pxd_fail(&in->d->node, PXD_EXIT_INTERNAL,
			"malformed frame from a local rank; please report this");
}

static bool ring_poll(struct in *in)
{
	int n = 0;

	for (; n < RING && !in->d->node.failed; n++) {
		int flag = 0, len = 0;
		MPI_Status st;

		if (px_n.Test(&in->ring[in->head], &flag, &st) != MPI_SUCCESS) {
			pxd_fail(&in->d->node, PXD_EXIT_INTERNAL, "a native receive failed");
			return true;
		}
		if (!flag)
			break;
		px_n.Get_count(&st, MPI_BYTE, &len);
		frames_take(in, in->ring_buf[in->head], (size_t)len, st.MPI_SOURCE);
		px_n.Start(&in->ring[in->head]);
		in->head = (in->head + 1) % RING;
	}
	return n > 0;
}

static bool in_poll(struct pxd *d)
{
	struct in *in = d->state;
	bool some = pxd_world_poll(d);

	some |= ring_poll(in);
	some |= pxd_sends_poll(&in->sends);
	return some;
}

static bool in_done(struct pxd *d)
{
	struct in *in = d->state;

	for (int i = 0; i < in->npaths; i++)
		if (in->path[i]->unpacking > 0)
			return false;
	return in->open == 0 && in->out_left && in->nfin == d->map.nranks && !pxd_sends_pending(&in->sends) &&
	       d->world.state == PXD_WORLD_DONE;
}

/* What a path brings, and asks for. */

static int path_msg(void *owner, struct pxd_in_path *p, struct pxd_envelope *e, struct px_frame *f, int rank)
{
	struct in *in = owner;

	(void)p;
	return pxd_sends_msg(&in->sends, e, f, rank);
}

static int path_seg(
	void *owner, struct pxd_in_path *p, const struct px_frame *f, struct pxd_seg *seg, int rank)
{
	struct in *in = owner;

	return pxd_sends_seg(&in->sends, p, f, seg, rank);
}

static void path_up(void *owner, struct pxd_in_path *p)
{
	struct in *in = owner;

	pxd_sends_pull_again(&in->sends, p);
}

static void path_tick(void *owner)
{
	struct in *in = owner;

	pxd_sends_tick(&in->sends);
}

static void path_ended(void *owner)
{
	struct in *in = owner;

	in->open--;
}

static const struct pxd_in_ops path_ops = { path_msg, path_seg, path_up, path_tick, path_ended };

static struct pxd_in_path *path_find(struct in *in, int site, int gateway)
{
	for (int i = 0; i < in->npaths; i++)
		if (in->path[i]->site == site && in->path[i]->gateway == gateway)
			return in->path[i];
	return NULL;
}

static struct pxd_in_path *path_of(void *owner, int site, int via)
{
	return path_find(owner, site, via);
}

/* Credit: the buffer, without what histories may take, in equal parts for each rank and each path. With so many ranks that a part would not
 * keep every pattern going: half of it so, but only envelopes need any, and the other half for whatever is pulled, on demand. */
static void windows_make(struct in *in, uint64_t w[PXD_CREDITS])
{
	uint64_t history = pxd_history_memory(in->d->node.hosts, in->d->node.self);
	uint64_t paths = (uint64_t)(in->npaths > 0 ? in->npaths : 1) * (uint64_t)in->d->map.nranks,
		 all = in->d->node.hosts->sites[in->d->node.self].buffer - history, share = all / paths;

	w[PXD_CREDIT_MSG] = share / 8 < MSG_WINDOW_MIN   ? MSG_WINDOW_MIN
			    : share / 8 > MSG_WINDOW_MAX ? MSG_WINDOW_MAX
							 : share / 8;
	w[PXD_CREDIT_RESERVE] = 2 * PX_SEG_MAX;
	if (share < w[PXD_CREDIT_MSG] + 4 * PX_SEG_MAX) {
		in->reserve.limit = all / 2;
		share /= 2;
		w[PXD_CREDIT_RESERVE] = 0;
		w[PXD_CREDIT_MSG] = share / 2 < MSG_WINDOW_LEAST ? MSG_WINDOW_LEAST
				    : share / 2 > MSG_WINDOW_MAX ? MSG_WINDOW_MAX
								 : share / 2;
	}
	w[PXD_CREDIT_DATA] = share > w[PXD_CREDIT_MSG] + w[PXD_CREDIT_RESERVE]
				     ? share - w[PXD_CREDIT_MSG] - w[PXD_CREDIT_RESERVE]
				     : 0;
	if (w[PXD_CREDIT_DATA] > DATA_WINDOW_MAX)
		w[PXD_CREDIT_DATA] = DATA_WINDOW_MAX;
	in->bound = history + in->reserve.limit + (w[0] + w[1] + w[2]) * paths;
}

static int paths_open(struct in *in)
{
	struct pxd *d = in->d;
	uint64_t window[PXD_CREDITS];
	int n = 0, rc = PX_OK, ours = d->node.hosts->sites[d->node.self].ngateways;

	for (int i = 0; i < d->node.hosts->nsites; i++)
		n += i == d->node.self ? 0 : d->node.hosts->sites[i].ngateways;
	in->path = calloc((size_t)n + 1, sizeof *in->path);
	if (!in->path)
		return PX_ENOMEM;
	for (int i = 0; i < d->node.hosts->nsites; i++) {
		for (int g = 0; i != d->node.self && g < d->node.hosts->sites[i].ngateways; g++) {
			if (g % ours != d->node.gateway)
				continue;
			in->path[in->npaths] = calloc(1, sizeof *in->path[0]);
			if (!in->path[in->npaths])
				return PX_ENOMEM;
			in->path[in->npaths]->site = i;
			in->path[in->npaths++]->gateway = g;
		}
	}
	in->open = in->npaths;
	windows_make(in, window);
	for (int i = 0; i < in->npaths && rc == 0; i++) {
		in->path[i]->ops = &path_ops;
		in->path[i]->owner = in;
		in->path[i]->segs = &in->sends.segs;
		in->path[i]->reserve = in->reserve.limit > 0 ? &in->reserve : NULL;
		rc = pxd_in_path_open(in->path[i], &d->node, in->path[i]->site, in->path[i]->gateway, window);
	}
	return rc;
}

/* Does any other site dial us, for either direction? */
static bool someone_dials(const struct pxd *d)
{
	for (int i = 0; i < d->node.hosts->nsites; i++)
		if (i != d->node.self &&
			(!pxd_hosts_dials(d->node.hosts, d->node.self, i, d->node.self) ||
				!pxd_hosts_dials(d->node.hosts, d->node.self, d->node.self, i)))
			return true;
	return false;
}

static int ring_open(struct in *in)
{
	for (int i = 0; i < RING; i++)
		if (px_n.Recv_init(in->ring_buf[i], PX_BATCH_MAX, MPI_BYTE, MPI_ANY_SOURCE, PX_TAG_DONE,
			    in->d->map.relay, &in->ring[i]) != MPI_SUCCESS ||
			px_n.Start(&in->ring[i]) != MPI_SUCCESS)
			return PX_EMPI;
	return PX_OK;
}

static struct pxd_in_path *path_at(struct in *in, const struct px_preamble *p)
{
	const struct pxd_node *d = &in->d->node;

	return p->to == d->self && p->to_gateway == d->gateway ? path_find(in, p->from, p->from_gateway)
							       : NULL;
}

static void in_greet(void *owner, const struct px_preamble *p, struct px_hello *h)
{
	pxd_in_path_greet(path_at(owner, p), p->stream, h);
}

static int in_judge(void *owner, const struct px_preamble *p, const struct px_hello *h, char *why, size_t cap)
{
	struct in *in = owner;
	struct pxd_in_path *path = path_at(in, p);

	if (path)
		return pxd_in_path_judge(path, p->stream, h, why, cap);
	snprintf(why, cap, "gateway %d of site %s does not read from gateway %d of site %s", p->to_gateway,
		in->d->node.hello.name, p->from_gateway, h->name);
	return PX_ESITE;
}

static void in_linked(void *owner, const struct px_preamble *p, struct pxd_conn *c, const struct px_hello *h)
{
	struct in *in = owner;
	int missing = 0;

	pxd_in_path_linked(path_at(in, p), p->stream, c, h);
	for (int i = 0; i < in->npaths; i++)
		missing += !in->path[i]->ever_up;
	if (missing == 0)
		uv_timer_stop(&in->deadline);
}

static const struct pxd_peers peers = { in_greet, in_judge, in_linked };

static int in_open(struct pxd *d)
{
	struct in *in = calloc(1, sizeof *in);
	int rc = PX_ENOMEM;

	if (!in)
		goto fail;
	d->state = in;
	in->d = d;
	d->node.peers = &peers;
	d->node.owner = in;
	pxd_listen_init(&in->listen, &d->node);
	if (pxd_sends_init(&in->sends, d) < 0 || uv_timer_init(&d->node.loop, &in->deadline) < 0)
		goto fail;
	in->sends.path_of = path_of;
	in->sends.owner = in;
	in->deadline.data = in;
	rc = ring_open(in);
	if (rc == 0)
		rc = paths_open(in);
	if (rc < 0)
		goto fail;
	if (someone_dials(d)) {
		rc = pxd_listen_open(&in->listen);
		if (rc < 0)
			return rc;
		in->listening = true;
	}
	if (in->npaths > 0)
		uv_timer_start(&in->deadline, on_deadline,
			(uint64_t)d->node.hosts->deadline_start_ms + DEADLINE_EXTRA_MS, 0);
	return pxd_world_start(d, NULL);
fail:
	pxd_fail(&d->node, PXD_EXIT_INTERNAL, "the in-daemon cannot start: %s", px_strerror(rc));
	return rc;
}

static void in_close(struct pxd *d)
{
	struct in *in = d->state;

	for (int i = 0; i < RING; i++) {
		px_n.Cancel(&in->ring[i]);
		px_n.Wait(&in->ring[i], MPI_STATUS_IGNORE);
		px_n.Request_free(&in->ring[i]);
	}
	if (in->listening)
		pxd_listen_close(&in->listen);
	for (int i = 0; i < in->npaths; i++)
		pxd_in_path_close(in->path[i]);
	uv_close((uv_handle_t *)&in->deadline, NULL);
	uv_run(&d->node.loop, UV_RUN_DEFAULT);
	for (int i = 0; i < in->npaths; i++) {
		pxd_in_path_free(in->path[i]);
		free(in->path[i]);
	}
	pxd_sends_fini(&in->sends);
	free(in->path);
	free(in);
	d->state = NULL;
}

static void in_farewell(struct pxd *d, const char *why)
{
	struct in *in = d->state;

	for (int i = 0; in && i < in->npaths; i++)
		pxd_in_path_say_abort(in->path[i], d->node.code, why);
}

static void in_status(struct pxd *d, struct px_buf *b)
{
	struct in *in = d->state;

	pxd_stats_add(b, ",\"buffer_used\":%llu,\"buffer_bound\":%llu,\"turned_away\":%llu,\"links\":[",
		(unsigned long long)(in->sends.segs.used_bytes + in->sends.envelope_bytes),
		(unsigned long long)in->bound, (unsigned long long)in->listen.turned_away);
	for (int i = 0; i < in->npaths; i++) {
		struct pxd_path_view v;

		pxd_in_path_view(in->path[i], &v);
		pxd_stats_add(b, "%s", i ? "," : "");
		pxd_stats_link(b, &d->node, in->path[i]->site, d->node.self, &v, &in->path[i]->count, 0);
	}
	pxd_stats_add(b, "]");
}

static void in_report(struct pxd *d)
{
	struct in *in = d->state;
	struct px_buf b = { 0 };

	pxd_stats_add(&b, "{\"links_in\":[");
	for (int i = 0; i < in->npaths; i++) {
		const struct pxd_counters *c = &in->path[i]->count;
		struct pxd_path_view v;

		pxd_in_path_view(in->path[i], &v);
		pxd_stats_add(&b, "%s", i ? "," : "");
		pxd_stats_ends(&b, &d->node, in->path[i]->site, d->node.self);
		pxd_stats_add(&b,
			",\"messages\":%llu,\"payload_bytes\":%llu,\"wire_bytes\":%llu,\"frames\":%llu,"
			"\"segment_peak_bytes\":%llu,\"envelope_peak_bytes\":%llu,\"dropped\":%llu,"
			"\"reconnects\":%u",
			(unsigned long long)c->messages, (unsigned long long)c->payload_bytes,
			(unsigned long long)c->wire_bytes, (unsigned long long)c->frames,
			(unsigned long long)in->sends.segs.peak_bytes,
			(unsigned long long)in->sends.envelope_peak, (unsigned long long)in->sends.dropped,
			v.reconnects);
		if (d->node.hosts->sites[d->node.self].ngateways > 1)
			pxd_stats_add(&b, ",\"gateway\":%d", d->node.gateway);
		pxd_stats_codecs(&b, c);
		pxd_stats_add(&b, "}");
	}
	pxd_stats_add(&b, "]}");
	pxd_stats_report(&d->node, "in", &b);
}

static bool in_quiet(struct pxd *d)
{
	const struct in *in = d->state;

	return !pxd_sends_pending(&in->sends);
}

const struct pxd_role pxd_role_in = { in_open, in_poll, in_done, in_quiet, in_close, in_report, in_farewell,
	in_status };
