/*
 * typed.c - every named datatype and random nested derived ones between all pairs of ranks, by value: what is sent as a number arrives
 * as this number, whatever the machines.  Values are such that every machine's type holds them.
 */
#include "check.h"

#include <complex.h>
#include <stdbool.h>
#include <wchar.h>

#define TAG 3

/* The i-th value that rank r sends. */
static int number(int r, int i)
{
	return (r * 131 + i * 7919) % 30011 - 15000;
}

struct short_int {
	short v;
	int i;
};
struct long_int {
	long v;
	int i;
};
struct float_int {
	float v;
	int i;
};
struct double_int {
	double v;
	int i;
};
struct ldouble_int {
	long double v;
	int i;
};
struct two_int {
	int v, i;
};
struct two_float {
	float v, i;
};
struct two_double {
	double v, i;
};

/* Each basic type: name, C type, and how it holds number n; halves for floating point. */
#define PLAIN(X)                                                                                             \
	X(MPI_CHAR, char, n & 127)                                                                           \
	X(MPI_SIGNED_CHAR, signed char, n % 128) X(MPI_UNSIGNED_CHAR, unsigned char, n & 255) X(             \
		MPI_BYTE, unsigned char, n & 255) X(MPI_WCHAR, wchar_t, (n & 0x7fff)) X(MPI_SHORT, short,    \
		n) X(MPI_UNSIGNED_SHORT, unsigned short, n & 0xffff) X(MPI_INT, int,                         \
		n * 65537) X(MPI_UNSIGNED, unsigned, n) X(MPI_LONG, long, n * 65537l) X(MPI_UNSIGNED_LONG,   \
		unsigned long,                                                                               \
		(unsigned)n) X(MPI_LONG_LONG, long long, n * 281479271743489ll) X(MPI_UNSIGNED_LONG_LONG,    \
		unsigned long long, n * 281479271743489ll) X(MPI_FLOAT, float, n / 4.0f) X(MPI_DOUBLE,       \
		double, n / 3.0) X(MPI_LONG_DOUBLE, long double, n / 8.0) X(MPI_INT8_T, int8_t,              \
		n % 128) X(MPI_INT16_T, int16_t, n) X(MPI_INT32_T, int32_t, n * 65537) X(MPI_INT64_T,        \
		int64_t, n * 281479271743489ll) X(MPI_UINT8_T, uint8_t, n & 255) X(MPI_UINT16_T, uint16_t,   \
		n & 0xffff) X(MPI_UINT32_T, uint32_t, n) X(MPI_UINT64_T, uint64_t, n * 281479271743489ll)    \
		X(MPI_C_BOOL, bool, n & 1) X(MPI_AINT, MPI_Aint, n * 65537) X(MPI_COUNT, MPI_Count,          \
			n * 281479271743489ll) X(MPI_OFFSET, MPI_Offset, n * 281479271743489ll)              \
			X(MPI_C_FLOAT_COMPLEX, float complex, n / 4.0f + (n + 1) * I)                        \
				X(MPI_C_DOUBLE_COMPLEX, double complex, n / 3.0 - n * I)                     \
					X(MPI_C_LONG_DOUBLE_COMPLEX, long double complex, n / 4.0 + n * I)
#define FORTRAN(X)                                                                                           \
	X(MPI_CHARACTER, char, n & 127)                                                                      \
	X(MPI_LOGICAL, int, n & 1) X(MPI_INTEGER, int, n * 65537) X(MPI_REAL, float, n / 4.0f) X(            \
		MPI_DOUBLE_PRECISION, double, n / 3.0) X(MPI_COMPLEX, float complex, n + n / 2.0f * I)       \
		X(MPI_DOUBLE_COMPLEX, double complex, n / 3.0 - n * I) X(MPI_INTEGER1, int8_t, n % 128)      \
			X(MPI_INTEGER2, int16_t, n) X(MPI_INTEGER4, int32_t, n * 65537)                      \
				X(MPI_INTEGER8, int64_t, n * 281479271743489ll)                              \
					X(MPI_REAL4, float, n / 4.0f) X(MPI_REAL8, double, n / 3.0)          \
						X(MPI_COMPLEX8, float complex, n + n / 2.0f * I)             \
							X(MPI_COMPLEX16, double complex, n / 3.0 - n * I)
