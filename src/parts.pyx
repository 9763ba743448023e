"""Indexing and assignment: parts of tracked arrays, views, and writing in place.

A write records a node and gives the array a new node number; the buffer is written in place when nobody else can see it, else
copied first. A view knows its base: a write to either reaches the other. Uses `cgrad._record`; used by `array.pyx`, the sweep
and the rules of in-place functions.
"""
cimport cgrad._parts
cimport numpy as cnp
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.long cimport PyLong_AsSsize_t, PyLong_CheckExact
from cpython.object cimport PyObject, PyObject_GetItem, PyObject_SetItem
from cpython.ref cimport Py_INCREF

from cgrad cimport _record
from cgrad._record cimport PyTypeObject, Traced, common_tape, is_array, link, new_array, new_number, settle, value_of, wrap
from cgrad._tape cimport Chunk, FANCY, GETITEM, Node, Op, Tape

import numpy as np

from cgrad._record import FUNCTIONS
from cgrad._tape import TapeError

cnp.import_array()

cdef extern from "c/unique.h":
    bint cgrad_unique(PyObject *) noexcept
    bint cgrad_owns_data(cnp.ndarray) noexcept
    PyTypeObject *cgrad_chunk_type

cgrad_chunk_type = <PyTypeObject *> Chunk

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char *) except -1
    void Py_LeaveRecursiveCall() noexcept

cdef object np_float64 = np.float64
cdef object np_ndarray = np.ndarray
cdef object np_generic = np.generic

cdef Op GETITEM_OP = Op("getitem", "getitem")
cdef Op SETITEM_OP = Op("setitem", "setitem")


cdef inline PyObject *keep(object value) noexcept:
    Py_INCREF(value)
    return <PyObject *> value


cdef Traced take_view(Traced base, Op op, object params):
    if op.kind == GETITEM:
        return (<object> base)[params]
    return op.inverse.view(base, **params)


_record.retake = take_view


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
    if is_array(index):
        raise TypeError(f"getitem: a tracked {index.dtype} array is no index; indices are integers or booleans: "
                        "use x.value.astype(int), or a comparison, which is plain already")
    if isinstance(index, (list, np_ndarray)):
        frozen = np.array(index)
        # an empty list has no dtype of its own, and names nothing
        return frozen.astype(np.intp) if isinstance(index, list) and not frozen.size and frozen.dtype.kind == "f" else frozen
    if isinstance(index, np_generic):
        return index.item() if index.dtype.kind in "iu" else index
    return index


cdef object read_item(Traced a, object index):
    cdef cnp.ndarray x
    cdef Py_ssize_t i, n
    cdef object value
    cdef bint basic
    cdef Traced result
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


cdef object finish_read(Traced a, object index, object value, double number, bint basic):
    cdef Tape tape = a.tape
    cdef Node *node
    cdef int at = -1
    cdef Traced result
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
        result.checked = a.tape.writes
    return result


def part(Traced a, index, value):
    """Record `value` as a[index], however NumPy computed it (np.take, say); a copy in any case, never a view."""
    cdef object result
    settle(a)
    result = finish_read(a, index, value, 0, basic_index(index))
    if is_array(result):
        (<Traced> result).base = None
    return result


