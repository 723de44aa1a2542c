/* predefined.c: the predefined attributes, which describe the coupled job and not the native one of a site.
 *
 * MPI_TAG_UB       the smallest of all sites
 * MPI_APPNUM       a number for each program of the job, in the order of its first rank. Ranks of one native context (of
 *                  `mpirun prog : prog2`) have one program, that of the lowest of them: its file name without directory, and
 *                  its arguments, both without the vendors' names, so that app.openmpi and app.mpich are one. Contexts of two
 *                  sites that have the same program share the number; a second context of a program at one site is
 *                  a second program. The daemons' contexts do not count
 * MPI_UNIVERSE_SIZE  the size of MPI_COMM_WORLD: no rank can be added
 * MPI_WTIME_IS_GLOBAL  false, unless there is one site
 * MPI_HOST, MPI_IO global ranks
 *
 * Where they are found is as with the vendor: MPICH has them at every communicator, Open MPI at MPI_COMM_WORLD and its duplicates,
 * for which the communicator that stands for WORLD has a mark that MPI_Comm_dup copies.
 */
#include "predefined.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"
#include "coll.h"
#include "crc.h"
#include "endian.h"
#include "raise.h"
#include "schedule.h"
#include "state.h"

static int appnum, universe, wtime_is_global, host, io;

static int mark = MPI_KEYVAL_INVALID; /* over Open MPI */

static int mark_world(void)
{
	int rc;

	if (!PX_OVER_OPENMPI)
		return MPI_SUCCESS;
	rc = px_n.Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &mark, NULL);
	return rc == MPI_SUCCESS ? px_n.Comm_set_attr(px_world_native, mark, NULL) : rc;
}

static bool has_them(MPI_Comm comm)
{
	void *value;
	int found = 0;

	return !PX_OVER_OPENMPI || (px_n.Comm_get_attr(comm, mark, &value, &found) == MPI_SUCCESS && found);
}

