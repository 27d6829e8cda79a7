/* Count durations in bins, for groups of events or for all events. kernels.py documents the functions. */
#include "_compiled.h"
#include "summaries/arrays.h"

#include <math.h>
#include <stdint.h>

#include <ensio/bins.h>

/* Return the first event whose group has no row in `out`, or -1. */
static Py_ssize_t count_events(const uint16_t *group, const int64_t *duration, Py_ssize_t events, int64_t *out,
                               Py_ssize_t groups)
{
    for (Py_ssize_t i = 0; i < events; i++) {
        if (group[i] >= groups || duration[i] < 0)
            return i;
        out[(Py_ssize_t)group[i] * ENSIO_BIN_COUNT + ensio_bin((uint64_t)duration[i])]++;
    }
    return -1;
}

static PyObject *count_bins(PyObject *module, PyObject *args)
{
    (void)module;
    enum { GROUP, DURATION, COLUMNS, OUT = COLUMNS, ARRAYS };
    static const array_kind wanted[ARRAYS] = {{"group", 2, 0}, {"duration", 8, 0}, {"out", 8, WRITTEN}};
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, ARRAYS, COLUMNS) != 0)
        goto done;
    const Py_ssize_t events = length_of(&views[GROUP]), groups = length_of(&views[OUT]) / ENSIO_BIN_COUNT;
    if (length_of(&views[OUT]) % ENSIO_BIN_COUNT != 0) {
        PyErr_SetString(PyExc_ValueError, "out must be whole rows of bins");
        goto done;
    }
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = count_events(views[GROUP].buf, views[DURATION].buf, events, views[OUT].buf, groups);
    Py_END_ALLOW_THREADS
    if (misfit >= 0)
        PyErr_Format(PyExc_IndexError, "event %zd has no row in out, or a negative duration", misfit);
    else
        result = Py_NewRef(Py_None);
done:
    release_arrays(views, ARRAYS);
    return result;
}

/* Results per group: rows of `counts`, entries of the other arrays. */
typedef struct {
    const int64_t *key, *duration, *cuts; /* group of a call: number of cuts up to its key */
    const uint8_t *taken;                 /* 0: the call is left out; NULL: all calls are counted */
    Py_ssize_t events, groups;
    int64_t *counts, *least, *most;
    double *sums;      /* of durations, and of their squares */
    int32_t *apart;    /* receives the positions of calls in odd groups; NULL: not wanted */
    Py_ssize_t *found; /* number of these */
} group_job;

