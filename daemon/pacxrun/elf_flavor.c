/* elf_flavor.c: Design: the search for a library follows ld.so(8): DT_RPATH (unless there is a RUNPATH), LD_LIBRARY_PATH, DT_RUNPATH,
 * both with $ORIGIN, the directories of /etc/ld.so.conf*, the built-in ones. A library without RUNPATH has the RPATHs of whoever
 * needs it, too. All offsets of the
 * file are checked before use: a damaged program gives PX_MPI_OTHER, never a crash.
 */
#include "elf_flavor.h"

#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

/* Programs of the same width as we. */
#if UINTPTR_MAX > UINT32_MAX
typedef Elf64_Ehdr elf_ehdr;
typedef Elf64_Phdr elf_phdr;
typedef Elf64_Dyn elf_dyn;
typedef Elf64_Addr elf_addr;
#else
typedef Elf32_Ehdr elf_ehdr;
typedef Elf32_Phdr elf_phdr;
typedef Elf32_Dyn elf_dyn;
typedef Elf32_Addr elf_addr;
#endif

#define LIBS_MAX 1024 /* distinct libraries looked at */
#define DIRS_MAX 64

struct search {
	char *seen[LIBS_MAX];
	int nseen;
	char *dirs[DIRS_MAX]; /* system directories */
	int ndirs;
	const char *libpath; /* LD_LIBRARY_PATH */
	bool abi;            /* the library is that of the standard ABI */
	char *library;       /* [PATH_MAX] of the MPI library, "" = not found yet */
};

/* Where an object wants its libraries to be looked for. */
struct places {
	const char *from; /* the object's path, for $ORIGIN */
	const char *rpath, *runpath;
	const struct places *needed_by; /* NULL for the program */
};

struct image {
	const unsigned char *mem;
	size_t len;
	const elf_phdr *phdr;
	int phnum;
};

static enum px_flavor flavor_of_name(const char *lib)
{
	static const struct {
		const char *prefix;
		enum px_flavor flavor;
	} known[] = {
		{ "libmpi.so.12", PX_MPI_MPICH }, /* the common ABI of MPICH's relatives */
		{ "libmpich", PX_MPI_MPICH },     /* libmpich.so.12, libmpichfort.so.12, libmpichcxx.so.12 */
		{ "libmpifort.so.12", PX_MPI_MPICH },
		{ "libmpicxx.so.12", PX_MPI_MPICH },
		{ "libmpi_cray.so.", PX_MPI_MPICH },
		{ "libmpi_gnu_", PX_MPI_MPICH },
		{ "libmpi.so.", PX_MPI_OPENMPI },
		{ "libmpi_mpifh.so.", PX_MPI_OPENMPI },
		{ "libmpi_usempif08.so.", PX_MPI_OPENMPI },
		{ "libmpi_cxx.so.", PX_MPI_OPENMPI },
	};

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strncmp(lib, known[i].prefix, strlen(known[i].prefix)) == 0)
			return known[i].flavor;
	return PX_MPI_OTHER;
}

/* is_main: the MPI library itself, not one of its front ends for other languages. */
static bool is_main(const char *lib)
{
	static const char *const names[] = { "libmpi.so", "libmpich.so", "libmpi_cray.so", "libmpi_gnu_" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strncmp(lib, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* image_at: file contents of a virtual address, NULL when outside; *left = bytes from there. */
static const unsigned char *image_at(const struct image *im, elf_addr addr, size_t *left)
{
	for (int i = 0; i < im->phnum; i++) {
		const elf_phdr *p = &im->phdr[i];

		if (p->p_type != PT_LOAD || addr < p->p_vaddr || addr - p->p_vaddr >= p->p_filesz)
			continue;
		if (p->p_offset > im->len || p->p_filesz > im->len - p->p_offset)
			return NULL;
		*left = p->p_filesz - (addr - p->p_vaddr);
		return im->mem + p->p_offset + (addr - p->p_vaddr);
	}
	return NULL;
}

static bool image_open(struct image *im, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const elf_ehdr *eh;
	struct stat st;
	void *mem = MAP_FAILED;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > (off_t)sizeof *eh)
		mem = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (mem == MAP_FAILED)
		return false;
	im->mem = mem;
	im->len = (size_t)st.st_size;
	eh = mem;
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) == 0 &&
		eh->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
		eh->e_ident[EI_DATA] ==
			(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) &&
		eh->e_phentsize == sizeof(elf_phdr) && eh->e_phoff <= im->len &&
		eh->e_phoff % sizeof(void *) == 0 &&
		(size_t)eh->e_phnum * sizeof(elf_phdr) <= im->len - eh->e_phoff) {
		im->phdr = (const void *)(im->mem + eh->e_phoff);
		im->phnum = eh->e_phnum;
		return true;
	}
	munmap(mem, im->len);
	return false;
}

