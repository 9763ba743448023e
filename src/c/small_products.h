/* Products of small matrices, where a BLAS call is mostly overhead. Used by src/blas.pyx only. */
#ifndef CGRAD_SMALL_PRODUCTS_H
#define CGRAD_SMALL_PRODUCTS_H
#include <string.h>
#if !defined(__GNUC__)      /* no vector extensions: BLAS does all sizes */
#define SMALL 0
#define small_products(...) ((void) 0)
#else
#define SMALL 8
#define SMALL_PARAMETERS(T) Py_ssize_t p, Py_ssize_t q, Py_ssize_t r, const T *a, Py_ssize_t ap, Py_ssize_t aq,  \
    const T *b, Py_ssize_t bq, Py_ssize_t br, T *c, Py_ssize_t cp, Py_ssize_t n, Py_ssize_t sa, Py_ssize_t sb,   \
    Py_ssize_t sc, int add
#define SMALL_ARGUMENTS p, q, r, a, ap, aq, b, bq, br, c, cp, n, sa, sb, sc, add

/* n products of (p, q) by (q, R); sa, sb, sc lead from one to the next, and sc == 0 adds them up. A row of R
   elements is N vectors of W; where R is no multiple of W the last overlaps the one before, so all are whole. */
#define SMALL_KERNEL(NAME, TARGET, T, R, W)                                                                      \
TARGET static void NAME##R(SMALL_PARAMETERS(T))                                                                  \
{                                                                                                                \
    typedef T vector __attribute__((vector_size(W * sizeof(T))));                                                \
    enum { N = (R + W - 1) / W, LAST = R - W };                                                                  \
    vector rows[SMALL][N];                                                                                       \
    for (; n > 0; n--, a += sa, b += sb, c += sc, add |= sc == 0) {                                              \
        for (Py_ssize_t k = 0; k < q; k++)                                                                       \
            for (int v = 0; v < N; v++) {                                                                        \
                const T *bk = b + k * bq + (v * W < LAST ? v * W : LAST) * br;                                   \
                vector row = {0};                                                                                \
                if (br == 1)                                                                                     \
                    memcpy(&row, bk, sizeof row);                                                                \
                else                                                                                             \
                    for (int j = 0; j < W; j++) row[j] = bk[j * br];                                             \
                rows[k][v] = row;                                                                                \
            }                                                                                                    \
        for (Py_ssize_t i = 0; i < p; i++) {                                                                     \
            T *ci = c + i * cp;                                                                                  \
            vector sum[N], old[N];                                                                               \
            for (int v = 0; v < N; v++) sum[v] = a[i * ap] * rows[0][v];                                         \
            for (Py_ssize_t k = 1; k < q; k++)                                                                   \
                for (int v = 0; v < N; v++) sum[v] += a[i * ap + k * aq] * rows[k][v];                           \
            if (add) {                                                                                           \
                for (int v = 0; v < N; v++) memcpy(&old[v], ci + (v * W < LAST ? v * W : LAST), sizeof old[v]);  \
                for (int v = 0; v < N; v++) sum[v] += old[v];                                                    \
            }                                                                                                    \
            for (int v = 0; v < N; v++) memcpy(ci + (v * W < LAST ? v * W : LAST), &sum[v], sizeof sum[v]);      \
        }                                                                                                        \
    }                                                                                                            \
}
#define SMALL_CASE(NAME, R) case R: NAME##R(SMALL_ARGUMENTS); break;
#define SMALL_KERNELS(NAME, TARGET, T, W)                                                                        \
SMALL_KERNEL(NAME, TARGET, T, 1, 1) SMALL_KERNEL(NAME, TARGET, T, 2, 2) SMALL_KERNEL(NAME, TARGET, T, 3, 2)      \
SMALL_KERNEL(NAME, TARGET, T, 4, W) SMALL_KERNEL(NAME, TARGET, T, 5, W) SMALL_KERNEL(NAME, TARGET, T, 6, W)      \
SMALL_KERNEL(NAME, TARGET, T, 7, W) SMALL_KERNEL(NAME, TARGET, T, 8, W)                                          \
static void NAME(SMALL_PARAMETERS(T))                                                                            \
{                                                                                                                \
    switch (r) {                                                                                                 \
        SMALL_CASE(NAME, 1) SMALL_CASE(NAME, 2) SMALL_CASE(NAME, 3) SMALL_CASE(NAME, 4)                          \
        SMALL_CASE(NAME, 5) SMALL_CASE(NAME, 6) SMALL_CASE(NAME, 7) SMALL_CASE(NAME, 8)                          \
    }                                                                                                            \
}
SMALL_KERNELS(small_float, , float, 4)          /* vectors of 16 bytes, which all CPUs have */
SMALL_KERNELS(small_double, , double, 2)
#if defined(__x86_64__)
#define SMALL_AVX2 __attribute__((target("avx2,fma")))
SMALL_KERNELS(small_float_avx2, SMALL_AVX2, float, 4)
SMALL_KERNELS(small_double_avx2, SMALL_AVX2, double, 4)
#endif

static void small_products(int wide, SMALL_PARAMETERS(void))
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        wide ? small_double_avx2(SMALL_ARGUMENTS) : small_float_avx2(SMALL_ARGUMENTS);
        return;
    }
#endif
    wide ? small_double(SMALL_ARGUMENTS) : small_float(SMALL_ARGUMENTS);
}
#endif
#endif
