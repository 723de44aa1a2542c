/* progress.c: see progress.h.
 *
 * Design. A blocking native call polls, and so does every call that tests. Where that poll can be made to call us, other sites are
 * served from within it: envelopes are taken, collectives and transfers driven (px_serve). Then native calls may block at any time,
 * whatever is pending elsewhere, and calls that concern one site only are the vendor's own. Open MPI has a list of
 * callbacks for its progress (opal_progress_register); MPICH ch4:ucx polls by a function of UCX's that yield_hook.c stands in
 * front of. Elsewhere libpacx polls: no native call blocks while something of another site is pending, local collectives take their
 * nonblocking forms, and constructors meet first. A blocking collective does not match a nonblocking one, so all ranks of a
 * site choose alike, once, at the start.
 *
 * Rules of what runs inside native calls:
 *   1. It runs only if it gets the lock at once (lock.h), so never on top of a half-done change of ours, nor of itself: its own native
 *      calls poll, too.
 *   2. Nothing in it waits for anything. (The poll itself naps when it has found nothing for long and cores are scarce: yield_hook.h.)
 *      With MPI_THREAD_MULTIPLE one thread of those that wait in Open MPI makes progress, and it is the one whose poll this is: a native
 *      call that waits here would wait for itself.
 *   3. An error belongs to the operation that it hit, whose completion raises it; nothing is raised here.
 *   4. What would run the user's code is put off until the next call of the application: attributes deleted with a
 *      communicator or datatype (px_serving).
 *   5. Between px_progress_open and px_progress_close only.
 * Operators run here, as they may inside any MPI call; handlers and attribute functions of the user are called without the lock,
 * so that calls they make are served, too.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "progress.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "comm_find.h"
#include "err.h"
#include "helper.h"
#include "lock.h"
#include "request.h"
#include "state.h"
#include "wait.h"
#include "vendor.h"
#include "yield_hook.h"

static _Atomic bool open;

static enum px_served serve(void)
{
	if (!atomic_load_explicit(&open, memory_order_relaxed))
		return PX_SERVED_NOTHING;
	return px_serve();
}

static int (*unhook)(int (*)(void));

static int polled(void)
{
	enum px_served served = px_poll_due() ? serve() : PX_SERVED_NOTHING;

	if (served != PX_SERVED_LOOP)
		px_poll_done(served == PX_SERVED_SOME, served == PX_SERVED_NOTHING);
	return served == PX_SERVED_SOME;
}

/* Open MPI's internal interface, the same in 4.x to 6.x. */
static bool hook_openmpi(void)
{
	int (*add)(int (*)(void)) =
		(int (*)(int (*)(void)))(uintptr_t)dlsym(RTLD_DEFAULT, "opal_progress_register");
	void (*yield)(bool) =
		(void (*)(bool))(uintptr_t)dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");

	unhook = (int (*)(int (*)(void)))(uintptr_t)dlsym(RTLD_DEFAULT, "opal_progress_unregister");
	if (!add || !unhook || add(polled) != 0)
		return false;
	if (yield)
		yield(false); /* it yields at each poll that finds nothing; px_poll_done lets short waits pass */
	return true;
}

static bool hook(bool threaded)
{
	if (PX_OVER_OPENMPI)
		return hook_openmpi();
	/* With MPI_THREAD_MULTIPLE MPICH polls with a lock of its own held, which our native calls would need. */
	if (threaded || !px_poll_seen)
		return false; /* not seen: not ch4:ucx */
	px_poll_serve = serve;
	return true;
}

static void drop(void)
{
	if (unhook)
		unhook(polled);
	unhook = NULL;
	px_poll_serve = NULL;
}

/* Does the user want native calls not to block? */
static bool poll_wanted(void)
{
	const char *env = getenv("PACX_PROGRESS");

	if (env && strcmp(env, "poll") == 0)
		return true;
	if (env && *env && strcmp(env, "hook") != 0 && !px_helper_wanted() && px.lrank == 0)
		px_log(PX_LOG_WARN, "PACX_PROGRESS=%s is not known; use hook, poll or thread (taking hook)",
			env);
	return false;
}

void px_progress_open(bool threaded)
{
	const char *env = getenv("PACX_PROGRESS");
	int mine, all = 0;

	if (px.world->nsites == 1) {
		px_hooked = true; /* nobody to serve */
		return;
	}
	mine = !poll_wanted() && hook(threaded);
	if (px_n.Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, px.map.apps) != MPI_SUCCESS || !all) {
		drop();
		if (env && strcmp(env, "hook") == 0 && px.lrank == 0)
			px_log(PX_LOG_WARN, "PACX_PROGRESS=hook: this MPI cannot serve other sites from "
					    "within its calls; taking poll");
		return;
	}
	px_hooked = true;
	atomic_store_explicit(&open, true, memory_order_release);
}

void px_progress_close(void)
{
	atomic_store_explicit(&open, false, memory_order_release);
	drop();
}
