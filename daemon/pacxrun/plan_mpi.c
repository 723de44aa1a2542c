/* plan_mpi.c: see plan_mpi.h.
 *
 * Design. What the user says about a site's MPI (mpi:, --mpi) is a flavour, which leaves open which one; an identity; or a
 * directory. The program itself says more: its MPI library is the file which the dynamic linker will take (elf_flavor.h). For a
 * site that is started here, the build of PACX is the one for that library; where there is none, the one that the flavour alone
 * means, and libpacx says before MPI_Init if that does not fit. For a site that is started elsewhere nothing is known but the words, and the
 * names of libraries there follow from them: every build has its identity and its flavour as names.
 */
#include "plan_mpi.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "elf_flavor.h"
#include "quote.h"

#define PROBE_S 20 /* for a launcher that starts nothing but true(1), twice */

const char *pxd_plan_exe(const struct pxd_site *s, const struct pxd_plan_options *o)
{
	return s->exe ? s->exe : o->program ? o->program[0] : NULL;
}

bool pxd_plan_here(const struct pxd_site *s)
{
	return !s->manual && !(s->start && pxd_template_remote(s->start));
}

static bool is_directory(const struct pxd_site *s)
{
	return s->mpi_named && *s->mpi_named == '/';
}

char *pxd_plan_replace(const char *text, const struct pxd_site *s)
{
	const char *named = s->mpi_named && !is_directory(s) ? s->mpi_named : pxd_flavor_name(s->mpi);
	char *mpi[] = { (char *)(uintptr_t)named, NULL }, *site[] = { s->name, NULL };
	const struct pxd_hole holes[] = { { "mpi", mpi }, { "site", site } };

	return pxd_text_replace(text, holes, 2);
}

/* library_path: the LD_LIBRARY_PATH of the site's processes. */
static const char *library_path(const struct pxd_site *s)
{
	for (int i = 0; i < s->nenv; i++)
		if (strcmp(s->env[i].name, "LD_LIBRARY_PATH") == 0)
			return s->env[i].value;
	return getenv("LD_LIBRARY_PATH");
}

void pxd_plan_program(const struct pxd_site *s, const char *path, struct pxd_elf_mpi *out)
{
	pxd_elf_mpi(path, library_path(s), out);
}

/* program_mpi: what the site's program is linked with, if it is here and a program. */
static void program_mpi(const struct pxd_site *s, const struct pxd_plan_options *o, struct pxd_elf_mpi *out)
{
	const char *exe = pxd_plan_exe(s, o);
	char *text = exe ? pxd_plan_replace(exe, s) : NULL;
	char path[PATH_MAX];

	*out = (struct pxd_elf_mpi){ .flavor = PX_MPI_OTHER };
	if (text && pxd_path_find(text, path, sizeof path) == 0)
		pxd_plan_program(s, path, out);
	free(text);
}

static const char *path_launcher(enum px_flavor mpi)
{
	static const char *const openmpi[] = { "mpirun.openmpi", "mpirun", NULL };
	static const char *const mpich[] = { "mpirun.mpich", "mpiexec.hydra", "mpirun", NULL };
	const char *const *names = mpi == PX_MPI_MPICH ? mpich : openmpi;
	char path[PATH_MAX];

	for (int i = 0; names[i]; i++)
		if (pxd_path_find(names[i], path, sizeof path) == 0)
			return names[i];
	return NULL;
}

/* flavor_installed: for a script, or a program that is only there. */
static enum px_flavor flavor_installed(const struct pxd_plan_options *o)
{
	char path[PATH_MAX];

	if (pxd_path_find("mpirun.openmpi", path, sizeof path) == 0)
		return PX_MPI_OPENMPI;
	if (pxd_path_find("mpirun.mpich", path, sizeof path) == 0 ||
		pxd_path_find("mpiexec.hydra", path, sizeof path) == 0 ||
		(o->mpis.n && !pxd_mpis_flavor(&o->mpis, PX_MPI_OPENMPI)))
		return PX_MPI_MPICH;
	return PX_MPI_OPENMPI;
}

