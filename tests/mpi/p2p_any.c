/*
 * p2p_any - every rank sends MESSAGES (argument 1) messages of mixed sizes to every rank, itself included, while it
 * receives with several any-source any-tag receives posted at once.  Checked: source, tag, count, data, that none is
 * lost or doubled, and the order: among the receives in the order in which they were POSTED, the messages of one
 * source appear in the order sent (completion may be seen in any order).
 * Arguments: messages per pair (default 40, at most 32000), receives outstanding (4), seed (1), largest (300000).
 */
#include "check.h"

enum { SENDS = 8, MOST_RECVS = 64 };

static int messages, largest, seed;

static int size_of(int src, int dst, int i)
{
	uint64_t h = chk_seed(src, dst, i, seed);
	int kind = (int)(h % 100), most = kind < 8    ? 1
					  : kind < 50 ? 64
					  : kind < 80 ? 4096
					  : kind < 95 ? 40000
						      : largest;

	if (most > largest)
		most = largest;
	return (int)((h >> 20) % (uint64_t)(most + (most > 1)));
}

/* Posted receive number p was completed by message msg[p] of source from[p]. */
static int *from, *msg;

static void check_message(const MPI_Status *st, int posted, const unsigned char *buf, int *seen)
{
	int s = st->MPI_SOURCE, i = st->MPI_TAG;

	if (!CHECK(s >= 0 && s < chk_size) || !CHECK(i >= 0 && i < messages))
		return;
	CHECK_STATUS(st, s, i, MPI_BYTE, size_of(s, chk_rank, i));
	CHECK_BYTES(buf, (size_t)size_of(s, chk_rank, i), chk_seed(s, chk_rank, i, seed));
	CHECK_EQ(seen[s * messages + i]++, 0);
	from[posted] = s;
	msg[posted] = i;
}

int main(int argc, char **argv)
{
	unsigned char *in[MOST_RECVS], *out[SENDS];
	MPI_Request q[MOST_RECVS + SENDS];
	int number[MOST_RECVS], recvs, posted = 0, done = 0, sent = 0, acked = 0, turn = 0;

	chk_begin(&argc, &argv, "p2p_any", 1);
	messages = (int)chk_arg(argc, argv, 1, 40);
	recvs = (int)chk_arg(argc, argv, 2, 4);
	seed = (int)chk_arg(argc, argv, 3, 1);
	largest = (int)chk_arg(argc, argv, 4, 300000);
	if (messages < 1 || messages > 32000 || recvs < 1 || recvs > MOST_RECVS || largest < 1)
		MPI_Abort(MPI_COMM_WORLD, 97);
	int total = messages * chk_size;
	int *seen = calloc((size_t)total, sizeof *seen);
	int *next = calloc((size_t)chk_size, sizeof *next);
	from = calloc((size_t)total, sizeof *from);
	msg = calloc((size_t)total, sizeof *msg);
	for (int i = 0; i < MOST_RECVS + SENDS; i++)
		q[i] = MPI_REQUEST_NULL;
	for (int i = 0; i < recvs; i++)
		in[i] = chk_alloc((size_t)largest);
	for (int i = 0; i < SENDS; i++)
		out[i] = chk_alloc((size_t)largest);
	for (int i = 0; i < recvs && posted < total; i++) {
		number[i] = posted++;
		MPI_Irecv(in[i], largest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &q[i]);
	}
	while (done < total || acked < total) {
		MPI_Status st;
		int k, flag = 1;

		/* fill free send slots: message i to all, starting with the right neighbour */
		for (int j = 0; j < SENDS && sent < total; j++) {
			int dst = (chk_rank + 1 + sent) % chk_size, i = sent / chk_size,
			    n = size_of(chk_rank, dst, i);

			if (q[recvs + j] != MPI_REQUEST_NULL)
				continue;
			chk_fill(out[j], (size_t)n, chk_seed(chk_rank, dst, i, seed));
			if (chk_mix(7, (uint64_t)sent) % 8 == 0)
				MPI_Issend(out[j], n, MPI_BYTE, dst, i, MPI_COMM_WORLD, &q[recvs + j]);
			else
				MPI_Isend(out[j], n, MPI_BYTE, dst, i, MPI_COMM_WORLD, &q[recvs + j]);
			sent++;
		}
		if (turn++ % 4)
			MPI_Waitany(recvs + SENDS, q, &k, &st);
		else
			MPI_Testany(recvs + SENDS, q, &k, &flag, &st);
		if (!flag || k == MPI_UNDEFINED)
			continue;
		if (k >= recvs) {
			acked++;
			continue;
		}
		check_message(&st, number[k], in[k], seen);
		done++;
		if (posted < total) {
			number[k] = posted++;
			MPI_Irecv(
				in[k], largest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &q[k]);
		}
	}
	for (int p = 0; p < total; p++)
		CHECK_EQ(msg[p], next[from[p]]++);
	for (int s = 0; s < chk_size; s++)
		CHECK_EQ(next[s], messages);
	MPI_Barrier(
		MPI_COMM_WORLD); /* a rank that still has any-tag receives posted must not see the messages of chk_end */
	return chk_end();
}
