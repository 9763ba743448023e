"""Elementwise rules: one row per ufunc.

Partials are ordinary functions of `x, y` (inputs) and `z` (result). They are traced once into a fused program for plain sweeps,
and run as they are on tracked arrays in recorded sweeps. Where the rounded result has lost the slope they read the input.
"""
import numpy as np

from cgrad import _kernels as k
from cgrad._array import bind_operators

from .keywords import call_with
from .registry import Sample, elementwise, plain_function, structural, zero

LOG2, LOG10 = np.log(2.0), np.log(10.0)
POSITIVE = (0.1, 3.0)
UNIT = (-0.9, 0.9)



def over_square(a, h):
    """a / h**2 without the square, which may overflow or vanish; 0 at the origin."""
    return k.over_or_zero(k.over_or_zero(a, h), h)


# ---------------------------------------------------------------------------------------------- arithmetic
add = elementwise(np.add, 1, 1, linear=True)
subtract = elementwise(np.subtract, 1, -1, linear=True)
multiply = elementwise(np.multiply, lambda y: y, lambda x: x, linear="multi")
# z/y, not x/y**2: the square of a tiny or huge y is not representable
divide = elementwise(np.divide, lambda y: 1 / y, lambda y, z: -z / y, domain=((-2, 2), (0.5, 3)))
negative = elementwise(np.negative, -1, linear=True)
positive = elementwise(np.positive, 1, linear=True)
square = elementwise(np.square, lambda x: 2 * x)
reciprocal = elementwise(np.reciprocal, lambda z: -z * z, domain=(0.5, 3))
elementwise(k.strong_multiply, lambda y: y, lambda x: x, linear="multi", domain=(0.5, 2))

# ---------------------------------------------------------------------------------------------- powers and roots
power = elementwise(np.power, lambda x, y: k.power_slope_x(x, y), lambda x, z: k.power_slope_y(x, z),
                    domain=((0.5, 2), (-2, 2)))
elementwise(np.float_power, lambda x, y: k.power_slope_x(x, y), lambda x, z: k.power_slope_y(x, z),
            domain=((0.5, 2), (-2, 2)))
elementwise(k.power_slope_x, lambda x, y: y * k.power_slope_x(x, y - 1),
            lambda x, y: np.power(x, y - 1) + y * k.power_slope_y(x, np.power(x, y - 1)), domain=((0.5, 2), (-2, 2)))
elementwise(k.power_slope_y, lambda x, y: y / x, lambda x: np.log(x), domain=((0.5, 2), (0.5, 2)))
sqrt = elementwise(np.sqrt, lambda z: 0.5 / z, domain=POSITIVE)
elementwise(np.cbrt, lambda z: 1 / (3 * z * z), domain=POSITIVE, complex=False)

# ---------------------------------------------------------------------------------------------- exponentials, logarithms
elementwise(np.exp, lambda z: z)
elementwise(np.exp2, lambda z: z * LOG2)
elementwise(np.expm1, lambda x: np.exp(x))
elementwise(np.log, lambda x: 1 / x, domain=POSITIVE)
elementwise(np.log2, lambda x: 1 / (LOG2 * x), domain=POSITIVE)
elementwise(np.log10, lambda x: 1 / (LOG10 * x), domain=POSITIVE)
elementwise(np.log1p, lambda x: 1 / (1 + x), domain=(-0.5, 2))
# d/dx log(e^x + e^y) = 1/(1 + e^(y-x)), without the overflow
elementwise(np.logaddexp, lambda x, y: k.logistic(x - y), lambda x, y: k.logistic(y - x), complex=False)
elementwise(np.logaddexp2, lambda x, y: k.logistic(LOG2 * (x - y)), lambda x, y: k.logistic(LOG2 * (y - x)), complex=False)
elementwise(k.logistic, lambda x: k.logistic(x) * k.logistic(-x), complex=False)

# ---------------------------------------------------------------------------------------------- trigonometric
sin = elementwise(np.sin, lambda x: np.cos(x))
cos = elementwise(np.cos, lambda x: -np.sin(x))
elementwise(np.tan, lambda z: 1 + z * z, domain=(-1.2, 1.2))
# (1 - x)(1 + x) keeps the digits that 1 - x*x loses near 1
elementwise(np.arcsin, lambda x: 1 / np.sqrt((1 - x) * (1 + x)), domain=UNIT)
elementwise(np.arccos, lambda x: -1 / np.sqrt((1 - x) * (1 + x)), domain=UNIT)
elementwise(np.arctan, lambda x: 1 / (1 + x * x))
elementwise(np.arctan2, lambda x, y: over_square(y, np.hypot(x, y)), lambda x, y: -over_square(x, np.hypot(x, y)),
            domain=(0.5, 2), complex=False)
