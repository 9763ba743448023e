"""Reductions: sum, mean, prod, the extrema, logaddexp, trace, those that skip NaN, and what they share about axes.

Axes are recorded as negative numbers, counted from the end of the input, so that a rule works for adjoints with leading axes.
Uses the registry; `accumulations`, `statistics`, `norms` and `kinks` use its helpers.
"""
from functools import lru_cache
from math import prod as prod_of

import numpy as np

from cgrad import _kernels as k

from .registry import (Array, Sample, deliver, implements, method, plain_function, plain_tree, plain_value, record, structural,
                       tracked, ufunc_method)

NO_VALUE = np._NoValue

# Up to this many elements a filled array is cheaper than a view with strides of 0, and the sweep may write into it.
FILL_SIZE = 4096


# ---------------------------------------------------------------------------------------------- axes
@lru_cache(maxsize=4096)
def from_end(axis, ndim):
    """The axes of a reduction as a tuple of negative numbers; None, for all of them, stays. NumPy has checked them."""
    if axis is None:
        return None
    axes = axis if type(axis) is tuple else (axis,)
    # NumPy lets a 0-d array have the axes 0 and -1
    return tuple([int(a) - ndim if a >= 0 else int(a) for a in axes]) if ndim else ()


@lru_cache(maxsize=4096)
def axes_and_keepdims(axis, ndim, keepdims):
    """The parameters of most reductions. Nodes share them."""
    return {"axis": from_end(axis, ndim), "keepdims": bool(keepdims)}


def reduction_params(ndim, axis, keepdims, dtype=None, initial=NO_VALUE, where=True):
    """All that it takes to compute a reduction again, under NumPy's names; what has its default is left out."""
    params = axes_and_keepdims(axis, ndim, keepdims)
    if dtype is None and initial is NO_VALUE and where is True:
        return params
    # the mask is the user's, who may change it
    return params | given_only(dtype=dtype, initial=initial, where=where if where is True else np.array(where))


def given_only(**keywords):
    """Those keywords of a reduction that do not have their default."""
    return {name: v for name, v in keywords.items() if v is not None and v is not NO_VALUE and v is not True}


@lru_cache(maxsize=4096)
def _restoring_index(axis, ndim):
    axes = range(-ndim, 0) if axis is None else axis
    return (Ellipsis, *[None if a in axes else slice(None) for a in range(-ndim, 0)])


def restored(g, x, axis, keepdims):
    """g with an axis of length 1 for each one that the reduction of `x` removed; a scalar broadcasts as it is."""
    if keepdims or axis == () or g.ndim == 0:
        return g
    return g[_restoring_index(axis, x.ndim)]


def lead_of(gz, z):
    """The leading axes of a batched sweep."""
    return gz.shape[:gz.ndim - z.ndim]


def count_of(x, z):
    """How many elements of x went into each element of z."""
    return x.size // max(z.size, 1)


def stretched(g, shape):
    """g over `shape`, to be read only: a full array where that is cheap, else a view."""
    if type(g) is Array:
        return np.broadcast_to(g, shape)
    if prod_of(shape) <= FILL_SIZE:
        full = np.empty(shape, g.dtype)
        full[...] = g
        return full
    if g.ndim == 0:
        # as np.broadcast_to, which takes a dozen times as long
        return np.ndarray(shape, g.dtype, g, 0, (0,) * len(shape))
    return np.broadcast_to(g, shape)


def spread(gz, z, x, axis, keepdims, where=True):
    """The adjoint of a sum: gz over all elements of x that went into it, 0 for those that `where` left out."""
    if gz.ndim == 0 and where is True:
        return stretched(gz, x.shape)
    g = restored(gz, x, axis, keepdims)
    if where is not True:
        g = np.where(np.broadcast_to(where, x.shape), g, 0)
    return stretched(g, lead_of(gz, z) + x.shape)


def conjugate(x):
    """The conjugate, without a pass over real data."""
    return np.conj(x) if x.dtype.kind == "c" else x


def out_like(out):
    """An ndarray that NumPy fills in place of the argument ``out=out``, since it computes in the dtype of that."""
    if type(out) is tuple:
        (out,) = out
    return None if out is None else np.empty(out.shape, out.dtype)


def check_initial(name, initial):
    if tracked(initial):
        raise TypeError(f"{name}: initial= is tracked, and its gradient would be lost; combine it with the result instead, e.g. "
                        "np.sum(x) + initial, or pass initial.value for a constant")


