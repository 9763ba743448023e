"""Statistics: variances, standard deviations, weighted averages, medians and quantiles.

Uses the registry and `reductions`.
"""
import numpy as np

from cgrad import _kernels as k

from .reductions import NO_VALUE, hits_and_counts, lead_of, out_like, reduction_params, restored, skipping_nan
from .registry import Array, Sample, deliver, implements, is_array, method, plain_value, record, structural, tracked


# ---------------------------------------------------------------------------------------------- variance
def deviations(x, mean, axis, where):
    """x minus its mean, 0 where masked."""
    if mean is None:
        mean = np.mean(x, axis=axis, keepdims=True, where=where)
    return x - mean if where is True else np.where(where, x - mean, 0)


def freedom(x, axis, where, ddof):
    """Degrees of freedom, a number or an array with the reduced axes; NaN where there are none, as the variance is."""
    if where is True:
        counts = np.prod([x.shape[a] for a in (range(-x.ndim, 0) if axis is None else axis)], dtype=int)
    else:
        counts = np.add.reduce(np.broadcast_to(where, x.shape), axis, keepdims=True)
    left = np.subtract(counts, ddof, dtype=x.real.dtype)
    return np.where(left > 0, left, np.nan).astype(left.dtype)


def var_vjp(gz, z, x, mean=None, *, axis, keepdims, ddof, where=True, **_):
    # the mean's own share is nothing: deviations add up to 0
    scale = restored(gz, x, axis, keepdims) * (2 / freedom(x, axis, where, ddof))
    return np.conj(deviations(x, mean, axis, where)) * scale


def var_mean_vjp(gz, z, x, mean, **params):
    return -var_vjp(gz, z, x, mean, **params)


def constant_slices(x, z, mean, axis, where):
    """Where all data are equal, so that what the deviations hold is rounding; None if nowhere."""
    spread = np.finfo(z.dtype).eps * np.abs(mean) * 64
    if not np.any(z <= spread):
        return None
    first = np.maximum.reduce(x.real, axis, keepdims=True, initial=-np.inf, where=where)
    last = np.minimum.reduce(x.real, axis, keepdims=True, initial=np.inf, where=where)
    return first == last


def std_vjp(gz, z, x, mean=None, *, axis, keepdims, ddof, where=True, **_):
    """A norm of the deviations. Constant data are its kink; of the subgradients there 0 is the shortest."""
    z, gz = restored(z, x, axis, keepdims), restored(gz, x, axis, keepdims)
    d = np.conj(deviations(x, mean, axis, where))
    return k.over_or_zero(d, z) * (gz / freedom(x, axis, where, ddof))
