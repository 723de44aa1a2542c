/*
 * typed.h - every named datatype with values that all machines can hold, and random nested derived ones. For typed.c and rma_typed.c;
 * all functions are static.
 */
#ifndef TYPED_H
#define TYPED_H

#include "check.h"

#include <complex.h>
#include <float.h>
#include <stdbool.h>
#include <wchar.h>

/* What REAL*16 is in C. */
#if LDBL_MANT_DIG == 113
typedef long double quad;
#else
typedef __float128 quad;
#endif
struct two_quad {
	quad re, im;
};

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

/* clang-format off */
/* Each basic type: name, C type, and how it holds number n; halves for floating point. */
#define PLAIN(X)                                                                                             \
	X(MPI_CHAR, char, n & 127)                                                                           \
	X(MPI_SIGNED_CHAR, signed char, n % 128)                                                             \
	X(MPI_UNSIGNED_CHAR, unsigned char, n & 255)                                                         \
	X(MPI_BYTE, unsigned char, n & 255)                                                                  \
	X(MPI_WCHAR, wchar_t, (n & 0x7fff))                                                                  \
	X(MPI_SHORT, short, n)                                                                               \
	X(MPI_UNSIGNED_SHORT, unsigned short, n & 0xffff)                                                    \
	X(MPI_INT, int, n * 65537)                                                                           \
	X(MPI_UNSIGNED, unsigned, n)                                                                         \
	X(MPI_LONG, long, n * 65537l)                                                                        \
	X(MPI_UNSIGNED_LONG, unsigned long, (unsigned)n)                                                     \
	X(MPI_LONG_LONG, long long, n * 281479271743489ll)                                                   \
	X(MPI_UNSIGNED_LONG_LONG, unsigned long long, n * 281479271743489ll)                                 \
	X(MPI_FLOAT, float, n / 4.0f)                                                                        \
	X(MPI_DOUBLE, double, n / 3.0)                                                                       \
	X(MPI_LONG_DOUBLE, long double, n / 8.0)                                                             \
	X(MPI_INT8_T, int8_t, n % 128)                                                                       \
	X(MPI_INT16_T, int16_t, n)                                                                           \
	X(MPI_INT32_T, int32_t, n * 65537)                                                                   \
	X(MPI_INT64_T, int64_t, n * 281479271743489ll)                                                       \
	X(MPI_UINT8_T, uint8_t, n & 255)                                                                     \
	X(MPI_UINT16_T, uint16_t, n & 0xffff)                                                                \
	X(MPI_UINT32_T, uint32_t, n)                                                                         \
	X(MPI_UINT64_T, uint64_t, n * 281479271743489ll)                                                     \
	X(MPI_C_BOOL, bool, n & 1)                                                                           \
	X(MPI_AINT, MPI_Aint, n * 65537)                                                                     \
	X(MPI_COUNT, MPI_Count, n * 281479271743489ll)                                                       \
	X(MPI_OFFSET, MPI_Offset, n * 281479271743489ll)                                                     \
	X(MPI_C_FLOAT_COMPLEX, float complex, n / 4.0f + (n + 1) * I)                                        \
	X(MPI_C_DOUBLE_COMPLEX, double complex, n / 3.0 - n * I)                                             \
	X(MPI_C_LONG_DOUBLE_COMPLEX, long double complex, n / 4.0 + n * I)
#define FORTRAN(X)                                                                                           \
	X(MPI_CHARACTER, char, n & 127)                                                                      \
	X(MPI_LOGICAL, int, n & 1)                                                                           \
	X(MPI_INTEGER, int, n * 65537)                                                                       \
	X(MPI_REAL, float, n / 4.0f)                                                                         \
	X(MPI_DOUBLE_PRECISION, double, n / 3.0)                                                             \
	X(MPI_COMPLEX, float complex, n + n / 2.0f * I)                                                      \
	X(MPI_DOUBLE_COMPLEX, double complex, n / 3.0 - n * I)                                               \
	X(MPI_INTEGER1, int8_t, n % 128)                                                                     \
	X(MPI_INTEGER2, int16_t, n)                                                                          \
	X(MPI_INTEGER4, int32_t, n * 65537)                                                                  \
	X(MPI_INTEGER8, int64_t, n * 281479271743489ll)                                                      \
	X(MPI_REAL4, float, n / 4.0f)                                                                        \
	X(MPI_REAL8, double, n / 3.0)                                                                        \
	X(MPI_COMPLEX8, float complex, n + n / 2.0f * I)                                                     \
	X(MPI_COMPLEX16, double complex, n / 3.0 - n * I)
