"""Categorical, sparse categorical and binary cross-entropy.

Uses NumPy, ``cgrad.stop_gradient`` and this package's input checks and reductions;
``cgrad.losses`` exports it.
"""

import operator

import numpy as np

from ..transforms import stop_gradient
from ._inputs import (
    as_array,
    check_flag,
    clip_bounds,
    normal_axis,
    numeric,
    probabilities,
    same_shape,
    smoothing,
)
from ._reduction import join_masks, reduce_losses


def categorical_crossentropy(
    y_true,
    y_pred,
    from_logits=False,
    label_smoothing=0.0,
    axis=-1,
    *,
    epsilon=1e-7,
    reduction="none",
    sample_weight=None,
    mask=None,
):
    r"""Cross-entropy of class labels given as one-hot or soft rows.

    With t the labels and p the probabilities of one sample,

    .. math:: L = -\sum_i t_i \log p_i

    computed in this order:

    1. labels are smoothed: ``t = t * (1 - label_smoothing) + label_smoothing / n``;
    2. ``y_pred`` is divided by its sum along `axis`;
    3. the quotient is clipped to ``[epsilon, 1 - epsilon]``;
    4. ``-sum(t * log(p))`` along `axis`.

    From logits z, steps 2 to 4 are :math:`L = \sum_i t_i (\log \sum_j e^{z_j} - z_i)`,
    without a clip and without overflow.

    Parameters
    ----------
    y_true : array_like
        Labels, of the shape of `y_pred`, cast to its dtype.
    y_pred : array_like
        Probabilities (rows need not sum to one) or logits; floats.
    from_logits : bool, optional
        Whether `y_pred` holds logits.
    label_smoothing : float, optional
        Share of the label mass that is spread evenly, in [0, 1].
    axis : int, optional
        The axis of the classes.
    epsilon : float, optional
        The clip, in (0, 0.5); not used from logits.
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
        The losses, of the shape of `y_pred` without `axis`, or their reduction; in the
        dtype of `y_pred`.

    Raises
    ------
    ValueError
        If the shapes differ, or `label_smoothing`, `axis`, `epsilon`, `reduction`, a
        weight or a mask is out of its range.
    TypeError
        If `y_pred` does not hold floats or an argument has the wrong type.

    Notes
    -----
    ``categorical_crossentropy`` and ``CategoricalCrossentropy`` of Keras 3 [1]_;
    label smoothing after [2]_.

    *Gradient of the clip*: 1 on the closed interval ``[epsilon, 1 - epsilon]``, 0 outside
    it. As the row was divided by its sum before, a one-hot label whose class was clipped
    makes the gradient of the whole row 0: a confident mistake is not corrected. Logits
    do not have this problem; their gradient is ``softmax(z) - t``.

    *A row that sums to 0* is divided by 0, as in Keras, with NumPy's warning and, unless
    it is clipped, a loss of nan.

    *A logit of -inf* with label 0 makes the loss ``0 * inf``, nan.
    `sparse_categorical_crossentropy` takes such logits, for classes that are ruled out;
    here a large negative number does.

    *Two habits of Keras that are kept* so that the numbers agree: label smoothing
    divides by the size n of the last axis even if `axis` is another one, and smoothed
    labels then do not sum to one; and from logits the gradient is ``softmax(z) - t`` for
    labels of any sum, where the value's own is ``sum(t) * softmax(z) - t``. The two are
    the same for labels that sum to one.

    *Precision*: ``1 - 1e-7`` is 0.99999988 in float32, so a perfect prediction costs
    1.19e-7 there, and 1e-7 in float64.

    References
    ----------
    .. [1] Keras 3 API documentation, "Probabilistic losses",
       https://keras.io/api/losses/probabilistic_losses/
    .. [2] C. Szegedy, V. Vanhoucke, S. Ioffe, J. Shlens, Z. Wojna, "Rethinking the
       Inception Architecture for Computer Vision", CVPR 2016, section 7.

    Examples
    --------
    >>> import numpy as np
    >>> from cgrad import losses
    >>> t = np.array([[1., 0., 0.], [0., 1., 0.], [0., 0., 1.]])
    >>> p = np.array([[.9, .05, .05], [.5, .89, .6], [.05, .01, .94]])
    >>> losses.categorical_crossentropy(t, p).round(8)
    array([0.10536052, 0.80466845, 0.0618754 ])
    >>> losses.categorical_crossentropy(t, p, reduction="mean").round(8)
    np.float64(0.32396812)

    A probability of 1e-11 is taken for 1e-7:

    >>> losses.categorical_crossentropy([[0, 1]], [[1 - 1e-11, 1e-11]])
    array([16.11809565])

    From logits nothing is clipped:

    >>> losses.categorical_crossentropy([[1, 0, 0]], [[-20., 0., 20.]], from_logits=True)
    array([40.])
    """
    loss = "categorical_crossentropy"
    check_flag(loss, "from_logits", from_logits)
    share = smoothing(loss, label_smoothing)
    pred = probabilities(loss, y_pred)
    true = numeric(loss, "y_true", y_true, pred.dtype)
    true, pred = same_shape(
        loss, true, pred, ", one label per class; for class ids use sparse_categorical_crossentropy"
    )
    axis = _class_axis(loss, axis, pred)
    if share:
        true = true * (1 - share) + share / true.shape[-1]
    if from_logits:
        shifted, log_sum = _log_partition(pred, axis)
        # The last term is 0. It carries the gradient of log_sum, softmax(z), which in
        # the first term would come out as sum(t) * softmax(z).
        held = stop_gradient(log_sum)
        values = np.sum(true * (held - shifted), axis=axis) + np.squeeze(log_sum - held, axis=axis)
    else:
        low, high = clip_bounds(loss, epsilon, pred.dtype)
        scaled = pred / np.sum(pred, axis=axis, keepdims=True)
        values = -np.sum(true * np.log(np.clip(scaled, low, high)), axis=axis)
    return reduce_losses(loss, values, reduction, sample_weight, mask)


