"""The adjoints of numpy.matmul on plain arrays, by BLAS.

For z = x @ y with gz the adjoint of z, the adjoint of x is gz @ y^T and that of y is x^T @ gz (no conjugation), summed
over the batch axes that x, or y, was broadcast along. Both are the same contraction of gz with the other operand,

    C[p, r] = sum_q A[p, q] B[q, r]        A = gz, B = the other operand, C = the adjoint wanted

where q is the core axis of gz that the wanted operand does not have, inside further axes that some of A, B and C have
and others do not. Such an axis is folded into p (A and C have it), q (A and B: product and sum in one call) or r (B and
C) if its strides continue those of p, q or r, and is a plain loop otherwise. A loop that C does not have adds into C
(beta = 1). Transposes are flags and row strides are leading dimensions, so nothing is copied unless neither axis
of a matrix is contiguous.

Uses NumPy's C API and scipy.linalg.cython_blas, nothing else of cgrad; importing it imports scipy.linalg (about 0.2 s).
"""
import numpy as np

cimport cgrad._blas      # so that a changed .pxd is seen by the build
cimport cython
cimport numpy as cnp
from cython cimport floating
from libc.limits cimport INT_MAX
from libc.string cimport memset
from scipy.linalg.cython_blas cimport (
    cdotu, cgemm, cgemv, cgeru, ddot, dgemm, dgemv, dger, sdot, sgemm, sgemv, sger, zdotu, zgemm, zgemv, zgeru)

cnp.import_array()

ctypedef fused scalar:
    float
    double
    float complex
    double complex

cdef enum:
    A = 0
    B = 1
    C = 2
    P = 0
    Q = 1
    R = 2
    MAX_LOOPS = 64
    OUTER_BLOCK = 1 << 14       # bytes of an outer product that stay in the first-level cache
    GEMM_BLOCK = 1 << 19        # multiply-adds up to which OpenBLAS has small-matrix kernels, with some margin
    NOGIL_WORK = 1 << 15        # multiply-adds that take a few microseconds

# ---- Small matrices --------------------------------------------------------------------------------------------------
# With q and r up to SMALL a BLAS call is mostly overhead: (4, 4) @ (4, 4) takes it 20-60 ns, by CPU and transposes, and
# this 8 ns; (8, 8) @ (8, 8) 35-90 ns, and this 35 ns. Rows of B are gathered once, which also undoes a transpose.
cdef extern from "c/small_products.h":
    int SMALL
    void small_products(
        bint wide, Py_ssize_t p, Py_ssize_t q, Py_ssize_t r, const void *a, Py_ssize_t ap, Py_ssize_t aq, const void *b,
        Py_ssize_t bq, Py_ssize_t br, void *c, Py_ssize_t cp, Py_ssize_t n, Py_ssize_t sa, Py_ssize_t sb, Py_ssize_t sc,
        bint add) noexcept nogil


# ---- One product -----------------------------------------------------------------------------------------------------
# BLAS is column-major: it reads row-major A as A^T. So C = A B is asked for as C^T = B^T A^T, with the factors swapped.

cdef void gemm(const Product *s, scalar *a, scalar *b, scalar *c, bint add) noexcept nogil:
    """C = A B, or C += A B. A small C with a long q is added up in steps, each in the small-matrix kernels of BLAS."""
    cdef int p = <int> s.p.size, r = <int> s.r.size, ldc = <int> s.p.stride[C], step
    cdef Py_ssize_t left = s.q.size, block = GEMM_BLOCK // (s.p.size * s.r.size)
    cdef bint a_rows = s.q.stride[A] == 1, b_rows = s.r.stride[B] == 1
    cdef int lda = <int> (s.p.stride[A] if a_rows else s.q.stride[A])
    cdef int ldb = <int> (s.q.stride[B] if b_rows else s.r.stride[B])
    cdef char ta = b'N' if a_rows else b'T', tb = b'N' if b_rows else b'T'
    cdef scalar one = 1, beta = 1 if add else 0
    if block < 128:
        block = left
    while left > 0:
        step = <int> min(block, left)
        if scalar is float:
            sgemm(&tb, &ta, &r, &p, &step, &one, b, &ldb, a, &lda, &beta, c, &ldc)
        elif scalar is double:
            dgemm(&tb, &ta, &r, &p, &step, &one, b, &ldb, a, &lda, &beta, c, &ldc)
        elif scalar is floatcomplex:
            cgemm(&tb, &ta, &r, &p, &step, &one, b, &ldb, a, &lda, &beta, c, &ldc)
        else:
            zgemm(&tb, &ta, &r, &p, &step, &one, b, &ldb, a, &lda, &beta, c, &ldc)
        a += step * s.q.stride[A]
        b += step * s.q.stride[B]
        left -= step
        beta = 1


