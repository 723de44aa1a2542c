/* service.c: see service.h.
 *
 * Design: each slot is a small state machine: a receive from anybody, the request's data, the answer. The file is read and written
 * by its descriptor: the native handle has a view of its own, and its calls might wait for the other members.
 */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bind.h"
#include "comm.h"
#include "endian.h"
#include "err.h"
#include "p2p.h"
#include "request.h"
#include "vendor.h"
#include "wait.h"

enum state { LISTEN, BODY, EARLY, ANSWER };

struct slot {
	enum state state;
	struct px_req in, out,
		data;             /* the request, or the bytes of a write; the answer; the bytes of a read */
	uint8_t *request, *bytes; /* bytes: [PX_CHUNK], of a carried file */
	uint8_t answer[PX_ANSWER_SIZE];
	int src, tag; /* of the request */
};

/* The shared file pointer of one epoch. Epochs without one have 0. */
struct pointer {
	uint32_t epoch;
	MPI_Offset at;
};

struct px_service {
	struct px_server server; /* first */
	struct px_file *f;
	int fd; /* -1: this one keeps the shared file pointer only */
	int nslots;
	struct slot slot[PX_SLOTS];
	struct pointer *pointers;
	size_t npointers, cap;
};

/* The path behind ROMIO's prefix for a kind of file system. */
static const char *bare(const char *name)
{
	static const char *const kinds[] = {
		"ufs:", "nfs:", "xfs:", "lustre:", "gpfs:", "panfs:", "testfs:"
	};

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
			return name + strlen(kinds[i]);
	return name;
}

int px_file_descriptor(const struct px_file *f)
{
	int how = f->amode & MPI_MODE_RDWR ? O_RDWR : f->amode & MPI_MODE_WRONLY ? O_WRONLY : O_RDONLY;

	return open(bare(f->name), how | O_CLOEXEC);
}

/* NULL: out of memory. */
static MPI_Offset *pointer_of(struct px_service *v, uint32_t epoch)
{
	for (size_t i = 0; i < v->npointers; i++)
		if (v->pointers[i].epoch == epoch)
			return &v->pointers[i].at;
	if (v->npointers == v->cap) {
		size_t cap = v->cap ? 2 * v->cap : 4;
		struct pointer *more = realloc(v->pointers, cap * sizeof *more);

		if (!more)
			return NULL;
		v->pointers = more;
		v->cap = cap;
	}
	v->pointers[v->npointers] = (struct pointer){ epoch, 0 };
	return &v->pointers[v->npointers++].at;
}

void px_service_epoch(struct px_file *f, MPI_Offset at)
{
	MPI_Offset *p = f->service && at != 0 ? pointer_of(f->service, f->epoch) : NULL;

	if (p)
		*p = at;
}

void px_service_prune(struct px_file *f)
{
	struct px_service *v = f->service;
	size_t n = 0;

	for (size_t i = 0; v && i < v->npointers; i++)
		if (v->pointers[i].epoch == f->epoch)
			v->pointers[n++] = v->pointers[i];
	if (v)
		v->npointers = n;
}

/* The simple requests. MPI error code. */
static int perform(struct px_service *v, enum px_request_op op, uint32_t epoch, int64_t arg, int64_t *value)
{
	MPI_Offset *p;
	struct stat st;

	*value = 0;
	switch (op) {
	case PX_REQ_FETCH:
		p = pointer_of(v, epoch);
		if (!p)
			return MPI_ERR_NO_MEM;
		*value = *p;
		*p += arg;
		return MPI_SUCCESS;
	case PX_REQ_SIZE:
		if (fstat(v->fd, &st) < 0)
			return px_class_errno(errno);
		*value = st.st_size;
		return MPI_SUCCESS;
	case PX_REQ_SYNC:
		return fsync(v->fd) < 0 ? px_class_errno(errno) : MPI_SUCCESS;
	default:
		return MPI_ERR_INTERN;
	}
}