#define PAIRS(X)                                                                                             \
	X(MPI_SHORT_INT, struct short_int, n)                                                                \
	X(MPI_LONG_INT, struct long_int, n * 65537l) X(MPI_FLOAT_INT, struct float_int, n / 4.0f)            \
		X(MPI_DOUBLE_INT, struct double_int, n / 3.0)                                                \
			X(MPI_LONG_DOUBLE_INT, struct ldouble_int, n / 8.0)                                  \
				X(MPI_2INT, struct two_int, n * 65537) X(MPI_2INTEGER, struct two_int, n)    \
					X(MPI_2REAL, struct two_float, n / 4.0f)                             \
						X(MPI_2DOUBLE_PRECISION, struct two_double, n / 3.0)

struct basic {
	const char *name;
	MPI_Datatype type;
	size_t size;
	void (*put)(void *p, int n);
	int (*good)(const void *p, int n);
};

#define PUT_PLAIN(t, ctype, value)                                                                           \
	static void put_##t(void *p, int n)                                                                  \
	{                                                                                                    \
		ctype v = (ctype)(value);                                                                    \
		memcpy(p, &v, sizeof v);                                                                     \
	}                                                                                                    \
	static int good_##t(const void *p, int n)                                                            \
	{                                                                                                    \
		ctype v;                                                                                     \
		memcpy(&v, p, sizeof v);                                                                     \
		return v == (ctype)(value);                                                                  \
	}
#define PUT_PAIR(t, ctype, value)                                                                            \
	static void put_##t(void *p, int n)                                                                  \
	{                                                                                                    \
		ctype v;                                                                                     \
		v.v = (__typeof__(v.v))(value);                                                              \
		v.i = n + 1;                                                                                 \
		memcpy(p, &v, sizeof v);                                                                     \
	}                                                                                                    \
	static int good_##t(const void *p, int n)                                                            \
	{                                                                                                    \
		ctype v;                                                                                     \
		memcpy(&v, p, sizeof v);                                                                     \
		return v.v == (__typeof__(v.v))(value) && v.i == n + 1;                                      \
	}
PLAIN(PUT_PLAIN)
FORTRAN(PUT_PLAIN)
PAIRS(PUT_PAIR)

#define ROW(t, ctype, value) { #t, t, sizeof(ctype), put_##t, good_##t },
#define ROWS_MAX             80
static struct basic basic[ROWS_MAX];
static int nbasic;

static void basics(void)
{
	const struct basic rows[] = { PLAIN(ROW) FORTRAN(ROW) PAIRS(ROW) };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].type != MPI_DATATYPE_NULL)
			basic[nbasic++] = rows[i];
}

/* Every rank sends to every other one. */
#define PARTNERS                                                                                             \
	for (int k = 1, to, from;                                                                            \
		to = (chk_rank + k) % chk_size, from = (chk_rank - k + chk_size) % chk_size, k < chk_size;   \
		k++)

static void named(int count)
{
	for (int b = 0; b < nbasic; b++) {
		MPI_Aint lb, extent;
		char *out, *in;

		MPI_Type_get_extent(basic[b].type, &lb, &extent);
		out = calloc((size_t)count + 2, (size_t)extent);
		in = malloc(((size_t)count + 2) * (size_t)extent);
		for (int i = 0; i < count; i++)
			basic[b].put(out + i * extent, number(chk_rank, i));
		PARTNERS
		{
			MPI_Status st;
			int n, bad = 0;

			memset(in, 0x5a, ((size_t)count + 2) * (size_t)extent);
			MPI_Sendrecv(out, count, basic[b].type, to, TAG, in, count + 2, basic[b].type, from,
				TAG, MPI_COMM_WORLD, &st);
			MPI_Get_count(&st, basic[b].type, &n);
			for (int i = 0; i < count; i++)
				bad += !basic[b].good(in + i * extent, number(from, i));
			for (size_t i = 0; i < 2 * (size_t)extent; i++)
				bad += in[(size_t)count * (size_t)extent + i] != 0x5a;
			if (n != count || bad)
				chk_report(__FILE__, __LINE__, "%s from rank %d: %d of %d elements, %d wrong",
					basic[b].name, from, n, count, bad);
			CHECK(n == count && bad == 0);
		}
		free(out);
		free(in);
	}
}

/* A derived type, and the places of its basic elements, written down as it is made. */
#define PLACES 400
struct made {
	MPI_Datatype type;
	int n;
	struct place {
		int b;
		MPI_Aint at;
	} place[PLACES];
	MPI_Aint low, high; /* memory that one element touches */
};

static unsigned state;
static int pick(int n)
{
	state = state * 1664525u + 1013904223u;
	return (int)(state >> 16) % n;
}

static MPI_Aint extent_of(MPI_Datatype t)
{
	MPI_Aint lb, extent;

	MPI_Type_get_extent(t, &lb, &extent);
	return extent;
}

