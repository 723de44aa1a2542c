/* convert.c: see convert.h.
 *
 * Design. An atom is, on two machines, either the same bytes; or the same bytes in reverse order, which is nearly everything and has
 * one loop for each length, simple enough for the compiler's vector instructions; or an integer of another length; or a
 * LOGICAL of another truth; or a long double of another format. Which of these it is, is decided once for n atoms.
 */
#include "convert.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "floats.h"

#define HOST_BIG    (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define ALWAYS      static inline __attribute__((always_inline))
#define UNSIGNED(a) ((a) == PX_ATOM_ULONG || (a) == PX_ATOM_WCHAR)

const char *px_atom_name(enum px_atom a)
{
	static const char *const name[] = {
#define X(up, text) text,
		PX_ATOMS(X)
#undef X
	};

	return name[a];
}

size_t px_atom_size(enum px_atom a, const struct px_repr *r)
{
	switch (a) {
	case PX_ATOM_BYTE:
	case PX_ATOM_LOGICAL1:
		return 1;
	case PX_ATOM_INT2:
	case PX_ATOM_LOGICAL2:
		return 2;
	case PX_ATOM_INT4:
	case PX_ATOM_FLOAT:
	case PX_ATOM_LOGICAL4:
		return 4;
	case PX_ATOM_INT8:
	case PX_ATOM_DOUBLE:
	case PX_ATOM_LOGICAL8:
		return 8;
	case PX_ATOM_LONG:
	case PX_ATOM_ULONG:
		return r->size_long;
	case PX_ATOM_WCHAR:
		return r->size_wchar;
	case PX_ATOM_AINT:
		return r->size_pointer;
	case PX_ATOM_INTEGER:
		return r->size_fint;
	case PX_ATOM_LDOUBLE:
		return r->size_long_double;
	case PX_ATOM_LOGICAL:
		return r->size_flogical;
	default:
		return 16;
	}
}

static bool is_float(enum px_atom a)
{
	return a == PX_ATOM_LDOUBLE || a == PX_ATOM_REAL16;
}

static bool is_logical(enum px_atom a)
{
	return a >= PX_ATOM_LOGICAL && a <= PX_ATOM_LOGICAL8;
}

/* A REAL*16 is binary128, but for machines whose long double is a pair of doubles. */
static enum px_float_format format_of(enum px_atom a, const struct px_repr *r)
{
	return a == PX_ATOM_LDOUBLE || r->long_double_format == PX_FLOAT_PAIR
		       ? (enum px_float_format)r->long_double_format
		       : PX_FLOAT_QUAD;
}

/* The atom is the same number of bytes with the same meaning on both; then their order is all that may differ. */
static bool same_but_order(enum px_atom a, const struct px_repr *from, const struct px_repr *to)
{
	if (px_atom_size(a, from) != px_atom_size(a, to))
		return false;
	if (is_float(a))
		return format_of(a, from) == format_of(a, to);
	return !is_logical(a) || from->flogical_true == to->flogical_true;
}

bool px_convert_same(enum px_atom a, const struct px_repr *from, const struct px_repr *to)
{
	return same_but_order(a, from, to) &&
	       (from->big_endian == to->big_endian || px_atom_size(a, from) == 1);
}

/* Reversing the bytes of n numbers. memcpy because a message lies anywhere. */
#define SWAP(bits)                                                                                           \
	static void swap##bits(const uint8_t *in, uint8_t *out, uint64_t n)                                  \
	{                                                                                                    \
		for (uint64_t i = 0; i < n; i++) {                                                           \
			uint##bits##_t v;                                                                    \
                                                                                                             \
			memcpy(&v, in + i * sizeof v, sizeof v);                                             \
			v = __builtin_bswap##bits(v);                                                        \
			memcpy(out + i * sizeof v, &v, sizeof v);                                            \
		}                                                                                            \
	}
SWAP(32)
SWAP(64)

/* Four at a time: the compiler does not see that this is one instruction each. */
static void swap16(const uint8_t *in, uint8_t *out, uint64_t n)
{
	const uint64_t low = UINT64_C(0x00ff00ff00ff00ff);
	uint64_t i = 0, v;

	for (; i + 4 <= n; i += 4) {
		memcpy(&v, in + 2 * i, 8);
		v = (v & low) << 8 | (v >> 8 & low);
		memcpy(out + 2 * i, &v, 8);
	}
	for (; i < n; i++) {
		uint8_t first = in[2 * i];

		out[2 * i] = in[2 * i + 1];
		out[2 * i + 1] = first;
	}
}

