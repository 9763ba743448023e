"""NumPy's functions that are no ufuncs but act like them, sinc and i0, and the functions of polynomials.

Uses the registry, `products` and, on the first use of a derivative of i0, scipy.special.
"""
import math

import numpy as np

from cgrad import _kernels as k

from .products import as_array, as_operand, strong_contraction
from .registry import Sample, elementwise, implements, is_array, not_differentiable, plain_value, record, structural

__all__ = []


# ---------------------------------------------------------------------------------------------- sinc
def sinc_vjp(gz, z, x):
    if x.dtype.kind == "c":
        return k.strong_multiply(gz, k.over_or_zero(np.cos(np.pi * x) - np.sinc(x), x))
    return k.strong_multiply(gz, k.sinc_slope(x))


# f = sinc has x f = sin(pi x) / pi; three derivatives of that are x f''' + 3 f'' = -pi**2 cos(pi x). Near 0, where the terms
# cancel, its power series: f''' is the sum over n > 1 of (-1)**n pi**(2n) x**(2n - 3) (2n)(2n - 1)(2n - 2) / (2n + 1)!
SERIES = [(-1)**n * np.pi**(2 * n) * (2 * n - 2) / ((2 * n + 1) * math.factorial(2 * n - 2)) for n in range(14, 1, -1)]


def sinc_third(x):
    # made of ufuncs only, without branches, as a fused program must be
    near = np.heaviside(0.5 - np.abs(x), 1)
    square, series = np.minimum(x * x, 0.25), SERIES[0]
    for c in SERIES[1:]:
        series = series * square + c
    far = -(np.pi**2 * np.cos(np.pi * x) + 3 * k.sinc_curvature(x)) / (x + near)
    return near * (x * series) + (1 - near) * far


SINC = structural("sinc", vjp=(sinc_vjp,), reads=("x",),
                  samples=[Sample(np.sinc, ((5,),), complex=True), Sample(np.sinc, ((3,),), domain=(-0.01, 0.01))])
elementwise(k.sinc_slope, lambda x: k.sinc_curvature(x), complex=False)
elementwise(k.sinc_curvature, sinc_third, complex=False)


@implements(np.sinc)
def sinc(x):
    return record(SINC, np.sinc(plain_value(x)), (x,))


# ---------------------------------------------------------------------------------------------- modified Bessel functions
# I_0' = I_1, and I_n' = (I_{n-1} + I_{n+1}) / 2: closed under differentiation, with no division at 0
def bessel_i(order, x):
    """I of an integer order, on ndarrays and Arrays."""
    if order == 0:
        return np.i0(x)
    from scipy import special                       # here, since it takes a tenth of a second
    value = special.i1(plain_value(x)) if order == 1 else special.iv(order, plain_value(x))
    return record(BESSEL_I, value, (x,), dict(order=order)) if is_array(x) else value


def bessel_i_vjp(gz, z, x, *, order):
    slope = (bessel_i(order - 1, x) + bessel_i(order + 1, x)) / 2 if order else bessel_i(1, x)
    return k.strong_multiply(gz, slope)


I0 = structural("i0", vjp=(lambda gz, z, x: bessel_i_vjp(gz, z, x, order=0),), reads=("x",),
                samples=[Sample(np.i0, ((4,),))])
BESSEL_I = structural("bessel_i", vjp=(bessel_i_vjp,), reads=("x",))


@implements(np.i0)
def i0(x):
    return record(I0, np.i0(plain_value(x)), (x,))


# ---------------------------------------------------------------------------------------------- polynomials
def polyval_vjp_p(gz, z, p, x):
    x = as_array(x)
    x = x if x.dtype.kind in "fc" else x.astype(z.dtype)
    return strong_contraction(np.matmul, gz.reshape(gz.shape[:gz.ndim - z.ndim] + (x.size,)), np.vander(x.ravel(), p.shape[0]))


def polyval_vjp_x(gz, z, p, x):
    n = p.shape[0] - 1
    slope = np.polyval(p[:-1] * np.arange(n, 0, -1), x) if n > 0 else np.zeros_like(plain_value(x))
    return k.strong_multiply(gz, slope)


POLYVAL = structural("polyval", vjp=(polyval_vjp_p, polyval_vjp_x), reads=("xy", "xy"),
                     samples=[Sample(np.polyval, ((4,), (2, 3)), complex=True), Sample(np.polyval, ((3,), ())),
                              Sample(np.polyval, ((1,), (2,)))])


@implements(np.polyval)
def polyval(p, x):
    p, x = as_operand(p), as_operand(x)
    if p.ndim != 1:
        raise NotImplementedError(f"np.polyval: coefficients of shape {p.shape} have no derivative rule in cgrad; expected "
                                  "one axis: call it for each polynomial, or use numpy.polynomial")
    return record(POLYVAL, np.polyval(plain_value(p), plain_value(x)), (p, x))


@implements(np.polyder)
def polyder(p, m=1):
    if m < 0:
        np.polyder(plain_value(p), m)               # NumPy's own error
    for _ in range(int(m)):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


@implements(np.polyint)
def polyint(p, m=1, k=None):
    p, constants = as_operand(p), None if k is None else as_operand(k)
    m = int(m)
    if m < 0 or (constants is not None and constants.size not in (1, m) and len(constants) < m):
        np.polyint(plain_value(p), m, plain_value(k))                   # NumPy's own errors
    constants = np.zeros(m) if constants is None else constants.reshape((-1,))
    for i in range(m):
        p = np.concatenate((p / np.arange(len(p), 0, -1), constants[:1] if len(constants) == 1 else constants[i:i + 1]))
    return p


def _same_length(a, b):
    """Both as sequences of coefficients, the shorter one with zeros in front."""
    a, b = (np.reshape(c, (1,)) if np.ndim(c) == 0 else as_operand(c) for c in (a, b))
    n = max(len(a), len(b))
    return tuple(np.concatenate((np.zeros(n - len(c), c.dtype), c)) if len(c) < n else c for c in (a, b))


@implements(np.polyadd)
def polyadd(a, b):
    return np.add(*_same_length(a, b))


@implements(np.polysub)
def polysub(a, b):
    return np.subtract(*_same_length(a, b))


@implements(np.polymul)
def polymul(a, b):
    # NumPy drops leading zeros, which changes the length of the result: coefficients that are dropped have no derivative
    a, b = (np.reshape(c, (1,)) if np.ndim(c) == 0 else as_operand(c) for c in (a, b))
    a, b = (c[min(np.flatnonzero(plain_value(c)), default=len(c) - 1):] for c in (a, b))
    return np.convolve(a, b)


@implements(np.poly)
def poly(seq_of_zeros):
    roots = as_operand(seq_of_zeros)
    if roots.ndim != 1:
        raise NotImplementedError("np.poly: the characteristic polynomial of a matrix has no derivative rule in cgrad; pass "
                                  "its eigenvalues, np.poly(np.linalg.eigvals(a))")
    value = np.poly(plain_value(roots))
    if not len(roots):
        return value
    z = np.ones(1, roots.dtype)
    for i in range(len(roots)):
        z = np.convolve(z, np.concatenate((np.ones(1, roots.dtype), -roots[i:i + 1])))
    # NumPy makes it real where the roots come in conjugate pairs
    return z.real if np.ndim(value) and value.dtype.kind != "c" and z.dtype.kind == "c" else z


not_differentiable(np.roots, instead="np.poly gives the coefficients as a function of the roots; for the change of a root r "
                   "use the implicit one, -np.polyval(dp, r) / np.polyval(np.polyder(p), r)")
