/* The logistic function and the slope of tanh, without overflow and without cancellation.
 *
 * Both come from exp(t) for t <= 0, which is computed as m 2^k, m in [0.7, 1.42], by a reduction with log 2 and
 * a minimax polynomial of the relative error (Remez exchange; float64 2^-56.8, float32 2^-28.3). Nothing in
 * it branches, so that compilers vectorise it. 2^k may be too small for a normal number, so it is passed around
 * as `scale`, larger by 2^HEADROOM, and the result is scaled down last, with one rounding.
 *
 * Results are finite and between 0 and 1 for all arguments, so no flag that is raised on the way counts.
 */
#include "kernels_common.h"

/* Adding and subtracting the rounder rounds to an integer, which is in the last bits in between. Its own last
 * bits are 0, so shifting the sum up into the exponent leaves nothing but the integer. */
#define LOG2_E 1.4426950408889634
#define ROUNDER_F64 6755399441055744.0
#define ROUNDER_F32 12582912.0f

/* exp of it is 0. */
#define LOWEST_F64 (-760.0)
#define LOWEST_F32 (-110.0f)

/* 2^-HEADROOM */
#define SCALE_DOWN_F64 2.9387358770557188e-39
#define SCALE_DOWN_F32 5.421010862427522e-20f

static inline double exp_d(double t, double *scale)
{
    double shifted = t * LOG2_E + ROUNDER_F64, k = shifted - ROUNDER_F64;
    double r = (t - k * 0.6931471805598903) - k * 5.497923018708371e-14;
    double p = 0.500000000000001 + r * (0.16666666666666674 + r * (0.041666666666521877 + r * (0.008333333333322198
               + r * (0.0013888888947856278 + r * (0.0001984126988661821 + r * (2.4801487285986974e-05
               + r * (2.7557242305901814e-06 + r * (2.7632670844749689e-07 + r * 2.5110061496155075e-08))))))));
    *scale = from_bits_d(((uint64_t)bits_d(shifted) + 1023 + 128) << 52);
    return 1.0 + (r + r * r * p);
}

static inline float exp_f(float t, float *scale)
{
    float shifted = t * (float)LOG2_E + ROUNDER_F32, k = shifted - ROUNDER_F32;
    float r = (t - k * 0.693145752f) - k * 1.42860677e-06f;
    float p = 0.49999994f + r * (0.166665211f + r * (0.041668389f + r * (0.00836872403f + r * 0.00138145837f)));
    *scale = from_bits_f(((uint32_t)bits_f(shifted) + 127 + 64) << 23);
    return 1.0f + (r + r * r * p);
}

/* -|x| as far as it matters; NaN stays NaN. */
static inline double minus_magnitude_d(double x)
{
    int64_t magnitude = magnitude_bits_d(x);
    int far = magnitude > bits_d(-LOWEST_F64), number = magnitude <= bits_d(INFINITY);
    return (far & number) ? LOWEST_F64 : -fabs(x);
}

static inline float minus_magnitude_f(float x)
{
    int32_t magnitude = magnitude_bits_f(x);
    int far = magnitude > bits_f(-LOWEST_F32), number = magnitude <= bits_f(INFINITY);
    return (far & number) ? LOWEST_F32 : -fabsf(x);
}

/* 1 / (1 + exp(-x)), which is exp(x) / (1 + exp(x)) for x < 0: one division by 1 + exp(-|x|). */
static inline double logistic_at_d(double x)
{
    double scale, m = exp_d(minus_magnitude_d(x), &scale);
    double dividend = bits_d(x) < 0 ? m * scale : 1 / SCALE_DOWN_F64;
    return dividend / (1.0 + m * scale * SCALE_DOWN_F64) * SCALE_DOWN_F64;
}

static inline float logistic_at_f(float x)
{
    float scale, m = exp_f(minus_magnitude_f(x), &scale);
    float dividend = bits_f(x) < 0 ? m * scale : 1 / SCALE_DOWN_F32;
    return dividend / (1.0f + m * scale * SCALE_DOWN_F32) * SCALE_DOWN_F32;
}

static inline npy_longdouble logistic_at_g(npy_longdouble x)
{
    npy_longdouble q = expl(-fabsl(x));
    return (signbit(x) ? q : 1) / (1 + q);
}

/* 1 - tanh(x)^2. Where it is below 1/2 the rounding of z = tanh(x) would show; there it is 4 q / (1 + q)^2 with
 * q = exp(-2 |x|). */
#define NEAR_F64 0.7
#define NEAR_F32 0.7f

static inline double tanh_slope_near_d(double z)
{
    return (1.0 - z) * (1.0 + z);
}

static inline float tanh_slope_near_f(float z)
{
    return (1.0f - z) * (1.0f + z);
}