/* The group of a key: the number of cuts up to it. */
static Py_ssize_t group_of(const group_job *job, int64_t key)
{
    Py_ssize_t low = 0, high = job->groups - 1;
    while (low < high) {
        const Py_ssize_t middle = low + (high - low) / 2;
        if (job->cuts[middle] <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Return the first event with a negative duration, or -1. Calls of a group are mostly consecutive: their sums are kept
 * in registers and added to the arrays when another group begins. */
static Py_ssize_t count_group_events(const group_job *job)
{
    Py_ssize_t i = 0;
    while (i < job->events) {
        const Py_ssize_t group = group_of(job, job->key[i]);
        const int64_t from = group ? job->cuts[group - 1] : INT64_MIN;
        const int is_last = group == job->groups - 1;
        const int64_t to = is_last ? INT64_MAX : job->cuts[group];
        int64_t *const counts = job->counts + group * ENSIO_BIN_COUNT;
        int64_t least = INT64_MAX, most = -1, duration = 0;
        double sum = 0, squares = 0;
        for (; i < job->events; i++) {
            const int64_t key = job->key[i];
            if (key < from || (key >= to && !is_last))
                break;
            if (job->taken && !job->taken[i])
                continue;
            duration = job->duration[i];
            if (duration < 0)
                break;
            counts[ensio_bin((uint64_t)duration)]++;
            least = duration < least ? duration : least;
            most = duration > most ? duration : most;
            const double real = (double)duration;
            sum += real;
            squares += real * real;
            if (job->apart && group % 2)
                job->apart[(*job->found)++] = (int32_t)i;
        }
        job->least[group] = least < job->least[group] ? least : job->least[group];
        job->most[group] = most > job->most[group] ? most : job->most[group];
        job->sums[2 * group] += sum;
        job->sums[2 * group + 1] += squares;
        if (duration < 0)
            return i;
    }
    return -1;
}

static PyObject *count_groups(PyObject *module, PyObject *args)
{
    (void)module;
    enum { KEY, DURATION, TAKEN, COLUMNS, CUTS = COLUMNS, COUNTS, LEAST, MOST, SUMS, APART, ARRAYS };
    static const array_kind wanted[ARRAYS] = {
        {"key", 8, 0},        {"duration", 8, 0},     {"taken", 1, OR_NONE},
        {"cuts", 8, 0},       {"counts", 8, WRITTEN}, {"least", 8, WRITTEN},
        {"most", 8, WRITTEN}, {"sums", 8, WRITTEN},   {"apart", 4, OR_NONE | WRITTEN}};
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, ARRAYS, COLUMNS) != 0)
        goto done;
    const Py_ssize_t events = length_of(&views[KEY]), groups = length_of(&views[CUTS]) + 1;
    if (length_of(&views[COUNTS]) != groups * ENSIO_BIN_COUNT || length_of(&views[LEAST]) != groups ||
        length_of(&views[MOST]) != groups || length_of(&views[SUMS]) != 2 * groups ||
        (is_given(&views[APART]) && (length_of(&views[APART]) != events || events > INT32_MAX))) {
        PyErr_SetString(PyExc_ValueError, "arrays of events, and those of groups, must be equally long");
        goto done;
    }
    Py_ssize_t found = 0;
    const group_job job = {.key = views[KEY].buf,
                           .duration = views[DURATION].buf,
                           .cuts = views[CUTS].buf,
                           .taken = views[TAKEN].buf,
                           .events = events,
                           .groups = groups,
                           .counts = views[COUNTS].buf,
                           .least = views[LEAST].buf,
                           .most = views[MOST].buf,
                           .apart = views[APART].buf,
                           .found = &found,
                           .sums = views[SUMS].buf};
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = count_group_events(&job);
    Py_END_ALLOW_THREADS
    if (misfit >= 0)
        PyErr_Format(PyExc_IndexError, "event %zd has a negative duration", misfit);
    else
        result = PyLong_FromSsize_t(found);
done:
    release_arrays(views, ARRAYS);
    return result;
}

/* Count durations in seconds, rounded to ns, and return the first one that cannot be counted, or -1. `stats`:
 * minimum, maximum, sum, and sum of squared differences from stats[4]. */
static Py_ssize_t count_second_events(const double *seconds, Py_ssize_t events, double limit, int64_t *out,
                                      double *stats)
{
    const double to_integer = 6755399441055744.0; /* 1.5 * 2**52: adding it removes the fraction */
    double least = stats[0], most = stats[1], sum = stats[2], squares = stats[3];
    const double reference = stats[4];
    for (Py_ssize_t i = 0; i < events; i++) {
        const double value = seconds[i];
        if (!(value >= 0 && value < limit))
            return i;
        const double ns = value * 1e9;
        /* From 2**51 on, the sum would round to even numbers; from 2**52 on, there is no fraction. */
        const double whole = ns < 2251799813685248.0 ? (ns + to_integer) - to_integer : rint(ns);
        out[ensio_bin((uint64_t)whole)]++;
        least = value < least ? value : least;
        most = value > most ? value : most;
        const double beyond = value - reference;
        sum += beyond;
        squares += beyond * beyond;
    }
    stats[0] = least, stats[1] = most, stats[2] = sum, stats[3] = squares;
    return -1;
}

static PyObject *count_seconds(PyObject *module, PyObject *args)
{
    (void)module;
    enum { SECONDS, OUT, STATS, ARRAYS };
    static const array_kind wanted[ARRAYS] = {{"seconds", 8, 0}, {"out", 8, WRITTEN}, {"stats", 8, WRITTEN}};
    PyObject *objects[ARRAYS], *result = NULL;
    Py_buffer views[ARRAYS] = {0};
    double limit;
    if (!PyArg_ParseTuple(args, "OdOO", &objects[SECONDS], &limit, &objects[OUT], &objects[STATS]))
        return NULL;
    if (get_arrays(views, objects, wanted, ARRAYS, 0) != 0)
        goto done;
    if (length_of(&views[OUT]) != ENSIO_BIN_COUNT || length_of(&views[STATS]) != 5 || !(limit <= 9e9)) {
        PyErr_SetString(PyExc_ValueError, "out must be a row of bins, stats five numbers, and limit below 9e9 s");
        goto done;
    }
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit =
        count_second_events(views[SECONDS].buf, length_of(&views[SECONDS]), limit, views[OUT].buf, views[STATS].buf);
    Py_END_ALLOW_THREADS
    result = PyLong_FromSsize_t(misfit);
done:
    release_arrays(views, ARRAYS);
    return result;
}

/* Give the bins, or else the bit lengths, of numbers. */
static PyObject *numbers_of(PyObject *args, int bins)
{
    enum { VALUE, OUT, ARRAYS };
    static const array_kind wanted[ARRAYS] = {{"value", 8, 0}, {"out", 8, WRITTEN}};
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, ARRAYS, ARRAYS) == 0) {
        const uint64_t *value = views[VALUE].buf;
        int64_t *out = views[OUT].buf;
        const Py_ssize_t count = length_of(&views[VALUE]);
        Py_BEGIN_ALLOW_THREADS
        if (bins)
            for (Py_ssize_t i = 0; i < count; i++)
                out[i] = ensio_bin(value[i]);
        else
            for (Py_ssize_t i = 0; i < count; i++)
                out[i] = value[i] ? 64 - __builtin_clzll(value[i]) : 0;
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release_arrays(views, ARRAYS);
    return result;
}

static PyObject *bin_indices(PyObject *module, PyObject *args)
{
    (void)module;
    return numbers_of(args, 1);
}

static PyObject *bit_lengths(PyObject *module, PyObject *args)
{
    (void)module;
    return numbers_of(args, 0);
}

PyMethodDef count_functions[] = {
    {"bin_indices", bin_indices, METH_VARARGS, NULL},     {"bit_lengths", bit_lengths, METH_VARARGS, NULL},
    {"count_bins", count_bins, METH_VARARGS, NULL},       {"count_groups", count_groups, METH_VARARGS, NULL},
    {"count_seconds", count_seconds, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
