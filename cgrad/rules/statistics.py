"""Statistics: variances, standard deviations, weighted averages, medians and quantiles.

Uses the registry, `reductions` and `kinks`.
"""
from functools import lru_cache

import numpy as np

from cgrad import _kernels as k

from .kinks import radial, scaled
from .reductions import (NO_VALUE, axes_and_keepdims, conjugate, count_of, given_only, hits_and_counts, lead_of, out_like,
                         reduction_params, restored, skipping_nan)
from .registry import Sample, deliver, implements, is_array, method, plain_value, record, structural, tracked


# ---------------------------------------------------------------------------------------------- variance
def mean_of(x, z, axis, where):
    """The mean, with the reduced axes; of nothing it is 0."""
    if where is True:
        return np.add.reduce(x, axis=axis, keepdims=True) / max(count_of(x, z), 1)
    return np.sum(x, axis=axis, keepdims=True, where=where) / np.maximum(np.add.reduce(where, axis, keepdims=True), 1)


def freedom(x, z, axis, where, ddof):
    """Degrees of freedom; NaN where none are left, as the variance is."""
    if where is True:
        left = count_of(x, z) - ddof
        return left if left > 0 else np.nan
    left = np.add.reduce(where, axis, keepdims=True) - ddof
    return np.where(left > 0, left, np.nan)


def masked(where, g):
    return g if where is True else np.where(where, g, 0)


def over_data(where, x):
    return where if where is True else np.broadcast_to(where, x.shape)


def var_vjp(gz, z, x, mean=None, *, axis, keepdims, ddof=0, where=True, **_):
    """2 (x - mean) / (n - ddof). Nothing comes through the mean, since deviations from it add up to 0."""
    where = over_data(where, x)
    deviations = conjugate(x - (mean_of(x, z, axis, where) if mean is None else mean))
    return masked(where, scaled(deviations, restored(gz, x, axis, keepdims) * (2 / freedom(x, z, axis, where, ddof))))


def all_equal(x, axis, where):
    """Which slices are constant."""
    equal = True
    for part in (x.real, x.imag) if x.dtype.kind == "c" else (x,):
        smallest = np.minimum.reduce(part, axis, keepdims=True, initial=np.inf, where=where)
        equal = equal & (smallest == np.maximum.reduce(part, axis, keepdims=True, initial=-np.inf, where=where))
    return equal


def std_vjp(gz, z, x, mean=None, *, axis, keepdims, ddof=0, where=True, **_):
    """(x - mean) / ((n - ddof) std), the rule of a norm. Constant data are its kink."""
    where = over_data(where, x)
    centre, kink = mean_of(x, z, axis, where) if mean is None else mean, None
    # rounding may be all that there is in the deviations
    if mean is None and (restored(z, x, axis, keepdims) <= 64 * np.finfo(z.dtype).eps * np.abs(centre)).any():
        kink = all_equal(x, axis, where)
    g = radial(conjugate(x - centre), gz, z, lambda a: restored(a, x, axis, keepdims),
               1 / freedom(x, z, axis, where, ddof), scaled, kink)
    return masked(where, g)


def about_mean(vjp):
    """The rule by the argument ``mean=``; the sweep adds it up."""
    def about(gz, z, x, mean, **params):
        return -vjp(gz, z, x, mean, **params)
    return about


@lru_cache(maxsize=4096)
def spread_params(axis, ndim, keepdims, ddof):
    return axes_and_keepdims(axis, ndim, keepdims) | {"ddof": ddof}


def spread_measure(function, vjp, **kwargs):
    """Ops of np.var or one of its kin: about the mean of the data, and about one that is given. Returns what records them."""
    name = function.__name__
    vjp = skipping_nan(vjp) if name.startswith("nan") else vjp
    op = structural(name, vjp=(vjp,), reads=("xz",), samples=[
        Sample(function, ((3, 4),), complex=True),
        Sample(function, ((2, 3, 4),), kwargs=dict(axis=(0, -1), keepdims=True, ddof=1)),
        Sample(function, ((3, 4),), kwargs=dict(axis=1, correction=0.5, where=np.arange(4) != 2))])
    about = structural(f"{name}_about", vjp=(vjp, about_mean(vjp)), reads=("xyz", "xyz"), samples=[
        Sample(lambda x, m: function(x, axis=1, mean=m), ((3, 4), (3, 1)))])

    @implements(function)
    def measure(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=NO_VALUE, correction=NO_VALUE):
        v = plain_value(x)
        if out is None and dtype is None and where is True and mean is NO_VALUE and correction is NO_VALUE:
            return record(op, function(v, axis, None, None, ddof, keepdims), (x,), spread_params(axis, x.ndim, keepdims, ddof))
        where = plain_value(where)
        given = given_only(dtype=dtype, where=where, correction=correction)
        about_given = mean is not None and mean is not NO_VALUE
        if about_given:
            given["mean"] = plain_value(mean)
        value = function(v, axis=axis, out=out_like(out), ddof=ddof, keepdims=keepdims, **given)
        params = reduction_params(np.ndim(v), axis, keepdims, dtype, where=where)
        params = params | {"ddof": ddof if correction is NO_VALUE else correction}
        result = record(about, value, (x, mean), params) if about_given else record(op, value, (x,), params)
        return deliver(result, out)
    return measure


