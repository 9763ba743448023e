"""np.pad. Its modes differ in where the margin comes from, and so does the rule.

From nowhere (constant, empty), from chosen elements (edge, reflect, symmetric, wrap), from those and multiples of the two edges
(linear_ramp, odd reflections), from all (mean). What comes from where NumPy says itself, given numbers or unit vectors to pad.
Modes that choose by value (maximum, minimum, median) are composed of the functions that NumPy calls. Uses `registry`, `shape`
and `joining`.
"""
from functools import lru_cache

import numpy as np

from .joining import along, concatenate
from .registry import Sample, implements, is_array, plain_value, record, structural
from .shape import broadcast_to, ravel

CHOOSING_VALUES = {"maximum": np.max, "minimum": np.min, "median": np.median}


def interior(g, axis, before, length):
    return g[along(axis, slice(before, before + length))]


def runs(places):
    """Stretches of consecutive `places` that keep their step: (start, stop, step)."""
    start, count = 0, len(places)
    while start < count:
        stop = start + 1
        step = places[stop] - places[start] if stop < count else 0
        while stop < count and places[stop] - places[stop - 1] == step:
            stop += 1
        yield start, stop, step
        start = stop


def fold_chosen(g, axis, before, length, places):
    """Undo a margin of copies along one axis: add each element of it to the one it is a copy of."""
    folded = interior(g, axis, before, length).copy()
    for first, chosen in ((0, places[:before]), (before + length, places[before + length:])):
        for start, stop, step in runs(chosen):
            part = g[along(axis, slice(first + start, first + stop))]
            low, high = sorted((chosen[start], chosen[stop - 1]))
            if step == 0 and stop - start > 1:
                part = part.sum(axis=axis, keepdims=True)
            elif step < 0:
                part = np.flip(part, axis)
            into = along(axis, slice(low, high + 1, max(abs(step), 1)))
            folded[into] = folded[into] + part
    return folded


def column(weights, axis):
    """A vector, shaped to multiply along `axis`, a negative number."""
    return weights.reshape((-1,) + (1,) * (-axis - 1))


def fold_edges(g, axis, before, length, places, signs, first, last):
    """Undo a margin of signed copies plus multiples `first` and `last` of the two edges."""
    folded = fold_chosen(g * column(signs, axis), axis, before, length, places)
    for margin in (slice(before), slice(before + length, None)):
        part = g[along(axis, margin)]
        for edge, weights in ((slice(1), first), (slice(-1, None), last)):
            into = along(axis, edge)
            folded[into] = folded[into] + (part * column(weights[margin], axis)).sum(axis=axis, keepdims=True)
    return folded


def fold_mean(g, axis, before, length, counts):
    """Undo a margin of means over the first and the last `counts` elements."""
    folded = interior(g, axis, before, length).copy()
    for margin, chosen, count in ((slice(before), slice(counts[0]), counts[0]),
                                  (slice(before + length, None), slice(length - counts[1], None), counts[1])):
        into = along(axis, chosen)
        folded[into] = folded[into] + g[along(axis, margin)].sum(axis=axis, keepdims=True) / count
    return folded


FOLDS = {"nowhere": interior, "places": fold_chosen, "edges": fold_edges, "mean": fold_mean}


def pad_vjp(gz, z, x, *, pads):
    """`pads`: for each padded axis (axis, width before it, name of a fold, what it needs to know)."""
    for axis, before, fold, known in pads:
        gz = FOLDS[fold](gz, axis, before, x.shape[axis], *known)
    return gz


PAD = structural(
    "pad", vjp=(pad_vjp,), linear=True,
    samples=[Sample(np.pad, ((2, 3),), kwargs=dict(pad_width=((1, 0), (2, 1)), constant_values=3), complex=True),
             Sample(np.pad, ((2, 3),), kwargs=dict(pad_width=1, mode="edge"), complex=True),
             Sample(np.pad, ((4,),), kwargs=dict(pad_width=(7, 9), mode="reflect")),
             Sample(np.pad, ((3, 2),), kwargs=dict(pad_width=((3, 1), (1, 2)), mode="symmetric")),
             Sample(np.pad, ((3,),), kwargs=dict(pad_width=(7, 4), mode="wrap")),
             Sample(np.pad, ((3, 4),), kwargs=dict(pad_width=((1, 2), (2, 0)), mode="mean")),
             Sample(np.pad, ((3, 4),), kwargs=dict(pad_width=((1, 2), (2, 0)), mode="mean", stat_length=2)),
             Sample(np.pad, ((3, 4),), kwargs=dict(pad_width=((1, 2), (2, 0)), mode="linear_ramp", end_values=2.0)),
             Sample(np.pad, ((3, 4),), kwargs=dict(pad_width=((1, 2), (5, 0)), mode="reflect", reflect_type="odd")),
             Sample(np.pad, ((3, 4),), kwargs=dict(pad_width=((1, 2), (2, 0)), mode="maximum")),
             Sample(np.pad, ((3, 4),), kwargs=dict(pad_width=((0, 2), (2, 1)), mode="median")),
             Sample(lambda x, y: np.pad(x, ((1, 2), (0, 1)), constant_values=y), ((2, 2), (2, 2)))])