static inline double tanh_slope_at_d(double x, double z)
{
    double scale, m = exp_d(minus_magnitude_d(2.0 * x), &scale), sum = 1.0 + m * scale * SCALE_DOWN_F64;
    double slope = 4.0 * m * scale / (sum * sum) * SCALE_DOWN_F64;
    return magnitude_bits_d(z) <= bits_d(NEAR_F64) ? tanh_slope_near_d(z) : slope;
}

static inline float tanh_slope_at_f(float x, float z)
{
    float scale, m = exp_f(minus_magnitude_f(2.0f * x), &scale), sum = 1.0f + m * scale * SCALE_DOWN_F32;
    float slope = 4.0f * m * scale / (sum * sum) * SCALE_DOWN_F32;
    return magnitude_bits_f(z) <= bits_f(NEAR_F32) ? tanh_slope_near_f(z) : slope;
}

static inline npy_longdouble tanh_slope_at_g(npy_longdouble x, npy_longdouble z)
{
    npy_longdouble q = expl(-2 * fabsl(x));
    return fabsl(z) <= 0.7L ? (1 - z) * (1 + z) : 4 * q / ((1 + q) * (1 + q));
}

#define DEFINE_LOGISTIC(name, R, at)                                                                      \
CLONES void name(const R *x, R *z, size_t n)                                                              \
{                                                                                                         \
    int before = raised_flags_d();                                                                        \
    size_t i;                                                                                             \
    INDEPENDENT                                                                                           \
    for (i = 0; i < n; i++)                                                                               \
        z[i] = at(x[i]);                                                                                  \
    drop_flags_d(before, WARNING_FLAGS);                                                                  \
}

DEFINE_LOGISTIC(cgrad_logistic_f32, float, logistic_at_f)
DEFINE_LOGISTIC(cgrad_logistic_f64, double, logistic_at_d)

/* A block without large |z| needs no exp. */
#define DEFINE_TANH_SLOPE(name, R, all_within, near, near_at, at)                                         \
CLONES void name(const R *x, const R *z, R *slope, size_t n)                                              \
{                                                                                                         \
    int before = raised_flags_d();                                                                        \
    while (n) {                                                                                           \
        size_t i, m = n < BLOCK ? n : BLOCK;                                                              \
        if (all_within(z, m, near)) {                                                                     \
            INDEPENDENT                                                                                   \
            for (i = 0; i < m; i++)                                                                       \
                slope[i] = near_at(z[i]);                                                                 \
        }                                                                                                 \
        else {                                                                                            \
            INDEPENDENT                                                                                   \
            for (i = 0; i < m; i++)                                                                       \
                slope[i] = at(x[i], z[i]);                                                                \
        }                                                                                                 \
        x += m;                                                                                           \
        z += m;                                                                                           \
        slope += m;                                                                                       \
        n -= m;                                                                                           \
    }                                                                                                     \
    drop_flags_d(before, WARNING_FLAGS);                                                                  \
}

DEFINE_TANH_SLOPE(cgrad_tanh_slope_f32, float, all_within_f, NEAR_F32, tanh_slope_near_f, tanh_slope_at_f)
DEFINE_TANH_SLOPE(cgrad_tanh_slope_f64, double, all_within_d, NEAR_F64, tanh_slope_near_d, tanh_slope_at_d)

static void packed_logistic_f(const float *const *inputs, float *output, size_t n, void *Py_UNUSED(data))
{
    cgrad_logistic_f32(inputs[0], output, n);
}

static void packed_logistic_d(const double *const *inputs, double *output, size_t n, void *Py_UNUSED(data))
{
    cgrad_logistic_f64(inputs[0], output, n);
}

static void packed_tanh_slope_f(const float *const *inputs, float *output, size_t n, void *Py_UNUSED(data))
{
    cgrad_tanh_slope_f32(inputs[0], inputs[1], output, n);
}

static void packed_tanh_slope_d(const double *const *inputs, double *output, size_t n, void *Py_UNUSED(data))
{
    cgrad_tanh_slope_f64(inputs[0], inputs[1], output, n);
}

PACKED_LOOP(logistic_f, cgrad_run_f, packed_logistic_f, 1)
PACKED_LOOP(logistic_d, cgrad_run_d, packed_logistic_d, 1)
UNARY_LOOP(logistic_g, npy_longdouble, logistic_at_g, raised_flags_g, drop_flags_g)
REAL_KERNEL(logistic, 1, REAL_TYPES2)

#define LEVELS
PACKED_LOOP(tanh_slope_f, cgrad_run_f, packed_tanh_slope_f, 2)
PACKED_LOOP(tanh_slope_d, cgrad_run_d, packed_tanh_slope_d, 2)
BINARY_LOOP(tanh_slope_g, npy_longdouble, tanh_slope_at_g, raised_flags_g, drop_flags_g)
REAL_KERNEL(tanh_slope, 2, REAL_TYPES3)
