"""The elementwise loops which neither NumPy nor SciPy has, as NumPy ufuncs.

They are the parts of derivative rules which an expression of NumPy calls would get wrong at special points (a zero
seed, a tie, a power of 0), would lose digits in (slopes of tanh and sinc in their tails and at 0), or would make slow
(sin, cos). Real ufuncs, so ndarrays, tracked Arrays and the program executor use them like any other. The loops are C
(src/c/kernels.h). Uses nothing of cgrad; used by the rules and by whatever runs programs.
"""
cimport numpy as cnp

import numpy as np

cnp.import_array()
cnp.import_ufunc()

cdef extern from "kernels.h":
    ctypedef void cgrad_loop(char **args, const cnp.npy_intp *dims, const cnp.npy_intp *steps, void *data)
    ctypedef struct cgrad_kernel:
        cgrad_loop *const *loops
        const char *types
        int nin
        int ntypes
    ctypedef struct cgrad_borrowed:
        cgrad_loop *loop
        void *data
    const cgrad_kernel cgrad_strong_multiply
    const cgrad_kernel cgrad_over_or_zero
    const cgrad_kernel cgrad_over_hypot2
    const cgrad_kernel cgrad_tie_share
    const cgrad_kernel cgrad_tie_share_ignore_nan
    const cgrad_kernel cgrad_logistic
    const cgrad_kernel cgrad_tanh_slope
    const cgrad_kernel cgrad_power_slope_x
    const cgrad_kernel cgrad_power_slope_y
    const cgrad_kernel cgrad_fast_sin
    const cgrad_kernel cgrad_fast_cos
    const cgrad_kernel cgrad_sinc_slope
    const cgrad_kernel cgrad_sinc_curvature

# A ufunc keeps the pointers to its arrays of data, one entry per loop.
# NumPy 2.5's own declarations leave `types` out, and without one Cython reads the Python attribute of that name.
cdef extern from "numpy/ufuncobject.h":
    ctypedef struct PyUFuncObject:
        const char *types

cdef void *no_data[6]
cdef void *power_data[6]
cdef void *log_data[6]
cdef cgrad_borrowed power_loops[3]
cdef cgrad_borrowed log_loops[3]


cdef int borrow(cnp.ufunc ufunc, cgrad_borrowed *loops, void **data) except -1:
    """Let `data` of the loops for float, double and long double be the loops of a NumPy ufunc for the same types."""
    cdef int k, i, operand, type_num
    for k in range(3):
        type_num = (<int>cnp.NPY_FLOAT, <int>cnp.NPY_DOUBLE, <int>cnp.NPY_LONGDOUBLE)[k]
        for i in range(ufunc.ntypes):
            for operand in range(ufunc.nargs):
                if (<PyUFuncObject *>ufunc).types[i * ufunc.nargs + operand] != type_num:
                    break
            else:
                loops[k].loop = <cgrad_loop *>ufunc.functions[i]
                loops[k].data = (<void **>ufunc.data)[i]
                data[k] = &loops[k]
                break
        else:
            raise ImportError(
                f"cgrad._kernels: numpy.{ufunc.__name__} has no loop for the type number {type_num} (float, double "
                f"and long double are expected); install a NumPy that cgrad supports")
    return 0


cdef object register(const cgrad_kernel *kernel, const char *name, const char *doc, void **data=no_data):
    """The ufunc of a kernel. It keeps the pointers, so `name` and `doc` are literals."""
    return cnp.PyUFunc_FromFuncAndData(
        <cnp.PyUFuncGenericFunction *>kernel.loops, data, <char *>kernel.types, kernel.ntypes, kernel.nin, 1,
        cnp.PyUFunc_None, <char *>name, <char *>doc, 0)


borrow(np.power, power_loops, power_data)
borrow(np.log, log_loops, log_data)

