/* init.c: start and end: from the native MPI_Init to a world that spans sites, and back.
 *
 * Without PACX_SITE in the environment the library is inert and the program runs natively.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "attr.h"
#include "bind.h"
#include "channel.h"
#include "comm.h"
#include "datatype.h"
#include "accuracy.h"
#include "environ.h"
#include "err.h"
#include "helper.h"
#include "guest.h"
#include "init.h"
#include "join.h"
#include "leave.h"
#include "lock.h"
#include "model.h"
#include "names.h"
#include "predefined.h"
#include "progress.h"
#include "schedule.h"
#include "spare.h"
#include "state.h"
#include "wait.h"

#define WORLD_CTX 4 /* below all that px_ctx_candidate makes */

struct px_state px;

/* Single-executable start: the launcher started the application in the place of the daemons, too.
 * The daemons' ranks become pacxd here, before the native MPI_Init. */
static void become_daemon(void)
{
	char path[4096];
	char *argv[] = { path, NULL };
	Dl_info self;
	const char *slash, *end;

	if (!px_environ.single)
		return;
	if (px_environ.rank < 0 || px_environ.size < 0) {
		px_log(PX_LOG_ERROR, "this launcher tells no rank before MPI_Init; start the daemons with "
				     "{pacxd} in the start command");
		_exit(1);
	}
	if (!px_environ_is_daemon())
		return;
	if (!dladdr((void *)(uintptr_t)become_daemon, &self) || !strchr(self.dli_fname, '/'))
		self.dli_fname = "./";
	/* pacx/pacxd-NAME beside libpacx-NAME.so; a name may have dots */
	slash = strrchr(self.dli_fname, '/');
	end = strrchr(slash, '.');
	if (strncmp(slash, "/libpacx-", 9) == 0 && end && strcmp(end, ".so") == 0)
		snprintf(path, sizeof path, "%.*s/pacx/pacxd-%.*s", (int)(slash - self.dli_fname),
			self.dli_fname, (int)(end - slash - 9), slash + 9);
	else
		snprintf(path, sizeof path, "%.*s/pacx/pacxd-" PX_VENDOR, (int)(slash - self.dli_fname),
			self.dli_fname);
	unsetenv("LD_PRELOAD");
	execv(path, argv);
	px_log(PX_LOG_ERROR, "rank %d should be a daemon but %s cannot be executed: %s", px_environ.rank,
		path, strerror(errno));
	_exit(1);
}

static void fatal(const char *what)
{
	px_log(PX_LOG_ERROR, "%s", what);
	px_n.Abort(MPI_COMM_WORLD, 1);
	abort(); /* the native Abort does not return */
}

