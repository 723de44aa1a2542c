/* plan.c: see plan.h. */
#include "plan.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "elf_flavor.h"
#include "plan_key.h"
#include "quote.h"
#include "wire/world.h"

/* A growing NULL-terminated list of words; the first failure sticks. */
struct words {
	char **list;
	int n;
	bool failed;
};

static void words_add(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void words_add(struct words *w, const char *fmt, ...)
{
	char **list = w->failed ? NULL : realloc(w->list, ((size_t)w->n + 2) * sizeof *list);
	va_list ap;
	int n;

	if (!list) {
		w->failed = true;
		return;
	}
	w->list = list;
	va_start(ap, fmt);
	n = vasprintf(&list[w->n], fmt, ap);
	va_end(ap);
	if (n < 0) {
		list[w->n] = NULL;
		w->failed = true;
		return;
	}
	list[++w->n] = NULL;
}

static void words_fini(struct words *w)
{
	for (int i = 0; i < w->n; i++)
		free(w->list[i]);
	free(w->list);
}

/* words_add_replaced: text with {mpi} and {site} replaced. */
static void words_add_replaced(struct words *w, const char *text, const struct pxd_site *s)
{
	char *mpi[] = { (char *)(uintptr_t)pxd_flavor_name(s->mpi), NULL }, *site[] = { s->name, NULL };
	const struct pxd_hole holes[] = { { "mpi", mpi }, { "site", site } };
	char *copy = pxd_text_replace(text, holes, 2);

	if (copy)
		words_add(w, "%s", copy);
	else
		w->failed = true;
	free(copy);
}

/* daemons_of: an out- and an in-daemon for each gateway. */
static int daemons_of(const struct pxd_site *s)
{
	return 2 * s->ngateways;
}

static const char *site_exe(const struct pxd_site *s, const struct pxd_plan_options *o)
{
	return s->exe ? s->exe : o->program ? o->program[0] : NULL;
}

/* A site's start command runs on this machine, as far as its text tells. */
static bool site_is_here(const struct pxd_site *s)
{
	return !s->manual && !(s->start && pxd_template_remote(s->start));
}

static enum px_flavor flavor_installed(void)
{
	char path[4096];

	if (pxd_path_find("mpirun.openmpi", path, sizeof path) == 0)
		return PX_MPI_OPENMPI;
	if (pxd_path_find("mpirun.mpich", path, sizeof path) == 0 ||
		pxd_path_find("mpiexec.hydra", path, sizeof path) == 0)
		return PX_MPI_MPICH;
	return PX_MPI_OPENMPI;
}

int pxd_plan_flavors(struct pxd_hosts *h, const struct pxd_plan_options *o, char *why, size_t cap)
{
	for (int i = 0; i < h->nsites; i++) {
		struct pxd_site *s = &h->sites[i];
		const char *exe = site_exe(s, o);
		char path[4096];

		if (s->mpi != PX_MPI_OTHER)
			continue;
		if (exe && strstr(exe, "{mpi}")) {
			snprintf(why, cap,
				"site '%s': the program '%s' depends on the MPI, which is not given; "
				"give mpi: or --mpi",
				s->name, exe);
			return PX_ECONF;
		}
		if (exe && pxd_path_find(exe, path, sizeof path) == 0)
			s->mpi = pxd_flavor_of(path);
		if (s->mpi == PX_MPI_OTHER) /* a script, or a program that is only there */
			s->mpi = flavor_installed();
	}
	return 0;
}

static const char *mpirun_find(enum px_flavor mpi)
{
	static const char *const openmpi[] = { "mpirun.openmpi", "mpirun", NULL };
	static const char *const mpich[] = { "mpirun.mpich", "mpiexec.hydra", "mpirun", NULL };
	const char *const *names = mpi == PX_MPI_MPICH ? mpich : openmpi;
	char path[4096];

	for (int i = 0; names[i]; i++)
		if (pxd_path_find(names[i], path, sizeof path) == 0)
			return names[i];
	return NULL;
}

/* start_default: the start command of a site on this machine. */
static int start_default(
	const struct pxd_site *s, const struct pxd_plan_options *o, char **out, char *why, size_t cap)
{
	const char *mpirun = mpirun_find(s->mpi), *exe = site_exe(s, o);
	char options[128] = "", contexts[128], path[4096];
	struct words checked = { 0 };
	bool found;

	if (!mpirun) {
		snprintf(why, cap,
			"site '%s': no mpirun of %s is installed here; install it or give start:", s->name,
			pxd_flavor_title(s->mpi));
		return PX_ECONF;
	}
	words_add_replaced(&checked, exe, s);
	found = !checked.failed && pxd_path_find(checked.list[0], path, sizeof path) == 0;
	if (found && pxd_flavor_of(path) != PX_MPI_OTHER && pxd_flavor_of(path) != s->mpi) {
		snprintf(why, cap,
			"site '%s': '%s' is linked with %s, but the site's MPI is %s; give mpi: (or --mpi) "
			"%s",
			s->name, path, pxd_flavor_title(pxd_flavor_of(path)), pxd_flavor_title(s->mpi),
			pxd_flavor_name(pxd_flavor_of(path)));
		words_fini(&checked);
		return PX_ECONF;
	}
	if (!found)
		snprintf(why, cap, "site '%s': cannot run the program '%s': no such executable file", s->name,
			checked.failed ? exe : checked.list[0]);
	words_fini(&checked);
	if (!found)
		return PX_ECONF;
	if (s->mpi == PX_MPI_OPENMPI) {
		bool first_stdin = s->daemons_first && s->base == 0;
		char target[32] = "";

		if (first_stdin)
			snprintf(target, sizeof target, " --stdin %d", daemons_of(s));
		snprintf(options, sizeof options, " --oversubscribe --bind-to none%s%s",
			geteuid() == 0 ? " --allow-run-as-root" : "", target);
	}
	if (o->form == PXD_FORM_SINGLE)
		snprintf(contexts, sizeof contexts, " -np {procs} {app}");
	else if (s->daemons_first)
		snprintf(contexts, sizeof contexts, " -np {daemons} {pacxd} : -np {ranks} {app}");
	else
		snprintf(contexts, sizeof contexts, " -np {ranks} {app} : -np {daemons} {pacxd}");
	if (asprintf(out, "%s%s%s", mpirun, options, contexts) < 0) {
		snprintf(why, cap, "out of memory");
		return PX_ENOMEM;
	}
	return 0;
}

/* records_wanted: do the site's daemons tell pacxrun how far they are? Unless the user knows that nobody would hear it. */
static bool records_wanted(const struct pxd_site *s)
{
	const char *v = getenv("PACX_RECORDS");

	for (int i = 0; i < s->nenv; i++)
		if (strcmp(s->env[i].name, "PACX_RECORDS") == 0)
			v = s->env[i].value;
	return !v || !*v || strcmp(v, "1") == 0;
}

/* env_make: all variables of the site's processes. */
static void env_make(const struct pxd_hosts *h, const struct pxd_plan_options *o, const char *plan,
	struct pxd_start *st, struct words *env)
{
	static const char *const passed[] = { "PACX_LOG", "PACX_WAIT", "PACX_PROGRESS" };
	const struct pxd_site *s = st->site;

	words_add(env, "PACX_SITE=%s", s->name);
	words_add(env, "PACX_JOB=%s", h->job_id);
	words_add(env, "PACX_FORM=%s", st->form == PXD_FORM_SINGLE ? "single" : "mpmd");
	words_add(env, "PACX_DAEMONS=%s", s->daemons_first ? "first" : "last");
	words_add(env, "PACX_GATEWAYS=%d", s->ngateways);
	words_add(env, "PACX_BASE=%d", s->base);
	words_add(env, "PACX_MPI=%s", pxd_flavor_name(s->mpi));
	if (o->stats)
		words_add(env, "PACX_STATS=1");
	if (st->records)
		words_add(env, "PACX_RECORDS=1");
	if (st->fifo_stdin)
		words_add(env, "PACX_STDIN=%s", o->stdin_fifo);
	for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
		const char *v = getenv(passed[i]);

		if (v && *v)
			words_add(env, "%s=%s", passed[i], v);
	}
	for (int i = 0; i < s->nenv; i++) {
		char *text;

		if (strcmp(s->env[i].name, "LD_PRELOAD") == 0) /* see preload_make */
			continue;
		if (asprintf(&text, "%s=%s", s->env[i].name, s->env[i].value) < 0) {
			env->failed = true;
			return;
		}
		words_add_replaced(env, text, s);
		free(text);
	}
	words_add(env, "PACX_PLAN=%s", plan);
}

