/*
 * check.h - what every program in tests/mpi shares: counting checks, data that both ends can compute, a barrier and
 * a final sum made of point-to-point messages only.  The programs are ordinary MPI programs: nothing here may know
 * of PACX, of sites or of a vendor.  Each includes this file once (all functions are static) and looks like
 *
 *     int main(int argc, char **argv) { chk_begin(&argc, &argv, "name", 2); ...; return chk_end(); }
 *
 * chk_end() prints "name: N checks, M failed" on rank 0 and returns the same exit status on every rank.
 * CHECK* may be called by several threads; everything else by one.  Tags from 32100 up belong to this file.
 */
#ifndef CHECK_H
#define CHECK_H

#include <endian.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __GNUC__ && !defined __clang__
/* MPI_STATUSES_IGNORE, MPI_UNWEIGHTED are small numbers as pointers, which gcc takes for arrays of no bytes. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif

#define CHK_MAYBE       __attribute__((unused))
#define CHK_TAG_SUM     32100
#define CHK_TAG_END     32101
#define CHK_TAG_BARRIER 32102
#define CHK_PRINTED     12 /* failures printed per rank; the rest is only counted */

static const char *chk_name;
static int chk_rank, chk_size;
static long long chk_checks, chk_failed;

/* The two counting macros: CHECK(condition) and CHECK_EQ(got, expected) for anything that fits a long long. */
#define CHECK(cond)         chk_eq(__FILE__, __LINE__, #cond, (cond) ? 1 : 0, 1)
#define CHECK_EQ(got, want) chk_eq(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))
/* CHECK_BYTES: n bytes at p are those which chk_fill(p, n, seed) writes; one check, reports the first wrong byte. */
#define CHECK_BYTES(p, n, seed) chk_bytes(__FILE__, __LINE__, #p, p, n, seed)
/* CHECK_STATUS: source, tag, and the number of items of a type. */
#define CHECK_STATUS(st, src, tag, type, n) chk_status(__FILE__, __LINE__, st, src, tag, type, n)
/* CHECK_EMPTY: the empty status of section 3.7.3 (null and inactive requests). */
#define CHECK_EMPTY(st) chk_empty(__FILE__, __LINE__, st)

static CHK_MAYBE void chk_report(const char *file, int line, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	if (__atomic_add_fetch(&chk_failed, 1, __ATOMIC_RELAXED) > CHK_PRINTED)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: rank %d: %s:%d: %s\n", chk_name, chk_rank, file, line, text);
}

static CHK_MAYBE int chk_eq(const char *file, int line, const char *what, long long got, long long want)
{
	__atomic_add_fetch(&chk_checks, 1, __ATOMIC_RELAXED);
	if (got == want)
		return 1;
	chk_report(file, line, "%s: expected %lld, got %lld", what, want, got);
	return 0;
}

/* chk_mix: a well mixed 64-bit number from a seed and an index. */
static CHK_MAYBE uint64_t chk_mix(uint64_t seed, uint64_t i)
{
	uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15u + (i + 1) * 0xD1B54A32D192ED03u;

	x ^= x >> 32;
	x *= 0xD6E8FEB86659FD93u;
	return x ^ x >> 29;
}

/* chk_seed: one seed out of up to four small numbers (source, destination, number of the message, phase). */
static CHK_MAYBE uint64_t chk_seed(int a, int b, int c, int d)
{
	return chk_mix(chk_mix((uint64_t)a, (uint64_t)b), chk_mix((uint64_t)c, (uint64_t)d));
}

/* chk_fill: the same bytes on every machine. */
static CHK_MAYBE void chk_fill(void *p, size_t n, uint64_t seed)
{
	unsigned char *b = p;
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		uint64_t w = htole64(chk_mix(seed, i));
		memcpy(b + i, &w, 8);
	}
	for (uint64_t w = chk_mix(seed, i); i < n; i++, w >>= 8)
		b[i] = (unsigned char)w;
}

static CHK_MAYBE int chk_bytes(
	const char *file, int line, const char *what, const void *p, size_t n, uint64_t seed)
{
	const unsigned char *b = p;

	__atomic_add_fetch(&chk_checks, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < n; i += 8) {
		uint64_t w = chk_mix(seed, i), stored = htole64(w);
		size_t m = n - i < 8 ? n - i : 8;

		if (!memcmp(b + i, &stored, m))
			continue;
		while (b[i] == (unsigned char)w) {
			i++;
			w >>= 8;
		}
		chk_report(file, line, "%s: byte %zu of %zu: expected %d, got %d", what, i, n,
			(int)(unsigned char)w, (int)b[i]);
		return 0;
	}
	return 1;
}

