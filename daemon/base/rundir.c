/* rundir.c: see rundir.h. */
#include "rundir.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "err.h"

#define SUFFIX      ".sock"
#define SWEEP_AGE_S 2

/* dir_check: is it a directory that nobody else can reach into? In /tmp anybody may have made it before us. */
static int dir_check(const char *dir, char *why, size_t cap)
{
	struct stat st;

	if (lstat(dir, &st) < 0) {
		snprintf(why, cap, "%s: %s", dir, strerror(errno));
		return errno == ENOENT ? PX_EINVAL : PX_EIO;
	}
	if (!S_ISDIR(st.st_mode)) {
		snprintf(why, cap, "%s is not a directory; remove it, or set PACX_RUN_DIR to another one",
			dir);
		return PX_ECONF;
	}
	if (st.st_uid != geteuid()) {
		snprintf(why, cap, "%s belongs to user %lu; set PACX_RUN_DIR to a directory of your own", dir,
			(unsigned long)st.st_uid);
		return PX_ECONF;
	}
	if (st.st_mode & 077) {
		snprintf(why, cap, "%s has mode %03o, others could reach into it; chmod 700 %s", dir,
			(unsigned)(st.st_mode & 0777), dir);
		return PX_ECONF;
	}
	return 0;
}

static int below(const char *parent, char *dir, size_t cap)
{
	int n = snprintf(dir, cap, "%s/pacx-%lu", parent, (unsigned long)geteuid());

	return n > 0 && (size_t)n < cap ? 0 : PX_EINVAL;
}

/* place_name: without looking at it. */
static int place_name(int i, char *dir, size_t cap)
{
	const char *own = getenv("PACX_RUN_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");
	char user[64];
	int n;

	if (own && *own) {
		n = snprintf(dir, cap, "%s", own);
		return i == 0 && n > 0 && (size_t)n < cap ? 0 : PX_EINVAL;
	}
	snprintf(user, sizeof user, "/run/user/%lu", (unsigned long)geteuid());
	switch (i) {
	case 1:
		return xdg && *xdg ? below(xdg, dir, cap) : PX_EINVAL;
	case 2:
		return xdg && strcmp(xdg, user) == 0 ? PX_EINVAL : below(user, dir, cap);
	case 3:
		return xdg && strcmp(xdg, "/tmp") == 0 ? PX_EINVAL : below("/tmp", dir, cap);
	default:
		return PX_EINVAL;
	}
}

int pxd_rundir_place(int i, char *dir, size_t cap, char *why, size_t whycap)
{
	int rc = place_name(i, dir, cap);

	if (rc >= 0)
		rc = dir_check(dir, why, whycap);
	return rc == PX_EIO ? PX_ECONF : rc;
}

int pxd_rundir_own(const char *dir, char *why, size_t whycap)
{
	int rc;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
		snprintf(why, whycap, "cannot make the directory %s: %s", dir, strerror(errno));
		return PX_EIO;
	}
	rc = dir_check(dir, why, whycap);
	return rc == PX_EINVAL ? PX_EIO : rc;
}

int pxd_rundir_make(char *dir, size_t cap, char *why, size_t whycap)
{
	const char *own = getenv("PACX_RUN_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int i = 3, rc;

	if (own && *own)
		i = 0;
	else if (xdg && *xdg && stat(xdg, &st) == 0 && S_ISDIR(st.st_mode))
		i = strcmp(xdg, "/tmp") == 0 ? 3 : 1;
	rc = i == 3 ? below("/tmp", dir, cap) : place_name(i, dir, cap);
	if (rc < 0) {
		snprintf(why, whycap, "the name of the directory for status sockets is too long");
		return PX_ECONF;
	}
	return pxd_rundir_own(dir, why, whycap);
}

/* is_dead: nobody listens at this socket any more. */
static bool is_dead(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, rc;

	if (strlen(path) >= sizeof a.sun_path)
		return false;
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	rc = connect(fd, (struct sockaddr *)&a, sizeof a) < 0 ? errno : 0;
	close(fd);
	return rc == ECONNREFUSED;
}

void pxd_rundir_sweep(const char *dir, const char *job)
{
	size_t njob = job ? strlen(job) : 0;
	char path[PXD_RUNDIR_MAX + 256];
	struct dirent *e;
	struct stat st;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		size_t n = strlen(e->d_name);

		if (n <= strlen(SUFFIX) || strcmp(e->d_name + n - strlen(SUFFIX), SUFFIX) != 0)
			continue;
		if (job && (strncmp(e->d_name, job, njob) != 0 || e->d_name[njob] != '-'))
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		/* A daemon that is starting binds and listens within a moment. */
		if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
			(job || time(NULL) - st.st_mtime > SWEEP_AGE_S) && is_dead(path))
			unlink(path);
	}
	if (d)
		closedir(d);
}

int pxd_rundir_socket(const char *dir, const char *name, char *path, size_t cap)
{
	size_t room = strlen(dir) + 1 + sizeof SUFFIX, n = strlen(name);
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	char end[12] = "";
	char *at;

	if (room + sizeof end > cap)
		return PX_EINVAL;
	room = cap - room; /* for the name */
	for (const char *p = name; *p; p++)
		hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
	if (n > room) {
		snprintf(end, sizeof end, "~%08" PRIx32, (uint32_t)(hash ^ hash >> 32));
		if (room < strlen(end) + 1)
			return PX_EINVAL;
		n = room - strlen(end);
	}
	at = path + sprintf(path, "%s/", dir);
	sprintf(at, "%.*s%s%s", (int)n, name, end, SUFFIX);
	for (; *at; at++)
		if (*at == '/' || (unsigned char)*at <= ' ')
			*at = '_';
	return 0;
}

void pxd_rundir_sweep_all(const char *job)
{
	char dir[PXD_RUNDIR_MAX], why[PXD_RUNDIR_MAX + 200];

	for (int i = 0; i < PXD_RUNDIR_PLACES; i++)
		if (pxd_rundir_place(i, dir, sizeof dir, why, sizeof why) == 0)
			pxd_rundir_sweep(dir, job);
}
