"""grad, value_and_grad, vjp, jacobian, elementwise_grad, stop_gradient, gradients; nesting and containers."""
import collections
import dataclasses
import threading

import numpy as np
import pytest

import cgrad

X = np.linspace(0.1, 1.2, 5)


def test_value_and_grad():
    value, gradient = cgrad.value_and_grad(lambda x: np.sin(x[0]) * x[1])(np.array([0.5, 2.0]))
    assert value == np.sin(0.5) * 2
    np.testing.assert_allclose(gradient, [2 * np.cos(0.5), np.sin(0.5)], rtol=1e-15)


@pytest.mark.parametrize("argnums, right", [(0, 3.0), (1, 2.0), (-1, 2.0), ((0, 1), (3.0, 2.0)), ((1, 0), (2.0, 3.0)), ([0], (3.0,))])
def test_argnums(argnums, right):
    assert cgrad.grad(lambda x, y: x * y, argnums)(2.0, 3.0) == right


def test_keyword_arguments_are_passed_on():
    assert cgrad.grad(lambda x, *, power: x**power)(2.0, power=3) == 12.0


def test_has_aux():
    g, aux = cgrad.grad(lambda x: (x * x, {"twice": 2 * x, "n": 7}), has_aux=True)(3.0)
    assert g == 6.0 and aux == {"twice": 6.0, "n": 7} and not isinstance(aux["twice"], cgrad.Array)
    (value, aux), g = cgrad.value_and_grad(lambda x: (x * x, x), has_aux=True)(3.0)
    assert (value, aux, g) == (9.0, 3.0, 6.0)
    out, pullback, aux = cgrad.vjp(lambda x: (x * X, 2 * x), 3.0, has_aux=True)
    np.testing.assert_array_equal(out, 3 * X)
    assert aux == 6.0 and np.isclose(pullback(np.ones(5))[0], X.sum())


@dataclasses.dataclass
class Layer:
    w: np.ndarray
    b: float


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize("arg, get", [
    ([1.0, 2.0], lambda p: p[0] * p[1]),
    ((1.0, [2.0, np.array([3.0, 4.0])]), lambda p: p[0] * p[1][0] * p[1][1][1]),
    ({"b": 1.0, "a": {"c": X}}, lambda p: p["b"] * p["a"]["c"][2]),
    (Point(1.0, 2.0), lambda p: p.x * p.y),
    (Layer(X, 2.0), lambda p: p.w[1] * p.b),
    (collections.OrderedDict(z=1.0, a=2.0), lambda p: p["z"] * p["a"]),
    ([], lambda p: 1.0),
])
def test_containers(arg, get):
    g = cgrad.grad(get)(arg)
    assert type(g) is type(arg)
    from cgrad import tree
    leaves, rebuild = tree.flatten(arg)
    gs, _ = tree.flatten(g)
    for k, (leaf, gk) in enumerate(zip(leaves, gs)):
        assert np.shape(leaf) == np.shape(gk)
        moved = np.random.default_rng(k).standard_normal(np.shape(leaf))

        def value(h, k=k, moved=moved):
            return get(rebuild([v + h * moved if i == k else v for i, v in enumerate(leaves)]))
        np.testing.assert_allclose(np.sum(gk * moved), (value(1e-6) - value(-1e-6)) / 2e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128])
def test_gradient_has_the_dtype_and_shape_of_the_argument(dtype):
    for shape in [(), (1,), (3,), (2, 3), (0,)]:
        x = np.ones(shape, dtype)
        _, pullback = cgrad.vjp(lambda x: x * x * 2.0, x)
        g, = pullback(np.ones(shape, dtype))
        assert g.dtype == dtype and g.shape == shape
        assert isinstance(g, np.ndarray)
        np.testing.assert_array_equal(g, 4 * np.ones(shape))


def test_big_endian_argument():
    x = X.astype(">f8")
    np.testing.assert_allclose(cgrad.vjp(np.sin, x)[1](np.ones(5))[0], np.cos(X))


def test_function_that_ignores_its_argument():
    assert cgrad.grad(lambda x: 3.0)(1.0) == 0.0
    np.testing.assert_array_equal(cgrad.grad(lambda x, y: y * 2.0)(X, 1.0), np.zeros(5))
    value, (gx, gy) = cgrad.value_and_grad(lambda x, y: 2 * x * x, (0, 1))(1.0, 2.0)
    assert (value, gx, gy) == (2.0, 4.0, 0.0)


