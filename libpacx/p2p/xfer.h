/* xfer.h: the payload of a long message: native messages between this rank and a native peer (a daemon, or a local rank in
 * collectives), a bounded number of them under way.
 *
 * Owns the tags that name payloads. Called with the library's lock; never waits.
 */
#ifndef PX_XFER_H
#define PX_XFER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct px_right;

struct px_xfer {
	MPI_Request *req; /* [n]; the first `done` are complete, those up to `posted` are under way */
	int n, posted, done;
	char *data; /* where the bytes are or go */
	char *temp; /* owned copy (packed or truncated data), or NULL */
	uint64_t total;
	uint32_t seg;
	int peer, tag;          /* on the relay communicator */
	bool own_tag;           /* the tag is from our pool */
	struct px_right *right; /* receive from an unlike machine: what converts it (unlike.h), or NULL */
};

/* px_xfer_tag: a tag that no other payload has, -1: there is none. With own_tag set, px_xfer_test gives it back at the end. */
int px_xfer_tag(void);
/* px_xfer_start: x->data, peer and tag are set; `total` bytes in segments of `seg`. MPI error code. */
int px_xfer_start(struct px_xfer *x, uint64_t total, uint32_t seg, bool sending);
/* px_xfer_test: advance; true when all segments are through. *rc gets an MPI error code. */
bool px_xfer_test(struct px_xfer *x, bool sending, int *rc);

#endif
