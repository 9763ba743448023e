"""The gradient of sin(a) @ b as a graph: every recorded operation, of the function and of its gradient.

Operations that belong to a gradient are named after the operation they differentiate, e.g. gradients/sin_grad/cos.
"""
import numpy as np

import cgrad

a = cgrad.Variable([[1.0, 3.0], [2.0, 6.0]], name="a")
b = cgrad.Variable([[1.0], [2.0]], name="b")

with cgrad.GradientTape() as tape:
    f = np.sin(a) @ b
    df_da, df_db = cgrad.gradients(f, [a, b])

rows = [("name", "computed as", "shape", "dtype")]
for operation in tape.operations():
    computed = f"{operation.op}({', '.join(operation.inputs)})"
    rows.append((operation.name, computed, str(operation.shape), str(operation.dtype)))
widths = [max(map(len, column)) for column in zip(*rows)]
for row in rows:
    print(*(cell.ljust(width) for cell, width in zip(row, widths)), sep="  ")

print("\nf =", f.value, sep="\n")
print("\nd sum(f) / da =", df_da.value, sep="\n")
print("\nd sum(f) / db =", df_db.value, sep="\n")
