/*
 * large - more than 2^31 and 2^32 bytes and elements in one message, broadcast, reduction and every collective that moves data; through the MPI_X_c functions where this
 * MPI has them, through int counts of derived types where not and besides; displacements beyond 2^31 in windows.  Little memory is needed: long
 * buffers are one piece of memory, seen again and again.  Arguments: bytes (default 3 million, which shows nothing but that the program is right),
 * then the names of the calls to make (default all); "-scatter" leaves one out.
 */
#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

enum { PERIOD = 257 << 12, BLOCK = 1 << 20 };

static MPI_Count n; /* bytes */
static char *
	buf; /* n bytes and a period more; the period is the same memory again and again, and no power of two */

static char **names;
static int named;

/* wanted: whether the arguments want this call; long runs say where they are. */
static int wanted(const char *name)
{
	int only = 0, yes = 0;

	for (int i = 0; i < named; i++) {
		if (names[i][0] == '-' && strcmp(names[i] + 1, name) == 0)
			return 0;
		only += names[i][0] != '-';
		yes += strcmp(names[i], name) == 0;
	}
	if (only && !yes)
		return 0;
	if (chk_rank == 0 && n > 2147483647)
		fprintf(stderr, "large: %s\n", name);
	return 1;
}

static char *view(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = memfd_create("period", 0);

	if (p == MAP_FAILED || fd < 0 || ftruncate(fd, PERIOD))
		MPI_Abort(MPI_COMM_WORLD, 97);
	for (size_t at = 0; at < bytes; at += PERIOD)
		if (mmap(p + at, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			MPI_Abort(MPI_COMM_WORLD, 96);
	close(fd);
	return p;
}

#if MPI_VERSION >= 4
#define LARGE(bytes, f, call_c, call) (f##_c call_c)
#else
/* One element of so many bytes. */
static MPI_Datatype of_bytes(MPI_Count bytes)
{
	MPI_Datatype block, all[2], t;

	MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
	MPI_Type_contiguous((int)(bytes / BLOCK), block, &all[0]);
	MPI_Type_contiguous((int)(bytes % BLOCK), MPI_BYTE, &all[1]);
	MPI_Type_create_struct(
		2, (int[]){ 1, 1 }, (MPI_Aint[]){ 0, (MPI_Aint)(bytes / BLOCK * BLOCK) }, all, &t);
	MPI_Type_commit(&t);
	MPI_Type_free(&block);
	MPI_Type_free(&all[0]);
	MPI_Type_free(&all[1]);
	return t;
}

#define LARGE(bytes, f, call_c, call)                                                                        \
	do {                                                                                                 \
		MPI_Datatype T = of_bytes(bytes);                                                            \
		f call;                                                                                      \
		MPI_Type_free(&T);                                                                           \
	} while (0)
#endif

static void clear(void)
{
	memset(buf, 0, PERIOD);
}

static void check_period(uint64_t seed)
{
	CHECK_BYTES(buf, PERIOD, seed);
}

static void messages(int first, int last)
{
	MPI_Datatype block, same;
	MPI_Count elements;
	MPI_Status st;
	int blocks = (int)(n / BLOCK), got;

	MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
	MPI_Type_create_hvector(blocks, 1, 0, block, &same); /* the same block, many times */
	MPI_Type_commit(&block);
	MPI_Type_commit(&same);
	if (chk_rank == first) {
		chk_fill(buf, PERIOD, 1);
		LARGE(n, MPI_Send, (buf, n, MPI_BYTE, last, 1, MPI_COMM_WORLD),
			(buf, 1, T, last, 1, MPI_COMM_WORLD));
		MPI_Send(buf, 1, same, last, 2, MPI_COMM_WORLD);
		MPI_Recv(NULL, 0, MPI_BYTE, last, 3, MPI_COMM_WORLD, &st);
	} else if (chk_rank == last) {
		char *one = chk_alloc(BLOCK);

		clear();
		LARGE(n, MPI_Recv, (buf, n, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &st),
			(buf, 1, T, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &st));
		CHECK_EQ(st.MPI_SOURCE, first);
		MPI_Get_elements_x(&st, MPI_BYTE, &elements);
		CHECK_EQ(elements, n);
		MPI_Get_count(&st, MPI_BYTE, &got);
		CHECK_EQ(got, n > 2147483647 ? MPI_UNDEFINED : (long long)n);
		check_period(1);
		clear();
		MPI_Probe(first, 2, MPI_COMM_WORLD, &st);
		MPI_Get_elements_x(&st, MPI_BYTE, &elements);
		CHECK_EQ(elements, (MPI_Count)blocks * BLOCK);
		MPI_Recv(one, 1, same, first, 2, MPI_COMM_WORLD, &st); /* each block over the one before it */
		MPI_Get_elements_x(&st, MPI_BYTE, &elements);
		CHECK_EQ(elements, (MPI_Count)blocks * BLOCK);
		CHECK_BYTES(one, BLOCK, 1);
		free(one);
		MPI_Send(NULL, 0, MPI_BYTE, first, 3, MPI_COMM_WORLD);
	}
	MPI_Type_free(&block);
	MPI_Type_free(&same);
}

/* Two ranks exchange, in place. */
static void replace(int first, int last)
{
	int other = chk_rank == first ? last : first;
	MPI_Status st;
	MPI_Count elements;

	if (chk_rank != first && chk_rank != last)
		return;
	chk_fill(buf, PERIOD, (uint64_t)chk_rank + 10);
	LARGE(n, MPI_Sendrecv_replace, (buf, n, MPI_BYTE, other, 4, other, 4, MPI_COMM_WORLD, &st),
		(buf, 1, T, other, 4, other, 4, MPI_COMM_WORLD, &st));
	CHECK_EQ(st.MPI_SOURCE, other);
	MPI_Get_elements_x(&st, MPI_BYTE, &elements);
	CHECK_EQ(elements, n);
	check_period((uint64_t)other + 10);
	LARGE(n, MPI_Sendrecv_replace,
		(buf, n, MPI_BYTE, MPI_PROC_NULL, 4, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &st),
		(buf, 1, T, MPI_PROC_NULL, 4, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &st));
	CHECK_EQ(st.MPI_SOURCE, MPI_PROC_NULL);
	check_period((uint64_t)other + 10);
}

static void broadcast(int root)
{
	if (chk_rank == root)
		chk_fill(buf, PERIOD, 2);
	else
		clear();
	LARGE(n, MPI_Bcast, (buf, n, MPI_BYTE, root, MPI_COMM_WORLD), (buf, 1, T, root, MPI_COMM_WORLD));
	check_period(2);
}

/* A little from each rank, to places that are far apart. */
static void far_apart(int root)
{
	enum { LITTLE = 1000 };
	char mine[LITTLE];
	MPI_Aint step = (MPI_Aint)(n - LITTLE) / (chk_size - 1);
	MPI_Win win;

	chk_fill(mine, LITTLE, (uint64_t)chk_rank);
	clear();
	int *counts = chk_alloc((size_t)chk_size * sizeof *counts),
	    *displs = chk_alloc((size_t)chk_size * sizeof *displs);
	MPI_Datatype little, far;

	for (int i = 0; i < chk_size; i++) {
		counts[i] = 1;
		displs[i] = i;
	}
	MPI_Type_contiguous(LITTLE, MPI_BYTE, &little);
	MPI_Type_create_resized(little, 0, step, &far);
	MPI_Type_commit(&far);
	MPI_Gatherv(mine, LITTLE, MPI_BYTE, buf, counts, displs, far, root, MPI_COMM_WORLD);
	MPI_Type_free(&little);
	MPI_Type_free(&far);
	free(counts);
	free(displs);
	for (int i = 0; i < chk_size && chk_rank == root; i++)
		CHECK_BYTES(buf + i * step, LITTLE, (uint64_t)i);
	clear();
	MPI_Win_create(buf, (MPI_Aint)n, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	MPI_Put(mine, LITTLE, MPI_BYTE, (chk_rank + 1) % chk_size, (MPI_Aint)n - LITTLE, LITTLE, MPI_BYTE,
		win);
	MPI_Win_fence(0, win);
	CHECK_BYTES(buf + n - LITTLE, LITTLE, (uint64_t)((chk_rank + chk_size - 1) % chk_size));
	MPI_Win_free(&win);
}

/* call brings the same data to the beginning of out; only at `where`, if that is a rank. */
#define BRINGS(name, where, call)                                                                            \
	do {                                                                                                 \
		if (!wanted(name))                                                                           \
			break;                                                                               \
		memset(out, 0, PERIOD);                                                                      \
		MPI_Barrier(MPI_COMM_WORLD);                                                                 \
		call;                                                                                        \
		if ((where) < 0 || chk_rank == (where))                                                      \
			CHECK_BYTES(out, PERIOD, 3);                                                         \
	} while (0)

static void wait_for(MPI_Request r)
{
	CHECK_EQ(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
}

/* Equal blocks, together n bytes: places beyond int, though no argument is. All blocks are the same memory, and so have the same data. */
static void equal_blocks(char *out, int each, int root)
{
	MPI_Comm w = MPI_COMM_WORLD;
	MPI_Request r;

	chk_fill(buf, PERIOD, 3);
	BRINGS("gather", root, MPI_Gather(buf, each, MPI_BYTE, out, each, MPI_BYTE, root, w));
	BRINGS("scatter", -1, MPI_Scatter(buf, each, MPI_BYTE, out, each, MPI_BYTE, root, w));
	BRINGS("allgather", -1, MPI_Allgather(buf, each, MPI_BYTE, out, each, MPI_BYTE, w));
	BRINGS("alltoall", -1, MPI_Alltoall(buf, each, MPI_BYTE, out, each, MPI_BYTE, w));
	BRINGS("igather", root, MPI_Igather(buf, each, MPI_BYTE, out, each, MPI_BYTE, root, w, &r);
		wait_for(r));
	BRINGS("iscatter", -1, MPI_Iscatter(buf, each, MPI_BYTE, out, each, MPI_BYTE, root, w, &r);
		wait_for(r));
	BRINGS("iallgather", -1, MPI_Iallgather(buf, each, MPI_BYTE, out, each, MPI_BYTE, w, &r);
		wait_for(r));
	BRINGS("ialltoall", -1, MPI_Ialltoall(buf, each, MPI_BYTE, out, each, MPI_BYTE, w, &r); wait_for(r));
}

#define ARGS(...) __VA_ARGS__
/* The blocking call and the nonblocking one. */
#define BOTH(name, where, Call, call, as_c, as_int)                                                          \
	BRINGS(name, where, LARGE(n, MPI_##Call, (as_c), (as_int)));                                         \
	BRINGS("i" name, where, LARGE(n, MPI_I##call, (as_c, &r), (as_int, &r)); wait_for(r))

/* n bytes from the last rank to the first, and nothing else, through arrays of counts. */
static void one_block(char *out)
{
	int last = chk_size - 1, mine = chk_rank == last, first = chk_rank == 0;
	int *zero = chk_alloc((size_t)chk_size * sizeof *zero),
	    *in = chk_alloc((size_t)chk_size * sizeof *in);
	MPI_Count *in_c = chk_alloc((size_t)chk_size * sizeof *in_c),
		  *to_c = chk_alloc((size_t)chk_size * sizeof *to_c);
	MPI_Aint *at_c = chk_alloc((size_t)chk_size * sizeof *at_c);
	int *to = chk_alloc((size_t)chk_size * sizeof *to),
	    *from = chk_alloc((size_t)chk_size * sizeof *from);
	MPI_Count *from_c = chk_alloc((size_t)chk_size * sizeof *from_c);
	MPI_Comm w = MPI_COMM_WORLD;
	MPI_Request r;

	for (int i = 0; i < chk_size; i++) {
		zero[i] = 0;
		at_c[i] = 0;
		in[i] = i == last;
		in_c[i] = i == last ? n : 0;
		to[i] = mine && i == 0;
		to_c[i] = mine && i == 0 ? n : 0;
		from[i] = first && i == last;
		from_c[i] = first && i == last ? n : 0;
	}
	chk_fill(buf, PERIOD, 3);
	BOTH("gatherv", 0, Gatherv, gatherv,
		ARGS(buf, mine ? n : 0, MPI_BYTE, out, in_c, at_c, MPI_BYTE, 0, w),
		ARGS(buf, mine, T, out, in, zero, T, 0, w));
	BOTH("scatterv", last, Scatterv, scatterv,
		ARGS(buf, in_c, at_c, MPI_BYTE, out, mine ? n : 0, MPI_BYTE, 0, w),
		ARGS(buf, in, zero, T, out, mine, T, 0, w));
	BOTH("allgatherv", -1, Allgatherv, allgatherv,
		ARGS(buf, mine ? n : 0, MPI_BYTE, out, in_c, at_c, MPI_BYTE, w),
		ARGS(buf, mine, T, out, in, zero, T, w));
	BOTH("alltoallv", 0, Alltoallv, alltoallv,
		ARGS(buf, to_c, at_c, MPI_BYTE, out, from_c, at_c, MPI_BYTE, w),
		ARGS(buf, to, zero, T, out, from, zero, T, w));
	free(zero);
	free(in);
	free(to);
	free(from);
	free(in_c);
	free(to_c);
	free(from_c);
	free(at_c);
}

/* How many of the sums are not `times` what each rank has; `from` is the first one's place in the period. */
static long long wrong(const uint64_t *sum, MPI_Count words, MPI_Count from, int times)
{
	long long bad = 0;

	for (MPI_Count i = 0; i < words; i++)
		bad += sum[i] != (chk_mix((uint64_t)((from + i) % (PERIOD / 8)), 0) >> 8) * (uint64_t)times;
	return bad;
}

/* More than 2^31 bytes; if all MPIs can, more than 2^31 elements, too. */
static void reduction(void)
{
	int large = MPI_VERSION >= 4, all, part = (int)(n / 8 / chk_size), words = part * chk_size;
	MPI_Comm w = MPI_COMM_WORLD;
	uint64_t *sum = chk_alloc((size_t)n);
	int *parts = chk_alloc((size_t)chk_size * sizeof *parts);

	for (int i = 0; i < chk_size; i++)
		parts[i] = part;
	MPI_Allreduce(&large, &all, 1, MPI_INT, MPI_MIN, w);
	for (MPI_Count i = 0; i < PERIOD / 8; i++)
		((uint64_t *)(void *)buf)[i] = chk_mix((uint64_t)i, 0) >> 8;
	if (wanted("allreduce")) {
		MPI_Allreduce(buf, sum, words, MPI_UINT64_T, MPI_SUM, w);
		CHECK_EQ(wrong(sum, words, 0, chk_size), 0);
	}
	if (wanted("scan")) {
		MPI_Scan(buf, sum, words, MPI_UINT64_T, MPI_SUM, w);
		CHECK_EQ(wrong(sum, words, 0, chk_rank + 1), 0);
	}
	if (wanted("reduce_scatter")) {
		memset(sum, 0, (size_t)part * 8);
		MPI_Reduce_scatter(buf, sum, parts, MPI_UINT64_T, MPI_SUM, w);
		CHECK_EQ(wrong(sum, part, (MPI_Count)chk_rank * part, chk_size), 0);
	}
	if (wanted("reduce_scatter_block")) {
		memset(sum, 0, (size_t)part * 8);
		MPI_Reduce_scatter_block(buf, sum, part, MPI_UINT64_T, MPI_SUM, w);
		CHECK_EQ(wrong(sum, part, (MPI_Count)chk_rank * part, chk_size), 0);
	}
#if MPI_VERSION >= 4
	if (all && wanted("allreduce_c")) {
		unsigned char *most = memset(sum, 0, (size_t)n);
		long long bad = 0;

		memset(buf, chk_rank + 1, PERIOD);
		MPI_Allreduce_c(buf, most, n, MPI_UNSIGNED_CHAR, MPI_MAX, w);
		for (MPI_Count i = 0; i < n; i++)
			bad += most[i] != chk_size;
		CHECK_EQ(bad, 0);
	}
#endif
	free(parts);
	free(sum);
}

int main(int argc, char **argv)
{
	int last, each;
	size_t room;
	char *out;

	chk_begin(&argc, &argv, "large", 2);
	n = chk_arg(argc, argv, 1, 3000000);
	each = (int)((n / PERIOD + chk_size) / chk_size * PERIOD);
	room = (size_t)each * (size_t)chk_size;
	last = chk_size - 1;
	buf = view(room);
	out = view(room);
	names = argv + 2;
	named = argc > 2 ? argc - 2 : 0;
	if (wanted("messages")) {
		messages(0, last);
		messages(last, 0);
	}
	if (wanted("replace"))
		replace(0, last);
	if (wanted("bcast"))
		broadcast(last);
	equal_blocks(out, each, last);
	one_block(out);
	munmap(out, room);
	if (wanted("far_apart"))
		far_apart(0);
	if (n < 3000000000) /* needs a buffer of its own */
		reduction();
	munmap(buf, room);
	return chk_end();
}
