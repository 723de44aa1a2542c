/* win.c: windows as objects: made, found, freed, their attributes. See rma.h. */
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "coll.h"
#include "endian.h"
#include "err.h"
#include "group.h"
#include "lock.h"
#include "map.h"
#include "raise.h"
#include "rma.h"
#include "state.h"
#include "vendor.h"
#include "wait.h"
#include "win_attr.h"
#include "win_find.h"

#define PAGE        4096
#define OFFER_BYTES 24 /* what each member tells the others: size, unit, 1 = its part is made */

_Atomic unsigned px_win_live;

static struct px_map *tokens; /* native handle -> struct px_win */

static uint64_t win_key(MPI_Win win)
{
	return (uint64_t)(uintptr_t)win;
}

struct px_win *px_win_find_slow(MPI_Win win)
{
	return px_map_get(tokens, win_key(win));
}

int px_win_raise(struct px_win *w, int code)
{
	MPI_Errhandler handler;
	int rc;

	if (px_n.Win_get_errhandler(w->token, &handler) == MPI_SUCCESS)
		px_raise_fatal(handler, code);
	px_blocking(rc, px_n.Win_call_errhandler(w->token, code));
	(void)rc;
	return code;
}

int px_rma_code(enum px_rma_error e)
{
	switch (e) {
	case PX_RMA_OK:
		return MPI_SUCCESS;
	case PX_RMA_ERANGE:
		return MPI_ERR_RMA_RANGE;
	case PX_RMA_ETYPE:
		return MPI_ERR_TYPE;
	case PX_RMA_EVALUE:
		return MPI_ERR_TRUNCATE;
	}
	return MPI_ERR_OTHER;
}

int px_rma_failed(struct px_win *w, int peer)
{
	enum px_rma_error e = w->peer[peer].error;

	w->peer[peer].error = PX_RMA_OK;
	return e == PX_RMA_OK ? MPI_SUCCESS : px_win_raise(w, px_rma_code(e));
}

int px_rma_spoiled(struct px_win *w)
{
	int rc = MPI_SUCCESS;

	for (int r = 0; r < w->c->size; r++) {
		enum px_rma_error e = w->peer[r].failed;

		w->peer[r].failed = PX_RMA_OK;
		if (e != PX_RMA_OK && rc == MPI_SUCCESS)
			rc = px_win_raise(w, px_rma_code(e));
	}
	return rc;
}

static void win_free(struct px_win *w)
{
	if (w->peer)
		px_rma_flows_fini(w);
	free(w->peer);
	if (w->allocated)
		free(w->base);
	while (w->regions) {
		struct px_rma_region *r = w->regions;

		w->regions = r->next;
		free(r);
	}
	free(w->started);
	free(w->posted);
	if (w->comm != MPI_COMM_NULL)
		px_Comm_free(&w->comm);
	free(w);
}

/* The handle that the application gets, and the window's model. MPI error code. */
static int token_make(struct px_win *w, MPI_Info info)
{
	int *model, found = 0, rc;
	void *none;

	rc = px_n.Win_allocate(0, 1, info, MPI_COMM_SELF, &none, &w->token);
	if (rc == MPI_SUCCESS)
		rc = px_n.Win_get_attr(w->token, MPI_WIN_MODEL, &model, &found);
	w->model = found ? *model : MPI_WIN_UNIFIED;
	return rc;
}

/* This member's part. MPI error code. */
static int part_make(struct px_win *w, MPI_Info info)
{
	int rc;

	w->peer = calloc((size_t)w->c->size, sizeof *w->peer);
	if (!w->peer)
		return MPI_ERR_NO_MEM;
	px_rma_flows_init(w);
	if (w->flavor == MPI_WIN_FLAVOR_ALLOCATE) {
		size_t size = ((size_t)w->size + PAGE - 1) / PAGE * PAGE;

		w->base = aligned_alloc(PAGE, size > 0 ? size : PAGE);
		w->allocated = true;
		if (!w->base)
			return MPI_ERR_NO_MEM;
	}
	if (!tokens && !(tokens = px_map_new()))
		return MPI_ERR_NO_MEM;
	rc = token_make(w, info);
	if (rc == MPI_SUCCESS && px_map_put(tokens, win_key(w->token), w) < 0) {
		px_n.Win_free(&w->token);
		rc = MPI_ERR_NO_MEM;
	}
	return rc;
}

