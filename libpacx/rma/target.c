/* target.c: what operations do to the memory of this rank. See rma.h; nothing here sends or waits. */
#include <stdlib.h>
#include <string.h>

#include "basic.h"
#include "datatype.h"
#include "endian.h"
#include "rma.h"
#include "typemap.h"
#include "vendor.h"

#define SCRATCH 4096
#define ALIGNED 16 /* enough for every basic type */

/* A run as it comes in a message. */
static struct px_run run_get(const uint8_t *p)
{
	return (struct px_run){ .code = px_get32(p),
		.offset = (MPI_Count)px_get64(p + 8),
		.stride = (MPI_Count)px_get64(p + 16),
		.count = (MPI_Count)px_get64(p + 24),
		.rep = (MPI_Count)px_get64(p + 32) };
}

/* [low, high) grows by `steps` further copies of itself, each `step` bytes on. */
static void stretch(int64_t *low, int64_t *high, int64_t steps, int64_t step)
{
	if (step < 0)
		*low += steps * step;
	else
		*high += steps * step;
}

enum px_rma_error px_rma_span(
	const struct px_rma_layout *at, const struct px_repr *as, int64_t *low, int64_t *high)
{
	*low = *high = 0;
	for (uint32_t i = 0; i < at->nruns; i++) {
		struct px_run run = run_get(at->runs + i * PX_RMA_RUN);
		MPI_Count extent, touched;
		unsigned align;
		int64_t from, to;

		if (!px_basic_shape(run.code, as, &extent, &touched, &align))
			return PX_RMA_ETYPE;
		from = run.offset;
		to = from + touched + (run.count - 1) * extent;
		stretch(&from, &to, run.rep - 1, run.stride);
		if (i == 0 || from < *low)
			*low = from;
		if (i == 0 || to > *high)
			*high = to;
	}
	if (at->nruns > 0 && at->count > 0)
		stretch(low, high, (int64_t)at->count - 1, at->extent);
	return PX_RMA_OK;
}

/* The address that an origin means: on machines of 32 bits MPI_Aint is negative in the upper half of memory, for origins of 64 bits, too. It may
 * be one that no pointer here can hold. */
static uint64_t address_of(int64_t disp)
{
	return UINTPTR_MAX == UINT32_MAX && disp < 0 && disp >= INT32_MIN ? (uint32_t)disp : (uint64_t)disp;
}

/* Is [low, high) in memory that has been attached to a dynamic window? */
static bool attached(const struct px_win *w, uint64_t low, uint64_t high)
{
	for (const struct px_rma_region *r = w->regions; r; r = r->next) {
		uint64_t base = (uintptr_t)r->base;

		if (low >= base && low <= high && high <= base + (uint64_t)r->size)
			return true;
	}
	return false;
}

enum px_rma_error px_rma_place(
	struct px_win *w, const struct px_rma_head *h, const uint8_t *runs, struct px_rma_layout *at)
{
	bool dynamic = w->flavor == MPI_WIN_FLAVOR_DYNAMIC;
	uint64_t address = address_of(h->disp);
	int64_t low, high;
	enum px_rma_error e;

	*at = (struct px_rma_layout){ NULL, h->count, h->extent, h->nruns, runs };
	e = px_rma_span(at, NULL, &low, &high);
	if (e != PX_RMA_OK)
		return e;
	if (dynamic)
		at->base = (char *)(uintptr_t)address;
	else
		at->base = w->base + h->disp * w->disp_unit;
	if (low == high)
		return PX_RMA_OK;
	if (dynamic ? !attached(w, address + (uint64_t)low, address + (uint64_t)high)
		    : at->base + low < w->base || at->base + high > w->base + w->size)
		return PX_RMA_ERANGE;
	return PX_RMA_OK;
}

bool px_rma_contiguous(const struct px_rma_layout *at)
{
	struct px_run run;
	const struct px_type *p;

	if (at->nruns != 1)
		return at->nruns == 0;
	run = run_get(at->runs);
	p = px_type_get(px_basic(run.code));
	return p->contig && run.offset == 0 && run.rep == 1 &&
	       (at->count == 1 || at->extent == run.count * p->size);
}