/* The dynamic section of an image and its strings; every name inside the table ends with a NUL that is inside too. */
struct dynamic {
	const elf_dyn *list;
	size_t n; /* without the end */
	const char *strings;
	size_t nstrings;
};

static void dynamic_read(struct dynamic *d, const struct image *im)
{
	size_t n = 0;

	*d = (struct dynamic){ 0 };
	for (int i = 0; i < im->phnum; i++) {
		const elf_phdr *p = &im->phdr[i];

		if (p->p_type != PT_DYNAMIC || p->p_offset > im->len || p->p_filesz > im->len - p->p_offset ||
			p->p_offset % sizeof(void *) != 0)
			continue;
		d->list = (const void *)(im->mem + p->p_offset);
		n = p->p_filesz / sizeof *d->list;
	}
	while (d->n < n && d->list[d->n].d_tag != DT_NULL)
		d->n++;
	for (size_t i = 0; i < d->n; i++)
		if (d->list[i].d_tag == DT_STRTAB)
			d->strings = (const char *)image_at(im, d->list[i].d_un.d_ptr, &d->nstrings);
	while (d->strings && d->nstrings > 0 && d->strings[d->nstrings - 1] != '\0')
		d->nstrings--;
	if (!d->strings)
		d->n = 0;
}

/* text_of: what entry i says if it is of this kind, else NULL. */
static const char *text_of(const struct dynamic *d, size_t i, long tag)
{
	const elf_dyn *e = &d->list[i];

	return e->d_tag == tag && e->d_un.d_val < d->nstrings ? d->strings + e->d_un.d_val : NULL;
}

static const char *needed(const struct dynamic *d, size_t i)
{
	return text_of(d, i, DT_NEEDED);
}

static enum px_flavor file_search(struct search *s, const char *path, const struct places *needed_by);

/* dirs_search: look for lib in a colon-separated list; $ORIGIN is the directory of `from`. */
static bool dirs_search(const char *list, const char *lib, const char *from, char *path, size_t cap)
{
	while (list && *list) {
		size_t n = strcspn(list, ":");
		const char *rest = list;
		int used = 0, origin = 0;

		if (strncmp(list, "$ORIGIN", 7) == 0)
			origin = 7;
		else if (strncmp(list, "${ORIGIN}", 9) == 0)
			origin = 9;
		if (origin) {
			const char *slash = strrchr(from, '/');

			used = slash ? snprintf(path, cap, "%.*s", (int)(slash - from), from)
				     : snprintf(path, cap, ".");
			rest = list + origin;
		}
		if (used >= 0 && (size_t)used < cap && n >= (size_t)origin) {
			int w = snprintf(path + used, cap - (size_t)used, "%.*s/%s",
				(int)(n - (size_t)origin), rest, lib);

			if (w > 0 && (size_t)w < cap - (size_t)used && access(path, R_OK) == 0)
				return true;
		}
		list += n + (list[n] == ':');
	}
	return false;
}

/* lib_find: the file that the dynamic linker would load. */
static bool lib_find(const struct search *s, const char *lib, const struct places *p, char *path, size_t cap)
{
	if (strchr(lib, '/'))
		return snprintf(path, cap, "%s", lib) < (int)cap;
	for (const struct places *q = p; q && !p->runpath; q = q->needed_by)
		if (!q->runpath && dirs_search(q->rpath, lib, q->from, path, cap))
			return true;
	if (dirs_search(s->libpath, lib, p->from, path, cap) ||
		dirs_search(p->runpath, lib, p->from, path, cap))
		return true;
	for (int i = 0; i < s->ndirs; i++)
		if (dirs_search(s->dirs[i], lib, p->from, path, cap))
			return true;
	return false;
}

/* lib_search: look into a library, unless that has been done. */
static enum px_flavor lib_search(struct search *s, const char *lib, const struct places *p)
{
	char path[PATH_MAX];

	for (int i = 0; i < s->nseen; i++)
		if (strcmp(s->seen[i], lib) == 0)
			return PX_MPI_OTHER;
	if (s->nseen == LIBS_MAX || !(s->seen[s->nseen] = strdup(lib)))
		return PX_MPI_OTHER;
	s->nseen++;
	return lib_find(s, lib, p, path, sizeof path) ? file_search(s, path, p) : PX_MPI_OTHER;
}

/* lib_abi: the library of the standard ABI: both vendors have one of that name, and Open MPI's needs its other libraries. */
static enum px_flavor lib_abi(struct search *s, const char *lib, const struct places *p)
{
	struct dynamic d;
	struct image im;
	enum px_flavor found = PX_MPI_MPICH;

