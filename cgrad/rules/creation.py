"""Rules of array creation and conversion: zeros_like and its relatives, copy, astype, real, imag, conj, linspace, vander.

What is created like a tracked array is an Array without a derivative: a constant that tracked values can be written into. Uses
`registry` and `shape`.
"""
import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from .registry import (Inverse, Sample, constant, copy_of, deliver, implements, is_array, method, plain_function, plain_value,
                       prop, record, setter, structural, tracked)
from .shape import array_of


# ------------------------------------------------------------------------------------------------ created like another array
def writable(value, like):
    """`value` as a constant that tracked values can be written into, as long as the tape of `like` records."""
    if is_array(like) and isinstance(value, np.ndarray) and value.dtype.kind in "fc" and like.tape_of.recording:
        return constant(value, like)
    return value


def created_like(function):
    def handler(a, *args, **kwargs):
        return writable(function(plain_value(a), *args, **kwargs), a)
    return implements(function)(handler)


for function in (np.zeros_like, np.ones_like, np.empty_like):
    created_like(function)


@implements(np.full_like)
def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, **device):
    given = plain_value(a)
    if not tracked(fill_value):
        return writable(np.full_like(given, plain_value(fill_value), dtype, order, subok, shape, **device), a)
    return filled(np.empty_like(given, dtype, order, subok, shape, **device), fill_value)


def filled(blank, fill_value):
    """The new array `blank`, filled with a tracked value."""
    if blank.dtype.kind not in "fc":
        raise TypeError(f"full, full_like: a tracked {fill_value.dtype} fill value in an array of dtype {blank.dtype} would "
                        "lose its gradient; pass a floating dtype, e.g. dtype=float")
    made = constant(blank, fill_value)
    made[...] = fill_value
    return made


# ------------------------------------------------------------------------------------------------ copies and casts
COPY = structural("copy", vjp=(lambda gz, z, x: gz,), linear=True,
                  samples=[Sample(lambda x: np.copy(x.T, order="C"), ((2, 3),), complex=True)])


@implements(np.copy)
def copy(a, order="K", subok=False):
    given = array_of(a)
    if order in ("K", "k", "A", "a") or given.flags.forc and given.flags.fortran == (order in ("F", "f")) or given.ndim < 2:
        return copy_of(a)
    return record(COPY, given.copy(order), (a,))


@method("copy")
def copy_method(self, order="C"):
    return self if self.is_scalar else copy(self, order)


# the sweep casts every adjoint to the dtype of its input
ASTYPE = structural("astype", vjp=(lambda gz, z, x: gz,), linear=True,
                    samples=[Sample(lambda x: x.astype(np.result_type(x, np.float64)), ((3,),), complex=True)])


@method("astype")
def astype_method(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
    given = array_of(self)
    value = given.astype(dtype, order, casting, subok, copy)
    if value.dtype == given.dtype:
        return self if self.is_scalar or not copy else copy_of(self)
    if value.dtype == object and tracked(self):
        raise TypeError("astype: an array of objects would lose the gradient; keep a floating dtype")
    return record(ASTYPE, value, (self,))


@implements(np.astype)
def astype(x, dtype, /, *, copy=True, **device):
    if device:
        np.astype(plain_value(x), dtype, copy=copy, **device)       # NumPy's own error
    return astype_method(x, dtype, copy=copy)


# ------------------------------------------------------------------------------------------------ complex parts
# f(x) = g(Re x): df/dx - i df/dy = g', real; the sweep casts it. Writes to this view, which NumPy allows, are refused.
REAL = structural("real", vjp=(lambda gz, z, x: gz,), linear=True, inverse=Inverse(lambda base: real(base), None),
                  samples=[Sample(lambda x: np.real(x * (1 + 2j)), ((3,),), complex=True)])
# f(x) = g(Im x): df/dx - i df/dy = -i g'
IMAG = structural("imag", vjp=(lambda gz, z, x: -1j * gz,), linear=True, inverse=Inverse(lambda base: imag(base), None),
                  samples=[Sample(lambda x: np.imag(x * (1 + 2j)), ((3,),), complex=True)])
CONJ = structural("conjugate", vjp=(lambda gz, z, x: np.conjugate(gz) if gz.dtype.kind == "c" else gz,), linear=True,
                  samples=[Sample(np.conjugate, ((3,),), complex=True)])


@implements(np.real)
@prop("real")
def real(val):
    return record(REAL, plain_value(val).real, (val,), None, val) if val.dtype.kind == "c" else val


@implements(np.imag)
@prop("imag")
def imag(val):
    if val.dtype.kind != "c":
        return array_of(val).imag
    return record(IMAG, plain_value(val).imag, (val,), None, val)


@setter("real")
def set_real(self, value):
    self[...] = value + 1j * imag(self) if self.dtype.kind == "c" else value


@setter("imag")
def set_imag(self, value):
    if self.dtype.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    self[...] = real(self) + 1j * value


@implements(np.conjugate)
def conjugate(x, /, out=None, **kwargs):
    return deliver(record(CONJ, np.conjugate(plain_value(x), **kwargs), (x,)), out)


@method("conj", "conjugate")
def conjugate_method(self):
    # ndarray's own method gives a real array itself
    return conjugate(self) if self.dtype.kind == "c" else self


@implements(np.angle)
def angle(z, deg=False):
    a = np.arctan2(imag(z), real(z)) if z.dtype.kind == "c" else writable(np.angle(plain_value(z)), z)
    return a * (180 / np.pi) if deg else a


@implements(np.real_if_close)
def real_if_close(a, tol=100):
    a = copy_of(a) if a.is_scalar else a            # NumPy makes an array of a scalar
    return a if np.iscomplexobj(np.real_if_close(plain_value(a), tol)) else real(a)


# ------------------------------------------------------------------------------------------------ sequences
def samples_axis(weights, axis):
    """Weights of the samples, shaped to multiply along `axis`, a negative number."""
    return weights.reshape((-1,) + (1,) * (-axis - 1))


def linspace_start(gz, z, x, y, *, weights, axis):
    return (gz * samples_axis(1 - weights, axis)).sum(axis=axis)


def linspace_stop(gz, z, x, y, *, weights, axis):
    return (gz * samples_axis(weights, axis)).sum(axis=axis)


LINSPACE = structural(
    "linspace", vjp=(linspace_start, linspace_stop), linear=True,
    samples=[Sample(lambda x, y: np.linspace(x, y, 5), ((), ()), complex=True),
             Sample(lambda x, y: np.linspace(x, y, 4, endpoint=False, axis=-1), ((2, 1), (3,))),
             Sample(lambda x, y: np.linspace(x, y, 1), ((2,), ())),
             Sample(lambda x, y: np.linspace(x, y, 4, retstep=True)[1] * x, ((), ())),
             Sample(lambda x, y: np.logspace(x, y, 4, base=3.0), ((2,), ()))])


def weights_of(num, endpoint):
    """How much of `stop` is in each of `num` samples."""
    return np.arange(num) / max(num - 1 if endpoint else num, 1)


@implements(np.linspace)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, **device):
    value, step = np.linspace(plain_value(start), plain_value(stop), num, endpoint, True, dtype, axis, **device)
    num = operator.index(num)
    z = record(LINSPACE, value, (start, stop), {"weights": weights_of(num, endpoint),
                                                "axis": normalize_axis_index(axis, value.ndim) - value.ndim})
    if not retstep:
        return z
    parts = num - 1 if endpoint else num
    return z, (stop - start) / parts if parts > 0 else step


