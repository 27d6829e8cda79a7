/* The module ensembles._compiled. The sources of its functions are beside the Python modules that call them. */
#include "_compiled.h"

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "_compiled", .m_size = 0};

PyMODINIT_FUNC PyInit__compiled(void)
{
    PyMethodDef *const tables[] = {block_functions,  call_sum_functions, column_functions, count_functions,
                                   gap_functions,    keyed_functions,    order_functions,  ordinal_functions,
                                   spread_functions, stride_functions,   use_functions};
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module && i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(module, tables[i]) != 0)
            Py_CLEAR(module);
    return module;
}
