/* topo.h: virtual topologies of communicators that span sites. The native MPI cannot hold
 * them, since it knows only the local members.
 */
#ifndef PX_TOPO_H
#define PX_TOPO_H

#include <mpi.h>

#include "place.h"

struct px_topo {
	int kind;  /* MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH */
	int ndims; /* Cartesian */
	int *dims, *periods;
	int nnodes, nedges; /* graph: */
	int *index, *edges;
	int nin, nout;                          /* distributed graph: */
	int *in, *out, *in_weight, *out_weight; /* weights NULL when unweighted */
};

/* px_topo_copy: a copy in one block, which free() frees. NULL: out of memory */
struct px_topo *px_topo_copy(const struct px_topo *t);

struct px_comm;
/* px_topo_node: the node of a graph of n nodes (edges that all ranks know; a grid, or ndims 0) that this rank should take, so that little
 * of it runs between sites; -1 = none. MPI error code, raised. */
int px_topo_node(struct px_comm *c, int n, const struct px_edge *edge, size_t nedges, int ndims,
	const int *dims, int *node);

/* px_topo_make: collective: the communicator of those who have a node (not -1), in their order, with this topology. MPI error code. */
int px_topo_make(struct px_comm *c, int node, const struct px_topo *t, MPI_Comm *out);

/* px_topo_neighbors: sources and destinations of neighborhood collectives, in the order of the standard.
 * *in and *out are allocated (free them), entries may be MPI_PROC_NULL. MPI error code, not raised. */
int px_topo_neighbors(struct px_comm *c, int *nin, int **in, int *nout, int **out);

#endif
