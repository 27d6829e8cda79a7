/* Test whether rows of a trace.h5 are sorted as its index states, and describe rows for it. readers/tracefile/index.py
 * documents the functions. */
#include "_compiled.h"

#include <stdint.h>
#include <string.h>

#include "summaries/arrays.h"
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

/* What is known of a chunk beyond its order. */
typedef struct {
    int64_t last_end;
    uint64_t calls, files, least, most; /* sets of numbers modulo 64; requested bytes */
} contents;

FOR_EACH_PROCESSOR
static uint64_t calls_of(const uint16_t *call, Py_ssize_t count)
{
    uint64_t set = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        set |= (uint64_t)1 << (call[i] & 63);
    return set;
}

FOR_EACH_PROCESSOR
static uint64_t files_of(const uint32_t *file, Py_ssize_t count)
{
    uint64_t set = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        set |= (uint64_t)1 << (file[i] & 63);
    return set;
}

FOR_EACH_PROCESSOR
static void range_of(const uint64_t *size, Py_ssize_t count, uint64_t *least, uint64_t *most)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        low = size[i] < low ? size[i] : low;
        high = size[i] > high ? size[i] : high;
    }
    *least = low, *most = high;
}

/* Arguments: start, duration, call, file, requested; of at least one row. */
static PyObject *describe_rows(PyObject *module, PyObject *args)
{
    (void)module;
    enum { START_OF, DURATION_OF, CALL, FILE_OF, REQUESTED, COLUMNS };
    static const array_kind wanted[COLUMNS] = {
        {"start", 8, 0}, {"duration", 8, 0}, {"call", 2, 0}, {"file", 4, 0}, {"requested", 8, 0}};
    Py_buffer views[COLUMNS] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, COLUMNS, COLUMNS) != 0)
        goto done;
    const Py_ssize_t count = length_of(&views[START_OF]);
    if (count == 0) {
        PyErr_SetString(PyExc_ValueError, "there are no rows");
        goto done;
    }
    contents found;
    Py_BEGIN_ALLOW_THREADS
    found.last_end = last_end(views[START_OF].buf, views[DURATION_OF].buf, count);
    found.calls = calls_of(views[CALL].buf, count);
    found.files = files_of(views[FILE_OF].buf, count);
    range_of(views[REQUESTED].buf, count, &found.least, &found.most);
    Py_END_ALLOW_THREADS
    result =
        Py_BuildValue("LKKKK", (long long)found.last_end, (unsigned long long)found.calls,
                      (unsigned long long)found.files, (unsigned long long)found.least, (unsigned long long)found.most);
done:
    release_arrays(views, COLUMNS);
    return result;
}

PyMethodDef order_functions[] = {{"is_sorted", is_sorted, METH_VARARGS, NULL},
                                 {"describe_rows", describe_rows, METH_VARARGS, NULL},
                                 {NULL, NULL, 0, NULL}};
