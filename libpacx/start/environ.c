/* environ.c: see environ.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "environ.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm_find.h"
#include "spawn.h"

struct px_environ px_environ = { .rank = -1, .size = -1 };

static bool is(const char *name, const char *value)
{
	const char *v = getenv(name);

	return v && strcmp(v, value) == 0;
}

static int number(const char *a, const char *b, int otherwise)
{
	const char *v = getenv(a);

	if (!v)
		v = getenv(b);
	return v ? atoi(v) : otherwise;
}

/* A copy of a variable that is set to something, or NULL. */
static const char *copy(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? strdup(v) : NULL;
}

/* The job's key is the daemons' affair. It is wiped where the kernel shows it in /proc, too. */
static void key_forget(void)
{
	char *key = getenv("PACX_KEY");

	if (key)
		explicit_bzero(key, strlen(key));
	unsetenv("PACX_KEY");
}

bool px_environ_is_daemon(void)
{
	const struct px_environ *e = &px_environ;

	if (e->rank < 0 || e->size < 0)
		return false;
	return e->first ? e->rank < e->daemons : e->rank >= e->size - e->daemons;
}

/* Has MPI_Comm_spawn of a rank started this process? Then it is in a world of its own, whatever it has inherited, or a guest (spawn.h). */
static bool spawned(void)
{
	return getenv("OMPI_PARENT_PORT") || is("PMI_SPAWNED", "1");
}

void px_environ_read(void)
{
	static bool done;
	struct px_environ *e = &px_environ;

	if (done)
		return;
	done = true;
	e->site = copy("PACX_SITE");
	e->guest = spawned() && getenv(PX_GUEST_VARIABLE);
	px_active = e->site && (!spawned() || e->guest);
	if (e->guest)
		key_forget();
	if (!px_active || e->guest)
		return;
	e->single = is("PACX_FORM", "single");
	e->first = is("PACX_DAEMONS", "first");
	e->daemons = 2 * number("PACX_GATEWAYS", "PACX_GATEWAYS", 1);
	e->rank = number("OMPI_COMM_WORLD_RANK", "PMI_RANK", -1);
	e->size = number("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", -1);
	e->stats = getenv("PACX_STATS") != NULL;
	e->accuracy = copy("PACX_ACCURACY");
	e->stdin_path = copy("PACX_STDIN");
	/* What starts a daemon may be preloaded as well: the launcher itself, a shell in the daemon's place. */
	if (e->rank >= 0 && !px_environ_is_daemon() &&
		strncmp(program_invocation_short_name, "pacxd", 5) != 0)
		key_forget();
}

/* In the executable's order of initialisation this may be late: see px_front_begin. */
__attribute__((constructor(101))) static void begin(void)
{
	px_environ_read();
}

/* Does the word of n bytes at w begin like that, its directory left aside? */
static bool named(const char *w, size_t n, const char *prefix)
{
	size_t len = strlen(prefix), base = n;

	while (base > 0 && w[base - 1] != '/')
		base--;
	return n - base >= len && strncmp(w + base, prefix, len) == 0;
}

/* Drop the words of variable `name` that begin with prefix; the others keep their order. None left: no variable. */
static void words_drop(const char *name, const char *separators, const char *prefix)
{
	const char *from = getenv(name);
	char *to = from ? calloc(1, strlen(from) + 1) : NULL;
	size_t len = 0;

	for (size_t n; to && *from; from += n + strspn(from + n, separators)) {
		n = strcspn(from, separators);
		if (n == 0 || named(from, n, prefix))
			continue;
		if (len > 0)
			to[len++] = *separators;
		memcpy(to + len, from, n);
		len += n;
	}
	if (to && len > 0)
		setenv(name, to, 1);
	else if (to)
		unsetenv(name);
	free(to);
}

void px_environ_clean(void)
{
	char name[256];

	key_forget();
	for (char **v = environ; v && *v;) {
		size_t n = strcspn(*v, "=");

		if (strncmp(*v, "PACX_", 5) != 0 || n >= sizeof name) {
			v++;
			continue;
		}
		memcpy(name, *v, n);
		name[n] = '\0';
		unsetenv(name); /* the next one is at v now */
	}
	words_drop("LD_PRELOAD", ": ", "libpacx-");
	words_drop(
		"OMPI_MCA_mca_base_env_list", ";", "PACX_"); /* set where Open MPI takes variables by name */
}
