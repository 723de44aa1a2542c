/* pacxd.c: the relay daemon: a rank of a site's native job, in role out or in.
 *
 * main reads the hostfile from the environment, starts the native MPI, attaches, and runs the loop: poll
 * the native side, poll libuv, wait by the one policy. This is the one place where the process decides to
 * end. The waits are ppoll on libuv's own epoll descriptor, so that TCP wakes a napping daemon at once.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bell.h"
#include "err.h"
#include "frame.h"
#include "rollcall.h"
#include "key.h"
#include "pacxd.h"
#include "record.h"
#include "stats.h"
#include "tls.h"
#include "vendor.h"
#include "wait.h"
#include "yield_hook.h"

#ifndef PX_VERSION_TEXT
#define PX_VERSION_TEXT "0.1"
#endif
#define STOOD_NS 1000000000u /* a turn of the loop takes longer only if somebody has stopped us */

static const char *socket_path = ""; /* what a signal has to remove */
static sigset_t awake;               /* the signals that are blocked in a nap */

static void on_term(int sig)
{
	unlink(socket_path);
	_exit(128 + sig);
}

static void on_bell(int sig)
{
	(void)sig;
}

static void process_prepare(void)
{
	struct sigaction quiet = { .sa_handler = on_term }, ignore = { .sa_handler = SIG_IGN },
			 bell = { .sa_handler = on_bell };
	pid_t parent = getppid();
	struct rlimit files;
	cpu_set_t all;
	sigset_t bells;

	sigaction(SIGTERM, &quiet, NULL);
	/* The launcher's process on this node is our parent: when it dies nobody is left to end us. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		raise(SIGTERM);
	sigaction(SIGPIPE, &ignore, NULL);
	/* What a batch system or a user has to say is for the application. */
	sigaction(SIGUSR1, &ignore, NULL);
	sigaction(SIGUSR2, &ignore, NULL);
	sigaction(SIGXCPU, &ignore, NULL);
	/* Only nap() hears the bell; the threads of the native MPI, which begin later, never do. */
	sigaction(SIGURG, &bell, NULL);
	sigemptyset(&bells);
	sigaddset(&bells, SIGURG);
	sigprocmask(SIG_BLOCK, &bells, &awake);
	sigdelset(&awake, SIGURG);
	/* Many sites, gateways and streams are more connections than the usual soft limit. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	/* Some launchers bind each rank to a core; a daemon shares it with nobody's leave. The kernel cuts
	 * the set down to what the job may use. */
	memset(&all, 0xff, sizeof all);
	sched_setaffinity(0, sizeof all, &all);
}

static int env_int(const char *name, int otherwise)
{
	const char *v = getenv(name);

	return v && *v ? atoi(v) : otherwise;
}

/* Our number among the daemons: even = out, odd = in. PX_EINVAL when our place is not a daemon's. */
static int index_find(struct pxd *d)
{
	const char *order = getenv("PACX_DAEMONS");
	int daemons = 2 * env_int("PACX_GATEWAYS", 1), rank, size, index;

	px_n.Comm_rank(MPI_COMM_WORLD, &rank);
	px_n.Comm_size(MPI_COMM_WORLD, &size);
	index = order && strcmp(order, "first") == 0 ? rank : rank - (size - daemons);
	if (index >= 0 && index < daemons)
		return index;
	pxd_fail(&d->node, PXD_EXIT_CONFIG,
		"pacxd is native rank %d of %d, but the %d daemons have to be the %s ones", rank, size,
		daemons, order && strcmp(order, "first") == 0 ? "first" : "last");
	return PX_EINVAL;
}

