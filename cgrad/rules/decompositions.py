"""Decompositions of matrices: Cholesky, eigenvalues, singular values, QR; and what all rules of linear algebra share.

A decomposition with several factors is one node, whose value is all of them in one matrix, and of which the factors are parts:
so one rule sees the adjoints of all of them. Complex rules are plain transposes; see `linalg`. Uses the registry, `products` and
`cgrad._parts`.

Equal eigenvalues or singular values. A function of the matrix is smooth there although the vectors that belong to them are
arbitrary. The adjoints tell its gradient within their space if it is a function of the eigenvalues alone, or of one
``v f(w) v.T``, or a sum of both; else it may be NaN: see `within_equal`.
"""
import numpy as np

from cgrad._parts import part

from .products import conjugate
from .registry import Sample, implements, is_array, plain_value, record, structural, tracked

__all__ = ["as_matrices", "hermitian_part", "hermitian_transpose", "only_seeded", "singular_values", "transpose"]


# ---------------------------------------------------------------------------------------------- what rules share
def transpose(x):
    """Of each matrix of a stack."""
    return np.swapaxes(x, -1, -2)


def hermitian_transpose(x):
    return conjugate(np.swapaxes(x, -1, -2))


def hermitian_part(x):
    """The gradient by a symmetric argument: half of the slope on each side of the diagonal."""
    return (x + hermitian_transpose(x)) / 2


def as_matrices(g):
    """One number for each matrix, to multiply the matrices by."""
    return g[..., None, None]


def only_seeded(result, *seeds):
    """`result`, of matrices, but 0 where all seeds of a matrix are 0: one that is not a number and not used stays away.

    Each seed comes with the number of axes that belong to one matrix.
    """
    if np.isfinite(plain_value(result)).all():
        return result
    used = False
    for seed, ndim in seeds:
        used = used | (plain_value(seed) != 0).any(axis=tuple(range(-ndim, 0)))
    return np.where(as_matrices(np.asarray(used)), result, 0)


def in_parts(op, x, packed, pieces, params=None):
    """Record a decomposition: a list with the Array of each of `pieces`, pairs of an index into `packed` and NumPy's value."""
    node = record(op, packed, (x,), params)
    return [part(node, index, value) if is_array(node) else value for index, value in pieces]


def rows(start, stop=None):
    return Ellipsis, slice(start, stop), slice(None)


# A single matrix of this many rows or more goes to SciPy's BLAS and LAPACK. They have what NumPy has not; importing them takes 0.2 s.
BLAS_SIZE = 16
BLAS_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


def inverse(x):
    """np.linalg.inv, on a large matrix that is not tracked by way of getri, which takes half of NumPy's time."""
    if type(x) is np.ndarray and x.ndim == 2 and len(x) >= BLAS_SIZE and x.shape[0] == x.shape[1]:
        from scipy.linalg import lapack
        letter = BLAS_LETTERS[x.dtype.char]
        factors, pivots, failed = getattr(lapack, letter + "getrf")(x.T)
        if not failed:
            result, failed = getattr(lapack, letter + "getri")(factors, pivots, lwork=64 * len(x), overwrite_lu=1)
        if not failed:
            return result.T
    return np.linalg.inv(x)


# ---------------------------------------------------------------------------------------------- equal eigenvalues
# of adjoints, relative to the largest of them
NOISE = 1e-8


def equal_pairs(w):
    """Which two of the eigenvalues, or singular values, differ by no more than rounding; each equals itself."""
    w = plain_value(w)
    limit = 16 * w.shape[-1] * np.finfo(w.dtype).eps * np.max(np.abs(w), axis=-1, initial=0)
    return np.abs(w[..., :, None] - w[..., None, :]) <= as_matrices(np.asarray(limit))


def reciprocal_gaps(w, equal):
    """1 / (w[j] - w[i]), and 0 for equal ones."""
    gaps = w[..., None, :] - w[..., :, None]
    return np.where(equal, 0, 1 / np.where(equal, 1, gaps))


