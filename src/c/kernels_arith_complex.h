/* Template over complex types, of kernels_arith.c. */
#include "kernels_complex.h"

static inline C FN(strong_product)(C g, C p)
{
    int zero = (g.re == 0) & (g.im == 0);
    C seed = FN(of_parts)(zero ? 0 : g.re, zero ? 0 : g.im), factor = FN(of_parts)(zero ? 0 : p.re, zero ? 0 : p.im);
    return FN(product)(seed, factor);
}

static inline C FN(ratio_or_zero)(C a, C b)
{
    return FN(is_zero)(a) && FN(is_zero)(b) ? a : FN(quotient)(a, b);
}

BINARY_LOOP(FN(strong_multiply), C, FN(strong_product), 0)
BINARY_LOOP(FN(over_or_zero), C, FN(ratio_or_zero), 0)
