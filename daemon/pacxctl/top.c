/* top.c: pacxctl top: a live screen of all links of this machine's daemons, from the differences of two samples.
 *
 * A link is seen by the daemon that sends (out) and by the one that receives (in); where both are here, the sender's view is
 * shown. The terminal is put back as it was, however this ends. Without a terminal it prints blocks.
 */
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "pacxctl.h"
#include "daemons.h"
#include "wait.h"

#define BAR 12

static volatile sig_atomic_t stop;
static struct termios before;
static bool raw;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void screen_open(void)
{
	struct termios t;

	if (tcgetattr(0, &before) == 0) {
		t = before;
		t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		t.c_cc[VMIN] = 0;
		t.c_cc[VTIME] = 0;
		raw = tcsetattr(0, TCSANOW, &t) == 0;
	}
	fputs("\033[?1049h\033[?25l", stdout); /* the other screen, no cursor */
}

static void screen_close(void)
{
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (raw)
		tcsetattr(0, TCSANOW, &before);
}

/* find: the same link of the same daemon in another sample, or NULL. */
static const struct pxd_daemon_link *find(
	const struct pxd_daemons *d, const struct pxd_daemon *x, const struct pxd_daemon_link *l)
{
	for (int i = 0; i < d->n; i++) {
		const struct pxd_daemon *y = &d->list[i];

		if (!(y->pid >= x->pid && y->pid <= x->pid) || strcmp(y->job, x->job) != 0 ||
			strcmp(y->site, x->site) != 0 || strcmp(y->role, x->role) != 0 ||
			(int)y->gateway != (int)x->gateway)
			continue;
		for (int k = 0; k < y->nlinks; k++)
			if (strcmp(y->links[k].from, l->from) == 0 && strcmp(y->links[k].to, l->to) == 0)
				return &y->links[k];
	}
	return NULL;
}

/* seen_by_sender: is there an out-daemon here that shows the link too? */
static bool seen_by_sender(const struct pxd_daemons *d, const char *job, const struct pxd_daemon_link *l)
{
	for (int i = 0; i < d->n; i++) {
		const struct pxd_daemon *y = &d->list[i];

		if (strcmp(y->role, "out") != 0 || strcmp(y->job, job) != 0)
			continue;
		for (int k = 0; k < y->nlinks; k++)
			if (strcmp(y->links[k].from, l->from) == 0 && strcmp(y->links[k].to, l->to) == 0)
				return true;
	}
	return false;
}

/* One line of the screen, cut to its width. */
struct screen {
	struct px_buf text;
	int width, lines, height; /* 0 = no limit */
};

static void line(struct screen *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void line(struct screen *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	if (s->height && s->lines >= s->height)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof text)
		n = sizeof text - 1;
	if (s->width && n > s->width)
		n = s->width;
	while (n > 0 && text[n - 1] == ' ')
		n--;
	px_buf_append(&s->text, text, (size_t)n);
	px_buf_append(&s->text, "\n", 1);
	s->lines++;
}

/* bar: '#' for the share of the fastest link. */
static void bar(double share, char out[BAR + 1])
{
	int n = (int)(share * BAR + 0.5);

	for (int i = 0; i < BAR; i++)
		out[i] = i < n ? '#' : '.';
	out[BAR] = '\0';
}

struct row {
	const struct pxd_daemon *daemon;
	const struct pxd_daemon_link *link;
	double rate, messages; /* per second */
};

