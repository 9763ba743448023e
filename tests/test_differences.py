"""Differences and functions along an axis, sinc and i0, polynomials: forms, special points and errors.

The registry's generic tests call every op; here are what the functions take beside arrays, and where their slopes need care.
"""
import numpy as np
import pytest
from support import bit_identical, check
from scipy import special

import cgrad


def array(shape, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    a = rng.uniform(-2, 2, shape)
    return a + 1j * rng.uniform(-2, 2, shape) if dtype is complex else a


# ------------------------------------------------------------------------------------------- diff, ediff1d
@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_diff(n, axis):
    check(lambda x: np.diff(x, n, axis), array((4, 5)))
    check(lambda x: np.diff(x, n=n, axis=axis), array((4, 5), dtype=complex))


def test_diff_with_ends():
    check(lambda x, a, b: np.diff(x, prepend=a, append=b), array((2, 3)), array((2, 1), 1), array((2, 2), 2))
    check(lambda x, a: np.diff(x, axis=0, prepend=a), array((2, 3)), array((), 1))
    check(lambda x: np.diff(x, append=[[1.0], [2.0]]), array((2, 3)))
    check(lambda a: np.diff(np.ones((2, 3)), append=a), array((2, 1)))


def test_diff_of_few_elements_and_errors():
    for shape, n in (((2,), 2), ((2,), 5), ((0,), 1), ((3, 0), 1), ((0, 3), 1)):
        check(lambda x: np.diff(x, n), array(shape))
    for bad in (lambda x: np.diff(x, -1), lambda x: np.diff(x[0, 0]), lambda x: np.diff(x, axis=2)):
        with pytest.raises(ValueError):
            cgrad.grad(lambda x: bad(x).sum())(np.eye(2))


def test_ediff1d():
    check(np.ediff1d, array(5))
    check(np.ediff1d, array((2, 3)))
    check(lambda x, a, b: np.ediff1d(x, a, b), array((2, 3)), array(2, 1), array((), 2))
    check(lambda x: np.ediff1d(x, to_begin=[1, 2]), array(3))
    with pytest.raises(TypeError, match="to_end"):
        cgrad.grad(lambda x: np.ediff1d(x, 1j).sum())(np.ones(3))


# ------------------------------------------------------------------------------------------- gradient, trapezoid
PLACES = np.array([0.0, 0.5, 2.0, 2.5, 4.0])


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_of_numpy(edge_order):
    check(lambda x: np.gradient(x, edge_order=edge_order), array(5))
    check(lambda x: np.gradient(x, 0.25, edge_order=edge_order), array(5))
    check(lambda x: np.gradient(x, PLACES, edge_order=edge_order), array(5))
    check(lambda x: np.gradient(x, np.arange(5), edge_order=edge_order), array(5))
    check(lambda x: np.gradient(x, PLACES, axis=1, edge_order=edge_order), array((2, 5, 2)))
    check(lambda x: np.stack(np.gradient(x, edge_order=edge_order)), array((3, 4)))
    check(lambda x: np.stack(np.gradient(x, PLACES, 0.3, axis=(1, 0), edge_order=edge_order)), array((3, 5)))
    check(lambda x: np.gradient(x, PLACES, edge_order=edge_order), array(5, dtype=complex))


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_by_its_spacing(edge_order):
    check(lambda x, h: np.gradient(x, h, edge_order=edge_order), array(4), np.float64(0.3))
    check(lambda x, p: np.gradient(x, p, edge_order=edge_order), array(5), PLACES)
    # coordinates at equal distances: NumPy's value, and the derivative by each of them
    check(lambda x, p: np.gradient(x, p, axis=0, edge_order=edge_order), array((4, 2)), np.arange(4) * 0.25)


def test_gradient_in_single_precision_and_errors():
    x = array(5).astype(np.float32)
    value, pullback = cgrad.vjp(lambda x: np.gradient(x, PLACES), x)
    assert bit_identical(value, np.gradient(x, PLACES)) and pullback(value)[0].dtype == np.float32
    for bad in (lambda x: np.gradient(x, 1, 2, 3), lambda x: np.gradient(x, [1, 2, 3], axis=0),
                lambda x: np.gradient(x, edge_order=3), lambda x: np.gradient(x, np.eye(2), axis=0),
                lambda x: np.gradient(x[:, :1], axis=1), lambda x: np.gradient(x, axis=4)):
        with pytest.raises((ValueError, TypeError)):
            cgrad.grad(lambda x: np.sum(bad(x)))(np.eye(2))


def test_trapezoid():
    check(np.trapezoid, array(5))
    check(lambda y: np.trapezoid(y, dx=0.3, axis=0), array((3, 4)))
    check(lambda y, h: np.trapezoid(y, dx=h), array((3, 4)), np.float64(0.3))
    check(lambda y, x: np.trapezoid(y, x), array((2, 5)), PLACES)
    check(lambda y, x: np.trapezoid(y, x, axis=0), array((5, 2)), PLACES)
    check(lambda y, x: np.trapezoid(y, x), array((2, 3)), array((2, 3), 1))
    check(np.trapezoid, array(5, dtype=complex))
    check(lambda x: np.trapezoid([1.0, 2.0, 4.0], x), array(3))
    with pytest.raises(ValueError):
        cgrad.grad(lambda y: np.trapezoid(y, np.ones(3)).sum())(np.ones(4))


# ------------------------------------------------------------------------------------------- interp, unwrap
POINTS = np.array([0.1, 0.7, 1.9, 3.2])


def test_interp():
    x = np.array([[0.2, 1.0, 5.0], [3.1, 0.0, 2.0]])                    # inside, before and after
    check(np.interp, x, POINTS, array(4))
    check(lambda x, p, f: np.interp(x, p, f, left=7.0, right=-3.0), x, POINTS, array(4))
    check(lambda f: np.interp(x, POINTS, f), array(4))
    check(lambda f: np.interp(x, POINTS, f), array(4, dtype=complex))
    check(lambda x: np.interp(x, POINTS, [1, 3, 2, 5]), np.float64(1.0))
    check(lambda x, a, b: np.interp(x, POINTS, [1, 3, 2, 5], a, b), x, np.float64(2.0), np.float64(-2.0))
    check(lambda x, p, f: np.interp(x, p, f, period=2.5), x, np.array([0.1, 2.2, 0.9]), array(3))
    check(lambda x, f: np.interp(x, [0.5], f), x, array(1))


def test_interp_at_its_points():
    """The slope on the right; at the last point that of the last segment. The value there is the ordinate alone."""
    p, f = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 1.0])
    slopes = cgrad.elementwise_grad(lambda x: np.interp(x, p, f), check=False)(np.array([-1.0, 0.0, 1.0, 3.0, 4.0]))
    np.testing.assert_array_equal(slopes, [0, 2, -0.5, -0.5, 0])
    by_ordinates = cgrad.jacobian(lambda f: np.interp(np.array([-1.0, 0.0, 1.0, 3.0, 4.0]), p, f))(f)
    np.testing.assert_array_equal(by_ordinates, np.eye(3)[[0, 0, 1, 2, 2]])


