/* Who else can see a write to an object's memory. */
#ifndef CGRAD_UNIQUE_H
#define CGRAD_UNIQUE_H
#include <Python.h>
#include <numpy/arrayobject.h>

/* The type of the chunks that small arrays are cut from (src/tape.pyx); each module that includes this sets its own copy. */
static PyTypeObject *cgrad_chunk_type = NULL;

static inline int cgrad_unique(PyObject *object)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PyUnstable_Object_IsUniquelyReferenced(object);
#else
    return Py_REFCNT(object) == 1;
#endif
}

/* Memory that belongs to this array alone: its own, or its slice of a chunk. */
static inline int cgrad_owns_data(PyArrayObject *array)
{
    PyObject *base;
    if (PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA)) {
        return 1;
    }
    base = PyArray_BASE(array);
    return base != NULL && Py_TYPE(base) == cgrad_chunk_type;
}

/* An ndarray that the holder of its only reference may write to: own memory, or a view of such an array that nobody else holds. */
static inline int cgrad_own(PyObject *object)
{
    PyObject *base;
    if (!cgrad_unique(object) || !PyArray_Check(object) || !PyArray_ISBEHAVED((PyArrayObject *)object)) {
        return 0;
    }
    if (cgrad_owns_data((PyArrayObject *)object)) {
        return 1;
    }
    base = PyArray_BASE((PyArrayObject *)object);
    return base != NULL && PyArray_Check(base) && cgrad_unique(base) && cgrad_owns_data((PyArrayObject *)base);
}
#endif
