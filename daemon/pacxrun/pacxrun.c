/* pacxrun.c: the command line of pacxrun: options to a plan (plan.h), reserved ports, then the launch (launch.h).
 * The one place of the program that decides its exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "address.h"
#include "base/err.h"
#include "guard.h"
#include "text.h"
#include "launch.h"
#include "mpis.h"
#include "quote.h"
#include "records.h"

#ifndef PX_VERSION_TEXT
#define PX_VERSION_TEXT "unknown"
#endif

#define EXIT_USAGE 2

struct options {
	const char *file, *counts, *mpi, *site, *stats, *record, *daemons, *form, *timeout, *key;
	const char *buffer, *files, **links; /* [nlinks] --link */
	int nlinks;
	bool env, label, check, verbose;
	char **program;
};

static const char usage_text[] =
	"usage: pacxrun -f HOSTFILE [options] [--] PROGRAM [ARGUMENT ...]\n"
	"       pacxrun -n A+B[+C...] [options] [--] PROGRAM [ARGUMENT ...]\n"
	"\n"
	"Runs PROGRAM as one MPI job over all sites.\n"
	"\n"
	"  -f, --hostfile F     the sites are described in F\n"
	"  -n A+B[+C]           sites on this machine with A, B, C ranks\n"
	"      --mpi X[+Y]      for each site openmpi, mpich, auto, one of those that pacxctl mpis shows, or "
	"its "
	"directory;\n"
	"                       one name is for all\n"
	"      --daemons W      relay daemons last (default) or first\n"
	"      --form W         start as mpmd (default, where the launcher can) or single executable\n"
	"      --link TEXT      with -n: options of all links, such as 'streams: 4, compress: none'\n"
	"      --buffer SIZE    with -n: memory of each relay daemon, such as 256MiB\n"
	"      --files WHERE    with -n: where MPI files are: shared, local or a site\n"
	"      --key FILE       the job's key (made by pacxctl keygen), when not all sites get it from "
	"pacxrun\n"
	"      --site NAME      start only this site of the hostfile\n"
	"      --env            with --site: print its environment for a start by hand\n"
	"      --timeout T      start deadline, such as 120s\n"
	"      --label          put [site rank] before each line of output\n"
	"      --stats FILE     write what crossed the links to FILE (JSON)\n"
	"      --record DIR     write the payload that crosses the links into files in DIR, at each site\n"
	"      --check          print the resolved plan, start nothing\n"
	"  -v, --verbose        print the start commands\n"
	"      --version, --help\n"
	"\n"
	"{mpi} and {site} in PROGRAM and ARGUMENTs are replaced for each site. See pacxrun(1), "
	"pacx-hostfile(5).\n";

/* written: the exit status after something was printed. */
static int written(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	fprintf(stderr, "pacxrun: the output cannot be written: %s\n", strerror(errno));
	return code ? code : 1;
}

/* Options that are a text or a flag, and where each goes. */
static const struct {
	struct option is;
	size_t at;
} rows[] = {
#define TEXT(name, letter, field)                                                                            \
	{                                                                                                    \
		{ name, required_argument, NULL, letter }, offsetof(struct options, field)                   \
	}
#define FLAG(name, letter, field)                                                                            \
	{                                                                                                    \
		{ name, no_argument, NULL, letter }, offsetof(struct options, field)                         \
	}
	TEXT("hostfile", 'f', file),
	TEXT("mpi", 0, mpi),
	TEXT("site", 0, site),
	FLAG("env", 0, env),
	FLAG("label", 0, label),
	TEXT("stats", 0, stats),
	TEXT("record", 0, record),
	FLAG("check", 0, check),
	TEXT("daemons", 0, daemons),
	TEXT("form", 0, form),
	TEXT("timeout", 0, timeout),
	TEXT("buffer", 0, buffer),
	TEXT("files", 0, files),
	TEXT("key", 0, key),
	FLAG("verbose", 'v', verbose),
#undef TEXT
#undef FLAG
};
#define NROWS (sizeof rows / sizeof rows[0])

/* What getopt_long says of a row: its letter, or a number beyond letters. */
static int row_val(size_t i)
{
	return rows[i].is.val ? rows[i].is.val : 256 + (int)i;
}

