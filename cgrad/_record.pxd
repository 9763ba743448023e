# Recording. Uses cgrad._tape and cgrad._loops.
cimport numpy as cnp
from cpython.float cimport PyFloat_Check, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cgrad._tape cimport Node, Op, Tape

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        object (*tp_new)(PyTypeObject *, object, PyObject *)
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags
        PyObject *tp_dict
    PyTypeObject *Py_TYPE(object) noexcept

# Thread safety: belongs to the thread of its tape; recording from another one raises TapeError.
cdef class Traced:
    cdef Tape tape
    cdef object val             # ndarray; None when the value is the C double `num`
    cdef double num
    cdef int node               # -1: a constant that can be written to
    cdef bint number            # a 0-d float64 kept as `num`
    cdef bint weak              # a Python float, which does not promote float32 (NEP 50)
    cdef bint scalar            # NumPy would have a scalar here, which cannot be written to
    cdef unsigned int version   # counts the writes
    cdef unsigned int seen      # version of `base` when this view was taken
    cdef Py_ssize_t checked     # Tape.writes when it was last known to be up to date
    cdef Traced base            # of a view; else None
    cdef Op view_op             # how the view is made from its base
    cdef object view_params

ctypedef Traced (*retake_t)(Traced, Op, object)

cdef PyTypeObject *array_type
cdef retake_t retake

cdef Traced new_array()
cdef bint has_protocol(object x) noexcept

cdef inline bint is_array(object x) noexcept:
    """Whether x is a tracked array: the class is final, so its type alone says so."""
    return Py_TYPE(x) == array_type

cdef inline bint foreign(object x) noexcept:
    """A type that has NumPy's protocol itself (a Variable, say) and must be asked first."""
    if Py_TYPE(x) == array_type or PyFloat_Check(x) or PyLong_CheckExact(x) or cnp.PyArray_CheckExact(x):
        return False
    return has_protocol(x)

cdef inline bint is_weak(object x) noexcept:
    """A Python number, or a tracked one: it takes the dtype of what it meets."""
    return (<Traced> x).weak if Py_TYPE(x) == array_type else PyFloat_CheckExact(x) or PyLong_CheckExact(x)

cdef int settle(Traced a) except -1
cdef object value_of(Traced a)
cdef object plain(object x)
cdef Traced wrap(Tape tape, object value, int node, bint scalar)
cdef Traced new_number(Tape tape, double value, int node)
cpdef Traced leaf(Tape tape, object value, object parent=*)
cdef Tape common_tape(Tape tape, Traced a)
cdef int link(Tape tape, Node *node, int like, cnp.ndarray z) except -1
cpdef object record(Op op, object value, tuple inputs, dict params=*, Traced view_of=*)
cdef object unary(Op op, Traced a)
cdef object finish_number(Tape tape, Op op, int in0, int in1, int nin, double x, double y, double z)
cdef object binary(Op op, object a, object b)
cdef object elementwise(Op op, tuple inputs, dict kwargs)