int64_t px_file_move(int fd, bool write, uint8_t *at, int64_t off, int64_t len)
{
	int64_t done = 0;

	while (done < len) {
		ssize_t k = write ? pwrite(fd, at + done, (size_t)(len - done), off + done)
				  : pread(fd, at + done, (size_t)(len - done), off + done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		if (k == 0)
			break;
		done += k;
	}
	return done;
}

/* Carry out a read or write whose data is at s->bytes. MPI error code; *moved = bytes. */
static int transfer(struct px_service *v, struct slot *s, bool write, int64_t *moved)
{
	uint32_t n = px_get32(s->request + 12);

	*moved = 0;
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *r = s->request + PX_REQUEST_SIZE + 16 * (size_t)i;
		int64_t off = (int64_t)px_get64(r), len = (int64_t)px_get64(r + 8);
		int64_t k = px_file_move(v->fd, write, s->bytes + *moved, off, len);

		if (k < 0)
			return px_class_errno(errno);
		*moved += k;
		if (k < len)
			return write ? MPI_ERR_IO : MPI_SUCCESS;
	}
	return MPI_SUCCESS;
}

static void listen_again(struct px_service *v, struct slot *s)
{
	s->state = LISTEN;
	px_req_init(&s->in, v->f->c);
	px_req_args(&s->in, s->request, v->fd >= 0 ? PX_REQUEST_MAX : PX_REQUEST_SIZE, MPI_BYTE,
		MPI_ANY_SOURCE, PX_TAG_REQUEST);
	px_recv_start(&s->in);
}

static void send_to(struct px_service *v, struct slot *s, struct px_req *r, const void *buf, int64_t bytes)
{
	px_req_init(r, v->f->c);
	px_req_args(r, buf, bytes, MPI_BYTE, s->src, s->tag);
	if (px_send_start(r) != MPI_SUCCESS)
		r->done = true; /* the channel is gone, and the job with it */
}

static void answer(struct px_service *v, struct slot *s, int code, int64_t value)
{
	bool read = px_get32(s->request) == PX_REQ_READ;

	px_put32(s->answer, (uint32_t)px_class_index(code));
	px_put32(s->answer + 4, 0);
	px_put64(s->answer + 8, (uint64_t)value);
	send_to(v, s, &s->out, s->answer, sizeof s->answer);
	if (read)
		send_to(v, s, &s->data, s->bytes, value);
	else
		s->data.done = true;
	s->state = ANSWER;
}

/* Is what a request of n bytes says of itself true, and its data not more than there is room for? */
static bool sound(const struct px_service *v, const struct slot *s, MPI_Count n)
{
	uint32_t op = px_get32(s->request), ranges = px_get32(s->request + 12);
	int64_t sum = 0;

	if (op == PX_REQ_FETCH)
		return true;
	if (v->fd < 0 || ranges > PX_RANGES_MAX || n != PX_REQUEST_SIZE + 16 * (MPI_Count)ranges)
		return false;
	for (uint32_t i = 0; i < ranges; i++) {
		int64_t len = (int64_t)px_get64(s->request + PX_REQUEST_SIZE + 16 * (size_t)i + 8);

		if (len < 0 || len > PX_CHUNK)
			return false;
		sum += len;
	}
	return sum <= PX_CHUNK && sum == (int64_t)px_get64(s->request + 24);
}

/* A request has come, or one that came too early is looked at again. */
static void take(struct px_service *v, struct slot *s)
{
	enum px_request_op op = (enum px_request_op)px_get32(s->request);
	uint32_t epoch = px_get32(s->request + 8);
	int64_t value = 0;
	int rc;

	if (op == PX_REQ_FETCH && (int32_t)(epoch - v->f->epoch) > 0) {
		s->state = EARLY;
		return;
	}
	if (op == PX_REQ_WRITE) {
		s->state = BODY;
		px_req_init(&s->in, v->f->c);
		px_req_args(&s->in, s->bytes, (MPI_Count)px_get64(s->request + 24), MPI_BYTE, s->src, s->tag);
		px_recv_start(&s->in);
		return;
	}
	rc = op == PX_REQ_READ ? transfer(v, s, false, &value)
			       : perform(v, op, epoch, (int64_t)px_get64(s->request + 16), &value);
	answer(v, s, rc, rc == MPI_SUCCESS ? value : 0);
}

