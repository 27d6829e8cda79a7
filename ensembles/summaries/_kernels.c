/* The module of the compiled loops of the summaries, which _spread.c and _counts.c implement. */
#include "_kernels.h"

static PyMethodDef methods[] = {{"spread", spread, METH_VARARGS, NULL},
                                {"spread_calls", spread_calls, METH_VARARGS, NULL},
                                {"count_bins", count_bins, METH_VARARGS, NULL},
                                {"count_groups", count_groups, METH_VARARGS, NULL},
                                {"count_seconds", count_seconds, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "_kernels", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__kernels(void)
{
    return PyModule_Create(&definition);
}
