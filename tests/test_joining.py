"""Joining, splitting, repeating, padding, inserting: NumPy's values, derivatives of both orders, cost linear in the items."""
import time

import numpy as np
import pytest
from support import bit_identical, check

import cgrad
from cgrad import grad, jacobian, vjp

RNG = np.random.default_rng(4)
X = RNG.normal(size=(3, 4))
Y = RNG.normal(size=(2, 4))
CUBE = RNG.normal(size=(2, 3, 4))
COMPLEX = X + 1j * RNG.normal(size=(3, 4))
VECTOR = RNG.normal(size=5)


# ---------------------------------------------------------------------------------------------- joining
@pytest.mark.parametrize("call", [
    lambda x, y: np.concatenate([x, y]), lambda x, y: np.concatenate((y, x, x * x)), lambda x, y: np.concat([x, y], axis=-2),
    lambda x, y: np.concatenate([x, y], axis=None), lambda x, y: np.concatenate([x, np.ones((1, 4)), y]),
    lambda x, y: np.concatenate([x.T, y.T], axis=1), lambda x, y: np.concatenate([x[0], y[0]]),
    lambda x, y: np.concatenate([x[0, 0, None], y[1]]), lambda x, y: np.concatenate([x[:0], y]),
    lambda x, y: np.stack([x, x * 2]) * y[0], lambda x, y: np.stack([x[0], y[0]], axis=1),
    lambda x, y: np.stack([x[:2], y], -1),
    lambda x, y: np.stack([x[0, 0], y[0, 0], 1.0]), lambda x, y: np.stack([x[0, 0], np.array(3), y[0, 0]]),
    lambda x, y: np.stack([x[0, 0], y[0, 0], 3]), lambda x, y: np.stack(x * y[0]), lambda x, y: np.concatenate(x * y[0]),
    lambda x, y: np.vstack([x, y]), lambda x, y: np.vstack([x, y[0]]), lambda x, y: np.vstack([x[0], y[1]]),
    lambda x, y: np.vstack([x[0, 0], y[0, 0]]), lambda x, y: np.hstack([x[:2], y]), lambda x, y: np.hstack([x[0], y[0], 1.0]),
    lambda x, y: np.hstack([x[0, 0], y[0, 0]]), lambda x, y: np.hstack([x[0, 0], y[0]]), lambda x, y: np.dstack([x[:2], y]),
    lambda x, y: np.dstack([x[0], y[0]]), lambda x, y: np.dstack([x[0, 0], y[0, 0]]),
    lambda x, y: np.column_stack([x[0], y[0], y.T]), lambda x, y: np.column_stack([x[0, 0], y[0, 0]]),
    lambda x, y: np.append(x, y), lambda x, y: np.append(x, y, axis=0), lambda x, y: np.append(x, 1.0),
    lambda x, y: np.append(1.0, y),
    lambda x, y: np.block([[x], [y]]), lambda x, y: np.block([x[:2], y, y]), lambda x, y: np.block([x[0], 1.0, y[0]]),
    lambda x, y: np.block([[x[:2], y], [np.zeros((1, 7)), x[0, 0]]]), lambda x, y: np.block(x),
    lambda x, y: np.block([[[x], [y]], [[y], [x]]])])
def test_joins(call):
    check(call, X, Y)
    check(call, COMPLEX, Y + 1j, order=1)


@pytest.mark.parametrize("join", [np.concatenate, np.stack, np.vstack, np.hstack])
def test_join_keywords(join):
    single = X.astype(np.float32)
    out, pullback = vjp(lambda x, y: join([x, y], dtype=np.float64), single, X)
    assert bit_identical(out, join([single, X], dtype=np.float64))
    assert [g.dtype for g in pullback(np.ones_like(out))] == [np.float32, np.float64]
    assert isinstance(vjp(lambda x: join([x, x], dtype=int, casting="unsafe") + 0 * x.sum(), X)[0], np.ndarray)


@pytest.mark.parametrize("join", [np.concatenate, np.stack])
def test_join_into_out(join):
    def fun(x):
        out = np.zeros_like(x, shape=join([X, X]).shape)
        assert join([x, x * x], out=out) is out
        return out * 2
    check(fun, X)
    with pytest.raises(TypeError, match="out= is a plain ndarray"):
        grad(lambda x: join([x, x], out=np.zeros(join([X, X]).shape)).sum())(X)


