/* plan_key.c: see plan_key.h and, for pxd_plan_key, plan.h. */
#include "plan_key.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "key.h"
#include "quote.h"

bool pxd_plan_secure(const struct pxd_hosts *h, int site)
{
	for (int i = 0; i < h->nsites; i++)
		if (i != site && !pxd_hosts_link(h, site, i)->plain)
			return true;
	return false;
}

/* launcher_find: the word of the command that runs mpirun or the like, with its directory; NULL = none is known. */
static const char *launcher_find(const char *text)
{
	static const char *const launchers[] = { "mpirun", "mpiexec", "orterun", "prterun", "srun", "aprun" };
	static const char ends[] = " \t\n'\"(;&|";

	for (const char *word = text; *word; word += strspn(word, ends)) {
		size_t n = strcspn(word, ends);
		const char *base = word;

		for (size_t i = 0; i < n; i++)
			if (word[i] == '/')
				base = word + i + 1;
		for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
			size_t k = strlen(launchers[i]);

			/* mpirun.openmpi, mpiexec.hydra */
			if ((size_t)(word + n - base) >= k && memcmp(base, launchers[i], k) == 0 &&
				(base + k == word + n || base[k] == '.'))
				return word;
		}
		word += n;
	}
	return NULL;
}

/* ssh_is_deaf: the options behind this ssh make that our standard input does not arrive there as it is. */
static const char *ssh_is_deaf(const char *p)
{
	int terminals = 0;

	for (;;) {
		p += strspn(p, " \t\n");
		if (*p != '-')
			return terminals > 1 ? "-tt" : NULL;
		for (p++; *p && !strchr(" \t\n", *p); p++) {
			if (*p == 'n')
				return "-n";
			terminals += *p == 't';
			if (strchr("BbcDEeFIiJLlmOopQRSWw",
				    *p)) { /* its argument: the rest, or the next word */
				p += strcspn(p, " \t\n") == 1 ? 1 + strspn(p + 1, " \t\n") : 1;
				p += strcspn(p, " \t\n");
				break;
			}
		}
	}
}

int pxd_key_hole(const struct pxd_site *s, const char *template, char **out, char *why, size_t cap)
{
	const char *at, *remote = template, *deaf;

	*out = NULL;
	for (int k = 0; (at = pxd_template_remote_at(template, k)); k++) {
		remote = at;
		deaf = ssh_is_deaf(at);
		if (!deaf)
			continue;
		snprintf(why, cap,
			"site '%s': its start command has ssh %s, but ssh must hand on its standard input: "
			"the job's "
			"key goes that way; leave %s away, or put the key into a file there and name it with "
			"key:",
			s->name, deaf, deaf);
		return PX_ECONF;
	}
	if (pxd_template_has(template, "key")) {
		*out = strdup(template);
		return *out ? 0 : PX_ENOMEM;
	}
	at = launcher_find(remote);
	if (!at) {
		snprintf(why, cap,
			"site '%s': its start command goes to another machine, and names no launcher that is "
			"known; put "
			"{key} before the launcher there: it reads the job's key from standard input (or "
			"write key: FILE, or "
			"security: none)",
			s->name);
		return PX_ECONF;
	}
	return asprintf(out, "%.*s{key} %s", (int)(at - template), template, at) < 0 ? PX_ENOMEM : 0;
}

bool pxd_key_by_name(const struct pxd_site *s, const char *template)
{
	return s->mpi != PX_MPI_MPICH && launcher_find(template) && !strstr(template, " -x ");
}

char *pxd_key_script(const struct pxd_site *s, bool by_name)
{
	char *out;

	if (asprintf(&out,
		    "IFS= read -r PACX_KEY || { echo pacxrun: site %s: no key came on standard input >&2; "
		    "exit 2; }; "
		    "export PACX_KEY; %sexec \"$@\"",
		    s->name, by_name ? "export OMPI_MCA_mca_base_env_list=PACX_KEY; " : "") < 0)
		return NULL;
	return out;
}

int pxd_plan_key(const struct pxd_hosts *h, const char *file, bool starts_all, uint8_t key[PXD_KEY_SIZE],
	bool *needed, char *why, size_t cap)
{
	/* A site that does not get its key from us, and the best file that is on this machine. */
	const char *other = NULL, *here = NULL, *perhaps = NULL;
	char full[PATH_MAX];

	*needed = false;
	for (int i = 0; i < h->nsites; i++) {
		const struct pxd_site *s = &h->sites[i];
		bool remote = s->start && pxd_template_remote(s->start);

		if (!pxd_plan_secure(h, i))
			continue;
		*needed = true;
		if ((s->manual || s->key) && !other)
			other = s->name;
		if (s->key && !s->manual && !remote && !here)
			here = s->key;
		if (s->key && !perhaps && access(pxd_key_path(s->key, full, sizeof full), F_OK) == 0)
			perhaps = s->key;
	}
	if (!*needed)
		return 0;
	if (file || getenv("PACX_KEY_FILE"))
		return pxd_key_load(file ? file : getenv("PACX_KEY_FILE"), key, why, cap);
	if (getenv("PACX_KEY")) {
		if (pxd_key_parse(getenv("PACX_KEY"), key) == 0)
			return 0;
		snprintf(why, cap, "PACX_KEY does not hold a key of 64 hexadecimal digits");
		return PX_ECONF;
	}
	if (here || perhaps)
		return pxd_key_load(here ? here : perhaps, key, why, cap);
	if (other || !starts_all) {
		snprintf(why, cap,
			"the sites need one key for their encrypted links, and %s%s%s; make one with: "
			"pacxctl keygen FILE, "
			"copy it to each site with mode 600, name it there with key: (or PACX_KEY_FILE) and "
			"here with "
			"--key FILE; or write security: none",
			other ? "site '" : "pacxrun does not start all of them", other ? other : "",
			other ? "' does not get it from pacxrun" : "");
		return PX_ECONF;
	}
	if (pxd_key_make(key) == 0)
		return 0;
	snprintf(why, cap, "cannot make a key: no random numbers");
	return PX_EIO;
}
