/* yield_hook.c: MPICH's blocking calls give the core away when there are more processes than cores.
 *
 * MPICH (ch4:ucx) waits by calling ucp_worker_progress for ever and never yields: oversubscribed, each hop then
 * costs a time slice. This ucp_worker_progress stands in front of UCX's. It calls the real one, and after EMPTY
 * calls in a row that found nothing, yields each time, if the waiting policy says that cores are scarce. It never
 * calls MPI. Part of libpacx-mpich.so and of pacxd-mpich, which must export it (-rdynamic).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>

#ifndef OPEN_MPI /* Open MPI yields by itself, and may bring UCX, too */
#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "wait.h"

#define EMPTY 50

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

/* A policy that never spins is the one for more processes than cores (or PACX_WAIT=sleep). */
static bool scarce(void)
{
	struct px_wait w;

	px_wait_init(&w);
	return w.policy->spin_ns == 0;
}

unsigned ucp_worker_progress(void *worker)
{
	static progress_fn *real;
	static _Thread_local unsigned empty;
	unsigned n;

	if (!real)
		real = real_progress();
	n = real(worker);
	if (n != 0)
		empty = 0;
	else if (++empty >= EMPTY && scarce())
		sched_yield();
	return n;
}
#else
typedef int px_no_yield_hook; /* C wants something in a file */
#endif
