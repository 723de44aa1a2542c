/* helper.c: see helper.h.
 *
 * Design. The thread does what any MPI call of the program would do for others, if it gets the lock at once (px_serve_apart), and naps in between: one that finds
 * something comes again soon, an idle one after px_wait's longest nap. So a message that the program could serve is served within that
 * time if the processor is free. It does not take steps of collectives: those may call operators of the program, which may not
 * expect to run beside it. It takes no signals.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "helper.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "request.h"
#include "state.h"
#include "wait.h"

static pthread_t thread;
static pid_t process; /* whose thread it is: not a child's */
static _Atomic bool stop;

bool px_helper_wanted(void)
{
	static int wanted = -1; /* the program's environment loses our variables (px_environ_clean) */
	const char *env = getenv("PACX_PROGRESS");

	if (wanted < 0)
		wanted = env && strcmp(env, "thread") == 0;
	return wanted;
}

static void *help(void *arg)
{
	struct px_wait w;

	px_wait_init(&w);
	while (!atomic_load_explicit(&stop, memory_order_acquire)) {
		if (px_serve_apart() == PX_SERVED_SOME)
			px_wait_reset(&w);
		else
			px_wait_idle(&w);
	}
	return arg;
}

void px_helper_open(bool threaded)
{
	sigset_t all, before;
	int rc;

	if (!px_helper_wanted() || px.world->nsites == 1)
		return;
	if (!threaded) {
		if (px.lrank == 0)
			px_log(PX_LOG_WARN,
				"PACX_PROGRESS=thread needs MPI_THREAD_MULTIPLE, which this MPI does not "
				"give: other sites are served only while the program is in an MPI call");
		return;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&thread, NULL, help, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		px_log(PX_LOG_WARN, "PACX_PROGRESS=thread: rank %d: no thread: %s", px.grank, strerror(rc));
	else
		process = getpid();
}

void px_helper_close(void)
{
	if (process != getpid())
		return;
	process = 0;
	atomic_store_explicit(&stop, true, memory_order_release);
	pthread_join(thread, NULL);
}

/* A program that exits without MPI_Finalize: before the vendor's library goes. */
__attribute__((destructor)) static void gone(void)
{
	px_helper_close();
}
