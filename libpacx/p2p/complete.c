/* complete.c: the MPI_Wait and MPI_Test families, over any mixture of native and own requests.
 *
 * Design: a call without any request of ours goes to the native function when a native call may block; so does
 * MPI_Waitall when all of ours are native underneath (receives from this site). Otherwise the requests are sorted into two sides (struct mix): ours are looked at with px_req_test,
 * the native ones with one native Testall/Testany/Testsome per round, which treats inactive
 * and null requests as the standard says.
 */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "comm.h"
#include "lock.h"
#include "raise.h"
#include "request.h"
#include "vendor.h"
#include "wait.h"

void px_status_empty(MPI_Status *status)
{
	if (status != MPI_STATUS_IGNORE) {
		struct px_req r;

		px_req_set_status(&r, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
		px_status_copy(status, &r.status);
	}
}

int px_Wait(MPI_Request *req, MPI_Status *status)
{
	struct px_req *r = px_req_find(*req);
	int rc;

	if (!r && px_may_block()) {
		px_blocking(rc, px_n.Wait(req, status));
		return rc;
	}
	if (!r)
		return px_wait_native(req, status);
	if (px_req_asleep(r)) {
		px_status_empty(status);
		return MPI_SUCCESS;
	}
	px_req_wait(r);
	return px_req_finish(r, req, status);
}

int px_Test(MPI_Request *req, int *flag, MPI_Status *status)
{
	struct px_req *r = px_req_find(*req);

	px_progress();
	if (!r)
		return px_n.Test(req, flag, status);
	if (px_req_asleep(r)) {
		*flag = 1;
		px_status_empty(status);
		return MPI_SUCCESS;
	}
	*flag = px_req_test(r);
	return *flag ? px_req_finish(r, req, status) : MPI_SUCCESS;
}

struct mix {
	int nn, no;          /* native, own */
	MPI_Request *nat;    /* [nn] */
	int *nat_at;         /* [nn] index in the caller's array */
	struct px_req **own; /* [no] */
	int *own_at;
	MPI_Status *nat_st; /* [nn] */
	int *nat_idx;       /* [nn] for Testsome */
	void *memory;
};

static int mix_init(struct mix *m, int n, const MPI_Request *req)
{
	size_t each = sizeof *m->nat + sizeof *m->own + sizeof *m->nat_st + 3 * sizeof(int);
	size_t k = (size_t)n + 1;
	char *p = malloc(k * each);

	if (!p)
		return MPI_ERR_NO_MEM;
	memset(m, 0, sizeof *m);
	m->memory = p;
	m->own = (struct px_req **)(void *)p;
	p += k * sizeof *m->own;
	m->nat = (MPI_Request *)(void *)p;
	p += k * sizeof *m->nat;
	m->nat_st = (MPI_Status *)(void *)p;
	p += k * sizeof *m->nat_st;
	m->nat_at = (int *)(void *)p;
	m->own_at = m->nat_at + k;
	m->nat_idx = m->own_at + k;
	for (int i = 0; i < n; i++) {
		struct px_req *r = px_req_find(req[i]);

		if (r) {
			m->own[m->no] = r;
			m->own_at[m->no++] = i;
		} else {
			m->nat[m->nn] = req[i];
			m->nat_at[m->nn++] = i;
		}
	}
	return MPI_SUCCESS;
}

static void mix_free(struct mix *m, MPI_Request *req)
{
	for (int i = 0; i < m->nn; i++)
		req[m->nat_at[i]] = m->nat[i];
	free(m->memory);
}

/* Is the whole array the native MPI's business? */
static bool all_native(int n, const MPI_Request *req)
{
	if (!px_may_block())
		return false;
	for (int i = 0; i < n; i++)
		if (px_req_find(req[i]))
			return false;
	return true;
}

static bool own_done(struct mix *m)
{
	bool all = true;

	for (int i = 0; i < m->no; i++)
		all &= px_req_asleep(m->own[i]) || px_req_test(m->own[i]);
	return all;
}

/* The first own request of an array that has failed. */
struct failure {
	struct px_comm *c; /* held; NULL: none */
	char *why;
};

/* Complete one own request of an array; its error goes to the status when there is one. Returns the error. */
static int finish_one(
	struct px_req *r, MPI_Request *handle, int index, MPI_Status *status, struct failure *failed)
{
	int error = r->error;

	if (px_req_asleep(r)) {
		px_status_empty(status);
		if (status != MPI_STATUS_IGNORE)
			status->MPI_ERROR = MPI_SUCCESS;
		return MPI_SUCCESS;
	}
	if (error != MPI_SUCCESS && !r->raised && !failed->c) {
		failed->c = r->c;
		px_comm_hold(r->c);
		failed->why = px_text("request %d: %s", index, r->why ? r->why : "failed");
	}
	r->raised = true; /* reported once, for the array */
	px_req_finish(r, handle, status);
	if (status != MPI_STATUS_IGNORE)
		status->MPI_ERROR = error;
	return error;
}

/* The array call has failed: tell the error handler of the first communicator concerned. */
static int raise_array(struct failure *failed, int rc)
{
	if (failed->c) {
		px_raise_as(failed->c, rc, failed->why);
		px_comm_drop(failed->c);
		free(failed->why);
	}
	return rc;
}

static int finish_all(struct mix *m, MPI_Request *req, MPI_Status *statuses, int nat_rc)
{
	struct failure failed = { NULL, NULL };
	bool bad = nat_rc != MPI_SUCCESS;
	bool want = statuses != MPI_STATUSES_IGNORE;

	for (int i = 0; i < m->nn && want; i++) {
		MPI_Status *to = &statuses[m->nat_at[i]];

		*to = m->nat_st[i];
		if (nat_rc == MPI_SUCCESS)
			to->MPI_ERROR = MPI_SUCCESS;
	}
	for (int i = 0; i < m->no; i++)
		bad |= finish_one(m->own[i], &req[m->own_at[i]], m->own_at[i],
			       want ? &statuses[m->own_at[i]] : MPI_STATUS_IGNORE, &failed) != MPI_SUCCESS;
	return bad ? raise_array(&failed, MPI_ERR_IN_STATUS) : MPI_SUCCESS;
}

/* Is everything that is left to wait for native underneath? */
static bool waits_natively(const struct mix *m)
{
	for (int i = 0; i < m->no; i++)
		if (!px_req_asleep(m->own[i]) && !m->own[i]->done && !px_req_only_native(m->own[i]))
			return false;
	return px_hooked;
}

/* One native call for all: the native halves of our own requests follow those that were native from the beginning. What an
 * error leaves pending stays with its request. */
static int wait_natively(struct mix *m)
{
	int k = m->nn, class, rc;

	for (int i = 0; i < m->no; i++)
		if (px_req_only_native(m->own[i]))
			m->nat[k++] = m->own[i]->native;
	px_blocking(rc, px_n.Waitall(k, m->nat, m->nat_st));
	px_n.Error_class(rc, &class);
	k = m->nn;
	for (int i = 0; i < m->no; i++) {
		struct px_req *r = m->own[i];
		int error;

		if (!px_req_only_native(r))
			continue;
		error = class == MPI_ERR_IN_STATUS ? m->nat_st[k].MPI_ERROR : rc;
		r->native = m->nat[k];
		if (error != MPI_ERR_PENDING)
			px_req_native_done(r, &m->nat_st[k], error);
		k++;
	}
	return rc;
}

/* One look at the native side of MPI_Waitall; true when nothing there is active any more. Not by Testall: that of MPICH 4.0
 * completes a generalized request (those of files are) again and again while another of the array is pending, and asserts. */
static bool native_done(struct mix *m, MPI_Status *some, int *rc)
{
	int k, err = px_n.Testsome(m->nn, m->nat, &k, m->nat_idx, some);

	if (err != MPI_SUCCESS)
		*rc = err;
	for (int i = 0; k != MPI_UNDEFINED && i < k; i++) {
		MPI_Status *to = &m->nat_st[m->nat_idx[i]];

		*to = some[i];
		if (err == MPI_SUCCESS)
			to->MPI_ERROR = MPI_SUCCESS;
	}
	return k == MPI_UNDEFINED || (err != MPI_SUCCESS && err != MPI_ERR_IN_STATUS);
}

int px_Waitall(int n, MPI_Request req[], MPI_Status statuses[])
{
	MPI_Status *some;
	struct px_wait w;
	struct mix m;
	int rc = MPI_SUCCESS;
	bool native;

	if (n <= 0 || all_native(n, req)) {
		px_blocking(rc, px_n.Waitall(n, req, statuses));
		return rc;
	}
	if (mix_init(&m, n, req) != MPI_SUCCESS)
		return MPI_ERR_NO_MEM;
	some = malloc(((size_t)m.nn + 1) * sizeof *some);
	if (!some) {
		mix_free(&m, req);
		return MPI_ERR_NO_MEM;
	}
	for (int i = 0; i < m.nn; i++) {
		px_status_empty(&m.nat_st[i]); /* null and inactive ones */
		m.nat_st[i].MPI_ERROR = MPI_SUCCESS;
	}
	native = m.nn == 0;
	if (waits_natively(&m)) {
		rc = wait_natively(&m);
		native = true;
	}
	px_loop_enter(&w);
	for (;;) {
		bool own;

		native = native || native_done(&m, some, &rc);
		own = own_done(&m);
		if (native && own)
			break;
		px_relax(&w, px_progress());
	}
	px_loop_leave();
	free(some);
	rc = finish_all(&m, req, statuses, rc);
	mix_free(&m, req);
	return rc;
}

int px_Testall(int n, MPI_Request req[], int *flag, MPI_Status statuses[])
{
	struct mix m;
	int rc = MPI_SUCCESS;

	px_progress();
	if (n <= 0 || all_native(n, req))
		return px_n.Testall(n, req, flag, statuses);
	if (mix_init(&m, n, req) != MPI_SUCCESS)
		return MPI_ERR_NO_MEM;
	*flag = own_done(&m);
	if (*flag && m.nn > 0) {
		rc = px_n.Testall(m.nn, m.nat, flag, m.nat_st);
		if (rc != MPI_SUCCESS)
			*flag = 1;
	}
	if (*flag)
		rc = finish_all(&m, req, statuses, rc);
	mix_free(&m, req);
	return rc;
}

/* Nothing may starve what is beside it in an array, however often it completes: each look for one request begins behind the one that the last
 * look has found, and first among those, native or ours, that it was not one of. */
static struct {
	unsigned own, native; /* taken modulo the length of the array */
	bool native_first;
} turn;

/* One look at our own requests; *active: some of them are. True: *index, *status and *rc are set. */
static bool any_own(struct mix *m, MPI_Request *req, bool *active, int *index, MPI_Status *status, int *rc)
{
	for (int k = 0; k < m->no; k++) {
		int i = (int)((turn.own + (unsigned)k) % (unsigned)m->no);
		struct px_req *r = m->own[i];

		if (px_req_asleep(r))
			continue;
		*active = true;
		if (px_req_test(r)) {
			turn.own = (unsigned)i + 1;
			turn.native_first = true;
			*index = m->own_at[i];
			*rc = px_req_finish(r, &req[*index], status);
			return true;
		}
	}
	return false;
}

/* The same of n native ones, from the k-th on. */
static bool any_native_of(struct mix *m, int k, int n, bool *active, int *index, MPI_Status *status, int *rc)
{
	int flag = 1, at = MPI_UNDEFINED;

	*rc = n > 0 ? px_n.Testany(n, m->nat + k, &at, &flag, m->nat_st) : MPI_SUCCESS;
	*active = *active || !flag;
	if (*rc == MPI_SUCCESS && (!flag || at == MPI_UNDEFINED))
		return false;
	*index = at == MPI_UNDEFINED ? MPI_UNDEFINED : m->nat_at[k + at];
	if (at != MPI_UNDEFINED)
		turn.native = (unsigned)(k + at) + 1;
	turn.native_first = false;
	px_status_copy(status, &m->nat_st[0]);
	return true;
}

static bool any_native(struct mix *m, bool *active, int *index, MPI_Status *status, int *rc)
{
	int k = m->nn > 0 ? (int)(turn.native % (unsigned)m->nn) : 0;

	return any_native_of(m, k, m->nn - k, active, index, status, rc) ||
	       any_native_of(m, 0, k, active, index, status, rc);
}

/* One look for MPI_Waitany and MPI_Testany. True: *index (or MPI_UNDEFINED), *status and *rc are set. */
static bool look_any(struct mix *m, MPI_Request *req, int *index, MPI_Status *status, int *rc)
{
	bool active = false, native_first = turn.native_first;

	*rc = MPI_SUCCESS;
	if ((native_first && any_native(m, &active, index, status, rc)) ||
		any_own(m, req, &active, index, status, rc) ||
		(!native_first && any_native(m, &active, index, status, rc)))
		return true;
	if (active)
		return false;
	*index = MPI_UNDEFINED;
	px_status_empty(status);
	return true;
}

int px_Waitany(int n, MPI_Request req[], int *index, MPI_Status *status)
{
	struct px_wait w;
	struct mix m;
	int rc;

	if (n <= 0 || all_native(n, req)) {
		px_blocking(rc, px_n.Waitany(n, req, index, status));
		return rc;
	}
	if (mix_init(&m, n, req) != MPI_SUCCESS)
		return MPI_ERR_NO_MEM;
	px_loop_enter(&w);
	while (!look_any(&m, req, index, status, &rc))
		px_relax(&w, px_progress());
	px_loop_leave();
	mix_free(&m, req);
	return rc;
}

int px_Testany(int n, MPI_Request req[], int *index, int *flag, MPI_Status *status)
{
	struct mix m;
	int rc;

	px_progress();
	if (n <= 0 || all_native(n, req))
		return px_n.Testany(n, req, index, flag, status);
	if (mix_init(&m, n, req) != MPI_SUCCESS)
		return MPI_ERR_NO_MEM;
	*flag = look_any(&m, req, index, status, &rc);
	if (!*flag)
		*index = MPI_UNDEFINED;
	mix_free(&m, req);
	return rc;
}

/* One look for MPI_Waitsome and MPI_Testsome. *count = completed, MPI_UNDEFINED when nothing is active. */
static int look_some(struct mix *m, MPI_Request *req, int *count, int *indices, MPI_Status *statuses)
{
	struct failure failed = { NULL, NULL };
	bool active = false, bad = false, want = statuses != MPI_STATUSES_IGNORE;
	int got = 0, k = MPI_UNDEFINED, rc = MPI_SUCCESS;

	if (m->nn > 0) {
		rc = px_n.Testsome(m->nn, m->nat, &k, m->nat_idx, m->nat_st);
		bad = rc != MPI_SUCCESS;
	}
	for (int i = 0; k != MPI_UNDEFINED && i < k; i++) {
		indices[got] = m->nat_at[m->nat_idx[i]];
		if (want) {
			statuses[got] = m->nat_st[i];
			if (!bad)
				statuses[got].MPI_ERROR = MPI_SUCCESS;
		}
		got++;
	}
	for (int i = 0; i < m->no; i++) {
		struct px_req *r = m->own[i];

		if (px_req_asleep(r))
			continue;
		active = true;
		if (!px_req_test(r))
			continue;
		indices[got] = m->own_at[i];
		bad |= finish_one(r, &req[m->own_at[i]], m->own_at[i],
			       want ? &statuses[got] : MPI_STATUS_IGNORE, &failed) != MPI_SUCCESS;
		got++;
	}
	*count = !active && k == MPI_UNDEFINED ? MPI_UNDEFINED : got;
	return bad ? raise_array(&failed, MPI_ERR_IN_STATUS) : MPI_SUCCESS;
}

int px_Waitsome(int n, MPI_Request req[], int *count, int indices[], MPI_Status statuses[])
{
	struct px_wait w;
	struct mix m;
	int rc;

	if (n <= 0 || all_native(n, req)) {
		px_blocking(rc, px_n.Waitsome(n, req, count, indices, statuses));
		return rc;
	}
	if (mix_init(&m, n, req) != MPI_SUCCESS)
		return MPI_ERR_NO_MEM;
	px_loop_enter(&w);
	while ((rc = look_some(&m, req, count, indices, statuses)) == MPI_SUCCESS && *count == 0)
		px_relax(&w, px_progress());
	px_loop_leave();
	mix_free(&m, req);
	return rc;
}

int px_Testsome(int n, MPI_Request req[], int *count, int indices[], MPI_Status statuses[])
{
	struct mix m;
	int rc;

	px_progress();
	if (n <= 0 || all_native(n, req))
		return px_n.Testsome(n, req, count, indices, statuses);
	if (mix_init(&m, n, req) != MPI_SUCCESS)
		return MPI_ERR_NO_MEM;
	rc = look_some(&m, req, count, indices, statuses);
	mix_free(&m, req);
	return rc;
}

int px_Request_free(MPI_Request *req)
{
	struct px_req *r = px_req_find(*req);

	if (!r)
		return px_n.Request_free(req);
	if (r->kind == PX_COLL)
		return px_raise(r->c, MPI_ERR_REQUEST,
			"the request of a collective cannot be freed before it is complete (MPI standard "
			"5.12)");
	if (r->kind == PX_TASK) /* nobody else would look after it */
		px_req_wait(r);
	if (px_req_asleep(r) || r->kind == PX_TASK)
		px_req_release(r);
	else
		px_req_detach(r);
	*req = MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

bool px_req_cancel(struct px_req *r)
{
	int flag = 0, gone = 0, rc;
	MPI_Status st;

	if (px_req_test(r))
		return true;
	if (r->native != MPI_REQUEST_NULL) {
		px_n.Cancel(&r->native);
		rc = px_n.Test(&r->native, &flag, &st);
		if (rc == MPI_SUCCESS && !flag)
			return false; /* matched: its data is on the way */
		if (rc == MPI_SUCCESS)
			px_n.Test_cancelled(&st, &gone);
		if (!gone) {
			px_req_native_done(r, &st, rc);
			return true;
		}
		r->native = MPI_REQUEST_NULL;
	} else if (!r->posted) {
		return false;
	}
	if (r->posted)
		px_req_unpost(r);
	px_req_set_status(r, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	px_n.Status_set_cancelled(&r->status, 1);
	r->done = true;
	return true;
}

int px_Cancel(MPI_Request *req)
{
	struct px_req *r = px_req_find(*req);

	if (!r)
		return px_n.Cancel(req);
	px_progress();
	/* Sends are never cancelled (they complete), nor are receives that have matched. */
	if (r->kind == PX_RECV && !px_req_asleep(r))
		px_req_cancel(r);
	return MPI_SUCCESS;
}
