/* muster.h: which sites have taken part in the job, and what the end of a site means for it.
 *
 * The exit status of a launcher says nothing about PACX: a program that the preload did not reach ends well at every site, in
 * as many worlds. So each site's first out-daemon says on standard error, in a record of kind "life" (records.h), that the
 * site has joined (its ranks have come through libpacx), that the job has begun (all sites are there), and that it has ended.
 * Used by launch.c, one per job. Pure: no processes, no descriptors, no messages of its own.
 */
#ifndef PXD_MUSTER_H
#define PXD_MUSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "hostfile.h"

enum pxd_step { PXD_STEP_NONE, PXD_STEP_JOINED, PXD_STEP_BEGAN, PXD_STEP_ENDED };

struct pxd_muster {
	const struct pxd_hosts *h;
	enum pxd_step *step; /* [nsites] */
	bool explained;      /* the long sentence has been said */
};

enum pxd_verdict {
	PXD_VERDICT_WELL,
	PXD_VERDICT_WAIT,  /* the site's own records do not come; another site will tell */
	PXD_VERDICT_NEVER, /* the site was no part of the job */
	PXD_VERDICT_EARLY  /* it ended while the job went on */
};

int pxd_muster_init(struct pxd_muster *m, const struct pxd_hosts *h); /* 0 or PX_ENOMEM */
void pxd_muster_fini(struct pxd_muster *m);
/* pxd_muster_put: a record from the standard error of a site; false = it is of another kind. */
bool pxd_muster_put(struct pxd_muster *m, int site, const char *record);
/* pxd_muster_judge: the launcher of `site` has ended with status 0 and all that it wrote has been read. The reason, when it is not
 * well, goes to why. */
enum pxd_verdict pxd_muster_judge(struct pxd_muster *m, int site, char *why, size_t cap);
/* pxd_muster_unheard: it has ended with another status, and its launcher may not have said why: whether it was still on its way, in why. */
bool pxd_muster_unheard(const struct pxd_muster *m, int site, char *why, size_t cap);

#endif
