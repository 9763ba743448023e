"""The tape: a Wengert list of C structs, and the ops that its nodes name.

Holds `Op`, `Tape`, the current tape of each thread, and the guard of captured ndarrays. Uses NumPy and `cgrad._loops`; used by
the recording (`array.pyx`) and by everything that reads a tape.
"""
cimport cgrad._tape
cimport cython
cimport numpy as cnp
from libc.stdlib cimport free, malloc, realloc
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.ref cimport PyObject, Py_INCREF, Py_XDECREF

from cgrad._loops cimport Loop, find_loop

import inspect
import threading
from mmap import mmap

import numpy as np

cnp.import_array()
cnp.import_ufunc()

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyTypeObject:
        pass
    PyTypeObject PyArray_Type
    cnp.ndarray PyArray_NewFromDescr(PyTypeObject *, cnp.dtype, int, cnp.npy_intp *, cnp.npy_intp *, void *, int, PyObject *)

cdef extern from "c/recycle.h":
    ctypedef void *cgrad_spare_t
    void *cgrad_take_spare(cgrad_spare_t *) noexcept nogil
    void cgrad_give_spare(cgrad_spare_t *, void *) noexcept nogil
    void *cgrad_exchange_spare(cgrad_spare_t *, void *) noexcept nogil

cdef enum:
    FIRST_NODES = 128       # room of a new tape; most functions need no more
    FIRST_DIMS = 256

cdef cgrad_spare_t spare_nodes = NULL
cdef cgrad_spare_t spare_dims = NULL

KINDS = {"leaf": LEAF, "elementwise": ELEMENTWISE, "structural": STRUCTURAL, "getitem": GETITEM, "setitem": SETITEM,
         "zero": ZERO}
CODES = {np.add: 1, np.subtract: 2, np.multiply: 3, np.divide: 4, np.negative: 5, np.square: 6}

# Captured ndarrays up to this many bytes are copied; larger ones are made read-only while the tape lives.
cdef Py_ssize_t GUARD_COPY_BYTES = 1 << 14


class TapeError(RuntimeError):
    """A tape was used in a way that would give no gradient or a wrong one."""


@cython.final
cdef class Op:
    """One kind of node: its name and its derivative rule, the only place where either is written.

    Parameters
    ----------
    name : str
        The name of NumPy's function.
    kind : str
        "elementwise", "structural", "getitem", "setitem", "zero" or "leaf".
    ufunc : numpy.ufunc, optional
        What an elementwise op computes.
    partials : tuple of callables, optional
        Elementwise: the partial derivative by each input, a function of some of ``x, y, z``. Its parameter names say what
        the tape has to keep. A number is a constant slope.
    complex_partials : tuple, optional
        The same for complex results, where the real formula would not do.
    vjp : tuple of callables or callable, optional
        Structural: ``vjp[i](gz, z, *inputs, **params)`` is the contribution to the adjoint of input i; one callable
        ``vjp(i, gz, z, *inputs, **params)`` serves ops with any number of inputs. Inputs that are not kept, and z, come
        as `Spec`.
    vjp_all : callable, optional
        Structural, in place of `vjp`: ``vjp_all(gz, z, **params)`` is a sequence of the contributions to all inputs (anything
        for constants). For ops with any number of inputs: one call per node, not one per input.
    reads : tuple of str, optional
        Structural: for each input's VJP, which of the values it reads: a string over "x", "y" (first, second input),
        "z", and "*" (all inputs).
    linear : bool or tuple, optional
        The op is linear in all its inputs ("multi" for multilinear), which is its JVP.
    inverse : Inverse, optional
        View ops: ``inverse.view(base, **params)`` takes the view again; ``inverse.back(view, base_shape, **params)`` gives the
        base from the whole view, and is None where NumPy's view is read-only.
    """

    def __init__(self, str name, str kind, *, ufunc=None, partials=None, complex_partials=None, vjp=None, vjp_all=None, reads=None,
                 linear=False, inverse=None, str doc=""):
        cdef Loop none
        none.fun = NULL
        none.data = NULL
        self.name, self.kind, self.ufunc, self.doc = name, KINDS[kind], ufunc, doc
        self.partials, self.linear, self.inverse = partials, linear, inverse
        self.vjp, self.vjp_all = vjp, vjp_all
        self.loop_d = self.loop_f = none
        if ufunc is not None:
            self.loop_d = find_loop(ufunc, cnp.NPY_DOUBLE)
            self.loop_f = find_loop(ufunc, cnp.NPY_FLOAT)
            self.code = CODES.get(ufunc, 0)
        if partials is not None:
            self.complex_partials = complex_partials or partials
            self.reads = tuple(reads_of(p) | reads_of(q) for p, q in zip(partials, self.complex_partials))
        else:
            self.reads = tuple(bits_of(r) for r in reads or ())
        self.programs = [None] * (4 * len(self.reads))      # input by input, one for each dtype slot
        self.reads0 = self.reads[0] if self.reads else 0
        self.reads1 = self.reads[1] if len(self.reads) > 1 else 0

    def __repr__(self):
        return f"<cgrad op {self.name}>"

    def __reduce__(self):
        raise TypeError(f"op {self.name}: ops are looked up by name, not pickled; use cgrad.rules.REGISTRY[name]")

    @property
    def state(self):
        """"differentiable" or "zero derivative"; the other two states raise before anything is recorded."""
        return "zero derivative" if self.kind == ZERO else "differentiable"


