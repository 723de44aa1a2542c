/* get_status.c: MPI_Request_get_status and its kin: requests are looked at, and stay as they are.
 *
 * Native requests are shown to the native functions, ours are looked at with px_req_test. Like tests these are calls
 * that make progress, and never wait.
 */
#include <stdlib.h>

#include "bind.h"
#include "request.h"
#include "vendor.h"

int px_Request_get_status(MPI_Request req, int *flag, MPI_Status *status)
{
	struct px_req *r = px_req_find(req);

	px_progress();
	if (!r)
		return px_n.Request_get_status(req, flag, status);
	if (px_req_asleep(r)) {
		*flag = 1;
		px_status_empty(status);
	} else {
		*flag = px_req_test(r);
		if (*flag)
			px_status_copy(status, &r->status);
	}
	return MPI_SUCCESS;
}

#ifdef PX_HAVE_Request_get_status_any
enum look { LOOK_IDLE, LOOK_PENDING, LOOK_DONE };

/* look: one of the requests. A native one that is inactive looks like one that is complete, except to the functions of several. */
static int look(MPI_Request h, enum look *is, MPI_Status *status)
{
	struct px_req *r = px_req_find(h);
	int index, flag, rc = MPI_SUCCESS;

	if (!r) {
		rc = px_n.Request_get_status_any(1, &h, &index, &flag, status);
		*is = !flag ? LOOK_PENDING : index == MPI_UNDEFINED ? LOOK_IDLE : LOOK_DONE;
		return rc;
	}
	*is = px_req_asleep(r) ? LOOK_IDLE : px_req_test(r) ? LOOK_DONE : LOOK_PENDING;
	if (*is == LOOK_DONE)
		px_status_copy(status, &r->status);
	return rc;
}

int px_Request_get_status_any(int n, const MPI_Request req[], int *index, int *flag, MPI_Status *status)
{
	enum look is;
	bool active = false;
	int rc;

	px_progress();
	for (int i = 0; i < n; i++) {
		rc = look(req[i], &is, status);
		if (rc != MPI_SUCCESS)
			return rc;
		active |= is != LOOK_IDLE;
		if (is == LOOK_DONE) {
			*index = i;
			*flag = 1;
			return MPI_SUCCESS;
		}
	}
	*index = MPI_UNDEFINED;
	*flag = !active;
	if (*flag)
		px_status_empty(status);
	return MPI_SUCCESS;
}

int px_Request_get_status_some(
	int n, const MPI_Request req[], int *count, int indices[], MPI_Status *statuses)
{
	bool active = false;
	MPI_Status st;
	enum look is;
	int rc, got = 0;

	px_progress();
	for (int i = 0; i < n; i++) {
		rc = look(req[i], &is, &st);
		if (rc != MPI_SUCCESS)
			return rc;
		active |= is != LOOK_IDLE;
		if (is != LOOK_DONE)
			continue;
		if (statuses != MPI_STATUSES_IGNORE)
			statuses[got] = st;
		indices[got++] = i;
	}
	*count = active ? got : MPI_UNDEFINED;
	return MPI_SUCCESS;
}

int px_Request_get_status_all(int n, const MPI_Request req[], int *flag, MPI_Status *statuses)
{
	bool want = statuses != MPI_STATUSES_IGNORE;
	MPI_Status st;
	enum look is;
	int rc;

	px_progress();
	*flag = 1;
	for (int i = 0; i < n; i++) {
		rc = look(req[i], &is, &st);
		if (rc != MPI_SUCCESS)
			return rc;
		if (is == LOOK_IDLE)
			px_status_empty(&st);
		if (is == LOOK_PENDING)
			*flag = 0;
		else if (want)
			statuses[i] = st;
	}
	return MPI_SUCCESS;
}
#endif
