/* write_all.c: see write_all.h. */
#include "write_all.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

bool pxd_write_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n > 0) {
		ssize_t w = write(fd, p, n);
		struct pollfd f = { .fd = fd, .events = POLLOUT };

		if (w > 0) {
			p += w;
			n -= (size_t)w;
		} else if (w < 0 && errno == EAGAIN) {
			poll(&f, 1, -1);
		} else if (w < 0 && errno != EINTR) {
			return false;
		}
	}
	return true;
}
