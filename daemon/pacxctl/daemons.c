/* daemons.c: see daemons.h. */
#include "daemons.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "json.h"
#include "rundir.h"
#include "wait.h"

#define TEXT_MAX (16 * 1024 * 1024)
#define WAIT_MS  2000 /* for one daemon */

static const char *scaled(double x, double step, const char *const *units, char *buf)
{
	int u = 0;

	while (x >= step - 0.5 && u < 5) {
		x /= step;
		u++;
	}
	snprintf(buf, 16, u == 0 || x >= 99.95 ? "%.0f %s" : "%.1f %s", x < 1e6 ? x : 1e6, units[u]);
	return buf;
}

const char *pxd_size_text(double bytes, char *buf)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };

	return scaled(bytes, 1000, units, buf);
}

const char *pxd_memory_text(double bytes, char *buf)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };

	return scaled(bytes, 1024, units, buf);
}

const char *pxd_time_text(double seconds, char *buf)
{
	unsigned s = seconds > 0 && seconds < 1e9 ? (unsigned)seconds : 0;

	if (s < 60)
		snprintf(buf, 16, "%us", s);
	else if (s < 3600)
		snprintf(buf, 16, "%um%02us", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, 16, "%uh%02um", s / 3600, s / 60 % 60);
	else
		snprintf(buf, 16, "%ud%02uh", s / 86400, s / 3600 % 24);
	return buf;
}

static bool is(const char *key, size_t n, const char *name)
{
	return strlen(name) == n && memcmp(key, name, n) == 0;
}

static double number(const char *v, size_t n)
{
	char text[64];

	if (n >= sizeof text || n == 0 || (*v != '-' && (*v < '0' || *v > '9')))
		return 0;
	memcpy(text, v, n);
	text[n] = '\0';
	return strtod(text, NULL);
}

/* A member's place in a struct: a number, or a text of `size` bytes. */
struct field {
	const char *name;
	size_t at, size;
};

static bool field_take(const struct field *f, size_t nf, void *object, const char *key, size_t nkey,
	const char *v, size_t nv)
{
	for (size_t i = 0; i < nf; i++) {
		if (!is(key, nkey, f[i].name))
			continue;
		if (!f[i].size)
			*(double *)(void *)((char *)object + f[i].at) = number(v, nv);
		else if (*v == '"')
			pxd_json_text(v, nv, (char *)object + f[i].at, f[i].size);
		return true;
	}
	return false;
}

#define NUMBER(type, name, member)                                                                           \
	{                                                                                                    \
		name, offsetof(struct type, member), 0                                                       \
	}
#define TEXT(type, name, member)                                                                             \
	{                                                                                                    \
		name, offsetof(struct type, member), sizeof((struct type *)0)->member                        \
	}

static int codec_member(void *arg, const char *key, size_t nkey, const char *v, size_t nv)
{
	static const struct field fields[] = {
		NUMBER(pxd_daemon_link, "in", plain),
		NUMBER(pxd_daemon_link, "out", coded),
	};
	struct pxd_daemon_link one = { .plain = 0 }, *l = arg;

	field_take(fields, 2, &one, key, nkey, v, nv);
	l->plain += one.plain;
	l->coded += one.coded;
	return 0;
}

static int lossy_member(void *arg, const char *key, size_t nkey, const char *v, size_t nv)
{
	static const struct field fields[] = {
		NUMBER(pxd_daemon_link, "in", lossy_plain),
		NUMBER(pxd_daemon_link, "out", lossy_coded),
	};

	field_take(fields, sizeof fields / sizeof fields[0], arg, key, nkey, v, nv);
	return 0;
}

static int codecs_member(void *arg, const char *key, size_t nkey, const char *v, size_t nv)
{
	(void)key;
	(void)nkey;
	return *v == '{' ? pxd_json_members(v, nv, codec_member, arg) : 0;
}