cdef inline scalar *first(scalar *vector, Py_ssize_t size, Py_ssize_t stride) noexcept nogil:
    """The element with the lowest address, where BLAS wants the pointer of a vector to be."""
    return vector + (size - 1) * stride if stride < 0 else vector


cdef void gemv(const Product *s, scalar *a, scalar *b, scalar *c, bint add) noexcept nogil:
    """c = a B, or c += a B, with a and c vectors (p = 1)."""
    cdef bint b_rows = s.r.stride[B] == 1
    cdef int ldb = <int> (s.q.stride[B] if b_rows else s.r.stride[B]), inca = <int> s.q.stride[A], unit = 1
    cdef int rows = <int> (s.r.size if b_rows else s.q.size), columns = <int> (s.q.size if b_rows else s.r.size)
    cdef char tb = b'N' if b_rows else b'T'
    cdef scalar one = 1, beta = 1 if add else 0
    a = first(a, s.q.size, s.q.stride[A])
    if scalar is float:
        sgemv(&tb, &rows, &columns, &one, b, &ldb, a, &inca, &beta, c, &unit)
    elif scalar is double:
        dgemv(&tb, &rows, &columns, &one, b, &ldb, a, &inca, &beta, c, &unit)
    elif scalar is floatcomplex:
        cgemv(&tb, &rows, &columns, &one, b, &ldb, a, &inca, &beta, c, &unit)
    else:
        zgemv(&tb, &rows, &columns, &one, b, &ldb, a, &inca, &beta, c, &unit)