def sparse_categorical_crossentropy(
    y_true,
    y_pred,
    from_logits=False,
    ignore_class=None,
    axis=-1,
    *,
    epsilon=1e-7,
    reduction="none",
    sample_weight=None,
    mask=None,
):
    r"""Cross-entropy of class labels given as class ids.

    With k the id and p the probabilities of one sample,

    .. math:: L = -\log p_k

    computed in this order, which is not that of `categorical_crossentropy`:

    1. ``y_pred`` is clipped to ``[epsilon, 1 - epsilon]``;
    2. it is divided by the sum of the clipped row;
    3. ``-log(p[k])``.

    From logits z it is :math:`L = \log \sum_j e^{z_j} - z_k`, without a clip and without
    overflow.

    Parameters
    ----------
    y_true : array_like of int
        Class ids from 0, of the shape of `y_pred` without `axis`, or with size 1 there.
        Floats are allowed if they are whole numbers.
    y_pred : array_like
        Probabilities (rows need not sum to one) or logits; floats.
    from_logits : bool, optional
        Whether `y_pred` holds logits.
    ignore_class : int, optional
        Samples with this label have loss and gradient 0 and are left out of the means,
        as if masked. It need not be a class id: -1 and 255 are usual.
    axis : int, optional
        The axis of the classes. (Keras takes the last one only.)
    epsilon : float, optional
        The clip, in (0, 0.5); not used from logits.
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
        The losses, of the shape of `y_pred` without `axis`, or their reduction; in the
        dtype of `y_pred`.

    Raises
    ------
    ValueError
        If the shapes do not fit, a label is no class id, or `axis`, `epsilon`,
        `reduction`, a weight or a mask is out of its range.
    TypeError
        If `y_pred` does not hold floats, or an argument has the wrong type.

    Notes
    -----
    ``sparse_categorical_crossentropy`` and ``SparseCategoricalCrossentropy`` of Keras 3
    [1]_. As the clip comes first, a row of zeros costs log(n) for n classes, and rows
    that do not sum to one give another loss than with one-hot labels.

    *Gradient of the clip*: 1 on the closed interval ``[epsilon, 1 - epsilon]``, 0 outside
    it. A clipped entry has gradient 0; the others keep ``1 / sum(clipped row)``, less
    ``1 / p[k]`` at k. From logits the gradient is ``softmax(z)``, less 1 at k.

    References
    ----------
    .. [1] Keras 3 API documentation, "Probabilistic losses",
       https://keras.io/api/losses/probabilistic_losses/

    Examples
    --------
    >>> import numpy as np
    >>> from cgrad import losses
    >>> p = np.array([[.05, .95, 0.], [.1, .8, .1], [.2, .3, .5]])
    >>> losses.sparse_categorical_crossentropy([1, 2, -1], p, ignore_class=-1).round(8)
    array([0.05129339, 2.30258509, 0.        ])
    >>> losses.sparse_categorical_crossentropy([1, 2, -1], p, ignore_class=-1,
    ...                                        reduction="mean").round(8)
    np.float64(1.17693924)
    >>> losses.sparse_categorical_crossentropy(0, [-20., 0., 20.], from_logits=True).round(8)
    np.float64(40.0)
    """
    loss = "sparse_categorical_crossentropy"
    check_flag(loss, "from_logits", from_logits)
    pred = probabilities(loss, y_pred)
    axis = _class_axis(loss, axis, pred)
    ids, keep = _class_ids(loss, y_true, pred, axis, ignore_class)
    ids = np.expand_dims(ids, axis)
    if from_logits:
        shifted, log_sum = _log_partition(pred, axis)
        picked = np.take_along_axis(shifted, ids, axis)
        values = np.squeeze(log_sum, axis=axis) - np.squeeze(picked, axis=axis)
    else:
        low, high = clip_bounds(loss, epsilon, pred.dtype)
        clipped = np.clip(pred, low, high)
        picked = np.take_along_axis(clipped, ids, axis)
        values = np.log(np.sum(clipped, axis=axis) / np.squeeze(picked, axis=axis))
    if keep is not None:
        values = np.where(keep, values, 0)[()]  # [()]: one loss is a scalar, not a 0-d array
        mask = join_masks(keep, mask)
    return reduce_losses(loss, values, reduction, sample_weight, mask)


