# Fused elementwise programs. Uses cgrad._loops and cgrad._kernels.
#
# Thread safety: a Program is read-only after it was made; run() keeps its scratch on the caller's side.
cimport numpy as cnp
from cgrad._loops cimport loop_t

cdef enum:
    MAX_REGISTERS = 32
    N_OPERANDS = 4      # registers 0..3: the seed, x, y, z
    OUT = 4             # register 4: the result

cdef struct Instruction:
    loop_t fun
    void *data
    int n_in
    int src[3]
    int dst

cdef struct Operand:
    char *data
    cnp.npy_intp strides[64]

cdef class Program:
    cdef Instruction *code          # the last instruction writes OUT
    cdef int n_code
    cdef int n_temps
    cdef char *consts
    cdef int n_consts
    cdef int first_const            # register number of the first constant; temporaries lie between OUT and it
    cdef readonly int reads         # bit k: operand k is read
    cdef readonly int type_num
    cdef int itemsize
    cdef readonly list listing
    cdef Instruction add            # adds the result to what OUT holds already
    cdef int run(self, Operand *operands, char *out, const cnp.npy_intp *out_strides, int ndim, const cnp.npy_intp *shape,
                 bint accumulate) except -1 nogil
    cdef int run_flat(self, Operand *operands, char *out, cnp.npy_intp n, bint accumulate) except -1 nogil

cdef object program_for(object partial, int type_num, list cache, int slot)
cdef int type_slot(int type_num) noexcept nogil
