/* Count calls by the class of their ordinal, in total and by rank (ensembles.py documents the classes), and number
 * calls (numbering.py). */
#include "_compiled.h"
#include "summaries/arrays.h"
#include "summaries/keyed_rows.h"

#include <stdint.h>

#include <ensio/bins.h>

enum { APART = 1024, APART_BITS = 10, PARTS_BITS = 5 };

/* The class of an ordinal from 1: each up to APART is a class, and each octave beyond has 32. */
static Py_ssize_t class_of(int64_t ordinal)
{
    if (ordinal <= APART)
        return (Py_ssize_t)ordinal - 1;
    const uint64_t before = (uint64_t)ordinal - 1;
    const int octave = 63 - __builtin_clzll(before) - APART_BITS;
    const uint64_t first = (uint64_t)APART << octave;
    return APART + ((Py_ssize_t)octave << PARTS_BITS) +
           (Py_ssize_t)((before - first) >> (APART_BITS - PARTS_BITS + octave));
}

typedef struct {
    const int64_t *ordinal, *duration;
    const int32_t *row; /* of `calls` and `levels` */
    const double *log;  /* of the duration */
    Py_ssize_t events, classes, rows;
    uint16_t *number; /* receives the class of each call */
    int64_t *bins, *count, *least, *most;
    double *sum;
    uint32_t *calls; /* by row and class */
    double *levels;  /* sums of the logarithms, likewise */
} ordinal_job;

/* Return the first call that has no place in the arrays, or -1. */
static Py_ssize_t count_ordinal_events(const ordinal_job *job)
{
    for (Py_ssize_t i = 0; i < job->events; i++) {
        const int64_t duration = job->duration[i];
        const Py_ssize_t row = job->row[i];
        if (job->ordinal[i] < 1 || duration < 0 || row < 0 || row >= job->rows)
            return i;
        const Py_ssize_t class = class_of(job->ordinal[i]);
        if (class >= job->classes || class > UINT16_MAX)
            return i;
        job->number[i] = (uint16_t) class;
        job->bins[class * ENSIO_BIN_COUNT + ensio_bin((uint64_t)duration)]++;
        job->count[class]++;
        job->sum[class] += (double)duration;
        if (duration < job->least[class])
            job->least[class] = duration;
        if (duration > job->most[class])
            job->most[class] = duration;
        job->calls[row * job->classes + class]++;
        job->levels[row * job->classes + class] += job->log[i];
    }
    return -1;
}

static PyObject *count_ordinals(PyObject *module, PyObject *args)
{
    (void)module;
    enum {
        ORDINAL,
        DURATION,
        ROW,
        LOG,
        NUMBER,
        COLUMNS,
        BINS = COLUMNS,
        COUNT,
        SUM,
        LEAST,
        MOST,
        CALLS,
        LEVELS,
        ARRAYS
    };
    static const array_kind wanted[ARRAYS] = {
        {"ordinal", 8, 0},      {"duration", 8, 0},   {"row", 4, 0},         {"log", 8, 0},
        {"number", 2, WRITTEN}, {"bins", 8, WRITTEN}, {"count", 8, WRITTEN}, {"sum", 8, WRITTEN},
        {"least", 8, WRITTEN},  {"most", 8, WRITTEN}, {"calls", 4, WRITTEN}, {"levels", 8, WRITTEN},
    };
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, ARRAYS, COLUMNS) != 0)
        goto done;
    const Py_ssize_t classes = length_of(&views[COUNT]);
    const Py_ssize_t rows = classes ? length_of(&views[CALLS]) / classes : 0;
    if (length_of(&views[BINS]) != classes * ENSIO_BIN_COUNT || length_of(&views[SUM]) != classes ||
        length_of(&views[LEAST]) != classes || length_of(&views[MOST]) != classes ||
        length_of(&views[CALLS]) != rows * classes || length_of(&views[LEVELS]) != rows * classes) {
        PyErr_SetString(PyExc_ValueError, "the arrays must have an entry for each class");
        goto done;
    }
    const ordinal_job job = {
        .ordinal = views[ORDINAL].buf,
        .duration = views[DURATION].buf,
        .row = views[ROW].buf,
        .log = views[LOG].buf,
        .events = length_of(&views[ORDINAL]),
        .classes = classes,
        .rows = rows,
        .number = views[NUMBER].buf,
        .bins = views[BINS].buf,
        .count = views[COUNT].buf,
        .least = views[LEAST].buf,
        .most = views[MOST].buf,
        .sum = views[SUM].buf,
        .calls = views[CALLS].buf,
        .levels = views[LEVELS].buf,
    };
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = count_ordinal_events(&job);
    Py_END_ALLOW_THREADS
    if (misfit >= 0)
        PyErr_Format(PyExc_IndexError, "call %zd has no class, no row, or a negative duration", misfit);
    else
        result = Py_NewRef(Py_None);