def within_equal(gw, t, equal):
    """The gradient between the vectors of equal eigenvalues, in their frame; None where there are none.

    For a function tr(b v f(w) v^T) + h(w) the diagonal gw = f'(w) b + h' and t, half of the adjoint of the vectors, is f(w) b. Then
    the gradient there is f'(w) b, with f'/f from a straight line through the pairs of t and gw on the diagonal. NaN where t is not
    0 and the pairs do not lie on a line, or are all without t: the adjoints do not tell the gradient.
    """
    between = equal & ~np.eye(equal.shape[-1], dtype=bool)
    if not between.any():
        return None

    def mean(v):
        return (np.matmul(equal, v[..., None]) / np.sum(equal, axis=-1, keepdims=True))[..., 0]

    d = np.real(np.diagonal(t, axis1=-2, axis2=-1))
    d_mean, g_mean = mean(d), mean(gw)
    variance, covariance = mean(d * d) - d_mean**2, mean(d * gw) - d_mean * g_mean
    size = np.abs(plain_value(t))
    noise = NOISE * np.max(np.where(equal, size, 0), axis=-1)
    varies, counts = plain_value(variance) > noise**2, np.abs(plain_value(d_mean)) > noise
    ratio = np.where(varies, covariance / np.where(varies, variance, 1),
                     np.where(counts, g_mean / np.where(counts, d_mean, 1), 0))
    off_line = mean(gw * gw) - g_mean**2 - np.where(varies, ratio * covariance, 0)
    unknown = ~varies & ~counts | (plain_value(off_line) > NOISE * plain_value(mean(gw * gw)))
    inner = np.where(between, ratio[..., :, None] * t, 0)
    unknown = between & unknown[..., :, None] & (size > NOISE * np.max(size, axis=(-2, -1), keepdims=True))
    return np.where(unknown, np.nan, inner) if unknown.any() else inner


# ---------------------------------------------------------------------------------------------- Cholesky
def halved_triangle(n, dtype):
    """Weights: 1 below the diagonal, a half on it."""
    return np.tri(n, dtype=dtype) - np.eye(n, dtype=dtype) / 2


def cholesky_vjp(gz, z, x, *, upper):
    """With p the halved lower triangle of z^T gz: the symmetric part of z^-T p conj(z)^-1."""
    if upper:
        gz, z = hermitian_transpose(gz), hermitian_transpose(z)
    if type(gz) is np.ndarray and type(z) is np.ndarray and gz.ndim == 2 and z.shape[-1] >= BLAS_SIZE:
        gx = between_triangles(gz, z)
    else:
        p = (transpose(z) @ gz) * halved_triangle(z.shape[-1], np.finfo(z.dtype).dtype)
        gx = np.linalg.solve(transpose(z), p)
        gx = transpose(np.linalg.solve(hermitian_transpose(z), transpose(gx)))
    return only_seeded(hermitian_part(gx), (gz, 2))


def between_triangles(gz, z):
    """z^-T p conj(z)^-1, with BLAS for triangles."""
    from scipy.linalg import blas                   # not before it is needed: the import takes 0.2 s
    letter = BLAS_LETTERS[z.dtype.char]
    trmm, trsm = getattr(blas, letter + "trmm"), getattr(blas, letter + "trsm")
    # BLAS counts by columns: it sees the transpose of z, an upper triangle
    p = trmm(1, z.T, gz)
    p *= halved_triangle(z.shape[-1], np.finfo(z.dtype).dtype)
    p = trsm(1, z.T, p, overwrite_b=1)
    return trsm(1, z.T, p, side=1, trans_a=2, overwrite_b=1)




def covariance_of(x):
    """A positive definite matrix for a sample."""
    return x @ hermitian_transpose(x) + 3 * np.eye(x.shape[-1])


CHOLESKY = structural(
    "cholesky", reads=("z",), vjp=(cholesky_vjp,),
    samples=[Sample(lambda x: np.linalg.cholesky(covariance_of(x)), ((3, 3),), complex=True),
             Sample(lambda x: np.linalg.cholesky(covariance_of(x)), ((2, 2, 2),)),
             Sample(lambda x: np.linalg.cholesky(covariance_of(x), upper=True), ((3, 3),), complex=True)])


@implements(np.linalg.cholesky)
def cholesky(a, /, **upper):
    return record(CHOLESKY, np.linalg.cholesky(plain_value(a), **upper), (a,), dict(upper=bool(upper.get("upper"))))


# ---------------------------------------------------------------------------------------------- symmetric eigenvalues
def eigh_vjp(gz, z, x):
    """conj(v) g v^T with the adjoint g in the frame of the eigenvectors: gw on its diagonal, the rest over the gaps."""
    w, v = np.real(z[..., -1, :]), z[..., :-1, :]
    gw, gv = np.real(gz[..., -1, :]), gz[..., :-1, :]
    y, equal = transpose(v) @ gv, equal_pairs(w)
    g = hermitian_part(reciprocal_gaps(w, equal) * y) + gw[..., None, :] * np.eye(w.shape[-1], dtype=w.dtype)
    inner = within_equal(gw, hermitian_part(y) / 2, equal)
    g = g if inner is None else g + inner
    return only_seeded(conjugate(v) @ g @ transpose(v), (gz, 2))


