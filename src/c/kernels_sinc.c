/* The first and second derivative of the normalised sinc, sin(pi x) / (pi x).
 *
 * Away from 0 they follow from cos(pi x) and sinc(x), with x reduced before it is multiplied by pi:
 *     sinc' = (cos(pi x) - sinc) / x,    sinc'' = -pi^2 sinc - 2 sinc' / x.
 * For |x| <= 1/2 these would cancel, and the power series is short: with u = x^2,
 *     sinc' = x sum_k a_k u^k,    sinc'' = sum_k (2k + 1) a_k u^k,
 *     a_k = -(-1)^k pi^(2k + 2) / (2^k k! 1 3 5 ... (2k + 3)).
 * float32 is computed in double precision.
 */
#include "kernels_trig.h"

#define PI 3.14159265358979323846264338327950288L

/* The first term left out is 2^-60 of the sum at u = 1/4 with the terms for double, 2^-73 with all. */
#define A0 (-3.28986813369645287294L)
#define A1 3.24696970113341457455L
#define A2 (-1.14451094473250528218L)
#define A3 0.209182782541238404037L
#define A4 (-0.0234608103545582363751L)
#define A5 0.00178114551637285204422L
#define A6 (-0.0000976622312631893266435L)
#define A7 0.00000404994784661924424216L
#define A8 (-1.31484812799919946348e-7L)
#define A9 3.43307694996428660368e-9L
#define A10 (-7.3658937770969467111e-11L)
#define A11 1.3217901389162317156e-12L
#define A12 (-2.01320150808088815614e-14L)
#define DOUBLE_TERMS 11
#define TERMS 13
static const double slope_series[] = {A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10};
static const double curvature_series[] = {
    A0, 3 * A1, 5 * A2, 7 * A3, 9 * A4, 11 * A5, 13 * A6, 15 * A7, 17 * A8, 19 * A9, 21 * A10};
static const npy_longdouble series_g[] = {A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12};

static inline double power_series(const double *coefficients, double u)
{
    double sum = coefficients[DOUBLE_TERMS - 1];
    int k;
    for (k = DOUBLE_TERMS - 2; k >= 0; k--)
        sum = sum * u + coefficients[k];
    return sum;
}

/* sin(pi x) and cos(pi x) for |x| <= LARGEST */
#define LARGEST 1e15
static inline void sincospi(double x, double *sine, double *cosine)
{
    double shifted = 2.0 * x + ROUNDER, halves = shifted - ROUNDER, rest = (double)PI * (x - 0.5 * halves);
    *sine = reduced_sin(rest, 0.0);
    *cosine = reduced_cos(rest, 0.0);
    place(sine, cosine, bits_d(shifted));
}

/* `reduced` is x, less a multiple of 2 if need be. */
static inline double slope_at(double x, double reduced)
{
    int near = magnitude_bits_d(x) <= bits_d(0.5);
    double divisor = near ? 1.0 : x, s, c, slope;
    sincospi(reduced, &s, &c);
    slope = (c - s / ((double)PI * divisor)) / divisor;
    return near ? x * power_series(slope_series, x * x) + 0.0 : slope;  /* 0 at 0, not -0 */
}

static inline double curvature_at(double x, double reduced)
{
    int near = magnitude_bits_d(x) <= bits_d(0.5);
    double divisor = near ? 1.0 : x, s, c, slope;
    sincospi(reduced, &s, &c);
    slope = (c - s / ((double)PI * divisor)) / divisor;
    return near ? power_series(curvature_series, x * x) : (-(double)PI * s - 2.0 * slope) / divisor;
}

