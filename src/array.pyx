"""The tracked array that users see: every way in which NumPy code can touch it records.

Uses `cgrad._record` and `cgrad._parts`, which do the recording.
"""
cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.float cimport PyFloat_Check, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.unicode cimport PyUnicode_CheckExact

from cgrad._parts cimport read_item, replace, write_item
from cgrad._record cimport PyTypeObject, Traced, binary, common_tape, finish_number, foreign, is_array, is_weak, plain, settle, unary, value_of
from cgrad._tape cimport Op

import numpy as np

from cgrad._parts import copy_of
from cgrad._record import FUNCTIONS, SETTERS, UFUNC_METHODS, UFUNCS, bind_array

cnp.import_array()

cdef object np_ndarray = np.ndarray
cdef cnp.dtype FLOAT64 = np.dtype(np.float64)
cdef dict _ufuncs = UFUNCS
cdef dict _functions = FUNCTIONS

cdef str LOST = ("{what} of a tracked array would lose the gradient. {instead} "
                 "Use x.value for the plain value, or cgrad.stop_gradient(x) for a constant.")


def refuse(what, instead):
    """The error of everything that would drop a gradient; `instead` names the way that works."""
    return TypeError(LOST.format(what=what, instead=instead))

cdef Op op_add, op_subtract, op_multiply, op_divide, op_power, op_square, op_sqrt, op_reciprocal, op_positive
cdef Op op_negative, op_absolute
cdef object keywords_hook = None


def bind_operators(ops, hook):
    """Called once by cgrad.rules: the ops behind the operators, and the function that takes ufunc keywords."""
    global op_add, op_subtract, op_multiply, op_divide, op_power, op_square, op_sqrt, op_reciprocal, op_positive
    global op_negative, op_absolute, keywords_hook
    (op_add, op_subtract, op_multiply, op_divide, op_power, op_square, op_sqrt, op_reciprocal, op_positive, op_negative,
     op_absolute) = ops
    keywords_hook = hook


cdef object operate(Op op, object a, object b):
    cdef object z
    if (not is_array(a) and foreign(a)) or (not is_array(b) and foreign(b)):
        return NotImplemented
    z = binary(op, a, b)
    if is_weak(a) and is_weak(b) and is_array(z):
        (<Traced> z).weak = True                    # Python's own arithmetic gives Python floats
    return z


cdef inline bint is_scalar(object x) noexcept:
    """A float64 scalar or a Python number, whose operators are not the ufuncs of arrays."""
    return (<Traced> x).number and (<Traced> x).scalar if is_array(x) else PyFloat_Check(x) or PyLong_CheckExact(x)


cdef object scalar_power(object a, object b):
    """x ** y of scalars: C's pow, where the ufunc of arrays has other roundings."""
    cdef object z
    cdef Traced x = <Traced> a if is_array(a) else None, y = <Traced> b if is_array(b) else None
    cdef Traced like = x if x is not None else y
    if x is not None:
        settle(x)
    if y is not None:
        settle(y)
    if x is not None and y is not None:
        common_tape(x.tape, y)
    z = plain(a) ** plain(b)
    if not PyFloat_Check(z):
        return binary(op_power, a, b)               # Python's own power of a negative number is complex
    z = finish_number(like.tape, op_power, x.node if x is not None else -1, y.node if y is not None else -1, 2,
                      x.num if x is not None else <double> a, y.num if y is not None else <double> b, z)
    if is_weak(a) and is_weak(b) and is_array(z):
        (<Traced> z).weak = True
    return z


cdef object through(object ufunc, object a, object b):
    if (not is_array(a) and foreign(a)) or (not is_array(b) and foreign(b)):
        return NotImplemented
    handler = _ufuncs[ufunc]
    return binary(handler, a, b) if type(handler) is Op else handler(a, b)


cdef object in_place(Traced a, object z):
    """The end of `a += b`."""
    if z is NotImplemented or a.scalar:
        return z
    replace(a, z)
    return a


cdef bint nothing_to_lose(Traced a) except -1:
    """Whether `a` may become a plain number or ndarray: a constant, or a value whose tape is over."""
    settle(a)
    return a.tape.recording == 0 or a.node < 0