def binary_crossentropy(
    y_true,
    y_pred,
    from_logits=False,
    label_smoothing=0.0,
    axis=-1,
    *,
    epsilon=1e-7,
    reduction="none",
    sample_weight=None,
    mask=None,
):
    r"""Cross-entropy of independent labels between 0 and 1, averaged along an axis.

    With t the labels and p the probabilities,

    .. math:: L = -\frac{1}{n} \sum_{i=1}^{n} t_i \log p_i + (1 - t_i) \log(1 - p_i)

    computed in this order:

    1. labels are smoothed: ``t = t * (1 - label_smoothing) + label_smoothing / 2``;
    2. ``y_pred`` is clipped to ``[epsilon, 1 - epsilon]``;
    3. the mean of ``-(t * log(p) + (1 - t) * log(1 - p))`` along `axis`.

    From logits z, a term is :math:`\max(z, 0) - z t + \log(1 + e^{-|z|})`, which is the
    same function of the sigmoid of z, without a clip and without overflow.

    Parameters
    ----------
    y_true : array_like
        Labels, of the shape of `y_pred`, cast to its dtype.
    y_pred : array_like
        Probabilities or logits; floats.
    from_logits : bool, optional
        Whether `y_pred` holds logits.
    label_smoothing : float, optional
        How far labels are moved towards 1/2, in [0, 1].
    axis : int, optional
        The axis that is averaged over.
    epsilon : float, optional
        The clip, in (0, 0.5); not used from logits.
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
        The losses, of the shape of `y_pred` without `axis`, or their reduction; in the
        dtype of `y_pred`.

    Raises
    ------
    ValueError
        If the shapes differ, or `label_smoothing`, `axis`, `epsilon`, `reduction`, a
        weight or a mask is out of its range.
    TypeError
        If `y_pred` does not hold floats, or an argument has the wrong type.

    Notes
    -----
    ``binary_crossentropy`` and ``BinaryCrossentropy`` of Keras 3 [1]_. If one of
    `y_true` and `y_pred` is (n,) and the other (n, 1), both are taken as (n, 1); at
    higher ranks a surplus last axis of size 1 is dropped, as in Keras's class.

    *Gradient of the clip*: 1 on the closed interval ``[epsilon, 1 - epsilon]``, 0 outside
    it: a probability of exactly 0 or 1 gets no gradient. From logits the gradient is
    ``(sigmoid(z) - t) / n`` everywhere.

    *Precision*: ``1 - 1e-7`` is 0.99999988 in float32, so p = 1 with label 0 costs 15.942
    there, and 16.118 in float64. In float16 it is 1, so an `epsilon` of 1e-3 or so has
    to be given.

    References
    ----------
    .. [1] Keras 3 API documentation, "Probabilistic losses",
       https://keras.io/api/losses/probabilistic_losses/

    Examples
    --------
    >>> import numpy as np
    >>> from cgrad import losses
    >>> losses.binary_crossentropy([[0., 1.], [0., 0.]], [[.6, .4], [.4, .6]]).round(8)
    array([0.91629073, 0.71355818])
    >>> losses.binary_crossentropy([1.], [0.])
    np.float64(16.11809565095832)

    From logits the loss grows, and the gradient does not vanish:

    >>> losses.binary_crossentropy([0.], [100.], from_logits=True)
    np.float64(100.0)
    >>> import cgrad
    >>> f = lambda z: losses.binary_crossentropy(np.array([0.]), z, from_logits=True)
    >>> cgrad.grad(f)(np.array([100.]))
    array([1.])
    """
    loss = "binary_crossentropy"
    check_flag(loss, "from_logits", from_logits)
    share = smoothing(loss, label_smoothing)
    pred = probabilities(loss, y_pred)
    true = numeric(loss, "y_true", y_true, pred.dtype)
    true, pred = same_shape(loss, true, pred, ", one label per prediction")
    axis = normal_axis(loss, axis, pred)
    if share:
        true = true * (1 - share) + share / 2
    if from_logits:
        # where() and not maximum() and abs(): both branches then have the one-sided slope
        # that makes sigmoid(0) - t at 0. The tail is recorded first, so that the sweep
        # adds its gradient last, to an exact 1 - t or -t.
        positive = pred >= 0
        tail = np.log1p(np.exp(np.where(positive, -pred, pred)))
        terms = np.where(positive, pred, 0) - pred * true + tail
    else:
        low, high = clip_bounds(loss, epsilon, pred.dtype, complement=True)
        p = np.clip(pred, low, high)
        terms = -(true * np.log(p) + (1 - true) * np.log(1 - p))
    return reduce_losses(loss, np.mean(terms, axis=axis), reduction, sample_weight, mask)


