"""Every kind of bad input gives a typed error that says op, argument, what came, what was expected and what to do."""
import math
import threading

import numpy as np
import pytest
import scipy.special

import cgrad


def grad_of(f, *args, **kwargs):
    return lambda: cgrad.grad(f, **kwargs)(*args)


X = np.array([1.0, 2.0])


@pytest.mark.parametrize("call, error, words", [
    (grad_of(lambda x: x * 2, X), ValueError, ["grad", "(2,)", "scalar", "cgrad.jacobian", "cgrad.vjp"]),
    (grad_of(lambda x: [x[0], x[1]], X), TypeError, ["grad", "list", "scalar", "jacobian"]),
    (grad_of(lambda x: None, X), TypeError, ["grad", "NoneType", "scalar"]),
    (grad_of(lambda x: x * x, 2), TypeError, ["grad: argument 0", "int", "floating"]),
    (grad_of(lambda x: x[0], np.array([1, 2])), TypeError, ["grad: argument 0", "int64", "floating", "astype(float)"]),
    (grad_of(lambda x: x[0], np.array([True])), TypeError, ["bool", "floating"]),
    (grad_of(lambda x: x[0], np.array([1.0, None])), TypeError, ["object", "floating"]),
    (grad_of(lambda x: x[0], "text"), TypeError, ["grad: argument 0", "str"]),
    (grad_of(lambda p: p["a"], {"a": 1.0, "b": [2]}), TypeError, ["argument 0['b'][0]", "int"]),
    (grad_of(lambda x: float(x) * 2, 1.0), TypeError, ["float()", "lose the gradient", ".value", "np.sin"]),
    (grad_of(lambda x: int(x), 1.0), TypeError, ["int()", "lose the gradient", ".value"]),
    (grad_of(lambda x: complex(x), 1.0), TypeError, ["complex()", "1j", ".value"]),
    (grad_of(lambda x: math.sin(x), 1.0), TypeError, ["math.sin", "np.sin"]),
    (grad_of(lambda x: [1, 2][x], 1.0), TypeError, ["index", "int(x.value)"]),
    (grad_of(lambda x: np.asarray(x)[0], X), TypeError, ["np.asarray", "cgrad.numpy.array", "np.stack", ".value"]),
    (grad_of(lambda x: np.array([x[0], x[1]])[0], X), TypeError, ["np.array", "cgrad.numpy.array", "np.stack", ".value"]),
    (grad_of(lambda x: x[0], X, argnums=1), ValueError, ["argnums 1", "out of range", "1 positional argument"]),
    (grad_of(lambda x: x[0], X, argnums="x"), TypeError, ["argnums", "'x'", "integer"]),
    (grad_of(lambda z: z * z, 1j), TypeError, ["complex", "holomorphic=True", "real"]),
    (grad_of(lambda x: x * 1j, 1.0, holomorphic=True), TypeError, ["holomorphic", "float64", "complex"]),
    (grad_of(3.0), TypeError, ["grad", "float", "grad(f)(x)"]),
    (lambda: cgrad.grad(lambda x: (x, 1, 2), has_aux=True)(1.0), TypeError, ["has_aux", "tuple of two"]),
    (lambda: cgrad.vjp(lambda x: x * 2, X)[1](np.ones(3)), ValueError, ["vjp", "(3,)", "(2,)"]),
    (lambda: cgrad.vjp(lambda x: x * 2, X)[1]([np.ones(2), np.ones(2)]), ValueError, ["vjp", "2 arrays", "1"]),
    (lambda: cgrad.vjp(lambda x: x * 2, X)[1](np.ones(2) * 1j), TypeError, ["vjp", "complex", "real"]),
    (lambda: cgrad.jacobian(lambda x: x, chunk=0)(X), ValueError, ["jacobian", "chunk is 0", "positive"]),
    (lambda: cgrad.elementwise_grad(lambda x: x[:1])(X), ValueError, ["elementwise_grad", "(1,)", "(2,)", "jacobian"]),
    (lambda: cgrad.elementwise_grad(lambda x: x * x[0])(X), ValueError, ["not diagonal", "jacobian"]),
    (lambda: cgrad.gradients(X, X), cgrad.TapeError, ["nothing records", "cgrad.grad"]),
    (lambda: cgrad.Array(), TypeError, ["cgrad.numpy.array"]),
    (grad_of(lambda x: hash(x), X), TypeError, ["unhashable"]),
    (grad_of(lambda x: x[x], X), TypeError, ["index", "float64", "comparison"]),
    (grad_of(lambda x: np.polyfit(X, x, 1), X), NotImplementedError, ["polyfit", "no derivative rule", ".value"]),
    (grad_of(lambda x: scipy.special.gamma(x), X), NotImplementedError, ["gamma", "no derivative rule", ".value"]),
    (grad_of(lambda x: x.no_such_thing, X), AttributeError, ["no_such_thing"]),
    (grad_of(lambda x: x.byteswap(), X), AttributeError, ["byteswap", "x.value"]),
])
def test_message(call, error, words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
    assert cgrad._tape.current_tape() is None       # no tape is left behind


def test_store_into_plain_array():
    def f(x):
        y = np.zeros(2)
        y[0] = x[0]
        return y
    with pytest.raises((TypeError, ValueError)) as caught:
        cgrad.grad(f)(X)
    text = str(caught.value) + str(caught.value.__cause__) + str(caught.value.__context__)
    for word in ("plain ndarray", "np.zeros_like(x)", "cgrad.numpy.zeros", ".value"):
        assert word in text


def test_store_array_into_plain_array():
    def f(x):
        y = np.zeros(2)
        y[:] = x
        return y
    with pytest.raises((TypeError, ValueError), match="plain ndarray"):
        cgrad.grad(f)(X)


def test_tracked_into_integer_array():
    def f(x):
        y = np.zeros_like(x, dtype=int)
        y[0] = x[0]
        return y
    with pytest.raises(TypeError):
        cgrad.grad(f)(X)


def test_scalar_is_immutable_as_numpys():
    def f(x):
        s = x[0] * 2
        s[()] = 1.0
        return s
    with pytest.raises(TypeError, match="scalar"):
        cgrad.grad(f)(X)


def test_used_tape():
    with cgrad.GradientTape() as tape:
        x = tape.watch(X)
        y = x[0] * x[1]
    tape.gradient(y, x)
    with pytest.raises(cgrad.TapeError, match="persistent=True"):
        tape.gradient(y, x)


def test_output_gradients_shape():
    with cgrad.GradientTape() as tape:
        x = tape.watch(X)
        y = x * 2
    with pytest.raises(ValueError, match=r"output_gradients has shape \(3,\); expected \(2,\)"):
        tape.gradient(y, x, output_gradients=np.ones(3))


def test_unconnected_gradients_word():
    with cgrad.GradientTape() as tape:
        x = tape.watch(X)
        y = x * 2
    with pytest.raises(ValueError, match="unconnected_gradients is 'nul'; expected 'none'"):
        tape.gradient(y, x, unconnected_gradients="nul")


def test_unwatched_source():
    with cgrad.GradientTape() as tape:
        x = tape.watch(X)
        y = x * 2
    with pytest.raises(ValueError, match=r"source is not watched: got ndarray.*tape.watch"):
        tape.gradient(y, X)
    v = cgrad.Variable(1.0, trainable=False)
    with cgrad.GradientTape() as tape:
        y = tape.watch(X) * v
    with pytest.raises(ValueError, match="not watched"):
        tape.gradient(y, v)


def test_target_that_is_not_tracked():
    with cgrad.GradientTape() as tape:
        x = tape.watch(X)
    y = x * 2                                       # after the tape
    assert isinstance(y, np.ndarray)
    with pytest.raises(TypeError, match="plain ndarray"):
        tape.gradient(y, x)


def test_unrelated_tapes():
    with cgrad.GradientTape() as one:
        x = one.watch(X)
        y = x * 2
    with cgrad.GradientTape() as two:
        z = two.watch(X)
        with pytest.raises(cgrad.TapeError, match=r"two unrelated tapes.*\.value"):
            y * z
        assert two.gradient(z * y.value, z) is not None


def test_leaked_value():
    kept = []
    cgrad.grad(lambda x: kept.append(x * 2) or x[0])(X)
    with pytest.raises(cgrad.TapeError, match="unrelated tapes"):
        cgrad.grad(lambda x: (x * kept[0])[0])(X)
    assert isinstance(kept[0] + 1, np.ndarray)      # outside of any tape it is a plain value
    with pytest.raises(cgrad.TapeError, match="over"):
        kept[0][0] = 1.0


def test_other_thread():
    caught = []

    def f(x):
        def work():
            try:
                x * 2
            except cgrad.TapeError as error:
                caught.append(str(error))
        t = threading.Thread(target=work)
        t.start()
        t.join()
        return x[0]
    cgrad.grad(f)(X)
    assert "one thread" in caught[0] and ".value" in caught[0]


def test_exception_leaves_no_tape():
    def f(x):
        x * 2
        raise KeyError("stop")
    for transform in (cgrad.grad, cgrad.value_and_grad, cgrad.jacobian, cgrad.elementwise_grad, cgrad.vjp):
        with pytest.raises(KeyError, match="stop"):
            cgrad.vjp(f, X) if transform is cgrad.vjp else transform(f)(X)
        assert cgrad._tape.current_tape() is None
    assert cgrad.grad(lambda x: x * x)(3.0) == 6.0


# ------------------------------------------------------------------------------------------- values changed after use
@pytest.mark.parametrize("n", [3, 5000])
def test_constant_changed_between_value_and_pullback(n):
    z = np.ones(n)
    _, pullback = cgrad.vjp(lambda x: x * z, np.arange(float(n)))
    try:
        z[:] = 0
    except ValueError as error:                     # large arrays are read-only while the tape lives
        assert "read-only" in str(error) and n == 5000
    assert np.all(pullback(np.ones(n))[0] == 1)
    del pullback
    z[:] = 2                                        # and writeable again afterwards
    assert z[0] == 2


@pytest.mark.parametrize("n", [3, 5000])
def test_constant_changed_through_base(n):
    base = np.ones(2 * n)
    z = base[::2]
    _, pullback = cgrad.vjp(lambda x: x * z, np.arange(float(n)))
    try:
        base[:] = 0
    except ValueError as error:
        assert "read-only" in str(error) and n == 5000
    assert np.all(pullback(np.ones(n))[0] == 1)
    del pullback
    base[:] = 2
    z[:] = 3


@pytest.mark.parametrize("n", [3, 5000])
def test_argument_and_result_changed(n):
    x = np.ones(n)
    out, pullback = cgrad.vjp(np.exp, x)
    out[:] = 0
    try:
        x[:] = 5
    except ValueError as error:
        assert "read-only" in str(error) and n == 5000
    np.testing.assert_allclose(pullback(np.ones(n))[0], np.e)


def test_two_tapes_hold_one_array():
    z = np.ones(5000)
    _, one = cgrad.vjp(lambda x: x * z, np.ones(5000))
    _, two = cgrad.vjp(lambda x: x * z[:], np.ones(5000))
    del one
    with pytest.raises(ValueError, match="read-only"):
        z[0] = 5
    del two
    z[0] = 5


def test_value_is_read_only():
    def f(x):
        with pytest.raises(ValueError, match="read-only"):
            (x * 2).value[0] = 1
        return x[0]
    cgrad.grad(f)(X)
