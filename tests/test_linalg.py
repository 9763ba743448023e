"""numpy.linalg: equations, inverses, determinants, decompositions; above all where matrices are singular, or eigenvalues equal.

Values, gradients, second order and batches of ordinary calls are tested by tests/test_registry.py on each op's samples.
"""
import numpy as np
import pytest
from support import bit_identical, check, derivative

import cgrad
from cgrad import grad, jacobian, vjp
from cgrad.rules import decompositions

RNG = np.random.default_rng(3)
A = RNG.normal(size=(3, 3)) + 4 * np.eye(3)
B = RNG.normal(size=(3, 2))
C = A + 1j * RNG.normal(size=(3, 3))
TALL, WIDE = RNG.normal(size=(4, 2)), RNG.normal(size=(2, 4))
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
STACK = RNG.normal(size=(2, 3, 3)) + 4 * np.eye(3)


def weighted(seed, z):
    """A real number that every element of z counts in."""
    return np.sum(np.random.default_rng(seed).normal(size=z.shape) * z)


def symmetric(x):
    return (x + x.T) / 2


# ---------------------------------------------------------------------------------------------- equations and inverses
@pytest.mark.parametrize("b", [RNG.normal(size=3), B, RNG.normal(size=(5, 3, 2)), np.ones((3, 0))], ids=lambda b: str(b.shape))
@pytest.mark.parametrize("a", [A, STACK[:, None], A.T, A[::-1, ::-1]], ids=["one", "stack", "transposed", "reversed"])
def test_solve(a, b):
    check(np.linalg.solve, a, b)


def test_solve_by_one_argument():
    w = RNG.normal(size=(3, 2))
    both = vjp(np.linalg.solve, A, B)[1](w)
    assert bit_identical(vjp(lambda a: np.linalg.solve(a, B), A)[1](w)[0], both[0])
    assert bit_identical(vjp(lambda b: np.linalg.solve(A, b), B)[1](w)[0], both[1])


def test_solve_of_a_matrix_by_itself():
    check(lambda a: np.linalg.solve(a, a @ a), A)


def test_what_rules_share_is_right_on_a_persistent_tape():
    with cgrad.GradientTape(persistent=True) as tape:
        a, b = tape.watch(A), tape.watch(B)
        z = np.linalg.solve(a, b)
    for seed in (np.ones((3, 2)), B):
        ga, gb = tape.gradient(z, [a, b], seed)
        np.testing.assert_allclose(gb, np.linalg.solve(A.T, seed), rtol=1e-13)
        np.testing.assert_allclose(ga, -gb @ np.linalg.solve(A, B).T, rtol=1e-13)
        assert np.allclose(tape.gradient(z, b, seed), gb) and np.allclose(tape.gradient(z, a, seed), ga)


def test_inverses():
    check(np.linalg.inv, A)
    check(np.linalg.inv, STACK)
    check(lambda a: np.linalg.matrix_power(a, -2), A)
    check(lambda a: np.linalg.tensorinv(a.reshape(4, 2, 2) + 3 * np.eye(4).reshape(4, 2, 2), ind=1), RNG.normal(size=(4, 4)) / 3)
    check(lambda a, b: np.linalg.tensorsolve(a.reshape(2, 2, 2, 2) + 3 * np.eye(4).reshape(2, 2, 2, 2), b),
          RNG.normal(size=(4, 4)) / 3, RNG.normal(size=(2, 2)))
    check(lambda a, b: np.linalg.tensorsolve(a + 3 * np.eye(4).reshape(2, 2, 4).transpose(0, 2, 1), b, axes=(0,)),
          RNG.normal(size=(2, 4, 2)) / 3, RNG.normal(size=4))


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)], ids=str)
def test_no_matrix_and_no_rows(shape):
    x = np.ones(shape)
    eye = np.eye(shape[-1])
    for f in (lambda a: np.linalg.inv(a + eye), np.linalg.det, lambda a: np.linalg.slogdet(a + eye)[1],
              lambda a: np.linalg.cholesky(a + 9 * eye), lambda a: np.linalg.eigh(a).eigenvectors, np.linalg.eigvalsh,
              lambda a: np.linalg.svd(a)[0], np.linalg.svdvals, lambda a: np.linalg.qr(a + eye)[1], np.linalg.pinv,
              lambda a: np.linalg.solve(a + eye, a)):
        check(f, x)


