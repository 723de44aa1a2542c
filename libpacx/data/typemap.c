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

#include "convert.h"
#include "datatype.h"
#include "err.h"
#include "vendor.h"

/* Their order is the numbering: new ones go to the end. Behind each what it consists of (convert.h): one atom, or two. */
/* clang-format off */
#ifdef OPEN_MPI
#define HAS(name, else) name
#else
#define HAS(name, else) else
#endif
#define BASIC(X) \
	X(MPI_BYTE, BYTE, COUNT) X(MPI_PACKED, BYTE, COUNT) X(MPI_CHAR, BYTE, COUNT) X(MPI_SIGNED_CHAR, BYTE, COUNT) \
	X(MPI_UNSIGNED_CHAR, BYTE, COUNT) X(MPI_WCHAR, WCHAR, COUNT) X(MPI_SHORT, INT2, COUNT) \
	X(MPI_UNSIGNED_SHORT, INT2, COUNT) X(MPI_INT, INT4, COUNT) X(MPI_UNSIGNED, INT4, COUNT) X(MPI_LONG, LONG, COUNT) \
	X(MPI_UNSIGNED_LONG, ULONG, COUNT) X(MPI_LONG_LONG, INT8, COUNT) X(MPI_UNSIGNED_LONG_LONG, INT8, COUNT) \
	X(MPI_FLOAT, FLOAT, COUNT) X(MPI_DOUBLE, DOUBLE, COUNT) X(MPI_LONG_DOUBLE, LDOUBLE, COUNT) \
	X(MPI_INT8_T, BYTE, COUNT) X(MPI_INT16_T, INT2, COUNT) X(MPI_INT32_T, INT4, COUNT) X(MPI_INT64_T, INT8, COUNT) \
	X(MPI_UINT8_T, BYTE, COUNT) X(MPI_UINT16_T, INT2, COUNT) X(MPI_UINT32_T, INT4, COUNT) X(MPI_UINT64_T, INT8, COUNT) \
	X(MPI_C_BOOL, BYTE, COUNT) X(MPI_C_FLOAT_COMPLEX, FLOAT, FLOAT) X(MPI_C_DOUBLE_COMPLEX, DOUBLE, DOUBLE) \
	X(MPI_C_LONG_DOUBLE_COMPLEX, LDOUBLE, LDOUBLE) X(MPI_AINT, AINT, COUNT) X(MPI_COUNT, INT8, COUNT) \
	X(MPI_OFFSET, INT8, COUNT) X(MPI_FLOAT_INT, FLOAT, INT4) X(MPI_DOUBLE_INT, DOUBLE, INT4) \
	X(MPI_LONG_INT, LONG, INT4) X(MPI_2INT, INT4, INT4) X(MPI_SHORT_INT, INT2, INT4) \
	X(MPI_LONG_DOUBLE_INT, LDOUBLE, INT4) X(MPI_CHARACTER, BYTE, COUNT) X(MPI_LOGICAL, LOGICAL, COUNT) \
	X(MPI_INTEGER, INTEGER, COUNT) X(MPI_REAL, FLOAT, COUNT) X(MPI_DOUBLE_PRECISION, DOUBLE, COUNT) \
	X(MPI_COMPLEX, FLOAT, FLOAT) X(MPI_DOUBLE_COMPLEX, DOUBLE, DOUBLE) X(MPI_2REAL, FLOAT, FLOAT) \
	X(MPI_2DOUBLE_PRECISION, DOUBLE, DOUBLE) X(MPI_2INTEGER, INTEGER, INTEGER) X(MPI_INTEGER1, BYTE, COUNT) \
	X(MPI_INTEGER2, INT2, COUNT) X(MPI_INTEGER4, INT4, COUNT) X(MPI_INTEGER8, INT8, COUNT) X(MPI_REAL4, FLOAT, COUNT) \
	X(MPI_REAL8, DOUBLE, COUNT) X(MPI_REAL16, REAL16, COUNT) X(MPI_COMPLEX8, FLOAT, FLOAT) \
	X(MPI_COMPLEX16, DOUBLE, DOUBLE) X(MPI_COMPLEX32, REAL16, REAL16) X(MPI_CXX_BOOL, BYTE, COUNT) \
	X(MPI_CXX_FLOAT_COMPLEX, FLOAT, FLOAT) X(MPI_CXX_DOUBLE_COMPLEX, DOUBLE, DOUBLE) \
	X(MPI_CXX_LONG_DOUBLE_COMPLEX, LDOUBLE, LDOUBLE) \
	X(HAS(MPI_LOGICAL1, MPI_INTEGER1), LOGICAL1, COUNT) X(HAS(MPI_LOGICAL2, MPI_INTEGER2), LOGICAL2, COUNT) \
	X(HAS(MPI_LOGICAL4, MPI_INTEGER4), LOGICAL4, COUNT) X(HAS(MPI_LOGICAL8, MPI_INTEGER8), LOGICAL8, COUNT)
