/*
 * blocks - allgather and allgatherv of bytes on both sides of the lengths at which blocks are broadcast one by one and in segments: in place and
 * not, where the blocks lie in the receive buffer as they travel and where they do not (gaps, backwards, strided), with empty ones and one
 * that has nearly all; blocking, and two under way at once. What lies between and around the blocks stays, and so does what is sent. On the
 * world, on a communicator whose even ranks come first, and on all but the last rank.
 */
#include "check.h"

#define AROUND 64
#define MOST   (4 << 20) /* of all blocks together */
#define GAP    24

static int r, n;
static MPI_Comm comm;
static unsigned char *in, *out, *out2;
static int counts[64], displs[64];

static unsigned char val(int rank, int i)
{
	return (unsigned char)chk_mix((uint64_t)rank + 1, (uint64_t)i);
}

static void fill(unsigned char *at, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = val(r, i);
}

/* Bytes of block k, and where it is to lie: 0 side by side, 1 with gaps, 2 backwards. Returns the bytes up to the end. */
static int lay_out(int total, int shape, int order)
{
	int at = AROUND, end;

	for (int k = 0; k < n; k++)
		counts[k] = shape == 0   ? total / n
			    : shape == 1 ? (k == n / 2     ? total - n
						   : k % 2 ? 1
							   : 0)
					 : total / n / 2 * (k % 3);
	for (int i = 0; i < n; i++) {
		int k = order == 2 ? n - 1 - i : i;

		displs[k] = at;
		at += counts[k] + (order == 1 ? GAP : 0);
	}
	end = at + AROUND;
	return end;
}

static int wrong(const unsigned char *got, int end)
{
	int bad = 0, of = 0;

	for (int k = 0; k < n; k++) {
		for (int i = 0; i < counts[k]; i++)
			bad += got[displs[k] + i] != val(k, i);
		of += counts[k];
	}
	for (int i = 0; i < end; i++)
		of -= got[i] != 0xee;
	/* Of those that are no block's, none was touched: all others together are as many as are not 0xee, but for values that happen to be. */
	for (int k = 0; k < n; k++)
		for (int i = 0; i < counts[k]; i++)
			of -= val(k, i) == 0xee;
	return bad + (of != 0);
}

static void vary(int total, int shape, int order)
{
	int end = lay_out(total, shape, order), mine = counts[r], bad = 0;
	MPI_Request q[2];

	memset(out, 0xee, (size_t)end);
	memset(out2, 0xee, (size_t)end);
	fill(in, mine);
	MPI_Allgatherv(in, mine, MPI_BYTE, out, counts, displs, MPI_BYTE, comm);
	CHECK_EQ(wrong(out, end), 0);
	for (int i = 0; i < mine; i++)
		bad += in[i] != val(r, i);
	CHECK_EQ(bad, 0);

	memset(out, 0xee, (size_t)end);
	fill(out + displs[r], mine);
	MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, counts, displs, MPI_BYTE, comm);
	CHECK_EQ(wrong(out, end), 0);

	memset(out, 0xee, (size_t)end);
	fill(out2 + displs[r], mine);
	MPI_Iallgatherv(in, mine, MPI_BYTE, out, counts, displs, MPI_BYTE, comm, &q[0]);
	MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out2, counts, displs, MPI_BYTE, comm, &q[1]);
	MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	CHECK_EQ(wrong(out, end) + wrong(out2, end), 0);
}

/* Blocks that are alike: from each second byte, and to each second byte of blocks that are interleaved. */
static void strided(int total)
{
	int each = total / n, bad = 0;
	MPI_Datatype apart, place, moved;
	MPI_Request q;

	if (each == 0)
		return;
	MPI_Type_vector(each, 1, 2, MPI_BYTE, &apart);
	MPI_Type_vector(each, 1, n, MPI_BYTE, &place);
	MPI_Type_commit(&apart);
	MPI_Type_create_resized(place, 0, 1, &moved);
	MPI_Type_commit(&moved);
	for (int i = 0; i < 2 * each; i++)
		in[i] = i % 2 ? 0 : val(r, i / 2);
	memset(out, 0xee, (size_t)(each * n));
	memset(out2, 0xee, (size_t)(each * n));
	MPI_Iallgather(in, 1, apart, out2, each, MPI_BYTE, comm, &q);
	MPI_Allgather(in, 1, apart, out, 1, moved, comm);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	for (int k = 0; k < n; k++)
		for (int i = 0; i < each; i++)
			bad += out[i * n + k] != val(k, i) || out2[k * each + i] != val(k, i);
	CHECK_EQ(bad, 0);
	fill(in, each);
	memset(out, 0xee, (size_t)(each * n));
	MPI_Allgather(in, each, MPI_BYTE, out, each, MPI_BYTE, comm);
	memset(out2, 0xee, (size_t)(each * n));
	fill(out2 + r * each, each);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out2, each, MPI_BYTE, comm);
	for (int i = 0; i < each * n; i++)
		bad += out[i] != val(i / each, i % each) || out2[i] != out[i];
	CHECK_EQ(bad, 0);
	MPI_Type_free(&apart);
	MPI_Type_free(&place);
	MPI_Type_free(&moved);
}

static void all(void)
{
	static const int totals[] = { 0, 40, 3000, 256 << 10, (256 << 10) - 8, (256 << 10) + 99, 1 << 20,
		3300000 };

	if (comm == MPI_COMM_NULL)
		return;
	MPI_Comm_rank(comm, &r);
	MPI_Comm_size(comm, &n);
	for (int k = 0; k < (int)(sizeof totals / sizeof totals[0]); k++) {
		for (int shape = 0; shape < 3; shape++)
			for (int order = 0; order < 3; order++)
				if (totals[k] > n * 4 &&
					(totals[k] < 250000 || totals[k] == 256 << 10 || order == shape))
					vary(totals[k], shape, order);
		if (totals[k] <= 256 << 10)
			strided(totals[k]);
	}
}

int main(int argc, char **argv)
{
	size_t most = MOST + 2 * AROUND + 64 * GAP;

	chk_begin(&argc, &argv, "blocks", 2);
	in = chk_alloc(2 * most);
	out = chk_alloc(most);
	out2 = chk_alloc(most);
	comm = MPI_COMM_WORLD;
	all();
	MPI_Comm_split(MPI_COMM_WORLD, 0, chk_rank % 2 * chk_size + chk_rank, &comm);
	all();
	MPI_Comm_free(&comm);
	MPI_Comm_split(MPI_COMM_WORLD, chk_rank == chk_size - 1 ? MPI_UNDEFINED : 0, chk_rank, &comm);
	all();
	if (comm != MPI_COMM_NULL)
		MPI_Comm_free(&comm);
	return chk_end();
}
