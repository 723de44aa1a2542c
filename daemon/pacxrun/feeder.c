/* feeder.c: see feeder.h. */
#include "feeder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* All of it. false: nobody reads any more. */
static bool put(int fd, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, data, n);

		if (w < 0 && errno == EAGAIN) {
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			poll(&p, 1, -1);
		} else if (w < 0 && errno != EINTR) {
			return false;
		} else if (w > 0) {
			data += w;
			n -= (size_t)w;
		}
	}
	return true;
}

void pxd_feeder_run(void *arg)
{
	struct pxd_feeder *f = arg;
	char buf[4096];

	if (f->fifo)
		f->to = open(f->fifo, O_WRONLY | O_CLOEXEC);
	if (f->to >= 0 && f->first && !(put(f->to, f->first, strlen(f->first)) && put(f->to, "\n", 1)))
		f->from = -1;
	while (f->to >= 0 && f->from >= 0) {
		ssize_t n;

		/* In the background a terminal is not ours to read. */
		if (isatty(f->from) && tcgetpgrp(f->from) != getpgrp()) {
			usleep(200000);
			continue;
		}
		n = read(f->from, buf, sizeof buf);
		if (n < 0 && (errno == EINTR || (errno == EIO && isatty(f->from))))
			continue;
		if (n <= 0)
			break;
		if (!put(f->to, buf, (size_t)n))
			break;
	}
	if (f->to >= 0)
		close(f->to);
	free(f);
}