cdef void outer(const Product *s, scalar *a, scalar *b, scalar *c, bint add) noexcept nogil:
    """C = a b^T, or C += a b^T (q = 1). BLAS only adds, so C is cleared block by block, each while in cache."""
    cdef Py_ssize_t block = s.p.size if add else max(1, OUTER_BLOCK // (s.r.size * <Py_ssize_t> sizeof(scalar)))
    cdef Py_ssize_t start = 0, i
    cdef int n, r = <int> s.r.size, ldc = <int> max(s.p.stride[C], s.r.size)
    cdef int inca = <int> s.p.stride[A] if s.p.size > 1 else 1, incb = <int> s.r.stride[B]
    cdef scalar one = 1
    cdef scalar *column
    b = first(b, s.r.size, s.r.stride[B])
    while start < s.p.size:
        n = <int> min(block, s.p.size - start)
        column = first(a, n, s.p.stride[A])
        if not add:
            for i in range(n):
                memset(c + i * s.p.stride[C], 0, s.r.size * sizeof(scalar))
        if scalar is float:
            sger(&r, &n, &one, b, &incb, column, &inca, c, &ldc)
        elif scalar is double:
            dger(&r, &n, &one, b, &incb, column, &inca, c, &ldc)
        elif scalar is floatcomplex:
            cgeru(&r, &n, &one, b, &incb, column, &inca, c, &ldc)
        else:
            zgeru(&r, &n, &one, b, &incb, column, &inca, c, &ldc)
        a += n * s.p.stride[A]
        c += n * s.p.stride[C]
        start += n


cdef void dot(const Product *s, scalar *a, scalar *b, scalar *c, bint add) noexcept nogil:
    """c = a . b, or c += a . b (p = r = 1)."""
    cdef int q = <int> s.q.size, inca = <int> s.q.stride[A], incb = <int> s.q.stride[B]
    cdef scalar old = c[0] if add else 0
    a = first(a, s.q.size, s.q.stride[A])
    b = first(b, s.q.size, s.q.stride[B])
    if scalar is float:
        c[0] = old + sdot(&q, a, &inca, b, &incb)
    elif scalar is double:
        c[0] = old + ddot(&q, a, &inca, b, &incb)
    elif scalar is floatcomplex:
        c[0] = old + cdotu(&q, a, &inca, b, &incb)
    else:
        c[0] = old + zdotu(&q, a, &inca, b, &incb)


# ---- All products of a contraction -----------------------------------------------------------------------------------

cdef void run(const Product *s, int depth, scalar *a, scalar *b, scalar *c, bint add) noexcept nogil:
    """Loops depth, ..., 0. Once a loop that C does not have has written C, its later steps add to it."""
    cdef const Axis *loop = &s.loops[depth]
    cdef Py_ssize_t i
    if scalar is float or scalar is double:
        if depth == 0 and s.q.size <= SMALL and s.r.size <= SMALL:
            small_products(
                scalar is double, s.p.size, s.q.size, s.r.size, a, s.p.stride[A], s.q.stride[A],
                b, s.q.stride[B], s.r.stride[B], c, s.p.stride[C],
                loop.size, loop.stride[A], loop.stride[B], loop.stride[C], add)
            return
    for i in range(loop.size):
        if depth > 0:
            run(s, depth - 1, a, b, c, add)
        elif s.r.size == 1:
            dot(s, a, b, c, add)
        elif s.q.size == 1:
            outer(s, a, b, c, add)
        elif s.p.size == 1:
            gemv(s, a, b, c, add)
        else:
            gemm(s, a, b, c, add)
        a += loop.stride[A]
        b += loop.stride[B]
        c += loop.stride[C]
        add = add or loop.stride[C] == 0


cdef void multiply(const Product *s, int dtype, void *a, void *b, void *c, bint add) noexcept nogil:
    if s.swapped:
        a, b = b, a
    if dtype == cnp.NPY_DOUBLE:
        run(s, s.nloops - 1, <double *> a, <double *> b, <double *> c, add)
    elif dtype == cnp.NPY_FLOAT:
        run(s, s.nloops - 1, <float *> a, <float *> b, <float *> c, add)
    elif dtype == cnp.NPY_CDOUBLE:
        run(s, s.nloops - 1, <double complex *> a, <double complex *> b, <double complex *> c, add)
    else:
        run(s, s.nloops - 1, <float complex *> a, <float complex *> b, <float complex *> c, add)


# ---- Planning --------------------------------------------------------------------------------------------------------

cdef bint fits_blas(const Product *s, int operand) noexcept nogil:
    """True for a matrix with one contiguous axis, and for a vector of any stride but 0 (C: only of stride 1)."""
    cdef const Axis *row = &s.q if operand == B else &s.p
    cdef const Axis *column = &s.q if operand == A else &s.r
    cdef Py_ssize_t down = row.stride[operand], along = column.stride[operand]
    if row.size > INT_MAX or column.size > INT_MAX:
        return False
    if row.size == 1 and column.size == 1:
        return True
    if row.size == 1 or column.size == 1:
        along = down if column.size == 1 else along
        return along == 1 if operand == C else along != 0 and -INT_MAX <= along <= INT_MAX
    return along == 1 and column.size <= down <= INT_MAX or down == 1 and row.size <= along <= INT_MAX


cdef inline bint continues(Axis *inner, const Axis *outer) noexcept nogil:
    """Make one axis of two if a step along `outer` is as long as all of `inner`, in A, B and C."""
    cdef int o
    if inner.size == 1:
        inner[0] = outer[0]
        return True
    for o in range(3):
        if outer.stride[o] != inner.size * inner.stride[o]:
            return False
    inner.size *= outer.size
    return True


cdef bint fold(Product *s, const Axis *loop) noexcept nogil:
    """Make a loop part of p, q or r; False if it must stay a loop."""
    cdef bint in_a = loop.stride[A] != 0, in_b = loop.stride[B] != 0, in_c = loop.stride[C] != 0
    cdef Axis *core
    if in_a + in_b + in_c != 2:
        return False
    core = &s.p if not in_b else &s.r if not in_a else &s.q
    cdef Axis before = core[0]
    if continues(core, loop) and fits_blas(s, A) and fits_blas(s, B) and fits_blas(s, C):
        return True
    core[0] = before
    return False


cdef inline void swap_factors(Axis *axis) noexcept nogil:
    axis.stride[A], axis.stride[B] = axis.stride[B], axis.stride[A]


cdef void plan(Product *s) noexcept nogil:
    cdef int kept = 0, i
    cdef Axis loop
    for i in range(s.nloops):
        loop = s.loops[i]
        if loop.size == 1 or fold(s, &loop) or kept and continues(&s.loops[kept - 1], &loop):
            continue
        s.loops[kept] = loop
        kept += 1
    if kept == 0:
        memset(&s.loops[0], 0, sizeof(Axis))
        s.loops[0].size = kept = 1
    s.nloops = kept

    # The rows of C are to be contiguous, and if C is a vector it is to be a row: else transpose the whole equation.
    s.swapped = s.p.size > 1 and (s.r.size == 1 or s.r.stride[C] != 1)
    if s.swapped:
        s.p, s.r = s.r, s.p
        swap_factors(&s.p)
        swap_factors(&s.q)
        swap_factors(&s.r)
        for i in range(kept):
            swap_factors(&s.loops[i])


# ---- From arrays to a product ----------------------------------------------------------------------------------------

cdef struct Operand:
    int extra, batch        # how many leading axes are extra ones, and how many are batch axes
    int core[3]             # which axis is p, q, r; -1: none

cdef struct Layout:
    Operand of[3]
    int nbatch, ndim        # the batch axes of z; the axes of C
    cnp.npy_intp dims[MAX_LOOPS]


cdef inline int position(const Layout *layout, int operand, int loop) noexcept:
    """Which axis of an operand a loop runs over (innermost first: batch axes, then extra axes); negative: none."""
    cdef const Operand *of = &layout.of[operand]
    if loop < layout.nbatch:
        return of.extra + of.batch - 1 - loop if loop < of.batch else -1
    return of.extra - 1 - (loop - layout.nbatch)


cdef inline Py_ssize_t size_of(const cnp.npy_intp *dims, int axis) noexcept:
    return dims[axis] if axis >= 0 else 1


cdef bint describe(Layout *layout, int gz_ndim, int other_ndim, int primal_ndim, int shape_ndim, bint left) noexcept:
    """Say what each axis is: of gz, of the other operand (primal_ndim axes and extra ones), and of the result."""
    # x has the axes (batch, m, k), y (batch, k, n), z (batch, m, n), without m where x is 1-D and n where y is 1-D.
    # k is r. Of m and n, the result has p.
    cdef bint has_m = (shape_ndim if left else primal_ndim) > 1, has_n = (primal_ndim if left else shape_ndim) > 1
    cdef int m = gz_ndim - 1 - has_n if has_m else -1, n = gz_ndim - 1 if has_n else -1
    cdef Operand *a = &layout.of[A]
    cdef Operand *b = &layout.of[B]
    cdef Operand *c = &layout.of[C]
    b.batch, c.batch = max(primal_ndim - 2, 0), max(shape_ndim - 2, 0)
    a.batch = layout.nbatch = max(b.batch, c.batch)
    a.extra, b.extra = gz_ndim - a.batch - has_m - has_n, other_ndim - primal_ndim
    c.extra = max(a.extra, b.extra)
    layout.ndim = c.extra + shape_ndim
    a.core[P], a.core[Q], a.core[R] = m if left else n, n if left else m, -1
    b.core[P] = c.core[Q] = -1
    if left:
        b.core[Q], b.core[R] = other_ndim - 1 if has_n else -1, other_ndim - 1 - has_n
        c.core[P], c.core[R] = layout.ndim - 2 if has_m else -1, layout.ndim - 1
    else:
        b.core[Q], b.core[R] = other_ndim - 2 if has_m else -1, other_ndim - 1
        c.core[P], c.core[R] = layout.ndim - 1 if has_n else -1, layout.ndim - 1 - has_n
    return (min(shape_ndim, primal_ndim) >= 1 and min(a.extra, b.extra) >= 0
            and max(layout.ndim, c.extra + a.batch) <= MAX_LOOPS)


cdef bint set_sizes(Product *s, Layout *layout, const cnp.npy_intp *gz, const cnp.npy_intp *other) noexcept:
    """Take sizes from the shapes, and the extra axes of the result from gz and other; False if shapes do not match."""
    cdef const Operand *a = &layout.of[A]
    cdef const Operand *b = &layout.of[B]
    cdef const Operand *c = &layout.of[C]
    cdef Py_ssize_t of_z, of_b, of_c
    cdef int i
    s.p.size, s.q.size, s.r.size = size_of(gz, a.core[P]), size_of(gz, a.core[Q]), size_of(other, b.core[R])
    s.nloops = c.extra + layout.nbatch
    cdef bint match = (s.p.size == size_of(layout.dims, c.core[P]) and s.q.size == size_of(other, b.core[Q])
                       and s.r.size == size_of(layout.dims, c.core[R]))
    for i in range(s.nloops):
        of_z, of_b = size_of(gz, position(layout, A, i)), size_of(other, position(layout, B, i))
        if i >= layout.nbatch:              # an extra axis: gz or the other operand may lack it
            of_z = layout.dims[c.extra - 1 - (i - layout.nbatch)] = of_b if of_z == 1 else of_z
        of_c = size_of(layout.dims, position(layout, C, i))
        match &= (of_b == of_z or of_b == 1 and of_c == of_z) and (of_c == of_z or of_c == 1)
        s.loops[i].size = of_z
    return match


cdef inline bint set_stride(Axis *axis, int operand, const cnp.npy_intp *dims, const cnp.npy_intp *strides, int at,
                            Py_ssize_t itemsize) noexcept:
    axis.stride[operand] = 0
    if at < 0 or dims[at] <= 1:
        return True
    axis.stride[operand] = strides[at] // itemsize
    if axis.stride[operand] * itemsize == strides[at]:
        return True
    axis.stride[operand] = 1                # not 0, which would say that the axis repeats
    return False


cdef bint set_strides(Product *s, const Layout *layout, int operand, const cnp.npy_intp *dims,
                      const cnp.npy_intp *strides, Py_ssize_t itemsize) noexcept:
    """Say where an operand lies; False if its elements are not a whole number of elements apart."""
    cdef const Operand *of = &layout.of[operand]
    cdef bint whole = set_stride(&s.p, operand, dims, strides, of.core[P], itemsize)
    whole &= set_stride(&s.q, operand, dims, strides, of.core[Q], itemsize)
    whole &= set_stride(&s.r, operand, dims, strides, of.core[R], itemsize)
    cdef int i
    for i in range(s.nloops):
        whole &= set_stride(&s.loops[i], operand, dims, strides, position(layout, operand, i), itemsize)
    return whole


cdef cnp.ndarray fitting(Product *s, const Layout *layout, int operand, cnp.ndarray array, bint copy):
    """The array where it lies, or a copy of it (but not of what a zero stride repeats), if BLAS can read that."""
    cdef Py_ssize_t itemsize = cnp.PyArray_ITEMSIZE(array)
    cdef int i, leading = layout.of[operand].extra + layout.of[operand].batch
    if copy:
        array = array[tuple([slice(0, 1) if cnp.PyArray_STRIDE(array, i) == 0 else slice(None)
                             for i in range(leading)])].copy()
    if (set_strides(s, layout, operand, cnp.PyArray_DIMS(array), cnp.PyArray_STRIDES(array), itemsize)
            and fits_blas(s, operand)):
        return array
    return None


cdef bint repeats(Product *s) noexcept:
    """Whether gz has the same values all along an axis, in a way that saves work (see adjoint_of_repeated)."""
    cdef Axis loop
    for loop in s.loops[:s.nloops]:
        if loop.size > 1 and loop.stride[A] == 0 and (loop.stride[B] == 0 or loop.stride[C] == 0):
            return True
    return s.p.size > 1 and s.p.stride[A] == 0 or s.q.size > 1 and s.q.stride[A] == 0


cdef adjoint_of_repeated(Product *s, const Layout *layout, cnp.ndarray gz, cnp.ndarray other, tuple shape,
                         int primal_ndim, cnp.ndarray into, bint left):
    """The adjoint for a gz with zero strides, as sum() and mean() send it.

    An axis that is summed over is summed in the other operand first, and one that would come out the same all along is
    computed once: sum(x @ y) costs O(n^2) here, not O(n^3).
    """
    cdef Axis *axis
    cdef int i, a, b, c, extra = layout.of[C].extra
    cdef bint repeat = False
    gz_index, other_index = [slice(None)] * gz.ndim + [...], [slice(None)] * other.ndim
    summed, short = [], list(shape)
    for i in range(-2, s.nloops):
        if i >= 0:
            axis, a, b, c = &s.loops[i], position(layout, A, i), position(layout, B, i), position(layout, C, i)
        else:
            axis = &s.p if i == -2 else &s.q
            a, b, c = [layout.of[o].core[P if i == -2 else Q] for o in (A, B, C)]
        if axis.size == 1 or axis.stride[A] != 0 or axis.stride[B] != 0 and axis.stride[C] != 0:
            continue
        if axis.stride[C] == 0:
            summed.append(b)
        else:
            repeat = True
            if b >= 0:
                other_index[b] = slice(0, 1)
            if c >= extra:
                short[c - extra] = 1
        if a >= 0:
            gz_index[a] = slice(0, 1)
    other = other[tuple(other_index)]
    if summed:
        other = other.sum(axis=tuple(summed), keepdims=True)
    once = adjoint(gz[tuple(gz_index)], other, tuple(short), primal_ndim, None if repeat else into, left)
    if not repeat:
        return once
    if into is not None:
        return _add(once, into, left)
    result = np.empty([layout.dims[i] for i in range(layout.ndim)], once.dtype)
    result[...] = once
    return result


cdef cnp.ndarray adjoint(cnp.ndarray gz, cnp.ndarray other, tuple shape, int other_ndim, cnp.ndarray into, bint left):
    cdef Layout layout
    cdef Product s
    cdef int shape_ndim = len(shape), primal_ndim = other.ndim if other_ndim < 0 else other_ndim, i
    if not describe(&layout, gz.ndim, other.ndim, primal_ndim, shape_ndim, left):
        raise _shape_error(gz, other, shape, primal_ndim, left)
    for i in range(shape_ndim):
        layout.dims[layout.of[C].extra + i] = shape[i]
    if not set_sizes(&s, &layout, cnp.PyArray_DIMS(gz), cnp.PyArray_DIMS(other)):
        raise _shape_error(gz, other, shape, primal_ndim, left)
    if into is not None and (
            into.ndim != layout.ndim or not cnp.PyArray_CompareLists(cnp.PyArray_DIMS(into), layout.dims, layout.ndim)
            or not cnp.PyArray_ISWRITEABLE(into)):
        raise _into_error(into, tuple([layout.dims[i] for i in range(layout.ndim)]), left)

    cdef double work = <double> s.p.size * <double> s.q.size * <double> s.r.size
    for i in range(s.nloops):
        work *= s.loops[i].size
    cdef int dtype = cnp.PyArray_TYPE(gz)
    if (work == 0 or cnp.PyArray_TYPE(other) != dtype
            or dtype not in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE, cnp.NPY_CFLOAT, cnp.NPY_CDOUBLE)
            or not cnp.PyArray_ISBEHAVED_RO(gz) or not cnp.PyArray_ISBEHAVED_RO(other)):
        return _add(_adjoint_by_numpy(gz, other, shape, primal_ndim, left), into, left)

    cdef cnp.npy_intp strides[MAX_LOOPS]
    strides[layout.ndim - 1] = 1
    for i in range(layout.ndim - 1, 0, -1):
        strides[i - 1] = strides[i] * layout.dims[i]
    set_strides(&s, &layout, C, layout.dims, strides, 1)
    cdef cnp.ndarray a = fitting(&s, &layout, A, gz, False), b = fitting(&s, &layout, B, other, False)
    if repeats(&s):
        return adjoint_of_repeated(&s, &layout, gz, other, shape, primal_ndim, into, left)
    if a is None:
        a = fitting(&s, &layout, A, gz, True)
    if b is None:
        b = fitting(&s, &layout, B, other, True)
    if a is None or b is None or not fits_blas(&s, C):          # a size that BLAS has no integers for
        return _add(_adjoint_by_numpy(gz, other, shape, primal_ndim, left), into, left)

    cdef bint add = into is not None and cnp.PyArray_TYPE(into) == dtype and cnp.PyArray_ISCARRAY(into)
    cdef cnp.ndarray result = into if add else cnp.PyArray_EMPTY(layout.ndim, layout.dims, dtype, 0)
    plan(&s)
    if work < NOGIL_WORK:
        multiply(&s, dtype, cnp.PyArray_DATA(a), cnp.PyArray_DATA(b), cnp.PyArray_DATA(result), add)
    else:
        with nogil:
            multiply(&s, dtype, cnp.PyArray_DATA(a), cnp.PyArray_DATA(b), cnp.PyArray_DATA(result), add)
    return result if add else _add(result, into, left)


