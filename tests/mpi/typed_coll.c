/*
 * typed_coll.c - collectives by value: every named datatype and random derived ones are moved, every type that has them is reduced by all its
 * operators, structures by users' ones.  Values are such that every machine's type holds them, and no operation rounds but in the last test.
 */
#include "typed.h"

#include <stddef.h>

#define COUNT 5

/* What rank a sends of m, at out; nothing at in. */
static size_t prepare(const struct made *m, int count, char **out, char **in)
{
	MPI_Aint lb, size;

	MPI_Type_get_true_extent(m->type, &lb, &size);
	size += lb + (MPI_Aint)count * chk_size * extent_of(m->type) + (MPI_Aint)sizeof(struct ldouble_int);
	*out = calloc(1, (size_t)size);
	*in = calloc(1, (size_t)size);
	return (size_t)size;
}

static int from_all(const struct made *m, const char *in, int count)
{
	int bad = 0;

	for (int r = 0; r < chk_size; r++)
		bad += wrong(m, in + r * count * extent_of(m->type), count, r);
	return bad;
}

static void moved(const struct made *m, int count, const char *name)
{
	char *out, *in;
	size_t size = prepare(m, count, &out, &in), block = (size_t)count * (size_t)extent_of(m->type);
	int root = (chk_size > 2) * (chk_size - 1), bad = 0;
	int *counts = malloc(2 * (size_t)chk_size * sizeof *counts), *displs = counts + chk_size, total = 0;

	fill(m, out, count, chk_rank);
	if (chk_rank == root)
		fill(m, in, count, root);
	MPI_Bcast(in, count, m->type, root, MPI_COMM_WORLD);
	bad += wrong(m, in, count, root);
	memset(in, 0, size);
	MPI_Gather(out, count, m->type, in, count, m->type, root, MPI_COMM_WORLD);
	bad += chk_rank == root ? from_all(m, in, count) : 0;
	memset(in, 0, size);
	MPI_Allgather(out, count, m->type, in, count, m->type, MPI_COMM_WORLD);
	bad += from_all(m, in, count);
	for (int r = chk_size - 1; r >= 0;
		r--) { /* rank r sends the first of its elements, the last rank nothing */
		counts[r] = r == chk_size - 1 ? 0 : 1 + r % count;
		displs[r] = total;
		total += counts[r];
	}
	memset(in, 0, size);
	MPI_Allgatherv(out, counts[chk_rank], m->type, in, counts, displs, m->type, MPI_COMM_WORLD);
	for (int r = 0; r < chk_size; r++)
		bad += wrong(m, in + displs[r] * extent_of(m->type), counts[r], r);
	for (int r = 0; r < chk_size; r++)
		fill(m, out + (size_t)r * block, count, chk_rank + 17 * r);
	memset(in, 0, size);
	MPI_Scatter(out, count, m->type, in, count, m->type, root, MPI_COMM_WORLD);
	bad += wrong(m, in, count, root + 17 * chk_rank);
	memset(in, 0, size);
	MPI_Alltoall(out, count, m->type, in, count, m->type, MPI_COMM_WORLD);
	for (int r = 0; r < chk_size; r++)
		bad += wrong(m, in + (size_t)r * block, count, r + 17 * chk_rank);
	if (bad)
		chk_report(__FILE__, __LINE__, "%s: %d elements wrong", name, bad);
	CHECK(bad == 0);
	free(counts);
	free(out);
	free(in);
}

static void named(void)
{
	struct made *m = calloc(1, sizeof *m);

	m->n = 1;
	for (m->place[0].b = 0; m->place[0].b < nbasic; m->place[0].b++) {
		m->type = basic[m->place[0].b].type;
		moved(m, COUNT, basic[m->place[0].b].name);
	}
	free(m);
}

static void derived(unsigned seed)
{
	struct made *m = malloc(sizeof *m);
	char name[32];

	state = seed;
	make(m, 1 + (int)(seed % 3), 0);
	MPI_Type_commit(&m->type);
	snprintf(name, sizeof name, "seed %u", seed);
	moved(m, seed % 2 ? 1 : 4, name); /* MPICH 4.0.2 truncates some of 5 KB that it gathers */
	MPI_Type_free(&m->type);
	free(m);
}

