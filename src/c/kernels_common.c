/* Runs kernels of contiguous arrays over any strides. */
#include "kernels_common.h"

/* With operands that depend on each other (see is_independent) the blocks shrink to one element, which is the
 * order that ufunc.reduce and ufunc.accumulate rely on. */
#define DEFINE_RUN(run, R, packed_kernel)                                                                 \
void run(packed_kernel *kernel, int nin, char **args, npy_intp n, npy_intp const *steps)                  \
{                                                                                                         \
    const npy_intp size = sizeof(R), step = steps[nin];                                                   \
    const R *inputs[MOST_INPUTS];                                                                         \
    char *out = args[nin];                                                                                \
    R copies[MOST_INPUTS][BLOCK], results[BLOCK];                                                         \
    npy_intp done, i, block = BLOCK;                                                                      \
    int k, packed = step == size;                                                                         \
    for (k = 0; k < nin; k++) {                                                                           \
        inputs[k] = (const R *)args[k];                                                                   \
        packed &= steps[k] == size;                                                                       \
        if (!is_independent(args[k], steps[k], out, step, n, size))                                       \
            block = 1;                                                                                    \
    }                                                                                                     \
    if (packed && block > 1) {                                                                            \
        kernel(inputs, (R *)out, (size_t)n);                                                              \
        return;                                                                                           \
    }                                                                                                     \
    for (done = 0; done < n; done += block) {                                                             \
        npy_intp m = n - done < block ? n - done : block;                                                 \
        for (k = 0; k < nin; k++) {                                                                       \
            const char *in = args[k] + done * steps[k];                                                   \
            if (steps[k] == size)                                                                         \
                inputs[k] = (const R *)in;                                                                \
            else {                                                                                        \
                for (i = 0; i < m; i++)                                                                   \
                    copies[k][i] = *(const R *)(in + i * steps[k]);                                       \
                inputs[k] = copies[k];                                                                    \
            }                                                                                             \
        }                                                                                                 \
        kernel(inputs, results, (size_t)m);                                                               \
        for (i = 0; i < m; i++)                                                                           \
            *(R *)(out + (done + i) * step) = results[i];                                                 \
    }                                                                                                     \
}

DEFINE_RUN(cgrad_run_f32, float, packed_f32)
DEFINE_RUN(cgrad_run_f64, double, packed_f64)
