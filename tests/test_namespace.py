"""cgrad.numpy: every name of NumPy, the creation functions that NumPy cannot hand over, same results."""
import pickle
import types

import numpy as np
import pytest
from support import bit_identical, check

import cgrad
import cgrad.numpy as cnp
from cgrad import Variable, grad, jacobian, vjp
from cgrad._direct import Direct
from cgrad._record import FUNCTIONS, UFUNCS

RNG = np.random.default_rng(6)
X = RNG.normal(size=(3, 4))
MODULES = [(cnp, np), (cnp.linalg, np.linalg), (cnp.fft, np.fft)]
# integers alone
WITHOUT_DERIVATIVE = {"bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
                      "bitwise_right_shift", "bitwise_xor", "gcd", "invert", "isnat", "lcm", "left_shift", "right_shift"}


def public(module):
    return [name for name in dir(module) if not name.startswith("_")]


# ---------------------------------------------------------------------------------------------- names
@pytest.mark.parametrize("ours, numpys", MODULES, ids=lambda m: m.__name__)
def test_every_name_is_there(ours, numpys):
    assert set(public(numpys)) <= set(dir(ours))
    for name in public(numpys):
        assert getattr(ours, name) is not None or getattr(numpys, name) is None
    with pytest.raises(AttributeError, match="no_such_name"):
        ours.no_such_name


@pytest.mark.parametrize("ours, numpys", MODULES, ids=lambda m: m.__name__)
def test_names_mean_what_numpys_do(ours, numpys):
    for name, value in vars(ours).items():
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        right = getattr(numpys, name)
        if isinstance(value, Direct):
            assert value.function is right, name
        elif isinstance(value, types.FunctionType):
            assert value.__name__ == name and value.__doc__, name
        elif name not in ("r_", "c_"):
            assert value is right, name


@pytest.mark.parametrize("ours, numpys", MODULES, ids=lambda m: m.__name__)
def test_every_recorded_function_is_direct(ours, numpys):
    """A function that gets a rule belongs into cgrad.numpy by name."""
    for name in public(numpys):
        value = getattr(numpys, name)
        known = UFUNCS if isinstance(value, np.ufunc) else FUNCTIONS
        if callable(value) and not isinstance(value, type) and value in known and name not in WITHOUT_DERIVATIVE:
            assert name in vars(ours), name


def test_what_is_direct_looks_like_numpys():
    assert cnp.sin.__name__ == "sin" and cnp.sin.__doc__ == np.sin.__doc__ and cnp.sin.nin == 1
    assert repr(cnp.sin) == "<cgrad.numpy.sin>"
    for function in (cnp.sin, cnp.sum, cnp.outer, cnp.linalg.outer, cnp.fft.fft, cnp.zeros):
        assert pickle.loads(pickle.dumps(function)) is function
    assert bit_identical(cnp.add.reduce(X), np.add.reduce(X)) and bit_identical(cnp.maximum.outer(X, X), np.maximum.outer(X, X))


# ---------------------------------------------------------------------------------------------- the same results
@pytest.mark.parametrize("call", [
    lambda n, x: n.sum(n.sin(x) * n.exp(x), axis=0), lambda n, x: n.where(x > 0, n.sqrt(n.abs(x)), 0),
    lambda n, x: n.maximum(x, 0.1),
    lambda n, x: n.multiply(2.0, x), lambda n, x: n.stack([x[0], x[1]], axis=1), lambda n, x: n.reshape(x, (2, 6), order="F"),
    lambda n, x: n.einsum("ij,kj->ik", x, x),
    lambda n, x: n.concatenate((x, n.ones((1, 4)))), lambda n, x: n.power(x, 2), lambda n, x: n.mean(x, keepdims=True),
    lambda n, x: n.linalg.norm(x), lambda n, x: n.dot(x, x.T), lambda n, x: n.linspace(x[0, 0], 1.0, 4),
    lambda n, x: n.add(x, x, dtype=float),
    lambda n, x: n.zeros_like(x) + x, lambda n, x: n.full_like(x, 2.0) * x, lambda n, x: n.logspace(0, 1, 4) * x])
def test_same_as_plain_numpy(call):
    w = np.ones_like(call(np, X))
    out, pullback = vjp(lambda x: call(cnp, x), X)
    right, right_pullback = vjp(lambda x: call(np, x), X)
    assert bit_identical(out, right) and bit_identical(pullback(w)[0], right_pullback(w)[0])
    assert bit_identical(call(cnp, X), call(np, X))


