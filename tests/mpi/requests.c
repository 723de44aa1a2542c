/*
 * requests - the life of requests: persistent ones in all modes, every Wait and Test form over arrays that mix active
 * sends and receives to near and far ranks with null and inactive requests, Request_free of an active one,
 * Request_get_status, empty statuses, ignored statuses, and MPI_PROC_NULL in every place that takes a rank.
 */
#include "check.h"

static int right, left;

static void persistent(void)
{
	enum { MODES = 4, N = 3000 };
	static int out[MODES][N], in[MODES][N];
	MPI_Request q[2 * MODES];
	MPI_Status st[2 * MODES];
	int bytes = N * 4 + MPI_BSEND_OVERHEAD + 64;
	void *att = chk_alloc((size_t)bytes);

	MPI_Buffer_attach(att, bytes);
	for (int m = 0; m < MODES; m++)
		MPI_Recv_init(
			in[m], N, MPI_INT, m % 2 ? MPI_ANY_SOURCE : left, 60 + m, MPI_COMM_WORLD, &q[m]);
	MPI_Send_init(out[0], N, MPI_INT, right, 60, MPI_COMM_WORLD, &q[4]);
	MPI_Ssend_init(out[1], 1, MPI_INT, right, 61, MPI_COMM_WORLD, &q[5]);
	q[6] = MPI_REQUEST_NULL;
	MPI_Rsend_init(out[3], N / 2, MPI_INT, right, 63, MPI_COMM_WORLD, &q[7]);
	for (int round = 0; round < 5; round++) {
		for (int m = 0; m < MODES; m++) {
			chk_fill(out[m], sizeof out[m], chk_seed(chk_rank, m, round, 1));
			memset(in[m], 0, sizeof in[m]);
		}
		/* made anew each round: Open MPI 4.1.4 sends zeros (or nothing) when a long Bsend_init request is started again */
		if (round)
			MPI_Request_free(&q[6]);
		MPI_Bsend_init(out[2], N, MPI_INT, right, 62, MPI_COMM_WORLD, &q[6]);
		/* inactive: complete at once, with the empty status, and stay */
		MPI_Wait(&q[round], &st[0]);
		CHECK_EMPTY(&st[0]);
		CHECK(q[round] != MPI_REQUEST_NULL);
		MPI_Startall(MODES, q);
		chk_barrier(MPI_COMM_WORLD); /* for the ready send */
		if (round % 2)
			MPI_Startall(MODES, q + MODES);
		else
			for (int m = MODES; m < 2 * MODES; m++)
				MPI_Start(&q[m]);
		if (round < 3) {
			MPI_Waitall(2 * MODES, q, st);
		} else {
			for (int m = 0; m < 2 * MODES; m++)
				if (round == 3)
					MPI_Wait(&q[m], &st[m]);
				else
					for (int flag = 0; !flag;)
						MPI_Test(&q[m], &flag, &st[m]);
		}
		for (int m = 0; m < MODES; m++) {
			int n = m == 1 ? 1 : m == 3 ? N / 2 : N;
			CHECK_STATUS(&st[m], left, 60 + m, MPI_INT, n);
			CHECK_BYTES(in[m], sizeof(int) * (size_t)n / 8 * 8, chk_seed(left, m, round, 1));
			CHECK(q[m] != MPI_REQUEST_NULL);
			CHECK(q[m + MODES] != MPI_REQUEST_NULL);
		}
	}
	for (int i = 0; i < 2 * MODES; i++) {
		MPI_Request_free(&q[i]);
		CHECK(q[i] == MPI_REQUEST_NULL);
	}
	void *back;
	MPI_Buffer_detach(&back, &bytes);
	CHECK(back == att);
	free(att);
}

/* The mixed array: a receive from and a send to each rank, a null request and an inactive one after each pair. */
struct mixed {
	int n;
	MPI_Request *q;
	MPI_Status *st;
	int *index;
	long *in, *out;
};

