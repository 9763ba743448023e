# Indexing, assignment and views of tracked arrays. Uses cgrad._record.
from cgrad._record cimport Traced

cdef object read_item(Traced a, object index)
cdef int write_item(Traced a, object index, object value) except -1
cdef int replace(Traced a, object new) except -1
cdef Traced snapshot(Traced a)