# ---- Everything that BLAS does not do --------------------------------------------------------------------------------

@cython.wraparound(True)
def _adjoint_by_numpy(gz, other, shape, other_ndim, left):
    """The same adjoint for any numeric dtypes and sizes, by numpy.matmul and a sum over the broadcast axes."""
    for name, array in ("gz", gz), ("y" if left else "x", other):
        if array.dtype.kind not in "biufc":
            raise TypeError(f"{_name(left)}: {name} has dtype {array.dtype}, which has no derivatives; "
                            "convert it to a float or complex dtype")
    shape_ndim, nextra = len(shape), other.ndim - other_ndim
    x_ndim, y_ndim = (shape_ndim, other_ndim) if left else (other_ndim, shape_ndim)
    core = tuple(shape[-2:])
    if y_ndim == 1:                         # a column
        gz = gz[..., np.newaxis]
        other, core = (other[..., np.newaxis], core) if left else (other, (*core, 1))
    if x_ndim == 1:                         # a row
        gz = gz[..., np.newaxis, :]
        other, core = (other, (1, *core)) if left else (other[..., np.newaxis, :], core)
    batch, other_batch = tuple(shape[:-2]), max(other_ndim - 2, 0)
    nbatch = max(len(batch), other_batch)
    batch = (1,) * (nbatch - len(batch)) + batch
    other = other.reshape(other.shape[:nextra] + (1,) * (nbatch - other_batch) + other.shape[nextra:])
    product = gz @ other.swapaxes(-1, -2) if left else other.swapaxes(-1, -2) @ gz
    nextra = product.ndim - 2 - nbatch
    summed = tuple(nextra + i for i, size in enumerate(batch) if size == 1)
    return product.sum(axis=summed, dtype=product.dtype).reshape(product.shape[:nextra] + shape)