static void mixed_open(struct mixed *x, int tag)
{
	x->n = 4 * chk_size;
	x->q = chk_alloc(sizeof *x->q * (size_t)x->n);
	x->st = chk_alloc(sizeof *x->st * (size_t)x->n);
	x->index = chk_alloc(sizeof *x->index * (size_t)x->n);
	x->in = chk_alloc(sizeof(long) * (size_t)chk_size);
	x->out = chk_alloc(sizeof(long) * (size_t)chk_size);
	for (int r = 0; r < chk_size; r++) {
		int src = (chk_rank + r) % chk_size;

		x->in[r] = -1;
		x->out[r] = 1000 * chk_rank + r + tag;
		MPI_Irecv(&x->in[r], 1, MPI_LONG, src, tag, MPI_COMM_WORLD, &x->q[4 * r]);
		MPI_Isend(&x->out[r], 1, MPI_LONG, r, tag, MPI_COMM_WORLD, &x->q[4 * r + 1]);
		x->q[4 * r + 2] = MPI_REQUEST_NULL;
		MPI_Recv_init(NULL, 0, MPI_INT, src, 999, MPI_COMM_WORLD, &x->q[4 * r + 3]);
	}
}

/* Element i of the array was reported complete with status st. */
static int mixed_done(struct mixed *x, int i, const MPI_Status *st, int tag)
{
	int r = i / 4, src = (chk_rank + r) % chk_size;

	if (!CHECK(i >= 0 && i < x->n) || !CHECK(i % 4 < 2))
		return 0;
	CHECK(x->q[i] == MPI_REQUEST_NULL);
	if (i % 4 == 1)
		return 1;
	if (st)
		CHECK_STATUS(st, src, tag, MPI_LONG, 1);
	CHECK_EQ(x->in[r], 1000 * src + chk_rank + tag);
	return 1;
}

static void mixed_close(struct mixed *x, int done)
{
	MPI_Status st;
	int k = 5, flag = 0;

	CHECK_EQ(done, 2 * chk_size);
	/* only null and inactive ones are left */
	MPI_Waitany(x->n, x->q, &k, &st);
	CHECK_EQ(k, MPI_UNDEFINED);
	CHECK_EMPTY(&st);
	MPI_Testany(x->n, x->q, &k, &flag, &st);
	CHECK_EQ(flag, 1);
	CHECK_EQ(k, MPI_UNDEFINED);
	CHECK_EMPTY(&st);
	MPI_Waitsome(x->n, x->q, &k, x->index, x->st);
	CHECK_EQ(k, MPI_UNDEFINED);
	MPI_Testsome(x->n, x->q, &k, x->index, MPI_STATUSES_IGNORE);
	CHECK_EQ(k, MPI_UNDEFINED);
	flag = 0;
	MPI_Testall(x->n, x->q, &flag, x->st);
	CHECK_EQ(flag, 1);
	for (int i = 0; i < x->n; i++)
		CHECK_EMPTY(&x->st[i]);
	for (int r = 0; r < chk_size; r++)
		MPI_Request_free(&x->q[4 * r + 3]);
	MPI_Waitall(x->n, x->q, x->st);
	CHECK_EMPTY(&x->st[x->n - 1]);
	free(x->q);
	free(x->st);
	free(x->index);
	free(x->in);
	free(x->out);
}

