"""The tracked array: a value, its tape and its node number. Every way in which NumPy code can touch it records.

Recording itself (`unary`, `binary`, `record`) lies here too, since it makes Arrays. Uses `cgrad._tape` and `cgrad._loops`;
the rules fill the tables UFUNCS, FUNCTIONS, METHODS and UFUNC_METHODS.
"""
cimport cgrad._array
cimport cython
cimport numpy as cnp
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check, PyFloat_CheckExact, PyFloat_FromDouble
from cpython.long cimport PyLong_AsDouble, PyLong_AsSsize_t, PyLong_CheckExact
from cpython.object cimport PyObject, PyObject_GetItem, PyObject_SetItem
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport PyUnicode_CheckExact

from cgrad._loops cimport Loop, fp_clear, fp_trouble
from cgrad._tape cimport (ELEMENTWISE, FANCY, GETITEM, KEEP_X, KEEP_Y, KEEP_Z, LEAF_OP, NUMBER, SETITEM, ZERO, Node, Op, Tape,
                          current_tape)

import numpy as np

from cgrad._tape import TapeError

cnp.import_array()
cnp.import_ufunc()

cdef extern from "c/unique.h":
    bint cgrad_unique(PyObject *) noexcept

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags
        PyObject *tp_dict

cdef object np_float64 = np.float64
cdef object np_ndarray = np.ndarray
cdef object np_generic = np.generic
cdef cnp.dtype FLOAT64 = np.dtype(np.float64)

# Filled by cgrad.rules; read-only after import.
UFUNCS = {}             # ufunc -> Op, or a function(*inputs, **kwargs) for ufuncs that are not elementwise
UFUNC_METHODS = {}      # (ufunc, "reduce") -> function
FUNCTIONS = {}          # NumPy function -> function
METHODS = {}            # name of an ndarray method -> function(self, ...)
PROPERTIES = {}         # name of an ndarray attribute -> function(self)
SETTERS = {}            # name of an ndarray attribute that can be assigned to -> function(self, value)
cdef dict _ufuncs = UFUNCS
cdef dict _functions = FUNCTIONS
cdef dict _methods = METHODS
cdef dict _properties = PROPERTIES

cdef Op GETITEM_OP = Op("getitem", "getitem")
cdef Op SETITEM_OP = Op("setitem", "setitem")

cdef str LOST = ("{what} of a tracked array would lose the gradient. {instead} "
                 "Use x.value for the plain value, or cgrad.stop_gradient(x) for a constant.")


def refuse(what, instead):
    """The error of everything that would drop a gradient; `instead` names the way that works."""
    return TypeError(LOST.format(what=what, instead=instead))


# ------------------------------------------------------------------------------------------------ making Arrays
cdef Array new_number(Tape tape, double value, int node):
    cdef Array a = Array.__new__(Array)
    a.tape, a.num, a.node, a.number, a.scalar = tape, value, node, True, True
    return a


cdef Array wrap(Tape tape, object value, int node, bint scalar):
    """An Array of an ndarray or NumPy scalar. 0-d float64 becomes a C double."""
    cdef Array a = Array.__new__(Array)
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


cdef object value_of(Array a):
    """The value as NumPy would hold it: an ndarray, or a NumPy scalar."""
    if a.number:
        return np_float64(a.num) if a.scalar else np.array(a.num)
    return a.val[()] if a.scalar else a.val


cdef object plain(object x):
    """What a NumPy call may be given for x."""
    if type(x) is Array:
        settle(<Array> x)
        return value_of(<Array> x)
    return x


cdef int settle(Array a) except -1:
    """A view whose base was written to since it was taken is taken again."""
    cdef Array fresh
    if a.base is None:
        return 0
    settle(a.base)
    if a.seen != a.base.version:
        fresh = take_view(a.base, a.view_op, a.view_params)
        a.val, a.num, a.number, a.node = fresh.val, fresh.num, fresh.number, fresh.node
        a.seen = a.base.version
        a.version += 1
    return 0


cdef Array take_view(Array base, Op op, object params):
    if op.kind == GETITEM:
        return base[params]
    return op.inverse.view(base, **params)


cdef Tape common_tape(Tape tape, Array a):
    if tape is not None and tape is not a.tape:
        raise TapeError("values of two unrelated tapes were mixed: one was recorded by a transform or GradientTape that is "
                        "over, or by another thread; use x.value for the one that is meant as a constant")
    return a.tape


