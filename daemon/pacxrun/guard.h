/* guard.h: `pacxrun --guard`, the process above each site's start command.
 *
 * Runs in a process of its own and owns everything below it; returns what main shall return. Nothing
 * else calls it.
 */
#ifndef PXD_GUARD_H
#define PXD_GUARD_H

/* pxd_guard_main: argv[0] is the name for messages, then [-p PID] [--] COMMAND [ARGUMENT ...]. */
int pxd_guard_main(int argc, char **argv);

#endif