@pytest.mark.parametrize("a", [A, TALL, WIDE, STACK], ids=lambda a: str(a.shape))
def test_pinv(a):
    check(np.linalg.pinv, a)
    check(lambda a: np.linalg.pinv(a, rtol=1e-10), a)


def test_pinv_of_a_matrix_of_lower_rank():
    """Along matrices of the same rank."""
    check(lambda u, v: np.linalg.pinv(np.outer(u, v), 1e-8), RNG.normal(size=3), RNG.normal(size=2))
    check(lambda u: np.linalg.pinv(np.outer(u, u), 1e-8, hermitian=True), RNG.normal(size=3))


@pytest.mark.parametrize("a, b", [(TALL, RNG.normal(size=4)), (TALL, RNG.normal(size=(4, 3))), (WIDE, RNG.normal(size=(2, 3))),
                                  (A, B)])
def test_lstsq(a, b):
    check(lambda a, b: np.linalg.lstsq(a, b)[0], a, b)
    check(lambda a, b: np.linalg.lstsq(a, b)[1], a, b)
    check(lambda a: np.linalg.lstsq(a, b)[3], a)
    (x, _, rank, _), pullback = vjp(lambda a, b: np.linalg.lstsq(a, b), a, b)
    assert rank == 3 - (a.shape != (3, 3)) and bit_identical(x, np.linalg.lstsq(a, b)[0])


# ---------------------------------------------------------------------------------------------- determinants
@pytest.mark.parametrize("a, right", [
    (SINGULAR, [[4, -2], [-2, 1]]), ([[0]], [[1]]), (np.zeros((2, 2)), np.zeros((2, 2))), (np.zeros((3, 3)), np.zeros((3, 3))),
    (np.diag([2.0, 3.0, 0.0]), np.diag([0, 0, 6])), (np.diag([0.0, 3.0, 0.0]), np.zeros((3, 3))),
    (1e-200 * np.eye(2), 1e-200 * np.eye(2)), (1e-150 * SINGULAR, [[4e-150, -2e-150], [-2e-150, 1e-150]]),
    ([SINGULAR, [[2, 0], [0, 3]]], [[[4, -2], [-2, 1]], [[3, 0], [0, 2]]])])
def test_gradient_of_det_is_the_cofactors(a, right):
    g = grad(lambda a: np.sum(np.linalg.det(a)))(np.asarray(a, float))
    np.testing.assert_allclose(g, right, rtol=1e-12, atol=1e-14 * np.abs(a).max())


