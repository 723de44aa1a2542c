/* typemap.c: see typemap.h.
 *
 * Design. Each constructor repeats the maps of its inner types at certain places. Adding a run to a map joins it with the last
 * one where it can: next to it, or at the same distance again; so a vector of contiguous blocks is one run, however
 * many blocks it has.
 */
#include "typemap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "basic.h"
#include "convert.h"
#include "datatype.h"
#include "err.h"
#include "vendor.h"

const struct px_sig *px_signature_get(MPI_Datatype t)
{
	const struct px_typemap *map = px_typemap_get(t);
	struct px_typemap *m;
	int rc = PX_OK;

	if (!map || map->foreign)
		return NULL;
	if (map->sig)
		return map->sig;
	m = px_type_get(t)->map;
	m->sig = calloc(1, sizeof *m->sig);
	for (int i = 0; m->sig && i < m->n && rc == PX_OK; i++)
		rc = px_signature_add(m->sig, m->run[i].code, (uint64_t)(m->run[i].count * m->run[i].rep));
	if (m->sig && rc != PX_OK) {
		px_sig_free(m->sig);
		free(m->sig);
		m->sig = NULL;
	}
	return m->sig;
}

static MPI_Count basic_extent(const struct px_typemap *m, uint32_t code)
{
	MPI_Count extent, touched;
	unsigned align;

	px_basic_shape(code, m->as, &extent, &touched, &align);
	return extent;
}

MPI_Count px_typemap_extent(const struct px_typemap *m, MPI_Datatype t)
{
	return m->as ? m->ub - m->lb : px_type_get(t)->extent;
}

/* Elements of inner become part of m: the first at offset `at`, the last one `span` bytes on. */
static void bound(struct px_typemap *m, const struct px_typemap *inner, MPI_Count at, MPI_Count span)
{
	MPI_Count lb = at + inner->lb + (span < 0 ? span : 0), ub = at + inner->ub + (span > 0 ? span : 0);

	m->lb = m->bounded && m->lb < lb ? m->lb : lb;
	m->ub = m->bounded && m->ub > ub ? m->ub : ub;
	m->align = m->align > inner->align ? m->align : inner->align;
	m->given |= inner->given;
	m->bounded = true;
}

static void bound_as_told(struct px_typemap *m, MPI_Count lb, MPI_Count extent)
{
	m->lb = lb;
	m->ub = lb + extent;
	m->bounded = m->given = true;
}

/* Can `next` be told as more of the same as the last run? */
static bool join(const struct px_typemap *m, struct px_run *last, const struct px_run *next)
{
	if (last->code != next->code || next->rep != 1)
		return false;
	if (last->rep == 1 && next->offset == last->offset + last->count * basic_extent(m, last->code)) {
		last->count += next->count;
		return true;
	}
	if (last->count != next->count)
		return false;
	if (last->rep == 1)
		last->stride = next->offset - last->offset;
	else if (next->offset != last->offset + last->rep * last->stride)
		return false;
	last->rep++;
	return true;
}

static int add(struct px_typemap *m, const struct px_run *run)
{
	if (run->count == 0 || run->rep == 0 || (m->n > 0 && join(m, &m->run[m->n - 1], run)))
		return MPI_SUCCESS;
	if (m->n == m->cap) {
		int cap = m->cap ? 2 * m->cap : 4;
		struct px_run *more = realloc(m->run, (size_t)cap * sizeof *more);

		if (!more)
			return MPI_ERR_NO_MEM;
		m->run = more;
		m->cap = cap;
	}
	m->run[m->n++] = *run;
	return MPI_SUCCESS;
}

/* n elements of inner, `extent` bytes apart, the first at offset `at`. */
static int repeat(
	struct px_typemap *m, const struct px_typemap *inner, MPI_Count at, MPI_Count n, MPI_Count extent)
{
	const struct px_run *one = inner->run;
	int rc = MPI_SUCCESS;

	if (n > 0)
		bound(m, inner, at, (n - 1) * extent);
	if (inner->n == 1 && one->rep == 1 && n > 0) {
		struct px_run run = *one;

		run.offset += at;
		if (one->count * basic_extent(m, one->code) == extent) {
			run.count *= n;
		} else if (n > 1) {
			run.stride = extent;
			run.rep = n;
		}
		return add(m, &run);
	}
	for (MPI_Count i = 0; i < n; i++) {
		for (int k = 0; k < inner->n && rc == MPI_SUCCESS; k++) {
			struct px_run run = inner->run[k];

			run.offset += at + i * extent;
			rc = add(m, &run);
		}
	}
	return rc;
}

