"""numpy.fft's names, straight to the recorded operation; see `cgrad.numpy`."""
import numpy.fft as _fft
from numpy.fft import fftfreq, rfftfreq  # noqa: F401

from .._direct import Direct as _Direct


def _direct(*functions):
    return map(_Direct, functions)


fft, ifft, fft2, ifft2, fftn, ifftn = _direct(_fft.fft, _fft.ifft, _fft.fft2, _fft.ifft2, _fft.fftn, _fft.ifftn)
rfft, irfft, rfft2, irfft2, rfftn, irfftn = _direct(_fft.rfft, _fft.irfft, _fft.rfft2, _fft.irfft2, _fft.rfftn, _fft.irfftn)
hfft, ihfft, fftshift, ifftshift = _direct(_fft.hfft, _fft.ihfft, _fft.fftshift, _fft.ifftshift)


def __getattr__(name):
    return getattr(_fft, name)


def __dir__():
    return sorted({*_fft.__dir__(), *globals()})