def test_mixed_dtypes():
    single, integers = X.astype(np.float32), np.arange(4)
    for call in (lambda x, z: np.vstack([x, integers, z]), lambda x, z: np.hstack([x[0], 2, z]),
                 lambda x, z: np.stack([x[0], integers, z])):
        out, pullback = vjp(call, single, X[0] + 1j)
        assert bit_identical(out, call(single, X[0] + 1j))
        gx, gz = pullback(np.ones_like(out))
        assert gx.dtype == np.float32 and gz.dtype == np.complex128


def test_join_errors_are_numpys():
    for call in (lambda x: np.concatenate([x, x[0]]), lambda x: np.concatenate([x[0, 0], x[0, 0]]),
                 lambda x: np.stack([x, x[0]]),
                 lambda x: np.concatenate([x, x], axis=2), lambda x: np.stack([x, x], axis=3),
                 lambda x: np.vstack([x, x[:, 0]]),
                 lambda x: np.hstack([x, x[0]]), lambda x: np.block([[x], x]), lambda x: np.block([[x, x[0]]])):
        with pytest.raises(Exception) as right:
            call(X)
        with pytest.raises(type(right.value)):
            grad(lambda x: np.sum(call(x)))(X)


def test_joined_many_times_in_one_call():
    """An input that comes in twice gets both adjoints; a constant gets none."""
    g = grad(lambda x: np.sum(np.concatenate([x, X, x, x]) * np.arange(12.0)[:, None]))(X)
    assert np.array_equal(g, (np.arange(3) * 3 + 15)[:, None] * np.ones(4))
    w = RNG.normal(size=(3, 3, 4))
    assert np.allclose(grad(lambda x: np.sum(np.stack([x, X, x]) * w))(X), w[0] + w[2])


@pytest.mark.parametrize("join", [np.stack, np.hstack, np.vstack, np.column_stack,
                                  lambda xs: np.concatenate([x[None] for x in xs])])
def test_thousands_of_scalars(join):
    """Cost is linear in the number of items: a rule that took all inputs for each input would need a minute here."""
    n = 10_000
    w = RNG.normal(size=n)

    def fun(x):
        return join([x[i] for i in range(n)]).ravel()
    start = time.perf_counter()
    out, pullback = vjp(fun, w)
    assert np.array_equal(out, w) and np.array_equal(pullback(w)[0], w)
    assert time.perf_counter() - start < 3
    assert np.array_equal(grad(lambda x: np.sum(grad(lambda x: np.sum(join([x[i] for i in range(50)]) ** 2))(x) ** 2))(w[:50]),
                          8 * w[:50])


# ---------------------------------------------------------------------------------------------- splitting
@pytest.mark.parametrize("call", [
    lambda x: np.split(x, 2), lambda x: np.split(x, [1], axis=-1), lambda x: np.split(x, [1, 3, 9], axis=2),
    lambda x: np.split(x, [3, 1], axis=2), lambda x: np.split(x, np.array([1, -1]), axis=2),
    lambda x: np.array_split(x, 3, axis=2),
    lambda x: np.array_split(x, 5, axis=1), lambda x: np.vsplit(x, 2), lambda x: np.hsplit(x, 3), lambda x: np.dsplit(x, [1]),
    lambda x: np.hsplit(x[0, 0], 2), lambda x: np.unstack(x) if hasattr(np, "unstack") else list(x),
    lambda x: np.unstack(x, axis=-1) if hasattr(np, "unstack") else list(np.moveaxis(x, -1, 0))])
def test_splits(call):
    parts = cgrad.vjp(call, CUBE)[0]
    right = call(CUBE)
    assert type(parts) is type(right) and len(parts) == len(right)
    for k in range(len(right)):
        assert bit_identical(parts[k], right[k])
        check(lambda x: call(x)[k] * call(x)[0][..., :1].sum(), CUBE)


def test_split_errors_are_numpys():
    for call in (lambda x: np.split(x, 3), lambda x: np.array_split(x, 0), lambda x: np.vsplit(x[0, 0], 2),
                 lambda x: np.dsplit(x[0], 2), lambda x: np.hsplit(x[0, 0, 0], 1), lambda x: np.split(x, 2, axis=5)):
        with pytest.raises(Exception) as right:
            call(CUBE)
        with pytest.raises(type(right.value)) as got:
            grad(lambda x: call(x)[0].sum())(CUBE)
        assert str(got.value) == str(right.value)


