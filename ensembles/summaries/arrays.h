/* arrays.h: array arguments of compiled functions: contiguous buffers with items of a given size. */
#ifndef ENSIO_ARRAYS_H
#define ENSIO_ARRAYS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { WRITTEN = 1, OR_NONE = 2, MOST_ARRAYS = 16 };

/* Requirements on an argument. */
typedef struct {
    const char *name;
    Py_ssize_t item_bytes; /* 0: eight at most */
    int flags;             /* 0: read-only and required */
} array_kind;

/* Get the buffers of arrays. The first `columns` of them must have equal lengths unless they are None. The caller
 * zeroes `views` before, and releases them afterwards, even after a failure. Views of omitted arrays remain zero. */
static inline int get_arrays(Py_buffer *views, PyObject *const *objects, const array_kind *wanted, int count,
                             int columns)
{
    for (int i = 0; i < count; i++) {
        if ((wanted[i].flags & OR_NONE) && objects[i] == Py_None)
            continue;
        const int flags = PyBUF_C_CONTIGUOUS | (wanted[i].flags & WRITTEN ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(objects[i], &views[i], flags) != 0)
            return -1;
        const Py_ssize_t bytes = views[i].itemsize, item_bytes = wanted[i].item_bytes;
        if (item_bytes ? bytes != item_bytes : bytes > 8) {
            PyErr_Format(PyExc_TypeError, "%s must have items of %zd bytes", wanted[i].name,
                         item_bytes ? item_bytes : 8);
            return -1;
        }
        if (i < columns && views[i].len / bytes != views[0].len / views[0].itemsize) {
            PyErr_SetString(PyExc_ValueError, "columns must be of the same length");
            return -1;
        }
    }
    return 0;
}

/* The same for a function with array arguments only. */
static inline int get_only_arrays(Py_buffer *views, PyObject *args, const array_kind *wanted, int count, int columns)
{
    PyObject *objects[MOST_ARRAYS];
    if (PyTuple_Size(args) != count || count > MOST_ARRAYS) {
        PyErr_Format(PyExc_TypeError, "there must be %d arrays", count);
        return -1;
    }
    for (int i = 0; i < count; i++)
        objects[i] = PyTuple_GetItem(args, i);
    return get_arrays(views, objects, wanted, count, columns);
}

/* Releasing a zeroed view has no effect. */
static inline void release_arrays(Py_buffer *views, int count)
{
    for (int i = 0; i < count; i++)
        PyBuffer_Release(&views[i]);
}

static inline int is_given(const Py_buffer *view)
{
    return view->obj != NULL;
}

/* The number of items of an array; 0: it was omitted. */
static inline Py_ssize_t length_of(const Py_buffer *view)
{
    return is_given(view) ? view->len / view->itemsize : 0;
}

#endif