/* Those that do something else. */
enum { LINK = 512, VERSION };
static const struct option others[] = {
	{ "link", required_argument, NULL, LINK },
	{ "version", no_argument, NULL, VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static bool row_take(int opt, struct options *o)
{
	for (size_t i = 0; i < NROWS; i++) {
		char *at = (char *)o + rows[i].at;

		if (row_val(i) != opt)
			continue;
		if (rows[i].is.has_arg)
			*(const char **)(void *)at = optarg;
		else
			*(bool *)(void *)at = true;
		return true;
	}
	return false;
}

static int options_check(const struct options *o)
{
	const char *wrong = NULL;

	if (!o->file == !o->counts)
		wrong = "give either -f HOSTFILE or -n A+B; see pacxrun --help";
	else if (o->file && (o->nlinks || o->buffer || o->files))
		wrong = "--link, --buffer and --files are for -n; a hostfile has links:, buffer: and files:";
	else if (o->env && !o->site)
		wrong = "--env needs --site NAME";
	if (wrong)
		fprintf(stderr, "pacxrun: %s\n", wrong);
	return wrong ? PX_EINVAL : 0;
}

static int options_read(int argc, char **argv, struct options *o)
{
	struct option longs[NROWS + sizeof others / sizeof others[0]];
	int opt;

	for (size_t i = 0; i < NROWS; i++) {
		longs[i] = rows[i].is;
		longs[i].val = row_val(i);
	}
	memcpy(longs + NROWS, others, sizeof others);
	while ((opt = getopt_long(argc, argv, "+f:n:vh", longs, NULL)) != -1) {
		if (row_take(opt, o))
			continue;
		switch (opt) {
		case 'n':
			o->counts = optarg;
			break;
		case LINK:
			o->links[o->nlinks++] = optarg; /* room for argc */
			break;
		case VERSION:
			printf("pacxrun %s\n", PX_VERSION_TEXT);
			exit(written(0));
		case 'h':
			fputs(usage_text, stdout);
			exit(written(0));
		default:
			fprintf(stderr, "pacxrun: see pacxrun --help\n");
			return PX_EINVAL;
		}
	}
	o->program = argv[optind] ? argv + optind : NULL;
	return options_check(o);
}

/* counts_options: --link and --buffer. */
static int counts_options(struct pxd_hosts *h, const struct options *o, char *why, size_t cap)
{
	struct pxd_text t = { .file = "--buffer", .why = why, .cap = cap, .flat = true };
	int rc = 0;

	for (int i = 0; i < h->nsites && o->buffer && rc >= 0; i++)
		rc = pxd_value_buffer(&t, (struct pxd_mark){ 0, 0 }, o->buffer, &h->sites[i].buffer);
	t.file = "--link";
	for (int i = 0; i < o->nlinks && rc >= 0; i++) {
		t.text = o->links[i];
		t.len = strlen(t.text);
		rc = pxd_hosts_link_text(&t, h);
	}
	return rc;
}

/* hosts_from_counts: "-n A+B" becomes sites on 127.0.0.1. */
static int hosts_from_counts(const struct options *o, struct pxd_hosts **out, char *why, size_t cap)
{
	const char *counts = o->counts;
	static const char *const pair[] = { "left", "right" };
	struct pxd_text t = { "-n", counts, strlen(counts), why, cap, true };
	struct pxd_hosts *h = calloc(1, sizeof *h);
	int total = 1, rc = PX_ENOMEM;

	if (!h)
		return pxd_text_nomem(&t);
	for (const char *p = counts; *p; p++)
		total += *p == '+';
	if (total > PXD_SITES_MAX) {
		rc = pxd_text_fail(&t, (struct pxd_mark){ 0, 0 }, "at most 4096", "%d sites", total);
		goto fail;
	}
	for (const char *p = counts;;) {
		size_t n = strcspn(p, "+");
		char *one = strndup(p, n), name[32];
		struct pxd_site *s = pxd_hosts_add(h);

		if (!one || !s) {
			free(one);
			rc = pxd_text_nomem(&t);
			goto fail;
		}
		rc = pxd_value_ranks(&t, (struct pxd_mark){ 0, 0 }, one, &s->ranks);
		free(one);
		if (rc < 0)
			goto fail;
		if (total <= 2)
			snprintf(name, sizeof name, "%s", pair[h->nsites - 1]);
		else
			snprintf(name, sizeof name, "site%d", h->nsites);
		s->name = strdup(name);
		if (!s->name) {
			rc = pxd_text_nomem(&t);
			goto fail;
		}
		p += n;
		if (!*p)
			break;
		p++;
	}
	rc = o->files ? pxd_value_files(&t, (struct pxd_mark){ 0, 0 }, o->files, true, h) : 0;
	if (rc >= 0)
		rc = counts_options(h, o, why, cap);
	return pxd_hosts_give(&t, h, rc, out);
fail:
	pxd_hosts_free(h);
	return rc;
}

/* mpi_apply: --mpi a+b; one name is for all sites. */
static int mpi_apply(struct pxd_hosts *h, const char *list, char *why, size_t cap)
{
	const char *p = list;
	int names = 1;

	for (const char *q = list; *q; q++)
		names += *q == '+';
	if (names != 1 && names != h->nsites) {
		snprintf(why, cap,
			"--mpi: found '%s', expected one name for all or one for each of the %d sites", list,
			h->nsites);
		return PX_ECONF;
	}
	for (int i = 0; i < h->nsites; i++) {
		size_t n = strcspn(p, "+");
		char *one = strndup(p, n);
		int rc = one ? pxd_site_mpi_set(&h->sites[i], one) : PX_ENOMEM;

		free(one);
		if (rc < 0) {
			snprintf(why, cap, "--mpi: found '%.*s', expected " PXD_MPI_EXPECTED, (int)n, p);
			return PX_ECONF;
		}
		if (names > 1)
			p += n + 1;
	}
	return 0;
}

/* port_reserve: bind any free port of the gateway's bind address and keep it, without listening, as long as we
 * live; its daemon binds the same port with SO_REUSEPORT. Works only for addresses of this machine. */
static int port_reserve(struct pxd_site *s, int gateway, char *why, size_t cap)
{
	const struct pxd_gateway *g = &s->gateways[gateway];
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	struct sockaddr_storage a;
	socklen_t len = sizeof a;
	char port[NI_MAXSERV];
	int one = 1, fd = -1, rc;

	rc = getaddrinfo(g->bind_host, "0", &hints, &list);
	if (rc != 0) {
		snprintf(why, cap, "site '%s': cannot find the address of %s: %s", s->name, g->bind_host,
			gai_strerror(rc));
		return PX_ECONF;
	}
	rc = PX_ECONF;
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) < 0 ||
		bind(fd, list->ai_addr, list->ai_addrlen) < 0 ||
		getsockname(fd, (struct sockaddr *)&a, &len) < 0 ||
		getnameinfo((struct sockaddr *)&a, len, NULL, 0, port, sizeof port, NI_NUMERICSERV) != 0) {
		snprintf(why, cap,
			"site '%s': port 0 (any free one) is only for addresses of this machine, and %s "
			"cannot be bound: %s; give it a port",
			s->name, g->bind_host, strerror(errno));
		if (fd >= 0)
			close(fd);
		goto done;
	}
	pxd_hosts_port_set(s, gateway, atoi(port), atoi(port));
	rc = 0;
done:
	freeaddrinfo(list);
	return rc;
}

