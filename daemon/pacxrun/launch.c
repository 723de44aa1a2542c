/* launch.c: Design: every site is `pacxrun --guard -p PID /bin/sh -c COMMAND` in a session of its own.
 *
 *  1. A site counts as running until its guard has ended. Its pipes are closed only at their end of file.
 *  2. The first site that fails decides the exit status. The others get FAIL_WAIT_MS to end by themselves
 *     (they lose their links), then SIGTERM; the first signal to pacxrun does that at once.
 *  3. SIGTERM goes to guards only, once each: they know what belongs to the site. A guard kills after 5 s,
 *     pacxrun kills every descendant after KILL_WAIT_MS, and at once on a second signal.
 *  4. pacxrun is a subreaper: what a killed guard leaves behind becomes our child, and is ended
 *     (launch_sweep).
 *  5. The loop ends when all guards have ended, no orphan is left, the pipes have ended, and all output is
 *     written.
 */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <uv.h>

#include "base/err.h"
#include "descend.h"
#include "far_signal.h"
#include "feeder.h"
#include "muster.h"
#include "output.h"
#include "records.h"
#include "rundir.h"
#include "signals.h"
#include "start_env.h"

#define FAIL_WAIT_MS                                                                                         \
	3000 /* from the first failure to SIGTERM for the others: an ABORT tells them sooner, and why */
#define KILL_WAIT_MS 7000 /* from SIGTERM to SIGKILL for all that is left */
#define PIPE_WAIT_MS 2000 /* for the end of the pipes when all processes have ended */
#define JUDGE_MS                                                                                             \
	1000 /* from the end of a site that said nothing to the verdict: another's word may be on its way */
#define SWEEP_MS    100
#define ORPHAN_TERM 10 /* sweeps with SIGTERM before SIGKILL */
#define READ_SIZE   65536

/* Exit status of a job of which every launcher has ended with 0, and that was none, or not to its end. */
#define EXIT_NEVER     3
#define EXIT_EARLY     1
#define EXIT_UNWRITTEN 1 /* all went well, but not all of the output, or the statistics, could be written */

struct launch;

struct stream {
	uv_pipe_t pipe;
	struct launch *l;
	struct pxd_output *to;
	struct pxd_filter filter;
	int site;
	bool filtered, open, paused;
};

struct site_run {
	struct launch *l;
	const struct pxd_start *start;
	uv_process_t process;
	bool running;
	bool told;          /* has got SIGTERM */
	bool judged;        /* it has ended, and we know what that means */
	int status;         /* exit status as a shell shows it; -1 = not started or still running */
	struct pxd_far far; /* signals behind ssh */
	struct stream out, err;
};

struct launch {
	uv_loop_t loop;
	const struct pxd_hosts *h;
	const struct pxd_launch_options *o;
	struct site_run *sites;
	struct pxd_output out, err;
	struct pxd_stats *stats;
	struct pxd_muster muster;
	struct pxd_feed_window *window; /* of the standard input of rank 0 */
	struct pxd_signals signals;
	uv_timer_t end, sweep, pipes, judge;
	int running; /* guards */
	int code;    /* of the first failure */
	bool failed, ending, stopped;
	int interrupts;
	int sweeps;     /* in a row that found orphans */
	bool unwritten; /* some output could not be written */
	bool orphans;   /* a guard was killed: look for what it left */
	bool given_up;  /* on output that nobody takes, after a signal */
	char read[READ_SIZE];
};

static void launch_check(struct launch *l);
static void judge_late(uv_timer_t *t);

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	char line[1200] = "pacxrun: ";
	size_t n = strlen(line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + n, sizeof line - n - 1, fmt, ap);
	va_end(ap);
	strcat(line, "\n");
	if (write(2, line, strlen(line)) < 0)
		return; /* nobody listens */
}

/* launch_kill: everything below us, now. */
static void launch_kill(struct launch *l)
{
	pxd_descend_signal(getpid(), SIGKILL, PXD_DESCEND_ALL);
	l->orphans = true;
	l->sweeps = ORPHAN_TERM;
	uv_timer_start(&l->sweep, l->sweep.timer_cb, SWEEP_MS, SWEEP_MS);
}

