/* attach_roles.c: see attach.h. The part that libpacx and pacxd share.
 *
 * Everything here is collective over the native MPI_COMM_WORLD and happens once, right after the native Init,
 * so blocking native calls are fine: nobody waits for progress of ours yet.
 */
#include "attach.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bell.h"
#include "err.h"
#include "vendor.h"

/* A number of this node: of its name and of the kernel that runs there. */
static uint64_t node_number(void)
{
	char text[sizeof(struct utsname) + 64] = "";
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	struct utsname u;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, 36) : 0;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		n = 0;
	if (uname(&u) == 0)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s", u.nodename);
	for (ssize_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
	return h;
}

/* What each native rank says of itself. */
struct native {
	uint64_t node; /* node_number */
	uint64_t role; /* enum px_role */
};

/* Which native rank is what. 0, PX_EINVAL, PX_ENOMEM. */
static int roles_sort(const struct native *all, int size, struct px_site_map *map)
{
	int nout = 0, nin = 0, napp = 0;

	for (int i = 0; i < size; i++) {
		nout += all[i].role == PX_ROLE_OUT;
		nin += all[i].role == PX_ROLE_IN;
		napp += all[i].role == PX_ROLE_APP;
	}
	if (nout != nin) {
		px_log(PX_LOG_ERROR,
			"the native job has %d out-daemons and %d in-daemons; the start command must start "
			"{daemons} x {pacxd}, in one piece",
			nout, nin);
		return PX_EINVAL;
	}
	map->native_of = malloc((size_t)(napp + 1) * sizeof(int));
	map->out = malloc((size_t)(nout + 1) * sizeof(int));
	map->in = malloc((size_t)(nin + 1) * sizeof(int));
	if (!map->native_of || !map->out || !map->in)
		return PX_ENOMEM;
	map->nranks = napp;
	map->gateways = nout;
	napp = nout = nin = 0;
	for (int i = 0; i < size; i++) {
		if (all[i].role == PX_ROLE_OUT)
			map->out[nout++] = i;
		else if (all[i].role == PX_ROLE_IN)
			map->in[nin++] = i;
		else
			map->native_of[napp++] = i;
	}
	return PX_OK;
}

int px_attach_place(int size)
{
	const char *order = getenv("PACX_DAEMONS"), *gateways = getenv("PACX_GATEWAYS");
	int daemons = 2 * (gateways && *gateways ? atoi(gateways) : 1);

	if (daemons < 2 || daemons > size)
		return -1;
	return order && strcmp(order, "first") == 0 ? 0 : size - daemons;
}

int px_attach_heard(void)
{
	int flag = 0;
	MPI_Status st;

	if (px_n.Iprobe(MPI_ANY_SOURCE, PX_TAG_HERE, MPI_COMM_WORLD, &flag, &st) != MPI_SUCCESS || !flag ||
		px_n.Recv(NULL, 0, MPI_BYTE, st.MPI_SOURCE, PX_TAG_HERE, MPI_COMM_WORLD, MPI_STATUS_IGNORE) !=
			MPI_SUCCESS)
		return -1;
	return st.MPI_SOURCE;
}

/* The processes of this node: `here`, map->procs_here, and in *who their native ranks, in the same order; to be freed. Not
 * MPI_Comm_split_type: that tells who shares memory for MPI's sake, and where a vendor makes no use of it (MPICH 5.0.2 of Debian) each process is
 * alone. PX_OK, PX_EMPI, PX_ENOMEM. */
static int node_split(
	const struct native *all, int size, int rank, struct px_site_map *map, MPI_Comm *here, int **who)
{
	*who = malloc((size_t)size * sizeof **who);
	if (!*who)
		return PX_ENOMEM;
	map->procs_here = 0;
	for (int i = 0; i < size; i++)
		if (all[i].node == all[rank].node)
			(*who)[map->procs_here++] = i;
	return px_n.Comm_split(map->relay, (*who)[0], rank, here) == MPI_SUCCESS ? PX_OK : PX_EMPI;
}