static int fail_at(const struct pxd_hosts *h, struct pxd_mark at, const char *text, const char *name,
	char *why, size_t cap)
{
	snprintf(why, cap, "%s:%d:%d: site '%s' %s", h->file, at.line, at.column, name, text);
	return PX_ECONF;
}

/* site_ports: choose the ports of one site where the hostfile says "any". */
static int site_ports(struct pxd_hosts *h, struct pxd_site *s, const struct options *o, char *why, size_t cap)
{
	bool remote = s->start && pxd_template_remote(s->start);

	for (int g = 0; g < s->ngateways && s->listen; g++) {
		if (!s->manual && !s->start && (!o->site || strcmp(o->site, s->name) == 0) &&
			!pxd_host_is_here(s->gateways[g].bind_host))
			return fail_at(h, s->at,
				o->site ? "is to be started here, but this machine has no address of its "
					  "host:; "
					  "if the others reach it through a NAT or a forwarded port, "
					  "expected bind: with "
					  "an address of this machine"
					: "is not on this machine and has no start command; expected "
					  "start: \"ssh ...\" or start: manual",
				s->name, why, cap);
		if (s->gateways[g].port != 0)
			continue;
		if (o->site)
			return fail_at(h, s->at, "has port 0; --site needs fixed ports in the hostfile",
				s->name, why, cap);
		if (remote)
			return fail_at(h, s->at,
				"has port 0 (any free one), which works only for sites started on "
				"this machine; give it a port",
				s->name, why, cap);
		if (!o->check && port_reserve(s, g, why, cap) < 0)
			return PX_ECONF;
	}
	return 0;
}

