"""For z = W @ a + b the Jacobians dz/dW, dz/da and dz/db themselves, not their sums over z."""
import numpy as np

import cgrad

W = np.array([[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
a = np.array([[1.0], [2.0], [3.0]])
b = np.array([[1001.0], [1002.0]])


def z(W, a, b):
    return W @ a + b


gradients = cgrad.grad(lambda *inputs: np.sum(z(*inputs)), argnums=(0, 1, 2))(W, a, b)
jacobians = cgrad.jacobian(z, argnums=(0, 1, 2))(W, a, b)
print("z =", z(W, a, b), sep="\n")
for name, gradient, jacobian in zip("Wab", gradients, jacobians):
    # z has shape (2, 1), so the Jacobian has shape (2, 1) + the shape of the input
    print(f"\ndz/d{name}, shape {jacobian.shape}:")
    for i in range(2):
        print(f"  z[{i}, 0]:", np.array2string(jacobian[i, 0], prefix="  z[0, 0]: "))
    assert np.array_equal(jacobian.sum(axis=(0, 1)), gradient)
print("\nEach gradient is the sum of its Jacobian over z; that of W is", gradients[0], sep="\n")
