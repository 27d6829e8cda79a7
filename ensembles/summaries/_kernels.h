/* _kernels.h: the functions of the module _kernels. */
#ifndef ENSIO_KERNELS_H
#define ENSIO_KERNELS_H

#include "summaries/arrays.h"

PyObject *spread(PyObject *module, PyObject *args);
PyObject *spread_calls(PyObject *module, PyObject *args);
PyObject *count_bins(PyObject *module, PyObject *args);
PyObject *count_groups(PyObject *module, PyObject *args);
PyObject *count_seconds(PyObject *module, PyObject *args);

#endif