# ---------------------------------------------------------------------------------------------- repeating
@pytest.mark.parametrize("call", [
    lambda x: np.tile(x, 2), lambda x: np.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 2)), lambda x: np.tile(x, (1, 1)),
    lambda x: np.tile(x, 0), lambda x: np.tile(x, np.array([2, 3])), lambda x: np.tile(x[0, 0], 3), lambda x: np.tile(x, ()),
    lambda x: np.repeat(x, 2), lambda x: np.repeat(x, 3, axis=0), lambda x: np.repeat(x, 2, axis=-1),
    lambda x: x.repeat(2, axis=1),
    lambda x: np.repeat(x, 0, axis=1), lambda x: np.repeat(x, [1, 0, 3], axis=0), lambda x: np.repeat(x, [0, 2, 1, 0], axis=1),
    lambda x: np.repeat(x, [2], axis=0), lambda x: np.repeat(x, [0, 0, 0], axis=0), lambda x: np.repeat(x, np.arange(12)),
    lambda x: np.repeat(x[0, 0], 3), lambda x: np.resize(x, (2, 3)), lambda x: np.resize(x, (5, 6)), lambda x: np.resize(x, 12),
    lambda x: np.resize(x, (3, 4)), lambda x: np.resize(x, ()), lambda x: np.resize(x[0, 0], (2, 2))])
def test_repeats(call):
    check(call, X)
    check(call, COMPLEX, order=1)


def test_resize_is_a_copy():
    def fun(x):
        z = x * 2
        np.resize(z, 12)[0] = 5.0
        return z
    check(fun, X)
    assert np.array_equal(cgrad.vjp(lambda x: np.resize(x, (0, 2)), X)[0], np.zeros((0, 2)))
    with pytest.raises(ValueError, match="non-negative"):
        grad(lambda x: np.resize(x, (-1, 2)).sum())(X)


def test_counts_of_repeats_may_change_afterwards():
    counts = np.array([1, 2, 1])

    def fun(x):
        z = np.repeat(x, counts, axis=0)
        counts[:] = 0
        return z
    out, pullback = vjp(fun, X)
    assert np.array_equal(pullback(np.ones_like(out))[0], np.array([1, 2, 1])[:, None] * np.ones(4))


# ---------------------------------------------------------------------------------------------- padding
WIDTHS = [1, (1, 2), ((2, 1), (0, 3)), ((7, 5), (1, 9))]


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("mode, keywords", [
    ("constant", {}), ("constant", {"constant_values": 2.5}), ("constant", {"constant_values": ((1, 2), (3, 4))}),
    ("edge", {}), ("wrap", {}), ("reflect", {}), ("symmetric", {}), ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {"reflect_type": "odd"}), ("mean", {}), ("mean", {"stat_length": 2}),
    ("mean", {"stat_length": ((1, 2), (3, 9))}),
    ("linear_ramp", {}), ("linear_ramp", {"end_values": (1.0, 2.0)}), ("maximum", {}), ("minimum", {"stat_length": 2}),
    ("median", {}), ("median", {"stat_length": ((1, 2), (3, 9))})], ids=str)
def test_pad(width, mode, keywords):
    selecting = mode in ("maximum", "minimum", "median")
    check(lambda x: np.pad(x, width, mode, **keywords), X, order=1 if selecting else 2, batched=width == 1)
    if mode not in ("maximum", "minimum", "median"):
        check(lambda x: np.pad(x, width, mode, **keywords), COMPLEX, order=1, batched=False)


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap", "reflect", "symmetric", "mean", "linear_ramp", "maximum"])
def test_pad_shapes(mode):
    for x, width in ((VECTOR, 2), (VECTOR, (0, 3)), (VECTOR[:1], 2), (CUBE, 1), (CUBE, ((0, 0), (1, 0), (0, 0))), (CUBE, 0)):
        check(lambda x: np.pad(x, width, mode), x, order=1)


def test_pad_by_tracked_constants():
    check(lambda x, c: np.pad(x, 2, constant_values=c), VECTOR, 1.5)
    check(lambda x, c: np.pad(x, ((1, 2), (2, 0)), constant_values=c), X, np.array([1.0, 2.0]))
    check(lambda x, c: np.pad(x, ((1, 2), (2, 0)), constant_values=c), X, np.array([[1.0, 2.0], [3.0, 4.0]]))
    check(lambda x, c: np.pad(x, 0, constant_values=c), VECTOR, 1.5)


def test_pad_by_name_of_axis():
    if np.lib.NumpyVersion(np.__version__) < "2.4.0":
        pytest.skip("NumPy takes a dict since 2.4")
    check(lambda x: np.pad(x, {0: (1, 2)}, "edge"), X)
    check(lambda x: np.pad(x, {-1: 2}), X)


