/* view.c: see view.h.
 *
 * Design: a datatype is walked by its constructor; whatever is contiguous goes as one range, ranges that touch are joined.
 * Subarrays and distributed arrays are the same thing here: of each dimension the runs of indices that belong to it.
 */
#include "view.h"

#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "datatype.h"
#include "vendor.h"

struct flat {
	struct px_range *r;
	size_t n, cap;
	int rc; /* MPI error code: the first failure sticks */
};

static void emit(struct flat *f, MPI_Offset off, MPI_Offset len)
{
	if (len == 0 || f->rc != MPI_SUCCESS)
		return;
	if (f->n > 0 && f->r[f->n - 1].off + f->r[f->n - 1].len == off) {
		f->r[f->n - 1].len += len;
		return;
	}
	if (f->n == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 16;
		struct px_range *more = realloc(f->r, cap * sizeof *more);

		if (!more) {
			f->rc = MPI_ERR_NO_MEM;
			return;
		}
		f->r = more;
		f->cap = cap;
	}
	f->r[f->n++] = (struct px_range){ off, len };
}

static void flatten(struct flat *f, MPI_Datatype t, MPI_Offset at);

/* n elements of t, one after the other. */
static void block(struct flat *f, MPI_Datatype t, MPI_Offset at, MPI_Count n)
{
	const struct px_type *p = px_type_get(t);

	if (!p) {
		f->rc = MPI_ERR_TYPE;
		return;
	}
	if (p->contig) {
		emit(f, at, n * p->size);
		return;
	}
	for (MPI_Count i = 0; i < n && f->rc == MPI_SUCCESS; i++)
		flatten(f, t, at + i * p->extent);
}

/* The indices of one dimension that belong to the array's part: `len` from `first` on, every `step`, below `end`. */
struct runs {
	int first, len, step, end;
	MPI_Offset stride; /* bytes from one index to the next */
};

/* Dimensions d .. 0, d being the slowest. */
static void grid(struct flat *f, MPI_Datatype t, const struct runs *dim, int d, MPI_Offset at)
{
	const struct runs *u = &dim[d];

	for (int s = u->first; s < u->end && f->rc == MPI_SUCCESS; s += u->step) {
		int n = u->end - s < u->len ? u->end - s : u->len;

		if (d == 0)
			block(f, t, at + s * u->stride, n);
		for (int i = s; i < s + n && d > 0; i++)
			grid(f, t, dim, d - 1, at + i * u->stride);
	}
}

/* iv: ndims, sizes, subsizes, starts, order. */
static void subarray(struct flat *f, const int *iv, MPI_Datatype t, MPI_Offset at)
{
	int nd = iv[0];
	bool fortran = iv[3 * nd + 1] == MPI_ORDER_FORTRAN;
	struct runs *dim = calloc((size_t)nd, sizeof *dim);
	const struct px_type *p = px_type_get(t);
	MPI_Offset stride = p ? p->extent : 0;

	if (!dim || !p) {
		f->rc = dim ? MPI_ERR_TYPE : MPI_ERR_NO_MEM;
		free(dim);
		return;
	}
	for (int k = 0; k < nd; k++) { /* the fastest first */
		int d = fortran ? k : nd - 1 - k, size = iv[1 + d], sub = iv[1 + nd + d],
		    start = iv[1 + 2 * nd + d];

		dim[k] = (struct runs){ start, sub, size, start + sub, stride };
		stride *= size;
	}
	grid(f, t, dim, nd - 1, at);
	free(dim);
}