def _log_partition(logits, axis):
    """Logits less their maximum, and the log of the sum of their exponentials.

    Their difference does not depend on what is subtracted, so the maximum is a constant.
    """
    shifted = logits - np.max(stop_gradient(logits), axis=axis, keepdims=True)
    return shifted, np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _class_axis(loss, axis, pred):
    axis = normal_axis(loss, axis, pred)
    if pred.shape[axis] == 0:
        raise ValueError(f"{loss}: y_pred of shape {pred.shape} has no classes on axis {axis}")
    return axis


def _class_ids(loss, y_true, pred, axis, ignore_class):
    """(class ids, which of them count): ignored ones are made 0, and None says all count."""
    labels = as_array(stop_gradient(y_true))
    if labels.dtype.kind not in "biuf":
        raise TypeError(f"{loss}: y_true must hold class ids, got dtype {labels.dtype}")
    shape = pred.shape[:axis] + pred.shape[axis + 1 :]
    column = pred.shape[:axis] + (1,) + pred.shape[axis + 1 :]
    if labels.shape == column and labels.shape != shape:
        labels = np.squeeze(labels, axis=axis)
    if labels.shape != shape:
        hint = "; for one-hot labels use categorical_crossentropy"
        raise ValueError(
            f"{loss}: y_true has shape {labels.shape}, expected {shape} or {column}, the "
            f"shape of y_pred, {pred.shape}, without its classes on axis {axis}"
            + (hint if labels.shape == pred.shape else "")
        )
    keep = None
    if ignore_class is not None:
        keep = labels != _as_id(loss, ignore_class)
        labels = np.where(keep, labels, 0)
    if isinstance(labels, (np.ndarray, np.generic)):  # a traced label has no one value
        _check_ids(loss, labels, pred.shape[axis])
    return labels.astype(np.intp), keep


def _as_id(loss, ignore_class):
    try:
        return operator.index(ignore_class)
    except TypeError:
        raise TypeError(
            f"{loss}: ignore_class must be an integer or None, got {ignore_class!r}"
        ) from None


def _check_ids(loss, labels, n):
    good = (labels >= 0) & (labels < n)  # False for nan
    if labels.dtype.kind == "f":
        good &= labels == np.trunc(labels)
    if not np.all(good):
        where = tuple(int(i) for i in np.argwhere(~good)[0])
        at = f" at index {where}" if where else ""
        raise ValueError(
            f"{loss}: y_true holds {labels[where]}{at}, expected whole class ids from 0 to "
            f"{n - 1}; pass ignore_class= to leave out samples with a special label"
        )
