"""Selection: take and its kin, diagonals, triangles, choice by conditions, order, and functions that take numbers apart."""
import numpy as np
import pytest
from support import bit_identical, check

import cgrad

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
rng = np.random.default_rng(7)


def draw(*shape, dtype=float, low=-2, high=2):
    x = rng.uniform(low, high, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.uniform(low, high, shape)
    return x.astype(dtype)


def apart(*shape, dtype=float):
    """Distinct numbers, far enough apart for differences not to change their order."""
    x = rng.permutation(int(np.prod(shape))).reshape(shape) * 0.37 - 1.1
    return (x * (1 + 0.5j) if np.dtype(dtype).kind == "c" else x).astype(dtype)


MASK = np.array([[True, False, True], [False, True, False]])

CALLS = {
    # by position
    "take flat": (lambda x: np.take(x, [0, 3, 3, -1]), draw(2, 3)),
    "take 1-D, n-D indices": (lambda x: np.take(x, [[0, 2], [2, -2]]), draw(3)),
    "take axis": (lambda x: np.take(x, [[0, 2], [2, 2]], axis=1), draw(2, 3, 2)),
    "take negative axis": (lambda x: np.take(x, [1, 0, 1], -2), draw(2, 3)),
    "take one": (lambda x: np.take(x, 1, axis=0), draw(3, 2)),
    "take one of 1-D": (lambda x: np.take(x, -1), draw(3)),
    "take wrap": (lambda x: np.take(x, [-4, 7, 2], mode="wrap"), draw(5)),
    "take clip": (lambda x: np.take(x, [-1, 7, 2], axis=1, mode="clip"), draw(2, 5)),
    "take of 0-d": (lambda x: np.take(x, [0, 0]), draw()),
    "take nothing": (lambda x: np.take(x, [], axis=0), draw(3, 2)),
    "take complex": (lambda x: np.take(x, [1, 1, 0]), draw(3, dtype=complex)),
    "take float32": (lambda x: np.take(x, [1, 1, 0]), draw(3, dtype=np.float32)),
    "take method": (lambda x: x.take([1, 1, 0], axis=1), draw(2, 3)),
    "take out": (lambda x: np.take(x * x, [1, 1, 0], out=np.zeros_like(x)), draw(3)),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.array([[2, 2, 0], [0, 1, 0]]), axis=1), draw(2, 3)),
    "take_along_axis broadcast": (lambda x: np.take_along_axis(x, np.array([[1, 1, 0]]), 0), draw(2, 3)),
    "take_along_axis flat": (lambda x: np.take_along_axis(x, np.array([5, 0, 5]), None), draw(2, 3)),
    "take_along_axis 3-D": (lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1), apart(2, 3, 2)),
    "compress": (lambda x: np.compress([True, False, True], x, axis=1), draw(2, 3)),
    "compress short": (lambda x: np.compress([False, True], x), draw(2, 3)),
    "compress method": (lambda x: x.compress([False, True], axis=0), draw(2, 3)),
    "extract": (lambda x: np.extract(MASK, x), draw(2, 3)),

    # diagonals, triangles
    "diagonal": (lambda x: np.diagonal(x) * 1, draw(3, 4)),
    "diagonal offset": (lambda x: np.diagonal(x, -1), draw(3, 4)),
    "diagonal outside": (lambda x: np.diagonal(x, 7), draw(3, 4)),
    "diagonal axes": (lambda x: np.diagonal(x, 1, 0, 2), draw(3, 2, 4)),
    "diagonal method": (lambda x: x.diagonal(1, 2, 1), draw(2, 3, 4)),
    "linalg.diagonal": (lambda x: np.linalg.diagonal(x, offset=-1), draw(2, 3, 4)),
    "diag of vector": (lambda x: np.diag(x, 2), draw(3, dtype=complex)),
    "diag of matrix": (lambda x: np.diag(x, -1), draw(4, 3)),
    "diag of diag": (lambda x: np.diag(np.diag(x)) * x, draw(3, 3)),
    "diagflat": (lambda x: np.diagflat(x, -1), draw(2, 2)),
    "tril": (lambda x: np.tril(x, -1), draw(2, 3, 4)),
    "tril of vector": (lambda x: np.tril(x), draw(3)),
    "triu": (lambda x: np.triu(x, 1), draw(3, 3, dtype=complex)),

    # choice
    "where": (lambda x, y: np.where(MASK, x, y), draw(2, 3), draw(2, 3)),
    "where broadcast": (lambda x, y: np.where([True, False, True], x, y), draw(2, 1), draw(1, 3)),
    "where scalar": (lambda x: np.where(x > 0, x * x, 0.5), draw(2, 3)),
    "where 0-d": (lambda x, y: np.where(x > 9, x, y * y), draw(), draw()),
    "where mixed": (lambda x, y: np.where(MASK, x, y), draw(2, 3, dtype=complex), draw(3)),
    "where float32": (lambda x: np.where(MASK, x, 1), draw(2, 3, dtype=np.float32)),
    "where empty": (lambda x: np.where(x > 0, x, 0), draw(0, 3)),
    "where integer condition": (lambda x: np.where([2, 0, -1], x, -x), draw(3)),
    "choose": (lambda x, y: np.choose([[1, 0, 1], [0, 0, 1]], [x, y]), draw(2, 3), draw(3)),
    "choose from array": (lambda x: np.choose([2, 0, 1], x), draw(3, 3)),
    "choose wrap": (lambda x, y: np.choose([3, -1, 0], [x, y], mode="wrap"), draw(3), draw(3)),
    "choose clip": (lambda x, y: np.choose([3, -1, 0], [x, 1.5, y], mode="clip"), draw(3), draw(3)),
    "select": (lambda x, y: np.select([x > 0.5, x > 0], [x * y, y * y], x), draw(2, 3), draw(3)),
    "select default": (lambda x: np.select([x > 0], [x * x]), draw(5)),
    "select scalar choice": (lambda x: np.select([x > 0.5, x < -0.5], [x * x, 2.0], x), draw(7)),
    "piecewise": (lambda x: np.piecewise(x, [x < 0, x >= 1], [np.exp, lambda t: t**3, 0.25]), draw(9)),
    "piecewise arguments": (lambda x: np.piecewise(x, x < 0, [lambda t, a: a * t, lambda t, a: t + a], 3.0), draw(7)),
    "piecewise matrix": (lambda x: np.piecewise(x, [x < 0], [np.sin, np.exp]), draw(2, 4)),
    "piecewise 0-d": (lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda t: t * t, np.sin]), draw()),
    "clip": (lambda x: np.clip(x, -0.5, 1), draw(9)),
    "clip lower": (lambda x: np.clip(x, 0, None), draw(2, 3)),
    "clip upper": (lambda x: np.clip(x, a_min=None, a_max=0.5), draw(2, 3)),
    "clip bounds": (np.clip, draw(2, 3), draw(3, low=-1.2, high=-0.4), draw(2, 1, low=0.4, high=1.2)),
    "clip crossed bounds": (np.clip, draw(5), draw(5), draw(5)),
    "clip constant by bounds": (lambda lo, hi: np.clip(np.linspace(-2, 2, 9), lo, hi), draw(9, low=-1.2, high=-0.4),
                                draw(9, low=0.4, high=1.2)),
    "clip list bounds": (lambda x: np.clip(x, [-1, -0.5, 0], [1.0, 0.5, 0.1]), draw(2, 3)),
    "clip method": (lambda x: x.clip(max=0.5), draw(5)),
    "clip float32": (lambda x: np.clip(x, -1, 0.5), draw(5, dtype=np.float32)),
    "clip where": (lambda x: np.clip(x, -0.5, 0.5, where=MASK, out=x * 2), draw(2, 3)),
    **({"clip min max": (lambda x: np.clip(x, min=-0.5, max=1), draw(5)),
        "clip unbounded": (lambda x: np.clip(x), draw(3))} if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else {}),
    "nan_to_num": (lambda x: np.nan_to_num(x * np.array([1, np.nan, np.inf]), nan=7.0, posinf=1, neginf=2), draw(3)),
    "nan_to_num complex": (lambda x: np.nan_to_num(x), draw(3, dtype=complex)),

    # order
    "sort": (np.sort, apart(7)),
    "sort axis": (lambda x: np.sort(x, axis=0) * np.arange(3), apart(4, 3)),
    "sort flat": (lambda x: np.sort(x, axis=None), apart(2, 3)),
    "sort stable": (lambda x: np.sort(x, stable=True), apart(2, 3)),
    "sort kind": (lambda x: np.sort(x, kind="heapsort"), apart(2, 3, 2)),
    "sort complex": (np.sort, apart(5, dtype=complex)),
    "sort empty": (np.sort, apart(0)),
    "sort float32": (np.sort, apart(5, dtype=np.float32)),
    "sort function": (lambda x: np.sort(np.sin(x * x)) ** 2, apart(6)),
    "sort_complex": (np.sort_complex, apart(5, dtype=complex)),
    "partition": (lambda x: np.partition(x, 3), apart(9)),
    "partition several": (lambda x: np.partition(x, (1, 4), axis=0), apart(6, 2)),
    "partition flat": (lambda x: np.partition(x, 2, axis=None), apart(2, 3)),
    "partition long": (lambda x: np.partition(x, 60)[50:70], apart(500)),
    "unique": (np.unique, apart(4)),
    "unique axis": (lambda x: np.unique(x, axis=1), apart(2, 3)),
    "unique of matrix": (lambda x: np.unique(x), apart(2, 3)),
    "unique_values": (lambda x: np.unique_values(x), apart(5)),
    "unique_counts": (lambda x: np.unique_counts(x).values, apart(5)),
    "union1d": (np.union1d, apart(4), draw(3)),

    # counting with weights
    "bincount": (lambda w: np.bincount([0, 1, 1, 3, 0], w, minlength=6), draw(5)),
    "bincount keyword": (lambda w: np.bincount(np.array([2, 2]), weights=w), draw(2)),
    "bincount float32": (lambda w: np.bincount([1, 0, 1], w), draw(3, dtype=np.float32)),
    "histogram weights": (lambda w: np.histogram([0.1, 0.5, 0.7, 0.4, 3.0, 1.0], 3, (0, 1), weights=w)[0], draw(6)),
    "histogram edges": (lambda w: np.histogram([[0.1, 0.5], [0.7, 2.0]], [0, 0.5, 2], weights=w)[0], draw(2, 2)),
    "histogram density": (lambda w: np.histogram([0.1, 0.5, 0.7], [0, 0.5, 2], density=True, weights=w)[0],
                          draw(3, low=0.5, high=2)),
    "histogram own edges": (lambda x: np.histogram(x, 4)[1], draw(6)),
    "histogram own density": (lambda x: np.histogram(x, 4, density=True)[0], apart(6)),

    # numbers taken apart
    "round": (np.round, draw(4) + 0.05),
    "round decimals": (lambda x: x.round(1) * x, np.array([0.12, 1.27, -0.33])),
    "around out": (lambda x: np.around(x, 1, out=np.zeros_like(x)) + x, np.array([0.12, 1.27, -0.33])),
    "fix": (lambda x: np.fix(x) * x, np.array([0.12, 1.27, -1.33])),
    "modf": (lambda x: np.modf(x), np.array([0.12, 1.27, -1.33])),
    "frexp": (lambda x: np.frexp(x)[0], np.array([0.12, 1.27, -5.33])),
    "ldexp": (lambda x: np.ldexp(x, [1, -1, 2]), draw(2, 3)),
    "ldexp broadcast": (lambda x: np.ldexp(x, [[1], [-3]]), draw(3)),
    "divmod": (lambda x, y: np.divmod(x, y), np.array([5.1, -5.3, 7.2]), np.array([1.2, 1.3, -2.1])),
    "divmod operator": (lambda x: divmod(x, 1.3), np.array([5.1, -5.3, 7.2])),
    "nextafter": (lambda x: np.nextafter(x, 5.0), draw(3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    fun, *args = CALLS[name]
    if args[0].dtype == np.float32:
        single_precision(fun, *args)
    elif isinstance(fun(*args), tuple):
        for k in range(len(fun(*args))):
            check(lambda *a: fun(*a)[k], *args)         # noqa: B023
    else:
        check(fun, *args)


def single_precision(fun, x):
    """Value as NumPy's, gradient as in double precision."""
    right = fun(x)
    out, pullback = cgrad.vjp(fun, x)
    assert bit_identical(out, right)
    weights = rng.uniform(0.5, 1.5, out.shape)
    gradient, = pullback(weights.astype(out.dtype))
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, cgrad.vjp(fun, x.astype(float))[1](weights)[0], rtol=1e-5)


def test_plain_results():
    """Functions of the order, and conditions, give plain arrays."""
    def f(x):
        for value in (np.argsort(x), x.argsort(), x.argpartition(1), np.argpartition(x, 1), np.searchsorted(x, 0.3),
                      x.searchsorted(x),
                      np.nonzero(x)[0], x.nonzero()[0], np.flatnonzero(x), np.argwhere(x), np.where(x > 0)[0], np.where(x)[0],
                      np.lexsort((x, x)), np.digitize(x, [0.0, 1.0]), np.isin(x, [1.0]), np.frexp(x)[1], np.histogram(x, 3)[0],
                      np.unique(x, return_index=True, return_inverse=True, return_counts=True)[1]):
            assert type(value) is np.ndarray or isinstance(value, np.integer)
        return x.sum()
    cgrad.grad(f)(np.array([0.3, 0.1, 2.0]))


UNSORTED = dict(sorted=False) if np.lib.NumpyVersion(np.__version__) >= "2.3.0" else {}


@pytest.mark.parametrize("f", [np.unique, np.unique_values, lambda x: np.unique(x, **UNSORTED),
                               lambda x: np.unique_all(x).values, lambda x: np.unique_inverse(x).values], ids=range(5))
def test_unique_values_in_numpys_order(f):
    x = np.array([3.0, -0.0, 1.0, 3.0, 0.0, 2.0, np.nan, np.nan])
    out, pullback = cgrad.vjp(f, x)
    np.testing.assert_array_equal(out, f(x))
    gradient, = pullback(np.arange(1.0, out.size + 1))
    assert gradient.sum() == out.size * (out.size + 1) / 2
    for value, weight in zip(out, np.arange(1.0, out.size + 1)):
        if not np.isnan(value):
            assert gradient[x == value].sum() == weight


def test_intersect1d():
    x, y = np.array([3.0, 1.0, 2.0, 1.0]), np.array([2.0, 5.0, 1.0])
    out, pullback = cgrad.vjp(np.intersect1d, x, y)
    np.testing.assert_array_equal(out, [1, 2])
    np.testing.assert_array_equal(pullback(np.array([10.0, 20.0]))[0], [0, 10, 20, 0])


def test_setdiff1d():
    out, pullback = cgrad.vjp(lambda x: np.setdiff1d(x, [1.0, 7.0]), np.array([3.0, 1.0, 2.0]))
    np.testing.assert_array_equal(out, [2, 3])
    np.testing.assert_array_equal(pullback(np.array([10.0, 20.0]))[0], [20, 0, 10])


@pytest.mark.parametrize("f", [np.sort, lambda x: np.sort(x, kind="stable"), lambda x: np.partition(x, 2)], ids=range(3))
def test_ties_and_nan_in_order(f):
    """Each equal value goes to one of their places."""
    x = np.array([2.0, 1.0, np.nan, 2.0, 1.0, 2.0, np.nan])
    out, pullback = cgrad.vjp(f, x)
    np.testing.assert_array_equal(out, f(x))
    weights = np.arange(1.0, 8)
    gradient, = pullback(weights)
    assert sorted(gradient) == list(weights)
    for value in (1.0, 2.0):
        assert sorted(gradient[x == value]) == list(weights[out == value])


# ---------------------------------------------------------------------------------------------- what is not chosen
BAD = np.array([0.0, -1.0, 4.0, np.inf])


@pytest.mark.parametrize("f", [
    lambda x: np.where(x > 0, np.log(x), 0),
    lambda x: np.where(x > 0, np.sqrt(np.where(x > 0, x, 0)), 0),
    lambda x: np.select([x > 0], [np.sqrt(x)]),
    lambda x: np.choose((x > 0).astype(int), [np.zeros(4), np.log(x)]),
    lambda x: np.piecewise(x, [x > 0], [np.log, 0]),
    lambda x: np.log(x, where=x > 0, out=np.zeros_like(x)),
], ids=range(6))
def test_not_chosen_gets_zero(f):
    gradient = cgrad.grad(lambda x: f(x)[:3].sum())(BAD)
    np.testing.assert_array_equal(gradient[[0, 1, 3]], 0)
    assert np.isfinite(gradient[2]) and gradient[2]
    second = cgrad.grad(lambda x: cgrad.grad(lambda x: f(x)[:3].sum())(x).sum())(BAD)
    np.testing.assert_array_equal(second[[0, 1, 3]], 0)
    assert np.isfinite(second[2]) and second[2]


def test_infinite_adjoint_stops_at_a_condition():
    for x in (np.ones(2), np.ones(2, complex)):
        _, pullback = cgrad.vjp(lambda x: np.where([True, False], x, 0), x)
        np.testing.assert_array_equal(pullback(np.array([1, np.inf], x.dtype))[0], [1, 0])
        np.testing.assert_array_equal(pullback(np.array([np.nan, np.nan], x.dtype))[0][1], 0)


def test_clip_closed_interval():
    x = np.array([-1.0, 1.0, 0.0, -1.5, 1.5, np.nan, np.inf, -np.inf])
    low, high = np.full(8, -1.0), np.full(8, 1.0)
    gx, gl, gh = cgrad.grad(lambda *a: np.clip(*a).sum(), (0, 1, 2))(x, low, high)
    np.testing.assert_array_equal(gx, [1, 1, 1, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(gl, [0, 0, 0, 1, 0, 0, 0, 1])
    np.testing.assert_array_equal(gh, [0, 0, 0, 0, 1, 0, 1, 0])


def test_nan_to_num_parts():
    """Of a complex number only the part that is not finite is replaced."""
    x = np.array([1 + 1j, complex(np.nan, 1), complex(1, np.inf)])
    _, pullback = cgrad.vjp(np.nan_to_num, x)
    np.testing.assert_array_equal(pullback(np.full(3, 2 - 3j))[0], [2 - 3j, -3j, 2])


def test_nan_to_num_in_place():
    def f(x):
        y = x * np.array([1, np.nan])
        np.nan_to_num(y, copy=False)
        return y.sum()
    np.testing.assert_array_equal(cgrad.grad(f)(np.ones(2)), [1, 0])


# ---------------------------------------------------------------------------------------------- views
def test_diagonal_follows_its_array():
    def f(x):
        y = x * x
        d = np.diagonal(y)
        y[0, 0] = x[0, 1]
        return d * np.array([1.0, 10.0])
    check(f, draw(2, 2))


@pytest.mark.parametrize("view", [np.diagonal, np.diag, np.linalg.diagonal, lambda x: np.diagonal(x)[:1]], ids=range(4))
def test_diagonal_is_read_only(view):
    def f(x):
        y = x * x
        with pytest.raises(ValueError, match="read-only"):
            view(y)[0] = 1
        return y.sum()
    np.testing.assert_array_equal(cgrad.grad(f)(np.eye(2)), 2 * np.eye(2))


# ---------------------------------------------------------------------------------------------- flat
def test_flat():
    check(lambda x: x.flat[3] * x.flat[[0, 3, 3]] + x.flat[1::2], draw(2, 3))
    check(lambda x: x.flat[MASK.ravel()], draw(2, 3))
    check(lambda x: sum(v * v for v in x.flat), draw(2, 3), batched=False)

    def assigned(x):
        y = x * x
        y.flat[4] = x[0, 0]
        y.flat[:2] = x[1, 1]
        y.flat[[3, 5]] = x[1, :2]
        return y
    check(assigned, draw(2, 3))

    def whole(x, v):
        y = np.zeros_like(x)
        y.flat = v                      # begins again at its end
        return y * x
    check(whole, draw(2, 3), draw(2))
    check(whole, draw(), draw(1))
    check(lambda x: x.flat[0] * x.flat[[0, 0]], np.array(1.5))


# ---------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize("call, named", [
    (lambda x: np.take(x, x), "take"), (lambda x: np.take_along_axis(np.ones(3), x, 0), "take_along_axis"),
    (lambda x: np.choose(x, [x, x]), "choose"), (lambda x: x.choose([x, x]), "choose"),
    (lambda x: x.item(), "item"), (lambda x: x.tolist(), "tolist"), (lambda x: x.tobytes(), "tobytes"),
    (lambda x: x.dumps(), "dumps"),
    (lambda x: x.setflags(write=False), "setflags"), (lambda x: np.nan_to_num(x, nan=x[0]), "nan_to_num"),
])
def test_refused(call, named):
    def f(x):
        with pytest.raises(TypeError, match=named) as caught:
            call(x)
        assert ".value" in str(caught.value) or "copy" in str(caught.value)
        return x.sum()
    cgrad.grad(f)(np.ones(1))


def test_methods_work_when_the_tape_is_over():
    kept = []
    cgrad.grad(lambda x: kept.append(x) or x.sum())(np.array([1.5]))
    x, = kept
    assert x.item() == 1.5 and x.tolist() == [1.5] and x.tobytes() == np.array([1.5]).tobytes()


@pytest.mark.parametrize("call", [
    lambda x: np.take(x, [9]), lambda x: np.take(x, [0], axis=3), lambda x: np.diagonal(x), lambda x: np.sort(x, axis=2),
    lambda x: np.take_along_axis(x, np.array([[1]]), 0), lambda x: np.partition(x, 7), lambda x: np.select([], []),
    lambda x: np.choose([4], [x, x]), lambda x: np.bincount([0], x), lambda x: np.clip(x, np.ones(2), 3),
    lambda x: np.piecewise(x, [x > 0], [1, 2, 3]), lambda x: np.where(x > 0, x), lambda x: np.compress([True] * 9, x)],
    ids=range(13))
def test_errors_are_numpys(call):
    x = np.ones(3)
    with pytest.raises(Exception) as right:
        call(x)
    with pytest.raises(type(right.value)):
        cgrad.vjp(call, x)


def test_large_take_costs_what_it_reads():
    """n reads of one element each: the adjoint of the parent is one buffer, not n."""
    n = 20000

    def f(x):
        total = 0.0
        for k in range(0, n, 20):
            total = total + np.take(x, [k, k + 1]).sum()
        return total
    x = np.ones(n)
    assert cgrad.grad(f)(x).sum() == n / 10