static void swap128(const uint8_t *in, uint8_t *out, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t v, w;

		memcpy(&v, in + 16 * i, 8);
		memcpy(&w, in + 16 * i + 8, 8);
		v = __builtin_bswap64(v);
		w = __builtin_bswap64(w);
		memcpy(out + 16 * i, &w, 8);
		memcpy(out + 16 * i + 8, &v, 8);
	}
}

static void swap_odd(const uint8_t *in, uint8_t *out, uint64_t n, size_t size)
{
	for (uint64_t i = 0; i < n; i++) {
		uint8_t one[16] = { 0 };

		for (size_t k = 0; k < size; k++)
			one[k] = in[i * size + size - 1 - k];
		memcpy(out + i * size, one, size);
	}
}

static void swap(const uint8_t *in, uint8_t *out, uint64_t n, size_t size)
{
	switch (size) {
	case 1:
		memmove(out, in, n);
		break;
	case 2:
		swap16(in, out, n);
		break;
	case 4:
		swap32(in, out, n);
		break;
	case 8:
		swap64(in, out, n);
		break;
	case 16:
		swap128(in, out, n);
		break;
	default:
		swap_odd(in, out, n, size);
	}
}

ALWAYS uint64_t load(const uint8_t *p, size_t size, bool big)
{
	uint16_t h;
	uint32_t w;
	uint64_t v;

	switch (size) {
	case 1:
		return *p;
	case 2:
		memcpy(&h, p, 2);
		return big != HOST_BIG ? __builtin_bswap16(h) : h;
	case 4:
		memcpy(&w, p, 4);
		return big != HOST_BIG ? __builtin_bswap32(w) : w;
	default:
		memcpy(&v, p, 8);
		return big != HOST_BIG ? __builtin_bswap64(v) : v;
	}
}

ALWAYS void store(uint8_t *p, size_t size, bool big, uint64_t v)
{
	uint16_t h = (uint16_t)v;
	uint32_t w = (uint32_t)v;

	switch (size) {
	case 1:
		*p = (uint8_t)v;
		break;
	case 2:
		h = big != HOST_BIG ? __builtin_bswap16(h) : h;
		memcpy(p, &h, 2);
		break;
	case 4:
		w = big != HOST_BIG ? __builtin_bswap32(w) : w;
		memcpy(p, &w, 4);
		break;
	default:
		v = big != HOST_BIG ? __builtin_bswap64(v) : v;
		memcpy(p, &v, 8);
	}
}

ALWAYS uint64_t extend(uint64_t v, size_t size, bool plus)
{
	unsigned drop = 64 - 8 * (unsigned)size;

	return plus ? v << drop >> drop : (uint64_t)((int64_t)(v << drop) >> drop);
}

/* n integers of `a` bytes each become integers of b bytes. plus: they are unsigned. */
ALWAYS uint64_t resize(
	const uint8_t *in, size_t a, bool abig, uint8_t *out, size_t b, bool bbig, uint64_t n, bool plus)
{
	uint64_t first = n;

	for (uint64_t i = n; i-- > 0;) {
		uint64_t v = extend(load(in + i * a, a, abig), a, plus);

		first = b < a && extend(v, b, plus) != v ? i : first;
		store(out + i * b, b, bbig, v);
	}
	return first;
}

ALWAYS uint64_t resize_order(
	const uint8_t *in, size_t a, bool abig, uint8_t *out, size_t b, bool bbig, uint64_t n, bool plus)
{
	if (abig)
		return bbig ? resize(in, a, true, out, b, true, n, plus)
			    : resize(in, a, true, out, b, false, n, plus);
	return bbig ? resize(in, a, false, out, b, true, n, plus)
		    : resize(in, a, false, out, b, false, n, plus);
}

static uint64_t resize_any(
	const uint8_t *in, size_t a, bool abig, uint8_t *out, size_t b, bool bbig, uint64_t n, bool plus)
{
	if (a == 4 && b == 8)
		return plus ? resize_order(in, 4, abig, out, 8, bbig, n, true)
			    : resize_order(in, 4, abig, out, 8, bbig, n, false);
	if (a == 8 && b == 4)
		return plus ? resize_order(in, 8, abig, out, 4, bbig, n, true)
			    : resize_order(in, 8, abig, out, 4, bbig, n, false);
	return resize(in, a, abig, out, b, bbig, n, plus);
}