static int link_member(void *arg, const char *key, size_t nkey, const char *v, size_t nv)
{
	static const struct field fields[] = {
		TEXT(pxd_daemon_link, "from", from),
		TEXT(pxd_daemon_link, "to", to),
		TEXT(pxd_daemon_link, "state", state),
		NUMBER(pxd_daemon_link, "since_s", since_s),
		NUMBER(pxd_daemon_link, "last_byte_s", last_byte_s),
		NUMBER(pxd_daemon_link, "streams", streams),
		NUMBER(pxd_daemon_link, "rtt_us", rtt_us),
		NUMBER(pxd_daemon_link, "messages", messages),
		NUMBER(pxd_daemon_link, "payload_bytes", payload),
		NUMBER(pxd_daemon_link, "wire_bytes", wire),
		NUMBER(pxd_daemon_link, "queued_bytes", queued),
		NUMBER(pxd_daemon_link, "retained_bytes", retained),
		NUMBER(pxd_daemon_link, "reconnects", reconnects),
		NUMBER(pxd_daemon_link, "rate_Bps", rate),
	};

	if (is(key, nkey, "codec") && *v == '{')
		return pxd_json_members(v, nv, codecs_member, arg);
	if (is(key, nkey, "lossy") && *v == '{')
		return pxd_json_members(v, nv, lossy_member, arg);
	field_take(fields, sizeof fields / sizeof fields[0], arg, key, nkey, v, nv);
	return 0;
}

static int link_item(void *arg, const char *v, size_t nv)
{
	struct pxd_daemon *d = arg;
	struct pxd_daemon_link *l = realloc(d->links, ((size_t)d->nlinks + 1) * sizeof *l);

	if (!l)
		return PX_ENOMEM;
	d->links = l;
	l += d->nlinks;
	if (*v != '{')
		return 0;
	d->nlinks++;
	memset(l, 0, sizeof *l);
	return pxd_json_members(v, nv, link_member, l);
}

static int daemon_member(void *arg, const char *key, size_t nkey, const char *v, size_t nv)
{
	static const struct field fields[] = {
		TEXT(pxd_daemon, "job", job),
		TEXT(pxd_daemon, "site", site),
		TEXT(pxd_daemon, "role", role),
		TEXT(pxd_daemon, "version", version),
		NUMBER(pxd_daemon, "gateway", gateway),
		NUMBER(pxd_daemon, "pid", pid),
		NUMBER(pxd_daemon, "uptime_s", uptime_s),
		NUMBER(pxd_daemon, "anon_bytes", memory),
		NUMBER(pxd_daemon, "buffer_bytes", buffer),
		NUMBER(pxd_daemon, "buffer_used", used),
	};

	if (is(key, nkey, "links"))
		return pxd_json_items(v, nv, link_item, arg);
	field_take(fields, sizeof fields / sizeof fields[0], arg, key, nkey, v, nv);
	return 0;
}

static void swap(double *a, double *b)
{
	double t = *a;

	*a = *b;
	*b = t;
}

/* What goes into an in-daemon's decoders is what came out of the encoders. */
static void reader_turn(struct pxd_daemon *d)
{
	for (int i = 0; i < d->nlinks && strcmp(d->role, "in") == 0; i++) {
		swap(&d->links[i].plain, &d->links[i].coded);
		swap(&d->links[i].lossy_plain, &d->links[i].lossy_coded);
	}
}

static void daemon_free(struct pxd_daemon *d)
{
	free(d->links);
	free(d->text);
}

/* socket_read: all of what the daemon says. 0, PX_ECLOSED (nobody there), PX_ETIMEOUT, PX_EIO, PX_ENOMEM. */
static int socket_read(const char *path, struct px_buf *b)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct timeval limit = { WAIT_MS / 1000, 0 };
	uint64_t until = px_now_ns() + WAIT_MS * UINT64_C(1000000);
	int fd, rc = PX_EIO;

	if (strlen(path) >= sizeof a.sun_path)
		return PX_EIO;
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return PX_EIO;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* for connect */
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
		rc = errno == ECONNREFUSED ? PX_ECLOSED : errno == ENOENT ? PX_EIO : PX_ETIMEOUT;
		goto done;
	}
	for (;;) {
		struct pollfd p = { fd, POLLIN, 0 };
		uint64_t now = px_now_ns();
		uint8_t *room;
		ssize_t n;

		rc = PX_ETIMEOUT;
		if (now >= until || poll(&p, 1, (int)((until - now) / 1000000 + 1)) == 0)
			goto done;
		rc = PX_ENOMEM;
		if (px_buf_reserve(b, 65536, &room) < 0)
			goto done;
		n = recv(fd, room, 65536, MSG_DONTWAIT);
		rc = 0;
		if (n == 0)
			goto done;
		rc = PX_EIO;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			goto done;
		if (n > 0)
			px_buf_commit(b, (size_t)n);
		if (px_buf_len(b) > TEXT_MAX)
			goto done;
	}
