"""Gradients of chained, batched, broadcast matrix products.

The gradient of a factor that was broadcast is summed over the batch; it always has the shape of its factor.
"""
import numpy as np

import cgrad

x = np.array([[[1.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]]])      # a batch of two matrices
y = np.array([[3.0, -7.0], [-1.0, 5.0]])                                # one matrix, for all of the batch
z = np.array([[[1.0, 1.0], [2.0, 2.0]], [[3.0, 3.0], [-1.0, -1.0]]])


def total(x, y, z):
    return np.sum(x @ y @ z)


value, gradients = cgrad.value_and_grad(total, argnums=(0, 1, 2))(x, y, z)
print("sum(x @ y @ z) =", value)
for name, factor, gradient in zip("xyz", (x, y, z), gradients):
    print(f"\nby {name}, of shape {factor.shape}:", gradient, sep="\n")

# by hand, with an adjoint of ones: transposes of the last two axes only, and a sum where y was broadcast
ones = np.ones((2, 2, 2))
by_hand = (
    ones @ np.swapaxes(y @ z, -1, -2),
    np.sum(np.swapaxes(x, -1, -2) @ ones @ np.swapaxes(z, -1, -2), axis=0),
    np.swapaxes(x @ y, -1, -2) @ ones,
)
print("\nas by hand:", all(np.allclose(g, h) for g, h in zip(gradients, by_hand)))

# batch axes of size 1 and missing ones, on both sides
rng = np.random.default_rng(0)
left, right = rng.normal(size=(5, 1, 3, 4)), rng.normal(size=(2, 4, 6))
by_left, by_right = cgrad.grad(lambda a, b: np.sum(a @ b), argnums=(0, 1))(left, right)
print(f"\n{left.shape} @ {right.shape} -> {(left @ right).shape}; gradients {by_left.shape} and {by_right.shape}")