def reducer(op, ufunc, default_axis=None):
    """A function with the signature of np.sum that records `op`, the reduction by `ufunc`."""
    reduce = ufunc.reduce

    def reduction(x, axis=default_axis, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
        v = plain_value(x)
        if out is None and dtype is None and initial is NO_VALUE and where is True:
            return record(op, reduce(v, axis, None, None, keepdims), (x,), axes_and_keepdims(axis, x.ndim, keepdims))
        check_initial(op.name, initial)
        where = plain_value(where)
        value = reduce(v, axis, dtype, out_like(out), keepdims, initial, where)
        return deliver(record(op, value, (x,), reduction_params(np.ndim(v), axis, keepdims, dtype, initial, where)), out)
    return reduction


# ---------------------------------------------------------------------------------------------- sum
def sum_vjp(gz, z, x, *, axis, keepdims, where=True, **_):
    return spread(gz, z, x, axis, keepdims, where)


SUM = structural("sum", vjp=(sum_vjp,), linear=True, samples=[
    Sample(np.sum, ((3, 4),), complex=True), Sample(np.sum, ((2, 3, 4),), kwargs=dict(axis=(0, -1), keepdims=True)),
    Sample(np.sum, ((3, 4),), kwargs=dict(axis=1, initial=2.0, where=np.arange(4) != 2))])

sum_ = reducer(SUM, np.add)
implements(np.sum)(sum_)
method("sum")(sum_)
ufunc_method(np.add, "reduce")(reducer(SUM, np.add, 0))


# ---------------------------------------------------------------------------------------------- mean
def mean_vjp(gz, z, x, *, axis, keepdims, where=True, **_):
    if where is True:
        return spread(gz / max(count_of(x, z), 1), z, x, axis, keepdims)
    counts = np.add.reduce(np.broadcast_to(where, x.shape), axis, keepdims=True)
    return stretched(np.where(np.broadcast_to(where, x.shape), restored(gz, x, axis, keepdims) / np.maximum(counts, 1), 0),
                     lead_of(gz, z) + x.shape)


MEAN = structural("mean", vjp=(mean_vjp,), linear=True, samples=[
    Sample(np.mean, ((3, 4),), complex=True), Sample(np.mean, ((2, 3, 4),), kwargs=dict(axis=(0, -1), keepdims=True)),
    Sample(np.mean, ((3, 4),), kwargs=dict(axis=0, where=np.array([[True], [False], [True]])))])

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)


