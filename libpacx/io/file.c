/* file.c: see file.h. The table; opening and closing; everything but data access. */
#include "file.h"

#include <stdlib.h>
#include <string.h>

#include "atomic.h"
#include "bind.h"
#include "coll.h"
#include "comm.h"
#include "endian.h"
#include "err.h"
#include "lock.h"
#include "map.h"
#include "request.h"
#include "raise.h"
#include "rep.h"
#include "service.h"
#include "state.h"
#include "typemap.h"
#include "vendor.h"

#define NOWHERE "/dev/null" /* the native handle of a file that is elsewhere */

_Atomic unsigned px_files_open;
static struct px_map *table; /* native handle -> px_file */

static uint64_t file_key(MPI_File fh)
{
	return (uint64_t)(uintptr_t)fh;
}

struct px_file *px_file_look(MPI_File fh)
{
	return px_map_get(table, file_key(fh));
}

int px_file_raise(struct px_file *f, int code)
{
	MPI_File fh = f ? f->fh : MPI_FILE_NULL;
	MPI_Errhandler handler;

	if (px_n.File_get_errhandler(fh, &handler) == MPI_SUCCESS)
		px_raise_fatal(handler, code);
	/* Open MPI's File_call_errhandler takes no MPI_FILE_NULL: a handler of the user's own is not called. */
	if (f || !PX_OVER_OPENMPI)
		px_n.File_call_errhandler(fh, code);
	return code;
}

#define SAY_BYTES 16 /* number (8), error: see px_class_index (8) */

int px_file_agree(struct px_comm *c, int code, int64_t number, int64_t *all)
{
	uint8_t mine[SAY_BYTES], *said = malloc((size_t)c->size * SAY_BYTES);
	int rc, first = MPI_SUCCESS;

	if (!said)
		return MPI_ERR_NO_MEM;
	px_put64(mine, (uint64_t)number);
	px_put64(mine + 8, (uint64_t)px_class_index(code));
	rc = px_comm_agree(c, mine, SAY_BYTES, said);
	for (int r = 0; r < c->size && rc == MPI_SUCCESS; r++) {
		const uint8_t *p = said + (size_t)r * SAY_BYTES;

		if (all)
			all[r] = (int64_t)px_get64(p);
		if (first == MPI_SUCCESS)
			first = px_class_of((int)px_get64(p + 8));
	}
	free(said);
	return rc != MPI_SUCCESS ? rc : first;
}

int px_file_tell(struct px_file *f, int64_t *number)
{
	struct px_sched *s = px_sched_new(f->c, PX_COLL_COMM);
	uint8_t bytes[8];
	int rc;

	px_put64(bytes, (uint64_t)*number);
	if (s)
		px_coll_bcast(s, bytes, sizeof bytes, MPI_BYTE, f->server);
	rc = px_sched_run(s, f->c);
	*number = (int64_t)px_get64(bytes);
	return rc;
}

/* What has failed somewhere is raised everywhere: `mine` was raised by the native call already. */
static int settle(struct px_file *f, int mine, int agreed)
{
	if (mine != MPI_SUCCESS)
		return mine;
	return agreed == MPI_SUCCESS ? MPI_SUCCESS : px_file_raise(f, agreed);
}

/* The application's hints, with those that keep the native MPI from reading, changing and writing back what lies between the bytes of a
 * write. Free *copy unless MPI_INFO_NULL. MPI error code. */
static int hints(const struct px_file *f, MPI_Info info, MPI_Info *copy)
{
	int rc = MPI_SUCCESS;

	*copy = MPI_INFO_NULL;
	if (!px_file_writes_alone(f)) {
		if (info != MPI_INFO_NULL)
			rc = px_n.Info_dup(info, copy);
		return rc;
	}
	rc = info == MPI_INFO_NULL ? px_n.Info_create(copy) : px_n.Info_dup(info, copy);
	if (rc == MPI_SUCCESS)
		rc = px_n.Info_set(*copy, "romio_ds_write", "disable");
	if (rc == MPI_SUCCESS)
		rc = px_n.Info_set(*copy, "romio_cb_write", "disable");
	return rc;
}

static void hints_free(MPI_Info *copy)
{
	if (*copy != MPI_INFO_NULL)
		px_n.Info_free(copy);
}

