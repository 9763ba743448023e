"""Order: sort, partition, unique and sets; the plain functions of order; bincount and histogram.

The order itself is piecewise constant. Sorted values are the same values at other places, so a derivative follows each value to
where it went; among equal values, which goes where is NumPy's choice.
"""
import numpy as np

from cgrad._parts import part

from .registry import (Sample, implements, is_array, method, overwrite, plain_function, plain_tree,
                       plain_value, record, structural, tracked)
from .selection import index_flat, index_on_axis, with_axis

plain_function(np.argsort, np.argpartition, np.lexsort, np.searchsorted, np.digitize, np.nonzero, np.flatnonzero, np.argwhere,
               np.isin)


def plain_methods(*names):
    """Methods that are called on the value and give plain results."""
    for name in names:
        @method(name)
        def handler(self, *args, _name=name, **kwargs):
            return getattr(plain_value(self), _name)(*plain_tree(args), **plain_tree(kwargs))


plain_methods("argsort", "argpartition", "searchsorted", "nonzero")


# ---------------------------------------------------------------------------------------------- sort
def moved_back(gz, taken, to, axis):
    """gz at the places where its elements came from: along the axis, element `taken[i]` went to the place `to[i]`."""
    back = np.empty_like(taken)
    if taken.ndim == 1:
        back[taken] = to
        return gz[..., back]
    np.put_along_axis(back, taken, to, axis)
    return np.take_along_axis(gz, np.broadcast_to(back, gz.shape), axis)


def sort_vjp(gz, z, x, *, axis, kind):
    taken = np.argsort(plain_value(x), axis, kind)
    return moved_back(gz, taken, np.arange(x.shape[axis]).reshape((-1,) + (1,) * (-1 - axis)), axis)


SORT = structural("sort", vjp=(sort_vjp,), reads=("x",),
                  samples=[Sample(np.sort, ((7,),), complex=True), Sample(np.sort, ((2, 4),), kwargs=dict(axis=0))])


@implements(np.sort)
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    """np.sort."""
    value = np.sort(plain_value(a), axis, kind, order, stable=stable)
    if axis is None:
        a, axis = np.reshape(a, -1), -1
    ndim = value.ndim
    return record(SORT, value, (a,), dict(axis=axis % ndim - ndim, kind="stable" if stable else kind))


@method("sort")
def sort_in_place(self, axis=-1, kind=None, order=None, *, stable=None):
    """ndarray.sort, in place."""
    overwrite(self, sort(self, axis, kind, order, stable=stable))


@implements(np.sort_complex)
def sort_complex(a):
    """np.sort_complex."""
    result = sort(a)
    if result.dtype.kind == "c":
        return result
    return result.astype("G" if result.dtype.char == "g" else "D")


# ---------------------------------------------------------------------------------------------- partition
def partition_vjp(gz, z, x, *, axis):
    # not by argpartition, which orders the elements within a part otherwise than partition does: equal ranks are equal values
    return moved_back(gz, np.argsort(plain_value(x), axis), np.argsort(plain_value(z), axis), axis)


PARTITION = structural("partition", vjp=(partition_vjp,), reads=("xz",),
                       samples=[Sample(np.partition, ((7,),), kwargs=dict(kth=3)),
                                Sample(np.partition, ((5, 3),), kwargs=dict(kth=(1, 3), axis=0))])


@implements(np.partition)
def partition(a, kth, axis=-1, kind="introselect", order=None):
    """np.partition."""
    value = np.partition(plain_value(a), kth, axis, kind, order)
    if axis is None:
        a, axis = np.reshape(a, -1), -1
    ndim = value.ndim
    return record(PARTITION, value, (a,), dict(axis=axis % ndim - ndim))


@method("partition")
def partition_in_place(self, kth, axis=-1, kind="introselect", order=None):
    """ndarray.partition, in place."""
    overwrite(self, partition(self, kth, axis, kind, order))


# ---------------------------------------------------------------------------------------------- unique and sets
def with_values(values, ar, axis=None, equal_nan=True):
    """Unique `values` of ar, in whatever order, as elements taken from ar."""
    if axis is not None:
        _, index = np.unique(plain_value(ar), return_index=True, axis=axis, equal_nan=equal_nan)
        return part(ar, index_on_axis(index, axis, ar.ndim), values)
    ar = with_axis(ar)
    flat = np.ravel(plain_value(ar))
    order = np.argsort(flat)
    ordered = flat[order]
    # one of each run of equal values; NaNs, which lie at the end, differ from each other but for equal_nan
    index = order[np.append(True, ordered[1:] != ordered[:-1])[:len(order)]][:len(values)]
    ranks = np.argsort(values)
    if not np.array_equal(ranks, np.arange(len(ranks))):
        places = np.empty_like(index)
        places[ranks] = index
        index = places
    return part(ar, index_flat(index, ar.shape), values)


