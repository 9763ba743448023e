"""Parts of arrays named by position: take and its kin, diagonals and triangles.

NumPy's function gives the value. Where one index names the same places, what is recorded is the getitem node of that index: its
adjoint adds into the places read, in the buffer of the parent, whatever the size of the parent is.
"""
import numpy as np

from cgrad._parts import part

from .registry import (Inverse, Sample, constant, deliver, implements, is_array, method, plain_value, record,
                       structural)

__all__ = ["blank", "check_index", "index_along", "index_flat", "index_on_axis", "with_axis"]


# ---------------------------------------------------------------------------------------------- indices
def check_index(where, indices):
    """Refuse tracked indices: they are floating, and have no derivative."""
    if is_array(indices):
        raise TypeError(f"{where}: the indices are a tracked {indices.dtype} array; expected plain integers: use "
                        "x.value.astype(int), or np.argsort, np.argmax and comparisons, whose results are plain already")
    return indices


def in_range(indices, size, mode):
    """A copy of the integers `indices`, which NumPy has accepted, as it reads them in `mode` ("raise", "wrap" or "clip")."""
    indices = np.array(indices, np.intp)
    mode = str(mode)[0].lower()
    if mode in ("w", "1"):
        return indices % size
    if mode in ("c", "0"):
        return np.clip(indices, 0, size - 1)
    return indices


def index_on_axis(indices, axis, ndim):
    """The index that reads `indices` along one axis."""
    if np.ndim(indices) == 0:
        indices = int(indices)
    axis = axis % ndim
    return (slice(None),) * axis + (indices,) if axis else indices


def index_flat(positions, shape):
    """The index of elements numbered in C order; negative numbers count from the end."""
    if len(shape) == 1:
        return index_on_axis(positions, 0, 1)
    return np.unravel_index(np.asarray(positions) % max(int(np.prod(shape)), 1), shape)


def index_along(indices, axis, shape):
    """The index that `numpy.take_along_axis` reads at: `indices` along the axis, each one at its own place along the others."""
    indices = np.array(indices, np.intp)
    if axis is None:
        return index_flat(indices, shape)
    ndim = len(shape)
    axis = axis % ndim
    if ndim == 1:
        return indices
    others = [np.arange(n).reshape((-1,) + (1,) * (ndim - 1 - k)) for k, n in enumerate(shape)]
    return tuple(indices if k == axis else other for k, other in enumerate(others))


def with_axis(a):
    """`a`, or a view of one element of it if it is 0-d."""
    return a if a.ndim else np.reshape(a, 1)


def blank(like, shape):
    """Zeros of the dtype of an adjoint, recorded if it is."""
    zeros = np.zeros(shape, like.dtype)
    return constant(zeros, like) if is_array(like) else zeros


# ---------------------------------------------------------------------------------------------- take and its kin
@implements(np.take)
@method("take")
def take(a, indices, axis=None, out=None, mode="raise"):
    """np.take."""
    check_index("take", indices)
    result = np.take(plain_value(a), indices, axis, None, mode)
    if is_array(a):
        a = with_axis(a)
        size = a.size if axis is None else a.shape[axis]
        positions = in_range(indices, size, mode)
        index = index_flat(positions, a.shape) if axis is None else index_on_axis(positions, axis, a.ndim)
        result = part(a, index, result)
    return deliver(result, out)


