"""NumPy functions as `cgrad.numpy` has them: a call of a tracked array goes straight to the recorded op, without the
protocol. Uses `cgrad._record`.
"""
cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject

from cgrad._record cimport PyTypeObject, Traced, binary, foreign, is_array, unary
from cgrad._tape cimport Op

import importlib

import numpy as np

from cgrad._record import FUNCTIONS, UFUNCS

cnp.import_array()

cdef dict _ufuncs = UFUNCS
cdef dict _functions = FUNCTIONS

cdef extern from "Python.h":
    ctypedef object (*vectorcallfunc)(object, PyObject *const *, size_t, PyObject *)
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept
    object PyObject_Vectorcall(object, PyObject *const *, size_t, PyObject *)
    object PyVectorcall_Call(object, object, object)
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL


@cython.final
cdef class Direct:
    """A NumPy function or ufunc as `cgrad.numpy` has it: straight to the recorded op when its first argument is tracked."""
    cdef vectorcallfunc vectorcall
    cdef readonly object function
    cdef Op op
    cdef object handler
    cdef dict __dict__

    def __init__(self, function):
        found = _ufuncs.get(function) if isinstance(function, np.ufunc) else _functions.get(function)
        self.vectorcall = direct_call
        self.function = function
        self.op = found if type(found) is Op else None
        self.handler = None if type(found) is Op else found
        self.__name__ = self.__qualname__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = getattr(function, "__module__", None) or "numpy"     # whose docstring it has
        self.__wrapped__ = function

    def __call__(self, *args, **kwargs):
        return PyVectorcall_Call(self, args, kwargs)

    def __getattr__(self, str name):
        return getattr(self.function, name)

    def __repr__(self):
        return f"<cgrad.{self.__module__}.{self.__name__}>"

    def __reduce__(self):
        return direct_by_name, (self.__module__, self.__name__)


cdef object direct_call(object me, PyObject *const *args, size_t flags, PyObject *names):
    """Direct's vectorcall: no tuple and no dict for the commonest calls."""
    cdef Direct self = <Direct> me
    cdef Py_ssize_t n = PyVectorcall_NARGS(flags)
    if n and names == NULL and self.op is not None:
        if n == 1:
            if is_array(<object> args[0]):
                return unary(self.op, <Traced> args[0])
        elif n == 2 and self.op.ufunc.nin == 2:
            if (is_array(<object> args[0]) or is_array(<object> args[1])) \
                    and not (foreign(<object> args[0]) or foreign(<object> args[1])):
                return binary(self.op, <object> args[0], <object> args[1])
    elif n and self.handler is not None and is_array(<object> args[0]):
        return PyObject_Vectorcall(self.handler, args, flags, names)
    return PyObject_Vectorcall(self.function, args, flags, names)


cdef int enable_vectorcall() except -1:
    # Cython has no syntax for it; the type is final, and this runs before anybody else can see it
    cdef Direct probe = Direct(np.sin)
    cdef PyTypeObject *kind = <PyTypeObject *> Direct
    kind.tp_vectorcall_offset = <char *> &probe.vectorcall - <char *> <PyObject *> probe
    kind.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL
    return 0


enable_vectorcall()


def direct_by_name(module, name):
    return getattr(importlib.import_module("cgrad." + module), name)
