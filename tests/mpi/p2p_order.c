/*
 * p2p_order - messages do not overtake.  Phase A: receives name their source; each takes one tag or any.  Such a
 * program is deterministic, so a small simulation of MPI's rule ("the first message that fits") says which message
 * each receive gets, whether it was posted before or after the arrival.  Phase B: named receives first, then
 * any-source ones, for the same tag.  Phase C: the other way round.  Phase D: both interleaved, on two tags.
 */
#include "check.h"

enum { K = 12, LONGEST = 120000 };

static int size_of(int src, int dst, int i, int phase)
{
	static const int some[] = { 8, 120000, 9, 4000, 70000, 12, 2000, 1 << 15, 16 };

	return some[chk_seed(src, dst, i, phase) % (sizeof some / sizeof some[0])];
}

static int tag_of(int src, int dst, int i, int phase)
{
	return 1 + (int)(chk_seed(src, dst, i, phase + 100) % 3);
}

/* Starts all K messages to all ranks, message by message. */
static void send_all(int phase, int fixed_tag, unsigned char **bufs, MPI_Request *q)
{
	int m = 0;

	for (int i = 0; i < K; i++)
		for (int d = 0; d < chk_size; d++, m++) {
			int dst = (chk_rank + d) % chk_size, n = size_of(chk_rank, dst, i, phase);
			int tag = fixed_tag == 0  ? tag_of(chk_rank, dst, i, phase)
				  : fixed_tag > 0 ? fixed_tag
						  : 1 + i % 2;

			bufs[m] = chk_alloc((size_t)n);
			chk_fill(bufs[m], (size_t)n, chk_seed(chk_rank, dst, i, phase));
			memcpy(bufs[m], &i, sizeof i);
			if (i % 5 == 3)
				MPI_Issend(bufs[m], n, MPI_BYTE, dst, tag, MPI_COMM_WORLD, &q[m]);
			else
				MPI_Isend(bufs[m], n, MPI_BYTE, dst, tag, MPI_COMM_WORLD, &q[m]);
		}
}

/* Message i of src must lie in buf. */
static void check_got(unsigned char *buf, const MPI_Status *st, int src, int i, int tag, int phase)
{
	int n = size_of(src, chk_rank, i, phase), got;
	uint64_t w = chk_mix(chk_seed(src, chk_rank, i, phase), 0);

	memcpy(&got, buf, sizeof got);
	if (!CHECK_EQ(got, i))
		return;
	memcpy(buf, &w, sizeof got); /* put back what the number replaced */
	CHECK_STATUS(st, src, tag, MPI_BYTE, n);
	CHECK_BYTES(buf, (size_t)n, chk_seed(src, chk_rank, i, phase));
}

static void named_sources(
	unsigned char **in, unsigned char **out, MPI_Request *rq, MPI_Request *sq, MPI_Status *st)
{
	int total = K * chk_size;
	char *taken = calloc((size_t)total, 1);
	int *expect = chk_alloc(sizeof *expect * (size_t)total);

	for (int p = 0; p < total; p++) {
		int src = p % chk_size, want, i, pick;

		if (p == total / 2) {
			send_all(1, 0, out, sq);
			chk_barrier(MPI_COMM_WORLD); /* the rest is posted after the arrival of most */
		}
		/* take a tag that some message not yet taken has, or any */
		pick = (int)(chk_seed(chk_rank, p, 5, 5) % K);
		while (taken[src * K + pick])
			pick = (pick + 1) % K;
		want = chk_seed(chk_rank, p, 6, 6) % 2 ? MPI_ANY_TAG : tag_of(src, chk_rank, pick, 1);
		for (i = 0;
			taken[src * K + i] || (want != MPI_ANY_TAG && tag_of(src, chk_rank, i, 1) != want);)
			i++;
		taken[src * K + i] = 1;
		expect[p] = i;
		MPI_Irecv(in[p], LONGEST, MPI_BYTE, src, want, MPI_COMM_WORLD, &rq[p]);
	}
	MPI_Waitall(total, rq, st);
	for (int p = 0; p < total; p++)
		check_got(in[p], &st[p], p % chk_size, expect[p],
			tag_of(p % chk_size, chk_rank, expect[p], 1), 1);
	MPI_Waitall(total, sq, MPI_STATUSES_IGNORE);
	free(taken);
	free(expect);
}