/* Only inf is invalid, and fmod says so. Flags of the formula that is not selected are dropped. */
#define DEFINE_PACKED(name, R, all_within, at)                                                            \
CLONES static void name(const R *const *inputs, R *out, size_t n, void *Py_UNUSED(data))                  \
{                                                                                                         \
    size_t start, i;                                                                                      \
    for (start = 0; start < n; start += BLOCK) {                                                          \
        const R *x = inputs[0] + start;                                                                   \
        R *z = out + start;                                                                               \
        size_t m = n - start < BLOCK ? n - start : BLOCK;                                                 \
        int before;                                                                                       \
        if (all_within(x, m, (R)LARGEST)) {                                                               \
            before = raised_flags_d();                                                                    \
            INDEPENDENT                                                                                   \
            for (i = 0; i < m; i++)                                                                       \
                z[i] = (R)at(x[i], x[i]);                                                                 \
        }                                                                                                 \
        else {                                                                                            \
            double reduced[BLOCK];                                                                        \
            for (i = 0; i < m; i++)                                                                       \
                reduced[i] = fmod(x[i], 2.0);                                                             \
            before = raised_flags_d();                                                                    \
            INDEPENDENT                                                                                   \
            for (i = 0; i < m; i++)                                                                       \
                z[i] = (R)at(x[i], reduced[i]);                                                           \
        }                                                                                                 \
        drop_flags_d(before, WARNING_FLAGS);                                                              \
    }                                                                                                     \
}

DEFINE_PACKED(packed_slope_f, npy_float, all_within_f, slope_at)
DEFINE_PACKED(packed_slope_d, npy_double, all_within_d, slope_at)
DEFINE_PACKED(packed_curvature_f, npy_float, all_within_f, curvature_at)
DEFINE_PACKED(packed_curvature_d, npy_double, all_within_d, curvature_at)

static inline void sincospi_g(npy_longdouble x, npy_longdouble *s, npy_longdouble *c)
{
    npy_longdouble reduced = fmodl(x, 2), halves = rintl(2 * reduced), rest = PI * (reduced - halves / 2);
    npy_longdouble sine = sinl(rest), cosine = cosl(rest);
    int quadrant = isnan(rest) ? 0 : (int)halves & 3;
    *s = (quadrant & 2 ? -1 : 1) * (quadrant & 1 ? cosine : sine);
    *c = ((quadrant + 1) & 2 ? -1 : 1) * (quadrant & 1 ? sine : cosine);
}

static inline npy_longdouble slope_at_g(npy_longdouble x)
{
    npy_longdouble s, c, sum = 0;
    int k;
    if (x != x)
        return x;
    if (fabsl(x) <= 0.5L) {
        for (k = TERMS - 1; k >= 0; k--)
            sum = sum * (x * x) + series_g[k];
        return x * sum + 0;
    }
    sincospi_g(x, &s, &c);
    return (c - s / (PI * x)) / x;
}

static inline npy_longdouble curvature_at_g(npy_longdouble x)
{
    npy_longdouble s, c, sum = 0;
    int k;
    if (x != x)
        return x;
    if (fabsl(x) <= 0.5L) {
        for (k = TERMS - 1; k >= 0; k--)
            sum = sum * (x * x) + (2 * k + 1) * series_g[k];
        return sum;
    }
    sincospi_g(x, &s, &c);
    return (-PI * s - 2 * ((c - s / (PI * x)) / x)) / x;
}

PACKED_LOOP(sinc_slope_f, cgrad_run_f, packed_slope_f, 1)
PACKED_LOOP(sinc_slope_d, cgrad_run_d, packed_slope_d, 1)
UNARY_LOOP(sinc_slope_g, npy_longdouble, slope_at_g, ignore_flags, keep_flags)
PACKED_LOOP(sinc_curvature_f, cgrad_run_f, packed_curvature_f, 1)
PACKED_LOOP(sinc_curvature_d, cgrad_run_d, packed_curvature_d, 1)
UNARY_LOOP(sinc_curvature_g, npy_longdouble, curvature_at_g, ignore_flags, keep_flags)
REAL_KERNEL(sinc_slope, 1, REAL_TYPES2)
REAL_KERNEL(sinc_curvature, 1, REAL_TYPES2)