/* Reductions: each type with its C type, and the operators of its kind. */
enum operator{ SUM, PROD, MAX, MIN, BAND, BOR, BXOR, LAND, LOR, LXOR, OPERATORS };
static MPI_Op op_of(int o)
{
	const MPI_Op ops[] = { MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND,
		MPI_LOR, MPI_LXOR };

	return ops[o];
}

/* What rank r has at place i: small numbers, zero among them where they are true or false; for products 1 and 2. */
static int term(int o, int r, int i)
{
	return o == PROD ? 1 + (r + i) % 2 : o >= LAND ? (r + i) % 3 != 0 : (r * 7 + i * 5) % 11;
}

#define ARITHMETIC(a, b)                                                                                     \
	case SUM:                                                                                            \
		return a + b;                                                                                \
	case PROD:                                                                                           \
		return a * b;
#define COMPARED(a, b)                                                                                       \
	case MAX:                                                                                            \
		return a > b ? a : b;                                                                        \
	case MIN:                                                                                            \
		return a < b ? a : b;
#define LOGIC(a, b)                                                                                          \
	case LAND:                                                                                           \
		return a && b;                                                                               \
	case LOR:                                                                                            \
		return a || b;                                                                               \
	case LXOR:                                                                                           \
		return !a != !b;
#define BITS(a, b)                                                                                           \
	case BAND:                                                                                           \
		return a & b;                                                                                \
	case BOR:                                                                                            \
		return a | b;                                                                                \
	case BXOR:                                                                                           \
		return a ^ b;

/* Of small whole numbers, which all types hold: integers, floating point, complex numbers, truths, bytes. */
static int apply(int o, int a, int b)
{
	switch (o) {
		ARITHMETIC(a, b)
		COMPARED(a, b)
		LOGIC(a, b)
		BITS(a, b)
	}
	return 0;
}

#define KIND(first, last) ((1u << ((last) + 1)) - (1u << (first)))
#define INTEGERS          KIND(SUM, LXOR)
#define FORTRAN_INTEGERS  KIND(SUM, BXOR)
#define FLOATING          KIND(SUM, MIN)
#define COMPLEX           KIND(SUM, PROD)
#define TRUTHS            KIND(LAND, LXOR)
#define BYTES             KIND(BAND, BXOR)

#define REDUCED(X)                                                                                           \
	X(MPI_SIGNED_CHAR, signed char, INTEGERS)                                                            \
	X(MPI_UNSIGNED_CHAR, unsigned char, INTEGERS)                                                        \
	X(MPI_SHORT, short, INTEGERS)                                                                        \
	X(MPI_UNSIGNED_SHORT, unsigned short, INTEGERS)                                                      \
	X(MPI_INT, int, INTEGERS)                                                                            \
	X(MPI_UNSIGNED, unsigned, INTEGERS)                                                                  \
	X(MPI_LONG, long, INTEGERS)                                                                          \
	X(MPI_UNSIGNED_LONG, unsigned long, INTEGERS)                                                        \
	X(MPI_LONG_LONG, long long, INTEGERS)                                                                \
	X(MPI_UNSIGNED_LONG_LONG, unsigned long long, INTEGERS)                                              \
	X(MPI_INT8_T, int8_t, INTEGERS)                                                                      \
	X(MPI_INT16_T, int16_t, INTEGERS)                                                                    \
	X(MPI_INT32_T, int32_t, INTEGERS)                                                                    \
	X(MPI_INT64_T, int64_t, INTEGERS)                                                                    \
	X(MPI_UINT8_T, uint8_t, INTEGERS)                                                                    \
	X(MPI_UINT16_T, uint16_t, INTEGERS)                                                                  \
	X(MPI_UINT32_T, uint32_t, INTEGERS)                                                                  \
	X(MPI_UINT64_T, uint64_t, INTEGERS)                                                                  \
	X(MPI_AINT, MPI_Aint, FORTRAN_INTEGERS)                                                              \
	X(MPI_OFFSET, MPI_Offset, FORTRAN_INTEGERS)                                                          \
	X(MPI_COUNT, MPI_Count, FORTRAN_INTEGERS)                                                            \
	X(MPI_INTEGER, int, FORTRAN_INTEGERS)                                                                \
	X(MPI_INTEGER1, int8_t, FORTRAN_INTEGERS)                                                            \
	X(MPI_INTEGER2, int16_t, FORTRAN_INTEGERS)                                                           \
	X(MPI_INTEGER4, int32_t, FORTRAN_INTEGERS)                                                           \
	X(MPI_INTEGER8, int64_t, FORTRAN_INTEGERS)                                                           \
	X(MPI_FLOAT, float, FLOATING)                                                                        \
	X(MPI_DOUBLE, double, FLOATING)                                                                      \
	X(MPI_LONG_DOUBLE, long double, FLOATING)                                                            \
	X(MPI_REAL, float, FLOATING)                                                                         \
	X(MPI_DOUBLE_PRECISION, double, FLOATING)                                                            \
	X(MPI_REAL4, float, FLOATING)                                                                        \
	X(MPI_REAL8, double, FLOATING)                                                                       \
	X(MPI_C_FLOAT_COMPLEX, float complex, COMPLEX)                                                       \
	X(MPI_C_DOUBLE_COMPLEX, double complex, COMPLEX)                                                     \
	X(MPI_C_LONG_DOUBLE_COMPLEX, long double complex, COMPLEX)                                           \
	X(MPI_COMPLEX, float complex, COMPLEX)                                                               \
	X(MPI_DOUBLE_COMPLEX, double complex, COMPLEX)                                                       \
	X(MPI_C_BOOL, bool, TRUTHS)                                                                          \
	X(MPI_LOGICAL, int, TRUTHS)                                                                          \
	X(MPI_BYTE, unsigned char, BYTES)

