/* suite.c: programs of tests/mpi one after the other in one job, which starts in a second where they take a tenth of that.
 * usage: suite NAME...
 * Without names: prints those it has. Each is its object file with main under another name (Makefile); chk_begin and chk_end leave the
 * beginning and the end of MPI to us. Status 1 when one has failed. All ranks get the same names.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int chk_in_suite = 1; /* check.h looks whether there is one */

#define X(name) int main_##name(int argc, char **argv);
SUITE
#undef X
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} program[] = {
#define X(name) { #name, main_##name },
	SUITE
#undef X
};
#define PROGRAMS (int)(sizeof program / sizeof program[0])

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc < 2) {
		for (int k = 0; k < PROGRAMS; k++)
			puts(program[k].name);
		return 0;
	}
	MPI_Init(&argc, &argv);
	for (int i = 1; i < argc; i++) {
		char *alone[] = { argv[i], NULL };
		int k = 0;

		while (k < PROGRAMS && strcmp(program[k].name, argv[i]) != 0)
			k++;
		if (k == PROGRAMS) {
			fprintf(stderr, "suite: no program %s\n", argv[i]);
			MPI_Abort(MPI_COMM_WORLD, 2);
			return 2;
		}
		failed |= program[k].run(1, alone);
		/* What the next one finds as at the beginning. */
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	}
	MPI_Finalize();
	return failed;
}
