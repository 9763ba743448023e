"""Recording: forward values bit for bit, what the tape keeps, copy on write, memory, fast and slow paths alike."""
import gc
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgrad
import cgrad.numpy as cnp
from cgrad._record import leaf
from cgrad._tape import close_tape, open_tape

FLOATS = st.floats(-1e3, 1e3, width=64)


@pytest.fixture
def tape():
    t = open_tape()
    yield t
    close_tape(t)


@given(FLOATS, FLOATS)
@settings(max_examples=300, deadline=None)
def test_scalar_arithmetic_is_numpys(a, b):
    """0-d float64 never becomes an ndarray; its arithmetic is NumPy's scalar arithmetic all the same."""
    calls = [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: 2 * x - y / 3, lambda x, y: -x, lambda x, y: abs(x),
             lambda x, y: x % 3, lambda x, y: x // 0.7, lambda x, y: x**2, lambda x, y: x**3, lambda x, y: abs(x)**0.5,
             lambda x, y: abs(x)**y if abs(y) < 5 else x, lambda x, y: np.sin(x) * np.exp(-abs(y)), lambda x, y: np.maximum(x, y),
             lambda x, y: np.arctan2(x, y)]
    with np.errstate(all="ignore"):
        for f in calls:
            for kind in (np.float64, np.array):
                x, y = kind(a), kind(b)
                right = f(x, y)
                got = cgrad.vjp(f, x, y)[0]
                np.testing.assert_array_equal(got, right)
                assert type(got) is type(right)
            if abs(b) > 1e-3:
                np.testing.assert_array_equal(cgrad.vjp(lambda x, y: x / y, np.float64(a), np.float64(b))[0], np.float64(a) / np.float64(b))


@given(st.lists(FLOATS, min_size=1, max_size=20), st.sampled_from([np.float64, np.float32]))
@settings(max_examples=200, deadline=None)
def test_array_operators_are_numpys(values, dtype):
    x = np.array(values, dtype)
    y = x[::-1].copy()
    with np.errstate(all="ignore"):
        for f in (lambda x, y: x * y + 2, lambda x, y: x / y, lambda x, y: x**2, lambda x, y: x**-1, lambda x, y: abs(x)**0.5, lambda x, y: x**3,
                  lambda x, y: 1.5 - x, lambda x, y: x // 3, lambda x, y: x % y, lambda x, y: np.hypot(x, y), lambda x, y: np.sin(x),
                  lambda x, y: x * np.float32(3), lambda x, y: x + np.float64(0.1), lambda x, y: 3 * x, lambda x, y: x @ y):
            right = f(x, y)
            got = cgrad.vjp(f, x, y)[0]
            assert got.dtype == right.dtype
            np.testing.assert_array_equal(got, right)


