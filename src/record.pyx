"""Recording: NumPy's computation, and a node on the tape for what it did.

Holds `Traced`, the data of a tracked array; the elementwise fast paths (`unary`, `binary`); and `record` for every other op. The
rules fill the tables UFUNCS, UFUNC_METHODS, FUNCTIONS, METHODS, PROPERTIES and SETTERS. Uses `cgrad._tape` and `cgrad._loops`;
used by `parts.pyx` (indexing and assignment), `array.pyx` (the class that users see) and the sweeps.
"""
cimport cgrad._record
cimport cython
cimport numpy as cnp
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check, PyFloat_CheckExact, PyFloat_FromDouble
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.math cimport isinf

from cgrad._loops cimport Loop, fp_clear, fp_trouble
from cgrad._tape cimport KEEP_X, KEEP_Y, KEEP_Z, LEAF_OP, NUMBER, ZERO, Node, Op, Tape, current_tape

import numpy as np

from cgrad._tape import TapeError

cnp.import_array()
cnp.import_ufunc()

cdef extern from "c/unique.h":
    bint cgrad_unique(PyObject *) noexcept

cdef object np_float64 = np.float64
cdef object np_ndarray = np.ndarray
cdef object np_generic = np.generic

# Filled by cgrad.rules; read-only after import.
UFUNCS = {}             # ufunc -> Op, or a function(*inputs, **kwargs) for ufuncs that are not elementwise
UFUNC_METHODS = {}      # (ufunc, "reduce") -> function
FUNCTIONS = {}          # NumPy function -> function
METHODS = {}            # name of an ndarray method -> function(self, ...)
PROPERTIES = {}         # name of an ndarray attribute -> function(self)
SETTERS = {}            # name of an ndarray attribute that can be assigned to -> function(self, value)cdef dict _ufuncs = UFUNCS

cdef PyTypeObject *array_type = NULL
cdef tuple NOTHING = ()


@cython.no_gc
@cython.freelist(256)
cdef class Traced:
    """The data of `cgrad.Array`, which adds the protocols. Never made by itself."""

    def __dealloc__(self):
        # a long chain of views of views goes link by link: its destructors must not nest
        cdef Traced base = self.base, next_base
        self.base = None
        while base is not None and cgrad_unique(<PyObject *> base):
            next_base = base.base
            base.base = None
            base = next_base


def bind_array(kind):
    """Called once by cgrad._array: the class of tracked arrays."""
    global array_type
    array_type = <PyTypeObject *> kind


cdef Traced new_array():
    return array_type.tp_new(array_type, NOTHING, NULL)


cdef bint has_protocol(object x) noexcept:
    return not isinstance(x, (np_ndarray, np_generic)) and hasattr(type(x), "__array_ufunc__")


# ------------------------------------------------------------------------------------------------ making Arrays
cdef Traced new_number(Tape tape, double value, int node):
    cdef Traced a = new_array()
    a.tape, a.num, a.node, a.number, a.scalar = tape, value, node, True, True
    return a


cdef Traced wrap(Tape tape, object value, int node, bint scalar):
    """An Array of an ndarray or NumPy scalar. 0-d float64 becomes a C double."""
    cdef Traced a = new_array()
    cdef cnp.ndarray v
    a.tape, a.node, a.scalar = tape, node, scalar
    if isinstance(value, cnp.ndarray):
        v = value
    elif PyFloat_Check(value):                      # np.float64 too
        a.num, a.number = PyFloat_AS_DOUBLE(value), True
        return a
    else:
        v = np.asarray(value)
    if cnp.PyArray_NDIM(v) == 0 and cnp.PyArray_TYPE(v) == cnp.NPY_DOUBLE and cnp.PyArray_ISCARRAY_RO(v):
        a.num, a.number = (<double *> cnp.PyArray_DATA(v))[0], True
    else:
        a.val = v
    return a


