/* Sine and cosine for derivative rules, many elements at a time.
 *
 * x is reduced to hi + lo = x - k pi/2 in [-pi/4, pi/4], then two polynomials give the sine and the cosine of
 * it, and k mod 4 says which of them is wanted and with which sign. Nothing in it branches, so that compilers
 * vectorise it. Blocks that hold an element too large for the reduction (or an inf or NaN) are done one
 * element at a time, with the C library for those.
 *
 * float32 is computed in double precision, with shorter polynomials (2^-37 and 2^-33).
 */
#include "kernels_trig.h"

#define TWO_OVER_PI 0.63661977236758134

/* pi/2 = A + B + C. A and B end in so many zero bits that k A and k B are exact for |k| <= 2^16. */
#define HALF_PI_A 1.5707963267923333
#define HALF_PI_B 2.5633441515839558e-12
#define HALF_PI_C 1.0562999066987428e-23
#define LARGEST_F64 1e5

/* pi/2 = A + B, enough for float32; k A is exact for |k| <= 2^20. */
#define HALF_PI_A_F32 1.5707963267341256
#define HALF_PI_B_F32 6.077100506506192e-11
#define LARGEST_F32 1e6f

static inline void sincos_at_d(double x, double *sine, double *cosine)
{
    double shifted = x * TWO_OVER_PI + ROUNDER, k = shifted - ROUNDER;
    /* x - k A is exact. The rounding error of the next difference is kept, and k C is far below it. */
    double a = x - k * HALF_PI_A, b = k * HALF_PI_B, difference = a - b;
    double rest = ((a - difference) - b) - k * HALF_PI_C;
    double hi = difference + rest, lo = (difference - hi) + rest;
    *sine = reduced_sin(hi, lo);
    *cosine = reduced_cos(hi, lo);
    place(sine, cosine, bits_d(shifted));
}

static inline void sincos_at_f(float x, float *sine, float *cosine)
{
    double shifted = x * TWO_OVER_PI + ROUNDER, k = shifted - ROUNDER;
    double r = (x - k * HALF_PI_A_F32) - k * HALF_PI_B_F32, u = r * r;
    double s = r + u * r * (-0.16666666640776229 + u * (0.0083333293024163892
               + u * (-0.0001983931148516851 + u * 2.718114115753675e-06)));
    double c = 1.0 + u * (-0.49999999694225133 + u * (0.041666620328767362
               + u * (-0.0013886680750897344 + u * 2.4383482799974384e-05)));
    place(&s, &c, bits_d(shifted));
    *sine = (float)s;
    *cosine = (float)c;
}

/* One loop over blocks for sin, cos and both. It is inlined into its three callers, where with_s and with_c are
 * constants. */
#define DEFINE_TRIG(sin_name, cos_name, sincos_name, loop, R, at, all_within, largest, libm_sin, libm_cos)\
static inline void loop(const R *x, R *s, R *c, size_t n, int with_s, int with_c)                         \
{                                                                                                         \
    size_t start, i;                                                                                      \
    for (start = 0; start < n; start += BLOCK) {                                                          \
        size_t end = n - start < BLOCK ? n : start + BLOCK;                                               \
        if (all_within(x + start, end - start, largest)) {                                                \
            INDEPENDENT                                                                                   \
            for (i = start; i < end; i++) {                                                               \
                R sine, cosine;                                                                           \
                at(x[i], &sine, &cosine);                                                                 \
                if (with_s)                                                                               \
                    s[i] = sine;                                                                          \
                if (with_c)                                                                               \
                    c[i] = cosine;                                                                        \
            }                                                                                             \
        }                                                                                                 \
        else                                                                                              \
            for (i = start; i < end; i++) {                                                               \
                R sine, cosine, xi = x[i];                                                                \
                if (all_within(&xi, 1, largest))                                                          \
                    at(xi, &sine, &cosine);                                                               \
                else {                                                                                    \
                    sine = with_s ? libm_sin(xi) : 0;                                                     \
                    cosine = with_c ? libm_cos(xi) : 0;                                                   \
                }                                                                                         \
                if (with_s)                                                                               \
                    s[i] = sine;                                                                          \
                if (with_c)                                                                               \
                    c[i] = cosine;                                                                        \
            }                                                                                             \
    }                                                                                                     \
}                                                                                                         \
                                                                                                          \
CLONES void sin_name(const R *x, R *s, size_t n)                                                          \
{                                                                                                         \
    loop(x, s, NULL, n, 1, 0);                                                                            \
}                                                                                                         \
                                                                                                          \
CLONES void cos_name(const R *x, R *c, size_t n)                                                          \
{                                                                                                         \
    loop(x, NULL, c, n, 0, 1);                                                                            \
}                                                                                                         \
                                                                                                          \
CLONES void sincos_name(const R *x, R *s, R *c, size_t n)                                                 \
{                                                                                                         \
    loop(x, s, c, n, 1, 1);                                                                               \
}

DEFINE_TRIG(cgrad_sin_f32, cgrad_cos_f32, cgrad_sincos_f32, trig_loop_f, float, sincos_at_f, all_within_f,
            LARGEST_F32, sinf, cosf)
DEFINE_TRIG(cgrad_sin_f64, cgrad_cos_f64, cgrad_sincos_f64, trig_loop_d, double, sincos_at_d, all_within_d,
            LARGEST_F64, sin, cos)

static void packed_sin_f(const float *const *inputs, float *output, size_t n, void *Py_UNUSED(data))
{
    cgrad_sin_f32(inputs[0], output, n);
}

static void packed_sin_d(const double *const *inputs, double *output, size_t n, void *Py_UNUSED(data))
{
    cgrad_sin_f64(inputs[0], output, n);
}

static void packed_cos_f(const float *const *inputs, float *output, size_t n, void *Py_UNUSED(data))
{
    cgrad_cos_f32(inputs[0], output, n);
}

static void packed_cos_d(const double *const *inputs, double *output, size_t n, void *Py_UNUSED(data))
{
    cgrad_cos_f64(inputs[0], output, n);
}

PACKED_LOOP(fast_sin_f, cgrad_run_f, packed_sin_f, 1)
PACKED_LOOP(fast_sin_d, cgrad_run_d, packed_sin_d, 1)
PACKED_LOOP(fast_cos_f, cgrad_run_f, packed_cos_f, 1)
PACKED_LOOP(fast_cos_d, cgrad_run_d, packed_cos_d, 1)
FLOAT_KERNEL(fast_sin)
FLOAT_KERNEL(fast_cos)
