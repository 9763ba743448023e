"""The reverse sweep: adjoints from targets back to sources, node by node, in one pass over the tape.

Two ways of arithmetic over the same rules: plain (ndarrays and C doubles; elementwise rules as fused programs) when nobody
records, and recorded (Arrays) when the gradient is to be differentiated again. Undoing of broadcasting, accumulation, dtype and
the contract of a rule (an adjoint of its input's shape) are here, once. Adjoints may have leading axes, `lead`: a batched sweep.
Uses `cgrad._tape`, `cgrad._program`, `cgrad._array`; used by the transforms and by GradientTape.
"""
cimport cgrad._sweep
cimport cython
cimport numpy as cnp
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check, PyFloat_CheckExact, PyFloat_FromDouble
from cpython.long cimport PyLong_AsDouble, PyLong_AsSsize_t, PyLong_CheckExact
from cpython.object cimport PyObject, PyObject_GetItem, PyObject_SetItem
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free

from cgrad._array cimport operate
from cgrad._record cimport PyTypeObject, is_array, wrap
from cgrad._loops cimport fp_clear
from cgrad._program cimport Operand, Program, program_for, type_slot
from cgrad._tape cimport (ELEMENTWISE, FANCY, GETITEM, KEEP_X, KEEP_Y, KEEP_Z, LEAF, NUMBER, SETITEM, STRUCTURAL, ZERO,
                          Chunk, Node, Op, Pool, Tape)

import inspect

import numpy as np

from cgrad._indices import add_at_rows, last_writes, leading, read_rows, touched
from cgrad._parts import copy_of
from cgrad._record import FUNCTIONS, UFUNCS
from cgrad._kernels import strong_multiply
from cgrad._tape import TapeError, current_tape

cnp.import_array()
cnp.import_ufunc()

cdef extern from "c/unique.h":
    bint cgrad_own(PyObject *) noexcept
    PyTypeObject *cgrad_chunk_type

cgrad_chunk_type = <PyTypeObject *> Chunk

cdef object np_ndarray = np.ndarray
cdef object np_float64 = np.float64
cdef object np_add = np.add
cdef object np_negative = np.negative
cdef object np_multiply = np.multiply

cdef enum State:
    NONE = 0
    NUM = 1
    OBJ = 2

cdef enum:
    SOURCE = 2          # in Sweep.need: a source itself


@cython.final
cdef class Spec:
    """Shape and dtype of a value that the tape did not keep; what a rule gets in its place."""
    cdef readonly tuple shape
    cdef readonly int ndim
    cdef int type_num

    @property
    def dtype(self):
        return cnp.PyArray_DescrFromType(self.type_num)

    @property
    def size(self):
        cdef Py_ssize_t total = 1
        for n in self.shape:
            total *= n
        return total


