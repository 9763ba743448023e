"""The registry of ops, and the few words in which a rule is written.

`elementwise` and `zero` are one-line rows; `structural` makes an op with a VJP written as a function; `implements` and
`method` say which NumPy function, or ndarray method, a Python function records. Uses the tape and Array only; every rules
module uses this one.
"""
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cgrad._array import Array, attach
from cgrad._parts import copy_of, overwrite
from cgrad._record import (FUNCTIONS, METHODS, PROPERTIES, SETTERS, UFUNC_METHODS, UFUNCS, constant, plain_value, record,
                           tracked)
from cgrad._tape import Op

__all__ = ["REGISTRY", "SAMPLES", "Array", "Inverse", "Sample", "constant", "copy_of", "deliver", "elementwise", "first_array",
           "implements", "is_array", "method", "not_differentiable", "overwrite", "plain_function", "plain_value", "prop", "record",
           "setter", "structural", "tracked", "ufunc_method", "zero", "zero_derivative"]

REGISTRY = {}           # name -> Op
SAMPLES = {}            # name -> list of Sample: what the generic tests call


@dataclass(frozen=True)
class Sample:
    """One call that the generic tests make of a function.

    Parameters
    ----------
    function : callable
        Called as ``function(*arrays, **kwargs)``; a NumPy function, or a lambda over NumPy functions.
    shapes : tuple of shapes
        One floating array per differentiated argument.
    domain : tuple of (low, high), or one (low, high)
        Where each argument is drawn from.
    kwargs : dict
    complex : bool
        Also defined, and tested, for complex arguments.
    order : int
        1 where the rule's own derivative is not implemented (it raises), else 2.
    """
    function: object
    shapes: tuple
    domain: tuple = (-2.0, 2.0)
    kwargs: tuple = ()
    complex: bool = False
    order: int = 2


class Inverse(NamedTuple):
    """How an op whose result is a view in NumPy is taken again, and undone after a write to the view.

    Parameters
    ----------
    view : callable
        ``view(base, **params)``, the Array that the op gives of `base`.
    back : callable
        ``back(view, base_shape, **params)``, the base whose view this is; None where NumPy's view is read-only.
    """
    view: object
    back: object


def _register(op):
    if op.name in REGISTRY:
        raise ValueError(f"two ops are called {op.name}")
    REGISTRY[op.name] = op
    return op


def elementwise(ufunc, *partials, complex_partials=None, domain=(-2.0, 2.0), complex=True, linear=False, samples=None):
    """A row: a ufunc and its partial derivative by each input.

    A partial is a number, or a function of some of ``x, y, z`` (inputs and result) made of ufuncs; its parameter names tell the
    tape what to keep. `complex_partials` are those of complex results, where the formula differs. `domain`, one interval or one per input, and `complex` say where the tests go; `samples` replaces the call that they would make.
    """
    op = _register(Op(ufunc.__name__, "elementwise", ufunc=ufunc, partials=partials,
                      complex_partials=complex_partials, linear=linear))
    UFUNCS[ufunc] = op
    SAMPLES[op.name] = samples or [Sample(ufunc, ((3,),) * ufunc.nin, domain, complex=complex)]
    return op


def zero(ufunc, domain=(-2.0, 2.0)):
    """A ufunc whose derivative is zero wherever it exists."""
    op = _register(Op(ufunc.__name__, "zero", ufunc=ufunc, partials=(0,) * ufunc.nin))
    UFUNCS[ufunc] = op
    return op


def zero_derivative(name):
    """An op, other than a ufunc, whose derivative is zero wherever it exists: recorded results are constants."""
    return _register(Op(name, "zero"))


