/* plan.c: see plan.h. */
#include "plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "elf_flavor.h"
#include "plan_key.h"
#include "plan_mpi.h"
#include "quote.h"

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
	char *copy = pxd_plan_replace(text, s);

	if (copy)
		words_add(w, "%s", copy);
	else
		w->failed = true;
	free(copy);
}

/* exe_wrong: why pxd_path_find has not found this program. */
static void exe_wrong(const struct pxd_site *s, const char *file, char *why, size_t cap)
{
	char text[PXD_WHY];
	struct stat st;

	if (stat(file, &st) < 0 && !strchr(file, '/'))
		snprintf(text, sizeof text, "there is no such program in PATH, nor a file here");
	else if (stat(file, &st) < 0)
		snprintf(text, sizeof text, "%s", strerror(errno));
	else if (S_ISDIR(st.st_mode))
		snprintf(text, sizeof text, "it is a directory");
	else if (!S_ISREG(st.st_mode))
		snprintf(text, sizeof text, "it is no regular file");
	else if (access(file, X_OK) < 0)
		snprintf(text, sizeof text,
			"it is not executable (chmod +x '%s', or is it to be run by an interpreter?)", file);
	else /* without a slash it is looked for in PATH */
		snprintf(text, sizeof text, "it is not in PATH; there is one here, for which write ./%s",
			file);
	snprintf(why, cap, "site '%s': cannot run the program '%s': %s", s->name, file, text);
}

