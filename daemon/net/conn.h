/* conn.h: one byte stream to a peer on libuv: a nonblocking socket (or the end of a command's pipe), with or without TLS,
 * read into memory that the owner names, written straight from the owner's memory.
 *
 * Used by handshakes (conn_dial.c, listen.c) and streams (link.c, link_in.c). Lifetime:
 *  1. pxd_conn_new takes the descriptor; pxd_conn_close ends it, once, from anywhere; it frees itself when libuv
 *     lets go of it.
 *  2. After pxd_conn_close no function of ops is called, and the owner must not touch the connection.
 *  3. ops->lost is called at most once, for the end of the stream or any error; the owner then closes.
 * A connection holds no queue but a few control frames (pxd_conn_say); long queues are outq.c's. It knows no frames
 * and no MPI.
 */
#ifndef PXD_CONN_H
#define PXD_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <uv.h>

#include "buf.h"

struct pxd_conn;
struct pxd_tls;
struct pxd_delay;

struct pxd_conn_ops {
	void (*ready)(struct pxd_conn *c); /* connected, or the TLS handshake is through; may be NULL */
	void (*room)(struct pxd_conn *c, uint8_t **base,
		size_t *n); /* where the next bytes go; n = 0 is not allowed */
	void (*got)(struct pxd_conn *c, uint8_t *base, size_t n);
	void (*writable)(struct pxd_conn *c); /* after pxd_conn_writev gave 0; may be NULL */
	void (*lost)(struct pxd_conn *c, const char *why);
};

struct pxd_conn {
	uv_poll_t poll;
	int fd, events; /* events: what libuv watches it for */
	const struct pxd_conn_ops *ops;
	void *owner;
	struct pxd_tls *tls;
	struct pxd_delay *delay; /* emulated wide area */
	bool connecting, shaking, want_write, tls_wants_write, shut, shut_done, closing, dead;
	struct px_buf said; /* control bytes that the socket has not taken yet */
	pid_t pid;          /* of the command that is the transport, 0 = none */
	uint64_t heard;     /* px_now_ns of the last byte */
	uint64_t in, out;   /* bytes */
	uint64_t writes;    /* system calls that wrote */
	char peer[80];      /* "127.0.0.1:31000" */
	char why[200];
};

/* pxd_conn_new: takes fd (nonblocking), also on error. connecting: its connect is under way, ops->ready follows. NULL: out of
 * memory. Reading starts at once, or when connected. */
struct pxd_conn *pxd_conn_new(
	uv_loop_t *loop, int fd, bool connecting, const struct pxd_conn_ops *ops, void *owner);
/* pxd_conn_name: a is the peer's address; for who has hung up before it could be asked for. */
struct sockaddr;
void pxd_conn_name(struct pxd_conn *c, const struct sockaddr *a, unsigned len);
/* pxd_conn_secure: from now on all bytes go through tls (taken over; NULL, out of memory, is a loss); ops->ready says
 * when it stands. */
void pxd_conn_secure(struct pxd_conn *c, struct pxd_tls *tls);
/* pxd_conn_emulate: what is written arrives latency_us later, at most at rate bytes/s (0 = unlimited). 0 or PX_ENOMEM. */
int pxd_conn_emulate(struct pxd_conn *c, long latency_us, double rate);
void pxd_conn_close(struct pxd_conn *c);

/* pxd_conn_writev: bytes taken; 0: the socket is full, ops->writable will come; -1: lost, and c->why says how (ops->lost is not
 * called for it). */
ssize_t pxd_conn_writev(struct pxd_conn *c, const struct iovec *v, int n);
/* pxd_conn_say: a few bytes that the connection may keep. Only between frames. 0, PX_ENOMEM, PX_ECLOSED. */
int pxd_conn_say(struct pxd_conn *c, const uint8_t *head, size_t nhead, const uint8_t *body, size_t nbody);
/* pxd_conn_shut: half-close behind what has been said. */
void pxd_conn_shut(struct pxd_conn *c);
/* pxd_conn_line_busy: the emulated line has not sent all it has been given; false without emulation. */
bool pxd_conn_line_busy(const struct pxd_conn *c);
/* pxd_conn_line_rate: its bytes/s; 0: no rate is emulated. */
double pxd_conn_line_rate(const struct pxd_conn *c);
/* pxd_conn_busy: bytes said or delayed that have not left yet. */
size_t pxd_conn_busy(const struct pxd_conn *c);

#endif
