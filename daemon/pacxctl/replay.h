/* replay.h: what a link of a given rate and latency would make of recorded payload, with given options: bytes, time, and who won.
 *
 * It does with each segment what pack.c does, with the same forecast, codecs and history, and decodes it again. The wire is a clock: a
 * message that comes again with the same name (source, destination, context, tag, length) is sent when the one before it has
 * arrived, as iterative programs wait for their neighbours; a reference is one whose acknowledgement is back. How long the program
 * computes in between is left out. Processor times are measured here. No sockets, no output.
 */
#ifndef PXD_REPLAY_H
#define PXD_REPLAY_H

#include "frame.h"
#include "link.h"

struct pxd_replay_setup {
	struct pxd_link_opts opts; /* compress, compress_level, predict */
	double rate, rtt;          /* bytes/s, s there and back */
	bool big;                  /* numbers are big endian */
};

struct pxd_replay_result {
	uint64_t segments, plain, coded; /* bytes before and after */
	double seconds;                  /* until the last one has arrived */
	double pack, unpack;             /* s of one core */
	struct pxd_counters count;       /* codec[] and predicted[] */
};

struct pxd_replay; /* opaque */

struct pxd_replay *pxd_replay_new(const struct pxd_replay_setup *s); /* NULL: out of memory */
void pxd_replay_free(struct pxd_replay *r);
/* pxd_replay_take: the next record, f->body bytes of payload. 0, PX_ENOMEM, or PX_EPROTO: it did not come back as it was. */
int pxd_replay_take(struct pxd_replay *r, const struct px_frame *f, const uint8_t *payload);
const struct pxd_replay_result *pxd_replay_result(const struct pxd_replay *r);

#endif