static void all_forms(int ignore)
{
	struct mixed x;
	int done, k, flag;
	MPI_Status one, *st1 = ignore ? MPI_STATUS_IGNORE : &one;

	for (int form = 0; form < 6; form++) {
		int tag = 70 + form + 10 * ignore;

		mixed_open(&x, tag);
		MPI_Status *sts = ignore ? MPI_STATUSES_IGNORE : x.st;
		for (done = 0; done < 2 * chk_size;) {
			switch (form) {
			case 0:
				MPI_Waitany(x.n, x.q, &k, st1);
				done += mixed_done(&x, k, ignore ? NULL : st1, tag);
				break;
			case 1:
				MPI_Testany(x.n, x.q, &k, &flag, st1);
				if (flag)
					done += mixed_done(&x, k, ignore ? NULL : st1, tag);
				else if (k != MPI_UNDEFINED)
					CHECK_EQ(k, MPI_UNDEFINED);
				break;
			case 2:
			case 3:
				if (form == 2)
					MPI_Waitsome(x.n, x.q, &k, x.index, sts);
				else
					MPI_Testsome(x.n, x.q, &k, x.index, sts);
				if (form == 2)
					CHECK(k >= 1 && k <= 2 * chk_size);
				for (int i = 0; i < k; i++)
					done += mixed_done(&x, x.index[i], ignore ? NULL : &x.st[i], tag);
				break;
			case 4:
			case 5:
				if (form == 4)
					MPI_Waitall(x.n, x.q, sts);
				else
					for (flag = 0; !flag;)
						MPI_Testall(x.n, x.q, &flag, sts);
				for (int i = 0; i < x.n; i++)
					if (i % 4 < 2)
						done += mixed_done(&x, i, ignore ? NULL : &x.st[i], tag);
					else if (!ignore)
						CHECK_EMPTY(&x.st[i]);
				break;
			}
			if (chk_failed > 1000)
				MPI_Abort(MPI_COMM_WORLD, 1);
		}
		mixed_close(&x, done);
	}
}

static void null_and_empty(void)
{
	MPI_Request q = MPI_REQUEST_NULL;
	MPI_Status st;
	int flag = 0, k = 3;

	MPI_Wait(&q, &st);
	CHECK_EMPTY(&st);
	MPI_Test(&q, &flag, &st);
	CHECK_EQ(flag, 1);
	CHECK_EMPTY(&st);
	flag = 0;
	MPI_Request_get_status(q, &flag, &st);
	CHECK_EQ(flag, 1);
	CHECK_EMPTY(&st);
	MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
	flag = 0;
	MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
	CHECK_EQ(flag, 1);
	MPI_Waitany(0, NULL, &k, &st);
	CHECK_EQ(k, MPI_UNDEFINED);
	MPI_Waitsome(0, NULL, &k, NULL, MPI_STATUSES_IGNORE);
	CHECK_EQ(k, MPI_UNDEFINED);
}

