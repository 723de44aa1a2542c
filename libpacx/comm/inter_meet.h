/* inter_meet.h: two groups that do not know each other become an intercommunicator (MPI_Intercomm_create, MPI_Comm_accept,
 * MPI_Comm_connect). Only their leaders have a way to each other.
 */
#ifndef PX_INTER_MEET_H
#define PX_INTER_MEET_H

#include <mpi.h>
#include <stdbool.h>

#include "comm.h"

/* One of the two groups: its communicator, spanning (c) or native. */
struct px_party {
	struct px_comm *c;
	struct px_comm *on;  /* whose error handler hears of errors */
	struct px_comm stub; /* *on, for a native one */
	MPI_Comm native;
	int size, leader; /* comm ranks */
	bool leads;       /* this rank is the leader */
	int *grank;       /* [size] */
};

/* The way from a leader to the other one. */
struct px_peer {
	int (*say)(const struct px_peer *p, const void *buf, int bytes); /* MPI error codes, not raised */
	int (*hear)(const struct px_peer *p, void *buf, int bytes);
	struct px_comm *c;
	MPI_Comm native;
	int rank, tag;
	int error;         /* why there is none; has been raised */
	bool speaks_first; /* long messages wait for their receiver, so the two may not both send first */
};

/* px_party_init: of a native handle; `what` names the leader in errors. MPI error code, raised. */
int px_party_init(struct px_party *s, MPI_Comm comm, int leader, const char *what);
void px_party_fini(struct px_party *s);
/* px_party_tell: from the leader to its group. MPI error code, raised. */
int px_party_tell(const struct px_party *s, void *buf, int bytes);

/* px_inter_meet: collective over both groups. peer is read at the leader only. MPI error code, raised at all members. */
int px_inter_meet(struct px_party *s, struct px_peer *peer, MPI_Comm *out);

#endif
