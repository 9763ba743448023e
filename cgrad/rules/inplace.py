"""Functions that write into an array: put, place, copyto, fill_diagonal, ufunc.at and the like.

They are assignments, and record as such. A plain array cannot take tracked values: its gradient would be lost.
"""
import numpy as np

from cgrad._indices import places, read_rows
from cgrad._parts import own

from .keywords import mask_of
from .registry import (Sample, implements, is_array, method, overwrite, plain_tree, plain_value, record, structural,
                       tracked, ufunc_method)
from .selection import check_index, in_range, index_along, index_flat, with_axis

__all__ = ["cycled"]


def onto_plain(function, target, *args, **kwargs):
    """`function` on a target that is not tracked."""
    if any(map(tracked, args)):
        owner = getattr(function, "__self__", None)
        name = f"{owner.__name__}.{function.__name__}" if isinstance(owner, np.ufunc) else function.__name__
        raise TypeError(f"np.{name}: the array to write to is a plain {type(target).__name__}, and the tracked values stored "
                        "in it would lose their gradient; make it with np.zeros_like(x) of a tracked x, or with "
                        "cgrad.numpy.zeros(shape)")
    return function(target, *map(plain_value, args), **plain_tree(kwargs))


def cycled(values, positions):
    """values.ravel()[positions], beginning again at the end."""
    values = np.reshape(values, -1) if is_array(values) else np.ravel(values)
    return values[positions % values.shape[0]]


# ---------------------------------------------------------------------------------------------- put and its kin
@implements(np.put)
def put(a, ind, v, mode="raise"):
    """np.put."""
    check_index("put", ind)
    if not is_array(a):
        return onto_plain(np.put, a, ind, v, mode=mode)
    positions = in_range(ind, a.size, mode).reshape(-1)
    if np.size(plain_value(v)) == 0 or positions.size == 0:
        return
    outside = (positions < -a.size) | (positions >= a.size)
    if outside.any():
        raise IndexError(f"index {positions[outside][0]} is out of bounds for axis 0 with size {a.size}")
    a = with_axis(a)
    a[index_flat(positions, a.shape)] = cycled(v, np.arange(positions.size))


@method("put")
def put_method(self, indices, values, mode="raise"):
    """ndarray.put."""
    put(self, indices, values, mode)


@implements(np.put_along_axis)
def put_along_axis(arr, indices, values, axis):
    """np.put_along_axis."""
    check_index("put_along_axis", indices)
    if not is_array(arr):
        return onto_plain(np.put_along_axis, arr, indices, values, axis)
    np.take_along_axis(np.empty(arr.shape, bool), indices, axis)        # NumPy's own errors
    arr = with_axis(arr)
    arr[index_along(indices, axis, arr.shape)] = values


@implements(np.putmask)
def putmask(a, /, mask, values):
    """np.putmask."""
    if not is_array(a):
        return onto_plain(np.putmask, a, mask, values)
    mask = np.asarray(plain_value(mask), bool)
    if mask.size != a.size:
        raise ValueError(f"putmask: mask and data must be the same size; got {mask.size} and {a.size}")
    positions = np.flatnonzero(mask)
    if np.size(plain_value(values)):
        a[mask.reshape(a.shape)] = cycled(values, positions) if np.ndim(plain_value(values)) else values


@implements(np.place)
def place(arr, mask, vals):
    """np.place."""
    if not is_array(arr):
        return onto_plain(np.place, arr, mask, vals)
    mask = np.asarray(plain_value(mask), bool)
    if mask.size != arr.size:
        raise ValueError(f"place: mask and data must be the same size; got {mask.size} and {arr.size}")
    count = np.count_nonzero(mask)
    if not count:
        return
    if np.size(plain_value(vals)) == 0:
        raise ValueError("place: cannot insert from an empty array")
    arr[mask.reshape(arr.shape)] = cycled(vals, np.arange(count))


@implements(np.copyto)
def copyto(dst, src, casting="same_kind", where=True):
    """np.copyto."""
    if not is_array(dst):
        return onto_plain(np.copyto, dst, src, casting=casting, where=where)
    plain = plain_value(src)
    # a number may be stored wherever its kind may; the value itself is not looked at
    given = np.asarray(plain).dtype if not isinstance(plain, (int, float, complex)) else np.result_type(plain, dst.dtype)
    if not np.can_cast(given, dst.dtype, casting):
        raise TypeError(f"copyto: cannot cast {given} to {dst.dtype} according to the rule {casting!r}")
    if where is True:
        dst[...] = src
        return
    mask = np.broadcast_to(mask_of(where), dst.shape)
    dst[mask] = np.broadcast_to(src, dst.shape)[mask] if np.ndim(plain) else src


