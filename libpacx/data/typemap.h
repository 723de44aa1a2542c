/* typemap.h: a datatype written out as runs of basic elements, and numbers for basic types and operators that mean the same
 * at every site.
 *
 * For those who must describe the layout of a datatype to a rank of another vendor's MPI (rma/). A map is made from the
 * constructors of the type (PMPI_Type_get_contents), at the first time that it is asked for, and lives in the cache of
 * datatype.c until the type is freed.
 */
#ifndef PX_TYPEMAP_H
#define PX_TYPEMAP_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct px_sig;

/* rep times count elements of basic type `code`, next to each other; the first begins at offset, the next ones stride
 * bytes further each. Runs are in the order of the type map. */
struct px_run {
	MPI_Aint offset, stride;
	MPI_Count count, rep;
	uint32_t code;
};

struct px_typemap {
	int n, cap;
	struct px_run *run; /* [n] */
	bool foreign;       /* there are basic types of the vendor's own in it */
	struct px_sig *sig; /* NULL: nobody has asked yet */
};

/* px_typemap_get: of one element of t, borrowed until t is freed. NULL: no valid datatype, or out of memory. */
const struct px_typemap *px_typemap_get(MPI_Datatype t);
void px_typemap_free(struct px_typemap *m);

/* px_signature_get: what one element of t consists of, in the order of the type map (convert.h); borrowed until t is freed. NULL: no
 * valid datatype, out of memory, or there are basic types in it that only this vendor knows. */
const struct px_sig *px_signature_get(MPI_Datatype t);

/* px_basic: the basic type with this number here, MPI_DATATYPE_NULL if there is none. px_basic_code: the reverse; basic types
 * without a number (the vendor's own) give that of MPI_BYTE and *bytes = how many of them, others 1. */
MPI_Datatype px_basic(uint32_t code);
uint32_t px_basic_code(MPI_Datatype t, MPI_Count *bytes);

/* px_op_code: number of a predefined operator, 0 for others; px_op_of: the reverse, MPI_OP_NULL if there is none. */
uint32_t px_op_code(MPI_Op op);
MPI_Op px_op_of(uint32_t code);

#endif
