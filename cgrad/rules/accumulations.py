"""Accumulations: running sums, products and extrema, and np.add.reduceat.

The adjoint of an accumulation obeys a linear recurrence from its end to its start; see `recurrence`. Axes are recorded as
negative numbers. Uses the registry and `reductions`.
"""
from functools import lru_cache

import numpy as np

from cgrad import _kernels as k

from .reductions import exclusive_cumprod, from_end, given_only, is_normal, lead_of, out_like
from .registry import (Array, Sample, constant, deliver, implements, method, plain_value, record, structural, ufunc_method)


# ---------------------------------------------------------------------------------------------- along one axis
def along(axis, part):
    """The index that takes `part` of the negative `axis`."""
    return (Ellipsis, part) + (slice(None),) * (-axis - 1)


BACKWARD = slice(None, None, -1)
AFTER_FIRST = slice(1, None)


def with_axis_last(axis, *arrays):
    return arrays if axis == -1 else tuple([np.moveaxis(a, axis, -1) for a in arrays])


def with_axis_back(axis, a):
    return a if axis == -1 else np.moveaxis(a, -1, axis)


def reverse_cumsum(g, axis):
    """Each element plus all that come after it."""
    index = along(axis, BACKWARD)
    return np.cumsum(g[index], axis=axis)[index]


def recurrence(g, weights):
    """a with a[i] = g[i] + weights[i] a[i + 1], and a[n - 1] = g[n - 1], along the last axis.

    By doubling: after s rounds a[i] has the terms from g[i] to g[i + 2**s - 1], and weights[i] leads from i to i + 2**s. There
    is no division, so weights may be 0. Takes log2(n) rounds, on ndarrays and Arrays.
    """
    n, step = g.shape[-1], 1
    while step < n:
        g = np.concatenate([g[..., :-step] + k.strong_multiply(g[..., step:], weights), g[..., n - step:]], axis=-1)
        weights = weights[..., :-step] * weights[..., step:]
        step *= 2
    return g


# ---------------------------------------------------------------------------------------------- registering
@lru_cache(maxsize=4096)
def accumulation_params(axis, ndim):
    # a 0-d array counts as one of length 1, as a flattened one does
    return {"axis": None if axis is None or not ndim else from_end(axis, ndim)[0]}


def accumulation(op, compute, default_axis=None):
    """A function with the signature of np.cumsum that records `op`; `compute` is NumPy's function."""
    def accumulate(x, axis=default_axis, dtype=None, out=None):
        v = plain_value(x)
        value = compute(v, axis, dtype, out_like(out))
        params = accumulation_params(axis, np.ndim(v)) | given_only(dtype=dtype)
        return deliver(record(op, value, (x,), params), out)
    return accumulate


