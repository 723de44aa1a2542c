/* sync.c: synchronisation of windows: fences, locks and flushes, post and start. See rma.h. */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "group.h"
#include "rma.h"
#include "vendor.h"
#include "wait.h"

static bool is_target(const struct px_win *w, int rank)
{
	return rank >= 0 && rank < w->c->size;
}

/* A message to `rank`; MPI error code, raised. */
static int say(struct px_win *w, int rank, enum px_rma_flow flow, enum px_rma_kind kind, int64_t disp)
{
	int rc = px_rma_say(w, rank, flow, kind, disp, 0);

	return rc == MPI_SUCCESS ? rc : px_win_raise(w, rc);
}

/* Everything asked of this rank is done and answered. */
static bool settled(const struct px_rma_peer *p)
{
	return p->acks == 0 && p->outs == 0 && p->answers == 0;
}

static bool gone(const struct px_rma_peer *p)
{
	return p->outs == 0 && p->answers == 0;
}

/* Flush. */

int px_rma_flush_ask(struct px_win *w, int target)
{
	struct px_rma_peer *p = &w->peer[target];

	p->dirty = false;
	p->unmarked = 0;
	p->acks++;
	return say(w, target, PX_RMA_REQUESTS, PX_RMA_FLUSH, 0);
}

int px_rma_count(struct px_win *w, int target)
{
	struct px_rma_peer *p = &w->peer[target];
	int rc;

	p->sent++;
	p->dirty = true;
	if (++p->unmarked < PX_RMA_MARK)
		return MPI_SUCCESS;
	rc = px_rma_flush_ask(w, target);
	px_rma_until(p->acks < PX_RMA_MARKS);
	return rc;
}

/* All operations at ranks first .. last are done there (or, local, done with here). */
static int flush(struct px_win *w, int first, int last, bool local)
{
	int rc = MPI_SUCCESS;

	px_progress(); /* also when there is nothing to wait for: others may wait for us */
	for (int r = first; r <= last && !local && rc == MPI_SUCCESS; r++)
		if (w->peer[r].dirty)
			rc = px_rma_flush_ask(w, r);
	for (int r = first; r <= last; r++) {
		struct px_rma_peer *p = &w->peer[r];
		int failed;

		px_rma_until(local ? gone(p) : settled(p));
		failed = px_rma_failed(w, r);
		if (rc == MPI_SUCCESS)
			rc = failed;
	}
	return rc;
}

bool px_rma_any_lock(const struct px_win *w)
{
	for (int r = 0; r < w->c->size; r++)
		if (w->peer[r].locked)
			return true;
	return w->lock_all;
}

static int flush_one(struct px_win *w, int rank, bool local)
{
	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (!is_target(w, rank))
		return px_win_raise(w, MPI_ERR_RANK);
	if (!w->lock_all && !w->peer[rank].locked)
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	return flush(w, rank, rank, local);
}

static int flush_all(struct px_win *w, bool local)
{
	if (!px_rma_any_lock(w))
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	return flush(w, 0, w->c->size - 1, local);
}

int px_Win_flush(int rank, struct px_win *w)
{
	return flush_one(w, rank, false);
}

int px_Win_flush_local(int rank, struct px_win *w)
{
	return flush_one(w, rank, true);
}

int px_Win_flush_all(struct px_win *w)
{
	return flush_all(w, false);
}

int px_Win_flush_local_all(struct px_win *w)
{
	return flush_all(w, true);
}

/* Our operations are done under px_lock, which is all the barrier that memory needs; here for the caller's own accesses. */
int px_Win_sync(struct px_win *w)
{
	(void)w;
	atomic_thread_fence(memory_order_seq_cst);
	px_progress();
	return MPI_SUCCESS;
}

/* Locks: this rank's memory. */

static bool grantable(const struct px_win *w, bool exclusive)
{
	return w->holders == 0 || (!exclusive && w->holders > 0);
}

static void grant(struct px_win *w, struct px_rma_peer *p, bool exclusive)
{
	w->holders = exclusive ? -1 : w->holders + 1;
	p->holds = true;
}

void px_rma_lock_asked(struct px_win *w, int src, bool exclusive)
{
	struct px_rma_peer *p = &w->peer[src], **at = &w->waits;

	if (!w->waits && grantable(w, exclusive)) {
		grant(w, p, exclusive);
		return;
	}
	while (*at)
		at = &(*at)->wait_next;
	*at = p;
	p->wait_next = NULL;
	p->wants_exclusive = exclusive;
	p->in[PX_RMA_REQUESTS].stopped = src != w->c->rank;
}

