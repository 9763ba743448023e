"""Inner loops of NumPy's and SciPy's ufuncs.

A ufunc object publishes its loops (`functions`, `data`, `types`): vectorised, chosen for this CPU at import, free of the GIL.
cgrad calls them directly where a whole ufunc call would cost more than the arithmetic. Uses nothing of cgrad; used by the
program executor and by the fast path of recording.
"""
cimport cgrad._loops
cimport numpy as cnp

cnp.import_array()
cnp.import_ufunc()

# NumPy 2.5's own declarations leave `types` out, and without one Cython reads the Python attribute of that name.
cdef extern from "numpy/ufuncobject.h":
    ctypedef struct PyUFuncObject:
        const char *types

cdef extern from "<fenv.h>" nogil:
    const int FE_DIVBYZERO
    const int FE_OVERFLOW
    const int FE_UNDERFLOW
    const int FE_INVALID
    int feclearexcept(int)
    int fetestexcept(int)


cdef Loop find_loop(cnp.ufunc ufunc, int type_num):
    """The loop of `ufunc` that takes and gives `type_num` throughout; `.fun` is NULL where there is none."""
    cdef Loop found
    cdef int i, k
    cdef bint same
    found.fun = NULL
    found.data = NULL
    for i in range(ufunc.ntypes):
        same = True
        for k in range(ufunc.nargs):
            if (<PyUFuncObject *>ufunc).types[i * ufunc.nargs + k] != type_num:
                same = False
                break
        if same:
            found.fun = <loop_t> ufunc.functions[i]
            if ufunc.data != NULL:
                found.data = ufunc.data[i]
            break
    return found


cdef bint fp_trouble() noexcept nogil:
    """True if a floating-point flag is raised that NumPy could warn about; the caller then repeats the call through NumPy,
    whose errstate decides. A flag left over from elsewhere costs one such repetition and nothing else."""
    return fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID) != 0


cdef void fp_clear() noexcept nogil:
    feclearexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)


def has_loop(cnp.ufunc ufunc, dtype):
    """Whether `ufunc` has a loop that works in `dtype` throughout.

    >>> import numpy as np
    >>> has_loop(np.sin, np.float64), has_loop(np.sin, np.int64)
    (True, False)
    """
    return find_loop(ufunc, cnp.dtype(dtype).num).fun != NULL