/* All members learn the others' sizes, and whether each has made its part. MPI error code, raised. */
static int agree(struct px_win *w, int made)
{
	uint8_t mine[OFFER_BYTES] = { 0 }, *all = malloc((size_t)w->c->size * OFFER_BYTES);
	bool failed = made != MPI_SUCCESS;
	int rc;

	if (!all)
		return px_raise_memory(w->c);
	px_put64(mine, (uint64_t)w->size);
	px_put64(mine + 8, (uint64_t)w->disp_unit);
	mine[16] = made == MPI_SUCCESS;
	rc = px_comm_agree(w->c, mine, OFFER_BYTES, all);
	for (int r = 0; r < w->c->size && rc == MPI_SUCCESS; r++) {
		const uint8_t *p = all + r * OFFER_BYTES;

		failed |= p[16] == 0;
		if (w->peer) {
			w->peer[r].size = px_get64(p);
			w->peer[r].disp_unit = (int64_t)px_get64(p + 8);
		}
	}
	free(all);
	if (rc != MPI_SUCCESS || !failed)
		return rc;
	return px_raise(w->c, made != MPI_SUCCESS ? made : MPI_ERR_OTHER,
		"the window could not be made at %s rank", made != MPI_SUCCESS ? "this" : "another");
}

/* w: base, size, disp_unit, flavor are set. */
static int win_make(struct px_win *w, struct px_comm *c, MPI_Info info, MPI_Win *out)
{
	int rc, made;

	w->comm = MPI_COMM_NULL;
	w->nstarted = w->nposted = -1;
	*out = MPI_WIN_NULL;
	rc = px_Comm_split(c, 0, c->rank, &w->comm);
	if (rc != MPI_SUCCESS) {
		win_free(w);
		return rc;
	}
	w->c = px_comm_find(w->comm);
	made = part_make(w, info);
	rc = agree(w, made);
	if (rc != MPI_SUCCESS) {
		if (made == MPI_SUCCESS) {
			px_map_del(tokens, win_key(w->token));
			px_n.Win_free(&w->token);
		}
		win_free(w);
		return rc;
	}
	w->server.serve = px_rma_serve;
	px_server_add(&w->server);
	px_duty_add(1); /* others need our progress from now on */
	atomic_fetch_add_explicit(&px_win_live, 1, memory_order_release);
	*out = w->token;
	return MPI_SUCCESS;
}

static int win_new(
	struct px_comm *c, void *base, MPI_Aint size, MPI_Aint disp_unit, int flavor, struct px_win **out)
{
	struct px_win *w;

	if (size < 0)
		return px_raise(c, MPI_ERR_SIZE, "size %lld", (long long)size);
	if (disp_unit <= 0 || disp_unit > INT32_MAX)
		return px_raise(c, MPI_ERR_DISP, "disp_unit %lld", (long long)disp_unit);
	w = calloc(1, sizeof *w);
	if (!w)
		return px_raise_memory(c);
	w->base = base;
	w->size = size;
	w->disp_unit = (int)disp_unit;
	w->flavor = flavor;
	*out = w;
	return MPI_SUCCESS;
}

int px_Win_create(
	void *base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, struct px_comm *c, MPI_Win *win)
{
	struct px_win *w = NULL;
	int rc = win_new(c, base, size, disp_unit, MPI_WIN_FLAVOR_CREATE, &w);

	return rc == MPI_SUCCESS ? win_make(w, c, info, win) : rc;
}

