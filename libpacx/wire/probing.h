/* probing.h: what pacxctl and whoever answers it say to each other behind a preamble of kind PX_PRE_PROBE (and TLS).
 *
 * The dialler sends requests, the other side answers each in order; a request is 16 bytes and a payload:
 *
 *   0 "PXPB"  4 op (u8)  5 answer (u8: 0 request, 1 answer)  6 zero (2)  8 payload bytes (u64)
 *
 *   WHO     no payload; the answer's is struct px_probing_id, 272 bytes
 *   ECHO    up to 64 KiB; the answer's is the same
 *   SINK    up to 1 MiB, thrown away; the answer has none, and comes when all has arrived
 *   REFUSED only as an answer: a sentence, at most 200 bytes (a daemon with a job refuses SINK)
 *
 *   id: 0 protocol (u16)  2 site (u16)  4 nsites (u16)  6 gateway (u16)  8 flags (u32)  12 zero (4)  16 clock, ns since 1970 (u64)
 *       24 version (40)  64 site's name (96)  160 job id (96); texts are padded with zeros, the last byte is zero
 *       256 how the site stores data, as in a hello (16)
 *
 * The answering side is a pure state machine here, for pacxctl and pacxd alike; it allocates nothing and keeps no payload. No
 * sockets, no MPI.
 */
#ifndef PX_PROBING_H
#define PX_PROBING_H

#include <stddef.h>
#include <stdint.h>

#include "hello.h"

#define PX_PROBING_SIZE     16
#define PX_PROBING_ID       272
#define PX_PROBING_ECHO_MAX 65536
#define PX_PROBING_SINK_MAX 1048576
#define PX_PROBING_WHY_MAX  200
#define PX_PROBING_STEP     1024 /* bytes that px_probing_feed takes at most at once */
/* What it gives for them at most: as many WHO as fit. */
#define PX_PROBING_OUT ((PX_PROBING_STEP / PX_PROBING_SIZE + 1) * (PX_PROBING_SIZE + PX_PROBING_ID))

enum px_probing_op { PX_PROBING_WHO = 1, PX_PROBING_ECHO = 2, PX_PROBING_SINK = 3, PX_PROBING_REFUSED = 4 };
enum { PX_PROBING_JOB = 1 }; /* flags of the id: it comes from a daemon of a running job */

struct px_probing {
	uint8_t op, answer;
	uint64_t n;
};

struct px_probing_id {
	uint16_t protocol, site, nsites, gateway;
	uint32_t flags;
	uint64_t clock_ns;
	char version[40];
	char name[PX_NAME_MAX + 1];
	char job[PX_JOB_MAX + 1];
	struct px_repr repr;
};

void px_probing_put(const struct px_probing *p, uint8_t out[PX_PROBING_SIZE]);
/* px_probing_get: 0 or PX_EPROTO. */
int px_probing_get(const uint8_t in[PX_PROBING_SIZE], struct px_probing *p);
void px_probing_put_id(const struct px_probing_id *id, uint8_t out[PX_PROBING_ID]);
int px_probing_get_id(const uint8_t in[PX_PROBING_ID], struct px_probing_id *id);

/* The answering side of one connection; all zero at first, but for id. */
struct px_probing_side {
	struct px_probing_id id; /* the owner's; it sets clock_ns before each feed */
	uint8_t head[PX_PROBING_SIZE];
	size_t nhead;
	struct px_probing now; /* the request whose payload is arriving */
	uint64_t left;
};

/* px_probing_feed: take in[0..n), n <= PX_PROBING_STEP, and give what has to be sent: out[0..*nout). 0, or PX_EPROTO. */
int px_probing_feed(
	struct px_probing_side *s, const uint8_t *in, size_t n, uint8_t out[PX_PROBING_OUT], size_t *nout);

#endif
