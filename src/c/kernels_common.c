/* Runs kernels of contiguous arrays over any strides. */
#include "kernels_common.h"

#define TEMPLATE "kernels_run.h"
#include "kernels_each_real.h"
#undef TEMPLATE
