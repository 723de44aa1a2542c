/*
 * stdin_rank0.c - rank 0 reads "hello" from standard input. The others do not look: what they find there is the
 * launcher's own affair (under plain MPICH an input that never ends).
 */
#include "check.h"

int main(int argc, char **argv)
{
	char line[64] = "";

	chk_begin(&argc, &argv, "stdin_rank0", 1);
	if (chk_rank == 0)
		CHECK(fgets(line, sizeof line, stdin) && strcmp(line, "hello\n") == 0);
	return chk_end();
}