cdef object value_of(Traced a):
    """The value as NumPy would hold it: an ndarray, or a NumPy scalar."""
    if a.number:
        if a.weak:
            return PyFloat_FromDouble(a.num)
        return np_float64(a.num) if a.scalar else np.array(a.num)
    return a.val[()] if a.scalar else a.val


cdef object plain(object x):
    """What a NumPy call may be given for x."""
    if is_array(x):
        settle(<Traced> x)
        return value_of(<Traced> x)
    return x


# Set by parts.pyx: takes a view of its base again.
cdef retake_t retake = NULL


cdef int settle(Traced a) except -1:
    """A view whose base was written to since it was taken is taken again."""
    cdef Traced fresh
    cdef list chain
    if a.base is None or a.checked == a.tape.writes:
        return 0
    # from the outermost base inwards, without recursion: x = x.T in a loop makes long chains
    chain = []
    while a.base is not None and a.checked != a.tape.writes:
        chain.append(a)
        a = a.base
    for a in reversed(chain):
        if a.seen != a.base.version:
            fresh = retake(a.base, a.view_op, a.view_params)
            a.val, a.num, a.number, a.node = fresh.val, fresh.num, fresh.number, fresh.node
            a.seen = a.base.version
            a.version += 1
        a.checked = a.tape.writes
    return 0


cdef Tape common_tape(Tape tape, Traced a):
    if tape is not None and tape is not a.tape:
        raise TapeError("values of two unrelated tapes were mixed: one was recorded by a transform or GradientTape that is "
                        "over, or by another thread; use x.value for the one that is meant as a constant")
    return a.tape


cdef int link(Tape tape, Node *node, int like, cnp.ndarray z) except -1:
    """Shape and dtype of the new node; shares the shape of node `like` if that is the same."""
    cdef Node *other
    cdef int ndim = cnp.PyArray_NDIM(z), k
    cdef cnp.npy_intp *shape = cnp.PyArray_DIMS(z)
    node.ndim = ndim
    node.type_num = cnp.PyArray_TYPE(z)
    if like >= 0:
        other = &tape.nodes[like]
        if other.ndim == ndim:
            for k in range(ndim):
                if tape.dims[other.dims + k] != shape[k]:
                    break
            else:
                node.dims = other.dims
                return 0
    node.dims = tape.add_shape(ndim, shape)
    return 0


cdef inline PyObject *keep(object value) noexcept:
    Py_INCREF(value)
    return <PyObject *> value


cdef inline object kept_operand(Tape tape, object operand):
    """What the tape keeps of an operand: an Array's own value; a copy or a guarded reference of the user's."""
    if is_array(operand):
        return PyFloat_FromDouble((<Traced> operand).num) if (<Traced> operand).number else (<Traced> operand).val
    if isinstance(operand, np_ndarray):
        return tape.guard(as_constant(operand))
    return np.array(operand) if isinstance(operand, (list, tuple)) else operand


cdef object as_constant(object operand):
    """An operand that is not tracked; subclasses of ndarray as their plain data, those refused for which it means something else."""
    if not isinstance(operand, np_ndarray) or type(operand) is np_ndarray:
        return operand
    if isinstance(operand, (np.matrix, np.ma.MaskedArray)):
        raise TypeError(f"an operand is a {type(operand).__name__}, whose arithmetic is not that of arrays: its products or its "
                        "mask would be lost; pass a plain ndarray: np.asarray(m) of a matrix, m.filled(...) of a masked array, "
                        "with np.where or where= for its mask")
    return np.asarray(operand)


# ------------------------------------------------------------------------------------------------ elementwise ops
cdef object finish_number(Tape tape, Op op, int in0, int in1, int nin, double x, double y, double z):
    cdef Node *node
    if tape.recording == 0:
        return np_float64(z)
    if op.kind == ZERO:
        in0 = in1 = -1
    if in0 < 0 and in1 < 0:
        return new_number(tape, z, -1)
    tape.check_thread()
    node = tape.push(op)
    node.in0, node.in1, node.nin = in0, in1, nin
    node.nx, node.ny, node.nz = x, y, z
    node.type_num = cnp.NPY_DOUBLE
    node.kept = NUMBER | KEEP_X | KEEP_Y | KEEP_Z
    return new_number(tape, z, <int> tape.n - 1)