/* preload_make: LD_PRELOAD=libpacx, followed by what the user preloads anyway. */
static char *preload_make(const struct pxd_start *st, const char *lib)
{
	const char *more = st->remote || st->site->manual ? NULL : getenv("LD_PRELOAD");
	char *out;

	for (int i = 0; i < st->site->nenv; i++)
		if (strcmp(st->site->env[i].name, "LD_PRELOAD") == 0)
			more = st->site->env[i].value;
	if (asprintf(&out, "LD_PRELOAD=%s/libpacx-%s.so%s%s", lib, pxd_flavor_name(st->site->mpi),
		    more && *more ? ":" : "", more ? more : "") < 0)
		return NULL;
	return out;
}

/* app_wrap: mpirun takes a lone ":" for the end of a context, wherever it stands. One that is an argument of
 * the program is hidden within the text of a shell command. */
static void app_wrap(struct words *app)
{
	struct px_buf text = { 0 };
	bool lone = false;

	for (int i = 0; i < app->n; i++)
		lone |= strcmp(app->list[i], ":") == 0;
	if (!lone || app->failed)
		return;
	app->failed = px_buf_append(&text, "exec ", 5) < 0 || pxd_quote_words(&text, app->list, 1) < 0 ||
		      px_buf_append(&text, "", 1) < 0;
	if (!app->failed) {
		struct words wrapped = { 0 };

		words_add(&wrapped, "sh");
		words_add(&wrapped, "-c");
		words_add(&wrapped, "%s", (const char *)px_buf_data(&text));
		words_fini(app);
		*app = wrapped;
	}
	px_buf_fini(&text);
}