cdef int bits_of(str letters) except -1:
    bits = {"x": KEEP_X, "y": KEEP_Y, "z": KEEP_Z, "*": KEEP_X | KEEP_Y}
    cdef int total = 0
    for letter in letters:
        total |= bits[letter]
    return total


def reads_of(partial):
    """Which of x, y, z a partial derivative reads: the names of its parameters."""
    if not callable(partial):
        return 0                                    # a constant slope
    return bits_of("".join(inspect.signature(partial).parameters))


cdef Op LEAF_OP = Op("leaf", "leaf")


# ------------------------------------------------------------------------------------ memory
# Small arrays are cut from chunks: for ten doubles malloc and NumPy's allocator cost more than the arithmetic. Large ones use
# blocks again that others have left: a fresh one costs a page fault and a cleared page every few kilobytes, often more than the
# arithmetic too. Blocks are ndarrays, so that NumPy's allocator, huge pages and tracemalloc treat them as any other array.
cdef enum:
    CHUNK_BYTES = 1 << 14
    SMALL_BYTES = 1 << 10       # arrays up to this size are cut from chunks
    LARGE_BYTES = 1 << 18       # arrays from this size on use blocks
    SPARE_BLOCKS = 3            # how many blocks wait at most
    KEPT_BLOCKS = 4             # how many wait for the next tape,
    KEPT_BYTES = 1 << 22        # each of at most this size
    ALIGNMENT = 64

cdef cgrad_spare_t spare_chunk = NULL
cdef cgrad_spare_t kept_blocks[KEPT_BLOCKS]         # owned references; each changes hands by one atomic exchange
for _k in range(KEPT_BLOCKS):
    kept_blocks[_k] = NULL


cdef object take_kept(cnp.npy_intp size):
    """A block of this size that an earlier tape left, or None."""
    cdef int k
    cdef PyObject *p
    cdef object block
    for k in range(KEPT_BLOCKS):
        p = <PyObject *> cgrad_take_spare(&kept_blocks[k])
        if p != NULL:
            block = <object> p
            Py_XDECREF(p)
            if cnp.PyArray_NBYTES(<cnp.ndarray> block) == size:
                return block
            leave_kept(k, block)
    return None


cdef int leave_kept(int k, object block) except -1:
    """Leave a block in place k for the next tape, instead of the one that waits there."""
    cdef PyObject *former
    Py_INCREF(block)
    former = <PyObject *> cgrad_exchange_spare(&kept_blocks[k], <void *> block)
    Py_XDECREF(former)
    return 0


