/* muster.c: see muster.h. */
#include "muster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "records.h"

int pxd_muster_init(struct pxd_muster *m, const struct pxd_hosts *h)
{
	*m = (struct pxd_muster){ .h = h, .step = calloc((size_t)h->nsites, sizeof *m->step) };
	return m->step ? 0 : PX_ENOMEM;
}

void pxd_muster_fini(struct pxd_muster *m)
{
	free(m->step);
	m->step = NULL;
}

bool pxd_muster_put(struct pxd_muster *m, int site, const char *record)
{
	static const char *const words[] = {
		[PXD_STEP_JOINED] = "joined", [PXD_STEP_BEGAN] = "began", [PXD_STEP_ENDED] = "ended"
	};
	const char *text = pxd_record_value(record, m->h->sites[site].name, "out", "life");
	char word[16];

	if (!text || sscanf(text, "%15s", word) != 1)
		return false;
	for (int i = PXD_STEP_JOINED; i <= PXD_STEP_ENDED; i++)
		if (strcmp(word, words[i]) == 0)
			m->step[site] = (enum pxd_step)i;
	return true;
}

/* farthest: how far the job has come, as far as any site has said. */
static enum pxd_step farthest(const struct pxd_muster *m)
{
	enum pxd_step best = PXD_STEP_NONE;

	for (int i = 0; i < m->h->nsites; i++)
		best = m->step[i] > best ? m->step[i] : best;
	return best;
}

bool pxd_muster_unheard(const struct pxd_muster *m, int site, char *why, size_t cap)
{
	if (m->step[site] != PXD_STEP_NONE || farthest(m) >= PXD_STEP_BEGAN)
		return false;
	snprintf(why, cap,
		"site '%s' has ended before all its ranks had called MPI_Init, as far as its standard error "
		"tells",
		m->h->sites[site].name);
	return true;
}

enum pxd_verdict pxd_muster_judge(struct pxd_muster *m, int site, char *why, size_t cap)
{
	const char *name = m->h->sites[site].name;
	enum pxd_step best = farthest(m);

	if (m->step[site] == PXD_STEP_NONE && best == PXD_STEP_BEGAN)
		return PXD_VERDICT_WAIT; /* all sites are in a job that has begun */
	/* The end is said by each site for itself, and nobody ends well alone. */
	if (best == PXD_STEP_ENDED)
		return PXD_VERDICT_WELL;
	if (m->step[site] != PXD_STEP_NONE) {
		snprintf(why, cap,
			"site '%s' has ended with exit status 0 while the job went on: a rank left without "
			"MPI_Finalize",
			name);
		return PXD_VERDICT_EARLY;
	}
	snprintf(why, cap, "site '%s' has ended with exit status 0, but was no part of the job%s", name,
		m->explained
			? ""
			: ": its program has not come through MPI_Init of PACX. Does it call MPI_Init at all "
			  "(not with --help)? Else the preload did not reach it (a container, env -i, "
			  "setuid, "
			  "a static program, MPI taken by dlsym), or start: starts something else. If it did "
			  "run in one world, the site's standard error does not come to pacxrun: then set "
			  "PACX_RECORDS=no");
	m->explained = true;
	return PXD_VERDICT_NEVER;
}
