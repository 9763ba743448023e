"""Products: matmul and its relatives, contractions, einsum, cross, kron, chains, convolution, covariance.

The registry's generic tests call every op; here are the golden matmul records, and the forms, shapes and special cases of each
function.
"""
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import bit_identical, check

import cgrad

RECORDS = json.loads((Path(__file__).parent / "data" / "seeds_c.json").read_text(encoding="utf-8"))["records"]
GOLDEN = [r for r in RECORDS if r["name"].startswith("c/matmul/")]
BAD = [r for r in RECORDS if r["name"].startswith("c/bad_shape/tf.experimental")]


def array(shape, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    a = rng.uniform(-2, 2, shape)
    return a + 1j * rng.uniform(-2, 2, shape) if dtype is complex else a


def arrays(*shapes, dtype=float):
    return [array(s, i, dtype) for i, s in enumerate(shapes)]


def read(a):
    return np.array(a["data"], a["dtype"]).reshape(a["shape"])


# ------------------------------------------------------------------------------------------- matmul, golden
@pytest.mark.parametrize("record", GOLDEN, ids=lambda r: r["name"])
def test_matmul_golden(record):
    x, y, seed = (read(record["inputs"][k]) for k in ("x", "y", "adjoint"))
    args = record["args"]

    def product(x, y):
        x = np.swapaxes(x, -1, -2) if args.get("transpose_a") or args.get("adjoint_a") else x
        y = np.swapaxes(y, -1, -2) if args.get("transpose_b") or args.get("adjoint_b") else y
        return x @ y
    z, pullback = cgrad.vjp(product, x, y)
    rtol, atol = record["tol"]
    np.testing.assert_allclose(z, read(record["value"]), rtol, atol)
    for got, want in zip(pullback(seed if seed.ndim else seed[()]), (record["grad"]["x"], record["grad"]["y"])):
        want = read(want)
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol, atol)


def test_golden_matmul_covers_30_pairs_in_both_dtypes():
    plain = {r["name"].rsplit("/", 1)[0] for r in GOLDEN if "transpose" not in r["name"] and "adjoint_" not in r["name"]}
    assert len(plain) == 30 and len(GOLDEN) == 70


@pytest.mark.parametrize("record", [r for r in RECORDS if "/xyz/" in r["name"] or "last_two_axes" in r["name"]],
                         ids=lambda r: r["name"])
def test_matmul_chain_of_the_seed(record):
    given = {k: read(v) for k, v in record["inputs"].items()}
    rtol, atol = record["tol"]
    value, pullback = cgrad.vjp(lambda x, y, z: x @ y @ z, *(given[k] for k in "xyz"))
    np.testing.assert_allclose(value, read(record["value"]), rtol, atol)
    for k, g in zip("xyz", pullback(np.ones_like(value))):
        np.testing.assert_allclose(g, read(record["grad"][k]), rtol, atol)


@pytest.mark.parametrize("record", BAD, ids=lambda r: r["name"])
def test_matmul_bad_shapes(record):
    x, y = np.ones(record["args"]["x_shape"]), np.ones(record["args"]["y_shape"])
    if record["raises"] is None:
        assert list(np.shape(cgrad.vjp(np.matmul, x, y)[0])) == record["result_shape"]
    else:
        with pytest.raises(ValueError):
            cgrad.vjp(np.matmul, x, y)


# ------------------------------------------------------------------------------------------- matmul, forms
@pytest.mark.parametrize("shapes", [((3, 4), (4,)), ((4,), (2, 4, 3)), ((5, 3, 4), (4,)), ((2, 3, 4), (4, 2)),
                                    ((2, 1, 3, 4), (3, 4, 2)), ((4,), (4,)), ((2, 0), (0, 3)), ((0, 2, 3), (3, 2)),
                                    ((2, 3, 4), (1, 4, 2))], ids=str)
@pytest.mark.parametrize("dtype", [float, complex])
def test_matmul_shapes(shapes, dtype):
    check(lambda x, y: x @ y, *arrays(*shapes, dtype=dtype))


