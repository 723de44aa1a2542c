/* pacxd.h: what the parts of one relay daemon share: the loop, the hostfile, the native job, its role.
 *
 * One struct pxd per process, owned by pacxd.c, single-threaded. The loop in pacxd.c calls the role's
 * poll, then libuv, then waits by the one policy (wait.h). No part may exit, call the native Abort, or block:
 * it calls pxd_fail, and pacxd.c ends the process.
 */
#ifndef PXD_PACXD_H
#define PXD_PACXD_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "attach.h"
#include "buf.h"
#include "hostfile.h"
#include "preamble.h"
#include "status.h"
#include "world.h"

/* Codes of the native Abort, and so usually of the launcher's exit status. An ABORT frame brings its own. */
#define PXD_EXIT_INTERNAL 1 /* out of memory, native MPI error, malformed frame inside the site */
#define PXD_EXIT_CONFIG   2 /* environment, hostfile, start command */
#define PXD_EXIT_START    3 /* start deadline passed, refused by a peer */
#define PXD_EXIT_LOST     4 /* a link was lost */
#define PXD_EXIT_PROTOCOL 5 /* a peer broke the protocol */

struct pxd;
struct pxd_conn;
struct pxd_tls_ctx;

/* What a role gives the loop. */
struct pxd_role {
	int (*open)(struct pxd *d);     /* 0 or PX_E...; after an error pxd_fail has been called */
	bool (*poll)(struct pxd *d);    /* native side; true when something happened */
	bool (*done)(struct pxd *d);    /* nothing left to do: leave the loop */
	bool (*pending)(struct pxd *d); /* the native side has to be polled soon; otherwise TCP wakes us */
	void (*close)(struct pxd *d);   /* before the loop is closed and the native Finalize */
	void (*report)(struct pxd *d);  /* statistics records on standard output */
	void (*farewell)(struct pxd *d, const char *why); /* the job fails: tell the peers, without waiting */
	void (*status)(
		struct pxd *d, struct px_buf *b); /* JSON members for pacxctl, beginning with a comma */
	/* Handshakes, ours and theirs: what our hello says on this stream; whether theirs fits (0, or PX_E... with the reason
	 * for the peer and the log); and the connection, from here on the role's. */
	void (*greet)(struct pxd *d, const struct px_preamble *p, struct px_hello *h);
	int (*judge)(
		struct pxd *d, const struct px_preamble *p, const struct px_hello *h, char *why, size_t cap);
	void (*linked)(
		struct pxd *d, const struct px_preamble *p, struct pxd_conn *c, const struct px_hello *h);
};
extern const struct pxd_role pxd_role_out, pxd_role_in;

struct pxd {
	uv_loop_t loop;
	uint64_t events; /* counts callbacks of libuv: tells the loop that something happened */
	struct pxd_hosts *hosts;
	int self;    /* index of our site */
	int gateway; /* ours */
	uint8_t jobhash[PX_JOBHASH_SIZE];
	struct pxd_tls_ctx *tls; /* NULL: no link of ours is encrypted */
	struct px_site_map map;
	struct px_hello hello; /* ours */
	const struct pxd_role *role;
	void *state;      /* of the role */
	uint64_t started; /* px_now_ns at start */
	struct pxd_status status;
	/* pxd_fail: the job ends. */
	bool failed;
	int code;
	char why[300];
	/* World map (pacxd_world.c). */
	struct {
		int len;
		uint8_t *bytes;
		MPI_Request req;
		enum { PXD_WORLD_NONE, PXD_WORLD_LENGTH, PXD_WORLD_BYTES, PXD_WORLD_DONE } state;
	} world;
};

static inline struct pxd *pxd_of(uv_loop_t *loop)
{
	return loop->data;
}

static inline const char *pxd_site_name(const struct pxd *d, int site)
{
	return d->hosts->sites[site].name;
}

/* pxd_fail: log the reason (unless the job is ending already) and end the native job with `code`
 * as soon as the loop is reached. */
void pxd_fail(struct pxd *d, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* pxd_world_start: take part in the broadcast of the world map. The root (out-daemon) passes the hellos of
 * all sites, the others NULL. pxd_world_poll: true when something happened. 0 or PX_E.... */
int pxd_world_start(struct pxd *d, const struct px_hello *hellos);
bool pxd_world_poll(struct pxd *d);
void pxd_world_drop(struct pxd *d);

/* pxd_site_of: site of a global rank, -1 = no such rank. */
int pxd_site_of(const struct pxd *d, uint32_t grank);

#endif
