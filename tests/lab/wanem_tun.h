/* wanem_tun.h: the devices of the emulated network, one in each namespace; how the emulator ends when something cannot be had. */
#ifndef WANEM_TUN_H
#define WANEM_TUN_H

#include <netinet/in.h>

/* die: says why, and exits with 1. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* tun_open: makes the device "wan0" in namespace netns, with this address of a /24, and comes back to the namespace of descriptor `home`. Its
 * descriptor, which never blocks. */
int tun_open(const char *netns, struct in_addr addr, int mtu, int home);

#endif