cdef _add(cnp.ndarray result, cnp.ndarray into, bint left):
    if into is None:
        return result
    if not np.can_cast(result.dtype, into.dtype, "same_kind"):
        raise TypeError(f"{_name(left)}: into has dtype {into.dtype}, which cannot take an adjoint of dtype "
                        f"{result.dtype}; pass an array of that dtype")
    return np.add(into, result, out=into, casting="same_kind")


def _name(left):
    return "matmul_adjoint_x" if left else "matmul_adjoint_y"


def _into_error(into, shape, left):
    if into.shape != shape:
        return ValueError(f"{_name(left)}: into has shape {into.shape}, but the adjoint has shape {shape}")
    return ValueError(f"{_name(left)}: into is read-only; pass a writeable array, or None for a new one")


@cython.wraparound(True)
def _shape_error(gz, other, shape, other_ndim, left):
    """The ValueError that says which shape is wrong."""
    if not 0 <= other_ndim <= other.ndim:
        name = "y" if left else "x"
        return ValueError(f"{_name(left)}: {name}_ndim is {other_ndim}, but {name} has {other.ndim} axes; "
                          "count the axes of the primal, without extra ones")
    other_shape = other.shape[other.ndim - other_ndim:]
    x, y = (shape, other_shape) if left else (other_shape, shape)
    given = f"{_name(left)}: x of shape {x} and y of shape {y}"
    if not x or not y:
        return ValueError(f"{given} have no product: matmul takes no 0-d operands; use multiply's adjoint")
    if x[-1] != (y[-2] if len(y) > 1 else y[0]):
        return ValueError(f"{given} have no product: the last axis of x must be as long as the "
                          f"{'second-last' if len(y) > 1 else 'only'} axis of y")
    try:
        z = np.broadcast_shapes(x[:-2], y[:-2]) + x[-2:-1] + (y[-1:] if len(y) > 1 else ())
    except ValueError:
        return ValueError(f"{given} have no product: their batch axes {x[:-2]} and {y[:-2]} do not broadcast")
    return ValueError(f"{given} give a product of shape {z}, but gz has shape {gz.shape}; pass the adjoint of that "
                      "product (extra axes go in front of it, and broadcast with those of the other operand)")


