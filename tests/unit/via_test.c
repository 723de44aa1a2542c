/* via_test.c: the two proxy handshakes byte by byte, and commands as transport. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "err.h"
#include "test.h"
#include "via.h"
#include "via_command.h"
#include "wait.h"

TEST(urls_of_proxies)
{
	struct pxd_proxy p;

	REQUIRE_INT(pxd_proxy_parse("socks5://gate.example.org:1080", &p), 0);
	CHECK_INT(p.kind, PXD_PROXY_SOCKS5);
	CHECK_STR(p.host, "gate.example.org");
	CHECK_INT(p.port, 1080);
	CHECK_STR(p.user, "");
	REQUIRE_INT(pxd_proxy_parse("http://me:s%65cret%3a@@[2001:db8::1]:3128/", &p), 0);
	CHECK_INT(p.kind, PXD_PROXY_HTTP);
	CHECK_STR(p.host, "2001:db8::1");
	CHECK_INT(p.port, 3128);
	CHECK_STR(p.user, "me");
	CHECK_STR(p.password, "secret:@");
	CHECK_INT(pxd_proxy_parse("socks5h://10.0.0.1:1", &p), 0);
}

TEST(urls_that_are_none)
{
	static const char *const bad[] = { "", "socks5://", "gate:1080", "socks4://gate:1080",
		"https://gate:1080", "socks5://gate", "socks5://gate:", "socks5://gate:0",
		"socks5://gate:65536", "socks5://gate:1x", "socks5://gate:1080//", "socks5://:1080",
		"socks5://[::1]1080", "socks5://[::1:1080", "socks5://[]:1080", "socks5://me@gate:1080",
		"socks5://:pw@gate:1080", "socks5://me:%4@gate:1080", "socks5://me:%00@gate:1080",
		"socks5://a b:1080", "socks5://a\r\nb:1080", "socks5://-oX:1080", "http://a%3ab:pw@gate:1080",
		"socks5://gate:999999999999999999", "socks5://g\xc3\xa4te:1" };
	struct pxd_proxy p = { .port = 77 };
	char url[800] = "socks5://me:";

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (!CHECK_INT(pxd_proxy_parse(bad[i], &p), PX_EINVAL))
			printf("  %s\n", bad[i]);
	memset(url + 12, 'x', 127);
	strcpy(url + 12 + 127, "@gate:1");
	CHECK_INT(pxd_proxy_parse(url, &p), 0);
	p.port = 77;
	memset(url + 12, 'x', 128);
	strcpy(url + 12 + 128, "@gate:1");
	CHECK_INT(pxd_proxy_parse(url, &p), PX_EINVAL);
	memset(url + 9, 'x', 256);
	strcpy(url + 9 + 256, ":1");
	CHECK_INT(pxd_proxy_parse(url, &p), PX_EINVAL);
	CHECK_INT(p.port, 77); /* written on success only */
}

/* Feed the whole answer, at most `piece` bytes at a time; what is left over must be `rest`. */
static char why[400];
static uint8_t out[PXD_VIA_OUT];
static size_t nout;

static int feed(struct pxd_via *v, const void *data, size_t len, size_t piece, size_t *left)
{
	const uint8_t *at = data;
	int rc = 0;

	strcpy(why, "");
	while (len > 0 && rc == 0) {
		size_t want = pxd_via_want(v), n = want < piece ? want : piece;

		CHECK(want > 0);
		if (n > len)
			n = len;
		rc = pxd_via_feed(v, at, n, out, &nout, why, sizeof why);
		at += n;
		len -= n;
		if (nout > 0) /* the caller sends it, then the proxy answers */
			break;
	}
	*left = len;
	return rc;
}

#define FEED(bytes, piece) feed(&v, bytes, sizeof(bytes) - 1, piece, &left)

