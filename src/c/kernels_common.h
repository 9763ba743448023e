/* What the kernel files share: function versions per CPU level, and the ways to run over strided memory.
 * Private to kernels_*.c.
 */
#ifndef CGRAD_KERNELS_COMMON_H
#define CGRAD_KERNELS_COMMON_H

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <Python.h> /* for Py_UNUSED only */
#include <numpy/ndarraytypes.h>

#include "kernels.h"

/* One version of a function per CPU level, picked when the module is loaded. It needs GNU ifuncs, which
 * glibc has and musl, macOS and Windows have not. The named levels bring fused multiply-add along. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__)
#if __GNUC__ >= 12
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define CLONES
#endif

/* The iterations of the next loop are independent: an output is either one of the inputs or apart from it. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#elif defined(_MSC_VER)
#define INDEPENDENT __pragma(loop(ivdep))
#else
#define INDEPENDENT
#endif

/* Numbers as integers. Comparing those raises no flag for NaN, and the bits of positive numbers are in their
 * order, with inf and then NaN last. */
static inline int64_t bits_f64(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline int32_t bits_f32(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double from_bits_f64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float from_bits_f32(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int64_t magnitude_bits_f64(double x)
{
    return bits_f64(x) & INT64_MAX;
}

static inline int32_t magnitude_bits_f32(float x)
{
    return bits_f32(x) & INT32_MAX;
}

static inline double magnitude_d(double x)
{
    return fabs(x);
}

static inline npy_longdouble magnitude_g(npy_longdouble x)
{
    return fabsl(x);
}

/* kept: x if keep is 1, +0 if it is 0. chosen: x if first is 1, y if it is 0. negative: -x. On bits, because compilers may move
 * arithmetic with a selected number behind the selection, where it is done with both, and 0 * inf or a division
 * by 0 raises a flag. (They do not vectorise long doubles, and leave them alone.) */
static inline float kept_f(float x, int keep)
{
    return from_bits_f32((uint32_t)bits_f32(x) & (uint32_t)-(int32_t)keep);
}

static inline double kept_d(double x, int keep)
{
    return from_bits_f64((uint64_t)bits_f64(x) & (uint64_t)-(int64_t)keep);
}

static inline npy_longdouble kept_g(npy_longdouble x, int keep)
{
    return keep ? x : 0;
}

static inline float chosen_f(int first, float x, float y)
{
    uint32_t mask = (uint32_t)-(int32_t)first;
    return from_bits_f32(((uint32_t)bits_f32(x) & mask) | ((uint32_t)bits_f32(y) & ~mask));
}

static inline double chosen_d(int first, double x, double y)
{
    uint64_t mask = (uint64_t)-(int64_t)first;
    return from_bits_f64(((uint64_t)bits_f64(x) & mask) | ((uint64_t)bits_f64(y) & ~mask));
}

static inline float negative_f(float x)
{
    return from_bits_f32((uint32_t)bits_f32(x) ^ (uint32_t)INT32_MIN);
}

static inline double negative_d(double x)
{
    return from_bits_f64((uint64_t)bits_f64(x) ^ (uint64_t)INT64_MIN);
}

static inline npy_longdouble negative_g(npy_longdouble x)
{
    return -x;
}

static inline npy_longdouble chosen_g(int first, npy_longdouble x, npy_longdouble y)
{
    return first ? x : y;
}

/* Whether all |x[i]| <= limit, and none is NaN: the sign bits of the differences are collected. */
static inline int all_within_f64(const double *x, size_t n, double limit)
{
    int64_t differences = 0;
    size_t i;
    for (i = 0; i < n; i++)
        differences |= bits_f64(limit) - magnitude_bits_f64(x[i]);
    return differences >= 0;
}

static inline int all_within_f32(const float *x, size_t n, float limit)
{
    int32_t differences = 0;
    size_t i;
    for (i = 0; i < n; i++)
        differences |= bits_f32(limit) - magnitude_bits_f32(x[i]);
    return differences >= 0;
}

/* The status flags which NumPy turns into warnings. A kernel that may raise one without reason (a comparison
 * with NaN, an intermediate result that is thrown away) reads them first and puts them back at its end.
 * Reading takes 2 ns, clearing 70 ns, so it clears only when there is something to clear. */
#define WARNING_FLAGS (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW)

static inline int raised_flags(void)
{
    return fetestexcept(WARNING_FLAGS);
}

static inline void put_back_flags(int before)
{
    int spurious = fetestexcept(WARNING_FLAGS) & ~before;
    if (spurious)
        feclearexcept(spurious);
}

/* Whether n elements of an input and of the output can be used in any order: the very same elements, or
 * memory that does not touch. False for ufunc.accumulate, which feeds each result into the next. */
static inline int is_independent(const char *in, npy_intp in_step, const char *out, npy_intp out_step,
                                 npy_intp n, npy_intp size)
{
    npy_intp in_reach = in_step * (n - 1), out_reach = out_step * (n - 1);
    const char *in_low = in_reach < 0 ? in + in_reach : in, *in_high = in_reach < 0 ? in : in + in_reach;
    const char *out_low = out_reach < 0 ? out + out_reach : out, *out_high = out_reach < 0 ? out : out + out_reach;
    return (in == out && in_step == out_step && (n == 1 || out_step != 0))
           || in_high + size <= out_low || out_high + size <= in_low;
}

/* Ufunc loops from a function of contiguous arrays, `kernel(const R *const *inputs, R *output, size_t n, data)`.
 * Other strides are copied to blocks and back, so that a result does not depend on the strides. */
#define BLOCK 256
#define MOST_INPUTS 3
typedef void packed_f(const npy_float *const *inputs, npy_float *output, size_t n, void *data);
typedef void packed_d(const npy_double *const *inputs, npy_double *output, size_t n, void *data);
typedef void packed_g(const npy_longdouble *const *inputs, npy_longdouble *output, size_t n, void *data);
void cgrad_run_f(packed_f *kernel, int nin, char **args, npy_intp n, npy_intp const *steps, void *data);
void cgrad_run_d(packed_d *kernel, int nin, char **args, npy_intp n, npy_intp const *steps, void *data);
void cgrad_run_g(packed_g *kernel, int nin, char **args, npy_intp n, npy_intp const *steps, void *data);

#define PACKED_LOOP(name, run, kernel, nin)                                                               \
static void name(char **args, npy_intp const *dims, npy_intp const *steps, void *data)                    \
{                                                                                                         \
    run(kernel, nin, args, dims[0], steps, data);                                                         \
}

/* Ufunc loops from a function of the elements, `static inline R at(R, ...)`. For two operands the contiguous
 * case, and the ones with a scalar, are loops of their own, so that compilers can vectorise them; LEVELS is
 * CLONES where that is worth it, else empty. With quiet, `at` only raises flags that do not count. */
#define UNARY_LOOP(name, R, at, quiet)                                                                    \
static void name(char **args, npy_intp const *dims, npy_intp const *steps, void *Py_UNUSED(data))         \
{                                                                                                         \
    const char *x = args[0];                                                                              \
    char *z = args[1];                                                                                    \
    npy_intp i;                                                                                           \
    int before = quiet ? raised_flags() : 0;                                                              \
    for (i = 0; i < dims[0]; i++, x += steps[0], z += steps[1])                                           \
        *(R *)z = at(*(const R *)x);                                                                      \
    if (quiet)                                                                                            \
        put_back_flags(before);                                                                           \
}

#define BINARY_LOOP(name, R, at, quiet)                                                                   \
LEVELS static void name(char **args, npy_intp const *dims, npy_intp const *steps, void *Py_UNUSED(data))  \
{                                                                                                         \
    const npy_intp n = dims[0], sx = steps[0], sy = steps[1], sz = steps[2], size = sizeof(R);            \
    const char *x = args[0], *y = args[1];                                                                \
    char *z = args[2];                                                                                    \
    const R *xs = (const R *)x, *ys = (const R *)y;                                                       \
    R *zs = (R *)z;                                                                                       \
    npy_intp i;                                                                                           \
    int before = quiet ? raised_flags() : 0;                                                              \
    int packed = sz == size && is_independent(x, sx, z, sz, n, size) && is_independent(y, sy, z, sz, n, size); \
    if (packed && sx == size && sy == size) {                                                             \
        INDEPENDENT                                                                                       \
        for (i = 0; i < n; i++)                                                                           \
            zs[i] = at(xs[i], ys[i]);                                                                     \
    }                                                                                                     \
    else if (packed && sx == 0 && sy == size && n) {                                                      \
        const R x0 = *xs;                                                                                 \
        INDEPENDENT                                                                                       \
        for (i = 0; i < n; i++)                                                                           \
            zs[i] = at(x0, ys[i]);                                                                        \
    }                                                                                                     \
    else if (packed && sx == size && sy == 0 && n) {                                                      \
        const R y0 = *ys;                                                                                 \
        INDEPENDENT                                                                                       \
        for (i = 0; i < n; i++)                                                                           \
            zs[i] = at(xs[i], y0);                                                                        \
    }                                                                                                     \
    else                                                                                                  \
        for (i = 0; i < n; i++, x += sx, y += sy, z += sz)                                                \
            *(R *)z = at(*(const R *)x, *(const R *)y);                                                   \
    if (quiet)                                                                                            \
        put_back_flags(before);                                                                           \
}

/* The same where `at` is costly: one loop for all strides. */
#define PLAIN_BINARY_LOOP(name, R, at)                                                                    \
static void name(char **args, npy_intp const *dims, npy_intp const *steps, void *Py_UNUSED(data))         \
{                                                                                                         \
    const char *x = args[0], *y = args[1];                                                                \
    char *z = args[2];                                                                                    \
    npy_intp i;                                                                                           \
    for (i = 0; i < dims[0]; i++, x += steps[0], y += steps[1], z += steps[2])                            \
        *(R *)z = at(*(const R *)x, *(const R *)y);                                                       \
}

#define TERNARY_LOOP(name, R, at)                                                                         \
static void name(char **args, npy_intp const *dims, npy_intp const *steps, void *Py_UNUSED(data))         \
{                                                                                                         \
    const char *w = args[0], *x = args[1], *y = args[2];                                                  \
    char *z = args[3];                                                                                    \
    npy_intp i;                                                                                           \
    for (i = 0; i < dims[0]; i++, w += steps[0], x += steps[1], y += steps[2], z += steps[3])             \
        *(R *)z = at(*(const R *)w, *(const R *)x, *(const R *)y);                                        \
}

/* The table of a family from the loops name_f, name_d, ... and the types of all their operands. */
#define REAL_TYPES2 {NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE, NPY_LONGDOUBLE, NPY_LONGDOUBLE}
#define REAL_TYPES3 {NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE,                 \
                     NPY_LONGDOUBLE, NPY_LONGDOUBLE, NPY_LONGDOUBLE}
#define REAL_TYPES4 {NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE,      \
                     NPY_DOUBLE, NPY_LONGDOUBLE, NPY_LONGDOUBLE, NPY_LONGDOUBLE, NPY_LONGDOUBLE}

#define FLOAT_KERNEL(name)                                                                                \
static cgrad_loop *const name##_loops[] = {name##_f, name##_d};                                           \
static const char name##_types[] = REAL_TYPES2;                                                           \
const cgrad_kernel cgrad_##name = {name##_loops, name##_types, 1, 2};

#define REAL_KERNEL(name, nin, types)                                                                     \
static cgrad_loop *const name##_loops[] = {name##_f, name##_d, name##_g};                                 \
static const char name##_types[] = types;                                                                 \
const cgrad_kernel cgrad_##name = {name##_loops, name##_types, nin, 3};

#define INEXACT_KERNEL(name)                                                                              \
static cgrad_loop *const name##_loops[] = {name##_f, name##_d, name##_g, name##_F, name##_D, name##_G};   \
static const char name##_types[] = {                                                                      \
    NPY_FLOAT, NPY_FLOAT, NPY_FLOAT, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE,                                  \
    NPY_LONGDOUBLE, NPY_LONGDOUBLE, NPY_LONGDOUBLE, NPY_CFLOAT, NPY_CFLOAT, NPY_CFLOAT,                   \
    NPY_CDOUBLE, NPY_CDOUBLE, NPY_CDOUBLE, NPY_CLONGDOUBLE, NPY_CLONGDOUBLE, NPY_CLONGDOUBLE};            \
const cgrad_kernel cgrad_##name = {name##_loops, name##_types, 2, 6};

#endif
