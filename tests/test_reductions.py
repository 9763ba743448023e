"""Reductions, accumulations, statistics, norms: NumPy's values to the bit, derivatives of both orders, conventions at kinks."""
import warnings

import numpy as np
import pytest
from support import bit_identical, check

import cgrad
from cgrad import grad, jacobian, vjp

RNG = np.random.default_rng(2)
X = RNG.normal(size=(3, 4))
CUBE = RNG.normal(size=(2, 3, 4))
COMPLEX = X + 1j * RNG.normal(size=(3, 4))
MASK = X > -0.5
MASK[:, 0] = True
ALL = [None, 0, -1, (0, 2), (1,), ()]


def hessian(f):
    return jacobian(grad(f))


# ---------------------------------------------------------------------------------------------- every function, every axis
PLAIN = [np.sum, np.mean, np.prod, np.max, np.min, np.ptp]
NAN = [np.nansum, np.nanmean, np.nanprod, np.nanmax, np.nanmin]
SPREAD = [np.var, np.std, np.nanvar, np.nanstd]


@pytest.mark.parametrize("axis", ALL, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("function", PLAIN + NAN + SPREAD, ids=lambda f: f.__name__)
def test_axes(function, axis, keepdims):
    if axis == () and function in SPREAD:
        pytest.skip("the spread of single numbers is at its kink")
    check(lambda x: function(x, axis=axis, keepdims=keepdims), CUBE, order=2 if axis == -1 else 1)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "var", "std", "cumsum", "cumprod"])
def test_methods(name):
    check(lambda x: getattr(x, name)(), X)
    check(lambda x: getattr(x, name)(1), X)
    check(lambda x: getattr(x, name)(axis=0), X)


@pytest.mark.parametrize("function", [np.sum, np.mean, np.prod, np.nansum, np.nanmean, np.nanprod, np.var, np.std, np.nanvar,
                                      np.nanstd, np.cumsum, np.cumprod, np.nancumsum, np.nancumprod, np.average,
                                      np.linalg.norm, np.linalg.vector_norm, np.linalg.matrix_norm], ids=lambda f: f.__name__)
def test_complex(function):
    check(function, COMPLEX)
    if function is not np.linalg.matrix_norm:
        check(lambda x: function(x, axis=1), COMPLEX)


@pytest.mark.parametrize("function", [np.sum, np.prod, np.max, np.min, np.nansum, np.nanmax, np.nanmin], ids=lambda f: f.__name__)
def test_where_and_initial(function):
    check(lambda x: function(x, where=MASK, initial=0.3), X)
    check(lambda x: function(x, axis=1, where=MASK, initial=-0.3, keepdims=True), X)
    check(lambda x: function(x, axis=0, initial=0.3), X)
    skipped = grad(lambda x: function(x, where=MASK, initial=0.3))(X)[~MASK]
    assert np.all(skipped == 0)


@pytest.mark.parametrize("function", [np.mean, np.var, np.std, np.nanmean, np.nanvar, np.nanstd], ids=lambda f: f.__name__)
def test_where(function):
    check(lambda x: function(x, where=MASK), X)
    check(lambda x: function(x, axis=1, where=MASK, keepdims=True), X)
    check(lambda x: function(x, axis=1, where=np.array([True, False, True, True])), X)


def test_masked_nan_does_not_spread():
    x = np.where(MASK, X, np.nan)
    for f in (np.sum, np.mean, np.prod, np.var, np.std):
        g = grad(lambda x: f(x, where=MASK))(x)
        assert np.all(g[~MASK] == 0) and np.all(np.isfinite(g)), f
    for f in (np.max, np.min):
        g = grad(lambda x: f(x, where=MASK, initial=-100.0 if f is np.max else 100.0))(x)
        assert g.sum() == 1 and np.all(g[~MASK] == 0)


