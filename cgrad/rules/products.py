"""Products of matrices and vectors: matmul and its relatives, dot, inner, vdot, outer, tensordot.

All contractions meet in two functions, the adjoints of `numpy.matmul`, which on plain arrays are one BLAS call each
(`cgrad._blas`) and on tracked arrays are matmuls again. Uses the registry; the other files of products use this one.
"""
import math
import operator

import numpy as np

from cgrad import _kernels as k

from .registry import Array, Sample, deliver, implements, method, plain_value, record, structural

__all__ = ["as_array", "as_operand", "conjugate", "matmul_adjoint_x", "matmul_adjoint_y", "strong_contraction"]


# ---------------------------------------------------------------------------------------------- what rules and handlers share
def as_operand(x):
    """An argument as the tape may keep it: an Array or an ndarray."""
    return x if type(x) is Array or isinstance(x, np.ndarray) else np.asarray(x)


def as_array(x):
    """A kept value with the attributes of an array: 0-d float64 values are kept as Python floats."""
    return np.asarray(x) if type(x) is float else x


def conjugate(x):
    """The conjugate; of a real array the array itself."""
    return np.conjugate(x) if x.dtype.kind == "c" else x


def free_axes(ndim, axes):
    """The axes, negative, that are not among `axes`."""
    return tuple(a for a in range(-ndim, 0) if a not in axes)


def strong_contraction(contract, gz, *partials):
    """``contract(gz, *partials)``, a sum of products, in which a zero of gz wins over an infinite or undefined partial.

    So a row of data that is not a number and is masked out of a loss leaves the gradient as it is. Costs a look at the smaller
    of result and partials unless something is not finite.
    """
    result = contract(gz, *partials)
    if _all_finite(plain_value(partials[0] if len(partials) == 1 and partials[0].size < result.size else result)):
        return result
    masks = [np.isfinite(plain_value(p)) for p in partials]
    if all(m.all() for m in masks):
        return result
    clean = contract(gz, *(np.where(m, p, 0) for m, p in zip(masks, partials)))
    # how many terms have a seed that is not zero and a partial that is not finite
    seeds = (plain_value(gz) != 0).astype(float)
    touched = contract(seeds, *(np.ones(m.shape) for m in masks)) - contract(seeds, *(m.astype(float) for m in masks))
    return np.where(touched > 0.5, result, clean)


# ---------------------------------------------------------------------------------------------- the adjoints of matmul
def _load_blas():
    """Bind the functions of cgrad._blas on their first use: importing it imports scipy.linalg, 0.2 s."""
    global _adjoint_x, _adjoint_y, _all_finite
    from cgrad._blas import all_finite as _all_finite, matmul_adjoint_x as _adjoint_x, matmul_adjoint_y as _adjoint_y


def _adjoint_x(gz, y, x_shape):
    _load_blas()
    return _adjoint_x(gz, y, x_shape)


def _adjoint_y(x, gz, y_shape):
    _load_blas()
    return _adjoint_y(x, gz, y_shape)


def _all_finite(a):
    return np.isfinite(a).all()


def matmul_adjoint_x(gz, y, x_shape):
    """The adjoint of x in ``z = x @ y``: ``gz @ y.T``, on ndarrays and Arrays; gz may have leading axes."""
    if type(gz) is Array or type(y) is Array:
        return strong_contraction(lambda gz, y: _recorded_adjoint_x(gz, y, len(x_shape)), gz, y)
    result = _adjoint_x(gz, y, x_shape)
    # the test of strong_contraction, here already, where each call counts
    if _all_finite(y if y.size < result.size else result):
        return result
    return strong_contraction(lambda gz, y: _adjoint_x(gz, y, x_shape), gz, y)


def matmul_adjoint_y(x, gz, y_shape):
    """The adjoint of y in ``z = x @ y``: ``x.T @ gz``, on ndarrays and Arrays; gz may have leading axes."""
    if type(gz) is Array or type(x) is Array:
        return strong_contraction(lambda gz, x: _recorded_adjoint_y(x, gz, y_shape), gz, x)
    result = _adjoint_y(x, gz, y_shape)
    if _all_finite(x if x.size < result.size else result):
        return result
    return strong_contraction(lambda gz, x: _adjoint_y(x, gz, y_shape), gz, x)


# On tracked arrays the sweep sums the axes along which x or y was broadcast.
def _recorded_adjoint_x(gz, y, x_ndim):
    if y.ndim == 1:
        gz, y = np.expand_dims(gz, -1), np.expand_dims(y, -1)
    if x_ndim == 1:
        gz = np.expand_dims(gz, -2)
    gx = np.matmul(gz, np.swapaxes(y, -1, -2))
    return np.squeeze(gx, -2) if x_ndim == 1 else gx


