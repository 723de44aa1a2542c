/* hostfile.c: see hostfile.h. */
#include "hostfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "text.h"
#include "wire/world.h"

static const struct pxd_mark nowhere = { 0, 0 };

const char *pxd_flavor_name(enum px_flavor f)
{
	return f == PX_MPI_OPENMPI ? "openmpi" : f == PX_MPI_MPICH ? "mpich" : "auto";
}

const char *pxd_flavor_title(enum px_flavor f)
{
	return f == PX_MPI_OPENMPI ? "Open MPI" : f == PX_MPI_MPICH ? "MPICH" : "unknown MPI";
}

int pxd_site_mpi_set(struct pxd_site *s, const char *text)
{
	static const struct {
		const char *vendor;
		enum px_flavor flavor;
	} known[] = { { "openmpi", PX_MPI_OPENMPI }, { "mpich", PX_MPI_MPICH }, { "intelmpi", PX_MPI_MPICH },
		{ "mvapich", PX_MPI_MPICH }, { "craympich", PX_MPI_MPICH } };
	static const char word[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-";
	enum px_flavor flavor = PX_MPI_OTHER;
	size_t n = strcspn(text, "-");
	bool plain = strcmp(text, "auto") == 0;

	for (size_t i = 0; i < sizeof known / sizeof known[0] && *text != '/'; i++)
		if (strlen(known[i].vendor) == n && memcmp(known[i].vendor, text, n) == 0)
			flavor = known[i].flavor;
	plain |= !text[n] && flavor != PX_MPI_OTHER && strcmp(text, pxd_flavor_name(flavor)) == 0;
	if (!plain && *text != '/' && (flavor == PX_MPI_OTHER || !text[n] || text[strspn(text, word)]))
		return PX_EINVAL;
	free(s->mpi_named);
	s->mpi_named = plain ? NULL : strdup(text);
	s->mpi = flavor;
	return plain || s->mpi_named ? 0 : PX_ENOMEM;
}

struct pxd_site *pxd_hosts_add(struct pxd_hosts *h)
{
	struct pxd_site *s = realloc(h->sites, ((size_t)h->nsites + 1) * sizeof *s);

	if (!s)
		return NULL;
	h->sites = s;
	s += h->nsites++;
	memset(s, 0, sizeof *s);
	s->listen = true;
	s->buffer = PXD_BUFFER_DEFAULT;
	return s;
}

void pxd_hosts_free(struct pxd_hosts *h)
{
	if (!h)
		return;
	for (int i = 0; i < h->nsites; i++) {
		struct pxd_site *s = &h->sites[i];

		for (int k = 0; k < s->nargs; k++)
			free(s->args[k]);
		for (int k = 0; k < s->nenv; k++) {
			free(s->env[k].name);
			free(s->env[k].value);
		}
		free(s->args);
		free(s->env);
		free(s->name);
		free(s->host);
		free(s->bind_host);
		for (int k = 0; k < s->ngateways; k++) {
			free(s->gateways[k].host);
			free(s->gateways[k].bind_host);
		}
		free(s->gateways);
		free(s->key);
		free(s->group);
		free(s->start);
		free(s->prefix);
		free(s->mpi_named);
		free(s->exe);
	}
	free(h->sites);
	for (int i = 0; i < h->nlinks; i++)
		pxd_link_opts_fini(&h->links[i].o);
	pxd_link_opts_fini(&h->link_default);
	free(h->links);
	free(h->file);
	free(h->job);
	free(h);
}

int pxd_hosts_find(const struct pxd_hosts *h, const char *name)
{
	for (int i = 0; i < h->nsites; i++)
		if (strcmp(h->sites[i].name, name) == 0)
			return i;
	return -1;
}

/* FNV-1a, 64 bits: only has to be the same everywhere, not to be secret. */
static uint64_t hash_add(uint64_t hash, const char *s)
{
	do {
		hash = (hash ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	} while (*s++); /* the final NUL separates the parts */
	return hash;
}

void pxd_hosts_job_id(struct pxd_hosts *h)
{
	uint64_t hash = hash_add(UINT64_C(0xcbf29ce484222325), h->job);
	char part[64];

	for (int i = 0; i < h->nsites; i++) {
		hash = hash_add(hash, h->sites[i].name);
		hash = hash_add(hash, h->sites[i].host);
		snprintf(part, sizeof part, "%d %d", h->sites[i].ranks, h->sites[i].port);
		hash = hash_add(hash, part);
		for (int g = 1; g < h->sites[i].ngateways; g++) { /* the first one is the site's own port */
			hash = hash_add(hash, h->sites[i].gateways[g].host);
			snprintf(part, sizeof part, "%d", h->sites[i].gateways[g].port);
			hash = hash_add(hash, part);
		}
	}
	snprintf(h->job_id, sizeof h->job_id, "%016" PRIx64, hash);
}

/* start_check: a command that starts nothing of ours would run as many jobs as there are sites, and each would look well. */
static int start_check(const struct pxd_text *t, const struct pxd_site *s)
{
	static const char *const ours[] = { "{app}", "{pacxd}", "{exe}", "{env}", "pacxd", "libpacx" };

	for (size_t i = 0; s->start && i < sizeof ours / sizeof ours[0]; i++)
		if (strstr(s->start, ours[i]))
			return 0;
	return s->start ? pxd_text_fail(t, s->at_start,
				  "{app} for the program and {pacxd} for the daemons, as in: mpirun -np "
				  "{ranks} {app} : "
				  "-np {daemons} {pacxd} (a script of yours may take {env} instead)",
				  "a start command that starts nothing of PACX")
			: 0;
}

int pxd_value_files(
	const struct pxd_text *t, struct pxd_mark at, const char *text, bool word, struct pxd_hosts *h)
{
	int site = pxd_hosts_find(h, text);
	char show[PXD_SHOW];

	if (word && strcmp(text, "shared") == 0)
		h->files = PX_WORLD_FILES_SHARED;
	else if (word && strcmp(text, "local") == 0)
		h->files = PX_WORLD_FILES_LOCAL;
	else if (site >= 0)
		h->files = PX_WORLD_FILES_SITE + site;
	else
		return pxd_text_fail(
			t, at, "shared, local or the name of a site", "%s", pxd_text_show(text, show));
	return 0;
}

/* files_default: on one machine everybody sees the same files; of several only the user knows it, and files at the site of rank 0 are
 * right whatever they share. */
static void files_default(struct pxd_hosts *h)
{
	bool one = true;

	for (int i = 1; i < h->nsites; i++)
		one = one && strcmp(h->sites[i].host, h->sites[0].host) == 0;
	if (h->files < 0)
		h->files = one ? PX_WORLD_FILES_SHARED : PX_WORLD_FILES_SITE;
}

int pxd_hosts_finish(const struct pxd_text *t, struct pxd_hosts *h)
{
	long long total = 0;
	int rc;

	if (h->nsites == 0)
		return pxd_text_fail(t, nowhere, "at least one", "no sites");
	if (!h->job && !(h->job = strdup("")))
		return pxd_text_nomem(t);
	if (!h->file && !(h->file = strdup(t->file)))
		return pxd_text_nomem(t);
	if (h->deadline_start_ms == 0)
		h->deadline_start_ms = PXD_START_DEADLINE_MS;
	rc = pxd_hosts_gates_default(t, h);
	if (rc < 0)
		return rc;
	for (int i = 0; i < h->nsites; i++) {
		struct pxd_site *s = &h->sites[i];

		for (int k = 0; k < i; k++) {
			const struct pxd_site *o = &h->sites[k];

			if (strcmp(o->name, s->name) == 0)
				return pxd_text_fail(t, s->at, "a name of its own for every site",
					"a second site '%s' (the first is in line %d)", s->name, o->at.line);
		}
		rc = start_check(t, s);
		if (rc < 0)
			return rc;
		s->base = (int)total;
		total += s->ranks;
		if (total > INT_MAX)
			return pxd_text_fail(
				t, s->at, "at most 2147483647", "%lld ranks up to site '%s'", total, s->name);
	}
	h->nranks = (int)total;
	files_default(h);
	rc = pxd_hosts_links_default(t, h);
	if (rc < 0)
		return rc;
	pxd_hosts_job_id(h);
	return 0;
}

int pxd_hosts_give(const struct pxd_text *t, struct pxd_hosts *h, int rc, struct pxd_hosts **out)
{
	if (rc >= 0)
		rc = pxd_hosts_finish(t, h);
	if (rc < 0) {
		pxd_hosts_free(h);
		return rc;
	}
	*out = h;
	return 0;
}

/* The first form that takes the text for its own. */
static const struct pxd_hostform *form_of(const struct pxd_text *t)
{
	return pxd_hostform_classic.mine(t->text, t->len) ? &pxd_hostform_classic : &pxd_hostform_yaml;
}

int pxd_hosts_parse(
	const char *text, size_t len, const char *file, struct pxd_hosts **out, char *why, size_t cap)
{
	struct pxd_text t = { file, text ? text : "", len, why, cap, false };
	struct pxd_hosts *h = calloc(1, sizeof *h);
	int rc;

	if (!h)
		return pxd_text_nomem(&t);
	h->files = -1;
	if (len >= 3 && memcmp(t.text, "\xEF\xBB\xBF", 3) == 0) { /* a byte order mark says nothing here */
		t.text += 3;
		t.len -= 3;
	}
	rc = pxd_text_check(&t);
	if (rc >= 0)
		rc = form_of(&t)->read(&t, h);
	return pxd_hosts_give(&t, h, rc, out);
}

int pxd_hosts_load(const char *path, struct pxd_hosts **out, char *why, size_t cap)
{
	struct px_buf b = { 0 };
	int fd = -1, rc = PX_EIO;
	struct stat st;
	uint8_t *room;
	ssize_t n;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0) {
		snprintf(why, cap, "%s: cannot open the hostfile: %s", path, strerror(errno));
		goto done;
	}
	if (S_ISDIR(st.st_mode)) {
		snprintf(why, cap, "%s: found a directory, expected a hostfile", path);
		goto done;
	}
	do {
		if (px_buf_reserve(&b, 65536, &room) < 0) {
			snprintf(why, cap, "%s: out of memory", path);
			rc = PX_ENOMEM;
			goto done;
		}
		n = read(fd, room, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			snprintf(why, cap, "%s: cannot read the hostfile: %s", path, strerror(errno));
			goto done;
		}
		px_buf_commit(&b, (size_t)n);
	} while (n != 0 && px_buf_len(&b) <= PXD_HOSTFILE_MAX);
	rc = pxd_hosts_parse((const char *)px_buf_data(&b), px_buf_len(&b), path, out, why, cap);
done:
	if (fd >= 0)
		close(fd);
	px_buf_fini(&b);
	return rc;
}

int pxd_hosts_job_set(struct pxd_hosts *h, const char *text, char *why, size_t cap)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)text[i] >= ' ' && text[i] != 0x7f)
			continue;
		snprintf(why, cap,
			"PACX_JOB: found a control character, expected a word of at most %d characters",
			PX_JOB_MAX);
		return PX_ECONF;
	}
	if (n == 0 || n > PX_JOB_MAX) {
		snprintf(why, cap, "PACX_JOB: found %zu characters, expected 1 to %d", n, PX_JOB_MAX);
		return PX_ECONF;
	}
	memcpy(h->job_id, text, n + 1);
	return PX_OK;
}