def test_matmul_of_a_value_with_itself_and_of_transposes():
    check(lambda x: x @ x.T @ x, array((2, 3)))
    check(lambda x, y: x.T @ y[::2].T, *arrays((3, 2), (4, 3)))


def test_matmul_of_mixed_dtypes():
    check(lambda x: x @ np.arange(6).reshape(3, 2), array((2, 3)))
    check(lambda x: x @ array((3, 2), 1, complex), array((2, 3)))
    check(lambda x: [[1, 2], [3, 4.5]] @ x, array((2, 3)))
    check(lambda x: np.matmul(x, [1.0, 2.0]), array((3, 2)))
    x, y = array((2, 3)).astype(np.float32), array((3, 2))
    gx, gy = cgrad.grad(lambda x, y: np.sum(x @ y), (0, 1))(x, y)
    assert gx.dtype == np.float32 and gy.dtype == np.float64
    np.testing.assert_allclose(gx, np.broadcast_to(y.sum(1), (2, 3)), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_matmul_of_other_precisions(dtype):
    x, y = array((2, 3)).astype(dtype), array((3, 2)).astype(dtype)
    g = cgrad.grad(lambda x: np.sum(x @ y))(x)
    assert g.dtype == dtype
    np.testing.assert_allclose(g.astype(float), np.broadcast_to(y.sum(1), (2, 3)).astype(float), rtol=1e-2)


def test_matmul_keywords():
    x, y = arrays((4, 3, 2), (4, 2, 5))
    check(lambda x, y: np.matmul(x, y, axes=[(1, 2), (1, 2), (2, 1)]), x, y)
    check(lambda x, y: np.matmul(x, y, axes=[(0, 1), 0, 0]), array((3, 2, 4)), array((2,)))
    check(lambda x, y: np.matmul(x, y, dtype=complex), x, y)
    check(lambda x, y: np.linalg.matmul(x, y), x, y)
    with pytest.raises(TypeError):
        cgrad.grad(lambda x: np.matmul(x, y, keepdims=True).sum())(x)
    with pytest.raises(TypeError):
        cgrad.grad(lambda x: np.matmul(x, y, nonsense=True).sum())(x)


def test_matmul_in_place_and_out():
    def f(x, y):
        z = x * 1
        z @= y
        return z * z
    check(f, *arrays((3, 3), (3, 3)))

    def g(x, y):
        out = np.zeros_like(x)
        assert np.matmul(x, y, out=out) is out
        return out * out
    check(g, *arrays((3, 3), (3, 3)))
    with pytest.raises(TypeError, match="zeros_like"):
        cgrad.grad(lambda x: np.matmul(x, x, out=np.zeros((3, 3))).sum())(np.eye(3))


def test_matmul_batched_seeds_of_both_operands():
    """A whole Jacobian in one sweep: A @ x with a matrix of seeds gives one matrix for each."""
    a, x = arrays((3, 4), (4,))
    ja, jx = cgrad.jacobian(np.matmul, (0, 1))(a, x)
    np.testing.assert_allclose(ja, np.einsum("im,n->imn", np.eye(3), x))
    np.testing.assert_allclose(jx, a)


def test_hessian_of_a_quadratic_form():
    a, x = arrays((4, 4), (4,))
    hessian = cgrad.jacobian(cgrad.grad(lambda x: x @ a @ x))(x)
    np.testing.assert_allclose(hessian, a + a.T, rtol=1e-13)


def test_second_order_through_a_shared_operand():
    check(lambda x, w: np.tanh(np.tanh(x @ w) @ w), *arrays((3, 2, 2), (2, 2)))


# ------------------------------------------------------------------------------------------- strong zeros
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_masked_rows_do_not_poison_the_gradient(bad):
    """Rows of data that are missing and left out of the loss leave the gradient of the weights alone."""
    data, y, w = array((6, 3)), array(6, 1), array(3, 2)
    missing = np.array([0, 1, 0, 0, 1, 0], bool)
    holed = np.where(missing[:, None], bad, data)
    with np.errstate(all="ignore"):
        for product in (np.matmul, np.dot, lambda a, b: np.einsum("ij,j->i", a, b), lambda a, b: np.tensordot(a, b, 1),
                        np.inner, lambda a, b: np.vecdot(a, b)):
            loss = lambda w: np.sum(np.where(missing, 0, (product(holed, w) - y)**2))          # noqa: E731
            right = 2 * (data[~missing] @ w - y[~missing]) @ data[~missing]
            np.testing.assert_allclose(cgrad.grad(loss)(w), right, rtol=1e-12)
            hessian = cgrad.jacobian(cgrad.grad(loss))(w)
            np.testing.assert_allclose(hessian, 2 * data[~missing].T @ data[~missing], rtol=1e-12)


def test_what_is_used_and_not_finite_stays_so():
    g = cgrad.grad(lambda w: np.sum(np.array([[1.0, np.inf], [2.0, 3.0]]) @ w))(np.ones(2))
    assert g[0] == 3 and not np.isfinite(g[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.float16, np.longdouble])
@pytest.mark.parametrize("n", [1, 8, 37])
def test_all_finite(dtype, n):
    from cgrad._blas import all_finite
    a = array(n).astype(dtype)
    assert all_finite(a) and all_finite(a[::-1]) and all_finite(a[:0]) and all_finite(np.arange(n))
    for place in {0, n // 2, n - 1}:
        for bad in (np.nan, np.inf, -np.inf):
            b = a.copy()
            b[place] = bad
            assert not all_finite(b) and not all_finite(b[::-1])


# ------------------------------------------------------------------------------------------- vectors
@pytest.mark.parametrize("dtype", [float, complex])
def test_vector_ufuncs(dtype):
    check(np.vecdot, *arrays((2, 3), (3,), dtype=dtype))
    check(lambda x, y: np.vecdot(x, y, axis=0), *arrays((3, 2), (3, 2), dtype=dtype))
    check(lambda x, y: np.vecdot(x, y, axis=0, keepdims=True), *arrays((3, 2), (3, 2)))
    check(lambda x, y: np.vecdot(x, y, axes=[0, 1, ()]), *arrays((3, 2), (2, 3)))
    check(lambda x, y: np.linalg.vecdot(x, y, axis=0), *arrays((3, 2), (3, 2), dtype=dtype))
    if hasattr(np, "matvec"):
        check(np.matvec, *arrays((2, 3), (4, 3), dtype=dtype))
        check(np.matvec, *arrays((4, 2, 3), (3,), dtype=dtype))
        check(np.vecmat, *arrays((4, 3), (3, 2), dtype=dtype))
        check(np.vecmat, *arrays((3,), (4, 3, 2), dtype=dtype))


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((3, 2), (2, 3)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3, 2), (4, 2, 3)),
                                    ((2,), (3, 2, 2)), ((), (3, 2)), ((3,), ()), ((), ())], ids=str)
