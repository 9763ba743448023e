"""Elementwise choice between arrays by a plain condition: where, select, choose, piecewise, clip, nan_to_num.

What is not chosen gets an adjoint of exactly 0, whatever it or its slope is.
"""
import numpy as np

from cgrad import _kernels as k
from cgrad._array import refuse

from .keywords import mask_of
from .registry import (Sample, constant, deliver, implements, is_array, method, overwrite, plain_tree, plain_value, record,
                       structural, tracked)
from .selection import check_index

__all__ = ["only"]


def only(mask, g):
    """`g` where the plain `mask` is true, else exactly 0, even of an infinite g."""
    if g.dtype.kind == "c":
        return np.where(mask, g, 0)
    # by far faster than np.where, whose loop branches at each element
    return k.strong_multiply(mask, g)


# ---------------------------------------------------------------------------------------------- where
WHERE = structural("where", linear=True, vjp=(lambda gz, z, x, y, *, condition: only(condition, gz),
                                              lambda gz, z, x, y, *, condition: only(~condition, gz)),
                   samples=[Sample(lambda x, y: np.where([True, False, True], x, y), ((2, 3), (3,)), complex=True),
                            Sample(lambda x, y: np.where(x > 0, x * y, np.sin(x)), ((3,), (2, 1)))])


@implements(np.where)
def where(condition, *branches):
    """np.where."""
    condition = plain_value(condition)
    value = np.where(condition, *map(plain_value, branches))
    if not branches:
        return value
    return record(WHERE, value, branches, dict(condition=np.array(condition, bool)))


# ---------------------------------------------------------------------------------------------- one of many
CHOOSE = structural("choose", vjp=lambda i, gz, z, *choices, index: only(index == i, gz), linear=True,
                    samples=[Sample(lambda x, y, z: np.choose([2, 0, 1], [x, y, z]), ((3,), (2, 3), (2, 1)), complex=True),
                             Sample(lambda x, y: np.select([x > 1, x > 0], [x * y, y], x), ((2, 3), (3,)))])


@implements(np.choose)
def choose(a, choices, out=None, mode="raise"):
    """np.choose."""
    check_index("choose", a)
    value = np.choose(a, plain_tree(choices), mode=mode)
    # an array of choices is a sequence of them along its first axis
    choices = tuple(choices)
    index = np.array(a, np.intp)
    if mode == "wrap":
        index %= len(choices)
    elif mode == "clip":
        index = np.clip(index, 0, len(choices) - 1)
    return deliver(record(CHOOSE, value, choices, dict(index=index)), out)


@method("choose")
def choose_method(self, choices, out=None, mode="raise"):
    """ndarray.choose: its array is the index, which a tracked array never is."""
    return choose(self, choices, out, mode)


@implements(np.select)
def select(condlist, choicelist, default=0):
    """np.select."""
    condlist = plain_tree(list(condlist))
    choicelist = list(choicelist)
    value = np.select(condlist, plain_tree(choicelist), plain_value(default))
    index = np.select(condlist, range(len(condlist)), len(condlist))
    return record(CHOOSE, value, (*choicelist, default), dict(index=index))


@implements(np.piecewise)
def piecewise(x, condlist, funclist, *args, **kw):
    """np.piecewise; the functions are called on the tracked parts of x."""
    if not is_array(x):
        return np.piecewise(x, plain_tree(condlist), funclist, *args, **kw)
    condlist = plain_tree(condlist)
    alone = np.isscalar(condlist) or (x.ndim and not isinstance(condlist[0], (list, np.ndarray)))
    conditions = list(np.asarray([condlist] if alone else condlist, bool))
    if len(conditions) == len(funclist) - 1:
        conditions.append(~np.any(conditions, axis=0))
    elif len(conditions) != len(funclist):
        raise ValueError(f"piecewise: got {len(funclist)} functions for {len(conditions)} condition(s); expected as many, or "
                         "one more for all other places")
    result = constant(np.zeros_like(plain_value(x)), x)
    for condition, function in zip(conditions, funclist):
        if not callable(function):
            result[condition] = function
        else:
            chosen = x[condition]
            if chosen.size:
                result[condition] = function(chosen, *args, **kw)
    return result


