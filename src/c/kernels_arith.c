/* Products, quotients and ties with the values that derivative rules need at special points. */
#include "kernels_no_fma.h"

#include "kernels_common.h"

#define TEMPLATE "kernels_arith_real.h"
#include "kernels_each_real.h"
#undef TEMPLATE

#define TEMPLATE "kernels_arith_complex.h"
#include "kernels_each_complex.h"
#undef TEMPLATE

INEXACT_KERNEL(strong_multiply)
INEXACT_KERNEL(over_or_zero)
REAL_KERNEL(tie_share, 2, REAL_TYPES3)
REAL_KERNEL(tie_share_ignore_nan, 2, REAL_TYPES3)