@implements(np.mean)
@method("mean")
def mean(x, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    v = plain_value(x)
    if out is None and dtype is None and where is True:
        total = np.add.reduce(v, axis, None, None, keepdims)
        count = x.size // max(total.size, 1)
        # NumPy divides float32 sums in float64, which rounds to the same as long as the count is exact in float32
        if count and (x.dtype is FLOAT64 or x.dtype is FLOAT32 and count < 1 << 24):
            return record(MEAN, total / count, (x,), axes_and_keepdims(axis, x.ndim, keepdims))
    where = plain_value(where)
    value = np.mean(v, axis, dtype, out_like(out), keepdims, where=where)
    return deliver(record(MEAN, value, (x,), reduction_params(np.ndim(v), axis, keepdims, dtype, where=where)), out)


# ---------------------------------------------------------------------------------------------- products
def is_normal(z):
    """Whether all numbers are finite and keep all their digits: neither 0 nor subnormal."""
    size, info = np.abs(z), np.finfo(z.dtype)
    return bool(((size >= info.tiny) & (size <= info.max)).all())


def exclusive_cumprod(x):
    """Along the last axis, the product of what comes before each element."""
    ones = np.ones(x.shape[:-1] + (1,), x.dtype)
    return np.cumprod(np.concatenate([ones, x[..., :-1]], axis=-1), axis=-1)


def products_of_others(x, axis):
    """For each element the product of all others along the axes, without a division: zeros do no harm."""
    axes = list(range(-x.ndim, 0)) if axis is None else list(axis)
    moved = np.moveaxis(x, axes, range(-len(axes), 0))
    rows = np.reshape(moved, moved.shape[:x.ndim - len(axes)] + (-1,))
    others = exclusive_cumprod(rows) * exclusive_cumprod(rows[..., ::-1])[..., ::-1]
    return np.moveaxis(np.reshape(others, moved.shape), range(-len(axes), 0), axes)


def prod_vjp(gz, z, x, *, axis, keepdims, initial=1, where=True, **_):
    if where is not True:
        x = np.where(where, x, 1)
    if is_normal(z):
        g = restored(gz * z, x, axis, keepdims) / x
    else:
        with np.errstate(all="ignore"):
            g = k.strong_multiply(restored(gz, x, axis, keepdims), products_of_others(x, axis) * initial)
    return g if where is True else np.where(np.broadcast_to(where, x.shape), g, 0)


PROD = structural("prod", vjp=(prod_vjp,), reads=("xz",), samples=[
    Sample(np.prod, ((3, 4),), complex=True), Sample(np.prod, ((2, 3, 4),), kwargs=dict(axis=(0, -1), keepdims=True)),
    Sample(np.prod, ((3, 4),), kwargs=dict(axis=1, initial=2.0, where=np.arange(4) != 2))])

prod = reducer(PROD, np.multiply)
implements(np.prod)(prod)
method("prod")(prod)
ufunc_method(np.multiply, "reduce")(reducer(PROD, np.multiply, 0))


# ---------------------------------------------------------------------------------------------- extrema
def hits_and_counts(x, best, axis, where=True, initial=NO_VALUE, nan_wins=True):
    """Which elements of x are `best` (with its reduced axes), and how many there are in each reduction."""
    hits = x == best
    if where is not True:
        hits = hits & where
    counts = np.add.reduce(hits, axis, keepdims=True)
    if nan_wins and not np.all(counts):
        unequal = (x != x) & (best != best)
        hits = hits | (unequal if where is True else unequal & where)
        counts = np.add.reduce(hits, axis, keepdims=True)
    if initial is not NO_VALUE:
        counts = counts + (best == initial)
    return hits, counts


def selected(hits, share, shape):
    """`share` where there is a hit, 0 elsewhere, whatever the share is there."""
    if type(share) is Array:
        return np.where(np.broadcast_to(hits, shape), share, 0)
    g = np.zeros(shape, share.dtype)
    if share.ndim == 0:
        g[hits] = share
    else:
        np.copyto(g, share, where=hits)
    return g


def extremum_vjp(gz, z, x, *, axis, keepdims, initial=NO_VALUE, where=True, nan_wins=True, **_):
    """Equal shares for all elements that are the extremum."""
    g, best = restored(gz, x, axis, keepdims), restored(z, x, axis, keepdims)
    if where is True and initial is NO_VALUE and type(gz) is not Array:
        hits = x == best
        count = np.count_nonzero(hits)
        if count and z.ndim == 0:
            return selected(hits, g if count == 1 else g / count, lead_of(gz, z) + x.shape)
        if count == z.size and (z == z).all():          # one in each, since there is at least one
            return selected(hits, g, lead_of(gz, z) + x.shape)
    hits, counts = hits_and_counts(x, best, axis, where, initial, nan_wins)
    return selected(hits, g / np.maximum(counts, 1), lead_of(gz, z) + x.shape)


def ignoring_nan_vjp(gz, z, x, **params):
    return extremum_vjp(gz, z, x, nan_wins=False, **params)


def extremum(name, function, vjp=extremum_vjp):
    return structural(name, vjp=(vjp,), reads=("xz",), samples=[
        Sample(function, ((3, 4),)), Sample(function, ((2, 3, 4),), kwargs=dict(axis=(0, -1), keepdims=True)),
        Sample(function, ((3, 4),), kwargs=dict(axis=1, initial=0.5, where=np.arange(4) != 2))])


MAX = extremum("max", np.max)
MIN = extremum("min", np.min)
FMAX = extremum("fmax_reduce", np.fmax.reduce, ignoring_nan_vjp)
FMIN = extremum("fmin_reduce", np.fmin.reduce, ignoring_nan_vjp)

for _op, _ufunc in (MAX, np.maximum), (MIN, np.minimum), (FMAX, np.fmax), (FMIN, np.fmin):
    ufunc_method(_ufunc, "reduce")(reducer(_op, _ufunc, 0))

_maximum, _minimum = reducer(MAX, np.maximum), reducer(MIN, np.minimum)


@implements(np.max, np.amax)
@method("max")
def max_(x, axis=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    return _maximum(x, axis, None, out, keepdims, initial, where)


@implements(np.min, np.amin)
@method("min")
def min_(x, axis=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    return _minimum(x, axis, None, out, keepdims, initial, where)


@implements(np.ptp)
def ptp(x, axis=None, out=None, keepdims=False):
    return deliver(np.subtract(_maximum(x, axis, keepdims=keepdims), _minimum(x, axis, keepdims=keepdims)), out)


# ---------------------------------------------------------------------------------------------- logaddexp
def logaddexp_vjp(base_exp):
    def vjp(gz, z, x, *, axis, keepdims, where=True, **_):
        best = restored(z, x, axis, keepdims)
        # of nothing but -inf: every weight is 0, not exp(-inf + inf)
        best = np.where(best == -np.inf, 0, best)
        if where is not True:
            x = np.where(where, x, -np.inf)
        return k.strong_multiply(restored(gz, x, axis, keepdims), base_exp(x - best))
    return vjp


for _ufunc, _exp in (np.logaddexp, np.exp), (np.logaddexp2, np.exp2):
    ufunc_method(_ufunc, "reduce")(reducer(structural(
        f"{_ufunc.__name__}_reduce", vjp=(logaddexp_vjp(_exp),), reads=("xz",), samples=[
            Sample(_ufunc.reduce, ((4,),)), Sample(_ufunc.reduce, ((3, 4),), kwargs=dict(axis=1, keepdims=True))]), _ufunc, 0))


# ---------------------------------------------------------------------------------------------- without NaN
def skipping_nan(vjp):
    """The rule of a function that leaves NaN out: that of the plain function with a mask."""
    def skipping(gz, z, x, *others, where=True, **params):
        return vjp(gz, z, x, *others, where=~np.isnan(x) & where, **params)
    return skipping


def nan_reduction(function, vjp, *, linear=False, **kwargs):
    """The op of a nan-function with the arguments of np.nansum, and what records it."""
    op = structural(function.__name__, vjp=(skipping_nan(vjp),), reads=("xz",), linear=linear, samples=[
        Sample(function, ((3, 4),), **kwargs), Sample(function, ((2, 3, 4),), kwargs=dict(axis=(0, -1), keepdims=True))])

    @implements(function)
    def reduction(x, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
        v = plain_value(x)
        check_initial(op.name, initial)
        given = given_only(dtype=dtype, initial=initial, where=plain_value(where))
        value = function(v, axis=axis, out=out_like(out), keepdims=keepdims, **given)
        return deliver(record(op, value, (x,), reduction_params(np.ndim(v), axis, keepdims, **given)), out)
    return reduction


nan_reduction(np.nansum, sum_vjp, complex=True)
nan_reduction(np.nanmean, mean_vjp, complex=True)
nan_reduction(np.nanprod, prod_vjp, complex=True)


def _without_dtype(reduction):
    def extremum(x, axis=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
        return reduction(x, axis, None, out, keepdims, initial, where)
    return extremum


for _function in np.nanmax, np.nanmin:
    implements(_function)(_without_dtype(nan_reduction(_function, ignoring_nan_vjp)))


# ---------------------------------------------------------------------------------------------- trace
def trace_vjp(gz, z, x, *, offset, axis1, axis2, **_):
    shape = [1] * x.ndim
    shape[axis1], shape[axis2] = x.shape[axis1], x.shape[axis2]
    diagonal = np.eye(x.shape[axis1], x.shape[axis2], offset, dtype=bool)
    if axis1 > axis2:
        diagonal = diagonal.T
    return selected(diagonal.reshape(shape), restored(gz, x, (axis1, axis2), False), lead_of(gz, z) + x.shape)


TRACE = structural("trace", vjp=(trace_vjp,), linear=True, samples=[
    Sample(np.trace, ((3, 3),), complex=True), Sample(np.trace, ((2, 3, 4),), kwargs=dict(offset=1, axis1=2, axis2=0))])


@implements(np.trace)
@method("trace")
def trace(x, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    v = plain_value(x)
    value = np.trace(v, offset, axis1, axis2, dtype, out_like(out))
    axis1, axis2 = from_end((axis1, axis2), np.ndim(v))
    return deliver(record(TRACE, value, (x,), {"offset": offset, "axis1": axis1, "axis2": axis2, "dtype": dtype}), out)


@implements(np.linalg.trace)
def linalg_trace(x, /, *, offset=0, dtype=None):
    return trace(x, offset, -2, -1, dtype)


# ---------------------------------------------------------------------------------------------- without a derivative
plain_function(np.argmax, np.argmin, np.nanargmax, np.nanargmin, np.count_nonzero, np.any, np.all, np.array_equal,
               np.array_equiv, np.allclose, np.isclose)


def _plain_method(name):
    def call(self, *args, **kwargs):
        return getattr(plain_value(self), name)(*plain_tree(args), **plain_tree(kwargs))
    return call


for _name in "argmax", "argmin", "any", "all":
    method(_name)(_plain_method(_name))


def _plain_reduce(ufunc):
    def reduce(*args, **kwargs):
        return ufunc.reduce(*plain_tree(args), **plain_tree(kwargs))
    return reduce


for _ufunc in np.logical_and, np.logical_or, np.logical_xor:
    ufunc_method(_ufunc, "reduce")(_plain_reduce(_ufunc))
