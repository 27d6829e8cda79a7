/* Test whether rows of a trace.h5 are sorted as its index states. readers/tracefile/index.py documents the function. */
#include "_compiled.h"

#include <stdint.h>
#include <string.h>

#include "summaries/processors.h"

/* The arguments of `is_sorted`. */
enum { RANK, START, DURATION, BEGIN, RANKS, ARRAYS };

FOR_EACH_PROCESSOR
static int all_are(const uint32_t *rank, Py_ssize_t count, uint32_t one)
{
    uint32_t other = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        other |= rank[i] ^ one;
    return !other;
}

FOR_EACH_PROCESSOR
static int ascend(const int64_t *start, Py_ssize_t count)
{
    unsigned falls = 0;
    for (Py_ssize_t i = 1; i < count; i++)
        falls |= start[i] < start[i - 1];
    return !falls;
}

FOR_EACH_PROCESSOR
static int64_t last_end(const int64_t *start, const int64_t *duration, Py_ssize_t count)
{
    int64_t last = INT64_MIN;
    for (Py_ssize_t i = 0; i < count; i++) {
        const int64_t end = (int64_t)((uint64_t)start[i] + (uint64_t)duration[i]);
        last = end > last ? end : last;
    }
    return last;
}

/* The rows of a rank are checked in blocks that stay in the L2 cache between the checks. */
static int sorted(const Py_buffer *arrays, Py_ssize_t count, int64_t max_end)
{
    enum { SOME_ROWS = 1 << 13 };
    const uint32_t *const rank = arrays[RANK].buf;
    const int64_t *const start = arrays[START].buf, *const duration = arrays[DURATION].buf;
    const int64_t *const begin = arrays[BEGIN].buf, *const ranks = arrays[RANKS].buf;
    const Py_ssize_t groups = rank ? arrays[BEGIN].len / 8 : 1;
    int64_t end = INT64_MIN;
    for (Py_ssize_t group = 0; group < groups; group++) {
        const Py_ssize_t low = rank ? begin[group] : 0, high = rank && group + 1 < groups ? begin[group + 1] : count;
        for (Py_ssize_t from = low; from < high; from += SOME_ROWS) {
            const Py_ssize_t some = high - from < SOME_ROWS ? high - from : SOME_ROWS, before = from > low;
            if (rank && !all_are(rank + from, some, (uint32_t)ranks[group]))
                return 0;
            if (rank && start && !ascend(start + from - before, some + before))
                return 0;
            if (start && duration) {
                const int64_t later = last_end(start + from, duration + from, some);
                end = later > end ? later : end;
            }
        }
    }
    return !(start && duration) || end == max_end;
}

static PyObject *is_sorted(PyObject *module, PyObject *args)
{
    (void)module;
    static const int widths[ARRAYS] = {4, 8, 8, 8, 8};
    PyObject *told[ARRAYS], *result = NULL;
    Py_buffer arrays[ARRAYS];
    memset(arrays, 0, sizeof arrays);
    long long max_end;
    int answer = 0, possible = 1;
    if (!PyArg_ParseTuple(args, "OOOOOL", &told[RANK], &told[START], &told[DURATION], &told[BEGIN], &told[RANKS],
                          &max_end))
        return NULL;
    Py_ssize_t count = -1;
    int fits = 1;
    for (int i = 0; i < ARRAYS; i++) {
        if (i < BEGIN && told[i] == Py_None)
            continue;
        if (PyObject_GetBuffer(told[i], &arrays[i], PyBUF_C_CONTIGUOUS) != 0)
            goto done;
        fits &= arrays[i].itemsize == widths[i];
        const Py_ssize_t length = arrays[i].len / widths[i];
        if (i < BEGIN) {
            fits &= count < 0 || length == count;
            count = length;
        }
    }
    const int64_t *const begin = arrays[BEGIN].buf, *const ranks = arrays[RANKS].buf;
    const Py_ssize_t groups = arrays[BEGIN].len / 8;
    fits &= arrays[RANKS].len == arrays[BEGIN].len && groups > 0;
    for (Py_ssize_t i = 0; fits && i < groups; i++)
        fits = begin[i] >= (i ? begin[i - 1] + 1 : 0) && begin[i] < count && (i || begin[i] == 0) && ranks[i] >= 0;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the index does not fit the rows");
        goto done;
    }
    for (Py_ssize_t i = 0; i < groups; i++)
        possible &= !arrays[RANK].buf || ranks[i] <= UINT32_MAX; /* no row has a larger rank */
    Py_BEGIN_ALLOW_THREADS
    answer = possible && sorted(arrays, count, max_end);
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(answer);
done:
    for (int i = 0; i < ARRAYS; i++)
        if (arrays[i].obj)
            PyBuffer_Release(&arrays[i]);
    return result;
}

PyMethodDef order_functions[] = {{"is_sorted", is_sorted, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
