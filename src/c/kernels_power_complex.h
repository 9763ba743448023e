/* Template over complex types, of kernels_power.c. */
#include "kernels_complex.h"

/* log |z| + i arg z. Near |z| = 1 the logarithm of the rounded |z| would lose what |z|^2 - 1 has. */
static inline C FN(logarithm)(C z)
{
    R a = M(fabs)(z.re), b = M(fabs)(z.im), angle = M(atan2)(z.im, z.re);
    if (a < b) {
        R swap = a;
        a = b;
        b = swap;
    }
    if (a > (R)0.5 && a < 2)
        return FN(of_parts)((R)0.5 * M(log1p)((a - 1) * (a + 1) + b * b), angle);
    return FN(of_parts)(M(log)(M(hypot)(a, b)), angle);
}

static inline C FN(exponential)(C z)
{
    R size = M(exp)(z.re);
    return FN(of_parts)(size * M(cos)(z.im), size * M(sin)(z.im));
}

/* A product with a real number that came as a complex one: its zero part must not meet an inf. */
static inline C FN(scaled)(C x, C factor)
{
    if (factor.im == 0)
        return FN(of_parts)(x.re * factor.re, x.im * factor.re);
    return FN(product)(x, factor);
}

/* x**n by squaring; negative n by powers of 1 / x, which underflow where x**-n would overflow. */
static inline C FN(integer_power)(C x, int n)
{
    C z = FN(of_parts)(1, 0);
    int left = n < 0 ? -n : n;
    if (n < 0)
        x = FN(quotient)(z, x);
    for (;;) {
        if (left & 1)
            z = FN(scaled)(x, z);
        left >>= 1;
        if (!left)
            return z;
        x = FN(of_parts)((x.re - x.im) * (x.re + x.im), 2 * x.re * x.im);
    }
}

/* Up to here repeated products are as accurate as exp(n log x), and faster. */
#define MOST_FACTORS 16

/* y x**(y - 1) */
static inline C FN(slope_x)(C x, C y)
{
    C exponent = FN(of_parts)(y.re - 1, y.im);
    if (FN(is_zero)(y) || FN(is_zero)(exponent))
        return y;
    if (FN(is_nan)(x) || FN(is_nan)(y))
        return FN(of_parts)((R)NAN, (R)NAN);
    if (FN(is_zero)(x) && y.re > 1)
        return x;
    if (y.im == 0 && M(fabs)(exponent.re) <= MOST_FACTORS && exponent.re == (int)exponent.re)
        return FN(scaled)(FN(integer_power)(x, (int)exponent.re), y);
    return FN(scaled)(FN(exponential)(FN(scaled)(FN(logarithm)(x), exponent)), y);
}

/* log(x) z, for z = x**y */
static inline C FN(slope_y)(C x, C z)
{
    if (FN(is_zero)(x) && FN(is_zero)(z))
        return z;
    if (FN(is_nan)(x))
        return x;
    return FN(scaled)(FN(logarithm)(x), z);
}
#undef MOST_FACTORS