@implements(np.fill_diagonal)
def fill_diagonal(a, val, wrap=False):
    """np.fill_diagonal."""
    if a.ndim < 2:
        raise ValueError("fill_diagonal: array must be at least 2-d")
    if a.ndim == 2:
        step, end = a.shape[1] + 1, a.size if wrap else a.shape[1]**2
    elif len(set(a.shape)) > 1:
        raise ValueError("fill_diagonal: all dimensions of an array of more than 2 must be of equal length")
    else:
        step, end = 1 + int(np.cumprod(a.shape[:-1]).sum()), a.size
    positions = np.arange(0, min(end, a.size), step)
    a[index_flat(positions, a.shape)] = cycled(val, np.arange(positions.size))


@method("fill")
def fill(self, value):
    """ndarray.fill."""
    if np.ndim(plain_value(value)):
        raise ValueError(f"fill: the value has shape {np.shape(plain_value(value))}; expected a number")
    self[...] = value


# ---------------------------------------------------------------------------------------------- ufunc.at
def read_at(gz, index, ndim):
    """gz[..., index], of an adjoint that may have leading axes."""
    return read_rows(gz, index, gz.ndim - ndim) if gz.ndim > ndim else gz[index]


ADD_AT = structural("add_at", linear=True,
                    vjp=(lambda gz, z, into, b, *, index, sign: gz,
                         lambda gz, z, into, b, *, index, sign: sign * read_at(gz, index, z.ndim)),
                    samples=[Sample(lambda x, y: added(np.add, x, [0, 0, 2], y), ((3,), (3,)), complex=True),
                             Sample(lambda x, y: added(np.subtract, x, (slice(None), [1, 1]), y), ((2, 3), (2, 1)))])


def added(ufunc, x, index, y):
    """ufunc.at on a copy of x."""
    z = +x
    ufunc.at(z, index, y)
    return z


def add_at(ufunc, sign):
    """Records np.add.at and np.subtract.at: linear, so one node does, however often a place is named."""
    @ufunc_method(ufunc, "at")
    def handler(a, indices, b, /):
        if not is_array(a):
            return onto_plain(ufunc.at, a, indices, b)
        index = frozen(indices)
        buffer = own(a)
        ufunc.at(buffer, index, plain_value(b))
        overwrite(a, record(ADD_AT, buffer, (a, b), dict(index=index, sign=sign)))


@ufunc_method(None, "at")
def at(ufunc, a, indices, *operands):
    """ufunc.at of any other elementwise ufunc: assignments to places of which none is named twice."""
    if not is_array(a):
        return onto_plain(ufunc.at, a, indices, *operands)
    index = frozen(indices)
    named = places(a.shape, index)
    rounds = list(distinct(named.reshape(-1)))
    if len(rounds) == 1:
        a[index] = ufunc(a[index], *operands)
        return
    operands = [np.reshape(np.broadcast_to(b, named.shape), -1) if np.ndim(plain_value(b)) else b for b in operands]
    for chosen in rounds:
        index = index_flat(named.reshape(-1)[chosen], a.shape)
        now = [b[chosen] if np.ndim(plain_value(b)) else b for b in operands]
        a[index] = ufunc(a[index], *now)


def distinct(positions):
    """Positions of the first occurrences of all numbers, then of the second ones, and so on."""
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][:len(ordered)])
    occurrence = np.empty_like(order)
    occurrence[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    for count in range(int(occurrence.max(initial=0)) + 1):
        yield np.flatnonzero(occurrence == count)


def frozen(indices):
    """A copy of the indices, tracked ones refused."""
    if isinstance(indices, tuple):
        return tuple(map(frozen, indices))
    check_index("ufunc.at", indices)
    if not isinstance(indices, (list, np.ndarray)):
        return indices
    return np.array(indices) if np.size(indices) else np.array(indices, getattr(indices, "dtype", np.intp))


add_at(np.add, 1)
add_at(np.subtract, -1)
