/* typemap.h: a datatype written out as runs of basic elements (basic.h).
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

struct px_repr;
struct px_sig;

/* rep times count elements of basic type `code`, next to each other; the first begins at offset, the next ones stride
 * bytes further each. Runs are in the order of the type map. */
struct px_run {
	MPI_Count offset, stride; /* not MPI_Aint: of a machine with more memory, perhaps */
	MPI_Count count, rep;
	uint32_t code;
};

struct px_typemap {
	int n, cap;
	struct px_run *run; /* [n] */
	bool foreign;       /* there are basic types of the vendor's own in it */
	struct px_sig *sig; /* NULL: nobody has asked yet */
	/* Of one element, where `as` is set: */
	const struct px_repr *as; /* the machine that it is laid out for; NULL: this one */
	MPI_Count lb, ub;
	unsigned align;            /* of its basic elements */
	bool bounded, given;       /* lb and ub have been set; by the user (MPI_Type_create_resized) */
	struct px_typemap *others; /* the same datatype for other machines */
};

/* px_typemap_get: of one element of t, borrowed until t is freed. NULL: no valid datatype, or out of memory. */
const struct px_typemap *px_typemap_get(MPI_Datatype t);
void px_typemap_free(struct px_typemap *m);

/* px_typemap_dense: does one element of t begin at its address and lie there as it is packed, without gaps? t need not be known yet. */
bool px_typemap_dense(MPI_Datatype t);

/* px_typemap_there: the same for a machine with other sizes and alignments: as it would be laid out if the datatype had been made there, by the
 * same calls (MPI standard 12.2.4, of target datatypes). `as` must outlive t. */
const struct px_typemap *px_typemap_there(MPI_Datatype t, const struct px_repr *as);
/* px_typemap_extent: distance of two elements of t, whose map m is. */
MPI_Count px_typemap_extent(const struct px_typemap *m, MPI_Datatype t);

/* px_signature_get: what one element of t consists of, in the order of the type map (convert.h); borrowed until t is freed. NULL: no
 * valid datatype, out of memory, or there are basic types in it that only this vendor knows. */
const struct px_sig *px_signature_get(MPI_Datatype t);

#endif
