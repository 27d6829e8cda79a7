#include "python.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count, (void)arguments;
    setenv("PYTHONMALLOC", "malloc", 1); /* so that the sanitizers see every object */
    Py_InitializeEx(0);
    return 0;
}

PyObject *fuzz_function(PyObject *(*module)(void), const char *name)
{
    PyObject *made = module(), *function = made ? PyObject_GetAttrString(made, name) : NULL;
    if (!function) {
        PyErr_Print();
        abort();
    }
    return function;
}

struct fuzz_buffer fuzz_buffer_of(const void *data, size_t bytes, const char *format)
{
    struct fuzz_buffer buffer = {.memory = calloc(1, bytes ? bytes : 1)};
    if (data && bytes)
        memcpy(buffer.memory, data, bytes);
    PyObject *plain = PyMemoryView_FromMemory((char *)buffer.memory, (Py_ssize_t)bytes, PyBUF_WRITE);
    buffer.view = PyObject_CallMethod(plain, "cast", "s", format);
    Py_DECREF(plain);
    if (!buffer.view) {
        PyErr_Print();
        abort();
    }
    return buffer;
}

void fuzz_release(struct fuzz_buffer *buffer)
{
    Py_DECREF(buffer->view);
    free(buffer->memory);
}

PyObject *fuzz_call(PyObject *function, PyObject *arguments)
{
    PyObject *result = arguments ? PyObject_CallObject(function, arguments) : NULL;
    if (!result) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_IndexError)) {
            PyErr_Print();
            abort();
        }
        PyErr_Clear();
    }
    Py_XDECREF(arguments);
    return result;
}