def test_results_belong_to_the_caller():
    """Never views of each other, of a seed, of an argument or of a kept value."""
    a, b = cgrad.vjp(lambda x, y: x + y, X, X)[1](seed := np.ones(5))
    a[:] = 7
    assert np.all(b == 1) and np.all(seed == 1)
    out, pullback = cgrad.vjp(lambda x: x, X)
    out[:] = 9
    assert X[0] == 0.1
    g, = pullback(seed)
    g[:] = 5
    assert np.all(seed == 1)


def test_pullback_many_times():
    _, pullback = cgrad.vjp(lambda x: x**2, X)
    for w in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(pullback(np.full(5, w))[0], 2 * w * X)


def test_pullback_of_containers():
    out, pullback = cgrad.vjp(lambda x: {"s": np.sin(x), "c": [x[0], 3.0]}, X)
    assert set(out) == {"s", "c"} and out["c"][1] == 3.0
    g, = pullback({"s": np.ones(5), "c": [2.0, 1.0]})
    right = np.cos(X)
    right[0] += 2
    np.testing.assert_allclose(g, right)


# ------------------------------------------------------------------------------------------- higher orders
def test_nested_grad():
    f = lambda x: x**4                                              # noqa: E731
    for order, right in enumerate([4 * 8.0, 12 * 4.0, 24 * 2.0, 24.0, 0.0], 1):
        g = f
        for _ in range(order):
            g = cgrad.grad(g)
        assert np.isclose(g(2.0), right)


def test_no_perturbation_confusion():
    assert cgrad.grad(lambda x: x * cgrad.grad(lambda y: x + y)(2.0))(1.0) == 1.0
    assert cgrad.grad(lambda x: cgrad.grad(lambda y: x * y * y)(3.0))(1.0) == 6.0
    assert cgrad.grad(lambda x: cgrad.grad(lambda y: y * cgrad.grad(lambda z: x * y * z * z)(y))(x))(2.0) == 72.0      # d/dx 6 x**3


def test_inner_function_writes_to_the_same_leaf():
    def f(x):
        def inner(y):
            y[0] = y[0] * 2                       # a write inside must not reach x
            return y[0] * y[1]
        g = cgrad.grad(inner)(x)
        return g[0] * x[0]
    np.testing.assert_allclose(cgrad.grad(f)(np.array([3.0, 5.0])), [10.0, 6.0])


def test_vjp_of_vjp():
    def f(x):
        _, pullback = cgrad.vjp(np.sin, x)
        return pullback(x)[0]                     # x cos x
    g, = cgrad.vjp(f, X)[1](np.ones(5))
    np.testing.assert_allclose(g, np.cos(X) - X * np.sin(X))


def test_pullback_differentiated_by_its_adjoint():
    """Linear in the adjoint, after the tape of the pullback is over."""
    _, pullback = cgrad.vjp(np.sin, X)
    g = cgrad.grad(lambda ct: (pullback(ct)[0] * X)[1])(np.ones(5))
    np.testing.assert_allclose(g, [0, X[1] * np.cos(X[1]), 0, 0, 0])


def test_hessian_by_jacobian_of_grad():
    f = lambda x: x[0] ** 2 * x[1] + np.exp(x[1] * x[2])            # noqa: E731
    x = np.array([1.0, 0.5, -0.3])
    h = cgrad.jacobian(cgrad.grad(f))(x)
    e = np.exp(x[1] * x[2])
    right = [[2 * x[1], 2 * x[0], 0], [2 * x[0], x[2]**2 * e, e * (1 + x[1] * x[2])], [0, e * (1 + x[1] * x[2]), x[1]**2 * e]]
    np.testing.assert_allclose(h, right, rtol=1e-13)


# ------------------------------------------------------------------------------------------- jacobian
def test_jacobian_shapes():
    x = np.arange(6.0).reshape(2, 3)
    f = lambda x: x[:, :2] * 2.0                                    # noqa: E731
    j = cgrad.jacobian(f)(x)
    assert j.shape == (2, 2, 2, 3)
    assert j[1, 0, 1, 0] == 2 and j.sum() == 8
    assert cgrad.jacobian(f, as_matrix=True)(x).shape == (4, 6)
    assert cgrad.jacobian(lambda x: x[:0])(x).shape == (0, 3, 2, 3)
    assert cgrad.jacobian(lambda x: 1.0)(x).shape == (2, 3)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 100, None])
