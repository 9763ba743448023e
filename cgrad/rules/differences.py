"""Differences and the like along an axis: diff, ediff1d, gradient, trapezoid, interp, unwrap, apply_along_axis.

Uses the registry and `products`.
"""
import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cgrad import _kernels as k

from .products import as_operand
from .registry import Sample, implements, is_array, plain_value, record, structural
from .selection import blank

__all__ = []


# ---------------------------------------------------------------------------------------------- diff
def diff_vjp(gz, z, x, *, n, axis):
    """The transpose of a difference is the difference with zeros put around, and its sign changed."""
    if z.shape[axis] == 0:                          # fewer elements than differences
        return np.zeros(gz.shape[:gz.ndim - z.ndim] + x.shape, gz.dtype)
    zeros = np.zeros(gz.shape[:axis] + (n,) + (gz.shape[axis + 1:] if axis != -1 else ()), gz.dtype)
    gx = np.diff(np.concatenate((zeros, gz, zeros), axis), n - n % 2, axis)
    if n % 2 == 0:
        return gx
    before = (slice(None),) * (axis % gx.ndim)
    return gx[before + (slice(None, -1),)] - gx[before + (slice(1, None),)]


DIFF = structural("diff", vjp=(diff_vjp,), linear=True,
                  samples=[Sample(np.diff, ((5,),), complex=True), Sample(np.diff, ((2, 5, 3),), kwargs=dict(n=3, axis=1)),
                           Sample(lambda x, a, b: np.diff(x, 2, 0, a, b), ((3, 2), (2, 2), ()))])


@implements(np.diff)
def diff(a, n=1, axis=-1, prepend=np._NoValue, append=np._NoValue):
    if n == 0:
        return a
    a = as_operand(a)
    if (prepend is not np._NoValue or append is not np._NoValue) and a.ndim:
        at = normalize_axis_index(axis, a.ndim)
        ends = [end if end is np._NoValue else as_operand(end) for end in (prepend, append)]
        slab = a.shape[:at] + (1,) + a.shape[at + 1:]
        before, after = [() if end is np._NoValue else (np.broadcast_to(end, slab) if end.ndim == 0 else end,) for end in ends]
        a = np.concatenate((*before, a, *after), axis)
    value = np.diff(plain_value(a), n, axis)
    return record(DIFF, value, (a,), dict(n=int(n), axis=axis - a.ndim if axis >= 0 else axis))