cdef inline int link(Tape tape, Node *node, int like, cnp.ndarray z) except -1:
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
    if type(operand) is Array:
        return PyFloat_FromDouble((<Array> operand).num) if (<Array> operand).number else (<Array> operand).val
    if isinstance(operand, np_ndarray):
        return tape.guard(operand)
    return operand


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
    cdef Array made
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
    made = Array.__new__(Array)
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


cdef object unary(Op op, Array a):
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
            steps[0] = steps[1] = 8
            loop.fun(args, &n, steps, loop.data)
            if not fp_trouble():
                return finish_number(a.tape, op, a.node, -1, 1, a.num, 0, result)
            fp_clear()
    else:
        x = <cnp.ndarray> a.val
        loop = loop_of(op, cnp.PyArray_TYPE(x))
        if loop.fun != NULL and cnp.PyArray_ISCARRAY_RO(x):
            n = cnp.PyArray_SIZE(x)
            z = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(x), cnp.PyArray_DIMS(x), cnp.PyArray_TYPE(x), 0)
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
    if type(b) is Array:
        if (<Array> b).number:
            out[0] = (<Array> b).num
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
    cdef Array ax = <Array> a if type(a) is Array else None
    cdef Array ay = <Array> b if type(b) is Array else None
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
            steps[0] = steps[1] = steps[2] = 8
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
            if not PyFloat_CheckExact(a if numbers_x else b):
                return elementwise(op, (a, b), None)
            pf, qf = <float> p if numbers_x else 0, <float> q if numbers_y else 0
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
    z = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(shaped), cnp.PyArray_DIMS(shaped), type_num, 0)
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
    cdef Array a
    cdef object value
    cdef int numbers[2]
    cdef int k, nin = len(inputs)
    values = []
    numbers[0] = numbers[1] = -1
    for k in range(nin):
        i = inputs[k]
        if type(i) is Array:
            a = i
            settle(a)
            tape = common_tape(tape, a)
            numbers[k] = a.node
            values.append(value_of(a))
        else:
            values.append(i)
    value = op.ufunc(*values, **kwargs) if kwargs else op.ufunc(*values)
    if isinstance(value, np_ndarray):
        return finish(tape, op, numbers[0], numbers[1], nin, inputs[0], inputs[1] if nin > 1 else None, value, False)
    return finish(tape, op, numbers[0], numbers[1], nin, inputs[0], inputs[1] if nin > 1 else None, np.asarray(value), True)


# ------------------------------------------------------------------------------------------------ any other op
cpdef object record(Op op, object value, tuple inputs, dict params=None, Array view_of=None):
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
    cdef Array a
    cdef Node *node
    cdef int k, reads = 0, nin = len(inputs), at, tracked = 0, number
    cdef object kx = None, ky = None
    cdef bint scalar = not isinstance(value, np_ndarray)
    cdef cnp.ndarray z = np.asarray(value) if scalar else value
    cdef bint differentiable = cnp.PyTypeNum_ISFLOAT(z.dtype.num) or cnp.PyTypeNum_ISCOMPLEX(z.dtype.num)
    numbers = []
    for k in range(nin):
        i = inputs[k]
        if type(i) is Array:
            a = i
            settle(a)
            tape = common_tape(tape, a)
            number = a.node
            if number >= 0:
                tracked += 1
                if op.vjp is not None:
                    reads |= <int> op.reads[k if k < len(op.reads) else len(op.reads) - 1]
        else:
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
    return a


def constant(value, like):
    """An Array without a derivative on the tape of the Array `like`: what np.zeros_like(x) gives; it can be written to."""
    return wrap((<Array?> like).tape, value, -1, False)


def constant_here(value):
    """The same on the tape that records in this thread; the plain value where none does."""
    tape = current_tape()
    return value if tape is None else wrap(<Tape> tape, value, -1, False)


def leaf(Tape tape, value, parent=None):
    """A fresh node for a value that is to be differentiated by; `parent` is the Array that it is a copy of, if any."""
    cdef Node *node
    cdef Array p
    cdef bint scalar = not isinstance(value, np_ndarray)
    cdef cnp.ndarray z = np.asarray(value)
    tape.check_thread()
    node = tape.push(LEAF_OP)
    node.nin = 0
    if parent is not None:
        p = parent
        node.nin, node.in0 = 1, p.node
    link(tape, node, -1, z)
    return wrap(tape, value, <int> tape.n - 1, scalar)


def retrace(Tape tape, value, int node):
    """The Array of a node that is on the tape already (a recorded sweep rebuilds kept values so)."""
    return wrap(tape, value, node, not isinstance(value, np_ndarray))


