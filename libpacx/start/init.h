/* init.h: the end that a rank makes when it finds that it cannot be part of the job. */
#ifndef PX_INIT_H
#define PX_INIT_H

/* px_give_up: say why on standard error and to all sites, if they can be reached yet; does not return. */
void px_give_up(const char *why) __attribute__((noreturn));

#endif
