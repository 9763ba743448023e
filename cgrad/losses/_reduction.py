"""From one loss per sample to the result: weights, mask and reduction.

Uses NumPy only; used by every loss.  The arithmetic is that of Keras 3's loss classes
(``keras.losses.Loss``); the package docstring states it in words.
"""

import math

import numpy as np

from ._inputs import as_array, cast, numeric

REDUCTIONS = ("none", "sum", "sum_over_batch_size", "mean", "mean_with_sample_weight")


def check_reduction(loss, reduction):
    if reduction is not None and reduction not in REDUCTIONS:
        raise ValueError(
            f"{loss}: unknown reduction {reduction!r}; expected None or one of "
            + ", ".join(map(repr, REDUCTIONS))
        )


def reduce_losses(loss, values, reduction, sample_weight, mask):
    """Weight, mask and reduce `values`, the losses of the single samples."""
    check_reduction(loss, reduction)
    weights = _weights(loss, values.dtype, reduction, sample_weight, mask)
    if weights is not None:
        if weights.ndim == values.ndim + 1 and weights.shape[-1] == 1:
            values = np.expand_dims(values, -1)
        weights = append_axes(weights, values.ndim)
        _check_fit(loss, weights, values, "sample_weight" if mask is None else "mask")
        values = values * weights
    if reduction in (None, "none") or values.shape in ((), (0,)):
        return values
    total = np.sum(values)
    if reduction == "sum":
        return total
    if reduction == "mean_with_sample_weight" and weights is not None:
        count = np.sum(weights)
    else:
        count = math.prod(values.shape)
    # no losses, or none with a weight: 0, and not 0/0
    return total * 0 if count == 0 else total / count


def _weights(loss, dtype, reduction, sample_weight, mask):
    """One array of factors for the losses, or None if there is nothing to multiply."""
    weights = None
    if sample_weight is not None:
        weights = numeric(loss, "sample_weight", sample_weight, dtype)
    if mask is None:
        return weights
    mask = numeric(loss, "mask", mask, dtype)
    if reduction in ("mean", "sum_over_batch_size"):
        kept = np.sum(mask)  # makes up for the masked losses, which are counted too
        mask = mask * (0 if kept == 0 else math.prod(mask.shape) / kept)
    if weights is None:
        return mask
    weights = append_axes(weights, mask.ndim)
    _check_fit(loss, weights, mask, "sample_weight")
    return weights * mask


def append_axes(x, ndim):
    """`x` with last axes of 1 added up to `ndim`; a scalar stays one."""
    while 0 < x.ndim < ndim:
        x = np.expand_dims(x, -1)
    return x


def join_masks(keep, mask):
    """The logical and of `keep`, which has the shape of the losses, and a mask or None."""
    if mask is None:
        return keep
    return np.logical_and(keep, append_axes(cast(as_array(mask), np.dtype(bool)), keep.ndim))


def _check_fit(loss, factor, values, name):
    try:
        fits = np.broadcast_shapes(factor.shape, values.shape) == values.shape
    except ValueError:
        fits = False
    if not fits:
        hint = "" if values.ndim else (
            "; y_true and y_pred have one axis, which the loss runs over: give them shape "
            "(n, 1) for n losses of one number each"
        )
        raise ValueError(
            f"{loss}: {name} of shape {factor.shape} does not fit losses of shape "
            f"{values.shape}; give one number per loss, or per leading index{hint}"
        )
