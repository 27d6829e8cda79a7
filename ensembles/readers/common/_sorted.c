/* Test whether rows of a trace.h5 are sorted as its index states, and describe rows for it. readers/tracefile/index.py
 * documents the functions. */
#include "_compiled.h"

#include <stdint.h>

#include "summaries/arrays.h"
#include "summaries/processors.h"

enum { MOST_ROWS = 1 << 27 }; /* of a chunk */

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

/* Rows to check; columns that are NULL are not checked. */
typedef struct {
    const uint32_t *rank;
    const int64_t *start, *duration;
    Py_ssize_t count;
    const int64_t *begin,
        *ranks; /* of each group of rows of one rank: its first row, counted from `base`, and the rank */
    Py_ssize_t groups;
    int64_t base, max_end;
} sequence;

/* First row of a group. The first group may have begun before. */
static inline Py_ssize_t first_row(const sequence *rows, Py_ssize_t group)
{
    const int64_t first = rows->begin[group] - rows->base;
    return first > 0 ? first : 0;
}

/* The rows of a rank are checked in blocks that stay in the L2 cache between the checks. */
static int sorted(const sequence *rows)
{
    enum { SOME_ROWS = 1 << 13 };
    const uint32_t *const rank = rows->rank;
    const int64_t *const start = rows->start, *const duration = rows->duration;
    const Py_ssize_t groups = rank ? rows->groups : 1;
    int64_t end = INT64_MIN;
    for (Py_ssize_t group = 0; group < groups; group++) {
        const Py_ssize_t low = rank ? first_row(rows, group) : 0;
        const Py_ssize_t high = rank && group + 1 < groups ? first_row(rows, group + 1) : rows->count;
        if (rank && (rows->ranks[group] < 0 || rows->ranks[group] > UINT32_MAX)) /* no row has a larger rank */
            return 0;
        for (Py_ssize_t from = low; from < high; from += SOME_ROWS) {
            const Py_ssize_t some = high - from < SOME_ROWS ? high - from : SOME_ROWS, before = from > low;
            if (rank && !all_are(rank + from, some, (uint32_t)rows->ranks[group]))
                return 0;
            if (rank && start && !ascend(start + from - before, some + before))
                return 0;
            if (start && duration) {
                const int64_t later = last_end(start + from, duration + from, some);
                end = later > end ? later : end;
            }
        }
    }
    return !(start && duration) || end == rows->max_end;
}

/* The last group that begins at a row or before it; -1: none does. */
static Py_ssize_t group_of(const int64_t *begin, Py_ssize_t groups, int64_t row)
{
    Py_ssize_t low = 0, high = groups;
    while (low < high) {
        const Py_ssize_t middle = low + (high - low) / 2;
        if (begin[middle] <= row)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

/* An index, and chunks of its rows that lie one after the other. */
typedef struct {
    const uint32_t *rank;
    const int64_t *start, *duration;
    Py_ssize_t count; /* of all rows */
    const int64_t *chunk;
    Py_ssize_t chunks;
    int64_t rows; /* of a chunk; the last one may have fewer */
    const int64_t *begin, *ranks;
    Py_ssize_t groups;
    const int64_t *first_start, *last_start, *max_end;
    Py_ssize_t known; /* chunks of the index */
} indexed;

static int are_sorted(const indexed *told)
{
    for (Py_ssize_t i = 0; i < told->chunks; i++) {
        const int64_t chunk = told->chunk[i], low = chunk * told->rows, at = i * told->rows;
        const int64_t left = told->count - at, count = left < told->rows ? left : told->rows;
        const Py_ssize_t first = group_of(told->begin, told->groups, low);
        const Py_ssize_t last = group_of(told->begin, told->groups, low + count - 1);
        const int64_t *const start = told->start ? told->start + at : NULL;
        if (first < 0 ||
            (start && (start[0] != told->first_start[chunk] || start[count - 1] != told->last_start[chunk])))
            return 0;
        const sequence rows = {.rank = told->rank ? told->rank + at : NULL,
                               .start = start,
                               .duration = told->duration ? told->duration + at : NULL,
                               .count = count,
                               .begin = told->begin + first,
                               .ranks = told->ranks + first,
                               .groups = last - first + 1,
                               .base = low,
                               .max_end = told->max_end[chunk]};
        if (!sorted(&rows))
            return 0;
    }
    return 1;
}

/* Arguments: rank, start, duration (None: not checked), numbers of the chunks, rows of a chunk; of the index: first row
 * of each rank, the ranks, first and last start and latest end of each chunk. */
static PyObject *are_chunks_sorted(PyObject *module, PyObject *args)
{
    (void)module;
    enum { RANK, START, DURATION, CHUNK, FIRST_ROW, OF_RANK, FIRST, LAST, MAX_END, COLUMNS };
    static const array_kind wanted[COLUMNS] = {{"rank", 4, OR_NONE},  {"start", 8, OR_NONE}, {"duration", 8, OR_NONE},
                                               {"chunks", 8, 0},      {"row", 8, 0},         {"ranks", 8, 0},
                                               {"first_start", 8, 0}, {"last_start", 8, 0},  {"max_end", 8, 0}};
    PyObject *objects[COLUMNS], *result = NULL;
    Py_buffer views[COLUMNS] = {0};
    long long rows;
    int answer = 0;
    if (!PyArg_ParseTuple(args, "OOOOLOOOOO", &objects[RANK], &objects[START], &objects[DURATION], &objects[CHUNK],
                          &rows, &objects[FIRST_ROW], &objects[OF_RANK], &objects[FIRST], &objects[LAST],
                          &objects[MAX_END]))
        return NULL;
    if (get_arrays(views, objects, wanted, COLUMNS, 0) != 0)
        goto done;
    Py_ssize_t count = -1;
    int fits = 1;
    for (int i = 0; i < CHUNK; i++)
        if (is_given(&views[i])) {
            fits &= count < 0 || length_of(&views[i]) == count;
            count = length_of(&views[i]);
        }
    const indexed told = {.rank = views[RANK].buf,
                          .start = views[START].buf,
                          .duration = views[DURATION].buf,
                          .count = count,
                          .chunk = views[CHUNK].buf,
                          .chunks = length_of(&views[CHUNK]),
                          .rows = rows,
                          .begin = views[FIRST_ROW].buf,
                          .ranks = views[OF_RANK].buf,
                          .groups = length_of(&views[FIRST_ROW]),
                          .first_start = views[FIRST].buf,
                          .last_start = views[LAST].buf,
                          .max_end = views[MAX_END].buf,
                          .known = length_of(&views[FIRST])};
    fits = fits && told.groups > 0 && length_of(&views[OF_RANK]) == told.groups &&
           length_of(&views[LAST]) == told.known && length_of(&views[MAX_END]) == told.known;
    fits = fits && told.chunks > 0 && rows > 0 && rows <= MOST_ROWS && count > (told.chunks - 1) * rows &&
           count <= told.chunks * rows;
    for (Py_ssize_t i = 0; fits && i < told.chunks; i++)
        fits = told.chunk[i] >= 0 && told.chunk[i] < told.known;
    for (Py_ssize_t i = 1; fits && i < told.groups; i++)
        fits = told.begin[i] > told.begin[i - 1];
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the index does not fit the rows");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    answer = are_sorted(&told);
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(answer);
done:
    release_arrays(views, COLUMNS);
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

PyMethodDef order_functions[] = {{"are_chunks_sorted", are_chunks_sorted, METH_VARARGS, NULL},
                                 {"describe_rows", describe_rows, METH_VARARGS, NULL},
                                 {NULL, NULL, 0, NULL}};