def test_dot(shapes):
    check(np.dot, *arrays(*shapes))
    if shapes[0]:
        check(lambda x, y: x.dot(y), *arrays(*shapes))


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 2, 3)), ((), (3, 2)), ((2,), ())], ids=str)
def test_inner(shapes):
    check(np.inner, *arrays(*shapes))


@pytest.mark.parametrize("dtype", [float, complex])
def test_vdot_and_outer(dtype):
    check(np.vdot, *arrays((4,), (4,), dtype=dtype))
    check(np.vdot, *arrays((2, 3), (3, 2), dtype=dtype))
    check(np.vdot, *arrays((), (), dtype=dtype))
    check(np.outer, *arrays((3,), (2,), dtype=dtype))
    check(np.outer, *arrays((2, 2), (), dtype=dtype))
    check(np.linalg.outer, *arrays((3,), (2,), dtype=dtype))
    with pytest.raises(ValueError):
        cgrad.grad(lambda x: np.linalg.outer(x, x).sum())(np.eye(2))


def test_dot_with_out():
    def f(x, y):
        out = np.zeros_like(x)
        np.dot(x, y, out)
        return out * out
    check(f, *arrays((2, 2), (2, 2)))
    check(lambda x, y: np.outer(x, y, out=np.zeros_like(x[:, None] * y)), *arrays((3,), (2,)))