/* start_default: the start command of a site on this machine. */
static int start_default(
	const struct pxd_start *st, const struct pxd_plan_options *o, char **out, char *why, size_t cap)
{
	const struct pxd_site *s = st->site;
	const char *mpirun = st->mpi.launcher, *exe = pxd_plan_exe(s, o);
	char options[128] = "", contexts[128], path[4096];
	struct words checked = { 0 };
	struct pxd_elf_mpi linked = { .flavor = PX_MPI_OTHER };
	bool found;

	if (!*mpirun) {
		snprintf(why, cap,
			"site '%s': no mpirun of %s is installed here; install it or give start:", s->name,
			pxd_flavor_title(s->mpi));
		return PX_ECONF;
	}
	words_add_replaced(&checked, exe, s);
	found = !checked.failed && pxd_path_find(checked.list[0], path, sizeof path) == 0;
	if (found)
		pxd_plan_program(s, path, &linked);
	if (linked.flavor != PX_MPI_OTHER && linked.flavor != s->mpi) {
		snprintf(why, cap,
			"site '%s': '%s' is linked with %s, but the site's MPI is %s; give mpi: (or --mpi) "
			"%s",
			s->name, path, pxd_flavor_title(linked.flavor), pxd_flavor_title(s->mpi),
			pxd_flavor_name(linked.flavor));
		words_fini(&checked);
		return PX_ECONF;
	}
	if (!found)
		exe_wrong(s, checked.failed ? exe : checked.list[0], why, cap);
	words_fini(&checked);
	if (!found)
		return PX_ECONF;
	if (s->mpi == PX_MPI_OPENMPI) {
		size_t n = 0;

		for (const char *const *w = pxd_plan_openmpi_options(); *w; w++)
			n += (size_t)snprintf(options + n, sizeof options - n, " %s", *w);
		if (s->daemons_first && s->base == 0)
			snprintf(options + n, sizeof options - n, " --stdin %d", pxd_plan_daemons(s));
	}
	if (st->form == PXD_FORM_SINGLE)
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
	static const char *const passed[] = { "PACX_LOG", "PACX_WAIT", "PACX_BELLS", "PACX_PROGRESS",
		"PACX_ACCURACY", "PACX_ASSOCIATIVE", "PACX_RECORD_SIZE", "PACX_COLL_BCAST",
		"PACX_COLL_REDUCE", "PACX_COLL_ALLREDUCE", "PACX_COLL_ALLTOALL", "PACX_COLL_ALLGATHER" };
	const struct pxd_site *s = st->site;

	words_add(env, "PACX_SITE=%s", s->name);
	words_add(env, "PACX_JOB=%s", h->job_id);
	words_add(env, "PACX_FORM=%s", st->form == PXD_FORM_SINGLE ? "single" : "mpmd");
	words_add(env, "PACX_DAEMONS=%s", s->daemons_first ? "first" : "last");
	words_add(env, "PACX_GATEWAYS=%d", s->ngateways);
	words_add(env, "PACX_BASE=%d", s->base);
	words_add(env, "PACX_MPI=%s", st->mpi.build);
	if (*st->mpi.library)
		words_add(env, "PACX_LIBMPI=%s", st->mpi.library);
	if (o->stats)
		words_add(env, "PACX_STATS=1");
	if (o->record)
		words_add(env, "PACX_RECORD=%s", o->record);
	if (st->records)
		words_add(env, "PACX_RECORDS=1");
	if (st->fifo_stdin || st->pump_stdin)
		words_add(env, "PACX_STDIN=%s", st->fifo_stdin ? o->stdin_fifo : "-");
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

/* preload_make: LD_PRELOAD=what the user preloads anyway, then libpacx: the MPI_X of another tool comes before ours, and its PMPI_X
 * is ours. */
static char *preload_make(const struct pxd_start *st, const char *lib)
{
	const char *more = st->remote || st->site->manual ? NULL : getenv("LD_PRELOAD");
	char *out;

	for (int i = 0; i < st->site->nenv; i++)
		if (strcmp(st->site->env[i].name, "LD_PRELOAD") == 0)
			more = st->site->env[i].value;
	if (asprintf(&out, "LD_PRELOAD=%s%s%s/libpacx-%s.so", more ? more : "", more && *more ? ":" : "", lib,
		    st->mpi.build) < 0)
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

/* Holes of a start command that are words of ours. */
enum { RANKS, DAEMONS, PROCS, APP, ARGS, PACXD, MPI, SITE, HOST, LIB, ENV, GUARD, EXE, NHOLES };
static const char *const hole_names[NHOLES] = { "ranks", "daemons", "procs", "app", "args", "pacxd", "mpi",
	"site", "host", "lib", "env", "guard", "exe" };

static void words_join(struct words *to, const struct words *from)
{
	for (int i = 0; i < from->n; i++)
		words_add(to, "%s", from->list[i]);
	to->failed = to->failed || from->failed;
}

static void app_words(const struct pxd_plan_options *o, const struct pxd_start *st, const char *lib,
	const struct words *env, struct words w[NHOLES])
{
	words_add(&w[APP], "env");
	words_join(&w[APP], env);
	/* The helpers are no MPI programs: only what they run is preloaded. */
	words_add(&w[APP], "%s/pacx/pacxrank", lib);
	if (o->label)
		words_add(&w[APP], "%s/pacx/pacxlabel", lib);
	words_add(&w[APP], "env");
	words_add(&w[APP], "%s", st->preload);
	words_join(&w[APP], &w[EXE]);
	words_join(&w[APP], &w[ARGS]);
	app_wrap(&w[APP]);
}

static void holes_words(const struct pxd_plan_options *o, const struct pxd_start *st, const char *prefix,
	const char *lib, const struct words *env, struct words w[NHOLES])
{
	const struct pxd_site *s = st->site;

	if (pxd_plan_exe(s, o))
		words_add_replaced(&w[EXE], pxd_plan_exe(s, o), s);
	for (int i = 0; s->has_args && i < s->nargs; i++)
		words_add_replaced(&w[ARGS], s->args[i], s);
	for (char **a = s->has_args || !o->program ? NULL : o->program + 1; a && *a; a++)
		words_add_replaced(&w[ARGS], *a, s);
	app_words(o, st, lib, env, w);
	words_add(&w[PACXD], "env");
	words_join(&w[PACXD], env);
	words_add(&w[PACXD], "%s/pacx/pacxd-%s", lib, st->mpi.build);
	words_join(&w[ENV], env);
	words_add(&w[ENV], "%s", st->preload);
	words_add(&w[RANKS], "%d", s->ranks);
	words_add(&w[DAEMONS], "%d", pxd_plan_daemons(s));
	words_add(&w[PROCS], "%d", s->ranks + pxd_plan_daemons(s));
	words_add(&w[SITE], "%s", s->name);
	words_add(&w[HOST], "%s", s->host);
	words_add(&w[LIB], "%s", lib);
	words_add_replaced(&w[MPI], "{mpi}", s);
	words_add(&w[GUARD], "%s/bin/pacxrun", prefix);
	words_add(&w[GUARD], "--guard");
	if (st->remote && st->records) {
		words_add(&w[GUARD], "-s");
		words_add(&w[GUARD], "%s", s->name);
	}
	/* In the classic form {exe} has always meant the whole of it. */
	if (s->classic) {
		words_fini(&w[EXE]);
		w[EXE] = (struct words){ 0 };
		words_join(&w[EXE], &w[APP]);
	}
}

/* command_fill: put the site's words into its start command. */
static int command_fill(const struct pxd_plan_options *o, struct pxd_start *st, const char *template,
	const char *prefix, const char *lib, const struct words *env, char *why, size_t cap)
{
	struct words w[NHOLES] = { 0 };
	struct pxd_hole holes[NHOLES + 1];
	char *none[] = { NULL }; /* no argument: no word, not an empty one */
	char *key[] = { "sh", "-c", pxd_key_script(st->site, st->key_names), "sh", NULL };
	char *way = st->records ? pxd_template_way(template, "guard", PXD_FAR_KILL) : NULL;
	char bad[PXD_HOLE_MAX];
	const char *near;
	bool failed = !key[2];
	int rc = PX_ENOMEM;

	holes_words(o, st, prefix, lib, env, w);
	for (int i = 0; i < NHOLES; i++) {
		failed = failed || w[i].failed;
		holes[i] = (struct pxd_hole){ hole_names[i], w[i].list ? w[i].list : none };
	}
	if (!st->key_stdin) /* no key comes: {key} is nothing */
		key[0] = NULL;
	holes[NHOLES] = (struct pxd_hole){ "key", key };
	snprintf(why, cap, "out of memory");
	if (!failed)
		rc = pxd_template_fill(template, holes, NHOLES + 1, &st->command, bad, &near);
	if (rc >= 0 && way) {
		key[0] = NULL; /* that was needed once */
		rc = pxd_template_fill(way, holes, NHOLES + 1, &st->far_kill, bad, &near);
	}
	if (rc == PX_EINVAL) {
		snprintf(why, cap,
			"site '%s': the start command has the unknown placeholder {%s}; did you mean {%s}?",
			st->site->name, bad, near);
		rc = PX_ECONF;
	}
	free(key[2]);
	free(way);
	for (int i = 0; i < NHOLES; i++)
		words_fini(&w[i]);
	return rc;
}

static enum pxd_form form_of(const struct pxd_start *st, const struct pxd_plan_options *o, bool wanted)
{
	const struct pxd_site *s = st->site;

	if (!s->manual && !s->start && wanted && o->form == PXD_FORM_AUTO)
		return pxd_plan_mpmd(&st->mpi) ? PXD_FORM_MPMD : PXD_FORM_SINGLE;
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
	rc = pxd_plan_mpi_of(s, o, &st->mpi, why, cap);
	if (rc < 0)
		return rc;
	rc = PX_ENOMEM;
	st->form = form_of(st, o, wanted);
	st->remote = s->start && pxd_template_remote(s->start);
	st->secure = pxd_plan_secure(h, i);
	st->records = wanted && records_wanted(s);
	st->fifo_stdin = o->stdin_fifo && s->base == 0 && pxd_plan_here(s) &&
			 (s->daemons_first || !s->start) && s->mpi == PX_MPI_MPICH;
	/* hydra gives up when a rank does not take 64 KiB at once; behind the user's own command there is no FIFO. */
	st->pump_stdin = o->stdin_data && !st->fifo_stdin && s->base == 0 && s->start && st->records &&
			 s->mpi == PX_MPI_MPICH && pxd_template_has(s->start, "app");
	snprintf(why, cap, "out of memory");
	if (asprintf(&lib, "%s/lib", s->prefix ? s->prefix : o->prefix) < 0)
		return PX_ENOMEM;
	env_make(h, o, plan, st, &env);
	st->preload = preload_make(st, lib);
	if (env.failed || !st->preload)
		goto done;
	if (wanted && !pxd_plan_exe(s, o) &&
		(!s->start || pxd_template_has(s->start, "app") || pxd_template_has(s->start, "exe"))) {
		snprintf(why, cap, "site '%s': no program; give one after -- or as exe: in the hostfile",
			s->name);
		rc = PX_ECONF;
		goto done;
	}
	rc = 0;
	if (wanted && !s->start)
		rc = start_default(st, o, &template, why, cap);
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
		free(st->far_kill);
		free(st->preload);
	}
	free(p->starts);
	free(p);
}
