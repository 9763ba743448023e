"""Linear equations, inverses and determinants: numpy.linalg but for its decompositions, products and norms.

Rules read a matrix with its leading axes as a stack, as NumPy does; adjoints may have more leading axes. Complex rules are plain
transposes, without conjugation, unless the function itself conjugates. Uses the registry, `products` and `decompositions`.
"""
import math

import numpy as np

from .decompositions import as_matrices, hermitian_part, hermitian_transpose, inverse, only_seeded, singular_values, transpose
from .products import as_operand, conjugate, matmul_adjoint_x
from .registry import (Sample, implements, is_array, plain_function, plain_value, record, structural, tracked,
                       zero_derivative)

__all__ = []

plain_function(np.linalg.matrix_rank)


class Shared:
    """What the rules of both inputs of a node need, computed for the first of them and kept until the second has it."""

    __slots__ = ("result", "seed")

    def __init__(self):
        self.seed = self.result = None

    def __call__(self, function, seed, *args):
        if self.seed is seed:
            result, self.seed, self.result = self.result, None, None
            return result
        self.seed, self.result = seed, function(seed, *args)
        return self.result


# ---------------------------------------------------------------------------------------------- equations
def solve_columns(a, g):
    """a^-1 g. Leading axes that only g has become columns, so that each matrix is factorised once."""
    extra = g.ndim - a.ndim
    if extra <= 0:
        return np.linalg.solve(a, g)
    g = np.moveaxis(g, range(extra), range(-extra, 0))
    split = g.ndim - extra - 1
    columns = g.shape[split:]
    z = np.linalg.solve(a, g.reshape(g.shape[:split] + (math.prod(columns),)))
    return np.moveaxis(z.reshape(z.shape[:-1] + columns), range(-extra, 0), range(extra))


def solved(gz, a, vector):
    """a^-T gz, in matrices of columns."""
    g = gz[..., None] if vector else gz
    return only_seeded(solve_columns(transpose(a), g), (g, 2))


def solve_a(gz, z, a, b, *, vector, shared):
    """-a^-T gz z^T"""
    gb = shared(solved, gz, a, vector) if shared else solved(gz, a, vector)
    return -matmul_adjoint_x(gb, z[..., None] if vector else z, a.shape)


def solve_b(gz, z, a, b, *, vector, shared):
    gb = shared(solved, gz, a, vector) if shared else solved(gz, a, vector)
    return gb[..., 0] if vector else gb


def regular(x):
    """Keep a sample away from singular matrices."""
    return x + 5 * np.eye(x.shape[-1])


SOLVE = structural(
    "solve", vjp=(solve_a, solve_b), reads=("xz", "x"),
    samples=[Sample(lambda a, b: np.linalg.solve(regular(a), b), shapes, complex=True) for shapes in (
        ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((3, 3), (4, 3, 2)), ((4, 1, 2, 2), (3, 2, 1)))])


@implements(np.linalg.solve)
def solve(a, b):
    a, b = as_operand(a), as_operand(b)
    shared = Shared() if tracked(a) and tracked(b) else None
    return record(SOLVE, np.linalg.solve(plain_value(a), plain_value(b)), (a, b), dict(vector=b.ndim == 1, shared=shared))


@implements(np.linalg.tensorsolve)
def tensorsolve(a, b, axes=None):
    a, b = as_operand(a), as_operand(b)
    if axes is not None:
        a = np.moveaxis(a, axes, range(a.ndim - len(axes), a.ndim))
    shape = a.shape[b.ndim:]
    size = math.prod(shape)
    if a.size != size**2:
        np.linalg.tensorsolve(plain_value(a), plain_value(b))           # NumPy's own error
    return solve(a.reshape((size, size)), b.reshape((b.size,))).reshape(shape)


# ---------------------------------------------------------------------------------------------- inverses
INV = structural(
    "inv", reads=("z",),
    vjp=(lambda gz, z, x: only_seeded(-(transpose(z) @ gz @ transpose(z)), (gz, 2)),),
    samples=[Sample(lambda x: np.linalg.inv(regular(x)), shapes, complex=True) for shapes in (((3, 3),), ((2, 2, 2),))])


@implements(np.linalg.inv)
def inv(a):
    return record(INV, np.linalg.inv(plain_value(a)), (a,))


@implements(np.linalg.tensorinv)
def tensorinv(a, ind=2):
    size = math.prod(a.shape[ind:])
    if ind <= 0 or a.size != size**2:
        np.linalg.tensorinv(plain_value(a), ind)                        # NumPy's own error
    return inv(a.reshape((size, size))).reshape(a.shape[ind:] + a.shape[:ind])


def pinv_vjp(gz, z, x, *, hermitian):
    """For matrices of constant rank, as z is not continuous where the rank changes."""
    zh, gt = hermitian_transpose(z), transpose(gz)
    # through the spaces of columns and rows
    beside = gt - x @ (z @ gt)
    under = gt - (gt @ z) @ x
    gx = conjugate(beside @ z @ zh + zh @ z @ under) - transpose(z) @ gz @ transpose(z)
    gx = only_seeded(gx, (gz, 2))
    return hermitian_part(gx) if hermitian else gx


