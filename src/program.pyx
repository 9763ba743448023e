"""Fused elementwise programs: a list of inner loops over registers, run block by block so that temporaries stay in cache.

A partial derivative, an ordinary function of `x, y, z`, is called once with symbols; the ufuncs it calls become the
instructions. The VJP program multiplies the result by the seed with a strong zero. Uses `cgrad._loops` and `cgrad._kernels`;
used by the sweeps.
"""
cimport cgrad._program
cimport cython
cimport numpy as cnp
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from cgrad._loops cimport Loop, find_loop

import inspect

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from cgrad._kernels import fast_cos, fast_sin, strong_multiply

cnp.import_array()
cnp.import_ufunc()

OPERAND_NAMES = ("gz", "x", "y", "z")

# Loops that a derivative may use in place of NumPy's: as accurate to an ulp, several times as fast, not bit-identical.
SUBSTITUTES = {np.sin: fast_sin, np.cos: fast_cos}
cdef enum:
    BLOCK = 1024            # elements per block: four float64 temporaries fill a 32 KB L1 cache
    STACK_BYTES = 4096      # scratch of small arrays, without malloc


class Symbol(NDArrayOperatorsMixin):
    """Stands for an array while a partial derivative is traced; every ufunc called on it becomes an instruction."""

    __slots__ = ("code", "number")

    def __init__(self, code, number):
        self.code, self.number = code, number

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__" or kwargs or ufunc.nout != 1:
            raise TypeError(f"partial derivative: np.{ufunc.__name__}.{method} with {sorted(kwargs)} cannot be part of a "
                            "fused program; use plain calls of one-output ufuncs")
        result = Symbol(self.code, ("t", len(self.code)))
        self.code.append((ufunc, tuple(i.number if isinstance(i, Symbol) else ("c", i) for i in inputs), result.number))
        return result

    def __bool__(self):
        raise TypeError("partial derivative: no Python branches on values; write them with ufuncs (np.heaviside, np.sign, "
                        "cgrad._kernels.tie_share)")


def trace_partial(partial):
    """Instructions of `strong_multiply(gz, partial(x, y, z))`, as (ufunc, sources, target)."""
    code = []
    names = list(inspect.signature(partial).parameters)
    result = partial(*[Symbol(code, ("o", OPERAND_NAMES.index(n))) for n in names])
    last = result.number if isinstance(result, Symbol) else ("c", result)
    code.append((strong_multiply, (("o", 0), last), ("out", 0)))
    return code