/* The communicator of a file: the same members, none of the user's attributes or error handlers. NULL: raised on c. */
static struct px_comm *own_comm(struct px_comm *c)
{
	MPI_Comm native = MPI_COMM_NULL;

	if (px_Comm_split(c, 0, c->rank, &native) != MPI_SUCCESS)
		return NULL;
	px_n.Comm_set_errhandler(native, MPI_ERRORS_RETURN);
	return px_comm_find(native);
}

/* Where the hostfile puts files: mode, and the comm rank of the server; -1: the site of the files has no member. */
static enum px_files placement(const struct px_comm *c, int *server)
{
	int site = px.world->files - PX_WORLD_FILES_SITE;

	*server = 0;
	if (px.world->files == PX_WORLD_FILES_SHARED)
		return PX_FILES_SHARED;
	if (px.world->files == PX_WORLD_FILES_LOCAL)
		return PX_FILES_LOCAL;
	*server = -1;
	for (int p = 0; p < c->nparts; p++)
		if (c->ranks->part[p].site == site)
			*server = px_leader(c, p);
	return PX_FILES_CARRIED;
}

static struct px_file *file_new(struct px_comm *c, const char *name, int amode)
{
	struct px_file *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->fh = MPI_FILE_NULL;
	f->c = c;
	f->amode = amode;
	f->files = placement(c, &f->server);
	f->far = f->files == PX_FILES_CARRIED && f->server >= 0 && px_part_of(c, f->server) != c->self;
	f->etype = 1;
	f->fd = -1;
	f->name = strdup(name);
	if (!f->name) {
		free(f);
		return NULL;
	}
	return f;
}

static void file_free(struct px_file *f)
{
	px_view_fini(&f->view);
	px_atomic_close(f);
	px_comm_drop(f->c);
	free(f->name);
	free(f);
}

/* The native half. first: before the others, with the modes that only one site may use. */
static int open_native(struct px_file *f, MPI_Info info, bool again)
{
	int amode = f->amode & ~(MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_SEQUENTIAL), rc;
	MPI_Info copy;

	if (f->far) {
		/* The amode of the application: its mistakes are found at the site of the file. */
		px_blocking(rc, px_n.File_open(MPI_COMM_SELF, NOWHERE, MPI_MODE_RDWR, MPI_INFO_NULL, &f->fh));
		return rc;
	}
	if (again) /* another site has created it */
		amode &= ~(MPI_MODE_CREATE | MPI_MODE_EXCL);
	rc = hints(f, info, &copy);
	if (rc == MPI_SUCCESS)
		px_together(rc, f->c, px_n.File_open(f->c->native, f->name, amode, copy, &f->fh));
	hints_free(&copy);
	return rc;
}

/* The vendor's handlers of MPI_FILE_NULL must not be called by one site alone: another may have succeeded. */
static int open_quietly(struct px_file *f, MPI_Info info, bool again)
{
	MPI_Errhandler before;
	int rc, got = px_n.File_get_errhandler(MPI_FILE_NULL, &before);

	if (got == MPI_SUCCESS)
		px_n.File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
	rc = open_native(f, info, again);
	if (got == MPI_SUCCESS) {
		px_n.File_set_errhandler(MPI_FILE_NULL, before);
		if (rc == MPI_SUCCESS)
			px_n.File_set_errhandler(f->fh, before);
		px_n.Errhandler_free(&before);
	}
	return rc;
}

/* What every rank says when it opens: whether all mean the same. */
static int64_t intent(const struct px_file *f)
{
	return (int64_t)px.world->files << 32 | (int64_t)f->amode;
}