@pytest.mark.skipif(np.linalg.solve not in FUNCTIONS, reason="no rule for numpy.linalg.solve")
def test_linalg():
    check(lambda x: (np if isinstance(x, np.ndarray) else cnp).linalg.solve(x[:, :3] + 5 * np.eye(3), x), X)


@pytest.mark.skipif(np.fft.fft not in FUNCTIONS, reason="no rule for numpy.fft.fft")
def test_fft():
    check(lambda x: np.abs((np if isinstance(x, np.ndarray) else cnp).fft.fft(x)) ** 2, X[0])


# ---------------------------------------------------------------------------------------------- creation
CREATE = [lambda n: n.zeros(3), lambda n: n.ones((2, 3)), lambda n: n.full(3, 2.5), lambda n: n.eye(3), lambda n: n.identity(2),
          lambda n: n.arange(3.0), lambda n: n.linspace(0, 1, 3), lambda n: n.array([1.0, 2.0]),
          lambda n: n.asarray([1.0, 2.0]),
          lambda n: n.tri(3), lambda n: n.zeros(3, complex), lambda n: n.ones(2, np.float32),
          lambda n: n.zeros_like(np.ones(3)),
          lambda n: n.full_like(np.ones(3), 2.0), lambda n: n.r_[1.0, 0:3], lambda n: n.c_[np.ones(3), np.ones(3)],
          lambda n: n.geomspace(1, 2, 3), lambda n: n.asfortranarray([[1.0, 2.0]]), lambda n: n.array([[1.0]], ndmin=3)]
INTEGERS = [lambda n: n.zeros(3, int), lambda n: n.arange(3), lambda n: n.array([1, 2]), lambda n: n.ones(2, bool),
            lambda n: n.array("a"),
            lambda n: n.eye(2, dtype=int), lambda n: n.r_[1:4], lambda n: n.asarray([True]), lambda n: n.full(2, 7)]


@pytest.mark.parametrize("create", CREATE)
def test_floating_arrays_can_be_written_to_while_a_tape_records(create):
    assert bit_identical(create(cnp), create(np))

    def fun(x):
        z = create(cnp)
        assert type(z) is cgrad.Array and bit_identical(np.asarray(z), create(np))
        z[0] = x ** 2
        return z * x
    number = np.float64(1.5)
    out, pullback = vjp(fun, number)
    right = create(np)
    right[0] = number ** 2
    assert np.allclose(out, right * number)
    slope = right.copy()
    slope[0] = 3 * number ** 2
    assert np.allclose(pullback(np.ones_like(out))[0], np.sum(slope).real)


@pytest.mark.parametrize("create", INTEGERS)
def test_other_arrays_are_plain(create):
    assert bit_identical(create(cnp), create(np)) if create(np).dtype.kind != "U" else create(cnp) == create(np)

    def fun(x):
        assert type(create(cnp)) is np.ndarray
        return x
    grad(fun)(1.0)


@pytest.mark.parametrize("make", [cnp.array, cnp.asarray, cnp.asanyarray, cnp.ascontiguousarray, cnp.asfortranarray])
@pytest.mark.parametrize("call", [
    lambda x: [x[0, 0], x[0, 1]], lambda x: [x[0, 0], 1.0, 2, np.float32(3)], lambda x: (x[0, 0], [1.0][0]),
    lambda x: [x[0], x[1] * 2],
    lambda x: [[x[0, 0], 1.0], [2, x[0, 1] * x[1, 1]]], lambda x: [x[0], list(x[1])], lambda x: [[x[0, 0]], x[1, :1]],
    lambda x: [x, np.ones((3, 4))], lambda x: [[[x[0, 0]]]], lambda x: [np.array(1.0), x[0, 0]],
    lambda x: ([x[0, 0], (1.0)], (2.0, x[0, 1])),
    lambda x: [x[0] * 1j, x[1]]])
def test_arrays_of_tracked_values(make, call):
    name = make.__name__
    check(lambda x: (make if isinstance(x, cgrad.Array) else getattr(np, name))(call(x)) ** 2, X, batched=False,
          order=1 if np.iscomplexobj(np.array(call(X))) else 2)


