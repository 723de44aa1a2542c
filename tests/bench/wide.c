/* wide.c: how long collective operations take until the last rank has its result.
 * usage: wide SAMPLES SECONDS [OPERATION:BYTES ...]
 * Prints lines "OPERATION:BYTES median ms, least ms, samples", each when it is known: of up to SAMPLES repetitions, after one to warm up, fewer when they
 * take more than SECONDS together. All ranks start at one time of the kernel's clock, which they must share.
 * BYTES: bcast, reduce, allreduce, scan, exscan, reduce_scatter: the vector; allgather, alltoall: a block; allgather_tot, gather, scatter: all blocks together.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLES_MAX 64
#define LEAD        0.03 /* s from the agreement on a start to the start, beyond how long a broadcast has taken */

static int rank, size;
static char *from, *to;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_until(double at)
{
	struct timespec t = { (time_t)at, (long)((at - (double)(time_t)at) * 1e9) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* A block of n bytes as elements: doubles where they fit, so that reductions do what programs want. */
static MPI_Datatype type_of(int bytes)
{
	return bytes % 8 ? MPI_CHAR : MPI_DOUBLE;
}

static int count_of(int bytes)
{
	return bytes % 8 ? bytes : bytes / 8;
}

static void nop(int bytes)
{
	(void)bytes;
}

static void barrier(int bytes)
{
	(void)bytes;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(int bytes)
{
	MPI_Bcast(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allgather(int bytes)
{
	MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void allgather_tot(int bytes)
{
	allgather(bytes / size);
}

static void alltoall(int bytes)
{
	MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void gather(int bytes)
{
	MPI_Gather(from, bytes / size, MPI_BYTE, to, bytes / size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatter(int bytes)
{
	MPI_Scatter(from, bytes / size, MPI_BYTE, to, bytes / size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void reduce(int bytes)
{
	MPI_Reduce(from, to, count_of(bytes), type_of(bytes), MPI_SUM, 0, MPI_COMM_WORLD);
}

static void allreduce(int bytes)
{
	MPI_Allreduce(from, to, count_of(bytes), type_of(bytes), MPI_SUM, MPI_COMM_WORLD);
}

static void scan(int bytes)
{
	MPI_Scan(from, to, count_of(bytes), type_of(bytes), MPI_SUM, MPI_COMM_WORLD);
}

static void exscan(int bytes)
{
	MPI_Exscan(from, to, count_of(bytes), type_of(bytes), MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter(int bytes)
{
	MPI_Reduce_scatter_block(
		from, to, count_of(bytes / size), type_of(bytes / size), MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
	const char *name;
	void (*call)(int bytes);
	int per_rank; /* a rank's buffer has a block of `bytes` for each rank */
} operations[] = { { "nop", nop, 0 }, { "barrier", barrier, 0 }, { "bcast", bcast, 0 },
	{ "allgather", allgather, 1 }, { "allgather_tot", allgather_tot, 0 }, { "alltoall", alltoall, 1 },
	{ "gather", gather, 0 }, { "scatter", scatter, 0 }, { "reduce", reduce, 0 },
	{ "allreduce", allreduce, 0 }, { "scan", scan, 0 }, { "exscan", exscan, 0 },
	{ "reduce_scatter", reduce_scatter, 0 } };
#define OPERATIONS (int)(sizeof operations / sizeof operations[0])

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The longest time of any rank, at rank 0. *agreeing: what it took to agree on the start, at rank 0. 0: rank 0 says that it is enough. */
static int once(void (*call)(int), int bytes, double *agreeing, int go, double *took)
{
	double asked = now(), start = go ? asked + LEAD + 2 * *agreeing : 0, mine;

	MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	if (start == 0)
		return 0;
	sleep_until(start);
	call(bytes);
	mine = now() - start;
	MPI_Reduce(&mine, took, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	return 1;
}

static void fill(size_t bytes)
{
	unsigned long long x = 88172645463325252u + (unsigned)rank;

	for (size_t i = 0; i + 8 <= bytes; i += 8) { /* doubles between 1 and 2, which do not compress */
		unsigned long long bits;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		bits = x >> 12 | 0x3ff0000000000000u;
		memcpy(from + i, &bits, 8);
	}
}

static void row(const char *name, void (*call)(int), int bytes, int samples, double seconds)
{
	double took[SAMPLES_MAX + 1] = { 0 }, agreeing, end = now() + seconds;
	int n = 0;

	agreeing = now();
	MPI_Barrier(MPI_COMM_WORLD);
	agreeing = now() - agreeing;
	while (once(call, bytes, &agreeing, n == 0 || (n <= samples && now() < end), &took[n]))
		n++;
	if (rank == 0) {
		/* The first warms up, unless it is all there was time for. */
		double *first = n > 1 ? took + 1 : took;

		n = n > 1 ? n - 1 : n;
		qsort(first, (size_t)n, sizeof *first, by_value);
		printf("%s:%d %.3f %.3f %d\n", name, bytes, 1e3 * (first[n / 2] + first[(n - 1) / 2]) / 2,
			1e3 * first[0], n);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	int samples = argc > 1 ? atoi(argv[1]) : 5;
	double seconds = argc > 2 ? atof(argv[2]) : 5;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (samples > SAMPLES_MAX)
		samples = SAMPLES_MAX;
	for (int i = 3; i < argc; i++) {
		char *colon = strchr(argv[i], ':');
		int bytes = colon ? atoi(colon + 1) : 0, k = 0;

		if (colon)
			*colon = 0;
		while (k < OPERATIONS && strcmp(operations[k].name, argv[i]) != 0)
			k++;
		if (k == OPERATIONS) {
			fprintf(stderr, "wide: no operation %s\n", argv[i]);
			MPI_Abort(MPI_COMM_WORLD, 2);
			break;
		}
		size_t all = 8 + (size_t)bytes * (size_t)(operations[k].per_rank ? size : 1);
		from = malloc(all);
		to = malloc(all);
		if (!from || !to)
			MPI_Abort(MPI_COMM_WORLD, 1);
		fill(all);
		row(operations[k].name, operations[k].call, bytes, samples, seconds);
		free(from);
		free(to);
	}
	MPI_Finalize();
	return 0;
}
