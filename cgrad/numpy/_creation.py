"""Array creation that a plain `numpy` cannot intercept: it sees no tracked array among its arguments, or only inside lists.

Within a function that is being differentiated, or a GradientTape, new floating arrays are Arrays without a derivative, so that
tracked values can be written into them; elsewhere, and for integers and booleans, they are plain ndarrays. Uses the rules.
"""
import functools

import numpy as np

from .._array import Array
from .._record import constant_here, plain_value, record
from ..rules.creation import copy, filled
from ..rules.joining import STACK, array_of_numbers, concatenate, join
from ..rules.registry import is_array
from ..rules.shape import atleast_1d, reshape


def fresh(made):
    """A new array: an Array that can be written to, while a tape records and if it may hold tracked values."""
    return constant_here(made) if type(made) is np.ndarray and made.dtype.kind in "fc" else made


def current(x):
    """A Variable as what it is on the tape that records; anything else as it is."""
    return x.__cgrad_array__() if hasattr(type(x), "__cgrad_array__") else x


def creating(function):
    """The NumPy function `function`, whose new arrays can be written to."""
    @functools.wraps(function)
    def create(*args, **kwargs):
        return fresh(function(*args, **kwargs))
    create.__module__ = "cgrad.numpy"
    create.__doc__ = f"np.{function.__name__}, whose floating arrays tracked values can be written into."
    return create


zeros, ones, empty, zeros_like, ones_like, empty_like = map(creating, (
    np.zeros, np.ones, np.empty, np.zeros_like, np.ones_like, np.empty_like))
eye, identity, tri, arange, linspace, logspace, geomspace = map(creating, (
    np.eye, np.identity, np.tri, np.arange, np.linspace, np.logspace, np.geomspace))


def full(shape, fill_value, dtype=None, order="C", **kwargs):
    """np.full; a tracked `fill_value` is recorded."""
    fill_value = current(fill_value)
    if is_array(fill_value):
        return filled(np.empty(shape, fill_value.dtype if dtype is None else dtype, order, **kwargs), fill_value)
    return fresh(np.full(shape, fill_value, dtype, order, **kwargs))


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, **kwargs):
    """np.full_like; a tracked `fill_value` is recorded."""
    fill_value = current(fill_value)
    if is_array(fill_value):
        return filled(np.empty_like(plain_value(current(a)), dtype, order, subok, shape, **kwargs), fill_value)
    return fresh(np.full_like(a, fill_value, dtype, order, subok, shape, **kwargs))


# ------------------------------------------------------------------------------------------------ array and its relatives
FOUND, NESTED = 1, 2


def gather(nested, leaves):
    """Append what is in nested lists and tuples to `leaves`. Returns FOUND if an Array is among it, NESTED if a list is."""
    seen = 0
    for item in nested:
        kind = type(item)
        if kind is list or kind is tuple:
            seen |= NESTED | gather(item, leaves)
            continue
        if kind is not float and kind is not np.float64:
            item = current(item)
            if type(item) is Array:
                seen |= FOUND
        leaves.append(item)
    return seen


def unwrapped(nested):
    return [unwrapped(item) if type(item) in (list, tuple) else plain_value(current(item)) for item in nested]


def of_nested(nested, dtype):
    """The array of nested lists with tracked values in them, recorded; None if there are none."""
    leaves = []
    seen = gather(nested, leaves)
    if not seen & FOUND:
        return None
    numbers = array_of_numbers([plain_value(leaf) for leaf in leaves])
    value = np.array(unwrapped(nested), dtype) if numbers is None or seen & NESTED or dtype is not None else numbers
    # the elements of all leaves, one leaf after the other, are those of the array
    if numbers is not None:
        flat = record(STACK, value.reshape(-1), tuple(leaves), {"axis": -1})
    else:
        flat = join(lambda values: value.reshape(-1), leaves, None, 0)
    return flat if value.ndim == 1 or not is_array(flat) else reshape(flat, value.shape)


def converted(x, dtype, copying, order):
    """An Array with NumPy's meaning of dtype=, copy= and order=."""
    given = plain_value(x)
    if copying is False:
        np.array(given, dtype, copy=False, order=order)         # NumPy's own error, if it needs a copy
    if dtype is not None and np.dtype(dtype) != given.dtype:
        return x.astype(dtype, order=order)
    if copying or x.is_scalar or order in ("C", "F") and not given.flags[order + "_CONTIGUOUS"]:
        return copy(x, order)
    return x


def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, **kwargs):
    """np.array; tracked values, also in nested lists, are recorded.

    Parameters
    ----------
    object : array_like
        Numbers, arrays, tracked values, or nested lists and tuples of them.
    dtype, copy, order, subok, ndmin
        As in NumPy.

    Returns
    -------
    Array or ndarray
        An Array where something tracked is in it, and for new floating arrays while a tape records; else a plain ndarray.

    Examples
    --------
    >>> import cgrad, cgrad.numpy as cnp
    >>> cgrad.jacobian(lambda x: cnp.array([x**2, 1.0, 3 * x]))(2.0)
    array([4., 0., 3.])
    """
    object = current(object)
    if is_array(object):
        made = converted(object, dtype, copy, "K" if order is None else order)
    else:
        try:
            made = np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, **kwargs)
            return made if made is object else fresh(made)
        except TypeError:                           # it met something tracked, which refuses to become plain
            made = of_nested(object, dtype) if type(object) in (list, tuple) and object else None
            if made is None:
                raise
            if copy is False:
                np.array([0.0], copy=False)         # NumPy's own error: a list is always copied
        if order in ("C", "F"):
            made = np.copy(made, order)
    return made if made.ndim >= ndmin else reshape(made, (1,) * (ndmin - made.ndim) + made.shape)


def asarray(a, dtype=None, order=None, *, copy=None, **kwargs):
    """np.asarray; tracked values, also in nested lists, are recorded."""
    return array(a, dtype, copy=copy, order=order, **kwargs)


def asanyarray(a, dtype=None, order=None, *, copy=None, **kwargs):
    """np.asanyarray; tracked values, also in nested lists, are recorded."""
    return array(a, dtype, copy=copy, order=order, subok=True, **kwargs)


def ascontiguousarray(a, dtype=None, **kwargs):
    """np.ascontiguousarray; tracked values, also in nested lists, are recorded."""
    return array(a, dtype, copy=None, order="C", ndmin=1, **kwargs)


def asfortranarray(a, dtype=None, **kwargs):
    """np.asfortranarray; tracked values, also in nested lists, are recorded."""
    return array(a, dtype, copy=None, order="F", ndmin=1, **kwargs)


# ------------------------------------------------------------------------------------------------ r_ and c_
class Concatenator:
    """np.r_ or np.c_ that takes tracked values."""

    def __init__(self, plain, ndmin):
        self.plain, self.ndmin = plain, ndmin

    def part(self, item):
        item = self.plain[item] if isinstance(item, slice) else array(item, copy=None)
        if self.ndmin == 1:
            return atleast_1d(item)
        return item if item.ndim > 1 else reshape(item, (-1, 1)) if is_array(item) else item.reshape(-1, 1)

    def __getitem__(self, key):
        items = key if type(key) is tuple else (key,)
        try:
            return fresh(self.plain[key])
        except TypeError:
            if isinstance(items[0], str):
                raise
        return concatenate([self.part(item) for item in items], -1)


r_, c_ = Concatenator(np.r_, 1), Concatenator(np.c_, 2)
