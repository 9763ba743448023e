"""numpy.fft: every transform, every size, norm and axis. Samples of each op are tested by tests/test_registry.py too."""
import warnings

import numpy as np
import pytest
from support import bit_identical, check

import cgrad
from cgrad import grad, jacobian, vjp

RNG = np.random.default_rng(4)
X = RNG.normal(size=(4, 5, 6))
Z = X + 1j * RNG.normal(size=X.shape)
NORMS = [None, "backward", "ortho", "forward"]
ONE_AXIS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
ALL_AXES = ["fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn"]
OF_REAL = {"rfft", "ihfft", "rfft2", "rfftn"}


def argument(name):
    return X if name in OF_REAL else Z


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("name", ONE_AXIS)
def test_one_axis(name, n, norm):
    f = getattr(np.fft, name)
    check(lambda x: f(x, n, norm=norm), argument(name)[0, 0])
    check(lambda x: f(x, n, 0, norm), argument(name)[:, :2, 0], order=1)


@pytest.mark.parametrize("kwargs", [
    {}, dict(axes=(0, 2)), dict(axes=(-1, 0)), dict(axes=(1,)), dict(s=(3, 7), axes=(0, 1)), dict(s=(-1, 4), axes=(2, 1)),
    dict(norm="ortho"), dict(norm="forward", axes=(2, 1, 0)), dict(s=(8, 2, 3), axes=(0, 1, 2))], ids=str)
@pytest.mark.parametrize("name", ALL_AXES)
def test_several_axes(name, kwargs):
    check(lambda x: getattr(np.fft, name)(x, **kwargs), argument(name), order=1)


@pytest.mark.parametrize("name", ["fftn", "irfftn"])
def test_an_axis_twice(name):
    check(lambda x: getattr(np.fft, name)(x, axes=(0, 0, 1)), Z[:, :, 0])


@pytest.mark.parametrize("name", ["fftn", "rfftn", "irfftn"])
def test_sizes_without_axes_warn_as_in_numpy(name):
    f = getattr(np.fft, name)
    with pytest.warns(DeprecationWarning):
        vjp(lambda x: f(x, s=(3, 4)), argument(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(lambda x: f(x, s=(3, 4)), argument(name), order=1)


@pytest.mark.parametrize("name", ["fft", "ifft", "irfft", "hfft", "fftn", "irfftn"])
def test_real_input_of_complex_transforms(name):
    """The gradient of a real input is real."""
    x = X[0]
    check(lambda x: getattr(np.fft, name)(x), x)
    assert grad(lambda x: np.sum(np.abs(getattr(np.fft, name)(x))**2))(x).dtype == float


def test_power_spectrum():
    x = np.array([0.3, 0.7, 0.2, 0.9])
    assert np.allclose(grad(lambda x: np.sum(np.abs(np.fft.rfft(x))**2))(x), [2.2, 6.0, 1.8, 6.8])


def test_inverse_undoes():
    for there, back in (("fft", "ifft"), ("rfft", "irfft"), ("ihfft", "hfft"), ("fftn", "ifftn"), ("rfftn", "irfftn")):
        j = jacobian(lambda x: np.real(getattr(np.fft, back)(getattr(np.fft, there)(x))))(X[0])
        assert np.allclose(j.reshape(30, 30), np.eye(30))


def test_convolution():
    """Of two tracked signals, by their spectra."""
    def convolved(x, y):
        n = len(x) + len(y) - 1
        return np.fft.irfft(np.fft.rfft(x, n) * np.fft.rfft(y, n), n)
    x, y = X[0, 0], X[1, :, 0]
    check(convolved, x, y)
    w = RNG.normal(size=10)
    for got, right in zip(vjp(convolved, x, y)[1](w), vjp(np.convolve, x, y)[1](w)):
        assert np.allclose(got, right)


def test_shifts():
    for f in (np.fft.fftshift, np.fft.ifftshift):
        for axes in (None, 1, -1, (0, 2), (1,)):
            check(lambda x: f(x, axes), X[:2, :3])


def test_frequencies_are_plain():
    assert np.allclose(grad(lambda x: np.sum(x * np.fft.fftfreq(4)))(X[:, 0, 0]), np.fft.fftfreq(4))


@pytest.mark.parametrize("name", ONE_AXIS + ALL_AXES)
def test_single_precision(name):
    f = getattr(np.fft, name)
    wide = argument(name)
    x = wide.astype("F" if wide.dtype.kind == "c" else "f")
    out, pullback = vjp(f, x)
    assert bit_identical(out, f(x)) and pullback(out)[0].dtype == x.dtype
    wide = vjp(f, wide)[1](out.astype("D" if out.dtype.kind == "c" else "d"))
    np.testing.assert_allclose(pullback(out)[0], wide[0], rtol=0, atol=1e-5 * np.abs(wide[0]).max())


def test_layouts():
    for x in (Z[0].T, Z[0, ::-1, ::2], np.asfortranarray(Z[1])):
        check(lambda x: np.fft.fft(x, axis=0), x, order=1)


def test_out():
    def fun(x):
        out = cgrad.numpy.zeros(6, complex)
        assert np.fft.fft(x, out=out) is out
        return out
    assert np.allclose(vjp(fun, X[0, 0])[1](Z[0, 0])[0], vjp(np.fft.fft, X[0, 0])[1](Z[0, 0])[0])
    with pytest.raises(TypeError, match="zeros_like"):
        vjp(lambda x: np.fft.fft(x, out=np.empty(6, complex)), X[0, 0])


def test_numpys_errors_come_through():
    for f in (lambda x: np.fft.fft(x, 0), lambda x: np.fft.fft(x, norm="none"), lambda x: np.fft.hfft(x, norm="none"),
              lambda x: np.fft.fftn(x, s=(2,), axes=(0, 1))):
        with pytest.raises(ValueError):
            vjp(f, X)
    with pytest.raises(IndexError):
        vjp(lambda x: np.fft.fft(x, axis=3), X)