def structural(name, *, vjp=None, vjp_all=None, reads=(), linear=False, inverse=None, samples=()):
    """An op with a VJP written as a function; see `cgrad._tape.Op`. `samples` are the calls that the generic tests make."""
    count = len(vjp) if isinstance(vjp, tuple) else 1
    reads = tuple(reads) if reads else ("",) * count
    op = _register(Op(name, "structural", vjp=vjp, vjp_all=vjp_all, reads=reads, linear=linear, inverse=inverse))
    SAMPLES[name] = list(samples)
    return op


def implements(*functions):
    """The decorated function records what these NumPy functions compute."""
    def add(handler):
        for f in functions:
            UFUNCS[f] = handler if isinstance(f, np.ufunc) else UFUNCS.get(f)
            if not isinstance(f, np.ufunc):
                del UFUNCS[f]
                FUNCTIONS[f] = handler
        return handler
    return add


def method(*names):
    """The decorated function(self, ...) is an ndarray method of Array."""
    def add(handler):
        for name in names:
            METHODS[name] = handler
            attach(name, handler)
        return handler
    return add


def prop(name):
    """The decorated function(self) is an ndarray attribute of Array."""
    def add(handler):
        PROPERTIES[name] = handler
        attach(name, property(handler))
        return handler
    return add


def setter(name):
    """The decorated function(self, value) assigns to an attribute of Array."""
    def add(handler):
        SETTERS[name] = handler
        return handler
    return add


def ufunc_method(ufunc, name):
    """The decorated function records ``ufunc.name(...)``, e.g. ``np.add.reduce``."""
    def add(handler):
        UFUNC_METHODS[ufunc, name] = handler
        return handler
    return add


def plain_function(*functions):
    """Functions without a derivative (shapes, comparisons, integer results): called on the values, give plain results."""
    for f in functions:
        def handler(*args, _f=f, **kwargs):
            if "out" in kwargs and is_array(first_of(kwargs["out"])):
                return plain_into(_f, args, **kwargs)
            return _f(*plain_tree(args), **plain_tree(kwargs))
        if isinstance(f, np.ufunc):
            UFUNCS[f] = handler
        else:
            FUNCTIONS[f] = handler


def plain_into(function, args, *, out, where=True, **kwargs):
    """A plain function whose result goes into an Array: an assignment like any other."""
    result = function(*plain_tree(args), **plain_tree(kwargs))
    return deliver(result if where is True else FUNCTIONS[np.where](where, result, first_of(out)), out)


def first_of(x):
    return x[0] if isinstance(x, tuple) else x


def plain_tree(x):
    """Values in place of Arrays, inside tuples, lists and dicts too."""
    if isinstance(x, (tuple, list)):
        return type(x)(map(plain_tree, x))
    if isinstance(x, dict):
        return {k: plain_tree(v) for k, v in x.items()}
    return plain_value(x)


def not_differentiable(*functions, instead):
    """Functions that have no derivative rule on purpose; the error says what to use."""
    for f in functions:
        def handler(*args, _f=f, **kwargs):
            raise NotImplementedError(f"{_f.__module__}.{_f.__name__} cannot be differentiated; {instead}")
        FUNCTIONS[f] = handler


def deliver(result, out):
    """What a function with the argument ``out=out`` returns: `result`, or `out` once it holds the result."""
    if out is None:
        return result
    if type(out) is tuple:                          # as ufuncs have it
        (out,) = out
        return deliver(result, out)
    if type(out) is Array:
        overwrite(out, result)
        return out
    if tracked(result):
        raise TypeError(f"out= is a plain {type(out).__name__}, and the result, which is tracked, would lose its gradient in it; "
                        "make it with np.zeros_like(x) of a tracked x or with cgrad.numpy.zeros(shape), or leave it out")
    np.copyto(out, plain_value(result), casting="same_kind")
    return out


def is_array(x):
    """Whether x is a tracked array (with or without a node)."""
    return type(x) is Array


def first_array(*xs):
    """The first Array among the arguments."""
    for x in xs:
        if type(x) is Array:
            return x
    raise TypeError("no tracked array among the arguments")