@implements(np.logspace)
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    if np.ndim(plain_value(base)):
        ndim = max(np.ndim(plain_value(a)) for a in (start, stop, base))
        start, stop, base = [a.reshape((1,) * (ndim - a.ndim) + a.shape) if is_array(a) else np.array(a, ndmin=ndim)
                             for a in (start, stop, base)]
        base = np.expand_dims(base, axis)
    z = np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))
    return z if dtype is None else z.astype(dtype, copy=False)


# z = start**(1 - w) * stop**w
def geomspace_start(gz, z, x, y, *, weights, axis):
    return (gz * samples_axis(1 - weights, axis) * z).sum(axis=axis) / x


def geomspace_stop(gz, z, x, y, *, weights, axis):
    return (gz * samples_axis(weights, axis) * z).sum(axis=axis) / y


GEOMSPACE = structural(
    "geomspace", vjp=(geomspace_start, geomspace_stop), reads=("xz", "yz"),
    samples=[Sample(lambda x, y: np.geomspace(x, y, 5), ((), ()), domain=(0.5, 3.0), complex=True),
             Sample(lambda x, y: np.geomspace(x, y, 4, endpoint=False, axis=-1), ((2, 1), (3,)), domain=(-3.0, -0.5))])


@implements(np.geomspace)
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    value = np.geomspace(plain_value(start), plain_value(stop), num, endpoint, dtype, axis)
    return record(GEOMSPACE, value, (start, stop), {"weights": weights_of(operator.index(num), endpoint),
                                                    "axis": normalize_axis_index(axis, value.ndim) - value.ndim})


def vander_vjp(gz, z, x, *, powers):
    # the slope p * x**(p - 1) of a column stands, but for p, in the column beside it
    if len(powers) < 2:
        return np.zeros_like(gz, shape=gz.shape[:-1])
    rising = powers[0] < powers[-1]
    g, slopes = (gz[..., 1:], z[..., :-1]) if rising else (gz[..., :-1], z[..., 1:])
    return (g * slopes * (powers[1:] if rising else powers[:-1])).sum(axis=-1)


VANDER = structural(
    "vander", vjp=(vander_vjp,), reads=("z",),
    samples=[Sample(np.vander, ((3,),), complex=True), Sample(np.vander, ((3,),), kwargs=dict(N=2, increasing=True)),
             Sample(np.vander, ((2,),), kwargs=dict(N=1))])


@implements(np.vander)
def vander(x, N=None, increasing=False):
    value = np.vander(plain_value(x), N, increasing)
    powers = np.arange(value.shape[1])
    return record(VANDER, value, (x,), {"powers": powers if increasing else powers[::-1]})


# ------------------------------------------------------------------------------------------------ questions and output
plain_function(np.iscomplexobj, np.isrealobj, np.iscomplex, np.isreal, np.isneginf, np.isposinf, np.result_type, np.can_cast,
               np.min_scalar_type, np.common_type)
plain_function(np.array2string, np.array_repr, np.array_str, np.save, np.savetxt, np.savez, np.savez_compressed)
