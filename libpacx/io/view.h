/* view.h: a file view as byte ranges. For ranks that are not at the site of their file, and where data is
 * converted (rep.h); elsewhere the native MPI does it.
 *
 * The filetype is flattened once, when the view is set, to the ranges of one tile; an access walks over tiles.
 */
#ifndef PX_VIEW_H
#define PX_VIEW_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_repr;

struct px_range {
	MPI_Offset off; /* in the file (in a tile: from its beginning) */
	MPI_Offset len;
};

struct px_view {
	MPI_Offset disp;
	MPI_Count size, extent; /* data bytes in a tile; distance of tiles */
	struct px_range *tile;  /* [n] in the order of the type map */
	MPI_Offset *before;     /* [n] data bytes of the tile before this range */
	size_t n;
};

/* px_view_set: bytes from disp on, then tiles of `filetype`, laid out as in memory (as = NULL) or as machine `as` would. MPI error code; on
 * failure v is as before. */
int px_view_set(struct px_view *v, MPI_Offset disp, MPI_Datatype filetype, const struct px_repr *as);
void px_view_fini(struct px_view *v);
/* px_view_walk: ranges of `bytes` data bytes from data byte `pos` of the view on: at most max, and at most `bytes`. Returns how
 * many, *got = data bytes in them. */
size_t px_view_walk(const struct px_view *v, MPI_Offset pos, MPI_Offset bytes, struct px_range *out,
	size_t max, MPI_Offset *got);
/* px_view_below: data bytes of the view in the first `size` bytes of the file. */
MPI_Offset px_view_below(const struct px_view *v, MPI_Offset size);
/* px_view_place: where data byte pos of the view is in the file. */
MPI_Offset px_view_place(const struct px_view *v, MPI_Offset pos);

#endif
