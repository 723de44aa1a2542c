/* output.h: pacxrun's own standard output and error, written without ever blocking the loop.
 *
 * One pxd_output per descriptor, on the loop's thread. Bytes are queued and written by a worker thread
 * (the descriptor may be a file, a terminal or a pipe that others share, so O_NONBLOCK is not ours to
 * set). Whoever puts bytes stops reading his source while pxd_output_full says so, and goes on when
 * `ready` is called.
 */
#ifndef PXD_OUTPUT_H
#define PXD_OUTPUT_H

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"

#define PXD_OUTPUT_HIGH (256 * 1024) /* queued bytes above which sources shall wait */

struct pxd_output {
	uv_loop_t *loop;
	uv_work_t work;
	int fd;
	int error; /* errno of the write that failed, 0 = none; then everything is dropped */
	bool told; /* the owner has said so */
	bool busy; /* the worker has `writing` */
	struct px_buf queue, writing;
	void (*ready)(struct pxd_output *o); /* after a write: room, or an error, or drained */
	void *owner;
};

void pxd_output_init(
	struct pxd_output *o, uv_loop_t *loop, int fd, void (*ready)(struct pxd_output *), void *owner);
void pxd_output_fini(struct pxd_output *o); /* must not be busy */
int pxd_output_put(struct pxd_output *o, const void *data, size_t n);
static inline bool pxd_output_full(const struct pxd_output *o)
{
	return px_buf_len(&o->queue) > PXD_OUTPUT_HIGH;
}
static inline bool pxd_output_drained(const struct pxd_output *o)
{
	return !o->busy && px_buf_len(&o->queue) == 0;
}

#endif
