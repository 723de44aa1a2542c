/* hostfile.h: the sites of a job as the user wrote them, with every default filled in.
 *
 * Owns the parsed hostfile (YAML or the classic PACX form), from pxd_hosts_load, _parse or
 * _from_env to pxd_hosts_free. pacxrun loads a file, pacxd what pacxrun handed on in PACX_PLAN,
 * or the file PACX_HOSTFILE. Nothing here starts, resolves or connects anything, writes to the terminal or exits:
 * an error comes back as one line "file:line:column: found ..., expected ..." in the caller's buffer.
 */
#ifndef PXD_HOSTFILE_H
#define PXD_HOSTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/hello.h" /* PX_NAME_MAX, PX_JOB_MAX, enum px_flavor */

#define PXD_PORT_DEFAULT      31000
#define PXD_RANKS_MAX         (1 << 24) /* per site */
#define PXD_SITES_MAX         4096
#define PXD_HOSTFILE_MAX      (1024 * 1024) /* bytes of text */
#define PXD_START_DEADLINE_MS 120000
#define PXD_RECONNECT_MS      60000
#define PXD_BUFFER_DEFAULT    (256u << 20)
#define PXD_BUFFER_MIN        (16u << 20)
#define PXD_STREAMS_MAX       64
#define PXD_GATEWAYS_MAX      64
#define PXD_WHY               512 /* room for any error line */

enum pxd_form { PXD_FORM_AUTO = 0, PXD_FORM_MPMD, PXD_FORM_SINGLE };

struct pxd_mark {
	int line, column; /* from 1; 0 = not in the file */
};

struct pxd_env {
	char *name, *value;
};

/* A pair of relay daemons and its one port. Gateway 0 has the site's host, port and bind. */
struct pxd_gateway {
	char *host; /* what the other sites dial */
	int port;
	char *bind_host; /* = host when the file has no bind: */
	int bind_port;
	bool has_port, has_bind_port; /* while the file is read */
	struct pxd_mark at, at_bind;  /* of its port, or of itself */
};

struct pxd_site {
	char *name;
	char *host;      /* what the other sites dial; never NULL */
	int port;        /* what the other sites dial; 0 = any free one (local runs), or none (listen: no) */
	char *bind_host; /* address to listen on; = host when the file has no bind: */
	int bind_port;   /* = port when the file names none */
	int ngateways;   /* >= 1 */
	struct pxd_gateway *gateways; /* [ngateways]; [0] repeats host, port, bind_host, bind_port */
	bool listen;                  /* false: nobody can reach it; it dials for both directions */
	uint64_t buffer;              /* bytes its daemons may use for messages, each */
	char *key;                    /* file with the job's key there, NULL = from pacxrun */
	char *group;                  /* sites of one name are near each other; NULL = none */
	double uplink;                /* bytes/s in each direction that its links share, 0 = not said */
	int ranks;                    /* application ranks, >= 1 */
	int base;                     /* first global rank */
	enum px_flavor mpi;           /* PX_MPI_OTHER = auto: not known yet */
	char *mpi_named;              /* mpi: as an identity (openmpi-5.0.7) or a directory, NULL = neither */
	bool daemons_first;
	bool manual;  /* started by hand or by a batch system */
	bool classic; /* from the classic form: {exe} means {app} */
	char *start;  /* start command with placeholders, NULL = default by mpi */
	char *prefix; /* where PACX is installed at the site, NULL = as here */
	char *exe;    /* NULL = program of the command line */
	char **args;  /* [nargs], NULL with nargs 0 = those of the command line */
	int nargs;
	bool has_args;       /* args: was written, if only as [] */
	struct pxd_env *env; /* [nenv] */
	int nenv;
	bool has_host, has_port, has_bind_port;
	struct pxd_mark at, at_port, at_bind, at_start, at_listen;
};

enum pxd_compress {
	PXD_COMPRESS_NONE = 0,
	PXD_COMPRESS_AUTO,
	PXD_COMPRESS_ZLIB,
	PXD_COMPRESS_LZ4,
	PXD_COMPRESS_ZSTD
};

/* Are segments predicted from earlier ones before they are compressed? */
enum pxd_prediction {
	PXD_PREDICTION_AUTO = 0, /* where the wire is slow enough */
	PXD_PREDICTION_NONE,
	PXD_PREDICTION_ALWAYS
};

