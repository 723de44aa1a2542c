/*
 * external.c - MPI_Pack_external and kin: the bytes are the standard's, whatever machine packs, and any other one unpacks them; structures,
 * parts of buffers, and what does not fit. Only for worlds of several sites: what the vendors do by themselves differs (VENDORS.md).
 */
#include "check.h"

#include <stddef.h>

#define TAG 7

struct mixed {
	char c;
	long l;
	double d;
	short s[2];
};

/* char 65, long -2, double 1.5, shorts 258 and -3; an int; a long double 1.25. */
static const unsigned char standard[] = { 65, 255, 255, 255, 254, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 1, 2, 255,
	253, 1, 2, 3, 4, 0x3f, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };

static MPI_Datatype make(void)
{
	int blocks[4] = { 1, 1, 1, 2 };
	MPI_Aint at[4] = { offsetof(struct mixed, c), offsetof(struct mixed, l), offsetof(struct mixed, d),
		offsetof(struct mixed, s) };
	MPI_Datatype types[4] = { MPI_CHAR, MPI_LONG, MPI_DOUBLE, MPI_SHORT }, bare, t;

	MPI_Type_create_struct(4, blocks, at, types, &bare);
	MPI_Type_create_resized(bare, 0, sizeof(struct mixed), &t);
	MPI_Type_commit(&t);
	MPI_Type_free(&bare);
	return t;
}

static void unpack(char *in, MPI_Datatype t)
{
	struct mixed m;
	long double ld = 0;
	MPI_Aint at = 0;
	int i = 0;

	memset(&m, 0, sizeof m);
	CHECK_EQ(MPI_Unpack_external("external32", in, sizeof standard, &at, &m, 1, t), MPI_SUCCESS);
	CHECK_EQ(MPI_Unpack_external("external32", in, sizeof standard, &at, &i, 1, MPI_INT), MPI_SUCCESS);
	CHECK_EQ(MPI_Unpack_external("external32", in, sizeof standard, &at, &ld, 1, MPI_LONG_DOUBLE),
		MPI_SUCCESS);
	CHECK(m.c == 65 && m.l == -2 && m.d == 1.5 && m.s[0] == 258 && m.s[1] == -3);
	CHECK_EQ(i, 0x01020304);
	CHECK(ld == 1.25L);
	CHECK_EQ(at, sizeof standard);
}

int main(int argc, char **argv)
{
	struct mixed m = { 65, -2, 1.5, { 258, -3 } };
	long wide = sizeof wide == 8 ? (long)(1ll << 40) : 5;
	char out[sizeof standard + 1], in[sizeof standard];
	MPI_Aint size, sum = 0, at = 0;
	long double ld = 1.25L;
	int i = 0x01020304;
	MPI_Datatype t;

	chk_begin(&argc, &argv, "external", 2);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	t = make();
	MPI_Pack_external_size("external32", 1, t, &size);
	sum += size;
	MPI_Pack_external_size("external32", 1, MPI_INT, &size);
	sum += size;
	MPI_Pack_external_size("external32", 1, MPI_LONG_DOUBLE, &size);
	CHECK_EQ(sum + size, sizeof standard);
	memset(out, 0x11, sizeof out);
	CHECK_EQ(MPI_Pack_external("external32", &m, 1, t, out, sizeof standard, &at), MPI_SUCCESS);
	CHECK_EQ(MPI_Pack_external("external32", &i, 1, MPI_INT, out, sizeof standard, &at), MPI_SUCCESS);
	CHECK_EQ(MPI_Pack_external("external32", &ld, 1, MPI_LONG_DOUBLE, out, sizeof standard, &at),
		MPI_SUCCESS);
	CHECK_EQ(at, sizeof standard);
	CHECK(memcmp(out, standard, sizeof standard) == 0);
	CHECK(out[sizeof standard] == 0x11);
	CHECK_EQ(chk_class(MPI_Pack_external("external32", &i, 1, MPI_INT, out, sizeof standard, &at)),
		MPI_ERR_TRUNCATE);
	CHECK_EQ(at, sizeof standard);
	for (int k = 1; k < chk_size; k++) {
		int to = (chk_rank + k) % chk_size, from = (chk_rank - k + chk_size) % chk_size;

		MPI_Sendrecv(out, sizeof standard, MPI_BYTE, to, TAG, in, sizeof in, MPI_BYTE, from, TAG,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		unpack(in, t);
	}
	at = 0; /* a long is 4 bytes there */
	CHECK_EQ(chk_class(MPI_Pack_external("external32", &wide, 1, MPI_LONG, out, sizeof standard, &at)),
		sizeof wide == 8 ? MPI_ERR_CONVERSION : MPI_SUCCESS);
	MPI_Type_free(&t);
	return chk_end();
}