/* ports_fix: fixed ports, and a random job id, which nobody has to derive. */
static int ports_fix(struct pxd_hosts *h, const struct options *o, char *why, size_t cap)
{
	bool by_hand = o->site != NULL;
	unsigned char id[8];

	for (int i = 0; i < h->nsites; i++) {
		by_hand |= h->sites[i].manual;
		if (site_ports(h, &h->sites[i], o, why, cap) < 0)
			return PX_ECONF;
	}
	pxd_hosts_job_id(h);
	if (getenv("PACX_JOB") && *getenv("PACX_JOB"))
		return pxd_hosts_job_set(h, getenv("PACX_JOB"), why, cap);
	if (!by_hand && !o->check && getrandom(id, sizeof id, 0) == (ssize_t)sizeof id)
		for (size_t i = 0; i < sizeof id; i++)
			snprintf(h->job_id + 2 * i, 3, "%02x", id[i]);
	return 0;
}

/* options_apply: what the command line says instead of the hostfile. */
static int options_apply(
	struct pxd_hosts *h, const struct options *o, struct pxd_plan_options *po, char *why, size_t cap)
{
	int rc = 0;

	if (o->mpi)
		rc = mpi_apply(h, o->mpi, why, cap);
	if (rc < 0)
		return rc;
	if (o->daemons) {
		bool first = strcmp(o->daemons, "first") == 0;

		if (!first && strcmp(o->daemons, "last") != 0) {
			snprintf(why, cap, "--daemons: found '%s', expected first or last", o->daemons);
			return PX_ECONF;
		}
		for (int i = 0; i < h->nsites; i++)
			h->sites[i].daemons_first = first;
	}
	if (o->form) {
		po->form = strcmp(o->form, "single") == 0 ? PXD_FORM_SINGLE : PXD_FORM_MPMD;
		if (po->form == PXD_FORM_MPMD && strcmp(o->form, "mpmd") != 0) {
			snprintf(why, cap, "--form: found '%s', expected mpmd or single", o->form);
			return PX_ECONF;
		}
	}
	if (o->timeout) {
		struct pxd_text t = { "--timeout", o->timeout, strlen(o->timeout), why, cap, true };

		rc = pxd_value_duration(&t, (struct pxd_mark){ 0, 0 }, o->timeout, &h->deadline_start_ms);
		if (rc < 0)
			return rc;
	}
	if (o->site && pxd_hosts_find(h, o->site) < 0) {
		snprintf(why, cap, "--site: found '%s', expected the name of a site in %s", o->site, h->file);
		return PX_ECONF;
	}
	return 0;
}

static char fifo_dir[64], fifo_path[80];

static void fifo_remove(void)
{
	if (fifo_path[0])
		unlink(fifo_path);
	if (fifo_dir[0])
		rmdir(fifo_dir);
}

/* fifo_make: standard input of global rank 0 where MPICH's hydra would give it to a daemon, or would give up when rank 0 does not read
 * 64 KiB of it at once. With a start command of the user's, rank 0 may be on another node, and takes it in pieces (feeder.h). */
static const char *fifo_make(const struct pxd_hosts *h, bool data)
{
	const struct pxd_site *s = &h->sites[0];

	if (s->mpi != PX_MPI_MPICH || (!s->daemons_first && (s->start || !data)))
		return NULL;
	strcpy(fifo_dir, "/tmp/pacxrun-XXXXXX");
	if (!mkdtemp(fifo_dir)) {
		fifo_dir[0] = '\0';
		return NULL;
	}
	snprintf(fifo_path, sizeof fifo_path, "%s/stdin", fifo_dir);
	return mkfifo(fifo_path, 0600) == 0 ? fifo_path : NULL;
}

/* key_text: the job's key as text, or NULL when no link needs one. */
static int key_text(const struct pxd_hosts *h, const struct options *o, char text[PXD_KEY_TEXT],
	const char **out, char *why, size_t cap)
{
	uint8_t key[PXD_KEY_SIZE];
	bool needed;
	int rc = pxd_plan_key(h, o->key, !o->site, key, &needed, why, cap);

	if (rc == 0 && needed) {
		pxd_key_text(key, text);
		*out = text;
	}
	pxd_key_wipe(key, sizeof key);
	return rc;
}