/* What a constructor was given, in 64 bits whatever its form; `ints` holds those that are ints in both forms, too. */
struct contents {
	int combiner;
	MPI_Count ni, na, nc, nd;
	MPI_Count *num; /* [ni + nc] the integers, or (large) the counts behind the integers */
	MPI_Aint *aint; /* [na] */
	MPI_Datatype *type;
	bool large;
};

static int get_large(MPI_Datatype t, struct contents *c, int *iv)
{
#ifdef PX_HAVE_Type_get_contents_c
	int rc =
		px_n.Type_get_contents_c(t, c->ni, c->na, c->nc, c->nd, iv, c->aint, c->num + c->ni, c->type);
#else
	int rc = MPI_ERR_TYPE;
	(void)t;
#endif
	for (MPI_Count i = 0; i < c->ni; i++)
		c->num[i] = iv[i];
	return rc;
}

static int get_small(MPI_Datatype t, struct contents *c, int *iv)
{
	int rc = px_n.Type_get_contents(t, (int)c->ni, (int)c->na, (int)c->nd, iv, c->aint, c->type);

	for (MPI_Count i = 0; i < c->ni; i++)
		c->num[i] = iv[i];
	return rc;
}

static int envelope(MPI_Datatype t, struct contents *c)
{
	int ni, na, nd, rc;

	memset(c, 0, sizeof *c);
#ifdef PX_HAVE_Type_get_envelope_c
	rc = px_n.Type_get_envelope_c(t, &c->ni, &c->na, &c->nc, &c->nd, &c->combiner);
	if (rc != MPI_SUCCESS || c->nc > 0) {
		c->large = true;
		return rc;
	}
#endif
	rc = px_n.Type_get_envelope(t, &ni, &na, &nd, &c->combiner);
	c->ni = ni;
	c->na = na;
	c->nd = nd;
	return rc;
}

static void contents_free(struct contents *c)
{
	for (MPI_Count i = 0; c->type && i < c->nd; i++) {
		struct contents inner;

		if (c->type[i] != MPI_DATATYPE_NULL && envelope(c->type[i], &inner) == MPI_SUCCESS &&
			!px_combiner_predefined(inner.combiner))
			px_n.Type_free(&c->type[i]);
	}
	free(c->num);
	free(c->aint);
	free(c->type);
}

static int contents_get(MPI_Datatype t, struct contents *c)
{
	int *iv = malloc((size_t)(c->ni + 1) * sizeof *iv), rc = MPI_ERR_NO_MEM;

	c->num = malloc((size_t)(c->ni + c->nc + 1) * sizeof *c->num);
	c->aint = malloc((size_t)(c->na + 1) * sizeof *c->aint);
	c->type = malloc((size_t)(c->nd + 1) * sizeof(MPI_Datatype));
	for (MPI_Count i = 0; c->type && i < c->nd; i++)
		c->type[i] = MPI_DATATYPE_NULL;
	if (iv && c->num && c->aint && c->type)
		rc = c->large ? get_large(t, c, iv) : get_small(t, c, iv);
	free(iv);
	return rc;
}

static int map_type(struct px_typemap *m, MPI_Datatype t, int depth);

/* The indices of one dimension that belong to this part of an array. */
struct dim {
	MPI_Count n, *index;
	MPI_Count stride; /* elements */
};

static int array_walk(struct px_typemap *m, const struct px_typemap *inner, MPI_Count extent,
	const struct dim *dim, int ndims, MPI_Count at)
{
	int rc = MPI_SUCCESS;

	if (ndims == 0)
		return repeat(m, inner, at * extent, 1, extent);
	if (ndims == 1 && dim->n > 0 && dim->index[dim->n - 1] - dim->index[0] == dim->n - 1)
		return repeat(m, inner, (at + dim->index[0]) * extent, dim->n, extent);
	for (MPI_Count i = 0; i < dim->n && rc == MPI_SUCCESS; i++)
		rc = array_walk(m, inner, extent, dim + 1, ndims - 1, at + dim->index[i] * dim->stride);
	return rc;
}