strong_multiply = register(&cgrad_strong_multiply, b"strong_multiply", b"""
Product of a seed g and a partial derivative p, exactly 0 wherever g is 0.

A zero seed says that the result does not depend on this path, so it wins over an infinite or undefined partial.
NaN seeds stay NaN.

Parameters
----------
g, p : array_like
    Seed (adjoint or tangent) and partial derivative.

Returns
-------
ndarray
    ``g * p``, and 0 where ``g == 0``. All zeros are +0.

Examples
--------
>>> from cgrad._kernels import strong_multiply
>>> import numpy as np
>>> strong_multiply(np.array([0.0, 2.0]), np.array([np.inf, 3.0]))
array([0., 6.])
""")

over_or_zero = register(&cgrad_over_or_zero, b"over_or_zero", b"""
Quotient a / b, but 0 where both are 0.

The partials of norms have this form: x / hypot(x, y), x / abs(x). At their kink it picks the subgradient 0.

Parameters
----------
a, b : array_like
    Dividend and divisor.

Returns
-------
ndarray
    ``a / b``, and 0 where ``a == b == 0``.

Examples
--------
>>> from cgrad._kernels import over_or_zero
>>> import numpy as np
>>> over_or_zero(np.array([0.0, 3.0]), np.array([0.0, 4.0]))
array([0.  , 0.75])
""")

over_hypot2 = register(&cgrad_over_hypot2, b"over_hypot2", b"""
Quotient a / (x**2 + y**2), with no overflow or underflow of the squares, and 0 where x and y are 0.

The partials of ``arctan2(y, x)`` are ``over_hypot2(x, x, y)`` by y and ``-over_hypot2(y, x, y)`` by x. Where x or y is
infinite the result is 0, their limit.

Parameters
----------
a, x, y : array_like
    Real dividend and coordinates.

Returns
-------
ndarray
    ``a / (x**2 + y**2)``.

Examples
--------
>>> from cgrad._kernels import over_hypot2
>>> import numpy as np
>>> over_hypot2(np.array([5.0, 1e-200, 0.0]), np.array([3.0, 1e-200, 0.0]), np.array([4.0, 0.0, 0.0]))
array([2.e-001, 1.e+200, 0.e+000])
""")

tie_share = register(&cgrad_tie_share, b"tie_share", b"""
Partial derivative of ``maximum(x, y)`` by x: 1 where x is larger, 1/2 at a tie, 0 where y is larger.

A NaN wins, as in `numpy.maximum`; two of them tie. ``tie_share(y, x)`` is the partial of ``minimum(x, y)`` by x.

Parameters
----------
x, y : array_like
    Real operands of the maximum.

Returns
-------
ndarray
    0, 1/2 or 1.

Examples
--------
>>> from cgrad._kernels import tie_share
>>> import numpy as np
>>> tie_share(np.array([1.0, 2.0, 3.0, np.nan]), 2.0)
array([0. , 0.5, 1. , 1. ])
""")

tie_share_ignore_nan = register(&cgrad_tie_share_ignore_nan, b"tie_share_ignore_nan", b"""
Partial derivative of ``fmax(x, y)`` by x: as `tie_share`, but a NaN loses against a number.

Parameters
----------
x, y : array_like
    Real operands of the maximum.

Returns
-------
ndarray
    0, 1/2 or 1.

Examples
--------
>>> from cgrad._kernels import tie_share_ignore_nan
>>> import numpy as np
>>> tie_share_ignore_nan(np.array([1.0, 2.0, 3.0, np.nan]), 2.0)
array([0. , 0.5, 1. , 0. ])
""")

logistic = register(&cgrad_logistic, b"logistic", b"""
The logistic function 1 / (1 + exp(-x)), to a few ulp in both tails.

``logistic(x - y)`` is the partial of ``logaddexp(x, y)`` by x. Raises no floating point warning.

Parameters
----------
x : array_like
    Real argument.

Returns
-------
ndarray
    Between 0 and 1.

Examples
--------
>>> from cgrad._kernels import logistic
>>> import numpy as np
>>> logistic(np.array([-1000.0, 0.0, 1000.0]))
array([0. , 0.5, 1. ])
""")