def _recorded_adjoint_y(x, gz, y_shape):
    y_ndim, batch = len(y_shape), x.ndim - 2
    if y_ndim == 1:
        gz = np.expand_dims(gz, -1)
    if x.ndim == 1:
        gz, x = np.expand_dims(gz, -2), np.expand_dims(x, -2)
    elif y_ndim <= 2 and batch > 0:
        # y is shared by the whole batch: product and sum are one product of taller matrices
        rows = math.prod(x.shape[:-1])
        gz = np.reshape(gz, gz.shape[:gz.ndim - batch - 2] + (rows, gz.shape[-1]))
        x = np.reshape(x, (rows, x.shape[-1]))
    gy = np.matmul(np.swapaxes(x, -1, -2), gz)
    return np.squeeze(gy, -1) if y_ndim == 1 else gy


MATMUL = structural(
    "matmul", linear="multi", reads=("y", "x"),
    vjp=(lambda gz, z, x, y: matmul_adjoint_x(gz, y, x.shape), lambda gz, z, x, y: matmul_adjoint_y(x, gz, y.shape)),
    samples=[Sample(np.matmul, shapes, complex=True) for shapes in (
        ((3, 4), (4, 2)), ((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)), ((4,), (5, 4, 3)), ((5, 3, 4), (4,)),
        ((5, 1, 3, 4), (2, 4, 6)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)))])


@implements(np.matmul, np.linalg.matmul)
def matmul(x, y, /, out=None, **keywords):
    if keywords:
        return _with_axes(np.matmul, matmul, MATMUL, x, y, out, **keywords)
    x, y = as_operand(x), as_operand(y)
    z = record(MATMUL, np.matmul(plain_value(x), plain_value(y)), (x, y))
    return z if out is None else deliver(z, out)


def _with_axes(ufunc, handler, op, x, y, out, axes=None, axis=None, keepdims=False, **keywords):
    """A product with the keywords of generalised ufuncs: those that say where the vectors or matrices lie by moving axes."""
    x, y = as_operand(x), as_operand(y)
    kept = dict(keepdims=True) if keepdims else {}
    if keepdims and ufunc is not np.vecdot:
        ufunc(plain_value(x), plain_value(y), **kept)                   # NumPy's own error
    if axis is not None:
        axes = [axis, axis, axis] if keepdims else [axis, axis]
    if axes is None:
        if keywords:
            z = record(op, ufunc(plain_value(x), plain_value(y), **keywords), (x, y))
        else:
            z = handler(x, y)
        return deliver(np.expand_dims(z, -1) if keepdims else z, out)
    # the call also checks the axes, with NumPy's own errors
    ufunc(plain_value(x), plain_value(y), axes=axes, **kept, **keywords)
    places = [a if isinstance(a, tuple) else (operator.index(a),) for a in axes]
    x, y = (np.moveaxis(v, a, range(-len(a), 0)) for v, a in zip((x, y), places))
    z = _with_axes(ufunc, handler, op, x, y, None, keepdims=keepdims, **keywords)
    if len(places) == 3 and places[2]:
        z = np.moveaxis(z, range(-len(places[2]), 0), places[2])
    return deliver(z, out)


# matvec(A, x) = A @ x and vecmat(x, A) = conj(x) @ A have batches of vectors; vecdot(x, y) = sum conj(x) y.
# The conjugate's VJP is the conjugate of the adjoint.
def _vecdot_x(gz, z, x, y):
    return conjugate(strong_contraction(np.multiply, np.expand_dims(gz, -1), y))


def _vecdot_y(gz, z, x, y):
    return strong_contraction(np.multiply, np.expand_dims(gz, -1), conjugate(x))


def _matvec_a(gz, z, a, x):
    return matmul_adjoint_x(np.expand_dims(gz, -1), np.expand_dims(x, -1), a.shape)


def _matvec_x(gz, z, a, x):
    return np.squeeze(matmul_adjoint_y(a, np.expand_dims(gz, -1), x.shape + (1,)), -1)


def _vecmat_x(gz, z, x, a):
    gx = matmul_adjoint_x(np.expand_dims(gz, -2), a, x.shape[:-1] + (1,) + x.shape[-1:])
    return conjugate(np.squeeze(gx, -2))


def _vecmat_a(gz, z, x, a):
    return matmul_adjoint_y(np.expand_dims(conjugate(x), -2), np.expand_dims(gz, -2), a.shape)


def _vector_product(ufunc, rules, *shapes):
    """The record and handler of one of NumPy's ufuncs over stacks of vectors."""
    op = structural(ufunc.__name__, vjp=rules, reads=("y", "x"), linear="multi",
                    samples=[Sample(ufunc, s, complex=True) for s in shapes])

    def handler(x, y, /, out=None, **keywords):
        if keywords:
            return _with_axes(ufunc, handler, op, x, y, out, **keywords)
        x, y = as_operand(x), as_operand(y)
        return deliver(record(op, ufunc(plain_value(x), plain_value(y)), (x, y)), out)
    return implements(ufunc)(handler)


