/* start_env.c: see start_env.h. */
#include "start_env.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENV_LIST "OMPI_MCA_mca_base_env_list"

/* The variable that makes Open MPI forward PACX_KEY, and what the user has forwarded with it. */
static char *forwarded(void)
{
	static char text[1024];
	const char *user = getenv(ENV_LIST);

	snprintf(text, sizeof text, ENV_LIST "=PACX_KEY%s%s", user && *user ? ";" : "", user ? user : "");
	return text;
}

char **pxd_start_env(const struct pxd_start *st, char *key)
{
	size_t n = 0, used = 0;
	bool names = false;
	char **list;

	while (environ[n])
		n++;
	list = calloc(n + (size_t)st->nenv + 3, sizeof *list);
	if (!list)
		return NULL;
	if (*key) {
		list[used++] = key;
		names = st->key_names;
		if (names)
			list[used++] = forwarded();
	}
	for (int k = 0; k < st->nenv; k++)
		list[used++] = st->env[k];
	for (size_t i = 0; i < n; i++) {
		bool replaced = strncmp(environ[i], "PACX_HOSTFILE=", 14) == 0 ||
				strncmp(environ[i], "PACX_KEY=", 9) == 0 ||
				(names && strncmp(environ[i], ENV_LIST "=", sizeof ENV_LIST) == 0);

		for (int k = 0; k < st->nenv && !replaced; k++) {
			size_t name = strcspn(st->env[k], "=") + 1;

			replaced = strncmp(environ[i], st->env[k], name) == 0;
		}
		if (!replaced)
			list[used++] = environ[i];
	}
	return list;
}
