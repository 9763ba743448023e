/* Includes TEMPLATE once per real type, with
 *   R       the type
 *   FN(f)   a name for it: f_f, f_d, f_g
 *   M(f)    the C library's function for it: expf, exp, expl
 *   EPSILON the distance from 1 to the next number
 *   LEVELS  CLONES, or nothing for long double, which no CPU level makes faster
 */
#define R npy_float
#define FN(name) name##_f
#define M(name) name##f
#define EPSILON FLT_EPSILON
#define LEVELS CLONES
#include TEMPLATE
#undef R
#undef FN
#undef M
#undef EPSILON
#undef LEVELS

#define R npy_double
#define FN(name) name##_d
#define M(name) name
#define EPSILON DBL_EPSILON
#define LEVELS CLONES
#include TEMPLATE
#undef R
#undef FN
#undef M
#undef EPSILON
#undef LEVELS

#define R npy_longdouble
#define FN(name) name##_g
#define M(name) name##l
#define EPSILON LDBL_EPSILON
#define LEVELS
#include TEMPLATE
#undef R
#undef FN
#undef M
#undef EPSILON
#undef LEVELS
