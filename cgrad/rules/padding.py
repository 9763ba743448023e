"""np.pad. Its modes differ in where the margin comes from, and so does the rule.

Nowhere (constant, empty), from chosen elements (edge, reflect, symmetric, wrap), or from linear combinations of elements
(mean, linear_ramp, odd reflections): NumPy itself, given numbers or unit vectors to pad, says which. Modes that choose by value
(maximum, minimum, median) are composed of the functions that NumPy calls. Uses `registry`, `shape` and `joining`.
"""
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


def fold_linear(g, axis, before, length, matrix):
    """Undo a margin of linear combinations along one axis; `matrix` holds their weights, one row per place."""
    after = before + length
    last = np.moveaxis(np.concatenate((g[along(axis, slice(before))], g[along(axis, slice(after, None))]), axis), axis, -1)
    weights = np.concatenate((matrix[:before], matrix[after:]))
    return interior(g, axis, before, length) + np.moveaxis(last @ weights, -1, axis)


def pad_vjp(gz, z, x, *, pads):
    """`pads`: for each padded axis (axis, before, places or weights or None)."""
    for axis, before, source in pads:
        if source is None:
            gz = interior(gz, axis, before, x.shape[axis])
        elif source.ndim == 1:
            gz = fold_chosen(gz, axis, before, x.shape[axis], source)
        else:
            gz = fold_linear(gz, axis, before, x.shape[axis], source)
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
    numbers = np.asarray(numbers)
    return np.broadcast_to(numbers.ravel() if numbers.size == 1 else numbers, (ndim, 2)).tolist()


def widths_of(pad_width, ndim):
    if isinstance(pad_width, dict):
        widths = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            widths[axis] = width if isinstance(width, tuple) else (width, width)
        return widths
    return pairs(pad_width, ndim)


def source_of(length, width, mode, stat_length, kwargs):
    """Where the elements of one padded axis come from: places, weights, or None for nowhere."""
    if mode in ("constant", "empty"):
        return None
    if mode == "mean":
        kwargs = {} if stat_length[0] is None else {"stat_length": (stat_length, (1, 1))}
    elif mode == "linear_ramp":
        kwargs = {}                                 # the end values are constants
    elif kwargs.get("reflect_type", "even") == "even":
        return np.pad(np.arange(length), width, mode)
    return np.pad(np.eye(length), (width, (0, 0)), mode, **kwargs)


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
        raise NotImplementedError("np.pad: a function as mode cannot be differentiated; build the result with np.concatenate")
    if is_array(kwargs.get("end_values")):
        raise NotImplementedError("np.pad: end_values cannot be differentiated; join np.linspace and the array with np.concatenate")
    given = plain_value(array)
    value = np.pad(given, pad_width, mode, **{key: plain_value(v) for key, v in kwargs.items()})
    widths = widths_of(pad_width, value.ndim)
    constants = kwargs.get("constant_values", 0)
    lengths = pairs(kwargs.get("stat_length"), value.ndim)
    if is_array(constants):
        return pad_by_steps(array, widths, constant_margins(constants, value.ndim, value.dtype))
    if mode in CHOOSING_VALUES:
        return pad_by_steps(array, widths, chosen_margins(CHOOSING_VALUES[mode], lengths))
    pads = [(axis - value.ndim, width[0], source_of(np.shape(given)[axis], tuple(width), mode, tuple(lengths[axis]), kwargs))
            for axis, width in enumerate(widths) if any(width)]
    return record(PAD, value, (array,), {"pads": pads})