@pytest.mark.parametrize("shapes, axes", [
    (((2, 3), (3, 4)), 1), (((2, 3, 4), (3, 4, 2)), 2), (((2, 3), (4,)), 0), (((2, 3), (3, 2)), ((0, 1), (1, 0))),
    (((), (2,)), 0), (((2, 3, 4), (4, 5, 2)), ((-1, 0), (0, 2))), (((2, 3), (2, 4)), (0, 0)), (((2, 3), (4, 3)), (-1, [1])),
    (((0, 3), (3, 2)), 1), (((2, 0), (0, 2)), 1)], ids=str)
def test_tensordot(shapes, axes):
    check(lambda x, y: np.tensordot(x, y, axes), *arrays(*shapes))
    check(lambda x, y: np.linalg.tensordot(x, y, axes=axes), *arrays(*shapes))


def test_tensordot_complex_and_bad_axes():
    check(lambda x, y: np.tensordot(x, y, ((0,), (1,))), *arrays((2, 3), (2, 2), dtype=complex))
    with pytest.raises(ValueError):
        cgrad.grad(lambda x: np.tensordot(x, x, ((0, 0), (0, 0))).sum())(np.eye(2))


# ------------------------------------------------------------------------------------------- einsum
EINSUMS = [
    "ij,jk->ik : 2x3 3x4", "ij,jk : 2x3 3x4", "ba,cb : 2x3 4x2", "i,i-> : 3 3", "i,j->ij : 2 3", "ij,ij->ij : 2x3 2x3",
    "ij->ji : 2x3", "ij-> : 2x3", "ij->i : 2x3", "ii->i : 3x3", "ii : 3x3", "iij->ji : 2x2x3", "iji->j : 2x3x2",
    "iii->i : 2x2x2", "ii,i->i : 3x3 3", "ij,jj->i : 2x3 3x3", "ii,jj->ij : 2x2 3x3", "...ij,...jk->...ik : 2x2x3 3x2",
    "...ij,...jk : 2x1x2x3 2x3x2", "i...,i...->... : 2x3 2x3", "...,... : 2x3 3", "i...j->j... : 2x3x2",
    "...ii->...i : 2x3x3", "...i->... : 2x3", "i,i-> : 3 1", "ij,ij->i : 2x1 2x3", "ij,jk->ik : 2x1 3x4",
    "ij,ij->ij : 1x3 2x3", "ij,k->i : 2x3 4", "ij,kl-> : 2x3 2x2", ",ij->ij : - 2x2", ", : - -",
    " i j , j -> i  : 2x3 3", "ij,jk,kl->il : 2x3 3x2 2x2", "ij,jk,k->i : 2x3 3x2 2", "i,i,i->i : 3 3 3",
    "i,i,i,i-> : 3 3 3 3", "bij,bjk,bk->bi : 2x2x3 2x3x2 2x2", "ii,ij,...j->...i : 2x2 2x3 2x3", "Ab,bC->CA : 2x3 3x2",
    "ij,jk->ik : 0x3 3x2", "ij,jk->ik : 2x0 0x2", "ijk,jil->kl : 2x3x4 3x2x2",
]
LARGE_EINSUMS = [
    "ij,jk->ik : 30x40 40x20", "bij,bjk->bik : 6x20x15 6x15x12", "bhqd,bhkd->bhqk : 2x3x12x16 2x3x14x16",
    "...ij,jk->...ik : 2x5x20x15 15x12", "ijk,kjl->il : 10x12x14 14x12x9", "ij,jk,kl->il : 20x30 30x25 25x20",
    "i,ij,j-> : 50 50x60 60", "bi,bi->b : 200x100 200x100", "ijk,jk->i : 20x20x30 20x30", "ij,kj-> : 60x20 50x20",
    "aij,bij->ab : 5x30x20 6x30x20",
]


