/* plugged.c - loads plug.so with RTLD_DEEPBIND (or the flags of argument 2) and compares what it sees with its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	void (*plug)(int *, int *, int *);
	int rank, size, early = -1, r = -1, s = -1;
	void *h;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	h = dlopen(argv[1],
		RTLD_NOW | (argc > 2 && strcmp(argv[2], "deepbind") == 0 ? RTLD_DEEPBIND : RTLD_LOCAL));
	if (!h || !(plug = (void (*)(int *, int *, int *))(uintptr_t)dlsym(h, "plug_rank"))) {
		printf("%s\n", dlerror());
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	plug(&early, &r, &s);
	printf("plug %s: rank %d of %d\n", early == rank && r == rank && s == size ? "same" : "other", r, s);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