/* command_fill: put the site's words into its start command. */
static int command_fill(const struct pxd_plan_options *o, struct pxd_start *st, const char *template,
	const char *prefix, const char *lib, const struct words *env, char *why, size_t cap)
{
	const struct pxd_site *s = st->site;
	struct words exe = { 0 }, args = { 0 }, app = { 0 }, pacxd = { 0 }, all = { 0 };
	struct words ranks = { 0 }, daemons = { 0 }, procs = { 0 }, libw = { 0 }, guard = { 0 }, mpi = { 0 };
	char *site[] = { s->name, NULL }, *host[] = { s->host, NULL };
	char *key[] = { "sh", "-c", NULL, "sh", NULL };
	char bad[PXD_HOLE_MAX];
	const char *near;
	int rc;

	if (site_exe(s, o))
		words_add_replaced(&exe, site_exe(s, o), s);
	for (int i = 0; s->has_args && i < s->nargs; i++)
		words_add_replaced(&args, s->args[i], s);
	for (char **a = s->has_args || !o->program ? NULL : o->program + 1; a && *a; a++)
		words_add_replaced(&args, *a, s);
	words_add(&app, "env");
	words_add(&pacxd, "env");
	for (int i = 0; i < env->n; i++) {
		words_add(&app, "%s", env->list[i]);
		words_add(&pacxd, "%s", env->list[i]);
		words_add(&all, "%s", env->list[i]);
	}
	words_add(&all, "%s", st->preload);
	words_add(&pacxd, "%s/pacx/pacxd-%s", lib, pxd_flavor_name(s->mpi));
	/* The helpers are no MPI programs: only what they run is preloaded. */
	words_add(&app, "%s/pacx/pacxrank", lib);
	if (o->label)
		words_add(&app, "%s/pacx/pacxlabel", lib);
	words_add(&app, "env");
	words_add(&app, "%s", st->preload);
	for (int i = 0; i < exe.n; i++)
		words_add(&app, "%s", exe.list[i]);
	for (int i = 0; i < args.n; i++)
		words_add(&app, "%s", args.list[i]);
	app_wrap(&app);
	words_add(&ranks, "%d", s->ranks);
	words_add(&daemons, "%d", daemons_of(s));
	words_add(&procs, "%d", s->ranks + daemons_of(s));
	words_add(&libw, "%s", lib);
	words_add(&guard, "%s/bin/pacxrun", prefix);
	words_add(&guard, "--guard");
	words_add(&mpi, "%s", pxd_flavor_name(s->mpi));
	if (!args.list) /* no argument: no word, not an empty one */
		args.list = calloc(1, sizeof *args.list);
	if (!exe.list)
		exe.list = calloc(1, sizeof *exe.list);
	key[2] = pxd_key_script(s, st->key_names);
	if (!st->key_stdin) /* no key comes: {key} is nothing */
		key[0] = NULL;
	rc = PX_ENOMEM;
	snprintf(why, cap, "out of memory");
	if (key[2] && args.list && exe.list && !exe.failed && !args.failed && !app.failed && !pacxd.failed &&
		!all.failed && !ranks.failed && !daemons.failed && !procs.failed && !libw.failed &&
		!guard.failed && !mpi.failed) {
		const struct pxd_hole holes[] = {
			{ "ranks", ranks.list },
			{ "daemons", daemons.list },
			{ "procs", procs.list },
			{ "app", app.list },
			{ "args", args.list },
			{ "pacxd", pacxd.list },
			{ "mpi", mpi.list },
			{ "site", site },
			{ "host", host },
			{ "lib", libw.list },
			{ "env", all.list },
			{ "guard", guard.list },
			{ "key", key },
			/* In the classic form {exe} has always meant the whole of it. */
			{ "exe", s->classic ? app.list : exe.list },
		};

		rc = pxd_template_fill(
			template, holes, sizeof holes / sizeof holes[0], &st->command, bad, &near);
		if (rc == PX_EINVAL) {
			snprintf(why, cap,
				"site '%s': the start command has the unknown placeholder {%s}; "
				"did you mean {%s}?",
				s->name, bad, near);
			rc = PX_ECONF;
		}
	}
	free(key[2]);
	words_fini(&exe);
	words_fini(&args);
	words_fini(&app);
	words_fini(&pacxd);
	words_fini(&all);
	words_fini(&ranks);
	words_fini(&daemons);
	words_fini(&procs);
	words_fini(&libw);
	words_fini(&guard);
	words_fini(&mpi);
	return rc;
}

