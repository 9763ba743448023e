/* Template over complex types, of kernels_arith.c. */
#include "kernels_complex.h"

static inline C FN(strong_product)(C g, C p)
{
    int keep = (g.re != 0) | (g.im != 0);
    return FN(product)(FN(kept)(g, keep), FN(kept)(p, keep));
}

static inline C FN(ratio_or_zero)(C a, C b)
{
    int keep = (a.re != 0) | (a.im != 0) | (b.re != 0) | (b.im != 0);
    b.re = PART(chosen)(keep, b.re, 1);
    return FN(quotient)(FN(kept)(a, keep), b);
}

BINARY_LOOP(FN(strong_multiply), C, FN(strong_product), PART(raised_flags), FN(drop_unmarked))
BINARY_LOOP(FN(over_or_zero), C, FN(ratio_or_zero), PART(raised_flags), FN(drop_unmarked))
