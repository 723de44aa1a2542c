/* recording.c: see recording.h. */
#include "recording.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "endian.h"
#include "err.h"
#include "hint.h"
#include "wait.h"

#define BUFFER (1u << 20) /* so that most messages cost a copy, and no call of the system */

static const char magic[8] = { 'P', 'A', 'C', 'X', 'R', 'E', 'C', '1' };

struct pxd_recorder {
	FILE *file;
	char *path;
	uint64_t start, bytes, most;
	bool full;
};

static void head_put(const struct pxd_recording_head *h, uint8_t *out)
{
	memset(out, 0, PXD_RECORDING_HEAD);
	memcpy(out, magic, sizeof magic);
	px_put64(out + 8, h->when);
	px_put16(out + 16, h->from);
	px_put16(out + 18, h->to);
	px_put16(out + 20, h->from_gateway);
	px_put16(out + 22, h->to_gateway);
	out[24] = h->big;
	memcpy(out + 32, h->from_name, strnlen(h->from_name, PX_NAME_MAX));
	memcpy(out + 96, h->to_name, strnlen(h->to_name, PX_NAME_MAX));
}

/* A new file that nobody else can read. */
static FILE *file_new(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;

	/* fchmod: a file system may have its own idea of modes. */
	if (f && fchmod(fd, 0600) == 0 && setvbuf(f, NULL, _IOFBF, BUFFER) == 0)
		return f;
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	return NULL;
}

static int path_make(const char *dir, const struct pxd_recording_head *h, char **out)
{
	if (h->from_gateway == 0 && h->to_gateway == 0)
		return asprintf(out, "%s/%s-%s.pacxrec", dir, h->from_name, h->to_name);
	return asprintf(
		out, "%s/%s.%d-%s.%d.pacxrec", dir, h->from_name, h->from_gateway, h->to_name, h->to_gateway);
}

struct pxd_recorder *pxd_recorder_new(
	const char *dir, const struct pxd_recording_head *h, uint64_t most, char *why, size_t cap)
{
	struct pxd_recorder *r = calloc(1, sizeof *r);
	struct pxd_recording_head now = *h;
	uint8_t head[PXD_RECORDING_HEAD];
	struct timespec t;

	if (!r || path_make(dir, h, &r->path) < 0) {
		free(r);
		snprintf(why, cap, "out of memory");
		return NULL;
	}
	clock_gettime(CLOCK_REALTIME, &t);
	now.when = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	head_put(&now, head);
	r->start = px_now_ns();
	r->most = most;
	if ((mkdir(dir, 0700) < 0 && errno != EEXIST) || !(r->file = file_new(r->path)) ||
		fwrite(head, sizeof head, 1, r->file) != 1) {
		snprintf(why, cap, "%s: %s", r->path,
			errno == EEXIST ? "it exists already; a recording is not overwritten"
					: strerror(errno));
		pxd_recorder_free(r);
		return NULL;
	}
	r->bytes = sizeof head;
	return r;
}

static void record_put(const struct px_frame *f, uint64_t at, uint8_t *out)
{
	struct px_hint hint;

	px_hint_get(f->seq, &hint);
	memset(out, 0, PXD_RECORDING_RECORD);
	px_put64(out, at);
	px_put64(out + 8, f->ctx);
	px_put64(out + 16, f->total);
	px_put64(out + 24, f->type == PX_F_SEG ? f->offset : 0);
	px_put32(out + 32, f->src);
	px_put32(out + 36, f->dst);
	px_put32(out + 40, (uint32_t)f->tag);
	px_put32(out + 44, f->msg);
	px_put32(out + 48, f->seg);
	px_put32(out + 52, (uint32_t)f->body);
	out[56] = f->elem;
	out[57] = f->flags & PX_FF_COLL ? 1 : 0;
	px_put16(out + 58, hint.row);
	px_put16(out + 60, hint.plane);
}

