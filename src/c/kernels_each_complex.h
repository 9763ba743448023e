/* Includes TEMPLATE once per complex type, with
 *   C        the type: a struct, since not all compilers know the complex numbers of C99
 *   R        the type of its parts
 *   W        double for float, else R
 *   FN(f)    a name for C: f_F, f_D, f_G
 *   PART(f)  a name for R: f_f, f_d, f_g
 *   WIDE(f)  a name for W
 *   M(f)     the C library's function for R: expf, exp, expl
 *   WM(f)    the C library's function for W
 *   LEVELS   CLONES, or nothing for long double, which no CPU level makes faster
 */
#define C complex_F
#define R npy_float
#define W npy_double
#define FN(name) name##_F
#define PART(name) name##_f
#define WIDE(name) name##_d
#define M(name) name##f
#define WM(name) name
#define LEVELS CLONES
#include TEMPLATE
#undef C
#undef R
#undef W
#undef FN
#undef PART
#undef WIDE
#undef M
#undef WM
#undef LEVELS

#define C complex_D
#define R npy_double
#define W npy_double
#define FN(name) name##_D
#define PART(name) name##_d
#define WIDE(name) name##_d
#define M(name) name
#define WM(name) name
#define LEVELS CLONES
#include TEMPLATE
#undef C
#undef R
#undef W
#undef FN
#undef PART
#undef WIDE
#undef M
#undef WM
#undef LEVELS

#define C complex_G
#define R npy_longdouble
#define W npy_longdouble
#define FN(name) name##_G
#define PART(name) name##_g
#define WIDE(name) name##_g
#define M(name) name##l
#define WM(name) name##l
#define LEVELS
#include TEMPLATE
#undef C
#undef R
#undef W
#undef FN
#undef PART
#undef WIDE
#undef M
#undef WM
#undef LEVELS