#define SET(t, ctype, ops)                                                                                   \
	static void set_##t(void *p, int i, int v)                                                           \
	{                                                                                                    \
		((ctype *)p)[i] = (ctype)v;                                                                  \
	}                                                                                                    \
	static int is_##t(const void *p, int i, int v)                                                       \
	{                                                                                                    \
		return ((const ctype *)p)[i] == (ctype)v;                                                    \
	}
REDUCED(SET)

struct kind {
	const char *name;
	MPI_Datatype type;
	unsigned ops;
	void (*set)(void *p, int i, int v);
	int (*is)(const void *p, int i, int v);
};

/* The i-th result of ranks [0, last]. */
static int result(int o, int last, int i)
{
	int v = term(o, 0, i);

	for (int r = 1; r <= last; r++)
		v = apply(o, v, term(o, r, i));
	return v;
}

static int results(const struct kind *k, int o, int last, const void *p, int first)
{
	int bad = 0;

	for (int i = 0; i < COUNT; i++)
		bad += !k->is(p, i, result(o, last, first + i));
	return bad;
}

/* all: by every collective that reduces, else by one. */
static void reduced(const struct kind *k, int o, int all)
{
	size_t size = (size_t)COUNT * (size_t)chk_size * sizeof(long double complex);
	void *in = calloc(1, size), *out = calloc(1, size);
	int root = chk_size - 1, bad;

	for (int i = 0; i < COUNT * chk_size; i++)
		k->set(out, i, term(o, chk_rank, i));
	MPI_Allreduce(out, in, COUNT, k->type, op_of(o), MPI_COMM_WORLD);
	bad = results(k, o, chk_size - 1, in, 0);
	if (all) {
		MPI_Reduce(out, in, COUNT, k->type, op_of(o), root, MPI_COMM_WORLD);
		bad += chk_rank == root ? results(k, o, chk_size - 1, in, 0) : 0;
		MPI_Scan(out, in, COUNT, k->type, op_of(o), MPI_COMM_WORLD);
		bad += results(k, o, chk_rank, in, 0);
		MPI_Reduce_scatter_block(out, in, COUNT, k->type, op_of(o), MPI_COMM_WORLD);
		bad += results(k, o, chk_size - 1, in, COUNT * chk_rank);
	}
	if (bad)
		chk_report(__FILE__, __LINE__, "%s, operator %d: %d results wrong", k->name, o, bad);
	CHECK(bad == 0);
	free(in);
	free(out);
}

