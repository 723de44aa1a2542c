/* ieee.h: first of all includes of a file whose floating-point arithmetic both ends must round alike: doubles as IEEE 754 has them, one operation
 * at a time. No multiplication and addition may become one, and no intermediate result may have more bits (the x87 of old PCs).
 * (-ffp-contract=off says the former, too.)
 */
#ifndef PXD_IEEE_H
#define PXD_IEEE_H

#include <fenv.h>

#if defined(__i386__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("sse2", "fpmath=sse")
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* gcc does not know it, and needs it not with -std=c11 */
#if __FLT_EVAL_METHOD__ != 0
#error "the floating-point arithmetic of this target has more bits than a double: use gcc, or -msse2 -mfpmath=sse"
#endif
#endif
#ifdef __FAST_MATH__
#error "-ffast-math: predictions would differ from those of other sites"
#endif

/* pxd_ieee: rounding to nearest, and denormal numbers are numbers, whatever a library has made of this thread. */
static inline void pxd_ieee(void)
{
	fesetenv(FE_DFL_ENV);
}

#endif