@cython.final
cdef class Sweep:
    """State of one sweep over the nodes lo..hi-1."""
    cdef Tape tape
    cdef Tape onto              # the tape that a recorded sweep writes to
    cdef Py_ssize_t lo, hi
    cdef PyObject **obj         # adjoints; owned
    cdef double *num            # adjoints of 0-d float64 nodes
    cdef char *state
    cdef char *need             # leads to a source
    cdef bint recorded
    cdef Pool pool
    cdef int n_lead
    cdef tuple lead
    cdef cnp.npy_intp lead_shape[8]

    def __cinit__(self, Tape tape, Py_ssize_t lo, Py_ssize_t hi, bint recorded, Tape onto, tuple lead):
        cdef Py_ssize_t n = hi - lo + 1
        cdef int k
        self.tape, self.lo, self.hi, self.recorded, self.lead = tape, lo, hi, recorded, lead
        self.onto = onto
        self.pool = tape.pool
        self.n_lead = len(lead)
        for k in range(self.n_lead):
            self.lead_shape[k] = lead[k]
        self.obj = <PyObject **> calloc(n, sizeof(PyObject *))
        self.num = <double *> calloc(n, sizeof(double))
        self.state = <char *> calloc(n, 1)
        self.need = <char *> calloc(n, 1)
        if self.obj == NULL or self.num == NULL or self.state == NULL or self.need == NULL:
            raise MemoryError(f"no memory for a sweep over {n} nodes")

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.obj != NULL:
            for i in range(self.hi - self.lo):
                Py_XDECREF(self.obj[i])
        free(self.obj)
        free(self.num)
        free(self.state)
        free(self.need)

    # -------------------------------------------------------------------------------- which nodes matter
    cdef int mark(self, list sources, object windows) except -1:
        """need[i] = node i depends on a source, through nodes inside the windows."""
        cdef Py_ssize_t i, start, stop
        cdef Node *node
        cdef int k
        for i in sources:
            self.need[i - self.lo] = 1
        if windows is None:
            windows = ((0, self.hi),)
        for start, stop in windows:
            for i in range(max(start, self.lo), min(stop, self.hi)):
                if self.need[i - self.lo]:
                    continue
                node = &self.tape.nodes[i]
                if node.nin > 2:
                    for k in range(node.nin):
                        if self.wanted(self.tape.links[node.links + k]):
                            self.need[i - self.lo] = 1
                            break
                elif self.wanted(node.in0) or self.wanted(node.in1):
                    self.need[i - self.lo] = 1
        return 0

    cdef inline bint wanted(self, Py_ssize_t i) noexcept:
        return i >= self.lo and self.need[i - self.lo]

    # -------------------------------------------------------------------------------- adjoints
    cdef inline object take(self, Py_ssize_t i):
        """The adjoint of node i, which gives it up."""
        cdef Py_ssize_t k = i - self.lo
        cdef object g
        if self.state[k] == NUM:
            self.state[k] = NONE
            return np_float64(self.num[k])
        g = <object> self.obj[k]
        Py_XDECREF(self.obj[k])
        self.obj[k] = NULL
        self.state[k] = NONE
        return g

    cdef inline void put(self, Py_ssize_t i, object g) noexcept:
        cdef Py_ssize_t k = i - self.lo
        Py_INCREF(g)
        Py_XDECREF(self.obj[k])
        self.obj[k] = <PyObject *> g
        self.state[k] = OBJ

    cdef inline void add_number(self, Py_ssize_t i, double g) noexcept:
        cdef Py_ssize_t k = i - self.lo
        if self.state[k] == NUM:
            self.num[k] += g
            return
        if self.state[k] == OBJ:                    # a fused program, or a write into a part, left a 0-d ndarray
            g += (<double *> cnp.PyArray_DATA(<cnp.ndarray> self.obj[k]))[0]
            Py_XDECREF(self.obj[k])
            self.obj[k] = NULL
        self.num[k] = g
        self.state[k] = NUM

    cdef inline bint is_number(self, Node *node) noexcept:
        """Its adjoint is kept as a C double."""
        return node.ndim == 0 and node.type_num == cnp.NPY_DOUBLE and self.n_lead == 0 and not self.recorded

    cdef int add(self, Py_ssize_t i, object g, Op op) except -1:
        """Add a contribution, checked and brought to the shape and dtype of node i."""
        cdef Node *node = &self.tape.nodes[i]
        cdef Node copy
        cdef Py_ssize_t k = i - self.lo
        cdef object old
        if self.recorded:
            copy = node[0]                          # what is recorded may move the nodes
            g = self.fit_recorded(&copy, g, op)
            self.put(i, g if self.state[k] == NONE else self.take(i) + g)
            return 0
        if self.is_number(node):
            if not PyFloat_Check(g):
                g = self.fit(node, g, op)
            self.add_number(i, float(g))
            return 0
        g = self.fit(node, g, op)
        if self.state[k] == NONE:
            self.put(i, g)
            return 0
        old = self.take(i)
        if cgrad_own(<PyObject *> old) and cnp.PyArray_TYPE(old) == cnp.PyArray_TYPE(g):
            np_add(old, g, old)
        elif cgrad_own(<PyObject *> g):
            np_add(old, g, g)
            old = g
        else:
            old = np.asarray(np_add(old, g))
        self.put(i, old)
        return 0

    cdef object fit(self, Node *node, object g, Op op):
        cdef cnp.ndarray a
        cdef int k
        cdef bint same
        if not isinstance(g, cnp.ndarray):
            g = np.asarray(g)
        a = g
        same = cnp.PyArray_NDIM(a) == node.ndim + self.n_lead
        if same:
            for k in range(self.n_lead):
                same = same and cnp.PyArray_DIM(a, k) == self.lead_shape[k]
            for k in range(node.ndim):
                same = same and cnp.PyArray_DIM(a, self.n_lead + k) == self.tape.dims[node.dims + k]
        if not same:
            a = self.unbroadcast(node, a, op)
        if cnp.PyArray_TYPE(a) != node.type_num:
            a = self.cast(node, a)
        return a

    cdef object unbroadcast(self, Node *node, object g, Op op):
        """Sum over the axes along which node's value was stretched; on ndarrays and Arrays alike."""
        cdef tuple shape = self.shape_of(node)
        cdef int n_lead = self.n_lead, ndim = len(shape)
        cdef tuple have = g.shape
        cdef int extra = len(have) - n_lead - ndim, k
        if have[:n_lead] != self.lead or extra < 0:
            raise self.broken(op, have, shape)
        axes = list(range(n_lead, n_lead + extra))
        for k in range(ndim):
            if have[n_lead + extra + k] != shape[k]:
                if shape[k] != 1:
                    raise self.broken(op, have, shape)
                axes.append(n_lead + extra + k)
        if not axes:
            return g
        if self.recorded:
            g = FUNCTIONS[np.sum](g, axis=tuple(axes))
            return FUNCTIONS[np.reshape](g, self.lead + shape) if ndim else g
        g = np_add.reduce(g, axis=tuple(axes))
        return np.asarray(g).reshape(self.lead + shape)

    cdef object broken(self, Op op, tuple have, tuple shape):
        return AssertionError(f"the derivative rule of {op.name} gave an adjoint of shape {have} for an input of shape "
                              f"{self.lead + shape}; please report this as a bug of the rule")

    cdef object cast(self, Node *node, object g):
        """An adjoint has the dtype of its node. The adjoint of a real value within complex arithmetic is the real part."""
        cdef object dtype = cnp.PyArray_DescrFromType(node.type_num)
        if g.dtype == dtype:
            return g
        if g.dtype.kind == "c" and dtype.kind != "c":
            g = g.real
        return g.astype(dtype)

    cdef object fit_recorded(self, Node *node, object g, Op op):
        if not is_array(g):
            g = wrap(self.onto, np.asarray(g), -1, False)
        if g.shape != self.lead + self.shape_of(node):
            g = self.unbroadcast(node, g, op)
        return self.cast(node, g)

    cdef tuple shape_of(self, Node *node):
        cdef int k
        return tuple([self.tape.dims[node.dims + k] for k in range(node.ndim)])

    cdef object spec(self, Node *node):
        cdef Spec s = Spec.__new__(Spec)
        s.shape, s.ndim, s.type_num = self.shape_of(node), node.ndim, node.type_num
        return s

    # -------------------------------------------------------------------------------- kept values
    cdef object kept(self, Py_ssize_t i, int bit):
        """The kept x, y or z of node i, as the rule's arithmetic wants it: an Array where a recorded sweep needs its node."""
        cdef Node *node = &self.tape.nodes[i]
        cdef int number = node.in0 if bit == KEEP_X else node.in1 if bit == KEEP_Y else <int> i
        cdef PyObject *p
        if node.kept & NUMBER:
            value = np_float64(node.nx if bit == KEEP_X else node.ny if bit == KEEP_Y else node.nz)
        else:
            p = node.x if bit == KEEP_X else node.y if bit == KEEP_Y else node.z
            if p == NULL:
                raise self.freed()
            value = <object> p
        return self.as_recorded(value, number)

    cdef object as_recorded(self, object value, int number):
        # on another tape the values of this one are constants
        if self.recorded and number >= 0 and self.onto is self.tape:
            return wrap(self.tape, value, number, not isinstance(value, np_ndarray))
        return value

    cdef object freed(self):
        return TapeError("the values this tape kept were freed by an earlier gradient; take all gradients in one call, or use "
                         "GradientTape(persistent=True)")

    # -------------------------------------------------------------------------------- elementwise
    cdef int elementwise_number(self, Py_ssize_t i, Node *node, Op op) except -1:
        cdef double g = self.num[i - self.lo], p
        cdef int k, source
        self.state[i - self.lo] = NONE
        for k in range(node.nin):
            source = node.in0 if k == 0 else node.in1
            if not self.wanted(source):
                continue
            if op.code == 1:
                p = g
            elif op.code == 3:
                p = 0 if g == 0 else g * (node.ny if k == 0 else node.nx)
            elif op.code == 2:
                p = g if k == 0 else -g
            elif op.code == 5:
                p = -g
            elif op.code == 6:
                p = 0 if g == 0 else g * (2 * node.nx)
            else:
                p = self.number_by_program(node, op, k, g)
            self.add_number(source, p)
        return 0

    cdef double number_by_program(self, Node *node, Op op, int k, double g) except? -1.5:
        cdef Operand operands[4]
        cdef double result
        cdef Program program
        partial = op.partials[k]
        if not callable(partial):
            return 0 if g == 0 else g * <double> partial
        found = program_for(partial, cnp.NPY_DOUBLE, op.programs, 4 * k)
        if found is None:
            return float(generic_partial(op, partial, np_float64(g), [np_float64(node.nx), np_float64(node.ny),
                                                                  np_float64(node.nz)]))
        program = found
        operands[0].data, operands[1].data = <char *> &g, <char *> &node.nx
        operands[2].data, operands[3].data = <char *> &node.ny, <char *> &node.nz
        program.run(operands, <char *> &result, NULL, 0, NULL, False)
        return result

    cdef int elementwise(self, Py_ssize_t i, Node *node, Op op) except -1:
        cdef int k, source, step, last = -1
        cdef object g
        cdef tuple partials = op.complex_partials if cnp.PyTypeNum_ISCOMPLEX(node.type_num) else op.partials
        if self.state[i - self.lo] == NUM and node.kept & NUMBER:
            return self.elementwise_number(i, node, op)
        for k in range(node.nin):
            if self.wanted(node.in0 if k == 0 else node.in1):
                last = k
        g = self.take(i)
        if not self.recorded and not isinstance(g, np_ndarray):
            g = np.asarray(g)
        # the input that has an adjoint already goes first, so that the other may take over the buffer of gz
        cdef bint swap = last == 1 and self.state[node.in1 - self.lo] == OBJ
        if swap:
            last = 0 if self.wanted(node.in0) else 1
        for step in range(node.nin):
            k = node.nin - 1 - step if swap else step
            source = node.in0 if k == 0 else node.in1
            if not self.wanted(source):
                continue
            partial = partials[k]
            if not callable(partial):
                if partial == 1:
                    self.add(source, g, op)
                elif self.recorded:
                    self.add(source, -g if partial == -1 else g * partial, op)
                else:
                    self.add(source, self.scaled(g, partial, k == last), op)
            elif self.recorded:
                self.add(source, self.recorded_partial(i, partial, g), op)
            elif not self.by_program(i, source, op, k, partial, g, k == last):
                self.add(source, generic_partial(op, partial, g, self.all_kept(i)), op)
        return 0

    cdef object scaled(self, object g, object slope, bint last):
        """gz times a constant slope, in place of gz where nobody needs that any more."""
        cdef object out = g if last and cgrad_own(<PyObject *> g) else None
        return np_negative(g, out) if slope == -1 else np_multiply(g, slope, out)

    cdef list all_kept(self, Py_ssize_t i):
        cdef Node *node = &self.tape.nodes[i]
        cdef int bit
        values = []
        for bit in (KEEP_X, KEEP_Y, KEEP_Z):
            values.append(as_computed(self.kept(i, bit), node.type_num) if node.kept & bit else None)
        return values

    cdef object recorded_partial(self, Py_ssize_t i, object partial, object g):
        return operate(<Op> UFUNCS[strong_multiply], g, call_partial(partial, self.all_kept(i)))

    cdef bint by_program(self, Py_ssize_t i, int source, Op op, int k, object partial, cnp.ndarray g, bint last) except -1:
        """Run the fused VJP program, straight into the adjoint of `source` where shapes allow; False if there is none."""
        cdef Node *node = &self.tape.nodes[i]
        cdef Node *into = &self.tape.nodes[source]
        cdef int slot = type_slot(node.type_num), ndim = cnp.PyArray_NDIM(g), axis
        cdef bint flat
        cdef Operand operands[4]
        cdef double numbers[3]
        cdef Program program
        cdef cnp.ndarray out = None
        cdef Py_ssize_t at = source - self.lo
        cdef bint accumulate = False, direct
        if slot < 0 or cnp.PyArray_TYPE(g) != node.type_num or not cnp.PyArray_ISALIGNED(g):
            return False
        found = program_for(partial, node.type_num, op.programs, 4 * k + slot)
        if found is None:
            return False
        program = found
        direct = into.type_num == node.type_num and into.ndim == node.ndim
        if direct:
            for axis in range(into.ndim):
                if self.tape.dims[into.dims + axis] != cnp.PyArray_DIM(g, self.n_lead + axis):
                    direct = False
                    break
        if direct and self.state[at] == OBJ and cgrad_own(self.obj[at]) \
                and cnp.PyArray_TYPE(<cnp.ndarray> self.obj[at]) == node.type_num:
            out = <cnp.ndarray> self.obj[at]
            accumulate = True
        # small and all in a row: no bookkeeping
        flat = (self.n_lead == 0 and cnp.PyArray_SIZE(g) <= 512 and cnp.PyArray_IS_C_CONTIGUOUS(g)
                and (out is None or cnp.PyArray_IS_C_CONTIGUOUS(out))
                and in_a_row(node.kept, program.reads & 2, node.x, g) and in_a_row(node.kept, program.reads & 4, node.y, g)
                and in_a_row(node.kept, program.reads & 8, node.z, g))
        operands[0].data = <char *> cnp.PyArray_DATA(g)
        if flat:
            operands[0].strides[0] = cnp.PyArray_ITEMSIZE(g)
        else:
            for axis in range(ndim):
                operands[0].strides[axis] = cnp.PyArray_STRIDE(g, axis)
        if not (self.operand(node, KEEP_X, program.reads & 2, &operands[1], &numbers[0], 1 if flat else ndim)
                and self.operand(node, KEEP_Y, program.reads & 4, &operands[2], &numbers[1], 1 if flat else ndim)
                and self.operand(node, KEEP_Z, program.reads & 8, &operands[3], &numbers[2], 1 if flat else ndim)):
            return False
        if out is None and last and cgrad_own(<PyObject *> g) and cnp.PyArray_IS_C_CONTIGUOUS(g):
            out = g                                 # its adjoint is not needed any more
        elif out is None:
            out = self.pool.empty(ndim, cnp.PyArray_DIMS(g), node.type_num, cnp.PyArray_ITEMSIZE(g))
        if flat:
            program.run_flat(operands, <char *> cnp.PyArray_DATA(out), cnp.PyArray_SIZE(g), accumulate)
        elif cnp.PyArray_SIZE(g) > 8192:
            with nogil:
                program.run(operands, <char *> cnp.PyArray_DATA(out), cnp.PyArray_STRIDES(out), ndim,
                            cnp.PyArray_DIMS(g), accumulate)
        else:
            program.run(operands, <char *> cnp.PyArray_DATA(out), cnp.PyArray_STRIDES(out), ndim, cnp.PyArray_DIMS(g),
                        accumulate)
        if accumulate:
            return True
        if direct and self.state[at] == NONE:
            self.put(source, out)
        else:
            self.add(source, out, op)
        return True

    cdef bint operand(self, Node *node, int bit, bint read, Operand *operand, double *number, int ndim) except -1:
        """Data and strides of a kept value over the ndim axes of the adjoint; False if a program cannot read it. For operands in
        a row ndim is 1, whatever their shape."""
        cdef cnp.ndarray a
        cdef PyObject *p
        cdef int axis, missing
        operand.data = NULL
        if not read:
            return True
        if node.kept & NUMBER:
            operand.data = <char *> (&node.nx if bit == KEEP_X else &node.ny if bit == KEEP_Y else &node.nz)
            for axis in range(ndim):
                operand.strides[axis] = 0
            return True
        p = node.x if bit == KEEP_X else node.y if bit == KEEP_Y else node.z
        if p == NULL:
            raise self.freed()
        if PyFloat_Check(<object> p):
            number[0] = PyFloat_AS_DOUBLE(<object> p)
            if node.type_num == cnp.NPY_FLOAT:
                (<float *> number)[0] = <float> number[0]
            elif node.type_num != cnp.NPY_DOUBLE:
                return False
            operand.data = <char *> number
            for axis in range(ndim):
                operand.strides[axis] = 0
            return True
        if not isinstance(<object> p, cnp.ndarray):
            return False
        a = <cnp.ndarray> p
        if cnp.PyArray_TYPE(a) != node.type_num or not cnp.PyArray_ISBEHAVED_RO(a):
            return False
        operand.data = <char *> cnp.PyArray_DATA(a)
        if cnp.PyArray_NDIM(a) > ndim:
            operand.strides[0] = cnp.PyArray_ITEMSIZE(a)
            return True
        missing = ndim - cnp.PyArray_NDIM(a)
        for axis in range(ndim):
            if axis < missing or cnp.PyArray_DIM(a, axis - missing) == 1:
                operand.strides[axis] = 0
            else:
                operand.strides[axis] = cnp.PyArray_STRIDE(a, axis - missing)
        return True

    # -------------------------------------------------------------------------------- parts
    cdef object buffer_of(self, Py_ssize_t i):
        """The adjoint of node i as an ndarray that may be written to; zeros where there is none yet."""
        cdef Node *node = &self.tape.nodes[i]
        cdef object g
        if self.state[i - self.lo] == NONE:
            return np.zeros(self.lead + self.shape_of(node), cnp.PyArray_DescrFromType(node.type_num))
        g = self.take(i)
        if not isinstance(g, np_ndarray):
            return np.array(g)
        return g if cgrad_own(<PyObject *> g) else g.copy()

    cdef int getitem(self, Py_ssize_t i, Node *node, Op op) except -1:
        cdef int source = node.in0
        cdef Node *into = &self.tape.nodes[source]
        cdef Py_ssize_t at = source - self.lo, n, position
        cdef object index, buffer, g, part
        if node.params == NULL:
            raise self.freed()
        index = <object> node.params
        if self.state[i - self.lo] == NUM and into.ndim == 1 and PyLong_CheckExact(index) \
                and into.type_num == cnp.NPY_DOUBLE:
            # one item: O(1), whatever the length
            if not (self.state[at] == OBJ and cgrad_own(self.obj[at])):
                self.put(source, self.buffer_of(source))
            n = self.tape.dims[into.dims]
            position = PyLong_AsSsize_t(index)
            if position < 0:
                position += n
            (<double *> cnp.PyArray_GETPTR1(<cnp.ndarray> self.obj[at], position))[0] += self.num[i - self.lo]
            self.state[i - self.lo] = NONE
            return 0
        g = self.take(i)
        if self.recorded:
            part = wrap(self.onto, np.zeros(self.lead + self.shape_of(into), cnp.PyArray_DescrFromType(into.type_num)), -1,
                        False) if self.state[at] == NONE else copy_of(self.take(source))
            if node.kept & FANCY:
                self.put(source, add_at_rows(part, index, g, self.n_lead))
            else:
                index = leading(index, self.n_lead)
                part[index] = part[index] + g
                self.put(source, part)
            return 0
        buffer = self.buffer_of(source)
        if node.kept & FANCY:
            add_at_rows(buffer, index, g, self.n_lead)
        else:
            part = PyObject_GetItem(buffer, leading(index, self.n_lead) if self.n_lead else index)
            if isinstance(part, np_ndarray):
                np_add(part, g, part)
            else:
                buffer[leading(index, self.n_lead)] = part + g
        self.put(source, buffer)
        return 0

    cdef int setitem(self, Py_ssize_t i, Node *node, Op op) except -1:
        cdef Py_ssize_t at = i - self.lo, n, position
        cdef bint base = self.wanted(node.in0), value = self.wanted(node.in1)
        cdef object index, g, part
        cdef cnp.ndarray buffer
        if node.params == NULL:
            raise self.freed()
        index = <object> node.params
        if self.recorded:
            g = copy_of(self.take(i))
            if value:
                # no view of g, whose part is zeroed next
                self.add(node.in1, copy_of(self.read_part(g, index, node.kept & FANCY, node)), op)
            if base:
                if node.kept & FANCY and self.n_lead:
                    g[Ellipsis, touched(self.shape_of(node), index)] = 0
                else:
                    g[leading(index, self.n_lead)] = 0
                self.add(node.in0, g, op)
            return 0
        buffer = self.buffer_of(i)
        if PyLong_CheckExact(index) and node.ndim == 1 and node.type_num == cnp.NPY_DOUBLE and self.n_lead == 0 \
                and (not value or self.tape.nodes[node.in1].ndim == 0):
            n = self.tape.dims[node.dims]
            position = PyLong_AsSsize_t(index)
            if position < 0:
                position += n
            if value:
                if self.is_number(&self.tape.nodes[node.in1]):
                    self.add_number(node.in1, (<double *> cnp.PyArray_GETPTR1(buffer, position))[0])
                else:
                    self.add(node.in1, buffer[index], op)
            if base:
                (<double *> cnp.PyArray_GETPTR1(buffer, position))[0] = 0
        else:
            if value:
                part = self.read_part(buffer, index, node.kept & FANCY, node)
                self.add(node.in1, part.copy() if isinstance(part, np_ndarray) else part, op)
            if base:
                if node.kept & FANCY and self.n_lead:
                    buffer[Ellipsis, touched(self.shape_of(node), index)] = 0
                else:
                    PyObject_SetItem(buffer, leading(index, self.n_lead), 0)
        if base:
            if self.state[node.in0 - self.lo] == NONE:
                self.put(node.in0, buffer)
            else:
                self.add(node.in0, buffer, op)
        return 0

    cdef object read_part(self, object g, object index, bint fancy, Node *node):
        """g[index] as the adjoint of the values written there; of repeated places only the last write counts."""
        cdef int dropped
        if not fancy:
            part = g[leading(index, self.n_lead)]
        else:
            part = read_rows(g, index, self.n_lead) if self.n_lead else g[index]
            last = last_writes(self.shape_of(node), index)
            if last is not None:
                part = FUNCTIONS[np.where](last, part, 0)
        # NumPy drops axes of length 1 in front of a value that has too many
        dropped = self.tape.nodes[node.in1].ndim + self.n_lead - part.ndim
        return part if dropped <= 0 else part.reshape(self.lead + (1,) * dropped + part.shape[self.n_lead:])

    # -------------------------------------------------------------------------------- everything else
    cdef int structural(self, Py_ssize_t i, Node *node, Op op) except -1:
        cdef object g = self.take(i), z, params, inputs
        cdef int k, source
        z = self.kept(i, KEEP_Z) if node.kept & KEEP_Z else self.spec(node)
        params = <object> node.params if node.params != NULL else None
        if op.vjp_all is not None:
            parts = op.vjp_all(g, z, **params) if params is not None else op.vjp_all(g, z)
            for k in range(node.nin):
                source = self.tape.links[node.links + k] if node.nin > 2 else node.in0 if k == 0 else node.in1
                if self.wanted(source):
                    self.add(source, parts[k], op)
            return 0
        inputs = self.inputs_of(i, node)
        for k in range(node.nin):
            source = self.tape.links[node.links + k] if node.nin > 2 else node.in0 if k == 0 else node.in1
            if not self.wanted(source):
                continue
            if type(op.vjp) is tuple:
                g_in = op.vjp[k](g, z, *inputs, **params) if params is not None else op.vjp[k](g, z, *inputs)
            else:
                g_in = op.vjp(k, g, z, *inputs, **params) if params is not None else op.vjp(k, g, z, *inputs)
            if g_in is None:
                raise AssertionError(f"the derivative rule of {op.name} gave no adjoint for input {k}; please report this as "
                                     "a bug of the rule")
            self.add(source, g_in, op)
        return 0

    cdef list inputs_of(self, Py_ssize_t i, Node *node):
        """Kept inputs, or their Specs; None for a constant that was not kept."""
        cdef int k, source
        inputs = []
        if node.nin <= 2:
            for k in range(node.nin):
                source = node.in0 if k == 0 else node.in1
                if node.kept & (KEEP_X if k == 0 else KEEP_Y):
                    inputs.append(with_shape(self.kept(i, KEEP_X if k == 0 else KEEP_Y)))
                else:
                    inputs.append(self.spec(&self.tape.nodes[source]) if source >= 0 else None)
            return inputs
        values = None
        if node.kept & KEEP_X:
            if node.x == NULL:
                raise self.freed()
            values = <object> node.x
        for k in range(node.nin):
            source = self.tape.links[node.links + k]
            if values is not None:
                inputs.append(with_shape(self.as_recorded(values[k], source)))
            else:
                inputs.append(self.spec(&self.tape.nodes[source]) if source >= 0 else None)
        return inputs

    # -------------------------------------------------------------------------------- the pass
    cdef int run(self, dict found, bint freeing) except -1:
        cdef Py_ssize_t i, k
        cdef Node *node
        cdef Op op
        cdef int former = self.tape.of
        try:
            for i in range(self.hi - 1, self.lo - 1, -1):
                k = i - self.lo
                if self.state[k] != NONE:
                    node = &self.tape.nodes[i]
                    if self.need[k] == SOURCE:
                        found[i] = np_float64(self.num[k]) if self.state[k] == NUM else <object> self.obj[k]
                    if self.need[k]:
                        if self.recorded and self.onto is self.tape:
                            self.tape.of = <int> i
                        op = <Op> node.op
                        self.step(i, op)
                    else:
                        self.take(i)
                if freeing:
                    self.tape.release(i)
        finally:
            self.tape.of = former
            fp_clear()
            self.pool.drain()
        return 0

    cdef int step(self, Py_ssize_t i, Op op) except -1:
        # a recorded sweep appends to the tape, which may move its nodes: rules get a copy of the node
        cdef Node node = self.tape.nodes[i]
        if op.kind == ELEMENTWISE:
            return self.elementwise(i, &node, op)
        if op.kind == STRUCTURAL:
            return self.structural(i, &node, op)
        if op.kind == GETITEM:
            if self.wanted(node.in0):
                return self.getitem(i, &node, op)
        elif op.kind == SETITEM:
            return self.setitem(i, &node, op)
        elif op.kind == LEAF and node.nin and self.wanted(node.in0):
            self.add(node.in0, self.take(i), op)
            return 0
        self.take(i)
        return 0