def pairs(numbers, ndim):
    """A pair for each axis of what NumPy takes for that: one number, one pair, or a pair (or number) for each."""
    if numbers is None:
        return [(None, None)] * ndim
    numbers = np.asarray(numbers)
    return np.broadcast_to(numbers.ravel() if numbers.size == 1 else numbers, (ndim, 2)).tolist()


def widths_of(pad_width, ndim):
    if isinstance(pad_width, dict):
        widths = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            widths[axis] = width if isinstance(width, tuple) else (width, width)
        return widths
    return [(pad_width, pad_width)] * ndim if type(pad_width) is int else pairs(pad_width, ndim)


@lru_cache(maxsize=256)
def source_of(length, width, mode, stat_length, reflect_type):
    """Where the margin along one axis comes from: name of a fold, and what that needs to know."""
    if mode in ("constant", "empty"):
        return "nowhere", ()
    if mode == "mean":
        return "mean", (tuple([length if count is None else min(count, length) for count in stat_length]),)
    if mode != "linear_ramp" and reflect_type == "even":
        return "places", (np.pad(np.arange(length), width, mode),)
    # NumPy's own linear map, of each edge and of everything between them
    inside = slice(width[0], width[0] + length)
    kwargs = {} if mode == "linear_ramp" else {"reflect_type": reflect_type}        # end values are constants
    between = np.ones(length)
    between[0] = between[-1] = 0
    signs = np.pad(between, width, mode, **kwargs)
    signs[inside] = 1
    first, last = [np.pad(np.eye(1, length, at)[0], width, mode, **kwargs) for at in (0, length - 1)]
    if length == 1:
        last[:] = 0                                             # the same edge
    return "edges", (np.pad(np.arange(length), width, "edge" if mode == "linear_ramp" else mode), signs, first, last)


def pad_by_steps(array, widths, margin):
    """Pad axis by axis; ``margin(array, axis, side)`` is one slice of the margin, or a number."""
    array = np.copy(array)
    for axis, width in enumerate(widths):
        sides = [array]
        for side in (0, 1):
            if width[side]:
                shape = list(array.shape)
                shape[axis] = width[side]
                sides.insert(side * len(sides), broadcast_to(margin(array, axis, side), shape))
        if len(sides) > 1:
            array = concatenate(sides, axis)
    return array


def constant_margins(values, ndim, dtype):
    values = broadcast_to(ravel(values) if values.size == 1 else values, (ndim, 2)).astype(dtype)
    return lambda array, axis, side: values[axis, side]


def chosen_margins(function, lengths):
    def margin(array, axis, side):
        length = lengths[axis][side]
        if length is not None and length < array.shape[axis]:
            array = array[along(axis - array.ndim, slice(-length, None) if side else slice(length))]
        return function(array, axis=axis, keepdims=True)
    return margin


@implements(np.pad)
def pad(array, pad_width, mode="constant", **kwargs):
    if callable(mode):
        raise NotImplementedError("np.pad: a function as mode cannot be differentiated; join the parts with np.concatenate")
    if is_array(kwargs.get("end_values")):
        raise NotImplementedError("np.pad: end_values cannot be differentiated; join np.linspace and the array with "
                                  "np.concatenate")
    given = plain_value(array)
    value = np.pad(given, pad_width, mode, **{key: plain_value(v) for key, v in kwargs.items()})
    widths = widths_of(pad_width, value.ndim)
    constants = kwargs.get("constant_values", 0)
    lengths = pairs(kwargs.get("stat_length"), value.ndim)
    if is_array(constants):
        return pad_by_steps(array, widths, constant_margins(constants, value.ndim, value.dtype))
    if mode in CHOOSING_VALUES:
        return pad_by_steps(array, widths, chosen_margins(CHOOSING_VALUES[mode], lengths))
    reflect_type = kwargs.get("reflect_type", "even")
    pads = [(axis - value.ndim, width[0], *source_of(length, tuple(width), mode, tuple(lengths[axis]), reflect_type))
            for axis, (length, width) in enumerate(zip(np.shape(given), widths)) if any(width)]
    return record(PAD, value, (array,), {"pads": pads})
