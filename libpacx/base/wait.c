/* wait.c: see wait.h.
 *
 * The ages are measured from the first empty poll. A spinning or yielding waiter reads the clock
 * only every CLOCK_EVERY polls, so up to that many polls more than the policy says may happen.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "wait.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "bell.h"
#include "err.h"

#define US          UINT64_C(1000)
#define FOREVER     UINT64_MAX
#define CLOCK_EVERY 8
#define NAP_PART    8 /* of the age */
#define RUNG_NAP    (5000 * US)
#define RUNG_YIELDS                                                                                          \
	(200 * US) /* who was rung and finds nothing: it is on its way, or was for another thread */
#define SOON 2     /* a nap of that length: none yet, but the next poll is the last before one */
/* Longer naps save little more and cost latency: only who has been idle for long takes them. */
#define SHORT_NAP (200 * US)
#define LONG_IDLE                                                                                            \
	(500000 * US) /* more than two wide-area round trips: a job that waits for its peer is not idle */

/* Enough cores. */
static const struct px_wait_policy roomy = { 30 * US, 1000 * US, 50 * US, 200 * US };
/* More processes than cores: a spinner would keep the process it waits for off its core. */
static const struct px_wait_policy crowded = { 0, 1000 * US, 50 * US, 200 * US };
/* PACX_WAIT=spin: lowest latency, no naps ever. */
static const struct px_wait_policy eager = { 30 * US, FOREVER, 50 * US, 200 * US };
/* PACX_WAIT=sleep: for nodes shared with others. */
static const struct px_wait_policy lazy = { 0, 20 * US, 50 * US, 200 * US };

/* Naps that are over all the time cost more than they are long: waking takes the core from who works there, and on a core that serves
 * fifteen such sleepers that is most of it (measured on Linux 6.18 in a virtual machine: fifteen who nap 50 us leave a worker 9 % of
 * the core, 200 us 19 %, 1 ms 76 %; fifteen who yield 88 %). How many share the cores nobody knows: sites of one
 * machine, other jobs. But naps of a crowd end late, and the third quartile shows it: 80 us for six processes on two cores, whatever
 * computes beside them (few naps meet that, but those by milliseconds: a mean would not do), 250 us and more for forty. */
#define LATE_MUCH    (150 * US) /* a virtual machine takes 40 to 80 us to wake up */
#define LATE_TIMES   4
#define LATE_COUNTED (2000 * US)

static bool more_than_cores;
static struct px_wait_policy chosen = { 0, 1000 * US, 50 * US, 200 * US };

/* Three naps of four have lately ended at most so much too late. Of all threads: one may lose what another notes. */
static _Atomic uint64_t late;
static _Atomic uint64_t stood; /* nanoseconds that do not count, see px_now_stood */

uint64_t px_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t px_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec -
	       atomic_load_explicit(&stood, memory_order_relaxed);
}

void px_now_stood(uint64_t ns)
{
	atomic_fetch_add_explicit(&stood, ns, memory_order_relaxed);
}

int px_wait_cores(void)
{
	long n;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
		return CPU_COUNT(&set);
	n = sysconf(_SC_NPROCESSORS_ONLN); /* more than CPU_SETSIZE processors */
	return n > 0 ? (int)n : 1;
}

void px_wait_setup(int procs, bool daemon)
{
	const char *env = getenv("PACX_WAIT");

	more_than_cores = procs > px_wait_cores();
	chosen = more_than_cores ? crowded : roomy;
	if (env && strcmp(env, "spin") == 0)
		chosen = eager;
	else if (env && strcmp(env, "sleep") == 0)
		chosen = lazy;
	else if (env && *env && strcmp(env, "auto") != 0)
		px_log(PX_LOG_WARN, "PACX_WAIT=%s is not known; use spin, auto or sleep (taking auto)", env);
	if (daemon) {
		chosen.nap_max_ns = 2000 * US;
		prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0); /* Linux adds 50 us to every nap otherwise */
	}
}

