"""Rules of shapes: reshape, transpose, broadcast_to, roll and their relatives.

Reversals and rotations are basic indexing, so that they are views as in NumPy. Uses `registry`; used by `joining`, `padding`,
`creation` and `cgrad.numpy`.
"""
from functools import lru_cache

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .registry import (Inverse, Sample, copy_of, implements, is_array, method, plain_function, plain_value, prop, record,
                       structural)

ALL = slice(None)
REVERSED = slice(None, None, -1)


def array_of(x):
    """The value of x as what has ndarray's methods: a Python float as the array that NumPy's functions make of it."""
    value = plain_value(x)
    return np.array(value) if type(value) is float else value


def is_view(value, given):
    """Whether NumPy's result `value` is a view of the ndarray it was `given`, or that itself, not a copy."""
    base = value.base
    return value is given or base is not None and (base is given or base is given.base)


def lead_of(gz, z):
    """The further axes that the adjoints of a batched sweep have in front."""
    return gz.shape[:gz.ndim - z.ndim]


# ------------------------------------------------------------------------------------------------ reshape
def mirrored(g, ndim):
    """`g` with its last `ndim` axes in reverse order."""
    front = g.ndim - ndim
    return g.transpose((*range(front), *range(g.ndim - 1, front - 1, -1)))


def reshape_vjp(gz, z, x, *, shape, order="C"):
    if order == "C" and gz.ndim == z.ndim:
        return gz.reshape(x.shape)
    lead = lead_of(gz, z)
    if order == "C" or not lead:
        return gz.reshape(lead + x.shape, order=order)
    # Fortran order is C order of the mirrored axes; those in front stay where they are
    return mirrored(mirrored(gz, z.ndim).reshape(lead + x.shape[::-1]), x.ndim)


RESHAPE = structural(
    "reshape", vjp=(reshape_vjp,), linear=True,
    inverse=Inverse(lambda base, *, shape, order="C": reshape(base, shape, order),
                    lambda view, base_shape, *, shape, order="C": reshape(view, base_shape, order)),
    samples=[Sample(lambda x: np.reshape(x, (3, 4)), ((2, 6),), complex=True),
             Sample(lambda x: np.reshape(x, (4, 3), order="F"), ((2, 3, 2),)),
             Sample(np.ravel, ((2, 3),)), Sample(np.squeeze, ((1, 3, 1),)),
             Sample(np.expand_dims, ((3,),), kwargs=dict(axis=(0, 2)))])


def reshaped(x, given, value, order="C"):
    """Record that NumPy made `value` of `given`, the value of x, with the same elements in the same order."""
    if not isinstance(value, np.ndarray):           # a NumPy scalar, which stays one
        return x
    view_of = None
    if is_view(value, given) and not x.is_scalar:
        if value.shape == given.shape:
            return x
        view_of = x
    params = {"shape": value.shape} if order == "C" else {"shape": value.shape, "order": order}
    return record(RESHAPE, value, (x,), params, view_of)


def c_or_f(order, value):
    """Which of the two orders of reading an array NumPy means by "C", "F" or "A"."""
    letter = order.upper() if isinstance(order, str) else "C"
    return "F" if letter == "F" or letter == "A" and value.flags.fnc else "C"


@implements(np.reshape)
def reshape(a, shape=None, order="C", **kwargs):
    given = array_of(a)
    if kwargs:                                      # copy=, and newshape= of NumPy before 2.4
        value = np.reshape(given, *(() if shape is None else (shape,)), order=order, **kwargs)
    else:
        value = given.reshape(shape, order=order)
    return reshaped(a, given, value, "C" if order == "C" else c_or_f(order, given))


@method("reshape")
def reshape_method(self, *shape, order="C", **kwargs):
    given = array_of(self)
    value = given.reshape(*shape, order=order, **kwargs)
    return reshaped(self, given, value, "C" if order == "C" else c_or_f(order, given))


def memory_order(value):
    """The axes from the slowest to the fastest in memory, as the K of NumPy's order= has them.

    By falling stride, whatever its sign; an axis that does not move in memory keeps its place among the others.
    """
    strides = [abs(stride) if n > 1 else 0 for stride, n in zip(value.strides, value.shape)]
    fastest_first = []
    for axis in reversed(range(value.ndim)):
        at = len(fastest_first)
        for k in reversed(range(at)):
            other = strides[fastest_first[k]]
            if strides[axis] and other:
                if other <= strides[axis]:
                    break
                at = k
        fastest_first.insert(at, axis)
    return fastest_first[::-1]