tanh_slope = register(&cgrad_tanh_slope, b"tanh_slope", b"""
Derivative of tanh, 1 - z**2 with z = tanh(x), to a few ulp where z is almost 1, too.

There it is 4 q / (1 + q)**2 with q = exp(-2 |x|). Raises no floating point warning.

Parameters
----------
x, z : array_like
    Real argument, and ``tanh(x)``.

Returns
-------
ndarray
    Between 0 and 1.

Examples
--------
>>> from cgrad._kernels import tanh_slope
>>> import numpy as np
>>> x = np.array([0.0, 20.0])
>>> tanh_slope(x, np.tanh(x))
array([1.0000000e+00, 1.6993417e-17])
""")

power_slope_x = register(&cgrad_power_slope_x, b"power_slope_x", b"""
Partial derivative of ``x**y`` by x: y * x**(y - 1), and 0 where y is 0, for all x.

Parameters
----------
x, y : array_like
    Base and exponent.

Returns
-------
ndarray
    ``y * x**(y - 1)``. At ``x == 0`` it is 0 for y > 1, 1 for y = 1 and infinite for 0 < y < 1; at a complex zero it is
    NaN in the last case, since the limit depends on the direction.

Examples
--------
>>> from cgrad._kernels import power_slope_x
>>> import numpy as np
>>> power_slope_x(np.array([-3.0, 0.0, 0.0]), np.array([2.0, 1.0, 0.0]))
array([-6.,  1.,  0.])
""", power_data)

power_slope_y = register(&cgrad_power_slope_y, b"power_slope_y", b"""
Partial derivative of z = ``x**y`` by y: log(x) * z, and 0 where both x and z are 0.

Parameters
----------
x, z : array_like
    Base, and the power. NaN where a real base is negative.

Returns
-------
ndarray
    ``log(x) * z``.

Examples
--------
>>> from cgrad._kernels import power_slope_y
>>> import numpy as np
>>> power_slope_y(np.array([1.0, 0.0]), np.array([1.0, 0.0]))
array([0., 0.])
""", log_data)

fast_sin = register(&cgrad_fast_sin, b"fast_sin", b"""
Sine to within 1 ulp, several times as fast as `numpy.sin` in double precision.

For derivatives only: results may differ from `numpy.sin` in the last bit, and from one kind of CPU to another.

Parameters
----------
x : array_like
    Real angle in radians.

Returns
-------
ndarray
    The sine.

Examples
--------
>>> from cgrad._kernels import fast_sin
>>> float(fast_sin(0.5).round(6))
0.479426
""")

fast_cos = register(&cgrad_fast_cos, b"fast_cos", b"""
Cosine to within 1 ulp, several times as fast as `numpy.cos` in double precision.

For derivatives only: results may differ from `numpy.cos` in the last bit, and from one kind of CPU to another.

Parameters
----------
x : array_like
    Real angle in radians.

Returns
-------
ndarray
    The cosine.

Examples
--------
>>> from cgrad._kernels import fast_cos
>>> float(fast_cos(0.5).round(6))
0.877583
""")

sinc_slope = register(&cgrad_sinc_slope, b"sinc_slope", b"""
Derivative of `numpy.sinc`, (cos(pi x) - sinc(x)) / x, without cancellation near 0.

Parameters
----------
x : array_like
    Real argument.

Returns
-------
ndarray
    The derivative; 0 at 0.

Examples
--------
>>> from cgrad._kernels import sinc_slope
>>> import numpy as np
>>> sinc_slope(np.array([0.0, 1.0, 2.0]))
array([ 0. , -1. ,  0.5])
""")

sinc_curvature = register(&cgrad_sinc_curvature, b"sinc_curvature", b"""
Second derivative of `numpy.sinc`, without cancellation near 0.

Parameters
----------
x : array_like
    Real argument.

Returns
-------
ndarray
    The second derivative; -pi**2 / 3 at 0.

Examples
--------
>>> from cgrad._kernels import sinc_curvature
>>> import numpy as np
>>> sinc_curvature(np.array([1.0, 2.0]))
array([ 2. , -0.5])
""")