def test_array_keywords():
    def fun(x):
        a = cnp.array([x[0, 0], 1.0], dtype=np.float32)
        assert a.dtype == np.float32
        assert type(cnp.array([x[0, 0], 2.5], dtype=int)) is np.ndarray
        assert cnp.array(x, ndmin=3).shape == (1, 3, 4) and cnp.array([x[0, 0]], ndmin=2).shape == (1, 1)
        assert cnp.asarray(x) is x and cnp.asarray(x, float) is x and cnp.array(x, copy=None) is x and cnp.array(x) is not x
        assert cnp.asfortranarray(x).value.flags.f_contiguous and cnp.ascontiguousarray(x) is x
        assert cnp.ascontiguousarray(x[0, 0]).shape == (1,) and cnp.asarray(X) is X
        assert cnp.array([[x[0, 0], 1.0], [2.0, 3.0]], order="F").value.flags.f_contiguous
        with pytest.raises(ValueError, match="copy"):
            cnp.array(x, dtype=np.float32, copy=False)
        with pytest.raises(ValueError, match="copy"):
            cnp.array([x[0, 0]], copy=False)
        with pytest.raises(ValueError, match="inhomogeneous"):
            cnp.array([x[0, 0], [x[0, 0]]])
        with pytest.raises(ValueError, match="inhomogeneous"):
            cnp.array([x[0], x[0, 0]])
        return cnp.sum(a) + cnp.sum(cnp.asfortranarray(x) * 2)
    assert np.array_equal(grad(fun)(X), np.full((3, 4), 2.0) + np.eye(1, 12).reshape(3, 4))


def test_array_copies():
    def fun(x):
        z = cnp.array(x)
        z[0] = 0.0
        return x * z
    check(lambda x: fun(x) if isinstance(x, cgrad.Array) else x * np.where(np.arange(3)[:, None] == 0, 0.0, x), X)


def test_full_of_tracked():
    check(lambda x: cnp.full((2, 3), x) if isinstance(x, cgrad.Array) else np.full((2, 3), x), np.float64(1.5))
    check(lambda x: cnp.full((2, 4), x) if isinstance(x, cgrad.Array) else np.full((2, 4), x), X[0])
    check(lambda x: cnp.full_like(X, x) if isinstance(x, cgrad.Array) else np.full_like(X, x), X[0])
    with pytest.raises(TypeError, match="int"):
        grad(lambda x: cnp.full(3, x, int).sum())(1.0)
    assert cnp.full(3, 2.0, np.float32).dtype == np.float32


def test_r_and_c():
    def r(n, x):
        return n.r_[x[0], 1.0, x[1, 0], 0:3, [5.0, 6.0]]

    def c(n, x):
        return n.c_[x[0], x[1] ** 2, x.T]
    for call in (r, c):
        check(lambda x: call(cnp if isinstance(x, cgrad.Array) else np, x), X)
    with pytest.raises(TypeError):
        grad(lambda x: cnp.r_["1,2", x, x].sum())(X)


def test_variables_in_arrays():
    v, w = Variable(2.0), Variable(np.array([1.0, 3.0]))
    with cgrad.GradientTape() as tape:
        z = cnp.sum(cnp.array([v, 1.0, v]) ** 2) + cnp.sum(cnp.asarray(w) ** 3) + cnp.sum(cnp.full(2, v))
    dv, dw = tape.gradient(z, [v, w])
    assert dv == 10.0 and np.array_equal(dw, [3.0, 27.0])


def test_constants_may_become_plain():
    """What is created without anything tracked in it goes into any function."""
    def fun(x):
        grid = cnp.linspace(0.0, 1.0, 3)
        return x * float(grid[1]) * np.trapezoid(np.asarray(grid), dx=2.0)
    assert grad(fun)(2.0) == 0.5 * np.trapezoid(np.linspace(0, 1, 3), dx=2.0)


def test_thousands_of_scalars():
    w = RNG.normal(size=10_000)
    out, pullback = vjp(lambda x: cnp.array([x[i] * 2 for i in range(10_000)]), w)
    assert np.array_equal(out, 2 * w) and np.array_equal(pullback(w)[0], 2 * w)


def test_jacobian_of_items_written_one_by_one():
    def powers(x):
        z = cnp.zeros((2, 2))
        for i in range(2):
            for j in range(2):
                z[i, j] = x[i] * x[j]
        return z
    x = np.array([2.0, 3.0])
    assert np.array_equal(jacobian(powers)(x), np.einsum("ik,j->ijk", np.eye(2), x) + np.einsum("jk,i->ijk", np.eye(2), x))
