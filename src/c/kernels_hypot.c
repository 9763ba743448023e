/* a / (x^2 + y^2), the partial derivatives of arctan2, for all sizes of x and y. */
#include "kernels_common.h"

#define TEMPLATE "kernels_hypot_real.h"
#include "kernels_each_real.h"
#undef TEMPLATE

/* Negative unless the larger of |x| and |y| is so far from 0 and from inf that its square is a normal number. */
static inline int32_t ordinary_f(float x, float y)
{
    int32_t x_bits = magnitude_bits_f(x), y_bits = magnitude_bits_f(y), larger = x_bits > y_bits ? x_bits : y_bits;
    return (bits_f(1e15f) - larger) | (larger - bits_f(1e-15f));
}

static inline int64_t ordinary_d(double x, double y)
{
    int64_t x_bits = magnitude_bits_d(x), y_bits = magnitude_bits_d(y), larger = x_bits > y_bits ? x_bits : y_bits;
    return (bits_d(1e140) - larger) | (larger - bits_d(1e-140));
}

/* Blocks of ordinary numbers are one vector loop. It is no news that a square far below the other underflows. */
#define DEFINE_PACKED(name, R, I, ordinary, ratio)                                                        \
CLONES static void name(const R *const *inputs, R *out, size_t n, void *Py_UNUSED(data))                  \
{                                                                                                         \
    int before = raised_flags_d();                                                                        \
    size_t start, i;                                                                                      \
    for (start = 0; start < n; start += BLOCK) {                                                          \
        const R *a = inputs[0] + start, *x = inputs[1] + start, *y = inputs[2] + start;                   \
        R *z = out + start;                                                                               \
        size_t m = n - start < BLOCK ? n - start : BLOCK;                                                 \
        I collected = 0;                                                                                  \
        for (i = 0; i < m; i++)                                                                           \
            collected |= ordinary(x[i], y[i]);                                                            \
        if (collected >= 0) {                                                                             \
            INDEPENDENT                                                                                   \
            for (i = 0; i < m; i++)                                                                       \
                z[i] = a[i] / (x[i] * x[i] + y[i] * y[i]);                                                \
        }                                                                                                 \
        else                                                                                              \
            for (i = 0; i < m; i++)                                                                       \
                z[i] = ordinary(x[i], y[i]) >= 0 ? a[i] / (x[i] * x[i] + y[i] * y[i])                     \
                                                 : ratio(a[i], x[i], y[i]);                               \
    }                                                                                                     \
    drop_flags_d(before, FE_UNDERFLOW);                                                                   \
}

DEFINE_PACKED(packed_over_hypot2_f, npy_float, int32_t, ordinary_f, ratio_f)
DEFINE_PACKED(packed_over_hypot2_d, npy_double, int64_t, ordinary_d, ratio_d)
PACKED_LOOP(over_hypot2_f, cgrad_run_f, packed_over_hypot2_f, 3)
PACKED_LOOP(over_hypot2_d, cgrad_run_d, packed_over_hypot2_d, 3)
TERNARY_LOOP(over_hypot2_g, npy_longdouble, ratio_g)
REAL_KERNEL(over_hypot2, 3, REAL_TYPES4)
