/* access.c: the data access functions of a file that spans sites: 34 of them, all of which say the same few things (struct access).
 *
 * Design: a shared or ordered access becomes one at an explicit offset as soon as it knows its place. Then the data is moved by
 * the native MPI, or by carry.c for ranks that are not at the site of the file, and for views whose data is converted. Split collectives are carried out by their
 * beginning (MPI standard 13.4.5 allows it).
 */
#include <stdlib.h>

#include "atomic.h"
#include "bind.h"
#include "carry.h"
#include "comm.h"
#include "datatype.h"
#include "file.h"
#include "lock.h"
#include "rep.h"
#include "request.h"
#include "service.h"
#include "typemap.h"
#include "vendor.h"

enum where { AT, OWN, SHARED, ORDERED };

struct access {
	bool write, collective;
	enum where where;
	MPI_Offset off; /* AT: in etypes */
	void *buf;      /* never written to by a write */
	MPI_Count count;
	MPI_Datatype type;
};

#ifdef PX_HAVE_File_write_c
#define N(name, ...) px_n.File_##name##_c(__VA_ARGS__)
#define COUNT        a->count
#else
#define N(name, ...) px_n.File_##name(__VA_ARGS__)
#define COUNT        (int)a->count
#endif

static int native_blocking(const struct px_file *f, const struct access *a, MPI_Status *st)
{
	MPI_File fh = f->fh;
	int rc;

	if (a->collective && !(a->write && px_file_writes_alone(f))) {
		if (a->where == AT && a->write)
			px_together(rc, f->c, N(write_at_all, fh, a->off, a->buf, COUNT, a->type, st));
		else if (a->where == AT)
			px_together(rc, f->c, N(read_at_all, fh, a->off, a->buf, COUNT, a->type, st));
		else if (a->write)
			px_together(rc, f->c, N(write_all, fh, a->buf, COUNT, a->type, st));
		else
			px_together(rc, f->c, N(read_all, fh, a->buf, COUNT, a->type, st));
		return rc;
	}
	if (a->where == AT && a->write)
		px_blocking(rc, N(write_at, fh, a->off, a->buf, COUNT, a->type, st));
	else if (a->where == AT)
		px_blocking(rc, N(read_at, fh, a->off, a->buf, COUNT, a->type, st));
	else if (a->write)
		px_blocking(rc, N(write, fh, a->buf, COUNT, a->type, st));
	else
		px_blocking(rc, N(read, fh, a->buf, COUNT, a->type, st));
	return rc;
}

/* Collective or not: what one process reads and writes depends on nobody else. */
static int native_nonblocking(const struct px_file *f, const struct access *a, MPI_Request *req)
{
	MPI_File fh = f->fh;
	int rc;

	if (a->where == AT && a->write)
		px_blocking(rc, N(iwrite_at, fh, a->off, a->buf, COUNT, a->type, req));
	else if (a->where == AT)
		px_blocking(rc, N(iread_at, fh, a->off, a->buf, COUNT, a->type, req));
	else if (a->write)
		px_blocking(rc, N(iwrite, fh, a->buf, COUNT, a->type, req));
	else
		px_blocking(rc, N(iread, fh, a->buf, COUNT, a->type, req));
	return rc;
}

