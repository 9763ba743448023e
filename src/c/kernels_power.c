/* The partial derivatives of x ** y, with the values they need at 0, at small exponents and in the complex
 * plane. */
#include "kernels_no_fma.h"

#include "kernels_common.h"

#define TEMPLATE "kernels_power_real.h"
#include "kernels_each_real.h"
#undef TEMPLATE

#define TEMPLATE "kernels_power_complex.h"
#include "kernels_each_complex.h"
#undef TEMPLATE

/* Single precision is computed in double: the logarithm costs as many digits as it has before the point. */
static inline complex_F slope_x_by_double(complex_F x, complex_F y)
{
    complex_D z = slope_x_D(of_parts_D(x.re, x.im), of_parts_D(y.re, y.im));
    return of_parts_F((float)z.re, (float)z.im);
}

static inline complex_F slope_y_by_double(complex_F x, complex_F z)
{
    complex_D slope = slope_y_D(of_parts_D(x.re, x.im), of_parts_D(z.re, z.im));
    return of_parts_F((float)slope.re, (float)slope.im);
}

PLAIN_BINARY_LOOP(power_slope_x_F, complex_F, slope_x_by_double)
PLAIN_BINARY_LOOP(power_slope_x_D, complex_D, slope_x_D)
PLAIN_BINARY_LOOP(power_slope_x_G, complex_G, slope_x_G)
PLAIN_BINARY_LOOP(power_slope_y_F, complex_F, slope_y_by_double)
PLAIN_BINARY_LOOP(power_slope_y_D, complex_D, slope_y_D)
PLAIN_BINARY_LOOP(power_slope_y_G, complex_G, slope_y_G)

INEXACT_KERNEL(power_slope_x)
INEXACT_KERNEL(power_slope_y)
