/* plan.h: from the hostfile and the command line to the start command of each site.
 *
 * Used by pacxrun only. Owns the finished commands and environments (pxd_plan_make to pxd_plan_free);
 * borrows the hostfile, into which it writes what it finds out (flavour, exe). Starts nothing.
 */
#ifndef PXD_PLAN_H
#define PXD_PLAN_H

#include <limits.h>
#include <stdio.h>

#include "hostfile.h"
#include "key.h"
#include "mpis.h"

struct pxd_plan_options {
	char **program;       /* argv of the application, NULL-terminated */
	const char *prefix;   /* of this installation: directory with bin/ and lib/ */
	struct pxd_mpis mpis; /* for which it is built; owned by whoever made the options */
	enum pxd_form form;   /* of default start commands */
	bool label, stats;
	const char *record;     /* PACX_RECORD of all sites, or NULL */
	bool env_only;          /* make no start commands, only environments */
	int only;               /* make the start command of this site only; -1 = of all */
	const char *stdin_fifo; /* for a launcher that cannot give standard input to rank 0, or NULL */
	bool stdin_data;        /* our standard input is a file or a pipe */
};

/* What a site's MPI comes to; strings are "" when there is none. */
struct pxd_plan_mpi {
	char build[NAME_MAX];    /* NAME of libpacx-NAME.so and pacxd-NAME */
	char launcher[PATH_MAX]; /* mpirun or the like, for a default start */
	char library
		[PATH_MAX]; /* the program's MPI library, where it is another one than that which the daemon was built with */
	int major; /* of the vendor's version, 0 = not known */
	enum px_flavor flavor;
};

/* A command in which {signal} and {pid} are still to be replaced (far_signal.h). */
#define PXD_FAR_KILL "kill -s {signal} {pid}"

struct pxd_start {
	const struct pxd_site *site;
	struct pxd_plan_mpi mpi;
	enum pxd_form form;
	bool remote;     /* goes through ssh or the like */
	bool secure;     /* has links with TLS: its daemons need the job's key */
	bool records;    /* its daemons tell on standard error how far they are (muster.h) */
	bool fifo_stdin; /* global rank 0 reads options.stdin_fifo */
	bool pump_stdin; /* global rank 0 says how much of its standard input it has taken (feeder.h) */
	bool key_stdin;  /* the start command reads the job's key as the first line of its standard input */
	bool key_names; /* Open MPI takes the key to the site's other nodes by its name, if its variable says so */
	char *command; /* for /bin/sh -c; NULL = by hand */
	char *far_kill; /* the same way, to run PXD_FAR_KILL there; NULL = no {guard}, or not behind a remote shell */
	char **env; /* NAME=VALUE of PACX_ and the site, NULL-terminated */
	int nenv;
	char *preload; /* LD_PRELOAD=... for application ranks */
};

struct pxd_plan {
	int nsites;
	struct pxd_start *starts; /* in site order */
};

/* pxd_plan_daemons: an out- and an in-daemon for each gateway. */
static inline int pxd_plan_daemons(const struct pxd_site *s)
{
	return 2 * s->ngateways;
}
/* pxd_plan_mpi: decide the flavour of every site of which it is not known: mpi: auto or a directory. PX_ECONF with a sentence in why. */
int pxd_plan_mpi(struct pxd_hosts *h, const struct pxd_plan_options *o, char *why, size_t cap);
/* pxd_plan_make: needs flavors and final ports. PX_ECONF, PX_ENOMEM with a sentence in why. */
int pxd_plan_make(const struct pxd_hosts *h, const struct pxd_plan_options *o, struct pxd_plan **out,
	char *why, size_t cap);
void pxd_plan_free(struct pxd_plan *p);
/* pxd_plan_key: the job's key, for whatever needs one: from `file` (--key), from PACX_KEY or PACX_KEY_FILE, from the
 * `key:` of a site that is here, else a fresh one, which needs that pacxrun starts all sites. *needed: some link has TLS. 0, or
 * PX_ECONF with a sentence in why. */
int pxd_plan_key(const struct pxd_hosts *h, const char *file, bool starts_all, uint8_t key[PXD_KEY_SIZE],
	bool *needed, char *why, size_t cap);
/* pxd_plan_print: what --check shows. */
void pxd_plan_print(const struct pxd_hosts *h, const struct pxd_plan *p, FILE *f);
/* pxd_plan_print_env: "export NAME='VALUE'" lines for a start by hand, and the launcher's command as a
 * comment. */
void pxd_plan_print_env(const struct pxd_start *s, FILE *f);
/* pxd_plan_print_manual: what to type for a site that is started by hand. */
void pxd_plan_print_manual(const struct pxd_hosts *h, const struct pxd_start *s, FILE *f);

#endif