@implements(np.unique)
def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, **keywords):
    """np.unique; the values can be differentiated. NumPy 2.3 has the keyword `sorted`."""
    results = np.unique(plain_value(ar), return_index, return_inverse, return_counts, axis, equal_nan=equal_nan, **keywords)
    if isinstance(results, tuple):
        return with_values(results[0], ar, axis, equal_nan), *results[1:]
    return with_values(results, ar, axis, equal_nan)


@implements(np.unique_values)
def unique_values(x):
    """np.unique_values."""
    return with_values(np.unique_values(plain_value(x)), x, equal_nan=False)


def unique_record(function):
    @implements(function)
    def handler(x):
        results = function(plain_value(x))
        return results._replace(values=with_values(results.values, x, equal_nan=False))


for function in (np.unique_all, np.unique_counts, np.unique_inverse):
    unique_record(function)


@implements(np.union1d)
def union1d(ar1, ar2):
    """np.union1d."""
    return np.unique(np.concatenate((ar1, ar2), axis=None))


@implements(np.setdiff1d)
def setdiff1d(ar1, ar2, assume_unique=False):
    """np.setdiff1d."""
    first = np.ravel(ar1) if assume_unique else np.unique(ar1)
    return first[np.isin(plain_value(first), plain_value(ar2), assume_unique=True, invert=True)]


@implements(np.intersect1d)
def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """np.intersect1d; the common values are those of `ar1`."""
    _, first, second = np.intersect1d(plain_value(ar1), plain_value(ar2), assume_unique, return_indices=True)
    values = np.take(ar1, first)
    return (values, first, second) if return_indices else values


# ---------------------------------------------------------------------------------------------- counting with weights
BINCOUNT = structural("bincount", vjp=(lambda gz, z, weights, *, bins: gz[..., bins],), linear=True,
                      samples=[Sample(lambda w: np.bincount([0, 1, 1, 3, 0], w, 6), ((5,),))])


@implements(np.bincount)
def bincount(x, /, weights=None, minlength=0):
    """np.bincount; the weights can be differentiated."""
    x = plain_value(x)
    value = np.bincount(x, plain_value(weights), minlength)
    return record(BINCOUNT, value, (weights,), dict(bins=np.array(x, np.intp)))


HISTOGRAM = structural("histogram", linear=True,
                       vjp=(lambda gz, z, weights, *, bins, counted: np.where(counted, gz[..., bins], 0),),
                       samples=[Sample(lambda w: np.histogram([0.1, 0.5, 0.7, 0.4, 3.0], 3, (0, 1), weights=w)[0], ((5,),)),
                                Sample(lambda w: np.histogram([0.1, 0.5, 0.7], [0, 0.5, 2], density=True, weights=w)[0],
                                       ((3,),), domain=(0.5, 2))])


@implements(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):
    """np.histogram. Counts are constant between the places where an element changes its bin; weights can be differentiated,
    and so can the edges, where they come from `a` or are given.
    """
    plain, plain_bins, plain_weights = plain_value(a), plain_value(bins), plain_value(weights)
    value, edges = np.histogram(plain, plain_bins, range, weights=plain_weights)
    if tracked(weights):
        plain = np.ravel(plain)
        bins_of = np.searchsorted(edges, plain, "right") - 1
        bins_of[plain == edges[-1]] = len(edges) - 2            # the last bin has both its edges
        counted = (bins_of >= 0) & (bins_of < len(edges) - 1)
        value = record(HISTOGRAM, value, (np.reshape(weights, -1),), dict(bins=np.where(counted, bins_of, 0), counted=counted))
    if is_array(bins):
        edges = bins
    elif is_array(a) and a.size and range is None and np.ndim(plain_bins) == 0:
        edges = edges_between(a, len(edges) - 1, edges.dtype)
    if density:
        value = value / np.diff(edges) / np.sum(value)
    return value, edges


def edges_between(a, count, dtype):
    """Edges of `count` equal bins from the least to the greatest element."""
    first, last = np.min(a), np.max(a)
    if first == last:
        first, last = first - 0.5, last + 0.5
    return np.linspace(first, last, count + 1, dtype=dtype)
