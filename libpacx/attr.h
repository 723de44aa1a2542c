/* attr.h: see attr.c. Called by init.c only. */
#ifndef PX_ATTR_H
#define PX_ATTR_H

/* px_attr_finalize: delete the attributes of SELF and WORLD, with their callbacks. Before the channel closes. */
void px_attr_finalize(void);

#endif
