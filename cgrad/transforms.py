"""The transforms: functions in, functions out. Each one opens a window on the tape, runs the function, and sweeps.

Uses the sweep, the tape and containers; nothing below uses this module.
"""
import functools
import math

import numpy as np

from . import tree
from ._array import Array
from ._record import plain_value
from ._context import (Pullback, Trace, check_seed, check_unconnected, current_tape, identity_seeds, output_of, plain_tree,
                       reverse, rows_per_chunk, scalar_gradient, unconnected)
from ._tape import TapeError

__all__ = ["elementwise_grad", "grad", "gradients", "jacobian", "stop_gradient", "value_and_grad", "vjp"]


def _positions(where, argnums):
    """argnums as a tuple, and whether it was one number; positions are checked against the arguments of each call."""
    single = not isinstance(argnums, (tuple, list))
    numbers = (argnums,) if single else tuple(argnums)
    for n in numbers:
        if not isinstance(n, (int, np.integer)):
            raise TypeError(f"{where}: argnums is {argnums!r}; expected an integer or a tuple of integers")
    return tuple(int(n) for n in numbers), single


def _check_callable(where, fun):
    if not callable(fun):
        raise TypeError(f"{where}: expected a function, got {type(fun).__name__}; write {where}(f)(x), not {where}(f(x))")


def value_and_grad(fun, argnums=0, has_aux=False, holomorphic=False):
    """A function that gives the value of `fun` and its gradient.

    Parameters
    ----------
    fun : callable
        Takes arrays, scalars or nested containers of them, written in ordinary NumPy; returns a real scalar.
    argnums : int or tuple of int
        The positional arguments to differentiate by. They must be floating or complex.
    has_aux : bool
        `fun` returns ``(scalar, auxiliary data)``.
    holomorphic : bool
        `fun` is holomorphic: complex arguments and a complex result; gives the complex derivative.

    Returns
    -------
    callable
        ``f(*args) -> (value, gradient)``, or ``((value, aux), gradient)``. The gradient has the shape, dtype and containers of
        its argument; it is a tuple if `argnums` is one. For complex arguments of a real function it is df/dx - i df/dy.

    Raises
    ------
    ValueError
        If the result is not a scalar.
    TypeError
        If an argument to differentiate by is not floating.

    Examples
    --------
    >>> import numpy as np, cgrad
    >>> value, gradient = cgrad.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> print(value, gradient)
    5.0 [2. 4.]
    """
    return _value_and_grad("value_and_grad", fun, argnums, has_aux, holomorphic)


def _value_and_grad(where, fun, argnums, has_aux, holomorphic):
    _check_callable(where, fun)
    numbers, single = _positions(where, argnums)

    @functools.wraps(fun, updated=())
    def differentiated(*args, **kwargs):
        trace = Trace(where, fun, args, kwargs, numbers, has_aux)
        value, aux = trace.out, trace.aux
        gradient = scalar_gradient(where, trace, holomorphic)
        if not trace.nested:
            value = plain_tree(value)
            aux = plain_tree(aux) if has_aux else None
        return (value, aux) if has_aux else value, gradient[0] if single else tuple(gradient)
    return differentiated


def grad(fun, argnums=0, has_aux=False, holomorphic=False):
    """A function that gives the gradient of `fun`; see `value_and_grad`, which gives the value for nothing.

    Parameters
    ----------
    fun : callable
        Returns a real scalar.
    argnums : int or tuple of int
        The positional arguments to differentiate by.
    has_aux : bool
        `fun` returns ``(scalar, auxiliary data)``; the result is then ``(gradient, aux)``.
    holomorphic : bool
        Complex derivative of a holomorphic function.

    Returns
    -------
    callable

    Examples
    --------
    >>> import numpy as np, cgrad
    >>> cgrad.grad(np.sin)(0.0)
    np.float64(1.0)
    >>> cgrad.grad(cgrad.grad(lambda x: x**3))(2.0)
    np.float64(12.0)
    """
    differentiated = _value_and_grad("grad", fun, argnums, has_aux, holomorphic)

    @functools.wraps(fun, updated=())
    def gradient(*args, **kwargs):
        value, g = differentiated(*args, **kwargs)
        return (g, value[1]) if has_aux else g
    return gradient