/* m gets `count` elements of inner at byte `at`. */
static void copy_places(struct made *m, const struct made *inner, int count, MPI_Aint at, MPI_Aint extent)
{
	for (int c = 0; c < count; c++)
		for (int i = 0; i < inner->n; i++) {
			m->place[m->n].b = inner->place[i].b;
			m->place[m->n++].at = inner->place[i].at + at + c * extent;
		}
}

static void make(struct made *m, int depth)
{
	struct made *x = malloc(2 * sizeof *x), *y = x + 1;
	int kind = depth == 0 ? 0 : 1 + pick(8), lens[3] = { 2, 1, 1 }, displs[3] = { 3, 0, 6 };
	MPI_Aint ex, at[3];

	memset(m, 0, sizeof *m);
	if (kind == 0) {
		m->place[0].b = pick(nbasic);
		m->n = 1;
		MPI_Type_dup(basic[m->place[0].b].type, &m->type);
		free(x);
		return;
	}
	make(x, depth - 1);
	ex = extent_of(x->type);
	if (x->n > PLACES / 8)
		kind = 7;
	switch (kind) {
	case 1:
		MPI_Type_contiguous(3, x->type, &m->type);
		copy_places(m, x, 3, 0, ex);
		break;
	case 2:
		MPI_Type_vector(2, 2, 3, x->type, &m->type);
		for (int i = 0; i < 2; i++)
			copy_places(m, x, 2, 3 * i * ex, ex);
		break;
	case 3:
		MPI_Type_create_hvector(2, 1, 2 * ex + 16, x->type, &m->type);
		for (int i = 0; i < 2; i++)
			copy_places(m, x, 1, i * (2 * ex + 16), ex);
		break;
	case 4:
		MPI_Type_indexed(3, lens, displs, x->type, &m->type);
		for (int i = 0; i < 3; i++)
			copy_places(m, x, lens[i], displs[i] * ex, ex);
		break;
	case 5:
		MPI_Type_create_indexed_block(3, 1, displs, x->type, &m->type);
		for (int i = 0; i < 3; i++)
			copy_places(m, x, 1, displs[i] * ex, ex);
		break;
	case 6: { /* rows 1 and 2, columns 1 .. 2 of 3 x 4 */
		int sizes[2] = { 3, 4 }, sub[2] = { 2, 2 }, start[2] = { 1, 1 };

		MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_C, x->type, &m->type);
		for (int i = 1; i < 3; i++)
			copy_places(m, x, 2, (4 * i + 1) * ex, ex);
		break;
	}
	case 7:
		MPI_Type_create_resized(x->type, 0, ex + 32, &m->type);
		copy_places(m, x, 1, 0, ex);
		break;
	default: {
		MPI_Datatype types[2];

		make(y, depth - 1);
		types[0] = x->type;
		types[1] = y->type;
		if (x->n + 2 * y->n > PLACES / 8)
			lens[0] = 1, lens[1] = 0;
		else
			lens[0] = 1, lens[1] = 2;
		at[0] = 0;
		at[1] = (2 * ex + 63) / 16 * 16;
		MPI_Type_create_struct(2, lens, at, types, &m->type);
		copy_places(m, x, 1, 0, ex);
		copy_places(m, y, lens[1], at[1], extent_of(y->type));
		MPI_Type_free(&y->type);
	}
	}
	MPI_Type_free(&x->type);
	free(x);
}

static void fill(const struct made *m, char *buf, int count, int r)
{
	MPI_Aint ex = extent_of(m->type);

	for (int c = 0, k = 0; c < count; c++)
		for (int i = 0; i < m->n; i++, k++)
			basic[m->place[i].b].put(buf + c * ex + m->place[i].at, number(r, k));
}

static int wrong(const struct made *m, const char *buf, int count, int r)
{
	MPI_Aint ex = extent_of(m->type);
	int bad = 0;

	for (int c = 0, k = 0; c < count; c++)
		for (int i = 0; i < m->n; i++, k++)
			bad += !basic[m->place[i].b].good(buf + c * ex + m->place[i].at, number(r, k));
	return bad;
}

/* Elements of basic types, as MPI_Get_elements counts them: a pair is two. */
static int elements(const struct made *m)
{
	int n = 0;

	for (int i = 0; i < m->n; i++)
		n += 1;
	return n;
}

static int has_pairs(const struct made *m)
{
	for (int i = 0; i < m->n; i++)
		if (strstr(basic[m->place[i].b].name, "INT") == NULL
				? 0
				: basic[m->place[i].b].name[4] == '2' ||
					  strstr(basic[m->place[i].b].name, "_INT"))
			return 1;
	return 0;
}

