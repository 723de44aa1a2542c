/* floats.h: the formats of long double that machines have, taken apart and put together again.
 *
 * Owns nothing. For convert.c; no MPI, no sockets, and no floating-point arithmetic: so it does the same on every machine, for
 * formats that the machine itself does not have.
 */
#ifndef PX_FLOATS_H
#define PX_FLOATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are those of long_double_format in the hello. */
enum px_float_format {
	PX_FLOAT_DOUBLE, /* IEEE binary64 */
	PX_FLOAT_X87,    /* 80 bits of 12 or 16 bytes, the others are 0 */
	PX_FLOAT_QUAD,   /* IEEE binary128 */
	PX_FLOAT_PAIR, /* double-double: the sum of two binary64, the larger one first in both byte orders */
};

/* neg ? - : + of  (hi : lo) * 2^(exp - 127), with the highest bit of hi set if it is finite. */
struct px_number {
	enum px_number_kind { PX_NUMBER_ZERO, PX_NUMBER_FINITE, PX_NUMBER_INF, PX_NUMBER_NAN } kind;
	bool neg;
	int exp;
	uint64_t hi, lo; /* of NaN: its payload, left-aligned */
};

void px_float_get(const uint8_t *p, enum px_float_format f, size_t size, bool big, struct px_number *v);

/* px_float_put: v, rounded to the nearest one (ties to even), into `size` bytes. False: v is beyond the range of the format; then an
 * infinity has been written. */
bool px_float_put(uint8_t *p, enum px_float_format f, size_t size, bool big, const struct px_number *v);

/* px_floats_convert: n numbers, rounded to the nearest ones, in place if they have one size. Returns the first that is beyond the range, or n. */
uint64_t px_floats_convert(const uint8_t *in, enum px_float_format f, size_t in_size, bool in_big,
	uint8_t *out, enum px_float_format g, size_t out_size, bool out_big, uint64_t n);

/* px_number_text: v as people and C read it, "-0x1.8p+16000". */
void px_number_text(const struct px_number *v, char *out, size_t cap);

#endif
