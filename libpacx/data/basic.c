/* basic.c: see basic.h. */
#include "basic.h"

#include "convert.h"
#include "datatype.h"
#include "err.h"
#include "vendor.h"

/* Their order is the numbering: new ones go to the end. Behind each what it consists of (convert.h): one atom, or two. */
/* clang-format off */
#if defined(OPEN_MPI) || defined(PX_ABI)
#define HAS(name, else) name
#else
#define HAS(name, else) else
#endif
#define BASIC(X) \
	X(MPI_BYTE, BYTE, COUNT) X(MPI_PACKED, BYTE, COUNT) X(MPI_CHAR, BYTE, COUNT) X(MPI_SIGNED_CHAR, BYTE, COUNT) \
	X(MPI_UNSIGNED_CHAR, BYTE, COUNT) X(MPI_WCHAR, WCHAR, COUNT) X(MPI_SHORT, INT2, COUNT) \
	X(MPI_UNSIGNED_SHORT, INT2, COUNT) X(MPI_INT, INT4, COUNT) X(MPI_UNSIGNED, INT4, COUNT) X(MPI_LONG, LONG, COUNT) \
	X(MPI_UNSIGNED_LONG, ULONG, COUNT) X(MPI_LONG_LONG, INT8, COUNT) X(MPI_UNSIGNED_LONG_LONG, INT8, COUNT) \
	X(MPI_FLOAT, FLOAT, COUNT) X(MPI_DOUBLE, DOUBLE, COUNT) X(MPI_LONG_DOUBLE, LDOUBLE, COUNT) \
	X(MPI_INT8_T, BYTE, COUNT) X(MPI_INT16_T, INT2, COUNT) X(MPI_INT32_T, INT4, COUNT) X(MPI_INT64_T, INT8, COUNT) \
	X(MPI_UINT8_T, BYTE, COUNT) X(MPI_UINT16_T, INT2, COUNT) X(MPI_UINT32_T, INT4, COUNT) X(MPI_UINT64_T, INT8, COUNT) \
	X(MPI_C_BOOL, BYTE, COUNT) X(MPI_C_FLOAT_COMPLEX, FLOAT, FLOAT) X(MPI_C_DOUBLE_COMPLEX, DOUBLE, DOUBLE) \
	X(MPI_C_LONG_DOUBLE_COMPLEX, LDOUBLE, LDOUBLE) X(MPI_AINT, AINT, COUNT) X(MPI_COUNT, INT8, COUNT) \
	X(MPI_OFFSET, INT8, COUNT) X(MPI_FLOAT_INT, FLOAT, INT4) X(MPI_DOUBLE_INT, DOUBLE, INT4) \
	X(MPI_LONG_INT, LONG, INT4) X(MPI_2INT, INT4, INT4) X(MPI_SHORT_INT, INT2, INT4) \
	X(MPI_LONG_DOUBLE_INT, LDOUBLE, INT4) X(MPI_CHARACTER, BYTE, COUNT) X(MPI_LOGICAL, LOGICAL, COUNT) \
	X(MPI_INTEGER, INTEGER, COUNT) X(MPI_REAL, FLOAT, COUNT) X(MPI_DOUBLE_PRECISION, DOUBLE, COUNT) \
	X(MPI_COMPLEX, FLOAT, FLOAT) X(MPI_DOUBLE_COMPLEX, DOUBLE, DOUBLE) X(MPI_2REAL, FLOAT, FLOAT) \
	X(MPI_2DOUBLE_PRECISION, DOUBLE, DOUBLE) X(MPI_2INTEGER, INTEGER, INTEGER) X(MPI_INTEGER1, BYTE, COUNT) \
	X(MPI_INTEGER2, INT2, COUNT) X(MPI_INTEGER4, INT4, COUNT) X(MPI_INTEGER8, INT8, COUNT) X(MPI_REAL4, FLOAT, COUNT) \
	X(MPI_REAL8, DOUBLE, COUNT) X(MPI_REAL16, REAL16, COUNT) X(MPI_COMPLEX8, FLOAT, FLOAT) \
	X(MPI_COMPLEX16, DOUBLE, DOUBLE) X(MPI_COMPLEX32, REAL16, REAL16) X(MPI_CXX_BOOL, BYTE, COUNT) \
	X(MPI_CXX_FLOAT_COMPLEX, FLOAT, FLOAT) X(MPI_CXX_DOUBLE_COMPLEX, DOUBLE, DOUBLE) \
	X(MPI_CXX_LONG_DOUBLE_COMPLEX, LDOUBLE, LDOUBLE) \
	X(HAS(MPI_LOGICAL1, MPI_INTEGER1), LOGICAL1, COUNT) X(HAS(MPI_LOGICAL2, MPI_INTEGER2), LOGICAL2, COUNT) \
	X(HAS(MPI_LOGICAL4, MPI_INTEGER4), LOGICAL4, COUNT) X(HAS(MPI_LOGICAL8, MPI_INTEGER8), LOGICAL8, COUNT)
#define OPS(X) \
	X(MPI_MAX) X(MPI_MIN) X(MPI_SUM) X(MPI_PROD) X(MPI_LAND) X(MPI_BAND) X(MPI_LOR) X(MPI_BOR) X(MPI_LXOR) X(MPI_BXOR) \
	X(MPI_MAXLOC) X(MPI_MINLOC) X(MPI_REPLACE) X(MPI_NO_OP)
