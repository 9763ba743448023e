"""Categorical cross-entropy with Keras's numbers: rows are rescaled to sum 1, then clipped to [eps, 1 - eps].

From logits neither happens.
"""
import numpy as np

import cgrad
from cgrad.losses import categorical_crossentropy

labels = np.eye(3)
predicted = np.array([[0.9, 0.05, 0.05], [0.5, 0.89, 0.6], [0.05, 0.01, 0.94]])     # the second row sums to 1.99

losses = categorical_crossentropy(labels, predicted)
print("losses:           ", losses)                                         # Keras: 0.10536052 0.80466845 0.0618754
print("mean:             ", categorical_crossentropy(labels, predicted, reduction="mean"))          # Keras: 0.32396811

scaled = predicted / predicted.sum(axis=1, keepdims=True)
eps = 1e-7
print("by hand:          ", -np.sum(labels * np.log(np.clip(scaled, eps, 1 - eps)), axis=1))

# a certain and wrong prediction costs -log(eps), not infinity, and where the clip holds there is no slope
wrong = np.array([[0.0, 1.0, 0.0]])
print("certain and wrong:", categorical_crossentropy(labels[:1], wrong), "-log(eps) =", -np.log(eps))
print("its gradient:     ", cgrad.grad(lambda p: np.sum(categorical_crossentropy(labels[:1], p)))(wrong))

# from logits the loss is exact however certain the prediction: nothing is clipped, the gradient is softmax - labels
logits = np.array([[-20.0, 0.0, 20.0]])


def from_logits(x):
    return np.sum(categorical_crossentropy(labels[:1], x, from_logits=True))


loss, gradient = cgrad.value_and_grad(from_logits)(logits)
print("from logits:      ", loss, "gradient", gradient)
