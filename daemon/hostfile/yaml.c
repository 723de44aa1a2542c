/* yaml.c: The YAML form: tables of keys (keys.h) of the hostfile and of a site.
 * A new key is a new row. Links are in links.c, gateways in gates.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "keys.h"

/* Keys of a site. */
static int site_name(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_site *s = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "the name of the site");

	s->at = v->at;
	return rc < 0 ? rc : pxd_value_name(r->t, v->at, v->text, &s->name);
}

static int site_host(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_site *s = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "a host name or an IP address");

	s->has_host = true;
	return rc < 0 ? rc : pxd_value_host(r->t, v->at, v->text, &s->host);
}

static int site_port(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_site *s = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "a port number from 1 to 65535, or 0 for any free one");

	s->has_port = true;
	s->at_port = v->at;
	return rc < 0 ? rc : pxd_value_port(r->t, v->at, v->text, &s->port);
}

static int site_bind(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_site *s = object;
	int port = -1,
	    rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "host:port, [IPv6 address]:port, or a host alone");

	if (rc < 0)
		return rc;
	s->at_bind = v->at;
	rc = pxd_value_endpoint(r->t, v->at, v->text, &s->bind_host, &port);
	if (rc < 0)
		return rc;
	if (port >= 0) {
		s->has_bind_port = true;
		s->bind_port = port;
	}
	return 0;
}

static int site_listen(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const char expected[] = "yes or no";
	struct pxd_site *s = object;
	char show[PXD_SHOW];
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, expected);

	if (rc < 0)
		return rc;
	s->at_listen = v->at;
	s->listen = strcmp(v->text, "yes") == 0 || strcmp(v->text, "true") == 0;
	if (!s->listen && strcmp(v->text, "no") != 0 && strcmp(v->text, "false") != 0)
		return pxd_text_fail(r->t, v->at, expected, "%s", pxd_text_show(v->text, show));
	return 0;
}

static int site_buffer(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_site *s = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "a size such as 256MiB");

	return rc < 0 ? rc : pxd_value_buffer(r->t, v->at, v->text, &s->buffer);
}

static int site_key(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	return pxd_key_line(r, v, "the path of a file", &((struct pxd_site *)object)->key);
}

static int site_group(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "the name of a group of sites");

	return rc < 0 ? rc : pxd_value_name(r->t, v->at, v->text, &((struct pxd_site *)object)->group);
}

static int site_uplink(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "a rate such as 100Mbit/s");

	return rc < 0 ? rc : pxd_value_rate(r->t, v->at, v->text, &((struct pxd_site *)object)->uplink);
}

static int site_ranks(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_site *s = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "a number of ranks from 1 to 16777216");

	return rc < 0 ? rc : pxd_value_ranks(r->t, v->at, v->text, &s->ranks);
}

static int site_mpi(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	char show[PXD_SHOW];
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, PXD_MPI_EXPECTED);

	if (rc < 0)
		return rc;
	rc = pxd_site_mpi_set(object, v->text);
	if (rc == PX_EINVAL)
		return pxd_text_fail(r->t, v->at, PXD_MPI_EXPECTED, "%s", pxd_text_show(v->text, show));
	return rc < 0 ? pxd_text_nomem(r->t) : 0;
}

static int site_daemons(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const char expected[] = "last or first";
	struct pxd_site *s = object;
	char show[PXD_SHOW];
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, expected);

	if (rc < 0)
		return rc;
	s->daemons_first = strcmp(v->text, "first") == 0;
	if (!s->daemons_first && strcmp(v->text, "last") != 0)
		return pxd_text_fail(r->t, v->at, expected, "%s", pxd_text_show(v->text, show));
	return 0;
}

static int site_exe(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_site *s = object;

	return pxd_keyed_text(r, v, "the path of a program", &s->exe);
}

static int site_prefix(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	return pxd_keyed_text(
		r, v, "the directory in which PACX is installed", &((struct pxd_site *)object)->prefix);
}

