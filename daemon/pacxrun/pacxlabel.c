/* pacxlabel: run one application rank and put "[site rank] " before each line of its output.
 *
 *     pacxlabel PROGRAM [ARGUMENT ...]
 *
 * pacxrun --label puts it into {app}. Site and first rank come from PACX_SITE and PACX_BASE, the
 * native rank from the launcher (OMPI_COMM_WORLD_RANK, PMI_RANK). Standard input and all other
 * descriptors (hydra's PMI socket) belong to the program. It passes signals on, ends with the
 * program's exit status or signal, and neither outlives the other.
 * Ranks that become daemons have done so before (pacxrank.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "base/buf.h"
#include "write_all.h"

#define LINE_MAX_HELD 65536 /* a longer line is passed on in pieces, the label only before the first */
#define READ_SIZE     16384

struct stream {
	int from, to;
	struct px_buf line; /* what has come of the current line */
	bool inside;        /* the beginning of the current line was already written */
};

static char label[160];

static int number_of(const char *name, int otherwise)
{
	const char *v = getenv(name);

	return v && *v ? atoi(v) : otherwise;
}

static void label_make(void)
{
	const char *site = getenv("PACX_SITE"), *where = getenv("PACX_DAEMONS");
	int rank = number_of("OMPI_COMM_WORLD_RANK", number_of("PMI_RANK", 0));

	if (where && strcmp(where, "first") == 0)
		rank -= 2 * number_of("PACX_GATEWAYS", 1);
	snprintf(label, sizeof label, "[%.64s %d] ", site ? site : "?", number_of("PACX_BASE", 0) + rank);
}

/* stream_flush: write the held line, which is complete or the last one or too long. */
static bool stream_flush(struct stream *s, bool newline)
{
	struct px_buf out = { 0 };
	bool ok = px_buf_len(&s->line) == 0;

	/* One write for label and line, so that lines of several ranks mix as little as possible. */
	if (!ok && (s->inside || px_buf_append(&out, label, strlen(label)) >= 0) &&
		px_buf_append(&out, px_buf_data(&s->line), px_buf_len(&s->line)) >= 0 &&
		(!newline || px_buf_append(&out, "\n", 1) >= 0))
		ok = pxd_write_all(s->to, px_buf_data(&out), px_buf_len(&out));
	px_buf_fini(&out);
	px_buf_consume(&s->line, px_buf_len(&s->line));
	return ok;
}

static bool stream_text(struct stream *s, const char *data, size_t n)
{
	while (n > 0) {
		const char *nl = memchr(data, '\n', n);
		size_t part = nl ? (size_t)(nl - data) + 1 : n;

		if (px_buf_append(&s->line, data, part) < 0)
			return false;
		if (nl || px_buf_len(&s->line) > LINE_MAX_HELD) {
			if (!stream_flush(s, false))
				return false;
			s->inside = !nl;
		}
		data += part;
		n -= part;
	}
	return true;
}

/* stream_read: false at the end of the stream, or when nobody takes the output. */
static bool stream_read(struct stream *s)
{
	char data[READ_SIZE];
	ssize_t n = read(s->from, data, sizeof data);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n > 0 && stream_text(s, data, (size_t)n))
		return true;
	if (n <= 0) {
		if (s->inside && px_buf_len(&s->line) == 0)
			pxd_write_all(s->to, "\n", 1);
		stream_flush(s, true);
	}
	close(s->from); /* the program gets EPIPE if it was not the end */
	s->from = -1;
	return false;
}

static int end_like(int status)
{
	if (WIFSIGNALED(status)) {
		struct rlimit none = { 0, 0 };
		sigset_t empty;

		setrlimit(RLIMIT_CORE, &none);
		signal(WTERMSIG(status), SIG_DFL);
		sigemptyset(&empty);
		sigprocmask(SIG_SETMASK, &empty, NULL);
		raise(WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}

/* signals_pass: what came for us is for the program; at SIGCHLD see whether it has ended. */
static bool signals_pass(int fd, pid_t program, int *status)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo == SIGCHLD) {
			if (waitpid(program, status, WNOHANG) == program)
				return true;
		} else {
			kill(program, (int)info.ssi_signo);
		}
	}
	return false;
}

static int label_run(char **argv)
{
	static const int passed[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGCHLD,
		SIGTSTP };
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, fd, status = 0;
	struct stream s[2] = { { .to = 1 }, { .to = 2 } };
	bool ended = false;
	sigset_t set, old;
	pid_t program;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, &old);
	signal(SIGCHLD, SIG_DFL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	/* The launcher dies: so do we, and the program after us. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fd < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0) {
		fprintf(stderr, "pacxlabel: %s\n", strerror(errno));
		return 126;
	}
	program = pxd_child_start("pacxlabel", argv, &old, out[1], err[1]);
	if (program < 0) {
		fprintf(stderr, "pacxlabel: cannot fork: %s\n", strerror(errno));
		return 126;
	}
	signal(SIGPIPE, SIG_IGN);
	close(out[1]);
	close(err[1]);
	close(0); /* the program's alone */
	s[0].from = out[0];
	s[1].from = err[0];
	/* Until the program has ended and what it wrote is passed on. A child of it may hold the pipes for
	 * ever: behind the program's end only what is there already is read. */
	for (;;) {
		struct pollfd p[3] = { { .fd = fd, .events = POLLIN }, { .fd = s[0].from, .events = POLLIN },
			{ .fd = s[1].from, .events = POLLIN } };
		int n = poll(p, 3, ended ? 0 : -1);

		if (n < 0 && errno != EINTR)
			break;
		if (n == 0 && ended)
			break;
		for (int i = 0; i < 2 && n > 0; i++)
			if (s[i].from >= 0 && p[1 + i].revents)
				stream_read(&s[i]);
		if (n > 0 && p[0].revents && signals_pass(fd, program, &status))
			ended = true;
		if (ended && s[0].from < 0 && s[1].from < 0)
			break;
	}
	for (int i = 0; i < 2; i++) {
		if (s[i].from >= 0)
			stream_flush(&s[i], true);
		px_buf_fini(&s[i].line);
	}
	return end_like(status);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: pacxlabel PROGRAM [ARGUMENT ...]\n");
		return 2;
	}
	label_make();
	return label_run(argv + 1);
}
