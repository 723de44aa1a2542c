/* datatype.h: what the relay must know of an MPI datatype: is it contiguous, how large, and its
 * bytes in type map order (pack and unpack).
 *
 * Owns a cache keyed by the native handle; px_Type_free drops the entry. Datatypes and operators
 * that the application frees while an operation of ours still needs them are freed later
 * (MPI standard: a freed datatype lives on until pending communication is complete).
 */
#ifndef PX_DATATYPE_H
#define PX_DATATYPE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "shape.h"

struct px_typemap;

struct px_type {
	MPI_Count size;       /* bytes of data in one element */
	MPI_Count lb, extent; /* spacing of elements */
	MPI_Count true_lb, true_extent;
	uint8_t elem;   /* size of its basic elements if all are alike (1 .. 16), else 0; for compression */
	bool floating;  /* they are all floats, or all doubles */
	bool committed; /* as far as anybody has asked */
	bool contig;    /* n elements are n * size bytes from the buffer address on, in type map order */
	struct px_shape shape;  /* if elem is 4 or 8 */
	struct px_typemap *map; /* typemap.h; NULL: nobody has asked yet */
};

/* px_type_many: *one becomes one element, committed, that is count elements of t, displ bytes behind the beginning: for interfaces that count in
 * int. The caller frees it. Returns an error code of MPI's. */
int px_type_many(MPI_Count count, MPI_Aint displ, MPI_Datatype t, MPI_Datatype *one);

/* px_type_get: information on t, borrowed until t is freed. NULL when t is no valid datatype. */
const struct px_type *px_type_get(MPI_Datatype t);

/* px_type_committed: MPI_SUCCESS, or what the vendor says of a type that is not, which it raises on comm. */
int px_type_committed(MPI_Datatype t, MPI_Comm comm);

/* px_type_order_is_c: is that, from the contents of a subarray or distributed array, MPI_ORDER_C? */
bool px_type_order_is_c(MPI_Count order);

/* px_type_keep_map: m lives as long as t's entry, which takes it over; for typemap.c. */
void px_type_keep_map(MPI_Datatype t, struct px_typemap *m);

/* px_type_pack: count elements at buf into out, count * size bytes. 0 or an MPI error code. */
int px_type_pack(const void *buf, MPI_Count count, MPI_Datatype t, void *out);
/* px_type_unpack: `bytes` bytes (not more than count * size; may end inside an element) from in
 * to count elements at buf. 0 or an MPI error code. */
int px_type_unpack(const void *in, uint64_t bytes, void *buf, MPI_Count count, MPI_Datatype t);

/* px_types_held: so many operations need their datatypes and operators: those that the application frees meanwhile are kept. */
extern int px_types_held;
/* px_type_sweep: free what was deferred, when nothing needs it any more. Called when the last operation drops its types. */
void px_type_sweep(void);

/* px_combiner_predefined: of a type that nobody may free: a named one, or one made by MPI_Type_create_f90_*. */
bool px_combiner_predefined(int combiner);

#endif
