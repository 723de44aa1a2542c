/* attach_roles.c: see attach.h. The part that libpacx and pacxd share.
 *
 * Everything here is collective over the native MPI_COMM_WORLD and happens once, right after the native Init,
 * so blocking native calls are fine: nobody waits for progress of ours yet.
 */
#include "attach.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "vendor.h"

/* Which native rank is what. 0, PX_EINVAL, PX_ENOMEM. */
static int roles_sort(const int *role, int size, struct px_site_map *map)
{
	int nout = 0, nin = 0, napp = 0;

	for (int i = 0; i < size; i++) {
		nout += role[i] == PX_ROLE_OUT;
		nin += role[i] == PX_ROLE_IN;
		napp += role[i] == PX_ROLE_APP;
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
		if (role[i] == PX_ROLE_OUT)
			map->out[nout++] = i;
		else if (role[i] == PX_ROLE_IN)
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

/* pids_learn: daemons learn the processes of the application ranks beside them. Collective over `here`. 0, PX_EMPI, PX_ENOMEM. */
static int pids_learn(MPI_Comm here, enum px_role role, int rank, struct px_site_map *map)
{
	struct stat st = { 0 };
	enum { RANK, PID, SPACE, N };
	int mine[N], *all = malloc((size_t)map->procs_here * sizeof mine), rc = PX_ENOMEM;

	stat("/proc/self/ns/pid",
		&st); /* the same number of a process means the same one only within one namespace */
	mine[RANK] = rank;
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
			if (all[k * N + RANK] == map->native_of[i] && all[k * N + SPACE] == mine[SPACE])
				map->pid_of[i] = all[k * N + PID];
out:
	free(all);
	return rc;
}

int px_attach_roles(enum px_role role, struct px_site_map *map)
{
	struct px_site_map m = { .relay = MPI_COMM_NULL, .apps = MPI_COMM_NULL };
	int size = 0, rank = 0, place, mine = (int)role, rc = PX_EMPI;
	MPI_Comm here = MPI_COMM_NULL;
	int *roles = NULL;

	if (px_n.Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS ||
		px_n.Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS)
		return PX_EMPI;
	place = px_attach_place(size);
	if (place >= 0 && place != rank)
		px_n.Send(NULL, 0, MPI_BYTE, place, PX_TAG_HERE, MPI_COMM_WORLD);
	roles = malloc((size_t)size * sizeof *roles);
	if (!roles)
		return PX_ENOMEM;
	if (px_n.Allgather(&mine, 1, MPI_INT, roles, 1, MPI_INT, MPI_COMM_WORLD) != MPI_SUCCESS)
		goto out;
	rc = roles_sort(roles, size, &m);
	if (rc < 0)
		goto out; /* everybody sees the same roles, so everybody leaves here */
	rc = PX_EMPI;
	if (px_n.Comm_dup(MPI_COMM_WORLD, &m.relay) != MPI_SUCCESS ||
		px_n.Comm_split(m.relay, role == PX_ROLE_APP ? 0 : MPI_UNDEFINED, rank, &m.apps) !=
			MPI_SUCCESS ||
		px_n.Comm_split_type(m.relay, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here) !=
			MPI_SUCCESS ||
		px_n.Comm_size(here, &m.procs_here) != MPI_SUCCESS)
		goto out;
	rc = pids_learn(here, role, rank, &m);
out:
	if (here != MPI_COMM_NULL)
		px_n.Comm_free(&here);
	if (rc < 0)
		px_attach_drop(&m);
	else
		*map = m;
	free(roles);
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
	memset(map, 0, sizeof *map);
	map->relay = map->apps = MPI_COMM_NULL;
}
