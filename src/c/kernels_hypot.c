/* a / (x^2 + y^2), the partial derivatives of arctan2, for all sizes of x and y. */
#include "kernels_common.h"

#define TEMPLATE "kernels_hypot_real.h"
#include "kernels_each_real.h"
#undef TEMPLATE

/* Between these no square overflows, and the larger one does not underflow. */
#define SMALL_F32 1e-15f
#define LARGE_F32 1e15f
#define SMALL_F64 1e-140
#define LARGE_F64 1e140

/* Blocks of ordinary numbers are one vector loop; the sign bits of the differences collect the others. That a
 * square far below the other one underflows is no news to anybody. */
#define ALL_BUT_UNDERFLOW (WARNING_FLAGS & ~FE_UNDERFLOW)

#define DEFINE_PACKED(name, R, I, magnitude_bits, bits, small, large, at)                                 \
CLONES static void name(const R *const *inputs, R *out, size_t n)                                         \
{                                                                                                         \
    const R *a = inputs[0], *x = inputs[1], *y = inputs[2];                                               \
    int before = raised_flags();                                                                          \
    while (n) {                                                                                           \
        size_t i, m = n < BLOCK ? n : BLOCK;                                                              \
        I differences = 0;                                                                                \
        for (i = 0; i < m; i++) {                                                                         \
            I x_bits = magnitude_bits(x[i]), y_bits = magnitude_bits(y[i]);                               \
            I larger = x_bits > y_bits ? x_bits : y_bits;                                                 \
            differences |= (bits(large) - larger) | (larger - bits(small));                               \
        }                                                                                                 \
        if (differences >= 0) {                                                                           \
            INDEPENDENT                                                                                   \
            for (i = 0; i < m; i++)                                                                       \
                out[i] = a[i] / (x[i] * x[i] + y[i] * y[i]);                                              \
        }                                                                                                 \
        else                                                                                              \
            for (i = 0; i < m; i++)                                                                       \
                out[i] = at(a[i], x[i], y[i]);                                                            \
        a += m;                                                                                           \
        x += m;                                                                                           \
        y += m;                                                                                           \
        out += m;                                                                                         \
        n -= m;                                                                                           \
    }                                                                                                     \
    put_back_flags(before | ALL_BUT_UNDERFLOW);                                                           \
}

DEFINE_PACKED(packed_over_hypot2_f, float, int32_t, magnitude_bits_f32, bits_f32, SMALL_F32, LARGE_F32, ratio_f)
DEFINE_PACKED(packed_over_hypot2_d, double, int64_t, magnitude_bits_f64, bits_f64, SMALL_F64, LARGE_F64, ratio_d)
PACKED_LOOP(over_hypot2_f, cgrad_run_f32, packed_over_hypot2_f, 3)
PACKED_LOOP(over_hypot2_d, cgrad_run_f64, packed_over_hypot2_d, 3)
TERNARY_LOOP(over_hypot2_g, npy_longdouble, ratio_g)
REAL_KERNEL(over_hypot2, 3, REAL_TYPES4)
