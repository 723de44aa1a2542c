/* rep.h: data representations of files: numbers in a file as other machines see them.
 *
 * "external32" is the standard's (13.5.2): big-endian, a long of 4 bytes. "internal" is that of memory where all members of the file's
 * communicator store data alike; else a form of ours that holds whatever any machine holds: little-endian, the largest sizes, binary128.
 */
#ifndef PX_REP_H
#define PX_REP_H

#include "file.h"

extern const struct px_repr px_rep_external32; /* for pack_external.c, too */

/* px_rep_of: what a view's `datarep` means for data of these types: NULL = as in memory. MPI error code, not raised. */
int px_rep_of(const struct px_file *f, const char *datarep, MPI_Datatype etype, MPI_Datatype filetype,
	const struct px_repr **rep);
const char *px_rep_name(const struct px_repr *rep);
/* px_rep_size: bytes of data of one t in the file. */
MPI_Count px_rep_size(const struct px_repr *rep, MPI_Datatype t);
/* px_rep_bytes: what `bytes` bytes of data of type t are in the file. */
MPI_Count px_rep_bytes(const struct px_repr *rep, MPI_Datatype t, MPI_Count bytes);

/* px_rep_put: elements of t, packed as in memory, become the file's. px_rep_get: `bytes` of the file become packed; *moved = bytes then.
 * MPI error code, not raised: MPI_ERR_CONVERSION if a value does not fit, which is logged. */
int px_rep_put(const struct px_repr *rep, MPI_Datatype t, MPI_Count count, const void *packed, void *out);
int px_rep_get(const struct px_repr *rep, MPI_Datatype t, MPI_Count count, const void *in, MPI_Count bytes,
	void *packed, MPI_Count *moved);

#endif
