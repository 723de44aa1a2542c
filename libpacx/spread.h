/* spread.h: bytes from one native rank of the relay communicator to all others, along a binomial tree of messages.
 *
 * For the world map, shared by libpacx and pacxd. Polled, never waited for, because it may come minutes after it is asked for. A nonblocking
 * broadcast of the vendor's would do, but Open MPI from its first one on pays for them in every poll (0.15 us of an
 * allreduce of 0.4).
 */
#ifndef PX_SPREAD_H
#define PX_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "attach.h"

struct px_spread {
	uint8_t *
		bytes; /* malloc; the root sets it and len, the others receive them; freed by px_spread_fini */
	int len;
	int nreq;
	MPI_Request req[32]; /* to the children */
	bool sent;
};

/* px_spread_poll: look once. 1 = the bytes are here and those that hang on this rank have them, 0 = not yet, or PX_E... */
int px_spread_poll(struct px_spread *s, const struct px_site_map *map, int root);
void px_spread_fini(struct px_spread *s);

#endif