/* env_overrides: what the environment says besides the hostfile: PACX_SITE and PACX_JOB. */
static int env_overrides(struct pxd_hosts *h, int *self, char *why, size_t cap)
{
	const char *site = getenv("PACX_SITE"), *job = getenv("PACX_JOB");

	for (int i = 0; i < h->nsites; i++) {
		bool fixed = true;

		for (int g = 0; g < h->sites[i].ngateways && h->sites[i].listen; g++)
			fixed = fixed && h->sites[i].gateways[g].port && h->sites[i].gateways[g].bind_port;
		if (fixed)
			continue;
		snprintf(why, cap,
			"%s: site '%s' has port 0 (any free one), which only pacxrun can choose; "
			"give every site a port",
			h->file, h->sites[i].name);
		return PX_ECONF;
	}
	if (job && *job && pxd_hosts_job_set(h, job, why, cap) < 0)
		return PX_ECONF;
	if (!self)
		return 0;
	if (!site || !*site) {
		snprintf(why, cap, "PACX_SITE is not set; set it to the name of this site in %s", h->file);
		return PX_ESITE;
	}
	*self = pxd_hosts_find(h, site);
	if (*self < 0) {
		snprintf(why, cap, "PACX_SITE: found '%.64s', expected the name of a site in %s", site,
			h->file);
		return PX_ESITE;
	}
	return 0;
}

