/* Includes TEMPLATE once per complex type, with
 *   R       the type of its parts
 *   C       the type: a struct, since not all compilers know the complex numbers of C99
 *   FN(f)   a name for it: f_F, f_D, f_G
 *   M(f)    the C library's function for R: expf, exp, expl
 *   LEVELS  CLONES_WITHOUT_FMA, or nothing for long double, which no CPU level makes faster
 */
#define R npy_float
#define C complex_F
#define FN(name) name##_F
#define M(name) name##f
#define LEVELS CLONES_WITHOUT_FMA
#include TEMPLATE
#undef R
#undef C
#undef FN
#undef M
#undef LEVELS

#define R npy_double
#define C complex_D
#define FN(name) name##_D
#define M(name) name
#define LEVELS CLONES_WITHOUT_FMA
#include TEMPLATE
#undef R
#undef C
#undef FN
#undef M
#undef LEVELS

#define R npy_longdouble
#define C complex_G
#define FN(name) name##_G
#define M(name) name##l
#define LEVELS
#include TEMPLATE
#undef R
#undef C
#undef FN
#undef M
#undef LEVELS
