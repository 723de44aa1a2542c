/* link_rate.c: see link_rate.h. */
#include "link_rate.h"

#include "conn.h"
#include "tcp_state.h"
#include "wait.h"

#define AUTO_STREAMS  8    /* the most that `streams: auto` opens */
#define AUTO_RTT_US   1000 /* on shorter ways one stream fills the pipe */
#define AUTO_GAIN     1.15 /* what more streams have to bring */
#define AUTO_AGAIN_NS 60000000000u

/* Bytes that the peer's kernel has acknowledged since the last tick, and the largest round-trip time. *full: every stream in use has more to
 * send than its line takes. */
static uint64_t tcp_progress(struct pxd_path *l, uint32_t *rtt, bool *full)
{
	uint64_t sum = 0;

	*rtt = (uint32_t)(2 * l->opts->emulate_latency_us); /* which the kernel does not see */
	*full = l->stream[0]->life.state == PXD_LINK_UP;
	for (int i = 0; i < l->nstreams; i++) {
		struct pxd_stream *s = l->stream[i];
		struct pxd_tcp_state t = { 0 };
		uint64_t now;

		if (!s->conn)
			continue;
		if (pxd_tcp_state(s->conn->fd, &t)) {
			now = t.bytes_acked;
			if (t.rtt_us > *rtt)
				*rtt = t.rtt_us;
		} else {
			now = s->conn->out;
		}
		if (i < l->use && s->q.unsent == 0 && t.unsent == 0 && !pxd_conn_line_busy(s->conn))
			*full = false;
		if (now > s->tcp_acked && s->tcp_acked > 0)
			sum += now - s->tcp_acked;
		s->tcp_acked = now;
	}
	return sum;
}

/* More streams, as long as they make a full link faster. */
static void streams_grow(struct pxd_path *l, uint64_t now, uint32_t rtt, int (*add)(struct pxd_path *l))
{
	uint64_t need = 8ull * rtt * 1000 > 400000000u ? 8ull * rtt * 1000 : 400000000u;
	double rate;

	/* Where the reader dials, too, it would not know of more. */
	if (l->opts->streams != 0 || l->opts->relay || !l->stream[0]->dials || rtt < AUTO_RTT_US ||
		l->full_since == 0 || px_past(now, l->full_since) < need)
		return;
	if (l->settled && px_past(now, l->settled_at) < AUTO_AGAIN_NS)
		return;
	l->settled = false;
	rate = (double)l->window_bytes / ((double)px_past(now, l->full_since) / 1e9);
	l->full_since = now;
	l->window_bytes = 0;
	if (rate > l->best_rate * (l->use > l->best_use ? AUTO_GAIN : 1.0)) {
		l->best_rate = rate;
		l->best_use = l->use;
	} else if (l->use > l->best_use) {
		l->use = l->best_use;
		l->settled = true;
		l->settled_at = now;
		l->best_rate = 0;
		return;
	}
	if (l->use >= AUTO_STREAMS) {
		l->settled = true;
		l->settled_at = now;
		l->best_rate = 0;
		return;
	}
	l->use *= 2;
	while (l->nstreams < l->use && add(l) == 0)
		;
	if (l->use > l->nstreams)
		l->use = l->nstreams;
}

void pxd_rate_tick(struct pxd_path *l, uint64_t now, int (*add)(struct pxd_path *l))
{
	uint32_t rtt;
	bool full, was = l->was_full;
	uint64_t bytes = tcp_progress(l, &rtt, &full);
	double dt = (double)px_past(now, l->tick_at) / 1e9;

	l->tick_at = now;
	l->was_full = full;
	if (!full || bytes == 0 || dt <= 0) {
		l->full_since = 0;
		return;
	}
	if (!was)
		return; /* nobody knows since when it has been */
	l->rate = l->rate > 0 ? 0.75 * l->rate + 0.25 * (double)bytes / dt : (double)bytes / dt;
	if (l->full_since == 0) {
		l->full_since = now;
		l->window_bytes = 0;
	} else {
		l->window_bytes += bytes;
	}
	streams_grow(l, now, rtt, add);
}
