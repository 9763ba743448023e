"""One run of a user's function on fresh leaves: arguments in, the stretch of tape that it records, adjoints out.

What every transform does, without the interpreter's overhead, which for small functions would cost more than the function. Uses
the tape, Traced and the sweep; used by `transforms` and `gradient_tape`.
"""
cimport cython
cimport numpy as cnp
from cpython.float cimport PyFloat_CheckExact

from cgrad._record cimport Traced, is_array, leaf, settle, value_of
from cgrad._tape cimport Tape, current_tape

import numpy as np

from cgrad import tree
from cgrad._sweep import reverse
from cgrad._tape import close_tape, open_tape

cnp.import_array()

cdef object np_ndarray = np.ndarray


cpdef object as_leaf(Tape tape, object value, where):
    """A fresh node for one differentiated value; `where` names it in errors: a string, or (transform, argument, path)."""
    cdef Traced parent = None, given
    if not is_array(value) and not PyFloat_CheckExact(value) and hasattr(type(value), "__cgrad_array__"):
        value = value.__cgrad_array__()
    if is_array(value):
        given = value
        settle(given)
        if given.tape is tape:
            parent = given
        value = value_of(given)
    if PyFloat_CheckExact(value):
        return leaf(tape, value, parent)
    if cnp.PyArray_CheckExact(value) and cnp.PyTypeNum_ISFLOAT(cnp.PyArray_TYPE(value)) \
            and cnp.PyArray_ISNOTSWAPPED(<cnp.ndarray> value):
        return leaf(tape, tape.guard(value) if parent is None else value, parent)
    kind = value.dtype.kind if isinstance(value, (np_ndarray, np.generic)) else np.asarray(value).dtype.kind
    if kind not in "fc":
        if not isinstance(where, str):
            where = f"{where[0]}: argument {where[1]}{where[2]}"
        raise TypeError(f"{where}: got {type(value).__name__} of dtype {np.asarray(value).dtype}, which has no derivative; "
                        "expected a real or complex floating type: pass a float, e.g. x.astype(float)")
    if isinstance(value, np_ndarray) and parent is None:
        value = tape.guard(value if type(value) is np_ndarray else np.asarray(value))
        if not value.dtype.isnative:
            value = value.astype(value.dtype.newbyteorder("="))
    return leaf(tape, value, parent)


@cython.final
cdef class Trace:
    """Runs ``fun(*args, **kwargs)`` with fresh leaves for the positional arguments `argnums`.

    The window on the tape is closed again when the constructor returns: a sweep that is recorded runs because an outer
    window is open, any other runs outside of all of them.

    Attributes
    ----------
    out, aux : what the function returned
    leaves : list of Array
    nested : whether an outer window records
    start : number of the first node
    """
    cdef readonly Tape tape
    cdef readonly bint nested
    cdef readonly Py_ssize_t start
    cdef readonly object out
    cdef readonly object aux
    cdef readonly list leaves
    cdef list numbers       # of the leaves; the Arrays themselves may be written to by the function
    cdef list rebuilds      # for each argument (rebuild, how many leaves), or None: the argument is one leaf

    def __init__(self, str where, fun, tuple args, dict kwargs, tuple argnums, bint has_aux):
        cdef Tape tape = open_tape()
        cdef list given = list(args)
        cdef object arg, new
        cdef Py_ssize_t n, count = len(args)
        self.tape = tape
        try:
            self.nested = tape.recording > 1
            self.start = tape.n
            self.leaves, self.rebuilds, self.numbers = [], [], []
            for n in argnums:
                if not -count <= n < count:
                    raise ValueError(f"{where}: argnums {n} is out of range: the function was called with {count} positional "
                                     f"argument{'s' if count != 1 else ''}; pass the differentiated arguments by position")
                if n < 0:
                    n += count
                arg = args[n]
                if isinstance(arg, np_ndarray) or PyFloat_CheckExact(arg) or is_array(arg):
                    new = as_leaf(tape, arg, (where, n, ""))
                    self.leaves.append(new)
                    self.rebuilds.append(None)
                    given[n] = new
                else:
                    values, rebuild = tree.flatten(arg)
                    paths = [path for path, _ in tree.leaves_with_paths(arg)]
                    news = [as_leaf(tape, v, (where, n, p)) for p, v in zip(paths, values)]
                    self.leaves += news
                    self.rebuilds.append((rebuild, len(news)))
                    given[n] = rebuild(news)
            for new in self.leaves:
                self.numbers.append((<Traced> new).node)
            out = fun(*given, **kwargs)
            if has_aux:
                if not (isinstance(out, tuple) and len(out) == 2):
                    raise TypeError(f"{where}: with has_aux=True the function must return (output, auxiliary data), a tuple "
                                    f"of two; got {type(out).__name__}")
                out, self.aux = out
            self.out = out
        finally:
            close_tape(tape)

    cpdef list sweep(self, list targets, list seeds, tuple lead=(), bint freeing=False):
        """Adjoints of all leaves; None where nothing leads there."""
        cdef bint recorded = current_tape() is not None
        windows = ((self.start, self.tape.n),) if self.nested else None
        return reverse(self.tape, targets, seeds, self.numbers, windows=windows, recorded=recorded,
                       freeing=freeing and not recorded and not self.nested, lead=lead)

    cpdef list give(self, list adjoints, tuple lead=()):
        """The adjoints in the containers of the arguments; zeros for leaves without influence."""
        cdef list results = [], flat = []
        cdef Traced x
        cdef object g
        cdef Py_ssize_t at = 0, k
        for k in range(len(self.leaves)):
            x = self.leaves[k]
            g = adjoints[k]
            if g is None:
                g = np.zeros(lead + x.shape, x.dtype)
                if x.scalar and not lead:
                    g = g[()]
            elif not x.scalar and not is_array(g) and not isinstance(g, np_ndarray):
                g = np.asarray(g)
            flat.append(g)
        for entry in self.rebuilds:
            if entry is None:
                results.append(flat[at])
                at += 1
            else:
                rebuild, count = entry
                results.append(rebuild(flat[at:at + count]))
                at += count
        return results


