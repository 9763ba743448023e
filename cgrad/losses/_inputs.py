"""What every loss does first: take its arguments as arrays and check them.

Uses NumPy only; used by the modules of ``cgrad.losses``.  Each function takes the name
of the loss as its first argument, because an error has to say which loss it is about.
"""

import numbers
import operator

import numpy as np


def as_array(x):
    """`x` if it answers NumPy's functions itself, else ``np.asarray(x)``.

    A value that is being differentiated must not go through ``np.asarray``, which would
    cut it off from its tape; it is told by ``__array_function__`` (NEP 18).
    """
    return x if hasattr(type(x), "__array_function__") else np.asarray(x)


def cast(x, dtype):
    return x if x.dtype == dtype else x.astype(dtype)


def numeric(loss, name, x, dtype):
    """`x` as an array of the given float dtype; it may hold bools, integers or floats."""
    x = as_array(x)
    if x.dtype.kind not in "biuf":
        raise TypeError(f"{loss}: {name} must hold real numbers, got dtype {x.dtype}")
    return cast(x, dtype)


def probabilities(loss, y_pred):
    """`y_pred` of a cross-entropy: a float array with at least one axis."""
    y_pred = as_array(y_pred)
    if y_pred.dtype.kind != "f":
        raise TypeError(
            f"{loss}: y_pred must be a float array of probabilities or logits, got dtype "
            f"{y_pred.dtype}; convert it with .astype(float), and check that y_true and "
            "y_pred, in this order, are not swapped"
        )
    return _with_an_axis(loss, y_pred)


def real_predictions(loss, y_pred):
    """`y_pred` of a regression loss: as above, with integers taken as float64."""
    y_pred = as_array(y_pred)
    if y_pred.dtype.kind not in "biuf":
        raise TypeError(f"{loss}: y_pred must hold real numbers, got dtype {y_pred.dtype}")
    return _with_an_axis(loss, y_pred if y_pred.dtype.kind == "f" else y_pred.astype(float))


def _with_an_axis(loss, y_pred):
    if not y_pred.shape:
        raise ValueError(
            f"{loss}: y_pred must have at least one axis, to average or sum over, got "
            "shape (); pass an array of shape (1,) for a single number"
        )
    return y_pred


def same_rank(y_true, y_pred):
    """Add or drop a missing last axis of 1, the way Keras's loss classes do.

    (n,) beside (n, 1) becomes (n, 1), so that the two do not broadcast to (n, n);
    at higher ranks the surplus last axis of 1 is dropped.
    """
    if y_true.ndim == y_pred.ndim + 1 and y_true.shape[-1] == 1:
        if y_pred.ndim == 1:
            return y_true, np.expand_dims(y_pred, -1)
        return np.squeeze(y_true, axis=-1), y_pred
    if y_pred.ndim == y_true.ndim + 1 and y_pred.shape[-1] == 1:
        if y_true.ndim <= 1:
            return np.expand_dims(y_true, -1), y_pred
        return y_true, np.squeeze(y_pred, axis=-1)
    return y_true, y_pred


def same_shape(loss, y_true, y_pred, hint=""):
    """Both arrays with their shapes made equal by `same_rank`, else an error."""
    true, pred = same_rank(y_true, y_pred)
    if true.shape != pred.shape:
        raise ValueError(
            f"{loss}: y_true has shape {y_true.shape} and y_pred has shape "
            f"{y_pred.shape}; they must be equal{hint}"
        )
    return true, pred


def normal_axis(loss, axis, y_pred):
    """`axis` as a number from 0."""
    try:
        number = operator.index(axis)
    except TypeError:
        raise TypeError(f"{loss}: axis must be one integer, got {axis!r}") from None
    ndim = y_pred.ndim
    if not -ndim <= number < ndim:
        raise ValueError(
            f"{loss}: axis={axis} is out of range; y_pred has shape {y_pred.shape}, so "
            f"axis must be in [{-ndim}, {ndim - 1}]"
        )
    return number % ndim


def check_flag(loss, name, value):
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{loss}: {name} must be True or False, got {value!r}")


def smoothing(loss, value):
    """`label_smoothing` as a Python float, which does not widen the dtype of labels."""
    if not _is_real(value):
        raise TypeError(f"{loss}: label_smoothing must be a real number, got {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(
            f"{loss}: label_smoothing must be in [0, 1], got {value!r}; it is the share of "
            "the label mass that is spread evenly over the classes"
        )
    return float(value)


def clip_bounds(loss, epsilon, dtype, complement=False):
    """(epsilon, 1 - epsilon) in `dtype`, the upper one rounded from double as in Keras.

    With `complement` the loss also takes log(1 - p), so the upper bound must be below 1.
    """
    if not _is_real(epsilon):
        raise TypeError(f"{loss}: epsilon must be a real number, got {epsilon!r}")
    if not 0 < epsilon < 0.5:
        raise ValueError(
            f"{loss}: epsilon must be in (0, 0.5), got {epsilon!r}; probabilities are "
            "clipped to [epsilon, 1 - epsilon]"
        )
    low, high = dtype.type(epsilon), dtype.type(1 - float(epsilon))
    if low == 0 or (complement and high == 1):
        lost = "epsilon rounds to 0" if low == 0 else "1 - epsilon rounds to 1"
        raise ValueError(
            f"{loss}: epsilon={epsilon!r} is too small for {dtype}, where {lost}; use "
            f"at least {float(np.finfo(dtype).eps):.1e}, or a wider dtype for y_pred"
        )
    return low, high


def _is_real(value):
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
