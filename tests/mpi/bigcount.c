/*
 * bigcount - the MPI_X_c entry points of MPI 4, with small counts.  Where the library is older the same calls are made
 * without _c, so that sites with both kinds can run it together.
 */
#include "check.h"

#if MPI_VERSION >= 4
#define C(f) f##_c
typedef MPI_Count num;
typedef MPI_Aint dis;
#else
#define C(f) f
typedef int num;
typedef int dis;
#endif

enum { N = 5000 };

int main(int argc, char **argv)
{
	MPI_Request q[8];
	MPI_Status st[8];
	MPI_Datatype t, v;
	num count;

	chk_begin(&argc, &argv, "bigcount", 1);
	int n = chk_size, r = chk_rank, right = (r + 1) % n, left = (r + n - 1) % n;
	int *a = chk_alloc(sizeof(int) * N * (size_t)n), *b = chk_alloc(sizeof(int) * N * (size_t)n);
	size_t bytes = sizeof(int) * N;

	chk_fill(a, bytes, (uint64_t)r);
	/* blocking, all modes */
	num attach = N * 4 + MPI_BSEND_OVERHEAD;
	void *att = chk_alloc((size_t)attach), *back;
	C(MPI_Buffer_attach)(att, attach);
	for (int m = 0; m < 4; m++) {
		memset(b, 0, bytes);
		C(MPI_Irecv)(b, N, MPI_INT, m % 2 ? MPI_ANY_SOURCE : left, m, MPI_COMM_WORLD, &q[0]);
		chk_barrier(MPI_COMM_WORLD);
		if (m == 0)
			C(MPI_Send)(a, N, MPI_INT, right, m, MPI_COMM_WORLD);
		else if (m == 1)
			C(MPI_Ssend)(a, N, MPI_INT, right, m, MPI_COMM_WORLD);
		else if (m == 2)
			C(MPI_Bsend)(a, N, MPI_INT, right, m, MPI_COMM_WORLD);
		else
			C(MPI_Rsend)(a, N, MPI_INT, right, m, MPI_COMM_WORLD);
		MPI_Wait(&q[0], &st[0]);
		CHECK_STATUS(&st[0], left, m, MPI_INT, N);
		C(MPI_Get_count)(&st[0], MPI_INT, &count);
		CHECK_EQ(count, N);
		CHECK_BYTES(b, bytes, (uint64_t)left);
	}
	C(MPI_Buffer_detach)(&back, &attach);
	CHECK(back == att);
	/* nonblocking and persistent */
	memset(b, 0, bytes);
	C(MPI_Isend)(a, N, MPI_INT, right, 5, MPI_COMM_WORLD, &q[0]);
	C(MPI_Recv)(b, N, MPI_INT, left, 5, MPI_COMM_WORLD, &st[0]);
	MPI_Wait(&q[0], MPI_STATUS_IGNORE);
	CHECK_BYTES(b, bytes, (uint64_t)left);
	C(MPI_Issend)(a, N, MPI_INT, right, 6, MPI_COMM_WORLD, &q[0]);
	MPI_Message m;
	MPI_Mprobe(left, 6, MPI_COMM_WORLD, &m, &st[0]);
	C(MPI_Get_count)(&st[0], MPI_INT, &count);
	CHECK_EQ(count, N);
	memset(b, 0, bytes);
	C(MPI_Mrecv)(b, count, MPI_INT, &m, &st[0]);
	CHECK_BYTES(b, bytes, (uint64_t)left);
	MPI_Wait(&q[0], MPI_STATUS_IGNORE);
	C(MPI_Recv_init)(b, N, MPI_INT, left, 7, MPI_COMM_WORLD, &q[0]);
	C(MPI_Send_init)(a, N, MPI_INT, right, 7, MPI_COMM_WORLD, &q[1]);
	for (int i = 0; i < 2; i++) {
		memset(b, 0, bytes);
		MPI_Startall(2, q);
		MPI_Waitall(2, q, st);
		CHECK_STATUS(&st[0], left, 7, MPI_INT, N);
		CHECK_BYTES(b, bytes, (uint64_t)left);
	}
	MPI_Request_free(&q[0]);
	MPI_Request_free(&q[1]);
	memset(b, 0, bytes);
	C(MPI_Sendrecv)(a, N, MPI_INT, right, 8, b, N, MPI_INT, left, 8, MPI_COMM_WORLD, &st[0]);
	CHECK_BYTES(b, bytes, (uint64_t)left);
	C(MPI_Sendrecv_replace)(b, N, MPI_INT, right, 9, left, 9, MPI_COMM_WORLD, &st[0]);
	CHECK_BYTES(b, bytes, (uint64_t)((r + 2 * n - 2) % n));
	/* types made with large counts */
	C(MPI_Type_contiguous)(10, MPI_INT, &t);
	C(MPI_Type_vector)(N / 100, 1, 2, t, &v);
	MPI_Type_commit(&v);
	memset(b, 0, bytes);
	C(MPI_Sendrecv)(a, 1, v, right, 10, b, 1, v, left, 10, MPI_COMM_WORLD, &st[0]);
	CHECK_STATUS(&st[0], left, 10, v, 1);
	int *want = chk_alloc(bytes), bad = 0;
	chk_fill(want, bytes, (uint64_t)left);
	for (int i = 0; i < N; i++)
		bad += b[i] != (i < N / 100 * 20 - 10 && i / 10 % 2 == 0 ? want[i] : 0);
	CHECK_EQ(bad, 0);
	MPI_Type_free(&t);
	MPI_Type_free(&v);
	free(want);
	/* collectives */
	num *cnt = chk_alloc(sizeof *cnt * (size_t)n);
	dis *dsp = chk_alloc(sizeof *dsp * (size_t)n);
	for (int i = 0; i < n; i++) {
		cnt[i] = i % 3 ? N - i : 0;
		dsp[i] = (dis)(n - 1 - i) * N;
	}
	if (r == n - 1)
		memcpy(b, a, bytes);
	C(MPI_Bcast)(b, N, MPI_INT, n - 1, MPI_COMM_WORLD);
	CHECK_BYTES(b, bytes, (uint64_t)(n - 1));
	C(MPI_Allgather)(a, N, MPI_INT, b, N, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK_BYTES(b + (size_t)i * N, bytes, (uint64_t)i);
	memset(b, 0, bytes * (size_t)n);
	C(MPI_Allgatherv)(a, cnt[r], MPI_INT, b, cnt, dsp, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK_BYTES(b + dsp[i], sizeof(int) * (size_t)cnt[i] / 8 * 8, (uint64_t)i);
	memset(b, 0, bytes * (size_t)n);
	C(MPI_Gatherv)(a, cnt[r], MPI_INT, b, cnt, dsp, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; i < n && r == 0; i++)
		CHECK_BYTES(b + dsp[i], sizeof(int) * (size_t)cnt[i] / 8 * 8, (uint64_t)i);
	for (int i = 0; i < N; i++)
		a[i] = r + i;
	C(MPI_Allreduce)(a, b, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	bad = 0;
	for (int i = 0; i < N; i++)
		bad += b[i] != n * (n - 1) / 2 + n * i;
	C(MPI_Iallreduce)(MPI_IN_PLACE, a, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &q[0]);
	MPI_Wait(&q[0], MPI_STATUS_IGNORE);
	for (int i = 0; i < N; i++)
		bad += a[i] != n - 1 + i;
	CHECK_EQ(bad, 0);
	C(MPI_Scan)(&r, b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK_EQ(b[0], r * (r + 1) / 2);
	C(MPI_Alltoall)(a, 1, MPI_INT, b, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK_EQ(b[i], n - 1 + r);
	free(cnt);
	free(dsp);
	free(att);
	free(a);
	free(b);
	return chk_end();
}
