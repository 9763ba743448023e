"""`GradientTape` and `Variable`: recording over a stretch of code instead of a function, in TensorFlow's words.

A GradientTape is a window (or several, after `stop_recording`) on the tape of its thread. Uses the sweep, the tape, Array.
"""
import contextlib
import itertools
import math

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from . import tree
from ._array import Array
from ._parts import copy_of
from ._record import leaf, plain_value, tracked
from ._context import as_leaf, check_unconnected, current_tape, identity_seeds, reverse, rows_per_chunk, unconnected
from ._tape import TapeError, close_tape, open_tape, reopen_tape

__all__ = ["GradientTape", "Operation", "Variable"]

_names = itertools.count()

# An adjoint is multiplied so that its zeros win over infinities; to whoever reads the graph it is a multiplication.
SHOWN_AS = {"strong_multiply": "multiply"}


class Variable(NDArrayOperatorsMixin):
    """An array that can be assigned to, and that every open `GradientTape` watches.

    Works in every NumPy function and operator. Assignments while a tape records are recorded: ``tape.gradient(Y, k)`` of a
    Variable Y that was assigned from k gives the gradient.

    Parameters
    ----------
    value : array_like
        Copied. Python floats become float64.
    name : str, optional
    trainable : bool
        Whether tapes watch it without being told.

    Notes
    -----
    Not safe to assign from two threads at once.

    Examples
    --------
    >>> import numpy as np, cgrad
    >>> k = cgrad.Variable(np.array([1.0, 2.0]), name="k")
    >>> Y = cgrad.Variable(np.zeros(2), name="Y")
    >>> with cgrad.GradientTape() as tape:
    ...     for i in range(2):
    ...         Y[i] = 3 * k[i]
    >>> tape.gradient(Y, k)
    array([3., 3.])
    """

    __slots__ = ("_array", "_value", "name", "trainable", "__weakref__")
    __hash__ = object.__hash__

    def __init__(self, value, name=None, trainable=True):
        if type(value) is Array:
            raise TypeError("Variable: the initial value is tracked, and its gradient would be lost; pass x.value, or make the "
                            "Variable outside and assign to it")
        self._value = np.array(value)
        if self._value.dtype == object:
            raise TypeError(f"Variable: got {type(value).__name__}; expected numbers")
        self._array = None              # the Array that holds it on the tape that records now
        self.name = f"Variable_{next(_names)}" if name is None else name
        self.trainable = trainable

    # -- value
    @property
    def value(self):
        """The value, a fresh ndarray."""
        self._settle()
        return np.array(plain_value(self._array)) if self._array is not None else self._value.copy()

    def _settle(self):
        """Once its tape is over a Variable keeps its value only."""
        if self._array is not None and self._array.tape_of.recording == 0:
            self._value = np.array(plain_value(self._array))
            self._array = None

    @property
    def shape(self):
        return self._value.shape

    @property
    def ndim(self):
        return self._value.ndim

    @property
    def size(self):
        return self._value.size

    @property
    def dtype(self):
        return self._value.dtype

    def __cgrad_array__(self):
        """What an operation reads: the Array on the tape that records, or the plain ndarray."""
        self._settle()
        tape = current_tape()
        if tape is None or (self._array is not None and self._array.tape_of is not tape):
            return self._value
        watching = [w for w in tape.windows if w._watches(self)]
        missing = [w for w in watching if id(self) not in w._variables]
        if missing:
            if self._value.dtype.kind not in "fc":
                return self._value
            new = leaf(tape, tape.guard(self._value) if self._array is None else plain_value(self._array), self._array)
            new = copy_of(new)                      # 0-d too can be assigned to
            for w in missing:
                w._variables[id(self)] = (self, new.node_number)
            self._array = new
        return self._value if self._array is None else self._array

    def __cgrad_leaf__(self, tape):
        """Number of the node that it came from on the innermost window that watches it; -1 where none does."""
        self.__cgrad_array__()
        for window in reversed(tape.windows):
            if id(self) in window._variables:
                return window._variables[id(self)][1]
        return -1

    # -- assignment
    def assign(self, value):
        """Take a new value of the same shape; recorded by every open tape. Returns the Variable."""
        self[...] = value
        return self

    def assign_add(self, value):
        """Add `value`, as `assign(self + value)`."""
        return self.assign(self + value)

    def assign_sub(self, value):
        """Subtract `value`, as `assign(self - value)`."""
        return self.assign(self - value)

    def __setitem__(self, index, value):
        if hasattr(type(value), "__cgrad_array__"):
            value = value.__cgrad_array__()
        array = self.__cgrad_array__()
        if type(array) is Array:
            array[index] = value
        elif tracked(value) and value.tape_of.recording:
            raise TapeError(f"Variable {self.name}: a tracked value assigned while no open tape watches the Variable would lose "
                            "its gradient; open a GradientTape that does, or assign x.value")
        else:
            if not self._value.flags.writeable:
                self._value = self._value.copy()
            self._value[index] = plain_value(value)

    def __getitem__(self, index):
        return self.__cgrad_array__()[index]

    # -- an array
    def __len__(self):
        return len(self._value)

    def __iter__(self):
        return iter(self.__cgrad_array__())

    def __bool__(self):
        return bool(self.value)

    def __float__(self):
        return float(self.__cgrad_array__())

    def __int__(self):
        return int(self.__cgrad_array__())

    def __array__(self, dtype=None, copy=None):
        return np.array(self.__cgrad_array__(), dtype=dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if any(type(o) is Variable for o in kwargs.get("out", ())):
            raise TypeError(f"np.{ufunc.__name__}: out= is a Variable; use variable.assign(...)")
        return getattr(ufunc, method)(*map(_read, inputs), **{k: _read(v) for k, v in kwargs.items()})

    def __array_function__(self, function, types, args, kwargs):
        return function(*_read(args), **_read(kwargs))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__cgrad_array__(), name)

    def __repr__(self):
        return f"Variable(name={self.name!r}, value={np.array2string(self.value, separator=', ')}, dtype={self.dtype})"

    def __reduce__(self):
        return Variable, (self.value, self.name, self.trainable)