TEST(socks_without_login)
{
	struct pxd_proxy p;
	struct pxd_via v;
	size_t left;

	for (size_t piece = 1; piece < 40; piece += 19) {
		REQUIRE_INT(pxd_proxy_parse("socks5://gate:1080", &p), 0);
		REQUIRE_INT(pxd_via_start(&v, &p, "right.example", 31000, out, &nout), 0);
		CHECK_UINT(nout, 3);
		CHECK_MEM(out, "\5\1\0", 3);
		CHECK_INT(FEED("\5\0", piece), 0);
		CHECK_UINT(nout, 4 + 1 + 13 + 2);
		CHECK_MEM(out, "\5\1\0\3\15right.example\x79\x18", 20);
		CHECK_INT(FEED("\5\0\0\1\12\0\0\1\1\2peer", piece), 1);
		CHECK_UINT(left, 4); /* the peer's bytes are not touched */
		CHECK_UINT(pxd_via_want(&v), 0);
	}
}

TEST(socks_with_login_and_addresses)
{
	struct pxd_proxy p;
	struct pxd_via v;
	size_t left;

	REQUIRE_INT(pxd_proxy_parse("socks5://me:secret@gate:1080", &p), 0);
	REQUIRE_INT(pxd_via_start(&v, &p, "192.0.2.7", 443, out, &nout), 0);
	CHECK_UINT(nout, 4);
	CHECK_MEM(out, "\5\2\0\2", 4);
	CHECK_INT(FEED("\5\2", 1), 0);
	CHECK_UINT(nout, 11);
	CHECK_MEM(out, "\1\2me\6secret", 11);
	CHECK_INT(FEED("\1\0", 9), 0);
	CHECK_UINT(nout, 10);
	CHECK_MEM(out, "\5\1\0\1\xc0\0\2\7\1\xbb", 10);
	CHECK_INT(FEED("\5\0\0\3\4name\0\1x", 2), 1);
	CHECK_UINT(left, 1);
	REQUIRE_INT(pxd_via_start(&v, &p, "[::1]", 443, out, &nout), 0);
	CHECK_INT(FEED("\5\0", 9), 0);
	CHECK_UINT(nout, 22);
	CHECK_MEM(out, "\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\1\xbb", 22);
	CHECK_INT(FEED("\5\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0yz", 100), 1);
	CHECK_UINT(left, 2);
}

TEST(socks_refusals_are_told_without_the_password)
{
	static const struct {
		const char *bytes;
		size_t n;
		int rc;
		const char *what;
	} cases[] = {
		{ "\5\xff", 2, PX_ECLOSED, "login" },
		{ "\5\1", 2, PX_EPROTO, "not offered" },
		{ "HTTP", 4, PX_EPROTO, "SOCKS5" },
		{ "\5\2\1\1", 4, PX_ECLOSED, "password" },
		{ "\5\2\5\0", 4, PX_EPROTO, "login" },
		{ "\5\0\5\5", 4, PX_ECLOSED, "right.example port 31000: connection refused (5)" },
		{ "\5\0\5\143", 4, PX_ECLOSED, "unknown reason (99)" },
		{ "\5\0\4\0", 4, PX_EPROTO, "answer" },
		{ "\5\0\5\0\0\2", 6, PX_EPROTO, "address" },
	};
	struct pxd_proxy p;
	struct pxd_via v;

	REQUIRE_INT(pxd_proxy_parse("socks5://me:geheimnis@gate:1080", &p), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *at = cases[i].bytes;
		size_t left = cases[i].n;
		int rc = 0;

		REQUIRE_INT(pxd_via_start(&v, &p, "right.example", 31000, out, &nout), 0);
		while (left > 0 && rc == 0) {
			size_t before = left;

			rc = feed(&v, at, left, 99, &left);
			at += before - left;
		}
		CHECK_INT(rc, cases[i].rc);
		if (!CHECK(strstr(why, cases[i].what)) || !CHECK(strstr(why, "the proxy gate:1080 ")))
			printf("  %s\n", why);
		CHECK(!strstr(why, "geheim"));
		CHECK_UINT(pxd_via_want(&v), 0);
		CHECK_INT(pxd_via_feed(&v, (const uint8_t *)"x", 1, out, &nout, why, sizeof why), PX_EPROTO);
	}
}