# ---- For Python ------------------------------------------------------------------------------------------------------

cdef inline cnp.ndarray as_array(value):
    return value if cnp.PyArray_CheckExact(value) else np.asarray(value)


def matmul_adjoint_x(gz, y, x_shape, *, into=None, y_ndim=None):
    """Adjoint of x in ``z = x @ y``: ``gz @ y^T``, summed over the axes along which x was broadcast.

    Parameters
    ----------
    gz : ndarray, shape (*extra, *z.shape)
        Adjoint of z, for every point of any extra leading axes (seeds).
    y : ndarray, shape (*extra, *y.shape)
        Right-hand operand. 1-D is a column vector, as in `numpy.matmul`.
    x_shape : tuple of int
        Shape of x. 1-D is a row vector.
    into : ndarray of the result's shape, optional
        The result is added to it, in place, without a temporary if it is C-contiguous and of the result's dtype. It
        must not share memory with gz or y.
    y_ndim : int, optional
        How many axes y has without extra ones. All by default.

    Returns
    -------
    ndarray, shape (*extra, *x_shape)
        A new C-contiguous array of dtype ``np.result_type(gz, y)``, or `into`. Nothing is conjugated.

    Raises
    ------
    ValueError
        If the shapes are not those of a product, or `into` has another shape or is read-only.
    TypeError
        If a dtype is not numeric, or `into` cannot hold the result.

    Notes
    -----
    Safe to call from several threads, and without the GIL for all but small work. float32, float64, complex64 and
    complex128 go to BLAS; other and mixed dtypes to `numpy.matmul`.

    Examples
    --------
    >>> import numpy as np
    >>> from cgrad._blas import matmul_adjoint_x
    >>> y = np.array([[1., 2.], [3., 4.], [5., 6.]])
    >>> matmul_adjoint_x(np.array([[1., 0.]]), y, (1, 3))
    array([[1., 3., 5.]])
    >>> matmul_adjoint_x(np.eye(2), y, (3,))              # two seeds for z = x @ y of shape (2,): the Jacobian
    array([[1., 3., 5.],
           [2., 4., 6.]])
    """
    return adjoint(as_array(gz), as_array(y), x_shape if type(x_shape) is tuple else tuple(x_shape),
                   -1 if y_ndim is None else y_ndim, into, True)