# ------------------------------------------------------------------------------------------------ reading and writing parts
cdef bint basic_index(object index) noexcept:
    """An index that NumPy answers with a view."""
    cdef object i
    if type(index) is tuple:
        for i in <tuple> index:
            if not (PyLong_CheckExact(i) or type(i) is slice or i is None or i is Ellipsis):
                return False
        return True
    return PyLong_CheckExact(index) or type(index) is slice or index is None or index is Ellipsis


cdef object freeze_index(object index):
    """The index as it is now: lists and arrays in it are copied, tracked values refused."""
    if type(index) is tuple:
        return tuple([freeze_index(i) for i in index])
    if type(index) is Array:
        raise TypeError(f"getitem: a tracked {(<Array> index).dtype} array is no index; indices are integers or booleans: "
                        "use x.value.astype(int), or a comparison, which is plain already")
    if isinstance(index, (list, np_ndarray)):
        return np.array(index, dtype=np.intp if isinstance(index, list) and not index else None)
    if isinstance(index, np_generic):
        return index.item() if index.dtype.kind in "iu" else index
    return index


cdef object read_item(Array a, object index):
    cdef cnp.ndarray x
    cdef Py_ssize_t i, n
    cdef object value
    cdef bint basic
    cdef Array result
    cdef Node *node
    if a.base is not None:
        settle(a)
    if a.number:
        value = np.array(a.num)[index] if not a.scalar else np_float64(a.num)[index]
        basic = basic_index(index)
    else:
        x = <cnp.ndarray> a.val
        if PyLong_CheckExact(index) and cnp.PyArray_NDIM(x) == 1 and cnp.PyArray_TYPE(x) == cnp.NPY_DOUBLE \
                and cnp.PyArray_ISBEHAVED_RO(x):
            # the commonest read in a loop, without a NumPy scalar in between
            i, n = PyLong_AsSsize_t(index), cnp.PyArray_DIM(x, 0)
            if i < 0:
                i += n
            if 0 <= i < n:
                return finish_read(a, index, None, (<double *> cnp.PyArray_GETPTR1(x, i))[0], True)
        basic = basic_index(index)
        if not basic:
            index = freeze_index(index)
            basic = basic_index(index)
        value = PyObject_GetItem(x, index)
    if not isinstance(value, np_ndarray) and type(value) is np_float64:
        return finish_read(a, index, None, PyFloat_AS_DOUBLE(value), basic)
    return finish_read(a, index, value, 0, basic)


cdef object finish_read(Array a, object index, object value, double number, bint basic):
    cdef Tape tape = a.tape
    cdef Node *node
    cdef int at = -1
    cdef Array result
    cdef bint scalar
    if value is None:
        if tape.recording == 0:
            return np_float64(number)
    elif tape.recording == 0 or value.dtype.kind not in "fc":
        return value
    if a.node >= 0:
        tape.check_thread()
        node = tape.push(GETITEM_OP)
        node.in0, node.nin, node.kept = a.node, 1, 0 if basic else FANCY
        node.params = keep(index)
        at = <int> tape.n - 1
        if value is None:
            node.type_num = cnp.NPY_DOUBLE
        elif isinstance(value, np_ndarray):
            link(tape, node, -1, <cnp.ndarray> value)
        else:
            node.type_num = (<cnp.dtype> value.dtype).num
    if value is None:
        return new_number(tape, number, at)
    scalar = not isinstance(value, np_ndarray)
    result = wrap(tape, value, at, scalar)
    if basic and not scalar:
        result.base, result.seen, result.view_op, result.view_params = a, a.version, GETITEM_OP, index
    return result