static CHK_MAYBE int chk_status(
	const char *file, int line, const MPI_Status *st, int src, int tag, MPI_Datatype type, int n)
{
	int got;

	__atomic_add_fetch(&chk_checks, 1, __ATOMIC_RELAXED);
	MPI_Get_count(st, type, &got);
	if (st->MPI_SOURCE == src && st->MPI_TAG == tag && got == n)
		return 1;
	chk_report(file, line, "status: expected source %d tag %d count %d, got source %d tag %d count %d",
		src, tag, n, st->MPI_SOURCE, st->MPI_TAG, got);
	return 0;
}

static CHK_MAYBE int chk_empty(const char *file, int line, const MPI_Status *st)
{
	int cancelled;

	MPI_Test_cancelled(st, &cancelled);
	__atomic_add_fetch(&chk_checks, 1, __ATOMIC_RELAXED);
	if (cancelled) {
		chk_report(file, line, "an empty status says cancelled");
		return 0;
	}
	return chk_status(file, line, st, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_BYTE, 0);
}

/* chk_class: the error class of an error code. */
static CHK_MAYBE int chk_class(int code)
{
	int c = -1;

	MPI_Error_class(code, &c);
	return c;
}

/* chk_barrier: a dissemination barrier of zero-byte messages; no receive with ANY_TAG may be pending on comm. */
static CHK_MAYBE void chk_barrier(MPI_Comm comm)
{
	int r, n;

	MPI_Comm_rank(comm, &r);
	MPI_Comm_size(comm, &n);
	for (int d = 1; d < n; d *= 2)
		MPI_Sendrecv(NULL, 0, MPI_BYTE, (r + d) % n, CHK_TAG_BARRIER, NULL, 0, MPI_BYTE,
			(r - d + n) % n, CHK_TAG_BARRIER, comm, MPI_STATUS_IGNORE);
}

static CHK_MAYBE void *chk_alloc(size_t n)
{
	void *p = malloc(n ? n : 1);

	if (!p) {
		fprintf(stderr, "%s: rank %d: no memory for %zu bytes\n", chk_name, chk_rank, n);
		MPI_Abort(MPI_COMM_WORLD, 99);
	}
	return p;
}

/* chk_arg: the i-th argument as a number, or the default. */
static CHK_MAYBE long chk_arg(int argc, char **argv, int i, long def)
{
	return argc > i ? strtol(argv[i], NULL, 0) : def;
}

/* chk_start: like chk_begin, for programs that initialise MPI themselves. */
static CHK_MAYBE void chk_start(const char *name, int least)
{
	chk_name = name;
	/* Errors of no communicator are the world's in MPI-3, and this one's in MPI-4: programs say what they want of the world's. */
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &chk_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &chk_size);
	if (chk_size < least) {
		fprintf(stderr, "%s needs %d or more ranks, not %d\n", name, least, chk_size);
		MPI_Abort(MPI_COMM_WORLD, 98);
	}
}

/* Defined in suite.c, which begins and ends MPI for the programs it runs. */
extern int chk_in_suite __attribute__((weak));

static CHK_MAYBE void chk_begin(int *argc, char ***argv, const char *name, int least)
{
	if (!&chk_in_suite)
		MPI_Init(argc, argv);
	chk_start(name, least);
}

/* chk_sum: adds the counts of all ranks on rank 0, prints them, and tells every rank the number of failures. */
static CHK_MAYBE long long chk_sum(void)
{
	long long mine[2] = { chk_checks, chk_failed };

	if (chk_rank) {
		MPI_Send(mine, 2, MPI_LONG_LONG, 0, CHK_TAG_SUM, MPI_COMM_WORLD);
		MPI_Recv(mine, 2, MPI_LONG_LONG, 0, CHK_TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return mine[1];
	}
	for (int r = 1; r < chk_size; r++) {
		long long other[2];
		MPI_Recv(other, 2, MPI_LONG_LONG, r, CHK_TAG_SUM, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		mine[0] += other[0];
		mine[1] += other[1];
	}
	printf("%s: %lld checks, %lld failed\n", chk_name, mine[0], mine[1]);
	fflush(stdout);
	for (int r = 1; r < chk_size; r++)
		MPI_Send(mine, 2, MPI_LONG_LONG, r, CHK_TAG_END, MPI_COMM_WORLD);
	return mine[1];
}

/* chk_idup: MPI_Comm_idup, with hints where this MPI has that (MPI-4), freed while the call is under way. */
static CHK_MAYBE void chk_idup(MPI_Comm c, MPI_Comm *d, MPI_Request *req)
{
#if MPI_VERSION >= 4
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_assert_no_any_tag", "false");
	MPI_Comm_idup_with_info(c, info, d, req);
	MPI_Info_free(&info);
#else
	MPI_Comm_idup(c, d, req);
#endif
}

/* chk_end: sum, finalize, exit status. */
static CHK_MAYBE int chk_end(void)
{
	long long failed = chk_sum();

	if (!&chk_in_suite)
		MPI_Finalize();
	return failed ? 1 : 0;
}

#endif
