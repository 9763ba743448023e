/* The first and second derivative of the normalised sinc, sin(pi x) / (pi x).
 *
 * Away from 0 they follow from cos(pi x) and sinc(x), with pi x reduced before it is rounded:
 *     sinc' = (cos(pi x) - sinc) / x,    sinc'' = -pi^2 sinc - 2 sinc' / x.
 * For |x| <= 1/2 these would cancel, and the power series is short: with u = x^2,
 *     sinc' = x sum_k a_k u^k,    sinc'' = sum_k (2k + 1) a_k u^k,
 *     a_k = -(-1)^k pi^(2k + 2) / (2^k k! 1 3 5 ... (2k + 3)).
 */
#include "kernels_common.h"

#define PI 3.14159265358979323846264338327950288L

/* The first term left out is 2^-73 of the sum at u = 1/4. */
#define TERMS 13
#define SERIES {                                                                                          \
    -3.28986813369645287294L, 3.24696970113341457455L, -1.14451094473250528218L,                          \
    0.209182782541238404037L, -0.0234608103545582363751L, 0.00178114551637285204422L,                     \
    -0.0000976622312631893266435L, 0.00000404994784661924424216L, -1.31484812799919946348e-7L,            \
    3.43307694996428660368e-9L, -7.3658937770969467111e-11L, 1.3217901389162317156e-12L,                  \
    -2.01320150808088815614e-14L}

#define DEFINE_SINC(R, sin, cos, fabs, rint, fmod, epsilon, slope, curvature)                             \
/* sin(pi x) and cos(pi x). From 2 / epsilon on all numbers are even. */                                  \
static inline void slope##_sincospi(R x, R *s, R *c)                                                      \
{                                                                                                         \
    static const int sign[] = {1, 1, -1, -1};                                                             \
    R quarters, rest, sine, cosine;                                                                       \
    int quadrant;                                                                                         \
    if (isgreaterequal(fabs(x), 2 / epsilon) && isless(fabs(x), INFINITY)) {                              \
        *s = 0;                                                                                           \
        *c = 1;                                                                                           \
        return;                                                                                           \
    }                                                                                                     \
    quarters = rint(2 * x);                                                                               \
    rest = (R)PI * (x - quarters / 2);  /* NaN for inf */                                                 \
    quadrant = (int)fmod(quarters, 4) & 3;                                                                \
    sine = sin(rest);                                                                                     \
    cosine = cos(rest);                                                                                   \
    *s = sign[quadrant] * (quadrant & 1 ? cosine : sine);                                                 \
    *c = sign[(quadrant + 1) & 3] * (quadrant & 1 ? sine : cosine);                                       \
}                                                                                                         \
                                                                                                          \
static inline R slope(R x)                                                                                \
{                                                                                                         \
    static const R series[] = SERIES;                                                                     \
    R s, c, sum = 0;                                                                                      \
    if (islessequal(fabs(x), (R)0.5)) {                                                                   \
        int k;                                                                                            \
        for (k = TERMS - 1; k >= 0; k--)                                                                  \
            sum = sum * (x * x) + series[k];                                                              \
        return x * sum + 0;  /* 0 at 0, not -0 */                                                         \
    }                                                                                                     \
    slope##_sincospi(x, &s, &c);                                                                          \
    return (c - s / ((R)PI * x)) / x;                                                                     \
}                                                                                                         \
                                                                                                          \
static inline R curvature(R x)                                                                            \
{                                                                                                         \
    static const R series[] = SERIES;                                                                     \
    R s, c, sum = 0;                                                                                      \
    if (islessequal(fabs(x), (R)0.5)) {                                                                   \
        int k;                                                                                            \
        for (k = TERMS - 1; k >= 0; k--)                                                                  \
            sum = sum * (x * x) + (2 * k + 1) * series[k];                                                \
        return sum;                                                                                       \
    }                                                                                                     \
    slope##_sincospi(x, &s, &c);                                                                          \
    return (-(R)PI * s - 2 * (c - s / ((R)PI * x)) / x) / x;                                              \
}

DEFINE_SINC(double, sin, cos, fabs, rint, fmod, DBL_EPSILON, slope_at_d, curvature_at_d)
DEFINE_SINC(npy_longdouble, sinl, cosl, fabsl, rintl, fmodl, LDBL_EPSILON, slope_at_g, curvature_at_g)

static inline float slope_at_f(float x)
{
    return (float)slope_at_d(x);
}

static inline float curvature_at_f(float x)
{
    return (float)curvature_at_d(x);
}

UNARY_LOOP(sinc_slope_f, float, slope_at_f, 0)
UNARY_LOOP(sinc_slope_d, double, slope_at_d, 0)
UNARY_LOOP(sinc_slope_g, npy_longdouble, slope_at_g, 0)
UNARY_LOOP(sinc_curvature_f, float, curvature_at_f, 0)
UNARY_LOOP(sinc_curvature_d, double, curvature_at_d, 0)
UNARY_LOOP(sinc_curvature_g, npy_longdouble, curvature_at_g, 0)
REAL_KERNEL(sinc_slope, 1, REAL_TYPES2)
REAL_KERNEL(sinc_curvature, 1, REAL_TYPES2)