/* Each access by itself, the collective and nonblocking ones, too. */
static int atomic_access(struct px_file *f, const struct access *a, MPI_Status *st, MPI_Request *req)
{
	struct px_req *r = req ? px_req_new(f->c) : NULL;
	struct access one = *a;
	MPI_Status own;
	int rc = req && !r ? MPI_ERR_NO_MEM : px_atomic_enter(f, a->write);

	if (rc != MPI_SUCCESS) {
		if (r)
			px_req_release(r);
		return px_file_raise(f, rc);
	}
	one.collective = false;
	rc = native_blocking(f, &one, req ? &own : st);
	px_atomic_leave(f);
	if (!req)
		return rc;
	if (rc != MPI_SUCCESS) {
		px_req_release(r);
		return rc;
	}
	r->kind = PX_TASK; /* complete at once */
	px_req_set_status(r, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	px_status_copy(&r->status, &own);
	r->done = true;
	*req = r->token;
	return MPI_SUCCESS;
}

/* What an access takes in the file. */
static MPI_Count file_bytes(const struct px_file *f, const struct access *a)
{
	return a->count * px_rep_size(f->rep, a->type);
}

static int our_access(struct px_file *f, const struct access *a, MPI_Status *st, MPI_Request *req)
{
	MPI_Offset at = a->where == AT ? a->off : f->at;
	MPI_Count moved = file_bytes(f, a);
	int rc;

	if (a->where == OWN && req)
		f->at += moved / f->etype;
	rc = px_carry(f, a->write, at * f->etype, a->buf, a->count, a->type, st, req, &moved);
	if (a->where == OWN && !req && rc == MPI_SUCCESS)
		f->at += px_rep_bytes(f->rep, a->type, moved) / f->etype;
	return rc;
}

/* Before anything happens. MPI error code, not raised; *etypes = what the access covers. */
static int check(const struct px_file *f, const struct access *a, MPI_Offset *etypes)
{
	bool shared = a->where == SHARED || a->where == ORDERED;
	const struct px_type *p = px_type_get(a->type);

	if (!p)
		return MPI_ERR_TYPE;
	if (a->count < 0)
		return MPI_ERR_COUNT;
	if (a->where == AT && a->off < 0)
		return MPI_ERR_ARG;
	if (a->write && f->amode & MPI_MODE_RDONLY)
		return MPI_ERR_READ_ONLY;
	if (!a->write && f->amode & MPI_MODE_WRONLY)
		return MPI_ERR_ACCESS;
	if (f->amode & MPI_MODE_SEQUENTIAL && !shared)
		return MPI_ERR_UNSUPPORTED_OPERATION;
	if (f->rep && !px_signature_get(a->type))
		return MPI_ERR_TYPE; /* basic types that only this vendor knows */
	*etypes = f->etype > 0 ? file_bytes(f, a) / f->etype : 0;
	return f->etype > 0 && file_bytes(f, a) % f->etype != 0 ? MPI_ERR_IO : MPI_SUCCESS;
}

/* Where an ordered access begins: behind those of the lower ranks. Collective. MPI error code, not raised. */
static int ordered_place(struct px_file *f, int code, MPI_Offset etypes, MPI_Offset *off)
{
	int64_t *all = malloc((size_t)f->c->size * sizeof *all), before = 0, total = 0, base = 0;
	int rc, mine = all ? code : MPI_ERR_NO_MEM;

	rc = px_file_agree(f->c, mine, etypes, all);
	for (int r = 0; all && r < f->c->size; r++) {
		before += r < f->c->rank ? all[r] : 0;
		total += all[r];
	}
	free(all);
	if (rc != MPI_SUCCESS)
		return mine != MPI_SUCCESS ? mine : rc;
	px_service_prune(f);
	/* All are in this call now, so that nobody's earlier shared access is still to come. */
	if (f->service)
		rc = px_file_ask(f, PX_REQ_FETCH, total, &base);
	if (rc == MPI_SUCCESS)
		rc = px_file_tell(f, &base);
	*off = base + before;
	return rc;
}

/* req != NULL: nonblocking. */
static int access_alone(struct px_file *f, struct access a, MPI_Status *st, MPI_Request *req)
{
	MPI_Offset etypes = 0;
	int rc = check(f, &a, &etypes);

	if (a.where == ORDERED)
		rc = ordered_place(f, rc, etypes, &a.off);
	else if (a.where == SHARED && rc == MPI_SUCCESS) {
		int64_t at = 0;

		rc = px_file_ask(f, PX_REQ_FETCH, etypes, &at);
		a.off = at;
	}
	if (rc != MPI_SUCCESS)
		return px_file_raise(f, rc);
	if (a.where == SHARED || a.where == ORDERED)
		a.where = AT;
	if (px_file_ours(f))
		return our_access(f, &a, st, req);
	if (f->atomic)
		return atomic_access(f, &a, st, req);
	return req ? native_nonblocking(f, &a, req) : native_blocking(f, &a, st);
}

/* Natively no rank leaves a collective write much before the others have come to it, and programs write over what others have written in it
 * without a word more (HDF5 1.14 does, over its fill values). So where each rank writes by itself they wait for each other behind it,
 * also one whose call was wrong. */
static int access_file(struct px_file *f, struct access a, MPI_Status *st, MPI_Request *req)
{
	int rc = access_alone(f, a, st, req), all = MPI_SUCCESS;

	if (a.write && a.collective && !req && (px_file_writes_alone(f) || px_file_ours(f)))
		all = px_Barrier(f->c);
	return rc != MPI_SUCCESS ? rc : all;
}

static int split_begin(struct px_file *f, enum px_split kind, struct access a)
{
	if (f->split != PX_SPLIT_NONE)
		return px_file_raise(f, MPI_ERR_OTHER); /* one at a time */
	f->split_error = access_file(f, a, &f->split_status, NULL);
	if (f->split_error != MPI_SUCCESS)
		return f->split_error;
	f->split = kind;
	f->split_write = a.write;
	return MPI_SUCCESS;
}

static int split_end(struct px_file *f, enum px_split kind, bool write, MPI_Status *st)
{
	if (f->split != kind || f->split_write != write)
		return px_file_raise(f, MPI_ERR_OTHER);
	f->split = PX_SPLIT_NONE;
	px_status_copy(st, &f->split_status);
	return f->split_error;
}

/* The buffer of a write is const; it goes through a struct that serves both directions. */
static void *plain(const void *buf)
{
	return (void *)(uintptr_t)buf;
}

#define ACCESS(...) ((struct access){ __VA_ARGS__, plain(buf), count, t })

/* Each of these names a read and a write: blocking, nonblocking. */
#define BLOCKING(name, konst, ...)                                                                           \
	int px_File_##name(                                                                                  \
		struct px_file *f, konst void *buf, MPI_Count count, MPI_Datatype t, MPI_Status *st)         \
	{                                                                                                    \
		return access_file(f, ACCESS(__VA_ARGS__), st, NULL);                                        \
	}
