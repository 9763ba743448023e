"""NumPy's names, straight to the recorded operation.

A plain ``import numpy as np`` is all that cgrad needs. This module is for two cases:

- code that spends its time in many small operations: a call of a tracked array skips NumPy's dispatch, which saves 0.1 to 0.5
  microseconds each time;
- functions that NumPy cannot hand over, because no tracked array is among their arguments, or only inside a list:
  ``array([x, y])`` of tracked values, and ``zeros``, ``ones``, ``full``, ... for arrays that tracked values are then written
  into. NumPy's own raise an error there that points here.

Everything else is NumPy's: same names, same arguments, same results. What is not named below is handed out unchanged.

>>> import cgrad, cgrad.numpy as cnp
>>> def powers(x):
...     z = cnp.zeros(4)
...     for i in range(4):
...         z[i] = x**i
...     return z
>>> cgrad.jacobian(powers)(2.0)
array([ 0.,  1.,  4., 12.])

Uses the rules; used by no other part of cgrad.
"""
import importlib as _importlib

import numpy as _np
from numpy import (  # noqa: F401
    bool_, complex64, complex128, complexfloating, double, dtype, e, errstate, euler_gamma, finfo, float16, float32, float64,
    floating, iinfo, index_exp, inexact, inf, int8, int16, int32, int64, int_, integer, intp, longdouble, mgrid, nan, ndarray,
    ndenumerate, ndindex, newaxis, number, ogrid, pi, printoptions, s_, set_printoptions, single, uint8, uint16, uint32, uint64)

from .._direct import Direct as _Direct
from . import linalg  # noqa: F401
from ._creation import (  # noqa: F401
    arange, array, asanyarray, asarray, ascontiguousarray, asfortranarray, c_, empty, empty_like, eye, full, full_like,
    geomspace, identity, linspace, logspace, ones, ones_like, r_, tri, zeros, zeros_like)


def _direct(*functions):
    return map(_Direct, functions)


# ------------------------------------------------------------------------------------------------ ufuncs
# arithmetic
add, subtract, multiply, divide, true_divide = _direct(_np.add, _np.subtract, _np.multiply, _np.divide, _np.true_divide)
floor_divide, remainder, mod, fmod, divmod = _direct(_np.floor_divide, _np.remainder, _np.mod, _np.fmod, _np.divmod)
negative, positive, reciprocal, square, sqrt, cbrt = _direct(
    _np.negative, _np.positive, _np.reciprocal, _np.square, _np.sqrt, _np.cbrt)
power, pow, float_power, absolute, abs, fabs = _direct(
    _np.power, _np.pow, _np.float_power, _np.absolute, _np.abs, _np.fabs)
matmul, vecdot = _direct(_np.matmul, _np.vecdot)
# exponentials and logarithms
exp, exp2, expm1, logaddexp, logaddexp2 = _direct(_np.exp, _np.exp2, _np.expm1, _np.logaddexp, _np.logaddexp2)
log, log2, log10, log1p, ldexp, frexp = _direct(_np.log, _np.log2, _np.log10, _np.log1p, _np.ldexp, _np.frexp)
# trigonometric and hyperbolic
sin, cos, tan, arcsin, arccos, arctan, arctan2, hypot = _direct(
    _np.sin, _np.cos, _np.tan, _np.arcsin, _np.arccos, _np.arctan, _np.arctan2, _np.hypot)
sinh, cosh, tanh, arcsinh, arccosh, arctanh = _direct(
    _np.sinh, _np.cosh, _np.tanh, _np.arcsinh, _np.arccosh, _np.arctanh)
asin, acos, atan, atan2, asinh, acosh, atanh = _direct(
    _np.asin, _np.acos, _np.atan, _np.atan2, _np.asinh, _np.acosh, _np.atanh)
deg2rad, rad2deg, degrees, radians = _direct(_np.deg2rad, _np.rad2deg, _np.degrees, _np.radians)
# rounding, signs, parts
floor, ceil, trunc, rint, modf, spacing, nextafter = _direct(
    _np.floor, _np.ceil, _np.trunc, _np.rint, _np.modf, _np.spacing, _np.nextafter)