# ---------------------------------------------------------------------------------------------- clip
def inside(x, low, high):
    """Where x lies between its bounds or on them; they may be None. False for NaN."""
    if low is None:
        return x <= high
    return low <= x if high is None else (low <= x) & (x <= high)


def above(x, low, high, z):
    """Where the upper bound is the result: it wins against a lower bound above it."""
    if high is None:
        return False
    mask = x > high
    if low is not None:
        mask = mask | (low > high)
    return mask & (z == z)


def below(x, low, high, z):
    """Where the lower bound is the result."""
    return (x < low) & (z == z) & ~np.asarray(above(x, low, high, z))


CLIP = structural("clip", reads=("*", "*z", "*z"),
                  vjp=(lambda gz, z, x, low, high: only(inside(x, low, high), gz),
                       lambda gz, z, x, low, high: only(below(x, low, high, z), gz),
                       lambda gz, z, x, low, high: only(above(x, low, high, z), gz)),
                  samples=[Sample(lambda x: np.clip(x, -1, 1), ((2, 5),)), Sample(lambda x: np.clip(x, None, 0.5), ((5,),)),
                           Sample(np.clip, ((4, 3), (3,), (4, 1)), domain=((-2, 2), (-1.2, -0.4), (0.4, 1.2)))])


@implements(np.clip)
def clip(a, a_min=np._NoValue, a_max=np._NoValue, out=None, *, min=np._NoValue, max=np._NoValue, where=True, **kwargs):
    """np.clip."""
    # min= and max= came with NumPy 2.1; only what was given is passed on, and NumPy says what is wrong with it
    bounds = [plain_value(a_min), plain_value(a_max)]
    while bounds and bounds[-1] is np._NoValue:
        bounds.pop()
    named = {name: plain_value(b) for name, b in (("min", min), ("max", max)) if b is not np._NoValue}
    value = np.clip(plain_value(a), *bounds, **named, **kwargs)
    low, high = (None if bound is np._NoValue else bound
                 for bound in (min if a_min is np._NoValue else a_min, max if a_max is np._NoValue else a_max))
    if low is None and high is None:
        result = +a
    else:
        result = record(CLIP, value, (a, low, high))
    if where is not True:
        result = np.where(mask_of(where), result, 0 if out is None else out)
    return deliver(result, out)


@method("clip")
def clip_method(self, min=None, max=None, out=None, **kwargs):
    """ndarray.clip."""
    return clip(self, min, max, out, **kwargs)


# ---------------------------------------------------------------------------------------------- nan_to_num
def finite_part(gz, z, x, *, finite, finite_imag=None):
    """gz where x was kept; real and imaginary parts are replaced one without the other."""
    if finite_imag is None:
        return only(finite, gz)
    return only(finite, np.real(gz)) + 1j * only(finite_imag, np.imag(gz))


NAN_TO_NUM = structural("nan_to_num", vjp=(finite_part,), samples=[Sample(np.nan_to_num, ((3,),), complex=True)])


@implements(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """np.nan_to_num."""
    for name, number in (("nan", nan), ("posinf", posinf), ("neginf", neginf)):
        if tracked(number):
            raise refuse(f"nan_to_num: {name}=", "Write np.where(np.isfinite(x), x, number).")
    plain = plain_value(x)
    value = np.nan_to_num(plain, nan=plain_value(nan), posinf=plain_value(posinf), neginf=plain_value(neginf))
    if plain.dtype.kind == "c":
        params = dict(finite=np.isfinite(plain.real), finite_imag=np.isfinite(plain.imag))
    else:
        params = dict(finite=np.isfinite(plain))
    result = record(NAN_TO_NUM, value, (x,), params)
    if not copy:
        overwrite(x, result)
        return x
    return result
