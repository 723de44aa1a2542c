/* pump.c: see pump.h. */
#include "pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feeder.h"
#include "record.h"
#include "write_all.h"

/* So many bytes have been passed on; PXD_FEED_SHUT: and no more will be wanted. */
static bool say(const char *site, uint64_t n)
{
	char text[24];
	int len = snprintf(text, sizeof text, "%llu", (unsigned long long)n);

	return pxd_record_send(STDERR_FILENO, site, "rank", "stdin", text, (size_t)len) == 0;
}

/* drain: the launcher must not find its pipe broken by what is under way, and nothing of it may wait for us. */
static void drain(const char *site)
{
	int nothing = open("/dev/null", O_RDWR);
	char buf[4096];
	ssize_t n;

	say(site, PXD_FEED_SHUT);
	for (int fd = 1; fd <= 2; fd++)
		if (nothing < 0 || dup2(nothing, fd) < 0)
			close(fd);
	while ((n = read(0, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR))
		;
}

static void pump(const char *site, int to)
{
	static char buf[16384];
	struct pollfd p[2] = { { .fd = 0, .events = POLLIN }, { .fd = to } };
	uint64_t sum = 0;

	for (;;) {
		ssize_t n;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
		if (p[1].revents) { /* the rank reads no more */
			drain(site);
			return;
		}
		if (!p[0].revents)
			continue;
		n = read(0, buf, sizeof buf);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		if (!pxd_write_all(to, buf, (size_t)n)) {
			drain(site);
			return;
		}
		sum += (uint64_t)n;
		if (!say(site, sum))
			return;
	}
}

int pxd_pump_start(const char *site)
{
	int ends[2], e;
	pid_t pid;

	if (pipe(ends) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		if (fork() != 0) /* the rank shall find no child that it has not made */
			_exit(0);
		signal(SIGPIPE, SIG_IGN);
		/* The launcher waits for the end of what else we have from it. */
		dup2(ends[1], 1);
		close_range(3, ~0u, 0);
		pump(site, 1);
		_exit(0);
	}
	e = errno;
	close(ends[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (pid > 0 && dup2(ends[0], 0) == 0)
		e = 0;
	close(ends[0]);
	errno = e;
	return e ? -1 : 0;
}