def vjp(fun, *primals, has_aux=False):
    """The value of `fun`, and its pullback: the product of an adjoint of the output with the Jacobian.

    Parameters
    ----------
    fun : callable
        May return arrays in any containers.
    *primals
        The arguments; all are differentiated.
    has_aux : bool
        `fun` returns ``(output, auxiliary data)``.

    Returns
    -------
    out
        The value.
    pullback : callable
        ``pullback(adjoint) -> tuple``, one entry per primal. The adjoint has the containers and shapes of `out`. It may be
        called many times, and holds the values of the run until it is dropped.
    aux
        Only with `has_aux`.

    Examples
    --------
    >>> import numpy as np, cgrad
    >>> out, pullback = cgrad.vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 2., 40.]),)
    """
    _check_callable("vjp", fun)
    trace = Trace("vjp", fun, primals, {}, tuple(range(len(primals))), has_aux)
    out = trace.out
    if type(out) is Array:
        pullback = Pullback(trace, [output_of("vjp", out)], True)
        shown = out if trace.nested else _own_value(out)
    else:
        outs, rebuild = tree.flatten(out)
        pullback = Pullback(trace, [output_of("vjp", o) for o in outs], False)
        shown = out if trace.nested else rebuild([_own_value(o) for o in outs])
    if not has_aux:
        return shown, pullback
    return shown, pullback, trace.aux if trace.nested else tree.map_leaves(_own_value, trace.aux)


def _own_value(out):
    """The value of a result that the pullback may still need, for the user to do with as they like."""
    if type(out) is not Array:
        return out
    value = plain_value(out)
    return value.copy() if isinstance(value, np.ndarray) else value


def jacobian(fun, argnums=0, as_matrix=False, chunk=None):
    """A function that gives all derivatives of all outputs of `fun`, by one batched reverse sweep.

    Parameters
    ----------
    fun : callable
        Returns an array, or containers of arrays and scalars.
    argnums : int or tuple of int
        The positional arguments to differentiate by.
    as_matrix : bool
        Give one plain matrix: all outputs (rows) by all inputs (columns), each in C order.
    chunk : int, optional
        How many rows one sweep takes; by default all that fit into a bounded amount of memory.

    Returns
    -------
    callable
        For an output of shape S and an argument of shape T the Jacobian has shape S + T. Containers of the output are
        outside, those of the arguments inside. With a tuple of `argnums` a tuple.

    Examples
    --------
    >>> import numpy as np, cgrad
    >>> f = lambda v: np.stack([v[0]**2 + 2*v[1], v[1]**2])
    >>> print(cgrad.jacobian(f)(np.array([1.0, 4.0])))
    [[2. 2.]
     [0. 8.]]
    >>> g = lambda x, y: [x**2 + 2*y, y**2]
    >>> print(cgrad.jacobian(g, argnums=(0, 1), as_matrix=True)(1.0, 4.0))
    [[2. 2.]
     [0. 8.]]
    """
    _check_callable("jacobian", fun)
    numbers, single = _positions("jacobian", argnums)

    @functools.wraps(fun, updated=())
    def differentiated(*args, **kwargs):
        trace = Trace("jacobian", fun, args, kwargs, numbers, False)
        plain = type(trace.out) is Array
        outs, rebuild = ([trace.out], None) if plain else tree.flatten(trace.out)
        targets = [output_of("jacobian", o) for o in outs]
        blocks = [_jacobian_rows(trace, *t, chunk) for t in targets]
        if as_matrix:
            return _one_matrix(trace, targets, blocks)
        results = []
        for (_, shape, _), block in zip(targets, blocks):
            full = [b.reshape(shape + x.shape) for b, x in zip(block, trace.leaves)]
            given = trace.give(full, shape)
            results.append(given[0] if single else tuple(given))
        return results[0] if plain else rebuild(results)
    return differentiated