/* rows_make: the links to show, with their rates since the sample before. New memory, *n of them; NULL: none. */
static struct row *rows_make(
	const struct pxd_daemons *now, const struct pxd_daemons *old, double seconds, int *n)
{
	struct row *rows;
	int all = 0;

	*n = 0;
	for (int i = 0; i < now->n; i++)
		all += now->list[i].nlinks;
	rows = calloc((size_t)all + 1, sizeof *rows);
	for (int i = 0; rows && i < now->n; i++) {
		const struct pxd_daemon *x = &now->list[i];

		for (int k = 0; k < x->nlinks; k++) {
			const struct pxd_daemon_link *l = &x->links[k], *was = find(old, x, l);
			struct row *r = &rows[*n];

			if (strcmp(x->role, "out") != 0 && seen_by_sender(now, x->job, l))
				continue;
			*r = (struct row){ x, l, 0, 0 };
			if (was && seconds > 0 && l->payload >= was->payload &&
				l->messages >= was->messages) {
				r->rate = (l->payload - was->payload) / seconds;
				r->messages = (l->messages - was->messages) / seconds;
			}
			++*n;
		}
	}
	return rows;
}

static void row_show(struct screen *s, const struct row *r, double most)
{
	const struct pxd_daemon_link *l = r->link;
	char way[2 * PX_NAME_MAX + 32], b[BAR + 1], rtt[24] = "-", ratio[24] = "-", queued[16], payload[16];

	snprintf(way, sizeof way, "%s->%s", l->from, l->to);
	if (r->daemon->gateway > 0)
		snprintf(way + strlen(way), 16, "/%.0f", r->daemon->gateway);
	bar(most > 0 ? r->rate / most : 0, b);
	if (l->rtt_us > 0)
		snprintf(rtt, sizeof rtt, "%.2f ms", l->rtt_us / 1e3);
	if (l->coded > 0)
		snprintf(ratio, sizeof ratio, "%.2f", l->plain / l->coded);
	line(s, "%-22s %-11s %s %9.2f %9.0f %9s %6s %9s %9s %10.0f", way, l->state, b, r->rate / 1e6,
		r->messages, rtt, ratio, pxd_memory_text(l->queued, queued),
		pxd_size_text(l->payload, payload), l->messages);
}

static void show(
	struct screen *s, const struct pxd_daemons *now, const struct pxd_daemons *old, double seconds)
{
	double most = 0;
	int n;
	struct row *rows = rows_make(now, old, seconds, &n);
	time_t t = time(NULL);
	struct tm tm;
	char clock[16];

	strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&t, &tm));
	line(s, "pacxctl top  %s  %d daemon%s  %d link%s%s", clock, now->n, now->n == 1 ? "" : "s", n,
		n == 1 ? "" : "s", now->silent ? "  (some daemons do not answer)" : "");
	for (int i = 0; rows && i < n; i++)
		most = rows[i].rate > most ? rows[i].rate : most;
	for (int i = 0, end; rows && i < n; i = end) {
		const char *job = rows[i].daemon->job;

		line(s, "%s", "");
		line(s, "job %s", job);
		line(s, "%-22s %-11s %-*s %9s %9s %9s %6s %9s %9s %10s", "LINK", "STATE", BAR, "RATE", "MB/s",
			"MSG/s", "LATENCY", "RATIO", "QUEUED", "PAYLOAD", "MESSAGES");
		for (end = i; end < n && strcmp(rows[end].daemon->job, job) == 0; end++)
			row_show(s, &rows[end], most);
		line(s, "%-22s %-11s %9s %21s", "DAEMON", "PID", "MEMORY", "BUFFER");
		for (int k = 0; k < now->n; k++) {
			const struct pxd_daemon *x = &now->list[k];
			char name[PX_NAME_MAX + 32], memory[16], used[16], all[16], buffer[40];

			if (strcmp(x->job, job) != 0)
				continue;
			snprintf(name, sizeof name, "%s:%s/%.0f", x->site, x->role, x->gateway);
			snprintf(buffer, sizeof buffer, "%s of %s", pxd_memory_text(x->used, used),
				pxd_memory_text(x->buffer, all));
			line(s, "%-22s %-11.0f %9s %21s", name, x->pid, pxd_memory_text(x->memory, memory),
				buffer);
		}
	}
	if (now->n == 0)
		line(s, "no daemon of yours runs on this machine");
	free(rows);
}