/* phase 2: named first; phase 3: any-source first; both for the first half of the K messages, the others after. */
static void wildcards(
	int phase, unsigned char **in, unsigned char **out, MPI_Request *rq, MPI_Request *sq, MPI_Status *st)
{
	int total = K * chk_size, half = total / 2, tag = 10 + phase;
	int *next = calloc((size_t)chk_size, sizeof *next);

	if (phase % 2)
		send_all(phase, tag, out, sq);
	for (int p = 0; p < half; p++)
		MPI_Irecv(in[p], LONGEST, MPI_BYTE, phase == 2 ? p % chk_size : MPI_ANY_SOURCE, tag,
			MPI_COMM_WORLD, &rq[p]);
	if (phase % 2 == 0)
		send_all(phase, tag, out, sq);
	if (phase == 2) {
		for (int p = half; p < total; p++)
			MPI_Irecv(in[p], LONGEST, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &rq[p]);
		MPI_Waitall(total, rq, st);
	} else {
		int p = half;

		MPI_Waitall(half, rq, st);
		/* whatever the wildcards left is asked for by name */
		for (int i = 0; i < half; i++)
			next[st[i].MPI_SOURCE]++;
		for (int i = 0; i < K; i++)
			for (int s = 0; s < chk_size; s++)
				if (next[s] + i < K)
					MPI_Irecv(in[p], LONGEST, MPI_BYTE, s, i % 2 ? tag : MPI_ANY_TAG,
						MPI_COMM_WORLD, &rq[p]),
						p++;
		CHECK_EQ(p, total);
		MPI_Waitall(total - half, rq + half, st + half);
		memset(next, 0, sizeof *next * (size_t)chk_size);
	}
	for (int p = 0; p < total; p++) {
		int s = st[p].MPI_SOURCE;
		if (CHECK(s >= 0 && s < chk_size)) {
			check_got(in[p], &st[p], s, next[s], tag, phase);
			next[s]++;
		}
	}
	MPI_Waitall(total, sq, MPI_STATUSES_IGNORE);
	free(next);
}

/* Even messages have tag 1 and are received by any-source receives, odd ones tag 2 and by name, interleaved. */
static void interleaved(
	unsigned char **in, unsigned char **out, MPI_Request *rq, MPI_Request *sq, MPI_Status *st)
{
	int total = K * chk_size;
	int *next = calloc((size_t)chk_size, sizeof *next);

	for (int p = 0; p < total; p++) {
		if (p == total / 3)
			send_all(4, -1, out, sq);
		if (p % 2)
			MPI_Irecv(in[p], LONGEST, MPI_BYTE, p / 2 % chk_size, 2, MPI_COMM_WORLD, &rq[p]);
		else
			MPI_Irecv(in[p], LONGEST, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &rq[p]);
	}
	/* complete them in pieces, from the end */
	for (int p = total; p > 0; p -= 2)
		MPI_Waitall(2, rq + p - 2, st + p - 2);
	for (int p = 0; p < total; p += 2)
		if (CHECK(st[p].MPI_SOURCE >= 0 && st[p].MPI_SOURCE < chk_size)) {
			check_got(in[p], &st[p], st[p].MPI_SOURCE, next[st[p].MPI_SOURCE], 1, 4);
			next[st[p].MPI_SOURCE] += 2;
		}
	for (int p = 1; p < total; p += 2)
		check_got(in[p], &st[p], p / 2 % chk_size, p / 2 / chk_size * 2 + 1, 2, 4);
	MPI_Waitall(total, sq, MPI_STATUSES_IGNORE);
	free(next);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "p2p_order", 1);
	int total = K * chk_size, rounds = (int)chk_arg(argc, argv, 1, 1);
	unsigned char **in = chk_alloc(sizeof *in * (size_t)total),
		      **out = chk_alloc(sizeof *out * (size_t)total);
	MPI_Request *rq = chk_alloc(sizeof *rq * (size_t)total), *sq = chk_alloc(sizeof *sq * (size_t)total);
	MPI_Status *st = chk_alloc(sizeof *st * (size_t)total);

	for (int i = 0; i < total; i++)
		in[i] = chk_alloc(LONGEST);
	for (int r = 0; r < rounds; r++)
		for (int phase = 1; phase <= 4; phase++) {
			if (phase == 1)
				named_sources(in, out, rq, sq, st);
			else if (phase == 4)
				interleaved(in, out, rq, sq, st);
			else
				wildcards(phase, in, out, rq, sq, st);
			for (int i = 0; i < total; i++)
				free(out[i]);
			chk_barrier(MPI_COMM_WORLD);
		}
	return chk_end();
}