def _jacobian_rows(trace, node, shape, dtype, chunk):
    """For each leaf the array (size of the output, *shape of the leaf)."""
    size = math.prod(shape)
    if dtype.kind not in "fc" and node >= 0:
        raise TypeError(f"jacobian: the function returned {dtype}, which has no derivative")
    if node < 0 or size == 0:
        return [np.zeros((size, *x.shape), x.dtype) for x in trace.leaves]
    step, parts = rows_per_chunk(trace.tape, trace.start, size, chunk), []
    for start in range(0, size, step):
        stop = min(start + step, size)
        lead = (stop - start,)
        adjoints = trace.sweep([node], [identity_seeds(shape, dtype, start, stop)], lead)
        parts.append([np.zeros(lead + x.shape, x.dtype) if g is None else g
                      for g, x in zip(adjoints, trace.leaves)])
    if len(parts) == 1:
        return parts[0]
    return [np.concatenate(p) for p in zip(*parts)]


def _one_matrix(trace, targets, blocks):
    rows = []
    for (_, shape, _), block in zip(targets, blocks):
        size = math.prod(shape)
        rows.append(np.concatenate([b.reshape((size, -1)) if x.size else b.reshape((size, 0))
                                    for b, x in zip(block, trace.leaves)], axis=1))
    return np.concatenate(rows) if len(rows) != 1 else rows[0]


