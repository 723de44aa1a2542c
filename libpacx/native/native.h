/* native.h: native calls with 64-bit counts.
 *
 * Where the vendor has the MPI_X_c entry points they are used; elsewhere a count beyond INT_MAX cannot come from the
 * application. A builder that makes larger ones itself (reduce-scatter, allgather) says so: px_fits, px_call.large.
 */
#ifndef PX_NATIVE_H
#define PX_NATIVE_H

#include <limits.h>

#include "vendor.h"

/* px_fits: can a native call of this vendor take the count? */
#ifdef PX_HAVE_Send_c
#define px_fits(count) ((count) >= 0)
#else
#define px_fits(count) ((count) >= 0 && (count) <= INT_MAX)
#endif

#ifdef PX_HAVE_Send_c
#define PX_N(name, buf, count, ...) px_n.name##_c(buf, (MPI_Count)(count), __VA_ARGS__)
#else
#define PX_N(name, buf, count, ...) px_n.name(buf, (int)(count), __VA_ARGS__)
#endif

#endif