static void end_kill(uv_timer_t *t)
{
	launch_kill(t->data);
}

/* launch_end: tell every site to end; kill what has not done so in time. */
static void launch_end(struct launch *l)
{
	for (int i = 0; i < l->h->nsites; i++) {
		struct site_run *s = &l->sites[i];

		if (s->running && !s->told) {
			uv_process_kill(&s->process, SIGTERM);
			s->told = true;
		}
	}
	if (!l->ending)
		uv_timer_start(&l->end, end_kill, KILL_WAIT_MS, SWEEP_MS);
	l->ending = true;
}

static void end_wait_over(uv_timer_t *t)
{
	struct launch *l = t->data;

	for (int i = 0; i < l->h->nsites; i++)
		if (l->sites[i].running)
			say("site '%s' is still running; ending it", l->sites[i].start->site->name);
	launch_end(l);
}

/* launch_fail: the first failure decides. */
static void launch_fail(struct launch *l, int code, bool at_once)
{
	if (!l->failed) {
		l->failed = true;
		l->code = code;
	}
	if (at_once)
		launch_end(l);
	else if (!l->ending && !uv_is_active((uv_handle_t *)&l->end))
		uv_timer_start(&l->end, end_wait_over, FAIL_WAIT_MS, 0);
}

static void signal_end(void *owner, int signum)
{
	struct launch *l = owner;

	l->interrupts++;
	if (l->interrupts == 1) {
		say("got %s; ending all sites (once more kills them)", strsignal(signum));
		l->failed = true;
		l->code = 128 + signum;
		launch_end(l);
	} else {
		launch_kill(l);
	}
	launch_check(l);
}

static void signal_lost(const char *site, int signum, const char *reason)
{
	say("site '%s' does not get the signal %s: %s", site, strsignal(signum), reason);
}

/* To every site, for its launcher. To stop and to go on is for what runs here. */
static void signal_pass(void *owner, int signum)
{
	struct launch *l = owner;
	char why[PXD_WHY];

	for (int i = 0; i < l->h->nsites; i++) {
		struct site_run *s = &l->sites[i];

		if (!s->running)
			continue;
		if (!s->start->remote || signum == SIGTSTP || signum == SIGCONT)
			uv_process_kill(&s->process, signum);
		else if (pxd_far_signal(&s->far, s->start, signum, &l->loop, l->o->prefix, signal_lost, why,
				 sizeof why) < 0)
			signal_lost(s->start->site->name, signum, why);
	}
}

/* launch_sweep: orphans of a killed guard are our children now; end them and collect them. */
static void launch_sweep(uv_timer_t *t)
{
	struct launch *l = t->data;
	pid_t *keep = calloc((size_t)l->h->nsites + 1, sizeof *keep);
	int n = 0, sig = l->sweeps == 0 ? SIGTERM : l->sweeps >= ORPHAN_TERM ? SIGKILL : 0;

	if (!keep)
		return;
	for (int i = 0; i < l->h->nsites; i++)
		if (l->sites[i].running)
			keep[n++] = l->sites[i].process.pid;
	if (pxd_descend_orphans(getpid(), keep, n, sig) == 0) {
		l->orphans = false;
		l->sweeps = 0;
		uv_timer_stop(t);
	} else {
		l->sweeps++;
	}
	free(keep);
	launch_check(l);
}

/* sites_judge: those that have ended by themselves and said all: were they part of the job? late: no more word will come. */
static void sites_judge(struct launch *l, bool late)
{
	for (int i = 0; i < l->h->nsites; i++) {
		struct site_run *s = &l->sites[i];
		char why[PXD_WHY + 256];
		enum pxd_verdict v;

		if (s->judged || s->err.open || !s->start->records)
			continue;
		if (s->status > 0 && !s->told && pxd_muster_unheard(&l->muster, i, why, sizeof why))
			say("%s", why);
		s->judged = s->status > 0;
		if (l->failed || s->status != 0)
			continue;
		if (!late && l->muster.step[i] == PXD_STEP_NONE) {
			if (!uv_is_active((uv_handle_t *)&l->judge))
				uv_timer_start(&l->judge, judge_late, JUDGE_MS, 0);
			continue;
		}
		v = pxd_muster_judge(&l->muster, i, why, sizeof why);
		s->judged = v != PXD_VERDICT_WAIT;
		if (v != PXD_VERDICT_NEVER && v != PXD_VERDICT_EARLY)
			continue;
		say("%s", why);
		launch_fail(l, v == PXD_VERDICT_NEVER ? EXIT_NEVER : EXIT_EARLY, true);
	}
}