def eigvalsh_vjp(gz, z, x, *, UPLO):
    _, v = np.linalg.eigh(x, UPLO)
    if not is_array(x) or tracked(gz) or not x.size:
        return only_seeded((conjugate(v) * gz[..., None, :]) @ transpose(v), (gz, 1))
    # v v^H is the identity, whatever the vectors: so the gradient of the sum of all eigenvalues does not depend on them
    mean = np.mean(gz, axis=-1, keepdims=True)
    gx = (conjugate(v) * (gz - mean)[..., None, :]) @ transpose(v)
    return only_seeded(gx + mean[..., None] * np.eye(v.shape[-1], dtype=mean.dtype), (gz, 1))


def symmetric(x):
    return x + hermitian_transpose(x)


def eigh_sample(x):
    """Functions of the eigenvectors that do not depend on their signs."""
    w, v = np.linalg.eigh(symmetric(x))
    return np.cos(w) @ np.abs(v)**2 + w


EIGH = structural("eigh", reads=("z",), vjp=(eigh_vjp,),
                  samples=[Sample(eigh_sample, ((3, 3),), complex=True),
                           Sample(lambda x: np.linalg.eigh(symmetric(x), "U")[1]**2, ((2, 3, 3),))])
EIGVALSH = structural("eigvalsh", reads=("x",), vjp=(eigvalsh_vjp,),
                      samples=[Sample(lambda x: np.linalg.eigvalsh(symmetric(x)), ((3, 3),), complex=True),
                               Sample(lambda x: np.linalg.eigvalsh(symmetric(x), UPLO="U"), ((2, 2, 2),))])


def real_part(x):
    return np.real(x) if x.dtype.kind == "c" else x


@implements(np.linalg.eigh)
def eigh(a, UPLO="L"):
    value = np.linalg.eigh(plain_value(a), UPLO)
    w, v = value
    n = w.shape[-1]
    w, v = in_parts(EIGH, a, np.concatenate((v, w[..., None, :]), axis=-2),
                    [((Ellipsis, n, slice(None)), w.astype(v.dtype, copy=False)), (rows(0, n), v)])
    return value._replace(eigenvalues=real_part(w), eigenvectors=v)


@implements(np.linalg.eigvalsh)
def eigvalsh(a, UPLO="L"):
    return record(EIGVALSH, np.linalg.eigvalsh(plain_value(a), UPLO), (a,), dict(UPLO=UPLO))


# ---------------------------------------------------------------------------------------------- eigenvalues of any matrix
def eig_vjp(gz, z, x):
    """v^-T g v^T, as for symmetric matrices, but that the vectors are held at length 1."""
    w, v = z[..., -1, :], z[..., :-1, :]
    gw, gv = gz[..., -1, :], gz[..., :-1, :]
    y, own = transpose(v) @ gv, np.eye(w.shape[-1], dtype=bool)
    # moving a vector along itself: only the real part changes its length
    along = np.real(np.diagonal(y, axis1=-2, axis2=-1))[..., None, :]
    y = y - transpose(v) @ conjugate(v) * along
    g = np.where(own, gw[..., None, :], reciprocal_gaps(w, equal_pairs(w)) * y)
    return only_seeded(np.linalg.solve(transpose(v), g @ transpose(v)), (gz, 2))


def eigvals_vjp(gz, z, x):
    _, v = np.linalg.eig(x)
    return only_seeded(np.linalg.solve(transpose(v), gz[..., :, None] * transpose(v)), (gz, 1))


def apart(x):
    """Eigenvalues that lie well apart."""
    return x + np.diag(np.arange(0, 5 * x.shape[-1], 5))


def eig_sample(x):
    w, v = np.linalg.eig(apart(x))
    return np.abs(v)**2 + np.abs(w)


EIG = structural("eig", reads=("z",), vjp=(eig_vjp,),
                 samples=[Sample(eig_sample, ((3, 3),), (-0.5, 0.5), complex=True), Sample(eig_sample, ((2, 2, 2),), (-0.5, 0.5))])
EIGVALS = structural("eigvals", reads=("x",), vjp=(eigvals_vjp,),
                     samples=[Sample(lambda x: np.linalg.eigvals(apart(x)), ((3, 3),), (-0.5, 0.5), complex=True)])


@implements(np.linalg.eig)
def eig(a):
    value = np.linalg.eig(plain_value(a))
    w, v = value
    n = w.shape[-1]
    w, v = in_parts(EIG, a, np.concatenate((v, w[..., None, :]), axis=-2), [((Ellipsis, n, slice(None)), w), (rows(0, n), v)])
    return value._replace(eigenvalues=w, eigenvectors=v)


