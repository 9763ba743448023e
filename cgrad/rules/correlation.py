"""Convolution and correlation of sequences, covariance and correlation coefficients of samples.

Uses the registry and `products`.
"""
import warnings

import numpy as np

from .products import as_array, as_operand, strong_contraction
from .registry import Sample, implements, is_array, plain_value, record, structural

__all__ = []


# ---------------------------------------------------------------------------------------------- convolve, correlate
# Every mode is a part of the full convolution, full[j] = sum_i x[i] y[j - i]. With the adjoint of the full one, G, that of x
# is the "valid" correlation of G with y, and that of y the same with x.
def full_adjoint(gz, n, start):
    """The adjoint of the full convolution, of length n, whose part from `start` on was taken."""
    after = n - start - gz.shape[-1]
    if not (start or after):
        return gz
    return np.concatenate([np.zeros(gz.shape[:-1] + (start,), gz.dtype), gz, np.zeros(gz.shape[:-1] + (after,), gz.dtype)], -1)


def valid_correlation(g, y):
    """``sum_j g[..., i + j] y[j]``, row by row of the leading axes of g."""
    if g.ndim == 1:
        return np.convolve(g, y[::-1], "valid")
    rows = g.reshape((-1, g.shape[-1]))
    n = g.shape[-1] - y.shape[0] + 1
    if rows.shape[0] == 0:
        return np.zeros(g.shape[:-1] + (n,), g.dtype)
    return np.stack([np.convolve(row, y[::-1], "valid") for row in rows]).reshape(g.shape[:-1] + (n,))


def start_of(mode, n, m):
    """Where NumPy's result begins in the full convolution of the longer x, of length n, and the shorter y, of length m."""
    return {"f": 0, "s": (m - 1) - m // 2, "v": m - 1}[mode]


def convolve_vjp(gz, z, wanted, other, mode):
    other = as_array(other)
    n, m = wanted.shape[0], other.shape[0]
    full = full_adjoint(gz, n + m - 1, start_of(mode, max(n, m), min(n, m)))
    return strong_contraction(valid_correlation, full, other)


def mode_letter(mode):
    """The mode as its first letter, whatever NumPy accepts for it."""
    return mode[0].lower() if isinstance(mode, str) else "vsf"[mode]


CONVOLVE = structural(
    "convolve", linear="multi", reads=("y", "x"),
    vjp=(lambda gz, z, x, y, *, mode: convolve_vjp(gz, z, x, y, mode),
         lambda gz, z, x, y, *, mode: convolve_vjp(gz, z, y, x, mode)),
    samples=[Sample(np.convolve, ((5,), (3,)), complex=True), Sample(np.convolve, ((2,), (5,)), kwargs=dict(mode="same")),
             Sample(np.convolve, ((5,), (4,)), kwargs=dict(mode="valid"))])


@implements(np.convolve)
def convolve(a, v, mode="full"):
    a, v = as_operand(a), as_operand(v)
    value = np.convolve(plain_value(a), plain_value(v), mode)
    # numbers are sequences of one
    a, v = (x.reshape((1,)) if x.ndim == 0 else x for x in (a, v))
    return record(CONVOLVE, value, (a, v), dict(mode=mode_letter(mode)))


# correlate(a, v) is the convolution of a with the conjugate of v backwards; where v is the longer one NumPy computes it the
# other way round, so that the middle of an even length is on the other side
def correlate_full(gz, n, m, mode):
    start = min(n, m) // 2 if mode == "s" and m > n else start_of(mode, max(n, m), min(n, m))
    return full_adjoint(gz, n + m - 1, start)


def correlate_vjp_a(gz, z, a, v, *, mode):
    v = as_array(v)
    full = correlate_full(gz, a.shape[0], v.shape[0], mode)
    return strong_contraction(valid_correlation, full, np.conjugate(v)[::-1])


def correlate_vjp_v(gz, z, a, v, *, mode):
    a = as_array(a)
    full = correlate_full(gz, a.shape[0], v.shape[0], mode)
    return np.conjugate(strong_contraction(valid_correlation, full, a)[..., ::-1])


CORRELATE = structural(
    "correlate", linear="multi", reads=("y", "x"), vjp=(correlate_vjp_a, correlate_vjp_v),
    samples=[Sample(np.correlate, ((5,), (3,)), complex=True), Sample(np.correlate, ((5,), (4,)), kwargs=dict(mode="same")),
             Sample(np.correlate, ((2,), (5,)), kwargs=dict(mode="same"), complex=True),
             Sample(np.correlate, ((2,), (5,)), kwargs=dict(mode="full"), complex=True)])


@implements(np.correlate)
def correlate(a, v, mode="valid"):
    a, v = as_operand(a), as_operand(v)
    value = np.correlate(plain_value(a), plain_value(v), mode)
    return record(CORRELATE, value, (a, v), dict(mode=mode_letter(mode)))


# ---------------------------------------------------------------------------------------------- cov, corrcoef
def samples_in_rows(x, dtype, rows):
    """Variables in rows, observations in columns; `rows` says whether x has them so."""
    x = x if x.ndim == 2 else x.reshape((1, x.size))
    x = x if x.dtype == dtype else x.astype(dtype)
    return x if rows else x.T


@implements(np.cov)
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    weights = dict(fweights=fweights, aweights=aweights)
    for name, w in weights.items():
        if is_array(w):
            raise NotImplementedError(f"np.cov has no derivative by {name}; pass {name}.value for a constant, or write the "
                                      "weighted products with np.average and matmul")
    m, y = as_operand(m), None if y is None else as_operand(y)
    given = [np.asarray(w, float) for w in weights.values() if w is not None]
    if given or m.ndim > 2 or (y is not None and y.ndim > 2) or not isinstance(ddof, (int, type(None))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.cov(plain_value(m), plain_value(y), rowvar, bias, ddof, dtype=dtype, **weights)          # NumPy's own errors
    if dtype is None:
        dtype = np.result_type(m.dtype, np.float64, *([] if y is None else [y.dtype]))
    x = samples_in_rows(m, dtype, rowvar or m.ndim != 2)
    if x.shape[0] == 0:
        return np.zeros((0, 0))
    if y is not None:
        x = np.concatenate((x, samples_in_rows(y, dtype, rowvar or y.ndim != 2 or y.shape[0] == 1)), 0)
    ddof = ddof if ddof is not None else 0 if bias else 1
    w = np.prod(given, 0) if given else None
    freedom = total = x.shape[1] if w is None else w.sum()
    if ddof:
        freedom = total - ddof * (1 if aweights is None else np.sum(w * given[-1]) / total)
    if freedom <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=3)
        freedom = 0.0
    x = x - np.average(x, axis=1, weights=w)[:, None]
    right = x.T if w is None else (x * w).T
    c = np.dot(x, np.conjugate(right) if x.dtype.kind == "c" else right)
    return (c * np.true_divide(1, freedom)).squeeze()


@implements(np.corrcoef)
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    c = np.cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = np.sqrt(np.diag(c).real)
    c = c / deviation[:, None] / deviation[None, :]
    # NumPy clips what rounding has brought above 1; that is no kink of the function
    value = plain_value(c)
    clipped = np.clip(value.real, -1, 1)
    if value.dtype.kind == "c":
        clipped = clipped + 1j * np.clip(value.imag, -1, 1)
    return c if (clipped == value).all() else c + (clipped - value)
