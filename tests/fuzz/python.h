/* python.h: calls the functions of a compiled Python module, with buffers whose ends the sanitizers check. */
#ifndef ENSIO_FUZZ_PYTHON_H
#define ENSIO_FUZZ_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

PyMODINIT_FUNC PyInit__compiled(void);

/* A module's function. python.c starts the interpreter before the first input. */
PyObject *fuzz_function(PyObject *(*module)(void), const char *name);

/* A buffer of items of a format (as in struct), with `bytes` bytes of separate memory; `data` is copied to it, or it is
 * zeroed. */
struct fuzz_buffer {
    uint8_t *memory;
    PyObject *view;
};
struct fuzz_buffer fuzz_buffer_of(const void *data, size_t bytes, const char *format);
void fuzz_release(struct fuzz_buffer *buffer);

/* Calls a function and returns its result; NULL: it refused its arguments by an expected exception. Releases the
 * arguments. */
PyObject *fuzz_call(PyObject *function, PyObject *arguments);

#endif