/* Which of `size` indices has process `at` of `procs`? */
static void distribute(
	struct dim *d, MPI_Count size, MPI_Count kind, MPI_Count arg, MPI_Count procs, MPI_Count at)
{
	MPI_Count block;

#ifdef PX_ABI /* see px_type_order_is_c */
	static const int ours[] = { MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE };

	kind = kind >= 0 && kind < 3 ? ours[kind] : kind;
	arg = arg == -1 ? MPI_DISTRIBUTE_DFLT_DARG : arg;
#endif
	block = arg;
	if (kind == MPI_DISTRIBUTE_NONE) {
		block = size;
		procs = 1;
		at = 0;
	} else if (arg == MPI_DISTRIBUTE_DFLT_DARG) {
		block = kind == MPI_DISTRIBUTE_BLOCK ? (size + procs - 1) / procs : 1;
	}
	for (MPI_Count first = at * block; first < size; first += procs * block)
		for (MPI_Count i = first; i < first + block && i < size; i++)
			d->index[d->n++] = i;
}

static int map_array(
	struct px_typemap *m, const struct contents *c, const struct px_typemap *inner, MPI_Count extent)
{
	bool sub = c->combiner == MPI_COMBINER_SUBARRAY;
	/* Integers first, then counts, in each form: see the standard's table of MPI_Type_get_contents. */
	MPI_Count lead = sub ? 1 : 3, n = c->num[sub ? 0 : 2];
	const MPI_Count *sizes = c->large ? c->num + c->ni : c->num + lead;
	const MPI_Count *rest = c->large ? c->num + lead : c->num + lead + n;
	const MPI_Count *subsizes = c->large ? sizes + n : rest, *starts = subsizes + n;
	bool rows = px_type_order_is_c(c->num[c->ni - 1]);
	MPI_Count stride = 1, procs = 1, rank = sub ? 0 : c->num[1];
	struct dim *dim = calloc((size_t)n + 1, sizeof *dim);
	int rc = dim ? MPI_SUCCESS : MPI_ERR_NO_MEM;

	for (MPI_Count i = 0; i < n && !sub; i++)
		procs *= rest[2 * n + i];
	/* dim[0] varies slowest: the first of C, the last of Fortran. */
	for (MPI_Count i = 0; i < n && rc == MPI_SUCCESS; i++) {
		MPI_Count k = rows ? i : n - 1 - i;

		dim[i].index = malloc((size_t)(sizes[k] + 1) * sizeof *dim[i].index);
		if (!dim[i].index)
			rc = MPI_ERR_NO_MEM;
		else if (sub)
			for (MPI_Count j = 0; j < subsizes[k]; j++)
				dim[i].index[dim[i].n++] = starts[k] + j;
	}
	for (MPI_Count k = 0; k < n && rc == MPI_SUCCESS && !sub; k++) { /* processes are in C order always */
		procs /= rest[2 * n + k];
		distribute(&dim[rows ? k : n - 1 - k], sizes[k], rest[k], rest[n + k], rest[2 * n + k],
			rank / procs);
		rank %= procs;
	}
	for (MPI_Count i = n - 1; i >= 0 && rc == MPI_SUCCESS; i--) {
		dim[i].stride = stride;
		stride *= sizes[rows ? i : n - 1 - i];
	}
	if (rc == MPI_SUCCESS)
		rc = array_walk(m, inner, extent, dim, (int)n, 0);
	bound_as_told(m, 0, stride * extent);
	for (MPI_Count i = 0; dim && i < n; i++)
		free(dim[i].index);
	free(dim);
	return rc;
}

/* Counts and displacements of the constructors that place blocks: block i has *len elements at *at bytes. */
static void block(const struct contents *c, MPI_Count extent, MPI_Count i, MPI_Count *len, MPI_Count *at)
{
	const MPI_Count *v = c->large ? c->num + c->ni : c->num, n = v[0];

	switch (c->combiner) {
	case MPI_COMBINER_CONTIGUOUS:
		*len = n;
		*at = 0;
		return;
	case MPI_COMBINER_VECTOR:
		*len = v[1];
		*at = (i * v[2] * extent);
		return;
	case MPI_COMBINER_HVECTOR:
		*len = v[1];
		*at = (i * (c->large ? v[2] : c->aint[0]));
		return;
	case MPI_COMBINER_INDEXED:
		*len = v[1 + i];
		*at = (v[1 + n + i] * extent);
		return;
	case MPI_COMBINER_INDEXED_BLOCK:
		*len = v[1];
		*at = (v[2 + i] * extent);
		return;
	case MPI_COMBINER_HINDEXED_BLOCK:
		*len = v[1];
		*at = (c->large ? v[2 + i] : c->aint[i]);
		return;
	default: /* HINDEXED, STRUCT */
		*len = v[1 + i];
		*at = (c->large ? v[1 + n + i] : c->aint[i]);
	}
}

