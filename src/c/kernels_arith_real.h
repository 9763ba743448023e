/* Template over real types, of kernels_arith.c. */

/* Only p is replaced, so that compilers cannot move the product behind the selection, where it would be done with
 * the old p and raise a flag. What is left of g is the sign of the 0: -0 + 0 is +0. */
static inline R FN(strong_product)(R g, R p)
{
    R factor = g == 0 ? 0 : p;
    return g * factor + 0;
}

/* 0 / 2, and not 0 / 1, which is simple enough to be moved likewise. */
static inline R FN(ratio_or_zero)(R a, R b)
{
    R divisor = ((a == 0) & (b == 0)) ? 2 : b;
    return a / divisor;
}

/* 1/2 + 1/2 [x wins] - 1/2 [y wins]: equal shares when both win, or neither. */
static inline R FN(share)(R x, R y)
{
    R x_part = ((x > y) | (x != x)) ? (R)0.5 : 0;
    R y_part = ((y > x) | (y != y)) ? (R)0.5 : 0;
    return ((R)0.5 + x_part) - y_part;
}

static inline R FN(share_ignore_nan)(R x, R y)
{
    R x_part = ((x > y) | (y != y)) ? (R)0.5 : 0;
    R y_part = ((y > x) | (x != x)) ? (R)0.5 : 0;
    return ((R)0.5 + x_part) - y_part;
}

BINARY_LOOP(FN(strong_multiply), R, FN(strong_product), ignore_flags, keep_flags)
BINARY_LOOP(FN(over_or_zero), R, FN(ratio_or_zero), ignore_flags, keep_flags)
BINARY_LOOP(FN(tie_share), R, FN(share), FN(raised_flags), FN(drop_flags))
BINARY_LOOP(FN(tie_share_ignore_nan), R, FN(share_ignore_nan), FN(raised_flags), FN(drop_flags))