def cumulative(op, function):
    """A function with the signature of np.cumulative_sum that records `op`."""
    def accumulate(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        v = plain_value(x)
        value = function(v, axis=axis, dtype=dtype, out=out_like(out), include_initial=include_initial)
        params = accumulation_params(-1 if axis is None else axis, np.ndim(v)) | given_only(dtype=dtype)
        return deliver(record(op, value, (x,), params | {"include_initial": bool(include_initial)}), out)
    return accumulate


# ---------------------------------------------------------------------------------------------- sums
def cumsum_vjp(gz, z, x, *, axis, include_initial=False, **_):
    along_axis = -1 if axis is None else axis
    g = reverse_cumsum(gz[along(along_axis, AFTER_FIRST)] if include_initial else gz, along_axis)
    return np.reshape(g, lead_of(gz, z) + x.shape) if axis is None else g


CUMSUM = structural("cumsum", vjp=(cumsum_vjp,), linear=True, samples=[
    Sample(np.cumsum, ((3, 4),), complex=True), Sample(np.cumsum, ((2, 3, 4),), kwargs=dict(axis=1))])


# ---------------------------------------------------------------------------------------------- products
def cumprod_adjoint(g, x, z, axis):
    """z[j] has the factor x[i] for all j >= i, so the adjoint of x[i] is the sum of g[j] z[j] / x[i]."""
    if is_normal(z):
        return reverse_cumsum(g * z, axis) / x
    g, x = with_axis_last(axis, g, x)
    with np.errstate(all="ignore"):
        # as a chain of products: z[i] = z[i - 1] x[i]
        return with_axis_back(axis, k.strong_multiply(recurrence(g, x[..., 1:]), exclusive_cumprod(x)))


def cumprod_vjp(gz, z, x, *, axis, include_initial=False, **_):
    along_axis = -1 if axis is None else axis
    row = np.reshape(x, (-1,)) if axis is None else x
    if include_initial:
        index = along(along_axis, AFTER_FIRST)
        g = cumprod_adjoint(gz[index], row, z[index], along_axis)
    else:
        g = cumprod_adjoint(gz, row, z, along_axis)
    return np.reshape(g, lead_of(gz, z) + x.shape) if axis is None else g


CUMPROD = structural("cumprod", vjp=(cumprod_vjp,), reads=("xz",), samples=[
    Sample(np.cumprod, ((3, 4),), complex=True), Sample(np.cumprod, ((2, 3, 4),), kwargs=dict(axis=1))])

for _op, _function, _ufunc in (CUMSUM, np.cumsum, np.add), (CUMPROD, np.cumprod, np.multiply):
    _handler = accumulation(_op, _function)
    implements(_function)(_handler)
    method(_function.__name__)(_handler)
    ufunc_method(_ufunc, "accumulate")(accumulation(_op, _ufunc.accumulate, 0))

if hasattr(np, "cumulative_sum"):                   # NumPy 2.1
    for _function, _rule in (np.cumulative_sum, dict(vjp=(cumsum_vjp,), linear=True)), \
            (np.cumulative_prod, dict(vjp=(cumprod_vjp,), reads=("xz",))):
        implements(_function)(cumulative(structural(_function.__name__, **_rule, samples=[
            Sample(_function, ((4,),)), Sample(_function, ((2, 3, 4),), kwargs=dict(axis=1, include_initial=True))]), _function))


# ---------------------------------------------------------------------------------------------- without NaN
def nancumsum_vjp(gz, z, x, **params):
    return np.where(np.isnan(x), 0, cumsum_vjp(gz, z, x, **params))


def nancumprod_vjp(gz, z, x, **params):
    skipped = np.isnan(x)
    return np.where(skipped, 0, cumprod_vjp(gz, z, np.where(skipped, 1, x), **params))


implements(np.nancumsum)(accumulation(structural("nancumsum", vjp=(nancumsum_vjp,), reads=("x",), samples=[
    Sample(np.nancumsum, ((3, 4),), complex=True), Sample(np.nancumsum, ((2, 3, 4),), kwargs=dict(axis=1))]), np.nancumsum))
implements(np.nancumprod)(accumulation(structural("nancumprod", vjp=(nancumprod_vjp,), reads=("xz",), samples=[
    Sample(np.nancumprod, ((3, 4),), complex=True), Sample(np.nancumprod, ((2, 3, 4),), kwargs=dict(axis=1))]), np.nancumprod))


# ---------------------------------------------------------------------------------------------- extrema
def running_extremum_vjp(gz, z, x, *, axis, **_):
    """Each result is shared equally by the elements so far that are equal to it."""
    gz, x, z = with_axis_last(axis, gz, x, z)
    hits = (x == z) | ((x != x) & (z != z))
    now, before = z[..., 1:], z[..., :-1]
    same = (now == before) | ((now != now) & (before != before))
    # hits since the extremum last changed: a change starts from the total before it
    totals = np.add.accumulate(hits, axis=-1, dtype=np.intp)
    starts = np.zeros_like(totals)
    starts[..., 1:] = np.where(same, 0, totals[..., :-1])
    counts = totals - np.maximum.accumulate(starts, axis=-1)
    share = np.where(hits, 1 / counts, 0).astype(z.dtype)
    # z[i] is x[i] with weight `share`, and z[i - 1] with the rest
    rest = np.where(same, 1 - share[..., 1:], 0).astype(z.dtype)
    return with_axis_back(axis, recurrence(gz, rest) * share)


for _name, _ufunc in ("cummax", np.maximum), ("cummin", np.minimum):
    ufunc_method(_ufunc, "accumulate")(accumulation(structural(
        _name, vjp=(running_extremum_vjp,), reads=("xz",), samples=[
            Sample(_ufunc.accumulate, ((5,),)), Sample(_ufunc.accumulate, ((3, 4),), kwargs=dict(axis=1))]),
        _ufunc.accumulate, 0))


# ---------------------------------------------------------------------------------------------- sums of stretches
def reduceat_vjp(gz, z, x, *, indices, axis, **_):
    """Stretch i runs from indices[i] up to indices[i + 1] or the end; it is one element where that is not ahead."""
    n = x.shape[axis]
    if np.all(indices[1:] > indices[:-1]):
        owners = np.searchsorted(indices, np.arange(n), side="right") - 1
        g = gz[along(axis, owners)]
        if indices[0] == 0:
            return g
        return np.where(np.reshape(owners >= 0, (n,) + (1,) * (-axis - 1)), g, 0)
    stops = np.append(indices[1:], n)
    lengths = np.maximum(stops - indices, 1)
    owners = np.repeat(np.arange(len(indices)), lengths)
    positions = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths - indices, lengths)
    into = np.zeros(lead_of(gz, z) + x.shape, gz.dtype)
    if type(gz) is Array:
        into = constant(into, gz)
    np.add.at(into, along(axis, positions), gz[along(axis, owners)])
    return into


REDUCEAT = structural("add_reduceat", vjp=(reduceat_vjp,), linear=True, samples=[
    Sample(np.add.reduceat, ((6,),), kwargs=dict(indices=[0, 2, 5])),
    Sample(np.add.reduceat, ((3, 6),), kwargs=dict(indices=[1, 4, 4, 2], axis=1))])


@ufunc_method(np.add, "reduceat")
def add_reduceat(x, indices, /, axis=0, dtype=None, out=None, **same):
    # NumPy passes indices=... on as a positional argument and as a keyword
    v = plain_value(x)
    indices = np.array(indices, np.intp)
    value = np.add.reduceat(v, indices, axis, dtype, out_like(out))
    params = {"indices": indices, "axis": from_end(axis, np.ndim(v))[0]} | given_only(dtype=dtype)
    return deliver(record(REDUCEAT, value, (x,), params), out)