cdef int write_item(Array a, object index, object value) except -1:
    cdef Tape tape = a.tape
    cdef Array v = None
    cdef Node *node
    cdef object given, buffer
    cdef int in1 = -1
    cdef bint basic
    if a.base is not None:
        settle(a)
    if type(value) is Array:
        v = <Array> value
        if v.base is a and v.seen == a.version and v.view_op is GETITEM_OP and basic_index(index) \
                and v.view_params == index:
            return 0                                # y[i] += v: the view is y[i] already
        settle(v)
        common_tape(tape, v)
        in1 = v.node
    if a.scalar:
        raise TypeError(f"setitem: this {a.dtype} is a scalar, as NumPy's own result would be, and cannot be written to; "
                        "compute a new value instead")
    if tape.recording == 0:
        raise TapeError("setitem: the tape of this array is over, so the write could not be recorded; copy x.value and "
                        "write to that")
    if in1 >= 0 and a.dtype.kind not in "fc":
        raise TypeError(f"setitem: a tracked {v.dtype} value stored into an array of dtype {a.dtype} would lose its "
                        "gradient; make the array floating, e.g. cgrad.numpy.zeros(shape)")
    basic = basic_index(index)
    if not basic:
        index = freeze_index(index)
        basic = basic_index(index)
    given = value_of(v) if v is not None else value
    buffer = own_buffer(a)
    PyObject_SetItem(buffer, index, given)
    if a.number:
        a.num = buffer[()]
    if a.node >= 0 or in1 >= 0:
        tape.check_thread()
        node = tape.push(SETITEM_OP)
        node.in0, node.in1, node.nin, node.kept = a.node, in1, 2, 0 if basic else FANCY
        node.params = keep(index)
        link(tape, node, a.node, <cnp.ndarray> buffer)
        a.node = <int> tape.n - 1
    a.version += 1
    return write_back(a)


cdef object own_buffer(Array a):
    """The array's buffer if nobody else can see it, else a copy that takes its place (copy on write)."""
    if a.number:
        return np.array(a.num)
    # no local reference before the count is taken
    if not (cgrad_unique(<PyObject *> a.val) and cnp.PyArray_ISWRITEABLE(<cnp.ndarray> a.val)
            and cnp.PyArray_CHKFLAGS(<cnp.ndarray> a.val, cnp.NPY_ARRAY_OWNDATA)):
        a.val = a.val.copy(order="K")
    return a.val


cdef int write_back(Array a) except -1:
    """A write to a view is a write to its base."""
    cdef Array base = a.base, copy
    if base is None:
        return 0
    copy = snapshot(a)
    if not a.number:
        a.val = None                                # so that the base's buffer may be written in place
    if a.view_op.kind == GETITEM:
        a.base = None                               # the base must not take the write for the view itself
        try:
            write_item(base, a.view_params, copy)
        finally:
            a.base = base
    else:
        replace(base, a.view_op.inverse.back(copy, base.shape, **a.view_params))
    a.seen = base.version - 1                       # taken again on its next use
    settle(a)
    return 0


cdef Array snapshot(Array a):
    """Another Array of the same node and value, no view of anything."""
    cdef Array b = Array.__new__(Array)
    b.tape, b.val, b.num, b.node, b.number, b.scalar = a.tape, a.val, a.num, a.node, a.number, a.scalar
    return b


cdef int replace(Array a, object new) except -1:
    """`a` takes the value and node of `new`: the end of every in-place operation. NumPy's casting rules hold."""
    cdef Array z
    settle(a)
    if a.scalar:
        raise TypeError(f"this {a.dtype} is a scalar, as NumPy's own result would be, and cannot be written to")
    if a.tape.recording == 0:
        raise TapeError("the tape of this array is over, so the write could not be recorded; copy x.value and write to that")
    if type(new) is not Array:
        new = wrap(a.tape, np.asarray(new), -1, False)
    z = new
    if z.dtype != a.dtype:
        if not np.can_cast(z.dtype, a.dtype, "same_kind"):
            raise TypeError(f"in-place operation: cannot cast its {z.dtype} result to the array's dtype {a.dtype}; compute a "
                            "new array instead")
        z = z.astype(a.dtype)
    if z.shape != a.shape:
        if np.broadcast_shapes(z.shape, a.shape) != a.shape:
            raise ValueError(f"in-place operation: result of shape {z.shape} does not fit the array's shape {a.shape}")
        z = _functions[np.broadcast_to](z, a.shape)
    settle(z)
    a.val, a.num, a.number, a.node = z.val, z.num, z.number, z.node
    a.version += 1
    return write_back(a)


def overwrite(Array a, new):
    """In place: `a` becomes `new` (an Array or a constant) for everyone who holds `a` or a view of it."""
    replace(a, new)


def copy_of(Array a):
    """An Array of the same value that can be written to on its own. Costs nothing: the buffer is copied on write."""
    settle(a)
    cdef Array b = snapshot(a)
    b.scalar = False
    return b


# ------------------------------------------------------------------------------------------------ the class
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


cdef inline bint foreign(object x) noexcept:
    """A type that has NumPy's protocol itself (a Variable, say) and must be asked first."""
    if type(x) is Array or PyFloat_Check(x) or PyLong_CheckExact(x) or isinstance(x, (np_ndarray, np_generic)):
        return False
    return hasattr(type(x), "__array_ufunc__")