# ------------------------------------------------------------------------------------------------ outputs
cpdef tuple output_of(str where, object out):
    """(node, shape, dtype) of one output; node -1 where it is a constant."""
    if is_array(out):
        settle(<Traced> out)
        return (<Traced> out).node, out.shape, out.dtype
    value = np.asarray(out)
    if value.dtype == object:
        raise TypeError(f"{where}: the function returned {type(out).__name__}; expected arrays, scalars, or containers of them")
    return -1, value.shape, value.dtype


def check_seed(where, seed, shape, dtype):
    """A seed has the shape of the output it belongs to, and numbers of a kind that the output has."""
    if np.shape(seed) != shape:
        raise ValueError(f"{where} has shape {np.shape(seed)}; expected {shape}, the shape of the output it belongs to")
    kind = seed.dtype.kind if hasattr(seed, "dtype") else np.asarray(seed).dtype.kind
    if kind == "c" and dtype.kind != "c":
        raise TypeError(f"{where} is complex, but the output it belongs to is {dtype}; pass a real one")
    if kind not in "fcui":
        raise TypeError(f"{where} has dtype {np.asarray(seed).dtype}; expected numbers")


@cython.final
cdef class Pullback:
    """What `cgrad.vjp` returns beside the value: ``pullback(adjoint) -> tuple``, one entry per primal.

    The adjoint has the containers and shapes of the output. May be called many times; holds the values of the run until it is
    dropped. To be used in the thread that made it.
    """
    cdef Trace trace
    cdef list outputs           # (node, shape, dtype)
    cdef list nodes             # those outputs that are not constants
    cdef bint single

    def __init__(self, Trace trace, list outputs, bint single):
        self.trace, self.outputs, self.single = trace, outputs, single
        self.nodes = [node for node, _, _ in outputs if node >= 0]

    def __call__(self, adjoint):
        cdef list seeds
        if self.single and type(adjoint) is np_ndarray and self.nodes:
            shape, dtype = self.outputs[0][1], self.outputs[0][2]
            if adjoint.shape == shape and adjoint.dtype is dtype:
                return tuple(self.trace.give(self.trace.sweep(self.nodes, [adjoint])))
        seeds = tree.flatten(adjoint)[0]
        if len(seeds) != len(self.outputs):
            raise ValueError(f"vjp: the adjoint has {len(seeds)} arrays; expected {len(self.outputs)}, as the output of the "
                             "function")
        for seed, (_, shape, dtype) in zip(seeds, self.outputs):
            check_seed("vjp: the adjoint", seed, shape, dtype)
        return tuple(self.trace.give(self.trace.sweep(
            self.nodes, [s for s, o in zip(seeds, self.outputs) if o[0] >= 0])))


def scalar_gradient(str where, Trace trace, bint holomorphic):
    """Gradient list of a trace whose function must have returned one scalar."""
    cdef object out = trace.out
    cdef Traced a
    cdef list adjoints
    if is_array(out):
        a = out
        settle(a)
        if a.number and not holomorphic:
            if a.node < 0:
                return trace.give([None] * len(trace.leaves))
            return trace.give(trace.sweep([a.node], [1.0], (), True))
    elif isinstance(out, (list, tuple, dict)) or out is None:
        raise TypeError(f"{where}: the function returned {type(out).__name__}; expected one scalar. Use has_aux=True for "
                        "additional results, and cgrad.jacobian or cgrad.vjp for several outputs")
    node, shape, dtype = output_of(where, out)
    if shape != ():
        raise ValueError(f"{where}: the function returned an array of shape {shape}; expected a scalar. Use cgrad.jacobian for "
                         "all its derivatives, cgrad.vjp for a weighted sum of them, or sum the result")
    if dtype.kind == "c" and not holomorphic:
        raise TypeError(f"{where}: the function returned a complex number, whose derivative is not one number unless the "
                        "function is holomorphic: pass holomorphic=True, or make the result real")
    if holomorphic:
        for x in trace.leaves:
            if x.dtype.kind != "c":
                raise TypeError(f"{where}: holomorphic=True, but an argument has dtype {x.dtype}; expected complex")
        if node >= 0 and dtype.kind != "c":
            raise TypeError(f"{where}: holomorphic=True, but the function returned {dtype}; expected a complex result")
    if node < 0:
        return trace.give([None] * len(trace.leaves))
    return trace.give(trace.sweep([node], [dtype.type(1)], (), True))
