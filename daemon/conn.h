/* conn.h: one TCP connection on libuv: a write queue that leaves in few system calls, and reading into
 * memory that the owner names.
 *
 * Used by handshakes (conn_dial.c, listen.c) and links (link.c, role_in.c). Lifetime:
 *  1. pxd_conn_new makes it; pxd_conn_close ends it, once, from anywhere; it frees itself when libuv lets
 *     go of it.
 *  2. After pxd_conn_close no function of ops is called, and the owner must not touch the connection.
 *  3. ops->lost is called at most once, for the end of the stream or any error; the owner then closes.
 *  4. Queued bytes are sent by pxd_conn_flush, not before. Segments go back to their pool when written or
 *     closed.
 * It knows no frames and no MPI.
 */
#ifndef PXD_CONN_H
#define PXD_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "link_seg.h"
#include "list.h"

struct pxd_conn;

struct pxd_conn_ops {
	void (*room)(struct pxd_conn *c, uv_buf_t *buf); /* where the next bytes go; len 0 is not allowed */
	void (*got)(struct pxd_conn *c, uint8_t *base, size_t n);
	void (*lost)(struct pxd_conn *c, int uverr); /* UV_EOF or another code of libuv */
};

struct pxd_conn {
	uv_tcp_t tcp;
	const struct pxd_conn_ops *ops;
	void *owner;
	struct px_list queue; /* of blocks, conn.c */
	size_t queued;        /* bytes in it */
	size_t peak;          /* largest value of queued */
	unsigned writing;     /* blocks at its head that libuv is writing */
	uv_connect_t connect; /* for who dials */
	uv_write_t write;
	uv_shutdown_t shutdown;
	bool ended, shutting; /* shut down when the queue is empty; has begun to */
	bool half;            /* has been shut down */
	bool closing, dead;
	uint64_t writes; /* statistics: system calls that wrote */
	char peer[80];   /* "127.0.0.1:31000" */
};

/* pxd_conn_new: NULL: out of memory. The socket does not exist yet: accept into it or connect it. */
struct pxd_conn *pxd_conn_new(uv_loop_t *loop, const struct pxd_conn_ops *ops, void *owner);
/* pxd_conn_begin: it is connected: no delay, name of the peer, start reading. 0 or a code of libuv. */
int pxd_conn_begin(struct pxd_conn *c);
void pxd_conn_close(struct pxd_conn *c);

/* pxd_conn_put: queue a copy of head and body (body may be empty). 0 or PX_ENOMEM. */
int pxd_conn_put(struct pxd_conn *c, const uint8_t *head, size_t nhead, const uint8_t *body, size_t nbody);
/* pxd_conn_put_seg: queue seg itself; it belongs to the connection then, also on error. 0 or PX_ENOMEM. */
int pxd_conn_put_seg(struct pxd_conn *c, struct pxd_seg *seg);
/* pxd_conn_flush: write what is queued, as much as the socket takes now; the rest follows by itself.
 * 0 or a code of libuv (then ops->lost is not called for it). */
int pxd_conn_flush(struct pxd_conn *c);
/* pxd_conn_end: half-close behind all that is queued. */
void pxd_conn_end(struct pxd_conn *c);

#endif