static void hello_make(struct pxd *d)
{
	struct px_hello *h = &d->node.hello;
	int *ub = NULL, flag = 0, integer = 0, logical = 0;

	h->protocol = PX_PROTOCOL_VERSION;
	h->site = (uint16_t)d->node.self;
	h->nsites = (uint16_t)d->node.hosts->nsites;
	h->gateway = (uint16_t)d->node.gateway;
	h->gateways = (uint16_t)d->node.hosts->sites[d->node.self].ngateways;
	h->streams = PXD_STREAMS_MAX;
	h->flavor = (uint16_t)px_vendor_flavor();
	h->nranks = (uint32_t)d->map.nranks;
	px_n.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &ub, &flag);
	h->tag_ub = flag ? *ub : 32767;
	px_repr_native(&h->repr);
	px_n.Type_size(MPI_INTEGER, &integer);
	px_n.Type_size(MPI_LOGICAL, &logical);
	if (integer > 0 && logical > 0) { /* an MPI without Fortran has none */
		h->repr.size_fint = (uint8_t)integer;
		h->repr.size_flogical = (uint8_t)logical;
	}
	snprintf(h->job, sizeof h->job, "%s", d->node.hosts->job_id);
	snprintf(h->name, sizeof h->name, "%s", pxd_site_name(&d->node, d->node.self));
	snprintf(h->vendor, sizeof h->vendor, "%s", px_vendor_name());
}

/* The job's key, when any link of ours is encrypted. */
static int tls_open(struct pxd *d)
{
	uint8_t key[PXD_KEY_SIZE];
	char why[PXD_WHY];
	bool needed = false;
	int rc;

	pxd_jobhash(d->node.hosts->job_id, d->node.jobhash);
	for (int i = 0; i < d->node.hosts->nsites; i++)
		needed |= i != d->node.self && !pxd_hosts_link(d->node.hosts, d->node.self, i)->plain;
	if (!needed)
		return PX_OK;
	rc = pxd_key_take(d->node.hosts, d->node.self, key, why, sizeof why);
	if (rc == 0)
		rc = pxd_tls_ctx_new(&d->node.tls, key, d->node.jobhash, d->node.self, why, sizeof why);
	pxd_key_wipe(key, sizeof key);
	if (rc < 0)
		pxd_fail(&d->node, PXD_EXIT_CONFIG, "%s", why);
	return rc;
}

/* What this process has taken for itself. Pages of files are not in it: plugins of hwloc or OpenCL that come with a native MPI
 * bring tens of MiB of those, which the kernel shares and takes back as it likes. */
static long long anonymous_bytes(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	long long kib = 0;
	char line[256];

	while (f && fgets(line, sizeof line, f) && sscanf(line, "RssAnon: %lld kB", &kib) != 1)
		;
	if (f)
		fclose(f);
	return kib * 1024;
}

/* What pacxctl status and top show. */
static void status_make(void *arg, struct px_buf *b)
{
	struct pxd *d = arg;

	pxd_stats_add(b, "{\"pid\":%ld,\"job\":", (long)getpid());
	pxd_stats_quote(b, d->node.hosts->job_id);
	pxd_stats_add(b, ",\"site\":");
	pxd_stats_quote(b, pxd_site_name(&d->node, d->node.self));
	pxd_stats_add(b,
		",\"role\":\"%s\",\"gateway\":%d,\"version\":\"%s\",\"uptime_s\":%.1f,\"anon_bytes\":%lld,"
		"\"naps\":%llu,\"rung\":%llu,\"buffer_bytes\":%llu",
		d->role == &pxd_role_out ? "out" : "in", d->node.gateway, PX_VERSION_TEXT,
		(double)(px_now_ns() - d->started) / 1e9, anonymous_bytes(), (unsigned long long)d->naps,
		(unsigned long long)d->rung, (unsigned long long)d->node.hosts->sites[d->node.self].buffer);
	d->role->status(d, b);
	px_buf_append(b, "}", 1);
}

/* The start command has started another number of ranks than the hostfile says. */
static int ranks_refuse(struct pxd *d, int index)
{
	int want = d->node.hosts->sites[d->node.self].ranks;
	const char *form = getenv("PACX_FORM");
	bool counted = form && strcmp(form, "single") == 0 && d->map.nranks + 2 * d->map.gateways == want;

	/* One speaks for all: the first out-daemon's Abort ends the others, too. */
	if (index != 0)
		sleep(5);
	pxd_fail(&d->node, PXD_EXIT_CONFIG,
		"site %s was started with %d application ranks, but the hostfile says %d%s",
		pxd_site_name(&d->node, d->node.self), d->map.nranks, want,
		counted ? ": the daemons are among the processes of {app}; write -np {procs} {app}, or -np "
			  "{ranks} {app} : "
			  "-np {daemons} {pacxd}"
			: "");
	return PX_ERANKS;
}