/* A piece: n basic elements next to each other in memory, and their packed bytes. */
struct piece {
	char *addr;
	char *packed;
	MPI_Count n;
	MPI_Datatype t;
	const struct px_type *p;
	MPI_Op op;
};

static void piece_in(const struct piece *e)
{
	px_type_unpack(e->packed, (uint64_t)(e->n * e->p->size), e->addr, e->n, e->t);
}

static void piece_out(const struct piece *e)
{
	px_type_pack(e->addr, e->n, e->t, e->packed);
}

static bool aligned(const void *p)
{
	return (uintptr_t)p % ALIGNED == 0;
}

/* The vendor's operators may count on alignment; what is not aligned goes through scratch memory. */
static void piece_combine(const struct piece *e)
{
	_Alignas(ALIGNED) char in[SCRATCH], out[SCRATCH];
	MPI_Count step = SCRATCH / e->p->extent;
	bool natural = (uintptr_t)e->addr % (e->p->elem ? e->p->elem : ALIGNED) == 0;

	if (e->p->contig && natural && aligned(e->packed) && e->n <= SCRATCH * (MPI_Count)SCRATCH) {
		px_n.Reduce_local(e->packed, e->addr, (int)e->n, e->t, e->op);
		return;
	}
	for (MPI_Count i = 0; i < e->n; i += step) {
		MPI_Count n = e->n - i < step ? e->n - i : step;
		char *addr = e->addr + i * e->p->extent;
		size_t bytes = (size_t)((n - 1) * e->p->extent + e->p->true_extent);

		px_type_unpack(e->packed + i * e->p->size, (uint64_t)(n * e->p->size), in, n, e->t);
		memcpy(out, addr, bytes);
		px_n.Reduce_local(in, out, (int)n, e->t, e->op);
		memcpy(addr, out, bytes);
	}
}

/* Call fn for each piece of the layout, in type map order, until `bytes` bytes are used up. */
static void walk(const struct px_rma_layout *at, void *packed, uint64_t bytes, MPI_Op op,
	void (*fn)(const struct piece *))
{
	struct piece e = { .packed = packed, .op = op };

	for (uint64_t k = 0; k < at->count && bytes > 0; k++) {
		char *base = at->base + (int64_t)k * at->extent;

		for (uint32_t i = 0; i < at->nruns && bytes > 0; i++) {
			struct px_run run = run_get(at->runs + i * PX_RMA_RUN);

			e.t = px_basic(run.code);
			e.p = px_type_get(e.t);
			for (MPI_Count r = 0; r < run.rep && bytes > 0; r++) {
				MPI_Count rest = (MPI_Count)(bytes / (uint64_t)e.p->size);

				e.addr = base + run.offset + r * run.stride;
				e.n = run.count < rest ? run.count : rest;
				if (e.n == 0)
					return; /* a part of an element: no correct program sends it */
				fn(&e);
				e.packed += e.n * e.p->size;
				bytes -= (uint64_t)(e.n * e.p->size);
			}
		}
	}
}

void px_rma_gather(const struct px_rma_layout *from, void *out, uint64_t bytes)
{
	walk(from, out, bytes, MPI_OP_NULL, piece_out);
}

static void *no_const(const void *p)
{
	void *q;

	memcpy(&q, &p, sizeof q); /* pieces that only read share their struct with those that write */
	return q;
}

void px_rma_scatter(const struct px_rma_layout *to, const void *in, uint64_t bytes)
{
	walk(to, no_const(in), bytes, MPI_OP_NULL, piece_in);
}

void px_rma_combine(const struct px_rma_layout *to, const void *in, uint64_t bytes, uint8_t code)
{
	MPI_Op op = px_op_of(code);

	if (op == MPI_REPLACE)
		px_rma_scatter(to, in, bytes);
	else if (op != MPI_NO_OP)
		walk(to, no_const(in), bytes, op, piece_combine);
}

void px_rma_swap(const struct px_rma_layout *to, const void *data, uint64_t size, void *old)
{
	px_rma_gather(to, old, size);
	if (memcmp(old, data, size) == 0)
		px_rma_scatter(to, (const char *)data + size, size);
}