/* clang-format on */

#define CASE(x, ...)                                                                                         \
	case __COUNTER__ - base:                                                                             \
		return x;
#define MATCH(x, ...)                                                                                        \
	n++;                                                                                                 \
	if (t == x)                                                                                          \
		return n;
#define ATOMS(x, a, b) { PX_ATOM_##a, PX_ATOM_##b },

_Static_assert(sizeof(MPI_Aint) == sizeof(void *) && sizeof(MPI_Offset) == 8 && sizeof(MPI_Count) == 8,
	"what repr.h says of every machine");

MPI_Datatype px_basic(uint32_t code)
{
	enum { base = __COUNTER__ }; /* numbers begin with 1 */

	switch (code) {
		BASIC(CASE)
	default:
		return MPI_DATATYPE_NULL;
	}
}

static uint32_t code_of(MPI_Datatype t)
{
	uint32_t n = 0;

	BASIC(MATCH)
	return 0;
}

uint32_t px_basic_code(MPI_Datatype t, MPI_Count *bytes)
{
	uint32_t code = t == MPI_DATATYPE_NULL ? 0 : code_of(t);

	*bytes = 1;
	if (code != 0)
		return code;
	if (px_n.Type_size_x(t, bytes) != MPI_SUCCESS)
		*bytes = 0;
	return 1;
}

MPI_Op px_op_of(uint32_t code)
{
	enum { base = __COUNTER__ };

	switch (code) {
		OPS(CASE)
	default:
		return MPI_OP_NULL;
	}
}

uint32_t px_op_code(MPI_Op t)
{
	uint32_t n = 0;

	OPS(MATCH)
	return 0;
}

/* Atoms of the basic types, by code; PX_ATOM_COUNT: there is no second one. */
static const enum px_atom atoms[][2] = { { PX_ATOM_COUNT, PX_ATOM_COUNT }, BASIC(ATOMS) };

bool px_basic_floating(MPI_Datatype t)
{
	uint32_t code = t == MPI_DATATYPE_NULL ? 0 : code_of(t);

	switch (atoms[code][0]) {
	case PX_ATOM_FLOAT:
	case PX_ATOM_DOUBLE:
	case PX_ATOM_LDOUBLE:
	case PX_ATOM_REAL16:
	case PX_ATOM_COUNT:
		return true;
	default:
		return false;
	}
}

/* rep more of a basic type: a complex type is twice the same, a pair is not. */
static int sig_add(struct px_sig *s, const enum px_atom *a, uint64_t n)
{
	int rc = PX_OK;

	if (a[1] == PX_ATOM_COUNT)
		return px_sig_add(s, a[0], n);
	if (a[0] == a[1])
		return px_sig_add(s, a[0], 2 * n);
	for (; n > 0 && rc == PX_OK; n--) {
		rc = px_sig_add(s, a[0], 1);
		if (rc == PX_OK)
			rc = px_sig_add(s, a[1], 1);
	}
	return rc;
}

int px_signature_add(struct px_sig *s, uint32_t code, uint64_t n)
{
	if (code == 0 || code >= sizeof atoms / sizeof atoms[0])
		return PX_EINVAL;
	return sig_add(s, atoms[code], n);
}

static unsigned align_of(enum px_atom a, const struct px_repr *r)
{
	size_t size = px_atom_size(a, r);

	if (r->align_long_long == 1)
		return 1; /* a file: no gaps at all */
	if (a == PX_ATOM_DOUBLE)
		return r->align_double;
	if (a == PX_ATOM_LDOUBLE || (a == PX_ATOM_REAL16 && r->align_long_double == 8))
		return r->align_long_double;
	return size == 8 ? r->align_long_long : (unsigned)size;
}

static MPI_Count round_up(MPI_Count n, unsigned align)
{
	return (n + align - 1) / align * align;
}

int px_basic_parts(uint32_t code, const struct px_repr *as, MPI_Count size[2], MPI_Count at[2])
{
	struct px_repr here;
	enum px_atom b;

	if (code == 0 || code >= sizeof atoms / sizeof atoms[0])
		return 0;
	if (!as) {
		px_repr_native(&here);
		as = &here;
	}
	b = atoms[code][1];
	size[0] = (MPI_Count)px_atom_size(atoms[code][0], as);
	at[0] = 0;
	if (b == PX_ATOM_COUNT)
		return 1;
	size[1] = (MPI_Count)px_atom_size(b, as);
	at[1] = round_up(size[0], align_of(b, as));
	return 2;
}

bool px_basic_shape(
	uint32_t code, const struct px_repr *as, MPI_Count *extent, MPI_Count *true_extent, unsigned *align)
{
	MPI_Count size[2], at[2];
	int n;

	if (!as) {
		const struct px_type *p = px_type_get(px_basic(code));

		*extent = p ? p->extent : 0;
		*true_extent = p ? p->true_extent : 0;
		*align = 1; /* the vendor knows what it is for */
		return p != NULL;
	}
	n = px_basic_parts(code, as, size, at);
	if (n == 0)
		return false;
	*align = align_of(atoms[code][0], as);
	if (n == 2 && align_of(atoms[code][1], as) > *align)
		*align = align_of(atoms[code][1], as);
	*true_extent = at[n - 1] + size[n - 1];
	*extent = round_up(*true_extent, *align);
	return true;
}
