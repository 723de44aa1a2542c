/* found.c - a program that is not linked with MPI and finds it: found LIBRARY [deepbind|mopen]: by dlopen with RTLD_DEEPBIND, by
 * dlmopen. LIBRARY is MPI's or one that needs it. Constants of MPI are what mpi.h says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *handle;

static void *find(const char *name)
{
	void *f = dlsym(handle, name);

	if (!f) {
		printf("%s: %s\n", name, dlerror());
		exit(1);
	}
	return f;
}

int main(int argc, char **argv)
{
	int flags = RTLD_NOW, rank = -1, size = -1, sum = -1;
	const char *how = argc > 2 ? argv[2] : "";
	MPI_Comm world;

	flags |= strcmp(how, "deepbind") == 0 ? RTLD_DEEPBIND : 0;
	handle = strcmp(how, "mopen") == 0 ? dlmopen(LM_ID_NEWLM, argv[1], flags) : dlopen(argv[1], flags);
	if (!handle) {
		printf("%s\n", dlerror());
		return 1;
	}
#ifdef OPEN_MPI
	world = (MPI_Comm)find("ompi_mpi_comm_world");
#define INT  (MPI_Datatype) find("ompi_mpi_int")
#define PLUS (MPI_Op) find("ompi_mpi_op_sum")
#else
	world = MPI_COMM_WORLD;
#define INT  MPI_INT
#define PLUS MPI_SUM
#endif
	((int (*)(int *, char ***))(uintptr_t)find("MPI_Init"))(&argc, &argv);
	((int (*)(MPI_Comm, int *))(uintptr_t)find("MPI_Comm_rank"))(world, &rank);
	((int (*)(MPI_Comm, int *))(uintptr_t)find("PMPI_Comm_size"))(world, &size);
	((int (*)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm))(uintptr_t)find(
		"MPI_Allreduce"))(&rank, &sum, 1, INT, PLUS, world);
	printf("found rank %d of %d sum %d\n", rank, size, sum);
	fflush(stdout);
	((int (*)(void))(uintptr_t)find("MPI_Finalize"))();
	return 0;
}
