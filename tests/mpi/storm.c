/*
 * storm - for SECONDS every rank sends messages of 0 bytes to 2 MB, of bytes that compress well and of bytes that do not, to
 * random other ranks, while it receives from any source with any tag.  Checked: size, every byte, that none is lost or doubled, and
 * the order: among the receives in the order in which they were posted, the messages of one source are in the order sent.
 * The last message to each rank says how many came before it.
 * Arguments: seconds (default 0.5), or the name of a file, which has to be an absolute path: until it is there; seed (1), largest
 * (2000000), receives outstanding (4).
 */
#include "check.h"

#include <unistd.h>

enum {
	SENDS = 8,
	MOST_RECVS = 64,
	TAG_LAST = 31000,
	TAG_REST = 31001,
	TAGS = 30000,
	LEAST = 10,
	WORD_RUN = 500
};

static int largest, seed, recvs;

static uint64_t message_seed(int src, int dst, long i)
{
	return chk_mix(chk_seed(src, dst, seed, 5), (uint64_t)i);
}

static int size_of(uint64_t s)
{
	int kind = (int)(s % 100), most = kind < 30   ? 64
					  : kind < 60 ? 4096
					  : kind < 85 ? 65536
					  : kind < 95 ? 400000
						      : largest;

	if (most > largest)
		most = largest;
	return (int)((s >> 20) % ((uint64_t)most + 1));
}

/* Half of the messages consist of runs of equal words. */
static int smooth(uint64_t s)
{
	return s >> 8 & 1;
}

static void smooth_fill(unsigned char *b, size_t n, uint64_t s)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t w = chk_mix(s, i / WORD_RUN);

		memcpy(b + i, &w, n - i < 8 ? n - i : 8);
	}
}

static void check_data(const unsigned char *b, size_t n, uint64_t s)
{
	if (!smooth(s)) {
		CHECK_BYTES(b, n, s);
		return;
	}
	for (size_t i = 0; i < n; i += 8) {
		uint64_t w = chk_mix(s, i / WORD_RUN);

		if (memcmp(b + i, &w, n - i < 8 ? n - i : 8)) {
			chk_report(__FILE__, __LINE__, "word at byte %zu of %zu is wrong", i, n);
			break;
		}
	}
	CHECK(1);
}

/* The message that the oldest posted receive got. */
static int check_message(const MPI_Status *st, const unsigned char *b, long *next, long *last)
{
	int s = st->MPI_SOURCE;
	uint64_t m;

	if (st->MPI_TAG == TAG_LAST) {
		CHECK_STATUS(st, s, TAG_LAST, MPI_LONG, 1);
		memcpy(&last[s], b, sizeof last[s]);
		CHECK_EQ(next[s], last[s]);
		return 1;
	}
	m = message_seed(s, chk_rank, next[s]);
	CHECK_STATUS(st, s, (int)(next[s] % TAGS), MPI_BYTE, size_of(m));
	CHECK_EQ(last[s], -1);
	check_data(b, (size_t)size_of(m), m);
	next[s]++;
	return 0;
}

static int is_over(const char *until, double start)
{
	return until[0] == '/' ? access(until, F_OK) == 0 : MPI_Wtime() - start > strtod(until, NULL);
}

int main(int argc, char **argv)
{
	unsigned char *in[MOST_RECVS], *out[SENDS];
	MPI_Request q[SENDS + 1], rq[MOST_RECVS];
	long *next, *last, *sent, all = 0;
	int lasts = 0, oldest = 0, ended = 0, done = 0, final = 0;
	const char *until;
	double start;

	chk_begin(&argc, &argv, "storm", 2);
	until = argc > 1 ? argv[1] : "0.5";
	seed = (int)chk_arg(argc, argv, 2, 1);
	largest = (int)chk_arg(argc, argv, 3, 2000000);
	recvs = (int)chk_arg(argc, argv, 4, 4);
	if (recvs < 1 || recvs > MOST_RECVS || largest < (int)sizeof(long))
		MPI_Abort(MPI_COMM_WORLD, 97);
	next = calloc((size_t)chk_size, sizeof *next);
	last = calloc((size_t)chk_size, sizeof *last);
	sent = calloc((size_t)chk_size, sizeof *sent);
	for (int r = 0; r < chk_size; r++)
		last[r] = -1;
	for (int i = 0; i < SENDS; i++) {
		out[i] = chk_alloc((size_t)largest);
		q[i] = MPI_REQUEST_NULL;
	}
	for (int i = 0; i < recvs; i++) {
		in[i] = chk_alloc((size_t)largest);
		MPI_Irecv(in[i], largest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &rq[i]);
	}
	start = MPI_Wtime();
	while (ended < chk_size - 1 || done < SENDS) {
		MPI_Status st;
		int k;

		done = 0;
		for (int j = 0; j < SENDS; j++) {
			int dst = (chk_rank + 1 +
					  (int)(chk_mix(message_seed(chk_rank, chk_rank, all), 3) %
						  (uint64_t)(chk_size - 1))) %
				  chk_size;
			uint64_t m = message_seed(chk_rank, dst, sent[dst]);

			if (q[j] != MPI_REQUEST_NULL)
				continue;
			if (!final && all >= LEAST && is_over(until, start))
				final = 1;
			if (!final) {
				if (smooth(m))
					smooth_fill(out[j], (size_t)size_of(m), m);
				else
					chk_fill(out[j], (size_t)size_of(m), m);
				(all % 8 ? MPI_Isend : MPI_Issend)(out[j], size_of(m), MPI_BYTE, dst,
					(int)(sent[dst] % TAGS), MPI_COMM_WORLD, &q[j]);
				sent[dst]++;
				all++;
			} else if (lasts < chk_size - 1) {
				dst = (chk_rank + 1 + lasts++) % chk_size;
				MPI_Isend(&sent[dst], 1, MPI_LONG, dst, TAG_LAST, MPI_COMM_WORLD, &q[j]);
			} else {
				done++;
			}
		}
		if (ended == chk_size - 1 && done == SENDS)
			break;
		q[SENDS] = rq[oldest];
		MPI_Waitany(SENDS + 1, q, &k, &st);
		rq[oldest] = q[SENDS];
		if (k != SENDS)
			continue;
		ended += check_message(&st, in[oldest], next, last);
		MPI_Irecv(in[oldest], largest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			&rq[oldest]);
		oldest = (oldest + 1) % recvs;
	}
	/* The receives that are left over get messages from ourselves. */
	for (int i = 0; i < recvs; i++, oldest = (oldest + 1) % recvs) {
		MPI_Status st;

		MPI_Send(NULL, 0, MPI_BYTE, chk_rank, TAG_REST, MPI_COMM_WORLD);
		MPI_Wait(&rq[oldest], &st);
		CHECK_STATUS(&st, chk_rank, TAG_REST, MPI_BYTE, 0);
	}
	MPI_Barrier(MPI_COMM_WORLD); /* nobody's chk_end may meet another's receive with any tag */
	return chk_end();
}
