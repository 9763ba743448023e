"""Memory safety: situations in which a pointer or a buffer could be used after it has gone. Made to be run under sanitizers too."""
import numpy as np
import pytest

import cgrad


@pytest.mark.parametrize("length", [*range(96, 136), *range(240, 264)])
def test_tape_grows_inside_a_recorded_sweep(length):
    """A recorded sweep appends to the tape that it walks over, which moves its nodes; with broadcasting to undo, at each length."""
    def inner(y):
        for _ in range(4):
            y = y * np.ones((2, 1))                 # broadcast, summed away in the sweep
            y = y[0]
        return y[0] * y[1] * y[0]

    def f(x):
        y = x
        for _ in range(length):
            y = y * 1.0
        return cgrad.grad(inner)(y)[1]
    np.testing.assert_allclose(cgrad.grad(f)(np.array([3.0, 5.0])), [6.0, 0.0])


def test_blocks_are_not_shared_between_results():
    """Large arrays use blocks again; what has left a transform is never one of them."""
    x = np.linspace(0.0, 1.0, 50_000)
    gradient = cgrad.value_and_grad(lambda x: np.sum(np.exp(np.sin(x)) * np.cos(x) * x))
    _, first = gradient(x)
    copy = first.copy()
    out, pullback = cgrad.vjp(lambda x: np.sin(x) * np.cos(x), x)
    kept = out.copy(), pullback(x)[0].copy()
    again = pullback(x)[0]
    for _ in range(5):
        gradient(x + 1.0)
    np.testing.assert_array_equal(first, copy)
    np.testing.assert_array_equal(out, kept[0])
    np.testing.assert_array_equal(again, kept[1])


def test_values_outlive_their_tape():
    kept = []

    def f(x):
        y = np.sin(x) * 2.0
        kept.append(y)
        kept.append(y.value)
        return np.sum(y)
    for n in (3, 300, 50_000):
        x = np.linspace(0.0, 1.0, n)
        cgrad.grad(f)(x)
        for _ in range(3):
            cgrad.grad(lambda x: np.sum(np.exp(x) * np.cos(x)))(x)
        y, value = kept[-2:]
        np.testing.assert_array_equal(np.asarray(y), np.sin(x) * 2.0)
        np.testing.assert_array_equal(value, np.sin(x) * 2.0)
