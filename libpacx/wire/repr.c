/* repr.c: see repr.h. */
#include "repr.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "endian.h"
#include "err.h"
#include "floats.h"

_Static_assert(sizeof(short) == 2 && sizeof(int) == 4 && sizeof(long long) == 8 && sizeof(float) == 4 &&
		       sizeof(double) == 8 && sizeof(bool) == 1,
	"what no hello says is the same on every machine");

void px_repr_native(struct px_repr *r)
{
	struct d {
		char c;
		double x;
	};
	struct ll {
		char c;
		long long x;
	};
	struct ld {
		char c;
		long double x;
	};
	const uint16_t one = 1;

	memset(r, 0, sizeof *r);
	r->big_endian = *(const uint8_t *)&one == 0;
	r->char_signed = (char)-1 < 0;
	r->size_long = sizeof(long);
	r->size_pointer = sizeof(void *);
	r->size_wchar = sizeof(wchar_t);
	r->size_long_double = sizeof(long double);
	r->align_double = offsetof(struct d, x);
	r->align_long_long = offsetof(struct ll, x);
	r->align_long_double = offsetof(struct ld, x);
	r->long_double_format = __LDBL_MANT_DIG__ == 53    ? PX_FLOAT_DOUBLE
				: __LDBL_MANT_DIG__ == 64  ? PX_FLOAT_X87
				: __LDBL_MANT_DIG__ == 113 ? PX_FLOAT_QUAD
							   : PX_FLOAT_PAIR;
	r->size_fint = 4;
	r->size_flogical = 4;
	r->flogical_true = 1;
}

static bool one_of(unsigned v, unsigned a, unsigned b, unsigned c)
{
	return v == a || v == b || v == c;
}

static bool align_valid(unsigned a)
{
	return a >= 1 && a <= 16 && (a & (a - 1)) == 0;
}

/* A format fills 8 or 16 bytes, x87's 10 are stored in 12 or 16. */
static bool long_double_valid(unsigned format, unsigned size)
{
	switch (format) {
	case PX_FLOAT_DOUBLE:
		return size == 8;
	case PX_FLOAT_X87:
		return size == 12 || size == 16;
	case PX_FLOAT_QUAD:
	case PX_FLOAT_PAIR:
		return size == 16;
	default:
		return false;
	}
}

bool px_repr_valid(const struct px_repr *r)
{
	return r->big_endian <= 1 && r->char_signed <= 1 && one_of(r->size_long, 4, 8, 8) &&
	       one_of(r->size_pointer, 4, 8, 8) && one_of(r->size_wchar, 2, 4, 4) &&
	       long_double_valid(r->long_double_format, r->size_long_double) &&
	       align_valid(r->align_double) && align_valid(r->align_long_long) &&
	       align_valid(r->align_long_double) && one_of(r->size_fint, 4, 8, 8) &&
	       (r->size_flogical == 8 || one_of(r->size_flogical, 1, 2, 4));
}

void px_repr_put(const struct px_repr *r, uint8_t out[PX_REPR_SIZE])
{
	out[0] = r->big_endian;
	out[1] = r->char_signed;
	out[2] = r->size_long;
	out[3] = r->size_pointer;
	out[4] = r->size_wchar;
	out[5] = r->size_long_double;
	out[6] = r->align_double;
	out[7] = r->align_long_long;
	out[8] = r->align_long_double;
	out[9] = r->long_double_format;
	out[10] = r->size_fint;
	out[11] = r->size_flogical;
	px_put32(out + 12, (uint32_t)r->flogical_true);
}

int px_repr_get(const uint8_t in[PX_REPR_SIZE], struct px_repr *r)
{
	struct px_repr g = { .big_endian = in[0],
		.char_signed = in[1],
		.size_long = in[2],
		.size_pointer = in[3],
		.size_wchar = in[4],
		.size_long_double = in[5],
		.align_double = in[6],
		.align_long_long = in[7],
		.align_long_double = in[8],
		.long_double_format = in[9],
		.size_fint = in[10],
		.size_flogical = in[11],
		.flogical_true = (int32_t)px_get32(in + 12) };

	if (!px_repr_valid(&g))
		return PX_EPROTO;
	*r = g;
	return PX_OK;
}

static bool sizes_alike(const struct px_repr *a, const struct px_repr *b)
{
	return a->size_long == b->size_long && a->size_pointer == b->size_pointer &&
	       a->size_wchar == b->size_wchar && a->size_long_double == b->size_long_double &&
	       a->size_fint == b->size_fint && a->size_flogical == b->size_flogical;
}

/* Neither the sign of char nor alignments: messages are packed, and a char is a byte. */
bool px_repr_alike(const struct px_repr *a, const struct px_repr *b)
{
	return sizes_alike(a, b) && a->big_endian == b->big_endian &&
	       a->long_double_format == b->long_double_format && a->flogical_true == b->flogical_true;
}

bool px_repr_layout_alike(const struct px_repr *a, const struct px_repr *b)
{
	return sizes_alike(a, b) && a->align_double == b->align_double &&
	       a->align_long_long == b->align_long_long && a->align_long_double == b->align_long_double;
}

struct text {
	char *out;
	size_t cap, len;
};

static void say(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n = t->len > 0 ? snprintf(t->out + t->len, t->cap - t->len, "; ") : 0;

	t->len += t->len + (size_t)n < t->cap ? (size_t)n : 0;
	va_start(ap, fmt);
	n = vsnprintf(t->out + t->len, t->cap - t->len, fmt, ap);
	va_end(ap);
	t->len = n > 0 && t->len + (size_t)n < t->cap ? t->len + (size_t)n : t->cap - 1;
}

/* sign: 1 if one bit is for the sign. */
static void integer(struct text *t, const char *name, unsigned here, unsigned there, unsigned sign)
{
	if (here == there)
		return;
	say(t, "%s has %u bits, not %u: values beyond 2^%u are errors %s", name, 8 * there, 8 * here,
		8 * (here < there ? here : there) - sign, here < there ? "here" : "there");
}

const char *px_repr_tell(const struct px_repr *here, const struct px_repr *there, char *out, size_t cap)
{
	static const char *const format[] = { "a double", "x87's 80 bits", "IEEE's 128 bits",
		"a pair of doubles" };
	struct text t = { out, cap, 0 };

	out[0] = 0;
	if (here->big_endian != there->big_endian)
		say(&t, "bytes are in %s-endian order: receivers reverse all numbers but bytes",
			there->big_endian ? "big" : "little");
	integer(&t, "long", here->size_long, there->size_long, 1);
	integer(&t, "MPI_Aint", here->size_pointer, there->size_pointer, 1);
	integer(&t, "wchar_t", here->size_wchar, there->size_wchar, 0);
	integer(&t, "INTEGER", here->size_fint, there->size_fint, 1);
	if (here->long_double_format != there->long_double_format)
		say(&t, "long double is %s, not %s: rounded to the nearest value, beyond the range an error",
			format[there->long_double_format], format[here->long_double_format]);
	else if (here->size_long_double != there->size_long_double)
		say(&t, "long double takes %u bytes, not %u", there->size_long_double,
			here->size_long_double);
	if (here->size_flogical != there->size_flogical || here->flogical_true != there->flogical_true)
		say(&t, "LOGICAL has %u bytes and .TRUE. is %d, not %u and %d", there->size_flogical,
			(int)there->flogical_true, here->size_flogical, (int)here->flogical_true);
	return out;
}
