"""Ways out of an array, element by element: `flat`, which is tracked; and item, tolist, tobytes, ..., which are refused while a
tape records.
"""
import numpy as np

from cgrad._array import refuse
from cgrad._parts import part

from .inplace import cycled
from .registry import copy_of, method, plain_value, prop, setter
from .selection import index_flat, with_axis


class Flat:
    """The elements of an Array in C order, as `ndarray.flat` gives them: an iterator that can be indexed and assigned to.

    Examples
    --------
    >>> import numpy as np, cgrad
    >>> cgrad.grad(lambda x: x.flat[-1] * sum(x.flat))(np.ones((2, 2)))
    array([[1., 1.],
           [1., 5.]])
    """

    __slots__ = ("base", "index")

    def __init__(self, base):
        self.base = base
        self.index = 0

    def __len__(self):
        return self.base.size

    def __iter__(self):
        return self

    def __next__(self):
        if self.index >= self.base.size:
            raise StopIteration
        self.index += 1
        return self[self.index - 1]

    @property
    def coords(self):
        """Where the next element lies."""
        return tuple(int(i) for i in np.unravel_index(self.index, self.base.shape))

    def _places(self, index):
        return np.arange(self.base.size)[index]

    def __getitem__(self, index):
        base = with_axis(self.base)
        places = self._places(index)
        values = np.asarray(plain_value(base)).flat[index]
        return part(base, index_flat(places, base.shape), values)

    def __setitem__(self, index, value):
        base = with_axis(self.base)
        places = self._places(index)
        if np.size(plain_value(value)) == 0:
            raise ValueError("flat: an empty array cannot be assigned")
        if np.ndim(places):
            value = cycled(value, np.arange(places.size)).reshape(places.shape)
        base[index_flat(places, base.shape)] = value

    def copy(self):
        """A one-dimensional copy."""
        return copy_of(np.reshape(self.base, -1))

    def __array__(self, dtype=None, copy=None):
        return np.reshape(self.base, -1).__array__(dtype, copy)


@prop("flat")
def flat(self):
    """ndarray.flat."""
    return Flat(self)


@setter("flat")
def set_flat(self, value):
    """ndarray.flat = value."""
    Flat(self)[:] = value


# ---------------------------------------------------------------------------------------------- refused
def leaves(name, instead):
    """A method that gives plain values out: refused while the tape records, when a gradient would be lost."""
    @method(name)
    def handler(self, *args, **kwargs):
        if self.tape_of.recording == 0:
            return getattr(np.asarray(plain_value(self)), name)(*args, **kwargs)
        raise refuse(f"{name}()", instead)


leaves("item", "Use x[i], or x itself if it is 0-d: they are tracked.")
leaves("tolist", "Use list(x), whose elements are tracked.")
for name in ("tobytes", "tofile", "dump", "dumps"):
    leaves(name, "Write results out after they have left the transform.")


@method("setflags")
def setflags(self, *args, **kwargs):
    """ndarray.setflags."""
    raise TypeError("setflags: the memory of a tracked array is cgrad's own, and a write to it is recorded; to protect a "
                    "value, keep x.copy()")