@cython.final
cdef class Program:
    """Instructions over registers, for one dtype.

    Parameters
    ----------
    code : list of (ufunc, sources, target)
        As `trace_partial` gives them; the last one targets ("out", 0).
    type_num : int
        dtype of every operand.

    Raises
    ------
    LookupError
        If one of the ufuncs has no loop in this dtype.
    """

    def __cinit__(self, list code, int type_num):
        cdef Loop loop
        cdef int k, j
        cdef cnp.dtype dtype = cnp.PyArray_DescrFromType(type_num)
        self.type_num, self.itemsize = type_num, dtype.itemsize
        self.listing = code
        self.n_code = len(code)
        self.code = <Instruction *> malloc(self.n_code * sizeof(Instruction))
        if self.code == NULL:
            raise MemoryError()
        # a temporary's register is free again after its last reader
        last_use = {}
        for k, (_, sources, _) in enumerate(code):
            for s in sources:
                if s[0] == "t":
                    last_use[s] = k
        place, free_registers, constants = {}, [], []
        for k, (_, sources, target) in enumerate(code):
            for s in sources:
                if s[0] == "c" and s not in constants:
                    constants.append(s)
            if target[0] == "t":
                # taken before the sources are given back: loops may not overlap partly, and same-place is not needed
                if free_registers:
                    place[target] = free_registers.pop()
                else:
                    place[target] = self.n_temps
                    self.n_temps += 1
            for s in set(sources):
                if s[0] == "t" and last_use[s] == k:
                    free_registers.append(place[s])
        self.n_temps += 1                           # the last one holds the result while it is accumulated
        self.first_const = OUT + 1 + self.n_temps
        self.n_consts = len(constants)
        if self.first_const + self.n_consts > MAX_REGISTERS:
            raise LookupError("partial derivative: too many temporaries for a fused program")
        self.consts = <char *> malloc((self.n_consts + 1) * self.itemsize)
        if self.consts == NULL:
            raise MemoryError()
        for k in range(self.n_consts):
            value = np.array(constants[k][1], dtype=dtype)
            memcpy(self.consts + k * self.itemsize, cnp.PyArray_DATA(value), self.itemsize)
        for k, (ufunc, sources, target) in enumerate(code):
            loop = find_loop(SUBSTITUTES.get(ufunc, ufunc), type_num)
            if loop.fun == NULL:
                loop = find_loop(ufunc, type_num)
            if loop.fun == NULL or len(sources) > 3:
                raise LookupError(f"np.{ufunc.__name__} has no loop in {dtype}")
            self.code[k].fun, self.code[k].data, self.code[k].n_in = loop.fun, loop.data, len(sources)
            for j, s in enumerate(sources):
                if s[0] == "o":
                    self.code[k].src[j] = s[1]
                    self.reads |= 1 << <int> s[1]
                elif s[0] == "c":
                    self.code[k].src[j] = self.first_const + <int> constants.index(s)
                else:
                    self.code[k].src[j] = OUT + 1 + <int> place[s]
            self.code[k].dst = OUT if target[0] == "out" else OUT + 1 + <int> place[target]
        loop = find_loop(np.add, type_num)
        self.add.fun, self.add.data, self.add.n_in = loop.fun, loop.data, 2
        self.add.src[0], self.add.src[1], self.add.dst = OUT, OUT + self.n_temps, OUT

    def __dealloc__(self):
        free(self.code)
        free(self.consts)

    def __repr__(self):
        lines = [f"<Program {cnp.PyArray_DescrFromType(self.type_num)}"]
        for ufunc, sources, target in self.listing:
            lines.append(f"  {name_of(target)} = {ufunc.__name__}({', '.join(map(name_of, sources))})")
        return "\n".join(lines) + ">"

    cdef int run(self, Operand *operands, char *out, const cnp.npy_intp *out_strides, int ndim, const cnp.npy_intp *shape,
                 bint accumulate) except -1 nogil:
        """Run over `shape`. Each operand that is read gives its data and ndim byte strides (0 along broadcast axes). `out`
        may be the same memory, element by element, as an operand."""
        cdef cnp.npy_intp dims[64]
        cdef cnp.npy_intp strides[5][64]
        cdef cnp.npy_intp counter[64]
        cdef char *base[5]
        cdef char *registers[MAX_REGISTERS]
        cdef cnp.npy_intp steps[MAX_REGISTERS]
        cdef char *args[4]
        cdef cnp.npy_intp call_steps[4]
        cdef char stack[STACK_BYTES]
        cdef char *scratch = stack
        cdef cnp.npy_intp n, done, count, block
        cdef int axes = 0, k, j, d, used = self.reads | (1 << OUT)
        cdef bint merge
        cdef Instruction *ins

        if ndim == 1:
            axes = 1                    # nothing to merge
            dims[0] = shape[0]
            if dims[0] == 0:
                return 0
            for k in range(N_OPERANDS):
                if used >> k & 1:
                    strides[k][0] = operands[k].strides[0]
            strides[OUT][0] = out_strides[0]
            ndim = 0
        for k in range(N_OPERANDS):
            base[k] = operands[k].data if used >> k & 1 else NULL
        base[OUT] = out
        # axes of length 1 go; neighbours that every operand walks alike become one
        for d in range(ndim):
            if shape[d] == 0:
                return 0
            if shape[d] == 1:
                continue
            merge = axes > 0
            if merge:
                for k in range(5):
                    if used >> k & 1:
                        n = out_strides[d] if k == OUT else operands[k].strides[d]
                        if strides[k][axes - 1] != n * shape[d]:
                            merge = False
                            break
            if not merge:
                axes += 1
                dims[axes - 1] = 1
            for k in range(5):
                if used >> k & 1:
                    strides[k][axes - 1] = out_strides[d] if k == OUT else operands[k].strides[d]
            dims[axes - 1] *= shape[d]
        if axes == 0:
            axes = 1
            dims[0] = 1
            for k in range(5):
                strides[k][0] = self.itemsize
        n = dims[axes - 1]
        block = BLOCK if n > BLOCK else n
        if self.n_temps * block * self.itemsize > STACK_BYTES:
            scratch = <char *> malloc(self.n_temps * block * self.itemsize)
            if scratch == NULL:
                with gil:
                    raise MemoryError("no memory for the scratch of an elementwise program")
        for k in range(self.n_temps):
            registers[OUT + 1 + k] = scratch + k * block * self.itemsize
            steps[OUT + 1 + k] = self.itemsize
        for k in range(self.n_consts):
            registers[self.first_const + k] = self.consts + k * self.itemsize
            steps[self.first_const + k] = 0
        for k in range(5):
            steps[k] = strides[k][axes - 1] if used >> k & 1 else 0
        for d in range(axes):
            counter[d] = 0
        while True:
            done = 0
            while done < n:
                count = n - done if n - done < block else block
                for k in range(5):
                    if used >> k & 1:
                        registers[k] = base[k] + done * steps[k]
                for k in range(self.n_code):
                    ins = &self.code[k]
                    for j in range(ins.n_in):
                        args[j] = registers[ins.src[j]]
                        call_steps[j] = steps[ins.src[j]]
                    d = OUT + self.n_temps if accumulate and ins.dst == OUT else ins.dst
                    args[ins.n_in] = registers[d]
                    call_steps[ins.n_in] = steps[d]
                    ins.fun(args, &count, call_steps, ins.data)
                if accumulate:
                    args[0] = args[2] = registers[OUT]
                    args[1] = registers[OUT + self.n_temps]
                    call_steps[0] = call_steps[2] = steps[OUT]
                    call_steps[1] = self.itemsize
                    self.add.fun(args, &count, call_steps, self.add.data)
                done += count
            # the next row
            d = axes - 2
            while d >= 0:
                counter[d] += 1
                for k in range(5):
                    if used >> k & 1:
                        base[k] += strides[k][d]
                if counter[d] < dims[d]:
                    break
                for k in range(5):
                    if used >> k & 1:
                        base[k] -= dims[d] * strides[k][d]
                counter[d] = 0
                d -= 1
            if d < 0:
                break
        if scratch != stack:
            free(scratch)
        return 0

    cdef int run_flat(self, Operand *operands, char *out, cnp.npy_intp n, bint accumulate) except -1 nogil:
        """Run over n elements in a row; the first stride of an operand is its step, 0 for a scalar. One block, small enough for
        the stack: what `run` does, without its bookkeeping."""
        cdef char stack[STACK_BYTES]
        cdef char *args[4]
        cdef cnp.npy_intp steps[4]
        cdef cnp.npy_intp one = self.itemsize
        cdef int k, j, r
        cdef Instruction *ins
        if n * self.n_temps * one > STACK_BYTES:
            return self.run(operands, out, &one, 1, &n, accumulate)
        for k in range(self.n_code):
            ins = &self.code[k]
            for j in range(ins.n_in + 1):
                r = ins.src[j] if j < ins.n_in else ins.dst
                if r < OUT:
                    args[j], steps[j] = operands[r].data, operands[r].strides[0]
                elif r == OUT and not accumulate:
                    args[j], steps[j] = out, one
                elif r >= self.first_const:
                    args[j], steps[j] = self.consts + (r - self.first_const) * one, 0
                else:
                    r = OUT + self.n_temps if r == OUT else r
                    args[j], steps[j] = stack + (r - OUT - 1) * n * one, one
            ins.fun(args, &n, steps, ins.data)
        if accumulate:
            args[0] = args[2] = out
            args[1] = stack + (self.n_temps - 1) * n * one
            steps[0] = steps[1] = steps[2] = one
            self.add.fun(args, &n, steps, self.add.data)
        return 0