@implements(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    """np.take_along_axis."""
    check_index("take_along_axis", indices)
    value = np.take_along_axis(plain_value(arr), indices, axis)
    arr = with_axis(arr)
    return part(arr, index_along(indices, axis, arr.shape), value)


@implements(np.compress)
def compress(condition, a, axis=None, out=None):
    """np.compress."""
    condition = plain_value(condition)
    value = np.compress(condition, plain_value(a), axis)
    if not is_array(a):
        return deliver(value, out)
    return deliver(take(a, np.flatnonzero(condition), axis), out)


@method("compress")
def compress_method(self, condition, axis=None, out=None):
    """ndarray.compress."""
    return compress(condition, self, axis, out)


@implements(np.extract)
def extract(condition, arr):
    """np.extract."""
    condition = np.ravel(plain_value(condition))
    return take(arr, np.flatnonzero(condition))


# ---------------------------------------------------------------------------------------------- diagonals
def diagonal_places(k, rows, columns):
    """Rows and columns of the k-th diagonal."""
    i = np.arange(max(min(rows, columns - k) if k >= 0 else min(rows + k, columns), 0))
    return (i, i + k) if k >= 0 else (i - k, i)


def onto_diagonal(gz, z, x, *, offset, axis1, axis2):
    """Zeros of the shape of x with gz on its diagonal: the transpose of reading it."""
    lead = gz.shape[:gz.ndim - z.ndim]
    rest = [n for k, n in enumerate(x.shape, -x.ndim) if k not in (axis1, axis2)]
    matrices = blank(gz, (*lead, *rest, x.shape[axis1], x.shape[axis2]))
    matrices[(..., *diagonal_places(offset, x.shape[axis1], x.shape[axis2]))] = gz
    return matrices if (axis1, axis2) == (-2, -1) else np.moveaxis(matrices, (-2, -1), (axis1, axis2))


# NumPy's diagonal is a read-only view: it follows its array, and a write to it is refused
DIAGONAL = structural("diagonal", vjp=(onto_diagonal,), linear=True,
                      inverse=Inverse(lambda base, **params: diagonal(base, **params), None),
                      samples=[Sample(np.diagonal, ((3, 4),), complex=True),
                               Sample(np.diagonal, ((2, 3, 4),), kwargs=dict(offset=-1, axis1=-1, axis2=0))])


@implements(np.diagonal)
@method("diagonal")
def diagonal(a, offset=0, axis1=0, axis2=1):
    """np.diagonal."""
    value = np.diagonal(plain_value(a), offset, axis1, axis2)
    ndim = a.ndim
    return record(DIAGONAL, value, (a,), dict(offset=offset, axis1=axis1 % ndim - ndim, axis2=axis2 % ndim - ndim), a)


@implements(np.linalg.diagonal)
def matrix_diagonal(x, /, *, offset=0):
    """np.linalg.diagonal."""
    return diagonal(x, offset, -2, -1)


DIAG = structural("diag", vjp=(lambda gz, z, v, *, k: np.diagonal(gz, k, -2, -1),), linear=True,
                  samples=[Sample(np.diag, ((4,),), complex=True), Sample(np.diag, ((3,),), kwargs=dict(k=-2))])


@implements(np.diag)
def diag(v, k=0):
    """np.diag: the diagonal of a matrix, or a matrix of a diagonal."""
    if v.ndim == 2:
        return diagonal(v, k)
    return record(DIAG, np.diag(plain_value(v), k), (v,), dict(k=k))


@implements(np.diagflat)
def diagflat(v, k=0):
    """np.diagflat."""
    return diag(np.reshape(v, -1), k)


# ---------------------------------------------------------------------------------------------- triangles
TRIL = structural("tril", vjp=(lambda gz, z, m, *, k: np.tril(gz, k),), linear=True,
                  samples=[Sample(np.tril, ((3, 4),), complex=True), Sample(np.tril, ((2, 3, 3),), kwargs=dict(k=-1))])
TRIU = structural("triu", vjp=(lambda gz, z, m, *, k: np.triu(gz, k),), linear=True,
                  samples=[Sample(np.triu, ((3, 4),), complex=True), Sample(np.triu, ((2, 3, 3),), kwargs=dict(k=1))])


@implements(np.tril)
def tril(m, k=0):
    """np.tril."""
    return record(TRIL, np.tril(plain_value(m), k), (m,), dict(k=k))


@implements(np.triu)
def triu(m, k=0):
    """np.triu."""
    return record(TRIU, np.triu(plain_value(m), k), (m,), dict(k=k))
