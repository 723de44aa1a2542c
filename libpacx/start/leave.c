/* leave.c: see leave.h.
 *
 * Forked and vforked children are not the rank: their pid differs. Everything here may run in a vforked child, so nothing is
 * allocated. An exec that will fail must not end the job, so the file is looked for first.
 */
#include "leave.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"
#include "err.h"
#include "state.h"

#define STUCK_S 15 /* for telling the daemons, from wherever the program was */

/* The process and thread that initialised MPI, and the status it exits with. */
static pid_t process, started_by;
static int exit_status = -1;

static void exits(int status, void *arg)
{
	(void)arg;
	exit_status = status;
}

void px_leave_watch(void)
{
	process = getpid();
	started_by = gettid();
	on_exit(exits, NULL);
}

/* leaving: does not return when this is a rank that has not called MPI_Finalize. */
static void leaving(const char *how)
{
	sigset_t set;
	char why[80];

	if (!px.on || getpid() != process)
		return;
	/* It may hold our locks, or stand in a signal handler: death by a signal is noticed, too. */
	signal(SIGALRM, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	alarm(STUCK_S);
	snprintf(why, sizeof why, "rank %d %s without MPI_Finalize", px.grank, how);
	px_log(PX_LOG_ERROR, "%s; ending the job", why);
	px_channel_abort(1, why);
}

/* left: as a destructor it comes after the program's own exit handlers, which may call MPI_Finalize, and before the vendor's
 * library goes; other threads do not mean us. */
__attribute__((destructor)) static void left(void)
{
	if (exit_status == 0 && gettid() == started_by)
		leaving("ended");
}

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

__attribute__((noreturn)) static void out_now(int status)
{
	for (;;)
		syscall(SYS_exit_group, status);
}

void _exit(int status)
{
	if (status == 0)
		leaving("ended by _exit");
	out_now(status);
}

void _Exit(int status)
{
	_exit(status);
}

void quick_exit(int status)
{
	void (*real)(int) = (void (*)(int))(uintptr_t)next("quick_exit");

	if (status == 0)
		leaving("ended by quick_exit");
	if (real)
		real(status);
	out_now(status);
}

/* can_run: exec would find this file. */
static bool can_run(const char *file, bool search)
{
	const char *path = getenv("PATH");
	char full[PATH_MAX];

	if (!search || strchr(file, '/'))
		return access(file, X_OK) == 0;
	for (path = path ? path : "/bin:/usr/bin"; *path; path += strspn(path, ":")) {
		size_t n = strcspn(path, ":");

		snprintf(full, sizeof full, "%.*s/%s", (int)n, path, file);
		if (access(full, X_OK) == 0)
			return true;
		path += n;
	}
	return false;
}

static void replaced(const char *file, bool search)
{
	char how[48];
	const char *base = strrchr(file, '/');

	if (!px.on || getpid() != process || !can_run(file, search))
		return;
	snprintf(how, sizeof how, "became '%.30s' by exec", base ? base + 1 : file);
	leaving(how);
}

typedef int run(const char *, char *const[], char *const[]);

int execve(const char *path, char *const argv[], char *const envp[])
{
	run *real = (run *)(uintptr_t)next("execve");

	replaced(path, false);
	return real ? real(path, argv, envp) : (int)syscall(SYS_execve, path, argv, envp);
}

int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
	run *real = (run *)(uintptr_t)next("execvpe");

	replaced(file, true);
	return real ? real(file, argv, envp) : (errno = ENOSYS, -1);
}

int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

int fexecve(int fd, char *const argv[], char *const envp[])
{
	int (*real)(int, char *const[], char *const[]) =
		(int (*)(int, char *const[], char *const[]))(uintptr_t)next("fexecve");
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	replaced(path, false);
	return real ? real(fd, argv, envp) : (errno = ENOSYS, -1);
}

/* words: how many arguments there are behind the first one. */
static size_t words(const char *first, va_list ap)
{
	size_t n = 0;

	while (first && va_arg(ap, char *))
		n++;
	return n;
}

/* fill: first, the n behind it and the NULL that ends them. */
static void fill(char **argv, const char *first, size_t n, va_list ap)
{
	*argv++ = (char *)(uintptr_t)first;
	for (size_t i = 0; first && i <= n; i++)
		*argv++ = va_arg(ap, char *);
}

int execl(const char *path, const char *arg, ...)
{
	char **argv;
	va_list ap;
	size_t n;

	va_start(ap, arg);
	n = words(arg, ap);
	va_end(ap);
	argv = alloca((n + 2) * sizeof *argv);
	va_start(ap, arg);
	fill(argv, arg, n, ap);
	va_end(ap);
	return execve(path, argv, environ);
}

int execlp(const char *file, const char *arg, ...)
{
	char **argv;
	va_list ap;
	size_t n;

	va_start(ap, arg);
	n = words(arg, ap);
	va_end(ap);
	argv = alloca((n + 2) * sizeof *argv);
	va_start(ap, arg);
	fill(argv, arg, n, ap);
	va_end(ap);
	return execvpe(file, argv, environ);
}

int execle(const char *path, const char *arg, ...)
{
	char **argv, *const *env;
	va_list ap;
	size_t n;

	va_start(ap, arg);
	n = words(arg, ap);
	va_end(ap);
	argv = alloca((n + 2) * sizeof *argv);
	va_start(ap, arg);
	fill(argv, arg, n, ap);
	env = va_arg(ap, char *const *);
	va_end(ap);
	return execve(path, argv, env);
}
