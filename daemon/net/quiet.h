/* quiet.h: what strangers do is logged, but not at their rate, and never with bytes that a terminal would obey.
 *
 * Owned by whoever listens (listen.c, relay.c), one for each door. No libuv, no sockets.
 */
#ifndef PXD_QUIET_H
#define PXD_QUIET_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct pxd_quiet {
	double allowance;  /* lines that may be written now */
	uint64_t refilled; /* px_now_ns when it was computed */
	uint64_t unsaid;   /* lines suppressed */
};

void pxd_quiet_init(struct pxd_quiet *q);
/* pxd_quiet_log: px_log, at most ten lines at once and then one in two seconds; the next one says how many were left out. */
void pxd_quiet_log(struct pxd_quiet *q, enum px_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* pxd_text_clean: make n bytes from the network a line fit for a log, in out[cap]. */
void pxd_text_clean(const uint8_t *in, size_t n, char *out, size_t cap);

#endif
