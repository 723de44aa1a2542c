/* node.h: one end of links: what a daemon is to its peers: its loop, its place in the hostfile, its key, its hello.
 *
 * Embedded by its owner (struct pxd), who fills it before a connection is made or taken. Connections, handshakes and links know their
 * daemon as this, and not what it does with what they bring. Single-threaded. No part may exit or block: it calls pxd_fail, and
 * the owner ends the process.
 */
#ifndef PXD_NODE_H
#define PXD_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "hello.h"
#include "hostfile.h"
#include "preamble.h"

/* Codes of the native Abort, and so usually of the launcher's exit status. An ABORT frame brings its own. */
#define PXD_EXIT_INTERNAL 1 /* out of memory, native MPI error, malformed frame inside the site */
#define PXD_EXIT_CONFIG   2 /* environment, hostfile, start command */
#define PXD_EXIT_START    3 /* start deadline passed, refused by a peer */
#define PXD_EXIT_LOST     4 /* a link was lost */
#define PXD_EXIT_PROTOCOL 5 /* a peer broke the protocol */

struct pxd_conn;
struct pxd_tls_ctx;

/* Handshakes, ours and theirs: what our hello says on this stream; whether theirs fits (0, or PX_E... with the reason
 * for the peer and the log); and the connection, from here on the owner's. */
struct pxd_peers {
	void (*greet)(void *owner, const struct px_preamble *p, struct px_hello *h);
	int (*judge)(
		void *owner, const struct px_preamble *p, const struct px_hello *h, char *why, size_t cap);
	void (*linked)(
		void *owner, const struct px_preamble *p, struct pxd_conn *c, const struct px_hello *h);
};

struct pxd_node {
	uv_loop_t loop;  /* its data is the node */
	uint64_t events; /* counts callbacks of libuv: tells the loop that something happened */
	struct pxd_hosts *hosts;
	int self;    /* index of our site */
	int gateway; /* ours */
	bool reads;  /* links end here, and the gateway's port is ours; false: they begin here */
	uint8_t jobhash[PX_JOBHASH_SIZE];
	struct pxd_tls_ctx *tls; /* NULL: no link of ours is encrypted */
	struct px_hello hello;   /* ours */
	const struct pxd_peers *peers;
	void *owner; /* of peers */
	/* pxd_fail: the job ends. */
	bool failed;
	int code;
	char why[300];
};

static inline struct pxd_node *pxd_node_of(uv_loop_t *loop)
{
	return loop->data;
}

static inline const char *pxd_site_name(const struct pxd_node *d, int site)
{
	return d->hosts->sites[site].name;
}

/* pxd_fail: log the reason (unless the job is ending already) and end the native job with `code`
 * as soon as the loop is reached. */
void pxd_fail(struct pxd_node *d, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
