/* Totals of the events of a chunk by file or rank and by call. totals_by.py documents the functions. */
#include "_compiled.h"
#include "summaries/arrays.h"
#include "summaries/keyed_rows.h"

#include <stdint.h>

enum { KEYS = 2, NUMBERS = 9, NO_MEMORY = -2 };

typedef struct {
    int64_t key, call; /* the key of the row */
    int64_t count, errors, bytes, exclusive_ns, longest_ns, start_ns, end_ns;
} total_row;

typedef struct {
    const uint32_t *key;
    const uint16_t *call;
    const uint8_t *carried, *bits;
    const int64_t *moved, *start, *duration, *inner; /* inner: NULL if no call is inside another */
    Py_ssize_t events, calls;
} totals_job;

/* Return the first event of an unknown call, -1, or NO_MEMORY. Overflow wraps, as in NumPy. */
static Py_ssize_t sum_totals(const totals_job *job, keyed_rows *table)
{
    for (Py_ssize_t i = 0; i < job->events; i++) {
        const uint16_t call = job->call[i];
        if (call >= job->calls)
            return i;
        const int64_t key[KEYS] = {job->key[i], call};
        int is_new;
        const int64_t number = find_keyed(table, key, KEYS, &is_new);
        if (number < 0)
            return NO_MEMORY;
        total_row *const row = row_of(table, number);
        const int64_t start = job->start[i], duration = job->duration[i], moved = job->moved[i];
        const int64_t end = (int64_t)((uint64_t)start + (uint64_t)duration);
        const uint64_t own = (uint64_t)duration - (job->inner ? (uint64_t)job->inner[i] : 0);
        const uint8_t bit = job->bits[call];
        row->count++;
        row->errors += moved < 0;
        if (moved > 0 && bit && !(job->carried[i] & bit))
            row->bytes = (int64_t)((uint64_t)row->bytes + (uint64_t)moved);
        row->exclusive_ns = (int64_t)((uint64_t)row->exclusive_ns + own);
        row->longest_ns = is_new || duration > row->longest_ns ? duration : row->longest_ns;
        row->start_ns = is_new || start < row->start_ns ? start : row->start_ns;
        row->end_ns = is_new || end > row->end_ns ? end : row->end_ns;
    }
    return -1;
}

static PyObject *columns_of(const keyed_rows *table)
{
    columns64 made;
    if (make_columns64(&made, NUMBERS, table->rows) != 0)
        return NULL;
    for (uint32_t number = 0; number < table->rows; number++)
        put_row64(&made, row_of(table, number), NUMBERS, NULL);
    return made.bytes;
}

static PyObject *total_by(PyObject *module, PyObject *args)
{
    (void)module;
    enum { KEY, CALL, CARRIED, MOVED, START, DURATION, INNER, BITS, ARRAYS };
    static const array_kind wanted[ARRAYS] = {{"key", 4, 0},         {"call", 2, 0},  {"carried", 1, 0},
                                              {"moved", 8, 0},       {"start", 8, 0}, {"duration", 8, 0},
                                              {"inner", 8, OR_NONE}, {"bits", 1, 0}};
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    keyed_rows table = {.bytes = sizeof(total_row), .keys = KEYS};
    if (get_only_arrays(views, args, wanted, ARRAYS, BITS) != 0)
        goto done;
    const totals_job job = {.key = views[KEY].buf,
                            .call = views[CALL].buf,
                            .carried = views[CARRIED].buf,
                            .moved = views[MOVED].buf,
                            .start = views[START].buf,
                            .duration = views[DURATION].buf,
                            .inner = views[INNER].buf,
                            .bits = views[BITS].buf,
                            .events = length_of(&views[KEY]),
                            .calls = length_of(&views[BITS])};
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = sum_totals(&job, &table);
    Py_END_ALLOW_THREADS
    if (misfit == NO_MEMORY)
        PyErr_NoMemory();
    else if (misfit >= 0)
        PyErr_Format(PyExc_IndexError, "the call of event %zd is out of range", misfit);
    else
        result = columns_of(&table);
done:
    free_keyed(&table);
    release_arrays(views, ARRAYS);
    return result;
}

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

PyMethodDef total_functions[] = {{"total_by", total_by, METH_VARARGS, NULL},
                                 {"count_ranks_of_keys", count_ranks_of_keys, METH_VARARGS, NULL},
                                 {NULL, NULL, 0, NULL}};