def name_of(register):
    kind, number = register
    return OPERAND_NAMES[number] if kind == "o" else f"t{number}" if kind == "t" else "out" if kind == "out" else repr(number)


cdef int type_slot(int type_num) noexcept nogil:
    """0..3 for the dtypes that programs are made for, else -1."""
    if type_num == cnp.NPY_DOUBLE:
        return 0
    if type_num == cnp.NPY_FLOAT:
        return 1
    if type_num == cnp.NPY_CDOUBLE:
        return 2
    if type_num == cnp.NPY_CFLOAT:
        return 3
    return -1


cdef object program_for(object partial, int type_num, list cache, int slot):
    """The VJP program of `partial`, made on first use and kept in `cache[slot]`; None where a loop is missing."""
    found = cache[slot]
    if found is None:
        try:
            found = Program(trace_partial(partial), type_num)
        except LookupError:
            found = False
        cache[slot] = found
    return found if found is not False else None


def vjp_program(partial, dtype):
    """The program of `strong_multiply(gz, partial(...))` in `dtype`, for looking at.

    >>> import numpy as np
    >>> vjp_program(lambda x: -np.sin(x), np.float64)
    <Program float64
      t0 = sin(x)
      t1 = negative(t0)
      out = strong_multiply(gz, t1)>
    """
    return Program(trace_partial(partial), np.dtype(dtype).num)
