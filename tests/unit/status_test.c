/* The daemon's status socket: who gets what, who is turned away, and that nothing is left. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"

#include "base/err.h"
#include "rundir.h"
#include "status.h"

static char dir[64];

/* run_dir: a fresh directory in PACX_RUN_DIR, not made yet. */
static void run_dir(void)
{
	char base[] = "/tmp/pacx-status-XXXXXX";

	unsetenv("XDG_RUNTIME_DIR");
	if (mkdtemp(base))
		snprintf(dir, sizeof dir, "%s/d", base);
	setenv("PACX_RUN_DIR", dir, 1);
}

static void run_dir_drop(void)
{
	char *slash = strrchr(dir, '/');

	CHECK(rmdir(dir) == 0); /* nothing left in it */
	*slash = '\0';
	rmdir(dir);
}

static int calls;

static void make_short(void *arg, struct px_buf *b)
{
	calls++;
	px_buf_append(b, arg, strlen(arg));
}

/* More than a socket takes at once. */
static void make_long(void *arg, struct px_buf *b)
{
	char piece[4096];

	memset(piece, 'x', sizeof piece);
	for (int i = 0; i < *(int *)arg; i++)
		px_buf_append(b, piece, sizeof piece);
}

static void make_nothing(void *arg, struct px_buf *b)
{
	(void)arg;
	(void)b;
}

static int client(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	strcpy(a.sun_path, path);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
		close(fd);
		return -errno;
	}
	return fd;
}

/* client_read: to the end, while the loop turns. Bytes, or -1 after too many turns. */
static long client_read(uv_loop_t *loop, int fd, char *text, size_t cap)
{
	long all = 0;

	for (int turn = 0; turn < 100000; turn++) {
		char buf[8192];
		ssize_t n;

		uv_run(loop, UV_RUN_NOWAIT);
		n = read(fd, buf, sizeof buf);
		if (n == 0)
			return all;
		if (n < 0 && errno != EAGAIN)
			return -1;
		for (ssize_t i = 0; i < n; i++, all++)
			if (text && (size_t)all + 1 < cap)
				text[all] = buf[i];
	}
	return -1;
}

static void loop_end(uv_loop_t *loop, struct pxd_status *s)
{
	pxd_status_close(s);
	pxd_status_close(s);
	for (int i = 0; i < 100 && uv_run(loop, UV_RUN_NOWAIT); i++)
		continue;
	CHECK_INT(uv_loop_close(loop), 0); /* no handle is left */
}

TEST(every_client_gets_the_text_of_now)
{
	static struct pxd_status s;
	char path[sizeof dir + 32], text[64] = "";
	struct stat st;
	uv_loop_t loop;

	run_dir();
	uv_loop_init(&loop);
	REQUIRE_INT(pxd_status_open(&s, &loop, "j-left-out0", make_short, "{\"pid\": 1}\n"), 0);
	snprintf(path, sizeof path, "%s/j-left-out0.sock", dir);
	CHECK(stat(dir, &st) == 0 && (st.st_mode & 0777) == 0700);
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	for (int i = 1; i <= 20; i++) {
		int fd = client(path);

		REQUIRE(fd >= 0);
		CHECK_INT(client_read(&loop, fd, text, sizeof text), 11);
		CHECK_STR(text, "{\"pid\": 1}\n");
		CHECK_INT(calls, i);
		close(fd);
	}
	loop_end(&loop, &s);
	CHECK(access(path, F_OK) < 0);
	run_dir_drop();
}

TEST(slow_readers_lose_their_place_and_cost_no_more)
{
	static struct pxd_status s;
	char path[sizeof dir + 32];
	int pieces = 500, fd[PXD_STATUS_CLIENTS + 3], at, complete = 0;
	uv_loop_t loop;

	run_dir();
	uv_loop_init(&loop);
	REQUIRE_INT(pxd_status_open(&s, &loop, "slow", make_long, &pieces), 0);
	snprintf(path, sizeof path, "%s/slow.sock", dir);
	for (at = 0; at < PXD_STATUS_CLIENTS + 3; at++) {
		fd[at] = client(path);
		REQUIRE(fd[at] >= 0);
		for (int i = 0; i < 20; i++)
			uv_run(&loop, UV_RUN_NOWAIT);
	}
	for (at = 0; at < PXD_STATUS_CLIENTS + 3; at++) {
		bool whole = client_read(&loop, fd[at], NULL, 0) == 500 * 4096L;

		CHECK_INT(whole, at >= 3);
		complete += whole;
		close(fd[at]);
	}
	CHECK_INT(complete, PXD_STATUS_CLIENTS);
	for (at = 0; at < 3; at++) { /* some are still reading when it closes, some have gone */
		fd[at] = client(path);
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	close(fd[0]);
	loop_end(&loop, &s);
	close(fd[1]);
	close(fd[2]);
	run_dir_drop();
}

TEST(a_text_that_cannot_be_made_is_no_answer)
{
	static struct pxd_status s;
	char path[sizeof dir + 32];
	uv_loop_t loop;
	int fd;

	run_dir();
	uv_loop_init(&loop);
	REQUIRE_INT(pxd_status_open(&s, &loop, "none", make_nothing, NULL), 0);
	snprintf(path, sizeof path, "%s/none.sock", dir);
	fd = client(path);
	REQUIRE(fd >= 0);
	CHECK_INT(client_read(&loop, fd, NULL, 0), 0);
	close(fd);
	loop_end(&loop, &s);
	run_dir_drop();
}

TEST(the_socket_of_a_killed_daemon_is_replaced)
{
	static struct pxd_status s;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	uv_loop_t loop;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), c;

	run_dir();
	REQUIRE(mkdir(dir, 0700) == 0);
	snprintf(a.sun_path, sizeof a.sun_path, "%.60s/old.sock", dir);
	REQUIRE(bind(fd, (struct sockaddr *)&a, sizeof a) == 0);
	close(fd);
	uv_loop_init(&loop);
	REQUIRE_INT(pxd_status_open(&s, &loop, "old", make_short, "{}"), 0);
	c = client(a.sun_path);
	REQUIRE(c >= 0);
	CHECK_INT(client_read(&loop, c, NULL, 0), 2);
	close(c);
	loop_end(&loop, &s);
	run_dir_drop();
}

