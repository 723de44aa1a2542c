/* shape.h: the array that a datatype of numbers describes, as far as its constructors tell: for those who compress it.
 *
 * Never more than a hint: the bytes of a message are what they are, in the order of the type map.
 */
#ifndef PX_SHAPE_H
#define PX_SHAPE_H

#include <mpi.h>
#include <stdint.h>

#define PX_SHAPE_DIMS 4

/* How many numbers there are in each dimension, the fastest first; those of one number are left away. */
struct px_shape {
	int ndims;
	uint64_t dim[PX_SHAPE_DIMS];
};

/* px_shape_look: of one element of t, which consists of so many basic elements of one size. What no constructor tells is one row. */
void px_shape_look(MPI_Datatype t, uint64_t numbers, struct px_shape *s);
/* px_shape_rows: of `count` elements: numbers in a row and rows in a plane, each below 2^16; 0 where it is not known, or there is only one. */
void px_shape_rows(const struct px_shape *s, uint64_t count, uint16_t *row, uint16_t *plane);

#endif
