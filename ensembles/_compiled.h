/* _compiled.h: the functions of the module ensembles._compiled, a table for each source. */
#ifndef ENSIO_COMPILED_H
#define ENSIO_COMPILED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef block_functions[], call_sum_functions[], column_functions[], count_functions[], gap_functions[],
    keyed_functions[], order_functions[], ordinal_functions[], spread_functions[], stride_functions[], use_functions[];

#endif
