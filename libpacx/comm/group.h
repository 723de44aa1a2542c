/* group.h: groups as lists of global ranks.
 *
 * A group of ranks of one site is a native group. A group that spans sites is a native token
 * (a group of one) with its struct px_ranks in a side table. Every function here takes both.
 */
#ifndef PX_GROUP_H
#define PX_GROUP_H

#include <mpi.h>
#include <stdbool.h>

#include "ranks.h"

/* px_group_new: a group of these global ranks, in this order (copied). MPI error code. */
int px_group_new(int size, const int *grank, MPI_Group *group);

/* px_group_of: the same of a list, which it holds if it spans sites. MPI error code. */
int px_group_of(struct px_ranks *l, MPI_Group *group);

/* px_group_spans: has it members at other sites? Then no native call may get it. Takes the lock. */
bool px_group_spans(MPI_Group g);

/* px_group_list: global ranks of a group (allocated, free it), -1 for a process outside this world. MPI error code. */
int px_group_list(MPI_Group group, int *size, int **grank);

#endif