def test_pad_empty_mode():
    w = RNG.normal(size=(3, 4))
    assert np.array_equal(grad(lambda x: np.sum(np.pad(x, 1, "empty")[1:-1, 1:-1] * w))(X), w)


def test_pad_errors():
    with pytest.raises(NotImplementedError, match="np.pad: a function as mode"):
        grad(lambda x: np.pad(x, 1, lambda *a: None).sum())(X)
    with pytest.raises(NotImplementedError, match="end_values"):
        grad(lambda x: np.pad(x, 1, "linear_ramp", end_values=x[0, 0]).sum())(X)
    with pytest.raises(ValueError, match="mode 'no' is not supported"):
        grad(lambda x: np.pad(x, 1, "no").sum())(X)
    with pytest.raises(ValueError, match="negative"):
        grad(lambda x: np.pad(x, -1).sum())(X)


# ---------------------------------------------------------------------------------------------- inserting and deleting
@pytest.mark.parametrize("call", [
    lambda x: np.delete(x, 1), lambda x: np.delete(x, -1, axis=0), lambda x: np.delete(x, [0, 2], axis=1),
    lambda x: np.delete(x, slice(None, None, 2), axis=1), lambda x: np.delete(x, [], axis=0),
    lambda x: np.delete(x, np.array([True, False, True]), axis=0), lambda x: np.delete(x, [1, 1, -2], axis=0)])
def test_delete(call):
    check(call, X)
    check(call, COMPLEX, order=1)


@pytest.mark.parametrize("trim", ["fb", "f", "b", "FB"])
def test_trim_zeros(trim):
    for values in ([0, 0, 1, 2, 0, 3, 0], [1, 2], [0, 0], [0, 1], [1, 0]):
        x = np.array(values, float)
        out, pullback = vjp(lambda x: np.trim_zeros(x, trim), x)
        assert bit_identical(out, np.trim_zeros(x, trim))
        places = np.trim_zeros(np.where(x == 0, 0, np.arange(1, len(x) + 1)), trim)
        if len(places):
            start = places[places > 0][0] - 1 - np.flatnonzero(places)[0]
            assert np.array_equal(np.flatnonzero(pullback(np.ones_like(out))[0]), start + np.arange(len(places)))


def test_trim_zeros_of_matrices():
    if np.lib.NumpyVersion(np.__version__) < "2.2.0":
        pytest.skip("NumPy trims vectors only")
    x = np.pad(X, ((1, 2), (0, 3)))
    for axis in (None, 0, 1, -1, (0, 1)):
        out, pullback = vjp(lambda x: np.trim_zeros(x, axis=axis), x)
        assert bit_identical(out, np.trim_zeros(x, axis=axis))
        assert np.array_equal(pullback(out)[0], x)


@pytest.mark.parametrize("where", [0, 2, -1, [1], [0, 3], [2, 0, 2], slice(0, 3, 2), np.array([True, False, True, False]), []],
                         ids=str)
def test_insert_scalar(where):
    check(lambda x, v: np.insert(x, where, v, axis=1), X, 2.0)
    check(lambda x, v: np.insert(x, where, v), X, 2.0)


@pytest.mark.parametrize("where, axis, shape", [
    (1, 0, (4,)), (1, 0, (2, 4)), (1, 1, (3,)), (1, 1, (2, 3)), (1, 1, (1, 1)), (2, 1, (1,)), ([1], 1, (3, 1)), ([1], 1, (1,)),
    ([1], 1, (3, 2)), ([0, 2], 1, (3, 2)), ([2, 0], 1, (2,)), ([0, 3], 0, (1, 4)), (1, None, (2,)), ([3, 1, 4], None, (3,)),
    (-2, -1, (3,)), ([1, 1], 0, (2, 1))], ids=str)
def test_insert_arrays(where, axis, shape):
    values = RNG.normal(size=shape)
    check(lambda x, v: np.insert(x, where, v, axis=axis), X, values)
    check(lambda v: np.insert(X, where, v, axis=axis), values)
    check(lambda x: np.insert(x, where, values, axis=axis), X)


def test_insert_into_integers_is_refused():
    with pytest.raises(TypeError, match="np.insert.*int64.*lose"):
        grad(lambda v: np.insert(np.arange(3), 1, v).sum())(1.5)
    right = np.insert(np.eye(5), 1, np.zeros((2, 5)), axis=0)
    assert np.array_equal(jacobian(lambda x: np.insert(x, 1, [7, 8]))(VECTOR), right)
