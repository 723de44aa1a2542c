/* pacxd.h: what the parts of one relay daemon share: itself as its peers see it, the native job, its role.
 *
 * One struct pxd per process, owned by pacxd.c, single-threaded. The loop in pacxd.c calls the role's
 * poll, then libuv, then waits by the one policy (wait.h). No part may exit, call the native Abort, or block:
 * it calls pxd_fail (node.h), and pacxd.c ends the process.
 */
#ifndef PXD_PACXD_H
#define PXD_PACXD_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "attach.h"
#include "buf.h"
#include "node.h"
#include "status.h"
#include "world.h"

struct pxd;

/* What a role gives the loop. */
struct pxd_role {
	int (*open)(struct pxd *d);  /* 0 or PX_E...; after an error pxd_fail has been called */
	bool (*poll)(struct pxd *d); /* native side; true when something happened */
	bool (*done)(struct pxd *d); /* nothing left to do: leave the loop */
	bool (*quiet)(struct pxd
			*d); /* nothing native is under way: only what others send, or libuv, brings work */
	void (*close)(struct pxd *d);  /* before the loop is closed and the native Finalize */
	void (*report)(struct pxd *d); /* statistics records on standard output */
	void (*farewell)(struct pxd *d, const char *why); /* the job fails: tell the peers, without waiting */
	void (*status)(
		struct pxd *d, struct px_buf *b); /* JSON members for pacxctl, beginning with a comma */
};
extern const struct pxd_role pxd_role_out, pxd_role_in;

struct pxd {
	struct pxd_node node;   /* what we are to our peers */
	struct px_site_map map; /* the native job */
	const struct pxd_role *role;
	void *state;         /* of the role */
	uint64_t started;    /* px_now_ns at start */
	uint64_t naps, rung; /* taken; ended by a bell */
	struct pxd_status status;
	/* World map (pacxd_world.c). */
	struct {
		int len;
		uint8_t *bytes;
		MPI_Request req;
		enum { PXD_WORLD_NONE, PXD_WORLD_LENGTH, PXD_WORLD_BYTES, PXD_WORLD_DONE } state;
	} world;
};

/* pxd_world_start: take part in the broadcast of the world map. The root (out-daemon) passes the hellos of
 * all sites, the others NULL. pxd_world_poll: true when something happened. 0 or PX_E.... */
int pxd_world_start(struct pxd *d, const struct px_hello *hellos);
bool pxd_world_poll(struct pxd *d);
void pxd_world_drop(struct pxd *d);

#endif
