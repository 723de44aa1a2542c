/* floats.c: see floats.h.
 *
 * Design. Every format is a sign, a power of two and a significand, which a px_number holds with 128 bits: more than any format has,
 * so taking apart loses nothing but the tail of a double-double whose parts lie far apart; what was lost there is kept as one
 * bit at the end ("sticky"), which is all that correct rounding to fewer bits needs. NaN stays NaN, quiet, with as much of
 * its payload as there is room for. Ordinary numbers between x87's format and binary128, which is what x86 and all others meet with, take
 * a short way without all that (ordinary).
 */
#include "floats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "endian.h"

#define TOP      (UINT64_C(1) << 63)
#define HOST_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* Significand bits, the hidden one included, and the exponents of the largest and the smallest normal number. */
static const struct shape {
	int bits, emax, emin, width; /* width: of the exponent's field */
} shapes[] = {
	[PX_FLOAT_DOUBLE] = { 53, 1023, -1022, 11 },
	[PX_FLOAT_X87] = { 64, 16383, -16382, 15 },
	[PX_FLOAT_QUAD] = { 113, 16383, -16382, 15 },
};

/* n <= 16 bytes in the given order as one number of 128 bits. */
static void load(const uint8_t *p, size_t n, bool big, uint64_t *hi, uint64_t *lo)
{
	uint8_t le[16] = { 0 };

	for (size_t i = 0; i < n; i++)
		le[i] = p[big ? n - 1 - i : i];
	*lo = px_get64(le);
	*hi = px_get64(le + 8);
}

static void store(uint8_t *p, size_t n, bool big, uint64_t hi, uint64_t lo)
{
	uint8_t le[16];

	px_put64(le, lo);
	px_put64(le + 8, hi);
	for (size_t i = 0; i < n; i++)
		p[big ? n - 1 - i : i] = le[i];
}

static uint64_t load64(const uint8_t *p, bool big)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return big != HOST_BIG ? __builtin_bswap64(v) : v;
}

static void store64(uint8_t *p, bool big, uint64_t v)
{
	v = big != HOST_BIG ? __builtin_bswap64(v) : v;
	memcpy(p, &v, 8);
}

static void shift_left(struct px_number *v, int n)
{
	if (n >= 64) {
		v->hi = v->lo << (n - 64);
		v->lo = 0;
	} else if (n > 0) {
		v->hi = v->hi << n | v->lo >> (64 - n);
		v->lo <<= n;
	}
}

/* What falls out at the right end stays as the last bit. */
static void shift_right(struct px_number *v, int n)
{
	bool lost;

	if (n >= 128) {
		v->lo = (v->hi | v->lo) != 0;
		v->hi = 0;
	} else if (n >= 64) {
		lost = v->lo != 0 || (n > 64 && v->hi << (128 - n) != 0);
		v->lo = v->hi >> (n - 64) | lost;
		v->hi = 0;
	} else if (n > 0) {
		lost = v->lo << (64 - n) != 0;
		v->lo = (v->lo >> n | v->hi << (64 - n)) | lost;
		v->hi >>= n;
	}
}

static void normalize(struct px_number *v)
{
	int n;

	if ((v->hi | v->lo) == 0) {
		v->kind = PX_NUMBER_ZERO;
		return;
	}
	n = v->hi ? __builtin_clzll(v->hi) : 64 + __builtin_clzll(v->lo);
	shift_left(v, n);
	v->exp -= n;
}

/* The significand lies right-aligned in v; biased is the exponent's field. hidden: a leading 1 that is not stored. */
static void unpack(struct px_number *v, const struct shape *s, int biased, bool hidden)
{
	v->kind = PX_NUMBER_FINITE;
	shift_left(v, 128 - s->bits);
	if (biased == 0) { /* denormal */
		v->exp = s->emin;
	} else {
		v->exp = biased - s->emax;
		if (hidden)
			v->hi |= TOP;
	}
	normalize(v);
}

static void not_a_number(struct px_number *v, uint64_t hi, uint64_t lo)
{
	v->kind = PX_NUMBER_NAN;
	v->hi = hi;
	v->lo = lo;
}