#define PAIRS(X)                                                                                             \
	X(MPI_SHORT_INT, struct short_int, n)                                                                \
	X(MPI_LONG_INT, struct long_int, n * 65537l)                                                         \
	X(MPI_FLOAT_INT, struct float_int, n / 4.0f)                                                         \
	X(MPI_DOUBLE_INT, struct double_int, n / 3.0)                                                        \
	X(MPI_LONG_DOUBLE_INT, struct ldouble_int, n / 8.0)                                                  \
	X(MPI_2INT, struct two_int, n * 65537)                                                               \
	X(MPI_2INTEGER, struct two_int, n)                                                                   \
	X(MPI_2REAL, struct two_float, n / 4.0f)                                                             \
	X(MPI_2DOUBLE_PRECISION, struct two_double, n / 3.0)

/* What a vendor or a compiler may lack. LOGICAL*n of MPICH is sent as INTEGERn. */
#ifdef MPI_LOGICAL8
#define LOGICAL(n) MPI_LOGICAL##n
#else
#define LOGICAL(n) MPI_INTEGER##n
#endif
#define OPTIONAL(X)                                                                                          \
	X(LOGICAL1, LOGICAL(1), int8_t, n & 1) X(LOGICAL2, LOGICAL(2), int16_t, n & 1)                       \
	X(LOGICAL4, LOGICAL(4), int32_t, n & 1) X(LOGICAL8, LOGICAL(8), int64_t, n & 1)                      \
	X(REAL16, MPI_REAL16, quad, n / (quad)3) X(CXX_BOOL, MPI_CXX_BOOL, bool, n & 1)                          \
	X(CXX_FLOAT_COMPLEX, MPI_CXX_FLOAT_COMPLEX, float complex, n / 4.0f - n * I)                         \
	X(CXX_DOUBLE_COMPLEX, MPI_CXX_DOUBLE_COMPLEX, double complex, n / 3.0 + n * I)                       \
	X(CXX_LONG_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX, long double complex, n / 4.0 - n * I)        \
	X(f90_real_6, f90_real(6, 37), float, n / 4.0f) X(f90_real_15, f90_real(15, 307), double, n / 3.0)   \
	X(f90_real_18, f90_real(18, MPI_UNDEFINED), long double, n / 8.0)                                    \
	X(f90_real_33, f90_real(33, 4931), quad, n / (quad)3)                                                    \
	X(f90_complex_6, f90_complex(6, 37), float complex, n / 4.0f - n * I)                                \
	X(f90_complex_15, f90_complex(15, MPI_UNDEFINED), double complex, n / 3.0 - n * I)                   \
	X(f90_integer_2, f90_integer(2), int8_t, n % 100) X(f90_integer_4, f90_integer(4), int16_t, n % 9999) \
	X(f90_integer_9, f90_integer(9), int32_t, n * 65537)                                                 \
	X(f90_integer_18, f90_integer(18), int64_t, n * 281479271743ll)
/* clang-format on */

static MPI_Datatype f90_real(int precision, int range)
{
	MPI_Datatype t = MPI_DATATYPE_NULL;

	return MPI_Type_create_f90_real(precision, range, &t) == MPI_SUCCESS ? t : MPI_DATATYPE_NULL;
}

static MPI_Datatype f90_complex(int precision, int range)
{
	MPI_Datatype t = MPI_DATATYPE_NULL;

	return MPI_Type_create_f90_complex(precision, range, &t) == MPI_SUCCESS ? t : MPI_DATATYPE_NULL;
}

static MPI_Datatype f90_integer(int range)
{
	MPI_Datatype t = MPI_DATATYPE_NULL;

	return MPI_Type_create_f90_integer(range, &t) == MPI_SUCCESS ? t : MPI_DATATYPE_NULL;
}

