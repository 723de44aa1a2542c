/* lossy.c: see lossy.h.
 *
 * Design. A body is a head of eight bytes (size of a number, zero, the exponent of the tolerance, which is a power of two, the
 * array's shape) and a zfp stream in its fixed-accuracy mode. A segment may begin within a row, and its last row or plane may not be
 * whole: rows are cut from where the segment begins, which keeps neighbours together all the same, and the last one is filled
 * up with the numbers before it. zfp keeps to its tolerance for ordinary numbers, but promises nothing for some others, so what was
 * packed is unpacked and compared, number by number. Its decoder trusts the stream: it gets a copy with zeros behind it as far as a
 * stream of so many numbers can reach.
 */
#include "lossy.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zfp.h>

#include "endian.h"
#include "err.h"

/* zfp's stream is one of words in the byte order of the machine. */
#define HOST_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

#define HEAD  8
#define SLACK 64 /* bytes: zfp reads whole words */

/* The array of a segment's numbers. */
struct array {
	size_t row, plane,
		planes; /* numbers, rows, planes; each 1 or more; row = all of them: one dimension */
	int dims;
};

/* With whole rows and planes; false: they would be longer than all of it. */
static bool array_of(size_t count, size_t row, size_t plane, struct array *a)
{
	if (row > count || row * (plane > 0 ? plane : 1) > count || (row == 0 && plane > 0))
		return false;
	a->dims = row == 0 ? 1 : plane == 0 ? 2 : 3;
	a->row = row == 0 ? count : row;
	a->plane = a->dims == 2 ? (count + row - 1) / row : a->dims == 3 ? plane : 1;
	a->planes = a->dims == 3 ? (count + row * plane - 1) / (row * plane) : 1;
	return true;
}

/* A zfp stream over its own memory, for the numbers of an array. */
struct coder {
	zfp_stream *z;
	zfp_field *field;
	bitstream *bits;
	uint8_t *room, *whole; /* whole: the numbers with those that fill up the array */
	size_t size, bytes;
};

static void coder_close(struct coder *c)
{
	if (c->bits)
		stream_close(c->bits);
	if (c->z)
		zfp_stream_close(c->z);
	if (c->field)
		zfp_field_free(c->field);
	free(c->room);
	free(c->whole);
}

static bool coder_open(struct coder *c, unsigned elem, int exponent, const struct array *a)
{
	zfp_type type = elem == 4 ? zfp_type_float : zfp_type_double;

	memset(c, 0, sizeof *c);
	c->bytes = a->row * a->plane * a->planes * elem;
	c->whole = malloc(c->bytes);
	c->z = zfp_stream_open(NULL);
	c->field = a->dims == 1   ? zfp_field_1d(c->whole, type, a->row)
		   : a->dims == 2 ? zfp_field_2d(c->whole, type, a->row, a->plane)
				  : zfp_field_3d(c->whole, type, a->row, a->plane, a->planes);
	if (!c->z || !c->field || !c->whole)
		return false;
	zfp_stream_set_accuracy(c->z, ldexp(1, exponent));
	c->size = zfp_stream_maximum_size(c->z, c->field);
	c->room = calloc(1, c->size + SLACK);
	c->bits = c->room ? stream_open(c->room, c->size + SLACK) : NULL;
	if (!c->bits)
		return false;
	zfp_stream_set_bit_stream(c->z, c->bits);
	zfp_stream_rewind(c->z);
	return true;
}

static double number(const uint8_t *at, unsigned elem)
{
	double d;
	float f;

	if (elem == 8) {
		memcpy(&d, at, 8);
		return d;
	}
	memcpy(&f, at, 4);
	return f;
}

/* The largest magnitude; NaN or infinity if there is one. */
static double largest(unsigned elem, const uint8_t *in, size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i += elem) {
		double v = fabs(number(in + i, elem));

		if (!isfinite(v))
			return v;
		most = v > most ? v : most;
	}
	return most;
}

static bool within(double bound, unsigned elem, const uint8_t *a, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i += elem)
		if (!(fabs(number(a + i, elem) - number(b + i, elem)) <= bound))
			return false;
	return true;
}

static bool kept(double bound, unsigned elem, const uint8_t *in, size_t n, const uint8_t *body, size_t m)
{
	uint8_t *back = malloc(n);
	bool ok =
		back && pxd_lossy_unpack(elem, body, m, back, n) == PX_OK && within(bound, elem, in, back, n);

	free(back);
	return ok;
}

/* The numbers of in, and copies of those a row before where the array goes on. */
static void fill(struct coder *c, const struct array *a, unsigned elem, const uint8_t *in, size_t n)
{
	size_t step = a->row * elem;

	memcpy(c->whole, in, n);
	for (size_t i = n; i < c->bytes; i += elem)
		memcpy(c->whole + i, c->whole + i - step, elem);
}

/* Planes or rows of which there are not two would be mostly filling. */
static void shape(const struct px_hint *h, size_t count, uint16_t *row, uint16_t *plane)
{
	*row = 2 * (size_t)h->row <= count ? h->row : 0;
	*plane = *row > 0 && 2 * (size_t)h->row * h->plane <= count ? h->plane : 0;
}

size_t pxd_lossy_pack(
	const struct px_hint *h, unsigned elem, const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	double bound = h->bound, most;
	struct array a;
	struct coder c;
	uint16_t row, plane;
	int exponent;
	size_t m = 0;

	if (HOST_BIG || (elem != 4 && elem != 8) || n == 0 || n % elem != 0)
		return 0;
	most = largest(elem, in, n);
	bound = bound < 0 ? -bound * most : bound;
	if (!isfinite(most) || !isfinite(bound) || bound <= 0)
		return 0;
	frexp(bound, &exponent);
	exponent--; /* 2^exponent <= bound */
	shape(h, n / elem, &row, &plane);
	if (!array_of(n / elem, row, plane, &a))
		return 0;
	if (coder_open(&c, elem, exponent, &a)) {
		fill(&c, &a, elem, in, n);
		m = zfp_compress(c.z, c.field);
	}
	if (m > 0 && m + HEAD < n && m + HEAD <= cap) {
		out[0] = (uint8_t)elem;
		out[1] = 0;
		px_put16(out + 2, (uint16_t)exponent);
		px_put16(out + 4, row);
		px_put16(out + 6, plane);
		memcpy(out + HEAD, c.room, m);
		m += HEAD;
	} else {
		m = 0;
	}
	coder_close(&c);
	return m > 0 && kept(bound, elem, in, n, out, m) ? m : 0;
}

int pxd_lossy_unpack(unsigned elem, const uint8_t *in, size_t n, uint8_t *out, size_t want)
{
	struct array a;
	struct coder c;
	int exponent, rc = PX_EPROTO;

	if (HOST_BIG || (elem != 4 && elem != 8) || want == 0 || want % elem != 0 || n <= HEAD || n >= want ||
		in[0] != elem || in[1] != 0)
		return PX_EPROTO;
	exponent = (int16_t)px_get16(in + 2);
	if (exponent < -1075 || exponent > 1023)
		return PX_EPROTO;
	if (!array_of(want / elem, px_get16(in + 4), px_get16(in + 6), &a))
		return PX_EPROTO;
	if (!coder_open(&c, elem, exponent, &a)) {
		rc = PX_ENOMEM;
	} else if (n - HEAD <= c.size) {
		memcpy(c.room, in + HEAD, n - HEAD);
		if (zfp_decompress(c.z, c.field) == n - HEAD) {
			memcpy(out, c.whole, want);
			rc = PX_OK;
		}
	}
	coder_close(&c);
	return rc;
}
