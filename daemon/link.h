/* link.h: a directed pair of sites, as the out-daemon of the first sees it: counters, sequence numbers,
 * queue.
 *
 * Owned by role out, one per peer. Frames are numbered here and queued on the link's connection; pxd_path_flush
 * sends what one turn of the loop has queued. (The receiving end of a link is struct in_link in role_in.c.)
 * Later: several streams, retained frames for resume, credits.
 */
#ifndef PXD_LINK_H
#define PXD_LINK_H

#include "frame.h"
#include "link_seg.h"
#include "pacxd.h"

/* A link with more bytes queued than HIGH gets no new segments until it is below LOW: memory stays small, and
 * the pipe never runs dry, because LOW is more than a socket takes at once on most paths. */
#define PXD_LINK_HIGH (4u << 20)
#define PXD_LINK_LOW  (2u << 20)

enum pxd_link_state {
	PXD_LINK_WAITING, /* no connection yet */
	PXD_LINK_UP,
	PXD_LINK_BYE,  /* BYE is queued or sent */
	PXD_LINK_GONE, /* lost or closed */
};

struct pxd_counters {
	uint64_t messages;      /* announced or inline MSG */
	uint64_t payload_bytes; /* of them */
	uint64_t wire_bytes;    /* headers and bodies of all frames */
	uint64_t frames;
};

struct pxd_path {
	int peer;
	enum pxd_link_state state;
	struct pxd_conn *conn;
	uint64_t seq; /* of the last frame */
	bool stopped; /* above HIGH, not yet below LOW */
	size_t peak;  /* most bytes queued */
	uint64_t writes;
	struct pxd_counters count;
};

/* pxd_path_put: number and queue a frame with its body of f->body bytes. 0 or PX_ENOMEM. */
int pxd_path_put(struct pxd_path *p, const struct px_frame *f, const uint8_t *body);
/* pxd_path_put_seg: the same for a SEG frame; its body is seg, which is taken over. */
int pxd_path_put_seg(struct pxd_path *p, const struct px_frame *f, struct pxd_seg *seg);
/* pxd_path_flush: 0, or a code of libuv: the link is lost. */
int pxd_path_flush(struct pxd_path *p);
/* pxd_path_open_to: may new segments be fetched for this link? */
bool pxd_path_open_to(struct pxd_path *p);
/* pxd_path_bye: queue BYE and the half-close. */
int pxd_path_bye(struct pxd_path *p);
void pxd_path_close(struct pxd_path *p);

#endif