cdef object finish(Tape tape, Op op, int in0, int in1, int nin, object a, object b, cnp.ndarray z, bint scalar):
    """Append an elementwise node whose result is `z`."""
    cdef Node *node
    cdef int reads = 0, type_num = cnp.PyArray_TYPE(z)
    cdef object kx = None, ky = None
    cdef Traced made
    cdef bint differentiable = cnp.PyTypeNum_ISFLOAT(type_num) or cnp.PyTypeNum_ISCOMPLEX(type_num)
    if tape.recording == 0 or not differentiable:
        return z[()] if scalar else z
    if op.kind == ZERO:
        in0 = in1 = -1
    if in0 < 0 and in1 < 0:
        return wrap(tape, z, -1, scalar)
    tape.check_thread()
    if in0 >= 0:
        reads |= op.reads0
    if in1 >= 0:
        reads |= op.reads1
    if reads & KEEP_X:
        kx = kept_operand(tape, a)
    if reads & KEEP_Y:
        ky = kept_operand(tape, b)
    node = tape.push(op)
    node.in0, node.in1, node.nin, node.kept = in0, in1, nin, reads
    if reads & KEEP_X:
        node.x = keep(kx)
    if reads & KEEP_Y:
        node.y = keep(ky)
    if reads & KEEP_Z:
        node.z = keep(z)
    link(tape, node, in0 if in0 >= 0 else in1, z)
    if node.ndim == 0:
        return wrap(tape, z, <int> tape.n - 1, scalar)
    made = new_array()
    made.tape, made.val, made.node = tape, z, <int> tape.n - 1
    return made


cdef inline Loop loop_of(Op op, int type_num) noexcept:
    cdef Loop none
    if type_num == cnp.NPY_DOUBLE:
        return op.loop_d
    if type_num == cnp.NPY_FLOAT:
        return op.loop_f
    none.fun = NULL
    none.data = NULL
    return none


cdef object unary(Op op, Traced a):
    cdef cnp.ndarray x, z
    cdef cnp.npy_intp n = 1
    cdef cnp.npy_intp steps[2]
    cdef char *args[2]
    cdef double result
    cdef Loop loop
    if a.base is not None:
        settle(a)
    if a.number:
        loop = op.loop_d
        if loop.fun != NULL:
            args[0], args[1] = <char *> &a.num, <char *> &result
            steps[0], steps[1] = 0, 8               # as NumPy calls it for 0-d operands: some loops look at the strides
            loop.fun(args, &n, steps, loop.data)
            if not fp_trouble():
                return finish_number(a.tape, op, a.node, -1, 1, a.num, 0, result)
            fp_clear()
    else:
        x = <cnp.ndarray> a.val
        loop = loop_of(op, cnp.PyArray_TYPE(x))
        if loop.fun != NULL and cnp.PyArray_ISCARRAY_RO(x):
            n = cnp.PyArray_SIZE(x)
            z = a.tape.pool.empty(cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), cnp.PyArray_TYPE(x), cnp.PyArray_ITEMSIZE(x))
            args[0], args[1] = <char *> cnp.PyArray_DATA(x), <char *> cnp.PyArray_DATA(z)
            steps[0] = steps[1] = cnp.PyArray_ITEMSIZE(x)
            if n > 8192:
                with nogil:
                    loop.fun(args, &n, steps, loop.data)
            elif n > 0:
                loop.fun(args, &n, steps, loop.data)
            if not fp_trouble():
                return finish(a.tape, op, a.node, -1, 1, a, None, z, cnp.PyArray_NDIM(x) == 0)
            fp_clear()
    return elementwise(op, (a,), None)