void px_rma_unlocked(struct px_win *w, int src)
{
	w->holders = w->holders < 0 ? 0 : w->holders - 1;
	w->peer[src].holds = false;
	while (w->waits && grantable(w, w->waits->wants_exclusive)) {
		struct px_rma_peer *p = w->waits;

		w->waits = p->wait_next;
		grant(w, p, p->wants_exclusive);
		p->in[PX_RMA_REQUESTS].stopped = false;
		px_rma_resume(w, &p->in[PX_RMA_REQUESTS]);
	}
}

/* Locks: that of others. */

/* May an epoch of another kind begin? A fence has opened one only if something was done in it. */
static bool may_begin(struct px_win *w)
{
	if (w->lock_all || w->nstarted >= 0 || (w->fenced && w->ops > 0))
		return false;
	w->fenced = false;
	return true;
}

static int lock_self(struct px_win *w, bool exclusive)
{
	struct px_rma_peer *p = &w->peer[w->c->rank];

	px_rma_lock_asked(w, w->c->rank, exclusive);
	px_rma_until(p->holds);
	p->lock_sent = true;
	return MPI_SUCCESS;
}

static int lock_send(struct px_win *w, int rank, bool exclusive)
{
	w->peer[rank].lock_sent = true;
	return say(w, rank, PX_RMA_REQUESTS, PX_RMA_LOCK, exclusive);
}

/* Ask for the end of the lock at `rank`; settled() tells when it has come. */
static int unlock_send(struct px_win *w, int rank)
{
	struct px_rma_peer *p = &w->peer[rank];

	p->lock_sent = p->dirty = false;
	p->unmarked = 0;
	if (rank == w->c->rank) {
		px_rma_unlocked(w, rank);
		return MPI_SUCCESS;
	}
	p->acks++;
	return say(w, rank, PX_RMA_REQUESTS, PX_RMA_UNLOCK, 0);
}

int px_Win_lock(int type, int rank, int assert, struct px_win *w)
{
	int rc;

	if (type != MPI_LOCK_EXCLUSIVE && type != MPI_LOCK_SHARED)
		return px_win_raise(w, MPI_ERR_LOCKTYPE);
	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (!is_target(w, rank))
		return px_win_raise(w, MPI_ERR_RANK);
	if (w->peer[rank].locked || !may_begin(w))
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	w->peer[rank].locked = true;
	if (assert & MPI_MODE_NOCHECK)
		return MPI_SUCCESS; /* if somebody holds it all the same we do not wait: programs rely on that */
	if (rank == w->c->rank)
		rc = lock_self(w, type == MPI_LOCK_EXCLUSIVE);
	else
		rc = lock_send(w, rank, type == MPI_LOCK_EXCLUSIVE);
	return rc;
}

int px_Win_unlock(int rank, struct px_win *w)
{
	int rc = MPI_SUCCESS, failed;

	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (!is_target(w, rank))
		return px_win_raise(w, MPI_ERR_RANK);
	if (!w->peer[rank].locked)
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	if (w->peer[rank].lock_sent)
		rc = unlock_send(w, rank);
	else if (w->peer[rank].dirty)
		rc = px_rma_flush_ask(w, rank);
	px_rma_until(settled(&w->peer[rank]));
	w->peer[rank].locked = false;
	failed = px_rma_failed(w, rank);
	return rc != MPI_SUCCESS ? rc : failed;
}

/* Only the own memory is locked here; others when they are reached first. */
int px_Win_lock_all(int assert, struct px_win *w)
{
	if (px_rma_any_lock(w) || !may_begin(w))
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	w->lock_all = true;
	w->nocheck = assert &MPI_MODE_NOCHECK;
	return w->nocheck ? MPI_SUCCESS : lock_self(w, false);
}

int px_Win_unlock_all(struct px_win *w)
{
	int rc = MPI_SUCCESS, failed;

	if (!w->lock_all)
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	for (int r = 0; r < w->c->size && rc == MPI_SUCCESS; r++)
		if (w->peer[r].lock_sent)
			rc = unlock_send(w, r);
	failed = flush(w, 0, w->c->size - 1, false);
	w->lock_all = false;
	return rc != MPI_SUCCESS ? rc : failed;
}

int px_rma_may_reach(struct px_win *w, int target)
{
	struct px_rma_peer *p = &w->peer[target];

	if (p->locked || p->target)
		return MPI_SUCCESS;
	if (w->lock_all)
		return p->lock_sent || w->nocheck ? MPI_SUCCESS : lock_send(w, target, false);
	if (!w->fenced)
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	w->ops++;
	return MPI_SUCCESS;
}

/* Fence. */