PINV = structural(
    "pinv", reads=("xz",), vjp=(pinv_vjp,),
    samples=[Sample(lambda x: np.linalg.pinv(x + 3 * np.eye(*x.shape[-2:])), shapes, (-0.5, 0.5), complex=True)
             for shapes in (((3, 2),), ((2, 2, 3),), ((3, 3),))])


@implements(np.linalg.pinv)
def pinv(a, rcond=None, hermitian=False, **rtol):
    value = np.linalg.pinv(plain_value(a), plain_value(rcond), hermitian, **rtol)
    return record(PINV, value, (a,), dict(hermitian=bool(hermitian)))


# ---------------------------------------------------------------------------------------------- least squares
def as_columns(v, vector):
    return v[..., None] if vector else v


def lstsq_a(gz, z, a, b, *, vector, rcond):
    """From ``z = pinv(a) b``: the rule of pinv, in products with few columns."""
    p, gz, z, b = np.linalg.pinv(a, rcond), as_columns(gz, vector), as_columns(z, vector), as_columns(b, vector)
    back = transpose(gz) @ p
    beside = (b - a @ z) @ (back @ hermitian_transpose(p))
    under = (hermitian_transpose(p) @ z) @ (transpose(gz) - back @ a)
    return only_seeded(conjugate(beside + under) - transpose(back) @ transpose(z), (gz, 2))


def lstsq_b(gz, z, a, b, *, vector, rcond):
    gb = transpose(np.linalg.pinv(a, rcond)) @ as_columns(gz, vector)
    gb = only_seeded(gb, (as_columns(gz, vector), 2))
    return gb[..., 0] if vector else gb


def squares(gz, a, b, vector):
    """The adjoint of the deviations ``b - a x`` whose squares are summed, and x. x has no part in it: at the least sum its own
    slope is 0.
    """
    x, b = as_columns(np.linalg.lstsq(a, b)[0], vector), as_columns(b, vector)
    return 2 * gz[..., None, :] * conjugate(b - a @ x), x


def squares_a(gz, z, a, b, *, vector):
    g, x = squares(gz, a, b, vector)
    return -g @ transpose(x)


def squares_b(gz, z, a, b, *, vector):
    g, _ = squares(gz, a, b, vector)
    return g[..., 0] if vector else g


LSTSQ = structural("lstsq", reads=("xyz", "x"), vjp=(lstsq_a, lstsq_b), samples=[
    Sample(lambda a, b: np.linalg.lstsq(a + 3 * np.eye(*a.shape), b)[0], shapes, (-0.5, 0.5), complex=True)
    for shapes in (((4, 2), (4,)), ((4, 3), (4, 2)), ((2, 3), (2, 2)), ((2, 3), (2,)))])
LSTSQ_SQUARES = structural("lstsq_squares", reads=("xy", "xy"), vjp=(squares_a, squares_b), samples=[
    Sample(lambda a, b: np.linalg.lstsq(a + 3 * np.eye(*a.shape), b)[1], shapes, (-0.5, 0.5), complex=True)
    for shapes in (((4, 2), (4,)), ((4, 3), (4, 2)))])


@implements(np.linalg.lstsq)
def lstsq(a, b, rcond=None):
    a, b = as_operand(a), as_operand(b)
    x, deviations, rank, s = np.linalg.lstsq(plain_value(a), plain_value(b), rcond)
    vector = b.ndim == 1
    cutoff = rcond if rcond is not None and rcond >= 0 else np.finfo(x.dtype).eps * (max(a.shape) if rcond is None else 1)
    x = record(LSTSQ, x, (a, b), dict(vector=vector, rcond=cutoff))
    if deviations.size:
        deviations = record(LSTSQ_SQUARES, deviations, (a, b), dict(vector=vector))
    return x, deviations, rank, singular_values(a, s) if is_array(a) else s


# ---------------------------------------------------------------------------------------------- determinants
def products_without(s):
    """For each element of the last axis the product of the others, zeros or not."""
    one = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate((one, s[..., :-1]), axis=-1), axis=-1)
    after = np.cumprod(np.concatenate((one, s[..., :0:-1]), axis=-1), axis=-1)
    return before * after[..., ::-1]


def unitary_factors(x):
    """The singular value decomposition of each matrix, and the determinant of ``u @ vh``; of zeros where x is not finite."""
    finite = np.isfinite(x).all(axis=(-2, -1), keepdims=True)
    u, s, vh = np.linalg.svd(np.where(finite, x, 0))
    return u, s, vh, as_matrices(np.linalg.det(u) * np.linalg.det(vh)), finite


def cofactors_of_any(x):
    """The matrices of cofactors, of singular matrices too.

    That of a product is the product of those of its factors; that of a unitary matrix u is det(u) conj(u).
    """
    u, s, vh, sign, finite = unitary_factors(x)
    return np.where(finite, sign * conjugate(u) * products_without(s)[..., None, :] @ conjugate(vh), np.nan)


