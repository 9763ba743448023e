/* Template over real types, of kernels_power.c. */

/* y x**(y - 1). The exponents that people write are cheap and exact, and pow gets the others. Below 1/2, and
 * above the integers that have a predecessor, y - 1 is rounded, which pow would magnify; x**y / x is not. */
static inline R FN(slope_x)(R x, R y)
{
    if (y == 0)
        return 0;
    if (y == 1)
        return 1;
    if (y == 2)
        return 2 * x;
    if (y == 3)
        return 3 * x * x;
    if (y == (R)0.5)
        return (R)0.5 / M(sqrt)(x + 0);  /* -0 + 0 is 0 */
    if ((isless(y, (R)0.5) || isgreater(y, 1 / EPSILON)) && x != 0 && isless(M(fabs)(x), INFINITY))
        return y * (M(pow)(x, y) / x);
    return y * M(pow)(x, y - 1);
}

/* log(x) z, for z = x**y. z is 0 at 0**y and at inf**-y, y > 0, and stays so for exponents nearby. */
static inline R FN(slope_y)(R x, R z)
{
    if (z == 0 && (x == 0 || x == INFINITY))
        return 0;
    return M(log)(x) * z;
}

#define PACKED_SLOPE_X(y)                                                                                 \
    {                                                                                                     \
        INDEPENDENT                                                                                       \
        for (i = 0; i < n; i++)                                                                           \
            z[i] = FN(slope_x)(x[i], y);                                                                  \
    }

/* One cheap exponent for all elements: a loop without branches. */
LEVELS static int FN(slope_x_cheap)(const R *x, R y, R *z, npy_intp n)
{
    npy_intp i;
    if (y == 2)
        PACKED_SLOPE_X(2)
    else if (y == 3)
        PACKED_SLOPE_X(3)
    else if (y == (R)0.5)
        PACKED_SLOPE_X((R)0.5)
    else if (y == 1)
        PACKED_SLOPE_X(1)
    else if (y == 0)
        PACKED_SLOPE_X(0)
    else
        return 0;
    return 1;
}
#undef PACKED_SLOPE_X

static void FN(power_slope_x)(char **args, npy_intp const *dims, npy_intp const *steps, void *Py_UNUSED(data))
{
    const npy_intp n = dims[0], sx = steps[0], sy = steps[1], sz = steps[2], size = sizeof(R);
    const char *x = args[0], *y = args[1];
    char *z = args[2];
    npy_intp i;
    if (n && sx == size && sy == 0 && sz == size && is_independent(x, sx, z, sz, n, size)
        && is_independent(y, sy, z, sz, n, size) && FN(slope_x_cheap)((const R *)x, *(const R *)y, (R *)z, n))
        return;
    for (i = 0; i < n; i++, x += sx, y += sy, z += sz)
        *(R *)z = FN(slope_x)(*(const R *)x, *(const R *)y);
}

PLAIN_BINARY_LOOP(FN(power_slope_y), R, FN(slope_y))