def minors(a):
    """Cofactors, each the determinant of what is left."""
    n = len(a)
    return np.array([[(-1)**(i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [float, complex])
def test_det_by_rank(rank, dtype):
    u, v = RNG.normal(size=(2, 4, rank)).astype(dtype)
    if dtype is complex:
        u = u + 1j * RNG.normal(size=u.shape)
    a = u @ v.T
    np.testing.assert_allclose(vjp(np.linalg.det, a)[1](dtype(1))[0], minors(a), rtol=1e-9, atol=1e-12)
    if dtype is float:
        check(np.linalg.det, a)
    else:
        d, e = RNG.normal(size=(2, 4, 4)) + 1j * RNG.normal(size=(2, 4, 4))

        def slope(a):
            return np.real(np.sum(vjp(np.linalg.det, a)[1](1 + 0j)[0] * d))
        np.testing.assert_allclose(np.real(np.sum(grad(slope)(a) * e)), derivative(slope, [a], [e], 1e-3), rtol=1e-7, atol=1e-9)


def test_hessian_of_det_of_a_stack_with_a_singular_matrix():
    a = np.stack([SINGULAR, [[2.0, 1.0], [0.0, 3.0]]])
    h = jacobian(grad(lambda a: np.sum(np.linalg.det(a))))(a)
    for i in (0, 1):
        assert np.allclose(h[i, :, :, i], [[[[0, 0], [0, 1]], [[0, 0], [-1, 0]]], [[[0, -1], [0, 0]], [[1, 0], [0, 0]]]])
        assert not h[i, :, :, 1 - i].any()


def test_third_order_of_det():
    def along(t):
        return np.linalg.det(A + t * np.diag([1.0, 2.0, 3.0]))
    assert np.isclose(grad(grad(grad(along)))(0.0), 6 * 6)
    with pytest.raises(NotImplementedError, match="singular"):
        grad(grad(grad(lambda t: np.linalg.det(t * np.diag([1.0, 2.0, 3.0])))))(0.0)


def test_det_of_an_ill_conditioned_matrix():
    n = np.arange(1, 7)
    a = 1 / (n[:, None] + n - 1)                    # Hilbert's
    exact = np.linalg.det(a) * np.linalg.inv(a).T
    assert np.abs(grad(np.linalg.det)(a) - exact).max() < 1e-9 * np.abs(exact).max()
    assert np.abs(grad(np.linalg.det)(a) - minors(a)).max() < 1e-10 * np.abs(exact).max()


def test_slogdet():
    a = np.array([[0.0, 1.0], [2.0, 0.0]])
    sign, logabsdet = np.linalg.slogdet(a)
    (got, log), pullback = vjp(lambda a: tuple(np.linalg.slogdet(a)), a)
    assert got == sign == -1 and log == logabsdet
    assert np.allclose(pullback((np.float64(5), np.float64(1)))[0], [[0, 1], [0.5, 0]])
    check(lambda a: np.linalg.slogdet(a).logabsdet, STACK)
    check(lambda a: np.linalg.slogdet(a).sign * np.linalg.slogdet(a)[1], C)
    big = RNG.normal(size=(40, 40))
    np.testing.assert_allclose(grad(lambda a: np.linalg.slogdet(a)[1])(big), np.linalg.inv(big).T, rtol=1e-9, atol=1e-12)


def test_logarithm_of_a_determinant_of_zero_has_no_slope():
    g = grad(lambda a: np.sum(np.linalg.slogdet(a)[1]))(np.stack([np.zeros((2, 2)), np.eye(2)]))
    assert np.isnan(g[0]).all() and np.array_equal(g[1], np.eye(2))


@pytest.mark.parametrize("f", [
    np.linalg.det, lambda a: np.linalg.slogdet(a)[1], lambda a: np.linalg.inv(a)[:, 0, 0], np.linalg.eigvalsh,
    lambda a: np.linalg.eigh(a)[1][:, :, 0], lambda a: np.linalg.cholesky(a)[:, 0, 0], lambda a: np.linalg.solve(a, a)[:, 0, 0],
    lambda a: np.linalg.qr(a)[1][:, 0, 0]])
def test_a_masked_matrix_that_is_not_a_number_stays_away(f):
    a = np.stack([np.full((2, 2), np.nan), np.array([[2.0, 0.0], [0.0, 3.0]])])

    def fun(a):
        z = f(a)
        return np.sum(np.where(np.array([False, True]).reshape((2,) + (1,) * (z.ndim - 1)), z, 0))
    with np.errstate(all="ignore"):
        try:
            g = grad(fun)(a)
        except np.linalg.LinAlgError:
            pytest.skip("NumPy refuses it")
    assert not g[0].any() and np.isfinite(g).all()


# ---------------------------------------------------------------------------------------------- Cholesky
def test_cholesky():
    s = A @ A.T
    for upper in (False, True):
        check(lambda a: np.linalg.cholesky(symmetric(a), upper=upper), s)
    check(lambda a: np.linalg.cholesky(np.matmul(a, np.swapaxes(a, -1, -2))), STACK)
    g = grad(lambda a: np.linalg.cholesky(a)[1, 0])(np.array([[4.0, 2.0], [2.0, 5.0]]))
    assert np.allclose(g, [[-0.125, 0.25], [0.25, 0]])


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_large_matrices_take_the_way_of_scipy(dtype, monkeypatch):
    a = RNG.normal(size=(20, 20)) + (1j * RNG.normal(size=(20, 20)) if dtype in "FD" else 0)
    s = (a @ a.conj().T / 20 + np.eye(20)).astype(dtype)
    w = np.tril(a).astype(dtype)
    fast = [vjp(np.linalg.cholesky, s)[1](w)[0], decompositions.inverse(s)]
    monkeypatch.setattr(decompositions, "BLAS_SIZE", 100)
    for got, right in zip(fast, [vjp(np.linalg.cholesky, s)[1](w)[0], decompositions.inverse(s)]):
        assert got.dtype == right.dtype == dtype
        np.testing.assert_allclose(got, right, rtol=0, atol=(1e-4 if dtype in "fF" else 1e-12) * np.abs(right).max())


def test_cholesky_of_a_large_matrix():
    a = RNG.normal(size=(17, 17))
    check(lambda a: np.linalg.cholesky(a @ a.T + 20 * np.eye(17)), a, batched=False)


# ---------------------------------------------------------------------------------------------- eigenvalues
def test_eigenvalues():
    s = symmetric(A)
    for uplo in "LU":
        check(lambda a: np.linalg.eigh(symmetric(a), uplo).eigenvectors**2, s)
        check(lambda a: np.linalg.eigvalsh(symmetric(a), uplo), s)
    check(lambda a: np.linalg.eigh(a + np.swapaxes(a, -1, -2)).eigenvalues, STACK)
    check(lambda a: np.linalg.eigvals(a).real, np.diag([1.0, 4.0, 9.0]) + 0.3 * RNG.normal(size=(3, 3)))
    turning = np.array([[0.1, -2.0, 0.0], [2.0, 0.3, 0.2], [0.1, 0.0, 3.0]])
    check(lambda a: np.abs(np.linalg.eig(a)[1])**2, turning)
    check(lambda a: np.linalg.eigvals(a), turning)


def test_gradient_by_a_symmetric_matrix_is_symmetric():
    s = symmetric(A)
    for f in (lambda a: np.linalg.eigvalsh(a)[0], lambda a: np.linalg.eigh(a)[1][0, 1]**2):
        g = grad(f)(s)
        assert np.allclose(g, g.T)
    g = grad(lambda a: np.linalg.eigvalsh(a)[0])(s)
    v = np.linalg.eigh(s)[1][:, 0]
    assert np.allclose(g, np.outer(v, v))


def matrix_function(f):
    def apply(a):
        w, v = np.linalg.eigh(a)
        return (v * f(w)) @ v.T
    return apply


# functions of the matrix [[2, 0], [0, 2]] and their gradients by weights b: f'(2) b
@pytest.mark.parametrize("f, slope", [(np.square, 4), (np.sqrt, 0.5 / np.sqrt(2)), (np.log, 0.5), (lambda w: 1 / w, -0.25),
                                      (lambda w: w**-0.5, -0.5 * 2**-1.5)])
@pytest.mark.parametrize("rotated", [False, True])
def test_a_function_of_a_matrix_with_equal_eigenvalues(f, slope, rotated):
    b = symmetric(RNG.normal(size=(3, 3)) + np.eye(3))
    a = np.diag([2.0, 2.0, 2.0])
    if rotated:                                     # equal but for rounding
        q = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
        a = symmetric(q @ a @ q.T)
    assert np.allclose(grad(lambda a: np.sum(b * matrix_function(f)(a)))(a), slope * b)
    # next to one of the eigenvalues alone
    g = grad(lambda a: np.sum(b * matrix_function(f)(a)) + np.sum(np.linalg.eigvalsh(a)**2))(a)
    assert np.allclose(g, slope * b + 4 * np.eye(3))

    def both(a):
        w, v = np.linalg.eigh(a)
        return np.sum(b * ((v * f(w)) @ v.T)) + np.sum(np.log(w))
    assert np.allclose(grad(both)(a), slope * b + 0.5 * np.eye(3))


def test_two_of_three_eigenvalues_equal():
    q = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    a = symmetric(q @ np.diag([1.0, 1.0, 3.0]) @ q.T)
    d = symmetric(RNG.normal(size=(3, 3)))

    def value(a):
        return weighted(1, matrix_function(np.exp)(a))
    assert np.isclose(np.sum(grad(value)(a) * d), derivative(value, [a], [d], 1e-3), rtol=1e-8)


def test_projection_on_a_space_of_equal_eigenvalues():
    """It does not change within the space."""
    q = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
    a = symmetric(q @ np.diag([1.0, 1.0, 3.0, 4.0]) @ q.T)
    d = symmetric(RNG.normal(size=(4, 4)))

    def value(a):
        v = np.linalg.eigh(a)[1][:, :2]
        return weighted(2, v @ v.T)
    assert np.isclose(np.sum(grad(value)(a) * d), derivative(value, [a], [d], 1e-3), rtol=1e-8)


def test_sum_of_equal_eigenvalues():
    for f in (np.linalg.eigvalsh, lambda a: np.linalg.eigh(a)[0], lambda a: np.linalg.svd(a, compute_uv=False), np.linalg.svdvals,
              lambda a: np.linalg.svd(a)[1]):
        assert np.allclose(grad(lambda a: np.sum(f(a)))(np.eye(3)), np.eye(3))
    assert np.allclose(jacobian(grad(lambda a: np.sum(np.linalg.eigvalsh(a))))(np.eye(2)), 0)


def test_what_adjoints_do_not_tell_is_not_a_number():
    """Two functions of a matrix with different weights; a weight off the diagonal alone. NaN, not a wrong number."""
    b, c = (symmetric(RNG.normal(size=(3, 3))) for _ in range(2))

    def two(a):
        w, v = np.linalg.eigh(a)
        return np.sum(b * ((v * np.exp(w)) @ v.T)) + np.sum(c * ((v * np.sqrt(w)) @ v.T))
    for f in (two, lambda a: matrix_function(np.exp)(a)[0, 1]):
        assert np.isnan(grad(f)(np.eye(3))).any()
        check(lambda a: f(symmetric(a)), symmetric(A) + np.diag([4.0, 8.0, 12.0]))


# ---------------------------------------------------------------------------------------------- singular values
@pytest.mark.parametrize("a", [A, TALL, WIDE, STACK], ids=lambda a: str(a.shape))
def test_svd(a):
    check(np.linalg.svdvals, a)
    check(lambda a: np.linalg.svd(a, compute_uv=False), a)

    def recombined(a):
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        return (u * np.log(s)[..., None, :]) @ vh
    check(recombined, a)
    check(lambda a: np.linalg.svd(a, full_matrices=False).U**2, a)
    check(lambda a: np.linalg.svd(a, full_matrices=False).Vh**2, a)


def test_svd_recombined_is_the_matrix():
    for a in (np.eye(3), np.diag([1.0, 1.0, 2.0]), np.linalg.qr(RNG.normal(size=(4, 2)))[0], np.linalg.qr(A)[0] * 3):
        w = RNG.normal(size=a.shape) + np.eye(*a.shape)

        def value(a):
            u, s, vh = np.linalg.svd(a, full_matrices=False)
            return np.sum(w * ((u * s) @ vh))
        assert np.allclose(grad(value)(a), w)


def test_svd_with_all_vectors():
    u, s, vh = np.linalg.svd(TALL)
    got, pullback = vjp(lambda a: tuple(np.linalg.svd(a)), TALL)
    assert all(bit_identical(a, b) for a, b in zip(got, (u, s, vh)))
    check(lambda a: np.linalg.svd(a)[1], TALL)
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        grad(lambda a: np.sum(np.linalg.svd(a)[0]**4))(TALL)
    check(lambda a: np.linalg.svd(a)[0]**2, A)


def test_svd_of_a_symmetric_matrix():
    s = symmetric(RNG.normal(size=(3, 3)))
    check(lambda a: np.linalg.svd(symmetric(a), hermitian=True)[0]**2, s)
    check(lambda a: np.linalg.svd(symmetric(a), compute_uv=False, hermitian=True), s)


def test_singular_value_of_zero_is_a_kink():
    g = grad(lambda a: np.sum(np.linalg.svdvals(a)))(SINGULAR)
    assert np.allclose(g, SINGULAR / 5)


# ---------------------------------------------------------------------------------------------- QR
@pytest.mark.parametrize("a", [A, TALL, WIDE, STACK], ids=lambda a: str(a.shape))
def test_qr(a):
    check(lambda a: np.linalg.qr(a).Q, a)
    check(lambda a: np.linalg.qr(a).R, a)
    check(lambda a: np.linalg.qr(a, mode="r"), a)
    check(lambda a: np.matmul(*np.linalg.qr(a)), a)


def test_qr_with_all_columns():
    check(lambda a: np.linalg.qr(a, mode="complete")[0], WIDE)
    got, _ = vjp(lambda a: tuple(np.linalg.qr(a, mode="complete")), TALL)
    assert all(bit_identical(x, y) for x, y in zip(got, np.linalg.qr(TALL, mode="complete")))
    with pytest.raises(NotImplementedError, match="mode='reduced'"):
        grad(lambda a: np.sum(np.linalg.qr(a, mode="complete")[0]**4))(TALL)
    with pytest.raises(NotImplementedError, match="mode='reduced'"):
        grad(lambda a: np.sum(np.linalg.qr(a, mode="raw")[0]))(TALL)


# ---------------------------------------------------------------------------------------------- numbers
@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro"])
def test_cond(p):
    check(lambda a: np.linalg.cond(a, p), A)
    check(lambda a: np.linalg.cond(a, p), STACK)


def test_cond_of_a_singular_matrix():
    assert vjp(np.linalg.cond, np.zeros((2, 2)))[0] == np.inf
    check(np.linalg.cond, TALL)


def test_rank_is_plain():
    assert grad(lambda a: np.sum(a) * np.linalg.matrix_rank(a))(A)[0, 0] == 3


def test_single_precision_and_mixed_dtypes():
    a, b = A.astype("f"), B
    ga, gb = vjp(np.linalg.solve, a, b)[1](np.ones((3, 2)))
    assert ga.dtype == "f" and gb.dtype == "d"
    ga, gb = vjp(np.linalg.solve, A, B + 1j)[1](np.ones((3, 2), complex))
    assert ga.dtype == "d" and gb.dtype == "D"
    for f in (np.linalg.det, lambda a: np.linalg.eigh(a)[0][0], lambda a: np.linalg.svd(a)[1][0],
              lambda a: np.linalg.qr(a)[1][0, 0]):
        assert grad(f)(a).dtype == "f"


def test_numpys_errors_come_through():
    for f in (lambda a: np.linalg.inv(a * 0), lambda a: np.linalg.inv(a[:2]), lambda a: np.linalg.cholesky(-a @ a.T),
              lambda a: np.linalg.tensorsolve(a[:2], a[0]), lambda a: np.linalg.solve(a[:2], a[:2])):
        with pytest.raises(np.linalg.LinAlgError):
            vjp(f, A)
    with pytest.raises(ValueError):
        vjp(lambda a: np.linalg.tensorinv(a, ind=0), A)