static int map_blocks(
	struct px_typemap *m, const struct contents *c, const struct px_typemap *inner, MPI_Count extent)
{
	MPI_Count n = c->combiner == MPI_COMBINER_CONTIGUOUS ? 1 : c->num[c->large ? c->ni : 0];
	int rc = MPI_SUCCESS;

	for (MPI_Count i = 0; i < n && rc == MPI_SUCCESS; i++) {
		MPI_Count len, at;

		block(c, extent, i, &len, &at);
		rc = repeat(m, inner, at, len, extent);
	}
	return rc;
}

/* An inner type, and the distance of its elements. */
static int map_inner(struct px_typemap *inner, MPI_Datatype t, int depth, MPI_Count *extent)
{
	MPI_Count lb;
	int rc = map_type(inner, t, depth + 1);

	if (rc == MPI_SUCCESS && inner->as)
		*extent = inner->ub - inner->lb;
	else if (rc == MPI_SUCCESS)
		rc = px_n.Type_get_extent_x(t, &lb, extent);
	return rc;
}

static MPI_Count round_up(MPI_Count n, unsigned align)
{
	return (n + align - 1) / align * align;
}

static int map_struct(struct px_typemap *m, const struct contents *c, int depth)
{
	int rc = MPI_SUCCESS;

	for (MPI_Count i = 0; i < c->nd && rc == MPI_SUCCESS; i++) {
		struct px_typemap inner = { .as = m->as };
		MPI_Count len, at, extent = 0;

		block(c, 0, i, &len, &at);
		rc = map_inner(&inner, c->type[i], depth, &extent);
		if (rc == MPI_SUCCESS)
			rc = repeat(m, &inner, at, len, extent);
		m->foreign |= inner.foreign;
		free(inner.run);
	}
	if (m->as && m->align > 0 && !m->given)
		m->ub = m->lb + round_up(m->ub - m->lb, m->align);
	return rc;
}

static int map_derived(struct px_typemap *m, const struct contents *c, int depth)
{
	struct px_typemap inner = { .as = m->as };
	MPI_Count extent = 0;
	int rc;

	if (c->combiner == MPI_COMBINER_STRUCT)
		return map_struct(m, c, depth);
	rc = map_inner(&inner, c->type[0], depth, &extent);
	if (rc == MPI_SUCCESS) {
		switch (c->combiner) {
		case MPI_COMBINER_DUP:
			rc = repeat(m, &inner, 0, 1, extent);
			break;
		case MPI_COMBINER_RESIZED:
			rc = repeat(m, &inner, 0, 1, extent);
			if (c->large)
				bound_as_told(m, c->num[c->ni], c->num[c->ni + 1]);
			else
				bound_as_told(m, c->aint[0], c->aint[1]);
			break;
		case MPI_COMBINER_SUBARRAY:
		case MPI_COMBINER_DARRAY:
			rc = map_array(m, c, &inner, extent);
			break;
		case MPI_COMBINER_CONTIGUOUS:
		case MPI_COMBINER_VECTOR:
		case MPI_COMBINER_HVECTOR:
		case MPI_COMBINER_INDEXED:
		case MPI_COMBINER_HINDEXED:
		case MPI_COMBINER_INDEXED_BLOCK:
		case MPI_COMBINER_HINDEXED_BLOCK:
			rc = map_blocks(m, c, &inner, extent);
			break;
		default:
			rc = MPI_ERR_TYPE;
		}
	}
	m->foreign |= inner.foreign;
	free(inner.run);
	return rc;
}

/* The code of a Fortran type made by MPI_Type_create_f90_*: by its size. Real numbers of more than 15 digits, and of not more than 18, are
 * long double where that is x87's. */