int px_Win_allocate(
	MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, struct px_comm *c, void *baseptr, MPI_Win *win)
{
	struct px_win *w = NULL;
	int rc = win_new(c, NULL, size, disp_unit, MPI_WIN_FLAVOR_ALLOCATE, &w);

	if (rc == MPI_SUCCESS)
		rc = win_make(w, c, info, win);
	if (rc == MPI_SUCCESS)
		*(void **)baseptr = w->base;
	return rc;
}

int px_Win_create_dynamic(MPI_Info info, struct px_comm *c, MPI_Win *win)
{
	struct px_win *w = NULL;
	int rc = win_new(c, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC, &w);

	return rc == MPI_SUCCESS ? win_make(w, c, info, win) : rc;
}

/* Has all that we asked of others been answered, and have our messages left? */
static bool quiet(const struct px_win *w)
{
	for (int r = 0; r < w->c->size; r++)
		if (w->peer[r].acks > 0)
			return false;
	return w->nouts == 0 && w->gets == 0;
}

int px_Win_free(struct px_win *w, MPI_Win *win)
{
	uint64_t key = win_key(w->token);
	int rc;

	if (px_rma_any_lock(w) || w->nstarted >= 0 || w->nposted >= 0)
		return px_win_raise(w, MPI_ERR_RMA_SYNC);
	px_rma_until(quiet(w));
	rc = px_Barrier(w->c);
	if (rc != MPI_SUCCESS)
		return rc;
	/* The delete functions of attributes may still look at the window. */
	px_blocking(rc, px_n.Win_free(&w->token));
	if (rc != MPI_SUCCESS)
		return rc;
	*win = MPI_WIN_NULL;
	px_rma_until(quiet(w)); /* what was answered while the barrier ran */
	px_map_del(tokens, key);
	px_server_del(&w->server);
	px_duty_add(-1);
	atomic_fetch_sub_explicit(&px_win_live, 1, memory_order_release);
	win_free(w);
	return MPI_SUCCESS;
}

int px_Win_attach(struct px_win *w, void *base, MPI_Aint size)
{
	struct px_rma_region *r;
	char *from = base;

	if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		return px_win_raise(w, MPI_ERR_RMA_FLAVOR);
	if (size < 0)
		return px_win_raise(w, MPI_ERR_SIZE);
	for (r = w->regions; r; r = r->next)
		if (from < r->base + r->size && r->base < from + size)
			return px_win_raise(w, MPI_ERR_RMA_ATTACH);
	r = malloc(sizeof *r);
	if (!r)
		return px_win_raise(w, MPI_ERR_NO_MEM);
	*r = (struct px_rma_region){ w->regions, from, size };
	w->regions = r;
	return MPI_SUCCESS;
}

int px_Win_detach(struct px_win *w, const void *base)
{
	for (struct px_rma_region **at = &w->regions, *r; (r = *at); at = &r->next) {
		if (r->base == (const char *)base) {
			*at = r->next;
			free(r);
			return MPI_SUCCESS;
		}
	}
	return px_win_raise(w, MPI_ERR_BASE);
}

int px_Win_get_group(struct px_win *w, MPI_Group *group)
{
	int rc = px_group_of(w->c->ranks, group);

	return rc == MPI_SUCCESS ? rc : px_win_raise(w, rc);
}

bool px_win_predefined(struct px_win *w, int keyval, void **value)
{
	switch (keyval) {
	case MPI_WIN_BASE:
		*value = w->base;
		return true;
	case MPI_WIN_SIZE:
		*value = &w->size;
		return true;
	case MPI_WIN_DISP_UNIT:
		*value = &w->disp_unit;
		return true;
	case MPI_WIN_CREATE_FLAVOR:
		*value = &w->flavor;
		return true;
	case MPI_WIN_MODEL:
		*value = &w->model;
		return true;
	default:
		return false;
	}
}

int px_Win_get_attr(struct px_win *w, int keyval, void *value, int *flag)
{
	if (!px_win_predefined(w, keyval, value))
		return px_n.Win_get_attr(w->token, keyval, value, flag);
	*flag = 1;
	return MPI_SUCCESS;
}
