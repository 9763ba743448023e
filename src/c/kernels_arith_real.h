/* Template over real types, of kernels_arith.c. */

/* Both factors are replaced, not the product: 0 * inf would raise the invalid flag. */
static inline R FN(strong_product)(R g, R p)
{
    int keep = g != 0;
    return FN(kept)(g, keep) * FN(kept)(p, keep);
}

static inline R FN(ratio_or_zero)(R a, R b)
{
    int keep = (a != 0) | (b != 0);
    R divisor = FN(chosen)(keep, b, 1);
    return FN(kept)(a, keep) / divisor;
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

BINARY_LOOP(FN(strong_multiply), R, FN(strong_product), FN(raised_flags), FN(drop_unmarked))
BINARY_LOOP(FN(over_or_zero), R, FN(ratio_or_zero), FN(raised_flags), FN(drop_unmarked))
BINARY_LOOP(FN(tie_share), R, FN(share), FN(raised_flags), FN(drop_all))
BINARY_LOOP(FN(tie_share_ignore_nan), R, FN(share_ignore_nan), FN(raised_flags), FN(drop_all))