/* iv: size, rank, ndims, gsizes, distribs, dargs, psizes, order (MPI standard 4.1.4). */
static void darray(struct flat *f, const int *iv, MPI_Datatype t, MPI_Offset at)
{
	int nd = iv[2], rank = iv[1], procs = iv[0];
	const int *gsize = iv + 3, *how = gsize + nd, *arg = how + nd, *psize = arg + nd;
	bool fortran = psize[nd] == MPI_ORDER_FORTRAN;
	struct runs *dim = calloc((size_t)nd, sizeof *dim);
	int *coord = calloc((size_t)nd, sizeof *coord);
	const struct px_type *p = px_type_get(t);
	MPI_Offset stride = p ? p->extent : 0;

	if (!dim || !coord || !p) {
		f->rc = dim && coord ? MPI_ERR_TYPE : MPI_ERR_NO_MEM;
		goto done;
	}
	for (int d = 0; d < nd; d++) { /* the process grid is always in C order */
		procs /= psize[d];
		coord[d] = rank / procs;
		rank %= procs;
	}
	for (int k = 0; k < nd; k++) {
		int d = fortran ? k : nd - 1 - k, g = gsize[d], n = psize[d], b = arg[d];

		if (how[d] == MPI_DISTRIBUTE_NONE)
			b = g, n = 1;
		else if (b == MPI_DISTRIBUTE_DFLT_DARG)
			b = how[d] == MPI_DISTRIBUTE_BLOCK ? (g + n - 1) / n : 1;
		dim[k] = (struct runs){ coord[d] * b, b, b * n, g, stride };
		if (how[d] == MPI_DISTRIBUTE_NONE)
			dim[k].first = 0;
		stride *= g;
	}
	grid(f, t, dim, nd - 1, at);
done:
	free(dim);
	free(coord);
}

/* The constructors whose blocks have places of their own. iv, av, inner: what Type_get_contents gave. */
static void blocks(
	struct flat *f, int comb, const int *iv, const MPI_Aint *av, const MPI_Datatype *inner, MPI_Offset at)
{
	MPI_Datatype t = inner[0];
	const struct px_type *p = px_type_get(t);
	MPI_Offset ext = p ? p->extent : 0;
	int n = iv[0];

	if (!p)
		f->rc = MPI_ERR_TYPE;
	for (int i = 0; i < n && f->rc == MPI_SUCCESS; i++) {
		switch (comb) {
		case MPI_COMBINER_VECTOR: /* count, blocklength, stride */
			block(f, t, at + i * iv[2] * ext, iv[1]);
			break;
		case MPI_COMBINER_HVECTOR:
			block(f, t, at + i * (MPI_Offset)av[0], iv[1]);
			break;
		case MPI_COMBINER_INDEXED: /* count, blocklengths, displacements */
			block(f, t, at + iv[1 + n + i] * ext, iv[1 + i]);
			break;
		case MPI_COMBINER_HINDEXED:
			block(f, t, at + av[i], iv[1 + i]);
			break;
		case MPI_COMBINER_INDEXED_BLOCK: /* count, blocklength, displacements */
			block(f, t, at + iv[2 + i] * ext, iv[1]);
			break;
		case MPI_COMBINER_HINDEXED_BLOCK:
			block(f, t, at + av[i], iv[1]);
			break;
		case MPI_COMBINER_STRUCT:
			block(f, inner[i], at + av[i], iv[1 + i]);
			break;
		default:
			f->rc = MPI_ERR_UNSUPPORTED_OPERATION;
		}
	}
}

static bool named(MPI_Datatype t)
{
	int ni, na, nd, comb = MPI_COMBINER_NAMED;

	px_n.Type_get_envelope(t, &ni, &na, &nd, &comb);
	return comb == MPI_COMBINER_NAMED || comb == MPI_COMBINER_F90_REAL ||
	       comb == MPI_COMBINER_F90_INTEGER || comb == MPI_COMBINER_F90_COMPLEX;
}

static void construct(
	struct flat *f, int comb, const int *iv, const MPI_Aint *av, MPI_Datatype *inner, MPI_Offset at)
{
	switch (comb) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		block(f, inner[0], at, 1);
		break;
	case MPI_COMBINER_CONTIGUOUS:
		block(f, inner[0], at, iv[0]);
		break;
	case MPI_COMBINER_SUBARRAY:
		subarray(f, iv, inner[0], at);
		break;
	case MPI_COMBINER_DARRAY:
		darray(f, iv, inner[0], at);
		break;
	default:
		blocks(f, comb, iv, av, inner, at);
	}
}