/* All sites open; the same result at all. Not raised. */
static int open_all(struct px_file *f, MPI_Info info)
{
	/* The one site that creates the file goes first, or the other would find it there. */
	bool turns = f->files == PX_FILES_SHARED && f->amode & MPI_MODE_EXCL && f->amode & MPI_MODE_CREATE;
	int64_t *all = malloc((size_t)f->c->size * sizeof *all);
	int mine = all ? MPI_SUCCESS : MPI_ERR_NO_MEM, rc;

	if (f->server < 0) {
		if (f->c->rank == 0)
			px_log(PX_LOG_ERROR,
				"MPI_File_open: files: is site '%s', which has no rank in the communicator",
				px.world->site[px.world->files - PX_WORLD_FILES_SITE].name);
		mine = MPI_ERR_UNSUPPORTED_OPERATION;
	}
	if (mine == MPI_SUCCESS && (!turns || f->c->self == 0))
		mine = open_quietly(f, info, false);
	rc = px_file_agree(f->c, mine, intent(f), all);
	for (int r = 1; all && rc == MPI_SUCCESS && r < f->c->size; r++)
		if (all[r] != all[0])
			rc = MPI_ERR_NOT_SAME;
	free(all);
	if (rc == MPI_SUCCESS && turns) {
		mine = f->c->self == 0 ? MPI_SUCCESS : open_quietly(f, info, true);
		rc = px_file_agree(f->c, mine, 0, NULL);
	}
	return rc;
}

/* MPI_MODE_APPEND: all pointers begin at the end, and the sites' files may differ in length. */
static int go_to_end(struct px_file *f)
{
	int64_t *all = malloc((size_t)f->c->size * sizeof *all), end = 0;
	MPI_Offset size = 0;
	int rc, mine = all ? MPI_SUCCESS : MPI_ERR_NO_MEM;

	if (mine == MPI_SUCCESS && !f->far)
		mine = px_n.File_get_size(f->fh, &size);
	rc = px_file_agree(f->c, mine, size, all);
	for (int r = 0; all && r < f->c->size; r++)
		end = all[r] > end ? all[r] : end;
	free(all);
	if (rc != MPI_SUCCESS)
		return rc;
	f->at = end;
	f->epoch++;
	px_service_epoch(f, end);
	return f->far ? MPI_SUCCESS : px_n.File_seek(f->fh, end, MPI_SEEK_SET);
}

static int enter(struct px_file *f)
{
	int rc = f->far ? px_view_set(&f->view, 0, MPI_BYTE, NULL) : MPI_SUCCESS;

	if (rc == MPI_SUCCESS && f->c->rank == f->server)
		rc = px_service_start(f);
	if (rc == MPI_SUCCESS &&
		((!table && !(table = px_map_new())) || px_map_put(table, file_key(f->fh), f) < 0))
		rc = MPI_ERR_NO_MEM;
	if (rc == MPI_SUCCESS)
		atomic_fetch_add_explicit(&px_files_open, 1, memory_order_release);
	return rc;
}

static void leave(struct px_file *f)
{
	if (table && px_map_del(table, file_key(f->fh)))
		atomic_fetch_sub_explicit(&px_files_open, 1, memory_order_release);
}

/* The native half. MPI error code. */
static int close_native(struct px_file *f)
{
	int rc = MPI_SUCCESS;

	if (f->fh == MPI_FILE_NULL)
		return rc;
	if (f->far)
		px_blocking(rc, px_n.File_close(&f->fh));
	else
		px_together(rc, f->c, px_n.File_close(&f->fh));
	return rc;
}

/* Open MPI loads its I/O components in the first open. What they call by public names reaches us until they are sealed, and on the
 * communicator of a file it would be taken for one that spans sites. */
static void components_load(void)
{
	static bool loaded;
	MPI_File f = MPI_FILE_NULL;
	int rc;

	if (loaded)
		return;
	loaded = true;
	px_blocking(rc, px_n.File_open(MPI_COMM_SELF, NOWHERE, MPI_MODE_RDWR, MPI_INFO_NULL, &f));
	if (rc == MPI_SUCCESS)
		px_blocking(rc, px_n.File_close(&f));
	px_vendor_seal();
}

int px_File_open(struct px_comm *c, const char *name, int amode, MPI_Info info, MPI_File *fh)
{
	struct px_comm *own;
	struct px_file *f;
	int rc;

	*fh = MPI_FILE_NULL;
	components_load();
	own = own_comm(c);
	if (!own)
		return MPI_ERR_OTHER;
	f = file_new(own, name, amode);
	if (!f) {
		px_comm_drop(own);
		return px_file_raise(NULL, MPI_ERR_NO_MEM);
	}
	rc = open_all(f, info);
	if (rc == MPI_SUCCESS)
		rc = px_file_agree(f->c, enter(f), 0, NULL);
	if (rc == MPI_SUCCESS && amode & MPI_MODE_APPEND)
		rc = go_to_end(f);
	if (rc != MPI_SUCCESS) {
		leave(f);
		px_service_stop(f);
		close_native(f);
		file_free(f);
		return px_file_raise(NULL, rc);
	}
	*fh = f->fh;
	return MPI_SUCCESS;
}

