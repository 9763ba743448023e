"""Vector and matrix norms.

Conventions at kinks: of the subgradients the shortest, so 0 at the zero vector; ties of a largest or smallest entry, column, row
or singular value share equally. Uses the registry, `reductions` and `kinks`.
"""
import numpy as np

from cgrad import _kernels as k

from .kinks import radial
from .reductions import conjugate, from_end, hits_and_counts, restored
from .registry import Sample, implements, plain_value, record, structural


def slope_of_abs(x):
    """The derivative of abs(x): its sign, the conjugate one of complex x, 0 at 0."""
    return conjugate(np.sign(x))


# ---------------------------------------------------------------------------------------------- vectors
def vector_rule(gz, z, x, order, axis, restore):
    """The VJP over `axis`; `restore` gives gz and z the reduced axes."""
    if order is None or order == 2:
        return radial(conjugate(x), gz, z, restore)
    g, z = restore(gz), restore(z)
    if order == 1:
        return g * slope_of_abs(x)
    if abs(order) == np.inf:
        hits, counts = hits_and_counts(np.abs(x), z, axis)
        return np.where(hits, g / np.maximum(counts, 1), 0) * slope_of_abs(x)
    # (sum |x|^p)^(1/p): the slope by |x| is (|x| / z)^(p - 1)
    with np.errstate(all="ignore"):
        return k.strong_multiply(slope_of_abs(x), k.strong_multiply(g, k.over_or_zero(np.abs(x), z)**(order - 1)))


# ---------------------------------------------------------------------------------------------- matrices
def singular_rule(g, x, order, axis):
    """From the singular value decomposition: the derivative of a singular value by the matrix is u v^T."""
    u, s, vh = np.linalg.svd(np.moveaxis(x, axis, (-2, -1)), full_matrices=False)
    if order == "nuc":
        # those which are 0 but for rounding are at a kink
        tiny = np.finfo(s.dtype).eps * max(u.shape[-2], vh.shape[-1])
        weights = (s > tiny * np.max(s, axis=-1, keepdims=True)).astype(s.dtype)
    else:
        best = np.max(s, axis=-1, keepdims=True) if order == 2 else np.min(s, axis=-1, keepdims=True)
        hits, counts = hits_and_counts(s, best, (-1,))
        weights = (hits & (s > 0)) / counts
    slope = conjugate((u * weights[..., None, :]) @ vh)
    return g * np.moveaxis(slope, (-2, -1), axis)


def matrix_rule(gz, z, x, order, axis, restore):
    """The VJP over the axes of rows and columns; `restore` gives gz and z the reduced axes."""
    if order in (None, "fro", "f"):
        return radial(conjugate(x), gz, z, restore)
    g, z = restore(gz), restore(z)
    if order in (2, -2, "nuc"):
        return singular_rule(g, x, order, axis)
    # 1 and -1: the largest or smallest sum of a column; inf and -inf: of a row
    within, among = axis if abs(order) == 1 else axis[::-1]
    hits, counts = hits_and_counts(np.sum(np.abs(x), axis=within, keepdims=True), z, (among,))
    return np.where(hits, g / np.maximum(counts, 1), 0) * slope_of_abs(x)


# ---------------------------------------------------------------------------------------------- the functions
def restoring(x, axis, keepdims):
    return lambda a: restored(a, x, axis, keepdims)


def norm_vjp(gz, z, x, *, ord, axis, keepdims):
    restore = restoring(x, axis, keepdims)
    if axis is None and ord is not None and x.ndim == 2:
        return matrix_rule(gz, z, x, ord, (-2, -1), restore)
    if axis is None or len(axis) == 1:
        return vector_rule(gz, z, x, ord, axis, restore)
    return matrix_rule(gz, z, x, ord, axis, restore)


def vector_norm_vjp(gz, z, x, *, ord, axis, keepdims):
    return vector_rule(gz, z, x, ord, axis, restoring(x, axis, keepdims))


def matrix_norm_vjp(gz, z, x, *, ord, keepdims):
    axis = (-2, -1)
    return matrix_rule(gz, z, x, ord, axis, restoring(x, axis, keepdims))


NORM = structural("norm", vjp=(norm_vjp,), reads=("xz",), samples=[
    Sample(np.linalg.norm, ((4,),), complex=True), Sample(np.linalg.norm, ((2, 3, 4),), kwargs=dict(axis=1, keepdims=True)),
    Sample(np.linalg.norm, ((3, 4),), kwargs=dict(ord=3, axis=1)), Sample(np.linalg.norm, ((3, 4),), kwargs=dict(ord=1)),
    Sample(np.linalg.norm, ((3, 4),), kwargs=dict(ord="nuc")),
    Sample(np.linalg.norm, ((2, 3, 4),), kwargs=dict(ord=2, axis=(0, 2)))])
VECTOR_NORM = structural("vector_norm", vjp=(vector_norm_vjp,), reads=("xz",), samples=[
    Sample(np.linalg.vector_norm, ((3, 4),)), Sample(np.linalg.vector_norm, ((2, 3, 4),), kwargs=dict(axis=(0, 2), ord=3))])
MATRIX_NORM = structural("matrix_norm", vjp=(matrix_norm_vjp,), reads=("xz",), samples=[
    Sample(np.linalg.matrix_norm, ((2, 3, 4),)), Sample(np.linalg.matrix_norm, ((3, 4),), kwargs=dict(ord=-np.inf))])


@implements(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    value = np.linalg.norm(plain_value(x), ord, axis, keepdims)
    if ord == 0:
        return value                                # a count
    return record(NORM, value, (x,), {"ord": ord, "axis": from_end(axis, x.ndim), "keepdims": bool(keepdims)})


@implements(np.linalg.vector_norm)
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    value = np.linalg.vector_norm(plain_value(x), axis=axis, keepdims=keepdims, ord=ord)
    if ord == 0:
        return value
    return record(VECTOR_NORM, value, (x,), {"ord": ord, "axis": from_end(axis, x.ndim), "keepdims": bool(keepdims)})


@implements(np.linalg.matrix_norm)
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    value = np.linalg.matrix_norm(plain_value(x), keepdims=keepdims, ord=ord)
    return record(MATRIX_NORM, value, (x,), {"ord": ord, "keepdims": bool(keepdims)})