#define OPS(X) \
	X(MPI_MAX) X(MPI_MIN) X(MPI_SUM) X(MPI_PROD) X(MPI_LAND) X(MPI_BAND) X(MPI_LOR) X(MPI_BOR) X(MPI_LXOR) X(MPI_BXOR) \
	X(MPI_MAXLOC) X(MPI_MINLOC) X(MPI_REPLACE) X(MPI_NO_OP)
/* clang-format on */

#define CASE(x, ...)                                                                                         \
	case __COUNTER__ - base:                                                                             \
		return x;
#define MATCH(x, ...)                                                                                        \
	n++;                                                                                                 \
	if (t == x)                                                                                          \
		return n;
#define ATOMS(x, a, b) { PX_ATOM_##a, PX_ATOM_##b },

MPI_Datatype px_basic(uint32_t code)
{
	enum { base = __COUNTER__ }; /* numbers begin with 1 */

	switch (code) {
		BASIC(CASE)
	default:
		return MPI_DATATYPE_NULL;
	}
}

static uint32_t code_of(MPI_Datatype t)
{
	uint32_t n = 0;

	BASIC(MATCH)
	return 0;
}

uint32_t px_basic_code(MPI_Datatype t, MPI_Count *bytes)
{
	uint32_t code = t == MPI_DATATYPE_NULL ? 0 : code_of(t);

	*bytes = 1;
	if (code != 0)
		return code;
	if (px_n.Type_size_x(t, bytes) != MPI_SUCCESS)
		*bytes = 0;
	return 1;
}

MPI_Op px_op_of(uint32_t code)
{
	enum { base = __COUNTER__ };

	switch (code) {
		OPS(CASE)
	default:
		return MPI_OP_NULL;
	}
}

uint32_t px_op_code(MPI_Op t)
{
	uint32_t n = 0;

	OPS(MATCH)
	return 0;
}

/* Atoms of the basic types, by code; PX_ATOM_COUNT: there is no second one. */
static const enum px_atom atoms[][2] = { { PX_ATOM_COUNT, PX_ATOM_COUNT }, BASIC(ATOMS) };

/* rep more of a basic type: a complex type is twice the same, a pair is not. */
static int sig_add(struct px_sig *s, const enum px_atom *a, uint64_t n)
{
	int rc = PX_OK;

	if (a[1] == PX_ATOM_COUNT)
		return px_sig_add(s, a[0], n);
	if (a[0] == a[1])
		return px_sig_add(s, a[0], 2 * n);
	for (; n > 0 && rc == PX_OK; n--) {
		rc = px_sig_add(s, a[0], 1);
		if (rc == PX_OK)
			rc = px_sig_add(s, a[1], 1);
	}
	return rc;
}

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
		rc = sig_add(m->sig, atoms[m->run[i].code], (uint64_t)(m->run[i].count * m->run[i].rep));
	if (m->sig && rc != PX_OK) {
		px_sig_free(m->sig);
		free(m->sig);
		m->sig = NULL;
	}
	return m->sig;
}