@implements(np.ravel)
@method("ravel")
def ravel(a, order="C"):
    given = array_of(a)
    if order in ("K", "k") and not given.flags.forc:
        return ravel(transpose(a, memory_order(given)))
    if order in ("K", "k"):
        order = "A"
    return reshaped(a, given, given.ravel(order), c_or_f(order, given))


@method("flatten")
def flatten(self, order="C"):
    given = array_of(self)
    if order in ("K", "k"):
        flat = ravel(self, "K")
        return record(RESHAPE, plain_value(flat).copy(), (flat,), {"shape": flat.shape})
    return reshaped(self, given, given.flatten(order), c_or_f(order, given))


@implements(np.squeeze)
@method("squeeze")
def squeeze(a, axis=None):
    given = array_of(a)
    return reshaped(a, given, given.squeeze(axis))


@implements(np.expand_dims)
def expand_dims(a, axis):
    given = array_of(a)
    ndim = given.ndim
    if type(axis) is int and -ndim - 1 <= axis <= ndim:         # the same, without NumPy's general treatment of axes
        at = axis if axis >= 0 else axis + ndim + 1
        return reshaped(a, given, given.reshape(given.shape[:at] + (1,) + given.shape[at:]))
    return reshaped(a, given, np.expand_dims(given, axis))


def at_least(function):
    """Handler of one of np.atleast_1d, np.atleast_2d, np.atleast_3d."""
    def one(a):
        given = array_of(a)
        value = function(given)
        if value is given:
            return a
        return reshaped(a, given, value) if is_array(a) else value

    def handler(*arys):
        return one(arys[0]) if len(arys) == 1 else tuple(map(one, arys))
    return implements(function)(handler)


atleast_1d, atleast_2d, atleast_3d = map(at_least, (np.atleast_1d, np.atleast_2d, np.atleast_3d))


# ------------------------------------------------------------------------------------------------ transpose
@lru_cache(maxsize=512)
def inverse_axes(axes, front=0):
    """The permutation that undoes `axes` (negative numbers) on the last axes and leaves `front` ones before them alone."""
    ndim = len(axes)
    back = [0] * ndim
    for at, axis in enumerate(axes):
        back[axis] = front + at
    return (*range(front), *back)


TRANSPOSE = structural(
    "transpose", vjp=(lambda gz, z, x, *, axes: gz.transpose(inverse_axes(axes, gz.ndim - len(axes))),), linear=True,
    inverse=Inverse(lambda base, *, axes: transpose(base, axes),
                    lambda view, base_shape, *, axes: transpose(view, inverse_axes(axes))),
    samples=[Sample(np.transpose, ((2, 3),), complex=True), Sample(np.transpose, ((2, 3, 4),), kwargs=dict(axes=(2, 0, 1))),
             Sample(np.swapaxes, ((2, 3, 4),), kwargs=dict(axis1=0, axis2=-1)),
             Sample(np.moveaxis, ((2, 3, 4),), kwargs=dict(source=(0, 1), destination=(-1, 0)))])


@lru_cache(maxsize=64)
def forwards(ndim):
    return tuple(range(-ndim, 0))


def transposed(x, value, axes):
    """Record NumPy's `value` of x with its axes permuted."""
    if axes == forwards(len(axes)):
        return copy_of(x) if x.is_scalar and isinstance(value, np.ndarray) else x
    return record(TRANSPOSE, value, (x,), {"axes": axes}, x)


@implements(np.transpose)
def transpose(a, axes=None):
    if axes is None:
        return transpose_property(a)
    given = array_of(a)
    ndim = given.ndim
    return transposed(a, given.transpose(axes), tuple([k if k < 0 else k - ndim for k in axes]))


@method("transpose")
def transpose_method(self, *axes):
    if not axes:
        return transpose(self)
    return transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)) else axes)


@prop("T")
def transpose_property(self):
    value = array_of(self).T
    return transposed(self, value, forwards(value.ndim)[::-1])


def permuted(function):
    """Handler of a NumPy function that permutes axes."""
    def handler(a, *args, **kwargs):
        # the shape of an array whose axes are as long as their numbers is the permutation, and holds nothing
        return transpose(a, function(np.empty(range(np.ndim(plain_value(a)))), *args, **kwargs).shape)
    return implements(function)(handler)


permuted(np.moveaxis)
permuted(np.rollaxis)
permuted(np.matrix_transpose)