TEST(a_directory_that_others_can_reach_is_refused)
{
	static struct pxd_status s;
	char why[256] = "", got[256], expected[256], missing[256];
	uv_loop_t loop;
	int fd;

	run_dir();
	uv_loop_init(&loop);
	REQUIRE(mkdir(dir, 0700) == 0 && chmod(dir, 0755) == 0);
	CHECK_INT(pxd_rundir_make(got, sizeof got, why, sizeof why), PX_ECONF);
	snprintf(expected, sizeof expected, "%s has mode 755, others could reach into it; chmod 700 %s", dir,
		dir);
	CHECK_STR(why, expected);
	CHECK_INT(pxd_status_open(&s, &loop, "x", make_short, "{}"), PX_ECONF);
	rmdir(dir);
	REQUIRE(symlink("/tmp", dir) == 0);
	CHECK_INT(pxd_rundir_make(got, sizeof got, why, sizeof why), PX_ECONF);
	unlink(dir);
	fd = open(dir, O_CREAT | O_WRONLY, 0600);
	close(fd);
	CHECK_INT(pxd_rundir_make(got, sizeof got, why, sizeof why), PX_ECONF);
	unlink(dir);
	snprintf(missing, sizeof missing, "%s/dir", dir); /* which has just gone */
	setenv("PACX_RUN_DIR", missing, 1);
	CHECK_INT(pxd_rundir_make(got, sizeof got, why, sizeof why), PX_EIO);
	CHECK_INT(pxd_status_open(&s, &loop, "x", make_short, "{}"), PX_EIO);
	CHECK_INT(pxd_rundir_place(0, got, sizeof got, why, sizeof why), PX_EINVAL);
	CHECK_INT(pxd_rundir_place(1, got, sizeof got, why, sizeof why), PX_EINVAL);
	loop_end(&loop, &s);
	mkdir(dir, 0700);
	run_dir_drop();
}

TEST(long_names_are_cut_and_stay_different)
{
	char dir200[201], name[200], a[108], b[108];

	memset(name, 'j', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	REQUIRE_INT(pxd_rundir_socket("/run/user/1000/pacx-1000", name, a, sizeof a), 0);
	CHECK(strlen(a) < sizeof a && strstr(a, ".sock") == a + strlen(a) - 5);
	name[190] = 'k';
	REQUIRE_INT(pxd_rundir_socket("/run/user/1000/pacx-1000", name, b, sizeof b), 0);
	CHECK(strcmp(a, b) != 0);
	REQUIRE_INT(pxd_rundir_socket("/d", "a/../b c-left-out0", a, sizeof a), 0);
	CHECK_STR(a, "/d/a_.._b_c-left-out0.sock");
	memset(dir200, 'd', sizeof dir200 - 1);
	dir200[sizeof dir200 - 1] = '\0';
	CHECK_INT(pxd_rundir_socket(dir200, "x", a, sizeof a), PX_EINVAL);
}

TEST(the_directory_follows_the_environment)
{
	char got[256], why[256] = "", base[] = "/tmp/pacx-xdg-XXXXXX", expected[64];

	REQUIRE(mkdtemp(base) != NULL);
	unsetenv("PACX_RUN_DIR");
	setenv("XDG_RUNTIME_DIR", base, 1);
	snprintf(expected, sizeof expected, "%s/pacx-%lu", base, (unsigned long)geteuid());
	CHECK_INT(pxd_rundir_make(got, sizeof got, why, sizeof why), 0);
	CHECK_STR(got, expected);
	CHECK_INT(pxd_rundir_make(got, sizeof got, why, sizeof why), 0); /* it may be there */
	CHECK_INT(pxd_rundir_place(1, got, sizeof got, why, sizeof why), 0);
	CHECK_STR(got, expected);
	rmdir(expected);
	rmdir(base);
}
