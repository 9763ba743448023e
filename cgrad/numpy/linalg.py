"""numpy.linalg's names, straight to the recorded operation; see `cgrad.numpy`."""
import numpy as _np
from numpy.linalg import LinAlgError  # noqa: F401

from .._direct import Direct as _Direct

_la = _np.linalg


def _direct(*functions):
    return map(_Direct, functions)


# products
matmul, multi_dot, matrix_power, tensordot, outer, cross, vecdot = _direct(
    _la.matmul, _la.multi_dot, _la.matrix_power, _la.tensordot, _la.outer, _la.cross, _la.vecdot)
# equations and inverses
solve, lstsq, inv, pinv, tensorsolve, tensorinv = _direct(
    _la.solve, _la.lstsq, _la.inv, _la.pinv, _la.tensorsolve, _la.tensorinv)
# decompositions
cholesky, qr, svd, svdvals = _direct(_la.cholesky, _la.qr, _la.svd, _la.svdvals)
eig, eigh, eigvals, eigvalsh = _direct(_la.eig, _la.eigh, _la.eigvals, _la.eigvalsh)
# numbers
det, slogdet, cond, matrix_rank, trace = _direct(_la.det, _la.slogdet, _la.cond, _la.matrix_rank, _la.trace)
norm, matrix_norm, vector_norm = _direct(_la.norm, _la.matrix_norm, _la.vector_norm)
# parts
diagonal, matrix_transpose = _direct(_la.diagonal, _la.matrix_transpose)


def __getattr__(name):
    return getattr(_la, name)


def __dir__():
    return sorted({*_la.__dir__(), *globals()})
