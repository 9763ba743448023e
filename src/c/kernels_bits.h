/* Floating point numbers as integers, to test and to choose them without branches and without raising flags. */
#ifndef CGRAD_KERNELS_BITS_H
#define CGRAD_KERNELS_BITS_H

#include <stdint.h>
#include <string.h>

#include <numpy/npy_common.h>

/* Comparing bits raises no flag for NaN, and the bits of positive numbers are in their
 * order, with inf and then NaN last. */
static inline int64_t bits_d(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline int32_t bits_f(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double from_bits_d(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float from_bits_f(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int64_t magnitude_bits_d(double x)
{
    return bits_d(x) & INT64_MAX;
}

static inline int32_t magnitude_bits_f(float x)
{
    return bits_f(x) & INT32_MAX;
}

/* chosen: x if first is 1, y if it is 0; negative: -x. On bits, because GCC takes arithmetic with selected numbers
 * apart into arithmetic with both, of which it selects one: that raises the flags of both. (It does not vectorise
 * long doubles, and leaves them alone.) */
static inline float chosen_f(int first, float x, float y)
{
    uint32_t mask = (uint32_t)-(int32_t)first;
    return from_bits_f(((uint32_t)bits_f(x) & mask) | ((uint32_t)bits_f(y) & ~mask));
}

static inline double chosen_d(int first, double x, double y)
{
    uint64_t mask = (uint64_t)-(int64_t)first;
    return from_bits_d(((uint64_t)bits_d(x) & mask) | ((uint64_t)bits_d(y) & ~mask));
}

static inline npy_longdouble chosen_g(int first, npy_longdouble x, npy_longdouble y)
{
    return first ? x : y;
}

static inline float negative_f(float x)
{
    return from_bits_f((uint32_t)bits_f(x) ^ (uint32_t)INT32_MIN);
}

static inline double negative_d(double x)
{
    return from_bits_d((uint64_t)bits_d(x) ^ (uint64_t)INT64_MIN);
}

static inline npy_longdouble negative_g(npy_longdouble x)
{
    return -x;
}

/* Whether all |x[i]| <= limit, and none is NaN: the sign bits of the differences are collected. */
static inline int all_within_d(const double *x, size_t n, double limit)
{
    int64_t differences = 0;
    size_t i;
    for (i = 0; i < n; i++)
        differences |= bits_d(limit) - magnitude_bits_d(x[i]);
    return differences >= 0;
}

static inline int all_within_f(const float *x, size_t n, float limit)
{
    int32_t differences = 0;
    size_t i;
    for (i = 0; i < n; i++)
        differences |= bits_f(limit) - magnitude_bits_f(x[i]);
    return differences >= 0;
}

#endif
