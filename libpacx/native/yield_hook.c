/* yield_hook.c: see yield_hook.h. Blocking native calls give the core away when there are more processes than cores.
 *
 * MPICH (ch4:ucx) waits by calling ucp_worker_progress for ever and never yields: oversubscribed, each hop then
 * costs a time slice. This ucp_worker_progress stands in front of UCX's. It calls the real one, lets progress.c serve other
 * sites, and after EMPTY calls in a row that found nothing yields each time, if the waiting policy says that cores are
 * scarce. Who yields for long must nap in the end: measured on Linux 6.18, 2 cores, dozens of processes that yield 60,000 times a
 * second, and never sleep, keep the others, the kernel's own too, from running for seconds. libpacx-mpich.so exports it, and pacxd-mpich (-rdynamic).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "yield_hook.h"

#include <mpi.h>
#include <sched.h>

#include "vendor.h"
#include "wait.h"

#define EMPTY 100
#define EVERY 16

_Atomic unsigned px_idle_polls;
enum px_served (*px_poll_serve)(void);
bool px_poll_seen;

static unsigned idle(void)
{
	return atomic_load_explicit(&px_idle_polls, memory_order_relaxed);
}

bool px_poll_due(void)
{
	static _Atomic unsigned polls; /* of all calls: a program of short calls only must serve, too */
	unsigned n = atomic_load_explicit(&polls, memory_order_relaxed) + 1;

	atomic_store_explicit(&polls, n, memory_order_relaxed);
	return n % EVERY == 0 || idle() >= EMPTY;
}

void px_poll_done(bool found, bool waits)
{
	static _Thread_local struct px_wait w;

	/* Not one atomic step: a count lost between threads does no harm. */
	atomic_store_explicit(&px_idle_polls, found ? 0 : idle() + 1, memory_order_relaxed);
	if (idle() < EMPTY)
		return;
	if (idle() == EMPTY || !w.policy)
		px_wait_init(&w); /* a wait begins here, that of this thread at the latest */
	if (w.policy->spin_ns != 0)
		return; /* cores enough: a policy that never spins is the one for more processes than cores */
	if (waits)
		px_wait_idle(&w);
	else
		sched_yield();
}

#ifndef OPEN_MPI /* which has a way of its own (progress.c), and may bring UCX, too */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

unsigned ucp_worker_progress(void *worker);

typedef unsigned progress_fn(void *worker);

static progress_fn *real_progress(void)
{
	void *p = dlsym(RTLD_NEXT, "ucp_worker_progress");
	void *lib = NULL;

	/* Not in the search order after us: libucp came with a library that was loaded privately. */
	if (!p && (lib = dlopen("libucp.so.0", RTLD_NOLOAD | RTLD_LAZY)))
		p = dlsym(lib, "ucp_worker_progress");
	if (!p)
		abort(); /* we were called as UCX, but there is no UCX */
	return (progress_fn *)(uintptr_t)p;
}

unsigned ucp_worker_progress(void *worker)
{
	static progress_fn *real;
	enum px_served served = PX_SERVED_NOTHING;
	unsigned n;

	if (!real)
		real = real_progress();
	n = real(worker);
	if (PX_OVER_OPENMPI)
		return n;
	px_poll_seen = true;
	if (px_poll_serve && px_poll_due())
		served = px_poll_serve();
	if (served != PX_SERVED_LOOP)
		px_poll_done(
			n != 0 || served == PX_SERVED_SOME, px_poll_serve && served == PX_SERVED_NOTHING);
	return n + (served == PX_SERVED_SOME);
}
#endif
