/* Inner loops which neither NumPy nor SciPy has: the partial derivatives that cannot be put together
 * from their ufuncs without losing accuracy, special values or speed.
 *
 * Every kernel is a family of ufunc loops, one per type, with NumPy's signature; kernels.pyx registers the
 * families as ufuncs. All loops take any strides, allow the output to be one of the inputs, touch no
 * Python object and may run without the GIL and in many threads at once.
 *
 * The contiguous forms at the end are for compiled code that has its operands in plain arrays.
 */
#ifndef CGRAD_KERNELS_H
#define CGRAD_KERNELS_H

#include <stddef.h>

#include <numpy/npy_common.h>

typedef void cgrad_loop(char **args, npy_intp const *dims, npy_intp const *steps, void *data);

/* One ufunc: its loops, and nin + 1 type numbers for each of them. */
typedef struct {
    cgrad_loop *const *loops;
    const char *types;
    int nin;
    int ntypes;
} cgrad_kernel;

/* One of NumPy's loops, for a kernel that computes most of its result with it. */
typedef struct {
    cgrad_loop *loop;
    void *data;
} cgrad_borrowed;

/* The types of the loops of a family: f d g are float, double, long double; F D G their complex numbers. `data` is
 * a cgrad_borrowed of the same type where one is named, else unused. */
extern const cgrad_kernel cgrad_strong_multiply;       /* g, p: f d g F D G */
extern const cgrad_kernel cgrad_over_or_zero;          /* a, b: f d g F D G */
extern const cgrad_kernel cgrad_over_hypot2;           /* a, x, y: f d g */
extern const cgrad_kernel cgrad_tie_share;             /* x, y: f d g */
extern const cgrad_kernel cgrad_tie_share_ignore_nan;  /* x, y: f d g */
extern const cgrad_kernel cgrad_logistic;              /* x: f d g */
extern const cgrad_kernel cgrad_tanh_slope;            /* x, z = tanh(x): f d g */
extern const cgrad_kernel cgrad_power_slope_x;         /* x, y: f d g F D G; data of f d g: numpy.power */
extern const cgrad_kernel cgrad_power_slope_y;         /* x, z = x**y: f d g F D G; data of f d g: numpy.log */
extern const cgrad_kernel cgrad_fast_sin;              /* x: f d */
extern const cgrad_kernel cgrad_fast_cos;              /* x: f d */
extern const cgrad_kernel cgrad_sinc_slope;            /* x: f d g */
extern const cgrad_kernel cgrad_sinc_curvature;        /* x: f d g */

/* Contiguous forms. An output may be an input, or else must not overlap it; in sincos, s and c differ. */
void cgrad_sin_f32(const float *x, float *s, size_t n);
void cgrad_sin_f64(const double *x, double *s, size_t n);
void cgrad_cos_f32(const float *x, float *c, size_t n);
void cgrad_cos_f64(const double *x, double *c, size_t n);
void cgrad_sincos_f32(const float *x, float *s, float *c, size_t n);
void cgrad_sincos_f64(const double *x, double *s, double *c, size_t n);
void cgrad_logistic_f32(const float *x, float *z, size_t n);
void cgrad_logistic_f64(const double *x, double *z, size_t n);
void cgrad_tanh_slope_f32(const float *x, const float *z, float *slope, size_t n);
void cgrad_tanh_slope_f64(const double *x, const double *z, double *slope, size_t n);

#endif