method("var")(spread_measure(np.var, var_vjp))
method("std")(spread_measure(np.std, std_vjp))
spread_measure(np.nanvar, var_vjp)
spread_measure(np.nanstd, std_vjp)


# ---------------------------------------------------------------------------------------------- weighted average
def average_vjp(gz, z, x, weights, *, axis, keepdims):
    return restored(gz, x, axis, keepdims) * (weights / np.sum(weights, axis=axis, keepdims=True))


def average_weights_vjp(gz, z, x, weights, *, axis, keepdims):
    total = np.sum(weights, axis=axis, keepdims=True)
    return (restored(gz, x, axis, keepdims) / total) * (x - restored(z, x, axis, keepdims))


AVERAGE = structural("average", vjp=(average_vjp, average_weights_vjp), reads=("y", "xyz"), samples=[
    Sample(lambda x, w: np.average(x, weights=w), ((3, 4), (3, 4)), domain=((-2, 2), (0.5, 2)), complex=True),
    Sample(lambda x, w: np.average(x, axis=1, weights=w, keepdims=True), ((3, 4), (4,)), domain=((-2, 2), (0.5, 2)))])


@implements(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=NO_VALUE):
    a = a if is_array(a) else np.asanyarray(a)
    keep = {} if keepdims is NO_VALUE else {"keepdims": keepdims}
    if weights is None:
        z = np.mean(a, axis, **keep)
        return (z, np.full(z.shape, a.size / z.size, z.dtype)[()]) if returned else z
    weights = weights if is_array(weights) else np.asanyarray(weights)
    value, total = np.average(plain_value(a), axis, plain_value(weights), returned=True, **keep)
    if not is_array(weights):                       # in NumPy's precision, not in their own
        weights = weights.astype(np.result_type(weights, value.real), copy=False)
    params = reduction_params(a.ndim, axis, keep.get("keepdims", False))
    if weights.shape != a.shape:
        # of the shape of the averaged axes, in their order; NumPy has checked it
        order = np.argsort(params["axis"])
        weights = np.transpose(weights, order)
        weights = np.reshape(weights, [n if d - a.ndim in params["axis"] else 1 for d, n in enumerate(a.shape)])
    z = record(AVERAGE, value, (a, weights), params)
    if not returned:
        return z
    if not tracked(weights):
        return z, total
    total = np.sum(weights, axis=axis, **keep)
    return z, np.broadcast_to(total, z.shape).copy() if total.shape != z.shape else total


# ---------------------------------------------------------------------------------------------- quantiles
# The quantile of sorted data lies at some position among them: on an element, or between two neighbours. NumPy itself says
# where, for each of its methods: it is the quantile of 0, 1, ..., n - 1.
def positions(function, q, counts, method):
    """Position of the quantile among `counts` sorted elements: a number or an array of it."""
    if np.ndim(counts) == 0:
        return function(np.arange(float(counts)), q, method=method)
    found = np.zeros(counts.shape)
    for n in np.unique(counts[counts > 0]):
        found[counts == n] = function(np.arange(float(n)), q, method=method)
    return found


def neighbours(x, z, axis, position, nan_wins):
    """Weights of all elements in the sorted elements before and after the position: where several are equal, they share."""
    rows = np.moveaxis(x, axis, range(-len(axis), 0))
    rows = np.sort(np.reshape(rows, rows.shape[:x.ndim - len(axis)] + (-1,)), axis=-1)      # NaN comes last
    weights = []
    for place in np.floor(position), np.ceil(position):
        if np.ndim(place) == 0:
            best = rows[..., int(place)]
        else:
            place = np.reshape(place.astype(np.intp), rows.shape[:-1] + (1,))
            best = np.take_along_axis(rows, place, axis=-1)[..., 0]
        best = restored(best, x, axis, False)
        if nan_wins:
            best = np.where(np.isnan(z), z, best)
        hits, counts = hits_and_counts(x, best, axis, nan_wins=nan_wins)
        weights.append((hits / np.maximum(counts, 1)).astype(x.dtype))
    return weights


def each_quantile(gz, z, x, q, axis, keepdims):
    """Each q with its adjoint and its result, these with the reduced axes."""
    rest = z.shape[np.ndim(q):]
    flat_q, flat_z = np.reshape(q, (-1,)), np.reshape(z, (-1,) + rest)
    flat_g = np.reshape(gz, lead_of(gz, z) + (-1,) + rest)
    for i in range(flat_q.shape[0]):
        part = (Ellipsis, i) + (slice(None),) * len(rest)
        yield flat_q[i], restored(flat_g[part], x, axis, keepdims), restored(flat_z[part], x, axis, keepdims)


