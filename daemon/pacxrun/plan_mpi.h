/* plan_mpi.h: which MPI a site has: the build of PACX for it, its launcher, and what the program is linked with.
 *
 * Private to plan.c; plan.h has the results. Reads programs and the list of builds, runs nothing but the launcher that pxd_plan_mpmd
 * tries.
 */
#ifndef PXD_PLAN_MPI_H
#define PXD_PLAN_MPI_H

#include "elf_flavor.h"
#include "plan.h"

/* pxd_plan_exe: the site's program as it was written, NULL = none. */
const char *pxd_plan_exe(const struct pxd_site *s, const struct pxd_plan_options *o);
/* pxd_plan_program: what a program is linked with that runs at the site. */
void pxd_plan_program(const struct pxd_site *s, const char *path, struct pxd_elf_mpi *out);
/* pxd_plan_here: a site's start command runs on this machine, as far as its text tells. */
bool pxd_plan_here(const struct pxd_site *s);
/* pxd_plan_replace: text with {mpi} and {site} replaced; {mpi} is what the site names, or its flavour. NULL: out of memory. */
char *pxd_plan_replace(const char *text, const struct pxd_site *s);
/* pxd_plan_mpi_of: needs pxd_plan_mpi. 0, or PX_ECONF with a sentence in why. */
int pxd_plan_mpi_of(const struct pxd_site *s, const struct pxd_plan_options *o, struct pxd_plan_mpi *out,
	char *why, size_t cap);
/* pxd_plan_openmpi_options: how Open MPI's launcher is called on one machine, NULL at the end. */
const char *const *pxd_plan_openmpi_options(void);
/* pxd_plan_mpmd: can the launcher start two programs as one job? That of Open MPI 5.0.7 cannot: it dies. */
bool pxd_plan_mpmd(const struct pxd_plan_mpi *m);

#endif
