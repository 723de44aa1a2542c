/* mpis.c: see mpis.h. */
#include "mpis.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

static const char *const flavors[] = { [PX_MPI_OPENMPI] = "openmpi", [PX_MPI_MPICH] = "mpich" };

int pxd_prefix_find(char *prefix, size_t cap)
{
	ssize_t n = readlink("/proc/self/exe", prefix, cap - 1);
	char *slash;

	if (n <= 0 || (size_t)n >= cap - 1)
		return PX_EIO;
	prefix[n] = '\0';
	for (int up = 0; up < 2; up++) {
		slash = strrchr(prefix, '/');
		if (!slash || slash == prefix)
			return PX_EIO;
		*slash = '\0';
	}
	return 0;
}

static enum px_flavor flavor_named(const char *name)
{
	for (int f = PX_MPI_OPENMPI; f <= PX_MPI_MPICH; f++)
		if (strcmp(name, flavors[f]) == 0)
			return (enum px_flavor)f;
	return PX_MPI_OTHER;
}

static void mpi_free(struct pxd_mpi *m)
{
	free(m->name);
	free(m->identity);
	free(m->soname);
	free(m->library);
	free(m->compiler);
	free(m->launcher);
}

void pxd_mpis_free(struct pxd_mpis *m)
{
	for (int i = 0; i < m->n; i++)
		mpi_free(&m->list[i]);
	free(m->list);
	*m = (struct pxd_mpis){ 0 };
}

/* file_read: one NAME.mpi. 0; PX_EINVAL: it says too little; PX_ENOMEM. */
static int file_read(const char *path, const char *name, size_t len, struct pxd_mpi *m)
{
	const struct {
		const char *key;
		char **to;
	} keys[] = { { "identity", &m->identity }, { "soname", &m->soname }, { "library", &m->library },
		{ "compiler", &m->compiler }, { "launcher", &m->launcher } };
	FILE *f = fopen(path, "re");
	char line[PATH_MAX + 64];

	if (!f)
		return PX_EINVAL;
	m->name = strndup(name, len);
	while (fgets(line, sizeof line, f)) {
		char *value = strchr(line, ':');

		line[strcspn(line, "\n")] = '\0';
		if (!value)
			continue;
		*value++ = '\0';
		value += *value == ' ';
		if (strcmp(line, "flavor") == 0)
			m->flavor = flavor_named(value), m->abi = strcmp(value, "abi") == 0;
		for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
			if (strcmp(line, keys[k].key) == 0 && !*keys[k].to)
				*keys[k].to = strdup(value);
	}
	fclose(f);
	return (m->flavor || m->abi) && m->name && m->identity && m->soname && m->library && m->compiler &&
			       m->launcher
		       ? 0
		       : PX_EINVAL;
}

/* preferred: is lib/pacx/FLAVOR.mpi this one, by its name or by a link? */
static bool preferred(const char *dir, const struct pxd_mpi *m)
{
	char path[PATH_MAX + 32], to[NAME_MAX + 1];
	size_t len = strlen(m->name);
	ssize_t n;

	if (m->abi)
		return false;
	if (strcmp(m->name, flavors[m->flavor]) == 0)
		return true;
	snprintf(path, sizeof path, "%s/%s.mpi", dir, flavors[m->flavor]);
	n = readlink(path, to, sizeof to);
	return n == (ssize_t)(len + 4) && memcmp(to, m->name, len) == 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct pxd_mpi *)a)->name, ((const struct pxd_mpi *)b)->name);
}

int pxd_mpis_read(const char *prefix, struct pxd_mpis *out)
{
	char dir[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
	const struct dirent *e;
	struct stat st;
	DIR *d;
	int rc = 0;

	*out = (struct pxd_mpis){ 0 };
	snprintf(dir, sizeof dir, "%s/lib/pacx", prefix);
	d = opendir(dir);
	while (d && rc == 0 && (e = readdir(d))) {
		size_t n = strlen(e->d_name);
		struct pxd_mpi m = { 0 }, *list;

		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		/* a link is another name of a build */
		if (n <= 4 || strcmp(e->d_name + n - 4, ".mpi") != 0 || lstat(path, &st) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		if (file_read(path, e->d_name, n - 4, &m) < 0) {
			mpi_free(&m);
			continue;
		}
		list = realloc(out->list, ((size_t)out->n + 1) * sizeof *list);
		if (!list) {
			mpi_free(&m);
			rc = PX_ENOMEM;
			continue;
		}
		m.preferred = preferred(dir, &m);
		out->list = list;
		list[out->n++] = m;
	}
	if (d)
		closedir(d);
	if (rc < 0)
		pxd_mpis_free(out);
	else if (out->n)
		qsort(out->list, (size_t)out->n, sizeof *out->list, by_name);
	return rc;
}

const struct pxd_mpi *pxd_mpis_named(const struct pxd_mpis *m, const char *name)
{
	for (int i = 0; i < m->n; i++)
		if (strcmp(m->list[i].name, name) == 0)
			return &m->list[i];
	for (int i = 0; i < m->n; i++)
		if (strcmp(m->list[i].identity, name) == 0)
			return &m->list[i];
	return strcmp(name, "openmpi-abi") == 0 || strcmp(name, "mpich-abi") == 0 ? pxd_mpis_abi(m) : NULL;
}

const struct pxd_mpi *pxd_mpis_abi(const struct pxd_mpis *m)
{
	for (int i = 0; i < m->n; i++)
		if (m->list[i].abi)
			return &m->list[i];
	return NULL;
}

const struct pxd_mpi *pxd_mpis_at(const struct pxd_mpis *m, const char *dir, enum px_flavor flavor)
{
	const struct pxd_mpi *found = NULL;
	char want[PATH_MAX], have[PATH_MAX], bin[PATH_MAX];

	if (!realpath(dir, want))
		return NULL;
	for (int i = 0; i < m->n; i++) {
		const char *slash = strrchr(m->list[i].compiler, '/');

		if (!slash || (flavor != PX_MPI_OTHER && m->list[i].flavor != flavor))
			continue;
		/* The file itself may be a link to another place: only its directory counts. */
		snprintf(bin, sizeof bin, "%.*s/..", (int)(slash - m->list[i].compiler), m->list[i].compiler);
		if (!realpath(bin, have) || strcmp(have, want) != 0)
			continue;
		if (found)
			return NULL;
		found = &m->list[i];
	}
	return found;
}

const struct pxd_mpi *pxd_mpis_library(const struct pxd_mpis *m, const char *library)
{
	char real[PATH_MAX];

	if (!*library || !realpath(library, real))
		return NULL;
	for (int i = 0; i < m->n; i++)
		if (strcmp(m->list[i].library, real) == 0)
			return &m->list[i];
	return NULL;
}

const struct pxd_mpi *pxd_mpis_flavor(const struct pxd_mpis *m, enum px_flavor flavor)
{
	const struct pxd_mpi *found = NULL;

	for (int i = 0; i < m->n; i++)
		if (m->list[i].flavor == flavor && (!found || m->list[i].preferred))
			found = &m->list[i];
	return found;
}