static uint64_t logicals(const uint8_t *in, size_t a, const struct px_repr *from, uint8_t *out, size_t b,
	const struct px_repr *to, uint64_t n)
{
	uint64_t truth = (uint64_t)(int64_t)to->flogical_true;

	for (uint64_t i = 0; i < n; i++)
		store(out + i * b, b, to->big_endian, load(in + i * a, a, from->big_endian) != 0 ? truth : 0);
	return n;
}

uint64_t px_convert(enum px_atom a, const struct px_repr *from, const void *in, const struct px_repr *to,
	void *out, uint64_t n)
{
	size_t in_size = px_atom_size(a, from), out_size = px_atom_size(a, to);

	if (px_convert_same(a, from, to)) {
		if (in != out && n > 0)
			memcpy(out, in, n * in_size);
	} else if (same_but_order(a, from, to)) {
		if (is_float(a) && format_of(a, from) == PX_FLOAT_PAIR)
			swap64(in, out, 2 * n);
		else
			swap(in, out, n, in_size);
	} else if (is_float(a)) {
		return px_floats_convert(in, format_of(a, from), in_size, from->big_endian, out,
			format_of(a, to), out_size, to->big_endian, n);
	} else if (is_logical(a)) {
		return logicals(in, in_size, from, out, out_size, to, n);
	} else {
		return resize_any(
			in, in_size, from->big_endian, out, out_size, to->big_endian, n, UNSIGNED(a));
	}
	return n;
}

void px_atom_text(enum px_atom a, const struct px_repr *r, const void *in, char *out, size_t cap)
{
	size_t size = px_atom_size(a, r);
	struct px_number v;

	if (is_float(a)) {
		px_float_get(in, format_of(a, r), size, r->big_endian, &v);
		px_number_text(&v, out, cap);
	} else if (UNSIGNED(a)) {
		snprintf(out, cap, "%" PRIu64, load(in, size, r->big_endian));
	} else {
		snprintf(out, cap, "%" PRId64, (int64_t)extend(load(in, size, r->big_endian), size, false));
	}
}

int px_sig_add(struct px_sig *s, enum px_atom a, uint64_t count)
{
	if (count == 0)
		return PX_OK;
	if (s->n > 0 && s->run[s->n - 1].atom == a) {
		s->run[s->n - 1].count += count;
		return PX_OK;
	}
	if (s->n == s->cap) {
		int cap = s->cap ? 2 * s->cap : 4;
		struct px_sig_run *more = realloc(s->run, (size_t)cap * sizeof *more);

		if (!more)
			return PX_ENOMEM;
		s->run = more;
		s->cap = cap;
	}
	s->run[s->n++] = (struct px_sig_run){ count, a };
	return PX_OK;
}

void px_sig_free(struct px_sig *s)
{
	free(s->run);
	memset(s, 0, sizeof *s);
}

uint64_t px_sig_size(const struct px_sig *s, const struct px_repr *r)
{
	uint64_t bytes = 0;

	for (int i = 0; i < s->n; i++)
		bytes += s->run[i].count * px_atom_size(s->run[i].atom, r);
	return bytes;
}

uint64_t px_sig_length(
	const struct px_sig *s, const struct px_repr *from, const struct px_repr *to, uint64_t bytes)
{
	uint64_t one = px_sig_size(s, from), sum;

	if (one == 0)
		return 0;
	sum = bytes / one * px_sig_size(s, to);
	bytes %= one;
	for (int i = 0; i < s->n && bytes > 0; i++) {
		uint64_t in = px_atom_size(s->run[i].atom, from), n = bytes / in;

		n = n < s->run[i].count ? n : s->run[i].count;
		sum += n * px_atom_size(s->run[i].atom, to);
		if (n < s->run[i].count)
			break;
		bytes -= n * in;
	}
	return sum;
}

bool px_sig_same(const struct px_sig *s, const struct px_repr *from, const struct px_repr *to)
{
	for (int i = 0; i < s->n; i++)
		if (!px_convert_same(s->run[i].atom, from, to))
			return false;
	return true;
}

bool px_sig_in_place(const struct px_sig *s, const struct px_repr *from, const struct px_repr *to)
{
	for (int i = 0; i < s->n; i++)
		if (px_atom_size(s->run[i].atom, from) != px_atom_size(s->run[i].atom, to))
			return false;
	return true;
}