static enum pxd_form form_of(const struct pxd_site *s, const struct pxd_plan_options *o)
{
	if (s->manual || !s->start)
		return o->form == PXD_FORM_SINGLE ? PXD_FORM_SINGLE : PXD_FORM_MPMD;
	if (pxd_template_has(s->start, "pacxd") || strstr(s->start, "pacxd"))
		return PXD_FORM_MPMD;
	if (pxd_template_has(s->start, "app") || pxd_template_has(s->start, "exe"))
		return PXD_FORM_SINGLE;
	return o->form == PXD_FORM_AUTO ? PXD_FORM_MPMD : o->form; /* a script: it decides */
}

static int start_make(const struct pxd_hosts *h, int i, const struct pxd_plan_options *o, const char *plan,
	struct pxd_start *st, char *why, size_t cap)
{
	const struct pxd_site *s = &h->sites[i];
	bool wanted = !s->manual && !o->env_only && (o->only < 0 || o->only == i);
	struct words env = { 0 };
	char *template = NULL, *lib = NULL;
	int rc = PX_ENOMEM;

	st->site = s;
	st->form = form_of(s, o);
	st->remote = s->start && pxd_template_remote(s->start);
	st->secure = pxd_plan_secure(h, i);
	st->records = wanted && records_wanted(s);
	st->fifo_stdin = o->stdin_fifo && s->base == 0 && site_is_here(s) && s->daemons_first &&
			 s->mpi == PX_MPI_MPICH;
	snprintf(why, cap, "out of memory");
	if (asprintf(&lib, "%s/lib", s->prefix ? s->prefix : o->prefix) < 0)
		return PX_ENOMEM;
	env_make(h, o, plan, st, &env);
	st->preload = preload_make(st, lib);
	if (env.failed || !st->preload)
		goto done;
	if (wanted && !site_exe(s, o) &&
		(!s->start || pxd_template_has(s->start, "app") || pxd_template_has(s->start, "exe"))) {
		snprintf(why, cap, "site '%s': no program; give one after -- or as exe: in the hostfile",
			s->name);
		rc = PX_ECONF;
		goto done;
	}
	rc = 0;
	if (wanted && !s->start)
		rc = start_default(s, o, &template, why, cap);
	else if (wanted && !(template = strdup(s->start)))
		rc = PX_ENOMEM;
	st->key_names = rc >= 0 && template && pxd_key_by_name(s, template);
	if (rc >= 0 && template && st->remote && !s->key && st->secure) {
		char *with = NULL;

		rc = pxd_key_hole(s, template, &with, why, cap);
		free(template);
		template = with;
		st->key_stdin = rc >= 0;
	}
	if (rc >= 0 && template)
		rc = command_fill(o, st, template, s->prefix ? s->prefix : o->prefix, lib, &env, why, cap);
	if (rc >= 0) {
		st->env = env.list;
		st->nenv = env.n;
		env = (struct words){ 0 };
	}
done:
	words_fini(&env);
	free(template);
	free(lib);
	return rc;
}

