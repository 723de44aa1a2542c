/* via_command.c: see via_command.h. */
#include "via_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "via.h"
#include "wait.h"

extern char **environ;

#define ENDING_MAX 64   /* commands that are given time to end */
#define TERM_MS    2000 /* between the polite signal and the other one */

/* command with %h, %p and %% replaced; NULL: out of memory. */
static char *filled(const char *command, const char *host, int port)
{
	struct px_buf b;
	char number[12];
	int rc = 0;

	px_buf_init(&b);
	snprintf(number, sizeof number, "%d", port);
	while (*command && rc == 0) {
		size_t n = strcspn(command, "%");
		const char *put = command[n] && command[n + 1] == 'h'   ? host
				  : command[n] && command[n + 1] == 'p' ? number
				  : command[n] && command[n + 1] == '%' ? "%"
									: NULL;

		if (!put && command[n])
			n++; /* a percent sign of its own */
		rc = px_buf_append(&b, command, n);
		command += n;
		if (put && rc == 0) {
			rc = px_buf_append(&b, put, strlen(put));
			command += 2;
		}
	}
	if (rc == 0)
		rc = px_buf_append(&b, "", 1);
	if (rc < 0) {
		px_buf_fini(&b);
		return NULL;
	}
	return (char *)b.mem; /* nothing was consumed, so it begins there */
}

/* Our environment without the job's key; the array is new, its strings are not. */
static char **environment(void)
{
	size_t n = 0, kept = 0;
	char **list;

	while (environ[n])
		n++;
	list = malloc((n + 1) * sizeof *list);
	if (!list)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "PACX_KEY=", 9) != 0)
			list[kept++] = environ[i];
	list[kept] = NULL;
	return list;
}

static int spawn(char *text, bool noglob, int end, pid_t *pid)
{
	char *plain[] = { "sh", "-c", text, NULL }, *careful[] = { "sh", "-f", "-c", text, NULL };
	char **env = environment();
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	if (!env)
		return ENOMEM;
	sigemptyset(&none);
	sigemptyset(&all);
	/* The signals that programs ignore or catch; what we ignore would stay ignored in the command. */
	for (int i = 1; i < 32; i++)
		if (i != SIGKILL && i != SIGSTOP)
			sigaddset(&all, i);
	rc = posix_spawn_file_actions_init(&files);
	if (rc != 0)
		goto env;
	rc = posix_spawnattr_init(&attr);
	if (rc != 0)
		goto files;
	posix_spawnattr_setflags(
		&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	rc = posix_spawn_file_actions_adddup2(&files, end, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&files, end, 1);
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 34)
	/* The native MPI's sockets are not all close-on-exec. */
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(&files, 3);
#endif
	if (rc == 0)
		rc = posix_spawn(pid, "/bin/sh", &files, &attr, noglob ? careful : plain, env);
	posix_spawnattr_destroy(&attr);
files:
	posix_spawn_file_actions_destroy(&files);
env:
	free(env);
	return rc;
}

int pxd_via_command(const char *command, const char *host, int port, int *fd, pid_t *pid)
{
	char *text;
	int ends[2], rc;

	if (!pxd_via_host_good(host) || port < 1 || port > 65535 || !*command)
		return PX_EINVAL;
	text = filled(command, host, port);
	if (!text)
		return PX_ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		free(text);
		return PX_EIO;
	}
	/* Ours only: the command expects blocking input and output. */
	rc = fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? errno
						     : spawn(text, strchr(host, '[') != NULL, ends[1], pid);
	free(text);
	close(ends[1]);
	if (rc != 0) {
		close(ends[0]);
		errno = rc;
		return rc == ENOMEM ? PX_ENOMEM : PX_EIO;
	}
	*fd = ends[0];
	return 0;
}

/* Commands whose connection is closed, and since when. */
static struct {
	pid_t pid;
	uint64_t since;
} ending[ENDING_MAX];

static void forget(int i, pid_t pid)
{
	if (i >= 0)
		ending[i].pid = 0;
	kill(-pid, SIGTERM); /* what it has left behind in its group */
}

bool pxd_via_reap(pid_t pid)
{
	uint64_t now = px_now_ns(), age;
	int at = -1, room = -1;
	pid_t rc;

	for (int i = 0; i < ENDING_MAX; i++) {
		if (ending[i].pid == pid)
			at = i;
		else if (ending[i].pid == 0)
			room = i;
	}
	do
		rc = waitpid(pid, NULL, WNOHANG);
	while (rc < 0 && errno == EINTR);
	if (rc != 0) { /* gone, or never ours */
		if (rc > 0)
			forget(at, pid);
		else if (at >= 0)
			ending[at].pid = 0;
		return true;
	}
	if (at < 0 && room >= 0) {
		at = room;
		ending[at].pid = pid;
		ending[at].since = now;
	}
	age = at < 0 ? UINT64_MAX : (now - ending[at].since) / 1000000;
	if (age >= PXD_VIA_END_MS + TERM_MS)
		kill(-pid, SIGKILL);
	else if (age >= PXD_VIA_END_MS)
		kill(-pid, SIGTERM);
	return false;
}

void pxd_via_kill(pid_t pid)
{
	kill(-pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	for (int i = 0; i < ENDING_MAX; i++)
		if (ending[i].pid == pid)
			ending[i].pid = 0;
}