int px_Win_fence(int assert, struct px_win *w)
{
	uint64_t mine = 0, *sent;
	int rc;

	if (px_rma_any_lock(w) || w->nstarted >= 0 || w->nposted >= 0)
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	if (!(assert &MPI_MODE_NOPRECEDE)) {
		sent = malloc((size_t)w->c->size * sizeof *sent);
		if (!sent)
			return px_win_raise(w, MPI_ERR_NO_MEM);
		for (int r = 0; r < w->c->size; r++) {
			sent[r] = w->peer[r].sent;
			w->peer[r].sent = 0;
		}
		rc = px_Reduce_scatter_block(sent, &mine, 1, MPI_UINT64_T, MPI_SUM, w->c);
		free(sent);
		if (rc != MPI_SUCCESS)
			return rc;
		w->expected += mine;
		px_rma_until(w->done >= w->expected && w->gets == 0 && w->nouts == 0);
	}
	rc = px_Barrier(w->c);
	w->fenced = !(assert &MPI_MODE_NOSUCCEED);
	w->ops = 0;
	if (rc == MPI_SUCCESS)
		rc = px_rma_spoiled(w);
	for (int r = 0; r < w->c->size && rc == MPI_SUCCESS; r++)
		rc = px_rma_failed(w, r);
	return rc;
}

/* Post and start. */

/* The members of a group as ranks of the window. MPI error code, raised. */
static int members(struct px_win *w, MPI_Group group, int *n, int **rank)
{
	int rc = group == MPI_GROUP_NULL ? MPI_ERR_GROUP : px_group_list(group, n, rank);

	if (rc != MPI_SUCCESS)
		return px_win_raise(w, rc);
	for (int i = 0; i < *n; i++) {
		int g = (*rank)[i];

		(*rank)[i] = g >= 0 ? px_rank_of(w->c, g) : -1;
		if ((*rank)[i] < 0) {
			free(*rank);
			return px_win_raise(w, MPI_ERR_GROUP);
		}
	}
	return MPI_SUCCESS;
}

int px_Win_post(MPI_Group group, int assert, struct px_win *w)
{
	int n, *rank, rc;

	if (w->nposted >= 0)
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	rc = members(w, group, &n, &rank);
	if (rc != MPI_SUCCESS)
		return rc;
	w->posted = rank;
	w->nposted = n;
	for (int i = 0; i < n && rc == MPI_SUCCESS && !(assert &MPI_MODE_NOCHECK); i++) {
		if (rank[i] == w->c->rank)
			w->peer[rank[i]].posts++;
		else
			rc = say(w, rank[i], PX_RMA_RESPONSES, PX_RMA_POST, 0);
	}
	return rc;
}

int px_Win_start(MPI_Group group, int assert, struct px_win *w)
{
	int n, *rank, rc;

	if (px_rma_any_lock(w) || !may_begin(w))
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	rc = members(w, group, &n, &rank);
	if (rc != MPI_SUCCESS)
		return rc;
	w->started = rank;
	w->nstarted = n;
	for (int i = 0; i < n; i++) {
		struct px_rma_peer *p = &w->peer[rank[i]];

		p->target = true;
		if (assert & MPI_MODE_NOCHECK)
			continue;
		px_rma_until(p->posts > 0);
		p->posts--;
	}
	return MPI_SUCCESS;
}

int px_Win_complete(struct px_win *w)
{
	int rc = MPI_SUCCESS;

	if (w->nstarted < 0)
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	for (int i = 0; i < w->nstarted && rc == MPI_SUCCESS; i++) {
		if (w->started[i] == w->c->rank)
			w->peer[w->started[i]].completes++;
		else
			rc = say(w, w->started[i], PX_RMA_REQUESTS, PX_RMA_COMPLETE, 0);
	}
	for (int i = 0; i < w->nstarted; i++) {
		struct px_rma_peer *p = &w->peer[w->started[i]];

		px_rma_until(gone(p));
		p->target = false;
		if (rc == MPI_SUCCESS)
			rc = px_rma_failed(w, w->started[i]);
	}
	free(w->started);
	w->started = NULL;
	w->nstarted = -1;
	return rc;
}

/* Have all origins completed, and the replies to them left our memory? */
static bool exposed(const struct px_win *w)
{
	for (int i = 0; i < w->nposted; i++)
		if (w->peer[w->posted[i]].completes == 0)
			return true;
	return w->replies > 0;
}

static void cover(struct px_win *w)
{
	for (int i = 0; i < w->nposted; i++)
		w->peer[w->posted[i]].completes--;
	free(w->posted);
	w->posted = NULL;
	w->nposted = -1;
}

int px_Win_wait(struct px_win *w)
{
	if (w->nposted < 0)
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	px_rma_until(!exposed(w));
	cover(w);
	return px_rma_spoiled(w);
}

int px_Win_test(struct px_win *w, int *flag)
{
	if (w->nposted < 0)
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	px_progress();
	*flag = !exposed(w);
	if (!*flag)
		return MPI_SUCCESS;
	cover(w);
	return px_rma_spoiled(w);
}