	s->abi = lib_find(s, lib, p, s->library, PATH_MAX) && image_open(&im, s->library);
	if (!s->abi) {
		*s->library = '\0';
		return PX_MPI_OTHER;
	}
	dynamic_read(&d, &im);
	for (size_t i = 0; i < d.n; i++)
		if (needed(&d, i) && strncmp(needed(&d, i), "libopen", 7) == 0) /* libopen_mpi, libopen-pal */
			found = PX_MPI_OPENMPI;
	munmap((void *)(uintptr_t)im.mem, im.len);
	return found;
}

/* lib_known: a library whose name tells its flavour; where is the MPI library itself? */
static enum px_flavor lib_known(struct search *s, const char *lib, const struct places *p)
{
	enum px_flavor found = flavor_of_name(lib);
	char path[PATH_MAX];

	if (strncmp(lib, "libmpi_abi.so", 13) == 0 && !*s->library)
		return lib_abi(s, lib, p);
	if (!found || *s->library)
		return found;
	if (!is_main(lib))
		lib_search(s, lib, p);
	else if (lib_find(s, lib, p, path, sizeof path))
		strcpy(s->library, path);
	return found;
}

static enum px_flavor image_search(
	struct search *s, const struct image *im, const char *path, const struct places *needed_by)
{
	struct places at = { .from = path, .needed_by = needed_by };
	enum px_flavor found = PX_MPI_OTHER;
	struct dynamic d;

	dynamic_read(&d, im);
	for (size_t i = 0; i < d.n; i++) {
		const char *rpath = text_of(&d, i, DT_RPATH), *runpath = text_of(&d, i, DT_RUNPATH);

		at.rpath = rpath ? rpath : at.rpath;
		at.runpath = runpath ? runpath : at.runpath;
	}
	for (int pass = 0; pass < 2 && !found; pass++) { /* own names first: most programs need no search */
		for (size_t i = 0; i < d.n && !(found && *s->library); i++) {
			enum px_flavor one;

			if (!needed(&d, i))
				continue;
			one = pass == 0 ? lib_known(s, needed(&d, i), &at)
					: lib_search(s, needed(&d, i), &at);
			found = found ? found : one;
		}
	}
	return found;
}

static enum px_flavor file_search(struct search *s, const char *path, const struct places *needed_by)
{
	enum px_flavor found;
	struct image im;

	if (!image_open(&im, path))
		return PX_MPI_OTHER;
	found = image_search(s, &im, path, needed_by);
	munmap((void *)(uintptr_t)im.mem, im.len);
	return found;
}

static void dirs_add(struct search *s, const char *dir)
{
	if (s->ndirs < DIRS_MAX && (s->dirs[s->ndirs] = strdup(dir)))
		s->ndirs++;
}

static void dirs_read(struct search *s)
{
	static const char *const builtin[] = { "/lib", "/usr/lib", "/lib64", "/usr/lib64" };
	char line[4096];
	glob_t g;

	if (glob("/etc/ld.so.conf.d/*.conf", 0, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc; i++) {
			FILE *f = fopen(g.gl_pathv[i], "re");

			while (f && fgets(line, sizeof line, f)) {
				line[strcspn(line, " \t\r\n#")] = '\0';
				if (line[0] == '/')
					dirs_add(s, line);
			}
			if (f)
				fclose(f);
		}
		globfree(&g);
	}
	for (size_t i = 0; i < sizeof builtin / sizeof builtin[0]; i++)
		dirs_add(s, builtin[i]);
}

void pxd_elf_mpi(const char *path, const char *libpath, struct pxd_elf_mpi *out)
{
	struct search *s = calloc(1, sizeof *s);

	*out = (struct pxd_elf_mpi){ .flavor = PX_MPI_OTHER };
	if (!s)
		return;
	s->library = out->library;
	s->libpath = libpath;
	dirs_read(s);
	out->flavor = file_search(s, path, NULL);
	out->abi = s->abi;
	for (int i = 0; i < s->nseen; i++)
		free(s->seen[i]);
	for (int i = 0; i < s->ndirs; i++)
		free(s->dirs[i]);
	free(s);
}

static bool can_run(const char *file)
{
	struct stat st;

	return access(file, X_OK) == 0 && stat(file, &st) == 0 && S_ISREG(st.st_mode);
}

int pxd_path_find(const char *name, char *buf, size_t cap)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/')) {
		int n = snprintf(buf, cap, "%s", name);

		return n > 0 && (size_t)n < cap && can_run(buf) ? 0 : PX_EINVAL;
	}
	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	while (*path && *name) {
		size_t n = strcspn(path, ":");
		int w = snprintf(buf, cap, "%.*s%s%s", (int)n, path, n ? "/" : "", name);

		if (w > 0 && (size_t)w < cap && can_run(buf))
			return 0;
		path += n + (path[n] == ':');
	}
	return PX_EINVAL;
}