TEST(http_connect)
{
	struct pxd_proxy p;
	struct pxd_via v;
	size_t left;

	REQUIRE_INT(pxd_proxy_parse("http://gate:3128", &p), 0);
	for (size_t piece = 1; piece < 30; piece += 14) {
		REQUIRE_INT(pxd_via_start(&v, &p, "right.example", 31000, out, &nout), 0);
		out[nout] = 0;
		CHECK_STR((char *)out,
			"CONNECT right.example:31000 HTTP/1.1\r\nHost: right.example:31000\r\n\r\n");
		CHECK_INT(
			FEED("HTTP/1.1 200 Connection established\r\nProxy-Agent: x\r\n\r\n\r\npeer", piece),
			1);
		CHECK_UINT(left, 6);
		REQUIRE_INT(pxd_via_start(&v, &p, "2001:db8::7", 31000, out, &nout), 0);
		out[nout] = 0;
		CHECK_STR((char *)out,
			"CONNECT [2001:db8::7]:31000 HTTP/1.1\r\nHost: [2001:db8::7]:31000\r\n\r\n");
		CHECK_INT(FEED("HTTP/1.0 200\n\npeer", piece), 1);
		CHECK_UINT(left, 4);
	}
	REQUIRE_INT(pxd_proxy_parse("http://Aladdin:open sesame@gate:3128", &p), 0);
	REQUIRE_INT(pxd_via_start(&v, &p, "h", 1, out, &nout), 0);
	out[nout] = 0;
	CHECK(strstr((char *)out, "\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"));
	CHECK_INT(FEED("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 x\r\n\r\n", 9), 1);
}

TEST(longest_request_fits)
{
	struct pxd_proxy p = { .kind = PXD_PROXY_HTTP, .host = "gate", .port = 3128 };
	char host[256];
	struct pxd_via v;

	memset(host, 'h', 255);
	host[255] = 0;
	memset(p.user, 'u', sizeof p.user - 1);
	memset(p.password, 'p', sizeof p.password - 1);
	REQUIRE_INT(pxd_via_start(&v, &p, host, 65535, out, &nout), 0);
	CHECK(nout < PXD_VIA_OUT);
	CHECK_MEM(out + nout - 4, "\r\n\r\n", 4);
	CHECK(memmem(out, nout, "=\r\n\r\n", 5) || memmem(out, nout, "\r\n\r\n", 4));
	p.kind = PXD_PROXY_SOCKS5;
	CHECK_INT(pxd_via_start(&v, &p, host, 65535, out, &nout), 0);
}

TEST(http_refusals_are_told_without_the_password)
{
	static const struct {
		const char *text;
		int rc;
		const char *what;
	} cases[] = {
		{ "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", PX_ECLOSED, "password" },
		{ "HTTP/1.1 503 Busy\x1b[31m\r\n\r\n", PX_ECLOSED,
			"right.example port 31000: HTTP/1.1 503 Busy?[31m" },
		{ "HTTP/1.1 403 me:geheimnis is wrong\r\n\r\n", PX_ECLOSED,
			"right.example port 31000: HTTP/1.1 403" },
		{ "HTTP/2 200 OK\r\n\r\n", PX_EPROTO, "HTTP" },
		{ "HTTP/1.1 20 OK....\r\n\r\n", PX_EPROTO, "CONNECT" },
		{ "HTTP/1.1 101 Upgrade\r\n\r\n", PX_EPROTO, "protocol" },
		{ "SSH-2.0-OpenSSH\r\n", PX_EPROTO, "HTTP" },
	};
	struct pxd_proxy p;
	struct pxd_via v;
	size_t left;
	char big[5000];

	REQUIRE_INT(pxd_proxy_parse("http://me:geheimnis@gate:3128", &p), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		REQUIRE_INT(pxd_via_start(&v, &p, "right.example", 31000, out, &nout), 0);
		CHECK_INT(feed(&v, cases[i].text, strlen(cases[i].text), 3, &left), cases[i].rc);
		if (!CHECK(strstr(why, cases[i].what)))
			printf("  %s\n", why);
		CHECK(!strstr(why, "geheim"));
	}
	memset(big, 'x', sizeof big);
	memcpy(big, "HTTP/1.1 200 ", 13);
	REQUIRE_INT(pxd_via_start(&v, &p, "right.example", 31000, out, &nout), 0);
	CHECK_INT(feed(&v, big, sizeof big, 99, &left), PX_EPROTO);
	CHECK(strstr(why, "too long"));
	CHECK_UINT(left, sizeof big - sizeof v.in);
}

