/*
 * steady - an iterative program: in every step each rank sends each other rank the same messages again with slightly other values:
 * doubles, complex numbers, floats and whole numbers that change smoothly in time and space, ones that do not change, and random
 * ones, a plane of a field that a solver goes over (fronts run through it, so links have to learn); NaNs with payload, -0, infinities and denormals among them. Two steps are under way at a time. Checked: every byte.
 * Arguments: seconds (default 0.5), or the name of a file, which has to be an absolute path: until it is there; seed (1), largest
 * message in bytes (600000).
 */
#include "check.h"

#include <unistd.h>

#include "../bench/series.h"

enum { KINDS = 9, PLANE = KINDS - 1, AHEAD = 2, ENOUGH = 4, STEPS_MOST = 1000000 };

static const struct {
	int bytes;    /* of an element of the type */
	int thousand; /* length in thousandths of the largest */
} flows[KINDS] = { { 8, 1000 }, { 8, 7 }, { 16, 150 }, { 4, 300 }, { 4, 40 }, { 8, 500 }, { 8, 100 },
	{ 8, 60 }, { 8, 0 } };

static int seed;
static long largest;

static MPI_Datatype type_of(int kind)
{
	return flows[kind].bytes == 16  ? MPI_C_DOUBLE_COMPLEX
	       : flows[kind].bytes == 8 ? MPI_DOUBLE
	       : kind == 3              ? MPI_FLOAT
					: MPI_INT;
}

static size_t length_of(int kind)
{
	if (kind == PLANE)
		return largest < (long)sizeof cube[0] ? (size_t)largest / 8 : CUBE * CUBE;
	return (size_t)(largest * flows[kind].thousand / 1000 / flows[kind].bytes);
}

/* What is no ordinary number, for some elements and steps. */
static int special(uint64_t m, uint64_t *bits)
{
	static const uint64_t odd[] = { 0x8000000000000000u, 0, 0x7ff0000000000000u, 0xfff0000000000000u, 1,
		0x800fffffffffffffu, 0x7ff8dead00beef01u, 0xfff4000000000123u };

	if (m % 211 != 0)
		return 0;
	*bits = odd[m / 211 % 8];
	return 1;
}

static double smooth(int kind, int step, size_t i, uint64_t s)
{
	double x = (double)(i % 1013) / 1013, t = (double)(step % 200) / 200, y = (double)(s % 1000);

	switch (kind) {
	case 5: /* a straight line in time */
		return y + x + 0.25 * (double)(step % 512);
	case 6: /* at rest */
		return y * x;
	default:
		return (y + x * (1 - x) * 3) / (1 + t * x) + 1e-9 * (double)(chk_mix(s, i) % 1000);
	}
}

/* That of a step, which is one of the last few. */
static const void *plane_of(int step)
{
	static double kept[AHEAD + 1][CUBE][CUBE];
	static int done = -1;

	if (done < 0)
		poisson_first();
	while (done < step)
		poisson_step((uint8_t *)kept[++done % (AHEAD + 1)]);
	return kept[step % (AHEAD + 1)];
}

static void fill(unsigned char *p, int kind, int src, int dst, int step)
{
	uint64_t s = chk_seed(src, dst, seed, kind), bits;
	size_t n = length_of(kind);

	if (kind == PLANE) {
		memcpy(p, plane_of(step), n * 8);
		return;
	}
	if (kind == 7) {
		chk_fill(p, n * 8, chk_mix(s, (uint64_t)step));
		return;
	}
	for (size_t i = 0; i < n * (size_t)flows[kind].bytes / 4; i++) {
		double v = smooth(kind, step, i, s);
		float f = (float)v;
		int32_t k = (int32_t)(i * 3 - n) + step * (int32_t)(i % 7 - 3);

		if (kind == 3) {
			if (special(chk_mix(s, i * 31 + (uint64_t)step / 4), &bits))
				memcpy(p + 4 * i, (char *)&bits + 4, 4);
			else
				memcpy(p + 4 * i, &f, 4);
		} else if (kind == 4) {
			memcpy(p + 4 * i, &k, 4);
		} else if (i % 2 == 0) {
			if (!special(chk_mix(s, i * 31 + (uint64_t)step / 4), &bits))
				memcpy(&bits, &v, 8);
			memcpy(p + 4 * i, &bits, 8);
		}
	}
}

static int is_over(const char *until, double start)
{
	return until[0] == '/' ? access(until, F_OK) == 0 : MPI_Wtime() - start > strtod(until, NULL);
}

struct slot {
	unsigned char *in, *out;
	MPI_Request req[2];
};

static void post(struct slot *s, int peer, int kind, int step)
{
	size_t n = length_of(kind);

	fill(s->out, kind, chk_rank, peer, step);
	memset(s->in, 0xee, n * (size_t)flows[kind].bytes);
	MPI_Irecv(s->in, (int)n, type_of(kind), peer, kind, MPI_COMM_WORLD, &s->req[0]);
	MPI_Isend(s->out, (int)n, type_of(kind), peer, kind, MPI_COMM_WORLD, &s->req[1]);
}

static void complete(struct slot *s, unsigned char *expected, int peer, int kind, int step)
{
	size_t bytes = length_of(kind) * (size_t)flows[kind].bytes, at = 0;

	MPI_Waitall(2, s->req, MPI_STATUSES_IGNORE);
	fill(expected, kind, peer, chk_rank, step);
	CHECK(1);
	if (memcmp(s->in, expected, bytes) == 0)
		return;
	while (s->in[at] == expected[at])
		at++;
	chk_report(__FILE__, __LINE__, "step %d, kind %d from rank %d: byte %zu of %zu is wrong", step, kind,
		peer, at, bytes);
}

int main(int argc, char **argv)
{
	struct slot *slot;
	unsigned char *expected;
	const char *until;
	double start;
	int more = 1, step = 0, last = STEPS_MOST, any, peers;

	chk_begin(&argc, &argv, "steady", 2);
	until = argc > 1 ? argv[1] : "0.5";
	seed = (int)chk_arg(argc, argv, 2, 1);
	largest = chk_arg(argc, argv, 3, 600000);
	peers = chk_size - 1;
	slot = calloc((size_t)(AHEAD * peers * KINDS), sizeof *slot);
	expected = chk_alloc((size_t)largest + 16);
	for (int i = 0; i < AHEAD * peers * KINDS; i++) {
		slot[i].in = chk_alloc((size_t)largest + 16);
		slot[i].out = chk_alloc((size_t)largest + 16);
	}
	start = MPI_Wtime();
	for (; step < last + AHEAD; step++) {
		for (int i = 0; i < peers * KINDS; i++) {
			struct slot *s = &slot[step % AHEAD * peers * KINDS + i];
			int peer = (chk_rank + 1 + i / KINDS) % chk_size;

			if (step >= AHEAD)
				complete(s, expected, peer, i % KINDS, step - AHEAD);
			if (step < last)
				post(s, peer, i % KINDS, step);
		}
		if (step % 4 == 0 && last == STEPS_MOST) { /* all agree on the last step */
			more = step < ENOUGH || !is_over(until, start);
			MPI_Allreduce(&more, &any, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
			if (!any)
				last = step + 1;
		}
	}
	return chk_end();
}
