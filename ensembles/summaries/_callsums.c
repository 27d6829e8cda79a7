/* Sums of the events of a chunk by call. callsums.py documents the functions. */
#include "_compiled.h"
#include "summaries/arrays.h"
#include "summaries/processors.h"

#include <stdint.h>

enum { SUMS = 7, LANES = 8 };

static inline int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The end of the sequence of events of the same call. */
static inline Py_ssize_t end_of_run(const uint16_t *call, Py_ssize_t i, Py_ssize_t events)
{
    const uint16_t mine = call[i];
    do
        i++;
    while (i < events && call[i] == mine);
    return i;
}

/* Return None, or raise IndexError if `misfit`, the first event of an unknown call, is not -1. */
static PyObject *none_unless(Py_ssize_t misfit)
{
    if (misfit < 0)
        return Py_NewRef(Py_None);
    PyErr_Format(PyExc_IndexError, "the call of event %zd is out of range", misfit);
    return NULL;
}

typedef struct {
    const uint16_t *call;
    const int64_t *start, *duration, *moved;
    const uint8_t *carried, *depth, *bits;
    Py_ssize_t events, calls;
    int64_t *sums, *ends;
} sum_job;

/* Return the first event of an unknown call, or -1. Events of a call are mostly consecutive: each such sequence is
 * summed separately. */
FOR_EACH_PROCESSOR
static Py_ssize_t sum_events(const sum_job *job)
{
    enum { COUNT, ERRORS, MOVED, COUNTED, TIME, SHORTEST, LONGEST };
    enum { FIRST, LAST, DEEPEST };
    const int64_t *const start = job->start, *const duration = job->duration, *const moved = job->moved;
    uint8_t deepest = 0, carried = 0;
    for (Py_ssize_t i = 0; i < job->events; i++) {
        deepest = job->depth[i] > deepest ? job->depth[i] : deepest;
        carried |= job->carried[i];
    }
    int64_t first = job->ends[FIRST], last = job->ends[LAST];
    for (Py_ssize_t i = 0, end; i < job->events; i = end) {
        const uint16_t number = job->call[i];
        if (number >= job->calls)
            return i;
        end = end_of_run(job->call, i, job->events);
        int64_t *const sums = job->sums + (Py_ssize_t)number * SUMS;
        int64_t errors = 0, shortest = sums[SHORTEST], longest = sums[LONGEST];
        uint64_t bytes = 0, time = 0, elsewhere = 0;
        for (Py_ssize_t k = i; k < end; k++) {
            errors += moved[k] < 0;
            bytes += (uint64_t)most_of(moved[k], 0);
            time += (uint64_t)duration[k];
            shortest = least_of(shortest, duration[k]);
            longest = most_of(longest, duration[k]);
            first = least_of(first, start[k]);
            last = most_of(last, (int64_t)((uint64_t)start[k] + (uint64_t)duration[k]));
        }
        if (carried & job->bits[number])
            for (Py_ssize_t k = i; k < end; k++)
                elsewhere += job->carried[k] & job->bits[number] ? (uint64_t)most_of(moved[k], 0) : 0;
        sums[COUNT] += end - i;
        sums[ERRORS] += errors;
        sums[MOVED] = (int64_t)((uint64_t)sums[MOVED] + bytes);
        sums[COUNTED] = (int64_t)((uint64_t)sums[COUNTED] + bytes - elsewhere);
        sums[TIME] = (int64_t)((uint64_t)sums[TIME] + time);
        sums[SHORTEST] = shortest;
        sums[LONGEST] = longest;
    }
    job->ends[FIRST] = first, job->ends[LAST] = last, job->ends[DEEPEST] = deepest;
    return -1;
}

static PyObject *sum_calls(PyObject *module, PyObject *args)
{
    (void)module;
    static const array_kind wanted[] = {{"call", 2, 0},  {"start", 8, 0},      {"duration", 8, 0},
                                        {"moved", 8, 0}, {"depth", 1, 0},      {"carried", 1, 0},
                                        {"bits", 1, 0},  {"sums", 8, WRITTEN}, {"ends", 8, WRITTEN}};
    Py_buffer views[9] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, 9, 6) != 0)
        goto done;
    const sum_job job = {.call = views[0].buf,
                         .start = views[1].buf,
                         .duration = views[2].buf,
                         .moved = views[3].buf,
                         .depth = views[4].buf,
                         .carried = views[5].buf,
                         .bits = views[6].buf,
                         .events = length_of(&views[0]),
                         .calls = length_of(&views[6]),
                         .sums = views[7].buf,
                         .ends = views[8].buf};
    if (length_of(&views[7]) != SUMS * job.calls || length_of(&views[8]) != 3) {
        PyErr_SetString(PyExc_ValueError, "sums must have a row for each call, and ends three numbers");
        goto done;
    }
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = sum_events(&job);
    Py_END_ALLOW_THREADS
    result = none_unless(misfit);
done:
    release_arrays(views, 9);
    return result;
}

typedef struct {
    const uint16_t *call;
    const int64_t *duration;
    const double *mean;
    Py_ssize_t events, calls;
    double *sums;
} power_job;

/* Central sums of powers, in several lanes for vectorisation. */
typedef struct {
    double second[LANES], third[LANES], fourth[LANES];
} lanes;

static inline void add_powers(lanes *sums, int lane, double beyond)
{
    const double square = beyond * beyond;
    sums->second[lane] += square;
    sums->third[lane] += square * beyond;
    sums->fourth[lane] += square * square;
}

/* Return value as of sum_events. */
FOR_EACH_PROCESSOR
static Py_ssize_t sum_power_events(const power_job *job)
{
    for (Py_ssize_t i = 0, end; i < job->events; i = end) {
        const uint16_t number = job->call[i];
        if (number >= job->calls)
            return i;
        end = end_of_run(job->call, i, job->events);
        const double mean = job->mean[number];
        lanes run = {0};
        Py_ssize_t k = i;
        for (; k + LANES <= end; k += LANES)
            for (int lane = 0; lane < LANES; lane++)
                add_powers(&run, lane, (double)job->duration[k + lane] - mean);
        for (; k < end; k++)
            add_powers(&run, 0, (double)job->duration[k] - mean);
        double *const sums = job->sums + 3 * (Py_ssize_t)number;
        for (int lane = 0; lane < LANES; lane++) {
            sums[0] += run.second[lane];
            sums[1] += run.third[lane];
            sums[2] += run.fourth[lane];
        }
    }
    return -1;
}

static PyObject *sum_powers(PyObject *module, PyObject *args)
{
    (void)module;
    static const array_kind wanted[] = {{"call", 2, 0}, {"duration", 8, 0}, {"mean", 8, 0}, {"sums", 8, WRITTEN}};
    Py_buffer views[4] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, 4, 2) != 0)
        goto done;
    const power_job job = {.call = views[0].buf,
                           .duration = views[1].buf,
                           .mean = views[2].buf,
                           .events = length_of(&views[0]),
                           .calls = length_of(&views[2]),
                           .sums = views[3].buf};
    if (length_of(&views[3]) != 3 * job.calls) {
        PyErr_SetString(PyExc_ValueError, "sums must have a row for each call");
        goto done;
    }
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = sum_power_events(&job);
    Py_END_ALLOW_THREADS
    result = none_unless(misfit);
done:
    release_arrays(views, 4);
    return result;
}

PyMethodDef call_sum_functions[] = {{"sum_calls", sum_calls, METH_VARARGS, NULL},
                                    {"sum_powers", sum_powers, METH_VARARGS, NULL},
                                    {NULL, NULL, 0, NULL}};
