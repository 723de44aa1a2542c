/* scan_tree.h: scans in the order of the tree of reductions (terms.h): what is before a rank is the largest subtrees that it consists of,
 * combined from left to right, and (inclusive) then the rank's own operand; whatever the split over sites. For scan.c.
 */
#ifndef PX_SCAN_TREE_H
#define PX_SCAN_TREE_H

#include "schedule.h"

/* px_coll_scan_tree: in may be out. */
void px_coll_scan_tree(struct px_sched *s, const void *in, void *out, MPI_Count count, MPI_Datatype t,
	MPI_Op op, bool inclusive);

#endif
