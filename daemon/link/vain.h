/* vain.h: which small messages are not worth packing, from what has come of those before.
 *
 * Owned by a path (role out), and pure arithmetic. A message that came with its envelope would leave in one frame; packed it leaves as an
 * announcement and a segment, through a worker. When that has been in vain, the next messages of its flow are left alone, twice as many
 * each time. A flow that is not known, as there are too many, or each message has a tag of its own, goes by its kind of numbers.
 */
#ifndef PXD_VAIN_H
#define PXD_VAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "codec.h"

struct pxd_rest {
	uint64_t flow;
	unsigned left, next; /* messages to be left alone; then, if it is in vain again */
};

enum { PXD_VAIN_FLOWS = 256 };

/* All zero: nothing has been in vain. */
struct pxd_vain {
	struct pxd_rest flow[PXD_VAIN_FLOWS], kind[PXD_ELEM_CLASSES];
};

/* pxd_vain_rests: is the next message of a flow (its name, hashed), of numbers of elem bytes, to be left alone? It counts as one that was. */
bool pxd_vain_rests(struct pxd_vain *v, uint64_t flow, unsigned elem);
/* pxd_vain_learn: it was packed, and that paid or did not. */
void pxd_vain_learn(struct pxd_vain *v, uint64_t flow, unsigned elem, bool paid);

#endif