int pxd_hosts_from_env(struct pxd_hosts **out, int *self, char *why, size_t cap)
{
	const char *plan = getenv("PACX_PLAN"), *path = getenv("PACX_HOSTFILE");
	struct pxd_hosts *h = NULL;
	int rc;

	if (plan && *plan) {
		rc = pxd_hosts_parse(plan, strlen(plan), "PACX_PLAN", &h, why, cap);
	} else if (path && *path) {
		rc = pxd_hosts_load(path, &h, why, cap);
	} else {
		snprintf(why, cap,
			"neither PACX_PLAN nor PACX_HOSTFILE is set; start with pacxrun, or set "
			"PACX_HOSTFILE to the hostfile and PACX_SITE to the name of this site");
		return PX_ECONF;
	}
	if (rc < 0)
		return rc;
	rc = env_overrides(h, self, why, cap);
	if (rc < 0) {
		pxd_hosts_free(h);
		return rc;
	}
	*out = h;
	return 0;
}

int pxd_hosts_group(const struct pxd_hosts *h, int i)
{
	const char *group = h->sites[i].group;

	for (int k = 0; group && k < i; k++)
		if (h->sites[k].group && strcmp(h->sites[k].group, group) == 0)
			return k;
	return i;
}

int pxd_hosts_site_of(const struct pxd_hosts *h, uint32_t grank)
{
	int lo = 0, hi = h->nsites;

	if (grank >= (uint32_t)h->nranks)
		return -1;
	while (hi - lo > 1) {
		int mid = lo + (hi - lo) / 2;

		if ((uint32_t)h->sites[mid].base <= grank)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}
