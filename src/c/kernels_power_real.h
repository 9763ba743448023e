/* Template over real types, of kernels_power.c. */

/* y x**(y - 1) for the exponents that need no power. */
static inline R FN(slope_x_cheap)(R x, R y)
{
    if (y == 3)
        return 3 * x * x;
    if (y == 2)
        return 2 * x;
    return y;  /* 0 and 1 */
}

#define WITH_EXPONENT(y)                                                                                  \
    {                                                                                                     \
        INDEPENDENT                                                                                       \
        for (i = 0; i < n; i++)                                                                           \
            z[i] = FN(slope_x_cheap)(x[i], y);                                                            \
    }

/* One cheap exponent for all elements; false if it is another. */
LEVELS static int FN(one_cheap_exponent)(const R *x, R y, R *z, npy_intp n)
{
    npy_intp i;
    if (y == 2)
        WITH_EXPONENT(2)
    else if (y == 3)
        WITH_EXPONENT(3)
    else if (y == 1)
        WITH_EXPONENT(1)
    else if (y == 0)
        WITH_EXPONENT(0)
    else
        return 0;
    return 1;
}
#undef WITH_EXPONENT

/* y (base**exponent / divisor) is the slope. Below 1/2, and above the integers that have a predecessor, y - 1 is
 * rounded, which the power would magnify; there it is x**y / x, unless x has no reciprocal. With y = 0 nothing
 * depends on x, so 0**-1 is kept away. Flags are dropped, because comparisons with NaN raise one. Returns whether
 * there are divisors. */
LEVELS static int FN(prepare_slope_x)(const R *x, const R *y, R *base, R *exponent, R *divisor, size_t n)
{
    int before = FN(raised_flags)();
    R divisors = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        int divide = ((y[i] < (R)0.5) | (y[i] > 1 / EPSILON)) & (x[i] != 0)
                     & (M(fabs)(x[i]) < (R)INFINITY);
        base[i] = y[i] == 0 ? 1 : x[i];
        exponent[i] = divide ? y[i] : y[i] - 1;
        divisor[i] = divide ? base[i] : 1;
        divisors = divide ? 1 : divisors;
    }
    FN(drop_flags)(before, WARNING_FLAGS);
    return divisors != 0;
}

LEVELS static void FN(finish_slope_x)(const R *x, const R *y, const R *power, R *z, size_t n)
{
    size_t i;
    INDEPENDENT
    for (i = 0; i < n; i++) {
        R slope = y[i] * power[i];
        z[i] = y[i] == 2 ? 2 * x[i] : slope;
    }
}

LEVELS static void FN(divide)(R *power, const R *divisor, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++)
        power[i] /= divisor[i];
}

static void FN(packed_slope_x)(const R *const *inputs, R *z, size_t n, void *data)
{
    const cgrad_borrowed *power = data;
    R base[BLOCK], exponent[BLOCK], divisor[BLOCK];
    char *args[3] = {(char *)base, (char *)exponent, (char *)base};
    const npy_intp steps[3] = {sizeof(R), sizeof(R), sizeof(R)};
    size_t start;
    for (start = 0; start < n; start += BLOCK) {
        const R *x = inputs[0] + start, *y = inputs[1] + start;
        npy_intp m = n - start < BLOCK ? (npy_intp)(n - start) : BLOCK;
        int divide = FN(prepare_slope_x)(x, y, base, exponent, divisor, (size_t)m);
        power->loop(args, &m, steps, power->data);
        if (divide)
            FN(divide)(base, divisor, (size_t)m);
        FN(finish_slope_x)(x, y, base, z + start, (size_t)m);
    }
}

static void FN(power_slope_x)(char **args, npy_intp const *dims, npy_intp const *steps, void *data)
{
    const npy_intp n = dims[0], sx = steps[0], sy = steps[1], sz = steps[2], size = sizeof(R);
    if (n && sx == size && sy == 0 && sz == size
        && is_independent(args[0], sx, args[2], sz, n, size) && is_independent(args[1], sy, args[2], sz, n, size)
        && FN(one_cheap_exponent)((const R *)args[0], *(const R *)args[1], (R *)args[2], n))
        return;
    FN(cgrad_run)(FN(packed_slope_x), 2, args, n, steps, data);
}

/* log(x) z, for z = x**y. z is 0 at 0**y and at inf**-y, y > 0, and stays so for exponents nearby. */
LEVELS static void FN(prepare_slope_y)(const R *x, const R *z, R *base, size_t n)
{
    int before = FN(raised_flags)();
    size_t i;
    for (i = 0; i < n; i++)
        base[i] = (z[i] == 0) & ((x[i] == 0) | (x[i] == (R)INFINITY)) ? 1 : x[i];
    FN(drop_flags)(before, WARNING_FLAGS);
}

LEVELS static void FN(finish_slope_y)(const R *z, const R *logarithm, R *slope, size_t n)
{
    size_t i;
    INDEPENDENT
    for (i = 0; i < n; i++)
        slope[i] = z[i] * logarithm[i];
}

static void FN(packed_slope_y)(const R *const *inputs, R *slope, size_t n, void *data)
{
    const cgrad_borrowed *log = data;
    R base[BLOCK];
    char *args[2] = {(char *)base, (char *)base};
    const npy_intp steps[2] = {sizeof(R), sizeof(R)};
    size_t start;
    for (start = 0; start < n; start += BLOCK) {
        const R *x = inputs[0] + start, *z = inputs[1] + start;
        npy_intp m = n - start < BLOCK ? (npy_intp)(n - start) : BLOCK;
        FN(prepare_slope_y)(x, z, base, (size_t)m);
        log->loop(args, &m, steps, log->data);
        FN(finish_slope_y)(z, base, slope + start, (size_t)m);
    }
}

PACKED_LOOP(FN(power_slope_y), FN(cgrad_run), FN(packed_slope_y), 2)