static void flatten(struct flat *f, MPI_Datatype t, MPI_Offset at)
{
	const struct px_type *p = px_type_get(t);
	int ni, na, nd, comb;
	MPI_Datatype *inner;
	MPI_Aint *av;
	int *iv;

	if (!p || px_n.Type_get_envelope(t, &ni, &na, &nd, &comb) != MPI_SUCCESS) {
		f->rc = MPI_ERR_TYPE;
		return;
	}
	if (p->contig || nd == 0) {
		emit(f, at, p->size);
		return;
	}
	iv = malloc((size_t)(ni + 1) * sizeof *iv);
	av = malloc((size_t)(na + 1) * sizeof *av);
	inner = malloc((size_t)nd * sizeof(MPI_Datatype));
	if (!iv || !av || !inner)
		f->rc = MPI_ERR_NO_MEM;
	else if (px_n.Type_get_contents(t, ni, na, nd, iv, av, inner) != MPI_SUCCESS)
		f->rc = MPI_ERR_TYPE;
	if (f->rc == MPI_SUCCESS) {
		construct(f, comb, iv, av, inner, at);
		for (int i = 0; i < nd; i++)
			if (!named(inner[i]))
				px_Type_free(&inner[i]); /* the cache of datatypes must forget it, too */
	}
	free(iv);
	free(av);
	free(inner);
}

int px_view_set(struct px_view *v, MPI_Offset disp, MPI_Datatype filetype)
{
	const struct px_type *p = px_type_get(filetype);
	struct flat f = { .rc = MPI_SUCCESS };
	struct px_view w = { .disp = disp };
	MPI_Offset sum = 0;

	if (!p)
		return MPI_ERR_TYPE;
	w.size = p->size;
	w.extent = p->extent;
	block(&f, filetype, 0, 1);
	w.before = f.rc == MPI_SUCCESS ? malloc((f.n + 1) * sizeof *w.before) : NULL;
	if (!w.before) {
		free(f.r);
		return f.rc != MPI_SUCCESS ? f.rc : MPI_ERR_NO_MEM;
	}
	w.tile = f.r;
	w.n = f.n;
	for (size_t i = 0; i < f.n; i++) {
		w.before[i] = sum;
		sum += f.r[i].len;
	}
	px_view_fini(v);
	*v = w;
	return MPI_SUCCESS;
}

void px_view_fini(struct px_view *v)
{
	free(v->tile);
	free(v->before);
	memset(v, 0, sizeof *v);
}

/* The range of a tile that holds its data byte `in`. */
static size_t range_of(const struct px_view *v, MPI_Offset in)
{
	size_t low = 0, high = v->n - 1;

	while (low < high) {
		size_t mid = (low + high + 1) / 2;

		if (v->before[mid] <= in)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

size_t px_view_walk(const struct px_view *v, MPI_Offset pos, MPI_Offset bytes, struct px_range *out,
	size_t max, MPI_Offset *got)
{
	MPI_Offset tile = v->size > 0 ? pos / v->size : 0, in = v->size > 0 ? pos % v->size : 0;
	size_t n = 0, i = v->n > 0 ? range_of(v, in) : 0;

	*got = 0;
	while (bytes > 0 && v->n > 0) {
		MPI_Offset skip = in - v->before[i], len = v->tile[i].len - skip;
		MPI_Offset off = v->disp + tile * v->extent + v->tile[i].off + skip;

		if (len > bytes)
			len = bytes;
		if (n > 0 && out[n - 1].off + out[n - 1].len == off)
			out[n - 1].len += len;
		else if (n == max)
			break;
		else
			out[n++] = (struct px_range){ off, len };
		bytes -= len;
		*got += len;
		in += len;
		if (++i == v->n) {
			i = 0;
			in = 0;
			tile++;
		}
	}
	return n;
}

MPI_Offset px_view_below(const struct px_view *v, MPI_Offset size)
{
	MPI_Offset rest, data;

	size -= v->disp;
	if (size <= 0 || v->n == 0)
		return 0;
	data = v->extent > 0 ? size / v->extent * v->size : 0;
	rest = v->extent > 0 ? size % v->extent : size;
	for (size_t i = 0; i < v->n; i++) {
		MPI_Offset in = rest - v->tile[i].off;

		if (in > 0)
			data += in < v->tile[i].len ? in : v->tile[i].len;
	}
	return data;
}

MPI_Offset px_view_place(const struct px_view *v, MPI_Offset pos)
{
	MPI_Offset tile = v->size > 0 ? pos / v->size : 0, in = v->size > 0 ? pos % v->size : 0;
	size_t i = v->n > 0 ? range_of(v, in) : 0;

	return v->n == 0 ? v->disp + pos : v->disp + tile * v->extent + v->tile[i].off + in - v->before[i];
}