static void get_x87(const uint8_t *p, size_t size, bool big, struct px_number *v)
{
	uint64_t head;

	load(big ? p + size - 10 : p, 10, big, &head, &v->lo);
	v->hi = 0;
	v->neg = head >> 15 & 1;
	head &= 0x7fff;
	if (head == 0x7fff && v->lo == TOP) {
		v->kind = PX_NUMBER_INF;
	} else if (head == 0x7fff ||
		   (head != 0 && !(v->lo & TOP))) { /* or what the processor takes for invalid */
		not_a_number(v, v->lo << 1, 0);
	} else {
		/* A denormal with its highest bit set has the value of the smallest exponent, too. */
		unpack(v, &shapes[PX_FLOAT_X87], (int)head, false);
	}
}

static void get_ieee(const uint8_t *p, enum px_float_format f, bool big, struct px_number *v)
{
	const struct shape *s = &shapes[f];
	uint64_t hi, lo, top;
	int field;

	if (f == PX_FLOAT_DOUBLE) {
		load(p, 8, big, &hi, &lo);
		top = lo;
		v->hi = 0;
		v->lo = lo & ((UINT64_C(1) << 52) - 1);
	} else {
		load(p, 16, big, &hi, &lo);
		top = hi;
		v->hi = hi & ((UINT64_C(1) << 48) - 1);
		v->lo = lo;
	}
	v->neg = top >> 63;
	field = (int)(top >> (63 - s->width)) & ((1 << s->width) - 1);
	if (field != (1 << s->width) - 1) {
		unpack(v, s, field, true);
	} else if ((v->hi | v->lo) == 0) {
		v->kind = PX_NUMBER_INF;
	} else {
		shift_left(v, 129 - s->bits);
		not_a_number(v, v->hi, v->lo);
	}
}

/* *v += w, where |w| <= |v|; both finite. */
static void add(struct px_number *v, struct px_number w)
{
	bool minus = v->neg != w.neg;
	uint64_t lo;

	/* One bit of room for the carry. */
	shift_right(v, 1);
	v->exp++;
	lo = v->lo;
	shift_right(&w, v->exp - w.exp);
	if (minus) {
		v->lo -= w.lo;
		v->hi -= w.hi + (v->lo > lo);
	} else {
		v->lo += w.lo;
		v->hi += w.hi + (v->lo < lo);
	}
	normalize(v);
}

static void get_pair(const uint8_t *p, bool big, struct px_number *v)
{
	struct px_number w;

	get_ieee(p, PX_FLOAT_DOUBLE, big, v);
	get_ieee(p + 8, PX_FLOAT_DOUBLE, big, &w);
	if (v->kind == PX_NUMBER_ZERO && w.kind == PX_NUMBER_FINITE) {
		*v = w;
	} else if (v->kind == PX_NUMBER_FINITE && w.kind == PX_NUMBER_FINITE) {
		bool less =
			v->exp != w.exp ? v->exp < w.exp : v->hi < w.hi; /* the low 64 bits of both are 0 */
		struct px_number a = *v;

		*v = less ? w : a;
		add(v, less ? a : w);
	}
}

void px_float_get(const uint8_t *p, enum px_float_format f, size_t size, bool big, struct px_number *v)
{
	memset(v, 0, sizeof *v);
	switch (f) {
	case PX_FLOAT_X87:
		get_x87(p, size, big, v);
		break;
	case PX_FLOAT_PAIR:
		get_pair(p, big, v);
		break;
	default:
		get_ieee(p, f, big, v);
	}
}

