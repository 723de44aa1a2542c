/* early.c - a library that asks MPI before main and after it, as libmpi_cxx, PETSc and others do; with EARLY_INIT set it even
 * initialises MPI there. early_ok says whether all answers were right. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int early_ok, early_init;

static int answers(int initialized, int finalized)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int a = -1, b = -1, version = 0, sub = -1, len = 0, class = -1;

	MPI_Initialized(&a);
	MPI_Finalized(&b);
	MPI_Get_version(&version, &sub);
	MPI_Get_library_version(text, &len);
	if (initialized && !finalized)
		MPI_Error_class(MPI_ERR_RANK, &class);
	else
		class = MPI_ERR_RANK;
	return a == initialized && b == finalized && version >= 3 && len > 0 && strstr(text, "MPI") &&
	       class == MPI_ERR_RANK;
}

static void at_end(void)
{
	if (!answers(1, 1))
		printf("wrong answer in an exit handler\n");
}

__attribute__((constructor)) static void up(void)
{
	early_ok = answers(0, 0);
	early_init = getenv("EARLY_INIT") != NULL;
	if (early_init)
		MPI_Init(NULL, NULL);
	early_ok = early_ok && answers(early_init, 0);
	atexit(at_end);
}

__attribute__((destructor)) static void down(void)
{
	printf("after main: %s\n", answers(1, 1) ? "right" : "wrong");
	fflush(stdout);
}