cdef int write_item(Traced a, object index, object value) except -1:
    cdef Tape tape = a.tape
    cdef Traced v = None
    cdef Node *node
    cdef object given, buffer
    cdef int in1 = -1
    cdef bint basic
    if a.base is not None:
        settle(a)
    if is_array(value):
        v = <Traced> value
        if v.base is a and v.seen == a.version and v.view_op is GETITEM_OP and basic_index(index) \
                and v.view_params == index:
            return 0                                # y[i] += v: the view is y[i] already
        settle(v)
        common_tape(tape, v)
        in1 = v.node
    check_writeable(a)
    if in1 >= 0 and (<object> a).dtype.kind not in "fc":
        raise TypeError(f"setitem: a tracked {(<object> v).dtype} value stored into an array of dtype {(<object> a).dtype} would lose its "
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
    a.tape.writes += 1
    return write_back(a)


cdef int check_writeable(Traced a) except -1:
    """Refuse what NumPy refuses, a write to a scalar, or to a view like that of np.broadcast_to; and what cannot be recorded."""
    if a.scalar:
        raise TypeError(f"this {(<object> a).dtype} is a scalar, as NumPy's own result would be, and cannot be written to; compute "
                        "a new value instead")
    if a.tape.recording == 0:
        raise TapeError("the tape of this array is over, so the write could not be recorded; copy x.value and write to that")
    while a.base is not None:
        if a.view_op.kind != GETITEM and a.view_op.inverse.back is None:
            raise ValueError(f"assignment destination is read-only: it is a view made by {a.view_op.name}; write to a copy of "
                             "it, or to the array that it is a view of")
        a = a.base
    return 0


cdef object own_buffer(Traced a):
    """The array's buffer if nobody else can see it, else a copy that takes its place (copy on write)."""
    if a.number:
        return np.array(a.num)
    # no local reference before the count is taken
    if not (cgrad_unique(<PyObject *> a.val) and cnp.PyArray_ISWRITEABLE(<cnp.ndarray> a.val)
            and cgrad_owns_data(<cnp.ndarray> a.val)):
        a.val = a.val.copy(order="K")
    return a.val


cdef int write_back(Traced a) except -1:
    """A write to a view is a write to its base."""
    cdef Traced base = a.base
    if base is None:
        return 0
    Py_EnterRecursiveCall(b" while writing through a chain of views of views")
    try:
        return write_to_base(a, base)
    finally:
        Py_LeaveRecursiveCall()


cdef int write_to_base(Traced a, Traced base) except -1:
    cdef Traced copy = snapshot(a)
    if not a.number:
        a.val = None                                # so that the base's buffer may be written in place
    try:
        if a.view_op.kind == GETITEM:
            a.base = None                           # the base must not take the write for the view itself
            try:
                write_item(base, a.view_params, copy)
            finally:
                a.base = base
        else:
            replace(base, a.view_op.inverse.back(copy, (<object> base).shape, **a.view_params))
    except:
        a.val = copy.val                            # never left without a value; the base decides what it is
        a.seen, a.checked = base.version - 1, -1
        raise
    a.seen = base.version - 1                       # taken again on its next use
    settle(a)
    return 0


cdef Traced snapshot(Traced a):
    """Another Array of the same node and value, no view of anything."""
    cdef Traced b = new_array()
    b.tape, b.val, b.num, b.node, b.number, b.scalar = a.tape, a.val, a.num, a.node, a.number, a.scalar
    return b


cdef int replace(Traced a, object new) except -1:
    """`a` takes the value and node of `new`: the end of every in-place operation. NumPy's casting rules hold."""
    cdef Traced z
    cdef object value
    settle(a)
    check_writeable(a)
    if not is_array(new):
        new = wrap(a.tape, np.asarray(new), -1, False)
    z = new
    if (<object> z).dtype != (<object> a).dtype:
        if not np.can_cast((<object> z).dtype, (<object> a).dtype, "same_kind"):
            raise TypeError(f"in-place operation: cannot cast its {(<object> z).dtype} result to the array's dtype {(<object> a).dtype}; compute a "
                            "new array instead")
        z = (<object> z).astype((<object> a).dtype)
    if (<object> z).shape != (<object> a).shape:
        if np.broadcast_shapes((<object> z).shape, (<object> a).shape) != (<object> a).shape:
            raise ValueError(f"in-place operation: result of shape {(<object> z).shape} does not fit the array's shape {(<object> a).shape}")
        z = FUNCTIONS[np.broadcast_to](z, (<object> a).shape)
    settle(z)
    # NumPy would have written into the array's own memory, whose order decides what reshape and ravel give a view of
    value = z.val if a.number or a.base is not None or same_order(<cnp.ndarray> a.val, <cnp.ndarray> z.val) \
        else in_order_of(a.val, z.val)
    a.val, a.num, a.number, a.node = value, z.num, z.number, z.node
    a.version += 1
    a.tape.writes += 1
    return write_back(a)


cdef bint same_order(cnp.ndarray x, cnp.ndarray y) noexcept:
    """Whether two arrays of one shape lie in memory in the same way."""
    cdef int k
    if cnp.PyArray_IS_C_CONTIGUOUS(x) and cnp.PyArray_IS_C_CONTIGUOUS(y):
        return True
    for k in range(cnp.PyArray_NDIM(x)):
        if cnp.PyArray_DIM(x, k) > 1 and cnp.PyArray_STRIDE(x, k) != cnp.PyArray_STRIDE(y, k):
            return False
    return True


cdef object in_order_of(object like, object value):
    """A copy of `value` whose axes lie in memory in the order of those of `like`."""
    cdef object copy = np.empty_like(like)
    copy[...] = value
    return copy


def overwrite(Traced a, new):
    """In place: `a` becomes `new` (an Array or a constant) for everyone who holds `a` or a view of it."""
    replace(a, new)


def own(Traced a):
    """The value of `a` for an in-place function that writes to it, records that with `record` and ends with `overwrite`."""
    settle(a)
    check_writeable(a)
    return own_buffer(a)


def copy_of(Traced a):
    """An Array of the same value that can be written to on its own. Costs nothing: the buffer is copied on write."""
    settle(a)
    cdef Traced b = snapshot(a)
    b.scalar = False
    return b
