/* replay.c: runs a fuzz target over stored inputs, with any compiler: replay FILE-OR-DIRECTORY...
 *
 * Linked with exactly one target. Prints the name of an input before it runs, so that a crash names it;
 * speaks the protocol of tests/test.h with one test.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *in = NULL;
	struct stat st;
	size_t n;
	int rc = -1;

	if (!f || fstat(fileno(f), &st) < 0)
		goto out;
	in = malloc(st.st_size > 0 ? (size_t)st.st_size : 1);
	if (!in)
		goto out;
	n = fread(in, 1, (size_t)st.st_size, f);
	if (n != (size_t)st.st_size)
		goto out;
	printf("  %s\n", path);
	LLVMFuzzerTestOneInput(in, n);
	rc = 0;
out:
	if (rc < 0)
		perror(path);
	free(in);
	if (f)
		fclose(f);
	return rc;
}

static int replay_path(const char *path, int *files)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char name[4096];
	int rc = 0;

	if (!d) {
		++*files;
		return replay_file(path);
	}
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof name, "%s/%s", path, e->d_name);
		if (replay_path(name, files) < 0)
			rc = -1;
	}
	closedir(d);
	return rc;
}

int main(int argc, char **argv)
{
	int files = 0, rc = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..1\n");
	for (int i = 1; i < argc; i++)
		if (replay_path(argv[i], &files) < 0)
			rc = -1;
	if (files == 0) /* an empty corpus proves nothing */
		rc = -1;
	printf("%s corpus_replays_without_a_crash\n", rc < 0 ? "not ok" : "ok");
	return rc < 0;
}
