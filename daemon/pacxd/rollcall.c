/* rollcall.c: see rollcall.h.
 *
 * Design: while the main thread sits in the native Init, a second thread counts the children of our parent, the launcher's process
 * on this node. When they are fewer than the ranks that the launcher has put here, and stay so, a rank has ended, and Init would
 * never return. More children (an ssh of the launcher's) only make that we do not notice; the start deadline still does.
 */
#include "rollcall.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "descend.h"
#include "err.h"
#include "vendor.h"
#include "wait.h"

#define LOOK_MS 250
#define GONE_S  1 /* that ranks are missing which have been there */
#define SLOW_S  4 /* that ranks are missing which we have not seen; the launcher may still be starting them */
#define HERE_NS (8 * UINT64_C(1000000000)) /* since the last rank came through libpacx */

#define RANKS_ON_NODE (PX_OVER_OPENMPI ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "MPI_LOCALNRANKS")
#define RANK          (PX_OVER_OPENMPI ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK")
#define SIZE          (PX_OVER_OPENMPI ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE")

static char late_text[256]; /* what on_alarm says; made before it can come */
static char who[80];
static bool second; /* of a pair of daemons */
static atomic_bool over;
static int expected; /* ranks on this node */

static void on_alarm(int sig)
{
	(void)sig;
	if (write(STDERR_FILENO, late_text, strlen(late_text)) < 0)
		_exit(PXD_EXIT_START);
	_exit(PXD_EXIT_START);
}

/* gone: the first of a pair speaks for both, and the launcher ends the second while that waits; it drops what has just been written.
 * Where the first came too late to see the ranks, the second is first to know, and speaks: nobody ends without a word. */
static void gone(int here)
{
	const struct timespec heard = { 0, 200000000 };
	char text[512];
	int left = expected - here, n;

	n = snprintf(text, sizeof text,
		"%s: %d of the %d processes that the launcher started here %s ended without MPI_Init, so "
		"there is no "
		"job (does the program call it with these arguments?)\n",
		who, left, expected, left == 1 ? "has" : "have");
	if (second)
		sleep(2);
	if (write(STDERR_FILENO, text, (size_t)n) == n)
		nanosleep(&heard, NULL);
	_exit(PXD_EXIT_START);
}

static void *watch(void *arg)
{
	const struct timespec look = { 0, LOOK_MS * 1000000L };
	int before = -1, still = 0;
	bool full = false;

	(void)arg;
	while (!atomic_load(&over)) {
		int here = pxd_descend_children(getppid());

		full |= here >= expected;
		still = here == before ? still + 1 : 0;
		before = here;
		if (here > 0 && here < expected && still * LOOK_MS >= (full ? GONE_S : SLOW_S) * 1000 &&
			!atomic_load(&over))
			gone(here);
		nanosleep(&look, NULL);
	}
	return NULL;
}

static void watch_start(const struct pxd *d)
{
	const char *ranks = getenv(RANKS_ON_NODE), *rank = getenv(RANK), *size = getenv(SIZE);
	int place = size ? px_attach_place(atoi(size)) : -1;
	sigset_t all, old;
	pthread_t thread;

	expected = ranks ? atoi(ranks) : 0;
	if (expected < 2)
		return;
	second = rank && place >= 0 && (atoi(rank) - place) % 2 != 0;
	snprintf(who, sizeof who, "pacxd[%.64s]", pxd_site_name(&d->node, d->node.self));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, watch, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void pxd_roll_start(const struct pxd *d)
{
	const struct sigaction late = { .sa_handler = on_alarm };

	snprintf(late_text, sizeof late_text,
		"pacxd[%.64s]: not all ranks of this site have called MPI_Init within %ld s; is the program "
		"an MPI program, "
		"of the site's MPI (" PX_VENDOR ")?\n",
		pxd_site_name(&d->node, d->node.self), d->node.hosts->deadline_start_ms / 1000);
	sigaction(SIGALRM, &late, NULL);
	alarm((unsigned)(d->node.hosts->deadline_start_ms / 1000 + 1));
	watch_start(d);
}

/* missing_list: "0, 1, 5" of the ranks that are not here, as the site counts them. */
static void missing_list(const struct pxd *d, const bool *here, int size, char *text, size_t cap)
{
	int shift = px_attach_place(size) == 0 ? 2 * d->node.hosts->sites[d->node.self].ngateways : 0;
	size_t n = 0;

	for (int i = 0; i < size; i++) {
		if (here[i])
			continue;
		if (n + 24 > cap) {
			snprintf(text + n, cap - n, ", ...");
			return;
		}
		n += (size_t)snprintf(text + n, cap - n, "%s%d", n ? ", " : "", i - shift);
	}
}

int pxd_roll_here(struct pxd *d)
{
	int size = 1, self = 0, missing, rc = PX_OK;
	uint64_t last = px_now_ns();
	struct px_wait w;
	char list[200];
	bool *here;

	px_n.Comm_size(MPI_COMM_WORLD, &size);
	px_n.Comm_rank(MPI_COMM_WORLD, &self);
	here = calloc((size_t)size, sizeof *here);
	if (!here) {
		pxd_fail(&d->node, PXD_EXIT_INTERNAL, "out of memory");
		return PX_ENOMEM;
	}
	here[self] = true;
	px_wait_init(&w);
	for (missing = size - 1; missing > 0;) {
		int from = px_attach_heard();

		if (from >= 0) {
			missing -= !here[from];
			here[from] = true;
			last = px_now_ns();
		} else if (px_now_ns() - last > HERE_NS) {
			break;
		} else {
			px_wait_idle(&w);
		}
	}
	if (missing > 0) {
		missing_list(d, here, size, list, sizeof list);
		pxd_fail(&d->node, PXD_EXIT_START,
			"all ranks of this site have called MPI_Init, but %d of them (%s) not through PACX: "
			"the preload "
			"does not reach the program (a container, env -i, setuid, a static program, MPI "
			"taken by dlsym), "
			"or the start command has no {app}",
			missing, list);
		rc = PX_ETIMEOUT;
	}
	free(here);
	return rc;
}

void pxd_roll_init_over(void)
{
	atomic_store(&over, true);
}

void pxd_roll_over(void)
{
	alarm(0);
}
