/* native.h: native point-to-point calls with 64-bit counts.
 *
 * Where the vendor has the MPI_X_c entry points they are used; elsewhere a count beyond
 * INT_MAX cannot reach us, because only an MPI_X_c function could carry it.
 */
#ifndef PX_NATIVE_H
#define PX_NATIVE_H

#include "vendor.h"

#ifdef PX_HAVE_Send_c
#define PX_N(name, buf, count, ...) px_n.name##_c(buf, (MPI_Count)(count), __VA_ARGS__)
#else
#define PX_N(name, buf, count, ...) px_n.name(buf, (int)(count), __VA_ARGS__)
#endif

#endif
