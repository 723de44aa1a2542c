/* feeder.c: see feeder.h. */
#include "feeder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

void pxd_feeder_run(void *arg)
{
	struct pxd_feeder *f = arg;
	char buf[4096];

	if (f->fifo)
		f->to = open(f->fifo, O_WRONLY | O_CLOEXEC);
	while (f->to >= 0) {
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
		for (ssize_t done = 0; done < n;) {
			ssize_t w = write(f->to, buf + done, (size_t)(n - done));

			if (w < 0 && errno == EAGAIN) {
				struct pollfd p = { .fd = f->to, .events = POLLOUT };

				poll(&p, 1, -1);
			} else if (w < 0 && errno != EINTR) {
				close(f->to);
				return;
			} else if (w > 0) {
				done += w;
			}
		}
	}
	if (f->to >= 0)
		close(f->to);
}