/* From the native Init to an open role. 0 or PX_E..., after pxd_fail. */
static int daemon_open(struct pxd *d)
{
	int index = index_find(d), rc;
	char who[PX_NAME_MAX + 16], name[PX_JOB_MAX + PX_NAME_MAX + 32];

	if (index == 0 && pxd_roll_here(d) < 0)
		return PX_ETIMEOUT;
	/* Collective: all ranks of the site are in it, so even a misplaced daemon takes part. */
	rc = px_attach_roles(index < 0 || index % 2 == 0 ? PX_ROLE_OUT : PX_ROLE_IN, &d->map);
	if (index < 0)
		return index;
	if (rc < 0) {
		pxd_fail(&d->node, rc == PX_EINVAL ? PXD_EXIT_CONFIG : PXD_EXIT_INTERNAL,
			"cannot set up the native job: %s", px_strerror(rc));
		return rc;
	}
	pxd_roll_over();
	px_n.Comm_set_errhandler(d->map.relay, MPI_ERRORS_RETURN);
	snprintf(who, sizeof who, "pacxd[%s] %s", pxd_site_name(&d->node, d->node.self),
		index % 2 == 0 ? "out" : "in");
	px_log_init(who, PX_LOG_INFO);
	px_wait_setup(d->map.procs_here, true);
	d->node.gateway = index / 2;
	if (d->map.gateways != d->node.hosts->sites[d->node.self].ngateways) {
		pxd_fail(&d->node, PXD_EXIT_CONFIG,
			"site %s was started with %d gateways, but the hostfile says %d",
			pxd_site_name(&d->node, d->node.self), d->map.gateways,
			d->node.hosts->sites[d->node.self].ngateways);
		return PX_ECONF;
	}
	rc = tls_open(d);
	if (rc < 0)
		return rc;
	if (d->map.nranks != d->node.hosts->sites[d->node.self].ranks)
		return ranks_refuse(d, index);
	hello_make(d);
	d->node.reads = index % 2 == 1;
	d->role = d->node.reads ? &pxd_role_in : &pxd_role_out;
	rc = d->role->open(d);
	snprintf(name, sizeof name, "%s-%s-%s%d", d->node.hosts->job_id,
		pxd_site_name(&d->node, d->node.self), index % 2 == 0 ? "out" : "in", d->node.gateway);
	socket_path = d->status.path; /* written before the socket is made */
	if (rc == 0)
		pxd_status_open(&d->status, &d->node.loop, name, status_make, d);
	return rc;
}

/* tell: the site's first out-daemon tells pacxrun how far the site is (muster.h). Who started the site without pacxrun is not told. */
static void tell(const struct pxd *d, const char *step)
{
	const char *wanted = getenv("PACX_RECORDS");

	if (wanted && strcmp(wanted, "1") == 0 && d->node.gateway == 0 && d->role == &pxd_role_out)
		pxd_record_send(STDERR_FILENO, pxd_site_name(&d->node, d->node.self), "out", "life", step,
			strlen(step));
}

/* Wait up to ns for TCP, for the next timer of the loop, or for a rank that rings; what a rank finishes only polling notices. */
static void nap(struct pxd *d, struct px_wait *w, uint64_t ns)
{
	struct pollfd p = { .fd = uv_backend_fd(&d->node.loop), .events = POLLIN };
	int timer = uv_backend_timeout(&d->node.loop);
	struct timespec t;

	if (timer >= 0 && (uint64_t)timer * 1000000u < ns)
		ns = (uint64_t)timer * 1000000u;
	t.tv_sec = (time_t)(ns / 1000000000u);
	t.tv_nsec = (long)(ns % 1000000000u);
	if (px_bell_listen(w->heard) && ppoll(&p, 1, &t, &awake) < 0 && errno != EINTR)
		pxd_fail(&d->node, PXD_EXIT_INTERNAL, "cannot wait for events: %s", strerror(errno));
	d->naps++;
	d->rung += px_wait_woken(w);
}

