/* Spans of the calls of a chunk by phase, task and thread. spans.py documents the function. */
#include "_compiled.h"
#include "summaries/arrays.h"
#include "summaries/keyed_rows.h"

#include <stdint.h>

enum { KEYS = 3, NUMBERS = 10, NO_MEMORY = -2, UNKNOWN = -1 };

typedef struct {
    int64_t phase, rank, thread; /* the key of the row */
    int64_t count, start_ns, end_ns, time_ns;
    int64_t last; /* the event that ends last; of these the longest; of these the last one */
    int64_t bytes[2];
} span_row;

typedef struct {
    const int64_t *phase, *start, *duration;
    const uint32_t *rank;
    const uint16_t *thread; /* NULL: threads of a task are not distinguished */
    const uint16_t *call;
    const uint8_t *carried, *bits;
    const int64_t *moved; /* NULL: bytes are not counted, and the four others are not used */
    const int32_t *direction;
    Py_ssize_t events, calls;
} spans_job;

/* Return the first event of an unknown call, -1, or NO_MEMORY. Overflow wraps, as in NumPy. */
static Py_ssize_t sum_rows(const spans_job *job, keyed_rows *table)
{
    for (Py_ssize_t i = 0; i < job->events; i++) {
        if (job->phase[i] <= 0)
            continue;
        if (job->moved && job->call[i] >= job->calls)
            return i;
        const int64_t key[KEYS] = {job->phase[i], job->rank[i], job->thread ? job->thread[i] : 0};
        int is_new;
        const int64_t number = find_keyed(table, key, KEYS, &is_new);
        if (number < 0)
            return NO_MEMORY;
        span_row *const row = row_of(table, number);
        const int64_t start = job->start[i], duration = job->duration[i];
        const int64_t end = (int64_t)((uint64_t)start + (uint64_t)duration);
        row->count++;
        row->time_ns = (int64_t)((uint64_t)row->time_ns + (uint64_t)duration);
        row->start_ns = is_new || start < row->start_ns ? start : row->start_ns;
        if (is_new || end > row->end_ns || (end == row->end_ns && duration >= job->duration[row->last])) {
            row->end_ns = end;
            row->last = i;
        }
        if (!job->moved || job->moved[i] <= 0)
            continue;
        const int32_t direction = job->direction[job->call[i]];
        if ((direction == 0 || direction == 1) && !(job->carried[i] & job->bits[job->call[i]]))
            row->bytes[direction] = (int64_t)((uint64_t)row->bytes[direction] + (uint64_t)job->moved[i]);
    }
    return UNKNOWN;
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

static PyObject *sum_spans(PyObject *module, PyObject *args)
{
    (void)module;
    enum { PHASE, RANK, THREAD, START, DURATION, CALL, CARRIED, MOVED, BITS, DIRECTION, ARRAYS };
    static const array_kind wanted[ARRAYS] = {{"phase", 8, 0},          {"rank", 4, 0},        {"thread", 2, OR_NONE},
                                              {"start", 8, 0},          {"duration", 8, 0},    {"call", 2, OR_NONE},
                                              {"carried", 1, OR_NONE},  {"moved", 8, OR_NONE}, {"bits", 1, OR_NONE},
                                              {"direction", 4, OR_NONE}};
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    keyed_rows table = {.bytes = sizeof(span_row), .keys = KEYS};
    if (get_only_arrays(views, args, wanted, ARRAYS, BITS) != 0)
        goto done;
    const int with_bytes = is_given(&views[MOVED]);
    if (with_bytes && !(is_given(&views[CALL]) && is_given(&views[CARRIED]) && is_given(&views[BITS]) &&
                        length_of(&views[DIRECTION]) == length_of(&views[BITS]))) {
        PyErr_SetString(PyExc_ValueError, "bytes need calls, what they carried, and what functions are");
        goto done;
    }
    const spans_job job = {.phase = views[PHASE].buf,
                           .rank = views[RANK].buf,
                           .thread = views[THREAD].buf,
                           .start = views[START].buf,
                           .duration = views[DURATION].buf,
                           .call = views[CALL].buf,
                           .carried = views[CARRIED].buf,
                           .moved = views[MOVED].buf,
                           .bits = views[BITS].buf,
                           .direction = views[DIRECTION].buf,
                           .events = length_of(&views[PHASE]),
                           .calls = length_of(&views[BITS])};
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = sum_rows(&job, &table);
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

PyMethodDef span_functions[] = {{"sum_spans", sum_spans, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
