"""Public C declarations of cgrad._blas: strided matrix products that are planned once and run without the GIL.

Cimporting this imports scipy.linalg (about 0.2 s), so only modules that are themselves loaded on first use should.

Thread safety: `plan` and `multiply` touch nothing but their arguments. Two threads may run the same Product at the same
time, into results that do not overlap.
"""
cimport numpy as cnp


cdef struct Axis:
    Py_ssize_t size
    Py_ssize_t stride[3]    # in A, B and C, in elements; 0 where the operand does not have the axis


# C[p, r] = sum_q A[p, q] B[q, r], for every step of `loops` (innermost first). A loop that C does not have is summed over.
cdef struct Product:
    Axis p, q, r
    int nloops
    bint swapped            # set by plan(): A and B have changed places, which transposes C
    Axis loops[64]


# Whether BLAS can take matrix number `operand` (0, 1, 2: A, B, C) of a product where it lies, without a copy.
cdef bint fits_blas(const Product *s, int operand) noexcept nogil

# Fold loops into p, q and r where the memory allows it. All sizes must be positive and all three operands fit.
cdef void plan(Product *s) noexcept nogil

# Run a planned product on NPY_FLOAT, NPY_DOUBLE, NPY_CFLOAT or NPY_CDOUBLE data. `add`: into what C holds.
cdef void multiply(const Product *s, int dtype, void *a, void *b, void *c, bint add) noexcept nogil

# matmul_adjoint_x (left=True: `other` is y) and matmul_adjoint_y (left=False: `other` is x) without the argument checks
# on types; other_ndim = -1 stands for other.ndim, into may be None.
cdef cnp.ndarray adjoint(cnp.ndarray gz, cnp.ndarray other, tuple shape, int other_ndim, cnp.ndarray into, bint left)
