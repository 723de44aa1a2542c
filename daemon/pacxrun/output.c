/* output.c: see output.h. */
#include "output.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

static void output_next(struct pxd_output *o);

/* On the worker's thread: owns o->writing and o->fd until output_written. */
static void output_write(uv_work_t *work)
{
	struct pxd_output *o = work->data;

	while (px_buf_len(&o->writing) > 0) {
		ssize_t n = write(o->fd, px_buf_data(&o->writing), px_buf_len(&o->writing));
		struct pollfd p = { .fd = o->fd, .events = POLLOUT };

		if (n >= 0) {
			px_buf_consume(&o->writing, (size_t)n);
		} else if (errno == EAGAIN) { /* somebody else made it nonblocking */
			poll(&p, 1, -1);
		} else if (errno != EINTR) {
			o->error = errno;
			return;
		}
	}
}

static void output_written(uv_work_t *work, int status)
{
	struct pxd_output *o = work->data;

	(void)status;
	o->busy = false;
	if (o->error) {
		px_buf_consume(&o->writing, px_buf_len(&o->writing));
		px_buf_consume(&o->queue, px_buf_len(&o->queue));
	}
	output_next(o);
	o->ready(o);
}

static void output_next(struct pxd_output *o)
{
	struct px_buf empty = o->writing;

	if (o->busy || px_buf_len(&o->queue) == 0)
		return;
	o->writing = o->queue;
	o->queue = empty;
	o->busy = true;
	if (uv_queue_work(o->loop, &o->work, output_write, output_written) < 0)
		o->busy = false;
}

void pxd_output_init(
	struct pxd_output *o, uv_loop_t *loop, int fd, void (*ready)(struct pxd_output *), void *owner)
{
	*o = (struct pxd_output){ .loop = loop, .fd = fd, .ready = ready, .owner = owner };
	o->work.data = o;
}

void pxd_output_fini(struct pxd_output *o)
{
	px_buf_fini(&o->queue);
	px_buf_fini(&o->writing);
}

int pxd_output_put(struct pxd_output *o, const void *data, size_t n)
{
	int rc;

	if (o->error || n == 0)
		return 0;
	rc = px_buf_append(&o->queue, data, n);
	if (rc < 0)
		return rc;
	output_next(o);
	return 0;
}
