/* guest.h: processes that a rank of the world has started for a communicator that spans sites (comm/spawn.c), and messages to and from them.
 *
 * Those of one call are "guests": a site of their own behind those of the hostfile, with global ranks of their own, in the map of every
 * process that has been told of them. No daemon knows them. The rank that has started them is their host: whatever another process says to one
 * of them, or hears from one, passes through the host as a parcel. So nobody else has to know of guests: above px_channel_send and
 * below the queues of receives there is no difference. Called with the library's lock, and while other sites are served; waits
 * only in px_guests_leave and px_guests_wait.
 */
#ifndef PX_GUEST_H
#define PX_GUEST_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "state.h"

struct px_comm;

struct px_guests {
	struct px_guests *next;
	int site, base, n; /* index in the world map, their global ranks */
	int host;          /* global rank */
	MPI_Comm hall;     /* at the host and the guests: it and they, in this order; else MPI_COMM_NULL */
	MPI_Comm born;     /* likewise: the vendor's intercommunicator between them */
	int gone;          /* at the host: how many have finished */
};

extern struct px_guests *px_guests; /* those that this process has been told of, the latest first */
extern bool px_guest_self;          /* this process is one */

/* px_guests_learn: there are these. NULL: out of memory. */
struct px_guests *px_guests_learn(int site, int base, int n, int host);
/* px_guests_hall: at the host and the guests: they can talk now. */
void px_guests_hall(struct px_guests *g, MPI_Comm hall, MPI_Comm born);
/* px_guests_among: is one of them in c? The same answer at all its members. */
bool px_guests_among(const struct px_comm *c);

/* px_guest_way: do messages to global rank dst go as parcels? */
static inline bool px_guest_way(int dst)
{
	return px_guests && (px_guest_self || dst >= px.nranks) && !px_is_local(dst);
}

/* px_guest_send: f, as if it were for a daemon, with f->total bytes that follow PX_FRAME_SIZE bytes of room at `parcel`, which is taken over. MPI
 * error code. */
int px_guest_send(struct px_frame *f, uint8_t *parcel);

/* px_guests_leave: a guest has finished, its host learns it. px_guests_wait: at the end: until our guests have. MPI error code. */
int px_guests_leave(void);
void px_guests_wait(void);

#endif
