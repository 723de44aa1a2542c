/* link_rate.c: see link_rate.h. */
#include "link_rate.h"

#include "conn.h"
#include "tcp_state.h"
#include "wait.h"

#define AUTO_STREAMS  8    /* the most that `streams: auto` opens */
#define AUTO_RTT_US   1000 /* on shorter ways one stream fills the pipe */
#define AUTO_GAIN     1.15 /* what more streams have to bring */
#define AUTO_AGAIN_NS 60000000000u
#define BELIEVED      2e6 /* bytes/s: a processor that comes late makes a train of 12 KiB no slower */

/* Since the last tick. */
struct progress {
	uint64_t bytes; /* that the peer's kernel has acknowledged */
	uint64_t
		busy_ns; /* so long, at least, there was something to carry; not known: more than has passed */
	double emulated; /* rate of the emulated lines in use, 0 = there are none */
	uint32_t rtt_us; /* the largest */
	bool full;       /* every stream in use has more to send than its line takes */
};

static uint64_t since(uint64_t now, uint64_t *before)
{
	uint64_t past = px_past(now, *before);

	*before = now;
	return past;
}

static struct progress tcp_progress(struct pxd_path *l)
{
	struct progress p = { .full = l->stream[0]->life.state == PXD_LINK_UP };

	p.rtt_us = (uint32_t)(2 * l->opts->emulate_latency_us); /* which the kernel does not see */
	for (int i = 0; i < l->nstreams; i++) {
		struct pxd_stream *s = l->stream[i];
		struct pxd_tcp_state t = { 0 };
		bool new = s->tcp_acked == 0;
		uint64_t bytes, busy;

		if (!s->conn)
			continue;
		if (!pxd_tcp_state(s->conn->fd, &t))
			t.bytes_acked = s->conn->out;
		p.rtt_us = t.rtt_us > p.rtt_us ? t.rtt_us : p.rtt_us;
		if (i < l->use && s->q.unsent == 0 && t.unsent == 0 && !pxd_conn_line_busy(s->conn))
			p.full = false;
		p.emulated += i < l->use ? pxd_conn_line_rate(s->conn) : 0;
		bytes = since(t.bytes_acked, &s->tcp_acked);
		busy = t.busy_us > 0 ? since(t.busy_us * 1000, &s->tcp_busy) : UINT64_MAX;
		if (new) /* since when, nobody has seen */
			continue;
		p.bytes += bytes;
		p.busy_ns = busy > p.busy_ns ? busy : p.busy_ns;
	}
	return p;
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

/* The rate of the wire: of the time between two ticks only what the wire was busy with; the kernel counts that in ticks of its own, of up to
 * 10 ms. A slow start or a busy machine makes it look slower than it is: up sooner than down. An
 * emulated wire has the rate that it is told, whatever the machine makes of it. */
static double rate_of(const struct pxd_path *l, const struct progress *p, double dt)
{
	double busy = (double)p->busy_ns / 1e9, rate;

	if (p->emulated > 0)
		return p->emulated;
	busy = busy < dt / 4 ? dt / 4 : busy;
	rate = (double)p->bytes / (busy < dt ? busy : dt);
	return l->rate > 0 && !l->rate_told ? l->rate + (rate > l->rate ? 0.5 : 0.25) * (rate - l->rate)
					    : rate;
}

void pxd_rate_tick(struct pxd_path *l, uint64_t now, int (*add)(struct pxd_path *l))
{
	struct progress p = tcp_progress(l);
	bool was = l->was_full, spared = l->spared;
	double dt = (double)px_past(now, l->tick_at) / 1e9, least;

	l->tick_at = now;
	l->was_full = p.full;
	l->spared = false;
	/* Everything is on its way: it was faster than reckoned. */
	if (!p.full && l->wire_until > now + 1000ull * p.rtt_us)
		l->wire_until = now + 1000ull * p.rtt_us;
	least = dt > 0 ? (double)p.bytes / dt : 0;
	if (spared && !p.full && p.emulated <= 0 && least > l->rate)
		l->rate += 0.5 * (least - l->rate); /* it has carried so much, or nearly */
	if (!p.full || p.bytes == 0 || dt <= 0) {
		l->full_since = 0;
		return;
	}
	if (!was)
		return; /* nobody knows since when it has been */
	l->rate = rate_of(l, &p, dt);
	l->rate_told = false;
	if (l->full_since == 0) {
		l->full_since = now;
		l->window_bytes = 0;
	} else {
		l->window_bytes += p.bytes;
	}
	streams_grow(l, now, p.rtt_us, add);
}

void pxd_rate_told(struct pxd_path *l, double rate)
{
	if (l->rate > 0 || rate > BELIEVED)
		return;
	l->rate = rate;
	l->rate_told = true;
}
