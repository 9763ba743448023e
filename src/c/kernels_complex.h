/* Complex arithmetic on structs, for the kernel files; part of the templates over complex types. */
typedef struct {
    R re, im;
} C;

static inline C FN(of_parts)(R re, R im)
{
    C z;
    z.re = re;
    z.im = im;
    return z;
}

static inline int FN(is_zero)(C z)
{
    return z.re == 0 && z.im == 0;
}

static inline C FN(product)(C x, C y)
{
    return FN(of_parts)(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}

/* Smith's algorithm: the divisor is scaled by its larger part, so that no square overflows. */
static inline C FN(quotient)(C x, C y)
{
    R ratio, scale;
    if (isgreaterequal(M(fabs)(y.re), M(fabs)(y.im))) {
        ratio = y.im / y.re;
        scale = y.re + y.im * ratio;
        return FN(of_parts)((x.re + x.im * ratio) / scale, (x.im - x.re * ratio) / scale);
    }
    ratio = y.re / y.im;
    scale = y.im + y.re * ratio;
    return FN(of_parts)((x.re * ratio + x.im) / scale, (x.im * ratio - x.re) / scale);
}
