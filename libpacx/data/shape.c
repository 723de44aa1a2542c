/* shape.c: see shape.h.
 *
 * Design. From the outside in: each constructor that repeats something regularly adds dimensions, those inside it are the faster ones.
 * Of others (indexed, struct ...) nothing is known but the size of the whole: the members of a structure, again and again.
 */
#include "shape.h"

#include <stdbool.h>

#include "datatype.h"
#include "vendor.h"

#define DEPTH     8
#define ARGS      64 /* more are not looked at: a subarray of 20 dimensions */
#define ROW_LEAST 4  /* a shorter "row" is the components of a vector: they stay together */

static void add(struct px_shape *s, uint64_t n)
{
	if (n == 1)
		return;
	if (s->ndims == PX_SHAPE_DIMS || (s->ndims > 0 && s->dim[s->ndims - 1] < ROW_LEAST))
		s->dim[s->ndims - 1] *= n;
	else
		s->dim[s->ndims++] = n;
}

static void named(MPI_Datatype t, struct px_shape *s)
{
	if (t == MPI_C_FLOAT_COMPLEX || t == MPI_C_DOUBLE_COMPLEX || t == MPI_COMPLEX ||
		t == MPI_DOUBLE_COMPLEX)
		add(s, 2);
}

/* What `inner` is repeated by; false: by nothing regular. */
static bool repeats(int combiner, const int *iv, struct px_shape *s)
{
	int n = 0, order;

	switch (combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		return true;
	case MPI_COMBINER_CONTIGUOUS:
		add(s, (uint64_t)iv[0]);
		return true;
	case MPI_COMBINER_VECTOR: /* count, length of a block, stride */
	case MPI_COMBINER_HVECTOR:
		add(s, (uint64_t)iv[1]);
		add(s, (uint64_t)iv[0]);
		return true;
	case MPI_COMBINER_SUBARRAY: /* n, sizes, lengths, starts, order */
		n = iv[0];
		order = iv[1 + 3 * n];
		for (int i = 0; i < n; i++)
			add(s, (uint64_t)iv[1 + n + (px_type_order_is_c(order) ? n - 1 - i : i)]);
		return true;
	default:
		return false;
	}
}

/* false: there is something irregular in t. */
static bool look(MPI_Datatype t, int depth, struct px_shape *s)
{
	MPI_Datatype inner[1];
	MPI_Aint av[ARGS];
	int iv[ARGS], ni, na, nd, combiner;
	bool known;

	if (px_n.Type_get_envelope(t, &ni, &na, &nd, &combiner) != MPI_SUCCESS)
		return false;
	if (combiner == MPI_COMBINER_NAMED) {
		named(t, s);
		return true;
	}
	if (nd != 1 || ni > ARGS || na > ARGS || depth == DEPTH ||
		px_n.Type_get_contents(t, ni, na, nd, iv, av, inner) != MPI_SUCCESS)
		return false;
	known = look(inner[0], depth + 1, s) && repeats(combiner, iv, s);
	if (px_n.Type_get_envelope(inner[0], &ni, &na, &nd, &combiner) == MPI_SUCCESS &&
		!px_combiner_predefined(combiner))
		px_n.Type_free(&inner[0]);
	return known;
}

void px_shape_look(MPI_Datatype t, uint64_t numbers, struct px_shape *s)
{
	s->ndims = 0;
	if (look(t, 0, s))
		return;
	s->ndims = 0;
	add(s, numbers);
}

void px_shape_rows(const struct px_shape *s, uint64_t count, uint16_t *row, uint16_t *plane)
{
	struct px_shape all = *s;

	*row = *plane = 0;
	if (all.ndims < 1) /* numbers, one after the other */
		return;
	add(&all, count);
	if (all.ndims > 1 && all.dim[0] < 1u << 16)
		*row = (uint16_t)all.dim[0];
	if (all.ndims > 2 && *row > 0 && all.dim[1] < 1u << 16)
		*plane = (uint16_t)all.dim[1];
}
