/* guard.c: run one command and see that nothing of it survives.
 *
 *     pacxrun --guard [-p PID] [-s SITE] [--] COMMAND [ARGUMENT ...]
 *
 * pacxrun starts every site below one; {guard} puts one behind ssh. It is the subreaper of everything
 * the command starts, so orphans come to it wherever their parents die. The command ends, or somebody
 * ends the guard (SIGTERM, SIGINT, SIGHUP), or its parent dies (-p: the parent must be PID), or
 * whoever reads its output goes away: then what is left gets SIGTERM, and after GRACE_S seconds
 * SIGKILL. SIGUSR1, SIGUSR2 and SIGXCPU go to the launcher; SIGTSTP stops and SIGCONT continues all that is below. Exit
 * status: the command's. -s: behind a remote shell; pacxrun is told our process id, to signal us (far_signal.h).
 */
#include "guard.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "descend.h"
#include "record.h"

#define GRACE_S     5   /* a launcher that was told to end needs a moment to end its ranks */
#define STRAGGLER_S 1   /* what outlives its launcher gets less */
#define LOOK_MS     200 /* how often the readers of our output are looked at */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* reader_gone: nobody will ever read what we or the command write to fd. */
static bool reader_gone(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

/* key_forget: the command has the job's key; we stay as long as it runs, and need it no more. */
static void key_forget(void)
{
	char *key = getenv("PACX_KEY");

	if (key)
		memset(key, 0, strlen(key)); /* also from what /proc shows */
	unsetenv("PACX_KEY");
}

/* reap: collect what has ended; true while children are left. The status of `command` goes to *status. */
static bool reap(pid_t command, int *status, bool *ended)
{
	for (;;) {
		int s;
		pid_t pid = waitpid(-1, &s, WNOHANG);

		if (pid < 0)
			return errno != ECHILD;
		if (pid == 0)
			return true;
		if (pid == command) {
			*status = s;
			*ended = true;
		}
	}
}

/* passed_on: a signal that does not end the command. We are not stopped with it: who would end it when pacxrun dies? */
static bool passed_on(int sig)
{
	switch (sig) {
	case SIGCHLD:
		return true;
	case SIGUSR1:
	case SIGUSR2:
	case SIGXCPU:
		if (pxd_descend_pass(getpid(), sig) == 0)
			fprintf(stderr, "pacxrun --guard: nothing that runs here takes the signal %s\n",
				strsignal(sig));
		return true;
	case SIGTSTP:
		pxd_descend_signal(getpid(), SIGSTOP, PXD_DESCEND_ALL);
		return true;
	case SIGCONT:
		pxd_descend_signal(getpid(), SIGCONT, PXD_DESCEND_ALL);
		return true;
	default:
		return false;
	}
}

/* pid_say: where the signals of pacxrun are to go. */
static void pid_say(const char *site)
{
	char text[24];
	int n = snprintf(text, sizeof text, "%ld", (long)getpid());

	pxd_record_send(STDERR_FILENO, site, "guard", "pid", text, (size_t)n);
}

/* finish: end the same way as the command did, so that our parent sees it unchanged. */
static int finish(int status)
{
	if (WIFSIGNALED(status)) {
		struct rlimit none = { 0, 0 };
		sigset_t all;

		setrlimit(RLIMIT_CORE, &none); /* the core, if any, is the command's */
		signal(WTERMSIG(status), SIG_DFL);
		sigemptyset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		raise(WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}

/* Caught signals wait for sigtimedwait; with a parent, its death is one of them. false: it is dead. */
static bool signals_take(pid_t parent, sigset_t *set)
{
	static const int caught[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD, SIGUSR1, SIGUSR2, SIGXCPU,
		SIGTSTP, SIGCONT };

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (parent) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		closefrom(3); /* what pacxrun inherited from its own parent is not for the site */
	}
	sigemptyset(set);
	for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++) {
		signal(caught[i], SIG_DFL);
		sigaddset(set, caught[i]);
	}
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, set, NULL);
	return !parent || getppid() == parent; /* it died before we could say that we want to know */
}

int pxd_guard_main(int argc, char **argv)
{
	const struct timespec look = { 0, LOOK_MS * 1000000L };
	bool ended = false, told = false, swept = false;
	sigset_t set, old;
	double deadline = 0;
	const char *site = NULL;
	pid_t parent = 0, command;
	int opt, status = 0;

	while ((opt = getopt(argc, argv, "+p:s:")) != -1) {
		if (opt == 'p')
			parent = (pid_t)atol(optarg);
		else if (opt == 's')
			site = optarg;
		else
			return 2;
	}
	if (optind == argc) {
		fprintf(stderr, "usage: pacxrun --guard [-p PID] [-s SITE] [--] COMMAND [ARGUMENT ...]\n");
		return 2;
	}
	if (!signals_take(parent, &set))
		return 143;
	if (getpgrp() != getpid()) /* below ssh or a shell: a group of our own to signal */
		setpgid(0, 0);
	sigemptyset(&old);
	if (site)
		pid_say(site);
	command = pxd_child_start("pacxrun --guard", argv + optind, &old, -1, -1);
	if (command < 0) {
		fprintf(stderr, "pacxrun --guard: cannot fork: %s\n", strerror(errno));
		return 126;
	}
	key_forget();
	while (reap(command, &status, &ended)) {
		int sig = sigtimedwait(&set, NULL, &look);
		bool end = sig > 0 ? !passed_on(sig) : reader_gone(1) || reader_gone(2);

		if (end && !told) {
			/* Once only: a second signal makes launchers leave without ending their ranks. */
			told = true;
			deadline = now() + GRACE_S;
			pxd_descend_signal(getpid(), SIGTERM, PXD_DESCEND_GROUP);
			pxd_descend_signal(
				getpid(), SIGCONT, PXD_DESCEND_ALL); /* what is stopped shall hear it */
		}
		reap(command, &status, &ended);
		if (ended && !swept) {
			swept = true;
			if (!told) {
				told = true;
				pxd_descend_signal(getpid(), SIGTERM, PXD_DESCEND_ALL);
				deadline = now() + STRAGGLER_S;
			}
		}
		if (told && now() >= deadline)
			pxd_descend_signal(getpid(), SIGKILL, PXD_DESCEND_ALL);
	}
	return finish(status);
}