struct basic {
	const char *name;
	MPI_Datatype type;
	size_t size;
	void (*put)(void *p, int n);
	int (*good)(const void *p, int n);
	int gaps; /* is it in derived types, which may leave gaps between its elements? */
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
#define PUT_OPTIONAL(name, t, ctype, value) PUT_PLAIN(name, ctype, value)
PLAIN(PUT_PLAIN)
FORTRAN(PUT_PLAIN)
PAIRS(PUT_PAIR)
OPTIONAL(PUT_OPTIONAL)

static void put_COMPLEX32(void *p, int n)
{
	struct two_quad v = { n / (quad)4, n };

	memcpy(p, &v, sizeof v);
}
static int good_COMPLEX32(const void *p, int n)
{
	struct two_quad v;

	memcpy(&v, p, sizeof v);
	return v.re == n / (quad)4 && v.im == n;
}

#define ROW(t, ctype, value)                { #t, t, sizeof(ctype), put_##t, good_##t },
#define ROW_OPTIONAL(name, t, ctype, value) { #name, t, sizeof(ctype), put_##name, good_##name },
#define ROWS_MAX                            100
#define COUNT_ROW(...)                      +1
#define OPTIONALS                           (1 OPTIONAL(COUNT_ROW)) /* and COMPLEX32 */
static struct basic basic[ROWS_MAX];
static int nbasic;

/* Every rank sends to every other one. */
#define PARTNERS                                                                                             \
	for (int k = 1, to, from;                                                                            \
		to = (chk_rank + k) % chk_size, from = (chk_rank - k + chk_size) % chk_size, k < chk_size;   \
		k++)

/* Does this rank's MPI move elements with `gap` bytes between them whole? Open MPI 5 and 6 copy REAL*16 as a long double of 10 bytes then,
 * and 5.0.7 loses imaginary parts of long doubles at odd multiples of 16 bytes. */
static int whole(const struct basic *b, size_t gap)
{
	unsigned char out[4 * sizeof(struct two_quad)] = { 0 }, packed[sizeof out], in[sizeof out] = { 0 };
	size_t at = b->size + gap;
	MPI_Datatype pair;
	int end = 0, pos = 0;

	b->put(out, number(0, 1));
	b->put(out + at, number(0, 2));
	MPI_Type_create_hvector(2, 1, (MPI_Aint)at, b->type, &pair);
	MPI_Type_commit(&pair);
	MPI_Pack(out, 1, pair, packed, (int)sizeof packed, &end, MPI_COMM_SELF);
	MPI_Unpack(packed, end, &pos, in, 1, pair, MPI_COMM_SELF);
	MPI_Type_free(&pair);
	return b->good(in, number(0, 1)) && b->good(in + at, number(0, 2));
}

/* The rows of types that all ranks have: a type that one lacks, or has as another size than C's type for it, is no row at any. */
static void basics(void)
{
	MPI_Errhandler before;
	unsigned char all[ROWS_MAX], mine[ROWS_MAX], theirs[ROWS_MAX];

	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	{
		const struct basic rows[] = { PLAIN(ROW) FORTRAN(ROW) PAIRS(ROW)
				OPTIONAL(ROW_OPTIONAL){ "COMPLEX32", MPI_COMPLEX32, sizeof(struct two_quad),
					put_COMPLEX32, good_COMPLEX32 } };
		int n = (int)(sizeof rows / sizeof *rows), sure = n - OPTIONALS;

		MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
		for (int i = 0; i < n; i++) {
			int size = 0;

			if (rows[i].type != MPI_DATATYPE_NULL)
				MPI_Type_size(rows[i].type, &size);
			mine[i] = size != 0 && (i < sure || (size_t)size == rows[i].size);
			if (mine[i])
				mine[i] |= (unsigned char)((whole(&rows[i], rows[i].size) &&
								   whole(&rows[i], rows[i].size + 16))
							   << 1);
			all[i] = mine[i];
		}
		PARTNERS
		{
			MPI_Sendrecv(mine, n, MPI_BYTE, to, 1, theirs, n, MPI_BYTE, from, 1, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE);
			for (int i = 0; i < n; i++)
				all[i] &= theirs[i];
		}
		for (int i = 0; i < n; i++) {
			if (all[i]) {
				basic[nbasic] = rows[i];
				basic[nbasic++].gaps = all[i] >> 1;
			}
			if (all[i] != 3 && chk_rank == 0)
				printf("%s: no %s%s\n", chk_name, rows[i].name,
					all[i] ? " in derived types" : "");
		}
	}
	MPI_Errhandler_free(&before);
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
	int odd; /* a subarray or a darray is in it, or a block of nothing */
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

/* What one of 2 x 2 processes has of a grid of 3 x 4: rows in blocks, columns or their pairs in turn; or columns first, as Fortran does (no pairs
 * then: MPICH 4.0.2 packs wrong places on 32 bits). */
static void make_grid(struct made *m, const struct made *x, MPI_Aint ex)
{
	int sizes[2] = { 3, 4 }, grid[2] = { 2, 2 }, of = pick(4), fortran = pick(2),
	    width = 1 + pick(2 - fortran);
	int how[2] = { MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC },
	    arg[2] = { MPI_DISTRIBUTE_DFLT_DARG, width };

	MPI_Type_create_darray(4, of, 2, sizes, how, arg, grid, fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C,
		x->type, &m->type);
	for (int k = 0; k < 12; k++) {
		int row = fortran ? k % 3 : k / 4, column = fortran ? k / 3 : k % 4;

		if (row / 2 == of / 2 && column / width % 2 == of % 2)
			copy_places(m, x, 1, k * ex, ex);
	}
}

/* plain: of constructors that count in elements only, so that it has its places on every machine. */
static void make(struct made *m, int depth, int plain)
{
	static const int counted[] = { 1, 2, 4, 5, 6, 9 };
	struct made *x = malloc(2 * sizeof *x), *y = x + 1;
	int kind = depth == 0 ? 0
		   : plain    ? counted[pick(6)]
			      : 1 + pick(11),
	    lens[3] = { 2, 1, 1 }, displs[3] = { 3, 0, 6 };
	MPI_Aint ex, at[3];

	memset(m, 0, sizeof *m);
	if (kind == 0) {
		do
			m->place[0].b = pick(nbasic);
		while (!basic[m->place[0].b].gaps);
		m->n = 1;
		MPI_Type_dup(basic[m->place[0].b].type, &m->type);
		free(x);
		return;
	}
	make(x, depth - 1, plain);
	ex = extent_of(x->type);
	m->odd = x->odd;
	if (x->n > PLACES / 8)
		kind = plain ? 0 : 7;
	switch (kind) {
	case 0:
		MPI_Type_dup(x->type, &m->type);
		copy_places(m, x, 1, 0, ex);
		break;
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
		int sizes[2] = { 3, 4 }, sub[2] = { 2, 2 }, start[2] = { 1, 1 }, fortran = pick(2),
		    line = fortran ? 3 : 4;

		MPI_Type_create_subarray(
			2, sizes, sub, start, fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, x->type, &m->type);
		for (int i = 1; i < 3; i++)
			copy_places(m, x, 2, (line * i + 1) * ex, ex);
		m->odd = 1;
		break;
	}
	case 7:
		MPI_Type_create_resized(x->type, 0, ex + 32, &m->type);
		copy_places(m, x, 1, 0, ex);
		break;
	case 9:
		make_grid(m, x, ex);
		m->odd = 1;
		break;
	case 10:
	case 11: /* at bytes */
		for (int i = 0; i < 3; i++) {
			at[i] = displs[i] * (ex + 16);
			lens[i] = kind == 10 ? lens[i] : 1;
			copy_places(m, x, lens[i], at[i], ex);
		}
		if (kind == 10)
			MPI_Type_create_hindexed(3, lens, at, x->type, &m->type);
		else
			MPI_Type_create_hindexed_block(3, 1, at, x->type, &m->type);
		break;
	default: {
		MPI_Datatype types[2], loose;

		make(y, depth - 1, plain);
		m->odd |= y->odd;
		types[0] = x->type;
		types[1] = y->type;
		if (x->n + 2 * y->n > PLACES / 8)
			lens[0] = 1, lens[1] = 0, m->odd = 1;
		else
			lens[0] = 1, lens[1] = 2;
		at[0] = 0;
		at[1] = (2 * ex + 63) / 16 * 16;
		MPI_Type_create_struct(2, lens, at, types, &loose);
		/* Open MPI 4.1 takes the end of a resized member for that of all. */
		MPI_Type_create_resized(loose, 0, at[1] + lens[1] * extent_of(y->type) + 16, &m->type);
		MPI_Type_free(&loose);
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

#endif