int pxd_plan_make(const struct pxd_hosts *h, const struct pxd_plan_options *o, struct pxd_plan **out,
	char *why, size_t cap)
{
	struct pxd_plan *p = calloc(1, sizeof *p);
	char *text = pxd_hosts_plan(h);
	int rc = PX_ENOMEM;

	snprintf(why, cap, "out of memory");
	if (!p || !text)
		goto done;
	p->starts = calloc((size_t)h->nsites, sizeof *p->starts);
	if (!p->starts)
		goto done;
	p->nsites = h->nsites;
	for (int i = 0; i < h->nsites; i++) {
		rc = start_make(h, i, o, text, &p->starts[i], why, cap);
		if (rc < 0)
			goto done;
	}
	*out = p;
	p = NULL;
	rc = 0;
done:
	free(text);
	pxd_plan_free(p);
	return rc;
}

void pxd_plan_free(struct pxd_plan *p)
{
	if (!p)
		return;
	for (int i = 0; i < p->nsites; i++) {
		struct pxd_start *st = &p->starts[i];

		for (int k = 0; k < st->nenv; k++)
			free(st->env[k]);
		free(st->env);
		free(st->command);
		free(st->preload);
	}
	free(p->starts);
	free(p);
}

static void print_gate(const struct pxd_site *s, int gateway, FILE *f)
{
	const struct pxd_gateway *g = &s->gateways[gateway];

	if (!s->listen) {
		if (gateway == 0)
			fprintf(f, "  it dials and does not listen\n");
		return;
	}
	fprintf(f, "  others dial %s port %d", g->host, g->port);
	if (strcmp(g->host, g->bind_host) != 0 || g->port != g->bind_port)
		fprintf(f, ", it listens on %s port %d", g->bind_host, g->bind_port);
	fprintf(f, g->port ? "\n" : " (any free one)\n");
}