/* Are the atoms of an element, each, the same bytes on both machines, or the same in reverse? Then all elements that are there are
 * converted by one loop that decides nothing for an atom but its length: structures of a few numbers cost a tenth of what they would. */
static void plan(struct px_cursor *c)
{
	const struct px_sig *s = c->sig;
	uint64_t one = 0;

	if (s->n < 2 || s->n > PX_CURSOR_STEPS)
		return;
	for (int i = 0; i < s->n; i++) {
		enum px_atom a = s->run[i].atom;
		size_t size = px_atom_size(a, c->from);

		if (!same_but_order(a, c->from, c->to) ||
			(is_float(a) && format_of(a, c->from) == PX_FLOAT_PAIR))
			return;
		c->step[i] = (struct px_cursor_step){ (uint8_t)size, !px_convert_same(a, c->from, c->to) };
		one += size * s->run[i].count;
	}
	c->one = one;
}

void px_cursor_init(struct px_cursor *c, const struct px_sig *s, const struct px_repr *from,
	const struct px_repr *to, uint64_t elements)
{
	*c = (struct px_cursor){ .sig = s, .from = from, .to = to, .left = s->n > 0 ? elements : 0 };
	/* Elements of one kind of atom are one long run. */
	if (s->n == 1)
		c->left = c->left > 0;
	c->whole = s->n == 1 ? elements * s->run[0].count : 0;
	plan(c);
}

ALWAYS void one_atom(const uint8_t *in, uint8_t *out, size_t size, bool swaps)
{
	switch (size) {
	case 4:
		store(out, 4, swaps != HOST_BIG, load(in, 4, HOST_BIG));
		break;
	case 8:
		store(out, 8, swaps != HOST_BIG, load(in, 8, HOST_BIG));
		break;
	default:
		if (swaps)
			swap(in, out, 1, size);
		else
			memmove(out, in, size);
	}
}

/* The elements that have arrived whole, if each is simple. */
static void elements(struct px_cursor *c, const uint8_t *in, uint64_t have, uint8_t *out)
{
	uint64_t n = (have - c->in) / c->one;

	n = n < c->left ? n : c->left;
	in += c->in;
	out += c->out;
	for (uint64_t e = 0; e < n; e++)
		for (int i = 0; i < c->sig->n; i++) {
			struct px_cursor_step s = c->step[i];
			uint64_t count = c->sig->run[i].count;

			if (count == 1)
				one_atom(in, out, s.size, s.swap);
			else if (s.swap)
				swap(in, out, count, s.size);
			else if (in != out)
				memcpy(out, in, count * s.size);
			in += count * s.size;
			out += count * s.size;
			c->atoms += count;
		}
	c->in += n * c->one;
	c->out += n * c->one;
	c->left -= n;
}

static void misfit(struct px_cursor *c, enum px_atom a, uint64_t which, const uint8_t *in)
{
	if (c->misfit)
		return;
	c->misfit = true;
	c->which = which;
	c->atom = a;
	px_atom_text(a, c->from, in, c->value, sizeof c->value);
}

void px_cursor_run(struct px_cursor *c, const void *in, uint64_t have, void *out)
{
	while (c->left > 0) {
		const struct px_sig_run *run = &c->sig->run[c->run];
		size_t in_size = px_atom_size(run->atom, c->from), out_size = px_atom_size(run->atom, c->to);
		uint64_t count = c->whole > 0 ? c->whole : run->count, n, bad;

		if (c->one > 0 && c->run == 0 && c->in_run == 0) {
			elements(c, in, have, out);
			if (c->left == 0)
				return;
		}
		n = (have - c->in) / in_size;
		n = n < count - c->in_run ? n : count - c->in_run;
		bad = px_convert(
			run->atom, c->from, (const uint8_t *)in + c->in, c->to, (uint8_t *)out + c->out, n);
		if (bad < n)
			misfit(c, run->atom, c->atoms + bad, (const uint8_t *)in + c->in + bad * in_size);
		c->atoms += n;
		c->in += n * in_size;
		c->out += n * out_size;
		c->in_run += n;
		if (c->in_run < count)
			return;
		c->in_run = 0;
		if (++c->run == c->sig->n) {
			c->run = 0;
			c->left--;
		}
	}
}