static void judge_late(uv_timer_t *t)
{
	struct launch *l = t->data;

	sites_judge(l, true);
	launch_check(l);
}

static void stream_closed(uv_handle_t *handle)
{
	struct stream *s = handle->data;

	s->open = false;
	sites_judge(s->l, false);
	launch_check(s->l);
}

static void filter_text(void *arg, const char *data, size_t n)
{
	struct stream *s = arg;

	pxd_output_put(s->to, data, n);
}

static void filter_record(void *arg, const char *record)
{
	struct stream *s = arg;

	if (s->to == &s->l->err && s->l->window &&
		pxd_feed_window_put(s->l->window, s->l->h->sites[s->site].name, record))
		return;
	if (s->to == &s->l->err &&
		pxd_far_put(&s->l->sites[s->site].far, s->l->h->sites[s->site].name, record))
		return;
	if (s->to == &s->l->err && pxd_muster_put(&s->l->muster, s->site, record))
		return;
	if (s->to == &s->l->out)
		pxd_stats_put(s->l->stats, record);
	else
		pxd_output_put(s->to, record, PXD_RECORD);
}

static void stream_end(struct stream *s)
{
	const struct pxd_filter_sink sink = { filter_text, filter_record, s };

	if (s->filtered)
		pxd_filter_end(&s->filter, &sink);
	if (!uv_is_closing((uv_handle_t *)&s->pipe))
		uv_close((uv_handle_t *)&s->pipe, stream_closed);
}

static void stream_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	struct stream *s = handle->data;

	(void)size;
	*buf = uv_buf_init(s->l->read, READ_SIZE);
}

static void stream_read(uv_stream_t *handle, ssize_t n, const uv_buf_t *buf)
{
	struct stream *s = handle->data;
	const struct pxd_filter_sink sink = { filter_text, filter_record, s };

	if (n < 0) {
		stream_end(s);
		return;
	}
	if (s->filtered)
		pxd_filter_put(&s->filter, buf->base, (size_t)n, &sink);
	else
		pxd_output_put(s->to, buf->base, (size_t)n);
	if (pxd_output_full(s->to)) {
		uv_read_stop(handle);
		s->paused = true;
	}
}

static void stream_resume(struct stream *s, struct pxd_output *to)
{
	if (s->to != to || !s->paused || !s->open || uv_is_closing((uv_handle_t *)&s->pipe))
		return;
	s->paused = false;
	uv_read_start((uv_stream_t *)&s->pipe, stream_alloc, stream_read);
}

static void output_ready(struct pxd_output *o)
{
	struct launch *l = o->owner;

	if (o->error && !o->told) {
		o->told = true;
		l->unwritten = true;
		if (o == &l->out)
			say(o->error == EPIPE ? "nobody reads the output any more; ending all sites"
					      : "the output cannot be written: %s",
				strerror(o->error));
		/* Whoever reads our output went away: as if the signal had hit us. */
		if (o->error == EPIPE && o == &l->out)
			launch_fail(l, 128 + SIGPIPE, true);
	}
	if (!pxd_output_full(o)) {
		for (int i = 0; i < l->h->nsites; i++) {
			stream_resume(&l->sites[i].out, o);
			stream_resume(&l->sites[i].err, o);
		}
	}
	launch_check(l);
}

static void site_closed(uv_handle_t *handle)
{
	(void)handle; /* part of the site_run array */
}

static void site_ended(uv_process_t *process, int64_t status, int sig)
{
	struct site_run *s = process->data;
	struct launch *l = s->l;

	s->running = false;
	s->status = sig ? 128 + sig : (int)status;
	l->running--;
	uv_close((uv_handle_t *)process, site_closed);
	if (s->status && !l->ending) {
		if (sig)
			say("site '%s' was ended by signal %d (%s)", s->start->site->name, sig,
				strsignal(sig));
		else
			say("site '%s' ended with exit status %d", s->start->site->name, s->status);
	}
	if (s->status)
		launch_fail(l, s->status, false);
	sites_judge(l, false);
	if (!l->orphans || sig == SIGKILL) { /* cheap, and the only way to know */
		l->orphans = true;
		uv_timer_start(&l->sweep, launch_sweep, 0, SWEEP_MS);
	}
	launch_check(l);
}

