/* far_signal.c: see far_signal.h. */
#include "far_signal.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "quote.h"
#include "record.h"

#define PATIENCE_MS 30000 /* for a login at the other end */

struct errand {
	uv_process_t process;
	uv_timer_t over;
	const char *site;
	int signum;
	int open; /* handles */
	void (*lost)(const char *site, int signum, const char *reason);
};

bool pxd_far_put(struct pxd_far *f, const char *site, const char *record)
{
	const char *pid = pxd_record_value(record, site, "guard", "pid");

	if (pid)
		f->guard = strtol(pid, NULL, 10);
	return pid != NULL;
}

static void closed(uv_handle_t *handle)
{
	struct errand *e = handle->data;

	if (--e->open == 0)
		free(e);
}

static void ended(uv_process_t *process, int64_t status, int sig)
{
	struct errand *e = process->data;
	char why[64];

	if (sig)
		snprintf(why, sizeof why, "its messenger was ended by signal %d", sig);
	else
		snprintf(why, sizeof why, "its messenger ended with exit status %d", (int)status);
	if (sig || status)
		e->lost(e->site, e->signum, why);
	uv_close((uv_handle_t *)&e->over, closed);
	uv_close((uv_handle_t *)process, closed);
}

static void over(uv_timer_t *t)
{
	struct errand *e = t->data;

	uv_process_kill(&e->process, SIGTERM);
}

/* name_of: what kill -s takes everywhere; the numbers are not the same everywhere. */
static const char *name_of(int signum)
{
	return signum == SIGUSR1 ? "USR1" : signum == SIGUSR2 ? "USR2" : "XCPU";
}

int pxd_far_signal(const struct pxd_far *f, const struct pxd_start *st, int signum, uv_loop_t *loop,
	const char *prefix, void (*lost)(const char *site, int signum, const char *reason), char *why,
	size_t cap)
{
	char pid[24], ppid[24], guard[PATH_MAX];
	char *signal_word[] = { (char *)name_of(signum), NULL }, *pid_word[] = { pid, NULL };
	const struct pxd_hole holes[] = { { "signal", signal_word }, { "pid", pid_word } };
	char *argv[] = { guard, "--guard", "-p", ppid, "--", "/bin/sh", "-c", NULL, NULL };
	uv_stdio_container_t stdio[3] = { { .flags = UV_IGNORE }, { .flags = UV_INHERIT_FD, .data.fd = 2 },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 } };
	uv_process_options_t po = { .file = guard,
		.args = argv,
		.stdio = stdio,
		.stdio_count = 3,
		.exit_cb = ended,
		.flags = UV_PROCESS_DETACHED };
	struct errand *e;
	int rc;

	if (!st->far_kill) {
		snprintf(why, cap,
			"it is behind a remote shell and its start command has no {guard}, which would take "
			"it");
		return -1;
	}
	if (!f->guard) {
		snprintf(why, cap, "its {guard} has not said that it runs");
		return -1;
	}
	e = calloc(1, sizeof *e);
	snprintf(pid, sizeof pid, "%ld", f->guard);
	snprintf(ppid, sizeof ppid, "%ld", (long)getpid());
	snprintf(guard, sizeof guard, "%s/bin/pacxrun", prefix);
	argv[7] = pxd_text_replace(st->far_kill, holes, 2);
	if (!e || !argv[7]) {
		free(e);
		free(argv[7]);
		snprintf(why, cap, "out of memory");
		return -1;
	}
	*e = (struct errand){ .site = st->site->name, .signum = signum, .open = 2, .lost = lost };
	uv_timer_init(loop, &e->over);
	e->process.data = e->over.data = e;
	rc = uv_spawn(loop, &e->process, &po);
	free(argv[7]);
	if (rc < 0) {
		snprintf(why, cap, "%s: %s", guard, uv_strerror(rc));
		uv_close((uv_handle_t *)&e->over, closed);
		uv_close((uv_handle_t *)&e->process, closed);
		return -1;
	}
	uv_timer_start(&e->over, over, PATIENCE_MS, 0);
	return 0;
}