done:
    release_arrays(views, ARRAYS);
    return result;
}

enum { KEYS_OF_GROUPS = 2, NOT_IN_ORDER = -1, NO_MEMORY = -2, MOST_KEPT = 1 << 16 };

typedef struct {
    int64_t rank, group; /* the key */
    int64_t calls;
} numbered_group;

typedef struct {
    const uint32_t *rank;
    const int64_t *start;
    const uint8_t *depth;
    const uint64_t *group;
    int64_t *ordinal; /* receives the number of each call among those of its rank and group */
    Py_ssize_t events;
} number_job;

static int is_after(const number_job *job, Py_ssize_t i)
{
    if (job->rank[i] != job->rank[i - 1])
        return job->rank[i] > job->rank[i - 1];
    if (job->start[i] != job->start[i - 1])
        return job->start[i] > job->start[i - 1];
    return job->depth[i] >= job->depth[i - 1];
}

/* Return 0, NOT_IN_ORDER, if a call comes before the one before it by rank, start and depth, or NO_MEMORY. */
static int number_events(const number_job *job)
{
    keyed_rows groups = {.bytes = sizeof(numbered_group), .keys = KEYS_OF_GROUPS};
    int flaw = 0;
    for (Py_ssize_t i = 0; i < job->events; i++) {
        if (i && !is_after(job, i)) {
            flaw = NOT_IN_ORDER;
            break;
        }
        if (i && job->rank[i] != job->rank[i - 1] && groups.rows >= MOST_KEPT) { /* those of other ranks are done */
            free_keyed(&groups);
            groups = (keyed_rows){.bytes = sizeof(numbered_group), .keys = KEYS_OF_GROUPS};
        }
        int is_new;
        const int64_t found =
            find_keyed(&groups, (const int64_t[]){job->rank[i], (int64_t)job->group[i]}, KEYS_OF_GROUPS, &is_new);
        if (found < 0) {
            flaw = NO_MEMORY;
            break;
        }
        job->ordinal[i] = ++((numbered_group *)row_of(&groups, found))->calls;
    }
    free_keyed(&groups);
    return flaw;
}

/* Return True, or False if the calls are not in order. */
static PyObject *number_calls(PyObject *module, PyObject *args)
{
    (void)module;
    enum { RANK, START, DEPTH, GROUP, NUMBERS, ALL_ARRAYS };
    static const array_kind wanted[ALL_ARRAYS] = {
        {"rank", 4, 0}, {"start", 8, 0}, {"depth", 1, 0}, {"group", 8, 0}, {"ordinal", 8, WRITTEN}};
    Py_buffer views[ALL_ARRAYS] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, ALL_ARRAYS, ALL_ARRAYS) != 0)
        goto done;
    const number_job job = {.rank = views[RANK].buf,
                            .start = views[START].buf,
                            .depth = views[DEPTH].buf,
                            .group = views[GROUP].buf,
                            .ordinal = views[NUMBERS].buf,
                            .events = length_of(&views[RANK])};
    int flaw;
    Py_BEGIN_ALLOW_THREADS
    flaw = number_events(&job);
    Py_END_ALLOW_THREADS
    result = flaw == NO_MEMORY ? PyErr_NoMemory() : PyBool_FromLong(flaw == 0);
done:
    release_arrays(views, ALL_ARRAYS);
    return result;
}

PyMethodDef ordinal_functions[] = {{"count_ordinals", count_ordinals, METH_VARARGS, NULL},
                                   {"number_calls", number_calls, METH_VARARGS, NULL},
                                   {NULL, NULL, 0, NULL}};