def test_jacobian_by_chunks(chunk):
    f = lambda x: np.sin(x) * x[::-1]                               # noqa: E731
    rows = [cgrad.grad(lambda x, i=i: f(x)[i])(X) for i in range(5)]
    np.testing.assert_allclose(cgrad.jacobian(f, chunk=chunk)(X), rows, rtol=1e-15)


def test_jacobian_of_containers():
    j = cgrad.jacobian(lambda x, y: {"a": x * y, "b": [x]}, (0, 1))(X, 2.0)
    np.testing.assert_array_equal(j["a"][0], 2 * np.eye(5))
    np.testing.assert_array_equal(j["a"][1], X)
    np.testing.assert_array_equal(j["b"][0][0], np.eye(5))
    np.testing.assert_array_equal(j["b"][0][1], np.zeros(5))


def test_jacobian_of_unused_argument():
    a, b = cgrad.jacobian(lambda x, y: x * 1.0, (0, 1))(X, X[:2])
    assert a.shape == (5, 5) and b.shape == (5, 2) and not b.any()


def test_jacobian_nested_in_grad():
    def f(x):
        j = cgrad.jacobian(lambda y: y * y * x[0])(x)
        return j[1, 1]
    np.testing.assert_allclose(cgrad.grad(f)(X), [2 * X[1], 2 * X[0], 0, 0, 0])


# ------------------------------------------------------------------------------------------- the small ones
def test_elementwise_grad():
    np.testing.assert_allclose(cgrad.elementwise_grad(np.sin)(X), np.cos(X))
    np.testing.assert_allclose(cgrad.elementwise_grad(cgrad.elementwise_grad(np.sin))(X), -np.sin(X))
    # diagonal, though it reads parts
    def halves(x):
        y = x * 1.0
        y[:2] = np.sin(x[:2])
        return y
    np.testing.assert_allclose(cgrad.elementwise_grad(halves)(X), np.r_[np.cos(X[:2]), 1, 1, 1])
    # without the check: the column sums
    np.testing.assert_allclose(cgrad.elementwise_grad(lambda x: x[::-1] * 2.0, check=False)(X), 2 * np.ones(5))
    with pytest.raises(ValueError, match="diagonal"):
        cgrad.elementwise_grad(lambda x: x[::-1] * 2.0)(X)


def test_stop_gradient():
    np.testing.assert_allclose(cgrad.grad(lambda x: (x * cgrad.stop_gradient(x))[0])(X), [X[0], 0, 0, 0, 0])
    assert cgrad.grad(lambda p: p["a"] * cgrad.stop_gradient(p)["a"])({"a": 3.0}) == {"a": 3.0}
    assert cgrad.stop_gradient(2.0) == 2.0


def test_gradients():
    def f(x):
        y = np.sin(x)
        g = cgrad.gradients(y, x)
        g2 = cgrad.gradients(g, x)
        return (g2 * g2)[1]
    assert np.isclose(cgrad.value_and_grad(f)(X)[0], np.sin(X[1])**2)
    np.testing.assert_allclose(cgrad.grad(f)(X)[1], 2 * np.sin(X[1]) * np.cos(X[1]))

    def pair(x):
        y = x * 2.0
        a, b = cgrad.gradients([y, y * y], [x, y], grad_ys=[np.ones(5), X], unconnected_gradients="zero")
        z = cgrad.gradients(y * 1.0, [x * 1.0])
        assert z == [None]
        return a[0] + b[0]
    value = cgrad.value_and_grad(pair)(X)[0]
    assert np.isclose(value, 2 + 8 * X[0] * X[0] + (1 + 4 * X[0] * X[0]))


def test_threads():
    gradient = cgrad.grad(lambda x: cgrad.grad(lambda y: (np.sin(y) * y)[1])(x)[1])
    right = gradient(X)
    wrong = []

    def work():
        for _ in range(100):
            if not np.array_equal(gradient(X), right):
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_decorated_function_keeps_its_name():
    def loss(x):
        """The loss."""
        return x * x
    assert cgrad.grad(loss).__name__ == "loss" and cgrad.value_and_grad(loss).__doc__ == "The loss."