static const char *const bad_hosts[] = { "", "-oProxyCommand", "a b", "a;b", "$(id)", "`id`", "a'b", "a\"b",
	"a\nb", "a\r\nX: y", "a/b", "*", "a|b", "a&b", "a%b", "h\xc3\xb6st", "a\\b" };

TEST(hosts_that_are_none_are_refused)
{
	struct pxd_proxy p;
	struct pxd_via v;
	int fd = -7;
	pid_t pid = -7;

	REQUIRE_INT(pxd_proxy_parse("http://gate:3128", &p), 0);
	for (size_t i = 0; i < sizeof bad_hosts / sizeof *bad_hosts; i++) {
		CHECK_INT(pxd_via_start(&v, &p, bad_hosts[i], 1, out, &nout), PX_EINVAL);
		CHECK_INT(pxd_via_command("cat", bad_hosts[i], 1, &fd, &pid), PX_EINVAL);
	}
	CHECK_INT(pxd_via_start(&v, &p, "h", 0, out, &nout), PX_EINVAL);
	CHECK_INT(pxd_via_start(&v, &p, "[]", 1, out, &nout), PX_EINVAL);
	CHECK_INT(pxd_via_start(&v, &p, "a[b", 1, out, &nout), PX_EINVAL);
	CHECK_INT(pxd_via_command("cat", "h", 65536, &fd, &pid), PX_EINVAL);
	CHECK_INT(pxd_via_command("", "h", 1, &fd, &pid), PX_EINVAL);
	CHECK_INT(fd, -7);
}