static MPI_Count basic_extent(uint32_t code)
{
	return px_type_get(px_basic(code))->extent;
}

/* Can `next` be told as more of the same as the last run? */
static bool join(struct px_run *last, const struct px_run *next)
{
	if (last->code != next->code || next->rep != 1)
		return false;
	if (last->rep == 1 && next->offset == last->offset + last->count * basic_extent(last->code)) {
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
	if (run->count == 0 || run->rep == 0 || (m->n > 0 && join(&m->run[m->n - 1], run)))
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
	struct px_typemap *m, const struct px_typemap *inner, MPI_Aint at, MPI_Count n, MPI_Count extent)
{
	const struct px_run *one = inner->run;
	int rc = MPI_SUCCESS;

	if (inner->n == 1 && one->rep == 1 && n > 0) {
		struct px_run run = *one;

		run.offset += at;
		if (one->count * basic_extent(one->code) == extent) {
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

static bool basic(const struct contents *c)
{
	return c->combiner == MPI_COMBINER_NAMED || c->combiner == MPI_COMBINER_F90_REAL ||
	       c->combiner == MPI_COMBINER_F90_INTEGER || c->combiner == MPI_COMBINER_F90_COMPLEX;
}

static void contents_free(struct contents *c)
{
	for (MPI_Count i = 0; c->type && i < c->nd; i++) {
		struct contents inner;

		if (c->type[i] != MPI_DATATYPE_NULL && envelope(c->type[i], &inner) == MPI_SUCCESS &&
			!basic(&inner))
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
	MPI_Count block = arg;

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
	MPI_Count order = c->num[c->ni - 1], stride = 1, procs = 1, rank = sub ? 0 : c->num[1];
	struct dim *dim = calloc((size_t)n + 1, sizeof *dim);
	int rc = dim ? MPI_SUCCESS : MPI_ERR_NO_MEM;

	for (MPI_Count i = 0; i < n && !sub; i++)
		procs *= rest[2 * n + i];
	/* dim[0] varies slowest: the first of C, the last of Fortran. */
	for (MPI_Count i = 0; i < n && rc == MPI_SUCCESS; i++) {
		MPI_Count k = order == MPI_ORDER_C ? i : n - 1 - i;

		dim[i].index = malloc((size_t)(sizes[k] + 1) * sizeof *dim[i].index);
		if (!dim[i].index)
			rc = MPI_ERR_NO_MEM;
		else if (sub)
			for (MPI_Count j = 0; j < subsizes[k]; j++)
				dim[i].index[dim[i].n++] = starts[k] + j;
	}
	for (MPI_Count k = 0; k < n && rc == MPI_SUCCESS && !sub; k++) { /* processes are in C order always */
		procs /= rest[2 * n + k];
		distribute(&dim[order == MPI_ORDER_C ? k : n - 1 - k], sizes[k], rest[k], rest[n + k],
			rest[2 * n + k], rank / procs);
		rank %= procs;
	}
	for (MPI_Count i = n - 1; i >= 0 && rc == MPI_SUCCESS; i--) {
		dim[i].stride = stride;
		stride *= sizes[order == MPI_ORDER_C ? i : n - 1 - i];
	}
	if (rc == MPI_SUCCESS)
		rc = array_walk(m, inner, extent, dim, (int)n, 0);
	for (MPI_Count i = 0; dim && i < n; i++)
		free(dim[i].index);
	free(dim);
	return rc;
}

/* Counts and displacements of the constructors that place blocks: block i has *len elements at *at bytes. */
static void block(const struct contents *c, MPI_Count extent, MPI_Count i, MPI_Count *len, MPI_Aint *at)
{
	const MPI_Count *v = c->large ? c->num + c->ni : c->num, n = v[0];

	switch (c->combiner) {
	case MPI_COMBINER_CONTIGUOUS:
		*len = n;
		*at = 0;
		return;
	case MPI_COMBINER_VECTOR:
		*len = v[1];
		*at = (MPI_Aint)(i * v[2] * extent);
		return;
	case MPI_COMBINER_HVECTOR:
		*len = v[1];
		*at = (MPI_Aint)(i * (c->large ? v[2] : c->aint[0]));
		return;
	case MPI_COMBINER_INDEXED:
		*len = v[1 + i];
		*at = (MPI_Aint)(v[1 + n + i] * extent);
		return;
	case MPI_COMBINER_INDEXED_BLOCK:
		*len = v[1];
		*at = (MPI_Aint)(v[2 + i] * extent);
		return;
	case MPI_COMBINER_HINDEXED_BLOCK:
		*len = v[1];
		*at = (MPI_Aint)(c->large ? v[2 + i] : c->aint[i]);
		return;
	default: /* HINDEXED, STRUCT */
		*len = v[1 + i];
		*at = (MPI_Aint)(c->large ? v[1 + n + i] : c->aint[i]);
	}
}

static int map_blocks(
	struct px_typemap *m, const struct contents *c, const struct px_typemap *inner, MPI_Count extent)
{
	MPI_Count n = c->combiner == MPI_COMBINER_CONTIGUOUS ? 1 : c->num[c->large ? c->ni : 0];
	int rc = MPI_SUCCESS;

	for (MPI_Count i = 0; i < n && rc == MPI_SUCCESS; i++) {
		MPI_Count len;
		MPI_Aint at;

		block(c, extent, i, &len, &at);
		rc = repeat(m, inner, at, len, extent);
	}
	return rc;
}

static int map_struct(struct px_typemap *m, const struct contents *c, int depth)
{
	int rc = MPI_SUCCESS;

	for (MPI_Count i = 0; i < c->nd && rc == MPI_SUCCESS; i++) {
		struct px_typemap inner = { 0 };
		MPI_Count len, lb, extent = 0;
		MPI_Aint at;

		block(c, 0, i, &len, &at);
		rc = map_type(&inner, c->type[i], depth + 1);
		if (rc == MPI_SUCCESS)
			rc = px_n.Type_get_extent_x(c->type[i], &lb, &extent);
		if (rc == MPI_SUCCESS)
			rc = repeat(m, &inner, at, len, extent);
		m->foreign |= inner.foreign;
		free(inner.run);
	}
	return rc;
}

static int map_derived(struct px_typemap *m, const struct contents *c, int depth)
{
	struct px_typemap inner = { 0 };
	MPI_Count lb, extent = 0;
	int rc;

	if (c->combiner == MPI_COMBINER_STRUCT)
		return map_struct(m, c, depth);
	rc = map_type(&inner, c->type[0], depth + 1);
	if (rc == MPI_SUCCESS)
		rc = px_n.Type_get_extent_x(c->type[0], &lb, &extent);
	if (rc == MPI_SUCCESS) {
		switch (c->combiner) {
		case MPI_COMBINER_DUP:
		case MPI_COMBINER_RESIZED:
			rc = repeat(m, &inner, 0, 1, extent);
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
	struct contents c;
	int rc = envelope(t, &c);

	if (rc != MPI_SUCCESS || depth > 64)
		return rc != MPI_SUCCESS ? rc : MPI_ERR_TYPE;
	if (basic(&c)) {
		struct px_run run = { .count = 1, .rep = 1 };

		run.code = c.combiner == MPI_COMBINER_NAMED ? px_basic_code(t, &run.count)
							    : f90_code(c.combiner, t, &run.count);
		m->foreign |= run.code == 1 && t != MPI_BYTE && run.count > 0;
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

void px_typemap_free(struct px_typemap *m)
{
	if (m && m->sig)
		px_sig_free(m->sig);
	if (m) {
		free(m->sig);
		free(m->run);
	}
	free(m);
}
