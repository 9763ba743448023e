/* Template over real types, of kernels_common.c. */

/* With operands that depend on each other (see is_independent) the blocks shrink to one element, which is the
 * order that ufunc.reduce and ufunc.accumulate rely on. */
void FN(cgrad_run)(FN(packed) *kernel, int nin, char **args, npy_intp n, npy_intp const *steps, void *data)
{
    const npy_intp size = sizeof(R), step = steps[nin];
    const R *inputs[MOST_INPUTS];
    char *out = args[nin];
    R copies[MOST_INPUTS][BLOCK], results[BLOCK];
    npy_intp done, i, block = BLOCK;
    int k, packed = step == size;
    for (k = 0; k < nin; k++) {
        inputs[k] = (const R *)args[k];
        packed &= steps[k] == size;
        if (!is_independent(args[k], steps[k], out, step, n, size))
            block = 1;
    }
    if (packed && block > 1) {
        kernel(inputs, (R *)out, (size_t)n, data);
        return;
    }
    for (done = 0; done < n; done += block) {
        npy_intp m = n - done < block ? n - done : block;
        for (k = 0; k < nin; k++) {
            const char *in = args[k] + done * steps[k];
            if (steps[k] == size)
                inputs[k] = (const R *)in;
            else {
                for (i = 0; i < m; i++)
                    copies[k][i] = *(const R *)(in + i * steps[k]);
                inputs[k] = copies[k];
            }
        }
        kernel(inputs, results, (size_t)m, data);
        for (i = 0; i < m; i++)
            *(R *)(out + (done + i) * step) = results[i];
    }
}
