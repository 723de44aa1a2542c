/* proof.h: the proof in a preamble: who dials shows at once, before any TLS, that it has the job's key.
 *
 * Made from a key of its own, the door key, which comes from the job's key and opens nothing else: it may be given to a relay. Who has
 * heard a proof can send it again, so numbers rise with every connection of a stream, and whoever checks remembers the newest of each.
 * A good proof gets a place at the door; TLS is what lets in. No sockets, no libuv.
 */
#ifndef PXD_PROOF_H
#define PXD_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "key.h"
#include "preamble.h"

/* pxd_proof_key: the door key of a job's key. 0 or PX_EIO. */
int pxd_proof_key(const uint8_t key[PXD_KEY_SIZE], uint8_t door[PXD_KEY_SIZE]);
/* pxd_proof_put: px_preamble_put, with the next number and the proof; door NULL: without them. */
void pxd_proof_put(const uint8_t *door, const struct px_preamble *p, uint8_t out[PX_PREAMBLE_SIZE]);
/* pxd_proof_good: was it made with this door key, now or earlier? */
bool pxd_proof_good(const uint8_t door[PXD_KEY_SIZE], const struct px_preamble *p);

/* The newest number of each stream. Zeroed it is empty. */
struct px_map;
struct pxd_proof_memory {
	struct px_map *newest;
};
/* pxd_proof_new: is it good, and newer than all that were seen of its stream? Then it is the newest. */
bool pxd_proof_new(struct pxd_proof_memory *m, const uint8_t door[PXD_KEY_SIZE], const struct px_preamble *p);
void pxd_proof_forget(struct pxd_proof_memory *m);

#endif