static void derived(unsigned seed, int depth, int count)
{
	struct made *m = malloc(sizeof *m);
	MPI_Aint lb, size;
	MPI_Request req;
	char *out, *in;

	state = seed;
	make(m, depth);
	MPI_Type_commit(&m->type);
	MPI_Type_get_true_extent(m->type, &lb, &size);
	size += lb + (count + 2) * extent_of(m->type);
	out = calloc(1, (size_t)size);
	in = malloc((size_t)size);
	fill(m, out, count, chk_rank);
	PARTNERS
	{
		MPI_Status st;
		int n, e, bad;

		memset(in, 0x5a, (size_t)size);
		MPI_Isend(out, count, m->type, to, TAG, MPI_COMM_WORLD, &req);
		MPI_Probe(from, TAG, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, m->type, &n);
		CHECK_EQ(n, count);
		MPI_Recv(in, count + 1, m->type, from, TAG, MPI_COMM_WORLD, &st);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Get_count(&st, m->type, &n);
		CHECK_EQ(n, count);
		MPI_Get_elements(&st, m->type, &e);
		if (!has_pairs(m))
			CHECK_EQ(e, count * elements(m));
		bad = wrong(m, in, count, from);
		if (bad)
			chk_report(__FILE__, __LINE__, "seed %u, depth %d: from rank %d: %d of %d wrong",
				seed, depth, from, bad, count * m->n);
		CHECK(bad == 0);
	}
	MPI_Type_free(&m->type);
	free(out);
	free(in);
	free(m);
}

/* A message that ends within an element of the receive. */
static void partial(void)
{
	struct {
		int i;
		long l;
		double d;
	} out[4], in[4];
	MPI_Datatype types[3] = { MPI_INT, MPI_LONG, MPI_DOUBLE }, all, part;
	MPI_Aint at[3] = { (char *)&out->i - (char *)out, (char *)&out->l - (char *)out,
		(char *)&out->d - (char *)out };
	int one[3] = { 1, 1, 1 };

	MPI_Type_create_struct(3, one, at, types, &part);
	MPI_Type_create_resized(part, 0, sizeof *out, &all);
	MPI_Type_commit(&all);
	MPI_Type_free(&part);
	MPI_Type_create_struct(2, one, at, types, &part);
	MPI_Type_commit(&part);
	PARTNERS
	{
		MPI_Request req[2];
		MPI_Status st;
		int n;

		memset(in, 0, sizeof in);
		for (int i = 0; i < 4; i++)
			out[i].i = number(chk_rank, i), out[i].l = -out[i].i, out[i].d = out[i].i / 8.0;
		/* Two whole ones, and int and long of a third. */
		MPI_Type_free(&part);
		{
			MPI_Datatype parts[2];
			int lens[2] = { 2, 1 };
			MPI_Aint where[2] = { 0, 2 * (MPI_Aint)sizeof *out };
			MPI_Datatype third;

			MPI_Type_create_struct(2, one, at, types, &third);
			parts[0] = all;
			parts[1] = third;
			MPI_Type_create_struct(2, lens, where, parts, &part);
			MPI_Type_commit(&part);
			MPI_Type_free(&third);
		}
		MPI_Isend(out, 1, part, to, TAG, MPI_COMM_WORLD, &req[0]);
		MPI_Irecv(in, 4, all, from, TAG, MPI_COMM_WORLD, &req[1]);
		MPI_Wait(&req[1], &st);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
		MPI_Get_count(&st, all, &n);
		CHECK_EQ(n, MPI_UNDEFINED);
		MPI_Get_elements(&st, all, &n);
		CHECK_EQ(n, 8);
		for (int i = 0; i < 3; i++)
			CHECK(in[i].i == number(from, i) && in[i].l == -in[i].i &&
				(i == 2 || in[i].d == in[i].i / 8.0));
		CHECK(in[2].d == 0 && in[3].i == 0);
	}
	MPI_Type_free(&part);
	MPI_Type_free(&all);
}

static void replaced(void)
{
	PARTNERS
	{
		long v[5];
		MPI_Datatype column;

		MPI_Type_vector(2, 1, 3, MPI_LONG, &column);
		MPI_Type_commit(&column);
		for (int i = 0; i < 5; i++)
			v[i] = number(chk_rank, i);
		MPI_Sendrecv_replace(v, 1, column, to, TAG, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(v[i], number(i % 3 == 0 ? from : chk_rank, i));
		MPI_Type_free(&column);
	}
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "typed", 2);
	basics();
	named(1);
	named(300);
	named(9000);
	for (unsigned seed = 1; seed <= 24; seed++)
		derived(seed, 1 + (int)(seed % 3), seed % 4 == 0 ? 3000 : seed % 2 ? 1 : 40);
	partial();
	replaced();
	return chk_end();
}
