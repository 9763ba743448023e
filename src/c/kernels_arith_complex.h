/* Template over complex types, of kernels_arith.c. */
#include "kernels_complex.h"

static inline C FN(strong_product)(C g, C p)
{
    int zero = (g.re == 0) & (g.im == 0);
    C z = FN(product)(g, FN(of_parts)(zero ? 0 : p.re, zero ? 0 : p.im));
    return FN(of_parts)(z.re + 0, z.im + 0);
}

static inline C FN(ratio_or_zero)(C a, C b)
{
    int zero = (a.re == 0) & (a.im == 0) & (b.re == 0) & (b.im == 0);
    return FN(quotient)(a, FN(of_parts)(PART(chosen)(zero, 2, b.re), b.im));
}

BINARY_LOOP(FN(strong_multiply), C, FN(strong_product), ignore_flags, keep_flags)
BINARY_LOOP(FN(over_or_zero), C, FN(ratio_or_zero), ignore_flags, keep_flags)
