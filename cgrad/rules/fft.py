"""Discrete Fourier transforms: numpy.fft.

Four one-dimensional transforms have a rule: fft, ifft, rfft, irfft. All others are made of them, call by call as in NumPy. They are
linear, so a rule is the transposed matrix; those of fft and ifft are symmetric. Uses the registry and `products`.
"""
import numpy as np

from .products import as_operand
from .registry import Sample, deliver, implements, plain_function, plain_value, record, structural

__all__ = []

plain_function(np.fft.fftfreq, np.fft.rfftfreq)

# the scaling of a transform is that of its inverse under the other name
SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


# ---------------------------------------------------------------------------------------------- what the rules share
def fitted(g, length, axis):
    """The adjoint of cutting an axis of `length` elements, or filling it up with zeros; `axis` is negative."""
    have = g.shape[axis]
    if have == length:
        return g
    if have > length:
        return g[(Ellipsis, slice(0, length)) + (slice(None),) * (-1 - axis)]
    missing = list(g.shape)
    missing[axis] = length - have
    return np.concatenate((g, np.zeros(missing, g.dtype)), axis=axis)


def bin_weights(n, inner, dtype, axis):
    """Weights for the bins of a half spectrum of n points: `inner` for those that stand for two of the full one."""
    weights = np.full(n // 2 + 1, inner, dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return weights.reshape((-1,) + (1,) * (-1 - axis))


def real_type(dtype):
    return np.finfo(dtype).dtype


# ---------------------------------------------------------------------------------------------- rules
def fft_vjp(gz, z, x, *, n, axis, norm):
    return fitted(np.fft.fft(gz, n, axis, norm), x.shape[axis], axis)


def ifft_vjp(gz, z, x, *, n, axis, norm):
    return fitted(np.fft.ifft(gz, n, axis, norm), x.shape[axis], axis)


def rfft_vjp(gz, z, x, *, n, axis, norm):
    """The real part of sum_k gz[k] exp(-2 pi i j k / n), which is the inverse transform of a half spectrum."""
    half = np.conj(gz) * bin_weights(n, 0.5, real_type(z.dtype), axis)
    return fitted(np.fft.irfft(half, n, axis, SWAPPED[norm]), x.shape[axis], axis)


def irfft_vjp(gz, z, x, *, n, axis, norm):
    """Each inner bin stands for itself and for its conjugate."""
    spectrum = np.conj(np.fft.rfft(gz, n, axis, SWAPPED[norm])) * bin_weights(n, 2, real_type(z.dtype), axis)
    return fitted(spectrum, x.shape[axis], axis)


def transform(function, vjp, samples):
    """The op of a one-dimensional transform and its handler, ``handler(a, n=None, axis=-1, norm=None, out=None)``."""
    op = structural(function.__name__, vjp=(vjp,), linear=True, samples=samples)
    half = function is np.fft.irfft

    @implements(function)
    def handler(a, n=None, axis=-1, norm=None, out=None):
        a = as_operand(a)
        value = function(plain_value(a), n, axis, norm)
        axis = axis - a.ndim if axis >= 0 else axis
        if n is None:
            n = value.shape[axis] if half else a.shape[axis]
        return deliver(record(op, value, (a,), dict(n=int(n), axis=axis, norm=norm)), out)
    return handler


def samples_of(function, complex=False):
    def both(x, **kwargs):
        """Real numbers in place of complex ones, for the tests: the real and the imaginary part."""
        z = function(x, **kwargs)
        return np.concatenate((np.real(z), np.imag(z)))

    given = (((5,), {}), ((2, 4, 3), dict(axis=1, norm="ortho")), ((3, 4), dict(n=6, axis=0, norm="forward")), ((3, 6), dict(n=3)))
    return [Sample(both, (shape,), kwargs=kwargs, complex=complex) for shape, kwargs in given]


fft = transform(np.fft.fft, fft_vjp, samples_of(np.fft.fft, complex=True))
ifft = transform(np.fft.ifft, ifft_vjp, samples_of(np.fft.ifft, complex=True))
rfft = transform(np.fft.rfft, rfft_vjp, samples_of(np.fft.rfft))
irfft = transform(np.fft.irfft, irfft_vjp, samples_of(np.fft.irfft, complex=True))


# ---------------------------------------------------------------------------------------------- several axes
def sizes_and_axes(function, a, s, axes, half=False):
    """The number of points and the axis of each one-dimensional transform, as NumPy takes `s` and `axes`."""
    if s is None and axes is None:
        sizes, axes = list(a.shape), list(range(-a.ndim, 0))
    elif s is None:
        sizes, axes = [a.shape[axis] for axis in axes], list(axes)
    else:
        sizes = list(s)
        if axes is None or len(sizes) != len(axes) or None in sizes:
            function(plain_value(a), s, axes)                           # NumPy's own error or warning
        axes = list(range(-len(sizes), 0)) if axes is None else list(axes)
        sizes = [a.shape[axis] if size == -1 else size for size, axis in zip(sizes, axes)]
    if half and s is None:
        sizes[-1] = 2 * (a.shape[axes[-1]] - 1)
    return sizes, axes


def over_axes(function, single, default=None):
    """fftn and its like: `single` along the axes, from the last one on."""
    @implements(function)
    def handler(a, s=None, axes=default, norm=None, out=None):
        a = as_operand(a)
        sizes, axes = sizes_and_axes(function, a, s, axes)
        for n, axis in zip(reversed(sizes), reversed(axes)):
            a = single(a, n, axis, norm)
        return deliver(a, out)
    return handler


def over_axes_of_real(function, default=None):
    """rfftn and rfft2."""
    @implements(function)
    def handler(a, s=None, axes=default, norm=None, out=None):
        a = as_operand(a)
        sizes, axes = sizes_and_axes(function, a, s, axes)
        a = rfft(a, sizes[-1], axes[-1], norm)
        for n, axis in zip(reversed(sizes[:-1]), reversed(axes[:-1])):
            a = fft(a, n, axis, norm)
        return deliver(a, out)
    return handler


def over_axes_to_real(function, default=None):
    """irfftn and irfft2."""
    @implements(function)
    def handler(a, s=None, axes=default, norm=None, out=None):
        a = as_operand(a)
        sizes, axes = sizes_and_axes(function, a, s, axes, half=True)
        for n, axis in zip(sizes[:-1], axes[:-1]):
            a = ifft(a, n, axis, norm)
        return deliver(irfft(a, sizes[-1], axes[-1], norm), out)
    return handler


over_axes(np.fft.fftn, fft)
over_axes(np.fft.ifftn, ifft)
over_axes(np.fft.fft2, fft, (-2, -1))
over_axes(np.fft.ifft2, ifft, (-2, -1))
over_axes_of_real(np.fft.rfftn)
over_axes_of_real(np.fft.rfft2, (-2, -1))
over_axes_to_real(np.fft.irfftn)
over_axes_to_real(np.fft.irfft2, (-2, -1))


# ---------------------------------------------------------------------------------------------- signals with a symmetry
def swapped(function, a, n, axis, norm):
    if norm not in SWAPPED:
        function(plain_value(a), n, axis, norm)                         # NumPy's own error
    return SWAPPED[norm]


@implements(np.fft.hfft)
def hfft(a, n=None, axis=-1, norm=None, out=None):
    a = as_operand(a)
    return deliver(irfft(np.conjugate(a), n, axis, swapped(np.fft.hfft, a, n, axis, norm)), out)


@implements(np.fft.ihfft)
def ihfft(a, n=None, axis=-1, norm=None, out=None):
    a = as_operand(a)
    return deliver(np.conjugate(rfft(a, n, axis, swapped(np.fft.ihfft, a, n, axis, norm))), out)


# ---------------------------------------------------------------------------------------------- order of the bins
def shifted(x, axes, amount):
    if axes is None:
        axes = tuple(range(x.ndim))
    if isinstance(axes, (int, np.integer)):
        return np.roll(x, amount(x.shape[axes]), axes)
    return np.roll(x, [amount(x.shape[axis]) for axis in axes], axes)


@implements(np.fft.fftshift)
def fftshift(x, axes=None):
    return shifted(x, axes, lambda n: n // 2)


@implements(np.fft.ifftshift)
def ifftshift(x, axes=None):
    return shifted(x, axes, lambda n: -(n // 2))
