/* preamble.h: the first 64 bytes of a TCP connection, before TLS: which link it is for.
 *
 * Sent by the dialler, never answered. It lets the one port of a gateway hand the connection to the daemon it is meant for, and lets
 * a relay pair two diallers without any key. Its proof shows that the dialler has the job's key, which is enough for a place
 * at the door and for nothing else (TLS proves who is there, and that now). Layout: PROTOCOL.md, section 4. No sockets, no MPI.
 */
#ifndef PX_PREAMBLE_H
#define PX_PREAMBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PX_PREAMBLE_SIZE 64
#define PX_JOBHASH_SIZE  16
#define PX_PROOF_SIZE    16
#define PX_PREAMBLE_SAID (PX_PREAMBLE_SIZE - PX_PROOF_SIZE) /* what the proof is of */

enum px_preamble_kind {
	PX_PRE_LINK = 1,  /* a stream of the link from -> to */
	PX_PRE_PROBE = 2, /* pacxctl doctor and probe */
};

struct px_preamble {
	uint8_t kind;
	uint8_t tls; /* 1: TLS follows; 0: frames follow */
	uint8_t reversed; /* 0: the dialler is `from`, the writer of frames; 1: the dialler is `to`, their reader */
	uint16_t from, to; /* sites */
	uint16_t from_gateway, to_gateway;
	uint16_t stream;
	uint8_t jobhash[PX_JOBHASH_SIZE]; /* SHA-256 of the job id, cut */
	uint64_t number; /* rises with every connection of a stream; 0 without TLS, like the proof */
	uint8_t proof[PX_PROOF_SIZE];
};

void px_preamble_put(const struct px_preamble *p, uint8_t *out);
/* px_preamble_get: PX_PREAMBLE_SIZE, PX_ESHORT, PX_EVERSION, PX_EPROTO (as soon as it can be told). */
int px_preamble_get(const uint8_t *in, size_t len, struct px_preamble *p);
/* px_preamble_same: of the same stream of the same job? Who dials, TLS, number and proof do not count. */
bool px_preamble_same(const struct px_preamble *a, const struct px_preamble *b);

#endif