static uint32_t f90_code(int combiner, MPI_Datatype t, MPI_Count *times)
{
	MPI_Datatype is = MPI_DATATYPE_NULL, inner;
	int size = 0, v[2] = { MPI_UNDEFINED, MPI_UNDEFINED };
	bool extended;
	MPI_Aint none;

	px_n.Type_size(t, &size);
	if (combiner != MPI_COMBINER_F90_INTEGER)
		px_n.Type_get_contents(t, 2, 0, 0, v, &none, &inner);
	extended = v[0] != MPI_UNDEFINED && v[0] > 15 && v[0] <= 18;
	if (combiner == MPI_COMBINER_F90_REAL)
		is = size == 4 ? MPI_REAL4 : size == 8 ? MPI_REAL8 : extended ? MPI_LONG_DOUBLE : MPI_REAL16;
	else if (combiner == MPI_COMBINER_F90_COMPLEX)
		is = size == 8    ? MPI_COMPLEX8
		     : size == 16 ? MPI_COMPLEX16
		     : extended   ? MPI_C_LONG_DOUBLE_COMPLEX
				  : MPI_COMPLEX32;
	else
		is = size == 1   ? MPI_INTEGER1
		     : size == 2 ? MPI_INTEGER2
		     : size == 4 ? MPI_INTEGER4
				 : MPI_INTEGER8;
	return is != MPI_DATATYPE_NULL ? px_basic_code(is, times) : px_basic_code(t, times);
}

static int map_type(struct px_typemap *m, MPI_Datatype t, int depth)
{
	MPI_Count extent, touched;
	struct contents c;
	int rc = envelope(t, &c);

	if (rc != MPI_SUCCESS || depth > 64)
		return rc != MPI_SUCCESS ? rc : MPI_ERR_TYPE;
	if (px_combiner_predefined(c.combiner)) {
		struct px_run run = { .count = 1, .rep = 1 };

		run.code = c.combiner == MPI_COMBINER_NAMED ? px_basic_code(t, &run.count)
							    : f90_code(c.combiner, t, &run.count);
		m->foreign |= run.code == 1 && t != MPI_BYTE && run.count > 0;
		m->lb = 0;
		m->bounded = px_basic_shape(run.code, m->as, &extent, &touched, &m->align);
		m->ub = extent * run.count;
		return add(m, &run);
	}
	rc = contents_get(t, &c);
	if (rc == MPI_SUCCESS)
		rc = map_derived(m, &c, depth);
	contents_free(&c);
	return rc;
}

const struct px_typemap *px_typemap_get(MPI_Datatype t)
{
	const struct px_type *p = px_type_get(t);
	struct px_typemap *m;

	if (!p || p->map)
		return p ? p->map : NULL;
	m = calloc(1, sizeof *m);
	if (m && map_type(m, t, 0) != MPI_SUCCESS) {
		px_typemap_free(m);
		m = NULL;
	}
	px_type_keep_map(t, m);
	return m;
}

bool px_typemap_dense(MPI_Datatype t)
{
	struct px_typemap *m = calloc(1, sizeof *m);
	bool dense = m && map_type(m, t, 0) == MPI_SUCCESS;
	MPI_Count at = 0;

	for (int i = 0; dense && i < m->n; i++) {
		const struct px_run *u = &m->run[i];
		MPI_Count bytes = u->count * px_type_get(px_basic(u->code))->size;

		dense = u->offset == at && (u->rep == 1 || u->stride == bytes);
		at += u->rep * bytes;
	}
	px_typemap_free(m);
	return dense;
}

const struct px_typemap *px_typemap_there(MPI_Datatype t, const struct px_repr *as)
{
	const struct px_typemap *here = px_typemap_get(t);
	struct px_typemap *m = here ? here->others : NULL;

	while (m && m->as != as)
		m = m->others;
	if (m || !here)
		return m;
	m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->as = as;
	if (map_type(m, t, 0) != MPI_SUCCESS) {
		px_typemap_free(m);
		return NULL;
	}
	m->others = here->others;
	px_type_get(t)->map->others = m;
	return m;
}

void px_typemap_free(struct px_typemap *m)
{
	while (m) {
		struct px_typemap *next = m->others;

		if (m->sig)
			px_sig_free(m->sig);
		free(m->sig);
		free(m->run);
		free(m);
		m = next;
	}
}
