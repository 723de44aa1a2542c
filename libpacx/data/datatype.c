/* datatype.c: see datatype.h.
 *
 * Design: PMPI_Pack of both vendors writes no header and gives the bytes of the type map in order
 * (measured), so packing is theirs. Whether a type is contiguous is found by
 * its constructor where that is enough, otherwise by packing one element whose bytes tell their place, or, where that would be many, from
 * its type map.
 */
#include "datatype.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "basic.h"
#include "bind.h"
#include "map.h"
#include "typemap.h"
#include "vendor.h"

#define PROBE_MAX  (16 << 20) /* so many bytes are packed to see whether a type is contiguous */
#define PACK_CHUNK (1 << 30)  /* PMPI_Pack counts bytes in int */

static struct px_map *cache;

/* A datatype or operator whose release waits for pending operations. */
struct deferred {
	struct deferred *next;
	bool is_op;
	MPI_Datatype type;
	MPI_Op op;
};
static struct deferred *deferred;
int px_types_held;

static uint64_t type_key(MPI_Datatype t)
{
	return (uint64_t)(uintptr_t)t;
}

/* Was t made with counts beyond int? The ordinary enquiry would raise an error. */
static bool large_count(MPI_Datatype t)
{
#ifdef PX_HAVE_Type_get_envelope_c
	MPI_Count ni, na, nl = 0, nd;
	int comb;

	return px_n.Type_get_envelope_c(t, &ni, &na, &nl, &nd, &comb) != MPI_SUCCESS || nl > 0;
#else
	(void)t;
	return false;
#endif
}

