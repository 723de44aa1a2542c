/* p2p.h: starting point-to-point operations on communicators that span sites; used by p2p.c,
 * persist.c and probe.c. Nothing here waits.
 */
#ifndef PX_P2P_H
#define PX_P2P_H

#include "request.h"

/* px_check_args: rank, tag, count, datatype; MPI_SUCCESS or the code after raising it. */
int px_check_args(struct px_comm *c, MPI_Count count, MPI_Datatype t, int peer, int tag, bool recv);
void px_req_args(struct px_req *r, const void *buf, MPI_Count count, MPI_Datatype t, int peer, int tag);

/* px_send_start, px_recv_start: start what r's arguments describe. MPI error code, already raised. */
int px_send_start(struct px_req *r);
int px_recv_start(struct px_req *r);

#endif
