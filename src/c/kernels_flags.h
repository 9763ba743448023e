/* The status flags which NumPy turns into warnings, and which of them a kernel leaves raised. */
#ifndef CGRAD_KERNELS_FLAGS_H
#define CGRAD_KERNELS_FLAGS_H

#include <fenv.h>

#include <numpy/npy_common.h>

#define WARNING_FLAGS (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW)

/* A kernel that may raise a flag without reason (a comparison with NaN, an intermediate result that is thrown away)
 * reads them first and drops some at its end. Long doubles raise them in another unit than floats and doubles, where
 * GCC and clang compile for SSE2; the macros of fenv.h are the bits of its register. Reading that one takes 1 ns, a
 * call of fetestexcept 2 ns, one of feclearexcept 70 ns. */
#if defined(__GNUC__) && defined(__SSE2_MATH__)
#include <xmmintrin.h>

static inline int raised_flags_d(void)
{
    return (int)_mm_getcsr() & WARNING_FLAGS;
}

static inline void drop_flags_d(int flags)
{
    if (flags)
        _mm_setcsr(_mm_getcsr() & ~(unsigned int)flags);
}
#else
static inline int raised_flags_d(void)
{
    return fetestexcept(WARNING_FLAGS);
}

static inline void drop_flags_d(int flags)
{
    if (flags)
        feclearexcept(flags);
}
#endif

static inline int raised_flags_g(void)
{
    return fetestexcept(WARNING_FLAGS);
}

static inline void drop_flags_g(int flags)
{
    if (flags)
        feclearexcept(flags);
}

#define raised_flags_f raised_flags_d
#define drop_flags_f drop_flags_d

/* How a kernel may end, given the flags that were raised before, and its results. */

/* For kernels whose results are finite: nothing that was raised counts. */
static inline void drop_all_d(int before, const char *Py_UNUSED(z), npy_intp Py_UNUSED(step), npy_intp Py_UNUSED(n))
{
    drop_flags_d(raised_flags_d() & ~before);
}

static inline void drop_all_g(int before, const char *Py_UNUSED(z), npy_intp Py_UNUSED(step), npy_intp Py_UNUSED(n))
{
    drop_flags_g(raised_flags_g() & ~before);
}

#define drop_all_f drop_all_d

/* What counts has left its mark: NaN of an invalid operation, inf or NaN of an overflow or a division by 0. Clang takes
 * selections apart even if they are made on bits, so this is for kernels that would be right without on GCC only. */
int cgrad_unmarked_flags_f(int flags, const char *z, npy_intp step, npy_intp n);
int cgrad_unmarked_flags_d(int flags, const char *z, npy_intp step, npy_intp n);
int cgrad_unmarked_flags_g(int flags, const char *z, npy_intp step, npy_intp n);

#define DEFINE_DROP_UNMARKED(name, unmarked, raised, drop)                                                \
static inline void name(int before, const char *z, npy_intp step, npy_intp n)                             \
{                                                                                                         \
    int flags = raised() & ~before;                                                                       \
    if (flags)                                                                                            \
        drop(unmarked(flags, z, step, n));                                                                \
}

DEFINE_DROP_UNMARKED(drop_unmarked_f, cgrad_unmarked_flags_f, raised_flags_f, drop_flags_f)
DEFINE_DROP_UNMARKED(drop_unmarked_d, cgrad_unmarked_flags_d, raised_flags_d, drop_flags_d)
DEFINE_DROP_UNMARKED(drop_unmarked_g, cgrad_unmarked_flags_g, raised_flags_g, drop_flags_g)

#endif
