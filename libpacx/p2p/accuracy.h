/* accuracy.h: which communicators PACX_ACCURACY lets numbers move on, by their names.
 *
 * "NAME=BOUND[,NAME=BOUND...]": for a communicator that the program gives that name with MPI_Comm_set_name, or MPI_COMM_WORLD, as if it
 * had called pacx_set_accuracy there.
 */
#ifndef PX_ACCURACY_H
#define PX_ACCURACY_H

#include <stdbool.h>

/* px_accuracy_open: take the variable's text (it is kept); said, and ignored as a whole, if it is not as above. NULL: it is not set. */
void px_accuracy_open(const char *text);
/* px_accuracy_named: the bound for this name; false: nothing is said about it. */
bool px_accuracy_named(const char *name, double *bound);

#endif