cdef inline bint number_of(object b, double *out) noexcept:
    """Whether b is a float64 or a Python number that NumPy takes for one; its value."""
    if is_array(b):
        if (<Traced> b).number:
            out[0] = (<Traced> b).num
            return True
        return False
    if PyFloat_Check(b):
        out[0] = PyFloat_AS_DOUBLE(b)
        return True
    return False


cdef inline bint same_shape(cnp.ndarray x, cnp.ndarray y) noexcept:
    cdef int k, ndim = cnp.PyArray_NDIM(x)
    if cnp.PyArray_NDIM(y) != ndim:
        return False
    for k in range(ndim):
        if cnp.PyArray_DIM(x, k) != cnp.PyArray_DIM(y, k):
            return False
    return True


cdef object binary(Op op, object a, object b):
    """Record op(a, b); at least one of them is an Array."""
    cdef Traced ax = <Traced> a if is_array(a) else None
    cdef Traced ay = <Traced> b if is_array(b) else None
    cdef Tape tape = None
    cdef int in0 = -1, in1 = -1, type_num
    cdef double p, q, r
    cdef float pf, qf
    cdef bint numbers_x, numbers_y
    cdef cnp.ndarray x, y, z, shaped
    cdef cnp.npy_intp n = 1
    cdef cnp.npy_intp steps[3]
    cdef char *args[3]
    cdef Loop loop
    if ax is not None:
        if ax.base is not None:
            settle(ax)
        tape, in0 = ax.tape, ax.node
    elif PyLong_CheckExact(a):                      # a Python int is as weak as a Python float
        a = int_as_float(a)
    if ay is not None:
        if ay.base is not None:
            settle(ay)
        if tape is None:
            tape = ay.tape
        elif tape is not ay.tape:
            tape = common_tape(tape, ay)
        in1 = ay.node
    elif PyLong_CheckExact(b):
        b = int_as_float(b)
    numbers_x, numbers_y = number_of(a, &p), number_of(b, &q)
    if numbers_x and numbers_y:
        if op.code == 3:
            r = p * q
        elif op.code == 1:
            r = p + q
        elif op.code == 2:
            r = p - q
        else:
            loop = op.loop_d
            if loop.fun == NULL:
                return elementwise(op, (a, b), None)
            args[0], args[1], args[2] = <char *> &p, <char *> &q, <char *> &r
            steps[0], steps[1], steps[2] = 0, 0, 8
            loop.fun(args, &n, steps, loop.data)
        if not fp_trouble():
            return finish_number(tape, op, in0, in1, 2, p, q, r)
        fp_clear()
        return elementwise(op, (a, b), None)

    # one array and a number, or two arrays of one shape: straight to the loop
    if not numbers_x:
        if ax is not None:
            x = <cnp.ndarray> ax.val
        elif type(a) is np_ndarray:
            x = <cnp.ndarray> a
        else:
            return elementwise(op, (a, b), None)
        shaped = x
    if not numbers_y:
        if ay is not None:
            y = <cnp.ndarray> ay.val
        elif type(b) is np_ndarray:
            y = <cnp.ndarray> b
        else:
            return elementwise(op, (a, b), None)
        shaped = y
    type_num = cnp.PyArray_TYPE(shaped)
    loop = loop_of(op, type_num)
    if loop.fun == NULL or not cnp.PyArray_ISCARRAY_RO(shaped) or cnp.PyArray_NDIM(shaped) == 0:
        return elementwise(op, (a, b), None)
    steps[0] = steps[1] = steps[2] = cnp.PyArray_ITEMSIZE(shaped)
    if numbers_x or numbers_y:
        if type_num == cnp.NPY_FLOAT:
            # only Python's own floats are weak: a float64 would promote
            if not is_weak(a if numbers_x else b):
                return elementwise(op, (a, b), None)
            pf, qf = <float> p if numbers_x else 0, <float> q if numbers_y else 0
            if (isinf(pf) and not isinf(p)) or (isinf(qf) and not isinf(q)):
                return elementwise(op, (a, b), None)            # NumPy warns of the overflow
            args[0], args[1] = <char *> &pf, <char *> &qf
        else:
            args[0], args[1] = <char *> &p, <char *> &q
        if numbers_x:
            steps[0] = 0
            args[1] = <char *> cnp.PyArray_DATA(y)
        else:
            steps[1] = 0
            args[0] = <char *> cnp.PyArray_DATA(x)
    else:
        if cnp.PyArray_TYPE(x) != type_num or not cnp.PyArray_ISCARRAY_RO(x) or not same_shape(x, y):
            return elementwise(op, (a, b), None)
        args[0], args[1] = <char *> cnp.PyArray_DATA(x), <char *> cnp.PyArray_DATA(y)
    n = cnp.PyArray_SIZE(shaped)
    z = tape.pool.empty(cnp.PyArray_NDIM(shaped), cnp.PyArray_DIMS(shaped), type_num, cnp.PyArray_ITEMSIZE(shaped))
    args[2] = <char *> cnp.PyArray_DATA(z)
    if n > 8192:
        with nogil:
            loop.fun(args, &n, steps, loop.data)
    elif n > 0:
        loop.fun(args, &n, steps, loop.data)
    if fp_trouble():
        fp_clear()
        return elementwise(op, (a, b), None)
    return finish(tape, op, in0, in1, 2, a, b, z, False)


