/* Sine and cosine of a reduced argument, for the kernel files. */
#ifndef CGRAD_KERNELS_TRIG_H
#define CGRAD_KERNELS_TRIG_H

#include "kernels_common.h"

/* Adding and subtracting 1.5 * 2^52 rounds to an integer, which is in the last bits in between. */
#define ROUNDER 6755399441055744.0

/* The sine and cosine of the reduced argument, for those of x + turns pi/2: swapped in odd quadrants, negated
 * in two of the four. */
static inline void place(double *sine, double *cosine, int64_t quadrant)
{
    uint64_t s = (uint64_t)bits_d(*sine), c = (uint64_t)bits_d(*cosine);
    uint64_t swap = (s ^ c) & (uint64_t)-(quadrant & 1);
    *sine = from_bits_d(s ^ swap ^ (uint64_t)(quadrant & 2) << 62);
    *cosine = from_bits_d(c ^ swap ^ (uint64_t)((quadrant + 1) & 2) << 62);
}

/* sin and cos of hi + lo in [-pi/4, pi/4]. lo is the rounding error of hi, so its square is nothing. The
 * polynomials are minimax approximations of the relative error (Remez exchange), 2^-57.9 and 2^-64. */
static inline double reduced_sin(double hi, double lo)
{
    double u = hi * hi;
    double p = -0.1666666666666663 + u * (0.0083333333333221078 + u * (-0.00019841269829580163
               + u * (2.7557313618016539e-06 + u * (-2.5050747218088199e-08 + u * 1.5896197630456774e-10))));
    return hi + (u * hi * p + lo * (1.0 - 0.5 * u));
}

static inline double reduced_cos(double hi, double lo)
{
    double u = hi * hi, head = 1.0 - 0.5 * u;
    double p = 0.041666666666666595 + u * (-0.0013888888888873041 + u * (2.4801587288841387e-05
               + u * (-2.7557314176236262e-07 + u * (2.0875700415601799e-09 + u * -1.1358513927759438e-11))));
    return head + (((1.0 - head) - 0.5 * u) + (u * u * p - hi * lo));
}

#endif
