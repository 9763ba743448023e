/* Template over real types, of kernels_hypot.c. */

/* Every operand is m 2^e with m near 1; the quotient of the m is put back to its size at the end. */
static inline R FN(ratio)(R a, R x, R y)
{
    R mantissa, larger;
    int a_exponent, exponent;
    if (x == 0 && y == 0)
        return 0;
    if (x != x || y != y || a != a)
        return a + x + y;
    if (isinf(x) || isinf(y))  /* the square outgrows a, which is x or y in the rules that divide by it */
        return 0;
    if (isinf(a))
        return a;
    larger = M(fabs)(x) > M(fabs)(y) ? M(fabs)(x) : M(fabs)(y);
    mantissa = M(frexp)(a, &a_exponent);
    M(frexp)(larger, &exponent);
    x = M(ldexp)(x, -exponent);
    y = M(ldexp)(y, -exponent);
    return M(ldexp)(mantissa / (x * x + y * y), a_exponent - 2 * exponent);
}