def inverse_unless(x, singular):
    """The inverses, and NaN for those matrices that are known to be singular."""
    if not np.any(singular):
        return inverse(x)
    singular = as_matrices(np.asarray(singular))
    return np.where(singular, np.nan, np.linalg.inv(np.where(singular, np.eye(x.shape[-1], dtype=x.dtype), x)))


def size_of(x):
    """A norm of each matrix: its largest sum of a column."""
    return np.max(np.sum(np.abs(x), axis=-2), axis=-1, initial=0)


def cofactors(x, det):
    """The matrices of cofactors of plain x, and which of them needed more than ``det * inv(x).T``."""
    info = np.finfo(x.dtype)
    tiny = ~(np.abs(det) > info.tiny / info.eps) | ~np.isfinite(det)
    with np.errstate(all="ignore"):
        inv_x = inverse_unless(x, tiny)
        # as far as the inverse is exact to three quarters of all digits
        hard = tiny | (size_of(x) * size_of(inv_x) > info.eps**-0.25)
        result = as_matrices(det) * transpose(inv_x)
        if np.any(hard):
            result = np.where(as_matrices(np.asarray(hard)), cofactors_of_any(x), result)
    return result, np.any(hard)


def cofactors_vjp(gz, z, x):
    """In the frame of singular vectors: the cofactors of a matrix next to a diagonal one, to first order."""
    if is_array(x):
        raise NotImplementedError("det: no derivative rule beyond the second order at matrices that are singular or nearly so")
    u, s, vh, sign, finite = unitary_factors(x)
    own = np.eye(s.shape[-1], dtype=bool)
    # products of all singular values but two
    others = np.where(own, 0, products_without(np.where(own, 1, s[..., None, :])))
    g = sign * (hermitian_transpose(u) @ gz @ hermitian_transpose(vh))
    on_diagonal = others @ np.diagonal(g, axis1=-2, axis2=-1)[..., None]
    frame = np.where(own, on_diagonal, -transpose(others * g))
    return np.where(finite, conjugate(u) @ frame @ conjugate(vh), np.nan)


COFACTORS = structural("cofactors", reads=("x",), vjp=(cofactors_vjp,))


def det_vjp(gz, z, x):
    """gz times the cofactors."""
    value, hard = cofactors(plain_value(x), plain_value(z))
    if not is_array(x):
        return only_seeded(as_matrices(gz) * value, (as_matrices(gz), 2))
    if hard:
        return as_matrices(gz) * record(COFACTORS, value, (x,))
    return as_matrices(gz * z) * transpose(np.linalg.inv(x))


DET = structural("det", reads=("xz",), vjp=(det_vjp,), samples=[
    Sample(np.linalg.det, ((3, 3),), complex=True), Sample(np.linalg.det, ((2, 2, 2),)), Sample(np.linalg.det, ((1, 1),)),
    Sample(lambda v: np.linalg.det(np.multiply.outer(v, [1.0, 2.0, 3.0])), ((3,),), complex=True)])


@implements(np.linalg.det)
def det(a):
    return record(DET, np.linalg.det(plain_value(a)), (a,))


def logabsdet_vjp(gz, z, x):
    g = as_matrices(gz) * transpose(inverse_unless(x, np.isneginf(plain_value(z))))
    return only_seeded(g, (as_matrices(gz), 2))


def phase_vjp(gz, z, x):
    """The phase of the determinant turns by the imaginary part of the trace of ``inv(x) dx``."""
    turn = as_matrices(np.imag(gz * z) * 1j)
    return only_seeded(turn * transpose(inverse_unless(x, plain_value(z) == 0)), (turn, 2))


def complex_slogdet(x, y):
    return np.linalg.slogdet(x + 1j * y)


LOGABSDET = structural("logabsdet", reads=("xz",), vjp=(logabsdet_vjp,), samples=[
    Sample(lambda x: np.linalg.slogdet(x)[1], ((3, 3),), complex=True), Sample(lambda x: np.linalg.slogdet(x)[1], ((2, 2, 2),)),
    Sample(lambda x, y: complex_slogdet(x, y)[1], ((2, 2), (2, 2)))])
PHASE = structural("slogdet_phase", reads=("xz",), vjp=(phase_vjp,), samples=[
    Sample(lambda x, y: np.angle(complex_slogdet(x, y)[0]), ((2, 2), (2, 2)))])
SIGN = zero_derivative("slogdet_sign")


@implements(np.linalg.slogdet)
def slogdet(a):
    value = np.linalg.slogdet(plain_value(a))
    return value._replace(sign=record(PHASE if a.dtype.kind == "c" else SIGN, value.sign, (a,)),
                          logabsdet=record(LOGABSDET, value.logabsdet, (a,)))


# ---------------------------------------------------------------------------------------------- condition
@implements(np.linalg.cond)
def cond(x, p=None):
    value = np.linalg.cond(plain_value(x), p)
    with np.errstate(all="ignore"):
        if p is None or p in (2, -2):
            s = np.linalg.svd(x, compute_uv=False)
            result = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        else:
            result = np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1))
        # NumPy has infinity where a division gives NaN
        return result if np.isfinite(value).all() else np.where(np.isfinite(value), result, value)
