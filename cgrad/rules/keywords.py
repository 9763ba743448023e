"""Keywords of ufunc calls (out=, where=, dtype=, casting=, order=, signature=), and ufunc.outer.

`call_with` takes every call with keywords of a ufunc that has a row in the registry.
"""
import numpy as np

from cgrad._record import apply_elementwise

from .registry import deliver, is_array, plain_value, ufunc_method

__all__ = ["call_with", "mask_of"]


def call_with(op, inputs, kwargs):
    """Record ``op.ufunc(*inputs, **kwargs)``.

    With `where` the result is chosen between the computed values and those of `out`, and so is its derivative. Without `out`
    NumPy leaves the places that are masked out undefined; here they are constant zeros.
    """
    kwargs = dict(kwargs)
    out, where = kwargs.pop("out", None), kwargs.pop("where", True)
    if type(out) is tuple:
        (out,) = out
    if where is not True:
        where = mask_of(where)
        kwargs["where"], kwargs["out"] = where, None
    if not any(map(is_array, inputs)):
        result = op.ufunc(*inputs, **kwargs)
    else:
        result = apply_elementwise(op, inputs, kwargs)
    if where is not True:
        result = masked(result, where, out)
    if is_array(out):
        result = cast(op, result, out, kwargs.get("casting", "same_kind"))
    return deliver(result, out)


def mask_of(where):
    """A mask as NumPy reads it: numbers in a list may stand for bools, those in an array may not."""
    where = plain_value(where)
    if isinstance(where, (np.ndarray, np.generic)) and where.dtype != bool:
        raise TypeError(f"where= has dtype {where.dtype}; expected bool: use a comparison")
    return np.array(where, bool)


def masked(result, where, out):
    """`result` where it was computed, else what `out` holds."""
    value = plain_value(result)
    if isinstance(value, np.ndarray) and value.flags.writeable:
        # what was not computed is whatever the memory held; the rule may read it
        np.copyto(value, 0, where=~where)
    chosen = np.where(where, result, 0 if out is None else out)
    return chosen if isinstance(value, np.ndarray) or where.ndim else chosen[()]


def cast(op, result, out, casting):
    """`result` in the dtype of `out`, if the rule for casting allows it."""
    if result.dtype == out.dtype:
        return result
    if not np.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(f"np.{op.name}: cannot cast its {result.dtype} result to the dtype {out.dtype} of out= according "
                        f"to the rule {casting!r}")
    return result.astype(out.dtype)


@ufunc_method(None, "outer")
def outer(ufunc, a, b, /, **kwargs):
    """ufunc.outer of any elementwise ufunc: every element of a with every element of b."""
    ndim = np.ndim(plain_value(b))
    if ndim:
        a = (a if is_array(a) else np.asarray(a))[(..., *(None,) * ndim)]
    return ufunc(a, b, **kwargs)
