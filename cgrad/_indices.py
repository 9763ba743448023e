"""Indices on arrays with leading axes, and indices that name a place more than once: what the sweep needs for getitem and setitem.

Works on ndarrays and Arrays alike. Uses `cgrad._record`; used by the sweep.
"""
import math

import numpy as np

from ._record import UFUNC_METHODS


def leading(index, n_lead):
    """The index for an array with `n_lead` further axes in front."""
    if n_lead == 0:
        return index
    return (slice(None),) * n_lead + (index if type(index) is tuple else (index,))


def repeats(index):
    """Whether an index with arrays in it may name a place twice: masks cannot."""
    return any(isinstance(i, np.ndarray) and i.dtype.kind != "b" and i.size > 1
               for i in (index if type(index) is tuple else (index,)))


def places(shape, index):
    """Numbers, in C order, of the elements of an array of this shape that the index names."""
    return np.arange(math.prod(shape)).reshape(shape)[index]


def add_at_rows(into, index, g, n_lead):
    """into[..., index] += g, adding up where the index repeats a place; behind any leading axes. Returns the sum: of an
    ndarray always `into` itself."""
    add_at = np.add.at if isinstance(into, np.ndarray) else UFUNC_METHODS[np.add, "at"]
    if n_lead == 0:
        if isinstance(into, np.ndarray) and not repeats(index):
            into[index] += g
        else:
            add_at(into, index, g)
        return into
    # several index arrays may move axes to the front of everything: go by element numbers instead
    lead, shape = into.shape[:n_lead], into.shape[n_lead:]
    flat = places(shape, index)
    rows = math.prod(lead)
    wide = into.reshape((rows, math.prod(shape)))
    add_at(wide, (slice(None), flat.ravel()), g.reshape((rows, flat.size)))
    if isinstance(into, np.ndarray):
        if not into.flags.c_contiguous:             # a transposed adjoint, of which reshape has made a copy
            into[...] = wide.reshape(into.shape)
        return into
    return wide.reshape(into.shape)


def read_rows(g, index, n_lead):
    """g[..., index] with the leading axes first, however NumPy would place the axes of several index arrays."""
    lead, shape = g.shape[:n_lead], g.shape[n_lead:]
    wide = g.reshape(lead + (math.prod(shape),))
    return wide[(slice(None),) * n_lead + (places(shape, index),)]


def touched(shape, index):
    """Mask of the places an index names."""
    mask = np.zeros(shape, bool)
    mask[index] = True
    return mask


def last_writes(shape, index):
    """Mask over the written values: True where no later one goes to the same place; None if all are."""
    if not repeats(index):
        return None
    owner = np.empty(shape, np.intp)
    order = np.arange(owner[index].size).reshape(owner[index].shape)
    owner[index] = order
    return owner[index] == order
