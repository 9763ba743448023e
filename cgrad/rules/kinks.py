"""Norms at their kink, the origin: first and second order there.

Used by `norms` and `statistics`. The one module of rules that calls the sweep: for a limit it needs a derivative itself.
"""
import numpy as np

from cgrad import _kernels as k
from cgrad._sweep import reverse

from .reductions import lead_of
from .registry import is_array, tracked


def scaled(x, factor):
    """x * factor, in the buffer of x, which is a temporary."""
    if type(x) is np.ndarray and factor.ndim <= x.ndim and factor.dtype == x.dtype:
        return np.multiply(x, factor, x)
    return x * factor


def radial(x, gz, z, restore, factor=1, scale=np.multiply, kink=None):
    """The adjoint gz x / z of a norm z of x. Where x is 0 it is 0, the shortest of the subgradients.

    Parameters
    ----------
    x : ndarray or Array
        What the norm is of; its conjugate if it is complex.
    gz, z : ndarray or Array
        Adjoint and norm.
    restore : callable
        Gives a result of the reduction the reduced axes, of length 1.
    factor : float or ndarray
        Of the adjoint, with the reduced axes.
    scale : callable
        Multiplies x by its slope: `scaled` where x is a temporary.
    kink : ndarray of bool, optional
        Where, besides z == 0, x is 0 but for rounding; with the reduced axes.
    """
    info = np.finfo(z.dtype)
    if kink is None and (z > info.tiny / info.eps).all():
        return scale(x, restore(gz / z) * factor)
    g, norm = restore(gz), restore(z)
    at_kink = norm == 0 if kink is None else kink | (norm == 0)
    if is_array(gz) and np.any(at_kink):
        slope = restore(slope_at_zero(gz, z))
        # but for its slope the adjoint is 0 there
        smooth = at_kink & (np.abs(g - slope * norm) <= 1e-3 * np.abs(slope * norm))
        at_kink = at_kink & ~smooth
        g, norm = np.where(smooth, slope, g), np.where(smooth, 1, norm)
    if kink is not None:
        x, norm = np.where(at_kink, 0 * x, x), np.where(at_kink, 0 * norm, norm)
    with np.errstate(all="ignore"):
        return k.over_or_zero(x, norm) * (g * factor)


def slope_at_zero(gz, z):
    """d gz / d z, element by element: what gz / z tends to where both are 0.

    A norm whose adjoint is 0 at the kink was squared, or the like: exp(-z**2) is smooth although z is not. Its gradient is x
    times gz / z, and the second order needs that ratio, which only the derivative of gz has (de l'Hopital).
    """
    if not (tracked(gz) and tracked(z)) or gz.tape_of is not z.tape_of:
        return np.zeros(gz.shape, gz.dtype)
    lead, rows = lead_of(gz, z), []
    for row in np.ndindex(lead):
        seed = np.zeros(gz.shape, gz.dtype)
        seed[row] = 1
        (slope,) = reverse(gz.tape_of, [gz.node_number], [seed], [z.node_number], recorded=True)
        rows.append(np.zeros(z.shape, z.dtype) if slope is None else slope)
    return np.reshape(np.stack(rows), lead + z.shape) if lead else rows[0]
