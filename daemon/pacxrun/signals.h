/* signals.h: the signals that pacxrun gets: which end the job, which are passed on to the sites, and Ctrl-Z. */
#ifndef PXD_SIGNALS_H
#define PXD_SIGNALS_H

#include <uv.h>

#define PXD_SIGNALS 9

struct pxd_signals {
	uv_signal_t signals[PXD_SIGNALS];
	/* Set by the owner before. */
	void (*end)(void *owner, int signum);  /* the user wants the job to end */
	void (*pass)(void *owner, int signum); /* for the launchers of all sites */
	void *owner;
};

/* pxd_signals_start: catch them from now on, but those that were ignored when we were started. Must live as long as the loop runs. */
void pxd_signals_start(struct pxd_signals *s, uv_loop_t *loop);

#endif