/* The loop waits by itself: MPICH's polls from within it need not yield, too. */
static enum px_served looping(void)
{
	return PX_SERVED_LOOP;
}

static void loop_run(struct pxd *d)
{
	bool begun = false;
	struct px_wait w;
	uint64_t turn = px_now_ns();

	px_wait_init(&w);
	px_poll_serve = looping;
	while (!d->node.failed && !d->role->done(d)) {
		uint64_t before = d->node.events, ns = px_now_ns();
		bool some;

		/* Ctrl-Z and fg: the peers were stopped with us, and are not to blame for their silence. */
		if (ns - turn > STOOD_NS)
			px_now_stood(ns - turn);
		turn = px_now_ns();
		some = d->role->poll(d);
		if (!begun && d->world.state == PXD_WORLD_DONE) {
			begun = true;
			tell(d, "began");
		}
		uv_run(&d->node.loop, UV_RUN_NOWAIT);
		if (some || d->node.events != before) {
			px_wait_reset(&w);
			continue;
		}
		w.rings = d->world.state == PXD_WORLD_DONE && px_bell_all() && d->role->quiet(d);
		ns = px_wait_next(&w);
		if (ns > 0)
			nap(d, &w, ns);
	}
	px_poll_serve = NULL;
}

/* A job that ends well: nothing may be left behind. */
static void daemon_close(struct pxd *d)
{
	pxd_status_close(&d->status);
	tell(d, "ended");
	if (getenv("PACX_STATS"))
		d->role->report(d);
	d->role->close(d);
	if (uv_loop_close(&d->node.loop) < 0)
		px_log(PX_LOG_WARN, "the event loop is not empty at the end; please report this");
	pxd_tls_ctx_free(d->node.tls);
	pxd_world_drop(d);
	px_attach_drop(&d->map);
	pxd_hosts_free(d->node.hosts);
}

int main(int argc, char **argv)
{
	const struct timespec say = { 0, 10000000 };
	static struct pxd d;
	char why[PXD_WHY], who[PX_NAME_MAX + 16];
	const char *site = getenv("PACX_SITE");

	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		printf("pacxd %s (%s)\n", PX_VERSION_TEXT, PX_VENDOR);
		return 0;
	}
	d.started = px_now_ns();
	/* Buffers of segments go back to the system when they are freed: without these glibc would keep them. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	mallopt(M_TRIM_THRESHOLD, 1 << 20);
	snprintf(who, sizeof who, "pacxd[%.64s]", site ? site : "?");
	px_log_init(who, PX_LOG_INFO);
	process_prepare();
	if (pxd_hosts_from_env(&d.node.hosts, &d.node.self, why, sizeof why) < 0) {
		px_log(PX_LOG_ERROR, "%s", why);
		return PXD_EXIT_CONFIG;
	}
	if (px_vendor_open() < 0)
		return PXD_EXIT_CONFIG;
	pxd_roll_start(&d);
	if (px_n.Init(NULL, NULL) != MPI_SUCCESS)
		return PXD_EXIT_CONFIG; /* the native MPI has said why */
	pxd_roll_init_over();
	if (uv_loop_init(&d.node.loop) < 0)
		pxd_fail(&d.node, PXD_EXIT_INTERNAL, "cannot make an event loop");
	d.node.loop.data = &d.node;
	if (!d.node.failed && daemon_open(&d) == 0) {
		tell(&d, "joined");
		px_vendor_poll(true);
		loop_run(&d);
		px_vendor_poll(false);
	}
	if (d.node.failed) {
		if (d.role && d.state)
			d.role->farewell(&d, d.node.why);
		pxd_status_close(&d.status);
		/* The other sites shall hear of it, behind what is queued for them. And launchers drop what a job that aborts has
		 * just written: let the reason reach them first. */
		for (int i = 0; i < 20; i++) {
			uv_run(&d.node.loop, UV_RUN_NOWAIT);
			nanosleep(&say, NULL);
		}
		px_n.Abort(MPI_COMM_WORLD, d.node.code);
		_exit(d.node.code & 0xff ? d.node.code & 0xff
					 : PXD_EXIT_INTERNAL); /* Abort does not return */
	}
	daemon_close(&d);
	px_n.Finalize();
	return 0;
}
