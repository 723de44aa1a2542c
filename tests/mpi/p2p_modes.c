/*
 * p2p_modes - every send mode, blocking and not, at sizes around the usual protocol limits.
 * Up to 64 KB all pairs (self too) exchange at once; above, each rank sends to one other, at a changing distance.
 */
#include "check.h"

enum { STANDARD, SYNC, BUFFERED, READY, MODES };
enum { RECV_POSTED, RECV_LATER, ALL_NONBLOCKING, FORMS };

static const int sizes[] = { 0, 1, 8, 1967, 1968, 1969, 4096, 8111, 8112, 8113, 65536, 262143, 262144, 262145,
	1048575, 1048576, 1048577, 5242880 };

static void send_blocking(int mode, void *p, int n, int dst, int tag)
{
	switch (mode) {
	case STANDARD:
		MPI_Send(p, n, MPI_BYTE, dst, tag, MPI_COMM_WORLD);
		break;
	case SYNC:
		MPI_Ssend(p, n, MPI_BYTE, dst, tag, MPI_COMM_WORLD);
		break;
	case BUFFERED:
		MPI_Bsend(p, n, MPI_BYTE, dst, tag, MPI_COMM_WORLD);
		break;
	default:
		MPI_Rsend(p, n, MPI_BYTE, dst, tag, MPI_COMM_WORLD);
	}
}

static void send_start(int mode, void *p, int n, int dst, int tag, MPI_Request *q)
{
	switch (mode) {
	case STANDARD:
		MPI_Isend(p, n, MPI_BYTE, dst, tag, MPI_COMM_WORLD, q);
		break;
	case SYNC:
		MPI_Issend(p, n, MPI_BYTE, dst, tag, MPI_COMM_WORLD, q);
		break;
	case BUFFERED:
		MPI_Ibsend(p, n, MPI_BYTE, dst, tag, MPI_COMM_WORLD, q);
		break;
	default:
		MPI_Irsend(p, n, MPI_BYTE, dst, tag, MPI_COMM_WORLD, q);
	}
}

/* One exchange: the first distance, how many, one send mode, one order of posting. */
static void exchange(int size, int mode, int form, int first, int count, int tag)
{
	unsigned char *out = chk_alloc((size_t)size * (size_t)count),
		      *in = chk_alloc((size_t)size * (size_t)count);
	MPI_Request *q = chk_alloc(sizeof *q * 2 * (size_t)count);
	MPI_Status *st = chk_alloc(sizeof *st * 2 * (size_t)count);
	void *attached = NULL;
	int nq = 0, bytes = count * (size + MPI_BSEND_OVERHEAD), dummy;

	memset(in, 0xA5, (size_t)size * (size_t)count);
	if (mode == BUFFERED) {
		attached = chk_alloc((size_t)bytes);
		MPI_Buffer_attach(attached, bytes);
	}
	if (form != RECV_LATER)
		for (int k = 0; k < count; k++)
			MPI_Irecv(in + (size_t)k * (size_t)size, size, MPI_BYTE,
				(chk_rank - first - k + 2 * chk_size) % chk_size, tag, MPI_COMM_WORLD,
				&q[nq++]);
	if (mode == READY)
		chk_barrier(MPI_COMM_WORLD);
	for (int k = 0; k < count; k++) {
		int dst = (chk_rank + first + k) % chk_size;
		unsigned char *p = out + (size_t)k * (size_t)size;

		chk_fill(p, (size_t)size, chk_seed(chk_rank, dst, tag, 0));
		if (form == RECV_POSTED)
			send_blocking(mode, p, size, dst, tag);
		else
			send_start(mode, p, size, dst, tag, &q[nq++]);
	}
	if (form == RECV_LATER) {
		for (int k = 0; k < count; k++)
			MPI_Recv(in + (size_t)k * (size_t)size, size, MPI_BYTE,
				(chk_rank - first - k + 2 * chk_size) % chk_size, tag, MPI_COMM_WORLD,
				&st[k]);
		MPI_Waitall(nq, q, MPI_STATUSES_IGNORE);
	} else {
		MPI_Waitall(nq, q, st);
	}
	for (int k = 0; k < count; k++) {
		int src = (chk_rank - first - k + 2 * chk_size) % chk_size;

		CHECK_STATUS(&st[k], src, tag, MPI_BYTE, size);
		CHECK_BYTES(in + (size_t)k * (size_t)size, (size_t)size, chk_seed(src, chk_rank, tag, 0));
	}
	for (int i = 0; i < nq; i++)
		CHECK(q[i] == MPI_REQUEST_NULL);
	if (mode == BUFFERED) {
		void *back = NULL;
		MPI_Buffer_detach(&back, &dummy);
		CHECK(back == attached);
		CHECK_EQ(dummy, bytes);
		free(attached);
	}
	free(out);
	free(in);
	free(q);
	free(st);
}

int main(int argc, char **argv)
{
	int phase = 0;

	chk_begin(&argc, &argv, "p2p_modes", 1);
	int largest = (int)chk_arg(argc, argv, 1, 5242880);
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
		for (int mode = 0; mode < MODES && sizes[s] <= largest; mode++)
			for (int form = 0; form < FORMS; form++) {
				if (form == RECV_LATER && mode != SYNC &&
					!(mode == STANDARD && sizes[s] > 65536))
					continue; /* ready needs the receive first; the others say nothing new */
				phase++;
				if (sizes[s] <= 65536)
					exchange(sizes[s], mode, form, 0, chk_size, phase);
				else
					exchange(sizes[s], mode, form, 1 + phase % chk_size, 1, phase);
			}
	return chk_end();
}