/* The text without the names of the vendors. */
static void without_vendors(char *text)
{
	static const char *const names[] = { "openmpi", "mpich" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		for (char *at; (at = strstr(text, names[i]));)
			memmove(at, at + strlen(names[i]), strlen(at + strlen(names[i])) + 1);
}

/* A digest of this process's program and arguments; 0 when there are none to be read. */
static uint32_t program(void)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t len = 0, cap = 0;
	ssize_t n = 1;
	char *text = NULL, *base;
	uint32_t digest = 0;

	while (fd >= 0 && n > 0) {
		char *more = realloc(text, (cap += 65536) + 1);

		if (!more)
			break;
		text = more;
		while (len < cap && (n = read(fd, text + len, cap - len)) > 0)
			len += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	if (text) {
		text[len] = 0;
		base = strrchr(text, '/'); /* of the first argument: those that follow lie behind its NUL */
		base = base ? base + 1 : text;
		for (char *arg = base, *next; arg < text + len; arg = next) {
			next = arg + strlen(arg) + 1;
			without_vendors(arg);
			digest = px_crc32c(digest, arg, strlen(arg) + 1);
		}
	}
	free(text);
	return digest;
}

/* The value of one of the vendor's own attributes; `otherwise` when it has none. */
static int vendors(int keyval, int otherwise)
{
	int *value, found = 0;

	if (px_n.Comm_get_attr(MPI_COMM_WORLD, keyval, (void *)&value, &found) != MPI_SUCCESS || !found)
		return otherwise;
	return *value;
}

/* A rank of the native WORLD as a global one; MPI_PROC_NULL and MPI_ANY_SOURCE stay, and so does a rank that is a daemon's. */
static int global(int native)
{
	for (int i = 0; i < px.map.nranks; i++)
		if (px.map.native_of[i] == native)
			return px.world->base[px.site] + i;
	return native;
}

#define CLAIM 8 /* digest of the program, native number of the program at the site */

struct context {
	int site, number; /* native */
	uint32_t program;
	int nth; /* of this program at the site */
	int app; /* in the job */
};

/* Number the contexts in rank order; v has room for all. Returns the number of this rank's. */
static int number_contexts(const uint8_t *claims, struct context *v)
{
	int n = 0, apps = 0, mine = 0;

	for (int r = 0; r < px.world->nranks; r++) {
		struct context k = { .site = px_world_site(px.world, r), .app = -1 };
		int i;

		k.program = px_get32(claims + (size_t)r * CLAIM);
		k.number = (int)px_get32(claims + (size_t)r * CLAIM + 4);
		for (i = 0; i < n && (v[i].site != k.site || v[i].number != k.number); i++)
			k.nth += v[i].site == k.site && v[i].program == k.program;
		if (i == n) {
			for (int j = 0; j < n && k.app < 0; j++)
				if (v[j].program == k.program && v[j].nth == k.nth)
					k.app = v[j].app;
			if (k.app < 0)
				k.app = apps++;
			v[n++] = k;
		}
		if (r == px.grank)
			mine = v[i].app;
	}
	return mine;
}

static int claims_agree(const uint8_t *mine, uint8_t *all)
{
	struct px_coll_stat keep = px_coll_stat[PX_COLL_COMM];
	int rc;

	if (px.world->nsites == 1)
		return px_n.Allgather(mine, CLAIM, MPI_BYTE, all, CLAIM, MPI_BYTE, px.map.apps);
	rc = px_comm_agree(px_comm_find(px_world_native), mine, CLAIM, all);
	px_coll_stat[PX_COLL_COMM] = keep; /* not the application's */
	return rc;
}

int px_predefined_start(void)
{
	uint8_t mine[CLAIM], *all = malloc((size_t)px.world->nranks * CLAIM);
	struct context *v = malloc((size_t)px.world->nranks * sizeof *v);
	int rc = MPI_ERR_NO_MEM;

	if (all && v) {
		px_put32(mine, program());
		px_put32(mine + 4, (uint32_t)vendors(MPI_APPNUM, 0));
		rc = claims_agree(mine, all);
	}
	if (rc == MPI_SUCCESS)
		rc = mark_world();
	if (rc == MPI_SUCCESS) {
		appnum = number_contexts(all, v);
		universe = px.world->nranks;
		wtime_is_global = px.world->nsites == 1 ? vendors(MPI_WTIME_IS_GLOBAL, 0) : 0;
		host = global(vendors(MPI_HOST, MPI_PROC_NULL));
		io = global(vendors(MPI_IO, MPI_ANY_SOURCE));
	}
	free(all);
	free(v);
	return rc;
}

int px_predefined_join(void)
{
	appnum = vendors(MPI_APPNUM, 0);
	universe = vendors(MPI_UNIVERSE_SIZE, px.map.nranks);
	wtime_is_global = 0;
	host = vendors(MPI_HOST, MPI_PROC_NULL);
	io = vendors(MPI_IO, MPI_ANY_SOURCE);
	return mark_world();
}

/* Where the value of a predefined attribute is; NULL: not one that libpacx answers. */
static int *own_value(int keyval)
{
	switch (keyval) {
	case MPI_TAG_UB:
		return &px.tag_ub;
	case MPI_HOST:
		return &host;
	case MPI_IO:
		return &io;
	case MPI_WTIME_IS_GLOBAL:
		return &wtime_is_global;
	case MPI_UNIVERSE_SIZE:
		return &universe;
	case MPI_APPNUM:
		return &appnum;
	default:
		return NULL;
	}
}

int px_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *flag)
{
	int *own = px.on ? own_value(keyval) : NULL;
	int rc;

	if (px.on && keyval == MPI_LASTUSEDCODE && comm == px_world_native)
		comm = MPI_COMM_WORLD;                      /* it is kept there */
	rc = px_n.Comm_get_attr(comm, keyval, value, flag); /* which also checks the arguments */
	if (rc != MPI_SUCCESS || !own)
		return rc;
	*flag = has_them(comm);
	if (*flag)
		*(int **)value = own;
	return MPI_SUCCESS;
}

int px_Attr_get(MPI_Comm comm, int keyval, void *value, int *flag)
{
	return px_Comm_get_attr(comm, keyval, value, flag);
}