bool px_combiner_predefined(int combiner)
{
	return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
	       combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

static bool predefined(MPI_Datatype t)
{
	int ni, na, nd, comb = MPI_COMBINER_NAMED;

	if (large_count(t))
		return false;
	px_n.Type_get_envelope(t, &ni, &na, &nd, &comb);
	return px_combiner_predefined(comb);
}

/* Pack one element of `size` bytes whose byte i holds the k-th byte of i; unchanged for all k = in order. */
static bool packs_in_order(MPI_Datatype t, int size)
{
	unsigned char *in = malloc((size_t)size), *out = malloc((size_t)size);
	bool same = in && out;

	for (int shift = 0; same && (shift == 0 || (size - 1) >> shift != 0); shift += 8) {
		int pos = 0;

		for (int i = 0; i < size; i++)
			in[i] = (unsigned char)(i >> shift);
		same = px_n.Pack(in, 1, t, out, size, &pos, MPI_COMM_SELF) == MPI_SUCCESS && pos == size &&
		       memcmp(in, out, (size_t)size) == 0;
	}
	free(in);
	free(out);
	return same;
}

static int type_look(MPI_Datatype t, struct px_type *p);

static bool is_contiguous(MPI_Datatype t, const struct px_type *p)
{
	int ni, na, nd, comb;

	if (p->size == 0)
		return true;
	if (p->lb != 0 || p->true_lb != 0 || p->size != p->extent || p->size != p->true_extent)
		return false;
	if (px_n.Type_get_envelope(t, &ni, &na, &nd, &comb) != MPI_SUCCESS)
		return false;
	if (px_combiner_predefined(comb))
		return true; /* no gaps, and members of pair types are in order */
	if (comb == MPI_COMBINER_CONTIGUOUS || comb == MPI_COMBINER_DUP) {
		int iv[1];
		MPI_Aint av[1];
		MPI_Datatype inner;
		struct px_type p2;
		bool yes;

		if (px_n.Type_get_contents(t, ni, na, nd, iv, av, &inner) != MPI_SUCCESS)
			return false;
		yes = type_look(inner, &p2) == MPI_SUCCESS && p2.contig;
		if (!predefined(inner))
			px_n.Type_free(&inner);
		return yes;
	}
	return p->size <= PROBE_MAX ? packs_in_order(t, (int)p->size) : px_typemap_dense(t);
}

static bool is_floating(MPI_Datatype t)
{
	return t == MPI_FLOAT || t == MPI_DOUBLE || t == MPI_C_FLOAT_COMPLEX || t == MPI_C_DOUBLE_COMPLEX ||
	       t == MPI_REAL || t == MPI_DOUBLE_PRECISION || t == MPI_COMPLEX || t == MPI_DOUBLE_COMPLEX;
}

bool px_type_order_is_c(MPI_Count order)
{
#ifdef PX_ABI /* Open MPI 6.0 rc2 gives its own constants; none of them, nor of those of distributions, is one of the ABI's */
	if (order == 0)
		return true;
#endif
	return order == MPI_ORDER_C;
}

/* Size of the basic elements that t is made of, 0 = several sizes, or none that matters. *floating: left alone if they are all
 * floating-point numbers, else false. */
static unsigned element_size(MPI_Datatype t, int depth, bool *floating)
{
	int ni, na, nd, comb, size = 0;
	MPI_Datatype *inner;
	MPI_Aint *av;
	int *iv;
	unsigned e = 0;

	if (large_count(t) || px_n.Type_get_envelope(t, &ni, &na, &nd, &comb) != MPI_SUCCESS || depth > 8 ||
		nd > 64)
		return 0;
	if (comb == MPI_COMBINER_NAMED || nd == 0) {
		px_n.Type_size(t, &size);
		*floating = *floating && is_floating(t);
		if (t == MPI_C_FLOAT_COMPLEX || t == MPI_COMPLEX || t == MPI_C_DOUBLE_COMPLEX ||
			t == MPI_DOUBLE_COMPLEX)
			size /= 2;
		return size == 1 || size == 2 || size == 4 || size == 8 || size == 16 ? (unsigned)size : 0;
	}
	iv = malloc((size_t)(ni + 1) * sizeof *iv);
	av = malloc((size_t)(na + 1) * sizeof *av);
	inner = malloc((size_t)nd * sizeof(MPI_Datatype));
	if (iv && av && inner && px_n.Type_get_contents(t, ni, na, nd, iv, av, inner) == MPI_SUCCESS) {
		for (int i = 0; i < nd; i++) {
			unsigned k = element_size(inner[i], depth + 1, floating);

			e = i == 0 || k == e ? k : 0;
			if (!predefined(inner[i]))
				px_n.Type_free(&inner[i]);
		}
	}
	free(iv);
	free(av);
	free(inner);
	return e;
}

/* Fill *p from the native MPI. MPI error code. */
static int type_look(MPI_Datatype t, struct px_type *p)
{
	int rc = px_n.Type_size_x(t, &p->size);

	if (rc == MPI_SUCCESS)
		rc = px_n.Type_get_extent_x(t, &p->lb, &p->extent);
	if (rc == MPI_SUCCESS)
		rc = px_n.Type_get_true_extent_x(t, &p->true_lb, &p->true_extent);
	if (rc == MPI_SUCCESS)
		p->contig = is_contiguous(t, p);
	p->floating = true;
	if (rc == MPI_SUCCESS)
		p->elem = (uint8_t)element_size(t, 0, &p->floating);
	p->floating = p->floating && (p->elem == 4 || p->elem == 8);
	if (p->elem == 4 || p->elem == 8)
		px_shape_look(t, (uint64_t)p->size / p->elem, &p->shape);
	return rc;
}

static struct px_type *entry_of(MPI_Datatype t)
{
	struct px_type *p;

	if (t == MPI_DATATYPE_NULL || (!cache && !(cache = px_map_new())))
		return NULL;
	p = px_map_get(cache, type_key(t));
	if (p)
		return p;
	p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	if (type_look(t, p) != MPI_SUCCESS) {
		free(p);
		return NULL;
	}
	p->committed = predefined(t);
	if (px_map_put(cache, type_key(t), p) < 0) {
		free(p);
		return NULL;
	}
	return p;
}

const struct px_type *px_type_get(MPI_Datatype t)
{
	return entry_of(t);
}

int px_type_committed(MPI_Datatype t, MPI_Comm comm)
{
	struct px_type *p = entry_of(t);
	int rc = MPI_SUCCESS;
	char nothing;

	if (!p || p->committed) /* what is no type at all is found by who needs it */
		return rc;
	rc = px_n.Send(&nothing, 1, t, MPI_PROC_NULL, 0,
		comm); /* there is no call to ask, but those that communicate look */
	p->committed = rc == MPI_SUCCESS;
	return rc;
}

void px_type_keep_map(MPI_Datatype t, struct px_typemap *m)
{
	struct px_type *p = px_map_get(cache, type_key(t));

	p->map = m;
}

/* t is going to be freed: its handle may come back as another type. */
static void forget(MPI_Datatype t)
{
	struct px_type *p = cache ? px_map_del(cache, type_key(t)) : NULL;

	if (p)
		px_typemap_free(p->map);
	free(p);
}

int px_type_many(MPI_Count count, MPI_Aint displ, MPI_Datatype t, MPI_Datatype *one)
{
	const int piece = 1 << 30;
	MPI_Count whole = count / piece;
	MPI_Datatype block, part[2];
	int rc = px_n.Type_contiguous(piece, t, &block);

	if (rc != MPI_SUCCESS)
		return rc;
	rc = px_n.Type_contiguous((int)whole, block, &part[0]);
	px_n.Type_free(&block);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = px_n.Type_contiguous((int)(count % piece), t, &part[1]);
	if (rc == MPI_SUCCESS) {
		rc = px_n.Type_create_struct(2, (int[]){ 1, 1 },
			(MPI_Aint[]){ displ, displ + (MPI_Aint)(whole * piece * px_type_get(t)->extent) },
			part, one);
		px_n.Type_free(&part[1]);
	}
	px_n.Type_free(&part[0]);
	return rc == MPI_SUCCESS ? px_n.Type_commit(one) : rc;
}

/* MPICH's Pack and Unpack refuse MPI_BOTTOM: the same elements as a type relative to another address. Free *alias. */
static int from_bottom(MPI_Count n, MPI_Datatype t, char *base, MPI_Datatype *alias)
{
	MPI_Aint at;
	int count = (int)n, rc = n > INT_MAX ? MPI_ERR_COUNT : px_n.Get_address(base, &at);

	if (rc != MPI_SUCCESS)
		return rc;
	at = -at;
	rc = px_n.Type_create_hindexed(1, &count, &at, t, alias);
	return rc == MPI_SUCCESS ? px_n.Type_commit(alias) : rc;
}

static void alias_free(MPI_Datatype *alias)
{
	forget(*alias); /* by_runs may have asked for it */
	px_n.Type_free(alias);
}

static char bottom_base; /* any address will do */

/* n elements run by run of their basic types, without the vendor: those of more bytes than an int counts, and what MPICH 4.0.2 does not pack (it
 * says that it has, and that this was nothing: some types, when some 500 others are alive; measured, natively). */
static int by_runs(char *buf, MPI_Count n, MPI_Datatype t, char *packed, bool unpack)
{
	const struct px_typemap *m = px_typemap_get(t);
	MPI_Count extent = m ? px_typemap_extent(m, t) : 0;
	int rc = m ? MPI_SUCCESS : MPI_ERR_TYPE;

	for (MPI_Count e = 0; m && e < n; e++) {
		for (int i = 0; i < m->n; i++) {
			const struct px_run *u = &m->run[i];
			MPI_Datatype basic = px_basic(u->code);
			MPI_Count bytes = u->count * px_type_get(basic)->size;

			for (MPI_Count k = 0; rc == MPI_SUCCESS && k < u->rep; k++) {
				char *at = buf + e * extent + u->offset + k * u->stride;

				rc = unpack ? px_type_unpack(packed, (uint64_t)bytes, at, u->count, basic)
					    : px_type_pack(at, u->count, basic, packed);
				packed += bytes;
			}
		}
	}
	return rc;
}

/* Bytes packed or unpacked by one call: one element, if they are more than PACK_CHUNK. */
static int pack_some(const void *buf, MPI_Count n, MPI_Datatype t, void *out, MPI_Count bytes)
{
	MPI_Datatype alias;

	if (buf == MPI_BOTTOM) {
		int rc = from_bottom(n, t, &bottom_base, &alias);

		if (rc == MPI_SUCCESS) {
			rc = pack_some(&bottom_base, 1, alias, out, bytes);
			alias_free(&alias);
		}
		return rc;
	}
#ifdef PX_HAVE_Pack_c
	MPI_Count pos = 0;
	int rc = px_n.Pack_c(buf, n, t, out, bytes, &pos, MPI_COMM_SELF);
#else
	int pos = 0, rc = MPI_SUCCESS;
	if (bytes <= INT_MAX)
		rc = px_n.Pack(buf, (int)n, t, out, (int)bytes, &pos, MPI_COMM_SELF);
#endif
	return rc == MPI_SUCCESS && pos != bytes ? by_runs((char *)(uintptr_t)buf, n, t, out, false) : rc;
}

static int unpack_some(const void *in, MPI_Count bytes, void *buf, MPI_Count n, MPI_Datatype t)
{
	MPI_Datatype alias;

	if (buf == MPI_BOTTOM) {
		int rc = from_bottom(n, t, &bottom_base, &alias);

		if (rc == MPI_SUCCESS) {
			rc = unpack_some(in, bytes, &bottom_base, 1, alias);
			alias_free(&alias);
		}
		return rc;
	}
#ifdef PX_HAVE_Unpack_c
	MPI_Count pos = 0;
	int rc = px_n.Unpack_c(in, bytes, &pos, buf, n, t, MPI_COMM_SELF);
#else
	int pos = 0, rc = MPI_SUCCESS;
	if (bytes <= INT_MAX)
		rc = px_n.Unpack(in, (int)bytes, &pos, buf, (int)n, t, MPI_COMM_SELF);
#endif
	return rc == MPI_SUCCESS && pos != bytes ? by_runs(buf, n, t, (char *)(uintptr_t)in, true) : rc;
}

int px_type_pack(const void *buf, MPI_Count count, MPI_Datatype t, void *out)
{
	const struct px_type *p = px_type_get(t);
	MPI_Count step;

	if (!p)
		return MPI_ERR_TYPE;
	if (p->size == 0 || count == 0)
		return MPI_SUCCESS;
	if (p->contig) {
		memcpy(out, buf, (size_t)(count * p->size));
		return MPI_SUCCESS;
	}
	step = p->size >= PACK_CHUNK ? 1 : PACK_CHUNK / p->size;
	for (MPI_Count i = 0; i < count; i += step) {
		MPI_Count n = count - i < step ? count - i : step;
		int rc = pack_some(
			(const char *)buf + i * p->extent, n, t, (char *)out + i * p->size, n * p->size);

		if (rc != MPI_SUCCESS)
			return rc;
	}
	return MPI_SUCCESS;
}

int px_type_unpack(const void *in, uint64_t bytes, void *buf, MPI_Count count, MPI_Datatype t)
{
	const struct px_type *p = px_type_get(t);
	MPI_Count step, whole, rest;
	int rc = MPI_SUCCESS;
	char *one, *at;

	if (!p)
		return MPI_ERR_TYPE;
	if (p->size == 0 || bytes == 0)
		return MPI_SUCCESS;
	if (p->contig) {
		memcpy(buf, in, (size_t)bytes);
		return MPI_SUCCESS;
	}
	whole = (MPI_Count)bytes / p->size;
	rest = (MPI_Count)bytes % p->size;
	if (whole > count)
		return MPI_ERR_TRUNCATE;
	step = p->size >= PACK_CHUNK ? 1 : PACK_CHUNK / p->size;
	for (MPI_Count i = 0; i < whole && rc == MPI_SUCCESS; i += step) {
		MPI_Count n = whole - i < step ? whole - i : step;

		rc = unpack_some(
			(const char *)in + i * p->size, n * p->size, (char *)buf + i * p->extent, n, t);
	}
	if (rc != MPI_SUCCESS || rest == 0)
		return rc;
	/* The message ends inside an element: the bytes behind its end must stay what they are, so the
	 * whole element is packed, overwritten as far as data came, and unpacked again. */
	one = malloc((size_t)p->size);
	if (!one)
		return MPI_ERR_NO_MEM;
	at = (char *)buf + whole * p->extent;
	rc = pack_some(at, 1, t, one, p->size);
	if (rc == MPI_SUCCESS) {
		memcpy(one, (const char *)in + whole * p->size, (size_t)rest);
		rc = unpack_some(one, p->size, at, 1, t);
	}
	free(one);
	return rc;
}

static int defer(bool is_op, MPI_Datatype t, MPI_Op op)
{
	struct deferred *d = malloc(sizeof *d);

	if (!d)
		return MPI_ERR_NO_MEM;
	*d = (struct deferred){ deferred, is_op, t, op };
	deferred = d;
	return MPI_SUCCESS;
}

int px_Type_free(MPI_Datatype *t)
{
	if (px_types_held && *t != MPI_DATATYPE_NULL && !predefined(*t)) {
		int rc = defer(false, *t, MPI_OP_NULL);

		if (rc == MPI_SUCCESS)
			*t = MPI_DATATYPE_NULL;
		return rc;
	}
	forget(*t);
	return px_n.Type_free(t);
}

int px_Op_free(MPI_Op *op)
{
	if (px_types_held && *op != MPI_OP_NULL) {
		int rc = defer(true, MPI_DATATYPE_NULL, *op);

		if (rc == MPI_SUCCESS)
			*op = MPI_OP_NULL;
		return rc;
	}
	return px_n.Op_free(op);
}

void px_type_sweep(void)
{
	while (deferred) {
		struct deferred *d = deferred;

		deferred = d->next;
		if (d->is_op) {
			px_n.Op_free(&d->op);
		} else {
			forget(d->type);
			px_n.Type_free(&d->type);
		}
		free(d);
	}
}