def test_degrees_of_freedom():
    for f in (np.var, np.std, np.nanvar, np.nanstd):
        check(lambda x: f(x, ddof=1), X)
        check(lambda x: f(x, axis=0, ddof=2), X)
        check(lambda x: f(x, axis=1, correction=0.5), X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.all(np.isnan(grad(lambda x: np.var(x, ddof=12))(X)))


def test_given_mean():
    m = np.mean(X, axis=1, keepdims=True)
    for f in (np.var, np.std, np.nanvar, np.nanstd):
        check(lambda x, m: f(x, axis=1, mean=m), X, m + 0.1)
        check(lambda x: f(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)), X)
        check(lambda m: f(cgrad.stop_gradient(X) + 0 * m, axis=1, mean=m), m)


# ---------------------------------------------------------------------------------------------- dtypes, layouts, sizes
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble, np.complex64, np.complex128], ids=lambda d: d.__name__)
@pytest.mark.parametrize("function", [np.sum, np.mean, np.prod, np.var, np.std, np.cumsum, np.cumprod, np.nansum, np.nanmean,
                                      np.max, np.min, np.median, np.linalg.norm], ids=lambda f: f.__name__)
def test_dtypes(function, dtype):
    x = np.asarray(COMPLEX if np.dtype(dtype).kind == "c" else X, dtype)
    if np.dtype(dtype).kind == "c" and function in (np.max, np.min, np.median):
        pytest.skip("no order among complex numbers")
    for axis in (None, 1):
        def f(x):
            return function(x, axis=axis)
        out, pullback = vjp(f, x)
        assert bit_identical(out, f(x))
        seed = np.ones_like(out)
        g, = pullback(seed if isinstance(out, np.ndarray) else seed[()])
        assert g.dtype == dtype and g.shape == x.shape
        wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
        right, = vjp(f, wide)[1](np.ones_like(f(wide)))
        eps = max(np.finfo(dtype).eps, np.finfo(wide.dtype).eps)
        np.testing.assert_allclose(g.astype(wide.dtype), right, rtol=200 * eps, atol=20 * eps)


def test_dtype_argument():
    x32 = X.astype(np.float32)
    for f in (np.sum, np.mean, np.prod, np.cumsum, np.var):
        for x, dtype in ((x32, np.float64), (X, np.float32)):
            out, pullback = vjp(lambda x: f(x, axis=0, dtype=dtype), x)
            assert bit_identical(out, f(x, axis=0, dtype=dtype))
            assert pullback(np.ones_like(out))[0].dtype == x.dtype
    assert vjp(lambda x: np.sum(x, dtype=np.int64), X)[0] == np.sum(X, dtype=np.int64)


@pytest.mark.parametrize("f", [np.sum, np.mean, np.prod, np.max, np.std, np.cumprod, np.median, np.linalg.norm],
                         ids=lambda f: f.__name__)
def test_layouts_and_scalars(f):
    for x in (np.asfortranarray(X), CUBE[::-1, ::2, 1:3][0], CUBE.T[1], np.broadcast_to(X[0], (2, 4)) + 0):
        check(f, x, order=1)
        if f is not np.linalg.norm:
            check(lambda x: f(x, axis=0), x, order=1)
    for x in (1.5, np.float64(1.5), np.array(1.5)):
        if f is np.std:
            assert grad(f)(x) == 0
        else:
            check(f, x)


def test_large():
    """Beyond the size up to which adjoints are filled instead of stretched."""
    x = RNG.normal(size=(80, 70))
    for f in (np.sum, np.mean, np.max, np.std, np.linalg.norm):
        check(f, x, order=1, batched=False)
        check(lambda x: f(x, axis=0), x, order=1, batched=False)
    g = grad(np.sum)(x)
    assert g.flags.writeable and np.all(g == 1)
    assert np.all(jacobian(np.sum)(x) == 1)


def test_empty():
    empty = np.zeros((0, 3))
    for f in (np.sum, np.prod, np.cumsum, np.linalg.norm):
        out, pullback = vjp(f, empty)
        assert bit_identical(out, f(empty))
        assert pullback(np.ones_like(out) if isinstance(out, np.ndarray) else 1.0)[0].shape == (0, 3)
    for f in (np.sum, np.prod, np.max, np.mean, np.std, np.median, np.cumprod):
        out, pullback = vjp(lambda x: f(x, axis=1), np.zeros((0, 3)))
        assert pullback(np.ones_like(out))[0].shape == (0, 3)
    with pytest.raises(ValueError, match="zero-size"):
        grad(np.max)(np.zeros(0))
    with np.errstate(invalid="ignore"), pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        assert grad(np.mean)(np.zeros(0)).shape == (0,)