/* print_link: a link's options in one line, as they are written in a hostfile. */
static void print_link(const struct pxd_hosts *h, const struct pxd_link_opts *o, FILE *f)
{
	static const char *const codec[] = { "none", "auto", "zlib", "lz4", "zstd" };

	if (o->streams)
		fprintf(f, "  streams: %d", o->streams);
	else
		fprintf(f, "  streams: auto");
	fprintf(f, ", compress: %s", codec[o->compress]);
	if (o->compress_level)
		fprintf(f, ":%d", o->compress_level);
	fprintf(f, ", security: %s, reconnect: %gs", o->plain ? "none" : "tls",
		(double)o->reconnect_ms / 1000);
	if (o->congestion)
		fprintf(f, ", congestion: %s", o->congestion);
	if (o->source_port)
		fprintf(f, ", source_port: %d", o->source_port);
	if (o->dial || o->dialer >= 0)
		fprintf(f, ", dial: %s", o->dial ? o->dial : h->sites[o->dialer].name);
	if (o->proxy) { /* without user and password */
		const char *at = strrchr(o->proxy, '@'), *host = strstr(o->proxy, "://") + 3;

		fprintf(f, ", proxy: %.*s%s", (int)(host - o->proxy), o->proxy, at ? at + 1 : host);
	}
	if (o->relay)
		fprintf(f, ", relay: %s", o->relay);
	if (o->emulate_latency_us)
		fprintf(f, ", latency: %gms", (double)o->emulate_latency_us / 1000);
	if (o->emulate_rate > 0)
		fprintf(f, ", rate: %gMB/s", o->emulate_rate / 1e6);
	fputc('\n', f);
}

void pxd_plan_print(const struct pxd_hosts *h, const struct pxd_plan *p, FILE *f)
{
	fprintf(f, "job: %s\njob id: %s\nranks: %d on %d site%s\nstart deadline: %g s\n",
		*h->job ? h->job : "(no name)", h->job_id, h->nranks, h->nsites, h->nsites == 1 ? "" : "s",
		(double)h->deadline_start_ms / 1000);
	fprintf(f, "files: %s\n",
		h->files >= PX_WORLD_FILES_SITE    ? h->sites[h->files - PX_WORLD_FILES_SITE].name
		: h->files == PX_WORLD_FILES_LOCAL ? "local"
						   : "shared");
	for (int i = 0; i < h->nsites; i++) {
		const struct pxd_site *s = &h->sites[i];
		const struct pxd_start *st = &p->starts[i];

		fprintf(f, "\nsite %s: ranks %d-%d, %s, daemons %s, %s\n", s->name, s->base,
			s->base + s->ranks - 1, pxd_flavor_title(s->mpi), s->daemons_first ? "first" : "last",
			st->form == PXD_FORM_SINGLE ? "single executable" : "MPMD");
		for (int g = 0; g < s->ngateways; g++)
			print_gate(s, g, f);
		if (s->buffer != PXD_BUFFER_DEFAULT)
			fprintf(f, "  buffer %g MiB\n", (double)s->buffer / 1048576);
		if (s->key)
			fprintf(f, "  key in %s\n", s->key);
		if (st->command)
			fprintf(f, "  start: %s\n", st->command);
		else
			fprintf(f, "  start: %s\n", s->manual ? "by hand" : "by somebody else");
	}
	for (int i = 0; i < h->nlinks; i++) {
		const struct pxd_link *l = &h->links[i];

		if (l->a < 0)
			fprintf(f, "\nlinks: default\n");
		else
			fprintf(f, "\nlink %s - %s\n", h->sites[l->a].name, h->sites[l->b].name);
		print_link(h, &l->o, f);
	}
}

