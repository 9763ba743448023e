# Inner loops of NumPy and SciPy ufuncs, found once per (ufunc, dtype). Uses nothing of cgrad.
cimport numpy as cnp

ctypedef void (*loop_t)(char **args, const cnp.npy_intp *dims, const cnp.npy_intp *steps, void *data) noexcept nogil

cdef struct Loop:
    loop_t fun          # NULL: this ufunc has no loop for the dtype
    void *data

cdef Loop find_loop(cnp.ufunc ufunc, int type_num)
cdef bint fp_trouble() noexcept nogil
cdef void fp_clear() noexcept nogil