def _read(x):
    """Arrays or ndarrays in place of Variables, inside containers too."""
    if type(x) is Variable:
        return x.__cgrad_array__()
    if type(x) in (tuple, list):
        return type(x)(map(_read, x))
    if type(x) is dict:
        return {k: _read(v) for k, v in x.items()}
    return x


class Operation:
    """One recorded operation, for looking at: `name`, `op`, `inputs` (names), `shape`, `dtype`, `gradient_of`.

    `gradient_of` is the name of the operation that this one helps to differentiate, or None.
    """

    __slots__ = ("dtype", "gradient_of", "inputs", "name", "op", "shape")

    def __init__(self, name, op, inputs, shape, dtype, gradient_of):
        self.name, self.op, self.inputs = name, op, inputs
        self.shape, self.dtype, self.gradient_of = shape, dtype, gradient_of

    def __repr__(self):
        return f"{self.name} = {self.op}({', '.join(self.inputs)})  {self.dtype}{list(self.shape)}"


class GradientTape:
    """Records what is computed from watched values, for gradients afterwards.

    Parameters
    ----------
    persistent : bool
        Keep the recorded values after the first gradient, so that more can be taken.
    watch_accessed_variables : bool
        Watch every trainable `Variable` that is read while the tape records.

    Notes
    -----
    A tape belongs to one thread. Tapes may be nested; the gradient of an inner one is recorded by the outer ones.

    Examples
    --------
    >>> import numpy as np, cgrad
    >>> with cgrad.GradientTape() as tape:
    ...     x = tape.watch(np.array([1.0, 2.0]))
    ...     y = np.sum(x**2)
    >>> tape.gradient(y, x)
    array([2., 4.])
    """

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self.persistent = persistent
        self.watch_accessed_variables = watch_accessed_variables
        self._tape = None
        self._spans = []                # finished windows, (start, stop)
        self._start = None              # of the open window
        self._variables = {}            # id -> (Variable, number of its leaf)
        self._finals = {}               # id -> number of its last node
        self._watched = {}              # ids of Variables watched by hand
        self._used = False

    # -- recording
    def __enter__(self):
        if self._tape is not None:
            raise TapeError("GradientTape: entered twice; make a new one, or use reset()")
        self._tape = open_tape()
        self._tape.users += 1
        self._tape.windows.append(self)
        self._start = len(self._tape)
        return self

    def __exit__(self, *error):
        self._pause()
        return False

    def _pause(self):
        if self._start is not None:
            self._spans.append((self._start, len(self._tape)))
            self._start = None
            # a Variable may be a target: where it stood when the tape stopped
            for v, _ in self._variables.values():
                if v._array is not None and v._array.tape_of is self._tape:
                    self._finals[id(v)] = v._array.node_number
            self._tape.windows.remove(self)
            close_tape(self._tape)

    def _watches(self, variable):
        return self._start is not None and (self.watch_accessed_variables and variable.trainable
                                            or id(variable) in self._watched)

    def watch(self, x):
        """The tracked Array of `x`; containers are taken apart. A Variable is watched as it is.

        An ndarray cannot be tracked in place: go on with the Array that is returned.
        """
        if self._start is None:
            raise TapeError("GradientTape.watch: the tape does not record; call it inside the with block")
        if isinstance(x, Variable):
            self._watched[id(x)] = x
            x.__cgrad_array__()
            return x
        if type(x) is Array:
            return x if x.node_number >= 0 and x.tape_of is self._tape else leaf(self._tape, plain_value(x), None)
        if isinstance(x, (list, tuple, dict)):
            return tree.map_leaves(self.watch, x)
        return as_leaf(self._tape, x, "GradientTape.watch")

    def watched_variables(self):
        """The Variables that this tape watched, in the order in which they were first used."""
        return tuple(v for v, _ in self._variables.values())

    @contextlib.contextmanager
    def stop_recording(self):
        """Within this context the tape does not record; other open tapes do."""
        if self._start is None:
            raise TapeError("GradientTape.stop_recording: the tape does not record")
        self._pause()
        try:
            yield
        finally:
            self._resume()

    def _resume(self):
        tape = open_tape()
        if tape is not self._tape:
            # nothing else recorded meanwhile: the thread gets this tape back
            close_tape(tape)
            tape = reopen_tape(self._tape)
        tape.windows.append(self)
        self._start = len(tape)

    def reset(self):
        """Forget everything recorded so far, and the Variables watched so far."""
        self._spans, self._variables, self._finals, self._used = [], {}, {}, False
        if self._start is not None:
            self._start = len(self._tape)
        else:
            self._tape = None

    def operations(self):
        """The recorded operations in order, each with name, op, inputs, shape, dtype.

        >>> import numpy as np, cgrad
        >>> with cgrad.GradientTape() as tape:
        ...     x = tape.watch(np.ones((2, 2)))
        ...     y = np.sum(np.sin(x))
        >>> for operation in tape.operations():
        ...     print(operation)
        leaf = leaf()  float64[2, 2]
        sin = sin(leaf)  float64[2, 2]
        sum = sum(sin)  float64[]
        """
        tape = self._tape
        spans = self._spans + ([(self._start, len(tape))] if self._start is not None else [])
        labels = {n: v.name for v, n in self._variables.values()}
        names, taken, listed = {}, {}, []
        for i in itertools.chain.from_iterable(range(*s) for s in spans):
            of = tape.differentiates(i)
            op = SHOWN_AS.get(tape.op_of(i).name, tape.op_of(i).name)
            base = labels.get(i, op) if of < 0 else f"gradients/{names.get(of, of)}_grad/{op}"
            count = taken[base] = taken.get(base, -1) + 1
            names[i] = name = f"{base}_{count}" if count else base
            inputs = [names.get(n, "constant") for n in tape.input_numbers(i)]
            listed.append(Operation(name, op, inputs, tape.shape_of(i), tape.dtype_of(i), names.get(of)))
        return listed

    # -- derivatives
    def gradient(self, target, sources, output_gradients=None, unconnected_gradients="none"):
        """Gradient of the sum of `target` by each source.

        Parameters
        ----------
        target : Array, Variable, or containers of them
            Computed while the tape recorded.
        sources : Array, Variable, or containers of them
            Watched values; intermediate results will do.
        output_gradients : as `target`, optional
            Seeds; ones by default.
        unconnected_gradients : {"none", "zero"}
            What a source gets that the target does not depend on: None, or zeros.

        Returns
        -------
        ndarray, or containers as `sources`
            Arrays, recorded, while another tape (or this one) records.
        """
        check_unconnected("GradientTape.gradient", unconnected_gradients)
        self._begin("gradient")
        targets, _ = tree.flatten(target)
        seeds = [None] * len(targets) if output_gradients is None else tree.flatten(output_gradients)[0]
        if len(seeds) != len(targets):
            raise ValueError(f"GradientTape.gradient: got {len(seeds)} output_gradients for {len(targets)} targets; expected "
                             "one for each")
        nodes, used = [], []
        for t, s in zip(targets, seeds):
            node, shape, dtype = self._target("gradient", t)
            if s is None:
                s = np.ones(shape, dtype)
            elif np.shape(s) != shape:
                raise ValueError(f"GradientTape.gradient: output_gradients has shape {np.shape(s)}; expected {shape}, the "
                                 "shape of its target")
            if node >= 0:
                nodes.append(node)
                used.append(s)
        return self._sweep("gradient", nodes, used, sources, unconnected_gradients)

    def jacobian(self, target, sources, unconnected_gradients="none", as_matrix=False, chunk=None):
        """Jacobian of `target` by each source, by one batched sweep.

        Parameters
        ----------
        target : Array or Variable, or a list of such of one shape
            A list counts as its items stacked.
        sources : Array, Variable, or containers of them
        unconnected_gradients : {"none", "zero"}
        as_matrix : bool
            Give one plain matrix, all outputs (rows) by all inputs (columns).
        chunk : int, optional
            How many rows one sweep takes.

        Returns
        -------
        ndarray of shape ``target.shape + source.shape``, or containers as `sources`

        Examples
        --------
        >>> import numpy as np, cgrad
        >>> x, y = cgrad.Variable(1.0), cgrad.Variable(4.0)
        >>> with cgrad.GradientTape() as tape:
        ...     z = [x**2 + 2*y, y**2]
        >>> print(np.stack(tape.jacobian(z, [x, y])))       # stacked by input
        [[2. 0.]
         [2. 8.]]
        """
        check_unconnected("GradientTape.jacobian", unconnected_gradients)
        self._begin("jacobian")
        listed = isinstance(target, (list, tuple))
        parts = [self._target("jacobian", t) for t in (target if listed else [target])]
        if listed and len({shape for _, shape, _ in parts}) > 1:
            raise ValueError(f"GradientTape.jacobian: the targets have shapes {[s for _, s, _ in parts]}; expected one shape, "
                             "or one target at a time")
        flat, rebuild = tree.flatten(sources)
        blocks = [self._rows(*p, flat, chunk) for p in parts]
        outer = ((len(parts),) if listed else ()) + (parts[0][1] if parts else ())
        results = []
        for k, s in enumerate(flat):
            pieces = [b[k] for b in blocks]
            _, shape, dtype = self._source("jacobian", s)
            if all(p is None for p in pieces):
                if unconnected_gradients == "none" and not as_matrix:
                    results.append(None)
                    continue
                results.append(np.zeros(outer + shape, dtype))
                continue
            pieces = [np.zeros((math.prod(parts[0][1]), *shape), dtype) if p is None else p for p in pieces]
            whole = np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
            results.append(whole.reshape(outer + shape))
        if as_matrix:
            rows = math.prod(outer)
            return np.concatenate([r.reshape((rows, int(r.size / rows) if rows else 0)) for r in results], axis=1)
        return rebuild(results)

    def batch_jacobian(self, target, source, unconnected_gradients="none"):
        """The Jacobian of each sample by its own input: shape ``(batch, *target.shape[1:], *source.shape[1:])``.

        The first axis of target and source counts samples, which must not influence each other: row b of the target may
        depend on row b of the source only. One batched sweep with as many seeds as one sample has outputs.

        Examples
        --------
        >>> import numpy as np, cgrad
        >>> with cgrad.GradientTape() as tape:
        ...     x = tape.watch(np.ones((4, 3)))
        ...     z = x @ np.ones((3, 2))
        >>> tape.batch_jacobian(z, x).shape
        (4, 2, 3)
        """
        check_unconnected("GradientTape.batch_jacobian", unconnected_gradients)
        self._begin("batch_jacobian")
        node, shape, dtype = self._target("batch_jacobian", target)
        _, source_shape, source_dtype = self._source("batch_jacobian", source)
        if not shape or not source_shape or shape[0] != source_shape[0]:
            raise ValueError(f"GradientTape.batch_jacobian: target has shape {shape}, source {source_shape}; expected the same "
                             "first axis, the samples")
        size = math.prod(shape[1:])
        seeds = np.zeros((size, shape[0], size), dtype)
        seeds[np.arange(size), :, np.arange(size)] = 1
        rows = self._sweep("batch_jacobian", [node] if node >= 0 else [], [seeds.reshape((size, *shape))], source, "none",
                           lead=(size,))
        if rows is None:
            return None if unconnected_gradients == "none" else np.zeros(shape + source_shape[1:], source_dtype)
        return np.moveaxis(rows, 0, 1).reshape(shape + source_shape[1:])

    # -- inside
    def _begin(self, where):
        if self._tape is None:
            raise TapeError(f"GradientTape.{where}: nothing was recorded; use the tape as a context manager first")
        if self._used and not self.persistent:
            raise TapeError(f"GradientTape.{where}: the tape was used already, and a tape that is not persistent gives one "
                            "gradient; take all gradients in one call, or use GradientTape(persistent=True)")
        self._used = True

    def _target(self, where, t):
        if isinstance(t, Variable):
            array = t._array
            if array is None or array.tape_of is not self._tape or self._start is None:
                if id(t) in self._finals:
                    return self._finals[id(t)], t.shape, t.dtype
            else:
                t = array
        if type(t) is not Array or t.tape_of is not self._tape:
            what = "a value of another tape" if type(t) is Array else f"a plain {type(t).__name__}"
            raise TypeError(f"GradientTape.{where}: the target is {what}; expected a tracked value, computed from watched "
                            "values while this tape recorded (gradients of constants: cgrad.grad)")
        return t.node_number, t.shape, t.dtype

    def _source(self, where, s):
        if isinstance(s, Variable):
            found = self._variables.get(id(s))
            if found is None:
                if self._watches(s) or (self.watch_accessed_variables and s.trainable):
                    return -1, s.shape, s.dtype         # never read: unconnected
                raise ValueError(f"GradientTape.{where}: the source {s.name} is not watched; call tape.watch({s.name}) inside "
                                 "the with block, or make the Variable trainable")
            return found[1], s.shape, s.dtype
        if type(s) is not Array or s.tape_of is not self._tape or s.node_number < 0:
            raise ValueError(f"GradientTape.{where}: a source is not watched: got {type(s).__name__}; expected a Variable, or "
                             "the Array that x = tape.watch(x) gave (an ndarray itself is not tracked)")
        return s.node_number, s.shape, s.dtype

    def _sweep(self, where, nodes, seeds, sources, mode, lead=()):
        flat, rebuild = tree.flatten(sources)
        found = [self._source(where, s) for s in flat]
        recorded = current_tape() is not None
        spans = self._spans + ([(self._start, len(self._tape))] if self._start is not None else [])
        numbers = [n for n, _, _ in found if n >= 0]
        # what was recorded for two tapes at once may be wanted by the other one still
        freeing = not self.persistent and not recorded and self._tape.recording == 0 and self._tape.users == 1
        grads = iter(reverse(self._tape, nodes, seeds, numbers, windows=spans, recorded=recorded, freeing=freeing, lead=lead))
        results = [unconnected(next(grads) if n >= 0 else None, lead + shape, dtype, mode) for n, shape, dtype in found]
        return rebuild(results)

    def _rows(self, node, shape, dtype, flat, chunk):
        """For each source the array (size of the target, *shape of the source), or None."""
        size = math.prod(shape)
        if node < 0 or size == 0:
            return [None] * len(flat)
        step = rows_per_chunk(self._tape, 0, size, chunk)
        parts = []
        persistent, self.persistent = self.persistent, True       # several sweeps of one request
        try:
            for start in range(0, size, step):
                stop = min(start + step, size)
                parts.append(self._sweep("jacobian", [node], [identity_seeds(shape, dtype, start, stop)], flat, "none",
                                         lead=(stop - start,)))
        finally:
            self.persistent = persistent
        return [None if p[0] is None else np.concatenate(p) if len(p) > 1 else p[0] for p in zip(*parts)]