def parsed(case):
    """Subscripts and shapes of a line like "ij,jk->ik : 2x3 3x4"; - is a number."""
    call, shapes = case.rsplit(" : ", 1)
    return call, [() if shape == "-" else tuple(map(int, shape.split("x"))) for shape in shapes.split()]


@pytest.mark.parametrize("case", EINSUMS)
def test_einsum(case):
    call, shapes = parsed(case)
    check(lambda *xs: np.einsum(call, *xs), *arrays(*shapes))


def test_einsum_other_forms():
    check(lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [0, 2]), *arrays((2, 3), (3, 2)))
    check(lambda x, y: np.einsum(x, [0, 1], y, [1, 2]), *arrays((2, 3), (3, 2)))
    check(lambda x, y: np.einsum(x, [..., 30], y, [30, 2], [..., 2]), *arrays((2, 3), (3, 2)))
    check(lambda x, y, z: np.einsum("ij,jk,kl", x, y, z, optimize=True), *arrays((2, 3), (3, 2), (2, 2)))
    path = ["einsum_path", (1, 2), (0, 1)]
    check(lambda x, y, z: np.einsum("ij,jk,kl", x, y, z, optimize=path), *arrays((2, 3), (3, 2), (2, 2)))
    check(lambda x, y: np.einsum("ij,jk", x, y, dtype=complex), *arrays((2, 3), (3, 2)))
    check(lambda x, y: np.einsum("ij,jk->ki", x, y), *arrays((2, 3), (3, 2), dtype=complex))
    check(lambda x: np.einsum("ij,j->i", x, [1, 2, 3]), array((2, 3)))
    check(lambda x: np.einsum("ij,ij->", x, x), array((2, 3)))


def test_einsum_path_is_plain():
    def f(x):
        path, _ = np.einsum_path("ij,jk,k", x, x, x[0])
        return np.einsum("ij,jk,k", x, x, x[0], optimize=path)
    check(f, array((2, 2)))


def test_einsum_out_and_errors():
    def f(x, y):
        out = np.zeros_like(x)
        np.einsum("ij,jk->ik", x, y, out=out)
        return out * out
    check(f, *arrays((2, 2), (2, 2)))
    with pytest.raises(ValueError):
        cgrad.grad(lambda x: np.einsum("ij,jk->il", x, x).sum())(np.eye(2))


@pytest.mark.parametrize("case", LARGE_EINSUMS)
def test_large_einsum_goes_to_blas(case):
    """The same adjoints by matrix products: against einsum itself, with single and batched seeds, and in a recorded sweep."""
    call, shapes = parsed(case)
    xs = arrays(*shapes)
    z, pullback = cgrad.vjp(lambda *xs: np.einsum(call, *xs), *xs)
    assert bit_identical(z, np.einsum(call, *xs))
    seed = array(z.shape, 9)
    inputs, output = call.replace("...", "xy").split("->")
    terms = inputs.split(",")
    right = []
    for i, x in enumerate(xs):
        # ones bring in the labels that only this operand has
        others = [t for j, t in enumerate(terms) if j != i] + [terms[i]]
        arguments = [seed, *(y for j, y in enumerate(xs) if j != i), np.ones_like(x)]
        right.append(np.einsum(f"{output},{','.join(others)}->{terms[i]}", *arguments))
    seed = seed if seed.ndim else seed[()]
    for got, want in zip(pullback(seed), right):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)

    def by_seed(s):
        return sum(np.sum(g * x) for g, x in zip(cgrad.vjp(lambda *xs: np.einsum(call, *xs), *xs)[1](s), xs))
    again = cgrad.grad(by_seed)(seed)
    np.testing.assert_allclose(again, len(xs) * z, rtol=1e-10)
    if z.size and z.size < 100:
        jacobian = cgrad.jacobian(lambda x: np.einsum(call, x, *xs[1:]))(xs[0])
        np.testing.assert_allclose(np.tensordot(seed, jacobian, z.ndim), right[0], rtol=1e-10, atol=1e-10)