/* The world map comes from the out-daemon when all sites are there (its deadline ends the wait). */
static void world_receive(void)
{
	struct px_wait w;
	MPI_Request req;
	int len = 0, flag = 0;
	uint8_t *bytes;

	px_wait_init(&w);
	px_n.Ibcast(&len, 1, MPI_INT, px.map.out[0], px.map.relay, &req);
	while (px_n.Test(&req, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag)
		px_wait_idle(&w);
	bytes = len > 0 ? malloc((size_t)len) : NULL;
	if (!bytes)
		fatal("no world map from the out-daemon");
	px_n.Ibcast(bytes, len, MPI_BYTE, px.map.out[0], px.map.relay, &req);
	flag = 0;
	while (px_n.Test(&req, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag)
		px_wait_idle(&w);
	if (px_world_get(bytes, (size_t)len, &px.world) < 0)
		fatal("the world map from the out-daemon is malformed; please report this");
	free(bytes);
}

static void stdin_from_fifo(void)
{
	const char *path = px_environ.stdin_path;
	int fd;

	if (!path || px.grank != 0)
		return;
	fd = open(path, O_RDONLY);
	if (fd < 0 || dup2(fd, 0) < 0)
		px_log(PX_LOG_WARN, "rank 0: standard input from %s: %s", path, strerror(errno));
	if (fd > 0)
		close(fd);
}

/* MPI_COMM_WORLD as a communicator that spans sites. */
static void world_span(void)
{
	struct px_ranks *all = px_ranks_world(px.world);
	struct px_comm *c = all ? px_comm_new(px.map.apps, WORLD_CTX, all) : NULL;

	if (!c)
		fatal("out of memory");
	px_accuracy_open(px_environ.accuracy);
	px_accuracy_named("MPI_COMM_WORLD", &c->accuracy);
	px_ranks_drop(all);
}

static void world_make(void)
{
	px.site = px.world->self;
	px_n.Comm_rank(px.map.apps, &px.lrank);
	px.grank = px.world->base[px.site] + px.lrank;
	px.nsites = px.world->nsites;
	px.nranks = px.world->nranks;
	px.tag_ub = px.world->site[0].tag_ub;
	for (int i = 1; i < px.world->nsites; i++)
		if (px.world->site[i].tag_ub < px.tag_ub)
			px.tag_ub = px.world->site[i].tag_ub;
	if (px.world->base[px.site + 1] - px.world->base[px.site] != px.map.nranks)
		fatal("the number of ranks started differs from the hostfile");
	px_n.Comm_set_name(px.map.apps, "MPI_COMM_WORLD");
	if (px_n.Comm_dup(px.map.apps, &px.local) != MPI_SUCCESS)
		fatal("cannot duplicate the site's communicator");
	px_n.Comm_set_name(px.local, "MPI_COMM_LOCAL");
	if (px_channel_open() < 0)
		fatal("cannot open the channel to the daemons");
	px.on = true;
	px_world_native = px.map.apps;
	if (px.world->nsites > 1)
		world_span();
	if (px_predefined_start() != MPI_SUCCESS)
		fatal("cannot learn the programs of the job");
	if (px_model_start() != MPI_SUCCESS)
		fatal("cannot agree on how to do collective operations");
}

static void start(pid_t parent, bool threaded)
{
	if (px_environ.guest) {
		px_join(threaded);
		return;
	}

	char who[96];

	snprintf(who, sizeof who, "pacx[%s]", px_environ.site);
	px_log_init(who, PX_LOG_INFO);
	px_leave_watch();
	px_vendor_seal();
	/* The launcher's process on this node is our parent: when it dies nobody is left to end us. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		raise(SIGKILL); /* it died before the line above */
	px_wait_setup(1, false);
	if (px_attach_roles(PX_ROLE_APP, &px.map) < 0)
		fatal("cannot set up the native job");
	if (px.map.gateways == 0)
		fatal("no relay daemons in this site's job: the start command must start {daemons} x {pacxd} "
		      "beside the program");
	px_wait_setup(px.map.procs_here, false);
	world_receive();
	world_make();
	px_progress_open(threaded);
	if (px.world->nsites > 1 && px_names_open() < 0)
		fatal("out of memory");
	stdin_from_fifo();
	px_environ_clean();
}

void px_give_up(const char *why)
{
	px_log(PX_LOG_ERROR, "%s; ending the job", why);
	if (px.on)
		px_channel_abort(1, why);
	/* Nothing is initialised yet, and hydra ends a job only when a rank dies of a signal. */
	signal(SIGTERM, SIG_DFL);
	raise(SIGTERM);
	_exit(1);
}

/* Is this process part of a PACX job? A program of another MPI than its site's cannot go on: the calls that libpacx
 * does not interpose would reach the wrong library. */
static bool under_pacx(void)
{
	static const struct {
		const char *soname, *its;
	} others[] = {
#if !defined(OPEN_MPI)
		{ "libmpi.so.40", "openmpi" },
#endif
#if defined(OPEN_MPI) || defined(PX_ABI)
		{ "libmpich.so.12", "mpich" },
		{ "libmpi.so.12", "mpich" },
#endif
#if !defined(PX_ABI)
		{ "libmpi_abi.so.1", "openmpi-abi or mpich-abi" },
#endif
	};
	char why[1024];

	px_environ_read();
	if (!px_active)
		return false;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		if (!dlopen(others[i].soname, RTLD_NOLOAD | RTLD_LAZY))
			continue;
		snprintf(why, sizeof why,
			"site %s: this program is linked with %s but the site runs " PX_VENDOR
			"; say mpi: %s for the site",
			px_environ.site, others[i].soname, others[i].its);
		px_give_up(why);
	}
	if (px_vendor_load() != PX_OK)
		return false;
	if (!px_vendor_fits(why, sizeof why))
		px_give_up(why);
	return true;
}

int px_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	pid_t parent = getppid();
	bool active = under_pacx();
	int rc;

	if (active)
		become_daemon();
	if (active && px_helper_wanted())
		required = MPI_THREAD_MULTIPLE;
	rc = px_n.Init_thread(argc, argv, required, provided);
	if (active && rc == MPI_SUCCESS) {
		start(parent, *provided == MPI_THREAD_MULTIPLE);
		px_threaded = *provided == MPI_THREAD_MULTIPLE;
		px_helper_open(px_threaded);
	}
	return rc;
}