cdef object int_as_float(object i):
    """A Python int as a float, where that is exact; NumPy treats both as weak beside floating arrays."""
    cdef object f
    try:
        f = float(i)
    except OverflowError:
        return i
    return f if f == i else i


cdef object elementwise(Op op, tuple inputs, dict kwargs):
    """Record op(*inputs) through NumPy's own call: any dtype, any broadcasting, any keyword that changes only the dtype."""
    cdef Tape tape = None
    cdef Traced a
    cdef object value
    cdef int numbers[2]
    cdef int k, nin = len(inputs)
    values = []
    numbers[0] = numbers[1] = -1
    for k in range(nin):
        i = inputs[k]
        if is_array(i):
            a = i
            settle(a)
            tape = common_tape(tape, a)
            numbers[k] = a.node
            values.append(value_of(a))
        else:
            values.append(as_constant(i))
    value = op.ufunc(*values, **kwargs) if kwargs else op.ufunc(*values)
    if op.complex_op is not None and any([np.iscomplexobj(v) for v in values]):
        return record(op.complex_op, value, inputs)
    if isinstance(value, np_ndarray):
        return finish(tape, op, numbers[0], numbers[1], nin, inputs[0], inputs[1] if nin > 1 else None, value, False)
    return finish(tape, op, numbers[0], numbers[1], nin, inputs[0], inputs[1] if nin > 1 else None, np.asarray(value), True)


