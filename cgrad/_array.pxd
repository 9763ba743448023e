# The tracked array that users see. Uses cgrad._record.
from cgrad._record cimport Traced
from cgrad._tape cimport Op

cdef class Array(Traced):
    pass

cdef object operate(Op op, object a, object b)
