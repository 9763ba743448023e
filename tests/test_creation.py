"""Creation and conversion: arrays like others that tracked values go into, copies, casts, complex parts, sequences."""
import warnings

import numpy as np
import pytest
from support import bit_identical, check

import cgrad
from cgrad import grad, vjp

RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4))
COMPLEX = X + 1j * RNG.normal(size=(3, 4))


def has_layout(call, x):
    """Whether a tracked result lies in memory as NumPy's does."""
    seen = []
    vjp(lambda x: seen.append(call(x)) or seen[0], x)
    return seen[0].value.strides == call(x).strides


# ---------------------------------------------------------------------------------------------- created like another array
@pytest.mark.parametrize("create", [np.zeros_like, np.ones_like, np.empty_like, lambda x, **k: np.full_like(x, 3.0, **k)])
def test_filled_item_by_item(create):
    def fun(x):
        z = create(x)
        for i in range(3):
            for j in range(4):
                z[i, j] = x[i, j] ** 2 * x[0, 0]
        return z
    check(fun, X)

    def shaped(x):
        z = create(x, shape=5)
        z[:] = 0
        z[1:4] += x[:, 0]
        return z
    check(shaped, X)


def test_what_is_created():
    def fun(x):
        assert type(np.zeros_like(x)) is cgrad.Array and type(np.zeros_like(x, dtype=int)) is np.ndarray
        assert type(np.ones_like(x, dtype=bool)) is np.ndarray and np.full_like(x, 2, dtype=np.float32).dtype == np.float32
        assert np.zeros_like(x, dtype=complex).dtype == complex and np.ones_like(x, order="F").value.flags.f_contiguous
        return (np.ones_like(x) * x).sum()
    assert np.array_equal(grad(fun)(X), np.ones((3, 4)))
    over = cgrad.vjp(lambda x: x, X)[0]
    assert type(np.zeros_like(over)) is np.ndarray


def test_full_like_tracked():
    check(lambda x: np.full_like(x, x[0, 0]), X)
    check(lambda x: np.full_like(x, x[0]), X)
    check(lambda x: np.full_like(x, 2.0) * x, X)
    with pytest.raises(TypeError, match="full_like.*int"):
        grad(lambda x: np.full_like(x, x[0, 0], dtype=int).sum())(X)


# ---------------------------------------------------------------------------------------------- copies and casts
@pytest.mark.parametrize("copy", [
    np.copy, lambda x: x.copy(), lambda x: x.copy("F"), lambda x: np.copy(x, "C"), lambda x: x.T.copy().T,
    lambda x: np.copy(x.T, order="K").T, lambda x: x.astype(float), lambda x: np.astype(x, float)])
def test_copies(copy):
    def fun(x):
        z = copy(x)
        z[0] = z[1] * x[0]
        return z * x
    check(fun, X)
    for value in (X, X.T, X[::2], X[:0], np.array(1.5)):
        assert bit_identical(vjp(copy, value)[0], copy(value)) and has_layout(copy, value)


def test_copy_of_scalars():
    check(np.copy, 1.5)
    check(np.copy, np.array(1.5))
    check(lambda x: x[0, 0].copy(), X)
    check(lambda x: np.copy(x[0, 0]), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble, np.complex128, np.complex64])
def test_astype(dtype):
    for call in (lambda x: x.astype(dtype), lambda x: np.astype(x, dtype), lambda x: x.astype(dtype, copy=False),
                 lambda x: x.astype(dtype, "F"), lambda x: x[0, 0].astype(dtype)):
        out, pullback = vjp(call, X)
        assert bit_identical(out, call(X)) and (out.ndim == 0 or has_layout(call, X))
        g, = pullback(np.ones_like(out) * (1 + 2j if out.dtype.kind == "c" else 1))
        assert g.dtype == X.dtype and np.array_equal(g, np.ones((3, 4)) if out.ndim else np.eye(1, 12).reshape(3, 4))
    check(lambda x: x.astype(complex) * (1 + 2j) * x[0], X)


def test_astype_that_ends_the_derivative():
    def fun(x):
        assert type(x.astype(int)) is np.ndarray and type(x.astype(bool)) is np.ndarray
        assert x.astype(float, copy=False) is x
        return np.sum(x * x.astype(int))
    assert np.array_equal(grad(fun)(X), X.astype(int))
    with pytest.raises(TypeError, match="objects"):
        grad(lambda x: x.astype(object).sum())(X)
    with pytest.raises(TypeError, match="Cannot cast"):
        grad(lambda x: x.astype(np.float32, casting="safe").sum())(X)


def test_complex_to_real_warns():
    with pytest.warns(np.exceptions.ComplexWarning):
        out, pullback = vjp(lambda x: x.astype(float), COMPLEX)
    assert bit_identical(out, COMPLEX.real)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g, = pullback(X)
    assert bit_identical(g, X.astype(complex))


# ---------------------------------------------------------------------------------------------- complex parts
@pytest.mark.parametrize("call", [
    np.real, np.imag, lambda x: x.real, lambda x: x.imag, np.conj, np.conjugate, lambda x: x.conj(), lambda x: x.conjugate(),
    np.angle, lambda x: np.angle(x, deg=True), np.abs, np.real_if_close, lambda x: np.real(x[0, 0]), lambda x: x[0, 0].imag,
    lambda x: np.real(x) ** 2 + 1j * np.imag(x) * np.conj(x), lambda x: np.real_if_close(x * 0 + x.real)])
