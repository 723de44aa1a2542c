/* plan_print.c: a plan as people read it: --check, --env, and what to type for a site that is started by hand. See plan.h. */
#include "plan.h"

#include <stdio.h>
#include <string.h>

#include "quote.h"
#include "wire/world.h"

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
	if (o->predict != PXD_PREDICTION_AUTO)
		fprintf(f, ", predict: %s", o->predict == PXD_PREDICTION_NONE ? "none" : "always");
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
		if (s->group)
			fprintf(f, "  of group %s\n", s->group);
		if (s->uplink > 0)
			fprintf(f, "  uplink %g MB/s\n", s->uplink / 1e6);
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
	const char *lib = strrchr(s->preload, ':'), *end;

	lib = lib ? lib + 1 : strchr(s->preload, '=') + 1;
	end = strrchr(lib, '/');
	fprintf(f, " %.*s/pacx/pacxd-%s", (int)(end ? end - lib : 0), lib, s->mpi.build);
}

static void print_part(const struct pxd_start *s, bool app, FILE *f)
{
	fprintf(f, "-np %d", app ? s->site->ranks : pxd_plan_daemons(s->site));
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
	fprintf(f, "%s %s", *s->mpi.launcher ? s->mpi.launcher : "mpirun",
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
