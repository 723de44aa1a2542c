/* relay.h: `pacxd --relay`: a meeting point for sites of which none can reach the other, typically on a login node.
 *
 * Both sites dial it; it reads each connection's preamble, pairs the writer's with the reader's connection of
 * the same stream, and from then on moves bytes both ways. It has no key and needs none: between the sites runs TLS.
 * With --next it hands every connection to another relay instead. No MPI, no threads; called by pacxd_dispatch.c only.
 */
#ifndef PXD_RELAY_H
#define PXD_RELAY_H

/* pxd_relay_main: argv[1] is --relay. Exit status of the program. */
int pxd_relay_main(int argc, char **argv);

#endif
