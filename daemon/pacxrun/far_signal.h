/* far_signal.h: signals for the launcher of a site behind a remote shell, which hands none on.
 *
 * {guard} at the other end says its process id in a record of kind "pid" on standard error; for each signal the way of the start
 * command to that machine is gone once more, with kill. Used by launch.c, one pxd_far per site.
 */
#ifndef PXD_FAR_SIGNAL_H
#define PXD_FAR_SIGNAL_H

#include <stdbool.h>
#include <uv.h>

#include "plan.h"

struct pxd_far {
	long guard; /* its process id there, 0 = it has not said it */
};

/* pxd_far_put: a record from the standard error of the site; false = it is of another kind. */
bool pxd_far_put(struct pxd_far *f, const char *site, const char *record);
/* pxd_far_signal: send it, by a process that ends with pacxrun; `prefix` is this installation's. 0; or -1 with a sentence in why.
 * When it turns out later that it did not arrive, `lost` is called with the name of the site and the reason. */
int pxd_far_signal(const struct pxd_far *f, const struct pxd_start *st, int signum, uv_loop_t *loop,
	const char *prefix, void (*lost)(const char *site, int signum, const char *reason), char *why,
	size_t cap);

#endif