done:
	close(fd);
	return rc;
}

/* daemon_add: one more in the list, if it is of the job. */
static int daemon_add(struct pxd_daemons *d, const struct px_buf *b, const char *job)
{
	const char *text = (const char *)px_buf_data(b);
	struct pxd_daemon one = { .nlinks = 0 }, *list;
	size_t n = px_buf_len(b);
	int rc;

	if (n == 0 || !pxd_json_valid(text, n)) {
		d->silent++;
		return 0;
	}
	rc = pxd_json_members(text, n, daemon_member, &one);
	if (rc < 0 || (job && strcmp(job, one.job) != 0)) {
		daemon_free(&one);
		return rc < 0 ? rc : 0;
	}
	reader_turn(&one);
	while (n > 0 && strchr(" \t\r\n", text[n - 1]))
		n--;
	one.text = strndup(text, n);
	list = realloc(d->list, ((size_t)d->n + 1) * sizeof *list);
	if (list)
		d->list = list;
	if (!list || !one.text) {
		daemon_free(&one);
		return PX_ENOMEM;
	}
	list[d->n++] = one;
	return 0;
}

static int dir_read(struct pxd_daemons *d, const char *dir, const char *job)
{
	DIR *list = opendir(dir);
	struct dirent *e;
	int rc = 0;

	while (list && rc >= 0 && (e = readdir(list))) {
		size_t n = strlen(e->d_name);
		char path[PXD_RUNDIR_MAX + 256];
		struct px_buf b = { 0 };

		if (n < 5 || strcmp(e->d_name + n - 5, ".sock") != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		rc = socket_read(path, &b);
		if (rc == PX_ECLOSED)
			unlink(path); /* of a daemon that was killed */
		else if (rc == PX_ETIMEOUT)
			d->silent++;
		if (rc >= 0)
			rc = daemon_add(d, &b, job);
		else if (rc != PX_ENOMEM)
			rc = 0;
		px_buf_fini(&b);
	}
	if (list)
		closedir(list);
	return rc;
}

static int by_name(const void *x, const void *y)
{
	const struct pxd_daemon *a = x, *b = y;
	int c = strcmp(a->job, b->job);

	c = c ? c : strcmp(a->site, b->site);
	c = c ? c : -strcmp(a->role, b->role); /* out before in */
	return c ? c : (a->gateway > b->gateway) - (a->gateway < b->gateway);
}

int pxd_daemons_read(struct pxd_daemons *d, const char *job)
{
	char dir[PXD_RUNDIR_MAX], why[PXD_RUNDIR_MAX + 200];
	int rc = 0;

	*d = (struct pxd_daemons){ 0 };
	for (int i = 0; i < PXD_RUNDIR_PLACES && rc >= 0; i++) {
		int place = pxd_rundir_place(i, dir, sizeof dir, why, sizeof why);

		if (place == PX_ECONF)
			fprintf(stderr, "pacxctl: not looking into it: %s\n", why);
		else if (place == 0)
			rc = dir_read(d, dir, job);
	}
	if (d->n > 1)
		qsort(d->list, (size_t)d->n, sizeof *d->list, by_name);
	if (rc < 0)
		pxd_daemons_free(d);
	return rc;
}

void pxd_daemons_free(struct pxd_daemons *d)
{
	for (int i = 0; i < d->n; i++)
		daemon_free(&d->list[i]);
	free(d->list);
	*d = (struct pxd_daemons){ 0 };
}
