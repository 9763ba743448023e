"""Shapes: reshape, transpose, broadcasting, shifts. NumPy's values and views, derivatives of both orders, writes to views."""
import numpy as np
import pytest
from support import bit_identical, check

import cgrad
from cgrad import grad, jacobian

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3, 4))
CUBE = RNG.normal(size=(2, 3, 4))
COMPLEX = X + 1j * RNG.normal(size=(3, 4))
EMPTY = np.zeros((0, 3))
RAVELLED = [X, X.T, X[::-1, ::2], CUBE.transpose(1, 2, 0), CUBE[:, ::-1], np.asfortranarray(CUBE), EMPTY, np.array(2.0)]


def check_selection(fun, x):
    """For results made of elements of x, whose places may depend on its layout in memory."""
    out, pullback = cgrad.vjp(fun, x)
    assert bit_identical(out, fun(x))
    selection = jacobian(fun, as_matrix=True)(x)
    assert np.array_equal(selection @ x.ravel(), out.ravel()) and np.array_equal(selection.sum(axis=1), np.ones(out.size))
    w = np.arange(1.0, out.size + 1).reshape(out.shape)
    assert np.array_equal(pullback(w)[0].ravel(), selection.T @ w.ravel())


@pytest.mark.parametrize("order", ["C", "F", "A"])
@pytest.mark.parametrize("x", [X, X.T, CUBE.transpose(2, 0, 1), CUBE[:, ::2]], ids=lambda x: str(x.shape))
def test_reshape(x, order):
    n = x.size
    for shape in (n, (n,), (-1,), (2, -1), (n // 2, 1, 2)):
        check_selection(lambda x: np.reshape(x, shape, order=order), x)
        check_selection(lambda x: x.reshape(shape, order=order), x)
    check_selection(lambda x: x.reshape(2, -1, order=order), x)
    check(lambda x: x.reshape(2, -1, order=order) ** 2, x.copy("C"))


def test_reshape_keywords():
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        check(lambda x: np.reshape(x, shape=(4, 3)), COMPLEX)
        check(lambda x: np.reshape(x, (4, 3), copy=True), X)
        check(lambda x: x.reshape(12, copy=False), X)
        with pytest.raises(ValueError, match="copy"):
            grad(lambda x: x.T.reshape(12, copy=False)[0])(X)
    with pytest.raises(ValueError, match="reshape"):
        grad(lambda x: x.reshape(5)[0])(X)


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("x", RAVELLED, ids=lambda x: f"{x.shape}{x.strides}")
def test_ravel_and_flatten(x, order):
    check_selection(lambda x: np.ravel(x, order), x)
    check_selection(lambda x: x.ravel(order), x)
    check_selection(lambda x: x.flatten(order), x)
    check(lambda x: np.ravel(x, order) ** 2, x.copy("C"))


@pytest.mark.parametrize("call", [
    lambda x: np.squeeze(x), lambda x: x.squeeze(0), lambda x: np.expand_dims(x, (0, -1)), lambda x: np.atleast_1d(x),
    lambda x: np.atleast_2d(x), lambda x: np.atleast_3d(x), lambda x: x.T, lambda x: np.transpose(x), lambda x: x.transpose(),
    lambda x: np.flip(x), lambda x: np.roll(x, 2)])
@pytest.mark.parametrize("x", [1.5, np.array(1.5), X[0], X[:1], X[:1, :1], EMPTY, COMPLEX[:1]], ids=lambda x: str(np.shape(x)))
def test_few_axes(call, x):
    try:
        call(x)
    except (ValueError, AttributeError):
        pytest.skip("NumPy refuses")
    check(call, x)


def test_atleast_of_several():
    check(lambda x, y: np.concatenate([a.ravel() for a in np.atleast_2d(x, y, 1.0)]), X, np.array(3.0))


@pytest.mark.parametrize("call", [
    lambda x: np.transpose(x, (2, 0, 1)), lambda x: np.transpose(x, (-1, 0, 1)), lambda x: x.transpose(1, 2, 0),
    lambda x: x.transpose((1, 2, 0)), lambda x: x.transpose(None), lambda x: x.T, lambda x: x.mT,
    lambda x: np.matrix_transpose(x), lambda x: np.permute_dims(x, (0, 2, 1)), lambda x: np.swapaxes(x, 0, -1),
    lambda x: x.swapaxes(1, 2), lambda x: np.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, [0, 1], [-1, 0]),
    lambda x: np.rollaxis(x, 2), lambda x: np.rollaxis(x, 0, 3), lambda x: np.rollaxis(x, 1, 1),
    lambda x: np.flip(x), lambda x: np.flip(x, 1), lambda x: np.flip(x, (0, -1)), lambda x: np.fliplr(x),
    lambda x: np.flipud(x),
    *[lambda x, k=k: np.rot90(x, k) for k in range(-1, 5)], lambda x: np.rot90(x, 1, (2, 0)), lambda x: np.rot90(x, 2, (1, 2)),
    lambda x: np.roll(x, 1, 0), lambda x: np.roll(x, 5), lambda x: np.roll(x, (1, -2)), lambda x: np.roll(x, (1, -5), (0, 2)),
    lambda x: np.roll(x, 1, (0, 0)), lambda x: np.roll(x, -1, (0, -1))])
def test_permutations(call):
    check(call, CUBE)
    check(call, np.asfortranarray(CUBE), order=1)
    check(call, CUBE + 1j, order=1)


def test_broadcasting():
    check(lambda x: np.broadcast_to(x, (2, 3, 4)), X)
    check(lambda x: np.broadcast_to(x, (2, 3, 4)), X[:, :1])
    check(lambda x: np.broadcast_to(x, (2, 3)), 1.5)
    check(lambda x: np.broadcast_to(x, (0, 3)), X[0, :3], batched=False)
    check(lambda x, y: np.broadcast_arrays(x, y)[0] * np.broadcast_arrays(x, y)[1], X[:, :1], X[0])
    check(lambda x: np.broadcast_arrays(x, np.ones((2, 1, 1)))[0], X)
    assert all(type(b) is np.ndarray for b in cgrad.vjp(lambda x: np.broadcast_arrays(x, X)[1] + 0 * x, X)[:1])


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("copy", [False, True])
def test_meshgrid(indexing, sparse, copy):
    def product(*xs):
        grids = np.meshgrid(*xs, np.arange(2.0), indexing=indexing, sparse=sparse, copy=copy)
        return grids[0] * grids[1] * grids[2]
    check(product, X[0], X[1, :3])
    check(lambda x: np.meshgrid(x, indexing=indexing, sparse=sparse, copy=copy)[0], X[0])
    check(lambda x: np.meshgrid(x, X[0], indexing=indexing, sparse=sparse, copy=copy)[0], 2.0)


def test_errors_are_numpys():
    for call in (lambda a: np.flip(a, 2), lambda a: np.fliplr(a[0]), lambda a: np.rot90(a, axes=(0, 0)), lambda a: a[0].mT,
                 lambda a: np.moveaxis(a, 3, 0), lambda a: np.transpose(a, (0, 0)), lambda a: np.squeeze(a, 0),
                 lambda a: np.expand_dims(a, 5), lambda a: np.broadcast_to(a, (2, 2)), lambda a: np.roll(a, 1, 4)):
        with pytest.raises(Exception) as right:
            call(X)
        with pytest.raises(type(right.value)) as got:
            grad(lambda x: np.sum(call(x)))(X)
        assert str(got.value) == str(right.value)


def test_questions():
    def ask(x):
        assert np.shape(x) == x.shape == (3, 4) and np.ndim(x) == 2 and np.size(x) == 12 and np.size(x, 0) == 3
        assert np.may_share_memory(x, x.value)
        return x[np.ix_([0, 1], [True, False, True, False])].sum()
    assert grad(ask)(X).sum() == 4


# ---------------------------------------------------------------------------------------------- views
VIEWS = [lambda x: x.reshape(12), lambda x: x.reshape(2, 6), lambda x: x.ravel(), lambda x: x.T, lambda x: np.swapaxes(x, 0, 1),
         lambda x: np.expand_dims(x, 1), lambda x: x[None].squeeze(), lambda x: np.flip(x), lambda x: np.rot90(x),
         lambda x: np.rot90(x, 0), lambda x: np.atleast_3d(x), lambda x: x.T.reshape(12, order="F"), lambda x: x.T.ravel("K"),
         lambda x: np.moveaxis(x, 0, 1), lambda x: x.reshape(2, 2, 3).transpose(2, 0, 1), lambda x: np.split(x, 2, axis=1)[1],
         lambda x: np.meshgrid(x[0], x[1], sparse=True, copy=False)[0], lambda x: x.T[1:], lambda x: x[1:].T.reshape(2, 2, 2)]


def written_through(view, function):
    """x with part of a view of it changed, in place."""
    def fun(x):
        z = function(x)
        v = view(z)
        first = v[0] if v.ndim else v
        v[0] = first * first + 1
        v *= 2.0
        return z * z[0, 0]
    return fun


@pytest.mark.parametrize("view", VIEWS)
def test_writes_to_views_reach_their_base(view):
    fun = written_through(view, lambda x: x * 3)
    check(fun, X)
    check(written_through(view, np.copy), X, order=1)


@pytest.mark.parametrize("copy", [
    lambda x: x.flatten(), lambda x: x.T.reshape(12), lambda x: x.T.ravel(), lambda x: np.roll(x, 1), lambda x: x.copy(),
    lambda x: np.meshgrid(x[0], x[1])[0], lambda x: x[:, ::2].reshape(-1), lambda x: x.flatten("K"), lambda x: x.T.copy()])
def test_writes_to_copies_do_not(copy):
    check(written_through(copy, lambda x: x * 3), X)


@pytest.mark.parametrize("view", VIEWS)
def test_views_see_writes_to_their_base(view):
    def fun(x):
        z = x * 3
        v = view(z)
        z[1] = z[0] ** 2
        z[0, 0] = 1.0
        return v * v
    check(fun, X)


@pytest.mark.parametrize("view", [lambda x: np.broadcast_to(x, (2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4))[0].T])
def test_read_only_views(view):
    def written(x):
        view(x)[0] = 1.0
        return x.sum()

    def added(x):
        v = view(x)
        v += 1
        return x.sum()
    for fun in (written, added):
        with pytest.raises(ValueError, match="read-only"):
            grad(fun)(X)

    def refused(x):
        z = x * 2
        v = view(z)
        try:
            v[0] = 1.0
        except ValueError:
            pass
        z[0] = x[1] ** 2                            # the refusal left both as they were
        return v * v
    check(refused, X)


def test_arrays_with_equal_strides_are_not_their_transposes():
    """A broadcast argument is its own transpose in memory, not as a variable."""
    x = np.broadcast_to(np.array(2.0), (3, 3))
    w = RNG.normal(size=(3, 3))
    assert np.array_equal(grad(lambda x: np.sum(w * x.T))(x), w.T)


# ---------------------------------------------------------------------------------------------- other dtypes, many seeds
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble, np.complex64])
def test_dtypes(dtype):
    x = X.astype(dtype)
    for call in (lambda x: x.reshape(2, 6), lambda x: x.T, lambda x: np.broadcast_to(x, (2, 3, 4)), lambda x: np.roll(x, 1),
                 lambda x: np.flip(x, 0)):
        out, pullback = cgrad.vjp(call, x)
        assert bit_identical(out, call(x))
        assert pullback(np.ones_like(out))[0].dtype == dtype


def test_fortran_order_with_many_seeds():
    rows = jacobian(lambda x: x.reshape((3, 2, 2), order="F"))(X)
    right = np.zeros((3, 2, 2, 3, 4))
    for k, where in enumerate(np.ndindex(2, 2, 3)):                             # the first index runs fastest
        i = where[::-1]
        right[(*i, k % 3, k // 3)] = 1
    assert np.array_equal(rows, right)
