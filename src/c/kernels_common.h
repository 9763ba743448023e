/* What the kernel files share: function versions per CPU level, loops over strided memory, and tables of loops.
 * Private to kernels_*.c.
 */
#ifndef CGRAD_KERNELS_COMMON_H
#define CGRAD_KERNELS_COMMON_H

#include <Python.h> /* first, as it configures the C library */

#include <float.h>
#include <math.h>

#include <numpy/ndarraytypes.h>

#include "kernels.h"
#include "kernels_bits.h"
#include "kernels_flags.h"

/* One version of a function per CPU level, picked when the module is loaded. It needs GNU ifuncs, which glibc has and
 * musl, macOS and Windows have not; they are resolved before a sanitizer is ready. The named levels bring fused
 * multiply-add along. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) \
    && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
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
#pragma clang diagnostic ignored "-Wpass-failed" /* it may decide not to vectorise */
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#elif defined(_MSC_VER)
#define INDEPENDENT __pragma(loop(ivdep))
#else
#define INDEPENDENT
#endif

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

/* Ufunc loops from a function of the elements, `static inline R at(R, ...)`; `raised` and `drop` are functions of
 * kernels_flags.h, which drop all new flags or keep them. For two operands the contiguous case, and the ones with a
 * scalar, are loops of their own, so that compilers can vectorise them; LEVELS is CLONES where that is worth it,
 * else empty. */
#define UNARY_LOOP(name, R, at, raised, drop)                                                             \
static void name(char **args, npy_intp const *dims, npy_intp const *steps, void *Py_UNUSED(data))         \
{                                                                                                         \
    const char *x = args[0];                                                                              \
    char *z = args[1];                                                                                    \
    npy_intp i;                                                                                           \
    int before = raised();                                                                                \
    for (i = 0; i < dims[0]; i++, x += steps[0], z += steps[1])                                           \
        *(R *)z = at(*(const R *)x);                                                                      \
    drop(before, WARNING_FLAGS);                                                                          \
}

#define BINARY_LOOP(name, R, at, raised, drop)                                                            \
LEVELS static void name(char **args, npy_intp const *dims, npy_intp const *steps, void *Py_UNUSED(data))  \
{                                                                                                         \
    const npy_intp n = dims[0], sx = steps[0], sy = steps[1], sz = steps[2], size = sizeof(R);            \
    const char *x = args[0], *y = args[1];                                                                \
    char *z = args[2];                                                                                    \
    const R *xs = (const R *)x, *ys = (const R *)y;                                                       \
    R *zs = (R *)z;                                                                                       \
    npy_intp i;                                                                                           \
    int before = raised();                                                                                \
    int packed = sz == size && is_independent(x, sx, z, sz, n, size) && is_independent(y, sy, z, sz, n, size);\
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
    drop(before, WARNING_FLAGS);                                                                          \
}

/* The same where `at` is costly, and its flags are right: one loop for all strides. */
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