def test_writing_to_views_of_einsum():
    """A transpose can be written to; NumPy's diagonal view too, which is refused here and never lost silently."""
    def f(x):
        y = x * 1
        np.einsum("ij->ji", y)[0] = 5.0
        return y * y
    check(f, array((2, 3)))

    def g(x):
        y = x * 1
        np.einsum("ii->i", y)[:] = 1.0
        return y.sum()
    with pytest.raises(ValueError, match="read-only"):
        cgrad.grad(g)(np.eye(3))


# ------------------------------------------------------------------------------------------- kron, cross
@pytest.mark.parametrize("shapes", [((2,), (3,)), ((2, 3), (2, 2)), ((2,), (2, 3)), ((2, 1, 2), (3,)), ((), (2, 2)),
                                    ((3,), ()), ((), ()), ((0, 2), (2, 2))], ids=str)
def test_kron(shapes):
    check(np.kron, *arrays(*shapes))


def test_kron_complex_and_noncontiguous():
    check(np.kron, *arrays((2, 2), (2, 3), dtype=complex))
    check(lambda x, y: np.kron(x.T, y[::2]), *arrays((3, 2), (4, 2)))
    check(lambda x: np.kron([[1, 2]], x), array((2, 2)))


@pytest.mark.parametrize("shapes, axes", [
    (((3,), (3,)), {}), (((4, 3), (3,)), {}), (((2, 1, 3), (4, 3)), {}), (((3, 4), (3, 4)), dict(axis=0)),
    (((3, 4), (4, 3)), dict(axisa=0, axisb=1, axisc=0)), (((2, 3), (5, 1, 3)), dict(axisc=1)),
    (((2,), (2,)), {}), (((4, 2), (2,)), {}), (((2,), (3,)), {}), (((4, 3), (2,)), {}),
    (((2, 4), (4, 3)), dict(axisa=0, axisc=0))], ids=str)
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
def test_cross(shapes, axes):
    try:
        np.cross(*arrays(*shapes), **axes)
    except ValueError:                              # NumPy 2.5 has no 2-vectors any more
        with pytest.raises(ValueError):
            cgrad.vjp(lambda x, y: np.cross(x, y, **axes), *arrays(*shapes))
        return
    check(lambda x, y: np.cross(x, y, **axes), *arrays(*shapes))


def test_cross_of_linalg():
    check(np.linalg.cross, *arrays((2, 3), (3,), dtype=complex))
    check(lambda x, y: np.linalg.cross(x, y, axis=0), *arrays((3, 2), (3, 2)))
    with pytest.raises(ValueError):
        cgrad.grad(lambda x: np.linalg.cross(x, x).sum())(np.ones(2))


# ------------------------------------------------------------------------------------------- chains and powers
@pytest.mark.parametrize("shapes", [((2, 3), (3, 4)), ((2, 3), (3, 4), (4, 2)), ((10, 2), (2, 10), (10, 2)),
                                    ((3,), (3, 4), (4, 2)), ((2, 3), (3, 4), (4,)), ((3,), (3, 4), (4,)),
                                    ((4, 2), (2, 3), (3, 5), (5, 2)),
                                    ((3,), (3, 2), (2, 4), (4, 2), (2,))], ids=str)
def test_multi_dot(shapes):
    check(lambda *xs: np.linalg.multi_dot(xs), *arrays(*shapes))


def test_multi_dot_errors():
    for bad in ([np.eye(2)], [np.eye(2), np.ones((2, 2, 2)), np.eye(2)]):
        with pytest.raises((ValueError, np.linalg.LinAlgError)):
            cgrad.grad(lambda x: np.linalg.multi_dot([x, *bad[1:]]).sum())(bad[0])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8])
def test_matrix_power(n):
    check(lambda x: np.linalg.matrix_power(x, n), array((2, 2)))
    check(lambda x: np.linalg.matrix_power(x, n), array((3, 2, 2)), atol=1e-5)