cdef object operate(Op op, object a, object b):
    if (type(a) is not Array and foreign(a)) or (type(b) is not Array and foreign(b)):
        return NotImplemented
    return binary(op, a, b)


cdef object through(object ufunc, object a, object b):
    if (type(a) is not Array and foreign(a)) or (type(b) is not Array and foreign(b)):
        return NotImplemented
    handler = _ufuncs[ufunc]
    return binary(handler, a, b) if type(handler) is Op else handler(a, b)


cdef object in_place(Array a, object z):
    """The end of `a += b`."""
    if z is NotImplemented or a.scalar:
        return z
    replace(a, z)
    return a


@cython.final
@cython.no_gc
@cython.freelist(256)
@cython.c_api_binop_methods(True)
cdef class Array:
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
        if self.tape.recording == 0:
            return float(plain(self))               # the tape is over: nothing can be lost
        raise refuse("float() (and math.sin and the like)", "Use NumPy's functions: np.sin, np.exp, ... "
                     "To fill an array use np.zeros_like(x) or cgrad.numpy.zeros(shape) instead of a plain ndarray.")

    def __int__(self):
        if self.tape.recording == 0:
            return int(plain(self))
        raise refuse("int()", "For an index or a count use int(x.value).")

    def __complex__(self):
        if self.tape.recording == 0:
            return complex(plain(self))
        raise refuse("complex()", "Use x + 1j*y instead.")

    def __index__(self):
        raise refuse("Use as an index", "Use int(x.value).")

    def __array__(self, dtype=None, copy=None):
        if self.tape.recording == 0:
            return np.array(plain(self), dtype=dtype)
        raise refuse("np.asarray, np.array or storing into a plain ndarray",
                     "Use cgrad.numpy.array([...]) or np.stack to build arrays of tracked values, and "
                     "np.zeros_like(x) or cgrad.numpy.zeros(shape) for an array to fill.")

    # -- NumPy's protocols
    # __array_ufunc__ is put in below, as a function that takes its arguments without a tuple and a dict

    def __array_function__(self, function, types, args, kwargs):
        cdef object handler = _functions.get(function)
        for t in types:
            if t is not Array and t is not np_ndarray:
                return NotImplemented
        if handler is None:
            raise NotImplementedError(f"{function.__module__}.{function.__name__} has no derivative rule in cgrad; write it "
                                      "with functions that have one, or use x.value for its plain value")
        return handler(*args, **kwargs)

    def __getattr__(self, str name):
        handler = _methods.get(name)
        if handler is not None:
            return Method(handler, self)
        handler = _properties.get(name)
        if handler is not None:
            return handler(self)
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
        cdef double q
        if modulus is not None:
            return NotImplemented
        # ndarray.__pow__ takes these exponents apart too; numpy's scalars do not
        if type(a) is Array and not (<Array> a).scalar and (PyFloat_CheckExact(b) or PyLong_CheckExact(b)):
            if b == 2:
                return unary(op_square, <Array> a)
            if b == 1:
                return unary(op_positive, <Array> a)
            if b == 0.5:
                return unary(op_sqrt, <Array> a)
            if b == -1:
                return unary(op_reciprocal, <Array> a)
        return operate(op_power, a, b)

    def __neg__(self):
        return unary(op_negative, self)

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


cdef object array_ufunc(object self, PyObject *const *args, Py_ssize_t n, PyObject *names):
    """Array.__array_ufunc__(ufunc, method, *inputs, **kwargs)."""
    cdef object handler, ufunc
    cdef Py_ssize_t k
    if n < 3 or not PyUnicode_CheckExact(<object> args[1]):
        raise TypeError("Array.__array_ufunc__(ufunc, method, *inputs, **kwargs) is called by NumPy")
    ufunc = <object> args[0]
    handler = _ufuncs.get(ufunc)
    for k in range(2, n):
        if type(<object> args[k]) is not Array and foreign(<object> args[k]):
            return NotImplemented
    if names == NULL and type(handler) is Op and (<object> args[1] == "__call__"):
        if n == 3:
            return unary(<Op> handler, <Array?> <object> args[2])
        return binary(<Op> handler, <object> args[2], <object> args[3])
    keywords = {}
    if names != NULL:
        for k in range(len(<tuple> names)):
            keywords[(<tuple> names)[k]] = <object> args[n + k]
    return ufunc_call(ufunc, <object> args[1], handler, tuple([<object> args[k] for k in range(2, n)]), keywords)


