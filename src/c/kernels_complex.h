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

static inline int FN(is_nan)(C z)
{
    return z.re != z.re || z.im != z.im;
}

/* The difference is a sum with a negative on bits: of a difference beside a sum GCC 12 makes a fused vfmaddsub, even
 * with -ffp-contract=off. */
static inline C FN(product)(C x, C y)
{
    return FN(of_parts)(x.re * y.re + PART(negative)(x.im) * y.im, x.re * y.im + x.im * y.re);
}

/* Smith's algorithm: the divisor is scaled by its larger part, so that no square overflows. Parts are chosen on bits
 * (see chosen_f), or compilers would divide by both and choose then. Float is computed in double, or GCC would pair the
 * two last divisions and fill up the vector with 0 / 0, which raises a flag as well. 0 stands for NaN in the
 * comparison for the same reason. */
static inline C FN(quotient)(C x, C y)
{
    W a = x.re, b = x.im, c = y.re, d = y.im;
    int by_re = WIDE(chosen)(c == c, WM(fabs)(c), 0) >= WIDE(chosen)(d == d, WM(fabs)(d), 0);
    W larger = WIDE(chosen)(by_re, c, d), smaller = WIDE(chosen)(by_re, d, c);
    W u = WIDE(chosen)(by_re, a, b), v = WIDE(chosen)(by_re, b, a);
    W ratio = smaller / larger, scale = larger + smaller * ratio, im = (v - u * ratio) / scale;
    return FN(of_parts)((R)((u + v * ratio) / scale), (R)WIDE(chosen)(by_re, im, -im));
}
