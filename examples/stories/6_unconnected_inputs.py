"""Derivatives of a vector by a vector, and by inputs that the vector does not depend on: None, or zeros if wanted."""
import numpy as np

import cgrad

# y = [x0 + x1, x0 - x1]: all derivatives, or the gradient of the sum
x = cgrad.Variable([0.75, -1.5], name="x")
with cgrad.GradientTape(persistent=True) as tape:
    y = np.stack([x[0] + x[1], x[0] - x[1]])
print("Jacobian:", tape.jacobian(y, x), sep="\n")
print("gradient of the sum:", tape.gradient(y, x))

# rows of a matrix as inputs: a row must be the one that y was computed from
matrix = cgrad.Variable(np.arange(10.0).reshape(2, 5), name="matrix")
other = cgrad.Variable(np.zeros(3), name="other")
with cgrad.GradientTape(persistent=True) as tape:
    first, second = matrix[0], matrix[1]
    y = np.stack([first + second, first - 2 * second])
    again = matrix[0]                                   # equal, but y was not computed from it

print("\nby the rows used:", *tape.gradient(y, [first, second]), sep="\n  ")
print("by the whole matrix:", tape.gradient(y, matrix), sep="\n")
print("by a row taken again, and by a variable that is not used:")
for mode in ("none", "zero"):
    print(f"  {mode}:", *tape.gradient(y, [again, other], unconnected_gradients=mode))