/* Reads until n bytes are there or it ends; text. */
static const char *read_some(int fd, size_t n)
{
	static char text[4096];
	size_t have = 0;

	while (have < n) {
		struct pollfd pfd = { fd, POLLIN, 0 };
		ssize_t got;

		if (poll(&pfd, 1, 20000) <= 0)
			break;
		got = read(fd, text + have, sizeof text - 1 - have);
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	text[have] = 0;
	return text;
}

static bool gone_within(pid_t pid, int ms)
{
	uint64_t end = px_now_ns() + (uint64_t)ms * 1000000;

	while (!pxd_via_reap(pid)) {
		if (px_now_ns() > end)
			return false;
		poll(NULL, 0, 5);
	}
	return true;
}

/* A process that is not our child: no longer there, or a zombie that nobody collects. */
static bool dead_within(pid_t pid, int ms)
{
	uint64_t end = px_now_ns() + (uint64_t)ms * 1000000;
	char path[64], state;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	for (; px_now_ns() < end; poll(NULL, 0, 5)) {
		state = 'Z';
		f = fopen(path, "r");
		if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 'Z';
		if (f)
			fclose(f);
		if (state == 'Z')
			return true;
	}
	return false;
}

TEST(command_is_filled_in_and_connected_both_ways)
{
	int fd;
	pid_t pid;

	REQUIRE_INT(
		pxd_via_command("echo '%h' %p %%h %x 100%; cat", "right-1.example_x", 31000, &fd, &pid), 0);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK_STR(read_some(fd, 35), "right-1.example_x 31000 %h %x 100%\n");
	CHECK_INT(write(fd, "there and back", 14), 14);
	CHECK_STR(read_some(fd, 14), "there and back");
	shutdown(fd, SHUT_WR); /* half-close gets through, too */
	CHECK_STR(read_some(fd, 1), "");
	close(fd);
	CHECK(gone_within(pid, 20000));
}

TEST(command_with_brackets_is_not_a_pattern)
{
	int fd;
	pid_t pid;

	REQUIRE_INT(pxd_via_command("cd /; echo %h", "[a-z]", 1, &fd, &pid), 0);
	CHECK_STR(read_some(fd, 100), "[a-z]\n");
	REQUIRE(close(fd) == 0);
	CHECK(gone_within(pid, 20000));
	REQUIRE_INT(pxd_via_command("cd /tmp; echo %h:%p", "[::1]", 22, &fd, &pid), 0);
	CHECK_STR(read_some(fd, 100), "[::1]:22\n");
	close(fd);
	CHECK(gone_within(pid, 20000));
}

TEST(command_inherits_no_files_and_no_key)
{
	int fd, pipes[2];
	pid_t pid;

	REQUIRE(pipe(pipes) == 0); /* not close-on-exec */
	setenv("PACX_KEY", "secret", 1);
	signal(SIGPIPE, SIG_IGN);
	REQUIRE_INT(pxd_via_command("ls /proc/self/fd | tr '\\n' ' '; echo \"${PACX_KEY-no key} "
				    "$PACX_KEY_FILE\"; kill -PIPE $$; "
				    "echo survived",
			    "h", 1, &fd, &pid),
		0);
	unsetenv("PACX_KEY");
	{
		const char *text = read_some(fd, 1000);
		char held[16];

		snprintf(held, sizeof held, " %d ", pipes[1]);
		CHECK(!strstr(text, held));
		CHECK(strstr(text, "no key"));
		CHECK(!strstr(text, "survived")); /* signals are as a shell expects them */
	}
	signal(SIGPIPE, SIG_DFL);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
	CHECK(gone_within(pid, 20000));
}

TEST(command_that_ends_by_itself_is_let_end)
{
	int fd, pipes[2];
	pid_t pid;
	char text[64];

	/* It has still to pass on what it has got when its connection is closed. */
	REQUIRE(pipe2(pipes, O_CLOEXEC) == 0);
	snprintf(text, sizeof text, "cat >/proc/%d/fd/%d", (int)getpid(), pipes[1]);
	REQUIRE_INT(pxd_via_command(text, "h", 1, &fd, &pid), 0);
	CHECK_INT(write(fd, "last words", 10), 10);
	close(fd);
	CHECK(gone_within(pid, 20000));
	CHECK_STR(read_some(pipes[0], 10), "last words");
	close(pipes[0]);
	close(pipes[1]);
}

TEST(stubborn_command_is_ended_with_its_children)
{
	int fd;
	pid_t pid, child;

	REQUIRE_INT(pxd_via_command("trap '' TERM HUP; sleep 1000 & echo $!; while :; do sleep 1000; done",
			    "h", 1, &fd, &pid),
		0);
	child = atoi(read_some(fd, 2));
	CHECK(child > 1);
	close(fd);
	CHECK(!pxd_via_reap(pid));
	CHECK(gone_within(pid, 40000));
	CHECK(kill(pid, 0) < 0 && errno == ESRCH);
	CHECK(dead_within(child, 20000));
	CHECK(pxd_via_reap(pid)); /* once more does no harm */
	/* Killed at once. */
	REQUIRE_INT(
		pxd_via_command("trap '' TERM HUP; echo x; while :; do sleep 1000; done", "h", 1, &fd, &pid),
		0);
	read_some(fd, 1);
	close(fd);
	pxd_via_kill(pid);
	CHECK(kill(pid, 0) < 0 && errno == ESRCH);
}