/* Bells for the processes of this node, if all of them can have one. Collective over `here`. 0, PX_EMPI. */
static int bells_hang(MPI_Comm here, const int *who, int nhere, enum px_role role, int rank, int size)
{
	const char *env = getenv("PACX_BELLS");
	char name[PX_BELL_NAME] = "";
	int ok, all = 0, rc;

	if (who[0] == rank && ((env && strcmp(env, "0") == 0) || px_bell_make(name, nhere) < 0))
		name[0] = 0;
	if (px_n.Bcast(name, sizeof name, MPI_CHAR, 0, here) != MPI_SUCCESS)
		return PX_EMPI;
	ok = name[0] && px_bell_join(name, nhere, who, size, rank, role != PX_ROLE_APP) == 0;
	rc = px_n.Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, here) == MPI_SUCCESS ? PX_OK : PX_EMPI;
	if (who[0] == rank && name[0])
		px_bell_unlink(name);
	if (!all)
		px_bell_drop();
	return rc;
}

/* pids_learn: daemons learn the processes of the application ranks beside them. Collective over `here`. 0, PX_EMPI, PX_ENOMEM. */
static int pids_learn(MPI_Comm here, const int *who, enum px_role role, struct px_site_map *map)
{
	struct stat st = { 0 };
	enum { PID, SPACE, N };
	int mine[N], *all = malloc((size_t)map->procs_here * sizeof mine), rc = PX_ENOMEM;

	stat("/proc/self/ns/pid",
		&st); /* the same number of a process means the same one only within one namespace */
	mine[PID] = (int)getpid();
	mine[SPACE] = (int)st.st_ino;
	if (role != PX_ROLE_APP)
		map->pid_of = calloc((size_t)map->nranks + 1, sizeof *map->pid_of);
	if (!all || (role != PX_ROLE_APP && !map->pid_of))
		goto out;
	rc = PX_EMPI;
	if (px_n.Allgather(mine, N, MPI_INT, all, N, MPI_INT, here) != MPI_SUCCESS)
		goto out;
	rc = PX_OK;
	for (int i = 0; map->pid_of && i < map->nranks; i++)
		for (int k = 0; k < map->procs_here; k++)
			if (who[k] == map->native_of[i] && all[k * N + SPACE] == mine[SPACE])
				map->pid_of[i] = all[k * N + PID];
out:
	free(all);
	return rc;
}

int px_attach_roles(enum px_role role, struct px_site_map *map)
{
	struct px_site_map m = { .relay = MPI_COMM_NULL, .apps = MPI_COMM_NULL };
	int size = 0, rank = 0, place, *who = NULL, rc = PX_EMPI;
	MPI_Comm here = MPI_COMM_NULL;
	struct native *all, mine = { node_number(), role };

	if (px_n.Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS ||
		px_n.Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS)
		return PX_EMPI;
	place = px_attach_place(size);
	if (place >= 0 && place != rank)
		px_n.Send(NULL, 0, MPI_BYTE, place, PX_TAG_HERE, MPI_COMM_WORLD);
	all = malloc((size_t)size * sizeof *all);
	if (!all)
		return PX_ENOMEM;
	if (px_n.Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD) !=
		MPI_SUCCESS)
		goto out;
	rc = roles_sort(all, size, &m);
	if (rc < 0)
		goto out; /* everybody sees the same roles, so everybody leaves here */
	rc = PX_EMPI;
	if (px_n.Comm_dup(MPI_COMM_WORLD, &m.relay) != MPI_SUCCESS ||
		px_n.Comm_split(m.relay, role == PX_ROLE_APP ? 0 : MPI_UNDEFINED, rank, &m.apps) !=
			MPI_SUCCESS)
		goto out;
	rc = node_split(all, size, rank, &m, &here, &who);
	if (rc == 0)
		rc = pids_learn(here, who, role, &m);
	if (rc == 0 && m.gateways > 0)
		rc = bells_hang(here, who, m.procs_here, role, rank, size);
out:
	if (here != MPI_COMM_NULL)
		px_n.Comm_free(&here);
	if (rc < 0)
		px_attach_drop(&m);
	else
		*map = m;
	free(who);
	free(all);
	return rc;
}

void px_attach_drop(struct px_site_map *map)
{
	if (map->apps != MPI_COMM_NULL)
		px_n.Comm_free(&map->apps);
	if (map->relay != MPI_COMM_NULL)
		px_n.Comm_free(&map->relay);
	free(map->native_of);
	free(map->out);
	free(map->in);
	free(map->pid_of);
	px_bell_drop();
	memset(map, 0, sizeof *map);
	map->relay = map->apps = MPI_COMM_NULL;
}
