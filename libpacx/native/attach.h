/* attach.h: the channel between an application rank and its site's daemons, over the native MPI.
 *
 * Shared by libpacx (side of the rank) and by pacxd (roles out and in). After the native
 * MPI_Init every native rank of the site, application or daemon, calls px_attach_roles, which
 * first says PX_TAG_HERE to the first out-daemon (so that it knows whom a collective call would wait for in vain) and is then
 * collective on the native MPI_COMM_WORLD. Then, on `relay` (a duplicate of it):
 *
 *   rank -> out-daemon   PX_TAG_UP    native messages of whole frames (header, inline body if any), at most PX_BATCH_MAX bytes. To
 *                                     which gateway: all frames between two ranks to (src + dst) % gateways; the beginning of a
 *                                     payload (flag DATA, or the announcement itself) to the gateway `via` of its message
 *   out-daemon -> rank   PX_TAG_DOWN  CREDIT: envelopes that have left; PULL: a message whose payload is wanted now; FIN
 *   in-daemon -> rank    PX_TAG_DOWN  native messages of whole frames as in PX_TAG_UP; the receiver keeps a ring of posted
 *                                     receives of PX_BATCH_MAX bytes, so order is kept
 *   payload up           frame.local  (a tag >= PX_TAG_DATA) native messages of frame.seg bytes, the last one shorter, in
 *                                     order, sent with Issend. A tag is used again only when all Issends of its message are
 *                                     complete; so a tag names one message
 *   rank -> in-daemon    PX_TAG_DONE  PULL: a long message has been matched, its receives are posted under tag frame.local (tag = 1:
 *                                     nobody will receive it); FIN: this rank will receive nothing more
 *   payload down         frame.local  of the PULL: native messages as above, sent with Isend; or of the announcement of a middling
 *                                     message that is here already (a tag >= PX_TAG_PROMISED): one native message, sent with Issend
 *   daemon -> ranks      world map    PMPI_Ibcast of its length (int), then of its bytes, root = out-daemon of gateway 0
 *
 * Who sends any of these rings the receiver (bell.h): daemons with nothing of their own under way nap until then.
 * A rank that has finished sends FIN to every daemon, and each answers with FIN as its last frame.
 * An ABORT frame goes up like a message; the out-daemon spreads it to all sites and then
 * ends the native job.
 */
#ifndef PX_ATTACH_H
#define PX_ATTACH_H

#include <mpi.h>

#define PX_TAG_UP    1
#define PX_TAG_DOWN  2
#define PX_TAG_DONE  3
#define PX_TAG_HERE  4  /* on the native MPI_COMM_WORLD, empty */
#define PX_TAG_DATA  16 /* and above, up to PX_TAG_DATA + PX_TAG_COUNT - 1 */
#define PX_TAG_COUNT (1 << 20)
#define PX_TAG_PROMISED                                                                                      \
	(PX_TAG_DATA + PX_TAG_COUNT) /* and above: payload of middling messages, chosen by the in-daemon */
#define PX_PROMISES 32               /* of them for each rank */

enum px_role { PX_ROLE_APP = 0, PX_ROLE_OUT = 1, PX_ROLE_IN = 2 };

/* What every process of a site knows of the native job after px_attach_roles. */
struct px_site_map {
	MPI_Comm relay; /* all native ranks */
	MPI_Comm apps;  /* application ranks only; MPI_COMM_NULL in a daemon. Its ranks are the local ranks */
	int nranks;     /* application ranks of the site */
	int *native_of; /* [nranks] local rank -> rank in relay */
	int gateways;   /* number of out/in pairs; 0 = no daemons, the site runs alone */
	int *out, *in;  /* [gateways] ranks in relay */
	int procs_here; /* native ranks on this node, daemons included */
	int *pid_of; /* [nranks] in a daemon: the process of a local rank whose /proc is ours, 0 = elsewhere; in a rank NULL */
};

/* px_attach_roles: collective over the native MPI_COMM_WORLD; role as enum px_role. 0 or PX_EMPI,
 * PX_EINVAL when the numbers of out- and in-daemons differ. Free with px_attach_drop. */
int px_attach_roles(enum px_role role, struct px_site_map *map);
/* px_attach_place: where in a native job of `size` ranks the first out-daemon has to be, as PACX_DAEMONS and PACX_GATEWAYS say;
 * -1 = there is no room. px_attach_heard: the first out-daemon, before it calls px_attach_roles: a native rank that has said
 * that it is here, -1 = none at the moment. */
int px_attach_place(int size);
int px_attach_heard(void);
void px_attach_drop(struct px_site_map *map);

#endif
