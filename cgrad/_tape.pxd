# The tape: a growable list of nodes, each one recorded operation. Uses nothing of cgrad but the loops.
#
# Thread safety: a Tape belongs to the thread that made it; recording from another thread raises TapeError.
from cpython.ref cimport PyObject
cimport numpy as cnp
from cgrad._loops cimport Loop

cdef enum Kind:
    LEAF            # a source: an argument, a watched value, a variable
    ELEMENTWISE     # a ufunc with partial derivatives
    STRUCTURAL      # anything else with a VJP written as a function
    GETITEM         # reads a part of its input; its VJP adds into a part of one buffer
    SETITEM         # an array with a part overwritten; its VJP takes that part out of one buffer
    ZERO            # derivative zero everywhere it exists

# What of a node is kept: bits of Op.reads and of Node.kept
cdef enum:
    KEEP_X = 1
    KEEP_Y = 2
    KEEP_Z = 4
    NUMBER = 8      # x, y, z are the C doubles nx, ny, nz (0-d float64)
    FANCY = 16      # getitem, setitem: the index holds arrays, so the part read or written is a copy

cdef struct Node:
    PyObject *op        # Op, owned
    PyObject *x         # kept values, owned; NULL where not kept
    PyObject *y
    PyObject *z
    PyObject *params    # dict of keyword parameters, tuple of kept values for many inputs, or NULL; owned
    double nx
    double ny
    double nz
    int in0             # node numbers of the inputs; -1: a constant
    int in1
    int nin
    int links           # where the inputs lie in Tape.links when there are more than two
    int of              # the node that this one helps to differentiate; -1: part of the user's function
    int dims            # where the shape lies in Tape.dims
    short ndim
    short type_num
    unsigned char kept

cdef class Op:
    cdef readonly str name
    cdef readonly Kind kind
    cdef readonly object ufunc
    cdef readonly tuple partials        # elementwise: one function per input, of some of x, y, z by name
    cdef readonly tuple complex_partials
    cdef public object complex_op       # the structural op that takes over for complex inputs, or None
    cdef readonly object vjp            # structural: tuple of functions, one per input, or one function of `i`
    cdef readonly tuple reads           # for each input: bits KEEP_* that its VJP reads
    cdef readonly object linear
    cdef readonly object inverse        # view ops: how a write to the view reaches its base
    cdef readonly str doc
    cdef int reads0
    cdef int reads1
    cdef int code                       # arithmetic that scalar sweeps do without a program; see sweep.pyx
    cdef Loop loop_d
    cdef Loop loop_f
    cdef list programs                  # cache of the sweep: programs[4*input + dtype slot]
    cdef readonly object vjp_all        # structural: one function for all inputs, where there may be thousands

# Memory of the arrays that recording and sweeps make themselves; see tape.pyx. A Pool serves the thread of its tape.
cdef class Chunk:
    cdef char *data             # of small arrays; NULL for the memory of one large array
    cdef Py_ssize_t used
    cdef object block           # the ndarray whose memory a large array uses
    cdef Pool pool
    cdef int allocate(self) except -1

cdef class Pool:
    cdef Chunk chunk
    cdef list spare             # blocks that no array uses any more
    cdef unsigned long thread
    cdef cnp.ndarray empty(self, int ndim, cnp.npy_intp *shape, int type_num, int itemsize)
    cdef object take(self, cnp.npy_intp size)
    cdef void give_back(self, object block) noexcept
    cdef int drain(self) except -1

cdef class Tape:
    cdef Pool pool
    cdef Node *nodes
    cdef Py_ssize_t n
    cdef Py_ssize_t capacity
    cdef Py_ssize_t *dims
    cdef Py_ssize_t n_dims
    cdef Py_ssize_t capacity_dims
    cdef int *links
    cdef Py_ssize_t n_links
    cdef Py_ssize_t capacity_links
    cdef unsigned long thread
    cdef public int recording           # how many windows (transforms, GradientTapes) record now
    cdef Py_ssize_t writes              # counts all writes to arrays, so that views know when to look
    cdef public bint spent              # its values were freed by a sweep
    cdef public int of                  # node being differentiated by a recorded sweep, else -1
    cdef dict locked               # id -> ndarray made read-only for this tape
    cdef public int users               # GradientTapes that ever recorded here
    cdef public list windows            # open GradientTapes

    cdef Node *push(self, Op op) except NULL
    cdef int add_shape(self, int ndim, const cnp.npy_intp *shape) except -1
    cdef int add_links(self, int n) except -1
    cdef void release(self, Py_ssize_t i) noexcept
    cdef int check_thread(self) except -1
    cpdef object guard(self, object value)
    cdef Node *node(self, Py_ssize_t i) except NULL

cdef Op LEAF_OP
cpdef object current_tape()
