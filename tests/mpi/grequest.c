/*
 * grequest.c - generalized requests in one array with messages of near and far ranks, from any source, persistent ones and
 * collectives, in each form of wait and test.
 */
#include "check.h"

struct work {
	int number, queried, freed;
};

static int query(void *extra, MPI_Status *st)
{
	struct work *w = extra;

	w->queried++;
	MPI_Status_set_elements(st, MPI_INT, w->number);
	MPI_Status_set_cancelled(st, 0);
	st->MPI_SOURCE = 7;
	st->MPI_TAG = w->number;
	return MPI_SUCCESS;
}

static int done(void *extra)
{
	((struct work *)extra)->freed++;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra;
	(void)complete;
	return MPI_SUCCESS;
}

enum { WAITALL, WAITANY, WAITSOME, TESTALL, TESTANY, TESTSOME, ONE_BY_ONE, FORMS };

/* The requests of one round: two generalized ones at the ends, and between them a receive from and a send to every rank, one
 * receive of these from any source, a persistent one, and a sum. */
struct set {
	int n, *out, *in, one, sum, left;
	MPI_Request *req, persistent;
	MPI_Status *st;
	struct work work[2];
	char *seen;
};

static void finished(struct set *s, int i, const MPI_Status *st)
{
	CHECK(!s->seen[i]);
	s->seen[i] = 1;
	s->left--;
	if (i == 0 || i == s->n - 1) {
		struct work *w = &s->work[i != 0];

		CHECK_STATUS(st, 7, w->number, MPI_INT, w->number);
		CHECK(w->queried >= 1);
	} else if (i <= chk_size) {
		CHECK_STATUS(st, i - 1, i - 1 == (chk_rank + chk_size - 1) % chk_size ? 22 : 20, MPI_INT, 1);
	}
}

static void fill(struct set *s)
{
	int k = 0, next = (chk_rank + 1) % chk_size, before = (chk_rank + chk_size - 1) % chk_size;

	s->n = 2 * chk_size + 5;
	s->left = s->n;
	s->req = chk_alloc((size_t)s->n * sizeof *s->req);
	s->st = chk_alloc((size_t)s->n * sizeof *s->st);
	s->seen = calloc((size_t)s->n, 1);
	s->out = chk_alloc((size_t)chk_size * sizeof *s->out);
	s->in = chk_alloc((size_t)(chk_size + 1) * sizeof *s->in);
	for (int i = 0; i < 2; i++)
		s->work[i] = (struct work){ .number = 3 + i };
	MPI_Grequest_start(query, done, cancel, &s->work[0], &s->req[k++]);
	for (int r = 0; r < chk_size; r++)
		MPI_Irecv(&s->in[r], 1, MPI_INT, r == before ? MPI_ANY_SOURCE : r, r == before ? 22 : 20,
			MPI_COMM_WORLD, &s->req[k++]);
	for (int r = 0; r < chk_size; r++) {
		s->out[r] = chk_rank * 100 + r;
		MPI_Isend(&s->out[r], 1, MPI_INT, r, r == next ? 22 : 20, MPI_COMM_WORLD, &s->req[k++]);
	}
	MPI_Recv_init(&s->in[chk_size], 1, MPI_INT, before, 21, MPI_COMM_WORLD, &s->req[k]);
	MPI_Start(&s->req[k]);
	s->persistent = s->req[k++];
	MPI_Isend(&chk_rank, 1, MPI_INT, next, 21, MPI_COMM_WORLD, &s->req[k++]);
	s->one = chk_rank + 1;
	MPI_Iallreduce(&s->one, &s->sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &s->req[k++]);
	MPI_Grequest_start(query, done, cancel, &s->work[1], &s->req[k++]);
}

static void by_form(struct set *s, int form)
{
	int *at = chk_alloc((size_t)s->n * sizeof *at), some, flag = 0, i;
	MPI_Status st;

	while (s->left > 0) {
		switch (form) {
		case WAITALL:
			MPI_Waitall(s->n, s->req, s->st);
			for (i = 0; i < s->n; i++)
				finished(s, i, &s->st[i]);
			break;
		case WAITANY:
			MPI_Waitany(s->n, s->req, &i, &st);
			finished(s, i, &st);
			break;
		case TESTANY:
			MPI_Testany(s->n, s->req, &i, &flag, &st);
			if (flag)
				finished(s, i, &st);
			break;
		case WAITSOME:
		case TESTSOME:
			if (form == WAITSOME)
				MPI_Waitsome(s->n, s->req, &some, at, s->st);
			else
				MPI_Testsome(s->n, s->req, &some, at, s->st);
			for (i = 0; i < some; i++)
				finished(s, at[i], &s->st[i]);
			break;
		case TESTALL:
			while (!flag)
				MPI_Testall(s->n, s->req, &flag, s->st);
			for (i = 0; i < s->n; i++)
				finished(s, i, &s->st[i]);
			break;
		default:
			for (i = s->n - 1; i >= 0; i--) {
				for (flag = 0; i % 2 && !flag;)
					MPI_Test(&s->req[i], &flag, &s->st[i]);
				if (!flag)
					MPI_Wait(&s->req[i], &s->st[i]);
				finished(s, i, &s->st[i]);
			}
		}
	}
	free(at);
}

static void round_of(int form)
{
	struct set s;
	int flag;

	fill(&s);
	/* not complete: no test says so */
	MPI_Test(&s.req[0], &flag, MPI_STATUS_IGNORE);
	CHECK_EQ(flag, 0);
	MPI_Request_get_status(s.req[s.n - 1], &flag, MPI_STATUS_IGNORE);
	CHECK_EQ(flag, 0);
	MPI_Grequest_complete(s.req[0]);
	MPI_Grequest_complete(s.req[s.n - 1]);
	by_form(&s, form);
	for (int i = 0; i < s.n; i++)
		CHECK(s.seen[i] && (s.req[i] == MPI_REQUEST_NULL || s.req[i] == s.persistent));
	for (int i = 0; i < 2; i++)
		CHECK_EQ(s.work[i].freed, 1);
	for (int r = 0, sum = 0; r <= chk_size; r++) {
		sum += r < chk_size ? s.in[r] : 0;
		if (r == chk_size) {
			CHECK_EQ(sum, 100 * chk_size * (chk_size - 1) / 2 + chk_size * chk_rank);
			CHECK_EQ(s.in[r], (chk_rank + chk_size - 1) % chk_size);
		}
	}
	CHECK_EQ(s.sum, chk_size * (chk_size + 1) / 2);
	MPI_Request_free(&s.persistent);
	free(s.req);
	free(s.st);
	free(s.seen);
	free(s.out);
	free(s.in);
	chk_barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	chk_begin(&argc, &argv, "grequest", 2);
	for (int i = 0; i < 3; i++)
		for (int form = 0; form < FORMS; form++)
			round_of(form);
	return chk_end();
}
