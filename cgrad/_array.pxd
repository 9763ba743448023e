# The tracked array, and recording. Uses cgrad._tape and cgrad._loops.
cimport numpy as cnp
from cgrad._tape cimport Op, Tape

cdef class Array:
    cdef Tape tape
    cdef object val             # ndarray; None when the value is the C double `num`
    cdef double num
    cdef int node               # -1: a constant that can be written to
    cdef bint number            # a 0-d float64 kept as `num`
    cdef bint scalar            # NumPy would have a scalar here, which cannot be written to
    cdef unsigned int version   # counts the writes
    cdef unsigned int seen      # version of `base` when this view was taken
    cdef Array base             # of a view; else None
    cdef Op view_op             # how the view is made from its base
    cdef object view_params

cdef int settle(Array a) except -1
cdef object value_of(Array a)
cdef Array wrap(Tape tape, object value, int node, bint scalar)
cdef Array new_number(Tape tape, double value, int node)
cdef object plain(object x)
cpdef object record(Op op, object value, tuple inputs, dict params=*, Array view_of=*)
cdef object unary(Op op, Array a)
cdef object binary(Op op, object a, object b)
cdef object elementwise(Op op, tuple inputs, dict kwargs)
cdef object operate(Op op, object a, object b)
