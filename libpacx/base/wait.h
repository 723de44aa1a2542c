/* wait.h: the one waiting policy of library and daemons.
 *
 * A waiter polls; after each poll that found nothing it calls px_wait_idle,
 * after each poll that found something px_wait_reset. px_wait_idle spins, then
 * yields the processor, then naps, each nap an eighth of what it has waited, or until its bell is rung (bell.h). When more processes
 * than cores share the node it never spins, because the spinning process keeps
 * the one it waits for off the core. PACX_WAIT=spin|auto|sleep overrides. Where naps end late because so many share the
 * cores, they become longer than the policy has it, up to 8 ms.
 * No thread safety: one struct px_wait per waiter.
 */
#ifndef PX_WAIT_H
#define PX_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct px_wait_policy {
	uint64_t spin_ns;    /* poll without giving up the core this long */
	uint64_t yield_ns;   /* then poll with sched_yield up to this age */
	uint64_t nap_min_ns; /* then sleep an eighth of that age, but not below this */
	uint64_t nap_max_ns; /* nor above this */
};

struct px_wait {
	const struct px_wait_policy *policy;
	uint64_t since; /* monotonic ns of the first empty poll; 0 = none yet */
	uint64_t nap;   /* length of the last nap, 0 = none yet */
	uint64_t until; /* when it should have been over */
	uint32_t heard; /* px_bell_heard before the last poll */
	bool rings; /* set by the waiter, before it idles: whatever it waits for ends its nap, which may be long therefore */
	unsigned polls; /* empty polls since reset: the clock is read only now and then */
};

/* px_wait_setup: choose the process-wide policy. procs = processes of this job on the node,
 * daemon = the waiter is a relay daemon (longer naps when idle for long). Reads PACX_WAIT. */
void px_wait_setup(int procs, bool daemon);

/* px_wait_cores: processors this process may run on (sched_getaffinity), at least 1. */
int px_wait_cores(void);

/* px_wait_crowded: px_wait_setup was told of more processes than that: work on the side takes time that others want. */
bool px_wait_crowded(void);

void px_wait_init(struct px_wait *w);
void px_wait_reset(struct px_wait *w);
/* px_wait_next: what px_wait_idle would do now, without doing it: 0 = poll again at once (it has
 * spun or yielded), > 0 = nanoseconds to nap. For event loops that nap inside epoll: only if px_bell_listen(w->heard) says so, and
 * px_wait_woken behind it. */
uint64_t px_wait_next(struct px_wait *w);
/* px_wait_woken: the nap is over. true: w was rung. */
bool px_wait_woken(struct px_wait *w);
void px_wait_idle(struct px_wait *w);

uint64_t px_cpu_ns(void); /* of this thread: CLOCK_THREAD_CPUTIME_ID */
uint64_t px_now_ns(void); /* CLOCK_MONOTONIC, less what px_now_stood was told */
/* px_now_stood: this process was stopped (Ctrl-Z) for so long, and whoever waits for others should not count it. Called by one
 * thread; others may read the clock meanwhile. */
void px_now_stood(uint64_t ns);
/* px_past: how long ago `then` was. What was noted between a stop and px_now_stood lies ahead of the clock: not long ago. */
static inline uint64_t px_past(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

#endif