void pxd_recorder_put(struct pxd_recorder *r, const struct px_frame *f, const uint8_t *payload)
{
	uint8_t head[PXD_RECORDING_RECORD];

	if (!r || r->full || f->body == 0 || (f->type != PX_F_MSG && f->type != PX_F_SEG))
		return;
	if (r->bytes + sizeof head + f->body > r->most) {
		r->full = true;
		px_log(PX_LOG_WARN, "%s is full, with %llu bytes: what follows is not recorded", r->path,
			(unsigned long long)r->bytes);
		return;
	}
	record_put(f, px_now_ns() - r->start, head);
	r->bytes += sizeof head + f->body;
	if (fwrite(head, sizeof head, 1, r->file) != 1 || fwrite(payload, f->body, 1, r->file) != 1) {
		r->full = true;
		px_log(PX_LOG_WARN, "%s: %s: what follows is not recorded", r->path, strerror(errno));
	}
}

void pxd_recorder_free(struct pxd_recorder *r)
{
	if (!r)
		return;
	if (r->file && fclose(r->file) != 0)
		px_log(PX_LOG_WARN, "%s: %s: its end is missing", r->path, strerror(errno));
	free(r->path);
	free(r);
}

/* A site's name, which will be printed: nothing but what one may have (text.h). false: something else. */
static bool name_get(const uint8_t *in, char *out)
{
	size_t n = strnlen((const char *)in, PX_NAME_MAX);

	for (size_t i = 0; i < n; i++)
		if (!isalnum(in[i]) && !strchr("._-", in[i]))
			return false;
	memcpy(out, in, n);
	out[n] = '\0';
	return n > 0;
}

FILE *pxd_recording_open(const char *path, struct pxd_recording_head *h, char *why, size_t cap)
{
	uint8_t in[PXD_RECORDING_HEAD];
	FILE *f = fopen(path, "rbe");

	if (!f) {
		snprintf(why, cap, "%s: %s", path, strerror(errno));
		return NULL;
	}
	if (fread(in, sizeof in, 1, f) != 1 || memcmp(in, magic, sizeof magic) != 0 || in[24] > 1 ||
		!name_get(in + 32, h->from_name) || !name_get(in + 96, h->to_name)) {
		snprintf(why, cap, "%s: found something else, expected a recording (pacxrun --record)", path);
		fclose(f);
		return NULL;
	}
	h->when = px_get64(in + 8);
	h->from = px_get16(in + 16);
	h->to = px_get16(in + 18);
	h->from_gateway = px_get16(in + 20);
	h->to_gateway = px_get16(in + 22);
	h->big = in[24];
	return f;
}

/* Is f what a writer records? */
static bool sound(const struct px_frame *f)
{
	if (f->elem > 16 || f->body == 0 || f->body > PX_SEG_MAX)
		return false;
	if (f->seg == 0)
		return f->offset == 0 && f->body == f->total && f->body <= PX_INLINE_MAX;
	if (f->seg < PX_SEG_MIN || f->seg > PX_SEG_MAX || (f->seg & (f->seg - 1)) != 0)
		return false;
	return f->offset < f->total && f->offset % f->seg == 0 &&
	       f->body == (f->total - f->offset < f->seg ? f->total - f->offset : f->seg);
}

int pxd_recording_next(FILE *file, struct px_frame *f, uint64_t *at, uint8_t *payload)
{
	uint8_t in[PXD_RECORDING_RECORD];
	struct px_hint hint = { 0 };

	if (fread(in, sizeof in, 1, file) != 1)
		return 0;
	hint.row = px_get16(in + 58);
	hint.plane = px_get16(in + 60);
	*f = (struct px_frame){ .version = PX_PROTOCOL_VERSION,
		.ctx = px_get64(in + 8),
		.total = px_get64(in + 16),
		.offset = px_get64(in + 24),
		.src = px_get32(in + 32),
		.dst = px_get32(in + 36),
		.tag = (int32_t)px_get32(in + 40),
		.msg = px_get32(in + 44),
		.seg = px_get32(in + 48),
		.body = px_get32(in + 52),
		.elem = in[56],
		.flags = in[57] & 1 ? PX_FF_COLL : 0,
		.seq = px_hint_put(&hint) };
	f->type = f->seg ? PX_F_SEG : PX_F_MSG;
	*at = px_get64(in);
	if (!sound(f))
		return PX_EPROTO;
	return fread(payload, f->body, 1, file) == 1 ? 1 : 0;
}