static int site_start(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_site *s = object;

	s->at_start = v->at;
	if (v->kind == PXD_SCALAR && strcmp(v->text, "manual") == 0) {
		s->manual = true;
		return 0;
	}
	return pxd_keyed_text(r, v, "a start command, or manual", &s->start);
}

static int site_args(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	static const char expected[] = "a list of arguments such as [-n, 10]";
	struct pxd_site *s = object;
	int rc = pxd_tree_expect(r->t, v, PXD_SEQUENCE, expected);

	if (rc < 0)
		return rc;
	s->has_args = true;
	s->args = calloc((size_t)v->nchildren + 1, sizeof *s->args);
	if (!s->args)
		return pxd_text_nomem(r->t);
	for (const struct pxd_tree *a = v->child; a; a = a->next) {
		char show[PXD_SHOW];

		if (a->kind != PXD_SCALAR)
			return pxd_text_fail(r->t, a->at, "an argument", "%s", pxd_tree_show(a, show));
		s->args[s->nargs] = strdup(a->text);
		if (!s->args[s->nargs])
			return pxd_text_nomem(r->t);
		s->nargs++;
	}
	return 0;
}

/* env_reserved: variables by which pacxrun itself talks to the site's processes. */
static bool env_reserved(const char *name)
{
	static const char *const own[] = { "PACX_PLAN", "PACX_HOSTFILE", "PACX_SITE", "PACX_JOB", "PACX_FORM",
		"PACX_DAEMONS", "PACX_GATEWAYS", "PACX_BASE", "PACX_MPI", "PACX_STATS", "PACX_STDIN",
		"PACX_KEY", "PACX_KEY_FILE" };

	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (strcmp(name, own[i]) == 0)
			return true;
	return false;
}