bool px_wait_crowded(void)
{
	return more_than_cores;
}

void px_wait_init(struct px_wait *w)
{
	w->policy = &chosen;
	w->rings = false;
	px_wait_reset(w);
}

void px_wait_reset(struct px_wait *w)
{
	w->since = 0;
	w->nap = 0;
	w->polls = 0;
}

static void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* A nap of w has ended, and the poll behind it is over: `late` goes up by three steps or down by one, so that it rests at the third quartile. */
static void late_note(const struct px_wait *w, uint64_t now)
{
	uint64_t known = atomic_load_explicit(&late, memory_order_relaxed), step = known / 16 + US;
	uint64_t by = px_past(now, w->until);

	if (by == 0) /* an event has ended it */
		return;
	if (by > LATE_COUNTED)
		by = LATE_COUNTED;
	if (by > known)
		known += by - known < 3 * step ? by - known : 3 * step;
	else
		known -= known - by < step ? known - by : step;
	atomic_store_explicit(&late, known, memory_order_relaxed);
}

uint64_t px_wait_next(struct px_wait *w)
{
	const struct px_wait_policy *p = w->policy;
	uint64_t age, next, crowd;

	/* While napping the clock is read every time: it costs nothing beside a nap. `nap` marks the phase:
	 * 0 = spinning, 1 = yielding, 2 = about to nap, more = length of the last nap. */
	if (w->nap <= 1 && w->since && ++w->polls % CLOCK_EVERY != 0) {
		if (w->nap == 1)
			sched_yield();
		else
			cpu_pause();
		return 0;
	}
	if (!w->since) {
		w->since = px_now_ns();
		age = 0;
		px_bell_pay();
	} else {
		age = px_now_ns() - w->since;
	}
	if (age < p->spin_ns) {
		cpu_pause();
		return 0;
	}
	if (age < p->yield_ns) {
		w->nap = 1;
		sched_yield();
		return 0;
	}
	/* A bell that is rung between here and the nap ends it: one more poll. */
	if (w->nap <= 1) {
		w->nap = SOON;
		w->heard = px_bell_heard();
		return 0;
	}
	/* A nap is a small part of what was waited already. Longer ones feed themselves: a hop passes four waiters, and one that naps
	 * makes the others wait until they nap, too (measured: 32 KiB over MPICH sites stayed at 300 to 650 us a hop instead of 100). */
	next = age / NAP_PART;
	if (next > SHORT_NAP && age < LONG_IDLE)
		next = SHORT_NAP;
	if (next < p->nap_min_ns)
		next = p->nap_min_ns;
	if (next > p->nap_max_ns)
		next = p->nap_max_ns;
	if (w->nap > SOON)
		late_note(w, w->since + age);
	crowd = atomic_load_explicit(&late, memory_order_relaxed);
	if (crowd > LATE_MUCH && next < LATE_TIMES * crowd)
		next = LATE_TIMES * crowd;
	if (w->rings)
		next = RUNG_NAP;
	w->nap = next;
	w->until = w->since + age + next;
	return next;
}

bool px_wait_woken(struct px_wait *w)
{
	uint32_t heard = px_bell_heard();
	bool rung = heard != w->heard;
	uint64_t left = w->policy->yield_ns < RUNG_YIELDS ? w->policy->yield_ns : RUNG_YIELDS;

	w->heard = heard;
	if (rung) {
		w->since = px_now_ns() - (w->policy->yield_ns - left);
		w->nap = 1;
	}
	return rung;
}

void px_wait_idle(struct px_wait *w)
{
	uint64_t ns = px_wait_next(w);
	int slack;

	if (ns == 0)
		return;
	slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	px_bell_sleep(w->heard, ns);
	px_wait_woken(w);
	if (slack > 0) /* the program's own sleeps stay as they were */
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
}