def matmul_adjoint_y(x, gz, y_shape, *, into=None, x_ndim=None):
    """Adjoint of y in ``z = x @ y``: ``x^T @ gz``, summed over the axes along which y was broadcast.

    Parameters, result and errors are those of `matmul_adjoint_x`, with x and y in each other's place.

    Examples
    --------
    >>> import numpy as np
    >>> from cgrad._blas import matmul_adjoint_y
    >>> x = np.array([[[1., 2.]], [[3., 4.]]])            # two 1 x 2 matrices, multiplied by one shared 2 x 1 matrix
    >>> gradient = np.zeros((2, 1))
    >>> matmul_adjoint_y(x, np.ones((2, 1, 1)), (2, 1), into=gradient)
    array([[4.],
           [6.]])
    >>> matmul_adjoint_y(np.eye(2), np.array([5., 7.]), (2,))
    array([5., 7.])
    """
    return adjoint(as_array(gz), as_array(x), y_shape if type(y_shape) is tuple else tuple(y_shape),
                   -1 if x_ndim is None else x_ndim, into, False)


# ---- Whether a strong zero is needed ---------------------------------------------------------------------------------

cdef bint finite_run(const floating *a, Py_ssize_t n) noexcept nogil:
    """Whether a[0..n) are all finite. x * 0 is 0 for those and NaN for the others; eight sums, so that they are vectors."""
    cdef floating sums[8]
    cdef floating total = 0
    cdef Py_ssize_t i, j
    for j in range(8):
        sums[j] = 0
    for i in range(0, n - 7, 8):
        for j in range(8):
            sums[j] += a[i + j] * 0
    for i in range(n - n % 8, n):
        total += a[i] * 0
    for j in range(8):
        total += sums[j]
    return total == 0


