/* carry.h: data access of a rank that is not at the site of its file, to and from the server, in pieces; and of one whose data is converted
 * (rep.h): at once, if it has the file.
 *
 * A piece is at most PX_CHUNK bytes and PX_RANGES_MAX ranges; PX_PIECES of them are on their way at a time, so the server's memory
 * and the links' are bounded however large an access is. Here a
 * buffer that is not contiguous, or is converted, is copied whole.
 */
#ifndef PX_CARRY_H
#define PX_CARRY_H

#include "file.h"

#define PX_PIECES 8

/* px_carry: move count elements of t from data byte `pos` of the view on. With req it returns at once and completes with *req;
 * otherwise it waits and fills *st. MPI error code, raised. *moved (may be NULL) = bytes, of a blocking one. */
int px_carry(struct px_file *f, bool write, MPI_Offset pos, void *buf, MPI_Count count, MPI_Datatype t,
	MPI_Status *st, MPI_Request *req, MPI_Count *moved);

#endif
