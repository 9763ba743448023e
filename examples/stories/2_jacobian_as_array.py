"""The Jacobian of z = [x**2 + 2*y, y**2] in one call, as a plain array.

The matrix dz_i/dinput_j is [[2x, 2], [0, 2y]]; stacked by input it is the transpose, [[2x, 0], [2, 2y]].
"""
import numpy as np

import cgrad


def z(x, y):
    return [x**2 + 2 * y, y**2]


# two numbers in, two numbers out: one row per output, one column per input
matrix = cgrad.jacobian(z, argnums=(0, 1), as_matrix=True)(1.0, 4.0)
print("of two scalars:", type(matrix).__name__, matrix, sep="\n")

# the same of one vector
print("of one vector:", cgrad.jacobian(lambda v: np.stack(z(v[0], v[1])))(np.array([1.0, 4.0])), sep="\n")

# with a tape: one array per input, which np.stack makes one
x, y = cgrad.Variable(1.0), cgrad.Variable(4.0)
with cgrad.GradientTape() as tape:
    outputs = z(x, y)
print("stacked by input:", np.stack(tape.jacobian(outputs, [x, y])), sep="\n")