@cython.final
@cython.no_gc
cdef class Chunk:
    """What owns the memory of such arrays: their base. It goes, or goes back, with the last of them."""

    cdef int allocate(self) except -1:
        self.data = <char *> cgrad_take_spare(&spare_chunk)
        if self.data == NULL:
            self.data = <char *> malloc(CHUNK_BYTES + ALIGNMENT)
            if self.data == NULL:
                raise MemoryError("no memory for small arrays")
        self.used = -<Py_ssize_t> (<size_t> self.data) & (ALIGNMENT - 1)
        return 0

    def __dealloc__(self):
        if self.data != NULL:
            cgrad_give_spare(&spare_chunk, self.data)
        elif self.pool is not None and self.block is not None:
            self.pool.give_back(self.block)


@cython.final
@cython.no_gc
cdef class Pool:
    """Makes ndarrays with memory to be written; for one thread."""

    def __cinit__(self):
        self.thread = PyThread_get_thread_ident()
        self.spare = []

    cdef cnp.ndarray empty(self, int ndim, cnp.npy_intp *shape, int type_num, int itemsize):
        """A C-contiguous ndarray."""
        cdef cnp.npy_intp size = itemsize
        cdef int k
        cdef cnp.dtype dtype
        cdef cnp.ndarray made
        cdef Chunk owner
        cdef char *data
        for k in range(ndim):
            size *= shape[k]
        if size == 0 or SMALL_BYTES < size < LARGE_BYTES:
            return cnp.PyArray_EMPTY(ndim, shape, type_num, 0)
        if size <= SMALL_BYTES:
            owner = self.chunk
            if owner is None or owner.used + size > CHUNK_BYTES:
                owner = self.chunk = Chunk.__new__(Chunk)
                owner.allocate()
            data = owner.data + owner.used
            owner.used += (size + ALIGNMENT - 1) & ~(<Py_ssize_t> ALIGNMENT - 1)
        else:
            owner = Chunk.__new__(Chunk)
            owner.pool, owner.block = self, self.take(size)
            data = <char *> cnp.PyArray_DATA(<cnp.ndarray> owner.block)
        dtype = cnp.PyArray_DescrFromType(type_num)
        Py_INCREF(dtype)                            # stolen by the call
        made = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, NULL, data, cnp.NPY_ARRAY_CARRAY, NULL)
        cnp.set_array_base(made, owner)
        return made

    cdef object take(self, cnp.npy_intp size):
        """A block of exactly this many bytes, an old one if there is one."""
        cdef Py_ssize_t k
        for k in range(len(self.spare) - 1, -1, -1):
            if cnp.PyArray_NBYTES(<cnp.ndarray> self.spare[k]) == size:
                return self.spare.pop(k)
        if size <= KEPT_BYTES:
            block = take_kept(size)
            if block is not None:
                return block
        return cnp.PyArray_EMPTY(1, &size, cnp.NPY_UINT8, 0)

    cdef void give_back(self, object block) noexcept:
        # another thread, or a pool that is done, lets the block go at once
        if self.spare is not None and len(self.spare) < SPARE_BLOCKS \
                and self.thread == <unsigned long> PyThread_get_thread_ident():
            self.spare.append(block)

    cdef int drain(self) except -1:
        """Let go of the blocks that wait; a few of moderate size stay for the next tape."""
        cdef int k = 0
        for block in self.spare:
            if k < KEPT_BLOCKS and cnp.PyArray_NBYTES(<cnp.ndarray> block) <= KEPT_BYTES:
                leave_kept(k, block)
                k += 1
        self.spare.clear()
        return 0


