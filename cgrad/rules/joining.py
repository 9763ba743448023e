"""Rules of arrays made of several arrays, or of one several times: concatenate, stack, block, tile, repeat, insert, delete.

Splitting is basic indexing, so that the parts are views as in NumPy. Joins of thousands of scalars are common, so their rules
give the adjoints of all inputs in one call, as views of the one adjoint of the result. Uses `registry` and `shape`.
"""
import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from .registry import Sample, deliver, implements, is_array, method, plain_value, record, structural, tracked
from .shape import ALL, lead_of, ravel, reshape


def along(axis, index):
    """The index that is `index` on the axis `axis`, a negative number, and everything on the others."""
    return (Ellipsis, index) + (ALL,) * (-axis - 1)


# ------------------------------------------------------------------------------------------------ joining along an axis
def concatenate_parts(gz, z, *, axis, stops, shapes):
    starts = (0, *stops[:-1])
    if axis == -gz.ndim:
        parts = [gz[start:stop] for start, stop in zip(starts, stops)]
    else:
        parts = [gz[along(axis, slice(start, stop))] for start, stop in zip(starts, stops)]
    if shapes is None:
        return parts
    lead = lead_of(gz, z)
    return [part.reshape(lead + shape) for part, shape in zip(parts, shapes)]


def stack_parts(gz, z, *, axis):
    # indexing what this returns gives the parts
    return gz if axis == -gz.ndim else np.moveaxis(gz, axis, 0)


CONCATENATE = structural(
    "concatenate", vjp_all=concatenate_parts, linear=True,
    samples=[Sample(lambda x, y: np.concatenate([x, y, x]), ((3, 2), (1, 2)), complex=True),
             Sample(lambda x, y: np.concatenate([x, y, x * 2], axis=None), ((3, 2), (4,))),
             Sample(lambda x, y: np.vstack([x, y, y]), ((3, 2), (2,))), Sample(lambda x, y: np.hstack([x, y, x]), ((3,), ())),
             Sample(lambda x, y: np.dstack([x, y]), ((3, 2), (3, 2, 2))),
             Sample(lambda x, y: np.column_stack([x, y]), ((3,), (3, 2))), Sample(np.append, ((3,), (2, 2)))])

STACK = structural(
    "stack", vjp_all=stack_parts, linear=True,
    samples=[Sample(lambda x, y: np.stack([x, y, x * y]), ((), ()), complex=True),
             Sample(lambda x, y: np.stack([x, y, x], axis=1), ((2, 3), (2, 3))),
             Sample(lambda x, y: np.hstack([x, y, x]), ((), ()))])


def join(function, arrays, along_axis, least, out=None, **kwargs):
    """`function` of a sequence of arrays, which get at least `least` axes and are joined along `along_axis`."""
    arrays = tuple(arrays)
    values = [plain_value(a) for a in arrays]
    numbers = array_of_numbers(values) if least and not kwargs else None
    if numbers is not None:
        flat = record(STACK, numbers, arrays, {"axis": -1})
        return flat if least == 1 else reshape(flat, (1,) * along_axis + (-1,) + (1,) * (least - along_axis - 1))
    value = function(values, **kwargs)
    try:
        shapes = [v.shape for v in values]
    except AttributeError:                          # lists, Python numbers
        shapes = [np.shape(v) for v in values]
    ndim = value.ndim
    axis, own_shapes = along_axis, None             # the shapes of the inputs, where they are not those of the parts
    if axis is None:
        axis, own_shapes, lengths = 0, shapes, [np.size(v) for v in values]
    elif least:
        if any([len(s) != ndim for s in shapes]):
            own_shapes = shapes
        lengths = [s[axis] if len(s) >= least else 1 for s in shapes]
    else:
        lengths = [s[axis] for s in shapes]
    stops, stop = [], 0
    for length in lengths:
        stop += length
        stops.append(stop)
    joined = record(CONCATENATE, value, arrays,
                    {"axis": axis if axis < 0 else axis - ndim, "stops": stops, "shapes": own_shapes})
    return joined if out is None else deliver(joined, out)


def array_of_numbers(values):
    """One array of a list of float64 scalars, without making an array of each; None where there is anything else."""
    for v in values:
        if type(v) is not np.float64 and type(v) is not float:
            return None
    return np.array(values) if values else None