sign, signbit, copysign, heaviside, conj, conjugate = _direct(
    _np.sign, _np.signbit, _np.copysign, _np.heaviside, _np.conj, _np.conjugate)
# choosing and comparing
maximum, minimum, fmax, fmin = _direct(_np.maximum, _np.minimum, _np.fmax, _np.fmin)
equal, not_equal, less, less_equal, greater, greater_equal = _direct(
    _np.equal, _np.not_equal, _np.less, _np.less_equal, _np.greater, _np.greater_equal)
isfinite, isinf, isnan = _direct(_np.isfinite, _np.isinf, _np.isnan)
logical_and, logical_or, logical_xor, logical_not = _direct(
    _np.logical_and, _np.logical_or, _np.logical_xor, _np.logical_not)

# ------------------------------------------------------------------------------------------------ elementwise functions
round, around, fix, clip, nan_to_num, sinc, i0 = _direct(
    _np.round, _np.around, _np.fix, _np.clip, _np.nan_to_num, _np.sinc, _np.i0)
real, imag, angle, real_if_close, astype, copy = _direct(
    _np.real, _np.imag, _np.angle, _np.real_if_close, _np.astype, _np.copy)
where, select, choose, piecewise, interp, unwrap = _direct(
    _np.where, _np.select, _np.choose, _np.piecewise, _np.interp, _np.unwrap)

# ------------------------------------------------------------------------------------------------ reductions
sum, prod, mean, std, var, average, median, ptp = _direct(
    _np.sum, _np.prod, _np.mean, _np.std, _np.var, _np.average, _np.median, _np.ptp)
max, min, amax, amin, quantile, percentile = _direct(_np.max, _np.min, _np.amax, _np.amin, _np.quantile, _np.percentile)
all, any, argmax, argmin, count_nonzero = _direct(_np.all, _np.any, _np.argmax, _np.argmin, _np.count_nonzero)
nansum, nanprod, nanmean, nanstd, nanvar, nanmedian = _direct(
    _np.nansum, _np.nanprod, _np.nanmean, _np.nanstd, _np.nanvar, _np.nanmedian)
nanmax, nanmin, nanargmax, nanargmin, nanquantile, nanpercentile = _direct(
    _np.nanmax, _np.nanmin, _np.nanargmax, _np.nanargmin, _np.nanquantile, _np.nanpercentile)
cumsum, cumprod, nancumsum, nancumprod = _direct(_np.cumsum, _np.cumprod, _np.nancumsum, _np.nancumprod)
diff, ediff1d, gradient, trapezoid = _direct(_np.diff, _np.ediff1d, _np.gradient, _np.trapezoid)
cov, corrcoef, histogram, bincount, digitize = _direct(_np.cov, _np.corrcoef, _np.histogram, _np.bincount, _np.digitize)

# ------------------------------------------------------------------------------------------------ shapes
reshape, ravel, squeeze, expand_dims, resize = _direct(_np.reshape, _np.ravel, _np.squeeze, _np.expand_dims, _np.resize)
transpose, permute_dims, matrix_transpose, swapaxes, moveaxis, rollaxis = _direct(
    _np.transpose, _np.permute_dims, _np.matrix_transpose, _np.swapaxes, _np.moveaxis, _np.rollaxis)
broadcast_to, broadcast_arrays, meshgrid, ix_ = _direct(_np.broadcast_to, _np.broadcast_arrays, _np.meshgrid, _np.ix_)
atleast_1d, atleast_2d, atleast_3d = _direct(_np.atleast_1d, _np.atleast_2d, _np.atleast_3d)
flip, fliplr, flipud, rot90, roll = _direct(_np.flip, _np.fliplr, _np.flipud, _np.rot90, _np.roll)
shape, ndim, size = _direct(_np.shape, _np.ndim, _np.size)

diag_indices_from, tril_indices_from, triu_indices_from = _direct(
    _np.diag_indices_from, _np.tril_indices_from, _np.triu_indices_from)