# the last two are newer than NumPy 2.0
vecdot = _vector_product(np.vecdot, (_vecdot_x, _vecdot_y), ((2, 3), (2, 3)), ((3,), (4, 3)))
if hasattr(np, "matvec"):
    _vector_product(np.matvec, (_matvec_a, _matvec_x), ((2, 3), (4, 3)), ((5, 2, 3), (3,)))
    _vector_product(np.vecmat, (_vecmat_x, _vecmat_a), ((4, 3), (3, 2)), ((3,), (5, 3, 2)))


@implements(np.linalg.vecdot)
def linalg_vecdot(x, y, /, *, axis=-1):
    return np.vecdot(x, y, axis=axis)


# ---------------------------------------------------------------------------------------------- contraction of any axes
def contraction_adjoint_x(gz, z, x, y, *, x_axes, y_axes):
    """The adjoint of x when the axes `x_axes` of x are contracted with `y_axes` of y, as a product of two matrices."""
    x, y = as_array(x), as_array(y)
    lead, x_free, y_free = gz.shape[:gz.ndim - z.ndim], free_axes(x.ndim, x_axes), free_axes(y.ndim, y_axes)
    shape = tuple(x.shape[a] for a in x_free + x_axes)
    rows, inner = math.prod(shape[:len(x_free)]), math.prod(shape[len(x_free):])
    columns = math.prod(z.shape[len(x_free):])
    gx = matmul_adjoint_x(gz.reshape(lead + (rows, columns)), y.transpose(y_axes + y_free).reshape((inner, columns)),
                          (rows, inner))
    return _put_back(gx.reshape(lead + shape), x_free + x_axes)


def contraction_adjoint_y(gz, z, x, y, *, x_axes, y_axes):
    """The adjoint of y; see `contraction_adjoint_x`."""
    x, y = as_array(x), as_array(y)
    lead, x_free, y_free = gz.shape[:gz.ndim - z.ndim], free_axes(x.ndim, x_axes), free_axes(y.ndim, y_axes)
    shape = tuple(y.shape[a] for a in y_axes + y_free)
    inner, columns = math.prod(shape[:len(y_axes)]), math.prod(shape[len(y_axes):])
    rows = math.prod(z.shape[:len(x_free)])
    gy = matmul_adjoint_y(x.transpose(x_free + x_axes).reshape((rows, inner)), gz.reshape(lead + (rows, columns)),
                          (inner, columns))
    return _put_back(gy.reshape(lead + shape), y_axes + y_free)


def _put_back(a, axes):
    """Undo ``transpose(axes)`` on the last axes of `a`."""
    n = len(axes)
    if axes == tuple(range(-n, 0)):
        return a
    lead = a.ndim - n
    return a.transpose(tuple(range(lead)) + tuple(lead + i for i in sorted(range(n), key=lambda i: axes[i])))


TENSORDOT = structural(
    "tensordot", linear="multi", reads=("y", "x"), vjp=(contraction_adjoint_x, contraction_adjoint_y),
    samples=[Sample(np.tensordot, ((2, 3, 4), (3, 4, 2)), complex=True),
             Sample(np.tensordot, ((2, 3, 4), (4, 5, 2)), kwargs=dict(axes=((0, -1), (2, 0)))),
             Sample(np.tensordot, ((2, 3), (4,)), kwargs=dict(axes=0))])


def _inner_x(gz, z, x, y):
    if y.ndim == 1:
        return matmul_adjoint_x(gz, y, x.shape)
    if x.ndim == 1:                                 # then it is y @ x
        return matmul_adjoint_y(y, gz, x.shape)
    return contraction_adjoint_x(gz, z, x, y, x_axes=(-1,), y_axes=(-1,))


def _inner_y(gz, z, x, y):
    if x.ndim == 1:
        return matmul_adjoint_x(gz, x, y.shape)
    if y.ndim == 1:
        return matmul_adjoint_y(x, gz, y.shape)
    return contraction_adjoint_y(gz, z, x, y, x_axes=(-1,), y_axes=(-1,))


INNER = structural(
    "inner", linear="multi", reads=("y", "x"), vjp=(_inner_x, _inner_y),
    samples=[Sample(np.inner, ((3,), (3,)), complex=True), Sample(np.inner, ((2, 3), (4, 5, 3)))])


def _dot_x(gz, z, x, y):
    if y.ndim <= 2:
        return matmul_adjoint_x(gz, y, x.shape)
    return contraction_adjoint_x(gz, z, x, y, x_axes=(-1,), y_axes=(-2,))