@implements(np.swapaxes)
@method("swapaxes")
def swapaxes(a, axis1, axis2):
    value = array_of(a).swapaxes(axis1, axis2)
    axes = list(forwards(value.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return transposed(a, value, tuple(axes))


@prop("mT")
def matrix_transpose_property(self):
    value = array_of(self).mT
    return transposed(self, value, forwards(value.ndim)[:-2] + (-1, -2))


# ------------------------------------------------------------------------------------------------ broadcasting
# the sweep itself adds up along the axes that were stretched
BROADCAST_TO = structural(
    "broadcast_to", vjp=(lambda gz, z, x, *, shape: gz,), linear=True,
    inverse=Inverse(lambda base, *, shape: broadcast_to(base, shape), None),
    samples=[Sample(np.broadcast_to, ((3, 1),), kwargs=dict(shape=(2, 3, 4)), complex=True),
             Sample(lambda x, y: np.meshgrid(x, y)[0] * y[0], ((3,), (4,)))])


@implements(np.broadcast_to)
def broadcast_to(array, shape, subok=False):
    value = np.broadcast_to(plain_value(array), shape)
    return record(BROADCAST_TO, value, (array,), {"shape": value.shape}, array)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args, subok=False):
    values = np.broadcast_arrays(*map(plain_value, args), subok=subok)
    return tuple([v if not is_array(a) else a if a.shape == v.shape and not a.is_scalar else broadcast_to(a, v.shape)
                  for a, v in zip(args, values)])


@implements(np.meshgrid)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    values = np.meshgrid(*map(plain_value, xi), copy=copy, sparse=sparse, indexing=indexing)
    ndim = len(xi)
    results = []
    for at, (x, value) in enumerate(zip(xi, values)):
        if not is_array(x):
            results.append(value)
            continue
        axis = 1 - at if indexing == "xy" and ndim > 1 and at < 2 else at
        row = reshape(x, (1,) * axis + (-1,) + (1,) * (ndim - axis - 1))
        if copy:
            results.append(record(BROADCAST_TO, value, (row,), {"shape": value.shape}))
        else:
            results.append(row if sparse else broadcast_to(row, value.shape))
    return type(values)(results)


# ------------------------------------------------------------------------------------------------ reversals, rotations, shifts
@implements(np.flip)
def flip(m, axis=None):
    if axis is None:
        return m[(REVERSED,) * m.ndim]
    axes = normalize_axis_tuple(axis, m.ndim)
    return m[tuple([REVERSED if k in axes else ALL for k in range(m.ndim)])]


@implements(np.flipud)
def flipud(m):
    if m.ndim < 1:
        np.flipud(plain_value(m))                   # NumPy's own error
    return m[REVERSED]


@implements(np.fliplr)
def fliplr(m):
    if m.ndim < 2:
        np.fliplr(plain_value(m))
    return m[:, REVERSED]


@implements(np.rot90)
def rot90(m, k=1, axes=(0, 1)):
    np.rot90(np.broadcast_to(0, m.shape), k, axes)  # NumPy's own errors
    first, second = axes
    k %= 4
    if k == 0:
        return m[:]
    if k == 2:
        return flip(m, axes)
    return np.swapaxes(flip(m, second), first, second) if k == 1 else flip(np.swapaxes(m, first, second), second)


def roll_vjp(gz, z, x, *, shift, axis):
    back = tuple([-s for s in shift])
    if axis is not None:
        return np.roll(gz, back, axis)
    lead = lead_of(gz, z)
    return np.roll(gz.reshape((*lead, x.size)), sum(back), -1).reshape(lead + x.shape)


ROLL = structural(
    "roll", vjp=(roll_vjp,), linear=True,
    samples=[Sample(np.roll, ((2, 3),), kwargs=dict(shift=2), complex=True),
             Sample(np.roll, ((3, 4),), kwargs=dict(shift=(1, -2), axis=(0, 1)))])


@implements(np.roll)
def roll(a, shift, axis=None):
    given = array_of(a)
    value = np.roll(given, shift, axis)
    if type(shift) is int and type(axis) is int:
        shifts, axis = (shift,), (axis if axis < 0 else axis - value.ndim,)
    elif axis is None:
        shifts = tuple(np.ravel(shift).tolist())
    else:
        axes = normalize_axis_tuple(axis, value.ndim, allow_duplicate=True)
        shifts, axes = np.broadcast_arrays(shift, axes)
        shifts, axis = tuple(shifts.ravel().tolist()), tuple((axes.ravel() - value.ndim).tolist())
    return record(ROLL, value, (a,), {"shift": shifts, "axis": axis})


# ------------------------------------------------------------------------------------------------ questions about shapes
@implements(np.shape)
def shape(a):
    return a.shape


@implements(np.ndim)
def ndim(a):
    return a.ndim


@implements(np.size)
def size(a, axis=None):
    return a.size if axis is None else np.size(plain_value(a), axis)


plain_function(np.ix_, np.diag_indices_from, np.tril_indices_from, np.triu_indices_from, np.shares_memory, np.may_share_memory)