int px_Init(int *argc, char ***argv)
{
	pid_t parent = getppid();
	bool active = under_pacx();
	int provided, rc;

	if (active && px_helper_wanted())
		return px_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
	if (active)
		become_daemon();
	rc = px_n.Init(argc, argv);
	if (active && rc == MPI_SUCCESS)
		start(parent, false);
	return rc;
}

int px_Initialized(int *flag)
{
	return px_n.Initialized(flag);
}

int px_Finalized(int *flag)
{
	return px_n.Finalized(flag);
}

static const char *const coll_name[] = {
#define X(up, low) #low,
	PX_COLLS(X)
#undef X
};

/* Counters of this site's ranks, added up: calls and depth are the largest of any rank. */
static void report(void)
{
	enum { SUMS = 4, TOPS = 2 };
	unsigned long long sum[SUMS * PX_COLL_COUNT] = { 0 }, max[TOPS * PX_COLL_COUNT] = { 0 },
				      mine[SUMS * PX_COLL_COUNT], tops[TOPS * PX_COLL_COUNT];
	char json[PX_INLINE_MAX];
	size_t len = 0;

	if (!px_environ.stats)
		return;
	for (int i = 0; i < PX_COLL_COUNT; i++) {
		const struct px_coll_stat *c = &px_coll_stat[i];

		memcpy(&mine[SUMS * i],
			(unsigned long long[SUMS]){
				c->messages, c->bytes, c->given.messages, c->given.bytes },
			sizeof *mine * SUMS);
		tops[TOPS * i] = c->calls;
		tops[TOPS * i + 1] = c->depth;
	}
	px_n.Reduce(mine, sum, SUMS * PX_COLL_COUNT, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, px.map.apps);
	px_n.Reduce(tops, max, TOPS * PX_COLL_COUNT, MPI_UNSIGNED_LONG_LONG, MPI_MAX, 0, px.map.apps);
	if (px.lrank != 0)
		return;
	len = (size_t)snprintf(json, sizeof json, "{");
	for (int i = 0; i < PX_COLL_COUNT; i++) {
		const unsigned long long *x = &sum[SUMS * i];
		char one[300];
		int n = snprintf(one, sizeof one,
			"%s\"%s\":{\"calls\":%llu,\"messages\":%llu,\"bytes\":%llu,\"latencies\":%llu,"
			"\"native_messages\":%llu,\"native_bytes\":%llu}",
			len > 1 ? "," : "", coll_name[i], max[TOPS * i], x[0], x[1], max[TOPS * i + 1], x[2],
			x[3]);

		if (max[TOPS * i] == 0)
			continue;
		if (len + (size_t)n + 2 > sizeof json) {
			px_log(PX_LOG_WARN, "statistics of %s and what follows do not fit and are left out",
				coll_name[i]);
			break;
		}
		memcpy(json + len, one, (size_t)n + 1);
		len += (size_t)n;
	}
	memcpy(json + len, "}", 2);
	px_channel_stats(json);
}

int px_Finalize(void)
{
	if (!px.on)
		return px_n.Finalize();
	px_lock();
	px_attr_finalize();
	px_buffered_wait();
	if (px_guest_self) {
		px_guests_leave();
	} else if (px.world->nsites > 1) {
		struct px_coll_stat keep = px_coll_stat[PX_COLL_BARRIER];

		px_Barrier(
			px_comm_find(px_world_native)); /* all have stopped sending when the channel closes */
		px_coll_stat[PX_COLL_BARRIER] = keep;   /* not the application's */
		px_guests_wait();
		px_names_close();
	}
	report();
	px_helper_close();
	px_progress_close();
	px_type_sweep();
	px_n.Comm_free(&px.local);
	px_channel_close();
	px_req_close();
	px_spare_close();
	px.on = false;
	px_unlock();
	return px_n.Finalize();
}

int px_Abort(MPI_Comm comm, int code)
{
	char why[80];

	(void)comm;
	if (!px.on)
		return px_n.Abort(comm, code);
	snprintf(why, sizeof why, "MPI_Abort(%d) by rank %d", code, px.grank);
	px_channel_abort(code, why);
	return MPI_SUCCESS;
}
