/* carry.c: see carry.h. Design: a task (request.h) that starts pieces while it has some left and looks at those under way.
 */
#include "carry.h"

#include <errno.h>
#include <stdlib.h>

#include "atomic.h"
#include "comm.h"
#include "datatype.h"
#include "endian.h"
#include "p2p.h"
#include "rep.h"
#include "request.h"
#include "service.h"
#include "vendor.h"

struct piece {
	bool busy;
	struct px_req request, data, answer;
	uint8_t *text; /* of the request */
	uint8_t got[PX_ANSWER_SIZE];
	MPI_Offset at, len; /* in the access */
};

struct carry {
	struct px_file *f;
	bool write;
	MPI_Offset pos, total,
		next; /* data byte of the view where it begins; bytes; those before are under way or through */
	MPI_Offset end; /* read: what the file has of it */
	char *data;     /* contiguous, as it is in the file */
	void *copy;     /* owned, when the buffer is not */
	int error;
	struct piece piece[PX_PIECES];
};

static void message(struct carry *k, struct px_req *r, enum px_kind kind, void *buf, MPI_Count n, int tag)
{
	int rc;

	px_req_init(r, k->f->c);
	px_req_args(r, buf, n, MPI_BYTE, k->f->server, tag);
	rc = kind == PX_SEND ? px_send_start(r) : px_recv_start(r);
	if (rc != MPI_SUCCESS) {
		r->done = true;
		k->error = rc;
	}
}

static void piece_start(struct carry *k, struct piece *p)
{
	struct px_range *range = malloc(PX_RANGES_MAX * sizeof *range);
	MPI_Offset want = k->total - k->next < PX_CHUNK ? k->total - k->next : PX_CHUNK;
	int tag = px_file_tag();
	size_t n = 0;

	if (range)
		n = px_view_walk(&k->f->view, k->pos + k->next, want, range, PX_RANGES_MAX, &p->len);
	p->text = n > 0 ? malloc(PX_REQUEST_SIZE + 16 * n) : NULL;
	if (!p->text) {
		k->error = range && n == 0 ? MPI_ERR_IO : MPI_ERR_NO_MEM; /* a view without data */
		free(range);
		return;
	}
	px_request_put(p->text, k->f, k->write ? PX_REQ_WRITE : PX_REQ_READ, tag, (int)n, 0, p->len);
	for (size_t i = 0; i < n; i++) {
		px_put64(p->text + PX_REQUEST_SIZE + 16 * i, (uint64_t)range[i].off);
		px_put64(p->text + PX_REQUEST_SIZE + 16 * i + 8, (uint64_t)range[i].len);
	}
	free(range);
	p->at = k->next;
	k->next += p->len;
	p->busy = true;
	message(k, &p->answer, PX_RECV, p->got, sizeof p->got, tag);
	if (!k->write)
		message(k, &p->data, PX_RECV, k->data + p->at, p->len, tag);
	message(k, &p->request, PX_SEND, p->text, (MPI_Count)(PX_REQUEST_SIZE + 16 * n), PX_TAG_REQUEST);
	if (k->write)
		message(k, &p->data, PX_SEND, k->data + p->at, p->len, tag);
}

static void piece_end(struct carry *k, struct piece *p)
{
	int rc = px_class_of((int)px_get32(p->got));
	MPI_Offset value = (MPI_Offset)px_get64(p->got + 8);

	free(p->text);
	p->text = NULL;
	p->busy = false;
	if (p->answer.error != MPI_SUCCESS || p->data.error != MPI_SUCCESS)
		rc = MPI_ERR_IO;
	if (rc != MPI_SUCCESS && k->error == MPI_SUCCESS)
		k->error = rc;
	if (!k->write && value < p->len && p->at + value < k->end)
		k->end = p->at + value;
}

static void carry_free(struct carry *k)
{
	free(k->copy);
	free(k);
}

/* What was read is in k->copy: to the user's buffer. *moved = bytes there. MPI error code. */
static int unpack(const struct carry *k, const struct px_req *r, MPI_Offset *moved)
{
	const struct px_type *p = px_type_get(r->type);
	MPI_Count here = 0;
	void *packed;
	int rc;

	if (!k->f->rep)
		return px_type_unpack(k->copy, (uint64_t)*moved, r->buf, r->count, r->type);
	packed = p->contig ? r->buf : malloc((size_t)(r->count * p->size) + 1);
	if (!packed)
		return MPI_ERR_NO_MEM;
	rc = px_rep_get(k->f->rep, r->type, r->count, k->copy, *moved, packed, &here);
	if (rc == MPI_SUCCESS && !p->contig)
		rc = px_type_unpack(packed, (uint64_t)here, r->buf, r->count, r->type);
	if (!p->contig)
		free(packed);
	*moved = here;
	return rc;
}