@cython.final
@cython.no_gc
cdef class Tape:
    """A growable list of recorded operations, in the order in which they ran."""

    def __cinit__(self):
        self.thread = PyThread_get_thread_ident()
        self.of = -1
        self.pool = Pool.__new__(Pool)
        self.locked = {}
        self.windows = []

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.n):
            self.release(i)
            Py_XDECREF(self.nodes[i].op)
        if self.capacity == FIRST_NODES:
            cgrad_give_spare(&spare_nodes, self.nodes)
        else:
            free(self.nodes)
        if self.capacity_dims == FIRST_DIMS:
            cgrad_give_spare(&spare_dims, self.dims)
        else:
            free(self.dims)
        free(self.links)
        unlock(self.locked)
        if self.pool is not None:
            self.pool.spare = None                  # arrays that live on keep their own block, not the others

    def __len__(self):
        return self.n

    cdef Node *push(self, Op op) except NULL:
        """A new node, cleared, as the last one. The pointer is good until the next push."""
        cdef Node *node
        cdef Py_ssize_t room
        cdef void *grown
        if self.n == self.capacity:
            if self.n >= 2000000000:
                raise TapeError("the tape is full: it holds 2,000,000,000 operations")
            if self.capacity == 0:
                room = FIRST_NODES
                grown = cgrad_take_spare(&spare_nodes)
                if grown == NULL:
                    grown = malloc(room * sizeof(Node))
            else:
                room = 2 * self.capacity
                grown = realloc(self.nodes, room * sizeof(Node))
            if grown == NULL:
                raise MemoryError(f"no memory for a tape of {room} operations")
            self.nodes = <Node *> grown
            self.capacity = room
        node = &self.nodes[self.n]
        Py_INCREF(op)
        node.op = <PyObject *> op
        node.x = node.y = node.z = node.params = NULL
        node.dims = node.ndim = node.links = node.nin = node.kept = 0
        node.in0 = node.in1 = -1
        node.of = self.of
        self.n += 1
        return node

    cdef int add_shape(self, int ndim, const cnp.npy_intp *shape) except -1:
        cdef Py_ssize_t at = self.n_dims, room
        cdef void *grown
        cdef int k
        if at + ndim > self.capacity_dims:
            if self.capacity_dims == 0:
                room = FIRST_DIMS
                grown = cgrad_take_spare(&spare_dims)
                if grown == NULL:
                    grown = malloc(room * sizeof(Py_ssize_t))
            else:
                room = 2 * self.capacity_dims
                grown = realloc(self.dims, room * sizeof(Py_ssize_t))
            if grown == NULL:
                raise MemoryError("no memory for the shapes of a tape")
            self.dims = <Py_ssize_t *> grown
            self.capacity_dims = room
        for k in range(ndim):
            self.dims[at + k] = shape[k]
        self.n_dims += ndim
        return <int> at

    cdef int add_links(self, int n) except -1:
        cdef Py_ssize_t at = self.n_links, room
        cdef void *grown
        if at + n > self.capacity_links:
            room = 2 * self.capacity_links + n + 64
            grown = realloc(self.links, room * sizeof(int))
            if grown == NULL:
                raise MemoryError("no memory for the links of a tape")
            self.links = <int *> grown
            self.capacity_links = room
        self.n_links += n
        return <int> at

    cdef void release(self, Py_ssize_t i) noexcept:
        """Let go of what node i kept."""
        cdef Node *node = &self.nodes[i]
        cdef PyObject *x = node.x
        cdef PyObject *y = node.y
        cdef PyObject *z = node.z
        cdef PyObject *params = node.params
        # cleared first: a destructor may run Python code
        node.x = node.y = node.z = node.params = NULL
        Py_XDECREF(x)
        Py_XDECREF(y)
        Py_XDECREF(z)
        Py_XDECREF(params)

    cdef int check_thread(self) except -1:
        if self.thread != <unsigned long> PyThread_get_thread_ident():
            raise TapeError("a value tracked in one thread was used in another: a tape belongs to one thread; pass .value "
                            "to the other thread, or call the transform there")
        return 0

    cpdef object guard(self, object value):
        """A value that the tape may keep although the user's code can still reach `value`.

        Small arrays are copied, and those in memory that is not NumPy's. Large ones are made read-only until the tape goes, so
        that a change is refused instead of changing the gradient.
        """
        if not isinstance(value, cnp.ndarray):
            return value
        if cnp.PyArray_NBYTES(value) <= GUARD_COPY_BYTES:
            return cnp.PyArray_NewCopy(value, cnp.NPY_KEEPORDER)
        bases, owner = [value], value.base
        while isinstance(owner, np.ndarray):
            bases.append(owner)
            owner = owner.base
        if owner is not None and value.flags.writeable and not isinstance(owner, mmap):
            # memory of a bytearray, or of another library, that may be written to without asking NumPy
            return cnp.PyArray_NewCopy(value, cnp.NPY_KEEPORDER)
        for base in bases:
            if base.flags.writeable or id(base) in LOCKS:
                lock(base, self.locked)
        return value

    def input_numbers(self, Py_ssize_t i):
        """Numbers of the nodes that node i reads; -1 stands for a constant."""
        cdef Node *node = self.node(i)
        cdef int k
        if node.nin > 2:
            return tuple(self.links[node.links + k] for k in range(node.nin))
        return (node.in0, node.in1)[:node.nin]

    def shape_of(self, Py_ssize_t i):
        cdef Node *node = self.node(i)
        cdef int k
        return tuple(self.dims[node.dims + k] for k in range(node.ndim))

    def dtype_of(self, Py_ssize_t i):
        return cnp.PyArray_DescrFromType(self.node(i).type_num)

    def op_of(self, Py_ssize_t i):
        return <Op> self.node(i).op

    def differentiates(self, Py_ssize_t i):
        """The node that node i helps to differentiate, or -1."""
        return self.node(i).of

    def params_of(self, Py_ssize_t i):
        cdef Node *node = self.node(i)
        return <object> node.params if node.params != NULL else None

    def largest_node(self, Py_ssize_t start):
        """Bytes of the largest value among the nodes from `start` on."""
        cdef Py_ssize_t i, size, largest = 0
        cdef int k
        for i in range(start, self.n):
            size = 16
            for k in range(self.nodes[i].ndim):
                size *= self.dims[self.nodes[i].dims + k]
            largest = max(largest, size)
        return largest

    def elementwise_only(self, Py_ssize_t start, Py_ssize_t stop, tuple shape):
        """Whether the nodes start..stop are all elementwise and of one shape, so that their Jacobians are diagonal."""
        cdef Py_ssize_t i
        for i in range(start, stop + 1):
            kind = (<Op> self.nodes[i].op).kind
            if not (kind == ELEMENTWISE or kind == ZERO or kind == LEAF) or self.shape_of(i) != shape:
                return False
        return True

    cdef Node *node(self, Py_ssize_t i) except NULL:
        if not 0 <= i < self.n:
            raise IndexError(f"node {i} of a tape of {self.n}")
        return &self.nodes[i]


