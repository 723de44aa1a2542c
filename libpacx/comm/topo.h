/* topo.h: virtual topologies of communicators that span sites. The native MPI cannot hold
 * them, since it knows only the local members.
 */
#ifndef PX_TOPO_H
#define PX_TOPO_H

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
/* px_topo_neighbors: sources and destinations of neighborhood collectives, in the order of the standard.
 * *in and *out are allocated (free them), entries may be MPI_PROC_NULL. MPI error code, not raised. */
int px_topo_neighbors(struct px_comm *c, int *nin, int **in, int *nout, int **out);

#endif