# ------------------------------------------------------------------------------------------------ any other op
cpdef object record(Op op, object value, tuple inputs, dict params=None, Traced view_of=None):
    """Append a structural op.

    Parameters
    ----------
    op : Op
    value : ndarray or NumPy scalar
        The result, computed already.
    inputs : tuple
        Arrays and constants, in the order of the op's VJPs.
    params : dict, optional
        Keyword parameters of the op's VJPs.
    view_of : Array, optional
        The input of which `value` is a view in NumPy's sense: writes reach it.

    Returns
    -------
    Array, or `value` itself where nothing is recorded or the dtype has no derivative.
    """
    cdef Tape tape = None
    cdef Traced a
    cdef Node *node
    cdef int k, reads = 0, nin = len(inputs), at, tracked = 0, number
    cdef object kx = None, ky = None
    cdef bint scalar = not isinstance(value, np_ndarray)
    cdef cnp.ndarray z = np.asarray(value) if scalar else value
    cdef bint differentiable = cnp.PyTypeNum_ISFLOAT(z.dtype.num) or cnp.PyTypeNum_ISCOMPLEX(z.dtype.num)
    numbers = []
    for k in range(nin):
        i = inputs[k]
        if is_array(i):
            a = i
            settle(a)
            tape = common_tape(tape, a)
            number = a.node
            if number >= 0:
                tracked += 1
                if op.vjp is not None:
                    reads |= <int> op.reads[k if k < len(op.reads) else len(op.reads) - 1]
        else:
            as_constant(i)                          # refuses what has another meaning
            number = -1
        numbers.append(number)
    if tape is None or tape.recording == 0 or not differentiable:
        return value
    if tracked and op.kind != ZERO:
        tape.check_thread()
        if nin > 2:
            if reads & (KEEP_X | KEEP_Y):
                kx = tuple([kept_operand(tape, i) for i in inputs])
                reads |= KEEP_X
            at = tape.add_links(nin)
            for k in range(nin):
                tape.links[at + k] = numbers[k]
        else:
            at = 0
            if reads & KEEP_X:
                kx = kept_operand(tape, inputs[0])
            if reads & KEEP_Y:
                ky = kept_operand(tape, inputs[1])
        node = tape.push(op)
        node.nin, node.kept, node.links = nin, reads, at
        node.in0 = numbers[0]
        node.in1 = numbers[1] if nin > 1 else -1
        if reads & KEEP_X:
            node.x = keep(kx)
        if reads & KEEP_Y and nin <= 2:
            node.y = keep(ky)
        if reads & KEEP_Z:
            node.z = keep(z)
        if params is not None:
            node.params = keep(params)
        link(tape, node, <int> numbers[0], z)
        a = wrap(tape, z, <int> tape.n - 1, scalar)
    else:
        a = wrap(tape, z, -1, scalar)
    if view_of is not None and not scalar:
        a.base, a.seen, a.view_op, a.view_params = view_of, view_of.version, op, params
        a.checked = a.tape.writes
    return a


def constant(value, like):
    """An Array without a derivative on the tape of the Array `like`: what np.zeros_like(x) gives; it can be written to."""
    return wrap((<Traced> like).tape, value, -1, False)


def constant_here(value):
    """The same on the tape that records in this thread; the plain value where none does."""
    tape = current_tape()
    return value if tape is None else wrap(<Tape> tape, value, -1, False)


cpdef Traced leaf(Tape tape, object value, object parent=None):
    """A fresh node for a value that is to be differentiated by; `parent` is the Array that it is a copy of, if any."""
    cdef Node *node
    cdef Traced p, made
    cdef bint scalar = not isinstance(value, cnp.ndarray)
    cdef cnp.ndarray z = np.asarray(value) if scalar else value
    tape.check_thread()
    node = tape.push(LEAF_OP)
    node.nin = 0
    if parent is not None:
        p = parent
        node.nin, node.in0 = 1, p.node
    link(tape, node, -1, z)
    made = wrap(tape, value, <int> tape.n - 1, scalar)
    made.weak = PyFloat_CheckExact(value) if parent is None else (<Traced> parent).weak
    return made


def retrace(Tape tape, value, int node):
    """The Array of a node that is on the tape already (a recorded sweep rebuilds kept values so)."""
    return wrap(tape, value, node, not isinstance(value, np_ndarray))


def plain_value(x):
    """The value that NumPy may be given for x: of an Array its ndarray or scalar, anything else as it is."""
    return plain(x)


def tracked(x):
    """Whether x is an Array with a node."""
    return is_array(x) and (<Traced> x).node >= 0


def apply_elementwise(Op op, tuple inputs, dict kwargs=None):
    """Record a ufunc op, with keywords that change only the dtype (dtype=, casting=, order=)."""
    return elementwise(op, inputs, kwargs)