/* Who removes a file that is deleted when it is closed. */
static bool deletes(const struct px_file *f)
{
	return f->files == PX_FILES_LOCAL ? f->c->lrank == 0 : f->c->rank == f->server;
}

int px_File_close(MPI_File *fh)
{
	struct px_file *f = px_file_find(*fh);
	int mine, rc;

	if (!f) {
		px_blocking(rc, px_n.File_close(fh));
		return rc;
	}
	if (f->split != PX_SPLIT_NONE)
		return px_file_raise(f, MPI_ERR_OTHER);
	leave(f); /* the handle may be another file's as soon as the native one is closed */
	mine = close_native(f);
	rc = px_file_agree(f->c, mine, 0, NULL); /* nobody asks the server any more */
	px_service_stop(f);
	if (f->amode & MPI_MODE_DELETE_ON_CLOSE) {
		int gone = MPI_SUCCESS;

		if (deletes(f))
			gone = px_n.File_delete(f->name, MPI_INFO_NULL);
		gone = px_file_agree(f->c, gone, 0, NULL);
		rc = rc != MPI_SUCCESS ? rc : gone;
	}
	file_free(f);
	*fh = MPI_FILE_NULL;
	return mine != MPI_SUCCESS ? mine : rc == MPI_SUCCESS ? rc : px_file_raise(NULL, rc);
}

int px_File_get_amode(struct px_file *f, int *amode)
{
	*amode = f->amode;
	return MPI_SUCCESS;
}

int px_File_get_group(struct px_file *f, MPI_Group *group)
{
	return px_Comm_group(f->c, group);
}

int px_File_get_size(struct px_file *f, MPI_Offset *size)
{
	int64_t n = 0;
	int rc;

	if (!f->far)
		return px_n.File_get_size(f->fh, size);
	rc = px_file_ask(f, PX_REQ_SIZE, 0, &n);
	if (rc != MPI_SUCCESS)
		return px_file_raise(f, rc);
	*size = n;
	return MPI_SUCCESS;
}

/* Does this site's copy change when the size does? */
static bool resizes(const struct px_file *f)
{
	return f->files == PX_FILES_LOCAL || px_part_of(f->c, f->server) == f->c->self;
}

int px_File_set_size(struct px_file *f, MPI_Offset size)
{
	int rc, mine = MPI_SUCCESS;

	if (resizes(f))
		px_together(mine, f->c, px_n.File_set_size(f->fh, size));
	rc = px_file_agree(f->c, mine, size, NULL);
	return settle(f, mine, rc);
}

int px_File_preallocate(struct px_file *f, MPI_Offset size)
{
	int rc, mine = MPI_SUCCESS;

	if (resizes(f))
		px_together(mine, f->c, px_n.File_preallocate(f->fh, size));
	rc = px_file_agree(f->c, mine, size, NULL);
	return settle(f, mine, rc);
}

int px_File_set_info(struct px_file *f, MPI_Info info)
{
	MPI_Info copy;
	int rc;

	if (f->far)
		return px_n.File_set_info(f->fh, info);
	rc = hints(f, info, &copy);
	if (rc == MPI_SUCCESS)
		px_together(rc, f->c, px_n.File_set_info(f->fh, copy));
	hints_free(&copy);
	return rc;
}

/* MPI_DISPLACEMENT_CURRENT: where the shared file pointer is. Collective. */
static int current(struct px_file *f, MPI_Offset *disp)
{
	int64_t at = 0;
	int rc = f->amode & MPI_MODE_SEQUENTIAL ? MPI_SUCCESS : MPI_ERR_ARG;

	rc = px_file_agree(f->c, rc, 0, NULL);
	if (rc == MPI_SUCCESS && f->service)
		rc = px_file_ask(f, PX_REQ_FETCH, 0, &at);
	if (rc == MPI_SUCCESS)
		rc = px_file_tell(f, &at);
	return rc == MPI_SUCCESS ? px_File_get_byte_offset(f, at, disp) : px_file_raise(f, rc);
}