static void predefined(void)
{
#define KIND_ROW(t, ctype, ops) { #t, t, ops, set_##t, is_##t },
	const struct kind kinds[] = { REDUCED(KIND_ROW) };

	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (int o = 0; o < OPERATORS; o++)
			if (kinds[k].ops >> o & 1)
				reduced(&kinds[k], o, o == SUM);
}

/* Least and greatest with their places; the lower place where two are equal. */
#define LOCATED(X)                                                                                           \
	X(MPI_SHORT_INT, struct short_int)                                                                   \
	X(MPI_LONG_INT, struct long_int)                                                                     \
	X(MPI_FLOAT_INT, struct float_int)                                                                   \
	X(MPI_DOUBLE_INT, struct double_int)                                                                 \
	X(MPI_LONG_DOUBLE_INT, struct ldouble_int)                                                           \
	X(MPI_2INT, struct two_int)                                                                          \
	X(MPI_2INTEGER, struct two_int)                                                                      \
	X(MPI_2REAL, struct two_float)                                                                       \
	X(MPI_2DOUBLE_PRECISION, struct two_double)

/* Rank r's value at place i, negative ones among them, and who has the least (sign 1) or the greatest (-1). */
static int located(int r, int i)
{
	return (r * 5 + i * 3) % 4 - 2;
}

static int winner(int i, int sign)
{
	int best = 0;

	for (int r = 1; r < chk_size; r++)
		best = sign * located(r, i) < sign * located(best, i) ? r : best;
	return best;
}

