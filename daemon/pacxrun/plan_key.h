/* plan_key.h: how the job's key gets to the sites that pacxrun starts.
 *
 * Used by plan.c only. The key never stands in a command: a site on this machine inherits it (PACX_KEY); a start command
 * that goes to another machine gets it as the first line of its standard input, and {key}, before the launcher there, is
 * a shell that reads that line into PACX_KEY and becomes the launcher. Where no key comes {key} is nothing.
 */
#ifndef PXD_PLAN_KEY_H
#define PXD_PLAN_KEY_H

#include "plan.h"

/* pxd_plan_secure: has any link of the site TLS? */
bool pxd_plan_secure(const struct pxd_hosts *h, int site);
/* pxd_key_hole: the remote start command with {key}, put in where the user has not. *out is new. 0, PX_ENOMEM, or PX_ECONF
 * with a sentence in why: no launcher is known, or ssh would not hand on standard input as it is. */
int pxd_key_hole(const struct pxd_site *s, const char *template, char **out, char *why, size_t cap);
/* pxd_key_by_name: Open MPI hands variables to other nodes by name, from -x or from a list in the environment. They exclude
 * each other, and of a user's script we do not know: may the list be set for this start command? */
bool pxd_key_by_name(const struct pxd_site *s, const char *template);
/* pxd_key_script: what {key} lets a shell do before it becomes the launcher. NULL = out of memory. */
char *pxd_key_script(const struct pxd_site *s, bool by_name);

#endif