cdef object ufunc_call(object ufunc, object method, object handler, tuple inputs, dict keywords):
    """Every ufunc call but the plainest."""
    if method != "__call__":
        handler = UFUNC_METHODS.get((ufunc, method))
        if handler is None:
            raise NotImplementedError(f"np.{ufunc.__name__}.{method} has no derivative rule in cgrad; write it with functions "
                                      "that have one, or use x.value for its plain value")
        return handler(*inputs, **keywords)
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


@cython.final
@cython.no_gc
cdef class Method:
    """An ndarray method of an Array, before it is called."""
    cdef object function
    cdef Array owner

    def __cinit__(self, function, Array owner):
        self.function, self.owner = function, owner

    def __call__(self, *args, **kwargs):
        return self.function(self.owner, *args, **kwargs)


def plain_value(x):
    """The value that NumPy may be given for x: of an Array its ndarray or scalar, anything else as it is."""
    return plain(x)


def tracked(x):
    """Whether x is an Array with a node."""
    return type(x) is Array and (<Array> x).node >= 0


def apply_elementwise(Op op, tuple inputs, dict kwargs=None):
    """Record a ufunc op, with keywords that change only the dtype (dtype=, casting=, order=)."""
    return elementwise(op, inputs, kwargs)


def apply(Op op, *inputs):
    """Record an elementwise op of one or two inputs by the fast path; plain inputs go to NumPy."""
    if len(inputs) == 1:
        if type(inputs[0]) is Array:
            return unary(op, <Array> inputs[0])
    elif type(inputs[0]) is Array or type(inputs[1]) is Array:
        return operate(op, inputs[0], inputs[1])
    return op.ufunc(*inputs)


cdef extern from "Python.h":
    ctypedef object (*vectorcallfunc)(object, PyObject *const *, size_t, PyObject *)
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept
    object PyObject_Vectorcall(object, PyObject *const *, size_t, PyObject *)
    object PyVectorcall_Call(object, object, object)
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL


@cython.final
cdef class Direct:
    """A NumPy function or ufunc as `cgrad.numpy` has it: straight to the recorded op when its first argument is tracked."""
    cdef vectorcallfunc vectorcall
    cdef readonly object function
    cdef Op op
    cdef object handler
    cdef dict __dict__

    def __init__(self, function):
        found = _ufuncs.get(function) if isinstance(function, np.ufunc) else _functions.get(function)
        self.vectorcall = direct_call
        self.function = function
        self.op = found if type(found) is Op else None
        self.handler = None if type(found) is Op else found
        self.__name__ = self.__qualname__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = "cgrad.numpy"
        self.__wrapped__ = function

    def __call__(self, *args, **kwargs):
        return PyVectorcall_Call(self, args, kwargs)

    def __getattr__(self, str name):
        return getattr(self.function, name)

    def __repr__(self):
        return f"<cgrad.numpy.{self.__name__}>"

    def __reduce__(self):
        return direct_by_name, (self.__name__,)


cdef object direct_call(object me, PyObject *const *args, size_t flags, PyObject *names):
    """Direct's vectorcall: no tuple and no dict for the commonest calls."""
    cdef Direct self = <Direct> me
    cdef Py_ssize_t n = PyVectorcall_NARGS(flags)
    if n and names == NULL and self.op is not None:
        if n == 1:
            if type(<object> args[0]) is Array:
                return unary(self.op, <Array> args[0])
        elif n == 2 and self.op.ufunc.nin == 2:
            if (type(<object> args[0]) is Array or type(<object> args[1]) is Array) \
                    and not (foreign(<object> args[0]) or foreign(<object> args[1])):
                return binary(self.op, <object> args[0], <object> args[1])
    elif n and self.handler is not None and type(<object> args[0]) is Array:
        return PyObject_Vectorcall(self.handler, args, flags, names)
    return PyObject_Vectorcall(self.function, args, flags, names)


cdef int enable_vectorcall() except -1:
    # Cython has no syntax for it; the type is final, and this runs before anybody else can see it
    cdef Direct probe = Direct(np.sin)
    cdef PyTypeObject *kind = <PyTypeObject *> Direct
    kind.tp_vectorcall_offset = <char *> &probe.vectorcall - <char *> <PyObject *> probe
    kind.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL
    return 0


enable_vectorcall()


def direct_by_name(name):
    import cgrad.numpy
    return getattr(cgrad.numpy, name)