def test_numpys_errors():
    for f in (np.sum, np.mean, np.max, np.std, np.cumsum, np.median, np.linalg.norm):
        with pytest.raises(np.exceptions.AxisError):
            grad(lambda x: np.sum(f(x, axis=5)))(X)
    with pytest.raises(TypeError, match="Cannot cast"):
        grad(lambda x: np.sum(x, where=x))(X)
    with pytest.raises(TypeError, match=r"initial.*np\.sum\(x\) \+ initial"):
        grad(lambda x: np.sum(x, initial=x[0, 0]))(X)
    with pytest.raises(ValueError, match="duplicate"):
        grad(lambda x: np.sum(x, axis=(0, 0)))(X)
    with pytest.raises(TypeError, match="no_such"):
        grad(lambda x: np.sum(x, no_such=1))(X)
    with pytest.raises(ValueError, match="norm order"):
        grad(lambda x: np.linalg.norm(x, "fro", axis=0).sum())(X)


# ---------------------------------------------------------------------------------------------- out=
def test_out():
    for f in (np.sum, np.mean, np.prod, np.max, np.var, np.cumsum, np.nansum, np.median):
        def into(x):
            out = np.zeros_like(f(x, axis=0))
            result = f(x * x, axis=0, out=out)
            assert result is out
            return out * out
        right = vjp(lambda x: f(x * x, axis=0)**2, X)
        out, pullback = vjp(into, X)
        assert np.array_equal(out, right[0])
        np.testing.assert_allclose(pullback(np.ones_like(out))[0], right[1](np.ones_like(out))[0], rtol=1e-13)
        with pytest.raises(TypeError, match="zeros_like"):
            grad(lambda x: np.sum(f(x, axis=0, out=np.zeros(f(X, axis=0).shape))))(X)


def test_out_of_another_dtype():
    """NumPy computes in the dtype of out."""
    def into(x):
        out = np.zeros_like(x[0], dtype=np.float32)
        np.sum(x, axis=0, out=out)
        return out
    right = np.sum(X, axis=0, out=np.zeros(4, np.float32))
    out, pullback = vjp(into, X)
    assert bit_identical(out, right)
    assert np.array_equal(pullback(np.ones(4, np.float32))[0], np.ones((3, 4)))


