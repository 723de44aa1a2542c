/* stream_life.c: see stream_life.h. */
#include "stream_life.h"

#include <stdio.h>
#include <string.h>

#include "conn.h"
#include "crc.h"
#include "endian.h"
#include "err.h"
#include "frame_check.h"
#include "wait.h"

#define HEARTBEATS  12 /* per reconnect: time */
#define BEAT_MIN_MS 200
#define BEAT_MAX_MS 5000
#define SLOW_BEATS  2
#define CUT_BEATS   4
/* A link is also interrupted because a site has failed, and ends: that is said first, and by whoever knows it. */
#define SAY_NS 2000000000u
#define FLAPS  5 /* connections lost, at least, before a link that always comes back is called dead */

const char *pxd_link_state_name(enum pxd_link_state s)
{
	static const char *const names[] = { "waiting", "up", "interrupted", "closed" };

	return names[s];
}

void pxd_life_name(const struct pxd_node *d, int from, int to, int stream, char *text, size_t cap)
{
	int n = snprintf(
		text, cap, "link from site %s to site %s", pxd_site_name(d, from), pxd_site_name(d, to));

	if (stream > 0 && n > 0 && (size_t)n < cap)
		snprintf(text + n, cap - (size_t)n, " (stream %d)", stream);
}

/* A link that flaps is said to do so, not every time. */
static bool worth_saying(const struct pxd_life *v)
{
	return v->reconnects < 8 || (v->reconnects & (v->reconnects - 1)) == 0;
}

static uint64_t beat_ns(const struct pxd_life *v)
{
	long ms = v->reconnect_ms / HEARTBEATS;

	return (uint64_t)(ms < BEAT_MIN_MS ? BEAT_MIN_MS : ms > BEAT_MAX_MS ? BEAT_MAX_MS : ms) * 1000000u;
}

void pxd_life_init(struct pxd_life *v, long reconnect_ms, long late_ms)
{
	v->since = v->moved_at = px_now_ns();
	v->reconnect_ms = reconnect_ms;
	v->late_ms = late_ms;
}

void pxd_life_moved(struct pxd_life *v)
{
	v->moved_at = px_now_ns();
	v->losses = 0;
}

void pxd_life_ping(struct pxd_conn *c, bool check)
{
	struct px_frame ping = { .version = PX_PROTOCOL_VERSION, .type = PX_F_PING, .total = px_now_ns() };

	pxd_frame_say(c, &ping, check);
}

void pxd_life_pong(struct pxd_life *v, const struct px_frame *f)
{
	uint64_t now = px_now_ns();

	if (f->total >= v->since && f->total <= now && now - f->total < UINT32_MAX * 1000ull)
		v->rtt_us = (uint32_t)((now - f->total) / 1000);
}

bool pxd_life_lost_for(const struct pxd_life *v, long ms)
{
	return v->state == PXD_LINK_INTERRUPTED && px_past(px_now_ns(), v->since) > (uint64_t)ms * 1000000u;
}

void pxd_life_up(struct pxd_life *v, const char *name, const char *peer)
{
	uint64_t now = px_now_ns();

	if (v->state == PXD_LINK_INTERRUPTED) {
		v->reconnects++;
		if (worth_saying(v))
			px_log(PX_LOG_WARN,
				"%s goes on after an interruption of %.1f s (%s; connected to %s, "
				"reconnected %u "
				"times now)",
				name, (double)(px_past(now, v->since)) / 1e9, v->why, peer, v->reconnects);
	} else {
		px_log(PX_LOG_DEBUG, "%s is up (%s)", name, peer);
	}
	v->state = PXD_LINK_UP;
	v->since = v->last_byte = now;
	v->pinged = 0; /* the first one soon: it tells the latency */
	v->slow = false;
}

bool pxd_life_down(struct pxd_life *v, struct pxd_node *d, const char *name, const char *why,
	uint64_t progress, bool broken)
{
	uint64_t now = px_now_ns();

	/* On an idle link heartbeats are all that can be damaged, now and then. */
	if (progress != v->progress || px_past(now, v->since) > beat_ns(v))
		v->strikes = 0;
	v->progress = progress;
	snprintf(v->why, sizeof v->why, "%s", why);
	if (broken && v->strikes++ == 0)
		v->struck_at = now;
	/* A line that damages bits for a moment costs some connections, not the job. */
	if (broken && v->strikes >= PXD_STRIKES && px_past(now, v->struck_at) > beat_ns(v)) {
		pxd_fail(d, PXD_EXIT_PROTOCOL, "%s: the peer broke the protocol %u times in a row: %s", name,
			v->strikes, why);
		return false;
	}
	if (++v->losses >= FLAPS &&
		px_past(now, v->moved_at) > (uint64_t)(v->reconnect_ms + v->late_ms) * 1000000u) {
		pxd_fail(d, PXD_EXIT_LOST,
			"%s is dead: it has been connected %u times within %.0f s, and nothing has gone "
			"through (reconnect:); the last connection ended: %s",
			name, v->losses, (double)(px_past(now, v->moved_at)) / 1e9, why);
		return false;
	}
	v->state = PXD_LINK_INTERRUPTED;
	v->since = now;
	v->unsaid = worth_saying(v);
	return true;
}

enum pxd_life_do pxd_life_tick(struct pxd_life *v, const struct pxd_conn *c, const char *name)
{
	uint64_t now = px_now_ns(), beat = beat_ns(v), silent;

	if (v->state == PXD_LINK_INTERRUPTED && v->unsaid && px_past(now, v->since) > SAY_NS) {
		v->unsaid = false;
		px_log(PX_LOG_WARN, "%s interrupted for %.0f s now: %s; a new connection is awaited", name,
			(double)(px_past(now, v->since)) / 1e9, v->why);
	}
	if (v->state == PXD_LINK_INTERRUPTED)
		return pxd_life_lost_for(v, v->reconnect_ms + v->late_ms) ? PXD_LIFE_DEAD : PXD_LIFE_NOTHING;
	if (v->state != PXD_LINK_UP || !c)
		return PXD_LIFE_NOTHING;
	v->last_byte = c->heard;
	silent = px_past(now, c->heard);
	if (v->slow && silent < beat) {
		v->slow = false;
		px_log(PX_LOG_INFO, "%s: the peer answers again", name);
	}
	if (silent > CUT_BEATS * beat)
		return PXD_LIFE_CUT;
	if (silent > SLOW_BEATS * beat && !v->slow) {
		v->slow = true;
		px_log(PX_LOG_INFO, "%s is slow: nothing has come from the peer for %.1f s", name,
			(double)silent / 1e9);
	}
	/* Not only in silence: a reader to whom a long frame comes slowly has nothing else to say, and would seem dead. */
	if (px_past(now, v->pinged) > beat) {
		v->pinged = now;
		return PXD_LIFE_PING;
	}
	return PXD_LIFE_NOTHING;
}

void pxd_life_dead(const struct pxd_life *v, struct pxd_node *d, const char *name, const char *attempt)
{
	pxd_fail(d, PXD_EXIT_LOST,
		"%s is dead: no connection for %g s (reconnect:); last byte from the peer %.1f s ago; it was "
		"interrupted by: %s%s%s",
		name, (double)v->reconnect_ms / 1000, (double)(px_past(px_now_ns(), v->last_byte)) / 1e9,
		v->why, attempt && *attempt ? "; the last attempt met: " : "", attempt ? attempt : "");
}
