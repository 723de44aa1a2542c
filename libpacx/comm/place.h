/* place.h: which rank takes which node of a graph, so that little of its weight runs between sites (`reorder`).
 *
 * Pure: no MPI. Integers only and no chance, so that all ranks, of all machines, come to the same.
 */
#ifndef PX_PLACE_H
#define PX_PLACE_H

#include <stdbool.h>
#include <stddef.h>

struct px_edge {
	int from, to, weight;
};

struct px_places {
	int size, nparts; /* ranks; sites that they are at */
	const int *part;  /* [size] the site of each */
	int n;            /* nodes, at most size */
	const struct px_edge *edge;
	size_t nedges;
	int ndims; /* a grid, whose last dimension runs fastest; 0: any graph */
	const int *dims;
};

/* px_place: rank_of[node], n of them, all different: node i stays with rank i unless less weight crosses otherwise.
 * false: out of memory */
bool px_place(const struct px_places *p, int *rank_of);

/* px_place_crossing: the weight of the edges between sites. */
long long px_place_crossing(const struct px_places *p, const int *rank_of);

#endif