/* dir_library: an MPI library of MPICH's ABI in the directory of an MPI. */
static bool dir_library(const char *dir, char *path, size_t cap)
{
	static const char *const names[] = { "lib/libmpi.so.12", "lib64/libmpi.so.12",
		"lib/release/libmpi.so.12", "libmpi.so.12", "lib/libmpich.so.12" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (snprintf(path, cap, "%s/%s", dir, names[i]) < (int)cap && access(path, R_OK) == 0)
			return true;
	return false;
}

/* no_build: PACX has not been built for the MPI which the site names. */
static int no_build(const struct pxd_site *s, const struct pxd_plan_options *o, char *why, size_t cap)
{
	size_t n = (size_t)snprintf(why, cap,
		"site '%s': PACX is not built for the MPI %s; `make MPI=%s/bin/mpicc` in PACX's source does "
		"that; "
		"here are",
		s->name, s->mpi_named, is_directory(s) ? s->mpi_named : "/its/directory");

	for (int i = 0; i < o->mpis.n && n < cap; i++)
		n += (size_t)snprintf(why + n, cap - n, "%s %s", i ? "," : "", o->mpis.list[i].identity);
	if (!o->mpis.n && n < cap)
		snprintf(why + n, cap - n, " none");
	return PX_ECONF;
}

/* dir_flavor: of the MPI in a directory that a site names. */
static int dir_flavor(struct pxd_site *s, const struct pxd_plan_options *o, char *why, size_t cap)
{
	const struct pxd_mpi *m = pxd_mpis_at(&o->mpis, s->mpi_named, PX_MPI_OTHER);
	char path[PATH_MAX];
	struct pxd_elf_mpi linked;

	program_mpi(s, o, &linked);
	s->mpi = m && !m->abi ? m->flavor : linked.flavor;
	if (s->mpi == PX_MPI_OTHER && dir_library(s->mpi_named, path, sizeof path))
		s->mpi = PX_MPI_MPICH;
	return s->mpi == PX_MPI_OTHER ? no_build(s, o, why, cap) : 0;
}

int pxd_plan_mpi(struct pxd_hosts *h, const struct pxd_plan_options *o, char *why, size_t cap)
{
	for (int i = 0; i < h->nsites; i++) {
		struct pxd_site *s = &h->sites[i];
		const char *exe = pxd_plan_exe(s, o);
		struct pxd_elf_mpi linked;

		if (s->mpi != PX_MPI_OTHER)
			continue;
		if (is_directory(s)) {
			if (dir_flavor(s, o, why, cap) < 0)
				return PX_ECONF;
			continue;
		}
		if (exe && strstr(exe, "{mpi}")) {
			snprintf(why, cap,
				"site '%s': the program '%s' depends on the MPI, which is not given; "
				"give mpi: or --mpi",
				s->name, exe);
			return PX_ECONF;
		}
		program_mpi(s, o, &linked);
		s->mpi = linked.flavor != PX_MPI_OTHER ? linked.flavor : flavor_installed(o);
	}
	return 0;
}

/* dir_launcher: the launcher in DIR/bin; `end` is where DIR ends in text. */
static bool dir_launcher(const char *text, size_t end, char *path, size_t cap)
{
	static const char *const names[] = { "mpirun", "mpiexec.hydra", "mpiexec" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (snprintf(path, cap, "%.*s/bin/%s", (int)end, text, names[i]) < (int)cap &&
			access(path, X_OK) == 0)
			return true;
	*path = '\0';
	return false;
}

/* launcher_choose: that of the MPI itself where it is not the one in PATH that the flavour's name means. */
static void launcher_choose(const struct pxd_site *s, const struct pxd_mpi *m, struct pxd_plan_mpi *out)
{
	const char *lib = strstr(out->library, "/lib"), *found = path_launcher(s->mpi);

	if (is_directory(s) && !(m && *m->launcher && !*out->library) &&
		dir_launcher(s->mpi_named, strlen(s->mpi_named), out->launcher, sizeof out->launcher))
		return;
	if (lib && lib != out->library && strncmp(out->library, "/usr/lib", 8) != 0 &&
		dir_launcher(out->library, (size_t)(lib - out->library), out->launcher, sizeof out->launcher))
		return;
	if (m && !m->abi && *m->launcher && (!found || strcmp(m->name, pxd_flavor_name(m->flavor)) != 0))
		found = m->launcher;
	snprintf(out->launcher, sizeof out->launcher, "%s", found ? found : "");
}

/* abi_choose: for a program that is linked with the library of the standard ABI, where the site names no build: the one there is. What the
 * vendor is, the library says; another one cannot start it. */
static int abi_choose(const struct pxd_site *s, const struct pxd_plan_options *o,
	const struct pxd_elf_mpi *linked, const struct pxd_mpi **m, char *why, size_t cap)
{
	*m = pxd_mpis_abi(&o->mpis);
	if (!*m)
		snprintf(why, cap,
			"site '%s': the program is linked with the standard ABI of MPI (%s), for which PACX "
			"is "
			"not built; `make MPI=mpicc_abi`, with the compiler command for that ABI, does that",
			s->name, linked->library);
	else if (linked->flavor != s->mpi)
		snprintf(why, cap,
			"site '%s': mpi: is %s, but the program would load %s, which is %s's; have "
			"LD_LIBRARY_PATH (env:) "
			"lead to the other libmpi_abi.so.1",
			s->name, pxd_flavor_name(s->mpi), linked->library, pxd_flavor_title(linked->flavor));
	else
		return 0;
	return PX_ECONF;
}

/* build_choose: for a site that is started here. NULL with 0: no build is known, the flavour's name stands for one. */
static int build_choose(const struct pxd_site *s, const struct pxd_plan_options *o,
	const struct pxd_elf_mpi *linked, struct pxd_plan_mpi *out, const struct pxd_mpi **m, char *why,
	size_t cap)
{
	*m = NULL;
	if (linked->abi && (!s->mpi_named || is_directory(s)))
		return abi_choose(s, o, linked, m, why, cap);
	if (is_directory(s)) {
		*m = pxd_mpis_at(&o->mpis, s->mpi_named, s->mpi);
		/* MPICH's relatives share its ABI: what was built for one serves another. */
		if (!*m && s->mpi == PX_MPI_MPICH &&
			dir_library(s->mpi_named, out->library, sizeof out->library))
			*m = pxd_mpis_flavor(&o->mpis, s->mpi);
	} else if (s->mpi_named) {
		*m = pxd_mpis_named(&o->mpis, s->mpi_named);
	} else {
		*m = linked->flavor == s->mpi ? pxd_mpis_library(&o->mpis, linked->library) : NULL;
		if (!*m)
			*m = pxd_mpis_flavor(&o->mpis, s->mpi);
		return 0;
	}
	return *m ? 0 : no_build(s, o, why, cap);
}

int pxd_plan_mpi_of(const struct pxd_site *s, const struct pxd_plan_options *o, struct pxd_plan_mpi *out,
	char *why, size_t cap)
{
	const struct pxd_mpi *m = NULL;
	struct pxd_elf_mpi linked;
	char real[PATH_MAX];
	const char *version;

	*out = (struct pxd_plan_mpi){ .flavor = s->mpi };
	if (!pxd_plan_here(s) || s->prefix) {
		m = is_directory(s) ? pxd_mpis_at(&o->mpis, s->mpi_named, s->mpi) : NULL;
		if (is_directory(s) && !m) {
			snprintf(why, cap,
				"site '%s': mpi: is the directory of an MPI, and the site is not started "
				"here; expected a name that "
				"pacxctl mpis shows there, such as openmpi-5.0.7",
				s->name);
			return PX_ECONF;
		}
		snprintf(out->build, sizeof out->build, "%s",
			m              ? m->identity
			: s->mpi_named ? s->mpi_named
				       : pxd_flavor_name(s->mpi));
		version = path_launcher(s->mpi);
		snprintf(out->launcher, sizeof out->launcher, "%s", version ? version : "");
		return 0;
	}
	program_mpi(s, o, &linked);
	if (build_choose(s, o, &linked, out, &m, why, cap) < 0)
		return PX_ECONF;
	snprintf(out->build, sizeof out->build, "%s%s", m && !m->abi ? m->name : pxd_flavor_name(s->mpi),
		m && m->abi ? "-abi" : "");
	version = m && !m->abi ? strrchr(m->identity, '-') : NULL;
	out->major = version ? atoi(version + 1) : 0;
	/* The daemons must have the program's MPI library, not another one of the same ABI. */
	if (m && m->abi)
		snprintf(out->library, sizeof out->library, "%s", linked.library);
	else if (m && s->mpi == PX_MPI_MPICH && linked.flavor == s->mpi && *linked.library)
		snprintf(out->library, sizeof out->library, "%s",
			realpath(linked.library, real) && strcmp(real, m->library) == 0 ? ""
											: linked.library);
	launcher_choose(s, m, out);
	return 0;
}

const char *const *pxd_plan_openmpi_options(void)
{
	static const char *const root[] = { "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
		NULL };

	return geteuid() == 0 ? root : root + 1;
}

/* launcher_run: its exit status as a shell shows it for two programs that do nothing; -1 = it cannot be said. Temporary files are in `tmp`. */
static int launcher_run(const char *launcher, const char *tmp)
{
	static const char *const programs[] = { "-np", "1", "true", ":", "-np", "1", "true" };
	const char *const *option = pxd_plan_openmpi_options();
	const char *argv[16] = { launcher };
	int status, null, n = 1;
	pid_t pid;

	while (*option)
		argv[n++] = *option++;
	memcpy(argv + n, programs, sizeof programs);
	pid = fork();
	if (pid == 0) {
		null = open("/dev/null", O_RDWR);
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		setenv("TMPDIR", tmp, 1);
		alarm(PROBE_S);
		execvp(launcher, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	remove(path);
	return 0;
}

/* launcher_try: Open MPI 5's, if it dies, leaves a directory named by its process id, of which the next one of that id dies: it has a
 * directory of its own, which goes with it. */
static int launcher_try(const char *launcher)
{
	const char *base = getenv("TMPDIR");
	char tmp[PATH_MAX];
	int status;

	snprintf(tmp, sizeof tmp, "%s/pacx-XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(tmp))
		return -1;
	status = launcher_run(launcher, tmp);
	nftw(tmp, drop, 8, FTW_DEPTH | FTW_PHYS);
	return status;
}

bool pxd_plan_mpmd(const struct pxd_plan_mpi *m)
{
	static char tried[PATH_MAX]; /* of many sites, most have the same */
	static bool can;

	if (m->flavor != PX_MPI_OPENMPI || (m->major && m->major < 5) || !*m->launcher)
		return true;
	if (strcmp(tried, m->launcher) != 0) {
		/* One that dies of it, or is late: every launcher can start the single form. That one refuses will be seen when it is to
		 * start the job, in either form. */
		can = launcher_try(m->launcher) == 0;
		snprintf(tried, sizeof tried, "%s", m->launcher);
	}
	return can;
}