elementwise(np.hypot, lambda x, z: k.over_or_zero(x, z), lambda y, z: k.over_or_zero(y, z), complex=False)
elementwise(k.over_or_zero, lambda y: 1 / y, lambda y, z: k.over_or_zero(-z, y), domain=((-2, 2), (0.5, 3)))
elementwise(np.deg2rad, np.pi / 180, complex=False, linear=True)
elementwise(np.radians, np.pi / 180, complex=False, linear=True)
elementwise(np.rad2deg, 180 / np.pi, complex=False, linear=True)
elementwise(np.degrees, 180 / np.pi, complex=False, linear=True)

# ---------------------------------------------------------------------------------------------- hyperbolic
elementwise(np.sinh, lambda x: np.cosh(x))
elementwise(np.cosh, lambda x: np.sinh(x))
tanh = elementwise(np.tanh, lambda x, z: k.tanh_slope(x, z), complex_partials=(lambda z: 1 - z * z,))
# as a function of z alone it is 1 - z*z; x only says how far out in the tail z was rounded
elementwise(k.tanh_slope, 0, lambda y: -2 * y, samples=[Sample(lambda x: k.tanh_slope(x, np.tanh(x)), ((3,),))])
# hypot(1, x) does not overflow
elementwise(np.arcsinh, lambda x: 1 / np.hypot(1, x), complex_partials=(lambda x: 1 / np.sqrt(1 + x * x),))
elementwise(np.arccosh, lambda x: 1 / (np.sqrt(x - 1) * np.sqrt(x + 1)), domain=(1.5, 3))
elementwise(np.arctanh, lambda x: 1 / ((1 - x) * (1 + x)), domain=UNIT)

# ---------------------------------------------------------------------------------------------- choosing
# ties share, so that the weights add to 1
elementwise(np.maximum, lambda x, y: k.tie_share(x, y), lambda x, y: k.tie_share(y, x), complex=False)
elementwise(np.minimum, lambda x, y: k.tie_share(-x, -y), lambda x, y: k.tie_share(-y, -x), complex=False)
elementwise(np.fmax, lambda x, y: k.tie_share_ignore_nan(x, y), lambda x, y: k.tie_share_ignore_nan(y, x), complex=False)
elementwise(np.fmin, lambda x, y: k.tie_share_ignore_nan(-x, -y), lambda x, y: k.tie_share_ignore_nan(-y, -x), complex=False)
elementwise(np.fabs, lambda x: np.sign(x), complex=False)
elementwise(np.copysign, lambda x, y: np.sign(x) * np.copysign(1, y), 0, complex=False)
elementwise(np.fmod, 1, lambda x, y: -np.trunc(x / y), domain=((-5, 5), (1.1, 2)), complex=False)
elementwise(np.remainder, 1, lambda x, y: -np.floor(x / y), domain=((-5, 5), (1.1, 2)), complex=False)

# ---------------------------------------------------------------------------------------------- zero derivative
for ufunc in (np.sign, np.floor, np.ceil, np.trunc, np.rint, np.floor_divide, np.spacing, np.heaviside, k.tie_share,
              k.tie_share_ignore_nan):
    zero(ufunc)

# results that are not floating, or say nothing about a derivative
plain_function(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isnan, np.isinf, np.isfinite,
               np.signbit, np.logical_and, np.logical_or, np.logical_xor, np.logical_not)

absolute = elementwise(np.absolute, lambda x: np.sign(x), complex=False)
# |z| is real: d|z|/dx - i d|z|/dy = conj(z)/|z|, 0 at 0
absolute.complex_op = structural("absolute_complex", reads=("xz",),
                                 vjp=(lambda gz, z, x: gz * k.over_or_zero(np.conj(x), z),),
                                 samples=[Sample(np.absolute, ((3, 2),), complex=True)])
bind_operators((add, subtract, multiply, divide, power, square, sqrt, reciprocal, positive, negative, absolute),
               call_with)