/* The view of who has the file: the native MPI's, or ours and that of bytes below it. MPI error code, raised. */
static int view_near(struct px_file *f, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
	const char *datarep, MPI_Info info)
{
	MPI_Info copy;
	int rc = hints(f, info, &copy);

	if (rc == MPI_SUCCESS)
		px_together(rc, f->c,
			px_n.File_set_view(f->fh, disp, etype, filetype, f->rep ? "native" : datarep, copy));
	hints_free(&copy);
	return rc;
}

int px_File_set_view(struct px_file *f, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
	const char *datarep, MPI_Info info)
{
	const struct px_repr *rep = NULL;
	int rc = disp == MPI_DISPLACEMENT_CURRENT ? current(f, &disp) : MPI_SUCCESS;

	if (rc != MPI_SUCCESS)
		return rc;
	rc = px_rep_of(f, datarep, etype, filetype, &rep);
	if (rc != MPI_SUCCESS)
		return px_file_raise(f, rc);
	f->rep = rep;
	if (f->far)
		rc = px_n.File_set_view(f->fh, disp, etype, filetype, "native", MPI_INFO_NULL);
	else
		rc = view_near(f, disp, etype, filetype, datarep, info);
	if (rc != MPI_SUCCESS)
		return rc;
	if (rep && !f->far)
		rc = px_atomic_open(f);
	if (rc == MPI_SUCCESS && px_file_ours(f))
		rc = px_view_set(&f->view, disp, filetype, rep);
	if (rc != MPI_SUCCESS)
		return px_file_raise(f, rc);
	f->etype = px_rep_size(rep, etype);
	f->etype = f->etype > 0 ? f->etype : 1;
	f->at = 0;
	f->epoch++; /* the shared file pointer begins anew */
	return MPI_SUCCESS;
}

int px_File_get_view(
	struct px_file *f, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep)
{
	int rc = px_n.File_get_view(f->fh, disp, etype, filetype, datarep);

	if (rc == MPI_SUCCESS && f->rep)
		strcpy(datarep, px_rep_name(f->rep));
	return rc;
}

int px_File_get_type_extent(struct px_file *f, MPI_Datatype t, MPI_Aint *extent)
{
	const struct px_typemap *m;

	if (!f->rep)
		return px_n.File_get_type_extent(f->fh, t, extent);
	m = px_typemap_there(t, f->rep);
	if (!m)
		return px_file_raise(f, MPI_ERR_TYPE);
	*extent = (MPI_Aint)px_typemap_extent(m, t);
	return MPI_SUCCESS;
}

int px_File_set_atomicity(struct px_file *f, int flag)
{
	int rc = MPI_SUCCESS;

	if (f->files == PX_FILES_LOCAL) {
		px_together(rc, f->c, px_n.File_set_atomicity(f->fh, flag));
		return rc;
	}
	if (flag && f->files == PX_FILES_CARRIED) {
		if (f->c->rank == 0)
			px_log(PX_LOG_ERROR,
				"MPI_File_set_atomicity: not supported where files are carried between "
				"sites (files: SITE)");
		return px_file_raise(f, MPI_ERR_UNSUPPORTED_OPERATION);
	}
	if (flag)
		rc = px_atomic_open(f);
	rc = px_file_agree(f->c, rc, flag, NULL);
	if (rc != MPI_SUCCESS)
		return px_file_raise(f, rc);
	f->atomic = flag != 0;
	return MPI_SUCCESS;
}

int px_File_get_atomicity(struct px_file *f, int *flag)
{
	if (f->files == PX_FILES_LOCAL)
		return px_n.File_get_atomicity(f->fh, flag);
	*flag = f->atomic;
	return MPI_SUCCESS;
}

int px_File_sync(struct px_file *f)
{
	int64_t none;
	int rc;

	if (f->far) {
		rc = px_file_ask(f, PX_REQ_SYNC, 0, &none);
		return rc == MPI_SUCCESS ? rc : px_file_raise(f, rc);
	}
	px_together(rc, f->c, px_n.File_sync(f->fh));
	return rc;
}