def test_interp_of_a_step_and_of_nan():
    step, f = np.array([0.0, 1.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0, 5.5])
    g = cgrad.grad(lambda f: np.interp(np.array([0.5, 1.0, 1.5]), step, f).sum())(f)
    np.testing.assert_allclose(g, [0.5, 0.5, 1.5, 0.5])
    end = cgrad.vjp(np.interp, np.array([2.0]), np.array([0.0, 2.0, 2.0]), np.array([1.0, 3.0, 5.0]))[1](np.ones(1))
    np.testing.assert_array_equal(np.concatenate(end), [0, 0, 0, 0, 0, 0, 1])
    gx, gf = cgrad.grad(lambda x, f: np.nansum(np.interp(x, POINTS, f)), (0, 1))(np.array([np.nan, 0.4]), np.arange(4.0))
    np.testing.assert_allclose(gx, [0, 1 / 0.6])
    np.testing.assert_allclose(gf, [0.5, 0.5, 0, 0])
    with pytest.raises(ValueError):
        cgrad.grad(lambda f: np.interp(0.5, [0, 1, 2], f))(np.ones(2))


def test_unwrap():
    check(np.unwrap, np.array([0.1, 3.0, -3.0, 0.2, 6.0, 12.0]))
    check(lambda x: np.unwrap(x, axis=0, period=3.0), 4 * array((4, 3)))
    check(lambda x: np.unwrap(x, discont=4.0), 4 * array(6))


def test_apply_along_axis():
    check(lambda x: np.apply_along_axis(np.sum, 0, x), array((3, 2)))
    check(lambda x: np.apply_along_axis(lambda r: np.outer(r, r), 1, x), array((2, 3, 2)))
    check(lambda x: np.apply_along_axis(lambda r, k: r[:2] * r[-1] * k, -1, x, 3), array((2, 3)))
    check(lambda x: np.apply_along_axis(lambda r: r.max(), 0, x), array(4))
    with pytest.raises(ValueError, match="iteration"):
        cgrad.grad(lambda x: np.apply_along_axis(np.sum, 0, x).sum())(np.ones((3, 0)))


# ------------------------------------------------------------------------------------------- sinc, i0
def nth(f, n):
    for _ in range(n):
        f = cgrad.elementwise_grad(f, check=False)
    return f