@implements(np.linalg.eigvals)
def eigvals(a):
    return record(EIGVALS, np.linalg.eigvals(plain_value(a)), (a,))


# ---------------------------------------------------------------------------------------------- singular values
def svd_vjp(gz, z, x, *, sizes, hermitian):
    """conj(u) g v^T with the adjoint g in the frame of the singular vectors, and what leaves their spaces.

    Moving x by dx, with p = u^H dx v, turns u by the Hermitian part of p over the gaps plus its other part over the sums of the
    singular values; v by the one minus the other.
    """
    m, k, n = sizes
    u, s, vt = z[..., :m, :], np.real(z[..., m, :]), transpose(z[..., m + 1:, :])
    gu, gs, gv = gz[..., :m, :], np.real(gz[..., m, :]), conjugate(gz[..., m + 1:, :])
    vt = conjugate(vt)
    yu, yv = transpose(u) @ gu, vt @ gv
    equal = equal_pairs(s)
    sums = s[..., None, :] + s[..., :, None]
    none = plain_value(sums) <= 4 * max(m, n) * np.finfo(s.dtype).eps * np.max(plain_value(s), axis=-1, initial=0)[..., None, None]
    turned = np.where(none, 0, 1 / np.where(none, 1, sums)) * (yu - yv)
    g = gs[..., None, :] * np.eye(k, dtype=s.dtype) + hermitian_part(reciprocal_gaps(s, equal) * (yu + yv)) \
        + (turned - hermitian_transpose(turned)) / 2
    inner = within_equal(gs, hermitian_part(yu + yv) / 2, equal)
    gx = conjugate(u) @ (g if inner is None else g + inner) @ vt
    gone = np.diagonal(none, axis1=-2, axis2=-1)
    reciprocal = np.where(gone, 0, 1 / np.where(gone, 1, s))[..., None, :]
    if m > k:
        gx = gx + ((gu - conjugate(u) @ yu) * reciprocal) @ vt
    if n > k:
        gx = gx + conjugate(u) @ hermitian_transpose((gv - hermitian_transpose(vt) @ yv) * reciprocal)
    gx = only_seeded(gx, (gz, 2))
    return hermitian_part(gx) if hermitian else gx


def svdvals_vjp(gz, z, x, *, hermitian):
    """conj(u) gz v^T. A singular value of 0 is at a kink, like the absolute value of 0."""
    u, s, vh = np.linalg.svd(x, full_matrices=False, hermitian=hermitian)
    s = plain_value(s)
    tiny = np.finfo(s.dtype).eps * max(x.shape[-2:])
    gz = np.where(s > tiny * np.max(s, axis=-1, keepdims=True, initial=0), gz, 0)
    gx = only_seeded((conjugate(u) * gz[..., None, :]) @ conjugate(vh), (gz, 1))
    return hermitian_part(gx) if hermitian else gx


def full_vjp(gz, z, x):
    raise NotImplementedError("svd(full_matrices=True): the vectors beyond the singular ones are not unique and have no derivative "
                              "rule; use full_matrices=False")


def spread_out(x):
    """Singular values that lie apart, none of them near 0."""
    return x + np.eye(*x.shape[-2:]) * np.arange(2, 2 + 2 * x.shape[-1], 2)


def svd_sample(x):
    u, s, vh = np.linalg.svd(spread_out(x), full_matrices=False)
    return (u * np.cos(s)[..., None, :]) @ vh


def svd_squares(x, part):
    return np.abs(np.linalg.svd(spread_out(x), full_matrices=False)[part])**2


SVD = structural("svd", reads=("z",), vjp=(svd_vjp,), samples=[
    Sample(svd_sample, ((3, 3),), (-0.5, 0.5), complex=True), Sample(svd_sample, ((2, 4, 2),), (-0.5, 0.5)),
    Sample(svd_sample, ((2, 3),), (-0.5, 0.5), complex=True),
    Sample(svd_squares, ((4, 2),), (-0.5, 0.5), kwargs=dict(part=0), complex=True),
    Sample(svd_squares, ((2, 3),), (-0.5, 0.5), kwargs=dict(part=2), complex=True)])
SVDVALS = structural("svdvals", reads=("x",), vjp=(svdvals_vjp,), samples=[
    Sample(lambda x: np.linalg.svdvals(spread_out(x)), ((3, 2),), (-0.5, 0.5), complex=True),
    Sample(lambda x: np.linalg.svd(spread_out(x), compute_uv=False), ((2, 2, 3),), (-0.5, 0.5))])
