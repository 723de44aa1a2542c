/* basic.h: numbers for MPI's basic types and predefined operators that mean the same at every site, and what basic types consist of.
 *
 * For typemap.c, and for those who describe datatypes to ranks of another vendor's MPI or of another machine (rma/, io/). Owns nothing.
 */
#ifndef PX_BASIC_H
#define PX_BASIC_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct px_repr;
struct px_sig;

/* px_basic: the basic type with this number here, MPI_DATATYPE_NULL if there is none. px_basic_code: the reverse; basic types
 * without a number (the vendor's own) give that of MPI_BYTE and *bytes = how many of them, others 1. */
MPI_Datatype px_basic(uint32_t code);
uint32_t px_basic_code(MPI_Datatype t, MPI_Count *bytes);

/* px_basic_shape: how much memory a basic type takes and touches on a machine (NULL: this one). False: there is no such type. */
bool px_basic_shape(
	uint32_t code, const struct px_repr *as, MPI_Count *extent, MPI_Count *true_extent, unsigned *align);
/* px_basic_parts: what it consists of there: one number, or two, of size[] bytes at offsets at[]. Returns how many; 0: there is no such type. */
int px_basic_parts(uint32_t code, const struct px_repr *as, MPI_Count size[2], MPI_Count at[2]);
/* px_signature_add: n more of a basic type at the end of s. PX_OK, PX_ENOMEM, or PX_EINVAL: there is no such type. */
int px_signature_add(struct px_sig *s, uint32_t code, uint64_t n);

/* px_basic_floating: may arithmetic with t round? True also for types that are not basic or that only the vendor knows. */
bool px_basic_floating(MPI_Datatype t);

/* px_op_code: number of a predefined operator, 0 for others; px_op_of: the reverse, MPI_OP_NULL if there is none. */
uint32_t px_op_code(MPI_Op op);
MPI_Op px_op_of(uint32_t code);

#endif
