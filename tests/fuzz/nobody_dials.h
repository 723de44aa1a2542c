/* nobody_dials.h: the dialling side of a path where nobody dials: for programs that run the links' code without a network. Included by
 * one file of each. */
#ifndef PX_NOBODY_DIALS_H
#define PX_NOBODY_DIALS_H

#include "conn_dial.h"

int pxd_dial_init(struct pxd_dial *dial, struct pxd_node *d, const struct px_preamble *pre)
{
	dial->d = d;
	dial->pre = *pre;
	return 0;
}
void pxd_dial_start(struct pxd_dial *dial)
{
	(void)dial;
}
void pxd_dial_stop(struct pxd_dial *dial)
{
	(void)dial;
}
void pxd_dial_close(struct pxd_dial *dial)
{
	(void)dial;
}

#endif