/* The whole access, of a rank that has the file. */
static void at_once(struct carry *k)
{
	struct px_range *range = malloc(PX_RANGES_MAX * sizeof *range);
	bool more = range != NULL, locked = false;

	if (!range)
		k->error = MPI_ERR_NO_MEM;
	if (k->f->atomic && k->error == MPI_SUCCESS) {
		k->error = px_atomic_enter(k->f, k->write);
		locked = k->error == MPI_SUCCESS;
	}
	while (more && k->error == MPI_SUCCESS && k->next < k->total) {
		MPI_Offset got;
		size_t n = px_view_walk(
			&k->f->view, k->pos + k->next, k->total - k->next, range, PX_RANGES_MAX, &got);

		if (n == 0)
			k->error = MPI_ERR_IO; /* a view without data */
		for (size_t i = 0; i < n && more; i++) {
			int64_t done = px_file_move(
				k->f->fd, k->write, (uint8_t *)k->data + k->next, range[i].off, range[i].len);

			if (done < 0)
				k->error = px_class_errno(errno);
			k->next += done > 0 ? done : 0;
			more = done == range[i].len;
		}
	}
	if (locked)
		px_atomic_leave(k->f);
	k->end = k->next;
	if (k->write && k->next < k->total && k->error == MPI_SUCCESS)
		k->error = MPI_ERR_IO;
	free(range);
}

static void finish(struct px_req *r, struct carry *k)
{
	MPI_Offset moved = k->write ? k->total : k->end;

	if (k->error == MPI_SUCCESS && !k->write && k->copy)
		k->error = unpack(k, r, &moved);
	else if (k->error == MPI_SUCCESS && k->f->rep)
		moved = r->count * px_type_get(r->type)->size;
	px_req_set_status(r, MPI_ANY_SOURCE, MPI_ANY_TAG, k->error == MPI_SUCCESS ? moved : 0);
	r->error = k->error;
	r->raised = true; /* the file's handler is called here, the communicator's is nobody's */
	r->done = true;
	if (k->error != MPI_SUCCESS)
		px_file_raise(k->f, k->error);
}

static bool look(struct px_req *r)
{
	struct carry *k = r->job;
	bool busy = false;

	for (int i = 0; i < PX_PIECES; i++) {
		struct piece *p = &k->piece[i];

		if (p->busy && px_req_test(&p->request) && px_req_test(&p->answer) && px_req_test(&p->data))
			piece_end(k, p);
		/* What lies behind the end of the file need not be asked for. */
		if (!p->busy && k->f->far && k->error == MPI_SUCCESS && k->next < k->total &&
			k->end == k->total)
			piece_start(k, p);
		busy |= p->busy;
	}
	if (busy)
		return false;
	finish(r, k);
	r->job = NULL;
	carry_free(k);
	return true;
}

/* A contiguous place for the data. MPI error code. */
static int place(struct carry *k, void *buf, MPI_Count count, MPI_Datatype t)
{
	const struct px_type *p = px_type_get(t);
	void *packed;
	int rc;

	if (!p)
		return MPI_ERR_TYPE;
	k->total = k->end = count * px_rep_size(k->f->rep, t);
	if (p->contig && !k->f->rep) {
		k->data = buf;
		return MPI_SUCCESS;
	}
	k->copy = malloc((size_t)k->total + 1);
	if (!k->copy)
		return MPI_ERR_NO_MEM;
	k->data = k->copy;
	if (!k->write)
		return MPI_SUCCESS;
	if (!k->f->rep)
		return px_type_pack(buf, count, t, k->copy);
	packed = p->contig ? buf : malloc((size_t)(count * p->size) + 1);
	rc = !packed ? MPI_ERR_NO_MEM : p->contig ? MPI_SUCCESS : px_type_pack(buf, count, t, packed);
	if (rc == MPI_SUCCESS)
		rc = px_rep_put(k->f->rep, t, count, packed, k->copy);
	if (!p->contig)
		free(packed);
	return rc;
}

int px_carry(struct px_file *f, bool write, MPI_Offset pos, void *buf, MPI_Count count, MPI_Datatype t,
	MPI_Status *st, MPI_Request *req, MPI_Count *moved)
{
	struct carry *k = calloc(1, sizeof *k);
	struct px_req own, *r = req ? px_req_new(f->c) : &own;
	int rc = k && r ? MPI_SUCCESS : MPI_ERR_NO_MEM;

	if (rc == MPI_SUCCESS) {
		k->f = f;
		k->write = write;
		k->pos = pos;
		rc = place(k, buf, count, t);
	}
	if (rc != MPI_SUCCESS) {
		if (k)
			carry_free(k);
		if (req && r)
			px_req_release(r);
		return px_file_raise(f, rc);
	}
	if (!req)
		px_req_init(r, f->c);
	px_req_args(r, buf, count, t, f->server, 0);
	r->kind = PX_TASK;
	r->task = look;
	r->job = k;
	px_req_hold_types(r);
	if (!f->far)
		at_once(k);
	if (req) {
		px_req_test(r);
		*req = r->token;
		return MPI_SUCCESS;
	}
	rc = px_req_wait(r);
	px_status_copy(st, &r->status);
	if (moved)
		px_n.Get_elements_x(&r->status, MPI_BYTE, moved);
	return rc;
}
