/* alive.c: see alive.h. */
#include "alive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "err.h"

#define LAUNCHER_MS 8000 /* in which the launcher ends the site, if it ever does */

struct pxd_alive_rank {
	struct pxd_alive *a;
	uv_poll_t poll;
	int fd; /* -1 = not watched */
};

static void on_timer(uv_timer_t *t)
{
	struct pxd_alive *a = t->data;
	int rank = a->d->node.hosts->sites[a->d->node.self].base + a->gone;

	if (a->fin[a->gone]) /* it had said so, and we had not heard it yet */
		return;
	pxd_fail(&a->d->node, PXD_EXIT_INTERNAL,
		"rank %d (process %d) has ended without MPI_Finalize, and the launcher of this site lets the "
		"others wait for it",
		rank, a->d->map.pid_of[a->gone]);
}

static void unwatch(struct pxd_alive_rank *r)
{
	if (r->fd >= 0 && !uv_is_closing((uv_handle_t *)&r->poll))
		uv_close((uv_handle_t *)&r->poll, NULL);
}

static void died(struct pxd_alive *a, int rank)
{
	if (a->fin[rank] || a->gone >= 0)
		return;
	a->gone = rank;
	uv_timer_start(&a->timer, on_timer, LAUNCHER_MS, 0);
}

static void on_death(uv_poll_t *p, int status, int events)
{
	struct pxd_alive_rank *r = p->data;

	(void)status, (void)events;
	unwatch(r);
	died(r->a, (int)(r - r->a->rank));
}

int pxd_alive_open(struct pxd_alive *a, struct pxd *d, const bool *fin)
{
	*a = (struct pxd_alive){ .d = d, .fin = fin, .gone = -1 };
	a->rank = calloc((size_t)d->map.nranks + 1, sizeof *a->rank);
	if (!a->rank)
		return PX_ENOMEM;
	uv_timer_init(&d->node.loop, &a->timer);
	a->timer.data = a;
	for (int i = 0; i < d->map.nranks; i++) {
		struct pxd_alive_rank *r = &a->rank[i];

		*r = (struct pxd_alive_rank){ .a = a, .poll.data = r, .fd = -1 };
		if (d->map.pid_of[i] == 0)
			continue;
		r->fd = (int)syscall(SYS_pidfd_open, d->map.pid_of[i], 0);
		if (r->fd < 0 && errno == ESRCH)
			died(a, i);
		if (r->fd < 0) /* an old kernel, or one that does not let us */
			continue;
		if (uv_poll_init(&d->node.loop, &r->poll, r->fd) < 0) {
			close(r->fd);
			r->fd = -1;
			continue;
		}
		uv_poll_start(&r->poll, UV_READABLE, on_death);
	}
	return PX_OK;
}

void pxd_alive_close(struct pxd_alive *a)
{
	if (!a->rank)
		return;
	uv_close((uv_handle_t *)&a->timer, NULL);
	for (int i = 0; i < a->d->map.nranks; i++)
		unwatch(&a->rank[i]);
}

void pxd_alive_free(struct pxd_alive *a)
{
	for (int i = 0; a->rank && i < a->d->map.nranks; i++)
		if (a->rank[i].fd >= 0)
			close(a->rank[i].fd);
	free(a->rank);
	a->rank = NULL;
}