# ---------------------------------------------------------------------------------------------- ties
def test_ties_share_equally():
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    np.testing.assert_allclose(grad(lambda x: np.max(x, axis=1).sum())(x), [[0, 0.5, 0.5], [1 / 3] * 3])
    np.testing.assert_allclose(grad(np.max)(x), [[0, 0.5, 0.5], [0, 0, 0]])
    np.testing.assert_allclose(grad(np.min)(x), [[1, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(grad(np.ptp)(x[1]), np.zeros(3))
    np.testing.assert_allclose(grad(np.median)(x[1]), [1 / 3] * 3)
    np.testing.assert_allclose(grad(lambda x: np.max(x, initial=3.0))(x), [[0, 1 / 3, 1 / 3], [0, 0, 0]])
    np.testing.assert_allclose(grad(lambda x: np.max(x, initial=4.0))(x), np.zeros((2, 3)))
    np.testing.assert_allclose(grad(lambda x: np.linalg.norm(x, np.inf))(np.array([-3.0, 1, 3])), [-0.5, 0, 0.5])
    np.testing.assert_allclose(grad(lambda x: np.linalg.norm(x, 1))(np.array([[1.0, -2], [-2, 1]])), [[0.5, -0.5], [-0.5, 0.5]])
    np.testing.assert_allclose(grad(lambda x: np.linalg.norm(x, 2))(np.eye(2)), np.eye(2) / 2, atol=1e-15)
    np.testing.assert_allclose(
        jacobian(np.maximum.accumulate)(np.array([1.0, 3, 2, 3, 3, 4]))[-3:],
        [[0, 1 / 2, 0, 1 / 2, 0, 0], [0, 1 / 3, 0, 1 / 3, 1 / 3, 0], [0, 0, 0, 0, 0, 1]])


def test_nan_wins_extrema_and_is_skipped_by_nan_functions():
    x = np.array([[1.0, np.nan, 3.0], [2.0, 5.0, 4.0]])
    np.testing.assert_array_equal(grad(lambda x: np.max(x, axis=1).sum())(x), [[0, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(grad(lambda x: np.fmax.reduce(x, axis=1).sum())(x), [[0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(grad(lambda x: np.nanmax(x, axis=1).sum())(x), [[0, 0, 1], [0, 1, 0]])
    for f in NAN + [np.nanvar, np.nanstd, np.nanmedian, np.nancumsum, np.nancumprod, lambda x: np.nanquantile(x, 0.3)]:
        g = grad(lambda x: np.sum(f(x * x)))(x)
        assert g[0, 1] == 0 and np.all(np.isfinite(g)), f
        if f not in (np.nancumsum, np.nancumprod):              # which go on over the gap
            rest = x[~np.isnan(x)]
            np.testing.assert_allclose(g[~np.isnan(x)], grad(lambda x: np.sum(f(x * x)))(rest))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f in NAN + [np.nanvar, np.nanstd, np.nanmedian]:
            g = grad(lambda x: np.sum(f(x, axis=1)))(np.array([[np.nan, np.nan], [1.0, 3.0]]))
            assert np.all(g[0] == 0) and np.all(np.isfinite(g)), f


def test_infinite_adjoint_stays_with_the_extremum():
    g = grad(lambda x: np.sqrt(np.max(x)))(np.array([-1.0, 0.0]))
    np.testing.assert_array_equal(g, [0, np.inf])


# ---------------------------------------------------------------------------------------------- products with zeros
@pytest.mark.parametrize("zeros", [1, 2, 3])
def test_products_with_zeros(zeros):
    x = np.array([2.0, -1.5, 3.0, 0.7])
    x[:zeros] = 0
    check(np.prod, x)
    check(np.cumprod, x)
    check(np.cumprod, x[::-1])
    right = np.array([[np.prod(np.delete(x, [i, j])) if i != j else 0 for j in range(4)] for i in range(4)])
    np.testing.assert_allclose(hessian(np.prod)(x), right, rtol=1e-14)
    third = jacobian(hessian(np.prod))(x)
    np.testing.assert_allclose([third[0, 1, 2], third[1, 2, 3], third[0, 0, 1]], [x[3], x[0], 0], rtol=1e-14, atol=1e-15)
    rows = np.stack([x, x[::-1], x + 1])
    check(lambda x: np.prod(x, axis=1), rows)
    check(lambda x: np.prod(x, axis=(0, 1), initial=2.0, where=np.arange(4) > 0), rows)
    check(lambda x: np.cumprod(x, axis=0), rows)
    if hasattr(np, "cumulative_prod"):              # NumPy 2.1
        check(lambda x: np.cumulative_prod(x, axis=1, include_initial=True), rows)


def test_products_out_of_range():
    """The product underflows or overflows; that of the others need not."""
    g = grad(np.prod)(np.array([1e-200, 1e-200, 3.0]))
    np.testing.assert_allclose(g, [3e-200, 3e-200, 0])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(grad(np.prod)(np.array([1e200, 1e200])), [1e200, 1e200])


def test_long_cumprod_with_a_zero():
    x = RNG.uniform(0.9, 1.1, 1000)
    x[500] = 0
    weights = RNG.normal(size=1000)
    g = grad(lambda x: np.sum(weights * np.cumprod(x)))(x)
    # as a chain of products
    before, a, right = np.concatenate([[1], np.cumprod(x)[:-1]]), 0.0, np.zeros(1000)
    for i in reversed(range(1000)):
        a = weights[i] + (x[i + 1] * a if i < 999 else 0)
        right[i] = before[i] * a
    np.testing.assert_allclose(g, right, rtol=1e-11, atol=1e-13)


# ---------------------------------------------------------------------------------------------- ufunc methods
def test_ufunc_reduce():
    for u in (np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2):
        check(u.reduce, X)
        check(lambda x: u.reduce(x, axis=1, keepdims=True), X)
        check(lambda x: u.reduce(x, axis=None, initial=0.2), X[0]) if u not in (np.logaddexp, np.logaddexp2) else None
    check(lambda x: np.add.reduce(x, axis=None, where=MASK), X)
    check(lambda x: np.logaddexp.reduce(x, axis=1, where=MASK, initial=-np.inf), X)


def test_logaddexp_of_nothing():
    x = np.array([[-np.inf, -np.inf], [-np.inf, 1.0]])
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.where(np.isinf(x[:, 1]), 0, np.logaddexp.reduce(x, axis=1))))(x),
                                  [[0, 0], [0, 1]])
    np.testing.assert_array_equal(jacobian(lambda x: np.logaddexp.reduce(x, axis=1))(x)[0], np.zeros((2, 2)))


def test_accumulate():
    for u in (np.add, np.multiply, np.maximum, np.minimum):
        check(u.accumulate, X)
        check(lambda x: u.accumulate(x, axis=1), X)
        check(lambda x: u.accumulate(x, -1), CUBE[:, ::2, ::-1])


@pytest.mark.parametrize("indices", [[0, 2, 4], [1, 3], [0, 3, 3, 1, 4], [4, 0]])
def test_reduceat(indices):
    check(lambda x: np.add.reduceat(x, indices), RNG.normal(size=5))
    check(lambda x: np.add.reduceat(x, indices, axis=1), RNG.normal(size=(2, 5, 3)))


def test_cumulative():
    for f in (np.cumulative_sum, np.cumulative_prod) if hasattr(np, "cumulative_sum") else ():
        check(f, X[0])
        check(lambda x: f(x, include_initial=True), X[0])
        check(lambda x: f(x, axis=0, include_initial=True), X)
    for f in (np.cumsum, np.cumprod, np.nancumsum, np.nancumprod):
        for axis in (None, 0, -1, 1):
            check(lambda x: f(x, axis=axis), CUBE, order=2 if axis is None else 1, batched=axis is not None)


# ---------------------------------------------------------------------------------------------- averages, quantiles
def test_average():
    w = RNG.uniform(0.5, 2, (3, 4))
    check(np.average, X)
    check(lambda x: np.average(x, axis=1, keepdims=True), X)
    check(lambda x, w: np.average(x, weights=w), X, w)
    check(lambda x, w: np.average(x, axis=0, weights=w), X, w)
    check(lambda x, w: np.average(x, axis=1, weights=w, keepdims=True), X, w[0])
    check(lambda x, w: np.average(x, axis=(2, 0), weights=w), CUBE, RNG.uniform(0.5, 2, (4, 2)))
    check(lambda w: np.average(X, weights=w), w)
    check(lambda x, w: np.average(x, weights=w), COMPLEX, w)
    check(lambda w: np.average(np.arange(12).reshape(3, 4), axis=0, weights=w), w[:, 0])
    for returned in (lambda x, w: np.average(x, axis=0, weights=w, returned=True)[1], ):
        check(returned, X, w)
        check(lambda w: returned(X, w), w[:, 0])
    z, n = vjp(lambda x: np.average(x, axis=0, returned=True), X)[0]
    assert bit_identical(n, np.average(X, axis=0, returned=True)[1])
    with pytest.raises(ZeroDivisionError):
        grad(lambda w: np.average(X[0], weights=w))(np.zeros(4))


METHODS = ["linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
           "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased"]


@pytest.mark.parametrize("method", METHODS)
def test_quantile_methods(method):
    x = RNG.normal(size=7)
    for q in (0.0, 0.3, 0.5, 0.61, 1.0):
        check(lambda x: np.quantile(x, q, method=method), x, order=1)
        check(lambda x: np.nanquantile(x, q, method=method), x, order=1)
    check(lambda x: np.percentile(x, [10, 52], axis=0, method=method), CUBE, order=1)


def test_quantiles():
    q = np.array([[0.1, 0.5], [0.8, 0.99]])
    for axis in ALL[:-1]:
        for f in (lambda x: np.quantile(x, q, axis=axis), lambda x: np.nanpercentile(x, 30, axis=axis, keepdims=True),
                  lambda x: np.median(x, axis=axis, keepdims=True), lambda x: np.nanmedian(x, axis=axis)):
            check(f, CUBE, order=1)
    check(np.median, X[0], order=2)
    check(lambda x: np.median(x)**2, X[0, :3])
    check(lambda x: np.quantile(x, 0.4, weights=[1, 2, 3, 1], method="inverted_cdf"), X[0])
    x = np.where(X > 1, np.nan, X)
    for i, row in enumerate(grad(lambda x: np.nanmedian(x, axis=1).sum())(x)):
        np.testing.assert_allclose(row[~np.isnan(x[i])], grad(np.median)(x[i][~np.isnan(x[i])]))
        assert np.all(row[np.isnan(x[i])] == 0)


def test_tracked_q():
    x = RNG.normal(size=6)
    check(np.quantile, x, 0.33)
    check(lambda q: np.quantile(x, q), np.array([0.11, 0.73]))
    check(lambda x, q: np.percentile(x, q, axis=1, keepdims=True), X, np.array([[11.0], [73.0]]))
    with pytest.raises(NotImplementedError, match="q.value"):
        grad(lambda q: np.quantile(x, q, method="hazen"))(0.3)


# ---------------------------------------------------------------------------------------------- norms
VECTOR_ORDERS = [None, 1, 2, 3, 2.5, 0.5, -1, -2, np.inf, -np.inf]
MATRIX_ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]


@pytest.mark.parametrize("order", VECTOR_ORDERS, ids=str)
def test_vector_norms(order):
    check(lambda x: np.linalg.norm(x, order), X[0])
    check(lambda x: np.linalg.norm(x, order, axis=1), CUBE)
    check(lambda x: np.linalg.norm(x, order, axis=(-1,), keepdims=True), X)
    if order is not None:
        check(lambda x: np.linalg.vector_norm(x, ord=order, axis=(0, 2)), CUBE, order=1)
        check(lambda x: np.linalg.vector_norm(x, ord=order, keepdims=True), X, order=1)
        check(lambda x: np.linalg.vector_norm(x, ord=order), COMPLEX, order=1)


@pytest.mark.parametrize("order", MATRIX_ORDERS, ids=str)
def test_matrix_norms(order):
    second = 1 if order in ("nuc", 2, -2) else 2
    check(lambda x: np.linalg.norm(x, order), X, order=second)
    check(lambda x: np.linalg.norm(x, order, axis=(2, 0)), CUBE, order=second)
    check(lambda x: np.linalg.norm(x, order, axis=(0, 1), keepdims=True), CUBE, order=second)
    check(lambda x: np.linalg.norm(x, order), COMPLEX, order=1)
    if order is not None:
        check(lambda x: np.linalg.matrix_norm(x, ord=order, keepdims=True), CUBE, order=second)


def test_zero_norm_is_a_count():
    assert vjp(lambda x: np.linalg.norm(x, 0), X[0])[0] == 4
    assert np.all(grad(lambda x: np.linalg.norm(x, 0) + x[0])(X[0]) == [1, 0, 0, 0])


@pytest.mark.filterwarnings("error")
def test_norms_at_the_origin():
    zero = np.zeros((2, 3))
    for order in MATRIX_ORDERS:
        np.testing.assert_array_equal(grad(lambda x: np.linalg.norm(x, order))(zero), zero)
    for order in VECTOR_ORDERS:
        if order not in (0.5, -1, -2):
            np.testing.assert_array_equal(grad(lambda x: np.linalg.norm(x, order))(zero[0]), zero[0])
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(grad(lambda x: np.linalg.norm(x, axis=1).sum())(x), [[0, 0], [0.6, 0.8]])
    np.testing.assert_array_equal(grad(lambda x: np.linalg.norm(x)**2)(np.zeros(2)), [0, 0])
    np.testing.assert_array_equal(grad(np.linalg.norm)(np.zeros(2, complex)), [0, 0])
    # neither overflow nor underflow where the norm is representable
    np.testing.assert_allclose(grad(np.linalg.norm)(np.array([3e-160, 4e-160])), [0.6, 0.8], rtol=1e-3)


@pytest.mark.parametrize("x", [np.array([1.0, 1.0]), np.full(3, 0.1), np.full(1000, 1 / 3), np.full(3, 0.1 + 0.3j)], ids=len)
def test_std_of_constant_data(x):
    """0, also where rounding leaves something of the deviations."""
    np.testing.assert_array_equal(grad(np.std)(x), np.zeros(len(x)))
    rows = np.stack([x, np.arange(len(x)) + 0 * x])
    g = grad(lambda x: np.std(x, axis=1).sum())(rows)
    assert np.all(g[0] == 0)
    np.testing.assert_allclose(g[1], grad(np.std)(rows[1]))


def test_close_data_are_not_constant():
    x = np.array([1.0, 1.0 + 4 * np.finfo(float).eps])
    np.testing.assert_allclose(grad(np.std)(x), [-0.5, 0.5])


def test_second_order_at_the_kink():
    """Smooth functions of a norm have their second derivative there; the norm itself has none, which must not be 0."""
    def kernel(a, b):
        return np.exp(-np.linalg.norm(a - b)**2)
    a = np.array([0.1, 0.2])
    np.testing.assert_allclose(jacobian(grad(kernel), 1)(a, a), 2 * np.eye(2))
    np.testing.assert_allclose(hessian(lambda x: np.cos(np.linalg.norm(x)))(np.zeros(2)), -np.eye(2))
    np.testing.assert_allclose(hessian(lambda x: np.sum(np.linalg.norm(x, axis=1)**4))(np.zeros((2, 2))), np.zeros((2, 2, 2, 2)))
    rows = np.array([[0.0, 0.0], [1.0, 2.0]])
    squared = hessian(lambda x: np.sum(np.linalg.norm(x, axis=1)**2))
    np.testing.assert_allclose(squared(rows).reshape(4, 4), 2 * np.eye(4), atol=1e-15)
    assert np.all(jacobian(squared)(0 * rows) == 0)
    blocks = jacobian(jacobian(lambda x: np.linalg.norm(x, axis=1)**2))(0 * rows)
    np.testing.assert_allclose(blocks.sum(0).reshape(4, 4), 2 * np.eye(4))
    for constant in (np.full(3, 0.5), np.full(3, 0.1)):
        np.testing.assert_allclose(hessian(lambda x: np.std(x)**2)(constant), hessian(np.var)(constant), atol=1e-15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not np.all(np.isfinite(hessian(np.linalg.norm)(np.zeros(2))))
        assert not np.all(np.isfinite(hessian(np.std)(np.ones(2))))


# ---------------------------------------------------------------------------------------------- trace
def test_trace():
    square = RNG.normal(size=(4, 4))
    check(np.trace, square)
    check(lambda x: x.trace(), X)
    for offset in (-2, -1, 0, 1, 3, 7):
        check(lambda x: np.trace(x, offset), X)
        check(lambda x: np.linalg.trace(x, offset=offset), CUBE)
        for axes in ((0, 2), (2, 0), (-1, 1), (1, 0)):
            check(lambda x: np.trace(x, offset, *axes), CUBE, order=1)
    check(np.trace, COMPLEX)


# ---------------------------------------------------------------------------------------------- without a derivative
def test_plain_results():
    seen = []

    def f(x):
        seen.append((np.argmax(x), x.argmax(axis=0), np.argmin(x, axis=1), np.nanargmax(x), np.count_nonzero(x), np.any(x > 0),
                     (x > 0).all(), np.all(x), x.any(), np.array_equal(x, x), np.allclose(x, x), np.isclose(x, 0),
                     np.logical_and.reduce(x > 0)))
        return x[np.argmax(x) // 4, 0]
    grad(f)(X)
    right = (np.argmax(X), X.argmax(axis=0), np.argmin(X, axis=1), np.nanargmax(X), np.count_nonzero(X), np.any(X > 0),
             (X > 0).all(), np.all(X), X.any(), True, True, np.isclose(X, 0), np.logical_and.reduce(X > 0))
    for a, b in zip(seen[0], right):
        assert np.array_equal(a, b) and type(a) is type(b)


def test_mask_may_change_afterwards():
    mask = np.array([True, False, True, True])

    def f(x):
        z = np.sum(x * x, where=mask)
        mask[:] = False
        return z
    np.testing.assert_array_equal(grad(f)(X[0]), np.where([True, False, True, True], 2 * X[0], 0))
