/* hello.h: what a site says of itself when a link opens. Normative text: PROTOCOL.md.
 *
 * The body of a HELLO frame. The dialling out-daemon sends its hello, the
 * listening in-daemon checks it (px_hello_check) and answers with its own or
 * with REFUSE. No sockets, no MPI.
 */
#ifndef PX_HELLO_H
#define PX_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "repr.h"

#define PX_NAME_MAX   64
#define PX_JOB_MAX    64
#define PX_VENDOR_MAX 128

enum px_flavor { PX_MPI_OTHER = 0, PX_MPI_OPENMPI = 1, PX_MPI_MPICH = 2 };

struct px_hello {
	uint16_t protocol;     /* PX_PROTOCOL_VERSION */
	uint16_t site, nsites; /* index in the hostfile, number of sites */
	uint16_t gateway, gateways;
	uint16_t stream, streams;
	uint16_t flavor;   /* enum px_flavor */
	uint32_t nranks;   /* application ranks of the site */
	int32_t tag_ub;    /* largest tag of the native MPI */
	uint32_t features; /* bits, all 0 in version 1 */
	struct px_repr repr;
	uint64_t
		session; /* of the path: chosen by its writer; a reader repeats the one it knows, 0 = none yet */
	uint64_t next; /* reader: sequence number of the frame that it wants next, 0 = it is the writer */
	char job[PX_JOB_MAX + 1];
	char name[PX_NAME_MAX + 1];     /* of the site */
	char vendor[PX_VENDOR_MAX + 1]; /* "Open MPI 4.1.4" */
};

#define PX_HELLO_MAX 512 /* encoded size never exceeds this */

/* px_hello_put: encoded length, or PX_EINVAL when cap is too small. */
int px_hello_put(const struct px_hello *h, uint8_t *out, size_t cap);
/* px_hello_get: 0, PX_ESHORT, PX_EPROTO, or PX_EVERSION (then h->protocol holds what was found). */
int px_hello_get(const uint8_t *in, size_t len, struct px_hello *h);

/* px_hello_check: does the peer's hello fit ours? Same job, nsites and a site index in range and not
 * ours; how it stores data does not matter. PX_EJOB, PX_ESITE, PX_EVERSION; why (cap bytes) gets a sentence for both logs. */
int px_hello_check(const struct px_hello *ours, const struct px_hello *peer, char *why, size_t cap);

#endif
