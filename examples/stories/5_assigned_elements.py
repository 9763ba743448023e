"""2-D cross-correlation as a double loop that assigns each element of the result, and its gradient by the kernel."""
import numpy as np

import cgrad
import cgrad.numpy as cnp


# as a function
def corr2d(X, k):
    h, w = k.shape
    Y = cnp.zeros((X.shape[0] - h + 1, X.shape[1] - w + 1))
    for i in range(Y.shape[0]):
        for j in range(Y.shape[1]):
            Y[i, j] = np.sum(X[i:i + h, j:j + w] * k)
    return Y


X = np.arange(9.0).reshape(3, 3)
k = np.arange(4.0).reshape(2, 2)
print("corr2d(X, k) =", corr2d(X, k), sep="\n")
print("\ngradient of its sum by k:", cgrad.grad(lambda k: np.sum(corr2d(X, k)))(k), sep="\n")

# with variables and a tape: what is assigned to Y while the tape records is recorded
kernel = cgrad.Variable(k, name="kernel")
Y = cgrad.Variable(np.zeros((2, 2)), name="Y")
with cgrad.GradientTape() as tape:
    for i in range(2):
        for j in range(2):
            Y[i, j] = np.sum(X[i:i + 2, j:j + 2] * kernel)

print("\nwatched:", *(f"{v.name} {v.shape} {v.dtype}" for v in tape.watched_variables()), sep="\n  ")
print("\nY =", Y.value, sep="\n")
print("\ngradient of Y by kernel:", tape.gradient(Y, kernel), sep="\n")