# ------------------------------------------------------------------------------------------------ joining, splitting, repeating
concatenate, concat, stack, block, append = _direct(_np.concatenate, _np.concat, _np.stack, _np.block, _np.append)
vstack, hstack, dstack, column_stack = _direct(_np.vstack, _np.hstack, _np.dstack, _np.column_stack)
split, array_split, vsplit, hsplit, dsplit = _direct(_np.split, _np.array_split, _np.vsplit, _np.hsplit, _np.dsplit)
tile, repeat, pad, insert, delete, trim_zeros = _direct(
    _np.tile, _np.repeat, _np.pad, _np.insert, _np.delete, _np.trim_zeros)

# ------------------------------------------------------------------------------------------------ elements
take, take_along_axis, compress, extract, diagonal = _direct(
    _np.take, _np.take_along_axis, _np.compress, _np.extract, _np.diagonal)
diag, diagflat, tril, triu, trace, vander = _direct(_np.diag, _np.diagflat, _np.tril, _np.triu, _np.trace, _np.vander)
put, put_along_axis, putmask, place, copyto, fill_diagonal = _direct(
    _np.put, _np.put_along_axis, _np.putmask, _np.place, _np.copyto, _np.fill_diagonal)
nonzero, flatnonzero, argwhere, searchsorted = _direct(_np.nonzero, _np.flatnonzero, _np.argwhere, _np.searchsorted)
sort, argsort, partition, argpartition, lexsort, sort_complex = _direct(
    _np.sort, _np.argsort, _np.partition, _np.argpartition, _np.lexsort, _np.sort_complex)
unique_all, unique_counts, unique_inverse, unique_values = _direct(
    _np.unique_all, _np.unique_counts, _np.unique_inverse, _np.unique_values)
unique, isin, intersect1d, union1d, setdiff1d, setxor1d = _direct(
    _np.unique, _np.isin, _np.intersect1d, _np.union1d, _np.setdiff1d, _np.setxor1d)

# ------------------------------------------------------------------------------------------------ products
dot, vdot, inner, outer, tensordot, einsum, einsum_path = _direct(
    _np.dot, _np.vdot, _np.inner, _np.outer, _np.tensordot, _np.einsum, _np.einsum_path)
kron, cross, convolve, correlate = _direct(_np.kron, _np.cross, _np.convolve, _np.correlate)
apply_along_axis, apply_over_axes = _direct(_np.apply_along_axis, _np.apply_over_axes)
poly, polyval, polyadd, polysub, polymul, polyder, polyint, roots = _direct(
    _np.poly, _np.polyval, _np.polyadd, _np.polysub, _np.polymul, _np.polyder, _np.polyint, _np.roots)

# ------------------------------------------------------------------------------------------------ questions
allclose, isclose, array_equal, array_equiv = _direct(_np.allclose, _np.isclose, _np.array_equal, _np.array_equiv)
iscomplex, isreal, iscomplexobj, isrealobj = _direct(_np.iscomplex, _np.isreal, _np.iscomplexobj, _np.isrealobj)
result_type, can_cast, min_scalar_type, common_type = _direct(
    _np.result_type, _np.can_cast, _np.min_scalar_type, _np.common_type)
isneginf, isposinf = _direct(_np.isneginf, _np.isposinf)
shares_memory, may_share_memory = _direct(_np.shares_memory, _np.may_share_memory)
array2string, array_repr, array_str = _direct(_np.array2string, _np.array_repr, _np.array_str)
save, savetxt, savez, savez_compressed = _direct(_np.save, _np.savetxt, _np.savez, _np.savez_compressed)

# ------------------------------------------------------------------------------------------------ of some versions of NumPy
if "trapz" in vars(_np):                            # until 2.3
    (trapz,) = _direct(vars(_np)["trapz"])
if hasattr(_np, "unstack"):                         # 2.1
    unstack, cumulative_sum, cumulative_prod = _direct(_np.unstack, _np.cumulative_sum, _np.cumulative_prod)
if hasattr(_np, "matvec"):                          # 2.2
    matvec, vecmat = _direct(_np.matvec, _np.vecmat)


def __getattr__(name):
    if name == "fft":                               # NumPy's own takes a while to import
        return _importlib.import_module("cgrad.numpy.fft")
    return getattr(_np, name)


def __dir__():
    return sorted({*_np.__dir__(), *globals()} - {"__path__"})