/* Request_get_status leaves the request; a freed active send still arrives; a freed active receive still receives. */
static void get_status_and_free(void)
{
	int in = -1, out = 4711 + chk_rank, back = -1, flag = 0, late = -1;
	MPI_Request r, s;
	MPI_Status st;

	MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 90, MPI_COMM_WORLD, &r);
	MPI_Request_get_status(r, &flag, &st);
	if (chk_size > 1)
		CHECK(flag == 0); /* nobody sends with tag 90 before the barrier */
	chk_barrier(MPI_COMM_WORLD);
	MPI_Issend(&out, 1, MPI_INT, right, 90, MPI_COMM_WORLD, &s);
	for (flag = 0; !flag;)
		MPI_Request_get_status(r, &flag, &st);
	CHECK(r != MPI_REQUEST_NULL);
	CHECK_STATUS(&st, left, 90, MPI_INT, 1);
	CHECK_EQ(in, 4711 + left);
	MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE);
	CHECK_EQ(flag, 1);
	MPI_Test(&r, &flag, &st);
	CHECK_EQ(flag, 1);
	CHECK_STATUS(&st, left, 90, MPI_INT, 1);
	CHECK(r == MPI_REQUEST_NULL);
	MPI_Wait(&s, MPI_STATUS_IGNORE);

	/* the receive is freed while active; that it is done is known from an answer sent after it by the same rank */
	MPI_Irecv(&late, 1, MPI_INT, left, 91, MPI_COMM_WORLD, &r);
	MPI_Request_free(&r);
	CHECK(r == MPI_REQUEST_NULL);
	MPI_Isend(&out, 1, MPI_INT, right, 91, MPI_COMM_WORLD, &s);
	MPI_Request_free(&s);
	CHECK(s == MPI_REQUEST_NULL);
	MPI_Sendrecv(
		&out, 1, MPI_INT, right, 92, &back, 1, MPI_INT, left, 92, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK_EQ(back, 4711 + left);
	/* matched in order, but its completion may be seen later: make progress until it is there */
	for (long tries = 0; *(volatile int *)&late == -1 && tries < 100000000; tries++)
		MPI_Iprobe(MPI_ANY_SOURCE, 93, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	CHECK_EQ(late, 4711 + left);
	chk_barrier(MPI_COMM_WORLD); /* out stays alive until everybody has it */

	/* a persistent request freed while active works off too */
	in = -1;
	MPI_Irecv(&in, 1, MPI_INT, left, 94, MPI_COMM_WORLD, &r);
	MPI_Send_init(&out, 1, MPI_INT, right, 94, MPI_COMM_WORLD, &s);
	MPI_Start(&s);
	MPI_Request_free(&s);
	MPI_Wait(&r, &st);
	CHECK_STATUS(&st, left, 94, MPI_INT, 1);
	CHECK_EQ(in, 4711 + left);
	chk_barrier(MPI_COMM_WORLD);
}

/* Nothing but the last request to complete may be reported by a Test that is made before it can be complete. */
static void not_before_its_time(void)
{
	MPI_Request q[3];
	int in[3] = { -1, -1, -1 }, one = 1, flag, k, idx[3];
	MPI_Status st;

	for (int i = 0; i < 3; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, i == 1 ? MPI_ANY_SOURCE : left, 95 + i, MPI_COMM_WORLD, &q[i]);
	MPI_Testall(3, q, &flag, MPI_STATUSES_IGNORE);
	CHECK_EQ(flag, 0);
	MPI_Testany(3, q, &k, &flag, &st);
	CHECK_EQ(flag, 0);
	MPI_Testsome(3, q, &k, idx, MPI_STATUSES_IGNORE);
	CHECK_EQ(k, 0);
	chk_barrier(MPI_COMM_WORLD);
	MPI_Send(&one, 1, MPI_INT, right, 96, MPI_COMM_WORLD);
	MPI_Waitany(3, q, &k, &st);
	CHECK_EQ(k, 1);
	CHECK_STATUS(&st, left, 96, MPI_INT, 1);
	MPI_Testall(3, q, &flag, MPI_STATUSES_IGNORE);
	CHECK_EQ(flag, 0);
	chk_barrier(MPI_COMM_WORLD);
	MPI_Send(&one, 1, MPI_INT, right, 97, MPI_COMM_WORLD);
	MPI_Waitsome(3, q, &k, idx, MPI_STATUSES_IGNORE);
	CHECK_EQ(k, 1);
	CHECK_EQ(idx[0], 2);
	chk_barrier(MPI_COMM_WORLD);
	MPI_Send(&one, 1, MPI_INT, right, 95, MPI_COMM_WORLD);
	MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(in[i], 1);
}

static void proc_null(void)
{
	int b = 5, c = 6;
	MPI_Status st;
	MPI_Request q[6];
	MPI_Status sts[6];

	MPI_Send(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Ssend(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Rsend(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Recv(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	MPI_Sendrecv(&c, 1, MPI_INT, MPI_PROC_NULL, 1, &b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	MPI_Sendrecv_replace(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st);
	CHECK_STATUS(&st, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	MPI_Isend(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &q[0]);
	MPI_Issend(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &q[1]);
	MPI_Irecv(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &q[2]);
	MPI_Send_init(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &q[3]);
	MPI_Recv_init(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &q[4]);
	MPI_Ssend_init(&b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &q[5]);
	MPI_Startall(3, q + 3);
	MPI_Waitall(6, q, sts);
	CHECK_STATUS(&sts[2], MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
	int n; /* only the count: MPICH 4.0.2 says source MPI_ANY_SOURCE for a persistent receive from nobody */
	MPI_Get_count(&sts[4], MPI_INT, &n);
	CHECK_EQ(n, 0);
	for (int i = 3; i < 6; i++)
		MPI_Request_free(&q[i]);
	CHECK_EQ(b, 5);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "requests", 1);
	right = (chk_rank + 1) % chk_size;
	left = (chk_rank + chk_size - 1) % chk_size;
	null_and_empty();
	proc_null();
	persistent();
	all_forms(0);
	all_forms(1);
	get_status_and_free();
	not_before_its_time();
	return chk_end();
}