/* How a link works; both directions of a pair of sites have the same options. */
struct pxd_link_opts {
	int streams;                 /* TCP connections per gateway, 0 = auto */
	enum pxd_compress compress;  /* default auto */
	int compress_level;          /* 0 = the codec's default */
	enum pxd_prediction predict; /* only with compress: auto */
	bool plain;                  /* security: none */
	char *congestion;            /* TCP congestion control, NULL = the system's */
	int source_port;             /* first local port of outgoing connections, 0 = any */
	int dialer;  /* dial: NAME: site that dials both directions; -1 = who sends dials. In the
				       default: link it may be a site that is not of the pair; see pxd_hosts_dials */
	char *dial;  /* dial: COMMAND, transport with %h and %p; NULL = TCP */
	char *proxy; /* socks5://[user:pass@]host:port or http://..., NULL */
	char *relay; /* relay: host:port where both sites meet, NULL */
	long reconnect_ms;
	long emulate_latency_us; /* one way, 0 = none */
	double emulate_rate;     /* bytes/s, 0 = unlimited */
};

/* A pair of sites, or (-1, -1) for the default of all pairs. */
struct pxd_link {
	int a, b;
	struct pxd_mark at, at_dial;
	unsigned written;       /* bits of links.c: which keys the file has here */
	struct pxd_link_opts o; /* what is not written is filled in from the default: link, then built-in */
};

struct pxd_hosts {
	char *file;                  /* display name used in messages */
	char *job;                   /* "" when the file has none */
	char job_id[PX_JOB_MAX + 1]; /* what hellos carry; derived, or PACX_JOB (pxd_hosts_from_env) */
	int nsites;
	struct pxd_site *sites;
	int nranks; /* of all sites */
	int nlinks;
	struct pxd_link *links;
	struct pxd_link_opts link_default; /* of pairs that are not in links */
	long deadline_start_ms;
	int files; /* where MPI_File_open finds files: enum px_world_files (wire/world.h), or that plus a site; -1 while it is read */
};

/* pxd_hosts_load: read and parse a file. 0, or PX_EIO, PX_ECONF, PX_ENOMEM with the reason in why. */
int pxd_hosts_load(const char *path, struct pxd_hosts **out, char *why, size_t cap);
/* pxd_hosts_parse: the same from text; file is the name for messages. The form is detected. */
int pxd_hosts_parse(
	const char *text, size_t len, const char *file, struct pxd_hosts **out, char *why, size_t cap);
/* pxd_hosts_from_env: from PACX_PLAN, else from the file PACX_HOSTFILE; *self (may be NULL) is the index
 * of PACX_SITE; job_id is PACX_JOB if set. Ports must be fixed here: 0 is refused. */
int pxd_hosts_from_env(struct pxd_hosts **out, int *self, char *why, size_t cap);
void pxd_hosts_free(struct pxd_hosts *h); /* NULL is fine */

/* pxd_hosts_link: options of the pair a, b; never NULL. */
const struct pxd_link_opts *pxd_hosts_link(const struct pxd_hosts *h, int a, int b);
/* pxd_hosts_dials: does site `self` dial the connection of the link from -> to? (dial: NAME, listen: no) With
 * relay: both do, namely the relay. */
bool pxd_hosts_dials(const struct pxd_hosts *h, int self, int from, int to);

/* pxd_hosts_find: index of a site by name, or -1. */
int pxd_hosts_find(const struct pxd_hosts *h, const char *name);
/* pxd_hosts_job_set: the job id is this text (PACX_JOB). 0, or PX_ECONF with the reason in why. */
int pxd_hosts_job_set(struct pxd_hosts *h, const char *text, char *why, size_t cap);
/* pxd_hosts_job_id: derive job_id anew from job, names, ranks, hosts and ports of all gateways. */
void pxd_hosts_job_id(struct pxd_hosts *h);
/* pxd_hosts_port_set: this is the port of a gateway (and of the site, if it is the first one). */
void pxd_hosts_port_set(struct pxd_site *s, int gateway, int port, int bind_port);
/* pxd_hosts_plan: the resolved hostfile as one line of YAML for PACX_PLAN, without what only pacxrun
 * needs (start, exe, args, env). New memory, NULL = out of memory. */
char *pxd_hosts_plan(const struct pxd_hosts *h);

/* pxd_site_mpi_set: mpi: auto, a flavour, an identity or the directory of an MPI. 0, PX_EINVAL: it is none of them, PX_ENOMEM. */
#define PXD_MPI_EXPECTED                                                                                     \
	"openmpi, mpich, auto, a vendor with a version (openmpi-5.0.7) or the directory of an MPI "          \
	"(/opt/openmpi)"
int pxd_site_mpi_set(struct pxd_site *s, const char *text);
const char *pxd_flavor_name(enum px_flavor f);  /* "openmpi", "mpich", "auto" */
const char *pxd_flavor_title(enum px_flavor f); /* "Open MPI", "MPICH", "unknown MPI" */
/* pxd_hosts_group: the first site of the group of site i; i itself where it is in none. */
int pxd_hosts_group(const struct pxd_hosts *h, int i);
/* pxd_hosts_site_of: site of a global rank, -1 = no such rank. */
int pxd_hosts_site_of(const struct pxd_hosts *h, uint32_t grank);

#endif
