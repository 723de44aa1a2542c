/* start_env.h: the environment of a site's start command.
 *
 * Used by launch.c. Owns the list only; the strings are the plan's, the caller's and our own environment's.
 */
#ifndef PXD_START_ENV_H
#define PXD_START_ENV_H

#include "plan.h"

/* pxd_start_env: our environment with the site's variables in front of equal names, and the key (PACX_KEY=...) unless it goes
 * another way (""). NULL = out of memory. Free the list. */
char **pxd_start_env(const struct pxd_start *st, char *key);

#endif
