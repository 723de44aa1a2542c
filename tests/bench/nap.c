/* nap.c: preloaded into flat jobs that have more ranks than the machine has cores: a rank that waits for long sleeps a little instead of
 * keeping the core from those who have something to do. Without it the comparison would be one with the scheduler.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>

#define PATIENCE 200   /* empty looks before the first nap */
#define NAP      50000 /* ns */

static _Thread_local int empty;

static void nothing_seen(void)
{
	struct timespec t = { 0, NAP };

	if (++empty > PATIENCE)
		nanosleep(&t, NULL);
}

int sched_yield(void)
{
	nothing_seen();
	return 0;
}

/* What the MPIs call to look without waiting. */
#define LOOK(call)                                                                                           \
	int n = (call), keep = errno;                                                                        \
	if (n > 0)                                                                                           \
		empty = 0;                                                                                   \
	else if (timeout == 0)                                                                               \
		nothing_seen();                                                                              \
	errno = keep;                                                                                        \
	return n

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	static int (*next)(int, struct epoll_event *, int, int);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "epoll_wait");
	LOOK(next(fd, events, max, timeout));
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	static int (*next)(struct pollfd *, nfds_t, int);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "poll");
	LOOK(next(fds, count, timeout));
}
