/*
 * fair - one source that always has another message ready starves nobody: beside it, receives from this rank's neighbour, from the other
 * ranks, from any source, and generalized requests are found complete within a few calls of Waitany, Testany, Waitsome and Testsome, and what one
 * rank has sent once is received from any source, or found by a probe, before what the other one keeps sending.  The busy source is the
 * neighbour, then the last rank.  (The busy request is the last one of each array, as MPIs may look from the front.)
 */
#include "check.h"

enum { FLOOD = 64, BOUND = 16, TAG_FLOOD = 1, TAG_ONCE, TAG_ANY, TAG_READY, TAG_GO };
enum { ONE, ANY, GENERALIZED, FLOODED, REQUESTS };
static const char *const CALLS[] = { "Waitany", "Testany", "Waitsome", "Testsome" };

static int query(void *extra, MPI_Status *st)
{
	(void)extra;
	MPI_Status_set_elements(st, MPI_BYTE, 0);
	MPI_Status_set_cancelled(st, 0);
	st->MPI_SOURCE = MPI_UNDEFINED;
	st->MPI_TAG = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

static int release(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra;
	(void)complete;
	return MPI_SUCCESS;
}

/* One call; the indices of what it has completed, and how many. */
static int complete(int how, MPI_Request req[], int done[])
{
	int n = 0, flag = 1;

	if (how == 0)
		MPI_Waitany(REQUESTS, req, &done[0], MPI_STATUS_IGNORE);
	else if (how == 1)
		MPI_Testany(REQUESTS, req, &done[0], &flag, MPI_STATUS_IGNORE);
	else if (how == 2)
		MPI_Waitsome(REQUESTS, req, &n, done, MPI_STATUSES_IGNORE);
	else
		MPI_Testsome(REQUESTS, req, &n, done, MPI_STATUSES_IGNORE);
	return how < 2 ? flag : n;
}

/* Messages of the busy rank and of the quiet one have all come; see how soon the latter are found. */
static void arrays(int how, int busy, int quiet)
{
	int got[REQUESTS] = { 0 }, times[REQUESTS] = { 0 }, left = FLOOD, calls = 0, done[REQUESTS];
	MPI_Request req[REQUESTS];

	MPI_Probe(busy, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Probe(quiet, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Irecv(&got[ONE], 1, MPI_INT, quiet, TAG_ONCE, MPI_COMM_WORLD, &req[ONE]);
	MPI_Irecv(&got[ANY], 1, MPI_INT, MPI_ANY_SOURCE, TAG_ANY, MPI_COMM_WORLD, &req[ANY]);
	MPI_Grequest_start(query, release, cancel, NULL, &req[GENERALIZED]);
	MPI_Grequest_complete(req[GENERALIZED]);
	MPI_Irecv(&got[FLOODED], 1, MPI_INT, busy, TAG_FLOOD, MPI_COMM_WORLD, &req[FLOODED]);
	while (left > 0) {
		int n = complete(how, req, done);

		calls++;
		for (int i = 0; i < n; i++) {
			times[done[i]]++;
			if (done[i] != FLOODED) {
				if (calls > BOUND)
					chk_report(__FILE__, __LINE__,
						"MPI_%s found request %d in call %d only", CALLS[how],
						done[i], calls);
				CHECK(calls <= BOUND);
				continue;
			}
			CHECK_EQ(got[FLOODED], FLOOD - left);
			if (--left > 0)
				MPI_Irecv(&got[FLOODED], 1, MPI_INT, busy, TAG_FLOOD, MPI_COMM_WORLD,
					&req[FLOODED]);
		}
	}
	for (int i = 0; i < FLOODED; i++) {
		CHECK_EQ(times[i], 1);
		CHECK(req[i] == MPI_REQUEST_NULL || times[i] == 0);
		if (req[i] != MPI_REQUEST_NULL)
			MPI_Wait(&req[i], MPI_STATUS_IGNORE);
	}
	CHECK_EQ(got[ONE], quiet);
	CHECK_EQ(got[ANY], quiet);
	MPI_Recv(NULL, 0, MPI_INT, busy, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Recv(NULL, 0, MPI_INT, quiet, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The quiet rank's one message came first, then a flood: how many are taken before it? how 0: by receives from any source; 1: what a probe
 * finds; 2: what a matching probe takes. */
static void wildcards(int how, int busy, int quiet)
{
	int from[2] = { 0, 0 }, value, first = 0;

	MPI_Probe(quiet, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Send(NULL, 0, MPI_INT, busy, TAG_GO, MPI_COMM_WORLD);
	MPI_Probe(busy, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < FLOOD + 1; i++) {
		MPI_Message message;
		MPI_Status st;

		if (how == 0) {
			MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, TAG_FLOOD, MPI_COMM_WORLD, &st);
		} else if (how == 1) {
			MPI_Probe(MPI_ANY_SOURCE, TAG_FLOOD, MPI_COMM_WORLD, &st);
			MPI_Recv(&value, 1, MPI_INT, st.MPI_SOURCE, TAG_FLOOD, MPI_COMM_WORLD, &st);
		} else {
			MPI_Mprobe(MPI_ANY_SOURCE, TAG_FLOOD, MPI_COMM_WORLD, &message, &st);
			MPI_Mrecv(&value, 1, MPI_INT, &message, &st);
		}
		CHECK(st.MPI_SOURCE == quiet || st.MPI_SOURCE == busy);
		CHECK_EQ(value, st.MPI_SOURCE == quiet ? quiet : from[1]);
		from[st.MPI_SOURCE == busy]++;
		if (st.MPI_SOURCE == quiet)
			first = i;
	}
	CHECK_EQ(from[0], 1);
	CHECK_EQ(from[1], FLOOD);
	CHECK(first < BOUND);
	MPI_Recv(NULL, 0, MPI_INT, busy, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Recv(NULL, 0, MPI_INT, quiet, TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void flood(int wait)
{
	if (wait)
		MPI_Recv(NULL, 0, MPI_INT, 0, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < FLOOD; i++)
		MPI_Send(&i, 1, MPI_INT, 0, TAG_FLOOD, MPI_COMM_WORLD);
	MPI_Send(NULL, 0, MPI_INT, 0, TAG_READY, MPI_COMM_WORLD);
}

static void once(int tag)
{
	MPI_Send(&chk_rank, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
	if (tag == TAG_ONCE)
		MPI_Send(&chk_rank, 1, MPI_INT, 0, TAG_ANY, MPI_COMM_WORLD);
	MPI_Send(NULL, 0, MPI_INT, 0, TAG_READY, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int last;

	chk_begin(&argc, &argv, "fair", 3);
	last = chk_size - 1;
	for (int round = 0; round < 2; round++) {
		int busy = round ? last : 1, quiet = round ? 1 : last;

		for (int how = 0; how < 4; how++) {
			if (chk_rank == 0)
				arrays(how, busy, quiet);
			else if (chk_rank == busy)
				flood(0);
			else if (chk_rank == quiet)
				once(TAG_ONCE);
			chk_barrier(MPI_COMM_WORLD);
		}
		for (int how = 0; how < 3; how++) {
			if (chk_rank == 0)
				wildcards(how, busy, quiet);
			else if (chk_rank == busy)
				flood(1);
			else if (chk_rank == quiet)
				once(TAG_FLOOD);
			chk_barrier(MPI_COMM_WORLD);
		}
	}
	return chk_end();
}
