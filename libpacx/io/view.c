/* view.c: see view.h. Ranges that touch are joined. */
#include "view.h"

#include <stdlib.h>
#include <string.h>

#include "basic.h"
#include "datatype.h"
#include "typemap.h"
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

/* The ranges of one tile. */
static void flatten(struct flat *f, const struct px_typemap *m, MPI_Count *data)
{
	for (int i = 0; i < m->n && f->rc == MPI_SUCCESS; i++) {
		const struct px_run *u = &m->run[i];
		MPI_Count size[2], at[2], extent, touched;
		int n = px_basic_parts(u->code, m->as, size, at);
		unsigned align;
		bool whole;

		if (n == 0 || !px_basic_shape(u->code, m->as, &extent, &touched, &align)) {
			f->rc = MPI_ERR_TYPE;
			return;
		}
		whole = n == 1 && size[0] == extent;
		for (MPI_Count k = 0; k < u->rep && f->rc == MPI_SUCCESS; k++) {
			MPI_Offset from = u->offset + k * u->stride;

			for (MPI_Count c = 0; c < (whole ? 1 : u->count); c++)
				for (int p = 0; p < n; p++)
					emit(f, from + c * extent + at[p],
						whole ? u->count * extent : size[p]);
		}
		*data += u->rep * u->count * (size[0] + (n == 2 ? size[1] : 0));
	}
}

int px_view_set(struct px_view *v, MPI_Offset disp, MPI_Datatype filetype, const struct px_repr *as)
{
	const struct px_type *p = px_type_get(filetype);
	const struct px_typemap *m = as ? px_typemap_there(filetype, as) : px_typemap_get(filetype);
	struct flat f = { .rc = MPI_SUCCESS };
	struct px_view w = { .disp = disp };
	MPI_Offset sum = 0;

	if (!p || !m)
		return p ? MPI_ERR_NO_MEM : MPI_ERR_TYPE;
	w.extent = px_typemap_extent(m, filetype);
	flatten(&f, m, &w.size);
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