cdef inline object with_shape(object value):
    """0-d values are kept as Python floats; structural rules ask for shape and dtype."""
    return np_float64(value) if PyFloat_CheckExact(value) else value


cdef inline bint in_a_row(int kept, bint read, PyObject *p, cnp.ndarray g) noexcept:
    """Whether a kept operand lies element by element as the contiguous adjoint does, or is one number."""
    cdef int k, ndim = cnp.PyArray_NDIM(g)
    if not read or kept & NUMBER:
        return True
    if p == NULL or not cnp.PyArray_CheckExact(<object> p):
        return p != NULL and PyFloat_Check(<object> p)
    if not cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray> p) or cnp.PyArray_NDIM(<cnp.ndarray> p) != ndim:
        return False
    for k in range(ndim):
        if cnp.PyArray_DIM(<cnp.ndarray> p, k) != cnp.PyArray_DIM(g, k):
            return False
    return True


# ------------------------------------------------------------------------------------------------ partials outside of programs
cdef object as_computed(object value, int type_num):
    """A kept operand in the precision in which NumPy computed the result. A small unsigned integer would wrap around in -y, its
    logarithm would be a float16, and a Python float would give way to a float16."""
    cdef object dtype
    if is_array(value):
        return value
    dtype = cnp.PyArray_DescrFromType(type_num)
    if not isinstance(value, (np_ndarray, np.generic)):
        value = np.asarray(value)[()]
    if value.dtype == dtype:
        return value
    if dtype.kind == "c" and value.dtype.kind != "c":
        dtype = np.finfo(dtype).dtype               # real operands stay real
    return value.astype(dtype)