def all_axes(axis, x):
    return tuple(range(-x.ndim, 0)) if axis is None else axis


def quantile_vjp(function, scale):
    """The rule of np.quantile (scale 1), np.percentile (100) or one of their kin by the data."""
    nan_wins = not function.__name__.startswith("nan")

    def vjp(gz, z, x, q=0.5, *, axis, keepdims, method="linear", weights=None):
        axis, total = all_axes(axis, x), np.zeros(x.shape, x.dtype)
        if x.size == 0:
            return np.zeros(lead_of(gz, z) + x.shape, x.dtype)
        n = np.prod([x.shape[a] for a in axis], dtype=int)
        counts = n if nan_wins else np.add.reduce(~np.isnan(x), axis, keepdims=True)
        for q_i, g, z_i in each_quantile(gz, z, x, q, axis, keepdims):
            if weights is None:
                position = positions(function, plain_value(q_i), counts, method)
                before, after = neighbours(x, z_i, axis, position, nan_wins)
                # of a q that is tracked the fraction has a derivative, too
                fraction = (q_i / scale * (n - 1) if tracked(q_i) else position) - np.floor(position)
                share = before * (1 - fraction) + after * fraction
            else:
                hits, number = hits_and_counts(x, z_i, axis, nan_wins=nan_wins)
                share = hits / np.maximum(number, 1)
            total = total + k.strong_multiply(share, g)
        return total
    return vjp


def quantile_q_vjp(function, scale):
    """By q, for method="linear": the slope of the line between the neighbours; at a corner that of the line after it."""
    def vjp(gz, z, x, q, *, axis, keepdims, method="linear", weights=None):
        axis, slopes = all_axes(axis, x), []
        n = np.prod([x.shape[a] for a in axis], dtype=int)
        for q_i, g, z_i in each_quantile(gz, z, x, q, axis, keepdims):
            if n > 1:
                place = np.minimum(np.floor(positions(function, plain_value(q_i), n, method)), n - 2)
                before, after = neighbours(x, z_i, axis, place + 0.5, True)
                g = g * np.sum((after - before) * x, axis=axis, keepdims=True) * ((n - 1) / scale)
            else:
                g = g * 0
            slopes.append(np.sum(g, axis=tuple(range(-x.ndim, 0))))
        slopes = np.stack(slopes, axis=-1) if slopes else np.zeros(lead_of(gz, z) + (0,), z.dtype)
        return np.reshape(slopes, lead_of(gz, z) + np.shape(q))
    return vjp


def quantile_op(function, scale):
    """Register np.quantile or one of its kin."""
    name = function.__name__
    op = structural(name, vjp=(quantile_vjp(function, scale), quantile_q_vjp(function, scale)), reads=("xyz", "xyz"), samples=[
        Sample(lambda x: function(x, 0.3 * scale), ((5,),)),
        Sample(lambda x: function(x, np.array([0.2, 0.9]) * scale, axis=(0, -1), keepdims=True), ((2, 3, 4),)),
        Sample(lambda x: function(x, 0.35 * scale, axis=1, method="hazen"), ((3, 4),))])

    @implements(function)
    def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
        v, plain_q = plain_value(a), plain_value(q)
        axis = tuple(axis) if isinstance(axis, list) else axis
        if tracked(q) and (method != "linear" or weights is not None or name.startswith("nan")):
            raise NotImplementedError(f"{name}: q is tracked, and its derivative is there for np.quantile and np.percentile with "
                                      "method='linear' only; use those, or q.value for a constant q")
        given = {} if weights is None else {"weights": np.array(plain_value(weights))}
        value = function(v, plain_q, axis, out_like(out), False, method, keepdims, **given)
        params = reduction_params(np.ndim(v), axis, keepdims) | {"method": method} | given
        return deliver(record(op, value, (a, q if is_array(q) else np.array(q)), params), out)


for _function, _scale in (np.quantile, 1), (np.percentile, 100), (np.nanquantile, 1), (np.nanpercentile, 100):
    quantile_op(_function, _scale)


def median_op(function, quantile):
    op = structural(function.__name__, vjp=(quantile_vjp(quantile, 1),), reads=("xz",), samples=[
        Sample(function, ((5,),)), Sample(function, ((2, 3, 4),), kwargs=dict(axis=(0, -1), keepdims=True))])

    @implements(function)
    def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
        v = plain_value(a)
        axis = tuple(axis) if isinstance(axis, list) else axis
        value = function(v, axis, out_like(out), False, keepdims)
        return deliver(record(op, value, (a,), reduction_params(np.ndim(v), axis, keepdims)), out)


median_op(np.median, np.quantile)
median_op(np.nanmedian, np.nanquantile)