def elementwise_grad(fun, argnums=0, check=True):
    """A function that gives the derivative of each element of the output by the same element of the argument.

    Parameters
    ----------
    fun : callable
        Acts on each element by itself, so that its Jacobian is diagonal; output and argument have one shape.
    argnums : int
        The positional argument to differentiate by.
    check : bool
        Refuse functions whose Jacobian is seen not to be diagonal. Functions made of elementwise operations alone are
        recognised as they are; others cost a second seed in the sweep, with random weights. Without the check, such a function
        gives the column sums of its Jacobian.

    Returns
    -------
    callable

    Raises
    ------
    ValueError
        If output and argument have different shapes, or the Jacobian is not diagonal.

    Examples
    --------
    >>> import numpy as np, cgrad
    >>> cgrad.elementwise_grad(np.square)(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    _check_callable("elementwise_grad", fun)
    numbers, single = _positions("elementwise_grad", argnums)
    if not single:
        raise TypeError(f"elementwise_grad: argnums is {argnums!r}; expected one integer")

    @functools.wraps(fun, updated=())
    def differentiated(*args, **kwargs):
        trace = Trace("elementwise_grad", fun, args, kwargs, numbers, False)
        if len(trace.leaves) != 1:
            raise TypeError(f"elementwise_grad: argument {numbers[0]} is a container; expected one array")
        x = trace.leaves[0]
        node, shape, dtype = output_of("elementwise_grad", trace.out)
        if shape != x.shape:
            raise ValueError(f"elementwise_grad: the output has shape {shape} and the argument {x.shape}, so the Jacobian "
                             "is not diagonal; use cgrad.jacobian, or cgrad.vjp for its column sums")
        if node < 0:
            return trace.give([None])[0]
        ones = np.ones(shape, dtype)
        if not check or trace.tape.elementwise_only(trace.start, node, x.shape):
            return trace.give(trace.sweep([node], [ones]))[0]
        weights = 1 + np.random.default_rng(20).random(shape).astype(dtype)
        both = trace.sweep([node], [np.stack([ones, weights])], (2,))[0]
        if both is None:
            return trace.give([None])[0]
        slopes, weighted = plain_value(both[0]), plain_value(both[1])
        # relative to the largest slope: a function of small numbers is no more diagonal for that
        tolerance = 1e4 * np.finfo(dtype).eps
        scale = np.abs(slopes[np.isfinite(slopes)]).max(initial=0)
        if not np.allclose(weighted, slopes * weights, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            raise ValueError("elementwise_grad: the Jacobian of this function is not diagonal: its elements depend on each "
                             "other. Use cgrad.jacobian, or cgrad.vjp for the column sums")
        return trace.give([both[0]])[0]
    return differentiated


def stop_gradient(x):
    """`x` as a constant: the same value, no derivative. Containers are taken apart.

    Examples
    --------
    >>> import numpy as np, cgrad
    >>> cgrad.grad(lambda x: x * cgrad.stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return tree.map_leaves(lambda leaf: leaf.value if type(leaf) is Array else
                           leaf.__cgrad_array__() if hasattr(type(leaf), "__cgrad_array__") and current_tape() is None
                           else plain_value(leaf.__cgrad_array__()) if hasattr(type(leaf), "__cgrad_array__") else leaf, x)


def gradients(ys, xs, grad_ys=None, unconnected_gradients="none"):
    """Gradients of the sum of `ys` by each of `xs`, inside a function that is being differentiated or a GradientTape.

    Parameters
    ----------
    ys : Array, Variable, or list of them
        Values computed from `xs`.
    xs : Array, Variable, or list of them
        Tracked values.
    grad_ys : array or list of arrays, optional
        Seeds, one for each of `ys`, of its shape; ones by default.
    unconnected_gradients : {"none", "zero"}
        What an x gets that no y depends on.

    Returns
    -------
    Array or list of Arrays
        As `xs`; recorded, so that they can be differentiated again.

    Examples
    --------
    >>> import numpy as np, cgrad
    >>> def slope_squared(x):
    ...     return cgrad.gradients(np.sin(x), x)**2
    >>> print(f"{cgrad.grad(slope_squared)(1.0):.6f}")      # d/dx cos(x)**2 = -sin(2 x)
    -0.909297
    """
    check_unconnected("gradients", unconnected_gradients)
    tape = current_tape()
    if tape is None:
        raise TapeError("gradients: nothing records here; call it inside a function that cgrad differentiates, or inside a "
                        "GradientTape; elsewhere use cgrad.grad or GradientTape.gradient")
    single = not isinstance(xs, (list, tuple))
    xs = [xs] if single else list(xs)
    ys = list(ys) if isinstance(ys, (list, tuple)) else [ys]
    seeds = [None] * len(ys) if grad_ys is None else list(grad_ys) if isinstance(grad_ys, (list, tuple)) else [grad_ys]
    if len(seeds) != len(ys):
        raise ValueError(f"gradients: got {len(seeds)} grad_ys for {len(ys)} ys; expected one for each")
    nodes, sources = [], []
    for y, s in zip(ys, seeds):
        if hasattr(type(y), "__cgrad_array__"):
            y = y.__cgrad_array__()
        if type(y) is not Array:
            raise TypeError(f"gradients: a y is {type(y).__name__}; expected a tracked value computed from xs")
        if s is None:
            s = np.ones(y.shape, y.dtype)
        check_seed("gradients: grad_ys", s, y.shape, y.dtype)
        if y.node_number >= 0:
            nodes.append((y.node_number, s))
    for x in xs:
        if hasattr(type(x), "__cgrad_leaf__"):
            sources.append(x.__cgrad_leaf__(tape))
        elif type(x) is Array and x.node_number >= 0:
            sources.append(x.node_number)
        else:
            raise TypeError(f"gradients: an x is a {'constant' if type(x) is Array else type(x).__name__}; expected a tracked "
                            "value or a Variable")
    found = iter(reverse(tape, [n for n, _ in nodes], [s for _, s in nodes], [n for n in sources if n >= 0], recorded=True))
    found = [unconnected(next(found) if n >= 0 else None, x.shape, x.dtype, unconnected_gradients)
             for n, x in zip(sources, xs)]
    return found[0] if single else found
