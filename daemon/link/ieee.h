/* ieee.h: first of all includes of a file whose floating-point arithmetic both ends must round alike: doubles as IEEE 754 has them, one operation
 * at a time. No multiplication and addition may become one, and no intermediate result may have more bits (the x87 of old PCs).
 */
#ifndef PXD_IEEE_H
#define PXD_IEEE_H

#if defined(__i386__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("sse2", "fpmath=sse")
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* gcc does not know it, and needs it not with -std=c11 */
#endif

#endif