#define BLOCKING_AT(name, konst, ...)                                                                        \
	int px_File_##name(struct px_file *f, MPI_Offset off, konst void *buf, MPI_Count count,              \
		MPI_Datatype t, MPI_Status *st)                                                              \
	{                                                                                                    \
		return access_file(f, ACCESS(__VA_ARGS__), st, NULL);                                        \
	}
#define NONBLOCKING(name, konst, ...)                                                                        \
	int px_File_##name(                                                                                  \
		struct px_file *f, konst void *buf, MPI_Count count, MPI_Datatype t, MPI_Request *req)       \
	{                                                                                                    \
		return access_file(f, ACCESS(__VA_ARGS__), MPI_STATUS_IGNORE, req);                          \
	}
#define NONBLOCKING_AT(name, konst, ...)                                                                     \
	int px_File_##name(struct px_file *f, MPI_Offset off, konst void *buf, MPI_Count count,              \
		MPI_Datatype t, MPI_Request *req)                                                            \
	{                                                                                                    \
		return access_file(f, ACCESS(__VA_ARGS__), MPI_STATUS_IGNORE, req);                          \
	}
#define SPLIT_END(name, konst, kind, write)                                                                  \
	int px_File_##name##_end(struct px_file *f, konst void *buf, MPI_Status *st)                         \
	{                                                                                                    \
		(void)buf;                                                                                   \
		return split_end(f, kind, write, st);                                                        \
	}
#define SPLIT(name, konst, kind, write, ...)                                                                 \
	int px_File_##name##_begin(struct px_file *f, konst void *buf, MPI_Count count, MPI_Datatype t)      \
	{                                                                                                    \
		return split_begin(f, kind, ACCESS(write, __VA_ARGS__));                                     \
	}                                                                                                    \
	SPLIT_END(name, konst, kind, write)
#define SPLIT_AT(name, konst, kind, write, ...)                                                              \
	int px_File_##name##_begin(                                                                          \
		struct px_file *f, MPI_Offset off, konst void *buf, MPI_Count count, MPI_Datatype t)         \
	{                                                                                                    \
		return split_begin(f, kind, ACCESS(write, __VA_ARGS__));                                     \
	}                                                                                                    \
	SPLIT_END(name, konst, kind, write)
#define READS

BLOCKING(read, READS, false, false, OWN, 0)
BLOCKING(write, const, true, false, OWN, 0)
BLOCKING_AT(read_at, READS, false, false, AT, off)
BLOCKING_AT(write_at, const, true, false, AT, off)
BLOCKING(read_all, READS, false, true, OWN, 0)
BLOCKING(write_all, const, true, true, OWN, 0)
BLOCKING_AT(read_at_all, READS, false, true, AT, off)
BLOCKING_AT(write_at_all, const, true, true, AT, off)
BLOCKING(read_shared, READS, false, false, SHARED, 0)
BLOCKING(write_shared, const, true, false, SHARED, 0)
BLOCKING(read_ordered, READS, false, true, ORDERED, 0)
BLOCKING(write_ordered, const, true, true, ORDERED, 0)
NONBLOCKING(iread, READS, false, false, OWN, 0)
NONBLOCKING(iwrite, const, true, false, OWN, 0)
NONBLOCKING_AT(iread_at, READS, false, false, AT, off)
NONBLOCKING_AT(iwrite_at, const, true, false, AT, off)
NONBLOCKING(iread_all, READS, false, true, OWN, 0)
NONBLOCKING(iwrite_all, const, true, true, OWN, 0)
NONBLOCKING_AT(iread_at_all, READS, false, true, AT, off)
NONBLOCKING_AT(iwrite_at_all, const, true, true, AT, off)
NONBLOCKING(iread_shared, READS, false, false, SHARED, 0)
NONBLOCKING(iwrite_shared, const, true, false, SHARED, 0)
SPLIT(read_all, READS, PX_SPLIT_ALL, false, true, OWN, 0)
SPLIT(write_all, const, PX_SPLIT_ALL, true, true, OWN, 0)
SPLIT_AT(read_at_all, READS, PX_SPLIT_AT_ALL, false, true, AT, off)
SPLIT_AT(write_at_all, const, PX_SPLIT_AT_ALL, true, true, AT, off)
SPLIT(read_ordered, READS, PX_SPLIT_ORDERED, false, true, ORDERED, 0)
SPLIT(write_ordered, const, PX_SPLIT_ORDERED, true, true, ORDERED, 0)