def all_finite(value):
    """Whether no element is infinite or NaN, as ``numpy.isfinite(value).all()``, in one pass without a temporary.

    Examples
    --------
    >>> import numpy as np
    >>> from cgrad._blas import all_finite
    >>> all_finite(np.array([1., 2.])), all_finite(np.array([1., np.inf]))
    (True, False)
    """
    cdef cnp.ndarray a = as_array(value)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(a)
    cdef int dtype = cnp.PyArray_TYPE(a)
    cdef bint result
    if cnp.PyTypeNum_ISINTEGER(dtype) or cnp.PyTypeNum_ISBOOL(dtype):
        return True
    if not (cnp.PyArray_ISONESEGMENT(a) and cnp.PyArray_ISBEHAVED_RO(a)
            and dtype in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE, cnp.NPY_CFLOAT, cnp.NPY_CDOUBLE)):
        return bool(np.isfinite(a).all())
    if cnp.PyTypeNum_ISCOMPLEX(dtype):
        n *= 2
    with nogil:
        if dtype == cnp.NPY_FLOAT or dtype == cnp.NPY_CFLOAT:
            result = finite_run(<const float *> cnp.PyArray_DATA(a), n)
        else:
            result = finite_run(<const double *> cnp.PyArray_DATA(a), n)
    return result
