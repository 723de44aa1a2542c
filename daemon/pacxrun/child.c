/* child.c: see child.h. */
#include "child.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

pid_t pxd_child_start(const char *who, char **argv, const sigset_t *mask, int out, int err)
{
	pid_t self = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != self)
		_exit(137);
	if (out >= 0)
		dup2(out, 1);
	if (err >= 0)
		dup2(err, 2);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	fprintf(stderr, "%s: cannot run %s: %s\n", who, argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}