/* The file pointers. */

/* Data of this rank's view before the end of the file, in etypes, rounded up. MPI error code, not raised. */
static int end_of_file(struct px_file *f, MPI_Offset *etypes)
{
	MPI_Offset here, size;
	int rc;

	if (px_file_ours(f)) {
		rc = px_File_get_size(f, &size);
		if (rc == MPI_SUCCESS)
			*etypes = (px_view_below(&f->view, size) + f->etype - 1) / f->etype;
		return rc;
	}
	rc = px_n.File_get_position(f->fh, &here);
	if (rc == MPI_SUCCESS)
		rc = px_n.File_seek(f->fh, 0, MPI_SEEK_END);
	if (rc == MPI_SUCCESS)
		rc = px_n.File_get_position(f->fh, etypes);
	if (rc == MPI_SUCCESS)
		rc = px_n.File_seek(f->fh, here, MPI_SEEK_SET);
	return rc;
}

int px_File_seek(struct px_file *f, MPI_Offset off, int whence)
{
	MPI_Offset from = 0;
	int rc = MPI_SUCCESS;

	if (f->amode & MPI_MODE_SEQUENTIAL)
		return px_file_raise(f, MPI_ERR_UNSUPPORTED_OPERATION);
	if (!px_file_ours(f))
		return px_n.File_seek(f->fh, off, whence);
	if (whence == MPI_SEEK_CUR)
		from = f->at;
	else if (whence == MPI_SEEK_END)
		rc = end_of_file(f, &from);
	else if (whence != MPI_SEEK_SET)
		rc = MPI_ERR_ARG;
	if (rc == MPI_SUCCESS && from + off < 0)
		rc = MPI_ERR_ARG;
	if (rc != MPI_SUCCESS)
		return px_file_raise(f, rc);
	f->at = from + off;
	return MPI_SUCCESS;
}

int px_File_get_position(struct px_file *f, MPI_Offset *off)
{
	if (f->amode & MPI_MODE_SEQUENTIAL)
		return px_file_raise(f, MPI_ERR_UNSUPPORTED_OPERATION);
	if (!px_file_ours(f))
		return px_n.File_get_position(f->fh, off);
	*off = f->at;
	return MPI_SUCCESS;
}

int px_File_get_byte_offset(struct px_file *f, MPI_Offset off, MPI_Offset *disp)
{
	if (!px_file_ours(f))
		return px_n.File_get_byte_offset(f->fh, off, disp);
	if (off < 0)
		return px_file_raise(f, MPI_ERR_ARG);
	*disp = px_view_place(&f->view, off * f->etype);
	return MPI_SUCCESS;
}

int px_File_get_position_shared(struct px_file *f, MPI_Offset *off)
{
	int64_t at = 0;
	int rc = px_file_ask(f, PX_REQ_FETCH, 0, &at);

	if (rc != MPI_SUCCESS)
		return px_file_raise(f, rc);
	*off = at;
	return MPI_SUCCESS;
}

int px_File_seek_shared(struct px_file *f, MPI_Offset off, int whence)
{
	int64_t from = 0;
	MPI_Offset end = 0;
	int rc = whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END ? MPI_SUCCESS
											    : MPI_ERR_ARG;

	rc = px_file_agree(f->c, rc, off, NULL); /* nobody's earlier shared access is still to come */
	if (rc == MPI_SUCCESS && f->service && whence == MPI_SEEK_CUR)
		rc = px_file_ask(f, PX_REQ_FETCH, 0, &from);
	if (rc == MPI_SUCCESS && f->service && whence == MPI_SEEK_END) {
		rc = end_of_file(f, &end);
		from = end;
	}
	if (f->service && (rc != MPI_SUCCESS || from + off < 0))
		from = -1 - off;
	if (rc == MPI_SUCCESS)
		rc = px_file_tell(f, &from);
	if (rc == MPI_SUCCESS && from + off < 0)
		rc = MPI_ERR_ARG;
	if (rc != MPI_SUCCESS)
		return px_file_raise(f, rc);
	f->epoch++;
	px_service_epoch(f, from + off);
	px_service_prune(f);
	return MPI_SUCCESS;
}