def test_complex_parts(call):
    check(call, COMPLEX, order=1)
    real_valued = call(COMPLEX).dtype.kind == "f"
    if real_valued:
        # second order, by the real and the imaginary part
        check(lambda re, im: call(re + 1j * im), X, COMPLEX.imag)


def test_convention():
    """For a real function of x + iy the gradient is df/dx - i df/dy."""
    z = np.complex128(1 + 2j)
    assert grad(lambda z: np.real(z))(z) == 1 and grad(lambda z: np.imag(z))(z) == -1j
    assert grad(lambda z: np.real(np.conj(z) * z))(z) == 2 - 4j
    assert np.allclose(grad(np.angle)(z), -1j / z)


def test_parts_of_real_arrays():
    check(lambda x: np.real(x) * x.real * np.conj(x) * x.conj(), X)

    def fun(x):
        assert x.real is x and type(np.imag(x)) is np.ndarray and not np.any(x.imag) and np.real_if_close(x) is x
        return np.sum(np.angle(x) * x + np.imag(x))
    assert np.array_equal(grad(fun)(X), np.angle(X))


def test_writing_to_parts():
    def fun(x):
        z = x * (1 + 2j)
        z.real = x ** 2
        z.imag = z.real * x
        return z
    check(fun, X)
    check(lambda x: fun(x.real), COMPLEX, order=1)
    with pytest.raises(ValueError, match="read-only.*real"):
        grad(lambda x: np.real((x * 1j).real.__setitem__(0, 1.0) or x).sum())(X)
    with pytest.raises(TypeError, match="imaginary"):
        grad(lambda x: x.__setattr__("imag", 1.0) or x.sum())(X)


def test_conjugate_keywords():
    def fun(x):
        out = np.zeros_like(x)
        np.conjugate(x * x, out=out)
        return out
    check(fun, COMPLEX, order=1)
    assert bit_identical(vjp(lambda x: np.conjugate(x, dtype=complex), X)[0], np.conjugate(X, dtype=complex))


# ---------------------------------------------------------------------------------------------- sequences
@pytest.mark.parametrize("num", [0, 1, 2, 7])
@pytest.mark.parametrize("endpoint", [False, True])
@pytest.mark.parametrize("sequence", [np.linspace, np.logspace, np.geomspace], ids=lambda f: f.__name__)
def test_sequences(sequence, num, endpoint):
    check(lambda a, b: sequence(a, b, num, endpoint), 0.5, 2.0)
    check(lambda a, b: sequence(a, b, num, endpoint=endpoint, axis=-1), np.array([[0.5], [0.7]]), np.array([2.0, 3.0, 4.0]))
    check(lambda a: sequence(a, 3.0, num, endpoint), np.array(1.5))
    check(lambda b: sequence(1, b, num, endpoint), 1.5)


def test_linspace():
    check(lambda a, b: np.linspace(a, b, 5, retstep=True)[1], 0.5, np.array([1.0, 2.0]))
    assert np.isnan(vjp(lambda a, b: np.linspace(a, b, 1, retstep=True)[1] + 0 * a, 0.5, 1.0)[0])
    check(lambda a, b: np.linspace(a, b, 4, axis=1), X[0], X[1])
    check(lambda a, b: np.linspace(a, b, 4), COMPLEX[0], COMPLEX[1], order=1)
    check(lambda a, b: np.linspace(a, a * (1 + 1e-300), 4) * b, 0.0, 2.0, order=1)      # a step of zero
    assert vjp(lambda a: np.linspace(a, 2, 4, dtype=np.float32), 1.0)[0].dtype == np.float32
    assert type(vjp(lambda a: np.linspace(a, 2, 4, dtype=int) + 0 * a, 1.0)[0]) is np.ndarray
    out, pullback = vjp(lambda a, b: np.linspace(a, b, 3), np.float32(1), np.float32(2))
    assert bit_identical(out, np.linspace(np.float32(1), np.float32(2), 3))
    assert [g.dtype for g in pullback(np.ones_like(out))] == [np.float32, np.float32]


def test_logspace_and_geomspace():
    check(lambda a, b, c: np.logspace(a, b, 4, base=c), 0.5, 2.0, 3.0)
    check(lambda a, b, c: np.logspace(a, b, 4, base=c, axis=-1), X[0], 2.0, np.array([2.0, 3.0, 4.0, 5.0]))
    check(lambda a, b: np.geomspace(a, b, 4), -0.5, -2.0)
    check(lambda a, b: np.geomspace(a, b, 4), 1 + 1j, 2.0 + 0.5j, order=1)
    with pytest.raises(ValueError, match="zero"):
        grad(lambda a: np.geomspace(a, 1.0).sum())(0.0)


@pytest.mark.parametrize("increasing", [False, True])
@pytest.mark.parametrize("n", [None, 0, 1, 2, 5])
def test_vander(n, increasing):
    check(lambda x: np.vander(x, n, increasing), X[0])
    check(lambda x: np.vander(x, n, increasing), np.array([0.0, 1.0]))
    check(lambda x: np.vander(x, n, increasing), COMPLEX[0], order=1)


def test_questions():
    def fun(x):
        assert not np.iscomplexobj(x) and np.isrealobj(x) and np.result_type(x, np.float32) == np.float64
        assert np.isreal(x).all() and not np.iscomplex(x).any() and np.can_cast(x.dtype, complex)
        assert np.common_type(x, x) is np.float64 and not np.isposinf(x).any()
        assert np.array_str(x) == str(X) and np.array2string(x) == str(X)
        return x.sum()
    grad(fun)(X)