static void screen_size(struct screen *s)
{
	struct winsize w;

	if (ioctl(1, TIOCGWINSZ, &w) < 0 || w.ws_col < 20 || w.ws_row < 4)
		w = (struct winsize){ .ws_col = 120, .ws_row = 40 };
	s->width = w.ws_col;
	s->height = w.ws_row - 1;
}

/* pause_or_key: wait; true when it is time to quit. */
static bool pause_or_key(bool keys, double seconds)
{
	uint64_t until = px_now_ns() + (uint64_t)(seconds * 1e9);

	while (!stop && px_now_ns() < until) {
		struct pollfd p = { keys ? 0 : -1, POLLIN, 0 };
		char c;

		if (poll(&p, 1, (int)((until - px_now_ns()) / 1000000 + 1)) <= 0 || !p.revents)
			continue;
		if (read(0, &c, 1) != 1)
			keys = false; /* end of file, or no terminal any more */
		else if (c == 'q' || c == 'Q' || c == 3)
			return true;
	}
	return stop;
}

/* number_option: a number in a range, or an exit after a message. */
static bool number_option(const char *name, const char *text, double least, double most, double *out)
{
	char *end;
	double x = strtod(text, &end);

	if (end == text || *end || !(x >= least && x <= most)) {
		fprintf(stderr, "pacxctl: top: %s: found '%s', expected a number from %g to %g\n", name, text,
			least, most);
		return false;
	}
	*out = x;
	return true;
}

static int rounds_run(const char *job, double seconds, long rounds, bool screen)
{
	struct pxd_daemons old = { 0 }, now;
	uint64_t then = px_now_ns();
	bool quit;
	int rc = pxd_daemons_read(&old, job);

	quit = rc < 0 || pause_or_key(screen, screen && seconds > 0.5 ? 0.5 : seconds);
	for (long i = 0; !quit && (rounds == 0 || i < rounds); i++) {
		struct screen s = { .lines = 0 };

		rc = pxd_daemons_read(&now, job);
		if (rc < 0)
			break;
		if (screen)
			screen_size(&s);
		show(&s, &now, &old, (double)(px_now_ns() - then) / 1e9);
		then = px_now_ns();
		pxd_daemons_free(&old);
		old = now;
		if (screen)
			fputs("\033[H\033[J", stdout);
		else if (i > 0)
			putchar('\n');
		fwrite(px_buf_data(&s.text), 1, px_buf_len(&s.text), stdout);
		px_buf_fini(&s.text);
		fflush(stdout);
		if (rounds == 0 || i + 1 < rounds)
			quit = pause_or_key(screen, seconds);
	}
	pxd_daemons_free(&old);
	return rc;
}

int pxd_ctl_top(int argc, char **argv)
{
	struct sigaction quit = { .sa_handler = on_signal };
	bool screen = isatty(1);
	double seconds = 1, rounds = screen ? 0 : 1;
	int opt, rc;

	while ((opt = getopt(argc, argv, "d:n:")) != -1) {
		if ((opt == 'd' && number_option("-d", optarg, 0.1, 3600, &seconds)) ||
			(opt == 'n' && number_option("-n", optarg, 1, 1e9, &rounds)))
			continue;
		if (opt == '?')
			fprintf(stderr, "pacxctl: see pacxctl --help\n");
		return PXD_CTL_USAGE;
	}
	if (argc - optind > 1) {
		fprintf(stderr, "pacxctl: top: found '%s', expected one job at most\n", argv[optind + 1]);
		return PXD_CTL_USAGE;
	}
	sigaction(SIGINT, &quit, NULL);
	sigaction(SIGTERM, &quit, NULL);
	sigaction(SIGHUP, &quit, NULL);
	if (screen) {
		setvbuf(stdout, NULL, _IOFBF, 65536);
		screen_open();
	}
	rc = rounds_run(argv[optind], seconds, (long)rounds, screen);
	if (screen)
		screen_close();
	if (rc < 0)
		fprintf(stderr, "pacxctl: out of memory\n");
	return rc < 0 ? PXD_CTL_WRONG : 0;
}