def test_sinc_to_fourth_order():
    """Near 0 as well, against the power series, and far from it against the closed form."""
    x = np.array([0.0, 1e-9, -1e-4, 0.01, -0.2, 0.49, 0.51, -0.7])
    for n in range(5):
        terms = [(-1)**k * np.pi**(2 * k) * x**(2 * k - n) * special.perm(2 * k, n) / special.factorial(2 * k + 1)
                 for k in range((n + 1) // 2, 25)]
        np.testing.assert_allclose(nth(np.sinc, n)(x), np.sum(terms, 0), rtol=1e-9, atol=1e-8 if n == 4 else 1e-11)
    y = np.array([1.0, -2.5, 7.25, 30.5])
    s, c = np.sin(np.pi * y), np.cos(np.pi * y)
    third = (-np.pi**2 * c / y + 3 * np.pi * s / y**2 + 6 * c / y**3 - 6 * s / (np.pi * y**4))
    np.testing.assert_allclose(nth(np.sinc, 3)(y), third, rtol=1e-10, atol=1e-12)
    check(np.sinc, array(4, dtype=complex))
    assert cgrad.elementwise_grad(np.sinc)(x.astype(np.float32)).dtype == np.float32


def test_i0():
    x = np.array([0.0, 1e-8, -0.5, 3.0, -7.9, 8.5, 20.0])
    i = lambda n: special.iv(n, x)                                             # noqa: E731
    np.testing.assert_allclose(nth(np.i0, 1)(x), i(1), rtol=1e-13)
    np.testing.assert_allclose(nth(np.i0, 2)(x), (i(0) + i(2)) / 2, rtol=1e-13)
    np.testing.assert_allclose(nth(np.i0, 3)(x), (3 * i(1) + i(3)) / 4, rtol=1e-13)
    assert cgrad.grad(cgrad.grad(np.i0))(0.0) == 0.5
    check(np.i0, array((2, 3)))
    with pytest.raises(TypeError):
        cgrad.vjp(np.i0, np.ones(2) * 1j)


# ------------------------------------------------------------------------------------------- polynomials
@pytest.mark.parametrize("dtype", [float, complex])
def test_polyval(dtype):
    check(np.polyval, array(4, 0, dtype), array((2, 3), 1, dtype))
    check(np.polyval, array(1, 0, dtype), array(2, 1, dtype))
    check(np.polyval, array(3), array((), 1, dtype))
    check(lambda x: np.polyval([1, 0, -2], x), array(3, 0, dtype))
    check(lambda p: np.polyval(p, [1.0, 2.0]), array(3, 0, dtype))
    check(lambda p: np.polyval(p[:0], [1.0, 2.0]), array(3))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_polyval_at_a_pole_that_is_masked():
    g = cgrad.grad(lambda p: np.sum(np.where([True, False], np.polyval(p, [2.0, np.inf]), 0)))(np.ones(3))
    np.testing.assert_array_equal(g, [4, 2, 1])


def test_polynomial_arithmetic():
    p, q = array(4), array(2, 1)
    for f in (np.polyadd, np.polysub, np.polymul):
        check(f, p, q)
        check(f, q, p)
        check(lambda x: f(x, [1, 2, 3]), p)
        check(lambda x: f(x, 2.0), p)
    for m in (0, 1, 2, 3):
        check(lambda x: np.polyder(x, m), p)
        check(lambda x: np.polyint(x, m), p)
    check(lambda x, k: np.polyint(x, 2, k), p, array(2, 3))
    check(lambda x, k: np.polyint(x, 2, k), p, array((), 3))
    check(np.poly, p)
    check(np.poly, array(3, 0, complex))
    check(lambda x: np.poly(np.concatenate([x + 1j, x - 1j])), array(2))
    with pytest.raises(ValueError):
        cgrad.grad(lambda x: np.polyint(x, -1).sum())(p)
    with pytest.raises(ValueError):
        cgrad.grad(lambda x: np.polyint(x, 3, [1, 2]).sum())(p)


def test_polynomials_without_a_rule_say_what_to_do():
    with pytest.raises(NotImplementedError, match="eigvals"):
        cgrad.grad(lambda a: np.poly(a).sum())(np.eye(2))
    with pytest.raises(NotImplementedError, match="implicit"):
        cgrad.grad(lambda p: np.roots(p).sum())(np.ones(3))
    with pytest.raises(NotImplementedError, match="numpy.polynomial"):
        cgrad.grad(lambda p: np.polyval(p, 1.0).sum())(np.eye(2))


def test_what_has_no_rule_names_a_way_out():
    with pytest.raises(TypeError, match="cgrad.numpy"):
        cgrad.grad(lambda x: np.vectorize(lambda v: v * v)(x).sum())(np.ones(3))