def test_warnings_and_errstate_are_numpys():
    """The fast path calls inner loops; what they flag is reported as NumPy reports it."""
    for x in (np.array([0.0, 1.0]), 0.0):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            cgrad.vjp(lambda x: np.log(x), x)
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            cgrad.vjp(lambda x: np.log(x), x)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            cgrad.vjp(lambda x: np.log(x), x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cgrad.vjp(lambda x: np.sin(x) * x, np.array([1.0, 2.0]))


def test_only_what_depends_on_an_input_is_recorded(tape):
    x = leaf(tape, np.ones(3))
    before = len(tape)
    np.sin(np.ones(3)) * 2
    x.value * 2
    x > 0
    assert len(tape) == before
    c = np.zeros_like(x)
    c + 1.0
    c[0] = 5.0
    assert len(tape) == before
    x * 2
    assert len(tape) == before + 1


def test_rules_read_what_their_parameters_say(tape):
    """multiply keeps the other operand, exp its result, add nothing: nobody else holds the value afterwards."""
    x = leaf(tape, np.ones(5000))
    for f, kept in ((lambda y: y + x, False), (lambda y: -y, False), (lambda y: np.exp(y), False), (lambda y: y * 2.0, False),
                    (lambda y: y * x, True), (lambda y: np.sin(y), True), (lambda y: np.sqrt(y), False)):
        y = x * 1.0
        base = y.value.base
        alive = weakref.ref(base)
        del base
        z = f(y)
        del y
        assert (alive() is not None) == kept, f
        del z


def test_writes_do_not_copy_what_nobody_sees(tape):
    y = leaf(tape, np.ones(1000)) * 1.0
    where = y.value.ctypes.data
    for i in range(10):
        y[i] = 2.0 * y[i + 1]
    assert y.value.ctypes.data == where             # one buffer all along
    z = y * y                                       # the tape keeps y now
    y[0] = 7.0
    assert y.value.ctypes.data != where
    assert z.value[0] == 4.0


def test_copy_costs_nothing_until_written(tape):
    y = leaf(tape, np.ones(1000)) * 1.0
    z = y.copy()
    assert z.value.ctypes.data == y.value.ctypes.data
    z[0] = 5.0
    assert y.value[0] == 1.0 and z.value[0] == 5.0


def test_scalars_are_immutable_and_arrays_alias(tape):
    x = leaf(tape, np.array([1.0, 2.0]))
    s = x[0] * 1.0
    t = s
    t += 1
    assert float(s.value) == 1.0 and float(t.value) == 2.0
    y = x * 1.0
    z = y
    z += 1
    assert y is z and y.value.tolist() == [2.0, 3.0]
    with pytest.raises(TypeError, match="same_kind|cast"):
        y += 1j
    with pytest.raises(ValueError):
        y += np.ones((3, 2))


def test_nothing_is_left_behind():
    x = np.linspace(0, 1, 50)
    gradient = cgrad.grad(lambda x: np.sum(np.sin(x) * x[::-1]) + cgrad.grad(lambda y: np.sum(y**3))(x)[3])
    for _ in range(50):
        gradient(x)
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            gradient(x)
        assert gc.collect() == 0                    # no reference cycles
    finally:
        gc.enable()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(2000):
        gradient(x)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 10_000


def test_results_do_not_hold_a_chunk():
    """Small arrays share blocks of memory; what leaves a transform is an array of its own."""
    out, pullback = cgrad.vjp(lambda x: x * 2.0, np.ones(3))
    assert out.flags.owndata and pullback(np.ones(3))[0].flags.owndata
    _, aux = cgrad.grad(lambda x: ((x * x)[0], {"y": x * 3.0}), has_aux=True)(np.ones(3))
    assert aux["y"].flags.owndata


def test_memory_of_a_sweep():
    """Values are freed as the sweep passes: a chain needs about what its forward pass keeps."""
    x = np.ones(100_000)

    def f(x):
        for _ in range(10):
            x = np.sin(x)
        return np.sum(x)
    gradient = cgrad.grad(f)
    gradient(x)
    tracemalloc.start()
    gradient(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12.5 * x.nbytes


def test_namespace_and_protocol_agree():
    x = np.linspace(0.1, 0.9, 7)
    for name in ("sin", "exp", "log", "tanh", "sum", "mean", "cumsum", "sort", "max", "prod"):
        a = cgrad.vjp(getattr(np, name), x)
        b = cgrad.vjp(getattr(cnp, name), x)
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_array_equal(a[1](np.ones_like(a[0]))[0], b[1](np.ones_like(b[0]))[0])


def test_deep_and_long_tapes():
    def f(x):
        for _ in range(20_000):
            x = x * 1.0000001
        return x
    assert np.isclose(cgrad.grad(f)(1.0), 1.0000001**20_000)


def test_long_chains_of_views():
    """Views of views of views: no quadratic cost, no recursion, and writes still reach them."""
    def f(x):
        y = x * 1.0
        v = y
        for _ in range(20_000):
            v = v.T
        y[0, 1] = 5.0
        return np.sum(v * np.arange(4.0).reshape(2, 2))
    value, g = cgrad.value_and_grad(f)(np.ones((2, 2)))
    assert value == 10.0 and g.tolist() == [[0, 0], [2, 3]]

    def too_deep(x):
        v = x * 1.0
        for _ in range(20_000):
            v = v.T
        v[0, 0] = 1.0
        return v[0, 1]
    with pytest.raises(RecursionError):
        cgrad.grad(too_deep)(np.ones((2, 2)))
    assert cgrad.grad(lambda x: x * x)(3.0) == 6.0


def test_adjoint_in_another_layout_is_added_to():
    """The first contribution may come transposed; later ones are added where it lies."""
    x = np.linspace(0.3, 1.2, 6).reshape(2, 3)
    w = np.arange(6.0)
    g = cgrad.grad(lambda x: np.sum(np.tanh(y := x * 1.5) * w.reshape(2, 3)) + np.sum(y.T * w.reshape(3, 2)))(x)
    np.testing.assert_allclose(g, 1.5 * ((1 - np.tanh(1.5 * x)**2) * w.reshape(2, 3) + w.reshape(3, 2).T))