cdef object call_partial(object partial, list kept):
    """partial(x, y, z) with those of the three that it names."""
    names = PARTIAL_NAMES.get(partial)
    if names is None:
        names = tuple("xyz".index(n) for n in inspect.signature(partial).parameters)
        PARTIAL_NAMES[partial] = names
    return partial(*[kept[k] for k in names])


cdef object generic_partial(Op op, object partial, object g, list kept):
    """strong_multiply(gz, partial(x, y, z)) by whole-array calls: mixed dtypes, float16, longdouble."""
    with np.errstate(all="ignore"):
        try:
            return strong_multiply(g, call_partial(partial, kept))
        except TypeError as error:
            raise NotImplementedError(f"{op.name}: no derivative for dtype {g.dtype}; cast the input to float64 or "
                                      "complex128 first") from error


cdef dict PARTIAL_NAMES = {}


# ------------------------------------------------------------------------------------------------ entry
def reverse(Tape tape, list targets, list seeds, list sources, *, windows=None, bint recorded=False, bint freeing=False,
            tuple lead=()):
    """Adjoints of the source nodes.

    Parameters
    ----------
    tape : Tape
    targets : list of int
        Node numbers from which the sweep starts.
    seeds : list of ndarray, NumPy scalar or Array
        Adjoints of the targets, each of shape ``lead + shape`` of its target; not changed.
    sources : list of int
    windows : list of (start, stop), optional
        The sweep passes only nodes in these ranges; others are constants.
    recorded : bool
        Record the sweep on the tape, so that it can be differentiated.
    freeing : bool
        Free what the tape keeps as the sweep passes.
    lead : tuple of int
        Leading axes of the seeds.

    Returns
    -------
    list
        For each source its adjoint, a fresh ndarray (NumPy scalar for 0-d float64), an Array if recorded, or None if no
        target depends on it.
    """
    cdef Sweep sweep
    cdef Py_ssize_t i
    cdef dict found = {}
    if tape.spent:
        raise TapeError("this tape's gradient was taken already and its values are freed; take all gradients in one call, or "
                        "use GradientTape(persistent=True)")
    if not sources or not targets:
        return [None] * len(sources)
    sweep = Sweep(tape, min(min(sources), min(targets)), max(max(targets), max(sources)) + 1, recorded,
                  current_tape() if recorded else None, lead)
    sweep.mark(sources, windows)
    for i in sources:
        sweep.need[i - sweep.lo] = SOURCE
        found[i] = None
    for i, seed in zip(targets, seeds):
        sweep.add(i, seed, LEAF_NAME)
    if freeing:
        tape.spent = True
    sweep.run(found, freeing)
    return [found[i] if recorded else own_result(found, i) for i in sources]


cdef object own_result(dict found, Py_ssize_t i):
    """An adjoint that the caller may write to: not a broadcast view, not shared with another one, a seed or a kept value; and
    with memory of its own."""
    cdef object g = found[i], copy
    found[i] = None
    if isinstance(g, np_ndarray):
        copy = own_memory(<cnp.ndarray> g) if cgrad_own(<PyObject *> g) else g.copy()
        g = copy
    found[i] = g
    return g


cdef object own_memory(cnp.ndarray g):
    """An array of its own in place of one from a pool: a large one takes its block along, a small one is copied."""
    cdef Chunk owner
    if cnp.PyArray_CHKFLAGS(g, cnp.NPY_ARRAY_OWNDATA):
        return g
    if type(cnp.get_array_base(g)) is Chunk:
        owner = cnp.get_array_base(g)
        if owner.block is not None:
            owner.pool = None
            return owner.block.view(g.dtype).reshape((<object> g).shape)
    return g.copy()


cdef Op LEAF_NAME = Op("seed", "leaf")
