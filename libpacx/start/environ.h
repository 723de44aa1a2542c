/* environ.h: what libpacx takes from the environment, and takes out of it.
 *
 * Owns the PACX_ variables of a rank: read once, before anything else, into px_environ; removed when the rank has started,
 * because its children are ordinary programs. The key of the job goes at once wherever it is not needed to become
 * a daemon: a program never sees it. The waiting policy and the log level are read by wait.c and err.c, before px_environ_clean.
 */
#ifndef PX_ENVIRON_H
#define PX_ENVIRON_H

#include <stdbool.h>

struct px_environ {
	const char *site; /* PACX_SITE; NULL: not part of a PACX job */
	bool guest;  /* a rank has started this process as a guest (spawn.h): what follows does not hold */
	bool single; /* the daemons are started as the program, too */
	bool first;  /* their native ranks are the first, not the last */
	int daemons;
	int rank, size; /* what the launcher says before MPI_Init, -1 if nothing */
	bool stats;
	const char *accuracy;   /* PACX_ACCURACY, or NULL */
	const char *stdin_path; /* a FIFO in place of standard input, or NULL */
};

extern struct px_environ px_environ;

/* px_environ_read: from the library's constructor, or from the first call if that comes before it. */
void px_environ_read(void);
/* px_environ_is_daemon: is this native rank a daemon's? Only if the launcher tells the rank. */
bool px_environ_is_daemon(void);
/* px_environ_clean: take everything of PACX out of the environment; LD_PRELOAD keeps what is not libpacx. */
void px_environ_clean(void);

#endif