@implements(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    ary = as_operand(ary).ravel()
    np.ediff1d(plain_value(ary)[:0], *map(plain_value, (to_end, to_begin)))     # NumPy's own error about dtypes
    differences = np.diff(ary)
    ends = [() if end is None else (as_operand(end).ravel().astype(ary.dtype),) for end in (to_begin, to_end)]
    return np.concatenate((*ends[0], differences, *ends[1])) if ends[0] or ends[1] else differences


# ---------------------------------------------------------------------------------------------- gradient
@implements(np.gradient)
def gradient(f, *spacings, axis=None, edge_order=1):
    f = as_operand(f)
    if f.dtype.kind in "iu":
        f = f.astype(np.float64)
    axes = tuple(range(f.ndim)) if axis is None else normalize_axis_tuple(axis, f.ndim)
    if any(f.shape[a] < edge_order + 1 for a in axes) or edge_order not in (1, 2) \
            or len(spacings) not in (0, 1, len(axes)) or (len(spacings) == 1 != len(axes) and np.ndim(spacings[0])):
        np.gradient(plain_value(f), *map(plain_value, spacings), axis=axis, edge_order=edge_order)     # NumPy's own error
    if not spacings:
        spacings = (1.0,)
    if len(spacings) != len(axes):
        spacings = spacings * len(axes)
    found = [slopes_along(f, a, steps_of(s, f.shape[a]), edge_order) for a, s in zip(axes, spacings)]
    return found[0] if len(found) == 1 else tuple(found)


def steps_of(spacing, length):
    """A number, or the differences of the coordinates: as NumPy has it one number where they are equal."""
    if np.ndim(spacing) == 0:
        return spacing
    places = as_operand(spacing)
    if places.ndim != 1:
        raise ValueError("distances must be either scalars or 1d")
    if len(places) != length:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    steps = np.diff(places.astype(np.float64) if places.dtype.kind in "iu" else places)
    # of tracked coordinates each has its own derivative
    return steps[0] if not is_array(steps) and (steps == steps[0]).all() else steps


def slopes_along(f, axis, step, edge_order):
    """Central differences inside, one-sided ones at the ends: NumPy's formulas, in NumPy's order."""
    uniform = np.ndim(step) == 0

    def at(place):
        return f[(slice(None),) * axis + (place,)]

    def weighted(weights, *places):
        a, b, c = weights
        i, j, l = map(at, places)
        return a * i + b * j + c * l

    left, middle, right = slice(None, -2), slice(1, -1), slice(2, None)
    if uniform:
        inside = (at(right) - at(left)) / (2. * step)
        at_first, at_last = (-1.5 / step, 2. / step, -0.5 / step), (0.5 / step, -2. / step, 1.5 / step)
    else:
        one, two = step[:-1], step[1:]
        weights = -two / (one * (one + two)), (two - one) / (one * two), one / (two * (one + two))
        inside = weighted((w.reshape((-1,) + (1,) * (f.ndim - axis - 1)) for w in weights), left, middle, right)
    if edge_order == 1:
        first = (at(1) - at(0)) / (step if uniform else step[0])
        last = (at(-1) - at(-2)) / (step if uniform else step[-1])
    else:
        if not uniform:
            one, two = step[0], step[1]
            at_first = -(2. * one + two) / (one * (one + two)), (one + two) / (one * two), -one / (two * (one + two))
            one, two = step[-2], step[-1]
            at_last = two / (one * (one + two)), -(two + one) / (one * two), (2. * two + one) / (two * (one + two))
        first, last = weighted(at_first, 0, 1, 2), weighted(at_last, -3, -2, -1)
    slopes = np.concatenate([np.expand_dims(first, axis), inside, np.expand_dims(last, axis)], axis)
    if not uniform and (step_values := plain_value(step)).size and (step_values == step_values[0]).all():
        # NumPy takes the shorter formulas for equal steps, and rounds otherwise; their difference is a constant
        slopes = slopes + (slopes_along(plain_value(f), axis, step_values[0], edge_order) - plain_value(slopes))
    return slopes if slopes.dtype == f.dtype else slopes.astype(f.dtype)


# ---------------------------------------------------------------------------------------------- trapezoid
# np.trapz until NumPy 2.3, where the name went
@implements(np.trapezoid, *([vars(np)["trapz"]] if "trapz" in vars(np) else []))
def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = as_operand(y)
    if x is None:
        widths = dx
    else:
        x = as_operand(x)
        widths = np.diff(x) if x.ndim == 1 else np.diff(x, axis=axis)
        if x.ndim == 1:
            shape = [1] * y.ndim
            shape[axis] = widths.shape[0]
            widths = widths.reshape(shape)
    before = (slice(None),) * normalize_axis_index(axis, y.ndim)
    return (widths * (y[before + (slice(1, None),)] + y[before + (slice(None, -1),)]) / 2.0).sum(axis)


# ---------------------------------------------------------------------------------------------- interp
def as_numbers(x):
    """An operand; constants in the dtype in which NumPy computes: differences of small unsigned integers would wrap around."""
    x = as_operand(x)
    return x if is_array(x) or x.dtype.kind not in "biuf" else x.astype(np.float64, copy=False)


def segments(x, xp):
    """Numbers of the two points around each x, and where x is on the segment between them.

    A point belongs to the segment on its right, the last point to the last segment; before and after all points is no segment,
    nor is there one between two points at the same place.
    """
    x, xp = plain_value(x), plain_value(xp)
    # the one before the first place to the right of x, but the last point has none
    low = np.maximum(np.minimum(np.searchsorted(xp, x, "right") - 1, len(xp) - 2), 0)
    high = np.minimum(low + 1, len(xp) - 1)
    before, after = xp[low], xp[high]
    return low, high, (x >= before) & (x <= after) & (before < after)


def interp_slope(x, xp, fp):
    low, high, inside = segments(x, xp)
    return np.where(inside, (fp[high] - fp[low]) / np.where(inside, xp[high] - xp[low], 1), 0)


def add_to_ends(x, xp, g):
    """The adjoint of the points' ordinates: g goes to the two points around each x, in the shares of linear interpolation."""
    low, high, inside = segments(x, xp)
    share = (x - xp[low]) / np.where(inside, xp[high] - xp[low], 1)
    share = np.where(inside, share, plain_value(x) >= plain_value(xp)[high])
    into = blank(g, g.shape[:g.ndim - np.ndim(x)] + xp.shape)
    np.add.at(into, (Ellipsis, low), g * (1 - share))
    np.add.at(into, (Ellipsis, high), g * share)
    return into


def interp_vjp_x(gz, z, x, xp, fp, **_):
    return k.strong_multiply(gz, interp_slope(x, xp, fp))


def interp_vjp_xp(gz, z, x, xp, fp, **_):
    return -add_to_ends(x, xp, k.strong_multiply(gz, interp_slope(x, xp, fp)))


def interp_vjp_fp(gz, z, x, xp, fp, *, left, right):
    value, points = plain_value(x), plain_value(xp)
    # outside, the first and the last ordinate go on for ever, unless others were given
    used = (value >= points[0]) | (left is None), (value <= points[-1]) | (right is None)
    return add_to_ends(x, xp, np.where(used[0] & used[1] & ~np.isnan(value), gz, 0))


INTERP = structural(
    "interp", vjp=(interp_vjp_x, interp_vjp_xp, interp_vjp_fp), reads=("*", "*", "*"),
    samples=[
        Sample(lambda x, f: np.interp(x, [-1.5, -0.5, 1.0, 1.5], f), ((2, 4), (4,))),
        Sample(lambda x, p, f: np.interp(x, np.cumsum(p), f, left=1.0), ((5,), (3,), (3,)),
               domain=((0, 3), (0.5, 1), (-1, 1))),
        Sample(lambda x, f: np.interp(x, [0.3, 1.0, 0.1], f, period=1.5), ((4,), (3,)))])


@implements(np.interp)
def interp(x, xp, fp, left=None, right=None, period=None):
    x, xp, fp = map(as_numbers, (x, xp, fp))
    if period is not None:
        np.interp(plain_value(x), plain_value(xp), plain_value(fp), period=period)              # NumPy's own errors
        period, left, right = abs(period), None, None
        x, xp = x % period, xp % period
        order = np.argsort(plain_value(xp))
        xp, fp = xp[order], fp[order]
        xp, fp = np.concatenate((xp[-1:] - period, xp, xp[:1] + period)), np.concatenate((fp[-1:], fp, fp[:1]))
    value = np.interp(plain_value(x), plain_value(xp), plain_value(fp), plain_value(left), plain_value(right))
    z = record(INTERP, value, (x, xp, fp), dict(left=plain_value(left), right=plain_value(right)))
    if is_array(left):
        z = np.where(plain_value(x) < plain_value(xp)[0], left, z)
    if is_array(right):
        z = np.where(plain_value(x) > plain_value(xp)[-1], right, z)
    return z


# ---------------------------------------------------------------------------------------------- unwrap
# what is added is a multiple of the period, constant between jumps
UNWRAP = structural("unwrap", vjp=(lambda gz, z, x, **_: gz,), linear=True,
                    samples=[Sample(np.unwrap, ((6,),), domain=(-20.0, 20.0)),
                             Sample(np.unwrap, ((4, 3),), domain=(-9.0, 9.0), kwargs=dict(axis=0, period=3.0))])


@implements(np.unwrap)
def unwrap(p, discont=None, axis=-1, *, period=2 * np.pi):
    p = as_operand(p)
    value = np.unwrap(plain_value(p), discont, axis, period=period)
    return record(UNWRAP, value, (p,), dict(discont=discont, axis=axis - p.ndim if axis >= 0 else axis, period=period))


# ---------------------------------------------------------------------------------------------- any function along an axis
@implements(np.apply_along_axis)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    arr = as_operand(arr)
    axis = normalize_axis_index(axis, arr.ndim)
    rows = np.moveaxis(arr, axis, -1)
    lead = rows.shape[:-1]
    if 0 in lead:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [as_operand(func1d(rows[i + (Ellipsis,)], *args, **kwargs)) for i in np.ndindex(lead)]
    shape = results[0].shape
    stacked = np.stack([r if r.shape == shape else np.broadcast_to(r, shape) for r in results]).reshape(lead + shape)
    # the axes of the results go where the axis was
    return np.moveaxis(stacked, range(-len(shape), 0), range(axis, axis + len(shape)))
