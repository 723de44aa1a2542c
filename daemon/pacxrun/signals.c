/* signals.c: see signals.h. */
#include "signals.h"

#include <signal.h>
#include <unistd.h>

static void end_came(uv_signal_t *u, int signum)
{
	struct pxd_signals *s = u->data;

	s->end(s->owner, signum);
}

static void pass_came(uv_signal_t *u, int signum)
{
	struct pxd_signals *s = u->data;

	s->pass(s->owner, signum);
}

/* Ctrl-Z. The sites are in sessions of their own, so it is we who stop them, then ourselves, as the signal would have
 * done; and go on with them. */
static void stop_came(uv_signal_t *u, int signum)
{
	struct pxd_signals *s = u->data;
	struct sigaction stop = { .sa_handler = SIG_DFL }, ours;
	sigset_t set, old;

	s->pass(s->owner, signum);
	sigemptyset(&set);
	sigaddset(&set, signum);
	sigaction(signum, &stop, &ours);
	sigprocmask(SIG_UNBLOCK, &set, &old);
	kill(getpid(), signum);
	sigprocmask(SIG_SETMASK, &old, NULL);
	sigaction(signum, &ours, NULL);
	s->pass(s->owner, SIGCONT);
}

void pxd_signals_start(struct pxd_signals *s, uv_loop_t *loop)
{
	static const struct {
		int signum;
		uv_signal_cb came;
	} caught[PXD_SIGNALS] = { { SIGINT, end_came }, { SIGTERM, end_came }, { SIGHUP, end_came },
		{ SIGQUIT, end_came }, { SIGUSR1, pass_came }, { SIGUSR2, pass_came }, { SIGXCPU, pass_came },
		{ SIGCONT, pass_came }, { SIGTSTP, stop_came } };

	for (int i = 0; i < PXD_SIGNALS; i++) {
		struct sigaction old;

		uv_signal_init(loop, &s->signals[i]);
		s->signals[i].data = s;
		/* nohup: what is ignored stays ignored. */
		if (sigaction(caught[i].signum, NULL, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		uv_signal_start(&s->signals[i], caught[i].came, caught[i].signum);
		uv_unref((uv_handle_t *)&s->signals[i]);
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTIN, SIG_IGN); /* see feeder.c */
}