@cython.final
@cython.no_gc
@cython.c_api_binop_methods(True)
cdef class Array(Traced):
    """A tracked array: behaves like the ndarray it holds, and records what is done to it.

    Made by cgrad's transforms and tapes, never by hand. `value` is the plain ndarray. Comparisons give plain bool arrays.
    Not safe to use from another thread than the one whose tape it belongs to; that raises `TapeError`.
    """

    def __init__(self):
        raise TypeError("cgrad.Array: made by cgrad.grad, cgrad.GradientTape.watch and the like, not by hand; for array "
                        "creation inside a differentiated function use cgrad.numpy.array")

    # -- what it is
    @property
    def value(self):
        """The plain value: a read-only ndarray, or a NumPy scalar where NumPy would have one."""
        settle(self)
        value = value_of(self)
        if isinstance(value, np_ndarray):
            value = value.view()
            value.flags.writeable = False
        return value

    @property
    def shape(self):
        settle(self)
        return () if self.number else self.val.shape

    @property
    def ndim(self):
        settle(self)
        return 0 if self.number else cnp.PyArray_NDIM(<cnp.ndarray> self.val)

    @property
    def size(self):
        settle(self)
        return 1 if self.number else self.val.size

    @property
    def dtype(self):
        return FLOAT64 if self.number else self.val.dtype if self.val is not None else self.value.dtype

    @property
    def itemsize(self):
        return self.dtype.itemsize

    @property
    def nbytes(self):
        return self.size * self.dtype.itemsize

    @property
    def is_scalar(self):
        """Whether NumPy would have a scalar here instead of a 0-d array."""
        return bool(self.scalar)

    @property
    def tape_of(self):
        return self.tape

    @property
    def node_number(self):
        """Number of the node on the tape; -1 for a constant."""
        settle(self)
        return self.node

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(len(self))])

    def __reversed__(self):
        return iter([self[i] for i in range(len(self) - 1, -1, -1)])

    def __bool__(self):
        return bool(plain(self))

    def __repr__(self):
        return f"Array({np.array2string(np.asarray(plain(self)), separator=', ')}, dtype={self.dtype})"

    def __str__(self):
        return str(plain(self))

    def __format__(self, spec):
        return format(plain(self), spec)

    def __hash__(self):
        raise TypeError("unhashable type: 'cgrad.Array'")

    def __copy__(self):
        return copy_of(self)

    def __deepcopy__(self, memo):
        return copy_of(self)

    def __reduce__(self):
        raise TypeError("cgrad.Array: a tracked array belongs to its tape and cannot be pickled; pickle x.value")

    # -- what would lose the gradient
    def __float__(self):
        if nothing_to_lose(self):
            return float(plain(self))
        raise refuse("float() (and math.sin and the like)", "Use NumPy's functions: np.sin, np.exp, ... "
                     "To fill an array use np.zeros_like(x) or cgrad.numpy.zeros(shape) instead of a plain ndarray.")

    def __int__(self):
        if nothing_to_lose(self):
            return int(plain(self))
        raise refuse("int()", "For an index or a count use int(x.value).")

    def __complex__(self):
        if nothing_to_lose(self):
            return complex(plain(self))
        raise refuse("complex()", "Use x + 1j*y instead.")

    def __index__(self):
        raise refuse("Use as an index", "Use int(x.value).")

    def __array__(self, dtype=None, copy=None):
        if nothing_to_lose(self):
            return np.array(plain(self), dtype=dtype)
        raise refuse("np.asarray, np.array or storing into a plain ndarray",
                     "Use cgrad.numpy.array([...]) or np.stack to build arrays of tracked values, and "
                     "np.zeros_like(x) or cgrad.numpy.zeros(shape) for an array to fill.")

    # -- NumPy's protocols
    # __array_ufunc__ is put in below, as a function that takes its arguments without a tuple and a dict

    def __array_function__(self, function, types, args, kwargs):
        cdef object handler = _functions.get(function)
        for t in types:
            if t is not Array and t is not np_ndarray and t is not np.memmap:
                return NotImplemented
        if handler is None:
            raise NotImplementedError(f"{function.__module__}.{function.__name__} has no derivative rule in cgrad; write it "
                                      "with functions that have one, or use x.value for its plain value")
        return handler(*args, **kwargs)

    def __getattr__(self, str name):
        raise AttributeError(f"cgrad.Array has no attribute {name!r}"
                             + ("; it is one of ndarray's that cgrad does not have: use x.value" if
                                hasattr(np_ndarray, name) and not name.startswith("__") else ""))

    def __setattr__(self, str name, value):
        setter = SETTERS.get(name)
        if setter is None:
            raise AttributeError(f"cgrad.Array: attribute {name!r} cannot be set" + (
                "; use x = x.reshape(...)" if name == "shape" else ""))
        setter(self, value)

    # -- parts
    def __getitem__(self, index):
        return read_item(self, index)

    def __setitem__(self, index, value):
        if foreign(value):
            value = value.__cgrad_array__()
        write_item(self, index, value)

    def __delitem__(self, index):
        raise ValueError("cannot delete array elements")

    def __contains__(self, item):
        return plain(item) in plain(self)

    # -- operators
    def __add__(a, b):
        return operate(op_add, a, b)

    def __sub__(a, b):
        return operate(op_subtract, a, b)

    def __mul__(a, b):
        return operate(op_multiply, a, b)

    def __truediv__(a, b):
        return operate(op_divide, a, b)

    def __floordiv__(a, b):
        return through(np.floor_divide, a, b)

    def __mod__(a, b):
        return through(np.remainder, a, b)

    def __divmod__(a, b):
        return through(np.floor_divide, a, b), through(np.remainder, a, b)

    def __matmul__(a, b):
        return through(np.matmul, a, b)

    def __pow__(a, b, modulus):
        if modulus is not None:
            return NotImplemented
        if is_scalar(a) and is_scalar(b):
            return scalar_power(a, b)
        # ndarray.__pow__ takes these exponents apart too; numpy's scalars do not
        if is_array(a) and not (<Traced> a).scalar and (PyFloat_CheckExact(b) or PyLong_CheckExact(b)):
            if b == 2:
                return unary(op_square, <Traced> a)
            if b == 1:
                return unary(op_positive, <Traced> a)
            if b == 0.5:
                return unary(op_sqrt, <Traced> a)
            if b == -1:
                return unary(op_reciprocal, <Traced> a)
        return operate(op_power, a, b)

    def __neg__(self):
        z = unary(op_negative, self)
        if self.weak and is_array(z):
            (<Traced> z).weak = True
        return z

    def __pos__(self):
        return unary(op_positive, self)

    def __abs__(self):
        return unary(op_absolute, self)

    def __round__(self, digits=None):
        return _functions[np.round](self, digits or 0)

    def __richcmp__(self, other, int how):
        if foreign(other):
            return NotImplemented
        a, b = plain(self), plain(other)
        if how == 0:
            return a < b
        if how == 1:
            return a <= b
        if how == 2:
            return a == b
        if how == 3:
            return a != b
        if how == 4:
            return a > b
        return a >= b

    def __iadd__(self, other):
        return in_place(self, operate(op_add, self, other))

    def __isub__(self, other):
        return in_place(self, operate(op_subtract, self, other))

    def __imul__(self, other):
        return in_place(self, operate(op_multiply, self, other))

    def __itruediv__(self, other):
        return in_place(self, operate(op_divide, self, other))

    def __ifloordiv__(self, other):
        return in_place(self, through(np.floor_divide, self, other))

    def __imod__(self, other):
        return in_place(self, through(np.remainder, self, other))

    def __imatmul__(self, other):
        return in_place(self, through(np.matmul, self, other))

    def __ipow__(self, other):
        return in_place(self, self ** other)


