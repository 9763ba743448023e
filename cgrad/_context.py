"""What the transforms and GradientTape share: arguments in, results out, seeds and their shapes.

Uses the tape, Array, the sweep and containers; used by `transforms` and `gradient_tape`.
"""
import math

import numpy as np

from . import tree
from ._array import Array
from ._record import plain_value
from ._sweep import reverse
from ._tape import Chunk, current_tape
from ._trace import Pullback, Trace, as_leaf, check_seed, output_of, scalar_gradient

__all__ = ["Pullback", "Trace", "as_leaf", "check_seed", "check_unconnected", "current_tape", "identity_seeds", "output_of",
           "plain_tree", "reverse", "rows_per_chunk", "scalar_gradient", "unconnected"]

# A batched sweep takes as many seeds at once as keep the adjoints of its largest node below this.
CHUNK_BYTES = 1 << 27


def plain_tree(result):
    """Plain values in place of Arrays, in any containers; what leaves a transform that nobody differentiates."""
    if isinstance(result, (np.ndarray, float)):
        return result
    return own_value(result) if type(result) is Array else tree.map_leaves(own_value, result)


def own_value(x):
    """The plain value of x, without the chunk of memory that a small array may be a slice of."""
    value = plain_value(x)
    return value.copy() if isinstance(value, np.ndarray) and isinstance(value.base, Chunk) else value


def identity_seeds(shape, dtype, start, stop):
    """Rows start..stop-1 of the identity matrix over all elements of `shape`, as seeds (stop - start, *shape)."""
    size = math.prod(shape)
    seeds = np.zeros((stop - start, size), dtype)
    seeds.ravel()[start::size + 1] = 1              # the diagonal that begins in column `start`
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
