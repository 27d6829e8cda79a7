/* Ranks of the keys of a chunk. totals_by.py documents the function. */
#include "_compiled.h"
#include "summaries/arrays.h"

#include <stdint.h>

/* Return the first event whose key has no entry, or whose rank is below the one before; -1: there is none. */
static Py_ssize_t count_ranks(const uint32_t *key, const uint32_t *rank, Py_ssize_t events, int64_t *ranks,
                              int64_t *last, Py_ssize_t keys)
{
    for (Py_ssize_t i = 0; i < events; i++) {
        if (key[i] >= keys || (i && rank[i] < rank[i - 1]))
            return i;
        ranks[key[i]] += last[key[i]] != rank[i];
        last[key[i]] = rank[i];
    }
    return -1;
}

static PyObject *count_ranks_of_keys(PyObject *module, PyObject *args)
{
    (void)module;
    enum { KEY, RANK, COUNTS, LAST, ARRAYS };
    static const array_kind wanted[ARRAYS] = {
        {"key", 4, 0}, {"rank", 4, 0}, {"ranks", 8, WRITTEN}, {"last", 8, WRITTEN}};
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, ARRAYS, COUNTS) != 0)
        goto done;
    const Py_ssize_t keys = length_of(&views[COUNTS]);
    if (length_of(&views[LAST]) != keys) {
        PyErr_SetString(PyExc_ValueError, "ranks and last must have an entry for each key");
        goto done;
    }
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit =
        count_ranks(views[KEY].buf, views[RANK].buf, length_of(&views[KEY]), views[COUNTS].buf, views[LAST].buf, keys);
    Py_END_ALLOW_THREADS
    if (misfit >= 0)
        PyErr_Format(PyExc_IndexError, "event %zd has a key without an entry, or is of a lower rank", misfit);
    else
        result = Py_NewRef(Py_None);
done:
    release_arrays(views, ARRAYS);
    return result;
}

PyMethodDef total_functions[] = {{"count_ranks_of_keys", count_ranks_of_keys, METH_VARARGS, NULL},
                                 {NULL, NULL, 0, NULL}};