/* Round the significand of v to `bits` bits, left-aligned. *rest: what v was larger than the result, as a number. */
static void cut(struct px_number *v, int bits, struct px_number *rest)
{
	struct px_number r = *v, half = { .hi = TOP };
	uint64_t one_hi, one_lo;
	bool odd, up;

	if (bits <=
		0) { /* far below the smallest denormal; at 0 bits half of the last place is the top bit */
		up = bits == 0 && (v->hi > TOP || (v->hi == TOP && v->lo != 0));
		*rest = (struct px_number){ 0 };
		v->kind = up ? PX_NUMBER_FINITE : PX_NUMBER_ZERO;
		v->hi = up ? TOP : 0;
		v->lo = 0;
		v->exp += up;
		return;
	}
	shift_right(&half, bits);
	/* r = the bits behind the place that is kept */
	r.hi = bits >= 64 ? 0 : r.hi & (~UINT64_C(0) >> bits);
	r.lo = bits <= 64 ? r.lo : r.lo & (~UINT64_C(0) >> (bits - 64));
	v->hi -= r.hi;
	v->lo -= r.lo;
	one_hi = bits <= 64 ? UINT64_C(1) << (64 - bits) : 0;
	one_lo = bits > 64 ? UINT64_C(1) << (128 - bits) : 0;
	odd = (v->hi & one_hi) || (v->lo & one_lo);
	up = r.hi > half.hi || (r.hi == half.hi && (r.lo > half.lo || (r.lo == half.lo && odd)));
	*rest = r;
	if (!up) {
		normalize(rest);
		return;
	}
	/* v was larger than the result by r - one, which is negative */
	rest->neg = !rest->neg;
	rest->lo = one_lo - r.lo;
	rest->hi = one_hi - r.hi - (rest->lo > one_lo);
	normalize(rest);
	v->lo += one_lo;
	v->hi += one_hi + (v->lo < one_lo);
	if (!(v->hi & TOP)) { /* all ones became 1000... */
		v->hi = TOP;
		v->exp++;
	}
}

/* Round v to the format: afterwards it is one of its numbers, or INF. False: it was too large. */
static bool fit(struct px_number *v, const struct shape *s, struct px_number *rest)
{
	*rest = (struct px_number){ 0 };
	if (v->kind != PX_NUMBER_FINITE)
		return true;
	cut(v, v->exp < s->emin ? s->bits - (s->emin - v->exp) : s->bits, rest);
	if (v->kind == PX_NUMBER_FINITE && v->exp > s->emax) {
		v->kind = PX_NUMBER_INF;
		return false;
	}
	return true;
}

/* Write v, which is a number of format f. */
static void put_rounded(uint8_t *p, enum px_float_format f, size_t size, bool big, struct px_number v)
{
	const struct shape *s = &shapes[f];
	uint64_t top = 0, field = 0, all = (UINT64_C(1) << s->width) - 1;

	if (v.kind == PX_NUMBER_FINITE) {
		field = v.exp < s->emin ? 0 : (uint64_t)(v.exp + s->emax);
		shift_right(&v, 128 - s->bits + (v.exp < s->emin ? s->emin - v.exp : 0));
	} else if (v.kind == PX_NUMBER_NAN) {
		field = all;
		v.hi |= TOP;         /* quiet */
		if (s->bits <= 65) { /* what there is no room for */
			v.hi &= ~UINT64_C(0) << (65 - s->bits);
			v.lo = 0;
		} else {
			v.lo &= ~UINT64_C(0) << (129 - s->bits);
		}
		shift_right(&v, 129 - s->bits);
	} else {
		field = v.kind == PX_NUMBER_INF ? all : 0;
		v.hi = v.lo = 0;
	}
	if (f == PX_FLOAT_X87) {
		if (field == all)
			v.lo |= TOP;
		memset(p, 0, size);
		store(big ? p + size - 10 : p, 10, big, (uint64_t)v.neg << 15 | field, v.lo);
		return;
	}
	top = (uint64_t)v.neg << 63 | field << (63 - s->width);
	if (f == PX_FLOAT_DOUBLE)
		store(p, 8, big, 0, top | (v.lo & ((UINT64_C(1) << 52) - 1)));
	else
		store(p, 16, big, top | (v.hi & ((UINT64_C(1) << 48) - 1)), v.lo);
}