static int run(struct pxd_hosts *h, const struct options *o, struct pxd_plan_options *po)
{
	struct pxd_launch_options lo = { .prefix = po->prefix, .verbose = o->verbose, .stats = o->stats };
	struct pxd_plan *p = NULL;
	char why[PXD_WHY], key[PXD_KEY_TEXT] = "";
	int code = EXIT_USAGE, self;

	lo.only = self = o->site ? pxd_hosts_find(h, o->site) : -1;
	if (options_apply(h, o, po, why, sizeof why) < 0 || pxd_plan_mpi(h, po, why, sizeof why) < 0 ||
		ports_fix(h, o, why, sizeof why) < 0)
		goto fail;
	po->only = self;
	po->env_only = o->env;
	if (!o->check && !o->env) {
		struct stat st;

		po->stdin_data = fstat(0, &st) == 0 && !S_ISCHR(st.st_mode);
		po->stdin_fifo = lo.stdin_fifo = fifo_make(h, po->stdin_data);
	}
	if (pxd_plan_make(h, po, &p, why, sizeof why) < 0)
		goto fail;
	if (o->stats && !o->check && !o->env && pxd_stats_prove(o->stats, why, sizeof why) < 0)
		goto fail;
	if (o->check) {
		pxd_plan_print(h, p, stdout);
		if (key_text(h, o, key, &lo.key, why, sizeof why) < 0)
			printf("\nthe key is missing: %s\n", why);
		pxd_key_wipe(key, sizeof key);
		code = 0;
	} else if (o->env) {
		pxd_plan_print_env(&p->starts[self], stdout);
		code = 0;
	} else {
		for (int i = 0; i < h->nsites && self < 0; i++)
			if (!p->starts[i].command)
				pxd_plan_print_manual(h, &p->starts[i], stderr);
		if (self >= 0 && !p->starts[self].command) {
			fprintf(stderr,
				"pacxrun: site '%s' has start: manual; use --env for its environment\n",
				o->site);
			goto done;
		}
		if (key_text(h, o, key, &lo.key, why, sizeof why) < 0)
			goto fail;
		code = pxd_launch_run(h, p, &lo);
		pxd_key_wipe(key, sizeof key);
	}
	goto done;
fail:
	fprintf(stderr, "pacxrun: %s\n", why);
done:
	pxd_plan_free(p);
	fifo_remove();
	return code;
}

/* A name that means the same for whoever starts a site, wherever that has its working directory. NULL: there is none. New memory. */
static char *absolute(const char *path)
{
	char here[PATH_MAX], *out;

	if (*path == '/')
		return strdup(path);
	return *path && getcwd(here, sizeof here) && asprintf(&out, "%s/%s", here, path) >= 0 ? out : NULL;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct pxd_plan_options po = { 0 };
	struct pxd_hosts *h = NULL;
	char why[PXD_WHY], prefix[PATH_MAX], *record = NULL;
	int code = EXIT_USAGE, rc;

	if (argc > 1 && strcmp(argv[1], "--guard") == 0)
		return pxd_guard_main(argc - 1, argv + 1);
	o.links = calloc((size_t)argc + 1, sizeof *o.links);
	if (!o.links || options_read(argc, argv, &o) < 0)
		return EXIT_USAGE;
	px_log_init("pacxrun", PX_LOG_WARN);
	if (o.record && !(record = absolute(o.record))) {
		fprintf(stderr, "pacxrun: --record: found '%s', expected a directory\n", o.record);
		return EXIT_USAGE;
	}
	if (pxd_prefix_find(prefix, sizeof prefix) < 0) {
		fprintf(stderr, "pacxrun: cannot find where it is installed (/proc/self/exe)\n");
		return EXIT_USAGE;
	}
	if (pxd_mpis_read(prefix, &po.mpis) < 0) {
		fprintf(stderr, "pacxrun: out of memory\n");
		return EXIT_USAGE;
	}
	po.program = o.program;
	po.prefix = prefix;
	po.label = o.label;
	po.stats = o.stats != NULL;
	po.record = record;
	rc = o.file ? pxd_hosts_load(o.file, &h, why, sizeof why)
		    : hosts_from_counts(&o, &h, why, sizeof why);
	if (rc < 0)
		fprintf(stderr, "pacxrun: %s\n", why);
	else
		code = run(h, &o, &po);
	pxd_hosts_free(h);
	pxd_mpis_free(&po.mpis);
	free(record);
	code = written(code);
	/* Not exit(): a thread may sit in a read of standard input or in a write that nobody takes. */
	_exit(code);
}