/* print_quoted: NAME=VALUE with the value quoted for a shell. */
static void print_quoted(const char *pair, FILE *f)
{
	const char *eq = strchr(pair, '=');
	struct px_buf b = { 0 };

	if (eq && pxd_quote_word(&b, eq + 1) >= 0 && px_buf_append(&b, "", 1) >= 0)
		fprintf(f, "export %.*s=%s\n", (int)(eq - pair), pair, (const char *)px_buf_data(&b));
	px_buf_fini(&b);
}

/* Open MPI takes the environment to other nodes only by name. */
static void print_names(const struct pxd_start *s, FILE *f)
{
	for (int i = 0; i < s->nenv && s->site->mpi != PX_MPI_MPICH; i++)
		fprintf(f, " -x %.*s", (int)strcspn(s->env[i], "="), s->env[i]);
}

/* The daemon lies beside the library that is preloaded. */
static void print_daemon(const struct pxd_start *s, FILE *f)
{
	const char *lib = strchr(s->preload, '=') + 1, *end = strstr(lib, "/libpacx-");

	fprintf(f, " %.*s/pacx/pacxd-%s", (int)(end ? end - lib : 0), lib, pxd_flavor_name(s->site->mpi));
}

static void print_part(const struct pxd_start *s, bool app, FILE *f)
{
	fprintf(f, "-np %d", app ? s->site->ranks : daemons_of(s->site));
	print_names(s, f);
	if (!app && s->secure && !s->site->key && s->site->mpi != PX_MPI_MPICH)
		fputs(" -x PACX_KEY_FILE", f);
	if (app)
		fprintf(f, " env %s PROGRAM", s->preload);
	else
		print_daemon(s, f);
}

/* print_mpirun: the launcher's command line for a start by hand. */
static void print_mpirun(const struct pxd_start *s, FILE *f)
{
	const char *mpirun = mpirun_find(s->site->mpi);

	fprintf(f, "%s %s", mpirun ? mpirun : "mpirun",
		s->site->mpi == PX_MPI_MPICH ? "" : "--oversubscribe ");
	print_part(s, !s->site->daemons_first, f);
	fputs(" : ", f);
	print_part(s, s->site->daemons_first, f);
	fputc('\n', f);
}

/* print_key: never the key, but where it has to be. */
static void print_key(const struct pxd_start *s, const char *before, FILE *f)
{
	if (s->secure && s->site->key)
		fprintf(f,
			"%sThe daemons read the key of the job from %s (key: in the hostfile), mode 600.\n",
			before, s->site->key);
	else if (s->secure)
		fprintf(f,
			"%sThe daemons need the key of the job: export PACX_KEY_FILE=FILE, a copy with mode "
			"600 of the file "
			"which all sites have (pacxctl keygen FILE makes it).\n",
			before);
}

void pxd_plan_print_env(const struct pxd_start *s, FILE *f)
{
	for (int i = 0; i < s->nenv; i++)
		print_quoted(s->env[i], f);
	fputs("# ", f);
	print_mpirun(s, f);
	print_key(s, "# ", f);
}

void pxd_plan_print_manual(const struct pxd_hosts *h, const struct pxd_start *s, FILE *f)
{
	fprintf(f, "pacxrun: site '%s' is started by hand. Type there:\n\n", s->site->name);
	for (int i = 0; i < s->nenv; i++)
		print_quoted(s->env[i], f);
	print_mpirun(s, f);
	fprintf(f,
		"\nor, with %s there: set PACX_HOSTFILE to it, PACX_SITE=%s and PACX_JOB=%s, then "
		"the same mpirun line, LD_PRELOAD included.\n\n",
		h->file, s->site->name, h->job_id);
	print_key(s, "", f);
	if (s->secure)
		fputc('\n', f);
	fflush(f);
}
