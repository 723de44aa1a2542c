/* comm_make.h: what the constructors of communicators share. */
#ifndef PX_COMM_MAKE_H
#define PX_COMM_MAKE_H

#include <stdint.h>

struct px_comm;

/* px_comm_confirm: collective over c. made: result of a native constructor here. All members learn whether it has succeeded everywhere,
 * and the context id offered by comm rank `who`. MPI error code; the error of another member is raised here, too. */
int px_comm_confirm(struct px_comm *c, int made, int who, uint64_t *ctx);
/* px_comm_twin: collective over c, which may be an intercommunicator: one with its members, topology, error handler and what
 * pacx.h says of it, but without attributes, for operations that are not to meet those of c. To be dropped. MPI error code, raised. */
int px_comm_twin(struct px_comm *c, struct px_comm **twin);

#endif