def test_matrix_power_zero_negative_and_errors():
    np.testing.assert_array_equal(cgrad.grad(lambda x: np.linalg.matrix_power(x, 0).sum())(np.eye(3) * 2), np.zeros((3, 3)))
    with pytest.raises(TypeError):
        cgrad.grad(lambda x: np.linalg.matrix_power(x, 1.5).sum())(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        cgrad.grad(lambda x: np.linalg.matrix_power(x, 2).sum())(np.ones((2, 3)))


@pytest.mark.parametrize("n", [-1, -3])
def test_matrix_power_negative(n):
    if np.linalg.inv not in cgrad.rules.registry.FUNCTIONS:
        pytest.skip("inv has no rule")
    check(lambda x: np.linalg.matrix_power(x, n), array((2, 2)) + 3 * np.eye(2))


def test_matrix_transpose_of_linalg():
    check(np.linalg.matrix_transpose, array((2, 3, 4)))
    with pytest.raises(ValueError):
        cgrad.grad(lambda x: np.linalg.matrix_transpose(x).sum())(np.ones(2))


# ------------------------------------------------------------------------------------------- convolution, covariance
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("n, m", [(5, 3), (5, 4), (3, 5), (4, 5), (4, 4), (1, 3), (3, 1), (1, 1)])
def test_convolve_and_correlate(n, m, mode):
    check(lambda x, y: np.convolve(x, y, mode), *arrays((n,), (m,)))
    check(lambda x, y: np.correlate(x, y, mode), *arrays((n,), (m,)))
    check(lambda x, y: np.convolve(x, y, mode), *arrays((n,), (m,), dtype=complex))
    check(lambda x, y: np.correlate(x, y, mode), *arrays((n,), (m,), dtype=complex))


def test_convolve_of_numbers_lists_and_nothing():
    check(lambda x: np.convolve(x, [1, 2]), array(3))
    check(lambda x, y: np.convolve(x, y), array(3), array(()))
    with pytest.raises(ValueError, match="empty"):
        cgrad.grad(lambda x: np.convolve(x, []).sum())(np.ones(3))


@pytest.mark.parametrize("call", [
    lambda x: np.cov(x), lambda x: np.cov(x, rowvar=False), lambda x: np.cov(x, bias=True), lambda x: np.cov(x, ddof=2),
    lambda x: np.cov(x[0]), lambda x: np.cov(x[0], x[1]), lambda x: np.cov(x, x[:1] * x[1:2]),
    lambda x: np.cov(x, x * x, rowvar=False), lambda x: np.corrcoef(x), lambda x: np.corrcoef(x, rowvar=False),
    lambda x: np.cov(x, fweights=[1, 2, 1, 3, 1]), lambda x: np.cov(x, aweights=[.1, .2, 1., 3, 1]),
    lambda x: np.cov(x, fweights=[1, 2, 1, 3, 1], aweights=[.1, .2, 1., 3, 1], ddof=0),
    lambda x: np.cov(x, fweights=[1, 2, 1, 3, 1], aweights=[.1, .2, 1., 3, 1]), lambda x: np.corrcoef(x[0], x[1])])
def test_cov_and_corrcoef(call):
    check(call, array((3, 5)))


def test_cov_complex_and_warnings():
    check(np.cov, array((2, 5), 3, complex))
    with pytest.warns(RuntimeWarning):
        cgrad.vjp(np.cov, np.ones((2, 1)))
    with pytest.raises(ValueError):
        cgrad.grad(lambda x: np.cov(x).sum())(np.ones((2, 2, 2)))
    with pytest.raises(NotImplementedError, match="aweights"):
        cgrad.grad(lambda w: np.cov(np.ones((2, 3)), aweights=w).sum())(np.ones(3))


# ------------------------------------------------------------------------------------------- loading
def test_scipy_is_imported_on_first_use_only():
    code = ("import sys, cgrad; assert 'scipy' not in sys.modules; import numpy as np\n"
            "cgrad.grad(lambda x: (x @ x).sum())(np.eye(2)); assert 'scipy.linalg' in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(cgrad.__file__).parent.parent)
