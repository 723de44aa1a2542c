/* pacxctl.h: what the parts of pacxctl share: one function for each subcommand, the hostfile and the keys.
 *
 * pacxctl is a tool in the foreground: it blocks, but every wait has a deadline (pacxctl_talk.h). Each subcommand gets argv with its
 * own name first and returns the exit status: 0, 1 when something it tested is not right, 2 for errors of usage.
 */
#ifndef PXD_PACXCTL_H
#define PXD_PACXCTL_H

#include "hostfile.h"
#include "key.h"
#include "tls.h"

#define PXD_CTL_WRONG     1
#define PXD_CTL_USAGE     2
#define PXD_CTL_TIMEOUT_S 10

#ifndef PX_VERSION_TEXT
#define PX_VERSION_TEXT "unknown"
#endif

int pxd_ctl_status(int argc, char **argv); /* pacxctl_status.c */
int pxd_ctl_top(int argc, char **argv);    /* top.c */
int pxd_ctl_doctor(int argc, char **argv); /* doctor.c */
int pxd_ctl_probe(int argc, char **argv);  /* pacxctl_probe.c */
int pxd_ctl_answer(int argc, char **argv); /* answer.c */
int pxd_ctl_mpis(int argc, char **argv);   /* pacxctl_mpis.c */
struct pxd_ctl_options;
int pxd_ctl_propose(struct pxd_ctl_options *o); /* propose.c: probe --recording */

/* -f, --site, --timeout and one number more (0 = as it was). */
struct pxd_ctl_options {
	const char *file, *site;
	long timeout_ms;
	long for_ms; /* --for */
	/* probe --recording FILE, which needs no hostfile, with --rate (bytes/s, 0 = not said) and --rtt (below 0 = not said). */
	const char *recording;
	double rate;
	long rtt_us;
};

struct pxd_ctl {
	struct pxd_hosts *h;
	uint8_t jobhash[PX_JOBHASH_SIZE];
	struct pxd_ctl_options o;
	uint8_t key[PXD_KEY_SIZE]; /* from PACX_KEY, for all sites */
	bool env_key;
};

/* pxd_ctl_open: read the options and the hostfile (h stays NULL with --recording). 0, or the exit status after a message. */
int pxd_ctl_open(struct pxd_ctl *c, int argc, char **argv);
void pxd_ctl_close(struct pxd_ctl *c);
/* pxd_ctl_selected: shall we speak for this site? That of --site, else those whose addresses are of this machine. */
bool pxd_ctl_selected(const struct pxd_ctl *c, int site);
/* pxd_ctl_tls: the context of site self; NULL in *out when none of its links has TLS. *keyed: false when there is no key here and
 * one that everybody knows stands in: the way is tested, not who is there. 0, or PX_E... with the reason in why. */
int pxd_ctl_tls(struct pxd_ctl *c, int self, struct pxd_tls_ctx **out, bool *keyed, char *why, size_t cap);

#endif
