"""Products made of several: Kronecker and cross products, chains of matrices, matrix powers.

Uses the registry and `products`.
"""
import operator

import numpy as np

from cgrad import _kernels as k

from .products import as_operand
from .registry import Sample, constant, deliver, implements, plain_value, record, structural

__all__ = []


# ---------------------------------------------------------------------------------------------- Kronecker product
@implements(np.kron)
def kron(a, b):
    a, b = as_operand(a), as_operand(b)
    ndim = max(a.ndim, b.ndim)
    if not b.ndim:
        return np.multiply(a, b)
    # a[i1, 1, i2, 1, ...] * b[1, j1, 1, j2, ...]
    a_shape, b_shape = (1,) * (ndim - a.ndim) + a.shape, (1,) * (ndim - b.ndim) + b.shape
    z = a.reshape([n for size in a_shape for n in (size, 1)]) * b.reshape([n for size in b_shape for n in (1, size)])
    return z.reshape([n * m for n, m in zip(a_shape, b_shape)])


# ---------------------------------------------------------------------------------------------- cross product
# gz . (x cross y) = x . (y cross gz) = y . (gz cross x)
def _cross_x(gz, z, x, y, *, axes):
    return _cross_adjoint(gz, x, y, (axes[0], axes[1], axes[2]), 1)


def _cross_y(gz, z, x, y, *, axes):
    return _cross_adjoint(gz, y, x, (axes[1], axes[0], axes[2]), -1)


def _cross_adjoint(gz, wanted, other, axes, sign):
    """The vectors ``other cross gz``, with `sign`. Vectors of two components lie in a plane; two such have a number for gz."""
    axis, other_axis, z_axis = axes
    other = np.moveaxis(other, other_axis, -1)
    y0, y1, y2 = other[..., 0], other[..., 1], other[..., 2] if other.shape[-1] == 3 else None
    if wanted.shape[axis] == 2 and y2 is None:
        parts = [k.strong_multiply(sign * gz, y1), k.strong_multiply(-sign * gz, y0)]
    else:
        gz = sign * np.moveaxis(gz, z_axis, -1)
        g0, g1, g2 = gz[..., 0], gz[..., 1], gz[..., 2]
        parts = [k.strong_multiply(g2, y1), -k.strong_multiply(g2, y0)]
        if y2 is not None:
            parts = [parts[0] - k.strong_multiply(g1, y2), parts[1] + k.strong_multiply(g0, y2)]
        if wanted.shape[axis] == 3:
            parts.append(k.strong_multiply(g1, y0) - k.strong_multiply(g0, y1))
    return np.stack(parts, axis)


CROSS = structural("cross", linear="multi", reads=("y", "x"), vjp=(_cross_x, _cross_y),
                   samples=[Sample(np.cross, ((3,), (3,)), complex=True), Sample(np.cross, ((2, 1, 3), (4, 3))),
                            Sample(np.cross, ((3, 4), (4, 3)), kwargs=dict(axisa=0, axisb=1, axisc=0))])


@implements(np.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    a, b = as_operand(a), as_operand(b)
    if axis is not None:
        axisa = axisb = axisc = axis
    value = np.cross(plain_value(a), plain_value(b), axisa, axisb, axisc)
    axes = tuple(n - ndim if n >= 0 else n for n, ndim in ((axisa, a.ndim), (axisb, b.ndim), (axisc, value.ndim)))
    return record(CROSS, value, (a, b), dict(axes=axes))


@implements(np.linalg.cross)
def linalg_cross(x, y, /, *, axis=-1):
    x, y = as_operand(x), as_operand(y)
    value = np.linalg.cross(plain_value(x), plain_value(y), axis=axis)
    axes = tuple(axis - ndim if axis >= 0 else axis for ndim in (x.ndim, y.ndim, value.ndim))
    return record(CROSS, value, (x, y), dict(axes=axes))


# ---------------------------------------------------------------------------------------------- chains
@implements(np.linalg.multi_dot)
def multi_dot(arrays, *, out=None):
    factors = [as_operand(a) for a in arrays]
    n = len(factors)
    if n < 3 or factors[0].ndim not in (1, 2) or factors[-1].ndim not in (1, 2) or any(a.ndim != 2 for a in factors[1:-1]):
        if n != 2:
            np.linalg.multi_dot([plain_value(a) for a in factors])      # NumPy's own error
        return deliver(np.dot(factors[0], factors[1]), out)
    rows, columns = factors[0].ndim == 2, factors[-1].ndim == 2
    # as numpy.linalg.multi_dot has them: a row first and a column last
    if not rows:
        factors[0] = factors[0].reshape((1, factors[0].shape[0]))
    if not columns:
        factors[-1] = factors[-1].reshape((factors[-1].shape[0], 1))
    z = _chain(factors, _cheapest_splits([a.shape[0] for a in factors] + [factors[-1].shape[1]]), 0, n - 1)
    if not rows and not columns:
        z = z[0, 0]
    elif not rows or not columns:
        z = z.reshape((z.shape[1] if columns else z.shape[0],))
    return deliver(z, out)


def _cheapest_splits(sizes):
    """Where to split each stretch i..j of a chain of matrices for the fewest multiplications: ``splits[i, j]``.

    Ties go as in NumPy: to the first split.
    """
    n = len(sizes) - 1
    if n == 3:
        left = sizes[0] * sizes[2] * (sizes[1] + sizes[3]) < sizes[1] * sizes[3] * (sizes[0] + sizes[2])
        return {(0, 2): int(left), (0, 1): 0, (1, 2): 1}
    cost, splits = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs = [cost[i, s] + cost[s + 1, j] + sizes[i] * sizes[s + 1] * sizes[j + 1] for s in range(i, j)]
            cost[i, j] = min(costs)
            splits[i, j] = i + costs.index(cost[i, j])
    return splits


def _chain(factors, splits, i, j):
    if i == j:
        return factors[i]
    s = splits[i, j]
    return np.dot(_chain(factors, splits, i, s), _chain(factors, splits, s + 1, j))


@implements(np.linalg.matrix_power)
def matrix_power(a, n):
    if type(n) is not int or n == 0 or a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        value = np.linalg.matrix_power(plain_value(a), n)               # NumPy's own errors
        n = operator.index(n)
        if n == 0:
            return constant(value, a)
    if n < 0:
        a, n = np.linalg.inv(a), -n
    if n == 3:
        return np.matmul(np.matmul(a, a), a)
    # the squares of a that the bits of n name, in NumPy's order
    power, square = None, None
    while n > 0:
        square = a if square is None else np.matmul(square, square)
        n, bit = divmod(n, 2)
        if bit:
            power = square if power is None else np.matmul(power, square)
    return power


@implements(np.linalg.matrix_transpose)
def matrix_transpose(x, /):
    if x.ndim < 2:
        np.linalg.matrix_transpose(plain_value(x))                      # NumPy's own error
    return np.swapaxes(x, -1, -2)