bind_array(Array)


cdef object array_ufunc(object self, PyObject *const *args, Py_ssize_t n, PyObject *names):
    """Array.__array_ufunc__(ufunc, method, *inputs, **kwargs)."""
    cdef object handler, ufunc
    cdef Py_ssize_t k
    if n < 3 or not PyUnicode_CheckExact(<object> args[1]):
        raise TypeError("Array.__array_ufunc__(ufunc, method, *inputs, **kwargs) is called by NumPy")
    ufunc = <object> args[0]
    handler = _ufuncs.get(ufunc)
    for k in range(2, n):
        if not is_array(<object> args[k]) and foreign(<object> args[k]):
            return NotImplemented
    if names == NULL and type(handler) is Op and (<object> args[1] == "__call__"):
        if n == 3:
            return unary(<Op> handler, <Traced> <object> args[2])
        return binary(<Op> handler, <object> args[2], <object> args[3])
    keywords = {}
    if names != NULL:
        for k in range(len(<tuple> names)):
            keywords[(<tuple> names)[k]] = <object> args[n + k]
    return ufunc_call(ufunc, <object> args[1], handler, tuple([<object> args[k] for k in range(2, n)]), keywords)


cdef object ufunc_call(object ufunc, object method, object handler, tuple inputs, dict keywords):
    """Every ufunc call but the plainest."""
    if method != "__call__":
        found = UFUNC_METHODS.get((ufunc, method))
        if found is None and type(handler) is Op:
            # the same for all elementwise ufuncs: outer, at
            found = UFUNC_METHODS.get((None, method))
            if found is not None:
                return found(ufunc, *inputs, **keywords)
        if found is None:
            raise NotImplementedError(f"np.{ufunc.__name__}.{method} has no derivative rule in cgrad; write it with functions "
                                      "that have one, or use x.value for its plain value")
        return found(*inputs, **keywords)
    if handler is None:
        raise NotImplementedError(f"{ufunc.__name__} has no derivative rule in cgrad; write it with functions that have one, "
                                  "or use x.value for its plain value")
    if type(handler) is Op:
        return keywords_hook(handler, inputs, keywords)
    return handler(*inputs, **keywords)


cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        const char *ml_name
        void *ml_meth
        int ml_flags
        const char *ml_doc
    int METH_FASTCALL
    int METH_KEYWORDS
    object PyDescr_NewMethod(PyTypeObject *, PyMethodDef *)
    void PyType_Modified(PyTypeObject *)

cdef PyMethodDef array_ufunc_definition


cdef int put_array_ufunc() except -1:
    # a quarter of np.sin(x)'s protocol overhead; Cython writes such a function only for signatures without *args
    cdef PyTypeObject *kind = <PyTypeObject *> Array
    array_ufunc_definition.ml_name = "__array_ufunc__"
    array_ufunc_definition.ml_meth = <void *> array_ufunc
    array_ufunc_definition.ml_flags = METH_FASTCALL | METH_KEYWORDS
    array_ufunc_definition.ml_doc = "NumPy's protocol: records a ufunc call."
    (<dict> kind.tp_dict)["__array_ufunc__"] = PyDescr_NewMethod(kind, &array_ufunc_definition)
    PyType_Modified(kind)
    return 0


put_array_ufunc()


cdef extern from "Python.h":
    ctypedef struct PySequenceMethods:
        void *sq_item
    ctypedef struct SequenceType "PyTypeObject":
        PySequenceMethods *tp_as_sequence


# NumPy says "setting an array element with a sequence" of whatever has this slot, in place of Array's own error; all of
# Python's indexing goes through __getitem__
(<SequenceType *> Array).tp_as_sequence.sq_item = NULL

def attach(str name, attribute):
    """Give Array a method (a Python function) or an attribute (a property); lookups find it as quickly as one written here."""
    cdef PyTypeObject *kind = <PyTypeObject *> Array
    (<dict> kind.tp_dict)[name] = attribute
    PyType_Modified(kind)


def apply(Op op, *inputs):
    """Record an elementwise op of one or two inputs by the fast path; plain inputs go to NumPy."""
    if len(inputs) == 1:
        if is_array(inputs[0]):
            return unary(op, <Traced> inputs[0])
    elif is_array(inputs[0]) or is_array(inputs[1]):
        return operate(op, inputs[0], inputs[1])
    return op.ufunc(*inputs)