@implements(np.concatenate)
def concatenate(arrays, axis=0, out=None, **kwargs):
    return join(np.concatenate, arrays, axis, 0, out, axis=axis, **kwargs)


@implements(np.vstack)
def vstack(tup, **kwargs):
    return join(np.vstack, tup, 0, 2, **kwargs)


@implements(np.hstack)
def hstack(tup, **kwargs):
    tup = tuple(tup)
    flat = not tup or np.ndim(plain_value(tup[0])) < 2
    return join(np.hstack, tup, 0 if flat else 1, 1 if flat else 2, **kwargs)


@implements(np.dstack)
def dstack(tup):
    return join(np.dstack, tup, 2, 3)


@implements(np.column_stack)
def column_stack(tup):
    return join(np.column_stack, tup, 1, 2)


@implements(np.append)
def append(arr, values, axis=None):
    return concatenate((arr, values), axis)


@implements(np.stack)
def stack(arrays, axis=0, out=None, **kwargs):
    arrays = tuple(arrays)
    values = [plain_value(a) for a in arrays]
    value = array_of_numbers(values) if axis in (0, -1) and not kwargs else None
    if value is None:
        value = np.stack(values, axis, **kwargs)
    return deliver(record(STACK, value, arrays, {"axis": axis if axis < 0 else axis - value.ndim}), out)


# ------------------------------------------------------------------------------------------------ blocks
def block_parts(gz, z, *, boxes):
    lead = lead_of(gz, z)
    return [gz[(Ellipsis, *box)].reshape(lead + shape) for box, shape in boxes]


BLOCK = structural(
    "block", vjp_all=block_parts, linear=True,
    samples=[Sample(lambda x, y: np.block([[x, y], [y.T, np.ones((1, 1))]]), ((2, 2), (2, 1)), complex=True),
             Sample(lambda x, y: np.block([[[x, x]], [[y, y]]]), ((2, 1), (1, 2, 1)))])


def layout(node, ndim, axis):
    """Shape of a nested list of blocks joined along `axis`, a negative number, and its blocks with where each one starts."""
    if type(node) is not list:
        shape = np.shape(plain_value(node))
        return (1,) * (ndim - len(shape)) + shape, [(node, (0,) * ndim)]
    places, length, shape = [], 0, None
    for child in node:
        shape, inner = layout(child, ndim, axis + 1)
        for block, starts in inner:
            moved = list(starts)
            moved[axis] += length
            places.append((block, tuple(moved)))
        length += shape[axis]
    whole = list(shape)
    whole[axis] = length
    return tuple(whole), places


def plain_blocks(node):
    return [plain_blocks(child) for child in node] if type(node) is list else plain_value(node)


@implements(np.block)
def block(arrays):
    value = np.block(plain_blocks(arrays))
    depth, node = 0, arrays
    while type(node) is list:
        depth, node = depth + 1, node[0]
    _, places = layout(arrays, value.ndim, -depth)
    boxes = []
    for node, starts in places:
        shape = np.shape(plain_value(node))
        sides = (1,) * (value.ndim - len(shape)) + shape
        boxes.append((tuple([slice(start, start + side) for start, side in zip(starts, sides)]), shape))
    return record(BLOCK, value, tuple([node for node, _ in places]), {"boxes": boxes})