# ------------------------------------------------------------------------------------ read-only while a tape lives
# The one piece of module state that changes after import: which ndarrays are read-only for whom. Two tapes may hold the
# same array, so they are counted.
LOCKS = {}
LOCKS_GUARD = threading.Lock()


cdef int lock(array, dict mine) except -1:
    if id(array) in mine:
        return 0
    with LOCKS_GUARD:
        entry = LOCKS.get(id(array))
        if entry is None:
            array.flags.writeable = False
            LOCKS[id(array)] = [array, 1]
        else:
            entry[1] += 1
    mine[id(array)] = array
    return 0


cdef int unlock(dict mine) except -1:
    if not mine:
        return 0
    with LOCKS_GUARD:
        for key in mine:
            LOCKS[key][1] -= 1
        # bases lie behind their views; a view whose base another tape still holds waits until that one is free
        for key in reversed([k for k, (_, users) in LOCKS.items() if not users]):
            try:
                LOCKS[key][0].flags.writeable = True
            except ValueError:
                continue
            del LOCKS[key]
    mine.clear()
    return 0


# ------------------------------------------------------------------------------------ the tape of this thread
class _Current(threading.local):
    tape = None


_current = _Current()


cpdef object current_tape():
    """The tape that records in this thread, or None."""
    return _current.tape


def open_tape():
    """Begin a window: on the tape that records already, else on a new one."""
    cdef Tape tape = _current.tape
    if tape is None:
        tape = _current.tape = Tape()
    tape.recording += 1
    return tape


def close_tape(Tape tape):
    """End a window; the last one leaves the thread without a tape."""
    tape.recording -= 1
    if tape.recording == 0 and _current.tape is tape:
        _current.tape = None


def reopen_tape(Tape tape):
    """Begin a window on `tape` again, after its last one ended and while no other tape records in this thread."""
    tape.check_thread()
    if tape.spent:
        raise TapeError("this tape's gradient was taken and its values are freed; it cannot record any more")
    tape.recording += 1
    _current.tape = tape
    return tape