#define PLACE(t, ctype)                                                                                      \
	static void place_##t(void)                                                                          \
	{                                                                                                    \
		ctype out[COUNT], least[COUNT], most[COUNT];                                                 \
		int bad = 0;                                                                                 \
                                                                                                             \
		memset(out, 0, sizeof out);                                                                  \
		for (int i = 0; i < COUNT; i++) {                                                            \
			out[i].v = (__typeof__(out->v))located(chk_rank, i);                                 \
			out[i].i = (__typeof__(out->i))chk_rank;                                             \
		}                                                                                            \
		MPI_Allreduce(out, least, COUNT, t, MPI_MINLOC, MPI_COMM_WORLD);                             \
		MPI_Allreduce(out, most, COUNT, t, MPI_MAXLOC, MPI_COMM_WORLD);                              \
		for (int i = 0; i < COUNT; i++) {                                                            \
			int low = winner(i, 1), high = winner(i, -1);                                        \
                                                                                                             \
			bad += least[i].v != located(low, i) || least[i].i != low;                           \
			bad += most[i].v != located(high, i) || most[i].i != high;                           \
		}                                                                                            \
		if (bad)                                                                                     \
			chk_report(__FILE__, __LINE__, #t ": %d places wrong", bad);                         \
		CHECK(bad == 0);                                                                             \
	}
LOCATED(PLACE)

static void places(void)
{
#define DO_PLACE(t, ctype) place_##t();
	LOCATED(DO_PLACE)
}

/* Users' operators on a structure with a long in it: x -> a x + b, one after the other, which does not commute; or the sums of the parts. */
struct line {
	char tag;
	long a;
	short b;
	long double d;
};

static struct line line_of(int r, int i)
{
	struct line x = { 'x', 1 + (r + i) % 2, (short)((r * 3 + i) % 5 - 2), r / 4.0L };

	return x;
}

static struct line then(struct line x, struct line y)
{
	struct line z = { 'x', x.a * y.a, (short)(y.a * x.b + y.b), x.d + y.d };

	return z;
}

static struct line plus(struct line x, struct line y)
{
	struct line z = { 'x', x.a + y.a, (short)(x.b + y.b), x.d + y.d };

	return z;
}

static void then_op(void *in, void *inout, int *len, MPI_Datatype *t)
{
	struct line *x = in, *y = inout;

	(void)t;
	for (int i = 0; i < *len; i++)
		y[i] = then(x[i], y[i]);
}

static void plus_op(void *in, void *inout, int *len, MPI_Datatype *t)
{
	struct line *x = in, *y = inout;

	(void)t;
	for (int i = 0; i < *len; i++)
		y[i] = plus(x[i], y[i]);
}

static int lines(const struct line *p, int last, int first, struct line (*f)(struct line, struct line))
{
	int bad = 0;

	for (int i = 0; i < COUNT; i++) {
		struct line x = line_of(0, first + i);

		for (int r = 1; r <= last; r++)
			x = f(x, line_of(r, first + i));
		bad += p[i].tag != x.tag || p[i].a != x.a || p[i].b != x.b || p[i].d != x.d;
	}
	return bad;
}

static void own(MPI_User_function *function, int commute, struct line (*f)(struct line, struct line))
{
	int one[4] = { 1, 1, 1, 1 }, root = chk_size / 2;
	MPI_Aint at[4] = { offsetof(struct line, tag), offsetof(struct line, a), offsetof(struct line, b),
		offsetof(struct line, d) };
	MPI_Datatype types[4] = { MPI_CHAR, MPI_LONG, MPI_SHORT, MPI_LONG_DOUBLE }, bare, t;
	struct line *out = calloc((size_t)(COUNT * chk_size), sizeof *out), in[COUNT];
	MPI_Op op;

	MPI_Type_create_struct(4, one, at, types, &bare);
	MPI_Type_create_resized(bare, 0, sizeof(struct line), &t);
	MPI_Type_commit(&t);
	MPI_Op_create(function, commute, &op);
	for (int i = 0; i < COUNT * chk_size; i++)
		out[i] = line_of(chk_rank, i);
	MPI_Allreduce(out, in, COUNT, t, op, MPI_COMM_WORLD);
	CHECK_EQ(lines(in, chk_size - 1, 0, f), 0);
	MPI_Reduce(out, in, COUNT, t, op, root, MPI_COMM_WORLD);
	CHECK(chk_rank != root || lines(in, chk_size - 1, 0, f) == 0);
	MPI_Scan(out, in, COUNT, t, op, MPI_COMM_WORLD);
	CHECK_EQ(lines(in, chk_rank, 0, f), 0);
	MPI_Exscan(out, in, COUNT, t, op, MPI_COMM_WORLD);
	CHECK(chk_rank == 0 || lines(in, chk_rank - 1, 0, f) == 0);
	MPI_Reduce_scatter_block(out, in, COUNT, t, op, MPI_COMM_WORLD);
	CHECK_EQ(lines(in, chk_size - 1, COUNT * chk_rank, f), 0);
	MPI_Op_free(&op);
	MPI_Type_free(&t);
	MPI_Type_free(&bare);
	free(out);
}

/* A sum that rounds has the same bits at all ranks whose machines are alike, and nearly the same at the others. */
static void rounded(void)
{
	const int one = 1, mine[3] = { *(const char *)&one, sizeof(long), LDBL_MANT_DIG };
	int(*facts)[3] = malloc((size_t)chk_size * sizeof *facts);
	double out[COUNT], in[COUNT], *all = malloc((size_t)chk_size * sizeof in);

	for (int i = 0; i < COUNT; i++)
		out[i] = 1.0 / (3 + chk_rank + i);
	MPI_Allreduce(out, in, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allgather(mine, 3, MPI_INT, facts, 3, MPI_INT, MPI_COMM_WORLD);
	MPI_Allgather(in, COUNT, MPI_DOUBLE, all, COUNT, MPI_DOUBLE, MPI_COMM_WORLD);
	for (int r = 0; r < chk_size; r++)
		for (int i = 0; i < COUNT; i++) {
			double off = all[r * COUNT + i] / in[i] - 1;

			if (memcmp(facts[r], mine, sizeof mine) == 0)
				CHECK(memcmp(&all[r * COUNT + i], &in[i], sizeof *in) == 0);
			CHECK(off < chk_size * DBL_EPSILON && off > -chk_size * DBL_EPSILON);
		}
	free(facts);
	free(all);
}

int main(int argc, char **argv)
{
	unsigned types;

	chk_begin(&argc, &argv, "typed_coll", 2);
	types = (unsigned)chk_arg(argc, argv, 1, 12); /* random ones */
	basics();
	named();
	for (unsigned seed = 1; seed <= types; seed++)
		derived(seed);
	predefined();
	places();
	own(then_op, 0, then);
	own(plus_op, 1, plus);
	rounded();
	return chk_end();
}