static bool slot_look(struct px_service *v, struct slot *s)
{
	MPI_Count n = 0;
	int64_t moved;

	switch (s->state) {
	case LISTEN:
		if (!px_req_test(&s->in))
			return false;
		px_n.Get_elements_x(&s->in.status, MPI_BYTE, &n);
		if (s->in.error != MPI_SUCCESS || n < PX_REQUEST_SIZE || !sound(v, s, n)) {
			px_log(PX_LOG_ERROR, "a malformed request for a file is dropped; please report this");
			listen_again(v, s);
			return true;
		}
		s->src = s->in.status.MPI_SOURCE;
		s->tag = (int)px_get32(s->request + 4);
		take(v, s);
		return true;
	case EARLY:
		take(v, s);
		return s->state != EARLY;
	case BODY:
		if (!px_req_test(&s->in))
			return false;
		answer(v, s, s->in.error == MPI_SUCCESS ? transfer(v, s, true, &moved) : MPI_ERR_IO, 0);
		return true;
	case ANSWER:
		if (!px_req_test(&s->out) || !(s->data.done || px_req_test(&s->data)))
			return false;
		listen_again(v, s);
		return true;
	}
	return false;
}

static bool serve(struct px_server *server)
{
	struct px_service *v = (struct px_service *)(void *)server;
	bool did = false;

	for (int i = 0; i < v->nslots; i++)
		did |= slot_look(v, &v->slot[i]);
	return did;
}

static void service_free(struct px_service *v)
{
	for (int i = 0; i < v->nslots; i++) {
		free(v->slot[i].request);
		free(v->slot[i].bytes);
	}
	if (v->fd >= 0)
		close(v->fd);
	free(v->pointers);
	free(v);
}

int px_service_start(struct px_file *f)
{
	struct px_service *v = calloc(1, sizeof *v);

	if (!v)
		return MPI_ERR_NO_MEM;
	v->f = f;
	v->server.serve = serve;
	v->nslots = f->files == PX_FILES_CARRIED ? PX_SLOTS : 1;
	v->fd = f->files == PX_FILES_CARRIED ? px_file_descriptor(f) : -1;
	if (f->files == PX_FILES_CARRIED && v->fd < 0) {
		int rc = px_class_errno(errno);

		service_free(v);
		return rc;
	}
	for (int i = 0; i < v->nslots; i++) {
		v->slot[i].request = malloc(v->fd >= 0 ? PX_REQUEST_MAX : PX_REQUEST_SIZE);
		v->slot[i].bytes = v->fd >= 0 ? malloc(PX_CHUNK) : NULL;
		if (!v->slot[i].request || (v->fd >= 0 && !v->slot[i].bytes)) {
			service_free(v);
			return MPI_ERR_NO_MEM;
		}
	}
	for (int i = 0; i < v->nslots; i++)
		listen_again(v, &v->slot[i]);
	f->service = v;
	px_server_add(&v->server);
	return MPI_SUCCESS;
}

void px_service_stop(struct px_file *f)
{
	struct px_service *v = f->service;
	struct px_wait w;

	if (!v)
		return;
	px_loop_enter(&w);
	for (int i = 0; i < v->nslots; i++)
		while (v->slot[i].state != LISTEN) /* the last answers may still be leaving */
			px_relax(&w, px_progress());
	px_loop_leave();
	px_server_del(&v->server);
	for (int i = 0; i < v->nslots; i++)
		px_req_cancel(&v->slot[i].in);
	service_free(v);
	f->service = NULL;
}

void px_request_put(uint8_t out[PX_REQUEST_SIZE], const struct px_file *f, enum px_request_op op, int tag,
	int n, int64_t arg, int64_t bytes)
{
	px_put32(out, (uint32_t)op);
	px_put32(out + 4, (uint32_t)tag);
	px_put32(out + 8, f->epoch);
	px_put32(out + 12, (uint32_t)n);
	px_put64(out + 16, (uint64_t)arg);
	px_put64(out + 24, (uint64_t)bytes);
}

int px_file_tag(void)
{
	static uint32_t last;

	return PX_TAG_REQUEST + 1 + (int)(last++ & 0xfffff);
}

int px_file_ask(struct px_file *f, enum px_request_op op, int64_t arg, int64_t *value)
{
	uint8_t request[PX_REQUEST_SIZE], got[PX_ANSWER_SIZE] = { 0 };
	int tag = px_file_tag(), rc;

	if (f->service)
		return perform(f->service, op, f->epoch, arg, value);
	px_request_put(request, f, op, tag, 0, arg, 0);
	rc = px_Sendrecv(request, sizeof request, MPI_BYTE, f->server, PX_TAG_REQUEST, got, sizeof got,
		MPI_BYTE, f->server, tag, f->c, MPI_STATUS_IGNORE);
	if (rc == MPI_SUCCESS) {
		rc = px_class_of((int)px_get32(got));
		*value = (int64_t)px_get64(got + 8);
	}
	return rc;
}