bool px_float_put(uint8_t *p, enum px_float_format f, size_t size, bool big, const struct px_number *from)
{
	enum px_float_format part = f == PX_FLOAT_PAIR ? PX_FLOAT_DOUBLE : f;
	struct px_number v = *from, rest, none;
	bool fits = fit(&v, &shapes[part], &rest);

	put_rounded(p, part, size, big, v);
	if (f != PX_FLOAT_PAIR)
		return fits;
	if (v.kind != PX_NUMBER_FINITE || rest.kind != PX_NUMBER_FINITE)
		rest = (struct px_number){ .kind = PX_NUMBER_ZERO };
	fit(&rest, &shapes[PX_FLOAT_DOUBLE], &none);
	put_rounded(p + 8, PX_FLOAT_DOUBLE, 8, big, rest);
	return fits;
}

/* Between 80 bits of x87 and 128 of IEEE the exponents are the same and only the significand is longer or shorter: all that is needed
 * for zeros and numbers that are neither denormal nor special, and do not become infinite. False: nothing is written. */
static bool ordinary(const uint8_t *in, enum px_float_format f, bool in_big, uint8_t *out,
	enum px_float_format g, size_t out_size, bool out_big)
{
	const uint64_t tail = (UINT64_C(1) << 49) - 1, half = UINT64_C(1) << 48;
	uint64_t hi, lo, sig;
	unsigned head;

	if (f == PX_FLOAT_X87) {
		sig = load64(in, false);
		head = px_get16(in + 8);
		lo = sig << 49;
	} else {
		hi = load64(in_big ? in : in + 8, in_big);
		lo = load64(in_big ? in + 8 : in, in_big);
		head = (unsigned)(hi >> 48);
		sig = TOP | hi << 15 | lo >> 49;
	}
	if ((head & 0x7fff) == 0 && (sig & ~TOP) == 0 && (f == PX_FLOAT_X87 ? sig : lo) == 0)
		sig = 0; /* a zero is one of them, too */
	else if ((head & 0x7fff) == 0 || (head & 0x7fff) == 0x7fff || !(sig & TOP))
		return false;
	if (g == PX_FLOAT_QUAD) {
		store64(out_big ? out : out + 8, out_big, (uint64_t)head << 48 | sig << 1 >> 16);
		store64(out_big ? out + 8 : out, out_big, lo);
		return true;
	}
	lo &= f == PX_FLOAT_QUAD ? tail : 0;
	if (lo > half || (lo == half && (sig & 1))) {
		if (++sig == 0) { /* all ones became 1000... */
			sig = TOP;
			head++;
		}
		if ((head & 0x7fff) == 0x7fff)
			return false;
	}
	memset(out, 0, out_size);
	store64(out, false, sig);
	px_put16(out + 8, (uint16_t)head);
	return true;
}

/* x87's 80 bits are those of x86, which is little-endian. */
static bool usual(enum px_float_format f, bool big)
{
	return f == PX_FLOAT_QUAD || (f == PX_FLOAT_X87 && !big);
}

uint64_t px_floats_convert(const uint8_t *in, enum px_float_format f, size_t in_size, bool in_big,
	uint8_t *out, enum px_float_format g, size_t out_size, bool out_big, uint64_t n)
{
	bool quick = usual(f, in_big) && usual(g, out_big);
	uint64_t first = n;

	for (uint64_t i = 0; i < n; i++, in += in_size, out += out_size) {
		struct px_number v;

		if (quick && ordinary(in, f, in_big, out, g, out_size, out_big))
			continue;
		px_float_get(in, f, in_size, in_big, &v);
		if (!px_float_put(out, g, out_size, out_big, &v) && first == n)
			first = i;
	}
	return first;
}

void px_number_text(const struct px_number *v, char *out, size_t cap)
{
	const char *sign = v->neg ? "-" : "";

	if (v->kind == PX_NUMBER_FINITE)
		snprintf(out, cap, "%s0x1.%013" PRIx64 "p%+d", sign, v->hi << 1 >> 12, v->exp);
	else
		snprintf(out, cap, "%s%s", sign,
			v->kind == PX_NUMBER_ZERO  ? "0"
			: v->kind == PX_NUMBER_INF ? "infinity"
						   : "nan");
}
