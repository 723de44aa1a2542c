/* yield_hook.c: see yield_hook.h. Blocking native calls give the core away when there are more processes than cores.
 *
 * MPICH (ch4:ucx) waits by calling ucp_worker_progress for ever and never yields: oversubscribed, each hop then
 * costs a time slice. This ucp_worker_progress stands in front of UCX's. It calls the real one, lets progress.c serve other
 * sites, and after EMPTY calls in a row that found nothing yields each time, if the waiting policy says that cores are
 * scarce. libpacx-mpich.so exports it, and pacxd-mpich (-rdynamic).
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

/* A policy that never spins is the one for more processes than cores (or PACX_WAIT=sleep). */
static bool scarce(void)
{
	struct px_wait w;

	px_wait_init(&w);
	return w.policy->spin_ns == 0;
}

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

void px_poll_done(bool found)
{
	/* Not one atomic step: a count lost between threads does no harm. */
	atomic_store_explicit(&px_idle_polls, found ? 0 : idle() + 1, memory_order_relaxed);
	if (idle() >= EMPTY && scarce())
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
		px_poll_done(n != 0 || served == PX_SERVED_SOME);
	return n + (served == PX_SERVED_SOME);
}
#endif