static void pipes_over(uv_timer_t *t)
{
	struct launch *l = t->data;

	l->given_up = l->interrupts > 0;
	for (int i = 0; i < l->h->nsites; i++) {
		if (l->sites[i].out.open)
			stream_end(&l->sites[i].out);
		if (l->sites[i].err.open)
			stream_end(&l->sites[i].err);
	}
	launch_check(l);
}

/* launch_check: is everything over? */
static void launch_check(struct launch *l)
{
	bool drained = l->given_up || (pxd_output_drained(&l->out) && pxd_output_drained(&l->err));
	bool open = false, paused = false;

	if (l->running > 0 || l->orphans || l->stopped || uv_is_active((uv_handle_t *)&l->judge))
		return;
	for (int i = 0; i < l->h->nsites; i++) {
		open |= l->sites[i].out.open || l->sites[i].err.open;
		paused |= l->sites[i].out.paused || l->sites[i].err.paused;
	}
	if (!open && drained) {
		l->stopped = true;
		uv_stop(&l->loop);
		return;
	}
	/* A slow reader of ours may take its time, unless we were told to end; a stranger who holds a
	 * pipe may not. */
	if ((l->interrupts || (open && drained && !paused)) && !uv_is_active((uv_handle_t *)&l->pipes))
		uv_timer_start(&l->pipes, pipes_over, PIPE_WAIT_MS, 0);
}

static int stream_init(struct stream *s, struct launch *l, int site, struct pxd_output *to, bool filtered)
{
	s->l = l;
	s->site = site;
	s->to = to;
	s->filtered = filtered;
	s->open = true;
	uv_pipe_init(&l->loop, &s->pipe, 0);
	s->pipe.data = s;
	return 0;
}

static void start_wrong(const struct site_run *s, const char *guard, int rc)
{
	if (rc == UV_E2BIG)
		say("cannot start site '%s': its start command has %zu bytes with the arguments of the "
		    "program, "
		    "and the kernel allows %ld bytes for one argument; put the arguments of the program into "
		    "a file",
			s->start->site->name, strlen(s->start->command), 32 * sysconf(_SC_PAGESIZE) - 1);
	else
		say("cannot start site '%s': %s: %s", s->start->site->name, guard, uv_strerror(rc));
}

static int site_start(struct launch *l, struct site_run *s)
{
	struct pxd_feeder *feed = calloc(1, sizeof *feed); /* the thread outlives this call */
	uv_thread_t thread;
	char key[PXD_KEY_TEXT + 16] = "";
	char guard[4096], ppid[32];
	char *argv[] = { guard, "--guard", "-p", ppid, "--", "/bin/sh", "-c", s->start->command, NULL };
	char **env;
	uv_stdio_container_t stdio[3] = { 0 };
	uv_process_options_t po = { 0 };
	int in, rc;

	if (l->o->key && !s->start->key_stdin)
		snprintf(key, sizeof key, "PACX_KEY=%s", l->o->key);
	env = pxd_start_env(s->start, key);
	if (!env || !feed) {
		free(env);
		free(feed);
		return UV_ENOMEM;
	}
	snprintf(guard, sizeof guard, "%s/bin/pacxrun", l->o->prefix);
	snprintf(ppid, sizeof ppid, "%ld", (long)getpid());
	stream_init(&s->out, l, (int)(s - l->sites), &l->out, l->stats != NULL);
	stream_init(&s->err, l, (int)(s - l->sites), &l->err, s->start->records);
	in = pxd_feeder_choose(s->start, l->o->key, l->o->stdin_fifo, l->window, feed);
	stdio[0].flags = in >= 0 ? UV_INHERIT_FD : UV_IGNORE; /* libuv opens /dev/null for 0 */
	stdio[0].data.fd = in;
	stdio[1].flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE;
	stdio[1].data.stream = (uv_stream_t *)&s->out.pipe;
	stdio[2].flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE;
	stdio[2].data.stream = (uv_stream_t *)&s->err.pipe;
	po.file = guard;
	po.args = argv;
	po.env = env;
	po.stdio = stdio;
	po.stdio_count = 3;
	po.flags = UV_PROCESS_DETACHED;
	po.exit_cb = site_ended;
	s->process.data = s;
	rc = uv_spawn(&l->loop, &s->process, &po);
	free(env);
	pxd_key_wipe(key, sizeof key);
	if (in > 0)
		close(in);
	if (rc < 0) {
		free(feed);
		start_wrong(s, guard, rc);
		uv_close((uv_handle_t *)&s->process, site_closed);
		stream_end(&s->out);
		stream_end(&s->err);
		return rc;
	}
	s->running = true;
	l->running++;
	if (!feed->fifo && feed->to < 0)
		free(feed);
	else if (uv_thread_create(&thread, pxd_feeder_run, feed) < 0)
		return UV_EAGAIN;
	uv_read_start((uv_stream_t *)&s->out.pipe, stream_alloc, stream_read);
	uv_read_start((uv_stream_t *)&s->err.pipe, stream_alloc, stream_read);
	return 0;
}