static int site_env(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	struct pxd_site *s = object;
	char show[PXD_SHOW];
	int rc = pxd_tree_expect(r->t, v, PXD_MAPPING, "a mapping such as {OMP_NUM_THREADS: 1}");

	if (rc < 0)
		return rc;
	s->env = calloc((size_t)v->nchildren / 2 + 1, sizeof *s->env);
	if (!s->env)
		return pxd_text_nomem(r->t);
	for (const struct pxd_tree *k = v->child; k; k = k->next->next) {
		static const char expected[] = "the name of an environment variable";
		const char *first = "0123456789";
		struct pxd_env *e = &s->env[s->nenv];

		rc = pxd_tree_expect(r->t, k, PXD_SCALAR, expected);
		if (rc < 0)
			return rc;
		if (!*k->text || strchr(first, k->text[0]) ||
			strspn(k->text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") !=
				strlen(k->text))
			return pxd_text_fail(r->t, k->at, expected, "%s", pxd_text_show(k->text, show));
		if (env_reserved(k->text))
			return pxd_text_fail(r->t, k->at, "a variable that pacxrun does not set itself", "%s",
				pxd_text_show(k->text, show));
		for (int i = 0; i < s->nenv; i++)
			if (strcmp(s->env[i].name, k->text) == 0)
				return pxd_text_fail(r->t, k->at, "every variable once",
					"the variable '%s' a second time", k->text);
		if (k->next->kind != PXD_SCALAR)
			return pxd_text_fail(r->t, k->next->at, "the value of an environment variable", "%s",
				pxd_tree_show(k->next, show));
		e->name = strdup(k->text);
		e->value = strdup(k->next->text);
		s->nenv++;
		if (!e->name || !e->value)
			return pxd_text_nomem(r->t);
	}
	return 0;
}

static const struct pxd_key site_keys[] = {
	{ "name", true, site_name, NULL },
	{ "host", false, site_host, NULL },
	{ "port", false, site_port, NULL },
	{ "bind", false, site_bind, NULL },
	{ "gateways", false, pxd_hosts_gateways, NULL },
	{ "listen", false, site_listen, NULL },
	{ "buffer", false, site_buffer, NULL },
	{ "key", false, site_key, NULL },
	{ "group", false, site_group, NULL },
	{ "uplink", false, site_uplink, NULL },
	{ "ranks", true, site_ranks, NULL },
	{ "mpi", false, site_mpi, NULL },
	{ "exe", false, site_exe, NULL },
	{ "args", false, site_args, NULL },
	{ "env", false, site_env, NULL },
	{ "daemons", false, site_daemons, NULL },
	{ "start", false, site_start, NULL },
	{ "prefix", false, site_prefix, NULL },
};

static int hosts_sites(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	int rc = pxd_tree_expect(r->t, v, PXD_SEQUENCE, "a list of sites");

	(void)object;
	if (rc < 0)
		return rc;
	if (!v->nchildren)
		return pxd_text_fail(r->t, v->at, "at least one site", "an empty list");
	if (v->nchildren > PXD_SITES_MAX)
		return pxd_text_fail(r->t, v->at, "at most 4096", "%d sites", v->nchildren);
	for (const struct pxd_tree *n = v->child; n; n = n->next) {
		struct pxd_site *s = pxd_hosts_add(r->h);

		if (!s)
			return pxd_text_nomem(r->t);
		rc = pxd_keys_read(r, n, site_keys, sizeof site_keys / sizeof site_keys[0], "a site", s);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int deadline_start(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "a duration such as 120s");

	(void)object;
	return rc < 0 ? rc : pxd_value_duration(r->t, v->at, v->text, &r->h->deadline_start_ms);
}

static const struct pxd_key deadline_keys[] = {
	{ "start", false, deadline_start, NULL },
};

static int hosts_deadlines(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	return pxd_keys_read(
		r, v, deadline_keys, sizeof deadline_keys / sizeof deadline_keys[0], "deadlines", object);
}

static int hosts_job(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	int rc;

	(void)object;
	rc = pxd_keyed_text(r, v, "the name of the job", &r->h->job);
	if (rc < 0)
		return rc;
	if (strlen(r->h->job) > PX_JOB_MAX)
		return pxd_text_fail(r->t, v->at, "at most 64", "a job name of %zu bytes", strlen(r->h->job));
	for (const char *p = r->h->job; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return pxd_text_fail(r->t, v->at, "a job name of one line", "a control character");
	return 0;
}

static int hosts_files(struct pxd_reader *r, const struct pxd_tree *v, void *object)
{
	int rc = pxd_tree_expect(r->t, v, PXD_SCALAR, "shared, local or the name of a site");

	(void)object;
	return rc < 0 ? rc : pxd_value_files(r->t, v->at, v->text, v->plain, r->h);
}

/* In the order in which they are read: links and files name sites. */
static const struct pxd_key hosts_keys[] = {
	{ "job", false, hosts_job, NULL },
	{ "sites", true, hosts_sites, NULL },
	{ "links", false, pxd_hosts_links, NULL },
	{ "files", false, hosts_files, NULL },
	{ "deadlines", false, hosts_deadlines, NULL },
};

static int read_yaml(const struct pxd_text *t, struct pxd_hosts *h)
{
	struct pxd_reader r = { t, h, NULL };
	struct pxd_tree *root = NULL;
	int rc = pxd_tree_read(t, &root);

	if (rc < 0)
		return rc;
	if (!root)
		return pxd_text_fail(t, (struct pxd_mark){ 1, 1 },
			"'sites:' with a list of sites, or lines 'host tcp ranks (start command)'",
			"an empty hostfile");
	rc = pxd_keys_read(
		&r, root, hosts_keys, sizeof hosts_keys / sizeof hosts_keys[0], "the hostfile", NULL);
	pxd_tree_free(root);
	return rc;
}

/* What is no other form is meant to be YAML. */
const struct pxd_hostform pxd_hostform_yaml = { NULL, read_yaml };
