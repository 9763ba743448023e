"""Mean squared and mean absolute error.

Uses NumPy and this package's input checks and reductions; ``cgrad.losses`` exports it.
"""

import numpy as np

from ._inputs import numeric, real_predictions, same_rank
from ._reduction import reduce_losses


def mean_squared_error(y_true, y_pred, *, reduction="none", sample_weight=None, mask=None):
    r"""Mean of the squared differences along the last axis.

    .. math:: L = \frac{1}{n} \sum_{i=1}^{n} (p_i - t_i)^2

    Parameters
    ----------
    y_true : array_like
        Targets, cast to the dtype of `y_pred`.
    y_pred : array_like
        Predictions. Integers are taken as float64. The two shapes are equal or
        broadcast, where (n,) beside (n, 1) means n pairs; at higher ranks a surplus last
        axis of size 1 is dropped first.
    reduction : {"none", "sum", "sum_over_batch_size", "mean", \
"mean_with_sample_weight"} or None, optional
        What to do with the losses of the samples; see `cgrad.losses`. The default
        returns them.
    sample_weight : array_like, optional
        Factors for the losses: one per loss, per leading index, or one for all.
    mask : array_like of bool, optional
        False leaves a loss out.

    Returns
    -------
    ndarray or scalar
        The losses, of the shape of the difference without its last axis, or their
        reduction; in the dtype of `y_pred`.

    Raises
    ------
    ValueError
        If the shapes do not broadcast, `y_pred` has no axis, `reduction` is unknown, or
        a weight or mask does not fit the losses.
    TypeError
        If an argument does not hold real numbers.

    Notes
    -----
    ``mean_squared_error`` and ``MeanSquaredError`` of Keras 3 [1]_. The gradient is
    ``2 * (y_pred - y_true) / n``.

    References
    ----------
    .. [1] Keras 3 API documentation, "Regression losses",
       https://keras.io/api/losses/regression_losses/

    Examples
    --------
    >>> import numpy as np
    >>> from cgrad import losses
    >>> losses.mean_squared_error([[0., 1.], [0., 0.]], [[1., 1.], [1., 0.5]])
    array([0.5  , 0.625])
    >>> losses.mean_squared_error([0., 1., 0.], [1., 1., 3.])
    np.float64(3.3333333333333335)
    """
    loss = "mean_squared_error"
    error = _difference(loss, y_true, y_pred)
    return reduce_losses(loss, np.mean(np.square(error), axis=-1), reduction, sample_weight, mask)


def mean_absolute_error(y_true, y_pred, *, reduction="none", sample_weight=None, mask=None):
    r"""Mean of the absolute differences along the last axis.

    .. math:: L = \frac{1}{n} \sum_{i=1}^{n} |p_i - t_i|

    Parameters
    ----------
    y_true : array_like
        Targets, cast to the dtype of `y_pred`.
    y_pred : array_like
        Predictions. Integers are taken as float64. The two shapes are equal or
        broadcast, where (n,) beside (n, 1) means n pairs; at higher ranks a surplus last
        axis of size 1 is dropped first.
    reduction : {"none", "sum", "sum_over_batch_size", "mean", \
"mean_with_sample_weight"} or None, optional
        What to do with the losses of the samples; see `cgrad.losses`. The default
        returns them.
    sample_weight : array_like, optional
        Factors for the losses: one per loss, per leading index, or one for all.
    mask : array_like of bool, optional
        False leaves a loss out.

    Returns
    -------
    ndarray or scalar
        The losses, of the shape of the difference without its last axis, or their
        reduction; in the dtype of `y_pred`.

    Raises
    ------
    ValueError
        If the shapes do not broadcast, `y_pred` has no axis, `reduction` is unknown, or
        a weight or mask does not fit the losses.
    TypeError
        If an argument does not hold real numbers.

    Notes
    -----
    ``mean_absolute_error`` and ``MeanAbsoluteError`` of Keras 3 [1]_. The gradient is
    ``sign(y_pred - y_true) / n``, which is 0 where the two are equal.

    References
    ----------
    .. [1] Keras 3 API documentation, "Regression losses",
       https://keras.io/api/losses/regression_losses/

    Examples
    --------
    >>> import numpy as np
    >>> from cgrad import losses
    >>> losses.mean_absolute_error([[0., 1.], [0., 0.]], [[1., 1.], [1., 0.5]])
    array([0.5 , 0.75])
    >>> losses.mean_absolute_error([[0.], [1.]], [[1.], [4.]],
    ...                            reduction="mean", sample_weight=[1., 2.])
    np.float64(3.5)
    """
    loss = "mean_absolute_error"
    error = _difference(loss, y_true, y_pred)
    return reduce_losses(loss, np.mean(np.abs(error), axis=-1), reduction, sample_weight, mask)


def _difference(loss, y_true, y_pred):
    pred = real_predictions(loss, y_pred)
    true = numeric(loss, "y_true", y_true, pred.dtype)
    shapes = true.shape, pred.shape
    true, pred = same_rank(true, pred)
    try:
        np.broadcast_shapes(true.shape, pred.shape)
    except ValueError:
        raise ValueError(
            f"{loss}: y_true of shape {shapes[0]} and y_pred of shape {shapes[1]} do not "
            "broadcast; give one target per prediction"
        ) from None
    return pred - true
