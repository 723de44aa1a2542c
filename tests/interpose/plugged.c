/* plugged.c - loads plug.so with RTLD_DEEPBIND, RTLD_LOCAL, or RTLD_DEEPBIND through libc's own dlopen (argument 2: deepbind, local, libc),
 * and compares what it sees with its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	void (*plug)(int *, int *, int *);
	void *(*open)(const char *, int) = dlopen;
	int rank, size, early = -1, r = -1, s = -1;
	void *h;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (strcmp(argv[2], "libc") == 0)
		open = (void *(*)(const char *, int))(uintptr_t)dlsym(
			dlopen("libc.so.6", RTLD_LAZY), "dlopen");
	h = open(argv[1], RTLD_NOW | (strcmp(argv[2], "local") == 0 ? RTLD_LOCAL : RTLD_DEEPBIND));
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
