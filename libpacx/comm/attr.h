/* attr.h: see attr.c. For init.c and for the Fortran functions that reach no C function. */
#ifndef PX_ATTR_H
#define PX_ATTR_H

#include <mpi.h>

/* px_attr_note: an attribute has been set on comm (native handle); remembered if that is WORLD or SELF. MPI error code. */
int px_attr_note(MPI_Comm comm, int keyval);
/* px_attr_finalize: delete the attributes of SELF and WORLD, with their callbacks. Before the channel closes. */
void px_attr_finalize(void);

#endif