def _dot_y(gz, z, x, y):
    if y.ndim <= 2:
        return matmul_adjoint_y(x, gz, y.shape)
    return contraction_adjoint_y(gz, z, x, y, x_axes=(-1,), y_axes=(-2,))


DOT = structural("dot", linear="multi", reads=("y", "x"), vjp=(_dot_x, _dot_y),
                 samples=[Sample(np.dot, ((3, 4), (4, 2)), complex=True), Sample(np.dot, ((3,), (3,))),
                          Sample(np.dot, ((2, 3, 4), (4,))), Sample(np.dot, ((2, 3), (4, 3, 5)))])
# one of the two is a number
SCALED = structural("dot_with_number", linear="multi", reads=("y", "x"),
                    vjp=(lambda gz, z, x, y: k.strong_multiply(gz, y), lambda gz, z, x, y: k.strong_multiply(gz, x)),
                    samples=[Sample(np.dot, ((), (3, 2))), Sample(np.inner, ((2,), ()), complex=True)])


@implements(np.dot)
@method("dot")
def dot(a, b, out=None):
    a, b = as_operand(a), as_operand(b)
    z = record(DOT if a.ndim and b.ndim else SCALED, np.dot(plain_value(a), plain_value(b)), (a, b))
    return z if out is None else deliver(z, out)


@implements(np.inner)
def inner(a, b, /):
    a, b = as_operand(a), as_operand(b)
    value = np.inner(plain_value(a), plain_value(b))
    if a.ndim and b.ndim:
        return record(INNER, value, (a, b))
    return record(SCALED, value, (a, b))


@implements(np.tensordot)
def tensordot(a, b, axes=2):
    a, b = as_operand(a), as_operand(b)
    try:
        x_axes, y_axes = axes = tuple(tuple(t) if np.iterable(t) else (t,) for t in axes)
    except TypeError:                               # a number of axes
        x_axes, y_axes = range(-axes, 0), range(axes)
    value = np.tensordot(plain_value(a), plain_value(b), axes)
    return record(TENSORDOT, value, (a, b), dict(x_axes=_negative(x_axes, a.ndim), y_axes=_negative(y_axes, b.ndim)))


@implements(np.linalg.tensordot)
def linalg_tensordot(x, y, /, *, axes=2):
    return tensordot(x, y, axes)


def _negative(axes, ndim):
    return tuple(operator.index(a) - ndim if a >= 0 else operator.index(a) for a in axes)


# vdot conjugates its first argument, and reads both as vectors
def _vdot_x(gz, z, x, y):
    shape = as_array(x).shape
    gz = gz.reshape(gz.shape + (1,) * len(shape))
    return conjugate(strong_contraction(np.multiply, gz, as_array(y).reshape(shape)))


def _vdot_y(gz, z, x, y):
    shape = as_array(y).shape
    gz = gz.reshape(gz.shape + (1,) * len(shape))
    return strong_contraction(np.multiply, gz, conjugate(as_array(x)).reshape(shape))


VDOT = structural("vdot", linear="multi", reads=("y", "x"), vjp=(_vdot_x, _vdot_y),
                  samples=[Sample(np.vdot, ((3,), (3,)), complex=True), Sample(np.vdot, ((2, 3), (3, 2)), complex=True)])


@implements(np.vdot)
def vdot(a, b, /):
    a, b = as_operand(a), as_operand(b)
    return record(VDOT, np.vdot(plain_value(a), plain_value(b)), (a, b))


def _outer_x(gz, z, x, y):
    gx = matmul_adjoint_x(gz, as_array(y).reshape((1, z.shape[-1])), (z.shape[-2], 1))
    return gx.reshape(gz.shape[:-2] + as_array(x).shape)


def _outer_y(gz, z, x, y):
    gy = matmul_adjoint_y(as_array(x).reshape((z.shape[-2], 1)), gz, (1, z.shape[-1]))
    return gy.reshape(gz.shape[:-2] + as_array(y).shape)


OUTER = structural("outer", linear="multi", reads=("y", "x"), vjp=(_outer_x, _outer_y),
                   samples=[Sample(np.outer, ((3,), (4,)), complex=True), Sample(np.outer, ((2, 2), ()))])


@implements(np.outer)
def outer(a, b, out=None):
    a, b = as_operand(a), as_operand(b)
    return deliver(record(OUTER, np.outer(plain_value(a), plain_value(b)), (a, b)), out)


@implements(np.linalg.outer)
def linalg_outer(x, y, /):
    x, y = as_operand(x), as_operand(y)
    return record(OUTER, np.linalg.outer(plain_value(x), plain_value(y)), (x, y))
