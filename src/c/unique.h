/* Whether an object has one reference only, so that nobody else can see a write to it. */
#ifndef CGRAD_UNIQUE_H
#define CGRAD_UNIQUE_H
#include <Python.h>
#include <numpy/arrayobject.h>

static inline int cgrad_unique(PyObject *object)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PyUnstable_Object_IsUniquelyReferenced(object);
#else
    return Py_REFCNT(object) == 1;
#endif
}

/* An ndarray that the holder of its only reference may write to: own data, or a view whose base nobody else holds. */
static inline int cgrad_own(PyObject *object)
{
    PyObject *base;
    if (!cgrad_unique(object) || !PyArray_Check(object) || !PyArray_ISBEHAVED((PyArrayObject *)object)) {
        return 0;
    }
    if (PyArray_CHKFLAGS((PyArrayObject *)object, NPY_ARRAY_OWNDATA)) {
        return 1;
    }
    base = PyArray_BASE((PyArrayObject *)object);
    return base != NULL && PyArray_Check(base) && cgrad_unique(base)
        && PyArray_CHKFLAGS((PyArrayObject *)base, NPY_ARRAY_OWNDATA);
}
#endif