# ------------------------------------------------------------------------------------------------ splitting
def split_points(ary, indices_or_sections, axis):
    """Where np.array_split cuts, from 0 to the length."""
    length = ary.shape[axis]
    try:
        inner = list(indices_or_sections)
    except TypeError:
        sections = int(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.") from None
        each, longer = divmod(length, sections)
        return [k * each + min(k, longer) for k in range(sections + 1)]
    return [0, *inner, length]


@implements(np.array_split)
def array_split(ary, indices_or_sections, axis=0):
    points = split_points(ary, indices_or_sections, axis)
    front = (ALL,) * normalize_axis_index(axis, ary.ndim)
    return [ary[(*front, slice(start, stop))] for start, stop in zip(points[:-1], points[1:])]


@implements(np.split)
def split(ary, indices_or_sections, axis=0):
    if not np.iterable(indices_or_sections) and ary.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def split_along(function, least, axis_of):
    """Handler of one of np.vsplit, np.hsplit, np.dsplit."""
    def handler(ary, indices_or_sections):
        if ary.ndim < least:
            function(plain_value(ary), indices_or_sections)         # NumPy's own error
        return split(ary, indices_or_sections, axis_of(ary.ndim))
    implements(function)(handler)


split_along(np.vsplit, 2, lambda ndim: 0)
split_along(np.hsplit, 1, lambda ndim: min(ndim, 2) - 1)
split_along(np.dsplit, 3, lambda ndim: 2)

if hasattr(np, "unstack"):                          # NumPy 2.1
    @implements(np.unstack)
    def unstack(x, /, *, axis=0):
        if x.ndim == 0:
            np.unstack(plain_value(x), axis=axis)
        front = (ALL,) * normalize_axis_index(axis, x.ndim)
        return tuple([x[(*front, k)] for k in range(x.shape[axis])])


# ------------------------------------------------------------------------------------------------ repeating
def tile_vjp(gz, z, x, *, reps):
    shape = (1,) * (len(reps) - x.ndim) + x.shape
    lead = lead_of(gz, z)
    apart = gz.reshape(lead + tuple([n for pair in zip(reps, shape) for n in pair]))
    return apart.sum(axis=tuple(range(-2 * len(reps), 0, 2))).reshape(lead + x.shape)


TILE = structural(
    "tile", vjp=(tile_vjp,), linear=True,
    samples=[Sample(np.tile, ((3,),), kwargs=dict(reps=2), complex=True),
             Sample(np.tile, ((2, 3),), kwargs=dict(reps=(2, 1, 2))),
             Sample(np.resize, ((2, 3),), kwargs=dict(new_shape=(2, 5)))])


@implements(np.tile)
def tile(A, reps):
    value = np.tile(plain_value(A), reps)
    counts = tuple(reps) if np.iterable(reps) else (reps,)
    return record(TILE, value, (A,), {"reps": (1,) * (value.ndim - len(counts)) + counts})


def segment_sums(g, counts, axis):
    """Sums over consecutive stretches of `g` along `axis`, which are `counts` long; what undoes np.repeat."""
    if is_array(g):
        return record(SEGMENT_SUMS, segment_sums(plain_value(g), counts, axis), (g,), {"counts": counts, "axis": axis})
    filled = counts > 0
    starts = (np.cumsum(counts) - counts)[filled]
    shape = list(g.shape)
    shape[axis] = len(counts)
    sums = np.zeros(shape, g.dtype)
    if starts.size:
        sums[along(axis, filled)] = np.add.reduceat(g, starts, axis)
    return sums


def repeat_vjp(gz, z, x, *, repeats, axis):
    if isinstance(repeats, np.ndarray):
        return segment_sums(gz, repeats, axis)
    lead, at = lead_of(gz, z), x.ndim + axis
    return gz.reshape(lead + x.shape[:at + 1] + (repeats,) + x.shape[at + 1:]).sum(axis=axis)


REPEAT = structural(
    "repeat", vjp=(repeat_vjp,), linear=True,
    samples=[Sample(np.repeat, ((2, 3),), kwargs=dict(repeats=2, axis=0), complex=True),
             Sample(np.repeat, ((2, 3),), kwargs=dict(repeats=3)),
             Sample(np.repeat, ((2, 3),), kwargs=dict(repeats=[2, 0, 1], axis=1))])
SEGMENT_SUMS = structural(
    "segment_sums", vjp=(lambda gz, z, x, *, counts, axis: np.repeat(gz, counts, axis),), linear=True)


@implements(np.repeat)
@method("repeat")
def repeat(a, repeats, axis=None):
    if axis is None:
        a, axis = ravel(a), 0
    given = plain_value(a)
    value = np.repeat(given, repeats, axis)
    counts = repeats
    if type(counts) is not int:
        counts = np.array(repeats)
        if counts.size == 1:
            counts = int(counts.item())
    return record(REPEAT, value, (a,), {"repeats": counts, "axis": normalize_axis_index(axis, value.ndim) - value.ndim})


@implements(np.resize)
def resize(a, new_shape):
    shape = (new_shape,) if isinstance(new_shape, (int, np.integer)) else tuple(new_shape)
    size = np.prod(shape, dtype=int)
    if a.size == 0 or size == 0 or min(shape, default=0) < 0:
        np.resize(plain_value(a), shape)            # NumPy's own error, if it is one
        return np.zeros_like(a, shape=shape)
    flat = ravel(a)
    if size > a.size:
        flat = tile(flat, -(-size // a.size))
    return reshape(flat[:size], shape) if size < flat.size else reshape(np.copy(flat), shape)


# ------------------------------------------------------------------------------------------------ inserting and deleting
def scatter(g, lead, shape, axis, places):
    """Zeros of `shape` with `g` at `places` of `axis`."""
    wide = np.zeros_like(g, shape=lead + shape)
    wide[along(axis, places)] = g
    return wide


DELETE = structural(
    "delete", vjp=(lambda gz, z, x, *, kept, axis: scatter(gz, lead_of(gz, z), x.shape, axis, kept),), linear=True,
    samples=[Sample(np.delete, ((5,),), kwargs=dict(obj=[1, 3]), complex=True),
             Sample(np.delete, ((3, 4),), kwargs=dict(obj=slice(1, 3), axis=1))])


@implements(np.delete)
def delete(arr, obj, axis=None):
    obj = plain_value(obj)
    if not is_array(arr):
        return np.delete(arr, obj, axis)
    if axis is None:
        arr, axis = ravel(arr), 0
    given = plain_value(arr)
    value = np.delete(given, obj, axis)
    axis = normalize_axis_index(axis, value.ndim) - value.ndim
    kept = np.zeros(given.shape[axis], bool)
    kept[np.delete(np.arange(given.shape[axis]), obj)] = True
    return record(DELETE, value, (arr,), {"kept": kept, "axis": axis})


@implements(np.trim_zeros)
def trim_zeros(filt, trim="fb", axis=None):
    given = plain_value(filt)
    value = np.trim_zeros(given, trim) if axis is None else np.trim_zeros(given, trim, axis)
    # where the part that is left begins: at the first place that is not zero, if the front is trimmed
    places = np.argwhere(given)
    fronts = places.min(axis=0) if len(places) and "f" in trim.lower() else (0,) * given.ndim
    index = []
    for front, length, whole in zip(fronts, value.shape, given.shape):
        front = 0 if length == whole else front
        index.append(slice(front, front + length))
    return filt[tuple(index)]


def inserted_vjp(gz, z, x, y, *, kept, places, axis, single):
    part = gz[along(axis, places)]
    # with one number as the index NumPy takes the first axis of the values for the one that is inserted along
    return np.moveaxis(part, axis, -z.ndim) if single and -axis != z.ndim else part


INSERT = structural(
    "insert", vjp=(lambda gz, z, x, y, *, kept, places, axis, single: gz[along(axis, kept)], inserted_vjp), linear=True,
    samples=[Sample(lambda x, y: np.insert(x, 1, y), ((4,), ()), complex=True),
             Sample(lambda x, y: np.insert(x, [3, 0, 1], y, axis=1), ((2, 4), (2, 3))),
             Sample(lambda x, y: np.insert(x, 1, y, axis=1), ((3, 4), (2, 3))),
             Sample(lambda x, y: np.insert(x, [1], y, axis=1), ((3, 4), (3, 1)))])


@implements(np.insert)
def insert(arr, obj, values, axis=None):
    obj = plain_value(obj)
    given = plain_value(arr)
    if tracked(values) and np.asarray(given).dtype.kind not in "fc":
        raise TypeError(f"np.insert: tracked {values.dtype} values inserted into an array of dtype {np.asarray(given).dtype} "
                        "would lose their gradient; make the array floating, e.g. arr.astype(float)")
    if axis is None:
        arr, axis = ravel(arr) if is_array(arr) else np.ravel(arr), 0
        given = plain_value(arr)
    value = np.insert(given, obj, plain_value(values), axis)
    axis = normalize_axis_index(axis, value.ndim) - value.ndim
    old = np.shape(given)[axis]
    # the same insertion of numbers into numbers tells where everything went
    marks = np.insert(np.arange(old), obj, -1 - np.arange(value.shape[axis] - old))
    new = np.flatnonzero(marks < 0)
    places = np.empty_like(new)
    places[-1 - marks[new]] = new
    single = not isinstance(obj, slice) and np.ndim(obj) == 0
    return record(INSERT, value, (arr, values), {"kept": marks >= 0, "places": places, "axis": axis, "single": single})
