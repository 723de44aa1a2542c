/* write_all.h: all of it, however the descriptor was made.
 *
 * Used by feeder.c, pump.c and pacxlabel.c, for whom a write may block. Keeps nothing.
 */
#ifndef PXD_WRITE_ALL_H
#define PXD_WRITE_ALL_H

#include <stdbool.h>
#include <stddef.h>

/* pxd_write_all: waits where the descriptor is nonblocking (somebody else may have made it so). false: nobody reads any more. */
bool pxd_write_all(int fd, const void *data, size_t n);

#endif