SVD_FULL = structural("svd_full_matrices", vjp=(full_vjp,))


def singular_values(x, value, hermitian=False):
    return record(SVDVALS, value, (x,), dict(hermitian=hermitian))


@implements(np.linalg.svdvals)
def svdvals(x, /):
    return singular_values(x, np.linalg.svdvals(plain_value(x)))


@implements(np.linalg.svd)
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    value = np.linalg.svd(plain_value(a), full_matrices, compute_uv, hermitian)
    hermitian = bool(hermitian)
    if not compute_uv:
        return singular_values(a, value, hermitian)
    u, s, vh = value
    m, k, n = u.shape[-2], s.shape[-1], vh.shape[-1]
    if m != n and full_matrices and not hermitian:
        u, vh = (record(SVD_FULL, v, (a,)) for v in (u, vh))
        return value._replace(U=u, S=singular_values(a, s), Vh=vh)
    vt = transpose(vh)
    u, s, vt = in_parts(SVD, a, np.concatenate((u, s[..., None, :], vt), axis=-2),
                        [(rows(0, m), u), ((Ellipsis, m, slice(None)), s.astype(u.dtype, copy=False)), (rows(m + 1), vt)],
                        dict(sizes=(m, k, n), hermitian=hermitian))
    return value._replace(U=u, S=real_part(s), Vh=transpose(vt))


# ---------------------------------------------------------------------------------------------- QR
def qr_vjp(gz, z, x, *, sizes):
    """From the derivation with conjugated adjoints, which are conjugated here on both ways."""
    m, k, n = sizes
    q, r = z[..., :m, :], transpose(z[..., m:, :])
    gz = conjugate(gz)
    gq, gr = gz[..., :m, :], transpose(gz[..., m:, :])
    if n > k:
        # the columns beyond the square part: r[:, k:] = q^H x[:, k:]
        gq = gq + q @ r[..., k:] @ hermitian_transpose(gr[..., k:])
        beyond = q @ gr[..., k:]
        r, gr = r[..., :k], gr[..., :k]
    lower = r @ hermitian_transpose(gr) - hermitian_transpose(gq) @ q
    lower = lower * halved_triangle(k, np.finfo(z.dtype).dtype)
    gx = hermitian_transpose(np.linalg.solve(r, hermitian_transpose(gq + q @ (lower + hermitian_transpose(lower)))))
    if n > k:
        gx = np.concatenate((gx, beyond), axis=-1)
    return only_seeded(conjugate(gx), (gz, 2))


def qr_complete_vjp(gz, z, x):
    raise NotImplementedError("qr(mode='complete'): the vectors beyond the columns of the matrix are not unique and have no "
                              "derivative rule; use mode='reduced'")


def qr_sample(x, mode="reduced"):
    """Its parts do not depend on the signs of the columns."""
    result = np.linalg.qr(spread_out(x), mode)
    return np.abs(result)**2 if mode == "r" else np.abs(result[0])**2 @ np.abs(result[1])**2


QR = structural("qr", reads=("z",), vjp=(qr_vjp,), samples=[
    Sample(qr_sample, ((3, 2),), (-0.5, 0.5), complex=True), Sample(qr_sample, ((2, 3, 3),), (-0.5, 0.5)),
    Sample(qr_sample, ((2, 4),), (-0.5, 0.5), complex=True),
    Sample(qr_sample, ((4, 3),), (-0.5, 0.5), kwargs=dict(mode="r"), complex=True)])
QR_COMPLETE = structural("qr_complete", vjp=(qr_complete_vjp,))


@implements(np.linalg.qr)
def qr(a, mode="reduced"):
    x = plain_value(a)
    value = np.linalg.qr(x, mode)
    if mode == "r":
        q, r = np.linalg.qr(x)[0], value
    elif mode in ("reduced", "complete"):
        q, r = value
    else:
        raise NotImplementedError(f"qr(mode={mode!r}) has no derivative rule; use mode='reduced'")
    m, n = x.shape[-2:]
    k = min(m, n)
    if mode == "complete" and m > n:
        return value._replace(Q=record(QR_COMPLETE, q, (a,)), R=record(QR_COMPLETE, r, (a,)))
    q, rt = in_parts(QR, a, np.concatenate((q, transpose(r)), axis=-2), [(rows(0, m), q), (rows(m), transpose(r))],
                     dict(sizes=(m, k, n)))
    return transpose(rt) if mode == "r" else value._replace(Q=q, R=transpose(rt))
