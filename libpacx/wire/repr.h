/* repr.h: how a machine stores data: what two sites must know of each other to convert. Part of the hello.
 *
 * Owns nothing. No sockets, no MPI. What is the same on every machine that PACX runs on is not in it: short has 16 bits, int and float
 * 32, long long, double, MPI_Offset and MPI_Count 64, bool 8; integers are two's complement, floats IEEE; MPI_Aint is as long as a
 * pointer, REAL and DOUBLE PRECISION are float and double.
 */
#ifndef PX_REPR_H
#define PX_REPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The data representation of a site: byte order and sizes of the C and Fortran types. */
struct px_repr {
	uint8_t big_endian;
	uint8_t char_signed;
	uint8_t size_long, size_pointer, size_wchar, size_long_double;
	uint8_t align_double, align_long_long, align_long_double; /* inside a struct after a char */
	uint8_t long_double_format; /* enum px_float_format: 0 = as double, 1 = x87 80 bit, 2 = binary128, 3 = double-double */
	uint8_t size_fint, size_flogical;
	int32_t flogical_true; /* bit pattern of .TRUE. */
};

void px_repr_native(struct px_repr *r); /* Fortran members: the usual 4, 4, 1 */
bool px_repr_valid(const struct px_repr *r);
#define PX_REPR_SIZE 16
/* px_repr_put, px_repr_get: as it goes over a link (PROTOCOL.md, section 4). get: 0 or PX_EPROTO. */
void px_repr_put(const struct px_repr *r, uint8_t out[PX_REPR_SIZE]);
int px_repr_get(const uint8_t in[PX_REPR_SIZE], struct px_repr *r);

/* px_repr_alike: no message between the two has to be converted, whatever its datatype. */
bool px_repr_alike(const struct px_repr *a, const struct px_repr *b);
/* px_repr_layout_alike: types take the same places in memory on both (messages do not care: they are packed). */
bool px_repr_layout_alike(const struct px_repr *a, const struct px_repr *b);
/* px_repr_tell: what is different at `there` for who is at `here`, and what that costs, for people: "bytes are in big-endian order;
 * long has 32 bits ...". Empty if they are alike. Returns out. */
const char *px_repr_tell(const struct px_repr *here, const struct px_repr *there, char *out, size_t cap);

#endif
