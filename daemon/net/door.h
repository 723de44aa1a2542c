/* door.h: listening sockets, and each connection until its preamble is complete.
 *
 * Owned by the in-daemon's listen.c and by a relay. Up to here a caller costs a descriptor and some 400 bytes: there is room for
 * PXD_DOOR_CALLERS, and who has to go when they are all taken, crowd.h says. Whoever has said its preamble is handed to
 * `came`, with its socket and not a byte more than that read. Nothing is sent. When the process has no descriptors left, callers make
 * room; without callers the door rests for PXD_DOOR_REST_MS and says so. All on one libuv loop; never blocks.
 */
#ifndef PXD_DOOR_H
#define PXD_DOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "crowd.h"
#include "preamble.h"
#include "quiet.h"

#define PXD_DOOR_ADDRESSES 8     /* that we listen on */
#define PXD_DOOR_CALLERS   4096  /* before their preamble, if a quarter of our descriptors are as many */
#define PXD_DOOR_MS        10000 /* for a preamble */
#define PXD_DOOR_REST_MS   200
#define PXD_PEER_TEXT      80

struct pxd_door {
	uv_loop_t *loop;
	struct pxd_quiet *quiet;
	uint64_t *events; /* counts callbacks; may be NULL */
	/* `from` has said the whole preamble; fd is the owner's. */
	void (*came)(void *owner, int fd, const struct sockaddr_storage *from, const struct px_preamble *pre);
	void *owner;
	struct {
		uv_poll_t poll;
		int fd;
	} sock[PXD_DOOR_ADDRESSES];
	int nsocks;
	uv_timer_t timer; /* deadlines of callers, and the end of a rest */
	bool resting, open;
	struct pxd_crowd callers;
	uint64_t turned_away;
};

/* pxd_door_init: loop, quiet, events, came and owner are set before. */
int pxd_door_init(struct pxd_door *d);
/* pxd_door_listen: on an address more. 0, -EADDRINUSE, -errno. shared: pacxrun may hold the port for us, bound but not listening. */
int pxd_door_listen(struct pxd_door *d, const struct sockaddr *a, socklen_t len, bool shared);
void pxd_door_close(struct pxd_door *d); /* asynchronous; harmless before pxd_door_init */

/* pxd_door_reset: end a connection that nobody shall wait for: no FIN, no TIME_WAIT. */
void pxd_door_reset(int fd);
/* pxd_peer_text: "192.0.2.7:31000", in text. */
const char *pxd_peer_text(const struct sockaddr_storage *a, char text[PXD_PEER_TEXT]);

#endif
