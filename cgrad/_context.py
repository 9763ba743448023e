"""What the transforms and GradientTape share: arguments in, results out, seeds and their shapes.

Uses the tape, Array, the sweep and containers; used by `transforms` and `gradient_tape`.
"""
import numpy as np

from . import tree
from ._array import Array, leaf, plain_value
from ._sweep import reverse
from ._tape import current_tape

__all__ = ["as_leaf", "check_unconnected", "current_tape", "identity_seeds", "plain_tree", "reverse", "rows_per_chunk",
           "unconnected"]

# A batched sweep takes as many seeds at once as keep the adjoints of its largest node below this.
CHUNK_BYTES = 1 << 27


def as_leaf(tape, value, where):
    """A fresh node for one differentiated value; `where` names it in errors, e.g. "grad: argument 0['w']"."""
    parent = None
    if hasattr(type(value), "__cgrad_array__"):
        value = value.__cgrad_array__()
    if type(value) is Array:
        if value.tape_of is tape:
            parent = value
        value = plain_value(value)
    kind = value.dtype.kind if isinstance(value, (np.ndarray, np.generic)) else \
        "f" if type(value) is float else "c" if type(value) is complex else np.asarray(value).dtype.kind
    if kind not in "fc":
        name = np.asarray(value).dtype
        raise TypeError(f"{where}: got {type(value).__name__} of dtype {name}, which has no derivative; expected a real or "
                        "complex floating type: pass a float, e.g. x.astype(float)")
    if parent is None and isinstance(value, np.ndarray):
        value = tape.guard(value if type(value) is np.ndarray else np.asarray(value))
        if not value.dtype.isnative:
            value = value.astype(value.dtype.newbyteorder("="))
    return leaf(tape, value, parent)


def plain_tree(result):
    """Plain values in place of Arrays, in any containers; what leaves a transform that nobody differentiates."""
    if type(result) is Array:
        return plain_value(result)
    if isinstance(result, (np.ndarray, float)):
        return result
    return tree.map_leaves(plain_value, result)


def identity_seeds(shape, dtype, start, stop):
    """Rows start..stop-1 of the identity matrix over all elements of `shape`, as seeds (stop - start, *shape)."""
    size = int(np.prod(shape))
    seeds = np.zeros((stop - start, size), dtype)
    seeds[np.arange(stop - start), np.arange(start, stop)] = 1
    return seeds.reshape((stop - start, *shape))


def rows_per_chunk(tape, start, size, chunk):
    """How many seeds one sweep takes: all of them, or as many as CHUNK_BYTES allow, or what the user says."""
    if chunk is not None:
        if chunk < 1:
            raise ValueError(f"jacobian: chunk is {chunk}; expected a positive number of seeds per sweep, or None")
        return min(chunk, max(size, 1))
    return max(1, min(size, CHUNK_BYTES // max(tape.largest_node(start), 8)))


def check_unconnected(where, value):
    if value not in ("none", "zero"):
        raise ValueError(f"{where}: unconnected_gradients is {value!r}; expected 'none' (None for a source that the target "
                         "does not depend on) or 'zero' (zeros)")


def unconnected(gradient, shape, dtype, mode):
    """The gradient, or what stands for one where there is no connection."""
    if gradient is None and mode == "zero":
        return np.zeros(shape, dtype)
    return gradient