static int stats_save(const struct launch *l)
{
	int *exits = calloc((size_t)l->h->nsites, sizeof *exits);
	char why[PXD_WHY];
	int rc = PX_ENOMEM;

	for (int i = 0; exits && i < l->h->nsites; i++)
		exits[i] = l->sites[i].status;
	if (exits) {
		rc = pxd_stats_write(l->stats, l->h, exits, l->o->stats, why, sizeof why);
		if (rc < 0)
			say("%s", why);
	}
	free(exits);
	return rc;
}

int pxd_launch_run(const struct pxd_hosts *h, const struct pxd_plan *p, const struct pxd_launch_options *o)
{
	struct launch *l = calloc(1, sizeof *l);
	struct site_run *sites = calloc((size_t)h->nsites, sizeof *sites);
	int code;

	if (!l || !sites || pxd_muster_init(&l->muster, h) < 0) {
		free(l);
		free(sites);
		say("out of memory");
		return 1;
	}
	l->h = h;
	l->o = o;
	l->sites = sites;
	uv_loop_init(&l->loop);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	l->signals.end = signal_end;
	l->signals.pass = signal_pass;
	l->signals.owner = l;
	pxd_signals_start(&l->signals, &l->loop);
	uv_timer_init(&l->loop, &l->end);
	uv_timer_init(&l->loop, &l->sweep);
	uv_timer_init(&l->loop, &l->pipes);
	uv_timer_init(&l->loop, &l->judge);
	l->end.data = l->sweep.data = l->pipes.data = l->judge.data = l;
	l->sweep.timer_cb = launch_sweep;
	pxd_output_init(&l->out, &l->loop, 1, output_ready, l);
	pxd_output_init(&l->err, &l->loop, 2, output_ready, l);
	if (o->stats && !(l->stats = pxd_stats_new()))
		say("out of memory for statistics");
	for (int i = 0; i < h->nsites; i++) {
		struct site_run *s = &sites[i];

		s->l = l;
		s->start = &p->starts[i];
		s->status = -1;
		if (!s->start->command || (o->only >= 0 && o->only != i) || l->ending)
			continue;
		if (s->start->pump_stdin && !(l->window = pxd_feed_window_new()))
			say("out of memory for standard input");
		if (o->verbose)
			say("site '%s': %.500s", s->start->site->name, s->start->command);
		if (site_start(l, s) < 0)
			launch_fail(l, 127, true);
	}
	launch_check(l);
	if (!l->stopped)
		uv_run(&l->loop, UV_RUN_DEFAULT);
	if (l->stats && stats_save(l) < 0)
		l->unwritten = true;
	pxd_stats_free(l->stats);
	pxd_rundir_sweep_all(h->job_id); /* launchers kill daemons before these could remove their sockets */
	code = !l->code && l->unwritten ? EXIT_UNWRITTEN : l->code;
	/* The loop, the outputs and the sites stay: a feeder may still be reading, and the process
	 * ends now. */
	return code;
}
