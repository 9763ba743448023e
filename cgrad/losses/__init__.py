"""Loss functions with Keras's names, arguments and numbers, as ordinary NumPy code.

Each function takes ``(y_true, y_pred, ...)`` and returns one loss per sample, as
Keras's *functions* do.  With ``reduction``, ``sample_weight`` and ``mask`` it gives
what Keras's loss *classes* give.  NumPy arrays and values that cgrad is
differentiating are taken alike, so ``cgrad.grad`` of any of these functions is the
gradient of the loss.

=====================================  ==========================================
categorical_crossentropy               one-hot or soft labels
sparse_categorical_crossentropy        labels as class ids
binary_crossentropy                    labels in [0, 1], one per entry
mean_squared_error                     mean of ``(y_pred - y_true)**2``
mean_absolute_error                    mean of ``|y_pred - y_true|``
=====================================  ==========================================

**Reductions.**  ``"none"`` (or None) returns the losses, each times its weight;
``"sum"`` adds them up; ``"sum_over_batch_size"`` and its synonym ``"mean"`` divide the
sum by the number of losses, whatever the weights; ``"mean_with_sample_weight"`` divides
it by the sum of the weights as they were given.  A mask multiplies the losses, and in
the two plain means the rest counts for more, so that they average over the kept
samples.  A single loss (shape ``()``) and an empty batch (shape ``(0,)``) are returned
as they are by every reduction, as in Keras.

**Precision.**  A function computes in the dtype of ``y_pred``; everything else is cast
to it.  Keras's classes compute in float32 unless told otherwise, so their printed
results for float64 data differ from these in the eighth digit.

**Not copied from Keras.**  A tensor that comes straight from Keras's own softmax or
sigmoid remembers its logits and is scored from them, without the clip, even with
``from_logits=False``; so the loss depends on where an array came from.  Here it
depends on the numbers alone: pass the logits and ``from_logits=True`` to have that.
A sample whose loss is nan or inf and whose weight is 0, or which is masked, has loss nan
as in Keras, but gradient 0, where Keras's is nan.  Arguments outside their range, which
Keras computes with, raise an error.

This package uses NumPy and ``cgrad.stop_gradient`` only; nothing inside cgrad uses it.
"""

from .crossentropy import (
    binary_crossentropy,
    categorical_crossentropy,
    sparse_categorical_crossentropy,
)
from .regression import mean_absolute_error, mean_squared_error

__all__ = [
    "binary_crossentropy",
    "categorical_crossentropy",
    "mean_absolute_error",
    "mean_squared_error",
    "sparse_categorical_crossentropy",
]
